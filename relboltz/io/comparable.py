"""Quantities of results on different grids, as arrays of the same shape for comparison."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from ..util.arrays import Array
from .quantities import LOCAL, WEIGHTED
from .result import is_in_space

NUMERICAL = (
    "charge_drift", "momentum_drift", "null_weight", "negative_weight", "limited_weight", "noise",
    "step", "degeneracy", "statistics", "box_loss", "box_loss_relaxation",
)  # fmt: skip
"""Quantities that describe a run and not the matter in it."""
SHARED = frozenset(
    ("time", "species", "charge", "axis", "axis2", "mu", "nu", "process", "wall", "p")
)
"""Dimensions common to results on different grids; |p| after interpolation."""
NOTHING = 1e-9
"""Values below this, in GeV and fm, are rounding errors, such as the velocity of matter at rest."""


def names_of(ds: xr.Dataset) -> list[str]:
    """Return comparable quantities: densities, masses, spectra, ... of the whole box."""

    def told(name: str, values: xr.DataArray) -> bool:
        if name in NUMERICAL or not set(values.dims) <= SHARED or values.dtype.kind != "f":
            return False
        known = np.abs(values.values[np.isfinite(values.values)])
        return bool(known.max(initial=0.0) > NOTHING)

    return [str(name) for name, values in ds.data_vars.items() if told(str(name), values)]


def comparable(ds: xr.Dataset, first: xr.Dataset, further: bool = False) -> dict[str, Array]:
    """Return the quantities of a result on the axes of the first result.

    further : the box of the result is larger; only the cells common to both are used
    """
    result = dict(_cropped(ds, first)) if further else {}
    for name in names_of(first):
        if further and is_in_space(first):
            result.setdefault(name, np.full(first[name].shape, np.nan))
        elif name in ds:
            values = ds[name].values
            if "p" in first[name].dims:
                values = _at_momenta(values, ds, first)
            result[name] = values
    return result


def _at_momenta(values: Array, ds: xr.Dataset, first: xr.Dataset) -> Array:
    """Interpolate ln f of a spectrum (..., p) to the momenta of another one; NaN outside."""
    p, wanted = ds.p.values, first.p.values
    inside = wanted <= min(np.min(ds.attrs["momentum_max"]), np.min(first.attrs["momentum_max"]))
    inside &= wanted >= p[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        rows = np.log(values.reshape(-1, len(p)))
        found = np.stack([np.interp(wanted, p, row) for row in rows])
    found = np.where(inside, np.exp(found), np.nan)
    return found.reshape(*values.shape[:-1], len(wanted))


def _cropped(ds: xr.Dataset, first: xr.Dataset) -> Iterator[tuple[str, Array]]:
    """Yield averages of a result over the smaller box of the first result."""
    near = ds
    for axis in ("x", "y", "z"):
        extra = (ds.sizes[axis] - first.sizes[axis]) // 2
        near = near.isel({axis: slice(extra, ds.sizes[axis] - extra)})
    energy = near.energy_kinetic
    stress = near.energy_momentum.mean(("x", "y", "z"))
    along, across = (stress.sel(mu=list(m), nu=list(m)).values for m in ("z", "xy"))
    yield "total_pressure_ratio", along[:, 0, 0] / np.trace(across, axis1=1, axis2=2) * 2
    for name in LOCAL:
        if WEIGHTED.get(name) == "pressure":
            continue
        values = near[name]
        weight = energy.where(np.isfinite(values), 0.0)
        if name not in WEIGHTED:  # a density is 0 in vacuum
            values = values.where(np.isfinite(near.landau_energy), 0.0)
            weight = xr.ones_like(energy)
        filled = values.fillna(0.0) if name in WEIGHTED else values
        mean = (filled * weight).sum(("x", "y", "z"), skipna=False) / weight.sum(("x", "y", "z"))
        yield f"total_{name}", mean.transpose(*first[f"total_{name}"].dims).values
