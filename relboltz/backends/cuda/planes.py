"""Pencils in the memory of a block of threads: places, velocity and force, fluxes.

A group of pencils holds seven adjacent numbers for each place, the lower corner of a cell. Seven is
odd, so that the threads of a warp have no bank conflicts in shared memory. Threads share the places
and synchronize after every phase. Fluxes are accumulated as they are computed.
"""

import numpy as np

from ...transport import phases, plane
from ...transport.plane import CLOSED, OPEN, PERIODIC
from ...util.jit import build, functions_of
from .driver import SIMULATED, device_function
from .physics import cuda, physics

ROWS = 7
NUMBER, STAGE, ENERGY, SUM_ALONG, SUM_UP, ALONG, UP = range(ROWS)
"""Numbers of a place: N f at the start and at a stage; E on the lower corner of the cell; sums of
fluxes through its lower x and p faces; velocity and force there, replaced by the upwind fluxes once
the stages are done."""
LOSS, GAIN, MARK = STAGE, ENERGY, ALONG
"""Later uses of three rows: what a cell can lose and gain, and which cells are mended."""
UNLIMITED = 2.0
N, M, LANES, WALL, EDGE, UPWARD, ONWARD, BEHIND, BY_LANES, BY_LINE = range(10)
"""Shape of a group: cells along x and p, lanes, kinds of boundary in x and p; distances of
neighbours along p and x; offset of the data behind all places; factors that divide by the number of
lanes and by the number of places at one x. Integers have 32 bits."""


def weights(variation, s0, s1, s2):
    """Return the weights of ``plane.weights`` times (s0 s1 s2)^2, which avoids division."""
    a, b, c, v2 = s1 * s2, s0 * s2, s0 * s1, variation * variation
    return (
        (a * a) * (s0 * s0 + v2), 6.0 * ((b * b) * (s1 * s1 + v2)),
        3.0 * ((c * c) * (s2 * s2 + v2)),
    )  # fmt: skip


def quotient(a, b):
    """Return a/b to one or two units in the last place."""
    return a * physics.reciprocal(b)


OWN = {"floor": physics.floor, "nearest_integer": physics.nearest_integer}
if SIMULATED:
    array_function = cuda.jit(device=True)
    compiled = build(functions_of(plane, phases), device_function, OWN)
else:
    array_function = cuda.jit(device=True, fastmath=True, forceinline=True)
    OWN |= {"weights": array_function(weights), "quotient": array_function(quotient)}
    OWN |= {"NOTHING": 1e-40}  # its sixth power does not underflow
    compiled = build(functions_of(plane, phases), array_function, OWN)


# --- places --------------------------------------------------------------------------------------


@array_function
def whole(x):
    """Convert to a 32-bit integer."""
    return np.int32(x)


@array_function
def thread():
    """Return the first place of this thread."""
    return whole(cuda.threadIdx.x)


@array_function
def following(place):
    """Return this thread's next place; a loop over a range would need a division."""
    return whole(place + cuda.blockDim.x)


def divisor(n: int) -> int:
    """Return the factor for ``divided`` to divide integers x by n, valid for n x < 2^31."""
    return (2**31 + n - 1) // n


@array_function
def divided(x, factor):
    """Return x/n rounded down; factor : ``divisor(n)``."""
    return whole((np.uint64(np.uint32(x)) * np.uint64(factor)) >> np.uint64(31))


@array_function
def cell_at(place, shape):
    """Return the x and p indices and the lane of a place, and the offset of its numbers."""
    i = divided(place, shape[BY_LINE])
    rest = whole(place - i * ((shape[M] + 1) * shape[LANES]))
    j = divided(rest, shape[BY_LANES])
    return i, j, whole(rest - j * shape[LANES]), whole(place * ROWS)


@array_function
def get(w, row, here):
    """Return a number of a place."""
    return w[np.uint64(here) + np.uint64(row)]


@array_function
def put(w, row, here, value):
    """Set a number of a place."""
    w[np.uint64(here) + np.uint64(row)] = value


@array_function
def around(place, first, length):
    """Wrap a place on a periodic axis that begins at ``first``."""
    while place < first:
        place = whole(place + length)
    while place >= whole(first + length):
        place = whole(place - length)
    return place


@array_function
def mirrored(place, first, length, twice):
    """Reflect a place between two walls that reverse momenta; twice : sum of place and image."""
    while place < first or place >= whole(first + length):
        image = whole(twice - place)
        place = image if place < first else whole(image + 2 * length)
    return place


@array_function
def across(i, j, place, here, shape):
    """Return the cell that represents ``place``, some cells along x from (i, j) at ``here``."""
    onward, upward = shape[ONWARD], shape[UPWARD]
    line, length = whole(here - i * onward), whole(shape[N] * onward)
    if shape[WALL] == OPEN:
        return min(max(place, line), whole(line + length - onward))
    first = whole(line - j * upward)
    if shape[WALL] == PERIODIC:
        return around(place, first, length)
    return mirrored(place, first, length, whole(2 * first - onward + (shape[M] - 1) * upward))


@array_function
def rightward(j, shape):
    """Return whether momentum j moves to larger x: see ``plane.rightward``."""
    return whole(2 * j) >= shape[M]


@array_function
def stencil_along(i, j, here, shape):
    """Return five cells that determine the flux through the lower x face; the third is upwind."""
    onward, right = shape[ONWARD], rightward(j, shape)
    step = onward if right else whole(-onward)
    third = whole(here - onward) if right else here
    a, b = whole(third - 2 * step), whole(third - step)
    d, e = whole(third + step), whole(third + 2 * step)
    if 2 < i < shape[N] - 2:
        return a, b, third, d, e
    return (
        across(i, j, a, here, shape), across(i, j, b, here, shape),
        across(i, j, third, here, shape), across(i, j, d, here, shape),
        across(i, j, e, here, shape),
    )  # fmt: skip


@array_function
def beside(j, place, here, shape):
    """Return the cell that represents ``place``, some cells along p from j at ``here``."""
    first, length = whole(here - j * shape[UPWARD]), whole(shape[M] * shape[UPWARD])
    if shape[EDGE] == PERIODIC:
        return around(place, first, length)
    return min(max(place, first), whole(first + length - shape[UPWARD]))


@array_function
def stencil_up(j, rate, here, shape):
    """Return five cells that determine the flux through the lower p face; rate : of the force."""
    upward = shape[UPWARD]
    step = upward if rate > 0.0 else whole(-upward)
    third = whole(here - upward) if rate > 0.0 else here
    a, b = whole(third - 2 * step), whole(third - step)
    d, e = whole(third + step), whole(third + 2 * step)
    return (
        beside(j, a, here, shape), beside(j, b, here, shape), beside(j, third, here, shape),
        beside(j, d, here, shape), beside(j, e, here, shape),
    )  # fmt: skip


# --- velocity and force --------------------------------------------------------------------------
# steps: substep over dx and over dp, dx, dp, whether there is an external force
# behind all places: momenta of the nodes; m^2 on the n + 1 edges of x; for each of the n cells the
# difference of m^2 and the two numbers of the external force


@array_function
def speed(w, i, j, here, steps, shape):
    """Return the velocity on an x face times substep/dx; 0 if nothing may pass."""
    energy, after = get(w, ENERGY, here), get(w, ENERGY, here + shape[UPWARD])
    rate = steps[0] * compiled.drift(get(w, j, shape[BEHIND]), energy, after)
    return rate * compiled.passes_along(i, j, shape) if shape[WALL] == OPEN else rate


@array_function
def force(w, i, j, here, steps, shape):
    """Return the force on a p face times substep/dp."""
    n, first = shape[N], whole(shape[BEHIND] + shape[M] + shape[N] + 1)
    change = get(w, i, first)
    energy, after = get(w, ENERGY, here), get(w, ENERGY, here + shape[ONWARD])
    value = compiled.pull(change, energy, after, steps[2])
    if steps[4]:
        linear = get(w, i, first + 2 * n)
        value += get(w, i, first + n) + linear * compiled.face_momentum(j, steps[3], shape)
    return steps[1] * value


@array_function
def set_rates(w, count, steps, shape):
    """Set velocity and force on all faces, 0 where nothing may pass; each thread its own places."""
    place, m = thread(), shape[M]
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if j < m:
            put(w, ALONG, here, speed(w, i, j, here, steps, shape))
        if i < shape[N]:
            closed = shape[EDGE] == CLOSED and (j == 0 or j == m)
            put(w, UP, here, 0.0 if closed else force(w, i, j, here, steps, shape))
        place = following(place)


# --- Runge-Kutta fluxes --------------------------------------------------------------------------


@array_function
def staged(w, cells):
    """Return N f of a stage in five cells."""
    a, b, c, d, e = cells
    return (
        get(w, STAGE, a), get(w, STAGE, b), get(w, STAGE, c), get(w, STAGE, d), get(w, STAGE, e),
    )  # fmt: skip


@array_function
def edge_along(w, i, j, cells, shape):
    """Return the reconstructed N f of a stage on an x face."""
    a, b, c, d, e = staged(w, cells)
    outside = 0
    if shape[WALL] == OPEN:
        behind, ahead = compiled.outside_along(i, j, shape)
        outside = behind + ahead
        if outside > 0:
            a, b, c, d, e = compiled.beyond_wall(a, b, c, d, e, behind, ahead)
    edge = compiled.reconstruct(a, b, c, d, e)
    return max(edge, 0.0) if outside > 0 else edge


@array_function
def add_up(w, row, here, stage, edge, rate, source):
    """Add the flux of a stage to a sum; after the last stage it is the excess over upwind."""
    keep, share, part = stage
    total = share * (rate * edge)
    if keep > 0.0:
        total += keep * get(w, row, here)
    if part == 0.0:
        upwind = rate * get(w, NUMBER, source)
        total -= upwind
        put(w, row + ALONG - SUM_ALONG, here, upwind)
    put(w, row, here, total)


@array_function
def fluxes(w, count, stage, shape):
    """Add the fluxes of a stage through all faces."""
    place = thread()
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if j < shape[M]:
            cells = stencil_along(i, j, here, shape)
            edge = edge_along(w, i, j, cells, shape)
            add_up(w, SUM_ALONG, here, stage, edge, get(w, ALONG, here), cells[2])
        if i < shape[N]:
            rate = get(w, UP, here)
            if rate != 0.0:
                cells = stencil_up(j, rate, here, shape)
                edge = compiled.reconstruct(*staged(w, cells))
                add_up(w, SUM_UP, here, stage, edge, rate, cells[2])
            elif stage[0] == 0.0:
                put(w, SUM_UP, here, 0.0)
        place = following(place)
    cuda.syncthreads()


@array_function
def brought(w, along, up, here, shape):
    """Return the net inflow into a cell from the fluxes in two rows."""
    x = get(w, along, here) - get(w, along, here + shape[ONWARD])
    return x + (get(w, up, here) - get(w, up, here + shape[UPWARD]))


@array_function
def is_cell(i, j, shape):
    """Return whether a place belongs to a cell, not only to the last faces."""
    return i < shape[N] and j < shape[M]


@array_function
def runge_kutta(w, count, shape):
    """Compute the weighted fluxes of the three stages beyond the upwind fluxes."""
    for stage in plane.STAGES:
        fluxes(w, count, stage, shape)
        if stage[2] > 0.0:
            place = thread()
            while place < count:
                i, j, _, here = cell_at(place, shape)
                if is_cell(i, j, shape):
                    change = stage[2] * brought(w, SUM_ALONG, SUM_UP, here, shape)
                    put(w, STAGE, here, get(w, NUMBER, here) + change)
                place = following(place)
            cuda.syncthreads()
