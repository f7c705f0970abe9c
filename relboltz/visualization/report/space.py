"""Maps and profiles in space at many times, with a slider."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from xarray import DataArray, Dataset

from ..plots import space
from ..plots.pages import in_space
from ..plots.style import groups
from .charts import GREY, Chart, Curve, frames
from .histories import label
from .number_format import FINE, enough, numbers, with_unit

WIDE = 64
"""Largest number of cells of a map along an axis; beyond it blocks of cells are averaged."""
LONG = 200
"""Largest number of cells of a profile."""
MOST_VALUES = 300_000
"""Largest number of values in all maps and profiles of a page."""
WORDS = {
    "number": "particle density", "energy_total": "total energy density",
    "landau_temperature": "temperature of the Landau frame", "landau_velocity": "flow velocity",
    "entropy": "entropy density", "mass_squared": "squared mass",
    "pressure_ratio": "longitudinal over transverse pressure",
}  # fmt: skip
"""Labels of the quantities in maps and profiles."""
WITH_ARROWS = ("number", "landau_velocity")


@dataclass(frozen=True)
class SliderMap:
    """A quantity in a plane at the times of a slider.

    values : (time, a, b); flow : positions and velocities of arrows, or None
    """

    title: str
    values: DataArray
    slider: str
    flow: dict[str, Any] | None = None
    note: str = ""

    def data(self) -> dict[str, Any]:
        """Return the data for the page's script; frames run over b in the outer loop, a inside."""
        a, b = (self.values[d] for d in self.values.dims[1:])
        low, high = space.scale(self.values)
        kind, digits = self.values.attrs["kind"], enough(self.values.values)
        return {
            "kind": "map", "title": self.title, "slider": self.slider,
            "ylabel": self.values.attrs["description"], "log": kind == "diluted",
            "low": numbers(low, FINE), "high": numbers(high, FINE), "flow": self.flow,
            "colors": "signed" if kind in ("ratio", "signed") else "rising",
            "axes": [_axis(a), _axis(b)],
            "frames": [numbers(now.T.ravel(), digits) for now in self.values.values],
        }  # fmt: skip


def _axis(of: DataArray) -> dict[str, Any]:
    """Return name, number of cells and ends of an axis of a map."""
    name = str(of.name)
    description = with_unit(
        name if len(name) == 1 else f"momentum along {name[1]}", of.attrs["units"]
    )
    return {"words": description, "cells": of.size, "ends": numbers(list(space.edges(of)), FINE)}


# --- how much -----------------------------------------------------------------------------------


def _wanted(ds: Dataset) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield quantity, species and axes of maps in space, profiles, and maps of phase space."""
    axes, drawn = space.directions(ds), in_space(ds)
    for plane in combinations(axes, 2):
        for name, group in drawn:
            yield name, group, list(plane)
    for axis in axes:
        for name, group in drawn:
            yield name, group, [axis]
    for name in space.marginals(ds):
        own = [str(d) for d in ds[name].dims if d in space.DIRECTIONS]
        for group in groups(ds)[:2]:
            yield name, group, own


def times(ds: Dataset, runs: int = 1) -> Any:
    """Return indices of the records that fit into a page with ``runs`` runs."""
    cells = sum(
        np.prod([min(ds.sizes[axis], LONG if len(axes) == 1 else WIDE) for axis in axes])
        for _, _, axes in _wanted(ds)
    )
    room = MOST_VALUES / runs / max(float(cells), 1.0)
    return frames(ds, int(np.clip(room, 3, 60)))


def _coarse(values: DataArray, axes: Sequence[str], most: int) -> tuple[DataArray, str]:
    """Return means over blocks if an axis has more than ``most`` cells, and a note about them."""
    blocks = {axis: -(-values.sizes[axis] // most) for axis in axes}
    if max(blocks.values()) == 1:
        return values, ""
    kept = values.attrs
    of = {axis: values[axis].attrs for axis in axes}
    mean: Any = values.coarsen(blocks, boundary="trim").mean()
    for axis in axes:
        mean[axis].attrs = of[axis]
    size = " × ".join(str(n) for n in blocks.values())
    return mean.assign_attrs(kept), f"Means of blocks of {size} cells."


# --- charts -------------------------------------------------------------------------------------


def charts(ds: Dataset, slider: str, runs: int = 1) -> dict[str, list[SliderMap | Chart]]:
    """Return maps and profiles by heading."""
    found: dict[str, list[SliderMap | Chart]] = {}
    for place, chart in _charts(ds, slider, runs):
        found.setdefault(place, []).append(chart)
    return found


def _charts(ds: Dataset, slider: str, runs: int) -> Iterator[tuple[str, SliderMap | Chart]]:
    """Yield headings that name the plane or the line, and their charts."""
    some = ds.isel(time=times(ds, runs))
    flows: dict[str, Any] = {}
    for name, group, axes in _wanted(some):
        values = space.field(some, name, group, axes)
        description = "mean of f" if name.startswith("f_") else WORDS[name]
        if values.attrs["component"]:
            description += f" along {values.attrs['component']}"
        title = description[0].upper() + description[1:]
        if group is not None:
            title += f" of {label(group)}" + " (each)" * (len(group) > 1)
        where = f" at {values.attrs['where']} fm" * bool(values.attrs["where"])
        values.attrs["description"] = with_unit(description, some[name].attrs["units"])
        if len(axes) == 1:
            yield f"Along {axes[0]}{where}", _profile(values, title, slider)
            continue
        plane = " ".join(axes)
        if name in WITH_ARROWS and plane not in flows:
            flows[plane] = _flow(some, axes)
        values, note = _coarse(values, axes, WIDE)
        flow = flows[plane] if name in WITH_ARROWS else None
        plain = f"In the plane of {axes[0]} and {axes[1]}{where}"
        place = "Phase space" if name.startswith("f_") else plain
        yield place, SliderMap(title, values, slider, flow, note)


def _profile(values: DataArray, title: str, slider: str) -> Chart:
    """Return a profile along an axis, at the slider time and at the start."""
    axis = str(values.dims[1])
    limits = space.limits(values)
    values, note = _coarse(values, [axis], LONG)
    y = values.values
    curves = [
        Curve("at the start", y[0], color=GREY, kind="start"),
        Curve("now", y, color=1, kind="points"),
    ]
    description, x = str(values.attrs["description"]), values[axis]
    xlabel = with_unit(axis, x.attrs["units"])
    return Chart(title, xlabel, description, x.values, curves, False, limits, slider, note)


def _flow(ds: Dataset, axes: Sequence[str]) -> dict[str, Any] | None:
    """Return flow arrows in a plane: positions, velocities by time, and the largest speed."""
    flow = space.flow_in(ds, axes)
    fastest = float(np.sqrt((flow**2).sum("axis")).max())
    if not fastest > 0:
        return None
    b, a = (flow[d].values for d in flow.dims[2:])
    return {
        "a": numbers(a, FINE), "b": numbers(b, FINE), "fastest": numbers(fastest),
        "frames": [numbers(now.reshape(2, -1)) for now in flow.values],
    }  # fmt: skip
