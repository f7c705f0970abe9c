"""One substep of transport on a GPU: a block of threads advances a group of pencils.

A group lies in shared memory; if it does not fit there, in the memory of the GPU.
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
    ENERGY,
    NUMBER,
    ROWS,
    STAGE,
    SUM_ALONG,
    SUM_UP,
    cell_at,
    compiled,
    divided,
    force,
    get,
    piece,
    put,
    runge_kutta,
    shape_of,
)

REGISTERS = 96
"""Most registers of a thread: 640 of them share a multiprocessor."""
(CELLS, SITE_STEP, MOMENTA, NODE_STEP, WALL, EDGE, SPECIES, NODES, LANES, LINES) = range(10)
"""Whole numbers of a sweep: see ``Pencils``; lanes of a group, transverse sites."""
DX, DP = range(2)


# --- from a state to a state ---------------------------------------------------------------------


@piece
def node_at(number, j, whole):
    """Node of a momentum j of the pencil with this number among the transverse ones."""
    inner = np.uint32(whole[NODE_STEP])
    outer = np.uint32(number) // inner  # divisions of 32 bits are several times faster
    rest = np.uint32(number) - outer * inner
    return int64(outer) * (whole[NODE_STEP] * whole[MOMENTA]) + int64(rest) + j * whole[NODE_STEP]


@piece
def site_at(start, i, whole):
    """Site of a cell i along the axis, at most one beyond the edges."""
    return start + compiled.next_site(i, whole[CELLS], whole[WALL]) * whole[SITE_STEP]


@piece
def take_up(w, old, squares, forces, p, q2, origin, count, steps, whole, shape):
    """Fill the rows of a group; origin : first site, species, first pencil among the transverse."""
    start, a, first = origin
    n, m = shape[0], shape[1]
    edges = ROWS * shape[5]
    for i in range(cuda.threadIdx.x, n + 1, cuda.blockDim.x):
        site = site_at(start, i, whole)
        m2 = squares[site, a]
        edge = 0.5 * (squares[site_at(start, i - 1, whole), a] + m2)
        w[edges + i] = edge
        if i < n:
            after = 0.5 * (m2 + squares[site_at(start, i + 1, whole), a])
            w[edges + n + 1 + i] = edge - after
            w[edges + 2 * n + 1 + i] = forces[site, a, 0]
            w[edges + 3 * n + 1 + i] = forces[site, a, 1]
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, lane = cell_at(here, shape)
        if i < n and j < m:
            site = start + i * whole[SITE_STEP]
            node = node_at(first + lane, j, whole)
            value = float64(old[(site * whole[SPECIES] + a) * whole[NODES] + node])
            put(w, NUMBER, here, shape, value)
            put(w, STAGE, here, shape, value)
    cuda.syncthreads()
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, lane = cell_at(here, shape)
        low = (j - 0.5 * m) * steps[3]
        put(w, ENERGY, here, shape, physics.root(low * low + q2[first + lane] + w[edges + i]))
    cuda.syncthreads()


@piece
def refusal(w, steps, shape):
    """Quanta that the force would have pushed through closed momentum faces; of this thread."""
    low, high, top = 0.0, 0.0, shape[1] * shape[2]
    if shape[4] == CLOSED:
        for entry in range(cuda.threadIdx.x, shape[0] * shape[2], cuda.blockDim.x):
            i = divided(entry, shape[7])
            here = i * shape[8] + entry - i * shape[2]
            last = get(w, NUMBER, here + top - shape[2], shape)
            low += max(-force(w, i, 0, here, steps, shape) * get(w, NUMBER, here, shape), 0.0)
            high += max(force(w, i, shape[1], here + top, steps, shape) * last, 0.0)
    return low, high


@piece
def hand_over(w, rows, squares, p, q2, origin, count, ledger, whole, shape):
    """Write the new state, and what leaves through open walls; returns its energy, of this thread.

    rows : of numbers, before and after
    """
    old, new = rows
    start, a, first = origin
    n, m, wall = shape[0], shape[1], shape[3] == OPEN
    kinds, nodes = whole[SPECIES], whole[NODES]
    out_low, out_high = 0.0, 0.0
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, lane = cell_at(here, shape)
        if i < n and j < m:
            site = start + i * whole[SITE_STEP]
            node = node_at(first + lane, j, whole)
            cell = (site * kinds + a) * nodes + node
            left = get(w, SUM_ALONG, here, shape)
            right = get(w, SUM_ALONG, here + shape[8], shape)
            below, above = get(w, SUM_UP, here, shape), get(w, SUM_UP, here + shape[2], shape)
            new[cell] = old[cell] + (int64(left) - int64(right) + int64(below) - int64(above))
            if wall and (i == 0 or i == n - 1):
                energy = math.sqrt(p[j] * p[j] + q2[first + lane] + squares[site, a])
                if i == 0:
                    cuda.atomic.add(ledger, a * nodes + node, int64(-left))
                    out_low -= left * energy
                if i == n - 1:
                    cuda.atomic.add(ledger, (kinds + a) * nodes + node, int64(right))
                    out_high += right * energy
    return out_low, out_high


@piece
def sweep_groups(w, control, scalars, number, squares, forces, whole, widths, p, q2, capacity,
                 ledger, energies, refused):  # fmt: skip
    """Groups in turn, those of a species after one another, so that sums wait for the last one."""
    n, m, most, across = whole[CELLS], whole[MOMENTA], whole[LANES], whole[NODES] // whole[MOMENTA]
    many = (across + most - 1) // most
    lasts = scalars[k.LASTS]
    steps = (lasts / widths[DX], lasts / widths[DP], widths[DX], widths[DP])
    rows = (number[control[k.SOURCE]], number[control[k.TARGET]])
    out_low, out_high = 0.0, 0.0
    group = cuda.blockIdx.x
    for a in range(whole[SPECIES]):
        low, high = 0.0, 0.0
        while group < (a + 1) * many * whole[LINES]:
            inside = group - a * many * whole[LINES]
            first = (inside % many) * most
            lanes = min(most, across - first)
            shape = shape_of(n, m, lanes, most, whole[WALL], whole[EDGE])
            count = (n + 1) * (m + 1) * lanes
            start = compiled.transverse(inside // many, whole[SITE_STEP], whole[CELLS])
            origin = (start, a, first)
            take_up(w, rows[0], squares, forces, p, q2, origin, count, steps, whole, shape)
            more_low, more_high = refusal(w, steps, shape)
            low, high = low + more_low, high + more_high
            runge_kutta(w, count, p, steps, shape)
            find_limits(w, count, capacity[a], shape)
            limited_fluxes(w, count, shape)
            if not none_illegal(w, count, capacity[a], shape):
                mend(w, count, capacity[a], shape)
            left = hand_over(w, rows, squares, p, q2, origin, count, ledger, whole, shape)
            out_low, out_high = out_low + left[0], out_high + left[1]
            group += cuda.gridDim.x
        if whole[EDGE] == CLOSED:
            cuda.syncthreads()
            keep_sums(w, (low, high), refused[cuda.blockIdx.x * whole[SPECIES] + a])
            cuda.syncthreads()
    if whole[WALL] == OPEN:
        cuda.syncthreads()
        keep_sums(w, (out_low, out_high), energies[cuda.blockIdx.x])


@partial(kernel, max_registers=REGISTERS, shared_memory_carveout=100)
def sweep(control, scalars, number, squares, push, whole, widths, p, transverse_p2, capacity,
          ledger, energies, refused):  # fmt: skip
    """Advance all pencils along one axis, from one row of numbers to another; as on the CPU.

    energies : (blocks, 2) that left through open walls, low and high side
    refused : (blocks * species, 2), quanta refused by closed momentum faces
    """
    w = cuda.shared.array(0, float64)
    if control[k.STATUS] == k.GO:
        sweep_groups(w, control, scalars, number, squares, push, whole, widths, p, transverse_p2,
                     capacity, ledger, energies, refused)  # fmt: skip


@partial(kernel, max_registers=REGISTERS)
def far_sweep(control, scalars, number, squares, push, whole, widths, p, transverse_p2, capacity,
              scratch, ledger, energies, refused):  # fmt: skip
    """The same for pencils that do not fit into shared memory; scratch : a row for each block."""
    if control[k.STATUS] == k.GO:
        sweep_groups(scratch[cuda.blockIdx.x], control, scalars, number, squares, push, whole,
                     widths, p, transverse_p2, capacity, ledger, energies, refused)  # fmt: skip
