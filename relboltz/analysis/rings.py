"""Rings of transverse momentum, and how particles are distributed over their directions.

Particles are known in columns of nodes (p_x, p_y). A sum of exp(i n phi) over nodes would show the
directions of the lattice, the more so at small p_T, where these are few. Instead ln N between nodes
is cubic, and sums are taken over points of circles. The error that this makes for a smooth spectrum
that nearly is N, of which the sums are known, is subtracted.
"""

from collections.abc import Iterator
from itertools import permutations
from numbers import Integral
from typing import Any

import numpy as np

from ..util.arrays import Array, Flags

RADII = 4
"""Circles in a ring."""
ANGLES = 4
"""Points of a circle for each node along the longer axis: at most a cell apart."""
BEND = 0.5
"""What ln N may depart from a straight line between neighbours: fronts overshoot by exp(BEND)."""
DENSER = 0.5
"""Knots of round spectra are this much closer at p_T = 0, where nodes are all that is known."""
HARMONICS, COARSER = (2, 4), 2.0
"""What is fitted beside it, lest it count as round, with knots so much further apart."""
POWER = 1
"""Harmonics begin as this power of p_T at p_T = 0: that of massless particles, whose f depends on
direction even at p = 0. Of a sum over p_z, only p_z of the order of p_T or below have harmonics."""
STIFF, LEVEL = 1e-10, 1e-14
"""Weights of squared second differences of coefficients, which go on where nodes are empty, and of
their squares, which decide where fewer than two nodes are not."""
STIFFER = 1e3
"""Harmonics of N over its round part are small where nodes are empty: these weights are larger."""


def is_harmonic(n: Any, least: int) -> bool:
    """Whether n is a whole number, of Python or NumPy, and not below the least."""
    return isinstance(n, Integral) and not isinstance(n, bool) and n >= least  # type: ignore[operator]


def lagrange(u: Array, count: int) -> list[Array]:
    """Weights of the nodes 0, 1, ... count - 1 of the polynomial through them, at u."""
    found = [np.ones_like(u) for _ in range(count)]
    for a, b in permutations(range(count), 2):
        found[a] *= (u - b) / (a - b)
    return found


def bell(u: Array) -> Array:
    """The cubic B-spline, between -2 and 2."""
    u = np.abs(u)
    near, far = (4 - 6 * u**2 + 3 * u**3) / 6, (2 - u) ** 3 / 6
    return np.asarray(np.where(u < 1, near, np.where(u < 2, far, 0.0)))


def splines(at: Array) -> Array:
    """Cubic splines with knots at 0, 1, ... (..., coefficients).

    Not even: spectra of massless particles have a kink at p_T = 0.
    """
    return bell(np.asarray(at)[..., None] - np.arange(int(np.max(at)) + 3))


def round_functions(radius: Array) -> Array:
    """Splines for ln of a round spectrum, denser at small radius (in spacings)."""
    return splines(radius + DENSER * np.tanh(radius))


def waves(radius: Array, angle: Array, n: int, power: int) -> Array:
    """Splines in p_T times p_T^power at small p_T: with cos(n phi), then with sin(n phi)."""
    grown = np.tanh(radius / 2)[:, None] ** power * splines(radius / COARSER)
    phase = n * angle[:, None]
    return np.concatenate([grown * np.cos(phase), grown * np.sin(phase)], axis=1)


def stiffness(sizes: list[int]) -> Array:
    """Quadratic form that keeps coefficients smooth within each of several blocks of splines."""
    ends, bends = np.cumsum(sizes), np.diff(np.eye(sum(sizes)), 2, axis=0)
    within = [i for i in range(len(bends)) if not any(i < end <= i + 2 for end in ends[:-1])]
    return np.asarray(STIFF * bends[within].T @ bends[within] + LEVEL * np.eye(sum(sizes)))


def smooth_functions(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Functions of momenta in spacings (momenta, functions), their stiffness, how many are round.

    The first are round; the others are harmonics that a lattice can take for round, ~ p_T^m where
    p_T is small. All are even along both axes: on nodes, odd ones are orthogonal to these.
    """
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    found = [round_functions(radius)]
    for m in HARMONICS:
        both = waves(radius, angle, m, power=m)
        found.append(both[:, : both.shape[1] // 2])
    sizes = [block.shape[1] for block in found]
    return np.concatenate(found, axis=1), stiffness(sizes), sizes[0]


class Interpolation:
    """Points between nodes: what a function of the nodes is there, a polynomial along each axis.

    places : positions of the points along both axes, counted in nodes
    """

    def __init__(self, places: list[Array], shape: tuple[int, int], count: int):
        along, up = (_stencil(*one, count) for one in zip(places, shape, strict=True))
        self._terms = [(i * shape[1] + j, x * y) for i, x in along for j, y in up]

    def of(self, values: Array) -> Array:
        """Values (px, py) at the points; NaN where a node that counts is NaN."""
        flat = values.ravel()
        total = np.zeros(len(self._terms[0][0]))
        for node, weight in self._terms:
            total += weight * flat[node]
        return total


def _stencil(place: Array, n: int, count: int) -> list[tuple[Any, Array]]:
    """Nodes about points along an axis of n nodes, and their weights."""
    points = min(count, n)
    start = np.clip(np.floor(place).astype(int) - (points - 1) // 2, 0, n - points)
    return [(start + a, w) for a, w in enumerate(lagrange(place - start, points))]


class Rings:
    """Rings of p_T, a spacing wide, out to the corners of the box.

    px, py : nodes [GeV], and half : half a spacing of each axis
    """

    def __init__(self, px: Array, py: Array, half: tuple[float, float]):
        shape, edges = (len(px), len(py)), (px[-1] + half[0], py[-1] + half[1])
        self.width = 2 * min(half)
        self.count = int(np.ceil(np.hypot(*edges) / self.width - 1e-9))
        radius = (np.arange(self.count * RADII) + 0.5) * self.width / RADII
        angle = (np.arange(ANGLES * max(shape)) + 0.5) * 2 * np.pi / (ANGLES * max(shape))
        x, y = radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle)
        inside = (abs(x) <= edges[0]) & (abs(y) <= edges[1])
        self._radius, self._angle = (np.broadcast_to(v, x.shape)[inside]
                                     for v in (radius[:, None], angle))  # fmt: skip
        self._ring = np.floor(self._radius / self.width).astype(int)
        starts = zip((x[inside], y[inside]), (px, py), half, strict=True)
        places = [(at - nodes[0]) / (2 * h) for at, nodes, h in starts]
        self._cubic, self._linear = Interpolation(places, shape, 4), Interpolation(places, shape, 2)
        coarse = 2 * max(half)  # finer knots would be free where only the finer axis has nodes
        x, y = (v.ravel() / coarse for v in np.meshgrid(px, py, indexing="ij"))
        self._smooth, self._stiff, self._round = smooth_functions(x, y)
        far = np.minimum(self._radius / coarse, np.max(np.hypot(x, y)))
        self._polar: tuple[tuple[Array, Array], ...] = (
            (np.hypot(x, y), np.arctan2(y, x)),
            (far, self._angle),
        )
        self._circle = np.floor(self._radius / self.width * RADII).astype(int)

    @property
    def edges(self) -> Array:
        """Radii at which rings begin and end [GeV]."""
        return np.asarray(self.width * np.arange(self.count + 1.0))

    def within(self, face: float) -> Flags:
        """Which rings end before a face of the box [GeV]."""
        return np.asarray(self.edges[1:] <= face * (1 + 1e-9))

    def _density(self, number: Array) -> Array:
        """Particles at the points, in all as many as there are."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(number)
        logs[~np.isfinite(logs)] = np.nan
        straight = self._linear.of(logs)
        bent = np.clip(self._cubic.of(logs), straight - BEND, straight + BEND)
        found = np.exp(np.where(np.isfinite(bent), bent, straight))  # straight beside empty nodes
        empty = ~np.isfinite(found)
        if empty.any():
            found[empty] = np.maximum(self._linear.of(number)[empty], 0.0)
        found *= self._radius
        return np.asarray(found * (number.sum() / found.sum()))

    def rounded(self, number: Array) -> Array:
        """The round spectrum that follows N (px, py) best, at the nodes; its ln is a spline.

        The largest N is 1. Every particle counts the same: a front is followed where they are.
        """
        share = number.ravel() / number.max()
        there = share > 0
        a, logs = self._smooth[there], np.log(share[there])
        weighted = a.T * share[there]
        found = np.linalg.solve(weighted @ a + self._stiff, weighted @ logs)
        fitted = self._smooth[:, : self._round] @ found[: self._round]
        return np.asarray(np.exp(np.minimum(fitted, 0.0)).reshape(number.shape))

    def _waves(self, number: Array, rounded: Array, n: int) -> tuple[Array, Array]:
        """N over the round spectrum, as a smooth function: at nodes (px, py), and at the points.

        Low harmonics are fitted together; those that look round on square nodes are left out.
        """
        if n % 4 == 0:
            return np.ones(number.shape), np.ones(len(self._radius))
        together = sorted({1, 2, 3, n})
        at_nodes, at_points = (
            np.concatenate([waves(*polar, m, POWER) for m in together], axis=1)
            for polar in self._polar
        )
        share, round_share = number.ravel() / number.max(), rounded.ravel()
        there = (share > 0) & (round_share > 0)
        a, logs = at_nodes[there], np.log(share[there] / round_share[there])
        weighted, blocks = a.T * share[there], 2 * len(together)
        stiff = STIFFER * stiffness(blocks * [a.shape[1] // blocks])
        fitted = np.linalg.solve(weighted @ a + stiff, weighted @ logs)
        return np.exp(at_nodes @ fitted).reshape(number.shape), np.exp(at_points @ fitted)

    def _lattice(self, number: Array, n: int, weight: Array, wave: Any) -> tuple[Any, Array]:
        """What the lattice adds to sums of a smooth spectrum that is nearly N; its particles."""
        rounded = self.rounded(number)
        nodes, points = self._waves(number, rounded, n)
        read, all_ = self._moments(self._density(rounded * nodes) * weight, wave)
        density = self._density(rounded)
        even = np.bincount(self._circle, density) / np.maximum(np.bincount(self._circle), 1)
        smooth = even[self._circle] * points
        smooth *= (rounded * nodes).sum() / smooth.sum()
        return read - self._moments(smooth * weight, wave)[0], all_

    def _sums(self, values: Array) -> Array:
        """Sums over the points of every ring."""
        return np.asarray(np.bincount(self._ring, values, self.count), float)

    def turned(self, columns: Array, n: int, power: int = 0) -> tuple[Array, Array]:
        """Int dN p_T^power exp(i n phi) over every ring, and without the exponential.

        columns : particles of columns of nodes (..., px, py); both results are (..., rings)
        """
        shape = (*columns.shape[:-2], self.count)
        moments, totals = np.zeros(shape, complex), np.zeros(shape)
        weight, wave = self._radius**power, np.exp(1j * n * self._angle)
        for at, number in _each(columns):
            if not np.isfinite(number).all():
                moments[at] = totals[at] = np.nan
                continue
            found, all_ = self._moments(self._density(number) * weight, wave)
            own, own_all = self._lattice(number, n, weight, wave)
            found = found - own * np.divide(all_, own_all, out=0 * all_, where=own_all > 0)
            moments[at] = found / np.maximum(abs(found) / np.maximum(all_, 1e-300), 1.0)
            totals[at] = all_
        return moments, totals

    def _moments(self, density: Array, wave: Any) -> tuple[Any, Array]:
        """Sums over the points of every ring with and without a wave."""
        turned = self._sums(density * wave.real) + 1j * self._sums(density * wave.imag)
        return turned, self._sums(density)

    def numbers(self, columns: Array) -> Array:
        """Particles in every ring (..., rings), all in all as many as in all columns."""
        totals = np.zeros((*columns.shape[:-2], self.count))
        for at, number in _each(columns):
            totals[at] = self._sums(self._density(number))
        return totals


def _each(columns: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Columns (px, py) one by one, with their place; not those without a particle."""
    for at in np.ndindex(*columns.shape[:-2]):
        if columns[at].any():
            yield at, np.asarray(columns[at], float)
