"""Sums over a state that a record needs, so that the state itself may stay on a GPU.

Particle numbers are summed exactly, in quanta, on planes of the grid and in shells of |p|; all
other quantities are floating-point sums over the nodes.
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
"""Number of floating-point sums over f: energy, 1/E, stress (6), entropy, distance from the final
state, momentum flux (9), current (3) and momentum (3)."""
FLUX, CURRENT, MOMENTUM = slice(10, 19), slice(19, 22), slice(22, 25)
"""Positions of momentum flux, current and momentum among the SUMS."""


# --- one node -----------------------------------------------------------------------------------


def entropy_term(f, eta):
    """Return the entropy term eta F ln F - f ln f; for classical particles f - f ln f."""
    if not f > 0.0:
        return 0.0
    full = max(1.0 + eta * f, 1e-300)
    return (eta * full * log(full) if eta != 0.0 else f) - f * log(f)


def add_moments(f, p, halves, m2, eta, at_rest, final, s):
    """Add f E, f/E, f p_i p_j / E, entropy, |f - final|, f p_i u_j, f p_i/E, f p_i to SUMS of s.

    p : momentum of the node; halves : half spacings; u : velocity used by the transport scheme
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
    """Return ln Z, f and f (1 + eta f) at exponent x; f < 0 marks x outside the domain."""
    if x > FARTHEST:
        return 0.0, 0.0, 0.0
    if x < -FARTHEST or (eta > 0.0 and x <= 0.0):
        return 0.0, -1.0, 0.0
    small = exp(-x)
    f = small / (1.0 - eta * small)
    return (-eta * log1p(-eta * small) if eta != 0.0 else small), f, f * (1.0 + eta * f)


def add_fit_terms(theta, alpha, p, m2, eta, weight, s):
    """Add the contribution of nodes with momentum p to the FIT_SUMS; False outside the domain.

    theta : begins with beta and b; weight : number of nodes with this momentum
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
"""Functions to compile, callees before callers."""


# --- sums of a state ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shells:
    """Nodes grouped into shells of |p|, one spacing wide; in Bjorken flow into rings of p_T."""

    index: Integers
    count: Array
    p: Array
    """Mean |p| of the nodes of a shell [GeV]."""

    @classmethod
    def of(cls, grid: PhaseSpace) -> "Shells":
        """Return the non-empty shells of a grid."""
        p, spacing = np.sqrt(grid.momentum_squared), min(grid.spacing)
        if grid.expansion is not None and grid.expansion.law == "bjorken":
            p, spacing = np.hypot(*grid.momenta[:2]), min(grid.spacing[:2])
        _, index = np.unique(np.floor(p / spacing + 1e-9), return_inverse=True)
        count = np.bincount(index).astype(float)
        return cls(index, count, np.bincount(index, weights=p) / count)

    def average(self, values: Array) -> Array:
        """Return the mean over each shell."""
        return np.bincount(self.index, weights=values) / self.count


@dataclass(frozen=True)
class Moments:
    """Sums over the nodes of every site, not summed over sites."""

    planes: tuple[Integers, Integers, Integers]
    """N f of all species in quanta on the planes of each axis: (sites, nodes of the axis)."""
    shells: Integers
    """N f in quanta in every shell: (sites, species, shells)."""
    sums: Array
    """Sums of ``add_moments`` for every species: (sites, species, SUMS)."""

    @classmethod
    def empty(cls, grid: PhaseSpace, species: int, shells: Shells) -> "Moments":
        """Return zeroed sums for a grid."""
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
    """Return half the node spacings [GeV]."""
    hx, hy, hz = grid.spacing
    return 0.5 * hx, 0.5 * hy, 0.5 * hz


def momentum_words(planes: tuple[Integers, Integers, Integers]) -> Integers:
    """Return the exact momentum of every site, in quanta times half a spacing: (2, 3, sites).

    The value is 2^32 times the first word plus the second; planes : (sites, nodes of the axis)
    """
    words = [(rows >> 32, rows & 0xFFFFFFFF) for rows in planes]
    weights = [2 * np.arange(rows.shape[1]) - (rows.shape[1] - 1) for rows in planes]
    return np.array([[pair[i] @ w for pair, w in zip(words, weights, strict=True)] for i in (0, 1)])


def whole(words: Integers) -> list[int]:
    """Sum two-word numbers (2, ..., sites) over the sites, as Python integers."""
    high, low = words.sum(axis=-1).tolist()
    return [(a << 32) + b for a, b in zip(high, low, strict=True)]


# --- marginals ----------------------------------------------------------------------------------

AXES = ("x", "y", "z", "px", "py", "pz")


@dataclass(frozen=True)
class Marginal:
    """Index map for marginals: sums of f over some axes of phase space."""

    shape: tuple[int, ...]
    """Number of species, then the number of cells of every axis that is kept."""
    sites: Integers
    """Offset of a site among the sums of a species."""
    nodes: Integers
    """Offset of a node from that of its site."""

    @classmethod
    def of(cls, grid: PhaseSpace, species: int, kept: Sequence[str]) -> "Marginal":
        """Return the index map of a grid that keeps some of x, y, z, px, py, pz."""
        cells = (*grid.space_cells, *grid.momentum_cells)
        used = [n if axis in kept else 1 for axis, n in zip(AXES, cells, strict=True)]
        steps = np.array([np.prod(used[i + 1 :]) * (n > 1) for i, n in enumerate(used)], np.int64)
        shape = (n for axis, n in zip(AXES, cells, strict=True) if axis in kept)
        return cls(
            (species, *shape),
            steps[:3] @ np.indices(grid.space_cells).reshape(3, -1),
            steps[3:] @ np.indices(grid.momentum_cells).reshape(3, -1),
        )
