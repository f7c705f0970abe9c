"""One substep of transport on a GPU: a block of threads advances a group of pencils.

The threads of a block share out the cells and lanes of a group, and wait for one another after
every phase.
"""

import math
from functools import partial

import numpy as np
from numba import float64, int64

from ...arrays import Integers
from ...compiling import build, functions_of
from ...grid import MAX_CELLS
from ...transport import phases, plane
from ...transport.pencils import Pencils
from ...transport.plane import ALONG, FORCE, LANES, NUMBER, OPEN, STAGE, SUM_ALONG, SUM_UP, UP
from . import layout as k
from .driver import SIMULATED, device_function, kernel
from .physics import cuda, keep_sums, physics, piece

SWEEPERS = 2 if SIMULATED else 256
"""Threads of a block."""
REGISTERS = 128
"""Most registers of a thread: two blocks share a multiprocessor."""
WIDEST = 64 if SIMULATED else MAX_CELLS + 2

compiled = build(
    functions_of(plane, phases),
    (lambda function: function) if SIMULATED else device_function,
    {"floor": physics.floor, "nearest_integer": physics.nearest_integer},
)

(CELLS, SITE_STEP, MOMENTA, NODE_STEP, WALL, EDGE, SPECIES, NODES, GROUPS) = range(9)
"""Whole numbers of a sweep: see ``Pencils``."""
DX, DP = range(2)


@piece
def cell_of(entry, width, lanes):
    """Indices along x and p, and the lane, of an entry of a table with this many rows."""
    rest = np.uint32(entry) // np.uint32(lanes)  # divisions of 32 bits are several times faster
    lane = np.uint32(entry) - rest * np.uint32(lanes)
    i = rest // np.uint32(width)
    return int64(i), int64(rest - i * np.uint32(width)), int64(lane)


@piece
def place_of(entry, shape):
    """Where an entry, a lane of a cell, lies in a row."""
    i, j, lane = cell_of(entry, shape[1], shape[2])
    return compiled.spot(i, j, shape) + lane


@piece
def flow_field(w, q2, m2, push, p, dp, dx, shape):
    """Velocity on x faces and force on p faces; push : the external force of every x cell."""
    n, m, lanes, _, _ = shape
    for entry in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m, lanes)
        compiled.set_speed(w, i, j, lane, p[j], q2[lane], m2, dp, shape)
    for entry in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m + 1, lanes)
        compiled.set_force(w, i, j, lane, q2[lane], m2, push, dp, dx, shape)
    cuda.syncthreads()


@piece
def fluxes(w, along, up, upwind, shape):
    """Fluxes of a stage, or the upwind ones of the whole substep: then sums are what goes beyond.

    along and up : substep over dx and dp
    """
    n, m, lanes, _, _ = shape
    for entry in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m, lanes)
        face = compiled.x_face(i, j, shape)
        if upwind:
            compiled.upwind_along(w, lane, along, face)
        else:
            compiled.flux_along(w, lane, along, face)
    for entry in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m + 1, lanes)
        face = compiled.p_face(i, j, shape)
        if upwind:
            compiled.upwind_up(w, lane, up, face)
        elif w[FORCE, entry] != 0.0:  # else the flux stays 0
            compiled.flux_up(w, lane, up, face)
    cuda.syncthreads()


@piece
def make_stage(w, along, up, part, shape):
    """STAGE = NUMBER and a part of what the fluxes in two rows bring."""
    for entry in range(cuda.threadIdx.x, shape[0] * shape[1] * shape[2], SWEEPERS):
        compiled.advance(w, place_of(entry, shape), along, up, part, shape)
    cuda.syncthreads()


@piece
def runge_kutta(w, along, up, shape):
    """Fluxes of the three stages, weighted, in SUM_ALONG and SUM_UP."""
    for keep, share, part in plane.STAGES:
        fluxes(w, along, up, False, shape)
        for entry in range(cuda.threadIdx.x, compiled.length(shape), SWEEPERS):
            compiled.add_up(w, entry, keep, share)
        cuda.syncthreads()
        if part > 0.0:
            make_stage(w, SUM_ALONG, SUM_UP, part, shape)


@piece
def find_limits(w, held, capacity, only, shape):
    """What every cell can give and take."""
    for entry in range(cuda.threadIdx.x, shape[0] * shape[1] * shape[2], SWEEPERS):
        compiled.set_limits(w, place_of(entry, shape), held, capacity, only, shape)
    cuda.syncthreads()


@piece
def limited_fluxes(w, strict, shape):
    """Whole fluxes that the limits allow."""
    n, m, lanes, _, _ = shape
    for entry in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m, lanes)
        compiled.limited_along(w, lane, strict, compiled.neighbours_along(i, j, shape))
    for entry in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(entry, m + 1, lanes)
        compiled.limited_up(w, lane, strict, compiled.neighbours_up(i, j, shape))
    cuda.syncthreads()


@piece
def mark_illegal(w, capacity, everything, flag, shape):
    """Mark the cells that the fluxes would take beyond their bounds; whether there are any."""
    if cuda.threadIdx.x == 0:
        flag[0] = 0
    cuda.syncthreads()
    for entry in range(cuda.threadIdx.x, shape[0] * shape[1] * shape[2], SWEEPERS):
        if compiled.marks(w, place_of(entry, shape), capacity, everything, shape):
            flag[0] = 1
    cuda.syncthreads()
    bad = flag[0]
    cuda.syncthreads()
    return bad != 0


@piece
def limit_fluxes(w, capacity, flag, shape):
    """Whole fluxes that leave every cell within its bounds; see the CPU's."""
    make_stage(w, ALONG, UP, 1.0, shape)
    find_limits(w, STAGE, capacity, False, shape)
    limited_fluxes(w, False, shape)
    for entry in range(cuda.threadIdx.x, compiled.length(shape), SWEEPERS):
        compiled.settle(w, entry)
    cuda.syncthreads()
    if not mark_illegal(w, capacity, False, flag, shape):
        return
    for entry in range(cuda.threadIdx.x, compiled.length(shape), SWEEPERS):
        compiled.begin_mending(w, entry)
    cuda.syncthreads()
    for turn in range(plane.MOST_PASSES):
        find_limits(w, NUMBER, capacity, True, shape)
        limited_fluxes(w, True, shape)
        if not mark_illegal(w, capacity, turn == plane.MOST_PASSES - 2, flag, shape):
            return


@piece
def refusal(w, up, shape):
    """Quanta that the force would have pushed through closed momentum faces; of this thread."""
    low, high = 0.0, 0.0
    for entry in range(cuda.threadIdx.x, shape[0] * shape[2], SWEEPERS):
        i, lane = entry // shape[2], entry % shape[2]
        low += compiled.refused_below(w, i, lane, up, shape)
        high += compiled.refused_above(w, i, lane, up, shape)
    return low, high


@partial(kernel, max_registers=REGISTERS)
def sweep(control, scalars, number, squares, push, whole, widths, p, transverse_p2, capacity,
          scratch, ledger, energies, refused):  # fmt: skip
    """Advance all pencils along one axis, from one row of numbers to another; as on the CPU."""
    shared = cuda.shared.array(SWEEPERS, float64)
    m2 = cuda.shared.array(WIDEST, float64)
    flag = cuda.shared.array(1, int64)
    if control[k.STATUS] != k.GO:
        return
    old, new = number[control[k.SOURCE]], number[control[k.TARGET]]
    t, wall = cuda.threadIdx.x, whole[WALL]
    n, site_step, m, node_step = whole[CELLS], whole[SITE_STEP], whole[MOMENTA], whole[NODE_STEP]
    kinds, nodes = whole[SPECIES], whole[NODES]
    across = nodes // m
    blocks = (across + LANES - 1) // LANES
    w = scratch[cuda.blockIdx.x]
    along, up = scalars[k.LASTS] / widths[DX], scalars[k.LASTS] / widths[DP]
    for group in range(cuda.blockIdx.x, whole[GROUPS], cuda.gridDim.x):
        block, rest = group % blocks, group // blocks
        a, line = rest % kinds, rest // kinds
        lanes = min(LANES, across - block * LANES)
        shape = (n, m, lanes, wall, whole[EDGE])
        start = compiled.transverse(line, site_step, n)
        q2 = transverse_p2[block * LANES : block * LANES + lanes]
        for i in range(t, n + 2, SWEEPERS):
            m2[i] = squares[start + compiled.next_site(i - 1, n, wall) * site_step, a]
        for entry in range(t, compiled.length(shape), SWEEPERS):
            i, j, lane = cell_of(entry, m + 1, lanes)
            value = 0.0
            if i < n and j < m:
                node = compiled.transverse(block * LANES + lane, node_step, m) + j * node_step
                value = float64(old[((start + i * site_step) * kinds + a) * nodes + node])
            for row in range(plane.ROWS):
                w[row, entry] = 0.0
            w[NUMBER, entry] = value
            w[STAGE, entry] = value
        cuda.syncthreads()
        flow_field(w, q2, m2, push[start::site_step, a], p, widths[DP], widths[DX], shape)
        runge_kutta(w, along, up, shape)
        keep_sums(shared, refusal(w, up, shape), refused[group])
        fluxes(w, along, up, True, shape)
        limit_fluxes(w, capacity[a], flag, shape)
        out_low, out_high = 0.0, 0.0
        for entry in range(t, n * m * lanes, SWEEPERS):
            i, j, lane = cell_of(entry, m, lanes)
            here = compiled.spot(i, j, shape) + lane
            node = compiled.transverse(block * LANES + lane, node_step, m) + j * node_step
            cell = ((start + i * site_step) * kinds + a) * nodes + node
            new[cell] = old[cell] + compiled.gained(w, here, shape)
            if wall == OPEN and (i == 0 or i == n - 1):
                energy = math.sqrt(p[j] * p[j] + q2[lane] + m2[i + 1])
                low = compiled.leaves(w, i, here, 0, shape)
                high = compiled.leaves(w, i, here, 1, shape)
                cuda.atomic.add(ledger, a * nodes + node, int64(low))
                cuda.atomic.add(ledger, (kinds + a) * nodes + node, int64(high))
                out_low += low * energy
                out_high += high * energy
        keep_sums(shared, (out_low, out_high), energies[group])
        cuda.syncthreads()


def whole_numbers(pencils: Pencils, nodes: int) -> Integers:
    """The whole numbers of a sweep."""
    values = (*pencils.lines, *pencils.walls, pencils.species, nodes, pencils.groups)
    return np.array(values, np.int64)
