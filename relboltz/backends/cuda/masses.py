"""The gap equation on a GPU: sums over the nodes, and Newton's iteration by a block of threads."""

import math

from numba import float64

from ...compiling import build
from ...masses import FUNCTIONS
from . import layout as k
from .driver import device_function, kernel
from .layout import NEAR_BY, THREADS
from .physics import block_sum, cuda, inverse_energy, piece

gap = build(FUNCTIONS, device_function)


@piece
def node_sums(shared, number, first, group, g, n, unit, p2, m2, at_rest):
    """Sum N f/E and Sum N f/E^3 over the nodes of the species of a group, in a fixed order."""
    one = 0.0
    third = 0.0
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        held = 0
        for a in range(group.size):
            if group[a] == g:
                held += number[first + a * n + i]
        r = inverse_energy(p2[i], m2, at_rest)
        one += held * r
        third += held * r * r * r
    return block_sum(shared, one) * unit, block_sum(shared, third) * unit


@piece
def solve_masses(
    shared, control, scalars, number, first, group, p2, model, start, begin, work, width
):  # fmt: skip
    """The masses by Newton's iteration over all nodes of a row of the state.

    start, first : where squared masses of a similar state are found; model, work : as ``masses``
    has them
    """
    t = cuda.threadIdx.x
    s = group.size
    n = control[k.NODES]
    if t == 0:
        for a in range(width):
            work[a] = start[begin + a]
        work[4 * width] = 0.0  # passes that changed next to nothing
    cuda.syncthreads()
    for _ in range(100):
        for a in range(s):
            leads = gap.leader(group, a) == a
            if leads:
                y, third = node_sums(
                    shared, number, first, group, group[a], n, scalars[k.UNIT], p2, work[a],
                    scalars[k.AT_REST],
                )  # fmt: skip
            if t == 0:
                work[width + a] = y * scalars[k.CELL] if leads else 0.0
                work[2 * width + a] = -0.5 * third * scalars[k.CELL] if leads else 0.0
        if t == 0:
            if work[4 * width] > 0.0:  # Y of the converged masses: the screening masses follow
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
def site_masses(control, scalars, number, group, p2, model, work, start, squares):
    """Solve the gap equation at every site, from the squares given there; NaN if it fails.

    number : two states; work : one row for each site if it does not fit the block
    """
    shared = cuda.shared.array(THREADS, float64)
    near_by = cuda.shared.array(NEAR_BY, float64)
    if control[k.STATUS] != k.GO:
        return
    width = squares.shape[1]
    site = cuda.blockIdx.x
    mine = near_by
    if work.shape[0] > 1:
        mine = work[site]
    solve_masses(
        shared, control, scalars, number[control[k.TARGET]],
        site * group.size * control[k.NODES], group, p2, model, start[site], 0, mine, width,
    )  # fmt: skip
    cuda.syncthreads()
    for a in range(cuda.threadIdx.x, width, THREADS):
        squares[site, a] = mine[a] if mine[4 * width] == 2.0 else math.nan  # 2: converged


def launch_masses(machine, room, desk, start, expected, squares):
    """Shim."""
    machine.launch(
        site_masses, machine.sites, desk.control, desk.scalars, machine.number, machine.groups,
        machine.p2, machine.mass_model, room, start, squares,
    )  # fmt: skip
