"""Integer fluxes that leave every cell of a group of pencils within its bounds."""

from ...transport import plane
from ...transport.plane import OPEN, REFLECTING
from .physics import cuda
from .planes import (
    ALONG,
    GAIN,
    LOSS,
    MARK,
    NUMBER,
    ONWARD,
    ROWS,
    SUM_ALONG,
    SUM_UP,
    UNLIMITED,
    UP,
    UPWARD,
    WALL,
    M,
    N,
    across,
    array_function,
    beside,
    brought,
    cell_at,
    compiled,
    following,
    get,
    is_cell,
    put,
    rightward,
    thread,
    whole,
)

# --- limits --------------------------------------------------------------------------------------


@array_function
def set_limits(w, here, held, capacity, shape):
    """Set the fraction of the summed fluxes that a cell holding ``held`` can lose and gain."""
    x0 = get(w, SUM_ALONG, here)
    x1 = get(w, SUM_ALONG, here + shape[ONWARD])
    p0, p1 = get(w, SUM_UP, here), get(w, SUM_UP, here + shape[UPWARD])
    put(w, LOSS, here, compiled.limit(held, compiled.taken(x0, x1, p0, p1)))
    put(w, GAIN, here, compiled.limit(capacity - held, compiled.given(x0, x1, p0, p1)))


@array_function
def find_limits(w, count, capacity, shape):
    """Set what every cell can lose and gain beyond the upwind fluxes."""
    place = thread()
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if is_cell(i, j, shape):
            held = get(w, NUMBER, here) + brought(w, ALONG, UP, here, shape)
            set_limits(w, here, held, capacity, shape)
        place = following(place)
    cuda.syncthreads()


@array_function
def share_along(w, i, j, here, more, shape):
    """Return the fraction of a flux through an x face that the adjacent cells allow."""
    left, right = whole(here - shape[ONWARD]), whole(here)
    if i == 0:
        left = across(i, j, left, here, shape)
    if i == shape[N]:
        right = across(i, j, right, here, shape)
    wall = shape[WALL] == OPEN
    low, high = wall and i == 0, wall and i == shape[N]
    return compiled.allowed(
        more, UNLIMITED if low else get(w, LOSS, left),
        UNLIMITED if low else get(w, GAIN, left),
        UNLIMITED if high else get(w, LOSS, right),
        UNLIMITED if high else get(w, GAIN, right),
    )  # fmt: skip


@array_function
def share_up(w, j, here, more, shape):
    """Return the fraction of a flux through a p face that the adjacent cells allow."""
    left = beside(j, whole(here - shape[UPWARD]), here, shape)
    right = beside(j, whole(here), here, shape)
    return compiled.allowed(
        more, get(w, LOSS, left), get(w, GAIN, left), get(w, LOSS, right),
        get(w, GAIN, right),
    )  # fmt: skip


@array_function
def put_along(w, i, j, here, flux, shape):
    """Set the flux through an x face; at a reflecting wall p > 0 fixes the flux at -p."""
    if shape[WALL] == REFLECTING and compiled.is_wall(i, shape):
        other = shape[M] - 1 - j
        if rightward(j, shape):
            put(w, SUM_ALONG, here + (other - j) * shape[UPWARD], -flux)
        elif other == j:
            flux = 0.0
        else:
            return
    put(w, SUM_ALONG, here, flux)


@array_function
def limited_fluxes(w, count, shape):
    """Compute integer fluxes: the upwind fluxes plus the excess that the limits allow."""
    place = thread()
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if j < shape[M]:
            more = get(w, SUM_ALONG, here)
            s = min(share_along(w, i, j, here, more, shape), 1.0)
            flux = compiled.nearest_integer(get(w, ALONG, here) + s * more)
            put_along(w, i, j, here, flux, shape)
        if i < shape[N]:
            more = get(w, SUM_UP, here)
            if more != 0.0:
                more *= share_up(w, j, here, more, shape)
            flux = compiled.nearest_integer(get(w, UP, here) + more)
            put(w, SUM_UP, here, flux)
        place = following(place)
    cuda.syncthreads()


# --- mending: cells that integer fluxes would still take beyond their bounds ---------------------


@array_function
def cut_along(w, i, j, here, shape):
    """Return the integer flux through an x face that the limits of mended cells allow."""
    q, sign = compiled.mirrored(i, j, shape)
    there = here + (q - j) * shape[UPWARD]
    more = get(w, SUM_ALONG, there)
    return sign * compiled.truncated(more, share_along(w, i, q, there, more, shape))


@array_function
def cut_up(w, j, here, shape):
    """Return the integer flux through a p face that the limits of mended cells allow."""
    more = get(w, SUM_UP, here)
    return compiled.truncated(more, share_up(w, j, here, more, shape))


@array_function
def cut_brought(w, i, j, here, shape):
    """Return the net inflow into a cell from the cut fluxes."""
    x = cut_along(w, i, j, here, shape)
    x -= cut_along(w, i + 1, j, here + shape[ONWARD], shape)
    y = cut_up(w, j, here, shape) - cut_up(w, j + 1, here + shape[UPWARD], shape)
    return x + y


@array_function
def illegal(w, here, change, capacity):
    """Return whether a change would take a cell beyond its bounds."""
    new = get(w, NUMBER, here) + change
    return new < 0.0 or new > capacity


@array_function
def none_illegal(w, count, capacity, shape):
    """Return whether integer fluxes leave every cell within its bounds; mark the other cells."""
    bad = 0
    place = thread()
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if is_cell(i, j, shape):
            mark = 0.0
            if illegal(w, here, brought(w, SUM_ALONG, SUM_UP, here, shape), capacity):
                mark, bad = 1.0, 1
            put(w, MARK, here, mark)
        place = following(place)
    return cuda.syncthreads_or(bad) == 0


@array_function
def mend(w, count, capacity, shape):
    """Cut integer fluxes until every cell is within its bounds, as ``limit_fluxes`` on the CPU."""
    n, m = shape[N], shape[M]
    place = thread()
    while place < count:
        put(w, LOSS, place * ROWS, UNLIMITED)
        put(w, GAIN, place * ROWS, UNLIMITED)
        place = following(place)
    for turn in range(plane.MOST_PASSES):
        cuda.syncthreads()
        place = thread()
        while place < count:
            i, j, _, here = cell_at(place, shape)
            if is_cell(i, j, shape) and get(w, MARK, here) != 0.0:
                set_limits(w, here, get(w, NUMBER, here), capacity, shape)
            place = following(place)
        cuda.syncthreads()
        bad, everything = 0, turn == plane.MOST_PASSES - 2
        place = thread()
        while place < count:
            i, j, _, here = cell_at(place, shape)
            if is_cell(i, j, shape):
                change = cut_brought(w, i, j, here, shape)
                if everything or illegal(w, here, change, capacity):
                    put(w, MARK, here, 1.0)
                    bad = 1
            place = following(place)
        if cuda.syncthreads_or(bad) == 0:
            break
    place = thread()
    while place < count:
        i, j, _, here = cell_at(place, shape)
        if j < m:
            put_along(w, i, j, here, cut_along(w, i, j, here, shape), shape)
        if i < n:
            put(w, SUM_UP, here, cut_up(w, j, here, shape))
        place = following(place)
    cuda.syncthreads()
