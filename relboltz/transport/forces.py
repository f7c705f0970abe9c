"""External forces, and the longest time step that streaming and all forces together allow.

The mean field is not an external force: force and velocity are differences of the same energies,
and together they are divergence-free on the grid (``plane``). Any other force, such as an electric
field or an expansion, is an object with an axis and a field; sweeps add it to the mean field.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array
from .plane import COURANT


class Force(Protocol):
    """An external force along an axis, linear in the momentum along it."""

    axis: int

    def field(self, time: float, squares: Array, grid: PhaseSpace, model: Model) -> Array:
        """F = c + k p at all sites, for all species: c [GeV/fm] and k [1/fm], (sites, species, 2).

        squares : squared masses of all species and of the screenings, at all sites [GeV^2]
        """


def total(
    forces: Sequence[Force], axis: int, time: float, squares: Array, grid: PhaseSpace, model: Model
) -> Array:
    """Return the sum of the fields of all forces along an axis, (sites, species, 2)."""
    push = np.zeros((grid.sites, len(model.species), 2))
    for force in forces:
        if force.axis == axis:
            push += force.field(time, squares, grid, model)
    return push


def steepest(grid: PhaseSpace, mass_squared: Array, axis: int) -> float:
    """Return the largest mean-field force along an axis [GeV/fm]: |a| <= |d m / dx|."""
    mass, along = np.sqrt(grid.in_space(mass_squared)), axis + 1  # (species, x, y, z)
    change = np.abs(np.diff(mass, axis=along))
    if grid.boundary[axis] == "periodic":
        around = np.take(mass, [0], along) - np.take(mass, [-1], along)
        change = np.concatenate([change, np.abs(around)], axis=along)
    return float(change.max(initial=0.0)) / grid.space_spacing[axis]


def strongest(grid: PhaseSpace, push: Array, axis: int) -> float:
    """Return the largest external force along an axis [GeV/fm] in the momentum box."""
    return float((np.abs(push) @ [1.0, grid.momentum_max[axis]]).max(initial=0.0))


def courant_limit(
    grid: PhaseSpace, mass_squared: Array, pushes: Mapping[int, Array] | None = None
) -> float:
    """Return the longest step [fm] whose half-steps empty no cell, with |u| <= 1 and all forces.

    pushes : ``total`` of the external forces, by axis
    """
    fastest = 0.0
    for axis in range(3):
        streams = axis in grid.moving_axes
        force = steepest(grid, mass_squared, axis) if streams else 0.0
        if pushes and axis in pushes:
            force += strongest(grid, pushes[axis], axis)
        rate = (1.0 / grid.space_spacing[axis] if streams else 0.0) + force / grid.spacing[axis]
        fastest = max(fastest, rate)
    return 2.0 * COURANT / fastest if fastest > 0 else math.inf
