"""Temperature, chemical potentials and velocity at many sites.

The thermal state with given numbers N_a, momentum P and kinetic energy E minimises the convex
function ln Z(theta) + beta E - b.P - Sum alpha_a N_a of theta = (beta, b, alpha_a), where
f_a = 1 / (exp(beta E_a - b.p - alpha_a) - eta). Newton's method with shortened steps finds it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .compiling import kernel
from .grid import PhaseSpace
from .masses import _eliminate
from .model import Model

Array = NDArray[np.float64]


@kernel
def _evaluate(theta, momenta, axes, energy, species, present, gradient, hessian):
    """ln Z, and its gradient and Hessian in theta; infinite outside the domain."""
    d = axes.size
    size = theta.size
    gradient[:] = 0.0
    hessian[:] = 0.0
    value = 0.0
    v = np.zeros(size)
    for row in range(present.size):
        a = present[row]
        weight, eta = species[a, 0], species[a, 1]
        k = 1 + d + row
        f_sum, fe_sum, g_sum, ge_sum, gee_sum = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(momenta.shape[1]):
            e = energy[row, i]
            x = theta[0] * e - theta[k]
            for c in range(d):
                x -= theta[1 + c] * momenta[axes[c], i]
            if eta > 0.0 and x <= 0.0:
                return np.inf
            small = np.exp(-x)
            if not small < 1e300:
                return np.inf
            f = small / (1.0 - eta * small)
            value += weight * (-eta * np.log1p(-eta * small) if eta != 0.0 else small)
            g = f * (1.0 + eta * f)
            f_sum += f
            fe_sum += f * e
            g_sum += g
            ge_sum += g * e
            gee_sum += g * e * e
            for c in range(d):
                p = momenta[axes[c], i]
                v[1 + c] = p
                gradient[1 + c] += weight * f * p
                hessian[(1 + c) * size] -= weight * g * e * p
                hessian[(1 + c) * size + k] += weight * g * p
                for b in range(c + 1):
                    hessian[(1 + c) * size + 1 + b] += weight * g * p * v[1 + b]
        gradient[0] -= weight * fe_sum
        gradient[k] += weight * f_sum
        hessian[0] += weight * gee_sum
        hessian[k * size] -= weight * ge_sum
        hessian[k * size + k] += weight * g_sum
        for c in range(d):
            hessian[k * size + 1 + c] = hessian[(1 + c) * size + k]
    for r in range(size):
        for c in range(r):
            hessian[c * size + r] = hessian[r * size + c]
    return value


@kernel
def fit_sites(targets, squares, momenta, axes, species, first, last, start, found):
    """Fit the sites first to last.

    targets : (sites, 4 + species): energy, momentum, numbers, all as sums over nodes
    start : (sites, 4 + species), theta of a similar state or NaN; found : theta, NaN if none
    """
    n = momenta.shape[1]
    for site in range(first, last):
        found[site] = np.nan
        goal = targets[site]
        total = goal[4:].sum()
        present = np.flatnonzero(goal[4:] > 1e-12 * total)
        if present.size == 0 or not goal[0] > 0.0:
            continue
        d = axes.size
        size = 1 + d + present.size
        energy = np.empty((present.size, n))
        for row in range(present.size):
            m2 = squares[site, present[row]]
            for i in range(n):
                p2 = momenta[0, i] ** 2 + momenta[1, i] ** 2 + momenta[2, i] ** 2
                energy[row, i] = np.sqrt(p2 + m2)
        target = np.empty(size)
        target[0] = -goal[0]
        theta = np.zeros(size)
        for c in range(d):
            target[1 + c] = goal[1 + axes[c]]
        for row in range(present.size):
            target[1 + d + row] = goal[4 + present[row]]
        warm = np.isfinite(start[site, 0])
        for row in range(present.size):
            warm = warm and np.isfinite(start[site, 4 + present[row]])
        if warm:
            theta[0] = start[site, 0]
            for c in range(d):
                theta[1 + c] = start[site, 1 + axes[c]]
            for row in range(present.size):
                theta[1 + d + row] = start[site, 4 + present[row]]
        for attempt in range(2):
            if attempt == 1 or not warm:  # a dilute gas: alpha for which Boltzmann has the number
                theta[:] = 0.0
                theta[0] = 3.0 * total / goal[0]
                for row in range(present.size):
                    a = present[row]
                    z = species[a, 0] * np.exp(-theta[0] * energy[row]).sum()
                    theta[1 + d + row] = min(
                        np.log(goal[4 + a] / z), 0.9 * theta[0] * energy[row].min() - 1e-3
                    )
            if _newton(theta, target, momenta, axes, energy, species, present):
                found[site, 0] = theta[0]
                found[site, 1:4] = 0.0
                for c in range(d):
                    found[site, 1 + axes[c]] = theta[1 + c]
                for row in range(present.size):
                    found[site, 4 + present[row]] = theta[1 + d + row]
                break
            if not warm:
                break


@kernel
def _newton(theta, target, momenta, axes, energy, species, present):
    """Minimise ln Z - theta.target in place; whether it converged."""
    size = theta.size
    gradient, hessian = np.zeros(size), np.zeros(size * size)
    spare, matrix = np.zeros(size), np.zeros(size * size)
    value = _evaluate(theta, momenta, axes, energy, species, present, gradient, hessian)
    for _ in range(200):
        if not np.isfinite(value):
            return False
        step = target - gradient
        slope = step.copy()
        matrix[:] = hessian
        _eliminate(matrix, step, size)
        decrement = (slope * step).sum()
        if not np.isfinite(decrement) or decrement < 0.0:
            return False
        scale = np.abs(theta * target).sum()
        if decrement <= 1e-26 * scale:
            return True
        length = 1.0
        while True:
            trial = theta + length * step
            new = _evaluate(trial, momenta, axes, energy, species, present, spare, matrix)
            gain = (new - value) - length * (step * target).sum()
            if gain <= -0.1 * length * decrement or decrement <= 1e-15 * scale:
                break
            length *= 0.5
            if length < 1e-10:
                return False
        if not np.isfinite(new):
            return False
        theta[:] = trial
        value = new
        gradient[:] = spare
        hessian[:] = matrix
        if decrement <= 1e-20 * scale:
            return True
    return False


class Fits:
    """Thermal states that match the sites of a run; each record starts from the last."""

    def __init__(self, grid: PhaseSpace, model: Model, each: Callable[[Callable, int], None]):
        """each : calls function(first, last) on parts of range(n), on all threads"""
        self._grid, self._each = grid, each
        self._species = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self._axes = np.array([i for i in range(3) if grid.momentum_cells[i] > 1], np.int64)
        self._theta = np.full((grid.sites, 4 + len(model.species)), np.nan)

    def match(
        self, numbers: Array, momentum: Array, energy: Array, squares: Array
    ) -> tuple[Array, Array, Array]:
        """T (sites), mu (sites, species) [GeV] and velocity (sites, 3); NaN where there is none.

        numbers (sites, species) [fm^-3], momentum (sites, 3) and energy [GeV fm^-3]; squared
        masses (sites, species + 1) [GeV^2].
        """
        targets = np.column_stack([energy, momentum, numbers]) / self._grid.measure
        found = np.full_like(self._theta, np.nan)
        momenta = self._grid.momenta

        def work(first: int, last: int) -> None:
            fit_sites(
                targets, squares, momenta, self._axes, self._species, first, last, self._theta,
                found,
            )  # fmt: skip

        self._each(work, len(targets))
        self._theta = found
        beta, velocity = found[:, 0], found[:, 1:4] / found[:, :1]
        speed2 = (velocity**2).sum(axis=1)
        fluid = (beta > 0) & (speed2 < 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            temperature = np.where(fluid, 1 / (beta * np.sqrt(1 - speed2)), np.nan)
        mu = np.where(fluid[:, None], found[:, 4:] * temperature[:, None], np.nan)
        return temperature, mu, np.where(fluid[:, None], velocity, np.nan)
