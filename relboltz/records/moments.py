"""Sums over a state: all that a record needs of it, so that the state may live on a GPU.

Numbers are summed in quanta, exactly, along planes of the grid and in shells of |p|; the rest are
sums over the nodes in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..compiling import build, kernel, scalar
from ..grid import PhaseSpace
from ..transport.plane import node_velocity, velocity

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

speed = build([velocity, node_velocity], scalar).node_velocity


@dataclass(frozen=True)
class Shells:
    """Nodes sorted into shells of |p|, one spacing wide."""

    index: Integers
    count: Array
    p: Array
    """Mean |p| of the nodes of a shell [GeV]."""

    @classmethod
    def of(cls, grid: PhaseSpace) -> Shells:
        """The shells of a grid; empty ones are left out."""
        p = np.sqrt(grid.momentum_squared)
        _, index = np.unique(np.floor(p / min(grid.spacing) + 1e-9), return_inverse=True)
        count = np.bincount(index).astype(float)
        return cls(index, count, np.bincount(index, weights=p) / count)

    def average(self, values: Array) -> Array:
        """Mean over each shell."""
        return np.bincount(self.index, weights=values) / self.count


def entropy_of(f: Array, eta: int) -> float:
    """Sum over the nodes of eta F ln F - f ln f; classical: f - f ln f."""
    full = f[f > 0]
    value = -np.sum(full * np.log(full))
    if eta == 0:
        return float(value + np.sum(full))
    blocked = np.maximum(1.0 + eta * full, 1e-300)
    return float(value + eta * np.sum(blocked * np.log(blocked)))


@kernel
def add_flux(f, px, py, pz, halves, m2, sums):
    """Add f p_i u_j of one node to nine sums; halves: of the spacings."""
    x2, y2, z2 = px * px, py * py, pz * pz
    ux = f * speed(px, halves[0], y2 + z2, m2)
    uy = f * speed(py, halves[1], x2 + z2, m2)
    uz = f * speed(pz, halves[2], x2 + y2, m2)
    sums[0] += px * ux
    sums[1] += px * uy
    sums[2] += px * uz
    sums[3] += py * ux
    sums[4] += py * uy
    sums[5] += py * uz
    sums[6] += pz * ux
    sums[7] += pz * uy
    sums[8] += pz * uz


def halves_of(grid: PhaseSpace) -> tuple[float, float, float]:
    """Half the spacings of the nodes [GeV]."""
    hx, hy, hz = grid.spacing
    return 0.5 * hx, 0.5 * hy, 0.5 * hz


# --- of many sites ------------------------------------------------------------------------------


@dataclass(frozen=True)
class SiteMoments:
    """What is summed over the nodes of every site; sums over sites are for the reader to take."""

    totals: Integers
    """N f in quanta: (sites, species)."""
    planes: tuple[Integers, Integers, Integers]
    """N f of all species in quanta on the planes of each axis: (sites, nodes of the axis)."""
    shells: Integers
    """N f in quanta in every shell: (sites, species, shells)."""
    sums: Array
    """Sum f E, f/E, f p_i p_j / E (6), entropy, |f - f_final|, f p_i u_j (9), of every species:
    (sites, species, SUMS)."""

    @classmethod
    def empty(cls, grid: PhaseSpace, species: int, shells: Shells) -> SiteMoments:
        """Room for the sums of a grid."""
        nx, ny, nz = grid.momentum_cells
        return cls(
            np.zeros((grid.sites, species), np.int64),
            (
                np.zeros((grid.sites, nx), np.int64), np.zeros((grid.sites, ny), np.int64),
                np.zeros((grid.sites, nz), np.int64),
            ),
            np.zeros((grid.sites, species, len(shells.p)), np.int64),
            np.zeros((grid.sites, species, SUMS)),
        )  # fmt: skip


SUMS = 19
"""Sums over f that are not whole numbers: energy, 1/E, six of the stress, entropy, distance, nine
of the flux of momentum."""


@kernel
def measure_sites(number, unit, species, squares, momenta, halves, packed, shell, at_rest, final,
                  first, last, totals, x, y, z, shells, sums):  # fmt: skip
    """Fill the moments of the sites first to last.

    species : (species, 2), degeneracy and statistics; momenta : (3, nodes); halves : of their
        spacings; final : f to measure the distance from
    """
    for site in range(first, last):
        for a in range(number.shape[1]):
            scale, eta, m2 = unit / species[a, 0], species[a, 1], squares[site, a]
            one = np.zeros(SUMS)
            total = 0
            for i in range(number.shape[2]):
                held = number[site, a, i]
                total += held
                x[site, packed[i] & 1023] += held
                y[site, (packed[i] >> 10) & 1023] += held
                z[site, packed[i] >> 20] += held
                shells[site, a, shell[i]] += held
                f = held * scale
                px, py, pz = momenta[0, i], momenta[1, i], momenta[2, i]
                e = np.sqrt(px * px + py * py + pz * pz + m2)
                inverse = 1 / e if e > 0 else at_rest
                one[0] += f * e
                one[1] += f * inverse
                one[2] += f * px * px * inverse
                one[3] += f * py * py * inverse
                one[4] += f * pz * pz * inverse
                one[5] += f * px * py * inverse
                one[6] += f * px * pz * inverse
                one[7] += f * py * pz * inverse
                if f > 0:
                    full = max(1 + eta * f, 1e-300)
                    one[8] += (eta * full * np.log(full) if eta != 0 else f) - f * np.log(f)
                one[9] += abs(f - final[a, i])
                add_flux(f, px, py, pz, halves, m2, one[10:])
            totals[site, a] = total
            sums[site, a] = one


def momentum_total(planes: tuple[Integers, Integers, Integers]) -> list[int]:
    """Momentum in quanta times half a spacing per axis, exactly; planes: (sites, nodes)."""
    result = []
    for rows in planes:
        weights = 2 * np.arange(rows.shape[1]) - (rows.shape[1] - 1)
        high = int(((rows >> 32) * weights).sum())
        low = int(((rows & 0xFFFFFFFF) * weights).sum())
        result.append((high << 32) + low)
    return result


def marginal(number: Integers, grid: PhaseSpace, kept: Sequence[str]) -> Array:
    """Numbers (sites, species, nodes) summed over all directions but those kept: (species, ...)."""
    order = ("x", "y", "z", "species", "px", "py", "pz")
    cube = number.reshape(*grid.space_cells, number.shape[1], *grid.momentum_cells)
    over = tuple(i for i, name in enumerate(order) if name not in (*kept, "species"))
    left = [name for name in order if name in (*kept, "species")]
    return np.moveaxis(cube.sum(axis=over, dtype=float), left.index("species"), 0)
