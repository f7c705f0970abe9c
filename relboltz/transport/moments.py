"""Sums over a state: all that a record needs of it, so that the state may live on a GPU.

Numbers are summed in quanta, exactly, along planes of the grid and in shells of |p|; the rest are
sums over the nodes in floating point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import exp, inf, log, log1p, sqrt

import numpy as np

from ..events.kinematics import inverse_energy
from ..grid.phase_space import PhaseSpace
from ..util.arrays import Array, Integers
from ..util.jit import Function
from .plane import drift, node_velocity, quotient, velocity

SUMS = 25
"""Sums over f that are not whole numbers: energy, 1/E, six of the stress, entropy, distance, nine
of the flux of momentum, three of the current, three of the momentum."""
FLUX, CURRENT, MOMENTUM = slice(10, 19), slice(19, 22), slice(22, 25)
"""Where the last of these are."""


# --- one node -----------------------------------------------------------------------------------


def entropy_term(f, eta):
    """eta F ln F - f ln f; classical: f - f ln f."""
    if not f > 0.0:
        return 0.0
    full = max(1.0 + eta * f, 1e-300)
    return (eta * full * log(full) if eta != 0.0 else f) - f * log(f)


def add_moments(f, p, halves, m2, eta, at_rest, final, s):
    """Add f E, f/E, f p_i p_j / E, entropy, |f - final|, f p_i u_j, f p_i/E, f p_i to SUMS of s.

    p : momentum of the node; halves : of the spacings; u : velocity of the transport
    """
    px, py, pz = p
    x2, y2, z2 = px * px, py * py, pz * pz
    e = sqrt(x2 + y2 + z2 + m2)
    inverse = inverse_energy(e, at_rest)
    s[0] += f * e
    s[1] += f * inverse
    s[2] += f * px * px * inverse
    s[3] += f * py * py * inverse
    s[4] += f * pz * pz * inverse
    s[5] += f * px * py * inverse
    s[6] += f * px * pz * inverse
    s[7] += f * py * pz * inverse
    s[8] += entropy_term(f, eta)
    s[9] += abs(f - final)
    ux = f * node_velocity(px, halves[0], y2 + z2, m2)
    uy = f * node_velocity(py, halves[1], x2 + z2, m2)
    uz = f * node_velocity(pz, halves[2], x2 + y2, m2)
    s[10] += px * ux
    s[11] += px * uy
    s[12] += px * uz
    s[13] += py * ux
    s[14] += py * uy
    s[15] += py * uz
    s[16] += pz * ux
    s[17] += pz * uy
    s[18] += pz * uz
    s[19] += f * px * inverse
    s[20] += f * py * inverse
    s[21] += f * pz * inverse
    s[22] += f * px
    s[23] += f * py
    s[24] += f * pz


# --- one node of a thermal state ----------------------------------------------------------------

FIT_SUMS = 21
"""ln Z, f, f E, f p (3), g, g E, g E^2, g E p (3), g p (3), g p p (xx, yy, zz, xy, xz, yz), summed
over the nodes, with g = f (1 + eta f)."""
FARTHEST = 600.0


def thermal_terms(x, eta):
    """ln Z, f and f (1 + eta f) of one state with exponent x; negative f: outside the domain."""
    if x > FARTHEST:
        return 0.0, 0.0, 0.0
    if x < -FARTHEST or (eta > 0.0 and x <= 0.0):
        return 0.0, -1.0, 0.0
    small = exp(-x)
    f = small / (1.0 - eta * small)
    return (-eta * log1p(-eta * small) if eta != 0.0 else small), f, f * (1.0 + eta * f)


def add_fit_terms(theta, alpha, p, m2, eta, weight, s):
    """Add what nodes with momentum p contribute to FIT_SUMS sums; False outside the domain.

    theta : begins with beta and b; weight : how many such nodes there are
    """
    px, py, pz = p
    e = sqrt(px * px + py * py + pz * pz + m2)
    x = theta[0] * e - theta[1] * px - theta[2] * py - theta[3] * pz - alpha
    value, f, g = thermal_terms(x, eta)
    if f < 0.0:
        s[0] = inf
        return False
    f *= weight
    g *= weight
    s[0] += weight * value
    s[1] += f
    s[2] += f * e
    s[3] += f * px
    s[4] += f * py
    s[5] += f * pz
    s[6] += g
    s[7] += g * e
    s[8] += g * e * e
    s[9] += g * e * px
    s[10] += g * e * py
    s[11] += g * e * pz
    s[12] += g * px
    s[13] += g * py
    s[14] += g * pz
    s[15] += g * px * px
    s[16] += g * py * py
    s[17] += g * pz * pz
    s[18] += g * px * py
    s[19] += g * px * pz
    s[20] += g * py * pz
    return True


FUNCTIONS: list[Function] = [
    inverse_energy, quotient, drift, velocity, node_velocity, entropy_term, add_moments,
    thermal_terms, add_fit_terms,
]  # fmt: skip
"""Callees before callers."""


# --- what is summed -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shells:
    """Nodes sorted into shells of |p|, one spacing wide; in Bjorken flow into rings of p_T."""

    index: Integers
    count: Array
    p: Array
    """Mean |p| of the nodes of a shell [GeV]."""

    @classmethod
    def of(cls, grid: PhaseSpace) -> "Shells":
        """The shells of a grid; empty ones are left out."""
        p, spacing = np.sqrt(grid.momentum_squared), min(grid.spacing)
        if grid.expansion is not None and grid.expansion.law == "bjorken":
            p, spacing = np.hypot(*grid.momenta[:2]), min(grid.spacing[:2])
        _, index = np.unique(np.floor(p / spacing + 1e-9), return_inverse=True)
        count = np.bincount(index).astype(float)
        return cls(index, count, np.bincount(index, weights=p) / count)

    def average(self, values: Array) -> Array:
        """Mean over each shell."""
        return np.bincount(self.index, weights=values) / self.count


@dataclass(frozen=True)
class Moments:
    """What is summed over the nodes of every site; sums over sites are for the reader to take."""

    planes: tuple[Integers, Integers, Integers]
    """N f of all species in quanta on the planes of each axis: (sites, nodes of the axis)."""
    shells: Integers
    """N f in quanta in every shell: (sites, species, shells)."""
    sums: Array
    """What ``add_moments`` adds up, of every species: (sites, species, SUMS)."""

    @classmethod
    def empty(cls, grid: PhaseSpace, species: int, shells: Shells) -> "Moments":
        """Room for the sums of a grid."""
        nx, ny, nz = (np.zeros((grid.sites, n), np.int64) for n in grid.momentum_cells)
        in_shells = np.zeros((grid.sites, species, len(shells.p)), np.int64)
        return cls((nx, ny, nz), in_shells, np.zeros((grid.sites, species, SUMS)))

    @cached_property
    def totals(self) -> Integers:
        """N f in quanta: (sites, species)."""
        return self.shells.sum(axis=2)  # a state's total fits 61 bits

    @cached_property
    def momentum_words(self) -> Integers:
        """Momentum of every site, see ``momentum_words``."""
        return momentum_words(self.planes)


def halves_of(grid: PhaseSpace) -> tuple[float, float, float]:
    """Half the spacings of the nodes [GeV]."""
    hx, hy, hz = grid.spacing
    return 0.5 * hx, 0.5 * hy, 0.5 * hz


def momentum_words(planes: tuple[Integers, Integers, Integers]) -> Integers:
    """Momentum of every site in quanta times half a spacing per axis, exactly: (2, 3, sites).

    In two words, of which the first counts 2^32 times; planes: (sites, nodes of the axis).
    """
    description = [(rows >> 32, rows & 0xFFFFFFFF) for rows in planes]
    weights = [2 * np.arange(rows.shape[1]) - (rows.shape[1] - 1) for rows in planes]
    return np.array(
        [[pair[i] @ w for pair, w in zip(description, weights, strict=True)] for i in (0, 1)]
    )


def whole(description: Integers) -> list[int]:
    """Sums over the sites of (2, ..., sites), as one number each."""
    high, low = description.sum(axis=-1).tolist()
    return [(a << 32) + b for a, b in zip(high, low, strict=True)]


# --- marginals ----------------------------------------------------------------------------------

AXES = ("x", "y", "z", "px", "py", "pz")


@dataclass(frozen=True)
class Marginal:
    """Where sums of f over some axes of phase space go."""

    shape: tuple[int, ...]
    """Species, then the cells of every axis that is kept."""
    sites: Integers
    """Where a site begins among the sums of a species, and, from there, where a node is."""
    nodes: Integers

    @classmethod
    def of(cls, grid: PhaseSpace, species: int, kept: Sequence[str]) -> "Marginal":
        """The sums of a grid that keep some of x, y, z, px, py, pz."""
        cells = (*grid.space_cells, *grid.momentum_cells)
        used = [n if axis in kept else 1 for axis, n in zip(AXES, cells, strict=True)]
        steps = np.array([np.prod(used[i + 1 :]) * (n > 1) for i, n in enumerate(used)], np.int64)
        shape = (n for axis, n in zip(AXES, cells, strict=True) if axis in kept)
        return cls(
            (species, *shape),
            steps[:3] @ np.indices(grid.space_cells).reshape(3, -1),
            steps[3:] @ np.indices(grid.momentum_cells).reshape(3, -1),
        )
