"""Plots of a convergence study: error bands, and the change from each knob."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import DataArray, Dataset

from .style import ABOVE, COLORS, labelled, letter, styled

SHOWN = (
    "equilibrium_distance", "pressure_ratio", "temperature", "chemical_potential",
    "mass_squared", "entropy", "number",
)  # fmt: skip
MOST = 6
FLAT = 1e-6
"""Relative change below which a history counts as constant."""


def _histories(ds: Dataset) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield quantities that change in time, for the most abundant species."""
    count = 0
    for plain in SHOWN:
        name = plain if plain in ds else f"total_{plain}"
        if name not in ds or count == MOST:
            continue
        at = {}
        if "species" in ds[name].dims:
            number = ds["number" if "number" in ds else "total_number"].isel(time=-1)
            at = {"species": str(ds.species.values[int(number.values.argmax())])}
        values = ds[name].sel(at)
        known = values.values[np.isfinite(values.values)]
        if known.size > 1 and np.ptp(known) > FLAT * np.abs(known).max():
            count += 1
            yield name, at


@styled
def changes(ds: Dataset) -> Figure:
    """Plot a few main quantities against time: value with error band, and changes by knob."""
    chosen = list(_histories(ds))
    rows = max(1, len(chosen))
    figure = Figure((10.5, 0.4 + 2.9 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False)
    for (name, at), (left, right) in zip(chosen, axes, strict=False):
        part = ds.sel(at)
        _band(part, name, left, at)
        _knobs(part, name, right)
    for ax in axes[0] if chosen else ():
        ax.legend(ncols=3, **ABOVE)
    for ax in axes[-1]:
        ax.set_xlabel(labelled(ds.time))
    figure.suptitle(str(ds.attrs.get("title", "")), fontsize=13, parse_math=False)
    return figure


def _band(ds: Dataset, name: str, ax: Axes, at: dict[str, str]) -> None:
    """Plot the run, the extrapolated value and its error band."""
    time, value, error = ds.time.values, ds[name].values, ds[f"{name}_error"].values
    ax.fill_between(time, value - error, value + error, color=COLORS[1], alpha=0.25, lw=0)
    ax.plot(time, value, color=COLORS[1], label="extrapolated, error bar")
    ax.plot(time, ds[f"{name}_run"].values, color="black", ls="--", lw=1.2, label="run as it is")
    of = "".join(f", {letter(key)}" for key in at.values())
    ax.set_ylabel(_label(ds[name], name) + of)
    ax.set_xlim(time[0], time[-1])
    low = (value - error)[np.isfinite(value - error)]
    if name.endswith("equilibrium_distance") and low.min(initial=1.0) > 0:
        ax.set_yscale("log")


def _knobs(ds: Dataset, name: str, ax: Axes) -> None:
    """Plot changes by knob, relative to the value, in percent; grey is the error band."""
    time, scale = ds.time.values, np.abs(ds[f"{name}_run"].values)
    scale = 100 / np.where(scale > 0, scale, np.nan)
    error = ds[f"{name}_error"].values * scale
    ax.fill_between(time, -error, error, color="0.9", lw=0, label="error bar")
    for color, knob in zip((COLORS[0], *COLORS[2:]), ds.knob.values.tolist(), strict=False):
        ax.plot(time, ds[f"{name}_change"].sel(knob=knob).values * scale, color=color, label=knob)
    ax.axhline(0, color="0.4", lw=0.8, zorder=0)
    ax.set_ylabel("change [%]")
    ax.set_xlim(time[0], time[-1])


def _label(values: DataArray, name: str) -> str:
    return labelled(values, name.replace("_", " "))
