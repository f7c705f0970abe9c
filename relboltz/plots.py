"""Pictures of a result: Dataset in, Axes out.

>>> ds = relboltz.load("run.nc")
>>> plots.overview(ds).savefig("run.png")
>>> plots.spectra(ds, species="u", times=[0, 1, 5], ax=ax)

Species with the same curves share one line, their mean, and one colour in all pictures; dashed
lines are the predicted equilibrium. No global state of Matplotlib is touched.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from . import equilibrium, observables
from .errors import InputError
from .grid import PhaseSpace
from .model import Model, Species, suggest

Array = NDArray[np.float64]
Names = str | Sequence[str] | None

STYLE: dict[str, Any] = {
    "font.size": 10.5,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "pdf.fonttype": 42,
}
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#7F7F7F")
"""Safe for the colour-blind (Okabe and Ito, and two more); the first is kept for gluons."""
DASHES = ("-", "-.", (0, (1, 1)))
ALIKE = 0.1
"""Species whose spectra differ by less than this, relative to their peak, share a line."""
QUARKS = frozenset("udscbt")
FINAL = ("temperature", "chemical_potential", "mass_squared")
PAGE = 3
"""Groups of species on one picture of spectra."""

styled = mpl.rc_context(STYLE)


# --- species and labels -------------------------------------------------------------------------


def groups(ds: xr.Dataset) -> list[list[str]]:
    """Species sorted into groups of equal kind, prediction and, but for noise, spectra."""
    found: list[list[str]] = []
    for name in ds.species.values.tolist():
        home = next((g for g in found if _alike(ds, g[0], name)), None)
        if home is None:
            found.append([name])
        else:
            home.append(name)
    return found


def _alike(ds: xr.Dataset, a: str, b: str) -> bool:
    one, two = ds.sel(species=a), ds.sel(species=b)
    final = ("equilibrium_chemical_potential", "equilibrium_mass_squared")
    for name in ("statistics", "degeneracy", *final):
        if not np.allclose(one[name], two[name], rtol=1e-3, atol=1e-9, equal_nan=True):
            return False
    if not np.allclose(one.mass_squared, two.mass_squared, rtol=0.05):
        return False
    weight = (ds.p.values + ds.p.values.max() / ds.p.size) ** 2
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
    both = len(group) > 1 and sorted(group) == sorted([*plain, *(n + "bar" for n in plain)])
    words = [_pretty(n) for n in (plain if both else group)]
    text = ", ".join(words if len(words) <= 6 else [*words[:4], "…", words[-1]])
    return f"{text} and anti{'quarks' if set(plain) <= QUARKS else 'particles'}" * both or text


def _look(ds: xr.Dataset, name: str) -> dict[str, Any]:
    """Colour and line style of a species, the same in every picture."""
    bases = list(dict.fromkeys(_base(n) for n in ds.species.values.tolist() if n != "g"))
    place = 0 if name == "g" else 1 + bases.index(_base(name))
    dashes = place // len(COLORS) + (_base(name) != name)
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[dashes % len(DASHES)]}


def _labelled(values: xr.DataArray, words: str = "") -> str:
    """Words and unit, such as 'particle density [fm^-3]'."""
    unit = re.sub(r"\^(-?\d+)", r"$^{\1}$", values.attrs.get("units", "1"))
    words = words or values.attrs.get("long_name", str(values.name))
    return words if unit == "1" else f"{words} [{unit}]"


def _members(ds: xr.Dataset, species: Names) -> list[str]:
    """The species that are asked for; else the group with most particles at the end."""
    if species is None:
        last = ds.number.isel(time=-1)
        return max(groups(ds), key=lambda group: float(last.sel(species=group).sum()))
    names, known = [species] if isinstance(species, str) else list(species), ds.species.values
    for name in set(names) - set(known.tolist()):
        raise InputError(f"no species {name!r} in this result; {suggest(name, known.tolist())}")
    return names


def _mean(values: xr.DataArray, group: Sequence[str]) -> Array:
    return values.sel(species=list(group)).mean("species").values


# --- axes and lines -----------------------------------------------------------------------------


def _axes(ax: Axes | None) -> Axes:
    return Figure(figsize=(5.6, 4.2), layout="constrained").subplots() if ax is None else ax


def _history(ds: xr.Dataset, ax: Axes, y: ArrayLike, **look: Any) -> None:
    """One line against time; few points are shown as points."""
    y = np.asarray(y, float)
    if (known := np.isfinite(y).sum()) > 0:
        ax.plot(ds.time.values, y, marker="o" if known < 3 else None, **look)


def _predicted(ax: Axes, value: ArrayLike, **look: Any) -> None:
    """A dashed horizontal line, if there is a prediction."""
    if np.isfinite(value):
        ax.axhline(float(value), **{**look, "linestyle": "--", "linewidth": 1.2, "zorder": 1})


def _finish(ds: xr.Dataset, ax: Axes, ylabel: str, missing: str = "no data") -> Axes:
    """Labels and a legend, or a word on why there is nothing to see."""
    ax.set(xlabel=_labelled(ds.time), ylabel=ylabel)
    if ds.time.values[-1] > ds.time.values[0]:
        ax.set_xlim(ds.time.values[0], ds.time.values[-1])
    if not ax.get_legend_handles_labels()[1]:
        ax.text(0.5, 0.5, missing, transform=ax.transAxes, ha="center", va="center", color="0.4")
        return ax
    if any(line.get_linestyle() == "--" for line in ax.lines):
        ax.plot([], [], color="0.4", linestyle="--", linewidth=1.2, label="predicted equilibrium")
    count = len(ax.get_legend_handles_labels()[1])
    beside = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": 1 + count // 16}
    ax.legend(**beside if count > 9 else {"loc": "best"})
    return ax


# --- the predicted equilibrium ------------------------------------------------------------------


def _occupation(x: ArrayLike, eta: int) -> Array:
    """1/(e^x - eta); NaN where that is not a positive number."""
    with np.errstate(divide="ignore"):
        f = 1 / (np.expm1(np.clip(x, -700, 700)) + (1 - eta))
    return np.where(np.isfinite(f) & (f >= 0), f, np.nan)


def _exponent(f: ArrayLike, eta: int) -> Array:
    """ln(1/f + eta): (E - mu)/T of a thermal state; NaN where f has none."""
    with np.errstate(all="ignore"):
        x = np.log(1 / np.asarray(f, float) + eta)
    return np.where(np.isfinite(x), x, np.nan)


def prediction(ds: xr.Dataset, species: str, p: ArrayLike) -> Array:
    """Predicted f(|p|) of a species, averaged over directions; p in GeV."""
    one, p = ds.sel(species=species), np.asarray(p, float)
    speed = float(np.linalg.norm(ds.equilibrium_velocity))
    cosine, weight = np.polynomial.legendre.leggauss(16 if speed > 1e-9 else 1)
    energy = np.sqrt(p**2 + float(one.equilibrium_mass_squared)) - speed * p * cosine[:, None]
    x = (energy - float(one.equilibrium_chemical_potential)) / float(ds.equilibrium_temperature)
    return 0.5 * weight @ _occupation(x, int(one.statistics))


def predicted_densities(ds: xr.Dataset) -> tuple[xr.DataArray, float]:
    """Number density of each species and entropy density on the nodes [fm^-3].

    NaN if unknown; so with a condensate, which cannot be put on the nodes.
    """
    numbers = xr.full_like(ds.degeneracy, np.nan, float)
    if not (np.isfinite(ds.equilibrium_temperature) and ds.condensate_fraction == 0):
        return numbers, np.nan
    kinds = zip(ds.species.values.tolist(), ds.degeneracy.values, ds.statistics.values, strict=True)
    model = Model([Species(str(n), float(d), int(eta)) for n, d, eta in kinds], [])
    grid = PhaseSpace((ds.px.size, ds.py.size, ds.pz.size), ds.attrs["momentum_max"])
    final = ("temperature", "chemical_potential", "velocity", "mass_squared")
    f = equilibrium.thermal(grid, model, *(ds[f"equilibrium_{name}"].values for name in final))
    return numbers.copy(data=model.degeneracy * grid.measure * f.sum(axis=1)), observables.entropy(
        grid, model, f
    )


# --- spectra ------------------------------------------------------------------------------------


def chosen_times(ds: xr.Dataset, count: int = 6) -> Array:
    """The first and the last recorded time and some between, closer together early on [fm]."""
    times = ds.time.values
    if len(times) <= count:
        return times
    since = times - times[0]
    wanted = np.geomspace(since[1], since[-1], count - 1)
    return times[np.unique([0, *abs(since[:, None] - wanted).argmin(axis=0)])]


def _draw(ds: xr.Dataset, ax: Axes, group: list[str], times: ArrayLike, straight: bool) -> None:
    """Lines at several times, dark to light, and the predicted one, dashed."""
    times = np.unique(np.asarray(times, float))
    eta = int(ds.statistics.sel(species=group[0]))

    def line(p: Array, f: Array, m2: ArrayLike, *style: str, **look: Any) -> None:
        x, y = (np.sqrt(p**2 + m2), _exponent(f, eta)) if straight else (p, f)
        if (np.isfinite(y) & (f > 0)).any():
            ax.plot(x, np.where(f > 0, y, np.nan), *style, **look)

    for place, time in zip(np.linspace(0, 0.88, len(times)), times, strict=True):
        now, color = ds.sel(time=time, method="nearest"), mpl.colormaps["viridis"](place)
        f, m2, words = _mean(now.spectrum, group), _mean(now.mass_squared, group), float(now.time)
        line(ds.p.values, f, m2, "o-", markersize=3.5, color=color, label=f"$t$ = {words:.3g} fm")
    t, mu, m2 = (_mean(ds[f"equilibrium_{k}"] + 0 * ds.degeneracy, group[:1]) for k in FINAL)
    words = f"equilibrium:\n$T$ = {t:.3f} GeV\n$\\mu$ = {mu:.3f} GeV"
    p = np.linspace(0, ds.p.values[-1], 400)
    line(p, prediction(ds, group[0], p), m2, "k--", linewidth=1.3, label=words)
    ax.set_title(label(group), loc="left")
    if ax.lines:
        ax.legend(loc="upper left" if straight else "upper right")


@styled
def spectra(
    ds: xr.Dataset, species: Names = None, times: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """f against |p| at several times, and the predicted equilibrium (dashed).

    Points are averages over shells of nodes. ``species``: one, or several for their mean; the
    most abundant group if left out.
    """
    ax, group = _axes(ax), _members(ds, species)
    _draw(ds, ax, group, chosen_times(ds) if times is None else times, straight=False)
    f = _mean(ds.spectrum, group)
    top, least = f.max() or 1.0, f[-1][f[-1] > 0].min(initial=1.0)
    ax.set(yscale="log", ylim=(max(0.5 * least, 1e-7 * top), 3 * top), xlim=(0, ds.p.values[-1]))
    ax.set(xlabel=_labelled(ds.p, "momentum $|p|$"), ylabel="occupation $f$")
    return ax


@styled
def thermalisation(
    ds: xr.Dataset, species: Names = None, times: ArrayLike | None = None, ax: Axes | None = None
) -> Axes:
    """ln(1/f + eta) against E at first, middle and last time: (E - mu)/T, straight, if thermal."""
    ax, group, some = _axes(ax), _members(ds, species), chosen_times(ds)
    times = some[[0, len(some) // 2, -1]] if times is None else times
    _draw(ds, ax, group, times, straight=True)
    formulas = {1: r"$\ln(1 + 1/f)$", -1: r"$\ln(1/f - 1)$", 0: r"$\ln(1/f)$"}
    formula = formulas[int(ds.statistics.sel(species=group[0]))]
    ax.set(xlabel=_labelled(ds.p, "energy $E$"), ylabel=formula)
    return ax


# --- histories ----------------------------------------------------------------------------------


def _by_group(
    ds: xr.Dataset, ax: Axes, values: xr.DataArray, final: xr.DataArray, words: str
) -> None:
    """A line for each group of species and its prediction; ``words`` frames the group's name."""
    for group in groups(ds):
        look, each = _look(ds, group[0]), " each" if len(group) > 1 else ""
        text = words.format(label(group), each)
        _history(ds, ax, _mean(values, group), label=text, **look)
        _predicted(ax, _mean(final, group), **look)


@styled
def numbers(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Particle densities, of one species of a group each, and their sum."""
    ax, total = _axes(ax), ds.number.sum("species")
    _by_group(ds, ax, ds.number, predicted_densities(ds)[0], "{}{}")
    if ds.species.size > 1:
        _history(ds, ax, total, color="black", label="all")
    ax.set_ylim(0, 1.35 * float(total.max()))
    return _finish(ds, ax, _labelled(ds.number))


@styled
def energies(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Kinetic and total energy density; inset: relative drift of the total one."""
    ax, kinetic, total = _axes(ax), ds.energy_kinetic.values, ds.energy_total.values
    same = np.allclose(kinetic, total, rtol=1e-9)
    if not same:
        _history(ds, ax, kinetic, color=COLORS[5], label="kinetic")
    _history(ds, ax, total, color=COLORS[1], label="kinetic = total" if same else "total")
    low, high = min(kinetic.min(), total.min()), max(kinetic.max(), total.max())
    span = max(high - low, 0.02 * abs(high))
    ax.set_ylim(low - 1.4 * span, high + 0.6 * span)
    _finish(ds, ax, _labelled(ds.energy_total, "energy density")).legend(loc="upper left", ncols=2)
    inset = ax.inset_axes((0.2, 0.08, 0.77, 0.26), xlim=ax.get_xlim(), xticklabels=[])
    _history(ds, inset, total / total[0] - 1, color=COLORS[1], linewidth=1.2)
    inset.set_title("relative drift of the total energy", loc="right")
    inset.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    inset.yaxis.set_major_locator(MaxNLocator(3))
    return ax


@styled
def masses(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Masses, and the screening mass where it is not one of them."""
    ax, screening = _axes(ax), ds.screening_mass_squared
    _by_group(ds, ax, np.sqrt(ds.mass_squared), np.sqrt(ds.equilibrium_mass_squared), "{}")
    if not any(np.allclose(m2, screening) for m2 in ds.mass_squared.values.T):
        _history(ds, ax, np.sqrt(screening), color="black", linestyle=":", label="screening")
    ax.set_ylim(0, 1.4 * max(ax.get_ylim()[1], 1e-3))
    return _finish(ds, ax, "mass [GeV]")


@styled
def temperature(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """T and chemical potentials of the moment."""
    ax, final = _axes(ax), ds.equilibrium_chemical_potential
    _history(ds, ax, ds.temperature, color="black", label="temperature $T$")
    _predicted(ax, ds.equilibrium_temperature, color="black")
    _by_group(ds, ax, ds.chemical_potential, final, r"$\mu$ of {}")
    return _finish(ds, ax, r"$T$ and $\mu$ [GeV]", "no equilibrium state")


@styled
def entropy(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Entropy density: it never falls, and ends at the largest one."""
    ax = _axes(ax)
    _history(ds, ax, ds.entropy, color=COLORS[2], label="entropy")
    _predicted(ax, predicted_densities(ds)[1], color="black")
    return _finish(ds, ax, _labelled(ds.entropy))


@styled
def anisotropy(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Longitudinal over transverse pressure."""
    ax = _axes(ax)
    _history(ds, ax, ds.pressure_ratio, color=COLORS[3], label=r"$P_z / P_\perp$")
    ax.axhline(1, color="0.6", linewidth=1, zorder=1)
    return _finish(ds, ax, _labelled(ds.pressure_ratio))


@styled
def rates(ds: xr.Dataset, ax: Axes | None = None, most: int = 8) -> Axes:
    """Collision rates, added up over processes of one kind: the ``most`` frequent kinds."""
    ax, letters = _axes(ax), {}
    for group in groups(ds):
        quarks = len(group) > 1 and set(map(_base, group)) <= QUARKS
        letters |= {n: "q" if quarks and group[0] in QUARKS else _pretty(n) for n in group}
    kinds: dict[str, Array] = {}
    for i, process in enumerate(ds.process.values.tolist()):
        a, b = (side.split() for side in process.split(" -> "))
        ways = [(a, b, ds.rate)] + [(b, a, ds.rate_reverse)] * (sorted(a) != sorted(b))
        for x, y, rate in ways:
            kind = " → ".join(" ".join(letters[n] for n in side) for side in (x, y))
            kinds[kind] = kinds.get(kind, 0) + rate.values[:, i]
    peaks = {kind: np.nanmax(rate, initial=0) for kind, rate in kinds.items()}
    for k, kind in enumerate(sorted(kinds, key=lambda k: -peaks[k])[:most]):
        _history(ds, ax, kinds[kind], label=kind, color=COLORS[k % len(COLORS)])
    if top := max(peaks.values(), default=0):
        ax.set(yscale="log", ylim=(1e-5 * top, 30 * top))
    return _finish(ds, ax, _labelled(ds.rate, "collision rate"), "no collisions")


@styled
def conservation(ds: xr.Dataset, ax: Axes | None = None) -> Axes:
    """Relative drifts since the start; charges and momentum are counted in exact quanta."""
    ax, energy = _axes(ax), ds.energy_total.values
    charge, momentum = (
        abs(q - q[0]).max(axis=1) for q in (ds.charge_density.values, ds.momentum.values)
    )
    drifts = {
        "energy": (abs(energy / energy[0] - 1), True),
        "charges": (charge / ds.number.values[0].sum(), bool(ds.charge_drift.any())),
        "momentum": (momentum / energy[0], bool(ds.momentum_drift.any())),
    }
    ax.set(yscale="log", ylim=(1e-16, 1e3 * max(d.max() for d, _ in drifts.values())))
    for k, (name, (drift, moved)) in enumerate(drifts.items()):
        words = f"{name}: up to {drift.max():.1e}" if moved else f"{name}: exact, 0 quanta"
        shown = np.where((drift > 0) & moved, drift, np.nan)
        ax.plot(ds.time.values, shown, color=COLORS[k], marker=".", label=words)
    return _finish(ds, ax, "relative drift")


# --- whole figures ------------------------------------------------------------------------------


@styled
def overview(ds: xr.Dataset) -> Figure:
    """Six panels that tell the run."""
    figure = Figure(figsize=(13.3, 7.5), layout="constrained")
    axes = figure.subplots(2, 3).flat
    last = ds.number.isel(time=-1)
    found = sorted(groups(ds), key=lambda g: -float(last.sel(species=g).sum()))
    spectra(ds, found[0], ax=axes[0])
    if len(found) > 1:
        spectra(ds, found[1], ax=axes[1])
    else:
        thermalisation(ds, found[0], ax=axes[1])
    still = len(found) == 1 and np.ptp(ds.mass_squared.values) > 0
    for draw, ax in zip((masses if still else numbers, energies, temperature, entropy), axes[2:]):
        draw(ds, ax)
    title = textwrap.fill(str(ds.attrs.get("title", "")), 100)
    figure.suptitle(title, fontsize=14, parse_math=False)
    return figure


def _row(ds: xr.Dataset, *draws: Any) -> Figure:
    figure = Figure(figsize=(0.6 + 5.2 * len(draws), 4.3), layout="constrained")
    for draw, ax in zip(draws, figure.subplots(1, len(draws), squeeze=False).flat, strict=True):
        draw(ds, ax=ax)
    return figure


def _spectra_page(ds: xr.Dataset, found: list[list[str]]) -> Figure:
    figure = Figure(figsize=(11, 0.4 + 4.2 * len(found)), layout="constrained")
    for group, (left, right) in zip(
        found, figure.subplots(len(found), 2, squeeze=False), strict=True
    ):
        spectra(ds, group, ax=left)
        thermalisation(ds, group, ax=right)
    return figure


@styled
def save_all(ds: xr.Dataset, folder: str | Path) -> list[Path]:
    """Write every picture as PNG and PDF; returns the paths."""
    folder, found = Path(folder), groups(ds)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"overview": overview(ds)}
    for i in range(0, len(found), PAGE):
        figures[f"spectra_{1 + i // PAGE}" if i else "spectra"] = _spectra_page(
            ds, found[i : i + PAGE]
        )
    figures["numbers_energies"] = _row(ds, numbers, energies)
    figures["temperature_entropy"] = _row(ds, temperature, entropy)
    figures["masses_rates"] = _row(ds, masses, rates)
    figures["conservation"] = _row(ds, conservation)
    if (abs(ds.pressure_ratio - 1) > 0.01).any():
        figures["anisotropy"] = _row(ds, anisotropy)
    paths = [folder / f"{name}.{kind}" for name in figures for kind in ("png", "pdf")]
    for path in paths:
        figures[path.stem].savefig(path, dpi=150)
    return paths
