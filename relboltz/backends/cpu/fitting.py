"""Fits of thermal states at rest to sites: the Newton method of ``thermodynamics.fits``, compiled.

For matter at rest, the unknowns are beta and alpha_a only, and the alpha_a are coupled only through
beta: the Newton step needs no matrix.
"""

import numpy as np
from numba import types

from ...transport.moments import FIT_SUMS
from ...util.jit import kernel
from .moments import compiled

TRIES = 60
SHORTEST = 2.0**-30


def _add(theta, m2, momenta, weights, statistics, sums):
    """Fill the sums over the nodes of every species; return whether the state is legal."""
    for a in range(statistics.size):
        for j in range(FIT_SUMS):
            sums[a, j] = 0.0
        alpha = theta[4 + a]
        if alpha == -np.inf:
            continue
        for i in range(momenta.shape[1]):
            p = (momenta[0, i], momenta[1, i], momenta[2, i])
            if not compiled.add_fit_terms(
                theta, alpha, p, m2[a], statistics[a], weights[i], sums[a]
            ):
                return False
    return True


def _step(theta, target, degeneracy, sums, step):
    """Fill the Newton step; return ln Z - theta.target and the decrease predicted for the step."""
    value, slope, curve = -theta[0] * target[0], target[0], 0.0
    for a in range(degeneracy.size):
        slope += degeneracy[a] * sums[a, 2]
        curve += degeneracy[a] * sums[a, 8]
    first, rest = slope, curve * (1.0 + 1e-14)
    for a in range(degeneracy.size):
        if theta[4 + a] > -np.inf:
            n, ne, g = degeneracy[a] * sums[a, 1], degeneracy[a] * sums[a, 7], degeneracy[a]
            g *= sums[a, 6]
            value += degeneracy[a] * sums[a, 0] - theta[4 + a] * target[4 + a]
            first += ne / g * (target[4 + a] - n)
            rest -= ne * ne / g
    step[0] = first / rest
    promise = slope * step[0]
    for a in range(degeneracy.size):
        step[1 + a] = 0.0
        if theta[4 + a] > -np.inf:
            missing = target[4 + a] - degeneracy[a] * sums[a, 1]
            step[1 + a] = missing + degeneracy[a] * sums[a, 7] * step[0]
            step[1 + a] /= degeneracy[a] * sums[a, 6]
            promise += missing * step[1 + a]
    return value, promise


add = kernel(_add, inlined=True)
step_of = kernel(_step, inlined=True)


@kernel
def fit_at_rest(theta, targets, squares, nodes, species, found):
    """Fill the fitted theta of every row with a legal initial theta; NaN where none is found.

    targets : -E, P, N_a; nodes : momenta and weights; species : statistics and degeneracies
    """
    momenta, weights = nodes
    statistics, degeneracy = species
    kinds = statistics.size
    sums, step = np.zeros((kinds, FIT_SUMS)), np.zeros(1 + kinds)
    now, trial = np.zeros(4 + kinds), np.zeros(4 + kinds)
    for row in range(theta.shape[0]):
        target, m2 = targets[row], squares[row]
        for i in range(4 + kinds):
            now[i] = theta[row, i]
            found[row, i] = np.nan
        if not (now[0] > 0.0 and add(now, m2, momenta, weights, statistics, sums)):
            continue
        value, promise = step_of(now, target, degeneracy, sums, step)
        for _ in range(TRIES):
            scale = abs(now[0] * target[0])
            for a in range(kinds):
                if now[4 + a] > -np.inf:
                    scale += abs(now[4 + a] * target[4 + a])
            if not (promise >= 0.0 and np.isfinite(value)):
                break
            if promise <= 1e-20 * scale:
                for i in range(1, 4 + kinds):
                    found[row, i] = now[i] + (step[i - 3] if i > 3 else 0.0)
                found[row, 0] = now[0] + step[0]
                break
            length, gained, before = 1.0, promise, value
            while length > SHORTEST:
                trial[0] = now[0] + length * step[0]
                for a in range(kinds):
                    trial[4 + a] = now[4 + a] + length * step[1 + a]
                legal = trial[0] > 0.0 and add(trial, m2, momenta, weights, statistics, sums)
                if legal:
                    value = -trial[0] * target[0]
                    for a in range(kinds):
                        if trial[4 + a] > -np.inf:
                            value += degeneracy[a] * sums[a, 0] - trial[4 + a] * target[4 + a]
                    falls = value - before <= -0.1 * length * gained
                    if falls or gained <= 1e-15 * scale:  # rounding hides the gain
                        break
                length *= 0.5
            if length <= SHORTEST:
                break
            for i in range(4 + kinds):
                now[i] = trial[i]
            value, promise = step_of(now, target, degeneracy, sums, step)


VECTOR, MATRIX = (types.Array(types.float64, n, "C") for n in (1, 2))
KINDS = (MATRIX, MATRIX, MATRIX, types.Tuple((MATRIX, VECTOR)),
         types.UniTuple(VECTOR, 2), MATRIX)  # fmt: skip
JOB = (__name__, "fit_at_rest", KINDS)
"""Module, function name and argument types, for compilation in another process."""
