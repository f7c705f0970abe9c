"""Eccentricity and momentum anisotropy in the transverse plane."""

from typing import Any

import numpy as np
import xarray as xr

from ..io.result import is_in_space
from ..util.errors import InputError
from ..util.text import shown
from .rings import is_harmonic

WEIGHTS = {"energy": "energy_total", "landau": "landau_energy"}
"""Energy densities in the frame of the grid and in the Landau frame."""


def _variable(values: Any, unit: str, description: str) -> xr.Variable:
    return xr.Variable("time", np.asarray(values), {"units": unit, "long_name": description})


def eccentricity(ds: xr.Dataset, n: int = 2, weight: str = "energy") -> xr.Dataset:
    """Return epsilon_n exp(i n Phi_n) = -<r^n exp(i n phi)>/<r^n> of the energy density.

    The result has, against time, ``eccentricity`` epsilon_n, ``angle`` Phi_n [rad] (the short axis
    for n = 2; NaN if round) and ``radius`` [fm], defined by 2 radius^2 = <r^2>. r and phi are
    relative to the centre of energy, and the density is summed over z. Energy that left the grid is
    not included.

    weight : "energy", total energy in the frame of the grid, or "landau", in the Landau frame
    """
    if not is_harmonic(n, 2):
        raise InputError(f"eccentricity({shown(n)}): n is a whole number, 2 or more")
    if weight not in WEIGHTS:
        raise InputError(f"weight = {shown(weight)}: use 'energy' or 'landau'")
    if not is_in_space(ds) or min(ds.sizes["x"], ds.sizes["y"]) < 2:
        raise InputError("eccentricities need space cells along x and y: grid.space_cells")
    density = ds[WEIGHTS[weight]].fillna(0.0).sum("z").transpose("time", "x", "y").values
    total = density.sum(axis=(1, 2))
    place = ds.x.values[:, None] + 1j * ds.y.values
    centre = (density * place).sum(axis=(1, 2)) / total
    z = place - centre[:, None, None]
    turned = (density * z**n).sum(axis=(1, 2)) / (density * abs(z) ** n).sum(axis=(1, 2))
    angle = np.where(abs(turned) > 1e-12, np.angle(-turned) / n, np.nan)
    radius = np.sqrt(0.5 * (density * abs(z) ** 2).sum(axis=(1, 2)) / total)
    return xr.Dataset(
        {
            "eccentricity": _variable(abs(turned), "1", f"eccentricity epsilon_{n}"),
            "angle": _variable(angle, "rad", f"Phi_{n}"),
            "radius": _variable(radius, "fm", "root of <r^2>/2"),
        },
        {"time": ds.time},
    )


def momentum_anisotropy(ds: xr.Dataset) -> xr.Dataset:
    """Return epsilon_p = Int (T^xx - T^yy) / Int (T^xx + T^yy) against time.

    ``epsilon_p`` refers to the axes x and y; ``size`` and ``angle`` [rad] are its largest value and
    the direction of that value, from T^xx - T^yy + 2i T^xy. Both pressures include the field.
    Matter that left the grid is not included.
    """
    tensor = ds.energy_momentum
    field: Any = ds.get("field_pressure", xr.zeros_like(ds.energy_total))
    if "field_pressure" not in ds:
        field = ds.energy_kinetic - ds.energy_total
    space = [axis for axis in ("x", "y", "z") if axis in tensor.dims]

    def part(mu: str, nu: str) -> Any:
        return tensor.sel(mu=mu, nu=nu, drop=True).sum(space)

    both = part("x", "x") + part("y", "y") + 2 * field.sum(space)
    turned = ((part("x", "x") - part("y", "y") + 2j * part("x", "y")) / both).values
    angle = np.where(abs(turned) > 1e-12, np.angle(turned) / 2, np.nan)
    return xr.Dataset(
        {
            "epsilon_p": _variable(turned.real, "1", "(T^xx - T^yy)/(T^xx + T^yy)"),
            "size": _variable(abs(turned), "1", "epsilon_p along the direction of flow"),
            "angle": _variable(angle, "rad", "direction of flow"),
        },
        {"time": ds.time},
    )
