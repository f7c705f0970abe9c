"""Solution of the gap equation on a GPU.

For many sites at once, sums over the nodes at the expected masses give Y as a power series in m^2
(``mass_sums``), which one thread solves (``expanded_masses``). Where the expected masses were too
far off, this is repeated from the masses found. Sites that are still not solved are left to
Newton's iteration over all nodes by a block of threads (``site_masses``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import float64

from ...model.gap_equation import FUNCTIONS
from ...util.jit import build
from . import driver
from . import layout as k
from .driver import SIMULATED, device_function, kernel
from .layout import FEW, NEAR_BY, THREADS
from .physics import array_function, block_sum, cuda, inverse_energy, keep_sums, quick_inverse

if TYPE_CHECKING:
    from .device_buffers import DeviceBuffers, LaunchContext

gap = build(FUNCTIONS, device_function)
SERIES = 4
"""Number of sums over the nodes: N f/E, N f/E^3, N f/E^5, N f/E^7."""
EACH = 2 if SIMULATED else 16
"""Nodes per thread in such a sum."""
BLOCKS = 8
"""Blocks of threads per multiprocessor, which share all sums."""


# --- near the expected masses -------------------------------------------------------------------


@array_function
def expand(scalars, group, work, width):
    """Evaluate Y and its slope at the masses in work, by Taylor series about the expected ones."""
    sums, about = 4 * width + 1, 8 * width + 1
    measure = scalars[k.CELL] * scalars[k.UNIT]
    for a in range(group.size):
        y, slope = 0.0, 0.0
        if group[a] >= 0:
            d = work[a] - work[about + a]
            one, three = work[sums + a], work[sums + width + a]
            five, seven = work[sums + 2 * width + a], work[sums + 3 * width + a]
            y = one + d * (-0.5 * three + d * (0.375 * five - d * 0.3125 * seven))
            slope = -0.5 * three + d * (0.75 * five - d * 0.9375 * seven)
        work[width + a] = measure * y
        work[2 * width + a] = measure * slope


@array_function
def within_reach(scalars, group, work, width):
    """Return whether the series converges quickly at the masses in work, for every node."""
    reaches = True
    for a in range(group.size):
        about = work[8 * width + 1 + a]
        lowest = scalars[k.P2_MIN] + about
        reaches = reaches and (group[a] < 0 or abs(work[a] - about) <= 0.25 * lowest)
    return reaches


@array_function
def left_out(scalars, group, work, width):
    """Return the largest relative truncation error of Y.

    The next term is 35/128 d^4 Sum N f/E^9, and 1/E^9 <= 1/E^7 / E_min^2; within reach, all later
    terms add at most a third of it.
    """
    largest = 0.0
    for a in range(group.size):
        d = abs(work[a] - work[8 * width + 1 + a])
        if group[a] >= 0 and d > 0.0:
            lowest = scalars[k.P2_MIN] + work[8 * width + 1 + a]
            seven, one = work[7 * width + 1 + a], work[4 * width + 1 + a]
            if one > 0.0:
                largest = max(largest, 0.37 * d * d * d * seven * (d / lowest) / one)
    return largest


@array_function
def near_masses(scalars, group, model, work, width):
    """Solve for the masses from sums at nearby masses; one thread.

    work[4 width + 1:] holds ``SERIES`` sums of every species and the m^2 at which they were taken.
    Return whether the truncation error is below rounding; if not, the masses are at least better.
    """
    s = group.size
    for a in range(s):
        work[a] = work[8 * width + 1 + a]
    settled = False
    for _ in range(8):
        expand(scalars, group, work, width)
        settled = gap.improve(model, work, s, width)
        if settled or not within_reach(scalars, group, work, width):
            break
    expand(scalars, group, work, width)
    gap.screening_of(model, work, s, width)
    for a in range(width):
        settled = settled and math.isfinite(work[a])
    return (
        settled
        and within_reach(scalars, group, work, width)
        and left_out(scalars, group, work, width) <= 1e-16
    )


@array_function
def likely(start, expected):
    """Return the starting squared mass: the expected one, but at least half of ``start``."""
    return expected if expected > 0.5 * start else 0.5 * start


@partial(kernel, max_registers=48)
def mass_sums(control, scalars, number, group, p2, start, expected, solved, again, sums):
    """Sum over parts of the nodes of every species at every site; any number of blocks.

    sums : (sites x species, parts, SERIES); again : only at sites not solved yet
    """
    shared = cuda.shared.array(THREADS, float64)
    if control[k.STATUS] != k.GO:
        return
    kinds, n, parts = group.size, p2.size, sums.shape[1]
    at_rest = scalars[k.AT_REST]
    for item in range(cuda.blockIdx.x, sums.shape[0] * parts, cuda.gridDim.x):
        row, part = item // parts, item % parts
        site, a = row // kinds, row % kinds
        if group[a] < 0 or (again != 0 and solved[site] != 0):
            continue
        m2 = likely(start[site, a], expected[site, a])
        state = number[control[k.TARGET], row * n : row * n + n]
        one, three, five, seven = 0.0, 0.0, 0.0, 0.0
        first, last = part * EACH * THREADS, min((part + 1) * EACH * THREADS, n)
        for begin in range(first + cuda.threadIdx.x, last, k.TILE):
            for j in range(FEW):  # no branches, so that all loads are issued at once
                i = begin + j * THREADS
                at = np.uint32(i if i < last else first)
                held, inverse = state[at], quick_inverse(p2[at], m2, at_rest)
                inverse = inverse if i < last else 0.0
                square, own = inverse * inverse, held * inverse
                one += own
                three += own * square
                five += own * (square * square)
                seven += own * (square * square * square)
        keep_sums(shared, (one, three, five, seven), sums[row, part])


@array_function
def gather_sums(sums, group, site, each, start, expected, mine, width):
    """Gather the sums of each group's species at a site, and their m^2; one warp."""
    t, s = cuda.threadIdx.x, group.size
    for which in range(t, SERIES * each.size, k.WARP):
        g, column = which // SERIES, which % SERIES
        total = 0.0
        for a in range(s):
            if group[a] == g:
                mine[8 * width + 1 + g] = likely(start[site, a], expected[site, a])
                for part in range(sums.shape[1]):
                    total += sums[site * s + a, part, column]
        mine[4 * width + 1 + column * width + g] = total
    cuda.syncthreads()


@kernel
def expanded_masses(control, scalars, group, each, model, constants, start, expected, sums, work,
                    solved, again, guess, squares):  # fmt: skip
    """Solve for the masses of every site from the sums of its parts; one warp per site.

    Species of equal mass form a group: each, model : numbers and equations of the groups;
    constants : the equations of all species; guess : the masses found; squares : these masses
    where they are accurate to rounding, which solved flags; work : one row per site if it does
    not fit in shared memory
    """
    near_by = cuda.shared.array(NEAR_BY, float64)
    site, t = cuda.blockIdx.x, cuda.threadIdx.x
    if control[k.STATUS] != k.GO or (again != 0 and solved[site] != 0):
        return
    s, groups = group.size, each.size
    width = groups + squares.shape[1] - s
    mine = work[site] if work.shape[1] > 1 else near_by
    gather_sums(sums, group, site, each, start, expected, mine, width)
    if t == 0:
        near = near_masses(scalars, each, model, mine, width)
        for a in range(squares.shape[1]):
            found = mine[groups + a - s] if a >= s else constants[s * s + a]
            if a < s and group[a] >= 0:
                found = mine[group[a]]
            guess[site, a] = found
            if near:
                squares[site, a] = found
        solved[site] = 1 if near else 0


# --- from anywhere: Newton's iteration over all nodes -------------------------------------------


@array_function
def node_sums(shared, control, number, first, group, g, unit, p2, m2, at_rest):
    """Return Sum N f/E and Sum N f/E^3 over nodes and species of a group, in a fixed order."""
    n = control[k.NODES]
    one, three = 0.0, 0.0
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        held = 0
        for a in range(group.size):
            if group[a] == g:
                held += number[control[k.TARGET], first + a * n + i]
        r = inverse_energy(p2[i], m2, at_rest)
        one += held * r
        three += held * r * r * r
    return block_sum(shared, one) * unit, block_sum(shared, three) * unit


@array_function
def solve_masses(
    shared, control, scalars, number, first, group, p2, model, start, begin, work, width
):  # fmt: skip
    """Solve for the masses by Newton's iteration over all nodes of a site of the new state.

    first : first cell of the site; start, begin : array and offset of the squared masses of a
    similar state; model, work : as in ``model.gap_equation``
    """
    t = cuda.threadIdx.x
    s = group.size
    if t == 0:
        for a in range(width):
            work[a] = start[begin + a]
        work[4 * width] = 0.0  # 1: converged, 2: screening masses found as well
    cuda.syncthreads()
    for _ in range(100):
        for a in range(s):
            leads = gap.leader(group, a) == a
            if leads:
                y, third = node_sums(
                    shared, control, number, first, group, group[a], scalars[k.UNIT], p2, work[a],
                    scalars[k.AT_REST],
                )  # fmt: skip
            if t == 0:
                work[width + a] = y * scalars[k.CELL] if leads else 0.0
                work[2 * width + a] = -0.5 * third * scalars[k.CELL] if leads else 0.0
        if t == 0:
            if work[4 * width] > 0.0:  # Y at the converged masses gives the screening masses
                gap.screening_of(model, work, s, width)
                work[4 * width] = 2.0
            elif gap.improve(model, work, s, width):
                work[4 * width] = 1.0
        cuda.syncthreads()
        done = work[4 * width]
        cuda.syncthreads()
        if done == 2.0:
            break
    if t == 0:
        for a in range(width):
            if not math.isfinite(work[a]):
                control[k.STATUS] = k.NOT_FINITE
        if work[4 * width] != 2.0:
            control[k.STATUS] = k.NO_MASSES


@kernel
def site_masses(control, scalars, number, group, p2, model, work, start, guess, solved, squares):
    """Solve the gap equation at sites not solved yet; NaN if it fails. One block per site.

    start : squared masses of a similar state; guess : better ones, where they are finite
    """
    shared = cuda.shared.array(THREADS, float64)
    near_by = cuda.shared.array(NEAR_BY, float64)
    site = cuda.blockIdx.x
    if control[k.STATUS] != k.GO or solved[site] != 0:
        return
    width = squares.shape[1]
    mine = work[site] if work.shape[1] > 1 else near_by
    known = True
    for a in range(group.size):
        known = known and math.isfinite(guess[site, a])
    begin = guess[site] if known else start[site]
    first = site * group.size * control[k.NODES]
    solve_masses(
        shared, control, scalars, number, first, group, p2, model, begin, 0, mine, width
    )  # fmt: skip
    cuda.syncthreads()
    for a in range(cuda.threadIdx.x, width, THREADS):
        squares[site, a] = mine[a] if mine[4 * width] == 2.0 else math.nan  # 2: converged


# --- complete solution --------------------------------------------------------------------------


@dataclass
class MassMemory:
    """Work space for the masses of all sites."""

    sums: Any
    guess: Any
    solved: Any
    work: Any

    @classmethod
    def of(cls, buffers: DeviceBuffers) -> MassMemory:
        """Allocate work space for the sites of the buffers."""
        sites, parts = buffers.sites, -(-buffers.nodes // (EACH * THREADS))
        size = 9 * buffers.width + 1 + buffers.species**2
        rows, size = (sites, size) if size > NEAR_BY else (1, 1)
        return cls(
            buffers.new((sites * buffers.species, parts, SERIES), np.float64),
            buffers.new((sites, buffers.width), np.float64), buffers.new(sites, np.int64),
            buffers.new((rows, size), np.float64),
        )  # fmt: skip


def launch_masses(
    buffers: DeviceBuffers,
    room: MassMemory,
    context: LaunchContext,
    start: Any,
    expected: Any,
    squares: Any,
) -> None:
    """Launch the solution for the squared masses of all sites, for the context's target row.

    start : squares (sites, width) of a similar state; expected : better ones, or the same array;
    squares : output, NaN where there is no solution; may also be the same array. Nothing is read
    back, so the launches are always the same.
    """
    control, scalars, stream = context.control, context.scalars, buffers.stream
    number, group, p2, model = buffers.number, buffers.groups, buffers.p2, buffers.mass_model
    blocks = min(room.sums.shape[0] * room.sums.shape[1], BLOCKS * driver.multiprocessors())
    for again, (since, about) in enumerate(((start, expected), (room.guess, room.guess))):
        mass_sums[blocks, THREADS, stream](
            control, scalars, number, group, p2, since, about, room.solved, again, room.sums
        )
        expanded_masses[buffers.sites, k.WARP, stream](
            control, scalars, group, buffers.group_numbers, buffers.mass_model_of_groups, model,
            since, about, room.sums, room.work, room.solved, again, room.guess, squares,
        )  # fmt: skip
    site_masses[buffers.sites, THREADS, stream](
        control, scalars, number, group, p2, model, room.work, start, room.guess, room.solved,
        squares,
    )  # fmt: skip
