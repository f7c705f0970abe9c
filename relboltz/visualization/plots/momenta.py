"""Plots of f against momentum and energy; in space, of its average over the grid."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike
from xarray import Dataset

from ...io.result import box
from ...thermodynamics.gas import occupation
from ...util.arrays import Array
from . import style
from .style import Ax, Names, labelled, mean, members, new_axes, styled


def prediction(ds: Dataset, species: str, p: ArrayLike) -> Array:
    """Return the predicted f(|p|), p in GeV, averaged over directions; NaN if there is none."""
    one, p, speed = ds.sel(species=species), np.asarray(p), np.linalg.norm(ds.equilibrium_velocity)
    cosine, weight = np.polynomial.legendre.leggauss(16 if speed > 1e-9 else 1)
    energy = np.sqrt(p**2 + float(one.equilibrium_mass_squared)) - speed * p * cosine[:, None]
    energy /= np.sqrt(1 - speed**2)
    x = (energy - float(one.equilibrium_chemical_potential)) / float(ds.equilibrium_temperature)
    f = occupation(x, int(one.statistics))
    return 0.5 * weight @ np.where(np.isfinite(f) & (f >= 0), f, np.nan)


def _draw(ds: Dataset, ax: Axes, group: list[str], times: Any, straight: bool) -> None:
    """Plot f, or ln(1/f + eta) if ``straight``: dark early, light late, dashed predicted."""
    one = ds.sel(species=group[0])

    def line(p: Array, f: Array, m2: Any, **look: Any) -> None:
        x, y = p, np.where(f > 0, f, np.nan)
        if straight:
            inverse = 1 / y + float(one.statistics)
            x, y = np.sqrt(p**2 + m2), np.log(np.where(inverse > 0, inverse, np.nan))
        if np.isfinite(y).any():
            ax.plot(x, y, **look)

    inside = ds.p.values <= style.faces(ds)[1]  # shells beyond lie only in corners of the grid
    for time, look in style.shades(style.recorded(ds, times)):
        now, radii = ds.sel(time=time), ds.p.values[inside]
        f = mean(now.spectrum, group)[inside]
        line(radii, f, mean(now.mass_squared, group), **look)
        if "spectrum_error" in ds and not straight:
            e = mean(now.spectrum_error, group)[inside]
            ax.fill_between(radii, f - e, f + e, color=look["color"], alpha=0.3, linewidth=0)
    t, mu = ds.equilibrium_temperature, one.equilibrium_chemical_potential.round(3) + 0.0
    final = f"\nequilibrium: $T$ = {float(t):.3f} GeV, $\\mu$ = {float(mu):.3f} GeV"
    p, m2 = np.linspace(0, style.faces(ds)[1], 400), one.equilibrium_mass_squared.values
    look = {"color": "black", "linestyle": "--", "linewidth": 1.3, "label": "equilibrium"}
    line(p, prediction(ds, group[0], p), m2, **look)
    title = style.label(group) + (final if np.isfinite(t + mu) else "")
    if ax.lines:
        ax.legend(title=title, ncols=4, columnspacing=1.0, **style.ABOVE)


def limits(ds: Dataset, group: list[str], times: Any = None) -> tuple[float, float]:
    """Return limits of f for a plot of these times, the last time and the prediction."""
    f, final = mean(ds.spectrum, group), np.nan_to_num(prediction(ds, group[0], ds.p))
    top = max(f.max(), min(10 * f.max(), final.max())) or 1.0
    end = f[-1][ds.p.values <= style.faces(ds)[1]]
    low = max(0.5 * end[end > 0].min(initial=top), 1e-7 * top)
    peaks = np.array(
        [mean(ds.spectrum.sel(time=t), group).max() for t in style.recorded(ds, times)]
    )
    return min(low, max(0.03 * peaks[peaks > 0].min(initial=top), 1e-7 * top)), 2 * top


@styled
def spectra(ds: Dataset, species: Names = None, times: Any = None, ax: Ax = None) -> Axes:
    """Plot f against |p| of a species, or the mean of several, at several times; dots are shells.

    Curves end at the faces of the momentum grid: beyond them only corners have nodes. If widths
    differ, a dotted line marks the smallest one.
    """
    ds, ax, group = box(ds), ax or new_axes(), members(ds, species)
    _draw(ds, ax, group, times, straight=False)
    first, last = style.faces(ds)
    ax.set(yscale="log", ylim=limits(ds, group, times), xlim=(0, last))
    if first < last:
        ax.axvline(first, color="0.5", linestyle=":", linewidth=1.0, zorder=0)
    ring = "dN_dy" in ds
    ax.set(
        xlabel=labelled(ds.p, "transverse momentum $p_T$" if ring else "momentum $|p|$"),
        ylabel="$f$, mean over all $p_z$" if ring else "occupation $f$",
    )
    return ax


@styled
def thermalisation(ds: Dataset, species: Names = None, times: Any = None, ax: Ax = None) -> Axes:
    """Plot ln(1/f + eta) against E at first, middle and last time; (E - mu)/T if thermal."""
    ds, ax, group, some = box(ds), ax or new_axes(), members(ds, species), style.chosen_times(ds)
    _draw(ds, ax, group, some[[0, len(some) // 2, -1]] if times is None else times, straight=True)
    formula = ("1/f", "1 + 1/f", "1/f - 1")[int(ds.statistics.sel(species=group[0]))]
    ax.set(xlabel=labelled(ds.p, "energy $E$"), ylabel=rf"$\ln({formula})$")
    return ax
