"""Sweeps of the pencils along an axis, and their distribution over blocks of threads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...transport.ledger import WallFlux
from ...transport.pencils import Pencils
from ...util.arrays import Array, Integers
from . import driver
from . import layout as k
from .planes import ROWS, divisor
from .transport import REGISTERS, TALLIES, far_sweep, sweep

if TYPE_CHECKING:
    from .device_buffers import DeviceBuffers

THREADS = (2,) if driver.SIMULATED else (128, 256, 512)
"""Numbers of threads per block to choose from."""
FAR_THREADS = THREADS[-1]
MOST_LANES = 32
BUSY = 1 if driver.SIMULATED else 512
"""Threads that keep a multiprocessor busy: fewer threads take as long."""
WAITING = 1.0
"""Overhead of a group, in passes of the threads over it."""
FILE = 2**16
"""Registers per multiprocessor."""
RESERVED = 1024
"""Bytes of shared memory reserved by the system for every block."""


@dataclass(frozen=True)
class SweepLayout:
    """Lanes per group, threads per block, number of blocks, and bytes of memory per block."""

    lanes: int
    threads: int
    blocks: int
    bytes: int
    near: bool
    """Whether the memory of a block is shared memory."""


def group_bytes(pencils: Pencils, lanes: int, threads: int) -> int:
    """Return the bytes of a group, including data shared by its lanes; 8 per thread at least."""
    n, _, m, _ = pencils.lines
    return 8 * max(ROWS * (n + 1) * (m + 1) * lanes + m + 4 * n + 1, threads)


def groups(pencils: Pencils, lanes: int) -> int:
    """Return the number of groups of all species."""
    return pencils.across * pencils.species * -(-len(pencils.transverse_p2) // lanes)


def sharing(pencils: Pencils, scratch: float) -> SweepLayout:
    """Return the layout of a sweep that is fastest by a rough estimate.

    scratch : bytes of memory for pencils that do not fit into shared memory
    """
    units, (of_block, of_unit) = driver.multiprocessors(), driver.shared_memory()
    n, _, m, _ = pencils.lines
    best, least = None, float("inf")
    for threads in THREADS:
        for lanes in range(1, min(MOST_LANES, len(pencils.transverse_p2)) + 1):
            size = group_bytes(pencils, lanes, threads)
            at_once = min(of_unit // (size + RESERVED), FILE // (threads * REGISTERS))
            if size > of_block or at_once < 1:
                break
            many = groups(pencils, lanes)
            rounds = -(-many // (units * at_once))
            at_once = min(at_once, -(-many // units))
            turns = -(-(n + 1) * (m + 1) * lanes // threads)
            time = rounds * (turns + WAITING) * max(BUSY, at_once * threads)
            if time <= least:
                blocks = min(many, units * at_once)
                best, least = SweepLayout(lanes, threads, blocks, size, True), time
    if best is not None:
        return best
    size = group_bytes(pencils, 1, FAR_THREADS)
    fitting = int(max(scratch, size) / size)
    return SweepLayout(1, FAR_THREADS, min(groups(pencils, 1), units, fitting), size, False)


def whole_numbers(pencils: Pencils, nodes: int, lanes: int) -> Integers:
    """Return the integer parameters of a sweep (``transport``)."""
    m, across = pencils.lines[2], len(pencils.transverse_p2)
    blocks = -(-across // lanes)
    values = [*pencils.lines, *pencils.walls, pencils.species, nodes, pencils.across, blocks]
    for some in (lanes, across - (blocks - 1) * lanes):
        values += [some, divisor(some), divisor((m + 1) * some)]
    return np.array(values, np.int64)


def fineness(pencils: Pencils) -> float:
    """Return the energy units per GeV; the edge of the box then has 16 to 31 units."""
    edge = 0.5 * pencils.lines[2] * pencils.widths[1]
    return 2.0 ** (4 - math.floor(math.log2(edge)))


class SweepMemory:
    """GPU memory for pencils that do not fit in shared memory, used by all axes in turn."""

    def __init__(self, buffers: DeviceBuffers, most: float):
        self.buffers, self.most = buffers, most
        self.array: Any = None

    def of(self, shared: SweepLayout) -> Any:
        """Return an array with one row per block of threads."""
        size = shared.bytes // 8
        self.hold(shared)
        return self.array[: shared.blocks * size].reshape(shared.blocks, size)

    def hold(self, shared: SweepLayout) -> None:
        """Allocate more memory if the layout needs it."""
        size = 1 if shared.near else shared.blocks * shared.bytes // 8
        if self.array is None or self.array.size < size:
            self.array = self.buffers.room(size, np.float64)


class Sweep:
    """Pencils of an axis on a GPU, and the results of the last sweep.

    nodes : number of nodes of the state; let_out : sums of the quanta that left; energies,
    refused : as in ``transport.sweep``
    """

    def __init__(self, buffers: DeviceBuffers, pencils: Pencils, nodes: int, scratch: SweepMemory):
        self.buffers, self.pencils, self._scratch = buffers, pencils, scratch
        self._shared = shared = sharing(pencils, scratch.most)
        scratch.hold(shared)
        self._constants = (
            buffers.to(whole_numbers(pencils, nodes, shared.lanes), np.int64),
            buffers.to([*pencils.widths, fineness(pencils)], np.float64),
            buffers.to(pencils.p, np.float64),
            buffers.to(pencils.transverse_p2, np.float64),
        )  # fmt: skip
        species, blocks = pencils.species, shared.blocks
        self.let_out = buffers.new(2 * species * nodes if pencils.open else 1, np.int64)
        self.energies = buffers.new((blocks, 4), np.float64)
        self.refused = buffers.new((blocks * species, 4), np.float64)
        self._tallies = buffers.new(TALLIES * blocks * shared.threads, np.float64)

    def set_momentum_grid(self, pencils: Pencils) -> None:
        """Switch to the momenta of other pencils of equal shape."""
        self.pencils = pencils
        widths = [*pencils.widths, fineness(pencils)]
        for there, values in zip(
            self._constants[1:], (widths, pencils.p, pencils.transverse_p2), strict=True
        ):
            there.copy_to_device(np.ascontiguousarray(values, np.float64))

    def launch(self, control: Any, number: Any, squares: Any, push: Any, capacity: Any) -> None:
        """Launch the sweep from the source to the target row, for the duration in the context."""
        buffers, shared = self.buffers, self._shared
        given = (
            control,
            buffers.context.scalars,
            number,
            squares,
            push,
            *self._constants,
            capacity,
        )
        found = (self.let_out, self.energies, self.refused, self._tallies)
        launch = (shared.blocks, shared.threads)
        if shared.near:
            roomy = driver.roomy(sweep[*launch, buffers.stream, shared.bytes])
            roomy(*given, *found)
        else:
            far_sweep[*launch, buffers.stream](*given, self._scratch.of(shared), *found)

    def sums(self) -> Array:
        """Return energies that left and quanta refused per species, as exact pairs (``SPLIT``)."""
        energies, refused = self.buffers.fetch(self.energies), self.buffers.fetch(self.refused)
        by_species = refused.reshape(-1, 4 * self.pencils.species).sum(axis=0)
        return np.concatenate([energies.sum(axis=0) / fineness(self.pencils), by_species])


def passage(axis: int, left: Integers, sums: Array) -> WallFlux:
    """Combine the quanta that left and the sums of a sweep into a ``WallFlux``."""
    high, low = sums.reshape(-1, 2).T
    joined = (high * k.SPLIT + low).reshape(-1, 2)
    return WallFlux(axis, left, joined[0], joined[1:].T)
