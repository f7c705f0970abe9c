"""Equilibrium in unlimited momentum space, by radial integrals in the rest frame of the fluid."""

from dataclasses import dataclass, replace

import numpy as np

from ..grid.units import HBARC
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..util.arrays import Array
from .conserved import MODE_WEIGHT, NO_FLOW, ConservedTotals, self_consistent
from .gas import Gas, Indices
from .radii import gauss, radii

POINTS = 240
"""Gauss points of a radial integral: they resolve temperatures down to 1 % of the mean energy."""
NOWHERE = 1.0
"""Placeholder for 1/E [GeV^-1] of a massless particle at rest; no Gauss point is at rest."""


@dataclass(frozen=True)
class FreeState:
    """f = 1/(exp((u.p - mu)/T) - eta) of every species, without a grid."""

    temperature: float  # [GeV]
    chemical_potential: Array  # (species) [GeV]; NaN for empty species
    velocity: Array  # (3)
    mass_squared: Array  # (species) [GeV^2]
    screening2: Array  # of ``Model.screenings`` [GeV^2]


def predict(model: Model, numbers: Array, momentum: Array, energy_total: float) -> FreeState | None:
    """Return the final state with these conserved quantities, or None if none is found.

    The counterpart of ``equilibrium.predict`` without nodes. For a fluid of velocity v the charges
    in the rest frame are Q/gamma and the energy is E - v.P; P = (E + pressure) v gives v.

    numbers [fm^-3] by species, momentum (3) and total energy [GeV fm^-3]
    """
    numbers, momentum = np.asarray(numbers, float), np.asarray(momentum, float)
    number, flow = float(numbers.sum()), float(np.linalg.norm(momentum))
    if not (number > 0 and energy_total > flow):
        return None
    axis, flow = (momentum / flow, flow) if flow > NO_FLOW * energy_total else (momentum, 0.0)
    there = ConservedTotals.of(model, numbers, np.zeros(3), energy_total)
    present, charges = there.present, there.charges
    p, weight = _weighted(energy_total / number)
    speed, y = 0.0, there.first_y(model)
    for _ in range(200):
        gamma = 1 / np.sqrt(1 - speed**2)
        given = replace(
            there, densities=there.densities / gamma, energy=energy_total - speed * flow,
            number=number / gamma,
        )  # fmt: skip
        gas = Gas(
            np.zeros((0, len(p))), p * p, 0 * p, weight, model.degeneracy[present],
            model.statistics[present], charges, mode=MODE_WEIGHT * number,
        )  # fmt: skip
        solved = self_consistent(NOWHERE, model, given, gas, y, 1e-9)
        if solved is None or not solved[0][0] > 0:
            return None
        theta, y = solved
        m2 = model.mass_squared(y)
        new = flow / (energy_total + _pressure(model, gas, theta, m2, y, present))
        if abs(new - speed) < 1e-9:
            break
        speed = new
    if not model.mass_coupling.any():  # Y has not been computed so far
        y[present] = gas.coupling_integrals(m2[present], theta, NOWHERE)
    mu = np.full(len(model.species), np.nan)
    mu[present] = gas.potentials(theta) / theta[0]
    return FreeState(float(1 / theta[0]), mu, speed * axis, m2, model.screening_squared(y))


def _weighted(scale: float) -> tuple[Array, Array]:
    """Return radii [GeV] from 0 to infinity, densest at 0, and their weights [fm^-3]."""
    x, w = gauss(POINTS)
    p, slope = radii(x, scale)
    return p, 4 * np.pi * p * p * slope * w / (2 * np.pi * HBARC) ** 3


def _pressure(model: Model, gas: Gas, theta: Array, m2: Array, y: Array, present: Indices) -> float:
    """Return the pressure of particles and mean field in the rest frame [GeV fm^-3]."""
    inverse = 1 / np.sqrt(gas.momentum_squared + m2[present, None])
    f = gas.occupations(m2[present], theta)
    kinetic = gas.degeneracy @ ((f * inverse) @ (gas.weight * gas.momentum_squared)) / 3
    return float(kinetic - field_energy(model, m2, y))
