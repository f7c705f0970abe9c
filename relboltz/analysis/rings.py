"""Rings of transverse momentum, and the azimuthal distribution of particles in them.

Particle numbers N are known in columns of nodes (p_x, p_y). A sum of exp(i n phi) over nodes would
show the anisotropy of the lattice, most of all at small p_T, where nodes are few. Instead ln N is
interpolated by cubics, and sums run over points of circles. The interpolation error for a smooth
spectrum close to N, whose exact sums are known, is subtracted.
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
"""Points per circle for each node along the longer axis: at most a cell apart."""
BEND = 0.5
"""Largest deviation of ln N from linear interpolation: fronts overshoot by at most exp(BEND)."""
DENSER = 0.5
"""Relative increase of the knot density of round spectra at p_T = 0, where only nodes are known."""
HARMONICS, COARSER = (2, 4), 2.0
"""Harmonics fitted together with the round spectrum, so that they do not contribute to it, and the
spacing of their knots relative to that of the round spectrum."""
POWER = 1
"""Power of p_T of the harmonics at small p_T. It is that of massless particles, whose f depends on
direction even at p = 0; in a sum over p_z, only p_z up to the order of p_T have harmonics."""
STIFF, LEVEL = 1e-10, 1e-14
"""Regularisation: weight of squared second differences of coefficients, which extrapolates to empty
nodes, and of squared coefficients, which matters only if fewer than two nodes are occupied."""
STIFFER = 1e3
"""Factor by which the regularisation of harmonics is larger: they are small at empty nodes."""


def is_harmonic(n: Any, least: int) -> bool:
    """Whether n is an integer, of Python or NumPy, and at least ``least``."""
    return isinstance(n, Integral) and not isinstance(n, bool) and n >= least  # type: ignore[operator]


def lagrange(u: Array, count: int) -> list[Array]:
    """Return Lagrange weights at u of the nodes 0, 1, ... count - 1."""
    found = [np.ones_like(u) for _ in range(count)]
    for a, b in permutations(range(count), 2):
        found[a] *= (u - b) / (a - b)
    return found


def bell(u: Array) -> Array:
    """Return the cubic B-spline with support from -2 to 2."""
    u = np.abs(u)
    near, far = (4 - 6 * u**2 + 3 * u**3) / 6, (2 - u) ** 3 / 6
    return np.asarray(np.where(u < 1, near, np.where(u < 2, far, 0.0)))


def splines(at: Array) -> Array:
    """Return cubic B-splines with knots at 0, 1, ..., shape (..., coefficients).

    They are not even in p_T: spectra of massless particles have a kink at p_T = 0.
    """
    return bell(np.asarray(at)[..., None] - np.arange(int(np.max(at)) + 3))


def round_functions(radius: Array) -> Array:
    """Return splines for ln of a round spectrum, denser at small radius (in spacings)."""
    return splines(radius + DENSER * np.tanh(radius))


def waves(radius: Array, angle: Array, n: int, power: int) -> Array:
    """Return splines, ~ p_T^power at small p_T, times cos(n phi), then times sin(n phi)."""
    grown = np.tanh(radius / 2)[:, None] ** power * splines(radius / COARSER)
    phase = n * angle[:, None]
    return np.concatenate([grown * np.cos(phase), grown * np.sin(phase)], axis=1)


def stiffness(sizes: list[int]) -> Array:
    """Return the quadratic form that smooths coefficients within each block of splines."""
    ends, bends = np.cumsum(sizes), np.diff(np.eye(sum(sizes)), 2, axis=0)
    within = [i for i in range(len(bends)) if not any(i < end <= i + 2 for end in ends[:-1])]
    return np.asarray(STIFF * bends[within].T @ bends[within] + LEVEL * np.eye(sum(sizes)))


def smooth_functions(x: Array, y: Array) -> tuple[Array, Array, int]:
    """Return functions of momenta in spacings, their stiffness, and the number of round ones.

    The array (momenta, functions) has the round functions first; the others are harmonics that a
    lattice cannot distinguish from round ones, ~ p_T^m at small p_T. All are even along both axes:
    on the nodes, odd functions are orthogonal to them.
    """
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    found = [round_functions(radius)]
    for m in HARMONICS:
        both = waves(radius, angle, m, power=m)
        found.append(both[:, : both.shape[1] // 2])
    sizes = [block.shape[1] for block in found]
    return np.concatenate(found, axis=1), stiffness(sizes), sizes[0]


class Interpolation:
    """Polynomial interpolation along each axis, from nodes to points between them.

    places : positions of the points along both axes, in units of the node spacing
    """

    def __init__(self, places: list[Array], shape: tuple[int, int], count: int):
        along, up = (_stencil(*one, count) for one in zip(places, shape, strict=True))
        self._terms = [(i * shape[1] + j, x * y) for i, x in along for j, y in up]

    def of(self, values: Array) -> Array:
        """Interpolate values (px, py) to the points; NaN if a node in the stencil is NaN."""
        flat = values.ravel()
        total = np.zeros(len(self._terms[0][0]))
        for node, weight in self._terms:
            total += weight * flat[node]
        return total


def _stencil(place: Array, n: int, count: int) -> list[tuple[Any, Array]]:
    """Return the nodes around points along an axis of n nodes, and their weights."""
    points = min(count, n)
    start = np.clip(np.floor(place).astype(int) - (points - 1) // 2, 0, n - points)
    return [(start + a, w) for a, w in enumerate(lagrange(place - start, points))]


class Rings:
    """Rings of p_T, one spacing wide, out to the corners of the momentum grid.

    px, py : nodes [GeV]; half : half the spacing of each axis
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
        coarse = 2 * max(half)  # finer knots: undetermined where only the finer axis has nodes
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
        """Edges of the rings [GeV]."""
        return np.asarray(self.width * np.arange(self.count + 1.0))

    def within(self, face: float) -> Flags:
        """Return which rings lie entirely below the momentum ``face`` [GeV] of the grid."""
        return np.asarray(self.edges[1:] <= face * (1 + 1e-9))

    def _density(self, number: Array) -> Array:
        """Return particle numbers at the points, normalised to the total number."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(number)
        logs[~np.isfinite(logs)] = np.nan
        straight = self._linear.of(logs)
        bent = np.clip(self._cubic.of(logs), straight - BEND, straight + BEND)
        found = np.exp(np.where(np.isfinite(bent), bent, straight))  # linear next to empty nodes
        empty = ~np.isfinite(found)
        if empty.any():
            found[empty] = np.maximum(self._linear.of(number)[empty], 0.0)
        found *= self._radius
        return np.asarray(found * (number.sum() / found.sum()))

    def rounded(self, number: Array) -> Array:
        """Return the round spectrum that best fits N (px, py), at the nodes; its ln is a spline.

        The largest N is set to 1. The fit is weighted by N, so that fronts are followed where the
        particles are.
        """
        share = number.ravel() / number.max()
        there = share > 0
        a, logs = self._smooth[there], np.log(share[there])
        weighted = a.T * share[there]
        found = np.linalg.solve(weighted @ a + self._stiff, weighted @ logs)
        fitted = self._smooth[:, : self._round] @ found[: self._round]
        return np.asarray(np.exp(np.minimum(fitted, 0.0)).reshape(number.shape))

    def _waves(self, number: Array, rounded: Array, n: int) -> tuple[Array, Array]:
        """Return N over the round spectrum as a smooth function, at nodes (px, py) and at points.

        Low harmonics are fitted together; multiples of 4, which look round on a square lattice, are
        left out.
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
        """Return the lattice error of the sums of a smooth spectrum close to N, and its number."""
        rounded = self.rounded(number)
        nodes, points = self._waves(number, rounded, n)
        read, all_ = self._moments(self._density(rounded * nodes) * weight, wave)
        density = self._density(rounded)
        even = np.bincount(self._circle, density) / np.maximum(np.bincount(self._circle), 1)
        smooth = even[self._circle] * points
        smooth *= (rounded * nodes).sum() / smooth.sum()
        return read - self._moments(smooth * weight, wave)[0], all_

    def _sums(self, values: Array) -> Array:
        """Sum over the points of every ring."""
        return np.asarray(np.bincount(self._ring, values, self.count), float)

    def turned(self, columns: Array, n: int, power: int = 0) -> tuple[Array, Array]:
        """Return Int dN p_T^power exp(i n phi) over every ring, and without the exponential.

        columns : particle numbers in columns of nodes (..., px, py); both results are (..., rings)
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
        """Sum over the points of every ring with and without a wave."""
        turned = self._sums(density * wave.real) + 1j * self._sums(density * wave.imag)
        return turned, self._sums(density)

    def numbers(self, columns: Array) -> Array:
        """Return particles in every ring (..., rings); their sum is that over all columns."""
        totals = np.zeros((*columns.shape[:-2], self.count))
        for at, number in _each(columns):
            totals[at] = self._sums(self._density(number))
        return totals


def _each(columns: Array) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Yield non-empty arrays (px, py) one by one, with their indices."""
    for at in np.ndindex(*columns.shape[:-2]):
        if columns[at].any():
            yield at, np.asarray(columns[at], float)
