"""Equilibrium at rest with given energy and charges, at many sites, by Newton's method.

The unknowns are beta = 1/T, alpha_c = mu_c/T of every charge and, for thermal masses, the squared
masses M_a. With x_a = beta E_a - Sum_c q_ca alpha_c, f = 1/(e^x - eta), g = f (1 + eta f) and
integrals over unlimited momentum space, the equations are

    Sum_a N_a Int f E - (1/4) Sum_a (M_a - M_a0) Y_a = e
    Sum_a q_ca N_a Int f = n_c              Y_a = N_a Int f/E
    M_a - M_a0 - Sum_b K_ab Y_b = 0
"""

import numpy as np
from numba import types

from ...util.jit import kernel
from .masses import gap
from .moments import compiled

TRIES = 80
CLOSE = 1e-12
"""Relative residual of energy, charges and masses at which the iteration has converged."""
ROUGH = 1e-9
"""Relative residual accepted if rounding prevents further progress."""
DEGENERATE, SURFACE = 3.0, 8.0
"""(mu - m)/T above which fermions have a Fermi surface, and its half width in units of T."""
# summed over momenta: f, f E, f/E, f/E^3, f p^2/E, g E^2, g E, g, g/E, g/E^2
F, FE, F_E, F_E3, FPP, GE2, GE, G, G_E, G_E2 = range(10)


def _missed(now, target, scale, model, points, sums, miss):
    """Fill the sums of every species and the residuals; return the largest, inf if illegal."""
    charges, degeneracy, statistics, coupling, constant = model
    radii, weights, nodes, shares = points
    many, kinds = charges.shape
    thermal = now.size > 1 + many
    beta = now[0]
    if not beta > 0.0:
        return np.inf
    for i in range(now.size):
        miss[i] = 0.0
    for a in range(kinds):
        m2, alpha = constant[a], 0.0
        if thermal:
            m2 = now[1 + many + a]
        for c in range(many):
            alpha += charges[c, a] * now[1 + c]
        if not m2 >= 0.0 or (statistics[a] > 0.0 and alpha > beta * np.sqrt(m2)):
            return np.inf
        for j in range(10):
            sums[a, j] = 0.0
        fermi, below, above, tail = 0.0, 0.0, 0.0, 0.0
        if statistics[a] < 0.0 and alpha - beta * np.sqrt(m2) > DEGENERATE:
            fermi = np.sqrt((alpha / beta) ** 2 - m2)  # f falls here within T dp/dE
            width = SURFACE * alpha / (beta * beta * fermi)
            below, above, tail = max(0.0, fermi - width), fermi + width, 4.0 / beta
        for i in range(radii.size):
            p, volume = scale * radii[i], scale**3 * weights[i]
            if fermi > 0.0:  # below, across and above the surface
                part, j = i // nodes.size, i % nodes.size
                p, step = below * nodes[j], below
                if part == 1:
                    p, step = below + (above - below) * nodes[j], above - below
                elif part == 2:
                    p, step = (
                        above + tail * nodes[j] / (1.0 - nodes[j]),
                        tail / (1.0 - nodes[j]) ** 2,
                    )
                volume = p * p * step * shares[j] / (2.0 * np.pi**2)
                if step == 0.0:
                    continue
            p2 = p * p
            e = np.sqrt(p2 + m2)
            _, f, g = compiled.thermal_terms(beta * e - alpha, statistics[a])
            if f < 0.0:
                return np.inf
            weight = degeneracy[a] * volume
            f *= weight
            g *= weight
            sums[a, F] += f
            sums[a, FE] += f * e
            sums[a, F_E] += f / e
            sums[a, F_E3] += f / (e * e * e)
            sums[a, FPP] += f * p2 / e
            sums[a, GE2] += g * e * e
            sums[a, GE] += g * e
            sums[a, G] += g
            sums[a, G_E] += g / e
            sums[a, G_E2] += g / (e * e)
        miss[0] += sums[a, FE]
        if thermal:
            miss[0] -= 0.25 * (m2 - constant[a]) * sums[a, F_E]
        for c in range(many):
            miss[1 + c] += charges[c, a] * sums[a, F]
    miss[0] = (miss[0] - target[0]) / abs(target[0])
    number = abs(target[0]) / scale
    for c in range(many):
        miss[1 + c] = (miss[1 + c] - target[1 + c]) / number
    if thermal:
        for a in range(kinds):
            gained = now[1 + many + a] - constant[a]
            for b in range(kinds):
                gained -= coupling[a, b] * sums[b, F_E]
            miss[1 + many + a] = gained / scale**2
    largest = 0.0
    for i in range(now.size):
        largest = max(largest, abs(miss[i]))
    return largest if np.isfinite(largest) else np.inf


def _slopes(now, target, scale, model, sums, matrix):
    """Fill the derivatives of the residuals, row by row."""
    charges, _, _, coupling, constant = model
    many, kinds = charges.shape
    n, beta = now.size, now[0]
    thermal = n > 1 + many
    energy, number = abs(target[0]), abs(target[0]) / scale
    for i in range(n * n):
        matrix[i] = 0.0
    for a in range(kinds):
        half = 0.0
        if thermal:
            half = 0.25 * (now[1 + many + a] - constant[a])
        matrix[0] += (-sums[a, GE2] + half * sums[a, G]) / energy
        for c in range(many):
            q, row = charges[c, a], 1 + c
            matrix[row] += q * (sums[a, GE] - half * sums[a, G_E]) / energy
            matrix[row * n] -= q * sums[a, GE] / number
            for d in range(many):
                matrix[row * n + 1 + d] += q * charges[d, a] * sums[a, G] / number
        if not thermal:
            continue
        place = 1 + many + a
        y_slope = -0.5 * sums[a, F_E3] - 0.5 * beta * sums[a, G_E2]
        e_slope = 0.5 * sums[a, F_E] - 0.5 * beta * sums[a, G]
        matrix[place] += (e_slope - 0.25 * sums[a, F_E] - half * y_slope) / energy
        for c in range(many):
            matrix[(1 + c) * n + place] -= charges[c, a] * 0.5 * beta * sums[a, G_E] / number
        for b in range(kinds):
            row, k = 1 + many + b, coupling[b, a] / scale**2
            matrix[row * n] += k * sums[a, G]
            for c in range(many):
                matrix[row * n + 1 + c] -= k * charges[c, a] * sums[a, G_E]
            matrix[row * n + place] -= k * y_slope
        matrix[place * n + place] += 1.0 / scale**2


missed = kernel(_missed, inlined=True)
slopes = kernel(_slopes, inlined=True)


@kernel
def local_states(targets, guesses, scales, model, points, found):
    """Fill beta, alpha_c, M_a and the pressure of every site; NaN where no state is found.

    targets : energy [GeV^4] and charge densities [GeV^3]; scales : momentum scales [GeV]; model :
    charges (charges, species), degeneracies, statistics, K and M_a0; points : radii and weights of
    d^3p/(2 pi)^3 in units of the scale, and nodes and weights on (0, 1), a third as many
    """
    n, many, kinds = guesses.shape[1], model[0].shape[0], model[0].shape[1]
    now, trial, miss, step = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    sums, matrix = np.zeros((kinds, 10)), np.zeros(n * n)
    for site in range(targets.shape[0]):
        target, scale = targets[site], scales[site]
        for i in range(n):
            now[i] = guesses[site, i]
        size = missed(now, target, scale, model, points, sums, miss)
        for _ in range(TRIES):
            if size <= CLOSE or not size < np.inf:
                break
            slopes(now, target, scale, model, sums, matrix)
            for i in range(n):
                step[i] = -miss[i]
            gap.eliminate(matrix, step, n)
            length, before = 1.0, size
            for _ in range(40):
                for i in range(n):
                    trial[i] = now[i] + length * step[i]
                size = missed(trial, target, scale, model, points, sums, miss)
                if size < before:
                    break
                length *= 0.5
            if not size < before:
                size = missed(now, target, scale, model, points, sums, miss)
                break
            for i in range(n):
                now[i] = trial[i]
        good = size <= ROUGH
        pressure = 0.0
        for a in range(kinds):
            pressure += sums[a, FPP] / 3.0
            if n > 1 + many:  # add the field contribution
                pressure += 0.25 * (now[1 + many + a] - model[4][a]) * sums[a, F_E]
        for i in range(n):
            found[site, i] = now[i] if good else np.nan
        found[site, n] = pressure if good else np.nan


VECTOR, MATRIX = (types.Array(types.float64, n, "C") for n in (1, 2))
KINDS = (MATRIX, MATRIX, VECTOR, types.Tuple((MATRIX, VECTOR, VECTOR, MATRIX, VECTOR)),
         types.UniTuple(VECTOR, 4), MATRIX)  # fmt: skip
JOB = (__name__, "local_states", KINDS)
"""Module, function name and argument types, for compilation in another process."""
