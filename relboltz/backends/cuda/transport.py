"""One transport substep on a GPU: each block of threads advances groups of pencils.

A group lies in shared memory or, if it does not fit there, in the global memory of the GPU.
"""

import math
from functools import partial

import numpy as np
from numba import float64, int64

from ...transport.plane import CLOSED, OPEN
from . import layout as k
from .driver import kernel
from .limits import find_limits, limited_fluxes, mend, none_illegal
from .physics import cuda, keep_sums, physics
from .planes import (
    BEHIND,
    BY_LANES,
    ENERGY,
    NUMBER,
    ONWARD,
    ROWS,
    STAGE,
    SUM_ALONG,
    SUM_UP,
    UPWARD,
    M,
    N,
    array_function,
    cell_at,
    compiled,
    divided,
    following,
    force,
    get,
    is_cell,
    put,
    runge_kutta,
    set_rates,
    thread,
)

REGISTERS = 96
"""Most registers per thread, so that 640 threads fit on a multiprocessor."""
(CELLS, SITE_STEP, MOMENTA, NODE_STEP, WALL, EDGE, SPECIES, NODES, LINES, BLOCKS, LANES,
 LANES_BY, LINE_BY, LAST, LAST_BY, LAST_LINE_BY) = range(16)  # fmt: skip
"""Integer parameters of a sweep: see ``Pencils``; transverse sites; groups formed by the transverse
momenta; lanes of a group, and the factors that divide by the lanes and by the places of a line; the
same three numbers for the last group."""
DX, DP, FINE = range(3)
"""Cell widths in x and p, and the energy units per GeV (``sweeps.fineness``)."""
OUT_LOW, OUT_HIGH, LOW, HIGH = 0, 2, 4, 6
"""Sums of a thread: energy that leaves and quanta refused, on either side, as two numbers each
(``layout.SPLIT``). They are kept in memory to save registers."""
TALLIES = 8
EXACT = 2.0**53
"""Integers below this are exact in floating point, so that they need not be read again."""


# --- sums -----------------------------------------------------------------------------------------


@array_function
def tally_at(column):
    """Return the position of one of this thread's sums."""
    slot = np.uint32(cuda.blockIdx.x) * np.uint32(cuda.blockDim.x) + np.uint32(cuda.threadIdx.x)
    return np.uint32(slot * np.uint32(TALLIES) + np.uint32(column))


@array_function
def tally(tallies, column, x):
    """Add to a sum of this thread, rounded to the nearest integer."""
    many = physics.floor(x * (1.0 / k.SPLIT))
    tallies[tally_at(column)] += many
    tallies[tally_at(column + 1)] += physics.nearest_integer(x - many * k.SPLIT)


@array_function
def clear(tallies, first):
    """Set the sums of both sides to zero."""
    for i in range(4):
        tallies[tally_at(first + i)] = 0.0


@array_function
def keep(w, tallies, first, row):
    """Write the sums of both sides, added over the threads."""
    cuda.syncthreads()
    keep_sums(
        w, (tallies[tally_at(first)], tallies[tally_at(first + 1)], tallies[tally_at(first + 2)],
            tallies[tally_at(first + 3)]), row,
    )  # fmt: skip
    cuda.syncthreads()


# --- from state to state -------------------------------------------------------------------------


@array_function
def split(x, n):
    """Return x/n rounded down and the remainder; 32-bit division is several times faster."""
    part = np.uint32(x) // np.uint32(n)
    return int64(part), int64(x - part * np.uint32(n))


@array_function
def node_at(number, j, whole):
    """Return the node of momentum j of pencil ``number`` among the transverse momenta."""
    outer, rest = split(number, whole[NODE_STEP])
    return outer * (whole[NODE_STEP] * whole[MOMENTA]) + rest + j * whole[NODE_STEP]


@array_function
def shape_of(block, whole):
    """Return the shape of one of the groups formed by the transverse momenta."""
    which = LANES if block < whole[BLOCKS] - 1 else LAST
    n, m, lanes = np.int32(whole[CELLS]), np.int32(whole[MOMENTA]), np.int32(whole[which])
    line = np.int32((m + 1) * ROWS)
    return (
        n, m, lanes, np.int32(whole[WALL]), np.int32(whole[EDGE]), np.int32(ROWS * lanes),
        np.int32(line * lanes), np.int32((n + 1) * line * whole[LANES]),
        np.uint32(whole[which + 1]), np.uint32(whole[which + 2]),
    )  # fmt: skip


@array_function
def site_at(start, i, whole):
    """Return the site of cell i along the axis, at most one cell beyond the edges."""
    return start + compiled.next_site(i, whole[CELLS], whole[WALL]) * whole[SITE_STEP]


@array_function
def cell_of(i, j, lane, origin, whole):
    """Return the index in the state of a cell of a group; origin : see ``take_up``."""
    site, node = origin[0] + i * whole[SITE_STEP], node_at(origin[2] + lane, j, whole)
    return (site * whole[SPECIES] + origin[1]) * whole[NODES] + node


@array_function
def quanta(old, place, origin, count, whole, shape):
    """Return the quanta in a cell; 0 if there is no such cell."""
    if place >= count:
        return int64(0)
    i, j, lane, _ = cell_at(place, shape)
    if not is_cell(i, j, shape):
        return int64(0)
    return old[cell_of(i, j, lane, origin, whole)]


@array_function
def begin(w, place, number, count):
    """Set the quanta in a cell."""
    if place < count:
        put(w, NUMBER, place * ROWS, float64(number))
        put(w, STAGE, place * ROWS, float64(number))


@array_function
def take_up(w, old, squares, forces, p, q2, origin, count, steps, whole, shape):
    """Load a group; origin : first site, species, first pencil among the transverse ones."""
    start, a, first = origin
    n, m = shape[N], shape[M]
    edges = shape[BEHIND] + m
    for j in range(cuda.threadIdx.x, m, cuda.blockDim.x):
        put(w, j, shape[BEHIND], p[j])
    for i in range(cuda.threadIdx.x, n + 1, cuda.blockDim.x):
        site = site_at(start, i, whole)
        m2 = squares[site, a]
        edge = 0.5 * (squares[site_at(start, i - 1, whole), a] + m2)
        put(w, i, edges, edge)
        if i < n:
            after = 0.5 * (m2 + squares[site_at(start, i + 1, whole), a])
            put(w, i, edges + n + 1, edge - after)
            if steps[4]:
                put(w, i, edges + 2 * n + 1, forces[site, a, 0])
                put(w, i, edges + 3 * n + 1, forces[site, a, 1])
    place = thread()
    while place < count:  # four at once, to hide memory latency
        second = following(place)
        third = following(second)
        fourth = following(third)
        one = quanta(old, place, origin, count, whole, shape)
        two = quanta(old, second, origin, count, whole, shape)
        three = quanta(old, third, origin, count, whole, shape)
        four = quanta(old, fourth, origin, count, whole, shape)
        begin(w, place, one, count)
        begin(w, second, two, count)
        begin(w, third, three, count)
        begin(w, fourth, four, count)
        place = following(fourth)
    cuda.syncthreads()
    place = thread()
    while place < count:
        i, j, lane, here = cell_at(place, shape)
        low = (j - 0.5 * m) * steps[3]
        energy2 = low * low + q2[first + lane] + get(w, i, edges)
        put(w, ENERGY, here, physics.root(energy2))
        place = following(place)
    cuda.syncthreads()


@array_function
def refusal(w, steps, whole, shape, tallies):
    """Add up the quanta that the force would have pushed through closed momentum faces."""
    m, lanes = shape[M], shape[2]
    if whole[EDGE] == CLOSED:
        entry = thread()
        while entry < shape[N] * lanes:
            i = divided(entry, shape[BY_LANES])
            here = i * shape[ONWARD] + (entry - i * lanes) * ROWS
            top = here + m * shape[UPWARD]
            last = get(w, NUMBER, top - shape[UPWARD])
            below = -force(w, i, 0, here, steps, shape) * get(w, NUMBER, here)
            tally(tallies, LOW, max(below, 0.0))
            tally(tallies, HIGH, max(force(w, i, m, top, steps, shape) * last, 0.0))
            entry = following(entry)


@array_function
def hand_over(w, rows, squares, widths, p, q2, origin, count, ledger, tallies, whole, shape):
    """Write the new state, and add up quanta and energy that leave through open walls.

    rows : old and new row of ``number``
    """
    old, new = rows
    start, a, first = origin
    n, nodes, wall = shape[N], whole[NODES], whole[WALL] == OPEN
    place = thread()
    while place < count:
        i, j, lane, here = cell_at(place, shape)
        if is_cell(i, j, shape):
            cell, held = cell_of(i, j, lane, origin, whole), get(w, NUMBER, here)
            number = int64(held) if held < EXACT else old[cell]
            left, right = get(w, SUM_ALONG, here), get(w, SUM_ALONG, here + shape[ONWARD])
            below, above = get(w, SUM_UP, here), get(w, SUM_UP, here + shape[UPWARD])
            new[cell] = number + (int64(left) - int64(right) + int64(below) - int64(above))
            if wall and (i == 0 or i == n - 1):
                m2 = squares[start + i * whole[SITE_STEP], a]
                energy = math.sqrt(p[j] * p[j] + q2[first + lane] + m2) * widths[FINE]
                entry = a * nodes + node_at(first + lane, j, whole)
                if i == 0:
                    cuda.atomic.add(ledger, entry, int64(-left))
                    tally(tallies, OUT_LOW, -left * energy)
                if i == n - 1:
                    cuda.atomic.add(ledger, entry + whole[SPECIES] * nodes, int64(right))
                    tally(tallies, OUT_HIGH, right * energy)
        place = following(place)


@array_function
def sweep_groups(w, control, scalars, number, squares, forces, whole, widths, p, q2, capacity,
                 ledger, energies, refused, tallies):  # fmt: skip
    """Sweep groups in order of species, so that the sums of a species are written once."""
    lasts = scalars[k.LASTS]
    steps = (lasts / widths[DX], lasts / widths[DP], widths[DX], widths[DP], forces.shape[0] > 0)
    rows = (number[control[k.SOURCE]], number[control[k.TARGET]])
    clear(tallies, OUT_LOW)
    group = cuda.blockIdx.x
    for a in range(whole[SPECIES]):
        clear(tallies, LOW)
        while group < (a + 1) * whole[BLOCKS] * whole[LINES]:
            line, block = split(group - a * whole[BLOCKS] * whole[LINES], whole[BLOCKS])
            shape = shape_of(block, whole)
            count = np.int32((shape[N] + 1) * (shape[M] + 1) * shape[2])
            outer, inner = split(line, whole[SITE_STEP])
            start = outer * (whole[SITE_STEP] * whole[CELLS]) + inner
            origin = (start, a, block * whole[LANES])
            take_up(w, rows[0], squares, forces, p, q2, origin, count, steps, whole, shape)
            refusal(w, steps, whole, shape, tallies)
            set_rates(w, count, steps, shape)
            runge_kutta(w, count, shape)
            find_limits(w, count, capacity[a], shape)
            limited_fluxes(w, count, shape)
            if not none_illegal(w, count, capacity[a], shape):
                mend(w, count, capacity[a], shape)
            hand_over(w, rows, squares, widths, p, q2, origin, count, ledger, tallies, whole,
                      shape)  # fmt: skip
            group += cuda.gridDim.x
        if whole[EDGE] == CLOSED:
            keep(w, tallies, LOW, refused[cuda.blockIdx.x * whole[SPECIES] + a])
    if whole[WALL] == OPEN:
        keep(w, tallies, OUT_LOW, energies[cuda.blockIdx.x])


@partial(kernel, max_registers=REGISTERS, shared_memory_carveout=100)
def sweep(control, scalars, number, squares, push, whole, widths, p, transverse_p2, capacity,
          ledger, energies, refused, tallies):  # fmt: skip
    """Advance all pencils along one axis, from one row of ``number`` to another, as on the CPU.

    energies : (blocks, 4), energy that left through open walls, low and high side, two numbers each
    refused : (blocks * species, 4), quanta refused by closed momentum faces, in the same layout
    tallies : TALLIES sums per thread
    """
    w = cuda.shared.array(0, float64)
    if control[k.STATUS] == k.GO:
        sweep_groups(w, control, scalars, number, squares, push, whole, widths, p, transverse_p2,
                     capacity, ledger, energies, refused, tallies)  # fmt: skip


@partial(kernel, max_registers=REGISTERS)
def far_sweep(control, scalars, number, squares, push, whole, widths, p, transverse_p2, capacity,
              scratch, ledger, energies, refused, tallies):  # fmt: skip
    """Advance pencils that do not fit in shared memory; scratch : one row per block."""
    if control[k.STATUS] == k.GO:
        sweep_groups(scratch[cuda.blockIdx.x], control, scalars, number, squares, push, whole,
                     widths, p, transverse_p2, capacity, ledger, energies, refused,
                     tallies)  # fmt: skip
