"""A gas in equilibrium on points of momentum space, and its dual problem.

An equilibrium state maximises the entropy at given conserved quantities. The dual problem is
convex in (1/T, v/T, mu/T), so one damped Newton iteration finds every such state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..model.model import Model
from ..util.arrays import Array, Flags, Integers

Indices = NDArray[np.intp]
SOFT_CELLS = 3.6
"""Cells within this many spacings per axis of a singular momentum use cell averages."""


def occupation(x: Array, eta: int) -> Array:
    """Return 1/(e^x - eta) without overflow, accurate for bosons at small x."""
    x = np.clip(x, -700.0, 700.0)
    if eta == 1:
        with np.errstate(divide="ignore"):
            return 1 / np.expm1(x)
    z = np.exp(-x)
    return z / (1 - eta * z)


def fluid_energy(p: Sequence[Array] | Array, m2: float, velocity: Sequence[float] | Array) -> Array:
    """Return the energy u.p = gamma (E - v.p) of momenta (3, ...) in a moving fluid [GeV]."""
    (px, py, pz), (vx, vy, vz) = p, velocity
    gamma = 1 / math.sqrt(1 - vx**2 - vy**2 - vz**2)
    return gamma * (np.sqrt(px**2 + py**2 + pz**2 + m2) - (vx * px + vy * py + vz * pz))


Vectors = dict[float, Array]
"""(E - drift, -p, -1) at the points, by squared mass."""
Densities = tuple[Array, Array]
Refined = tuple[Integers, Array, Array]


def refine(grid: PhaseSpace, centre: Array, levels: int = 7) -> Refined:
    """Return points that resolve an integrable singularity at a momentum ``centre`` [GeV].

    Cells near the singularity are halved repeatedly towards it; the pieces carry 2^3 Gauss points.
    Returns each point's cell, its momentum (3, n) and its share of the cell.
    """
    spacing = np.array(grid.spacing)[:, None]
    centre = np.asarray(centre, float)[:, None]
    cells = np.flatnonzero((abs(grid.momenta - centre) < SOFT_CELLS * spacing).all(axis=0))
    middle, size = grid.momenta[:, cells], 1.0
    octant = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, 1, 8)
    found: list[Refined] = []
    for level in range(levels + 1):
        near = (abs(middle - centre) < 1.01 * size * spacing).all(axis=0) & (level < levels)
        gauss = middle[:, ~near, None] + octant * (size * spacing / np.sqrt(3))[:, None]
        share = np.full(gauss[0].size, size**3 / 8)
        found.append((np.repeat(cells[~near], 8), gauss.reshape(3, -1), share))
        pieces = middle[:, near, None] + octant * (0.5 * size * spacing)[:, None]
        cells, middle, size = np.repeat(cells[near], 8), pieces.reshape(3, -1), 0.5 * size
    cell, points, parts = zip(*found, strict=True)
    return np.concatenate(cell), np.concatenate(points, axis=1), np.concatenate(parts)


@dataclass(frozen=True)
class Gas:
    """Points in momentum space and the species present on them.

    The unknowns are theta = (beta, beta v_i of the flowing axes, alpha_k of the charges), and
    x_a = theta . (E - drift, -p, -q_a). A prescribed velocity enters through the drift.
    """

    momenta: Array  # (flowing axes, points) [GeV]
    momentum_squared: Array  # (points) [GeV^2]
    drift: Array  # (points) v.p [GeV]
    weight: Array  # (points) [fm^-3]
    degeneracy: Array  # (species present)
    statistics: Integers
    charges: Array  # (charges, species present)
    gamma: float = 1.0
    mode: float = 0.0
    """Weight [fm^-3] of one additional state of each boson, at rest in the fluid: the
    condensate.
    """

    def vectors(self, m2: float) -> Array:
        """Return (E - drift, -p, -1) at the points."""
        energy = np.sqrt(self.momentum_squared + m2) - self.drift
        return np.concatenate([energy[None], -self.momenta, -np.ones((1, len(energy)))])

    def potentials(self, theta: Array) -> Array:
        """Return alpha_a = mu_a/T of the species present."""
        return theta[1 + len(self.momenta) :] @ self.charges

    def condensed(self, m2: Array, theta: Array) -> Array:
        """Return particles in the modes of the species present [fm^-3]; NaN where mu >= m/gamma."""
        x = theta[0] * np.sqrt(m2) / self.gamma - self.potentials(theta)
        x = np.where(x > 0, np.minimum(x, 700.0), np.nan)
        return np.where(self.statistics == 1, self.mode / np.expm1(x), 0.0)

    def densities(self, vectors: Vectors, m2: Array, theta: Array) -> Densities | None:
        """Return conserved densities (E, -P, -Q) and minus their derivative; None if any x <= 0."""
        d = 1 + len(self.momenta)
        sums, matrix = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        blocks: dict[tuple[float, int, float], Densities] = {}  # identical species are summed once
        for a, (alpha, eta) in enumerate(zip(self.potentials(theta), self.statistics, strict=True)):
            key = (m2[a], eta, alpha)
            if key not in blocks:
                phi = vectors[m2[a]]
                x = theta[:d] @ phi[:d] - alpha
                if eta == 1 and x.min() <= 0:
                    return None
                f = occupation(x, eta)
                fluctuation = self.weight * f * (1 + eta * f)
                blocks[key] = phi @ (self.weight * f), (phi * fluctuation) @ phi.T
            spread = np.eye(len(theta), d + 1)  # maps (E, -p, -1) to the derivatives by theta
            spread[d:, d] = self.charges[:, a]
            sums += self.degeneracy[a] * (spread @ blocks[key][0])
            matrix += self.degeneracy[a] * (spread @ blocks[key][1] @ spread.T)
        if self.mode:
            for a, number in enumerate(self.condensed(m2, theta)):
                phi = np.concatenate([[np.sqrt(m2[a]) / self.gamma], -self.charges[:, a]])
                sums += number * phi
                matrix += number * (1 + number / self.mode) * np.outer(phi, phi)
        return (sums, matrix) if np.isfinite(sums).all() else None

    def occupations(self, m2: Array, theta: Array) -> Array:
        """Return f (species present, points)."""
        d = 1 + len(self.momenta)
        rows = zip(m2, self.potentials(theta), self.statistics, strict=True)
        return np.array(
            [occupation(theta[:d] @ self.vectors(m)[:d] - alpha, eta) for m, alpha, eta in rows]
        )

    def coupling_integrals(self, m2: Array, theta: Array, at_rest: float) -> Array:
        """Return Y_a of the species present, including the condensate [GeV^2]."""
        energy = np.sqrt(self.momentum_squared + m2[:, None])
        f = self.occupations(m2, theta) / np.where(energy > 0, energy, 1 / at_rest)
        y = self.degeneracy * (f @ self.weight)
        if self.mode:
            massive = np.sqrt(np.where(m2 > 0, m2, np.inf))  # massless: no contribution
            y += self.condensed(m2, theta) / (self.gamma * massive)
        return y * HBARC**3

    @np.errstate(all="ignore")  # the iteration diverges if there is no state
    def newton(self, m2: Array, target: Array, theta: Array) -> Array | None:
        """Return the theta with the densities ``target`` = (E, -P, -Q); None if there is none."""
        vectors = {m: self.vectors(m) for m in m2}
        state = self.densities(vectors, m2, theta)
        for _ in range(100):
            if state is None:
                return None
            excess = state[0] - target
            try:
                step: Any = np.linalg.solve(state[1], excess)
            except np.linalg.LinAlgError:
                return None
            descent = excess @ step  # Newton decrement squared, in particles per fm^3
            if not np.isfinite(descent) or descent < -1e-20 * abs(target).max():
                return None
            if descent <= 1e-20 * abs(target).max():
                frozen = np.diag(state[1]) <= 1e-11 * abs(target)  # a full Fermi sea: any low T
                return None if frozen.any() else theta + step
            length = 1.0  # as far along the step as the convex dual keeps decreasing, or nearly
            for _ in range(60):
                trial = theta + length * step
                state = self.densities(vectors, m2, trial)
                slope = 0.0 if state is None else float((state[0] - target) @ step)
                if state is not None and slope >= -0.5 * descent:
                    break
                shorter = min(0.8, max(0.1, float(descent / (descent - slope))))
                length *= 0.5 if state is None else shorter
            else:
                return None
            theta = trial
        return None


def gas_on(
    points: tuple[Array, Array],
    model: Model,
    charges: tuple[Indices, Array],
    flowing: Flags | None = None,
    velocity: Array | None = None,
    mode: float = 0.0,
) -> Gas:
    """Return the gas on points, with unknown velocity along the flowing axes or a given velocity.

    points: momenta (3, n) [GeV] and weights [fm^-3]; charges: species present and their charges.
    """
    (p, weight), (present, q) = points, charges
    v = np.zeros(3) if velocity is None else velocity
    axes = np.zeros(3, dtype=bool) if flowing is None else flowing
    if not axes.any() and not v.any():  # only |p| matters
        p, weight = _merged(p, weight)
    p2 = (p**2).sum(axis=0)
    n, eta = model.degeneracy[present], model.statistics[present]
    return Gas(p[axes], p2, v @ p, weight, n, eta, q, float(1 / np.sqrt(1 - v @ v)), mode)


def nodes(grid: PhaseSpace) -> tuple[Array, Array]:
    """Return momenta (3, n) [GeV] and weights [fm^-3] of the nodes."""
    return grid.momenta, np.full(grid.size, grid.measure)


@lru_cache(maxsize=8)
def nodes_by_energy(grid: PhaseSpace) -> tuple[Array, Array]:
    """Return one point for all nodes of equal |p|, sufficient for a gas at rest."""
    return _merged(*nodes(grid))


def _merged(p: Array, weight: Array) -> tuple[Array, Array]:
    """Merge points of equal |p|, adding up their weights."""
    p2 = (p**2).sum(axis=0)
    unit = 1e-12 * max(p2.max(), 1e-300)
    _, first, group = np.unique(np.round(p2 / unit), return_index=True, return_inverse=True)
    return p[:, first], np.bincount(group, weight).astype(float)


def resolved(grid: PhaseSpace, centre: Array) -> tuple[Array, Array]:
    """Return momenta and weights of the nodes, with the cells near ``centre`` refined."""
    cell, points, share = refine(grid, centre)
    others = np.setdiff1d(np.arange(grid.size), cell)
    share = np.concatenate([np.ones(len(others)), share])
    return np.concatenate([grid.momenta[:, others], points], axis=1), grid.measure * share


def cold_start(gas: Gas, number: float, energy: float) -> Array:
    """Return theta of a dilute gas at rest, inside the domain of every statistics."""
    beta = 3 * number / energy
    alpha = np.linalg.lstsq(gas.charges.T, -np.ones(gas.charges.shape[1]), rcond=None)[0]
    return np.array([beta, *np.zeros(len(gas.momenta)), *alpha])
