"""How the pencils of an axis are shared out among the blocks of threads of a GPU, and swept."""

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
"""Of a block."""
FAR_THREADS = THREADS[-1]
MOST_LANES = 32
BUSY = 1 if driver.SIMULATED else 512
"""Threads that keep a multiprocessor busy: fewer ones take as long."""
WAITING = 1.0
"""What a group takes besides, in rounds of the threads over it."""
FILE = 2**16
"""Registers of a multiprocessor."""
RESERVED = 1024
"""Bytes of shared memory that every block takes for itself."""


@dataclass(frozen=True)
class SweepLayout:
    """Lanes of a group, threads and number of blocks, and the memory that each block needs."""

    lanes: int
    threads: int
    blocks: int
    bytes: int
    near: bool
    """Whether that is shared memory."""


def group_bytes(pencils: Pencils, lanes: int, threads: int) -> int:
    """Rows of a group, and what all of its lanes share; at least a number for each thread."""
    n, _, m, _ = pencils.lines
    return 8 * max(ROWS * (n + 1) * (m + 1) * lanes + m + 4 * n + 1, threads)


def groups(pencils: Pencils, lanes: int) -> int:
    """Groups of all species."""
    return pencils.across * pencils.species * -(-len(pencils.transverse_p2) // lanes)


def sharing(pencils: Pencils, scratch: float) -> SweepLayout:
    """The fastest one by a rough count of rounds; scratch : bytes for pencils that fit nowhere."""
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
    """The whole numbers of a sweep."""
    m, across = pencils.lines[2], len(pencils.transverse_p2)
    blocks = -(-across // lanes)
    values = [*pencils.lines, *pencils.walls, pencils.species, nodes, pencils.across, blocks]
    for some in (lanes, across - (blocks - 1) * lanes):
        values += [some, divisor(some), divisor((m + 1) * some)]
    return np.array(values, np.int64)


def fineness(pencils: Pencils) -> float:
    """In how many parts of a GeV energies are counted: 16 to 31 at the edge of the box."""
    edge = 0.5 * pencils.lines[2] * pencils.widths[1]
    return 2.0 ** (4 - math.floor(math.log2(edge)))


class SweepMemory:
    """Memory for pencils that do not fit into shared memory: all axes use the same."""

    def __init__(self, machine: DeviceBuffers, most: float):
        self.machine, self.most = machine, most
        self.array: Any = None

    def of(self, shared: SweepLayout) -> Any:
        """A row for each block of threads."""
        size = shared.bytes // 8
        self.hold(shared)
        return self.array[: shared.blocks * size].reshape(shared.blocks, size)

    def hold(self, shared: SweepLayout) -> None:
        """See that there is enough."""
        size = 1 if shared.near else shared.blocks * shared.bytes // 8
        if self.array is None or self.array.size < size:
            self.array = self.machine.room(size, np.float64)


class Sweep:
    """The pencils of an axis on a GPU, and what the last sweep of them found.

    nodes : of the state that they lie in; let_out : where quanta that leave are added up;
    energies, refused : as ``transport.sweep`` has them
    """

    def __init__(self, machine: DeviceBuffers, pencils: Pencils, nodes: int, scratch: SweepMemory):
        self.machine, self.pencils, self._scratch = machine, pencils, scratch
        self._shared = shared = sharing(pencils, scratch.most)
        scratch.hold(shared)
        self._constants = (
            machine.to(whole_numbers(pencils, nodes, shared.lanes), np.int64),
            machine.to([*pencils.widths, fineness(pencils)], np.float64),
            machine.to(pencils.p, np.float64),
            machine.to(pencils.transverse_p2, np.float64),
        )  # fmt: skip
        species, blocks = pencils.species, shared.blocks
        self.let_out = machine.new(2 * species * nodes if pencils.open else 1, np.int64)
        self.energies = machine.new((blocks, 4), np.float64)
        self.refused = machine.new((blocks * species, 4), np.float64)
        self._tallies = machine.new(TALLIES * blocks * shared.threads, np.float64)

    def set_momentum_grid(self, pencils: Pencils) -> None:
        """The same pencils with other momenta."""
        self.pencils = pencils
        widths = [*pencils.widths, fineness(pencils)]
        for there, values in zip(
            self._constants[1:], (widths, pencils.p, pencils.transverse_p2), strict=True
        ):
            there.copy_to_device(np.ascontiguousarray(values, np.float64))

    def launch(self, control: Any, number: Any, squares: Any, push: Any, capacity: Any) -> None:
        """Sweep them in two rows of numbers, for as long as the desk says."""
        machine, shared = self.machine, self._shared
        given = (control, machine.desk.scalars, number, squares, push, *self._constants, capacity)
        found = (self.let_out, self.energies, self.refused, self._tallies)
        launch = (shared.blocks, shared.threads)
        if shared.near:
            roomy = driver.roomy(sweep[*launch, machine.stream, shared.bytes])
            roomy(*given, *found)
        else:
            far_sweep[*launch, machine.stream](*given, self._scratch.of(shared), *found)

    def sums(self) -> Array:
        """Energies that left, and quanta refused of every species: whole parts, see SPLIT."""
        energies, refused = self.machine.fetch(self.energies), self.machine.fetch(self.refused)
        by_species = refused.reshape(-1, 4 * self.pencils.species).sum(axis=0)
        return np.concatenate([energies.sum(axis=0) / fineness(self.pencils), by_species])


def passage(axis: int, left: Integers, sums: Array) -> WallFlux:
    """What left, and the sums of a sweep, put together."""
    high, low = sums.reshape(-1, 2).T
    joined = (high * k.SPLIT + low).reshape(-1, 2)
    return WallFlux(axis, left, joined[0], joined[1:].T)
