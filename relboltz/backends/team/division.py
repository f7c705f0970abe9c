"""Domain decomposition: slabs of sites to store, and pencils to sweep along a divided axis.

Site numbers run with z fastest, so a slab is a range of sites: of planes of x, or, if there are
more workers than planes, of rows, or of single sites. Along an axis that slabs divide, no worker
has whole pencils; each worker then sweeps some of the transverse momenta of all sites
(``pencils``).
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
    """A grid divided among workers."""

    grid: PhaseSpace
    size: int

    @classmethod
    def of(cls, grid: PhaseSpace, size: int) -> Division:
        """Divide a grid among ``size`` workers; each must have a site."""
        if size > grid.sites:
            raise InputError(
                f"run.workers = {size}: space_cells = {list(grid.space_cells)} are {grid.sites} "
                f"cells to share out; use at most {grid.sites}"
            )
        return cls(grid, size)

    @cached_property
    def depth(self) -> int:
        """Number of leading axes that are divided."""
        cells = self.grid.space_cells
        return next(d for d in range(1, 4) if math.prod(cells[:d]) >= self.size)

    def cuts(self, axis: int) -> bool:
        """Return whether pencils along an axis extend over several slabs."""
        return axis < self.depth and self.size > 1

    @cached_property
    def _edges(self) -> list[int]:
        return bounds(math.prod(self.grid.space_cells[: self.depth]), self.size)

    @cached_property
    def _inner(self) -> int:
        return math.prod(self.grid.space_cells[self.depth :])

    def sites(self, rank: int) -> slice:
        """Return the global site numbers of a worker."""
        return slice(self._edges[rank] * self._inner, self._edges[rank + 1] * self._inner)

    @cached_property
    def counts(self) -> list[int]:
        """Number of sites of each worker."""
        return [self.sites(k).stop - self.sites(k).start for k in range(self.size)]

    def slab(self, rank: int) -> PhaseSpace:
        """Return the sites of a worker as a grid; divided axes are merged and do not stream."""
        grid, depth = self.grid, self.depth
        rows = self._edges[rank + 1] - self._edges[rank]
        cells = (rows, *(1,) * (depth - 1), *grid.space_cells[depth:])
        return PhaseSpace(
            grid.momentum_cells, grid.momentum_max, cells, grid.space_max, grid.boundary,
            grid.momentum_boundary, grid.expansion,
        )  # fmt: skip

    # -- marginals of slabs ----------------------------------------------------------------------

    def kept_of_slab(self, kept: Sequence[str]) -> list[str]:
        """Return the directions a slab keeps for a marginal of all sites; x stands for its rows."""
        cut = AXES[: self.depth]
        rows = ["x"] if any(axis in cut for axis in kept) else []
        return rows + [axis for axis in kept if axis not in cut]

    def joined(self, parts: Sequence[Integers], kept: Sequence[str]) -> Integers:
        """Combine the marginals of the slabs, (species, kept directions), to that of all sites."""
        cut = AXES[: self.depth]
        if not any(axis in cut for axis in kept):
            return sum(parts[1:], parts[0].copy())
        rows = np.concatenate(parts, axis=1)
        species, _, *others = rows.shape
        every = rows.reshape(species, *self.grid.space_cells[: self.depth], *others)
        return every.sum(axis=tuple(1 + i for i, axis in enumerate(cut) if axis not in kept))

    # -- pencils ---------------------------------------------------------------------------------

    def pencils(self, axis: int) -> list[slice]:
        """Return the transverse momenta of every worker along an axis, in whole lane groups."""
        across = self.grid.size // self.grid.momentum_cells[axis]
        edge = bounds(-(-across // LANES), self.size)
        return [
            slice(min(a * LANES, across), min(b * LANES, across))
            for a, b in itertools.pairwise(edge)
        ]

    def nodes(self, axis: int, pencils: slice) -> Integers:
        """Return the nodes of some pencils, ordered by momentum along the axis, then by pencil."""

        m = self.grid.momentum_cells[axis]
        inner = math.prod(self.grid.momentum_cells[axis + 1 :])
        t = np.arange(pencils.start, pencils.stop)
        first = (t // inner) * (inner * m) + t % inner
        return (np.arange(m)[:, None] * inner + first[None, :]).ravel()
