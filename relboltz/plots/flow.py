"""Pictures of expanding matter: the attractor, eccentricities and flow against time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from xarray import Dataset

from ..analysis.expansion import Viscosity, first_order, per_rapidity
from ..analysis.plane import eccentricity, momentum_anisotropy
from ..analysis.spectra import flow
from ..records.result import is_in_space
from . import style
from .style import COLORS, Ax, Names, groups, label, labelled, members, new_axes, styled


@styled
def attractor(ds: Dataset, viscosity: Viscosity, ax: Ax = None, **options: Any) -> Axes:
    """P_L/e against tau (e + P)/(4 pi eta), and first-order hydrodynamics where it is positive."""
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


@styled
def eccentricities(
    ds: Dataset, harmonics: Sequence[int] = (2, 3), weight: str = "energy", ax: Ax = None
) -> Axes:
    """Eccentricities of the energy in the plane against time."""
    ax = ax or new_axes()
    for color, n in zip(COLORS * 2, harmonics, strict=False):
        found = eccentricity(ds, n, weight).eccentricity
        ax.plot(ds.time.values, found.values, color=color, label=rf"$\varepsilon_{n}$")
    return _finished(ds, ax, "eccentricity")


@styled
def flows(ds: Dataset, harmonics: Sequence[int] = (2,), ax: Ax = None) -> Axes:
    """v_n of all particles of a species against time, and of energy in the plane, size."""
    ax, lines = ax or new_axes(), ("-", "-.", ":")
    for line, n in zip(lines, harmonics, strict=False):
        found = flow(ds, n).v_integrated
        when = ds[found.dims[0]].values
        for group in groups(ds):
            values = found.sel(species=group).mean("species").values
            look = style.look(ds, group[0]) | {"linestyle": line}
            marker = "o" if np.isfinite(values).sum() < 3 else None
            ax.plot(when, values, marker=marker, label=f"$v_{n}$ of {label(group)}", **look)
    if is_in_space(ds):
        size = momentum_anisotropy(ds)["size"].values
        ax.plot(ds.time.values, size, color="0.3", label=r"$\varepsilon_p$")
    return _finished(ds, ax, "$v_n$")


@styled
def flow_spectra(
    ds: Dataset, harmonic: int = 2, species: Names = None, times: Any = None, ax: Ax = None
) -> Axes:
    """v_n of a species, or mean of several, against p_T, at several times."""
    ax, group, found = ax or new_axes(), members(ds, species), flow(ds, harmonic)
    when = found.v.dims[0]
    some = style.recorded(ds, times) if when == "time" else found[when].values
    for time, look in style.shades(some):
        values = found.v.sel({when: time}).sel(species=group).mean("species").values
        ax.plot(found.pT.values, values, **look)
    ax.set(xlim=(0, None), xlabel=labelled(found.pT, "transverse momentum $p_T$"))
    ax.set_ylabel(f"$v_{harmonic}$ of {label(group)}")
    ax.axhline(0.0, color="0.6", linewidth=0.9, zorder=0)
    ax.legend(ncols=4, columnspacing=1.0, **style.ABOVE)
    return ax


@styled
def rapidity(ds: Dataset, ax: Ax = None) -> Axes:
    """What matter in Bjorken flow has per rapidity, over what it began with, against time."""
    ax, found = ax or new_axes(), per_rapidity(ds)
    lines = {
        r"$dN/d\eta$": found.dN_deta.sum("species"), r"$dE_T/d\eta$": found.dET_deta,
        r"$dE/d\eta$": found.dE_deta, r"$dS/d\eta$": found.dS_deta,
    }  # fmt: skip
    for color, (words, values) in zip(COLORS, lines.items(), strict=False):
        ax.plot(ds.time.values, (values / values[0]).values, color=color, label=words)
    ax.set(xlabel=labelled(ds.time), ylabel="per rapidity, over the start", ylim=(0, None))
    ax.legend(ncols=4, columnspacing=1.0, **style.ABOVE)
    return ax


def _finished(ds: Dataset, ax: Axes, ylabel: str) -> Axes:
    ax.set(xlabel=labelled(ds.time), ylabel=ylabel)
    ax.axhline(0.0, color="0.6", linewidth=0.9, zorder=0)
    ax.legend(ncols=2, **style.ABOVE)
    return ax
