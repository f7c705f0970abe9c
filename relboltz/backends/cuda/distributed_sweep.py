"""Sweeps along axes cut by slabs: pencils go to the worker that sweeps them, and come back.

The scheme is that of ``cpu/slab``. The GPU orders the nodes of a slab by the worker that sweeps
them, so that each worker's share is contiguous; shares are sent through host memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...transport.pencils import Pencils
from ...util.arrays import Integers
from ..team.division import Division
from ..team.exchange import Exchange, gathered
from . import driver
from . import layout as k
from .driver import kernel
from .layout import THREADS
from .physics import cuda
from .sweeps import Sweep

if TYPE_CHECKING:
    from .backend import CudaBackend

Buffer = tuple[Integers, list[Integers]]
"""Host memory, and the part of it that belongs to each worker."""


@kernel
def turn(control, number, places, back, turned, aside):
    """Reorder the nodes of the slab by worker, or back; aside : control array for the sweeps.

    places : node, and first node and number of nodes of its worker, in the order by worker
    """
    nodes = places.shape[1]
    pieces = (nodes + THREADS - 1) // THREADS
    row, i = cuda.blockIdx.x // pieces, cuda.blockIdx.x % pieces * THREADS + cuda.threadIdx.x
    if row == 0 and i == 0:
        aside[k.STATUS] = control[k.STATUS]
    if i >= nodes or control[k.STATUS] != k.GO:
        return
    cell, first, length = row * nodes + places[0, i], places[1, i], places[2, i]
    there = cuda.gridDim.x // pieces * first + row * length + i - first
    if back != 0:
        number[control[k.TARGET], cell] = turned[0, there]
    else:
        turned[0, there] = number[control[k.SOURCE], cell]


@dataclass
class CutAxis:
    """An axis cut by slabs: the nodes that each worker sweeps, and this worker's sweep, if any."""

    nodes: list[Integers]
    places: Any
    sweep: Sweep | None
    energies: Any
    refused: Any


class DistributedSweep:
    """Sweeps along all cut axes of a division, for one worker."""

    def __init__(self, backend: CudaBackend, division: Division, rank: int):
        self.backend, self.division, self.rank = backend, division, rank
        self.buffers = buffers = backend.buffers
        size = DistributedSweep.bytes(division, rank, buffers.species) // 8
        self._turned = buffers.room((1, size), np.int64)
        self._aside = buffers.new(k.CONTROLS, np.int64)  # the quanta are in row 0 of _turned
        self._given, self._taken = (driver.pinned(size, np.int64) for _ in range(2))
        self._axes: dict[int, CutAxis] = {}
        self._grid = division.grid

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid."""
        self._grid = grid
        for axis, cut in self._axes.items():
            if cut.sweep is not None:
                cut.sweep.set_momentum_grid(self._pencils(axis))

    def _pencils(self, axis: int) -> Pencils:
        """Return the pencils that this worker sweeps."""
        whole = Pencils.of(self._grid, self.backend.model, axis)
        return whole.some(self.division.pencils(axis)[self.rank])

    @staticmethod
    def bytes(division: Division, rank: int, species: int) -> int:
        """Return the bytes of a slab or of the pencils that replace it, whichever is larger."""
        grid, sizes = division.grid, [division.counts[rank] * division.grid.size]
        for axis in filter(division.cuts, range(3)):
            share = division.pencils(axis)[rank]
            sizes.append(grid.sites * (share.stop - share.start) * grid.momentum_cells[axis])
        return 8 * species * max(sizes)

    def _axis(self, axis: int) -> CutAxis:
        if axis not in self._axes:
            self._axes[axis] = self._cut(axis)
        return self._axes[axis]

    def _cut(self, axis: int) -> CutAxis:
        buffers, shares = self.buffers, self.division.pencils(axis)
        nodes = [self.division.nodes(axis, share) for share in shares]
        lengths = [len(some) for some in nodes]
        first = np.cumsum([0, *lengths[:-1]])
        places = np.stack(
            [np.concatenate(nodes), np.repeat(first, lengths), np.repeat(lengths, lengths)]
        )
        sweep, sums = None, [buffers.new((n, 4), np.float64) for n in (1, buffers.species)]
        if lengths[self.rank]:
            own, scratch = self._pencils(axis), self.backend.scratch
            sweep = Sweep(buffers, own, lengths[self.rank], scratch)
            sums = [sweep.energies, sweep.refused]
        return CutAxis(nodes, buffers.to(places, np.int64), sweep, *sums)

    def sweep(self, exchange: Exchange | None, axis: int, squares: Any, push: Any) -> CutAxis:
        """Sweep along an axis for the duration in the context; without exchange, only launch it.

        squares, push : squared masses and external force at all sites
        """
        cut, buffers, division = self._axis(axis), self.buffers, self.division
        lengths = [len(some) for some in cut.nodes]
        rows = division.counts[self.rank] * buffers.species
        width = lengths[self.rank] * buffers.species
        given = self._given[: rows * buffers.nodes]
        taken = self._taken[: width * division.grid.sites]
        parts = np.split(given, rows * np.cumsum(lengths)[:-1])
        pieces = np.split(taken, width * np.cumsum(division.counts)[:-1])
        self._turn(cut, rows, back=False)
        if exchange is not None:
            self._swap(exchange, (given, parts), (taken, pieces))
        if cut.sweep is not None:
            cut.sweep.launch(self._aside, self._turned, squares, push, self.backend.capacity)
        if exchange is not None:
            self._swap(exchange, (taken, pieces), (given, parts))
        self._turn(cut, rows, back=True)
        return cut

    def left(self, exchange: Exchange, axis: int) -> Integers:
        """Return quanta that left through open walls in all sweeps (side, species, node)."""
        cut, species = self._axis(axis), self.buffers.species
        pieces = [np.zeros((2, species, len(some)), np.int64) for some in cut.nodes]
        own = pieces[self.rank]
        if cut.sweep is not None:
            own = self.backend.take_out(cut.sweep).reshape(own.shape)
        gathered(exchange, own, pieces)
        every = np.zeros((2, species, self.buffers.nodes), np.int64)
        for some, piece in zip(cut.nodes, pieces, strict=True):
            every[:, :, some] = piece
        return every

    def _turn(self, cut: CutAxis, rows: int, back: bool) -> None:
        buffers = self.buffers
        buffers.launch(
            turn, rows * -(-buffers.nodes // k.THREADS), buffers.context.control, buffers.number,
            cut.places, int(back), self._turned, self._aside,
        )  # fmt: skip

    def _swap(self, exchange: Exchange, mine: Buffer, theirs: Buffer) -> None:
        """Send the contents of the GPU buffer to the workers, and fill it with what they send."""
        (sent, parts), (come, rooms) = mine, theirs
        buffers, turned = self.buffers, self._turned[0]
        if sent.size:
            turned[: sent.size].copy_to_host(sent, stream=buffers.stream)
            buffers.wait()
        exchange.swap(parts, rooms)
        rooms[self.rank][...] = parts[self.rank]
        if come.size:
            turned[: come.size].copy_to_device(come, stream=buffers.stream)
