"""Pictures of a result: Dataset in, Axes out.

>>> plots.overview(relboltz.load("run.nc")).savefig("run.png")

Species with the same curves share one line, their mean; a species has one colour in all
pictures; dashed lines are the predicted equilibrium. Matplotlib's global state stays as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray
from xarray import DataArray, Dataset, full_like

from ..errors import InputError
from ..model import suggest

Array = NDArray[np.float64]
Ax = Axes | None
Names = str | Sequence[str] | None
Panels = list[list[Callable[..., Axes]]]
STYLE: Any = {
    "font.size": 10.5, "axes.titlesize": "medium", "legend.fontsize": 9.5, "pdf.fonttype": 42,
    "axes.spines.top": False, "axes.spines.right": False, "axes.formatter.useoffset": False,
    "legend.frameon": False, "legend.handlelength": 1.6, "lines.linewidth": 1.8,
}  # fmt: skip
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#7F7F7F")
"""Safe for the colour-blind (Okabe and Ito, and two more); the first is kept for gluons."""
DASHES = ("-", "-.", (0, (1, 1)))
ABOVE: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "alignment": "left"}
QUARKS = frozenset("udscbt")
ALIKE = 0.1  # spectra that differ by less, relative to the peak, count as the same
styled = mpl.rc_context(STYLE)


def groups(ds: Dataset) -> list[list[str]]:
    """Species of equal kind, prediction and, but for noise, spectra; most abundant groups first."""
    found: list[list[str]] = []
    for name in ds.species.values.tolist():
        home = next((group for group in found if _alike(ds, group[0], name)), None)
        if home is None:
            found.append(home := [])
        home.append(name)
    last = ds.number.isel(time=-1)
    return sorted(found, key=lambda group: -float(last.sel(species=group).sum()))


def _alike(ds: Dataset, a: str, b: str) -> bool:
    one, two = ds.sel(species=a), ds.sel(species=b)
    rough = {"statistics": 0, "degeneracy": 0, "equilibrium_chemical_potential": 1e-3}
    for name, rtol in {**rough, "mass_squared": 0.05}.items():
        if not np.allclose(one[name], two[name], rtol=rtol, atol=1e-9, equal_nan=True):
            return False
    weight = (ds.p.values + ds.p.values[-1] / ds.p.size) ** 2
    f, g = one.spectrum.values, two.spectrum.values
    return bool((abs(f - g) @ weight).max() <= 0.5 * ALIKE * ((f + g) @ weight).max())


def _base(name: str) -> str:
    return name[:-3] if name.endswith("bar") and len(name) > 3 else name


def _pretty(name: str) -> str:
    """A bar over what is ...bar; nothing of a user's name is read as mathematics."""
    if (base := _base(name)) != name and base.isascii() and base.isalnum():
        return rf"$\bar{{\mathrm{{{base}}}}}$"
    return name.replace("$", r"\$")


def label(group: Sequence[str]) -> str:
    """A short name: 'u, d, s and antiquarks'."""
    plain = [n for n in group if n == _base(n)]
    both = len(plain) > 1 and sorted(group) == sorted([*plain, *(n + "bar" for n in plain)])
    words = [_pretty(n) for n in (plain if both else group)]
    text = ", ".join(words if len(words) <= 6 else [*words[:4], "…", words[-1]])
    return f"{text} and anti{'quarks' if set(plain) <= QUARKS else 'particles'}" if both else text


def _look(ds: Dataset, name: str) -> dict[str, Any]:
    """Colour and line style of a species, the same in every picture."""
    bases = list(dict.fromkeys(_base(n) for n in ds.species.values.tolist() if n != "g"))
    place = 0 if name == "g" else 1 + bases.index(_base(name))
    dashes = place // len(COLORS) + (_base(name) != name)
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[dashes % len(DASHES)]}


def _labelled(values: DataArray, words: str = "") -> str:
    """Words and unit, such as 'particle density [fm^-3]'."""
    unit = re.sub(r"\^(-?\d+)", r"$^{\1}$", values.attrs.get("units", "1"))
    return f"{words or values.attrs.get('long_name', values.name)} [{unit}]"


def _members(ds: Dataset, species: Names) -> list[str]:
    """The species that are asked for; else the most abundant group."""
    if species is None:
        return groups(ds)[0]
    names, known = [species] if isinstance(species, str) else species, ds.species.values.tolist()
    for name in set(names) - set(known):
        raise InputError(f"no species {name!r} in this result; {suggest(name, known)}")
    return list(names)


def _mean(values: DataArray, group: Sequence[str]) -> Array:
    return values.sel(species=list(group)).mean("species").values


def prediction(ds: Dataset, species: str, p: ArrayLike) -> Array:
    """Predicted f(|p|) of a species, averaged over directions; p in GeV; NaN if there is none."""
    one, p, speed = ds.sel(species=species), np.asarray(p), np.linalg.norm(ds.equilibrium_velocity)
    cosine, weight = np.polynomial.legendre.leggauss(16 if speed > 1e-9 else 1)
    energy = np.sqrt(p**2 + float(one.equilibrium_mass_squared)) - speed * p * cosine[:, None]
    energy /= np.sqrt(1 - speed**2)
    x = (energy - float(one.equilibrium_chemical_potential)) / float(ds.equilibrium_temperature)
    with np.errstate(divide="ignore"):
        f = 1 / (np.expm1(np.clip(x, -700, 700)) + (1 - int(one.statistics)))
    return 0.5 * weight @ np.where(np.isfinite(f) & (f >= 0), f, np.nan)


def predicted_densities(ds: Dataset) -> tuple[DataArray, float]:
    """Number densities and entropy density on the nodes [fm^-3]; NaN if unknown or condensed."""
    if not (np.isfinite(ds.equilibrium_temperature) and ds.condensate_fraction == 0):
        return full_like(ds.degeneracy, np.nan, float), np.nan
    return ds.equilibrium_number, float(ds.equilibrium_entropy)


def chosen_times(ds: Dataset, count: int = 6) -> Array:
    """The first and the last recorded time and some between, closer together early on [fm]."""
    times = ds.time.values
    if len(times) <= count:
        return times
    since = times - times[0]
    wanted = np.geomspace(since[1], since[-1], count - 1)
    return times[np.unique([0, *abs(since[:, None] - wanted).argmin(axis=0)])]


def _draw(ds: Dataset, ax: Axes, group: list[str], times: ArrayLike, straight: bool) -> None:
    """f, or ln(1/f + eta) if ``straight``: dark is early, light is late, dashed is predicted."""
    times, one = np.unique(np.asarray(times, float)), ds.sel(species=group[0])

    def line(p: Array, f: Array, m2: Any, style: str, **look: Any) -> None:
        x, y = p, np.where(f > 0, f, np.nan)
        if straight:
            inverse = 1 / y + float(one.statistics)
            x, y = np.sqrt(p**2 + m2), np.log(np.where(inverse > 0, inverse, np.nan))
        if np.isfinite(y).any():
            ax.plot(x, y, style, **look)

    for place, time in zip(np.linspace(0, 0.88, len(times)), times, strict=True):
        now, color = ds.sel(time=time, method="nearest"), mpl.colormaps["viridis"](place)
        f, m2, words = _mean(now.spectrum, group), _mean(now.mass_squared, group), float(now.time)
        line(ds.p.values, f, m2, "o-", markersize=3.5, color=color, label=f"{words:.3g} fm")
    t, mu = ds.equilibrium_temperature, one.equilibrium_chemical_potential.round(3) + 0.0
    final = f"\nequilibrium: $T$ = {float(t):.3f} GeV, $\\mu$ = {float(mu):.3f} GeV"
    p, m2 = np.linspace(0, ds.p.values[-1], 400), one.equilibrium_mass_squared.values
    line(p, prediction(ds, group[0], p), m2, "k--", linewidth=1.3, label="equilibrium")
    title = label(group) + (final if np.isfinite(t + mu) else "")
    if ax.lines:
        ax.legend(title=title, ncols=4, columnspacing=1.0, **ABOVE)


@styled
def spectra(ds: Dataset, species: Names = None, times: Any = None, ax: Ax = None) -> Axes:
    """f against |p| of a species, or mean of several, at several times; points are shells."""
    ax, group = _axes(ax), _members(ds, species)
    _draw(ds, ax, group, chosen_times(ds) if times is None else times, straight=False)
    f, final = _mean(ds.spectrum, group), np.nan_to_num(prediction(ds, group[0], ds.p))
    top = max(f.max(), min(10 * f.max(), final.max())) or 1.0
    low = max(0.5 * f[-1][f[-1] > 0].min(initial=top), 1e-7 * top)
    ax.set(yscale="log", ylim=(low, 2 * top), xlim=(0, ds.p[-1]))
    ax.set(xlabel=_labelled(ds.p, "momentum $|p|$"), ylabel="occupation $f$")
    return ax


@styled
def thermalisation(ds: Dataset, species: Names = None, times: Any = None, ax: Ax = None) -> Axes:
    """ln(1/f + eta) against E at first, middle and last time: (E - mu)/T, straight, if thermal."""
    ax, group, some = _axes(ax), _members(ds, species), chosen_times(ds)
    _draw(ds, ax, group, some[[0, len(some) // 2, -1]] if times is None else times, straight=True)
    formula = ("1/f", "1 + 1/f", "1/f - 1")[int(ds.statistics.sel(species=group[0]))]
    ax.set(xlabel=_labelled(ds.p, "energy $E$"), ylabel=rf"$\ln({formula})$")
    return ax


def _axes(ax: Ax) -> Axes:
    return Figure(figsize=(5.6, 4.2), layout="constrained").subplots() if ax is None else ax


def _history(ds: Dataset, ax: Axes, y: ArrayLike, **look: Any) -> None:
    """One line against time; few points are shown as points."""
    y = np.asarray(y, float)
    if (known := np.isfinite(y).sum()) > 0:
        ax.plot(ds.time.values, y, marker="o" if known < 3 else None, **look)


def _predicted(ax: Axes, value: Any, **look: Any) -> None:
    """A dashed horizontal line, if there is a prediction."""
    if np.isfinite(value):
        ax.axhline(float(value), **{**look, "linestyle": "--", "linewidth": 1.2, "zorder": 1})


def _by_group(ds: Dataset, ax: Axes, values: DataArray, final: DataArray, of: str) -> None:
    """A line for each group of species, and its prediction; ``of`` frames the group's name."""
    for group in groups(ds):
        look, each = _look(ds, group[0]), " (each)" * (len(group) > 1)
        _history(ds, ax, _mean(values, group), label=of.format(label(group), each), **look)
        _predicted(ax, _mean(final, group), **look)


def _finish(ds: Dataset, ax: Axes, ylabel: str, missing: str = "no data") -> Axes:
    """Labels, and a legend above (a long one: beside) the axes, where it covers nothing."""
    ax.set(xlabel=_labelled(ds.time), ylabel=ylabel)
    if ds.time.size > 1:
        ax.set_xlim(ds.time[0], ds.time[-1])
    if any(line.get_linestyle() == "--" for line in ax.lines):
        ax.plot([], [], color="0.4", linestyle="--", linewidth=1.2, label="predicted")
    count = len(ax.get_legend_handles_labels()[1])
    if count > 8:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1 + count // 16)
    elif count:
        ax.legend(ncols=2, **ABOVE)
    else:
        ax.text(0.5, 0.5, missing, transform=ax.transAxes, ha="center", va="center", color="0.4")
    return ax


@styled
def numbers(ds: Dataset, ax: Ax = None) -> Axes:
    """Particle densities, of each species of a group, and their sum."""
    ax, total, final = _axes(ax), ds.number.sum("species"), predicted_densities(ds)[0]
    _by_group(ds, ax, ds.number, final, "{}{}")
    if ds.species.size > 1:
        _history(ds, ax, total, color="black", label="all")
    ax.set_ylim(0, 1.1 * float(total.max()) or 1.0)
    return _finish(ds, ax, _labelled(ds.number))


@styled
def energies(ds: Dataset, ax: Ax = None) -> Axes:
    """Kinetic and total energy density; inset: relative drift of the total one."""
    ax, kinetic, total = _axes(ax), ds.energy_kinetic.values, ds.energy_total.values
    same = np.allclose(kinetic, total, rtol=1e-9)
    if not same:
        _history(ds, ax, kinetic, color=COLORS[5], label="kinetic")
    _history(ds, ax, total, color=COLORS[1], label="kinetic = total" if same else "total")
    low, high = np.min((kinetic, total)), np.max((kinetic, total))
    ax.set_ylim(low - 1.3 * (span := max(high - low, 0.02 * high)), high + 0.2 * span)
    _finish(ds, ax, _labelled(ds.energy_total, "energy density"))
    inset = ax.inset_axes((0.2, 0.08, 0.77, 0.28), xlim=ax.get_xlim(), xticklabels=[])
    _history(ds, inset, total / total[0] - 1, color=COLORS[1], linewidth=1.2)
    inset.set_title(r"drift of the total, $\Delta E/E$", loc="right")
    inset.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    inset.locator_params(axis="y", nbins=3)
    return ax


@styled
def masses(ds: Dataset, ax: Ax = None) -> Axes:
    """Masses, and the screening mass where it is not one of them."""
    ax, screening = _axes(ax), ds.screening_mass_squared
    _by_group(ds, ax, np.sqrt(ds.mass_squared), np.sqrt(ds.equilibrium_mass_squared), "{}")
    if not any(np.allclose(m2, screening) for m2 in ds.mass_squared.values.T):
        _history(ds, ax, np.sqrt(screening), color="black", linestyle=":", label="screening")
    ax.set_ylim(0, 1.1 * max(ax.get_ylim()[1], 1e-3))
    return _finish(ds, ax, "mass [GeV]")


@styled
def temperature(ds: Dataset, ax: Ax = None) -> Axes:
    """T and chemical potentials of the moment."""
    ax, mu = _axes(ax), ds.chemical_potential
    _history(ds, ax, ds.temperature, color="black", label="$T$")
    _predicted(ax, ds.equilibrium_temperature, color="black")
    _by_group(ds, ax, mu, ds.equilibrium_chemical_potential, r"$\mu$ of {}")
    return _finish(ds, ax, r"$T$ and $\mu$ [GeV]", "no equilibrium state")


@styled
def entropy(ds: Dataset, ax: Ax = None) -> Axes:
    """Entropy density: it never falls, and ends at the largest one."""
    ax = _axes(ax)
    _history(ds, ax, ds.entropy, color=COLORS[2], label="entropy")
    _predicted(ax, predicted_densities(ds)[1], color="black")
    return _finish(ds, ax, _labelled(ds.entropy))


@styled
def anisotropy(ds: Dataset, ax: Ax = None) -> Axes:
    """Longitudinal over transverse pressure."""
    ax = _axes(ax)
    _history(ds, ax, ds.pressure_ratio, color=COLORS[3], label=r"$P_z / P_\perp$")
    return _finish(ds, ax, _labelled(ds.pressure_ratio, "pressure ratio"))


@styled
def rates(ds: Dataset, ax: Ax = None, most: int = 8) -> Axes:
    """Collision rates, added up over quarks that are alike (q): the ``most`` frequent ones."""
    ax, letters = _axes(ax), {name: _pretty(name) for name in ds.species.values.tolist()}
    kinds: dict[str, Array] = {}
    quarks = [g for g in groups(ds) if len(g) > 1 and set(map(_base, g)) <= QUARKS]
    for q in "q", "qbar":
        same = [g for g in quarks if (g[0] == _base(g[0])) == (q == "q")]
        letters |= dict.fromkeys(same[0], _pretty(q)) if len(same) == 1 else {}
    for i, process in enumerate(ds.process.values.tolist()):
        a, b = (side.split() for side in process.split(" -> "))
        ways = [(a, b, ds.rate)] + [(b, a, ds.rate_reverse)] * (sorted(a) != sorted(b))
        for *sides, rate in ways:
            kind = " → ".join(" ".join(letters[n] for n in side) for side in sides)
            kinds[kind] = kinds.get(kind, 0.0) + rate.values[:, i]
    peaks = {kind: np.nanmax(rate, initial=0) for kind, rate in kinds.items()}
    top = max(peaks.values(), default=0)
    for k, kind in enumerate(sorted(kinds, key=lambda kind: -peaks[kind])[:most]):
        shown = np.where(kinds[kind] > 1e-9 * top, kinds[kind], np.nan)
        _history(ds, ax, shown, label=kind, color=COLORS[k % len(COLORS)])
    ax.set(yscale="log", ylim=(1e-5 * (top or 1), 3 * (top or 1)))
    _finish(ds, ax, _labelled(ds.rate, "collision rate"), "no collisions")
    if len(quarks) == 1:
        ax.set_title(f"q: {label(quarks[0])}", loc="right", fontsize=9.5)
    return ax


@styled
def conservation(ds: Dataset, ax: Ax = None) -> Axes:
    """Relative drifts since the start; charges and momentum are counted in exact quanta."""
    ax, energy, number = _axes(ax), ds.energy_total.values, ds.number.values[0].sum()
    table = (
        ("energy", energy[:, None], energy[0], True),
        ("charges", ds.charge_density.values, number, ds.charge_drift.any()),
        ("momentum", ds.momentum.values, energy[0], ds.momentum_drift.any()),
    )
    for color, (name, values, scale, moved) in zip(COLORS, table, strict=False):
        drift = abs(values - values[0]).max(axis=1) / scale * bool(moved)
        words = f"{name}: {drift.max():.1e}" if drift.any() else f"{name}: exactly 0"
        drift[drift <= 0] = np.nan
        ax.semilogy(ds.time.values, drift, ".-", color=color, label=words)
    return _finish(ds, ax, "relative drift [1]")


def _sheet(rows: Panels, title: str = "") -> Figure:
    """A figure of panels, each drawn by a function of ax."""
    figure = Figure((0.2 + 4.7 * len(rows[0]), 0.1 + 3.9 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for draw, ax in zip(chain(*rows), axes.flat, strict=True):
        draw(ax=ax)
    if title:
        figure.suptitle(textwrap.fill(title, 100), fontsize=14, parse_math=False)
    return figure


@styled
def overview(ds: Dataset) -> Figure:
    """Six panels that tell the run: spectra, densities, energies, temperature, entropy."""
    found = groups(ds)
    rows: Panels = [[spectra, thermalisation, numbers], [energies, temperature, entropy]]
    if len(found) > 1:
        rows[0][1] = partial(spectra, species=found[1])
    elif np.ptp(ds.mass_squared.values) > 0:
        rows[0][2] = masses
    return _sheet([[partial(d, ds) for d in row] for row in rows], str(ds.attrs.get("title", "")))


@styled
def save_all(ds: Dataset, folder: str | Path, kinds: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write every picture, as PNG and PDF, into a folder; returns the paths."""
    folder, found, both = Path(folder), groups(ds), (spectra, thermalisation)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"overview": overview(ds)}
    for i in range(0, len(found), 3):
        page: Any = [[partial(d, ds, g) for d in both] for g in found[i : i + 3]]
        figures[f"spectra_{1 + i // 3}" if i else "spectra"] = _sheet(page)
    rows: Panels = [[numbers, energies], [temperature, entropy], [masses, rates], [conservation]]
    if (abs(ds.pressure_ratio - 1) > 0.01).any():
        rows.append([anisotropy])
    for row in rows:
        figures["_".join(d.__name__ for d in row)] = _sheet([[partial(d, ds) for d in row]])
    paths = [folder / f"{name}.{kind}" for name in figures for kind in kinds]
    for path in paths:
        figures[path.stem].savefig(path, dpi=150)
        figures[path.stem].set_layout_engine("none")  # the PDF keeps the layout of the PNG
    return paths
