"""Pencils: layout of the (x, p) planes of an axis in a state."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array, Integers
from .ledger import WallFlux
from .plane import KINDS, LANES, OPEN, PERIODIC, ROWS


@dataclass(frozen=True)
class Pencils:
    """The (x_i, p_i) planes of one axis: their layout in a state, and their walls."""

    axis: int
    lines: tuple[int, int, int, int]
    """Space cells and their stride in sites, momentum cells and their stride in nodes."""
    walls: tuple[int, int]
    widths: tuple[float, float]
    """dx [fm] and dp [GeV]."""
    p: Array
    transverse_p2: Array
    species: int
    across: int
    """Number of transverse sites."""

    @classmethod
    def of(cls, grid: PhaseSpace, model: Model, axis: int) -> Pencils:
        """Return the pencils of an axis of a grid; a single space cell is treated as periodic."""
        n, m = grid.space_cells[axis], grid.momentum_cells[axis]
        site_step = math.prod(grid.space_cells[axis + 1 :])
        node_step = math.prod(grid.momentum_cells[axis + 1 :])
        one, other = (grid.axis(i) ** 2 for i in range(3) if i != axis)
        return cls(
            axis, (n, site_step, m, node_step),
            (KINDS[grid.boundary[axis]] if n > 1 else PERIODIC, KINDS[grid.momentum_boundary]),
            (grid.space_spacing[axis], grid.spacing[axis]), grid.axis(axis),
            (one[:, None] + other[None, :]).ravel(), len(model.species), grid.sites // n,
        )  # fmt: skip

    def some(self, which: slice) -> Pencils:
        """Return the pencils of some transverse momenta, in a state with only their nodes."""
        n, site_step, m, _ = self.lines
        width = which.stop - which.start
        return replace(
            self, lines=(n, site_step, m, width), transverse_p2=self.transverse_p2[which]
        )

    @property
    def blocks(self) -> int:
        """Number of groups of lanes formed by the transverse momenta."""
        return -(-len(self.transverse_p2) // LANES)

    @property
    def groups(self) -> int:
        """Number of groups of pencils; the pencils of a group advance together."""
        return self.across * self.species * self.blocks

    @property
    def scratch(self) -> tuple[int, int]:
        """Shape description of the scratch array of a group."""
        n, _, m, _ = self.lines
        return ROWS, (n + 1) * (m + 1) * LANES

    @property
    def open(self) -> bool:
        """Whether particles may leave through this axis."""
        return self.walls[0] == OPEN

    def passage(self, left: Integers, energies: Array, refused: Array) -> WallFlux:
        """Return escaped and blocked flux, summed over the groups in order."""
        by_species = refused.reshape(self.across, self.species, self.blocks, 2).sum(axis=(0, 2))
        return WallFlux(self.axis, left, energies.sum(axis=0), by_species.T)
