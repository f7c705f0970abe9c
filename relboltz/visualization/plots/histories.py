"""Plots against time; in space, of averages over the grid. Energy and drifts include outflow."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from xarray import DataArray, Dataset, full_like

from ...io.result import box
from ...util.arrays import Array
from ...util.errors import InputError
from . import style
from .style import COLORS, Ax, groups, label, labelled, mean, moves, new_axes, styled

RARE = 0.02
"""Fraction of the total density below which the scale is logarithmic."""
ROUNDING = 1e-12
"""Relative drifts below this are rounding errors of sums in double precision."""


def predicted_densities(ds: Dataset) -> tuple[DataArray, float]:
    """Return predicted number and entropy densities [fm^-3]; NaN if unknown or condensed."""
    if not (np.isfinite(ds.equilibrium_temperature) and ds.condensate_fraction == 0):
        return full_like(ds.degeneracy, np.nan, float), np.nan
    return ds.equilibrium_number, float(ds.equilibrium_entropy)


def _history(ds: Dataset, ax: Axes, y: Any, error: Any = None, **look: Any) -> None:
    """Plot a line against time with its standard-error band; fewer than 3 points as dots."""
    y = np.asarray(y, float)
    if (known := np.isfinite(y).sum()) > 0:
        ax.plot(ds.time.values, y, marker="o" if known < 3 else None, **look)
        if error is not None:
            e, color = np.asarray(error, float), ax.lines[-1].get_color()
            ax.fill_between(ds.time.values, y - e, y + e, color=color, alpha=0.3, linewidth=0)


def _error(ds: Dataset, name: str) -> DataArray | None:
    """Return the standard error of a quantity if the result is a mean over replicas."""
    return ds.get(f"{name}_error")


def _predicted(ax: Axes, value: Any, **look: Any) -> None:
    """Draw a dashed horizontal line if there is a prediction."""
    if np.isfinite(value):
        ax.axhline(float(value), **{**look, "linestyle": "--", "linewidth": 1.2, "zorder": 1})


def _by_group(
    ds: Dataset, ax: Axes, values: DataArray, final: DataArray, of: str,
    errors: DataArray | None = None,
) -> None:  # fmt: skip
    """Plot a line per group of species, and its prediction; ``of`` formats the group's name.

    The error of a group is the mean of its errors, as if fully correlated, and so not too small.
    """
    for group in groups(ds):
        look, each = style.look(ds, group[0]), " (each)" * (len(group) > 1)
        error = None if errors is None else mean(errors, group)
        description = of.format(label(group), each)
        _history(ds, ax, mean(values, group), error, label=description, **look)
        _predicted(ax, mean(final, group), **look)


def _finish(ds: Dataset, ax: Axes, ylabel: str, missing: str = "no data") -> Axes:
    """Add labels, and a legend above the axes, or beside them if it is long."""
    ax.set(xlabel=labelled(ds.time), ylabel=ylabel)
    if ds.time.size > 1:
        ax.set_xlim(ds.time[0], ds.time[-1])
    if any(line.get_linestyle() == "--" for line in ax.lines):
        ax.plot([], [], color="0.4", linestyle="--", linewidth=1.2, label="predicted")
    count = len(ax.get_legend_handles_labels()[1])
    if count > 8:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1 + count // 16)
    elif count:
        ax.legend(ncols=2, **style.ABOVE)
    else:
        ax.text(0.5, 0.5, missing, transform=ax.transAxes, ha="center", va="center", color="0.4")
    return ax


@styled
def numbers(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot particle densities per species and their sum, on a log scale if a species is rare."""
    ds, ax = box(ds), ax or new_axes()
    total = ds.number.sum("species")
    _by_group(ds, ax, ds.number, predicted_densities(ds)[0], "{}{}", _error(ds, "number"))
    if ds.species.size > 1:
        _history(ds, ax, total, color="black", label="all")
    top = float(total.max()) or 1.0
    least = min(float(mean(ds.number, group).max()) for group in groups(ds))
    if 0 < least < RARE * top:
        ax.set(yscale="log", ylim=(0.3 * least, 3 * top))
    else:
        ax.set_ylim(0, 1.1 * top)
    return _finish(ds, ax, labelled(ds.number))


@styled
def energies(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot kinetic and total energy density; inset: relative drift of the total energy."""
    ds, ax = box(ds, left=True), ax or new_axes()
    kinetic, total = ds.energy_kinetic.values, ds.energy_total.values
    same = np.allclose(kinetic, total, rtol=1e-9)
    if not same:
        error = _error(ds, "energy_kinetic")
        _history(ds, ax, kinetic, error, color=COLORS[5], label="kinetic")
    expands = "scale" in ds  # then the total includes the work done
    description = "total and work done" if expands else "kinetic = total" if same else "total"
    _history(ds, ax, total, color=COLORS[1], label=description)
    low, high = np.min((kinetic, total)), np.max((kinetic, total))
    ax.set_ylim(low - 1.3 * (span := max(high - low, 0.02 * high)), high + 0.2 * span)
    description = "energy per comoving volume" if expands else "energy density"
    _finish(ds, ax, labelled(ds.energy_total, description))
    drift = total / total[0] - 1
    if np.abs(drift).max() < ROUNDING:
        ax.text(0.97, 0.06, "the total is constant but for rounding", ha="right", color="0.3",
                transform=ax.transAxes, fontsize=9.5)  # fmt: skip
        return ax
    inset = ax.inset_axes((0.2, 0.08, 0.77, 0.28), xlim=ax.get_xlim(), xticklabels=[])
    _history(ds, inset, drift, color=COLORS[1], linewidth=1.2)
    inset.set_title(r"drift of the total, $\Delta E/E$", loc="right")
    inset.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    inset.locator_params(axis="y", nbins=3)
    return ax


@styled
def masses(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the masses, and the screening mass if it differs from all of them."""
    ds, ax = box(ds), ax or new_axes()
    screening = ds.screening_mass_squared
    mass, error = np.sqrt(ds.mass_squared), _error(ds, "mass_squared")
    if error is not None:
        error = error / (2 * mass.where(mass > 0))
    _by_group(ds, ax, mass, np.sqrt(ds.equilibrium_mass_squared), "{}", error)
    if not any(np.allclose(m2, screening) for m2 in ds.mass_squared.values.T):
        _history(ds, ax, np.sqrt(screening), color="black", linestyle=":", label="screening")
    low, high = ax.get_ylim()
    if low < 0.5 * high:
        ax.set_ylim(0, 1.1 * max(high, 1e-3))
    return _finish(ds, ax, "mass [GeV]")


@styled
def temperature(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the instantaneous temperature."""
    ds, ax = box(ds), ax or new_axes()
    name, description = "temperature", "$T$"
    if "scale" in ds:  # T on the nodes jumps at regridding
        name, description = "landau_temperature", "$T$, Landau frame"
    _history(ds, ax, ds[name], _error(ds, name), color="black", label=description)
    _predicted(ax, ds.equilibrium_temperature, color="black")
    return _finish(ds, ax, "temperature [GeV]", "no equilibrium state")


@styled
def chemical_potentials(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the instantaneous chemical potentials."""
    ds, ax = box(ds), ax or new_axes()
    final = ds.equilibrium_chemical_potential
    errors = _error(ds, "chemical_potential")
    _by_group(ds, ax, ds.chemical_potential, final, r"$\mu$ of {}", errors)
    return _finish(ds, ax, "chemical potential [GeV]", "no equilibrium state")


@styled
def entropy(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the entropy density, which never falls and ends at its maximum."""
    ds, ax = box(ds), ax or new_axes()
    _history(ds, ax, ds.entropy, _error(ds, "entropy"), color=COLORS[2], label="entropy")
    _predicted(ax, predicted_densities(ds)[1], color="black")
    return _finish(ds, ax, labelled(ds.entropy))


@styled
def distance(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the fraction of particles that would have to change cell to reach equilibrium."""
    ds, ax = box(ds), ax or new_axes()
    far = ds.equilibrium_distance.where(ds.equilibrium_distance > 0)
    error = _error(ds, "equilibrium_distance")
    _history(ds, ax, far, error, color=COLORS[6], label="not yet in equilibrium")
    if moves(far):
        ax.set_yscale("log")
        style.plain_ticks(ax)
    return _finish(ds, ax, "part of the particles", "no equilibrium state")


@styled
def anisotropy(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot longitudinal over transverse pressure; a thin line marks 1."""
    ds, ax = box(ds), ax or new_axes()
    error = _error(ds, "pressure_ratio")
    ax.axhline(1.0, color="0.6", linewidth=0.9, zorder=0)
    _history(ds, ax, ds.pressure_ratio, error, color=COLORS[3], label=r"$P_z / P_\perp$")
    return _finish(ds, ax, r"$P_z / P_\perp$")


@styled
def isotropisation(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot the pressure anisotropy |P_z/P_T - 1| on a logarithmic scale."""
    ds, ax = box(ds), ax or new_axes()
    apart = abs(ds.pressure_ratio - 1)
    error = _error(ds, "pressure_ratio")
    description = r"$|P_z / P_\perp - 1|$"
    _history(ds, ax, apart.where(apart > 0), error, color=COLORS[3], label=description)
    top = float(np.nanmax(apart, initial=0)) or 1.0
    largest = int(np.nan_to_num(apart.values).argmax())
    least = float(apart[largest:].min())  # it may start at 0
    ax.set(yscale="log", ylim=(max(0.5 * least, 1e-5 * top), 2 * top))
    style.plain_ticks(ax)
    return _finish(ds, ax, r"$|P_z / P_\perp - 1|$")


def collisions(
    ds: Dataset, letter: Callable[[str], str] = style.letter
) -> tuple[dict[str, Array], list[list[str]]]:
    """Return rates against time by label, the largest first, and the groups of quarks.

    Rates are summed over equivalent quarks, denoted q.
    """
    kinds = dict[str, Array]()
    letters = {name: letter(name) for name in ds.species.values.tolist()}
    several = [group for group in groups(ds) if len(group) > 1]
    quarks = [g for g in several if {style.particle(n) for n in g} <= style.QUARKS]
    for q in "q", "qbar":
        same = [g for g in quarks if (g[0] == style.particle(g[0])) == (q == "q")]
        letters |= dict.fromkeys(same[0], letter(q)) if len(same) == 1 else {}
    for i, process in enumerate(ds.process.values.tolist()):
        a, b = (side.split() for side in process.split(" -> "))
        ways = [(a, b, ds.rate)] + [(b, a, ds.rate_reverse)] * (sorted(a) != sorted(b))
        for *sides, rate in ways:
            kind = " → ".join(" ".join(letters[n] for n in side) for side in sides)
            kinds[kind] = kinds.get(kind, 0.0) + rate.values[:, i]
    order = sorted(kinds, key=lambda kind: -np.nanmax(kinds[kind], initial=0))
    return {kind: kinds[kind] for kind in order}, quarks


@styled
def rates(ds: Dataset, ax: Ax = None, most: int = 8) -> Axes:
    """Plot the ``most`` frequent collision rates, summed over equivalent quarks (q)."""
    ax, (kinds, quarks) = ax or new_axes(), collisions(ds)
    top = least = max((np.nanmax(rate, initial=0) for rate in kinds.values()), default=0)
    for color, (kind, rate) in zip(COLORS * most, list(kinds.items())[:most], strict=False):
        late = rate[len(ds.time) // 4 :]
        least = min(least, np.nanmin(late[late > 0], initial=top))
        shown = np.where(rate > 1e-9 * top, rate, np.nan)
        _history(ds, ax, shown, label=kind, color=color)
    ax.set(yscale="log", ylim=(max(0.3 * least, 1e-5 * top) or 1e-5, 3 * (top or 1)))
    style.plain_ticks(ax)
    _finish(ds, ax, labelled(ds.rate, "collision rate"), "no collisions")
    if len(quarks) == 1:
        ax.set_title(f"q: {label(quarks[0])}", loc="right", fontsize=9.5)
    return ax


def drifts(ds: Dataset) -> dict[str, Array]:
    """Return the largest relative drifts of energy, charges and momentum since the start."""
    ds = box(ds, left=True)
    energy, number = ds.energy_total.values, ds.number.values[0].sum()
    table = (
        ("energy", energy[:, None], energy[0], True),
        ("charges", ds.charge_density.values, number, ds.charge_drift.any()),
        ("momentum", ds.momentum.values, energy[0], ds.momentum_drift.any()),
    )
    found = {}
    for name, values, scale, moved in table:
        change = (values - values[0]) / scale * bool(moved)
        if change.size:
            found[name] = change[np.arange(len(change)), abs(change).argmax(axis=1)]
    return found


@styled
def conservation(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot relative drifts since the start; charges and momentum are counted in exact quanta."""
    ax = ax or new_axes()
    for color, (name, drift) in zip(COLORS, drifts(ds).items(), strict=False):
        largest = abs(drift).max()
        if largest > ROUNDING:
            _history(ds, ax, drift, color=color, label=f"{name}: {largest:.1e}")
        else:
            description = f"rounding, {largest:.0e}" if largest else "exactly 0"
            ax.plot([], [], " ", label=f"{name}: {description}")
    ax.axhline(0.0, color="0.6", linewidth=0.9, zorder=0)
    power = math.floor(math.log10(max(map(abs, ax.get_ylim()))))
    unit = "" if power > -2 else f" [$10^{{{power}}}$]"
    if unit:
        ax.yaxis.set_major_formatter(lambda value, _: f"{value / 10**power:.3g}")
    return _finish(ds, ax, f"relative drift{unit}", "")


@styled
def ledger(ds: Dataset, what: str = "number", ax: Ax = None) -> Axes:
    """Plot outflow through each wall and refused particles, if not zero, as number or energy."""
    if what not in ("number", "energy"):
        raise InputError(f"what = {what!r}: use 'number' or 'energy'")
    ax, left = ax or new_axes(), ds[f"left_{what}"]
    summed = left.sum("species") if "species" in left.dims else left
    for color, axis in zip(COLORS, "xyz", strict=False):
        low, high = (summed.sel(wall=f"{axis}{side}").values for side in "-+")
        ways = [(low, f"{axis}-", "-"), (high, f"{axis}+", "-.")]
        if np.allclose(low, high, rtol=0.02, atol=0.01 * float(summed.max())):
            ways = [(0.5 * (low + high), f"{axis}- and {axis}+ (each)", "-")]
        for gone, wall, line in ways:
            if gone.any():
                look = {"color": color, "linestyle": line}
                _history(ds, ax, gone, label=f"left through {wall}", **look)
    for color, axis in zip(COLORS, "xyz" if what == "number" else "", strict=False):
        refused = ds.refused_number.sel(wall=[f"{axis}-", f"{axis}+"]).sum(["wall", "species"])
        if refused.any():
            description = rf"refused at $\pm p_{axis}$"
            _history(ds, ax, refused, label=description, color=color, linestyle=":")
    noun = "particles" if what == "number" else "energy"
    return _finish(ds, ax, labelled(left, f"{noun} per volume"), "nothing left")
