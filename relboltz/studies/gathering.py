"""Combine the runs of a scan into one Dataset with a dimension for each scanned key."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import tomli_w
import xarray as xr

from ..io import kinds
from ..util.errors import RunError

if TYPE_CHECKING:
    from .scan import ScanPoint

OF_A_POINT = ("steps", "wall_seconds", "warnings", "run", "status", "kind", "title")
"""Attributes of single points that are stored elsewhere or dropped."""
NODES = ("p", "px", "py", "pz")
"""Coordinates that differ if the points have different boxes."""


def combined(
    points: Sequence[ScanPoint], found: Sequence[xr.Dataset | None], status: Sequence[str]
) -> xr.Dataset:
    """Combine the results of all points, one dimension per key; NaN where a point failed."""
    there = [ds for ds in found if ds is not None]
    if not there:
        raise RunError(f"no point of the scan succeeded, the first: {status[0]}")
    shared, apart = _attributes(there)
    there = _with_common_nodes(there)
    parts, empty = iter(there), (there[0] * np.nan).drop_attrs(deep=False)
    rows = []
    for description, one in zip(status, found, strict=True):
        part = empty if one is None else next(parts)
        own = {
            "status": description, "steps": int(part.attrs.get("steps", 0)),
            "wall_seconds": float(part.attrs.get("wall_seconds", np.nan)),
            "warnings": str(part.attrs.get("warnings", "")),
        }  # fmt: skip
        own |= {kinds.OWN + n: _variable(part.attrs.get(n), none) for n, none in apart.items()}
        rows.append(part.drop_attrs(deep=False).assign(own))
    ds = xr.concat(
        rows, "point", data_vars="all", coords="minimal", compat="override", join="outer",
        combine_attrs="override",
    )  # fmt: skip
    keys = [key for key, _ in points[0].values]
    names = _names(keys, there[0])
    axes = [list(dict.fromkeys(_label(dict(p.values)[key]) for p in points)) for key in keys]
    places = pd.MultiIndex.from_product(axes, names=[names[key] for key in keys])
    index = xr.Coordinates.from_pandas_multiindex(places, "point")
    ds = ds.assign_coords(index).unstack("point")
    first = [names[key] for key in keys]
    ds = ds.transpose(*first, ...).sel(dict(zip(first, axes, strict=True)))
    for key in keys:
        ds[names[key]].attrs["long_name"] = key
    title = f"{there[0].attrs.get('title', '')}, scan over {', '.join(keys)}"
    shared |= {"kind": kinds.SCAN, "title": title, "status": "done"}
    ds = ds.drop_encoding()  # integers at one point may be NaN at another
    return ds.assign_attrs(shared)


def _attributes(found: Sequence[xr.Dataset]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes shared by all points, and the differing ones with their fill values.

    Only strings, numbers and vectors over the axes become variables; others are dropped.
    """
    names = dict.fromkeys(name for ds in found for name in ds.attrs if name not in OF_A_POINT)
    shared: dict[str, Any] = {}
    apart: dict[str, Any] = {}
    for name in names:
        values: list[Any] = [ds.attrs.get(name) for ds in found]
        if all(np.array_equal(value, values[0]) for value in values):
            shared[name] = values[0]
        elif all(isinstance(value, str) for value in values):
            apart[name] = ""
        elif len(shapes := {np.shape(value) for value in values}) == 1 and shapes <= {(), (3,)}:
            apart[name] = np.full(np.shape(values[0]), np.nan)
    if "configuration" in apart:
        tables = [tomllib.loads(ds.attrs["configuration"]) for ds in found]
        shared["configuration"] = tomli_w.dumps(_common(tables))
    return shared, apart


def _common(tables: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the keys that have equal values in all tables."""
    kept = {}
    for key, value in tables[0].items():
        values: list[Any] = [table.get(key) for table in tables]
        if all(isinstance(one, dict) for one in values):
            kept[key] = _common(values)
        elif all(one == value for one in values):
            kept[key] = value
    return kept


def _variable(value: Any, empty: Any) -> Any:
    """Convert an attribute of one point to a variable."""
    value = empty if value is None else value
    return ("axis", np.asarray(value)) if np.ndim(value) else value


def _names(keys: Sequence[str], ds: xr.Dataset) -> dict[str, str]:
    """Return a short name for each key: its last component, unless that name is taken."""
    last = [key.split(".")[-1] for key in keys]
    taken = {*map(str, ds.variables), *map(str, ds.dims)}
    short = [word for word in last if last.count(word) == 1 and word not in taken]
    pairs = zip(keys, last, strict=True)
    return {key: word if word in short else key.replace(".", "_") for key, word in pairs}


def _label(value: Any) -> Any:
    """Return a value as a coordinate: numbers and strings unchanged, anything else as a string."""
    return value if isinstance(value, int | float | str) else str(value)


def _with_common_nodes(found: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Replace shells or nodes that differ between points by an index; p becomes a variable.

    f on nodes that differ stays in the files of the points.
    """
    differ = [
        name for name in NODES
        if any(not np.array_equal(ds[name].values, found[0][name].values) for ds in found)
    ]  # fmt: skip
    if not differ:
        return list(found)
    kept = []
    for ds in found:
        moments = ds.drop_vars([n for n in ds.data_vars if {"px", "py", "pz"} & set(ds[n].dims)])
        moments = moments.drop_vars([n for n in ("px", "py", "pz", "snapshot") if n in moments])
        if "p" in differ:
            p = moments.p
            moments = moments.rename_dims(p="shell").drop_vars("p")
            moments["p"] = ("shell", p.values, p.attrs)
        kept.append(moments)
    most = max(ds.sizes.get("shell", 0) for ds in kept)
    return [ds.pad(shell=(0, most - ds.sizes["shell"])) if most else ds for ds in kept]
