"""Thermal masses and energies of a given f: the gap equation, and what it conserves."""

from __future__ import annotations

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


def kinetic_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Sum over species and nodes of N_a E_a f_a [GeV fm^-3]."""
    sums = [(grid.energies(m2) * row).sum() for row, m2 in zip(f, mass_squared, strict=True)]
    return float(model.degeneracy @ sums) * grid.measure


def total_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Kinetic energy - (1/4) Sum_a (m_a^2 - m_a,0^2) Y_a, the conserved one [GeV fm^-3]."""
    y = coupling_integrals(grid, model, f, mass_squared)
    field = 0.25 * (mass_squared - model.constant_mass_squared) @ y / HBARC**3
    return kinetic_energy(grid, model, f, mass_squared) - float(field)
