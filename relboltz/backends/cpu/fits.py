"""Sums over the nodes for fits of thermal states, on the CPU."""

import numpy as np

from ...compiling import build, kernel, scalar
from ...equilibrium.fits import FIT_SUMS, FUNCTIONS, Sums
from ...equilibrium.gas import nodes, nodes_by_energy
from ...grid import PhaseSpace
from ...model import Model

compiled = build(FUNCTIONS, scalar)


@kernel
def fit_sums(theta, squares, which, momenta, weights, statistics, first, last, sums):
    """Sums over the nodes at the sites which[first] to which[last]; ln Z is inf outside."""
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
            sums[row, a] = s


def sums_over(grid: PhaseSpace, model: Model, at_rest: bool = False) -> Sums:
    """The sums; where nothing flows one node stands for all of the same |p|."""
    momenta, density = nodes_by_energy(grid) if at_rest else nodes(grid)
    weights, statistics = density / grid.measure, model.statistics.astype(float)

    def sums(theta, squares, which):
        found = np.zeros((len(which), len(statistics), FIT_SUMS))
        fit_sums(theta, squares, which, momenta, weights, statistics, 0, len(which), found)
        return found

    return sums
