"""Export of a result in Bjorken flow as initial conditions of MUSIC, viscous hydrodynamics.

The file has the format of ``Initial_profile`` 9: a line of sizes, then a line for every cell, with
x the outer and y the inner loop: eta, x, y [fm], e [GeV fm^-3], u^tau, u^x, u^y, u^eta [fm^-1], and
pi^{mu nu} [fm^-4] with mu nu = tau tau, tau x, tau y, tau eta, xx, xy, x eta, yy, y eta, eta eta.
Components along eta are coordinate components: those along z in the local frame divided by tau,
and by tau^2 for pi^{eta eta}. MUSIC reads one slice in eta, applies it to all rapidities, and sets
the bulk pressure to e/3 - P of its equation of state, so that the total pressure is e/3.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

from ..grid.units import HBARC
from ..io.result import is_in_space
from ..util.arrays import Array
from ..util.errors import AccuracyWarning, InputError, say
from .spectra import is_bjorken

PARTS = ("tt", "tx", "ty", "tz", "xx", "xy", "xz", "yy", "yz", "zz")
"""Components of pi in the order of the file."""
CONFORMAL = 0.01
"""Relative deviation of the pressure from e/3, the value in MUSIC, above which we warn."""


def surface(
    ds: xr.Dataset, folder: Path, stem: str, time: float | None = None, eta_max: float = 0.5,
    eta_cells: int = 1,
) -> Iterator[Path]:  # fmt: skip
    """Write the record nearest to a proper time [fm], by default the last."""
    if not is_bjorken(ds) or not is_in_space(ds):
        raise InputError(
            "format 'music' is for matter in Bjorken flow with space cells along x and y "
            "(grid.expansion = 'bjorken', grid.space_cells)"
        )
    if not 0 < eta_max <= 100 or not 1 <= eta_cells <= 10_000:
        raise InputError(
            f"eta_max = {eta_max:g}, eta_cells = {eta_cells}: use a half width above 0, and 1 cell "
            "or more"
        )
    now = _record(ds, time)
    tau, deta = float(now.time), 2 * eta_max / eta_cells
    columns = _columns(now, tau)
    x, y = now.x.values, now.y.values
    sizes = f"etamax= {eta_cells} xmax= {len(x)} ymax= {len(y)}"
    steps = f"deta= {deta:.10g} dx= {x[1] - x[0]:.10g} dy= {y[1] - y[0]:.10g}"
    path = folder / f"{stem}_tau{tau:.6g}.dat"
    with path.open("w") as file:
        file.write(f"# tau_in_fm {tau:.10g} {sizes} {steps}\n")
        for eta in (np.arange(eta_cells) - 0.5 * (eta_cells - 1)) * deta:
            slice_ = np.column_stack([np.full(len(columns), eta), columns])
            np.savetxt(file, slice_, fmt="%.12e")
    yield path


def _record(ds: xr.Dataset, time: float | None) -> xr.Dataset:
    """Return the record nearest to a time in the plane; warn if its pressure is not e/3."""
    if min(ds.sizes["x"], ds.sizes["y"]) < 2:
        raise InputError("format 'music' needs two space cells or more along x and along y")
    times = ds.time.values
    wanted = times[-1] if time is None else time
    if not times[0] * (1 - 1e-9) <= wanted <= times[-1] * (1 + 1e-9):
        raise InputError(
            f"time = {wanted:g} fm: records are from {times[0]:g} to {times[-1]:g} fm; name a time "
            "between"
        )
    now = ds.sel(time=wanted, method="nearest").isel(z=0)
    third = now.landau_energy / 3
    apart = float(abs(now.pressure - third).sum() / third.sum())
    if apart > CONFORMAL:
        say(
            f"the pressure differs by {100 * apart:.1f} % from e/3, which MUSIC takes it to be: "
            "its T^{mu nu} begins with another trace",
            AccuracyWarning,
        )
    return now


def _columns(now: xr.Dataset, tau: float) -> Array:
    """Return x, y, e, u and pi of all cells, y varying fastest; empty cells are at rest."""
    there = (now.landau_energy > 0) & np.isfinite(now.landau_velocity).all("axis")

    def flat(values: xr.DataArray) -> Array:
        return np.asarray(values.where(there, 0.0).transpose("x", "y").values.ravel())

    v = [flat(now.landau_velocity.sel(axis=axis)) for axis in "xyz"]
    gamma = 1 / np.sqrt(1 - v[0] ** 2 - v[1] ** 2 - v[2] ** 2)
    x, y = np.meshgrid(now.x.values, now.y.values, indexing="ij")
    velocity = [gamma, gamma * v[0], gamma * v[1], gamma * v[2] / tau]
    stress = [
        flat(now.shear_stress.sel(mu=part[0], nu=part[1])) / HBARC / tau ** part.count("z")
        for part in PARTS
    ]
    return np.column_stack([x.ravel(), y.ravel(), flat(now.landau_energy), *velocity, *stress])
