"""Bjorken flow: densities per rapidity, and comparison with first-order hydrodynamics.

To first order in gradients P_T - P_L = 2 eta/tau. At zero chemical potential the scaled time
tau (e + P)/(4 pi eta) equals tau T/(4 pi eta/s). Reactions 2 <-> 2 conserve particle number, so
that mu/T falls and eta/s rises during the expansion: give the model rather than a constant eta/s.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from ..grid.units import HBARC
from ..io.result import is_in_space
from ..model.model import Model
from ..util.arrays import Array
from ..util.errors import AccuracyWarning, InputError, depth_of_user
from ..util.text import is_number, shown
from .spectra import is_bjorken

Viscosity = float | Model | Array | xr.DataArray | Callable[[float, dict[str, float]], float]
"""eta/s; a model; eta at all records [GeV fm^-2]; or a function of T and mu by species [GeV]."""
RECORDS = 6
"""Number of records at which the viscosity of a model is computed; others are interpolated."""
MATTERS = 0.1
"""|mu|/T that changes eta/s by a few per cent (gluons: 3.5 % at -0.1)."""


def _of_time(values: Any, unit: str, description: str) -> xr.Variable:
    return xr.Variable("time", np.asarray(values, float), {"units": unit, "long_name": description})


def _expanding(ds: xr.Dataset, what: str, local: bool = False) -> None:
    """Raise InputError if a result is not in Bjorken flow or, with ``local``, is not one cell."""
    if not is_bjorken(ds):
        raise InputError(f"{what} is of matter in Bjorken flow: grid.expansion = 'bjorken'")
    if local and is_in_space(ds):
        raise InputError(
            f"{what} is that of one place; take a cell, such as result.isel(x=4, y=4, z=0)"
        )


def per_rapidity(ds: xr.Dataset) -> xr.Dataset:
    """Return densities per rapidity in Bjorken flow: tau times integrals over the plane.

    ``dN_dy`` (time, species) and ``dET_dy``, the sum of sqrt(p_T^2 + m^2) [GeV], include particles
    that left the grid; ``dE_deta``, from the total energy density [GeV], and ``dS_deta``, from the
    entropy, do not. For homogeneous matter all are per transverse area [fm^-2].
    """
    _expanding(ds, "per_rapidity()")
    inside = {"dE_deta": "energy_total", "dS_deta": "entropy"}
    area, unit, where = 1.0, " fm^-2", " and transverse area"
    if is_in_space(ds):
        area, unit, where = 4 * float(np.prod(ds.attrs["space_max"][:2])), "", ""
        inside = {key: f"total_{name}" for key, name in inside.items()}
    found = {}
    for key, name in inside.items():
        base = ("GeV" if key == "dE_deta" else "1") + unit
        description = ("energy" if key == "dE_deta" else "entropy") + f" per rapidity{where}"
        found[key] = _of_time(
            ds.time.values * area * ds[name].values, base.replace("1 f", "f"), description
        )
    return xr.Dataset({"dN_dy": ds.dN_dy, "dET_dy": ds.dET_dy, **found})


def pressures(ds: xr.Dataset) -> xr.Dataset:
    """Return total P_L and P_T [GeV fm^-3], field included, and P_L/e in the frame of the grid.

    The result must be homogeneous or a single cell; it need not expand.
    """
    if is_in_space(ds):
        raise InputError(
            "pressures() are those of one place; take a cell, such as result.isel(x=4, y=4, z=0)"
        )
    tensor, field = ds.energy_momentum, ds.energy_kinetic - ds.energy_total
    xx, yy, zz = (tensor.sel(mu=i, nu=i).values for i in "xyz")
    along, across = zz + field.values, 0.5 * (xx + yy) + field.values
    return xr.Dataset(
        {
            "longitudinal": _of_time(along, "GeV fm^-3", "longitudinal pressure P_L"),
            "transverse": _of_time(across, "GeV fm^-3", "transverse pressure P_T"),
            "longitudinal_over_energy": _of_time(along / ds.energy_total.values, "1", "P_L/e"),
        },
        {"time": ds.time},
    )


# --- viscosity ----------------------------------------------------------------------------------


def _enthalpy(ds: xr.Dataset) -> Array:
    """Return e + P of local equilibrium [GeV fm^-3]."""
    pressure = ds.pressure - ds.bulk_pressure
    return np.asarray((ds.landau_energy + pressure).values, float)


def _density(ds: xr.Dataset) -> xr.DataArray:
    """Return densities in the Landau frame (time, species): u . N = gamma (n - v . N) [fm^-3]."""
    v = ds.landau_velocity
    gamma = 1 / np.sqrt(1 - (v**2).sum("axis"))
    return gamma * (ds.number - (v * ds.number_current).sum("axis"))


def _at_rest(ds: xr.Dataset) -> tuple[Array, Array]:
    """Return total P_L and P_T - P_L in the Landau frame [GeV fm^-3]; assumes no flow along z."""
    stress = ds.shear_stress.sel(mu="z", nu="z").values
    return ds.pressure.values + stress, -1.5 * stress


def _of_model(ds: xr.Dataset, model: Model, options: dict[str, Any]) -> Array:
    """Return eta of a model at all records; ln(eta/T^3) is interpolated in ln tau."""
    from ..linear_response.coefficients import transport_coefficients  # only when needed

    t, mu = ds.landau_temperature.values, ds.landau_chemical_potential
    known = np.flatnonzero(np.isfinite(t) & np.isfinite(mu).all("species").values)
    if not len(known):
        raise InputError(
            "viscosity: no record has a local equilibrium (landau_temperature), and the model none "
            "without its T and mu; give eta/s"
        )
    tau = np.log(ds.time.values)
    wanted = np.linspace(tau[known[0]], tau[known[-1]], RECORDS)
    chosen = np.unique(known[abs(tau[known][:, None] - wanted).argmin(axis=0)])
    logs = []
    for i in chosen:
        own = {str(s): float(mu.isel(time=i).sel(species=s)) for s in mu.species.values}
        found = transport_coefficients(model, float(t[i]), own, **options)
        logs.append(np.log(float(np.ravel(found.shear_viscosity)[0]) / t[i] ** 3))
    eta = np.exp(np.interp(tau, tau[chosen], logs)) * t**3
    return np.asarray(np.where(np.isfinite(t), eta, np.nan))


def _tell_constant(ds: xr.Dataset, given: float) -> None:
    """Warn about a constant eta/s for matter with a chemical potential."""
    mu = ds.landau_chemical_potential.fillna(0.0) / ds.landau_temperature
    found = mu.isel(species=abs(mu).fillna(0.0).argmax("species")).dropna("time")
    if not found.size or not float(abs(found).max()) > MATTERS:
        return
    worst = found.isel(time=int(abs(found).argmax("time")))
    warnings.warn(
        f"eta/s = {given:g}, a constant, for matter whose particle number or charge is conserved, "
        f"and whose mu is {float(worst):.2g} T at tau = {float(worst.time):g} fm: eta/s depends on "
        "mu/T, and matter may look nearer to hydrodynamics than it is. Give the model in place of "
        "eta/s, or eta as a function of T and mu",
        AccuracyWarning, stacklevel=depth_of_user(),
    )  # fmt: skip


def viscosity(ds: xr.Dataset, given: Viscosity, **options: Any) -> xr.DataArray:
    """Return eta of local equilibrium at all records [GeV fm^-2].

    A constant eta/s is right only at mu = 0; an AccuracyWarning is issued for other mu.

    given : a number, eta/s; the model of the run, whose eta at the T and mu of some records comes
        from ``transport_coefficients`` (options: events, seed, ...); an array of eta by time; or a
        function of T and a dictionary of mu by species [GeV] that returns eta
    """
    _expanding(ds, "viscosity()", local=True)
    if isinstance(given, Model):
        values = _of_model(ds, given, options)
    elif is_number(given):
        if not given > 0:  # type: ignore[operator]
            raise InputError(f"viscosity = {shown(given)}: eta/s is a number above 0")
        _tell_constant(ds, float(given))  # type: ignore[arg-type]
        mu_n = (ds.landau_chemical_potential * _density(ds)).sum("species", skipna=True).values
        entropy = (_enthalpy(ds) - mu_n) / ds.landau_temperature.values
        values = float(given) * entropy * HBARC  # type: ignore[arg-type]
    elif callable(given):
        mu = ds.landau_chemical_potential
        names = [str(name) for name in mu.species.values]
        rows = zip(
            ds.landau_temperature.values, mu.transpose("time", "species").values, strict=True
        )
        values = np.array([given(float(t), dict(zip(names, m, strict=True))) for t, m in rows])
    else:
        values = np.asarray(given, float)
        if values.shape != ds.time.shape:
            raise InputError(
                f"viscosity of shape {values.shape}: give eta/s, a model, a function of T and mu, "
                f"or one value for each of {ds.time.size} records"
            )
    return xr.DataArray(_of_time(values, "GeV fm^-2", "shear viscosity"), {"time": ds.time})


def scaled_time(ds: xr.Dataset, given: Viscosity, **options: Any) -> xr.DataArray:
    """Return tau (e + P)/(4 pi eta) of local equilibrium; ``given`` is that of ``viscosity``."""
    eta = viscosity(ds, given, **options).values
    values = ds.time.values * _enthalpy(ds) / (4 * np.pi * eta)
    scaled = _of_time(values, "1", "scaled time tau (e + P)/(4 pi eta)")
    return xr.DataArray(scaled, {"time": ds.time}, name="scaled_time")


def first_order(ds: xr.Dataset, given: Viscosity, **options: Any) -> xr.Dataset:
    """Compare with first-order hydrodynamics, where (P_T - P_L) tau/(2 eta) is 1.

    Returns ``driven``, (P_T - P_L) tau/(2 eta), which tends to 1; ``scaled_time``;
    ``longitudinal_over_energy``, P_L/e; and ``first_order``, P_L/e of first-order hydrodynamics for
    the same e, P and eta, without bulk viscosity. All are in the Landau frame. In a cell of a
    plane, where other gradients also drive stresses, P_T - P_L is -3/2 of the shear stress along z.
    """
    eta, tau = viscosity(ds, given, **options), ds.time.values
    along, apart = _at_rest(ds)
    driven = apart * tau / (2 * eta.values)
    expected = (ds.pressure - ds.bulk_pressure).values - 4 * eta.values / (3 * tau)
    return xr.Dataset(
        {
            "driven": _of_time(driven, "1", "(P_T - P_L) tau/(2 eta)"),
            "scaled_time": scaled_time(ds, eta),
            "longitudinal_over_energy": _of_time(along / ds.landau_energy.values, "1", "P_L/e"),
            "first_order": _of_time(
                expected / ds.landau_energy.values, "1", "P_L/e of first-order hydrodynamics"
            ),
        },
        {"time": ds.time},
    )
