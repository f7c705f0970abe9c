"""Thermal masses for a given f from the gap equation, and the energy consistent with them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..util.arrays import Array, Integers
from ..util.errors import RunError
from ..util.jit import Function
from .model import Model

# --- the gap equation: m_a^2 = m_a,0^2 + Sum_b K_ab Y_b(m_b^2) of s species -----------------------
# model: layout of MassModel.flat. work: m^2 of species and screenings (width numbers), Y, its
# derivative and a step (width each), one number for the kernel, four sums for every species and the
# m^2 to which they belong (width each), a matrix


def leader(group, a):
    """Return the first species that always shares the mass of species a; -1 if a is uncoupled."""
    if group[a] < 0:
        return -1
    b = 0
    while group[b] != group[a]:
        b += 1
    return b


def eliminate(a, x, n):
    """Solve a x' = x in place by elimination with pivoting, in a fixed order on any machine.

    a : n x n matrix, row after row; x : right-hand side, overwritten by the solution
    """
    for i in range(n):
        pivot = i
        for r in range(i + 1, n):
            if abs(a[r * n + i]) > abs(a[pivot * n + i]):
                pivot = r
        for c in range(n):
            a[i * n + c], a[pivot * n + c] = a[pivot * n + c], a[i * n + c]
        x[i], x[pivot] = x[pivot], x[i]
        for r in range(i + 1, n):
            factor = a[r * n + i] / a[i * n + i]
            for c in range(i, n):
                a[r * n + c] -= factor * a[i * n + c]
            x[r] -= factor * x[i]
    for i in range(n - 1, -1, -1):
        for c in range(i + 1, n):
            x[i] -= a[i * n + c] * x[c]
        x[i] /= a[i * n + i]


def newton_step(model, work, s, width):
    """Compute the Newton step in m^2 from m^2, Y and its derivative."""
    matrix = work[9 * width + 1 :]
    for a in range(s):
        wanted = model[s * s + a]
        for b in range(s):
            wanted += model[a * s + b] * work[width + b]
            matrix[a * s + b] = -model[a * s + b] * work[2 * width + b]
        matrix[a * s + a] += 1.0
        work[3 * width + a] = wanted - work[a]
    eliminate(matrix, work[3 * width :], s)


def improve(model, work, s, width):
    """Take a Newton step, keeping m^2 positive; return whether the iteration has converged.

    The remaining error is the square of the last step.
    """
    newton_step(model, work, s, width)
    moved, largest = 0.0, 0.0
    for a in range(s):
        new = max(work[a] + work[3 * width + a], 0.1 * work[a])
        moved = max(moved, abs(new - work[a]))
        largest = max(largest, new)
        work[a] = new
    return moved <= 1e-9 * largest or not isfinite(moved)


def screening_of(model, work, s, width):
    """Compute the squared screening masses from Y and store them after those of the species."""
    rows = s * s + s
    for row in range(width - s):
        screening = model[rows + (width - s) * s + row]
        for a in range(s):
            screening += model[rows + row * s + a] * work[width + a]
        work[s + row] = screening


FUNCTIONS: list[Function] = [leader, eliminate, newton_step, improve, screening_of]


@dataclass(frozen=True)
class MassModel:
    """Gap equation of a model on a grid, for kernels that solve it at many sites."""

    group: Integers
    """Group number of every species: species of a group always share one mass; -1 : uncoupled."""
    coupling: Array
    constant: Array
    screening: Array
    """Rows of ``Model.screenings``: the coupling of every species, then the constant part."""
    p2: Array
    cell: float
    """d^3p/(2 pi)^3 of a node [GeV^3]."""
    at_rest: float

    @classmethod
    def of(cls, grid: PhaseSpace, model: Model) -> MassModel:
        """Build the gap equation of a model on the nodes of a grid."""
        none = (0.0,) * len(model.species)
        screening = [(*(row.coupling or none), row.constant) for row in model.screenings]
        groups: dict[tuple[float, ...], int] = {}
        group = []
        for a, row in enumerate(model.mass_coupling):
            own = [line[a] for line in screening]
            key = (*row, model.constant_mass_squared[a], *own)
            couples = row.any() or any(own)
            group.append(groups.setdefault(key, len(groups)) if couples else -1)
        return cls(
            np.array(group, np.int64), model.mass_coupling, model.constant_mass_squared,
            np.array(screening), grid.momentum_squared,
            grid.cell_volume / (2 * np.pi) ** 3, grid.rest_inverse_energy,
        )  # fmt: skip

    @property
    def flat(self) -> Array:
        """Flat array for kernels: K, constant m^2, couplings and constants of screenings."""
        couplings, constants = self.screening[:, :-1].ravel(), self.screening[:, -1]
        return np.concatenate([self.coupling.ravel(), self.constant, couplings, constants])

    @property
    def of_groups(self) -> Array:
        """Array as ``flat``, reduced to one equation for each group of species."""
        first = [int(np.argmax(self.group == g)) for g in range(self.group.max(initial=-1) + 1)]
        couplings, constants = self.screening[:, first].ravel(), self.screening[:, -1]
        coupling = self.coupling[np.ix_(first, first)].ravel()
        return np.concatenate([coupling, self.constant[first], couplings, constants])

    @property
    def numbers(self) -> tuple[Integers, Array, Array, float, float]:
        """All data, as arguments of ``site_masses``."""
        return self.group, self.flat, self.p2, self.cell, self.at_rest


def unsolved(where: str = "") -> RunError:
    """Return the error for a state for which the Newton iteration does not converge."""
    return RunError(
        f"the thermal masses of this state do not converge{where}: check model.mass_coupling"
    )


# --- energies ------------------------------------------------------------------------------------


def kinetic_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Return the sum over species and nodes of N_a E_a f_a [GeV fm^-3]."""
    sums = [(grid.energies(m2) * row).sum() for row, m2 in zip(f, mass_squared, strict=True)]
    return float(model.degeneracy @ sums) * grid.measure


def field_energy(model: Model, mass_squared: Array, y: Array) -> Array:
    """Return -(1/4) Sum_a (m_a^2 - m_a,0^2) Y_a for one or many sites [GeV fm^-3]."""
    thermal = mass_squared - model.constant_mass_squared
    return np.asarray(-0.25 * (thermal * y).sum(axis=-1) / HBARC**3)
