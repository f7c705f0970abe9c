"""Whole fluxes that leave every cell of a group of pencils within its bounds."""

from ...transport import plane
from ...transport.plane import OPEN, REFLECTING
from .physics import cuda
from .planes import (
    ALONG,
    GAIN,
    LOSS,
    MARK,
    NUMBER,
    SUM_ALONG,
    SUM_UP,
    UNLIMITED,
    UP,
    across,
    beside,
    brought,
    cell_at,
    compiled,
    get,
    piece,
    put,
    rightward,
)

# --- limits --------------------------------------------------------------------------------------


@piece
def set_limits(w, here, held, capacity, shape):
    """What of the fluxes in the sums a cell that holds so much can give and take."""
    x0 = get(w, SUM_ALONG, here, shape)
    x1 = get(w, SUM_ALONG, here + shape[8], shape)
    p0, p1 = get(w, SUM_UP, here, shape), get(w, SUM_UP, here + shape[2], shape)
    put(w, LOSS, here, shape, compiled.limit(held, compiled.taken(x0, x1, p0, p1)))
    put(w, GAIN, here, shape, compiled.limit(capacity - held, compiled.given(x0, x1, p0, p1)))


@piece
def find_limits(w, count, capacity, shape):
    """What every cell can give and take beyond the upwind fluxes."""
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, _ = cell_at(here, shape)
        if i < shape[0] and j < shape[1]:
            held = get(w, NUMBER, here, shape) + brought(w, ALONG, UP, here, shape)
            set_limits(w, here, held, capacity, shape)
    cuda.syncthreads()


@piece
def share_along(w, i, j, here, more, shape):
    """Part of a flux through an x face that the cells beside it allow."""
    left, right = across(i, j, i - 1, here, shape), across(i, j, i, here, shape)
    wall = shape[3] == OPEN
    low, high = wall and i == 0, wall and i == shape[0]
    return compiled.allowed(
        more, UNLIMITED if low else get(w, LOSS, left, shape),
        UNLIMITED if low else get(w, GAIN, left, shape),
        UNLIMITED if high else get(w, LOSS, right, shape),
        UNLIMITED if high else get(w, GAIN, right, shape),
    )  # fmt: skip


@piece
def share_up(w, i, j, here, more, shape):
    """The same for a p face."""
    left, right = beside(j, j - 1, here, shape), beside(j, j, here, shape)
    return compiled.allowed(
        more, get(w, LOSS, left, shape), get(w, GAIN, left, shape), get(w, LOSS, right, shape),
        get(w, GAIN, right, shape),
    )  # fmt: skip


@piece
def put_along(w, i, j, here, flux, shape):
    """Set the flux through an x face; at a reflecting wall that at -p follows the one at p."""
    if shape[3] == REFLECTING and compiled.is_wall(i, shape):
        other = shape[1] - 1 - j
        if rightward(j, shape) > 0:
            put(w, SUM_ALONG, here + (other - j) * shape[2], shape, -flux)
        elif other == j:
            flux = 0.0
        else:
            return
    put(w, SUM_ALONG, here, shape, flux)


@piece
def limited_fluxes(w, count, shape):
    """Whole fluxes: upwind ones and what the limits allow beyond them."""
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, _ = cell_at(here, shape)
        if j < shape[1]:
            more = get(w, SUM_ALONG, here, shape)
            s = min(share_along(w, i, j, here, more, shape), 1.0)
            flux = compiled.nearest_integer(get(w, ALONG, here, shape) + s * more)
            put_along(w, i, j, here, flux, shape)
        if i < shape[0]:
            more = get(w, SUM_UP, here, shape)
            if more != 0.0:
                more *= share_up(w, i, j, here, more, shape)
            flux = compiled.nearest_integer(get(w, UP, here, shape) + more)
            put(w, SUM_UP, here, shape, flux)
    cuda.syncthreads()


# --- mending: cells that the whole fluxes would still take beyond their bounds -------------------


@piece
def cut_along(w, i, j, here, shape):
    """What the limits of mended cells leave of a whole flux through an x face."""
    q, sign = compiled.mirrored(i, j, shape)
    there = here + (q - j) * shape[2]
    more = get(w, SUM_ALONG, there, shape)
    return sign * compiled.truncated(more, share_along(w, i, q, there, more, shape))


@piece
def cut_up(w, i, j, here, shape):
    """The same for a p face."""
    more = get(w, SUM_UP, here, shape)
    return compiled.truncated(more, share_up(w, i, j, here, more, shape))


@piece
def cut_brought(w, i, j, here, shape):
    """What such fluxes bring into a cell."""
    x = cut_along(w, i, j, here, shape)
    x -= cut_along(w, i + 1, j, here + shape[8], shape)
    y = cut_up(w, i, j, here, shape) - cut_up(w, i, j + 1, here + shape[2], shape)
    return x + y


@piece
def illegal(w, here, change, capacity, shape):
    """Whether a change would take a cell beyond its bounds."""
    new = get(w, NUMBER, here, shape) + change
    return new < 0.0 or new > capacity


@piece
def none_illegal(w, count, capacity, shape):
    """Whether the whole fluxes leave every cell within its bounds; marks those they do not."""
    bad = 0
    for here in range(cuda.threadIdx.x, count, cuda.blockDim.x):
        i, j, _ = cell_at(here, shape)
        if i < shape[0] and j < shape[1]:
            mark = 0.0
            if illegal(w, here, brought(w, SUM_ALONG, SUM_UP, here, shape), capacity, shape):
                mark, bad = 1.0, 1
            put(w, MARK, here, shape, mark)
    return cuda.syncthreads_or(bad) == 0


@piece
def mend(w, count, capacity, shape):
    """Cut whole fluxes until every cell is within its bounds; see the CPU's ``limit_fluxes``."""
    t, step, n, m = cuda.threadIdx.x, cuda.blockDim.x, shape[0], shape[1]
    for here in range(t, count, step):
        put(w, LOSS, here, shape, UNLIMITED)
        put(w, GAIN, here, shape, UNLIMITED)
    for turn in range(plane.MOST_PASSES):
        cuda.syncthreads()
        for here in range(t, count, step):
            i, j, _ = cell_at(here, shape)
            if i < n and j < m and get(w, MARK, here, shape) != 0.0:
                set_limits(w, here, get(w, NUMBER, here, shape), capacity, shape)
        cuda.syncthreads()
        bad, everything = 0, turn == plane.MOST_PASSES - 2
        for here in range(t, count, step):
            i, j, _ = cell_at(here, shape)
            if i < n and j < m:
                change = cut_brought(w, i, j, here, shape)
                if everything or illegal(w, here, change, capacity, shape):
                    put(w, MARK, here, shape, 1.0)
                    bad = 1
        if cuda.syncthreads_or(bad) == 0:
            break
    for here in range(t, count, step):
        i, j, _ = cell_at(here, shape)
        if j < m:
            put_along(w, i, j, here, cut_along(w, i, j, here, shape), shape)
        if i < n:
            put(w, SUM_UP, here, shape, cut_up(w, i, j, here, shape))
    cuda.syncthreads()
