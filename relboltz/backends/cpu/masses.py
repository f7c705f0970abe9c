"""The gap equation on the CPU: sums over the nodes, and Newton's method at many sites."""

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import FUNCTIONS, MassModel, field_energy, kinetic_energy, unsolved
from ...model.model import Model
from ...util.arrays import Array
from ...util.jit import build, kernel, scalar

gap = build(FUNCTIONS, scalar)


@kernel
def inverse_energy_sums(f, p2, m2, at_rest):
    """Return Sum f/E and Sum f/E^3, added in eight lanes: a fixed order that vectorises."""
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


@kernel
def site_masses(number, unit, first, last, model, squares):
    """Solve the gap equation in place at the sites first to last, starting from ``squares``.

    number : (sites, species, nodes) in quanta of ``unit``; squares : m^2 of every species, then of
    every screening, at every site. Returns the first site that does not converge, or -1.
    """
    group, flat, p2, cell, at_rest = model
    s, n = number.shape[1:]
    width = squares.shape[1]
    held, work = np.zeros((s, n)), np.zeros(9 * width + 1 + s * s)
    for site in range(first, last):
        for a in range(width):  # element by element: whole rows take Numba long to compile
            work[a] = squares[site, a]
        held[:] = 0.0
        for a in range(s):
            b = gap.leader(group, a)
            if b >= 0:
                for i in range(n):
                    held[b, i] += number[site, a, i] * unit
        done = not flat[: s * s].any()
        for _ in range(100):
            for a in range(s):
                one, three = 0.0, 0.0
                if gap.leader(group, a) == a:
                    rest = at_rest if work[a] == 0 else 0.0
                    one, three = inverse_energy_sums(held[a], p2, work[a], rest)
                work[width + a], work[2 * width + a] = cell * one, -0.5 * cell * three
            if done:
                break
            done = gap.improve(flat, work, s, width)
        if not done or not np.isfinite(work[:s].sum()):
            return site
        gap.screening_of(flat, work, s, width)
        for a in range(width):
            squares[site, a] = work[a]
    return -1


# --- for a state in host memory -----------------------------------------------------------------


def coupling_integrals(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> Array:
    """Return Y_a = N_a Int d^3p/(2 pi)^3 f_a / E_a [GeV^2]."""
    sums = []
    for row, m2 in zip(f, np.asarray(mass_squared, float), strict=True):
        at_rest = grid.rest_inverse_energy if m2 == 0 else 0.0
        sums.append(inverse_energy_sums(row, grid.momentum_squared, m2, at_rest)[0])
    return np.array(model.degeneracy * sums * (grid.cell_volume / (2 * np.pi) ** 3))


def masses(grid: PhaseSpace, model: Model, f: Array, start: Array | None = None) -> Array:
    """Solve m_a^2 = m_a,0^2 + Sum_b K_ab Y_b(m_b^2) self-consistently for a given f [GeV^2].

    Newton's method converges to rounding. ``start`` is the m^2 of a similar state.
    """
    squares = np.zeros((1, len(model.species) + len(model.screenings)))
    m2 = squares[0, : len(model.species)]
    m2[:] = model.constant_mass_squared
    if not model.mass_coupling.any():
        return m2
    if start is not None and (np.asarray(start) >= 0).all():
        m2[:] = start
    number = model.degeneracy[None, :, None] * f
    if site_masses(number, 1.0, 0, 1, MassModel.of(grid, model).numbers, squares) >= 0:
        raise unsolved()
    return m2


def total_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Return the conserved energy, kinetic - (1/4) Sum_a (m_a^2 - m_a,0^2) Y_a [GeV fm^-3]."""
    y = coupling_integrals(grid, model, f, mass_squared)
    field = float(field_energy(model, mass_squared, y))
    return kinetic_energy(grid, model, f, mass_squared) + field
