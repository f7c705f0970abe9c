"""Sums over a state: all that a record needs of it, so that the state may live on a GPU.

Numbers are summed in quanta, exactly, along planes of the grid and in shells of |p|; the rest are
sums over the nodes in floating point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .grid import PhaseSpace
from .model import Model
from .stepping import State

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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


@dataclass(frozen=True)
class Moments:
    """What is summed over the nodes, for each species."""

    planes: tuple[Integers, Integers, Integers]
    """N f in quanta on the planes of each axis: (species, nodes of the axis)."""
    shells: Integers
    """N f in quanta in every shell: (species, shells)."""
    energy: Array
    """Sum f E [GeV]."""
    inverse_energy: Array
    """Sum f/E [GeV^-1]."""
    stress: Array
    """Sum f p_i p_j / E [GeV] for xx, yy, zz, xy, xz, yz: (species, 6)."""
    entropy: Array
    """Sum eta F ln F - f ln f, or f - f ln f."""
    distance: Array
    """Sum |f - f_final|."""

    @cached_property
    def totals(self) -> list[int]:
        """N f of every species in quanta."""
        return [int(n) for n in self.planes[0].sum(axis=1)]  # a state's total fits 61 bits

    @cached_property
    def momentum_quanta(self) -> list[int]:
        """Momentum in quanta times half a spacing per axis, exactly."""
        result = []
        for planes in self.planes:
            last = planes.shape[1] - 1
            row = planes.sum(axis=0).tolist()  # what is left of exactness is for Python's integers
            result.append(sum((2 * j - last) * v for j, v in enumerate(row)))
        return result


def entropy_of(f: Array, eta: int) -> float:
    """Sum over the nodes of eta F ln F - f ln f; classical: f - f ln f."""
    full = f[f > 0]
    value = -np.sum(full * np.log(full))
    if eta == 0:
        return float(value + np.sum(full))
    blocked = np.maximum(1.0 + eta * full, 1e-300)
    return float(value + eta * np.sum(blocked * np.log(blocked)))


def stress_of(grid: PhaseSpace, f: Array, mass_squared: float) -> Array:
    """Sum f p_i p_j / E of one species for xx, yy, zz, xy, xz, yz [GeV]."""
    x, y, z = grid.momenta
    over_e = f * grid.inverse_energies(mass_squared)
    pairs = ((x, x), (y, y), (z, z), (x, y), (x, z), (y, z))
    return np.array([np.sum(over_e * p * q) for p, q in pairs])


def measure(grid: PhaseSpace, model: Model, state: State, shells: Shells, final: Array) -> Moments:
    """The moments of a state held by the host; final: f to measure the distance from."""
    rows = state.number.reshape(-1, *grid.momentum_cells)
    f = state.occupation(model)
    m2 = [float(m) for m in state.mass_squared]
    planes = tuple(
        rows.sum(axis=tuple(axis for axis in range(1, 4) if axis != i + 1), dtype=np.int64)
        for i in range(3)
    )
    in_shells = np.zeros((len(f), len(shells.p)), np.int64)
    for a, row in enumerate(rows.reshape(len(f), -1)):
        np.add.at(in_shells[a], shells.index, row)
    return Moments(
        planes,  # type: ignore[arg-type]
        in_shells,
        np.array([np.sum(row * grid.energies(m)) for row, m in zip(f, m2, strict=True)]),
        np.array([np.sum(row * grid.inverse_energies(m)) for row, m in zip(f, m2, strict=True)]),
        np.stack([stress_of(grid, row, m) for row, m in zip(f, m2, strict=True)]),
        np.array([entropy_of(row, s.statistics) for row, s in zip(f, model.species, strict=True)]),
        np.array([np.abs(row - end).sum() for row, end in zip(f, final, strict=True)]),
    )
