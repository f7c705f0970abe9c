"""Phases of a sweep, each for one cell or face of a pencil and one lane.

Backends loop over cells and lanes and complete each phase before the next one begins. ``w`` is the
scratch array of a group of pencils; a *face* holds everything that all its lanes share (``plane``),
so that a backend computes it only once.
"""

import numpy as np

from ..events.collisions import nearest_integer
from ..events.elementary import floor
from .plane import (
    ALONG,
    CLOSED,
    FORCE,
    NUMBER,
    SPEED,
    STAGE,
    SUM_ALONG,
    SUM_UP,
    UP,
    face_momentum,
    force,
    quotient,
    reconstruct,
    reconstruct_at_wall,
    spot,
    stride,
    velocity,
)

SAFE = 1.0 - 1e-12

# --- where numbers lie --------------------------------------------------------------------------


def at(place, lane):
    """Return the position of a lane of a cell or face in a row.

    The index is unsigned: a signed one would be checked for counting from the end, and this check
    prevents vectorisation of the loop over lanes.
    """
    return np.uint64(place + lane)


# --- velocity and force -------------------------------------------------------------------------
# m2: squared masses of n + 2 cells, one beyond each edge
# push: external force in the n cells, F = push[i, 0] + push[i, 1] p


def is_pushed(i, m2, push):
    """Whether a force acts in an x cell; without a force no particles cross its p faces."""
    return m2[i] != m2[i + 2] or push[i, 0] != 0.0 or push[i, 1] != 0.0


def set_speed(w, i, j, lane, p, q2, m2, dp, shape):
    """Velocity on the lower x face of a cell."""
    low, high = (j - 0.5 * shape[1]) * dp, (j + 1 - 0.5 * shape[1]) * dp
    edge = 0.5 * (m2[i] + m2[i + 1])
    w[SPEED, at(spot(i, j, shape), lane)] = velocity(p, low * low, high * high, q2, edge)


def set_force(w, i, j, lane, q2, m2, push, dp, dx, shape):
    """Force on the lower p face of a cell: mean field plus external force."""
    low = (j - 0.5 * shape[1]) * dp
    edge, after = 0.5 * (m2[i] + m2[i + 1]), 0.5 * (m2[i + 1] + m2[i + 2])
    external = push[i, 0] + push[i, 1] * face_momentum(j, dp, shape)
    w[FORCE, at(spot(i, j, shape), lane)] = force(low * low, q2, edge, after, dx) + external


# --- fluxes -------------------------------------------------------------------------------------


def flux_along(w, lane, along, face):
    """Set the flux of a stage through an x face; along : substep over dx."""
    here, passes, cells, outside = face
    a, b = w[STAGE, at(cells[0], lane)], w[STAGE, at(cells[1], lane)]
    c, d = w[STAGE, at(cells[2], lane)], w[STAGE, at(cells[3], lane)]
    e = w[STAGE, at(cells[4], lane)]
    if outside[0] + outside[1] > 0:
        edge = reconstruct_at_wall(a, b, c, d, e, outside[0], outside[1])
    else:
        edge = reconstruct(a, b, c, d, e)
    w[ALONG, at(here, lane)] = along * passes * w[SPEED, at(here, lane)] * edge


def upwards(push):
    """Return 1, 0 for a force that points up, else 0, 1: numbers, as lanes cannot branch."""
    s = 1.0 if push > 0.0 else 0.0
    return s, 1.0 - s


def flux_up(w, lane, up, face):
    """Set the flux of a stage through a p face from its upwind side; up : substep over dp."""
    here, passes, cells = face
    a, b = w[STAGE, at(cells[0], lane)], w[STAGE, at(cells[1], lane)]
    c, d = w[STAGE, at(cells[2], lane)], w[STAGE, at(cells[3], lane)]
    e, f = w[STAGE, at(cells[4], lane)], w[STAGE, at(cells[5], lane)]
    push = w[FORCE, at(here, lane)]
    s, t = upwards(push)
    edge = reconstruct(s * a + t * f, s * b + t * e, s * c + t * d, s * d + t * c, s * e + t * b)
    w[UP, at(here, lane)] = up * passes * push * edge


def upwind_along(w, lane, along, face):
    """Set the upwind flux through an x face for the whole substep; subtract it from the sum."""
    here, passes, cells, _ = face
    flux = along * passes * w[SPEED, at(here, lane)] * w[NUMBER, at(cells[2], lane)]
    w[ALONG, at(here, lane)] = flux
    w[SUM_ALONG, at(here, lane)] -= flux


def upwind_up(w, lane, up, face):
    """Set the upwind flux through a p face for the whole substep; subtract it from the sum."""
    here, passes, cells = face
    push = w[FORCE, at(here, lane)]
    s, t = upwards(push)
    flux = (
        up * passes * push * (s * w[NUMBER, at(cells[2], lane)] + t * w[NUMBER, at(cells[3], lane)])
    )
    w[UP, at(here, lane)] = flux
    w[SUM_UP, at(here, lane)] -= flux


def refused_below(w, i, lane, up, shape):
    """Quanta that the force would push through the lowest momentum face, if that is closed."""
    here = at(spot(i, 0, shape), lane)
    return max(-up * w[FORCE, here] * w[NUMBER, here], 0.0) if shape[4] == CLOSED else 0.0


def refused_above(w, i, lane, up, shape):
    """Quanta that the force would push through the highest momentum face, if that is closed."""
    here, below = at(spot(i, shape[1], shape), lane), at(spot(i, shape[1] - 1, shape), lane)
    return max(up * w[FORCE, here] * w[NUMBER, below], 0.0) if shape[4] == CLOSED else 0.0


# --- stages -------------------------------------------------------------------------------------
# k: the place of a cell or face, and its lane


def add_up(w, k, keep, share):
    """sum = keep sum + share flux."""
    w[SUM_ALONG, at(k, 0)] = keep * w[SUM_ALONG, at(k, 0)] + share * w[ALONG, at(k, 0)]
    w[SUM_UP, at(k, 0)] = keep * w[SUM_UP, at(k, 0)] + share * w[UP, at(k, 0)]


def brought(w, k, along, up, shape):
    """Return the net inflow into a cell from the fluxes in two rows."""
    x = w[along, at(k, 0)] - w[along, at(k, stride(shape))]
    return x + (w[up, at(k, 0)] - w[up, at(k, shape[2])])


def advance(w, k, along, up, part, shape):
    """Set STAGE to NUMBER plus a fraction of the net inflow from the fluxes in two rows."""
    w[STAGE, at(k, 0)] = w[NUMBER, at(k, 0)] + part * brought(w, k, along, up, shape)


# --- limits -------------------------------------------------------------------------------------


def limit(available, wanted):
    """Return the fraction of the wanted amount that is available."""
    return min(1.0, quotient(max(available, 0.0), wanted)) if wanted > 0.0 else 1.0


def taken(left, right, below, above):
    """Return the outflow from a cell through its lower and upper faces."""
    return max(-left, 0.0) + max(right, 0.0) + max(-below, 0.0) + max(above, 0.0)


def given(left, right, below, above):
    """Return the inflow into a cell through its lower and upper faces."""
    return max(left, 0.0) + max(-right, 0.0) + max(below, 0.0) + max(-above, 0.0)


def allowed(flux, giver_loss, giver_gain, taker_loss, taker_gain):
    """Return the tighter of the limits of the two cells that exchange a flux."""
    return min(giver_loss, taker_gain) if flux > 0.0 else min(taker_loss, giver_gain)


def truncated(flux, s):
    """Return the fraction s of an integer flux, rounded towards zero; all of it if s = 1."""
    if s >= 1.0:
        return flux
    return floor(abs(flux) * s * SAFE) * (1.0 if flux > 0.0 else -1.0)


def set_limits(w, k, held, capacity, only, shape):
    """Set the fractions of the summed fluxes that a cell can lose and gain; f is in row ``held``.

    only : set limits only in cells marked in STAGE. Limits replace SPEED and FORCE.
    """
    if only and w[STAGE, at(k, 0)] == 0.0:
        return
    x0, x1 = w[SUM_ALONG, at(k, 0)], w[SUM_ALONG, at(k, stride(shape))]
    p0, p1 = w[SUM_UP, at(k, 0)], w[SUM_UP, at(k, shape[2])]
    low = w[held, at(k, 0)]
    w[SPEED, at(k, 0)] = limit(low, taken(x0, x1, p0, p1))
    w[FORCE, at(k, 0)] = limit(capacity - low, given(x0, x1, p0, p1))


def limited_along(w, lane, strict, face):
    """Set the integer flux through an x face: upwind flux plus the limited part of the sum.

    strict : the sum is itself an integer flux, which the limits may reduce
    """
    here, flux, sign, left, right, from_outside, to_outside = face
    more = w[SUM_ALONG, at(flux, lane)]
    s = allowed(
        more, 1.0 if from_outside else w[SPEED, at(left, lane)],
        1.0 if from_outside else w[FORCE, at(left, lane)],
        1.0 if to_outside else w[SPEED, at(right, lane)],
        1.0 if to_outside else w[FORCE, at(right, lane)],
    )  # fmt: skip
    if strict:
        w[ALONG, at(here, lane)] = sign * truncated(more, s)
    else:  # the other half of a wall still needs ALONG
        w[STAGE, at(here, lane)] = sign * nearest_integer(w[ALONG, at(flux, lane)] + s * more)


def limited_up(w, lane, strict, face):
    """Set the integer flux through a p face: upwind flux plus the limited part of the sum."""
    here, left, right = face
    k, left, right = at(here, lane), at(left, lane), at(right, lane)
    more = w[SUM_UP, k]
    s = allowed(more, w[SPEED, left], w[FORCE, left], w[SPEED, right], w[FORCE, right])
    w[UP, k] = truncated(more, s) if strict else nearest_integer(w[UP, k] + s * more)


def accept_x_fluxes(w, k):
    """Copy the integer fluxes along x from STAGE, which marks cells from here on."""
    w[ALONG, at(k, 0)] = w[STAGE, at(k, 0)]
    w[STAGE, at(k, 0)] = 0.0


def marks(w, k, capacity, everything, shape):
    """Mark a cell whose new value would violate its bounds; return 1 if marked."""
    new = w[NUMBER, at(k, 0)] + brought(w, k, ALONG, UP, shape)
    if new < 0.0 or new > capacity or everything:
        w[STAGE, at(k, 0)] = 1.0
        return 1
    return 0


def begin_mending(w, k):
    """Start the repair of bounds from the unlimited integer fluxes."""
    w[SUM_ALONG, at(k, 0)] = w[ALONG, at(k, 0)]
    w[SUM_UP, at(k, 0)] = w[UP, at(k, 0)]
    w[SPEED, at(k, 0)] = 1.0
    w[FORCE, at(k, 0)] = 1.0


# --- what a substep changes ---------------------------------------------------------------------


def gained(w, k, shape):
    """Return the quanta that a cell gains."""
    return (
        np.int64(w[ALONG, at(k, 0)]) - np.int64(w[ALONG, at(k, stride(shape))])
        + np.int64(w[UP, at(k, 0)]) - np.int64(w[UP, at(k, shape[2])])
    )  # fmt: skip


def leaves(w, i, k, side, shape):
    """Return the quanta that leave a cell through an open wall on the low or the high side."""
    if side == 0:
        return -w[ALONG, at(k, 0)] if i == 0 else 0.0
    return w[ALONG, at(k, stride(shape))] if i == shape[0] - 1 else 0.0
