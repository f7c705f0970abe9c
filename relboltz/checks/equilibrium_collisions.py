"""Momentum range of collisions in equilibrium, and the rate lost to a momentum cut-off.

The collisions of a thermal gas in unlimited momentum space are sampled with the solver's own
kinematics and matrix elements, weighted with |M|^2 f_c f_d F_a F_b. A collision in which any of
the four momenta lies outside a box cannot happen in it. The number of such collisions says little
about relaxation: the longest-lived deviation sits in the tail, and a few hard collisions move it.
The relaxation rate of a spectrum is the rate times (Delta phi)^2, with Delta phi the change of
phi_a + phi_b in a collision (the dissipation of a deviation phi); the lowest power that is not
conserved is phi = E^2.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..backends.cpu import collision_events as k
from ..backends.elements import Elements
from ..events.collisions import Channel, channels
from ..events.kinematics import NO_NODES
from ..grid.units import HBARC
from ..model.model import Model
from ..thermodynamics.gas import fluid_energy, occupation
from ..thermodynamics.unlimited import FreeState
from ..util.arrays import Array

EVENTS = 120_000
"""Events sampled for all channels together."""
FEWEST = 3 * k.CHUNK
"""Smallest number of events for any channel."""
SEED = 20_240_101
TAIL = 0.6
"""Momenta are sampled with the density f^TAIL, to sample more that leave the box."""
BINS = 1200
"""Number of bins in |p| of the sampling tables."""
SOFTEST = 1e-9
"""Smallest (u.p - mu)/T of a boson: mu = m where there is a condensate."""
DEPTH = 45.0
"""Largest energy above m, or above mu, in units of T."""


@dataclass(frozen=True)
class EquilibriumCollisions:
    """Collisions of an equilibrium state, sampled in unlimited momentum space."""

    furthest: Array
    """Largest |p_i| among the four momenta along each axis, shape (3, events) [GeV]."""
    rate: Array
    """Collisions per volume and time that each event represents [fm^-4]."""
    relaxation: Array
    """Rate times (Delta E^2)^2, energies in the rest frame of the fluid [GeV^4 fm^-4]."""
    outward: tuple[Array, Array, Array] = field(init=False, repr=False)
    """From the outermost event inwards: largest |p_i|, and cumulative rate and relaxation."""

    def __post_init__(self) -> None:
        furthest = self.furthest.max(axis=0)
        order = furthest.argsort()[::-1]
        sums = (np.cumsum(part[order]) for part in (self.rate, self.relaxation))
        object.__setattr__(self, "outward", (furthest[order], *sums))

    def loss(self, widths: Sequence[float]) -> tuple[float, float]:
        """Return the shares of rate and relaxation lost by a box of these half widths [GeV]."""
        outside = (self.furthest > np.asarray(widths)[:, None]).any(axis=0)
        parts = (float(w[outside].sum() / w.sum()) for w in (self.rate, self.relaxation))
        return next(parts), next(parts)

    def half_width(self, loss: float) -> float:
        """Return the half width [GeV] of the cube that loses this share of rate or relaxation.

        loss : share, less than 1
        """
        furthest, *beyond = self.outward
        return max(float(furthest[np.searchsorted(b, loss * b[-1])]) for b in beyond)


def of(elements: Elements, state: FreeState) -> EquilibriumCollisions | None:
    """Return the collisions of a state; None if nothing collides."""
    model, rng = elements.model, np.random.default_rng(SEED)
    there = ~np.isnan(state.chemical_potential)
    drawn: dict[Any, tuple[Channel, float]] = {}  # identical channels are sampled once
    for channel in channels(model):
        if there[[*channel.nodes, *channel.pair]].all():
            key = _identity(elements, state, channel)
            drawn[key] = (channel, drawn.get(key, (channel, 0.0))[1] + channel.factor)
    if not drawn:
        return None
    radii = {int(a): _MomentumTable.of(model, state, int(a)) for a in np.flatnonzero(there)}
    count = max(FEWEST, EVENTS // len(drawn))
    parts = [
        _collisions(elements, state, radii, channel, factor, rng, count)
        for channel, factor in drawn.values()
    ]
    furthest, rate, relaxation = (
        np.concatenate(part, axis=-1) for part in zip(*parts, strict=True)
    )
    if not 0 < rate.sum() < np.inf or not 0 < relaxation.sum() < np.inf:
        return None
    return EquilibriumCollisions(furthest, rate, relaxation)


def _identity(elements: Elements, state: FreeState, channel: Channel) -> tuple[Any, ...]:
    """Return everything on which the collisions of a channel depend."""
    model, process = elements.model, elements.model.processes[channel.process]
    legs = [*channel.nodes, *channel.pair]
    numbers = [state.mass_squared[legs], state.chemical_potential[legs]]
    return (
        process.matrix_element, tuple(process.parameters.items()), process.peak,
        elements.folds[channel.process], tuple(model.statistics[legs]),
        elements.screening(channel.process, state.screening2),
        tuple(np.round(np.concatenate(numbers), 9)), channel.forward or process.elastic,
    )  # fmt: skip


@dataclass(frozen=True)
class _MomentumTable:
    """A table for sampling |p| of a species in the rest frame of the fluid."""

    edges: Array  # [GeV]
    cumulative: Array  # from 0 to 1

    @classmethod
    def of(cls, model: Model, state: FreeState, a: int) -> "_MomentumTable":
        m, t = np.sqrt(state.mass_squared[a]), state.temperature
        kinetic = DEPTH * t + max(state.chemical_potential[a] - m, 0.0)
        edges = np.sqrt(kinetic * (kinetic + 2 * m)) * np.linspace(0, 1, BINS + 1) ** 2
        p = 0.5 * (edges[1:] + edges[:-1])
        f = _occupation(np.hypot(p, m), state, model, a)
        cumulative = np.concatenate([[0.0], np.cumsum(p * p * f**TAIL * np.diff(edges))])
        return cls(edges, cumulative / cumulative[-1])

    def draw(self, u: Array) -> tuple[Array, Array]:
        """Return |p| [GeV] and the inverse of its density in d^3p."""
        i = np.minimum(np.searchsorted(self.cumulative, u, side="right") - 1, BINS - 1)
        width, chance = np.diff(self.edges)[i], np.diff(self.cumulative)[i]
        p = self.edges[i] + width * (u - self.cumulative[i]) / chance
        return p, 4 * np.pi * p * p * width / chance


def _collisions(
    elements: Elements,
    state: FreeState,
    radii: dict[int, _MomentumTable],
    channel: Channel,
    factor: float,
    rng: np.random.Generator,
    count: int,
) -> tuple[Array, Array, Array]:
    """Return the range of the collisions of a channel [GeV], their rates and relaxation."""
    model, process = elements.model, elements.model.processes[channel.process]
    (k3, p), (k1, k2) = channel.nodes, channel.pair
    mass = state.mass_squared
    drawn, measure = [], np.ones(count)  # d^3p/E d^3k/E represented by an event
    for a in (p, k3):
        length, inverse = radii[a].draw((rng.permutation(count) + rng.random(count)) / count)
        drawn.append(_boosted(_directed(length, rng), mass[a], state.velocity))
        measure *= inverse / np.hypot(length, np.sqrt(mass[a]))
    at_p, at_k3 = drawn
    angle = (
        float(state.screening2[0]), 1.0 if process.peak == "t" else 0.0,
        1.0 if elements.folds[channel.process] else 2.0,
    )  # fmt: skip
    m2 = tuple(float(mass[a]) for a in (k1, k2, k3, p))
    at_k1, s, t, weight, q2, qu2 = _scattered(at_p, at_k3, m2, rng.random((2, count)), angle)
    at_k2 = at_p + at_k3 - at_k1
    for q, a in ((at_p, p), (at_k3, k3)):  # 1/E is already in the invariant measure
        weight = weight * np.sqrt((q * q).sum(axis=0) + mass[a])
    named = tuple(float(mass[model.index(leg)]) for leg in process.legs)
    element = elements.evaluate(channel.process, s, t, named, state.screening2, q2, qu2)
    weight *= np.where(np.isfinite(element), np.maximum(element, 0.0), 0.0) * measure
    change = np.zeros(count)
    for q, a, sign in ((at_p, p, -1), (at_k3, k3, -1), (at_k1, k1, 1), (at_k2, k2, 1)):
        energy = _energy(q, state, a)
        f = _occupation(energy, state, model, a)
        weight *= f if sign < 0 else 1 + model.statistics[a] * f
        change += sign * energy**2
    # both directions of w Int dPhi(p) dPhi(k3), dPhi = d^3k/((2 pi)^3 2 E)
    rate = 2 * factor / (4 * (2 * np.pi) ** 6 * HBARC**4 * count) * weight
    return np.abs([at_p, at_k3, at_k1, at_k2]).max(axis=0), rate, rate * change**2


def _directed(length: Array, rng: np.random.Generator) -> Array:
    """Return vectors of given lengths in random directions, shape (3, n)."""
    cosine, phi = 2 * rng.random(len(length)) - 1, 2 * np.pi * rng.random(len(length))
    sine = np.sqrt(1 - cosine**2)
    return length * np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine])


def _boosted(q: Array, m2: float, velocity: Array) -> Array:
    """Boost momenta from the rest frame of the fluid to the frame of the grid."""
    v2 = velocity @ velocity
    if v2 == 0:
        return q
    gamma = 1 / np.sqrt(1 - v2)
    along = (gamma - 1) / v2 * (velocity @ q) + gamma * np.sqrt((q * q).sum(axis=0) + m2)
    return q + velocity[:, None] * along


def _energy(q: Array, state: FreeState, a: int) -> Array:
    """Return u.p, the energy in the fluid of momenta in the frame of the grid [GeV]."""
    m2 = state.mass_squared[a]
    return np.maximum(fluid_energy(q, m2, state.velocity), np.sqrt(m2))  # guards against rounding


def _occupation(energy: Array, state: FreeState, model: Model, a: int) -> Array:
    """Return f of species a, without a condensate."""
    x = (energy - state.chemical_potential[a]) / state.temperature
    return occupation(
        np.maximum(x, SOFTEST) if model.statistics[a] == 1 else x, model.statistics[a]
    )


def _scattered(
    p: Array, k3: Array, m2: tuple[float, ...], u: Array, angle: tuple[float, float, float]
) -> tuple[Array, ...]:
    """Return k1, s, t, weight, q^2 and qu^2 from the solver's own scattering."""
    count, w = p.shape[1], np.zeros(k.ROWS * k.CHUNK)
    rows = (k.K1X, k.K1Y, k.K1Z, k.S, k.T, k.WEIGHT, k.Q2, k.QU2)
    found = np.empty((len(rows), count))
    for first in range(0, count, k.CHUNK):
        part = slice(first, min(first + k.CHUNK, count))
        n = part.stop - part.start
        given = np.concatenate([p[:, part], k3[:, part], u[:, part]])
        for row, values in zip(
            (k.PX, k.PY, k.PZ, k.KX, k.KY, k.KZ, k.U0, k.U1), given, strict=True
        ):
            w[row : row + n] = values
        k.scatter_chunk(n, m2, angle, NO_NODES, w)
        found[:, part] = [w[row : row + n] for row in rows]
    return (found[:3], *found[3:])
