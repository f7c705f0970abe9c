"""Thermal masses and energies of a given f: the gap equation, and what it conserves."""

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
# model: as MassModel.flat. work: m^2 of species and screenings (width numbers), Y, its slope and
# a step (width each), one number for the kernel, four sums of every species and the m^2 they are
# of (width each), a matrix


def leader(group, a):
    """The first species that always shares the mass of species a; -1: it couples to nothing."""
    if group[a] < 0:
        return -1
    b = 0
    while group[b] != group[a]:
        b += 1
    return b


def eliminate(a, x, n):
    """Solve a x' = x in place by elimination with pivots, in a fixed order on any machine.

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
    """Newton's step in m^2, from m^2, Y and its slope."""
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
    """Take Newton's step, but keep m^2 positive; whether it is the last one.

    The error that is left is the square of the last step.
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
    """Squared screening masses that follow from Y, behind those of the species."""
    rows = s * s + s
    for row in range(width - s):
        screening = model[rows + (width - s) * s + row]
        for a in range(s):
            screening += model[rows + row * s + a] * work[width + a]
        work[s + row] = screening


FUNCTIONS: list[Function] = [leader, eliminate, newton_step, improve, screening_of]


@dataclass(frozen=True)
class MassModel:
    """The gap equation of a model on a grid, for kernels that solve it at many sites."""

    group: Integers
    """Species that always share one mass, by the same number; -1: couples to nothing."""
    coupling: Array
    constant: Array
    screening: Array
    """Rows of ``Model.screenings``: coupling of every species, and, last, the constant part."""
    p2: Array
    cell: float
    """d^3p/(2 pi)^3 of a node [GeV^3]."""
    at_rest: float

    @classmethod
    def of(cls, grid: PhaseSpace, model: Model) -> MassModel:
        """The gap equation of a model on the nodes of a grid."""
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
        """The model as kernels take it: K, constant m^2, couplings, constants of screenings."""
        couplings, constants = self.screening[:, :-1].ravel(), self.screening[:, -1]
        return np.concatenate([self.coupling.ravel(), self.constant, couplings, constants])

    @property
    def of_groups(self) -> Array:
        """The same with one equation for each group of species: ``flat`` of fewer."""
        first = [int(np.argmax(self.group == g)) for g in range(self.group.max(initial=-1) + 1)]
        couplings, constants = self.screening[:, first].ravel(), self.screening[:, -1]
        coupling = self.coupling[np.ix_(first, first)].ravel()
        return np.concatenate([coupling, self.constant[first], couplings, constants])

    @property
    def numbers(self) -> tuple[Integers, Array, Array, float, float]:
        """All of it, as ``site_masses`` takes it."""
        return self.group, self.flat, self.p2, self.cell, self.at_rest


def unsolved(where: str = "") -> RunError:
    """The error for a state whose gap equation Newton's iteration does not solve."""
    return RunError(
        f"the thermal masses of this state do not converge{where}: check model.mass_coupling"
    )


# --- energies ------------------------------------------------------------------------------------


def kinetic_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Sum over species and nodes of N_a E_a f_a [GeV fm^-3]."""
    sums = [(grid.energies(m2) * row).sum() for row, m2 in zip(f, mass_squared, strict=True)]
    return float(model.degeneracy @ sums) * grid.measure


def field_energy(model: Model, mass_squared: Array, y: Array) -> Array:
    """-(1/4) Sum_a (m_a^2 - m_a,0^2) Y_a, of one site or of many [GeV fm^-3]."""
    thermal = mass_squared - model.constant_mass_squared
    return np.asarray(-0.25 * (thermal * y).sum(axis=-1) / HBARC**3)
