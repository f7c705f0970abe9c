"""A group of pencils in the memory of a block of threads: places, velocity and force, fluxes.

Of each lower corner of a cell a group holds seven numbers, side by side: an odd number, so that the
threads of a warp never meet in a bank of shared memory. Threads share out these places and wait for
one another after every phase. Fluxes are added up as they are found.
"""

import numpy as np

from ...transport import phases, plane
from ...transport.plane import CLOSED, OPEN, PERIODIC
from ...util.jit import build, functions_of
from .driver import SIMULATED, device_function
from .physics import cuda, physics

ROWS = 7
NUMBER, STAGE, ENERGY, SUM_ALONG, SUM_UP, ALONG, UP = range(ROWS)
"""N f at the start and at a stage; E on the lower corner of a cell; through its lower faces along x
and up p, sums of fluxes, and velocity and force: upwind fluxes once the stages are done."""
LOSS, GAIN, MARK = STAGE, ENERGY, ALONG
"""When these are done with: what a cell can lose and gain, and which ones are mended."""
UNLIMITED = 2.0
N, M, LANES, WALL, EDGE, UPWARD, ONWARD, BEHIND, BY_LANES, BY_LINE = range(10)
"""Shape of a group: cells along x and p, lanes, kinds of boundary in x and p; distances of
neighbours along p and x; what lies behind all places; factors that divide by the numbers of lanes,
and of places of one x. Whole numbers are in 32 bits."""


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


@piece
def whole(x):
    """A whole number in 32 bits."""
    return np.int32(x)


@piece
def thread():
    """The first place of a thread."""
    return whole(cuda.threadIdx.x)


@piece
def following(place):
    """The next one: loops over a range would divide to find their length."""
    return whole(place + cuda.blockDim.x)


def divisor(n: int) -> int:
    """Factor that divides whole numbers x by n, as long as n x < 2^31."""
    return (2**31 + n - 1) // n


@piece
def divided(x, factor):
    """x/n, rounded down."""
    return whole((np.uint64(np.uint32(x)) * np.uint64(factor)) >> np.uint64(31))


@piece
def cell_at(place, shape):
    """Indices along x and p, and the lane, of a place; and where its numbers begin."""
    i = divided(place, shape[BY_LINE])
    rest = whole(place - i * ((shape[M] + 1) * shape[LANES]))
    j = divided(rest, shape[BY_LANES])
    return i, j, whole(rest - j * shape[LANES]), whole(place * ROWS)


@piece
def get(w, row, here):
    """A number of a place."""
    return w[np.uint64(here) + np.uint64(row)]


@piece
def put(w, row, here, value):
    """Set a number of a place."""
    w[np.uint64(here) + np.uint64(row)] = value


@piece
def around(place, first, length):
    """A place on a periodic axis that begins at ``first``."""
    while place < first:
        place = whole(place + length)
    while place >= whole(first + length):
        place = whole(place - length)
    return place


@piece
def mirrored(place, first, length, twice):
    """A place between two walls, which turn momenta round; twice : sum of a place and its image."""
    while place < first or place >= whole(first + length):
        image = whole(twice - place)
        place = image if place < first else whole(image + 2 * length)
    return place


@piece
def across(i, j, place, here, shape):
    """The cell that stands for one so many cells along x from (i, j), which is here."""
    onward, upward = shape[ONWARD], shape[UPWARD]
    line, length = whole(here - i * onward), whole(shape[N] * onward)
    if shape[WALL] == OPEN:
        return min(max(place, line), whole(line + length - onward))
    first = whole(line - j * upward)
    if shape[WALL] == PERIODIC:
        return around(place, first, length)
    return mirrored(place, first, length, whole(2 * first - onward + (shape[M] - 1) * upward))


@piece
def rightward(j, shape):
    """``plane.rightward``."""
    return whole(2 * j) >= shape[M]


@piece
def stencil_along(i, j, here, shape):
    """Five cells for what passes the lower x face of a cell; it comes from the third."""
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


@piece
def beside(j, place, here, shape):
    """The cell that stands for one so many cells along p from momentum j, which is here."""
    first, length = whole(here - j * shape[UPWARD]), whole(shape[M] * shape[UPWARD])
    if shape[EDGE] == PERIODIC:
        return around(place, first, length)
    return min(max(place, first), whole(first + length - shape[UPWARD]))


@piece
def stencil_up(j, rate, here, shape):
    """The same for a p face; rate : as the force."""
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
# steps: substep over dx and dp, dx, dp, and whether forces push from outside
# behind all places: momenta of the nodes; m^2 on the n + 1 edges of x, and of the n cells its
# differences and the two numbers of the external force


@piece
def speed(w, i, j, here, steps, shape):
    """Velocity on an x face, times the substep over dx; 0 if nothing may pass."""
    energy, after = get(w, ENERGY, here), get(w, ENERGY, here + shape[UPWARD])
    rate = steps[0] * compiled.drift(get(w, j, shape[BEHIND]), energy, after)
    return rate * compiled.passes_along(i, j, shape) if shape[WALL] == OPEN else rate


@piece
def force(w, i, j, here, steps, shape):
    """Force on a p face, times the substep over dp."""
    n, first = shape[N], whole(shape[BEHIND] + shape[M] + shape[N] + 1)
    change = get(w, i, first)
    energy, after = get(w, ENERGY, here), get(w, ENERGY, here + shape[ONWARD])
    value = compiled.pull(change, energy, after, steps[2])
    if steps[4]:
        linear = get(w, i, first + 2 * n)
        value += get(w, i, first + n) + linear * compiled.face_momentum(j, steps[3], shape)
    return steps[1] * value


@piece
def set_rates(w, count, steps, shape):
    """Velocity and force on all faces, 0 where nothing may pass; each for its own thread alone."""
    place, m = thread(), shape[M]
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if j < m:
            put(w, ALONG, here, speed(w, i, j, here, steps, shape))
        if i < shape[N]:
            closed = shape[EDGE] == CLOSED and (j == 0 or j == m)
            put(w, UP, here, 0.0 if closed else force(w, i, j, here, steps, shape))
        place = following(place)


# --- fluxes of Runge-Kutta -----------------------------------------------------------------------


@piece
def staged(w, cells):
    """N f of a stage in five cells."""
    a, b, c, d, e = cells
    return (
        get(w, STAGE, a), get(w, STAGE, b), get(w, STAGE, c), get(w, STAGE, d), get(w, STAGE, e),
    )  # fmt: skip


@piece
def edge_along(w, i, j, cells, shape):
    """N f of a stage on an x face."""
    a, b, c, d, e = staged(w, cells)
    outside = 0
    if shape[WALL] == OPEN:
        behind, ahead = compiled.outside_along(i, j, shape)
        outside = behind + ahead
        if outside > 0:
            a, b, c, d, e = compiled.beyond_wall(a, b, c, d, e, behind, ahead)
    edge = compiled.reconstruct(a, b, c, d, e)
    return max(edge, 0.0) if outside > 0 else edge


@piece
def add_up(w, row, here, stage, edge, rate, source):
    """Add the flux of a stage to a sum, of which the last one leaves what goes beyond upwind."""
    keep, share, part = stage
    total = share * (rate * edge)
    if keep > 0.0:
        total += keep * get(w, row, here)
    if part == 0.0:
        upwind = rate * get(w, NUMBER, source)
        total -= upwind
        put(w, row + ALONG - SUM_ALONG, here, upwind)
    put(w, row, here, total)


@piece
def fluxes(w, count, stage, shape):
    """Fluxes of a stage through all faces."""
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


@piece
def brought(w, along, up, here, shape):
    """What the fluxes in two rows bring into a cell."""
    x = get(w, along, here) - get(w, along, here + shape[ONWARD])
    return x + (get(w, up, here) - get(w, up, here + shape[UPWARD]))


@piece
def is_cell(i, j, shape):
    """Whether a place is the corner of a cell, and not of the last faces alone."""
    return i < shape[N] and j < shape[M]


@piece
def runge_kutta(w, count, shape):
    """What the fluxes of the three stages, weighted, bring beyond the upwind ones."""
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
