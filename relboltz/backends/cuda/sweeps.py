"""How the pencils of an axis are shared out among the blocks of threads of a GPU."""

from dataclasses import dataclass

import numpy as np

from ...arrays import Integers
from ...transport.pencils import Pencils
from . import driver
from .planes import ROWS, divisor
from .transport import REGISTERS

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
class Sharing:
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


def sharing(pencils: Pencils, scratch: float) -> Sharing:
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
                best, least = Sharing(lanes, threads, blocks, size, True), time
    if best is not None:
        return best
    size = group_bytes(pencils, 1, FAR_THREADS)
    fitting = int(max(scratch, size) / size)
    return Sharing(1, FAR_THREADS, min(groups(pencils, 1), units, fitting), size, False)


def whole_numbers(pencils: Pencils, nodes: int, lanes: int) -> Integers:
    """The whole numbers of a sweep."""
    m, across = pencils.lines[2], len(pencils.transverse_p2)
    blocks = -(-across // lanes)
    values = [*pencils.lines, *pencils.walls, pencils.species, nodes, pencils.across, blocks]
    for some in (lanes, across - (blocks - 1) * lanes):
        values += [some, divisor(some), divisor((m + 1) * some)]
    return np.array(values, np.int64)
