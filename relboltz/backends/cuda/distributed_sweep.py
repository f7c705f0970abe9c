"""Sweeps along axes that slabs cut: pencils go to whoever sweeps them, and come back.

As ``cpu/slab`` does it; a GPU puts the nodes of a slab into the order of those who sweep them, so
that what each of them is given lies together, and gets there through the memory of the host.
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
"""Memory of the host, and the parts of it that are of each worker."""


@kernel
def turn(control, number, places, back, turned, aside):
    """The slab in another order of its nodes, or back again; aside : tells sweeps of the status.

    places : node, first node and number of nodes of whoever sweeps it, in the other order
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
    """An axis that is cut: which nodes each worker sweeps, and the pencils of this one, if any."""

    nodes: list[Integers]
    places: Any
    sweep: Sweep | None
    energies: Any
    refused: Any


class DistributedSweep:
    """All axes of a division that are cut, for one of the workers."""

    def __init__(self, backend: CudaBackend, division: Division, rank: int):
        self.backend, self.division, self.rank = backend, division, rank
        self.machine = machine = backend.machine
        size = DistributedSweep.bytes(division, rank, machine.species) // 8
        self._turned = machine.room((1, size), np.int64)
        self._aside = machine.new(k.CONTROLS, np.int64)  # numbers are in its row 0
        self._given, self._taken = (driver.pinned(size, np.int64) for _ in range(2))
        self._axes: dict[int, CutAxis] = {}
        self._grid = division.grid

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid."""
        self._grid = grid
        for axis, cut in self._axes.items():
            if cut.sweep is not None:
                cut.sweep.set_momentum_grid(self._pencils(axis))

    def _pencils(self, axis: int) -> Pencils:
        """Those of this worker."""
        whole = Pencils.of(self._grid, self.backend.model, axis)
        return whole.some(self.division.pencils(axis)[self.rank])

    @staticmethod
    def bytes(division: Division, rank: int, species: int) -> int:
        """Of a slab, or of the pencils that come in its place, whatever is more."""
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
        machine, shares = self.machine, self.division.pencils(axis)
        nodes = [self.division.nodes(axis, share) for share in shares]
        lengths = [len(some) for some in nodes]
        first = np.cumsum([0, *lengths[:-1]])
        places = np.stack(
            [np.concatenate(nodes), np.repeat(first, lengths), np.repeat(lengths, lengths)]
        )
        sweep, sums = None, [machine.new((n, 4), np.float64) for n in (1, machine.species)]
        if lengths[self.rank]:
            own, scratch = self._pencils(axis), self.backend.scratch
            sweep = Sweep(machine, own, lengths[self.rank], scratch)
            sums = [sweep.energies, sweep.refused]
        return CutAxis(nodes, machine.to(places, np.int64), sweep, *sums)

    def sweep(self, exchange: Exchange | None, axis: int, squares: Any, push: Any) -> CutAxis:
        """Sweep along an axis, for as long as the desk says; without exchange it is only launched.

        squares, push : of all sites
        """
        cut, machine, division = self._axis(axis), self.machine, self.division
        lengths = [len(some) for some in cut.nodes]
        rows = division.counts[self.rank] * machine.species
        width = lengths[self.rank] * machine.species
        given = self._given[: rows * machine.nodes]
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
        """Quanta that left in sweeps of all workers through open walls (side, species, node)."""
        cut, species = self._axis(axis), self.machine.species
        pieces = [np.zeros((2, species, len(some)), np.int64) for some in cut.nodes]
        own = pieces[self.rank]
        if cut.sweep is not None:
            own = self.backend.take_out(cut.sweep).reshape(own.shape)
        gathered(exchange, own, pieces)
        every = np.zeros((2, species, self.machine.nodes), np.int64)
        for some, piece in zip(cut.nodes, pieces, strict=True):
            every[:, :, some] = piece
        return every

    def _turn(self, cut: CutAxis, rows: int, back: bool) -> None:
        machine = self.machine
        machine.launch(
            turn, rows * -(-machine.nodes // k.THREADS), machine.desk.control, machine.number,
            cut.places, int(back), self._turned, self._aside,
        )  # fmt: skip

    def _swap(self, exchange: Exchange, mine: Buffer, theirs: Buffer) -> None:
        """Give away what lies in the memory of the GPU, and put there what comes."""
        (sent, parts), (come, rooms) = mine, theirs
        machine, turned = self.machine, self._turned[0]
        if sent.size:
            turned[: sent.size].copy_to_host(sent, stream=machine.stream)
            machine.wait()
        exchange.swap(parts, rooms)
        rooms[self.rank][...] = parts[self.rank]
        if come.size:
            turned[: come.size].copy_to_device(come, stream=machine.stream)
