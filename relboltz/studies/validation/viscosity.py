"""Transport coefficients against quadratures: a constant cross section, phi^4 and QCD."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...grid.units import HBARC
from ...linear_response import transport_coefficients
from ...model.model import Model, Process, Species
from ...model.qcd import qcd
from .rows import Comparison, ValidationEffort, nothing, relative

TABLE = {
    0.0: {"eta": 1.26757, "zeta": 0.0, "kappa": 0.15892, "D": 0.46562},
    1.0: {"eta": 1.30641, "zeta": 0.002463, "kappa": 0.10810, "D": 0.41785},
    3.0: {"eta": 1.47601, "zeta": 0.009398, "kappa": 0.03843, "D": 0.32354},
}
"""eta sigma/T, zeta sigma/T, kappa sigma and D n sigma by m/T: quadratures for a classical gas."""
PHI4 = {0: 1536 * np.pi, 1: 3033.5}
"""eta lambda^2/T^3 for |M|^2 = lambda^2, for classical and Bose particles."""
T = 0.3
SIGMA = 1.0
"""Cross section [fm^2]."""
QUICK, FULL = 1_000_000, 8_000_000
"""Number of events."""


def quartic(s: float, coupling2: float) -> float:
    """|M|^2 of phi^4."""
    return coupling2 + 0.0 * s


def hard_spheres(mass: float) -> Model:
    """Return one classical species with the cross section SIGMA; mass in GeV."""
    process = Process("a a -> a a", sigma=SIGMA)
    return Model([Species("a", 1, 0)], [process], masses={"a": mass})


def coefficients(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare shear, bulk, charge and tracer diffusion; phi^4; thermal masses."""
    events = QUICK if effort.quick else FULL
    options: dict[str, Any] = {
        "events": events,
        "backend": effort.backend,
        "threads": effort.threads,
    }
    aim = (0.01, 0.03) if effort.quick else (0.005, 0.02)
    for ratio, expected in TABLE.items():
        ds = transport_coefficients(hard_spheres(ratio * T), T, tagged="a", **options)
        number = float(ds.number[0])
        found = {
            "eta": (ds.shear_viscosity, ds.shear_viscosity_error, SIGMA / T),
            "zeta": (ds.bulk_viscosity, ds.bulk_viscosity_error, SIGMA / T),
            "kappa": (ds.diffusion[0, 0], ds.diffusion_error[0, 0], SIGMA),
            "D": (ds.tagged_diffusion, ds.tagged_diffusion_error, number * SIGMA),
        }
        for name, (value, error, unit) in found.items():
            description = {"eta": "eta sigma/T", "zeta": "zeta sigma/T", "kappa": "kappa sigma",
                     "D": "D n sigma"}[name]  # fmt: skip
            measured, own = float(value) * unit, float(error) * unit
            label = f"{description} at m = {ratio:g} T"
            if not expected[name]:
                yield nothing(label, measured, 1e-9 + 3 * own, "vanishes but for rounding")
                continue
            limit = aim[1] if name == "zeta" else aim[0]
            reason = f"aimed at; its standard error is {own / expected[name]:.1g}"
            yield relative(label, measured, expected[name], limit, reason)
    yield from _quartic(aim[0], options)
    yield from _thermal(options)


def _quartic(aim: float, options: dict[str, Any]) -> Iterator[Comparison]:
    """Compare the shear viscosity of phi^4, which has a constant |M|^2."""
    for eta, expected in PHI4.items():
        process = Process("a a -> a a", quartic, coupling2=1.0)
        model = Model([Species("a", 1, eta)], [process])
        ds = transport_coefficients(model, T, **options)
        measured = float(ds.shear_viscosity) * HBARC**2 / T**3
        kind = "Bose" if eta else "classical"
        yield relative(f"phi^4, {kind}: eta lambda^2/T^3", measured, expected, aim, "aimed at")


def _thermal(options: dict[str, Any]) -> Iterator[Comparison]:
    """Check that the bulk viscosity vanishes for purely thermal masses, which set no scale."""
    ds = transport_coefficients(qcd(0.3), 0.4, **options)
    zeta, error = float(ds.bulk_viscosity), float(ds.bulk_viscosity_error)
    shear = float(ds.shear_viscosity)
    yield nothing("QCD with thermal masses: zeta over eta", zeta / shear, 4 * error / shear + 1e-6,
                  "4 standard errors")  # fmt: skip
