"""Currents, stresses and Landau frame of the predicted final state on the nodes of the grid.

They differ from those of matter at rest in unlimited momentum space: a momentum box that is not a
cube, or moves, has a pressure ratio of its own, and sums over nodes differ slightly from integrals.
"""

from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..thermodynamics.landau import LandauFits, frames, shear_stress
from ..thermodynamics.states import Equilibrium
from ..util.arrays import Array
from .observables import pressure_ratio

Values = dict[str, tuple[Any, ...]]
"""Name: dimensions, value, unit, description."""


MOMENTS = {
    "momentum_by_species": (("species", "axis"), "GeV fm^-3", "momentum density of a species"),
    "number_current": (("species", "axis"), "fm^-3", "flux of particles"),
    "pressure_ratio": ((), "1", "T^zz over the mean of T^xx and T^yy"),
    "shear_stress": (("mu", "nu"), "GeV fm^-3", "shear stress, which the nodes alone make,"),
    "bulk_pressure": ((), "GeV fm^-3", "bulk pressure, which the nodes alone make,"),
}  # fmt: skip


def of_nodes(grid: PhaseSpace, model: Model, predicted: Equilibrium) -> Values:
    """Return flows and stresses of the predicted state; NaN without a prediction."""
    kinds = len(model.species)
    lengths = {"species": kinds, "axis": 3, "mu": 4, "nu": 4}
    values = {name: np.full([lengths[d] for d in MOMENTS[name][0]], np.nan) for name in MOMENTS}
    if predicted.found:
        values |= _computed(grid, model, predicted)
    return {
        name: (dims, values[name], *description) for name, (dims, *description) in MOMENTS.items()
    }


def _computed(grid: PhaseSpace, model: Model, predicted: Equilibrium) -> dict[str, Any]:
    momenta, current, tensor, y = _sums(grid, model, predicted)
    found = frames(tensor[None])
    field = field_energy(model, predicted.mass_squared[None], y[None])
    energy, pressure = found.energy + field, found.pressure - field
    number = (model.degeneracy * predicted.f.sum(axis=1) * grid.measure)[None]
    rest = found.density(number, current[None])
    guess = np.array([predicted.temperature]), predicted.chemical_potential[None]
    local = LandauFits(model).match(energy, rest, predicted.mass_squared[None], guess)
    return {
        "momentum_by_species": momenta,
        "number_current": current,
        "pressure_ratio": pressure_ratio(tensor[None])[0],
        "shear_stress": shear_stress(tensor[None], found)[0],
        "bulk_pressure": (pressure - local.pressure)[0],
    }


def _sums(
    grid: PhaseSpace, model: Model, predicted: Equilibrium
) -> tuple[Array, Array, Array, Array]:
    """Sum momenta and currents by species, the kinetic tensor [fm^-3, GeV fm^-3], and Y [GeV^2]."""
    p, measure = grid.momenta, grid.measure
    kinds = len(model.species)
    momenta, current, tensor = np.zeros((kinds, 3)), np.zeros((kinds, 3)), np.zeros((4, 4))
    y = np.zeros(kinds)
    for a, species in enumerate(model.species):
        m2 = float(predicted.mass_squared[a])
        density = species.degeneracy * predicted.f[a] * measure
        inverse = grid.inverse_energies(m2)
        four = np.stack([grid.energies(m2), *p])
        momenta[a], current[a] = p @ density, p @ (density * inverse)
        tensor += (four * (density * inverse)) @ four.T
        y[a] = species.degeneracy * (predicted.f[a] * inverse).sum()
    tensor[0, 0] = sum(
        s.degeneracy * measure * (predicted.f[a] * grid.energies(float(m2))).sum()
        for a, (s, m2) in enumerate(zip(model.species, predicted.mass_squared, strict=True))
    )
    return momenta, current, tensor, y * grid.cell_volume / (2 * np.pi) ** 3
