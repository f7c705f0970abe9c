"""Thermal masses and energies of a given f: the gap equation, and what it conserves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .compiling import kernel
from .errors import RunError
from .grid import PhaseSpace
from .model import Model
from .units import HBARC

Array = NDArray[np.float64]


@kernel
def _inverse_energy_sums(f, p2, m2, at_rest):
    """Sum f/E and Sum f/E^3 in eight lanes: a fixed order that still vectorises."""
    first, third = np.zeros(8), np.zeros(8)
    n = f.size
    for i in range(0, n - n % 8, 8):
        for j in range(8):
            r = 1 / np.sqrt(p2[i + j] + m2)
            first[j] += f[i + j] * r
            third[j] += f[i + j] * r * r * r
    for i in range(n - n % 8, n):
        r = 1 / np.sqrt(p2[i] + m2)
        first[i % 8] += f[i] * r
        third[i % 8] += f[i] * r * r * r
    if m2 == 0 and not np.isfinite(first.sum()):  # a massless node at rest
        first[:], third[:] = 0.0, 0.0
        for i in range(n):
            r = 1 / np.sqrt(p2[i]) if p2[i] > 0 else at_rest
            first[i % 8] += f[i] * r
            third[i % 8] += f[i] * r * r * r
    return first.sum(), third.sum()


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


_eliminate = kernel(eliminate)


def _solved(matrix: Array, right: Array) -> Array:
    """x of matrix x = right."""
    x = right.copy()
    _eliminate(matrix.ravel(), x, len(x))
    return x


def _at_rest(grid: PhaseSpace, m2: float) -> float:
    """What 1/E of a massless node at rest is replaced by [GeV^-1]."""
    return grid.rest_inverse_energy if m2 == 0 else 0.0


def coupling_integrals(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> Array:
    """Y_a = N_a Int d^3p/(2 pi)^3 f_a / E_a [GeV^2]."""
    sums = [
        _inverse_energy_sums(row, grid.momentum_squared, m2, _at_rest(grid, m2))[0]
        for row, m2 in zip(f, np.asarray(mass_squared, float), strict=True)
    ]
    return model.degeneracy * sums * (grid.cell_volume / (2 * np.pi) ** 3)


def masses(grid: PhaseSpace, model: Model, f: Array, start: Array | None = None) -> Array:
    """Self-consistent m_a^2 = m_a,0^2 + Sum_b K_ab Y_b(m_b^2) of a given f [GeV^2].

    Newton's iteration to rounding. ``start`` is the m^2 of a similar state.
    """
    coupling, m2 = model.mass_coupling, model.constant_mass_squared.copy()
    if not coupling.any():
        return m2
    groups = _equal_masses(model, f)
    unit = grid.cell_volume / (2 * np.pi) ** 3
    if start is not None and (np.asarray(start) >= 0).all():
        m2 = np.array(start, dtype=float)
    for _ in range(100):
        y, slope = np.zeros(len(m2)), np.zeros(len(m2))
        for a, total in groups:
            first, third = _inverse_energy_sums(
                total, grid.momentum_squared, m2[a], _at_rest(grid, m2[a])
            )
            y[a], slope[a] = unit * first, -0.5 * unit * third
        wanted = model.mass_squared(y)
        step = _solved(np.eye(len(m2)) - coupling * slope, wanted - m2)
        new = np.maximum(m2 + step, 0.1 * m2)  # m^2 stays positive on the way
        moved = abs(new - m2).max()
        m2 = new
        if moved <= 1e-9 * m2.max():  # Newton: the error left is the square of this
            return m2
    raise RunError("the thermal masses of this state do not converge: check model.mass_coupling")


def _equal_masses(model: Model, f: Array) -> list[tuple[int, Array]]:
    """N f summed over species that always share one mass, under the index of the first."""
    groups: dict[tuple, tuple[int, Array]] = {}
    for a, row in enumerate(f):
        if model.mass_coupling[a].any() and row.any():
            key = (*model.mass_coupling[a], model.constant_mass_squared[a])
            if key in groups:
                groups[key][1][:] += model.degeneracy[a] * row
            else:
                groups[key] = (a, model.degeneracy[a] * row)
    return list(groups.values())


@dataclass(frozen=True)
class MassModel:
    """The gap equation of a model on a grid, for kernels that solve it at many sites."""

    group: NDArray[np.int64]
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
        groups: dict[tuple, int] = {}
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
    def numbers(self) -> tuple:
        """All of it, as ``site_masses`` takes it."""
        return (
            self.group, self.coupling, self.constant, self.screening, self.p2, self.cell,
            self.at_rest,
        )  # fmt: skip


@kernel
def site_masses(number, unit, first, last, model, squares):
    """Solve the gap equation at the sites first to last, from the squares given there.

    number : (sites, species, nodes) in quanta of ``unit``; squares : m^2 of every species, then of
    every screening, at every site. Returns the first site that does not converge, or -1.
    """
    group, coupling, constant, screening, p2, cell, at_rest = model
    s, n = number.shape[1:]
    held = np.zeros((s, n))
    y, slope, step, matrix = np.zeros(s), np.zeros(s), np.zeros(s), np.zeros(s * s)
    moving = coupling.any()
    for site in range(first, last):
        m2 = squares[site]
        held[:] = 0.0
        for a in range(s):
            if group[a] >= 0:
                leader = 0
                while group[leader] != group[a]:
                    leader += 1
                for i in range(n):
                    held[leader, i] += number[site, a, i] * unit
        done = not moving
        for _ in range(100):
            for a in range(s):
                y[a], slope[a] = 0.0, 0.0
                leads = group[a] >= 0
                for b in range(a):
                    leads = leads and group[b] != group[a]
                if leads:
                    rest = at_rest if m2[a] == 0 else 0.0
                    one, three = _inverse_energy_sums(held[a], p2, m2[a], rest)
                    y[a], slope[a] = cell * one, -0.5 * cell * three
            if done:
                break
            for a in range(s):
                wanted = constant[a]
                for b in range(s):
                    wanted += coupling[a, b] * y[b]
                    matrix[a * s + b] = -coupling[a, b] * slope[b]
                matrix[a * s + a] += 1.0
                step[a] = wanted - m2[a]
            _eliminate(matrix, step, s)
            moved, largest = 0.0, 0.0
            for a in range(s):
                new = max(m2[a] + step[a], 0.1 * m2[a])
                moved = max(moved, abs(new - m2[a]))
                largest = max(largest, new)
                m2[a] = new
            done = not moved > 1e-9 * largest
        if not done or not np.isfinite(m2.sum()):
            return site
        for row in range(screening.shape[0]):
            m2[s + row] = screening[row, s]
            for a in range(s):
                m2[s + row] += screening[row, a] * y[a]
    return -1


def kinetic_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Sum over species and nodes of N_a E_a f_a [GeV fm^-3]."""
    sums = [(grid.energies(m2) * row).sum() for row, m2 in zip(f, mass_squared, strict=True)]
    return float(model.degeneracy @ sums) * grid.measure


def total_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Kinetic energy - (1/4) Sum_a (m_a^2 - m_a,0^2) Y_a, the conserved one [GeV fm^-3]."""
    y = coupling_integrals(grid, model, f, mass_squared)
    field = 0.25 * (mass_squared - model.constant_mass_squared) @ y / HBARC**3
    return kinetic_energy(grid, model, f, mass_squared) - float(field)
