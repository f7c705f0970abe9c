"""Temperature, chemical potentials and velocity at many sites.

The thermal state with given numbers N_a, momentum P and kinetic energy E minimises the convex
function ln Z(theta) + beta E - b.P - Sum alpha_a N_a of theta = (beta, b, alpha_a), where
f_a = 1 / (exp(beta E_a - b.p - alpha_a) - eta). A damped Newton method finds the minimum for
all sites at once; the backend that holds the state computes the sums over the nodes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..backends.cpu.fitting import fit_at_rest
from ..backends.cpu.moments import fit_sums
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..transport.moments import FIT_SUMS
from ..util.arrays import Array, Flags, Integers
from .conserved import NO_FLOW
from .gas import nodes, nodes_by_energy

Sums = Callable[[Array, Array, Integers], Array]
"""(theta, squared masses, sites) -> FIT_SUMS numbers for each of these sites and each species."""

DILUTE = 30.0
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
MOST_TRIES = 400
FLAT = 1e-9
"""p_max/T below which f is flat up to rounding: it fills the box uniformly and has no T."""
SHORTEST = 2.0**-40
"""Fraction of a Newton step below which the iteration stops."""


class Fits:
    """Thermal states that match the sites of a run."""

    def __init__(self, grid: PhaseSpace, model: Model, sums: Sums | None = None):
        """sums : sums over all nodes if other than those of this process"""
        self.grid, self._model = grid, model
        self._all = sums_over(grid, model) if sums is None else sums
        self._at_rest = sums_over(grid, model, at_rest=True)

    def match(
        self,
        numbers: Array,
        momentum: Array,
        energy: Array,
        squares: Array,
        start: Array | None = None,
    ) -> tuple[Array, Array, Array, Array]:
        """Return T (sites), mu (sites, species) [GeV], velocity (sites, 3) and theta.

        All values are NaN without a fit.

        start : theta of a similar state, such as that of the last record
        numbers (sites, species) [fm^-3], momentum (sites, 3) and energy [GeV fm^-3]; squared
        masses (sites, species and screenings) [GeV^2].
        """
        target = np.column_stack([-energy, momentum, numbers]) / self.grid.measure
        there = numbers > 1e-12 * numbers.sum(axis=1, keepdims=True)
        flows = bool((abs(momentum) > NO_FLOW * abs(energy)[:, None]).any())
        self._sums = self._all if flows else self._at_rest
        axes = np.array([flows and n > 1 for n in self.grid.momentum_cells])
        used = np.column_stack([np.ones(len(target), bool), np.tile(axes, (len(target), 1)), there])
        theta = np.where(used, np.nan if start is None else start, 0.0)
        cold = ~np.isfinite(theta).all(axis=1)
        theta[:, 4:][~there] = -np.inf
        filled = there.any(axis=1) & (energy > 0)
        found = self._near(theta, target, squares) if not flows else np.full_like(theta, np.nan)
        found[cold] = np.nan  # such as where a new species has appeared
        left = filled & np.isnan(found[:, 0])
        if left.any():
            self._start_cold(theta, target, squares, np.flatnonzero(cold & left), there)
            again = self._newton(theta, target, used, squares, left)
            found[left] = again[left]
        missed = filled & np.isnan(found[:, 0]) & ~cold  # the guess from the last record failed
        if missed.any():
            self._start_cold(theta, target, squares, np.flatnonzero(missed), there)
            again = self._newton(theta, target, used, squares, missed)
            found[missed] = again[missed]
        return *self._parameters(found, there), found

    def _near(self, theta: Array, target: Array, squares: Array) -> Array:
        """Return theta of sites without flow, from a similar state; NaN where this fails."""
        found, sums = np.empty(theta.shape), self._at_rest
        theta, target, squares = map(np.ascontiguousarray, (theta, target, squares))
        fit_at_rest(
            theta, target, squares, (sums.momenta, sums.weights),
            (sums.statistics, self._model.degeneracy), found,
        )  # fmt: skip
        return found

    def _parameters(self, theta: Array, there: Flags) -> tuple[Array, Array, Array]:
        """Return T, mu and velocity from theta = (gamma/T, gamma v/T, mu/T)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            beta, velocity = theta[:, 0], theta[:, 1:4] / theta[:, :1]
            speed2 = (velocity**2).sum(axis=1)
            fluid = (beta * max(self.grid.momentum_max) > FLAT) & (speed2 < 1)
            temperature = np.where(fluid, 1 / (beta * np.sqrt(1 - speed2)), np.nan)
        mu = np.where(there & fluid[:, None], theta[:, 4:] * temperature[:, None], np.nan)
        return temperature, mu, np.where(fluid[:, None], velocity, np.nan)

    def _start_cold(
        self, theta: Array, target: Array, squares: Array, which: Integers, there: Flags
    ) -> None:
        """Set theta to a dilute gas at rest, with the alpha that gives the Boltzmann numbers."""
        if not len(which):
            return
        number = target[which, 4:]
        theta[which] = 0.0
        theta[which, 0] = 3.0 * number.sum(axis=1) / -target[which, 0]
        theta[which, 4:] = np.where(there[which], -DILUTE, -np.inf)
        weight = self._model.degeneracy * self._sums(theta[which], squares, which)[:, :, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            alpha = np.log(number / weight) - DILUTE
        m2 = squares[which, : len(self._model.species)]
        least = np.sqrt(m2 + self.grid.momentum_squared.min())
        highest = 0.9 * theta[which, :1] * least - 1e-3
        theta[which, 4:] = np.where(there[which], np.minimum(alpha, highest), -np.inf)

    def _evaluate(
        self, theta: Array, squares: Array, which: Integers
    ) -> tuple[Array, Array, Array]:
        """Return ln Z, its gradient and its Hessian in theta at some sites."""
        sums = self._sums(theta, squares, which) * self._model.degeneracy[:, None]
        n, kinds = len(which), sums.shape[1]
        value = sums[:, :, 0].sum(axis=1)
        gradient = np.zeros((n, 4 + kinds))
        gradient[:, 0] = -sums[:, :, 2].sum(axis=1)
        gradient[:, 1:4] = sums[:, :, 3:6].sum(axis=1)
        gradient[:, 4:] = sums[:, :, 1]
        hessian = np.zeros((n, 4 + kinds, 4 + kinds))
        hessian[:, 0, 0] = sums[:, :, 8].sum(axis=1)
        hessian[:, 0, 1:4] = -sums[:, :, 9:12].sum(axis=1)
        for k, (i, j) in enumerate(PAIRS):
            hessian[:, 1 + i, 1 + j] = hessian[:, 1 + j, 1 + i] = sums[:, :, 15 + k].sum(axis=1)
        species = np.arange(4, 4 + kinds)
        hessian[:, 0, 4:] = -sums[:, :, 7]
        hessian[:, 1:4, 4:] = np.moveaxis(sums[:, :, 12:15], 1, 2)
        hessian[:, species, species] = sums[:, :, 6]
        hessian[:, 1:, 0] = hessian[:, 0, 1:]
        hessian[:, 4:, 1:4] = np.moveaxis(hessian[:, 1:4, 4:], 1, 2)
        return value, gradient, hessian

    def _newton(
        self, theta: Array, target: Array, used: Flags, squares: Array, wanted: Flags
    ) -> Array:
        """Minimise ln Z - theta.target at the wanted sites; theta is NaN where this fails."""
        result = np.full_like(theta, np.nan)
        which = np.flatnonzero(wanted)
        now, goal, mask, length = theta[which], target[which], used[which], np.ones(len(which))
        value, gradient, hessian = self._evaluate(now, squares, which)
        step, promise = _newton_step(gradient, hessian, goal, mask)
        for _ in range(MOST_TRIES):
            scale = np.abs(np.where(mask, now, 0.0) * goal).sum(axis=1)
            sound = np.isfinite(value) & np.isfinite(promise) & (promise >= 0)
            close = sound & (promise <= 1e-20 * scale)
            result[which[close]] = (now + step)[close]
            keep = sound & ~close & (length > SHORTEST)
            if not keep.any():
                break
            which, now, goal, mask, length, value, step, promise, scale = (
                v[keep] for v in (which, now, goal, mask, length, value, step, promise, scale)
            )
            trial = now + length[:, None] * step
            values, gradient, hessian = self._evaluate(trial, squares, which)
            gain = (values - value) - length * (step * goal).sum(axis=1)
            fine = gain <= -0.1 * length * promise  # the convex function decreases
            fine |= promise <= 1e-15 * scale  # rounding hides the gain
            fine &= np.isfinite(values)
            steps, promises = _newton_step(gradient, hessian, goal, mask)
            now, step = (np.where(fine[:, None], *v) for v in ((trial, now), (steps, step)))
            value, promise = (np.where(fine, *v) for v in ((values, value), (promises, promise)))
            length = np.where(fine, 1.0, 0.5 * length)
        return result


def _newton_step(gradient: Array, hessian: Array, goal: Array, used: Flags) -> tuple[Array, Array]:
    """Return Newton's step in the unknowns used, and the decrease it predicts."""
    slope = np.where(used, goal - gradient, 0.0)
    both = used[:, :, None] & used[:, None, :]
    diagonal = np.einsum("nii->ni", hessian)
    size = np.sqrt(np.where(used & (diagonal > 0), diagonal, 1.0))
    matrix = np.where(both, hessian / (size[:, :, None] * size[:, None, :]), 0.0)
    matrix += np.where(used, 1e-14, 1.0)[:, :, None] * np.eye(used.shape[1])
    bad = ~np.isfinite(matrix).all(axis=(1, 2))
    matrix[bad] = np.eye(used.shape[1])
    step = np.linalg.solve(matrix, (slope / size)[:, :, None])[:, :, 0] / size
    decrement = np.where(bad, np.nan, (slope * step).sum(axis=1))
    return step, decrement


@dataclass(frozen=True)
class NodeSums:
    """Sums over nodes with weights."""

    momenta: Array
    weights: Array
    statistics: Array

    def __call__(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Return FIT_SUMS numbers for each of the sites and species."""
        found = np.zeros((len(which), len(self.statistics), FIT_SUMS))
        fit_sums(
            theta, squares, which, self.momenta, self.weights, self.statistics, 0, len(which), found
        )
        return found


def sums_over(grid: PhaseSpace, model: Model, at_rest: bool = False) -> NodeSums:
    """Return the sums over nodes; for matter at rest, nodes of equal |p| are merged."""
    momenta, density = nodes_by_energy(grid) if at_rest else nodes(grid)
    points = np.ascontiguousarray(momenta)
    return NodeSums(points, density / grid.measure, model.statistics.astype(float))
