"""One substep of transport on a GPU: a block of threads advances a group of pencils.

The same phases as on the CPU (``cpu_transport``); the threads of a block share out the cells of a
group and wait for one another between the phases.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import float64, int64

from ...grid import MAX_CELLS
from ...transport.plane import (
    ALONG,
    CLOSED,
    FORCE,
    FUNCTIONS,
    LANES,
    MOST_PASSES,
    NUMBER,
    OPEN,
    SPEED,
    STAGE,
    SUM_ALONG,
    SUM_UP,
    UP,
)
from .driver import SIMULATED, device_function, kernel
from .physics import block_sum, build, cuda, physics, piece

SWEEPERS = 2 if SIMULATED else 256
"""Threads of a block."""
REGISTERS = 128
"""Most registers of a thread: two blocks share a multiprocessor."""
WIDEST = 64 if SIMULATED else MAX_CELLS + 2

_own = {} if SIMULATED else {"floor": physics.floor}
compiled = build(FUNCTIONS, (lambda function: function) if SIMULATED else device_function, _own)
velocity = compiled.velocity
force = compiled.force
reconstruct = compiled.reconstruct
reconstruct_at_wall = compiled.reconstruct_at_wall
limit = compiled.limit
transverse = compiled.transverse
spot = compiled.spot
place = compiled.place
beside = compiled.beside
next_site = compiled.next_site
stencil_along = compiled.stencil_along
outside_along = compiled.outside_along
stencil_up = compiled.stencil_up
passes_along = compiled.passes_along
passes_up = compiled.passes_up
mirrored = compiled.mirrored
taken = compiled.taken
given = compiled.given
allowed = compiled.allowed
truncated = compiled.truncated

(CELLS, SITE_STEP, MOMENTA, NODE_STEP, WALL, EDGE, SPECIES, NODES, GROUPS) = range(9)
"""Whole numbers of a sweep: see ``space.Pencils``."""
WHOLE = 9
DT, DX, DP = range(3)


@piece
def cell_of(k, width, lanes):
    """Indices along x and p, and the lane, of the k-th entry of a table with this many rows."""
    rest = np.uint32(k) // np.uint32(lanes)  # divisions of 32 bits are several times faster
    lane = np.uint32(k) - rest * np.uint32(lanes)
    i = rest // np.uint32(width)
    return int64(i), int64(rest - i * np.uint32(width)), int64(lane)


@piece
def flow_field(w, q2, m2, p, dp, dx, shape):
    """Velocity on x faces and force on p faces; m2 holds n + 2 values, one beyond each edge."""
    n, m, lanes, _, _ = shape
    for k in range(cuda.threadIdx.x, (n + 1) * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m + 1, lanes)
        edge = 0.5 * (m2[i] + m2[i + 1])
        low = (j - 0.5 * m) * dp
        high = (j + 1 - 0.5 * m) * dp
        if j < m:
            w[SPEED, k] = velocity(p[j], low * low, high * high, q2[lane], edge)
        if i < n:
            after = 0.5 * (m2[i + 1] + m2[i + 2])
            w[FORCE, k] = force(low * low, q2[lane], edge, after, dx)
    cuda.syncthreads()


@piece
def fluxes(w, along, up, m2, shape):
    """Fluxes of a stage; along and up: substep over dx and dp."""
    n, m, lanes, _, _ = shape
    for k in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        here = spot(i, j, shape) + lane
        a, b, c, d, e = stencil_along(i, j, shape)
        behind, ahead = outside_along(i, j, shape)
        if behind + ahead > 0:
            edge = reconstruct_at_wall(
                w[STAGE, a + lane], w[STAGE, b + lane], w[STAGE, c + lane], w[STAGE, d + lane],
                w[STAGE, e + lane], behind, ahead,
            )  # fmt: skip
        else:
            edge = reconstruct(
                w[STAGE, a + lane], w[STAGE, b + lane], w[STAGE, c + lane], w[STAGE, d + lane],
                w[STAGE, e + lane],
            )  # fmt: skip
        w[ALONG, here] = along * passes_along(i, j, shape) * w[SPEED, here] * edge
    for k in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m + 1, lanes)
        if m2[i] == m2[i + 2]:  # no force: the row stays 0
            continue
        here = spot(i, j, shape) + lane
        a, b, c, d, e = stencil_up(i, j, shape, m2[i] > m2[i + 2])
        edge = reconstruct(
            w[STAGE, a + lane], w[STAGE, b + lane], w[STAGE, c + lane], w[STAGE, d + lane],
            w[STAGE, e + lane],
        )  # fmt: skip
        w[UP, here] = up * passes_up(j, shape) * w[FORCE, here] * edge
    cuda.syncthreads()


@piece
def add_up(w, keep, share, size):
    """sum = keep sum + share flux, for all faces."""
    for k in range(cuda.threadIdx.x, size, SWEEPERS):
        w[SUM_ALONG, k] = keep * w[SUM_ALONG, k] + share * w[ALONG, k]
        w[SUM_UP, k] = keep * w[SUM_UP, k] + share * w[UP, k]
    cuda.syncthreads()


@piece
def advance(w, along, up, part, shape):
    """STAGE = NUMBER and a part of what the fluxes in two rows bring."""
    n, m, lanes, _, _ = shape
    for k in range(cuda.threadIdx.x, n * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        here = spot(i, j, shape) + lane
        x = w[along, here] - w[along, here + (m + 1) * lanes]
        w[STAGE, here] = w[NUMBER, here] + part * (x + (w[up, here] - w[up, here + lanes]))
    cuda.syncthreads()


@piece
def upwind_fluxes(w, along, up, m2, shape):
    """Upwind fluxes of the whole substep; the sums become what goes beyond them."""
    n, m, lanes, _, _ = shape
    for k in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        here = spot(i, j, shape) + lane
        c = stencil_along(i, j, shape)[2] + lane
        flux = along * passes_along(i, j, shape) * w[SPEED, here] * w[NUMBER, c]
        w[ALONG, here] = flux
        w[SUM_ALONG, here] -= flux
    for k in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m + 1, lanes)
        here = spot(i, j, shape) + lane
        c = stencil_up(i, j, shape, m2[i] > m2[i + 2])[2] + lane
        flux = up * passes_up(j, shape) * w[FORCE, here] * w[NUMBER, c]
        w[UP, here] = flux
        w[SUM_UP, here] -= flux
    cuda.syncthreads()


@piece
def set_limits(w, held, capacity, only, shape):
    """What of the fluxes in the sums every cell can give and take, from f in the row ``held``."""
    n, m, lanes, _, _ = shape
    for k in range(cuda.threadIdx.x, n * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        here = spot(i, j, shape) + lane
        if only and w[STAGE, here] == 0.0:
            continue
        x0, x1 = w[SUM_ALONG, here], w[SUM_ALONG, here + (m + 1) * lanes]
        p0, p1 = w[SUM_UP, here], w[SUM_UP, here + lanes]
        low = w[held, here]
        w[SPEED, here] = limit(low, taken(x0, x1, p0, p1))
        w[FORCE, here] = limit(capacity - low, given(x0, x1, p0, p1))
    cuda.syncthreads()


@piece
def limited_fluxes(w, strict, shape):
    """Whole fluxes: upwind and what the limits allow of the sums beyond it; see the CPU's."""
    n, m, lanes, wall, _ = shape
    for k in range(cuda.threadIdx.x, (n + 1) * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        q, sign = mirrored(i, j, shape)
        here, face = spot(i, j, shape) + lane, spot(i, q, shape) + lane
        left, right = place(i - 1, q, shape) + lane, place(i, q, shape) + lane
        from_outside, to_outside = wall == OPEN and i == 0, wall == OPEN and i == n
        more = w[SUM_ALONG, face]
        s = allowed(
            more, 1.0 if from_outside else w[SPEED, left],
            1.0 if from_outside else w[FORCE, left], 1.0 if to_outside else w[SPEED, right],
            1.0 if to_outside else w[FORCE, right],
        )  # fmt: skip
        if strict:
            w[ALONG, here] = sign * truncated(more, s)
        else:
            w[STAGE, here] = sign * physics.nearest_integer(w[ALONG, face] + s * more)
    for k in range(cuda.threadIdx.x, n * (m + 1) * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m + 1, lanes)
        here = spot(i, j, shape) + lane
        left, right = beside(i, j - 1, shape) + lane, beside(i, j, shape) + lane
        more = w[SUM_UP, here]
        s = allowed(more, w[SPEED, left], w[FORCE, left], w[SPEED, right], w[FORCE, right])
        if strict:
            w[UP, here] = truncated(more, s)
        else:
            w[UP, here] = physics.nearest_integer(w[UP, here] + s * more)
    cuda.syncthreads()


@piece
def mark_illegal(w, capacity, everything, flag, shape):
    """Mark the cells that the fluxes would take beyond their bounds; whether there are any."""
    n, m, lanes, _, _ = shape
    if cuda.threadIdx.x == 0:
        flag[0] = 0
    cuda.syncthreads()
    for k in range(cuda.threadIdx.x, n * m * lanes, SWEEPERS):
        i, j, lane = cell_of(k, m, lanes)
        here = spot(i, j, shape) + lane
        x = w[ALONG, here] - w[ALONG, here + (m + 1) * lanes]
        new = w[NUMBER, here] + x + (w[UP, here] - w[UP, here + lanes])
        if new < 0.0 or new > capacity or everything:
            w[STAGE, here] = 1.0
            flag[0] = 1
    cuda.syncthreads()
    bad = flag[0]
    cuda.syncthreads()
    return bad != 0


@piece
def limit_fluxes(w, capacity, flag, size, shape):
    """Whole fluxes that leave every cell within its bounds; see the CPU's."""
    advance(w, ALONG, UP, 1.0, shape)
    set_limits(w, STAGE, capacity, False, shape)
    limited_fluxes(w, False, shape)
    for k in range(cuda.threadIdx.x, size, SWEEPERS):
        w[ALONG, k] = w[STAGE, k]
        w[STAGE, k] = 0.0
    cuda.syncthreads()
    if not mark_illegal(w, capacity, False, flag, shape):
        return
    for k in range(cuda.threadIdx.x, size, SWEEPERS):
        w[SUM_ALONG, k] = w[ALONG, k]
        w[SUM_UP, k] = w[UP, k]
        w[SPEED, k] = 1.0
        w[FORCE, k] = 1.0
    cuda.syncthreads()
    for turn in range(MOST_PASSES):
        set_limits(w, NUMBER, capacity, True, shape)
        limited_fluxes(w, True, shape)
        if not mark_illegal(w, capacity, turn == MOST_PASSES - 2, flag, shape):
            return


@piece
def refusal(w, up, side, shape):
    """Quanta that the force would have pushed through a closed momentum face; of this thread."""
    n, m, lanes, _, kind = shape
    total = 0.0
    if kind == CLOSED:
        for k in range(cuda.threadIdx.x, n * lanes, SWEEPERS):
            i, lane = k // lanes, k % lanes
            if side == 0:
                here = spot(i, 0, shape) + lane
                total += max(-up * w[FORCE, here] * w[NUMBER, here], 0.0)
            else:
                here = spot(i, m, shape) + lane
                total += max(up * w[FORCE, here] * w[NUMBER, here - lanes], 0.0)
    return total


@partial(kernel, max_registers=REGISTERS)
def sweep(number, squares, whole, real, p, transverse_p2, capacity, scratch, ledger, energies,
          refused):  # fmt: skip
    """Advance all pencils along one axis, in place; arguments as on the CPU."""
    shared = cuda.shared.array(SWEEPERS, float64)
    m2 = cuda.shared.array(WIDEST, float64)
    flag = cuda.shared.array(1, int64)
    t = cuda.threadIdx.x
    n, site_step, m, node_step = whole[CELLS], whole[SITE_STEP], whole[MOMENTA], whole[NODE_STEP]
    kinds, nodes = whole[SPECIES], whole[NODES]
    across = nodes // m
    blocks = (across + LANES - 1) // LANES
    w = scratch[cuda.blockIdx.x]
    along, up = real[DT] / real[DX], real[DT] / real[DP]
    for group in range(cuda.blockIdx.x, whole[GROUPS], cuda.gridDim.x):
        block, rest = group % blocks, group // blocks
        a, line = rest % kinds, rest // kinds
        lanes = min(LANES, across - block * LANES)
        shape = (n, m, lanes, whole[WALL], whole[EDGE])
        size = (n + 1) * (m + 1) * lanes
        start = transverse(line, site_step, n)
        q2 = transverse_p2[block * LANES : block * LANES + lanes]
        for i in range(t, n + 2, SWEEPERS):
            site = start + next_site(i - 1, n, whole[WALL]) * site_step
            m2[i] = squares[site, a]
        for k in range(t, size, SWEEPERS):
            i, j, lane = cell_of(k, m + 1, lanes)
            value = 0.0
            if i < n and j < m:
                node = transverse(block * LANES + lane, node_step, m) + j * node_step
                value = float64(number[((start + i * site_step) * kinds + a) * nodes + node])
            w[NUMBER, k] = value
            w[STAGE, k] = value
            w[SPEED, k] = 0.0
            w[FORCE, k] = 0.0
            w[ALONG, k] = 0.0
            w[UP, k] = 0.0
            w[SUM_ALONG, k] = 0.0
            w[SUM_UP, k] = 0.0
        cuda.syncthreads()
        flow_field(w, q2, m2, p, real[DP], real[DX], shape)
        fluxes(w, along, up, m2, shape)
        add_up(w, 0.0, 1.0, size)
        advance(w, SUM_ALONG, SUM_UP, 1.0, shape)
        fluxes(w, along, up, m2, shape)
        add_up(w, 1.0, 1.0, size)
        advance(w, SUM_ALONG, SUM_UP, 0.25, shape)
        fluxes(w, along, up, m2, shape)
        add_up(w, 1.0 / 6.0, 4.0 / 6.0, size)
        for side in range(2):
            total = block_sum(shared, refusal(w, up, side, shape))
            if t == 0:
                refused[group, side] = total
        upwind_fluxes(w, along, up, m2, shape)
        limit_fluxes(w, capacity[a], flag, size, shape)
        out_low = 0.0
        out_high = 0.0
        for k in range(t, n * m * lanes, SWEEPERS):
            i, j, lane = cell_of(k, m, lanes)
            here = spot(i, j, shape) + lane
            right = here + (m + 1) * lanes
            node = transverse(block * LANES + lane, node_step, m) + j * node_step
            cell = ((start + i * site_step) * kinds + a) * nodes + node
            number[cell] += (
                int64(w[ALONG, here]) - int64(w[ALONG, right])
                + int64(w[UP, here]) - int64(w[UP, here + lanes])
            )  # fmt: skip
            if whole[WALL] == OPEN and (i == 0 or i == n - 1):
                energy = math.sqrt(p[j] * p[j] + q2[lane] + m2[i + 1])
                if i == 0:
                    cuda.atomic.add(ledger, a * nodes + node, -int64(w[ALONG, here]))
                    out_low -= w[ALONG, here] * energy
                if i == n - 1:
                    cuda.atomic.add(ledger, (kinds + a) * nodes + node, int64(w[ALONG, right]))
                    out_high += w[ALONG, right] * energy
        out_low = block_sum(shared, out_low)
        out_high = block_sum(shared, out_high)
        if t == 0:
            energies[group, 0] = out_low
            energies[group, 1] = out_high
        cuda.syncthreads()


def whole_numbers(pencils, nodes):
    """The whole numbers of a sweep."""
    values = np.zeros(WHOLE, np.int64)
    values[[CELLS, SITE_STEP, MOMENTA, NODE_STEP]] = pencils.lines
    values[[WALL, EDGE]] = pencils.walls
    values[SPECIES], values[NODES], values[GROUPS] = pencils.species, nodes, pencils.groups
    return values
