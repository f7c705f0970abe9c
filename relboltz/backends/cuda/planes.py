"""A group of pencils in the memory of a block of threads: places, velocity and force, fluxes.

A group lies in seven rows of one number for each lower corner of a cell. Threads share out these
places and wait for one another after every phase. Fluxes are added up as they are found; velocities
and forces are found again from the energies on the corners at every stage, because shared memory is
scarcer than arithmetic.
"""

import numpy as np
from numba import int64

from ...compiling import build, functions_of
from ...transport import phases, plane
from ...transport.plane import CLOSED, OPEN, PERIODIC, REFLECTING
from .driver import SIMULATED, device_function
from .physics import cuda, physics

ROWS = 7
NUMBER, STAGE, ENERGY, SUM_ALONG, SUM_UP, ALONG, UP = range(ROWS)
"""N f at the start and at a stage; E on the lower corner of a cell; through its lower faces along x
and up p, sums of fluxes and the upwind ones."""
LOSS, GAIN, MARK = STAGE, ENERGY, ALONG
"""When these are done with: what a cell can lose and gain, and which ones are mended."""
UNLIMITED = 2.0


def weights(variation, s0, s1, s2):
    """As in ``plane``, times (s0 s1 s2)^2: nothing is divided."""
    a, b, c, v2 = s1 * s2, s0 * s2, s0 * s1, variation * variation
    return (
        (a * a) * (s0 * s0 + v2), 6.0 * ((b * b) * (s1 * s1 + v2)),
        3.0 * ((c * c) * (s2 * s2 + v2)),
    )  # fmt: skip


def quotient(a, b):
    """a/b to one or two units in the last place."""
    return a * physics.reciprocal(b)


OWN = {"floor": physics.floor, "nearest_integer": physics.nearest_integer}
if SIMULATED:
    piece = cuda.jit(device=True)
    compiled = build(functions_of(plane, phases), device_function, OWN)
else:
    piece = cuda.jit(device=True, fastmath=True, forceinline=True)
    OWN |= {"weights": piece(weights), "quotient": piece(quotient)}
    OWN |= {"NOTHING": 1e-40}  # its sixth power is a number as well
    compiled = build(functions_of(plane, phases), piece, OWN)


# --- places --------------------------------------------------------------------------------------
# shape: as in ``plane``, then the length of a row, factors that divide by the numbers of a line of
# constant x and of lanes, and ``stride``; all in 32 bits


@piece
def whole(x):
    """A whole number in 32 bits."""
    return np.int32(x)


@piece
def divisor(n):
    """Factor that divides whole numbers x by n, as long as n x < 2^31."""
    return np.uint32((2**31 + int64(n) - 1) // int64(n))


@piece
def divided(x, factor):
    """x/n, rounded down."""
    return whole((np.uint64(np.uint32(x)) * np.uint64(factor)) >> np.uint64(31))


@piece
def shape_of(n, m, lanes, most, wall, edge):
    """The shape of a group; most : lanes of the largest one."""
    n, m, lanes, most = whole(n), whole(m), whole(lanes), whole(most)
    return (
        n, m, lanes, whole(wall), whole(edge), whole((n + 1) * (m + 1) * most),
        divisor((m + 1) * lanes), divisor(lanes), whole((m + 1) * lanes),
    )  # fmt: skip


@piece
def cell_at(place, shape):
    """Indices along x and p, and the lane, of a place."""
    i = divided(place, shape[6])
    rest = whole(place - i * shape[8])
    j = divided(rest, shape[7])
    return i, j, whole(rest - j * shape[2])


@piece
def get(w, row, place, shape):
    """A number of a row."""
    return w[np.uint32(row * shape[5] + place)]


@piece
def put(w, row, place, shape, value):
    """Set a number of a row."""
    w[np.uint32(row * shape[5] + place)] = value


@piece
def across(i, j, x, here, shape):
    """Place of cell (x, j), if (i, j) is at ``here``; beyond the edges as in ``plane``."""
    n, x, mirror = shape[0], whole(x), whole(0)
    if x < 0 or x >= n:
        if shape[3] == PERIODIC:
            x = whole(compiled.wrapped(x, n))
        elif shape[3] == REFLECTING:
            x = whole(compiled.wrapped(x, whole(2 * n)))
            if x >= n:
                x = whole(2 * n - 1 - x)
                mirror = whole(shape[1] - 1 - 2 * j)
        else:
            x = min(max(x, whole(0)), whole(n - 1))
    return whole(here + (x - i) * shape[8] + mirror * shape[2])


@piece
def beside(j, y, here, shape):
    """Place of momentum y of the same x, if j is at ``here``; beyond the edges as in ``plane``."""
    m, y = shape[1], whole(y)
    if shape[4] == PERIODIC:
        y = whole(compiled.wrapped(y, m))
    else:
        y = min(max(y, whole(0)), whole(m - 1))
    return whole(here + (y - j) * shape[2])


@piece
def rightward(j, shape):
    """``plane.rightward``, as a sign."""
    return whole(1) if whole(2 * j) >= shape[1] else whole(-1)


# --- velocity and force --------------------------------------------------------------------------
# steps: substep over dx and dp, dx, dp
# behind the rows: m^2 on the n + 1 edges; of the n cells its differences, and the two numbers of
# the external force


@piece
def speed(w, i, j, here, p, steps, shape):
    """Velocity on an x face, times the substep over dx; 0 if nothing may pass."""
    energy, after = get(w, ENERGY, here, shape), get(w, ENERGY, here + shape[2], shape)
    rate = steps[0] * compiled.drift(p[j], energy, after)
    return rate * compiled.passes_along(i, j, shape) if shape[3] == OPEN else rate


@piece
def force(w, i, j, here, steps, shape):
    """Force on a p face, times the substep over dp."""
    n, first = shape[0], whole(ROWS * shape[5] + shape[0] + 1 + i)
    change, constant = w[np.uint32(first)], w[np.uint32(first + n)]
    external = constant + w[np.uint32(first + 2 * n)] * compiled.face_momentum(j, steps[3], shape)
    energy, after = get(w, ENERGY, here, shape), get(w, ENERGY, here + shape[8], shape)
    return steps[1] * (compiled.pull(change, energy, after, steps[2]) + external)


@piece
def push(w, i, j, here, steps, shape):
    """The same, 0 if nothing may pass."""
    if shape[4] == CLOSED and (j == 0 or j == shape[1]):
        return 0.0
    return force(w, i, j, here, steps, shape)


# --- fluxes of Runge-Kutta -----------------------------------------------------------------------


@piece
def stencil_along(i, j, here, shape):
    """Five cells for what passes an x face; the third is where it comes from."""
    sign = rightward(j, shape)
    x = whole(i - 1) if sign > 0 else i
    if 2 < i < shape[0] - 2:
        step = whole(sign * shape[8])
        third = whole(here - shape[8]) if sign > 0 else whole(here)
        return third - 2 * step, third - step, third, third + step, third + 2 * step
    return (
        across(i, j, x - 2 * sign, here, shape), across(i, j, x - sign, here, shape),
        across(i, j, x, here, shape), across(i, j, x + sign, here, shape),
        across(i, j, x + 2 * sign, here, shape),
    )  # fmt: skip


@piece
def stencil_up(j, rate, here, shape):
    """The same for a p face; rate : as the force."""
    sign = whole(1) if rate > 0.0 else whole(-1)
    y = whole(j - 1) if rate > 0.0 else j
    return (
        beside(j, y - 2 * sign, here, shape), beside(j, y - sign, here, shape),
        beside(j, y, here, shape), beside(j, y + sign, here, shape),
        beside(j, y + 2 * sign, here, shape),
    )  # fmt: skip


@piece
def staged(w, cells, shape):
    """N f of a stage in five cells."""
    a, b, c, d, e = cells
    return (
        get(w, STAGE, a, shape), get(w, STAGE, b, shape), get(w, STAGE, c, shape),
        get(w, STAGE, d, shape), get(w, STAGE, e, shape),
    )  # fmt: skip


@piece
def edge_along(w, i, j, cells, shape):
    """N f of a stage on an x face."""
    a, b, c, d, e = staged(w, cells, shape)
    outside = 0
    if shape[3] == OPEN:
        behind, ahead = compiled.outside_along(i, j, shape)
        outside = behind + ahead
        if outside > 0:
            a, b, c, d, e = compiled.beyond_wall(a, b, c, d, e, behind, ahead)
    edge = compiled.reconstruct(a, b, c, d, e)
    return max(edge, 0.0) if outside > 0 else edge


@piece
def add_up(w, row, here, stage, edge, rate, source, shape):
    """Add the flux of a stage to a sum, of which the last one leaves what goes beyond upwind."""
    keep, share, part = stage
    total = share * (rate * edge)
    if keep > 0.0:
        total += keep * get(w, row, here, shape)
    if part == 0.0:
        upwind = rate * get(w, NUMBER, source, shape)
        total -= upwind
        put(w, row + ALONG - SUM_ALONG, here, shape, upwind)
    put(w, row, here, shape, total)


@piece
def fluxes(w, count, stage, p, steps, shape):
    """Fluxes of a stage through all faces."""
    n, m = shape[0], shape[1]
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, _ = cell_at(here, shape)
        if j < m:
            cells = stencil_along(i, j, here, shape)
            edge = edge_along(w, i, j, cells, shape)
            rate = speed(w, i, j, here, p, steps, shape)
            add_up(w, SUM_ALONG, here, stage, edge, rate, cells[2], shape)
        if i < n:
            rate = push(w, i, j, here, steps, shape)
            if rate != 0.0:
                cells = stencil_up(j, rate, here, shape)
                edge = compiled.reconstruct(*staged(w, cells, shape))
                add_up(w, SUM_UP, here, stage, edge, rate, cells[2], shape)
            elif stage[0] == 0.0:
                put(w, SUM_UP, here, shape, 0.0)
                put(w, UP, here, shape, 0.0)
    cuda.syncthreads()


@piece
def brought(w, along, up, here, shape):
    """What the fluxes in two rows bring into a cell."""
    x = get(w, along, here, shape) - get(w, along, here + shape[8], shape)
    return x + (get(w, up, here, shape) - get(w, up, here + shape[2], shape))


@piece
def runge_kutta(w, count, p, steps, shape):
    """What the fluxes of the three stages, weighted, bring beyond the upwind ones."""
    for stage in plane.STAGES:
        fluxes(w, count, stage, p, steps, shape)
        if stage[2] > 0.0:
            for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
                i, j, _ = cell_at(here, shape)
                if i < shape[0] and j < shape[1]:
                    change = stage[2] * brought(w, SUM_ALONG, SUM_UP, here, shape)
                    put(w, STAGE, here, shape, get(w, NUMBER, here, shape) + change)
            cuda.syncthreads()
