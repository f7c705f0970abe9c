"""Relaxation and thermalisation times of a result."""

from typing import Any

import numpy as np
import xarray as xr

from ..io.result import box
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import is_number, shown, suggest

FINAL = {"equilibrium_distance": 0.0}
"""Final values of quantities without a predicted value in the file."""
FEWEST = 3
"""Smallest number of records in a fit."""
LATEST = 1e-3
"""Fraction of the largest deviation below which noise and rounding dominate; not fitted."""


def _history(ds: xr.Dataset, quantity: str, at: dict[str, str]) -> xr.DataArray:
    """Return a quantity against time, of a species or component; in space its average."""
    whole = box(ds)
    known = [str(n) for n in whole if whole[n].dims[:1] == ("time",) and "p" not in whole[n].dims]
    if quantity not in known:
        raise InputError(f"quantity {shown(quantity)}: {suggest(str(quantity), known)}")
    values = whole[quantity]
    for dim in values.dims[1:]:
        names = values[dim].values.tolist()
        if str(dim) not in at and len(names) > 1:
            raise InputError(
                f"{quantity} has several {dim}: give {dim}, one of {', '.join(map(str, names))}"
            )
        name = at.get(str(dim), names[0])
        if name not in names:
            raise InputError(f"{dim} {shown(name)}: {suggest(str(name), map(str, names))}")
        values = values.sel({dim: name})
    for dim in set(at) - set(map(str, whole[quantity].dims)):
        raise InputError(f"{dim} = {shown(at[dim])}: {quantity} has none; leave it out")
    return values


def _final(ds: xr.Dataset, quantity: str, values: xr.DataArray, final: float | None) -> float:
    if final is not None:
        return float(final)
    if quantity in FINAL:
        return FINAL[quantity]
    if f"equilibrium_{quantity}" in ds:
        predicted = ds[f"equilibrium_{quantity}"]
        predicted = predicted.sel(
            {d: values[d].item() for d in predicted.dims if d in values.coords}
        )
        if predicted.size == 1 and np.isfinite(predicted):
            return float(predicted)
    raise InputError(f"{quantity}: no final value is known for it; give final=")


def _window(time: Array, apart: Array, start: float | None, end: float | None) -> Any:
    """Return the records to fit: from half the largest deviation on, while it falls."""
    chosen = np.isfinite(apart) & (apart > 0)
    if start is not None or end is not None:
        chosen &= time >= (time[0] if start is None else start)
        return chosen & (time <= (time[-1] if end is None else end))
    largest = np.nanmax(apart)
    first = int(np.nanargmax(apart))
    below = np.flatnonzero((apart < 0.5 * largest) & (np.arange(len(time)) > first))
    begin = below[0] if len(below) else first
    chosen &= (np.arange(len(time)) >= begin) & (apart > LATEST * largest)
    rising = np.flatnonzero(np.diff(apart) > 0)
    rising = rising[rising >= begin]
    if len(rising):
        chosen &= np.arange(len(time)) <= rising[0]
    return chosen


def relaxation_time(
    ds: xr.Dataset,
    quantity: str = "equilibrium_distance",
    species: str | None = None,
    *,
    start: float | None = None,
    end: float | None = None,
    final: float | None = None,
    **component: str,
) -> xr.DataArray:
    """Return tau of q(t) - q_final ~ exp(-t/tau) [fm], from a linear fit of its logarithm.

    Parameters
    ----------
    quantity : such as "pressure_ratio", "temperature", "number"; in space its average
    species : name of the species, for quantities that depend on species
    start, end : times to fit [fm]; by default from half of the largest deviation on, while it
        falls, down to a thousandth
    final : final value; by default the predicted one
    **component : of vectors and tensors, such as axis="x" or mu="x", nu="y"

    Returns
    -------
    xarray.DataArray of tau; the attributes ``standard_error`` [fm] (of the fit only: scatter of the
    records about one exponential, without the effect of other seeds, spacings and steps, see
    ``converge``), ``start``, ``end``
    """
    at = component if species is None else component | {"species": species}
    values = _history(ds, quantity, at)
    time = values.time.values
    apart = np.abs(values.values - _final(ds, quantity, values, final))
    if not np.isfinite(apart).any():
        raise InputError(f"{quantity} has no value in this result")
    chosen = _window(time, apart, start, end)
    signs = np.sign((values.values - _final(ds, quantity, values, final))[chosen])
    if len(set(signs.tolist())) > 1:
        raise InputError(
            f"{quantity}: it crosses its final value among the records to fit; give start and end, "
            "or another final"
        )
    if chosen.sum() < FEWEST:
        raise InputError(
            f"{quantity}: {int(chosen.sum())} of {len(time)} records lie where its deviation has "
            "fallen to half and still falls, too few for a rate; record more often (every), run "
            "longer, or give start and end"
        )
    x, y = time[chosen], np.log(apart[chosen])
    (slope, _), residual = _line(x, y)
    spread = ((x - x.mean()) ** 2).sum()
    error = float(np.sqrt(residual / max(len(x) - 2, 1) / spread))
    attrs = {
        "units": "fm", "long_name": f"relaxation time of {quantity}",
        "standard_error": error / slope**2, "start": float(x[0]), "end": float(x[-1]),
    }  # fmt: skip
    return xr.DataArray(-1 / slope, name="relaxation_time", attrs=attrs)


def _line(x: Array, y: Array) -> tuple[tuple[float, float], float]:
    """Return slope and offset of a linear fit, and the sum of squared residuals."""
    slope, offset = np.polyfit(x, y, 1)
    return (float(slope), float(offset)), float(((y - slope * x - offset) ** 2).sum())


def thermalisation_time(ds: xr.Dataset, threshold: float = 0.1) -> xr.DataArray:
    """Return when ``equilibrium_distance`` falls below a threshold for good [fm]; NaN if never.

    The distance is the fraction of particles that would have to change cell to reach equilibrium;
    its logarithm is interpolated between records.
    """
    if not is_number(threshold) or not 0 < threshold < 1:
        raise InputError(f"threshold = {shown(threshold)}: use a number between 0 and 1")
    time, far = ds.time.values, ds.equilibrium_distance.values
    attrs = {"units": "fm", "long_name": f"time when less than {threshold:g} has still to move"}
    above = np.flatnonzero(~(far <= threshold))
    if not len(above):
        when = float(time[0])
    elif above[-1] == len(time) - 1:
        when = np.nan
    else:
        i = above[-1]
        a, b = np.log(far[i]), np.log(max(far[i + 1], 1e-300))
        when = float(time[i] + (time[i + 1] - time[i]) * (a - np.log(threshold)) / (a - b))
    return xr.DataArray(when, name="thermalisation_time", attrs=attrs)
