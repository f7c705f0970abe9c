"""Differences between two results."""

import numpy as np
import pandas as pd
import xarray as xr

from ..io.comparable import comparable, names_of
from ..io.kinds import check_run
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import shown

LABELS = ("species", "process", "charge")
"""Dimensions that are matched by label; the results may differ in their labels."""
COMPONENTS = ("axis", "axis2", "mu", "nu")
"""Dimensions of tensor components; the scale of a tensor is that of its largest component."""
SCALES = {
    "momentum": "energy_kinetic", "momentum_by_species": "energy_kinetic",
    "shear_stress": "energy_kinetic", "bulk_pressure": "energy_kinetic",
    "number_current": "number", "source": "energy_kinetic", "velocity": "", "landau_velocity": "",
}  # fmt: skip
"""Reference quantities for flows and stresses, which may vanish; '' is 1 in their own unit."""
ROUNDING = 1e-12
"""Relative differences below this are rounding errors of sums in double precision."""
MOST = 15
"""Largest number of quantities in a table of differences."""


def compare(ds: xr.Dataset, other: xr.Dataset) -> pd.DataFrame:
    """Return the largest and last difference of every quantity that two results share, as a table.

    ``other`` may have another grid and other times: it is interpolated between its records, and
    spectra in |p|. Differences are ``other`` minus ``ds``, divided by the largest magnitude in
    ``ds`` (of the same species; flows and stresses, which may vanish, are divided by the energy or
    number, velocities are not divided): ``largest`` at the time ``at [fm]``, and ``last``.
    """
    if not isinstance(other, xr.Dataset):
        raise InputError(f"compare({shown(other)}): give a result, such as rb.load('other.nc')")
    check_run(other, "other")
    time = ds.time.values
    inside = (time >= other.time.values[0]) & (time <= other.time.values[-1])
    if not inside.any():
        raise InputError(
            f"no times in common: {time[0]:g} to {time[-1]:g} fm, and {other.time.values[0]:g} to "
            f"{other.time.values[-1]:g} fm"
        )
    for dim in LABELS:
        here, there = ([str(v) for v in one[dim].values] for one in (ds, other))
        common = [name for name in here if name in there]
        if dim == "species" and not common:
            raise InputError(f"no species in common: {', '.join(here)}, and {', '.join(there)}")
        ds, other = ds.sel({dim: common}), other.sel({dim: common})
    theirs, rows = comparable(other, ds), {}
    for name in names_of(ds):
        values = ds[name]
        if name not in theirs or "time" not in values.dims:
            continue
        mine = np.moveaxis(values.values, values.dims.index("time"), 0)
        found = np.moveaxis(theirs[name], values.dims.index("time"), 0)
        if mine.shape[1:] != found.shape[1:]:
            continue
        theirs_then = _at(time[inside], other.time.values, found)
        if "p" in values.dims:  # shells missing in the other result
            theirs_then = np.where(np.isnan(theirs_then), mine[inside], theirs_then)
        rows[name] = _row(mine[inside], theirs_then, time[inside], _size(ds, name))
    if "rate_reverse" in rows and rows["rate_reverse"] == rows.get("rate"):
        del rows["rate_reverse"]  # elastic processes only
    columns = ["largest", "at [fm]", "last", "relative to"]
    table = [(*rows[name], _yardstick(name)) for name in rows]
    return pd.DataFrame(table, index=list(rows), columns=columns).sort_values(
        "largest", key=np.abs, ascending=False
    )


def _yardstick(name: str) -> str:
    """Return the name of the reference quantity of a relative difference."""
    scale = SCALES.get(name.removeprefix("total_"))
    return "its largest value" if scale is None else scale or "1"


def telling(differences: pd.DataFrame) -> pd.DataFrame:
    """Return the largest differences, without rounding errors."""
    return differences[abs(differences.largest) > ROUNDING].head(MOST)


def _at(wanted: Array, time: Array, values: Array) -> Array:
    """Interpolate values (time, ...) between records."""
    flat = values.reshape(len(time), -1)
    found = [np.interp(wanted, time, column) for column in flat.T]
    return np.stack(found, axis=-1).reshape(len(wanted), *values.shape[1:])


def _size(ds: xr.Dataset, name: str) -> Array:
    """Return the scale of the differences of a quantity, in the shape of one record."""
    plain = name.removeprefix("total_")
    scale = SCALES.get(plain, plain)
    like = ds[name].isel(time=0, drop=True)
    if not scale:
        return np.ones(like.shape)
    size = abs(ds[name.replace(plain, scale)])
    size = size.max([d for d in size.dims if d == "time" or d in COMPONENTS]).fillna(0.0)
    if "species" in size.dims and "species" not in like.dims:
        size = size.sum("species")
    return np.asarray(size.broadcast_like(like).transpose(*like.dims).values)


def _row(mine: Array, theirs: Array, time: Array, size: Array) -> tuple[float, float, float]:
    """Return the largest relative difference, its time, and the largest at the last time."""
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(size > 0, (theirs - mine) / size, theirs - mine).reshape(len(time), -1)
    one = np.isnan(mine) != np.isnan(theirs)  # only one result has a value
    apart = np.where(one.reshape(apart.shape), np.inf, apart)
    known = np.where(np.isnan(apart), 0.0, apart)
    place = np.unravel_index(np.abs(known).argmax(), known.shape)
    last = known[-1][np.abs(known[-1]).argmax()]
    return float(known[place]), float(time[place[0]]), float(last)
