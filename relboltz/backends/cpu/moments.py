"""Sums over the nodes of many sites on the CPU."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...transport.moments import FIT_SUMS, FUNCTIONS, SUMS, Marginal, Shells, halves_of
from ...util.arrays import Integers
from ...util.jit import build, kernel, scalar

compiled = build(FUNCTIONS, scalar)
PART = 512
"""Nodes per partial sum: rounding grows as the roots of this and of the number of partial sums."""


@kernel
def measure_sites(number, unit, species, squares, nodes, final, span, room):
    """Fill the moments of the sites in ``span`` (first, last + 1).

    species : (species, 2), degeneracy and statistics; nodes : see ``tables``; final : the f from
    which distances are measured; room : planes of three axes, shells, sums
    """
    momenta, halves, packed, shell, at_rest = nodes
    x, y, z, shells, sums = room
    n = number.shape[2]
    for site in range(span[0], span[1]):
        for a in range(number.shape[1]):
            scale, eta, m2 = unit / species[a, 0], species[a, 1], squares[site, a]
            for j in range(SUMS):  # element by element: whole rows take Numba long to compile
                sums[site, a, j] = 0.0
            for begin in range(0, n, PART):
                part = np.zeros(SUMS)
                for i in range(begin, min(begin + PART, n)):
                    held = number[site, a, i]
                    x[site, packed[i] & 1023] += held
                    y[site, (packed[i] >> 10) & 1023] += held
                    z[site, packed[i] >> 20] += held
                    shells[site, a, shell[i]] += held
                    p = (momenta[0, i], momenta[1, i], momenta[2, i])
                    compiled.add_moments(
                        held * scale, p, halves, m2, eta, at_rest, final[a, i], part
                    )
                for j in range(SUMS):
                    sums[site, a, j] += part[j]


def tables(grid: PhaseSpace, shells: Shells) -> tuple[Any, ...]:
    """Return the node tables for ``measure_sites``."""
    return grid.momenta, halves_of(grid), grid.packed, shells.index, grid.rest_inverse_energy


@kernel
def entropy_sum(f, eta):
    """Sum the entropy over the nodes."""
    total = 0.0
    for begin in range(0, f.size, PART):
        part = 0.0
        for i in range(begin, min(begin + PART, f.size)):
            part += compiled.entropy_term(f[i], eta)
        total += part
    return total


@kernel
def add_up(number, sites, nodes, high, low):
    """Add all cells to their sums, stored as two words."""
    for site in range(number.shape[0]):
        for a in range(number.shape[1]):
            for i in range(number.shape[2]):
                place = sites[site] + nodes[i]
                high[a, place] += number[site, a, i] >> 32
                low[a, place] += number[site, a, i] & 0xFFFFFFFF


def marginal(grid: PhaseSpace, number: Integers, kept: Sequence[str]) -> tuple[Integers, Integers]:
    """Sum a state (sites, species, nodes) exactly over all of x, y, z, px, py, pz except ``kept``.

    Returns two arrays (species, cells of the kept directions...): the parts above and below 2^32.
    """
    into = Marginal.of(grid, number.shape[1], kept)
    high = np.zeros((number.shape[1], int(np.prod(into.shape[1:]))), np.int64)
    low = np.zeros_like(high)
    add_up(number, into.sites, into.nodes, high, low)
    return high.reshape(into.shape), low.reshape(into.shape)


@kernel
def fit_sums(theta, squares, which, momenta, weights, statistics, first, last, sums):
    """Sum over the nodes at the sites which[first] to which[last]; ln Z is inf if f is illegal."""
    for row in range(first, last):
        for a in range(statistics.size):
            s = np.zeros(FIT_SUMS)
            alpha, m2 = theta[row, 4 + a], squares[which[row], a]
            if alpha != -np.inf:
                for i in range(momenta.shape[1]):
                    p = (momenta[0, i], momenta[1, i], momenta[2, i])
                    eta, many = statistics[a], weights[i]
                    if not compiled.add_fit_terms(theta[row], alpha, p, m2, eta, many, s):
                        break
            for j in range(FIT_SUMS):
                sums[row, a, j] = s[j]
