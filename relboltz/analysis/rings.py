"""Rings of transverse momentum, and how particles are distributed over their directions.

Particles are known in columns of nodes (p_x, p_y). A sum of exp(i n phi) over nodes would show the
directions of the lattice, the more so at small p_T, where these are few. Instead ln N between nodes
is cubic, and sums are taken over points of circles. What this makes of a round spectrum on the same
nodes, the one that follows N best, is the lattice's own, and is taken off.
"""

from collections.abc import Iterator

import numpy as np

from ..arrays import Array

RADII = 4
"""Circles in a ring."""
ANGLES = 8
"""Points of a circle for each node along the longer axis: about one in half a cell."""
BEND = 1.0
"""What ln N may depart from a straight line between neighbours: a step in f must not overshoot."""
DENSER = 0.5
"""Knots of round spectra are this much closer at p_T = 0, where nodes are all that is known."""
HARMONICS, COARSER = (2, 4), 2.0
"""What is fitted beside it, lest it count as round, with knots so much further apart."""
STIFF = 1e-12
"""Weight of squared second differences of coefficients: they go on where nodes are empty."""


def lagrange(u: Array, count: int) -> list[Array]:
    """Weights of the nodes 0, 1, ... count - 1 of the polynomial through them, at u."""
    found = []
    for a in range(count):
        others = [b for b in range(count) if b != a]
        found.append(np.prod([(u - b) / (a - b) for b in others], axis=0) + 0.0 * u)
    return found


def bell(u: Array) -> Array:
    """The cubic B-spline, between -2 and 2."""
    u = np.abs(u)
    near, far = (4 - 6 * u**2 + 3 * u**3) / 6, (2 - u) ** 3 / 6
    return np.where(u < 1, near, np.where(u < 2, far, 0.0))


def splines(at: Array) -> Array:
    """Even splines with knots at whole numbers (..., coefficients)."""
    at, knots = np.asarray(at)[..., None], np.arange(int(np.max(at)) + 3)
    return np.asarray(bell(at - knots) + np.where(knots > 0, bell(at + knots), 0.0))


def smooth_functions(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Functions of momenta in spacings (momenta, functions), how stiff, and how many are round.

    The first are round; the others are harmonics that a lattice can take for round, ~ p_T^m where
    p_T is small.
    """
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    found = [splines(radius + DENSER * np.tanh(radius))]
    for m in HARMONICS:
        wave = np.tanh(radius / 2) ** m * np.cos(m * angle)
        found.append(wave[:, None] * splines(radius / COARSER))
    sizes = [block.shape[1] for block in found]
    stiff, at = np.zeros((sum(sizes), sum(sizes))), 0
    for size in sizes:
        bends = np.diff(np.eye(size), 2, axis=0)
        stiff[at : at + size, at : at + size] = STIFF * bends.T @ bends
        at += size
    return np.concatenate(found, axis=1), stiff, sizes[0]


class Patch:
    """Points between nodes: what a function of the nodes is there, a polynomial along each axis.

    places : positions of the points along both axes, counted in nodes
    """

    def __init__(self, places: list[Array], shape: tuple[int, int], count: int):
        self._first, self._weights = [], []
        for place, n in zip(places, shape, strict=True):
            points = min(count, n)
            start = np.floor(place).astype(int) - (points // 2 - 1 if points > 1 else 0)
            start = np.clip(start, 0, n - points)
            self._first.append(start)
            self._weights.append(lagrange(place - start, points))

    def of(self, values: Array) -> Array:
        """Values (px, py) at the points; NaN where a node that counts is NaN."""
        (i, j), (along, up) = self._first, self._weights
        total = np.zeros(i.shape)
        for a, x in enumerate(along):
            for b, y in enumerate(up):
                total += x * y * values[i + a, j + b]
        return total


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
        self._cubic, self._linear = Patch(places, shape, 4), Patch(places, shape, 2)
        nodes = np.meshgrid(px / self.width, py / self.width, indexing="ij")
        self._smooth, self._stiff, self._round = smooth_functions(*(v.ravel() for v in nodes))

    @property
    def edges(self) -> Array:
        """Radii at which rings begin and end [GeV]."""
        return np.asarray(self.width * np.arange(self.count + 1.0))

    def _between(self, number: Array) -> Array:
        """N at the points, not normalised."""
        with np.errstate(divide="ignore"):
            logs = np.log(number)
        logs[~np.isfinite(logs)] = np.nan
        straight = self._linear.of(logs)
        bent = np.clip(self._cubic.of(logs), straight - BEND, straight + BEND)
        bent = np.where(np.isfinite(bent), bent, straight)
        return np.where(np.isfinite(bent), np.exp(bent), np.maximum(self._linear.of(number), 0.0))

    def rounded(self, number: Array) -> Array:
        """The round spectrum that follows N (px, py) best, at the nodes; its ln is a spline.

        Every particle counts the same: a front is followed where they are.
        """
        there, most = number.ravel() > 0, number.max()
        a, share = self._smooth[there], number.ravel()[there] / most
        weighted = a.T * share
        found = np.linalg.lstsq(weighted @ a + self._stiff, weighted @ np.log(share))[0]
        found = found[: self._round]
        fitted = self._smooth[:, : self._round] @ found
        return np.asarray(most * np.exp(np.minimum(fitted, 0.0))).reshape(number.shape)

    def _sums(self, values: Array) -> Array:
        """Sums over the points of every ring."""
        return np.asarray(np.bincount(self._ring, values * self._radius, self.count), float)

    def turned(self, columns: Array, n: int, power: int = 0) -> tuple[Array, Array]:
        """Int dN p_T^power exp(i n phi) over every ring, and without the exponential.

        columns : particles of columns of nodes (..., px, py); both results are (..., rings)
        """
        shape = (*columns.shape[:-2], self.count)
        moments, totals = np.zeros(shape, complex), np.zeros(shape)
        wave = self._radius**power * np.exp(1j * n * self._angle)
        for at, number in _each(columns):
            found, all_ = self._moments(number, wave, power)
            own, own_all = self._moments(self.rounded(number), wave, power)
            share = np.divide(all_, own_all, out=np.zeros(self.count), where=own_all > 0)
            moments[at], totals[at] = found - own * share, all_
        return moments, totals

    def _moments(self, number: Array, wave: Array, power: int) -> tuple[Array, Array]:
        """Sums over the points of every ring with and without a wave."""
        density = self._between(number)
        density *= number.sum() / self._sums(density).sum()
        turned = self._sums(density * wave.real) + 1j * self._sums(density * wave.imag)
        return turned, self._sums(density * self._radius**power)

    def numbers(self, columns: Array) -> Array:
        """Particles in every ring (..., rings), all in all as many as in all columns."""
        totals = np.zeros((*columns.shape[:-2], self.count))
        for at, number in _each(columns):
            found = self._sums(self._between(number))
            totals[at] = found * (number.sum() / found.sum())
        return totals


def _each(columns: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Columns (px, py) one by one, with their place; not those without a particle."""
    for at in np.ndindex(*columns.shape[:-2]):
        if columns[at].any():
            yield at, np.asarray(columns[at], float)
