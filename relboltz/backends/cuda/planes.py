"""A group of pencils in the memory of a block of threads: places, velocity and force, fluxes.

A group lies in six rows of one number for each lower corner of a cell. Threads share out these
places and wait for one another after every phase. Fluxes are added up as they are found; upwind
ones, velocities and forces are found again from the energies on the corners wherever they are
needed, because shared memory is scarcer than arithmetic.
"""

import numpy as np

from ...compiling import build, functions_of
from ...transport import phases, plane
from ...transport.plane import OPEN, PERIODIC
from .driver import SIMULATED, device_function
from .physics import cuda, physics

ROWS = 6
NUMBER, STAGE, ENERGY, GAIN, SUM_ALONG, SUM_UP = range(ROWS)
"""N f at the start and at a stage; E on the lower corner of a cell; later what it can gain; sums of
fluxes along x and up p through its lower faces."""
LOSS, MARK = STAGE, ENERGY
"""What a cell can lose, and which ones are mended: when stages and energies are done with."""
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


# --- places: shape as in ``plane``, then the length of a row and two factors that divide ---------


@piece
def divisor(n):
    """Factor that divides whole numbers x by n, as long as n x < 2^32."""
    return (np.uint64(2**32) + np.uint64(n - 1)) // np.uint64(n)


@piece
def divided(x, factor):
    """x/n, rounded down."""
    return np.int32((np.uint64(x) * np.uint64(factor)) >> np.uint64(32))


@piece
def cell_at(place, shape):
    """Indices along x and p, and the lane, of a place."""
    i = divided(place, shape[6])
    rest = np.int32(place - i * ((shape[1] + 1) * shape[2]))
    j = divided(rest, shape[7])
    return i, j, np.int32(rest - j * shape[2])


@piece
def get(w, row, place, shape):
    """A number of a row."""
    return w[np.uint32(row * shape[5] + place)]


@piece
def put(w, row, place, shape, value):
    """Set a number of a row."""
    w[np.uint32(row * shape[5] + place)] = value


@piece
def cells_along(i, j, here, shape):
    """``plane.stencil_along``, for a lane; here : the place of the face."""
    step = compiled.stride(shape)
    if 2 < i < shape[0] - 2:
        if compiled.rightward(j, shape):
            return here - 3 * step, here - 2 * step, here - step, here, here + step
        return here + 2 * step, here + step, here, here - step, here - 2 * step
    lane = here - compiled.spot(i, j, shape)
    a, b, c, d, e = compiled.stencil_along(i, j, shape)
    return a + lane, b + lane, c + lane, d + lane, e + lane


@piece
def source_along(i, j, here, shape):
    """The third of them: where what passes the face comes from."""
    first = i - 1 if compiled.rightward(j, shape) else i
    if 0 <= first < shape[0]:
        return here + (first - i) * compiled.stride(shape)
    return compiled.place(first, j, shape) + here - compiled.spot(i, j, shape)


@piece
def beside(i, j, new, here, shape):
    """Place of momentum ``new`` of a cell (i, j) at ``here``; beyond the edges as in ``plane``."""
    if shape[4] == PERIODIC:
        return compiled.beside(i, new, shape) + here - compiled.spot(i, j, shape)
    return here + (min(max(new, 0), shape[1] - 1) - j) * shape[2]


# --- velocity, force, and what is upwind ---------------------------------------------------------
# steps: substep over dx and dp, dx, dp; behind the rows there are m^2 on the x edges, and the two
# numbers of the external force of every x cell


@piece
def speed(w, i, j, here, p, steps, shape):
    """Velocity on an x face, times the substep over dx; 0 if nothing may pass."""
    energy, after = get(w, ENERGY, here, shape), get(w, ENERGY, here + shape[2], shape)
    return steps[0] * compiled.passes_along(i, j, shape) * compiled.drift(p[j], energy, after)


@piece
def force(w, i, j, here, steps, shape):
    """Force on a p face, times the substep over dp."""
    first = ROWS * shape[5] + i
    change = w[np.uint32(first)] - w[np.uint32(first + 1)]
    first += shape[0] + 1
    constant, linear = w[np.uint32(first)], w[np.uint32(first + shape[0])]
    external = constant + linear * compiled.face_momentum(j, steps[3], shape)
    energy = get(w, ENERGY, here, shape)
    after = get(w, ENERGY, here + compiled.stride(shape), shape)
    return steps[1] * (compiled.pull(change, energy, after, steps[2]) + external)


@piece
def push(w, i, j, here, steps, shape):
    """The same, 0 if nothing may pass."""
    if compiled.passes_up(j, shape) == 0.0:
        return 0.0
    return force(w, i, j, here, steps, shape)


@piece
def upwind_along(w, i, j, here, p, steps, shape):
    """Upwind flux through an x face."""
    source = source_along(i, j, here, shape)
    return speed(w, i, j, here, p, steps, shape) * get(w, NUMBER, source, shape)


@piece
def upwind_up(w, i, j, here, steps, shape):
    """Upwind flux through a p face."""
    pushed = push(w, i, j, here, steps, shape)
    source = beside(i, j, j - 1 if pushed > 0.0 else j, here, shape)
    return pushed * get(w, NUMBER, source, shape)


# --- fluxes of Runge-Kutta -----------------------------------------------------------------------


@piece
def edge_along(w, i, j, cells, shape):
    """N f of a stage on an x face."""
    a, b = get(w, STAGE, cells[0], shape), get(w, STAGE, cells[1], shape)
    c, d = get(w, STAGE, cells[2], shape), get(w, STAGE, cells[3], shape)
    e, outside = get(w, STAGE, cells[4], shape), False
    if shape[3] == OPEN:
        behind, ahead = compiled.outside_along(i, j, shape)
        if behind + ahead > 0:
            a, b, c, d, e = compiled.beyond_wall(a, b, c, d, e, behind, ahead)
            outside = True
    edge = compiled.reconstruct(a, b, c, d, e)
    return max(edge, 0.0) if outside else edge


@piece
def edge_up(w, i, j, here, sign, shape):
    """N f of a stage on a p face, and where it comes from; sign : of the force."""
    c = j - 1 if sign > 0 else j
    source = beside(i, j, c, here, shape)
    return compiled.reconstruct(
        get(w, STAGE, beside(i, j, c - 2 * sign, here, shape), shape),
        get(w, STAGE, beside(i, j, c - sign, here, shape), shape),
        get(w, STAGE, source, shape),
        get(w, STAGE, beside(i, j, c + sign, here, shape), shape),
        get(w, STAGE, beside(i, j, c + 2 * sign, here, shape), shape),
    ), source  # fmt: skip


@piece
def add_up(w, row, here, stage, edge, rate, source, shape):
    """Add the flux of a stage to a sum, of which the last one leaves what goes beyond upwind."""
    keep, share, part = stage
    total = share * (rate * edge)
    if keep > 0.0:
        total += keep * get(w, row, here, shape)
    if part == 0.0:
        total -= rate * get(w, NUMBER, source, shape)
    put(w, row, here, shape, total)


@piece
def fluxes(w, count, stage, p, steps, shape):
    """Fluxes of a stage through all faces."""
    n, m = shape[0], shape[1]
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, _ = cell_at(here, shape)
        if j < m:
            cells = cells_along(i, j, here, shape)
            edge = edge_along(w, i, j, cells, shape)
            rate = speed(w, i, j, here, p, steps, shape)
            add_up(w, SUM_ALONG, here, stage, edge, rate, cells[2], shape)
        if i < n:
            rate = push(w, i, j, here, steps, shape)
            if rate != 0.0:
                edge, source = edge_up(w, i, j, here, 1 if rate > 0.0 else -1, shape)
                add_up(w, SUM_UP, here, stage, edge, rate, source, shape)
            elif stage[0] == 0.0:
                put(w, SUM_UP, here, shape, 0.0)
    cuda.syncthreads()


@piece
def brought(w, here, shape):
    """What the sums of fluxes bring into a cell."""
    x = get(w, SUM_ALONG, here, shape) - get(w, SUM_ALONG, here + compiled.stride(shape), shape)
    return x + (get(w, SUM_UP, here, shape) - get(w, SUM_UP, here + shape[2], shape))


@piece
def runge_kutta(w, count, p, steps, shape):
    """What the fluxes of the three stages, weighted, bring beyond the upwind ones."""
    for stage in plane.STAGES:
        fluxes(w, count, stage, p, steps, shape)
        if stage[2] > 0.0:
            for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
                i, j, _ = cell_at(here, shape)
                if i < shape[0] and j < shape[1]:
                    new = get(w, NUMBER, here, shape) + stage[2] * brought(w, here, shape)
                    put(w, STAGE, here, shape, new)
            cuda.syncthreads()
