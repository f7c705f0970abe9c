"""Collision integrals of isotropic distributions by Gauss quadrature, without a grid.

The rate of a b -> c d in terms of the pair's total energy E and momentum P is

    Gamma = sym / (256 pi^5) Int dE dP dE_a dE_c <|M|^2> f_a f_b F_c F_d,

where <|M|^2> is the mean over the azimuth between k_a and k_c around P. This follows from
Int d^3k_a/((2 pi)^3 2 E_a 2 E_b) 2 pi delta(E - E_a - E_b) = Int dE_a dphi/(16 pi^2 P) for either
pair and d^3P = 4 pi P^2 dP. The ranges are |k_a - k_b| < P < k_a + k_b for both pairs. At fixed E
and P the single-particle energies lie between (E e* -+ P k*)/sqrt(s), with the rest-frame values
e*, k*.

Integrals over a distribution that jumps at some energy are split there, so that the rules converge
as fast as for smooth distributions. Momenta are in GeV, rates in fm^-4.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.polynomial.legendre import leggauss

from ...grid.units import HBARC
from ...util.arrays import Array

Occupation = Callable[[Array], Array]
"""f as a function of energy [GeV]."""
Weight = Callable[[Array, Array, Array, Array], Array]
"""Change of a quantity in a collision, as a function of the four energies [GeV]."""


def one(e1: Array, e2: Array, e3: Array, e4: Array) -> Array:
    """Return the weight of a rate: every collision counts once."""
    return np.ones(np.broadcast_shapes(e1.shape, e3.shape))


@dataclass(frozen=True)
class ScatteringSpecies:
    """A species in a collision.

    statistics : +1 Bose, -1 Fermi, 0 classical
    jump : energy at which f is not smooth [GeV]
    """

    mass2: float
    f: Occupation
    statistics: int
    jump: float | None = None

    def momentum(self, energy: float) -> float:
        """Return |p| at an energy, 0 below the mass [GeV]."""
        return float(np.sqrt(max(energy * energy - self.mass2, 0.0)))


def _pieces(ends: Sequence[float], points: int) -> tuple[Array, Array]:
    """Return quadrature nodes and weights between consecutive ends, clustered towards every end.

    The ends increase. A square root at an end becomes smooth: x = middle + half (3 c - c^3)/2 for
    nodes c.
    """
    c, w = leggauss(points)
    nodes, weights = [], []
    for low, high in pairwise(ends):
        half = 0.5 * (high - low)
        nodes.append(low + half * (1 + 0.5 * c * (3 - c * c)))
        weights.append(half * 1.5 * (1 - c * c) * w)
    return np.concatenate(nodes), np.concatenate(weights)


def _between(low: float, high: float, marks: Sequence[float]) -> list[float]:
    """Return the ends of an interval and the marks inside it, in increasing order."""
    return [low, *sorted({x for x in marks if low < x < high}), high]


def _range(
    pair: tuple[ScatteringSpecies, ScatteringSpecies], energy: float, total: float
) -> list[float]:
    """Return the energy range of the first of a pair, split at jumps; empty below threshold."""
    a, b = pair
    s = energy * energy - total * total
    root = np.sqrt(s)
    e = 0.5 * (s + a.mass2 - b.mass2) / root
    k2 = e * e - a.mass2
    if root <= np.sqrt(a.mass2) + np.sqrt(b.mass2) or k2 <= 0:
        return []
    low, high = (float((energy * e + sign * total * np.sqrt(k2)) / root) for sign in (-1, 1))
    marks = [a.jump] if a.jump is not None else []
    return _between(low, high, marks + ([energy - b.jump] if b.jump is not None else []))


def _corners(pair: tuple[ScatteringSpecies, ScatteringSpecies], energy: float) -> Iterator[float]:
    """Yield total momenta at which the jump of a leg enters or leaves its energy range."""
    for one, other in (pair, pair[::-1]):
        if one.jump is not None and energy - one.jump > np.sqrt(other.mass2):
            k, q = one.momentum(one.jump), other.momentum(energy - one.jump)
            yield from (abs(k - q), k + q)


def collisions(
    element: Callable[[Array, Array, Array], Array],
    legs: tuple[ScatteringSpecies, ScatteringSpecies, ScatteringSpecies, ScatteringSpecies],
    weights: Mapping[str, Weight],
    highest: float,
    points: int = 12,
) -> dict[str, float]:
    """Return weighted integrals over the forward collisions a b -> c d [fm^-4 times a unit].

    element : |M|^2(s, t, u), summed over spins and colours of all legs
    highest : largest energy of a pair [GeV]
    points : nodes of every rule; twice as many for E, and ``points`` over half the azimuth

    Symmetry factors are not included: 1/2 for identical particles on either side.
    """
    a, b, c, d = legs
    pairs = (a, b), (c, d)
    masses2 = [leg.mass2 for leg in legs]
    threshold = float(max(sum(np.sqrt(masses2[:2])), sum(np.sqrt(masses2[2:]))))
    openings = [
        one.jump + np.sqrt(other.mass2)
        for pair in pairs for one, other in (pair, pair[::-1]) if one.jump is not None
    ]  # fmt: skip
    turn = np.cos((np.arange(points) + 0.5) * np.pi / points)
    found = dict.fromkeys(weights, 0.0)
    for energy, dE in zip(
        *_pieces(_between(threshold, highest, openings), 2 * points), strict=True
    ):
        most = float(np.sqrt(energy * energy - threshold * threshold))
        corners = [p for pair in pairs for p in _corners(pair, energy)]
        for total, dP in zip(*_pieces(_between(0.0, most, corners), points), strict=True):
            ends = [_range(pair, energy, total) for pair in pairs]
            if not all(ends):
                continue
            (e1, w1), (e3, w3) = (_pieces(end, points) for end in ends)
            e1, w1 = e1[:, None], w1[:, None]
            e2, e4 = energy - e1, energy - e3
            full = (1 + c.statistics * c.f(e3)) * (1 + d.statistics * d.f(e4))
            happens = a.f(e1) * b.f(e2) * full
            if not happens.any():
                continue
            s = energy * energy - total * total
            mean = _azimuthal_mean(element, masses2, (s, energy, total), e1, e3, turn)
            happens = happens * mean * w1 * w3 * (dE * dP)
            for name, weight in weights.items():
                found[name] += float((happens * weight(e1, e2, e3, e4)).sum())
    return {name: value / (256 * np.pi**5 * HBARC**4) for name, value in found.items()}


def _azimuthal_mean(
    element: Callable[[Array, Array, Array], Array], masses2: Sequence[float],
    pair: tuple[float, float, float], e1: Array, e3: Array, turn: Array,
) -> Array:  # fmt: skip
    """Return the mean of |M|^2 over the azimuth at s, E, P, E_a and E_c."""
    s, energy, total = pair
    ma2, mb2, mc2, md2 = masses2

    def along(e: Array, own2: float, other2: float) -> tuple[Array, Array]:
        """Return the component along P and the squared transverse component."""
        k2 = e * e - own2
        z = (k2 + total * total - (energy - e) ** 2 + other2) / (2 * total)
        return z, np.maximum(k2 - z * z, 0.0)

    z1, across1 = along(e1, ma2, mb2)
    z3, across3 = along(e3, mc2, md2)
    middle = ma2 + mc2 - 2 * (e1 * e3 - z1 * z3)
    swing = 2 * np.sqrt(across1 * across3)
    t = middle[..., None] + swing[..., None] * turn
    u = sum(masses2) - s - t
    return np.asarray(np.broadcast_to(element(np.asarray(s), t, u), t.shape).mean(axis=-1))
