"""Plots of expanding matter: the attractor, eccentricities and flow against time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from xarray import Dataset

from ...analysis.expansion import Viscosity, first_order, per_rapidity
from ...analysis.plane import eccentricity, momentum_anisotropy
from ...analysis.spectra import flow
from ...io.result import is_in_space
from ...util.errors import InputError
from . import style
from .style import COLORS, Ax, Names, groups, label, labelled, members, new_axes, styled

SHAPED = 0.01
"""Smallest eccentricity of initial conditions that count as deformed."""


@styled
def attractor(ds: Dataset, viscosity: Viscosity, ax: Ax = None, **options: Any) -> Axes:
    """Plot P_L/e, and its positive first-order values, against tau (e + P)/(4 pi eta)."""
    ax, found = ax or new_axes(), first_order(ds, viscosity, **options)
    x, y = found.scaled_time.values, found.longitudinal_over_energy.values
    ax.plot(x, y, color=COLORS[3], label="$P_L/e$")
    line = found.first_order.where(found.first_order > 0).values
    ax.plot(x, line, color="0.3", linestyle="--", linewidth=1.2, label="first order")
    ax.axhline(1 / 3, color="0.6", linewidth=0.9, zorder=0)
    ax.set(xscale="log", ylim=(0, 0.36), ylabel="$P_L/e$")
    style.plain_ticks(ax, "x")
    ax.set_xlabel(r"scaled time $\tau (e + P)/(4 \pi \eta)$")
    ax.legend(**style.ABOVE)
    return ax


Harmonics = Sequence[int] | int | None


def _harmonics(given: Harmonics, default: Sequence[int]) -> list[int]:
    """Return harmonics as a list; the default if none are given."""
    if given is None:
        return list(default)
    return list(given) if isinstance(given, Sequence | np.ndarray) else [given]


def _leading(ds: Dataset) -> int:
    """Return the harmonic with the largest initial epsilon_n; 2 if round or homogeneous."""
    if not is_in_space(ds) or min(ds.sizes["x"], ds.sizes["y"]) < 2:
        return 2
    told = [n for n in (2, 3, 4) if n <= min(ds.sizes["px"], ds.sizes["py"])]
    sizes = {n: float(eccentricity(ds, n).eccentricity[0]) for n in told or [2]}
    most = max(sizes, key=lambda n: sizes[n])
    return most if sizes[most] > SHAPED else 2


@styled
def eccentricities(
    ds: Dataset, harmonics: Harmonics = None, weight: str = "energy", ax: Ax = None
) -> Axes:
    """Plot eccentricities of the transverse energy density against time."""
    ax = ax or new_axes()
    for color, n in zip(COLORS * 2, _harmonics(harmonics, (2, 3)), strict=False):
        found = eccentricity(ds, n, weight).eccentricity
        ax.plot(ds.time.values, found.values, color=color, label=rf"$\varepsilon_{n}$")
    return _finished(ds, ax, "eccentricity")


@styled
def flows(ds: Dataset, harmonics: Harmonics = None, ax: Ax = None) -> Axes:
    """Plot v_n by species against time; in space, v_2 is shown together with epsilon_p."""
    ax, lines, chosen = ax or new_axes(), ("-", "-.", ":"), _harmonics(harmonics, (_leading(ds),))
    for line, n in zip(lines, chosen, strict=False):
        found = flow(ds, n).v_integrated
        when = ds[found.dims[0]].values
        for group in groups(ds):
            values = found.sel(species=group).mean("species").values
            if not np.isfinite(values).any():
                continue
            look = style.look(ds, group[0]) | {"linestyle": line}
            marker = "o" if np.isfinite(values).sum() < 3 else None
            ax.plot(when, values, marker=marker, label=f"$v_{n}$ of {label(group)}", **look)
    energy = is_in_space(ds) and 2 in chosen
    if energy:
        size = momentum_anisotropy(ds)["size"].values
        ax.plot(ds.time.values, size, color="0.3", label=r"$\varepsilon_p$")
    return _finished(ds, ax, r"$v_n$ and $\varepsilon_p$" if energy else "$v_n$")


@styled
def flow_spectra(
    ds: Dataset, harmonic: int | None = None, species: Names = None, times: Any = None,
    ax: Ax = None,
) -> Axes:  # fmt: skip
    """Plot v_n of a species, or the mean of several, against p_T at several times."""
    n = _leading(ds) if harmonic is None else harmonic
    ax, group, found = ax or new_axes(), members(ds, species), flow(ds, n)
    when = found.v.dims[0]
    some = style.recorded(ds, times) if when == "time" else _kept(found[when].values, times)
    lines = found.v.sel({when: some}).sel(species=group).mean("species")
    some = some[np.isfinite(lines).any("pT").values]
    for time, look in style.shades(some):
        ax.plot(found.pT.values, lines.sel({when: time}).values, **look)
    ax.set(xlim=(0, None), xlabel=labelled(found.pT, "transverse momentum $p_T$"))
    ax.set_ylabel(f"$v_{n}$ of {label(group)}")
    ax.axhline(0.0, color="0.6", linewidth=0.9, zorder=0)
    if len(some):
        ax.legend(ncols=4, columnspacing=1.0, **style.ABOVE)
    else:
        ax.text(0.5, 0.6, "no particles", transform=ax.transAxes, ha="center", color="0.4")
    return ax


def _kept(snapshots: Any, times: Any) -> Any:
    """Return the snapshots nearest to times [fm], or all snapshots."""
    if times is None:
        return snapshots
    for time in np.ravel(times):
        if not snapshots.min() - 1e-9 <= time <= snapshots.max() + 1e-9:
            raise InputError(
                f"time = {time:g} fm: snapshots are from {snapshots.min():g} to "
                f"{snapshots.max():g} fm"
            )
    nearest = abs(snapshots[:, None] - np.ravel(times)).argmin(axis=0)
    return snapshots[np.unique(nearest)]


@styled
def rapidity(ds: Dataset, ax: Ax = None) -> Axes:
    """Plot dN/dy, dE_T/dy, dE/deta and dS/deta, relative to their initial values, against time."""
    ax, found = ax or new_axes(), per_rapidity(ds)
    lines = {
        r"$dN/dy$": found.dN_dy.sum("species"), r"$dE_T/dy$": found.dET_dy,
        r"$dE/d\eta$": found.dE_deta, r"$dS/d\eta$": found.dS_deta,
    }  # fmt: skip
    for color, (description, values) in zip(COLORS, lines.items(), strict=False):
        ax.plot(ds.time.values, (values / values[0]).values, color=color, label=description)
    ax.set(xlabel=labelled(ds.time), ylabel="per rapidity, over the start", ylim=(0, None))
    ax.legend(ncols=4, columnspacing=1.0, **style.ABOVE)
    return ax


def _finished(ds: Dataset, ax: Axes, ylabel: str) -> Axes:
    ax.set(xlabel=labelled(ds.time), ylabel=ylabel)
    ax.axhline(0.0, color="0.6", linewidth=0.9, zorder=0)
    ax.legend(ncols=2, **style.ABOVE)
    return ax
