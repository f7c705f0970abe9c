"""How a grid is shared out: slabs of sites to hold, and pencils to sweep along an axis that is cut.

Site numbers run with z fastest, so a slab is a range of them: of planes of x, or, where there are
more workers than planes, of rows, or of single sites. Along an axis that slabs cut, no worker has
whole pencils; then each is given some of the transverse momenta, of all sites (``pencils``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...transport.moments import AXES
from ...transport.plane import LANES
from ...util.arrays import Integers
from ...util.errors import InputError
from .exchange import bounds


@dataclass(frozen=True)
class Division:
    """A grid shared out among workers."""

    grid: PhaseSpace
    size: int

    @classmethod
    def of(cls, grid: PhaseSpace, size: int) -> Division:
        """The division among so many workers; each must have a site."""
        if size > grid.sites:
            raise InputError(
                f"run.workers = {size}: space_cells = {list(grid.space_cells)} are {grid.sites} "
                f"cells to share out; use at most {grid.sites}"
            )
        return cls(grid, size)

    @cached_property
    def depth(self) -> int:
        """Axes, the first ones, that are cut."""
        cells = self.grid.space_cells
        return next(d for d in range(1, 4) if math.prod(cells[:d]) >= self.size)

    def cuts(self, axis: int) -> bool:
        """Whether pencils along an axis lie in several slabs."""
        return axis < self.depth and self.size > 1

    @cached_property
    def _edges(self) -> list[int]:
        return bounds(math.prod(self.grid.space_cells[: self.depth]), self.size)

    @cached_property
    def _inner(self) -> int:
        return math.prod(self.grid.space_cells[self.depth :])

    def sites(self, rank: int) -> slice:
        """Numbers of the sites that a worker holds."""
        return slice(self._edges[rank] * self._inner, self._edges[rank + 1] * self._inner)

    @cached_property
    def counts(self) -> list[int]:
        """How many sites each of them holds."""
        return [self.sites(k).stop - self.sites(k).start for k in range(self.size)]

    def slab(self, rank: int) -> PhaseSpace:
        """The sites of a worker as a grid; axes that are cut are one, and nothing streams there."""
        grid, depth = self.grid, self.depth
        rows = self._edges[rank + 1] - self._edges[rank]
        cells = (rows, *(1,) * (depth - 1), *grid.space_cells[depth:])
        return PhaseSpace(
            grid.momentum_cells, grid.momentum_max, cells, grid.space_max, grid.boundary,
            grid.momentum_boundary, grid.expansion,
        )  # fmt: skip

    # -- marginals of slabs ----------------------------------------------------------------------

    def kept_of_slab(self, kept: Sequence[str]) -> list[str]:
        """What a slab keeps of its directions for a marginal of all: x stands for its rows."""
        cut = AXES[: self.depth]
        rows = ["x"] if any(axis in cut for axis in kept) else []
        return rows + [axis for axis in kept if axis not in cut]

    def joined(self, parts: Sequence[Integers], kept: Sequence[str]) -> Integers:
        """The marginal of all sites from those of the slabs, (species, what is kept)."""
        cut = AXES[: self.depth]
        if not any(axis in cut for axis in kept):
            return sum(parts[1:], parts[0].copy())
        rows = np.concatenate(parts, axis=1)
        species, _, *others = rows.shape
        every = rows.reshape(species, *self.grid.space_cells[: self.depth], *others)
        return every.sum(axis=tuple(1 + i for i, axis in enumerate(cut) if axis not in kept))

    # -- pencils ---------------------------------------------------------------------------------

    def pencils(self, axis: int) -> list[slice]:
        """Transverse momenta of every worker along an axis, in whole groups of lanes."""
        across = self.grid.size // self.grid.momentum_cells[axis]
        edge = bounds(-(-across // LANES), self.size)
        return [
            slice(min(a * LANES, across), min(b * LANES, across))
            for a, b in itertools.pairwise(edge)
        ]

    def nodes(self, axis: int, pencils: slice) -> Integers:
        """Nodes of some pencils: for every momentum along the axis those of all of them."""
        m = self.grid.momentum_cells[axis]
        inner = math.prod(self.grid.momentum_cells[axis + 1 :])
        t = np.arange(pencils.start, pencils.stop)
        first = (t // inner) * (inner * m) + t % inner
        return (np.arange(m)[:, None] * inner + first[None, :]).ravel()
