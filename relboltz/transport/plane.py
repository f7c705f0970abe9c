"""Streaming and the mean-field force: d_t f + d_x (v f) + d_p (F f) = 0 for one pair (x_i, p_i).

Velocity and force are differences of the energies on the corners of the cells of the (x, p) plane,

    u = [E(x+, p+) - E(x+, p-)] / dp        a = -[E(x+, p+) - E(x-, p+)] / dx,

so that the flow is divergence-free on the grid as well: a uniform f stays uniform. All cells of
such a plane, a *pencil*, advance together: fifth-order fluxes (WENO-Z), a three-stage Runge-Kutta
scheme (SSP-RK3), and a limiter towards the upwind flux that keeps 0 <= f and, for fermions,
f <= 1. Final fluxes are integer numbers of quanta: what leaves a cell enters its neighbour.

Backends keep a pencil in the rows of one scratch array, with several pencils of different
transverse momentum, its lanes, side by side.
"""

from math import sqrt

PERIODIC, REFLECTING, OPEN, CLOSED = range(4)
KINDS = {"periodic": PERIODIC, "reflecting": REFLECTING, "open": OPEN, "closed": CLOSED}

NUMBER, STAGE, SPEED, FORCE, ALONG, UP, SUM_ALONG, SUM_UP = range(8)
"""Rows of the scratch array: N f at the start and at a stage; velocity and force, later the limits
of losses and gains; fluxes along x and p at the lower faces of a cell, of a stage and summed."""
ROWS = 8
LANES = 8
COURANT = 0.8
"""Largest fraction of a cell that a substep may empty: below 1 the upwind flux keeps f >= 0."""
ROUGH = 1e-4
"""Squared variations below this fraction of the sum of f^2, such as noise, do not affect the
weights of the reconstruction: weights that follow noise would damp waves."""
NOTHING = 1e-290
"""Small number that keeps weights finite where f is 0."""
SMOOTH = 0.5
"""Largest second difference, relative to the last cell, of a row extrapolated as a parabola."""
MOST_PASSES = 100
STAGES = ((0.0, 1.0, 1.0), (1.0, 1.0, 0.25), (1.0 / 6.0, 4.0 / 6.0, 0.0))
"""SSP-RK3: the fraction of the summed flux that a stage keeps, the fraction of its own flux that it
adds, and the fraction of the sum used for the next stage; the last sum is the substep's flux."""


# --- scalars ------------------------------------------------------------------------------------


def quotient(a, b):
    """Return a/b."""
    return a / b


def drift(p, energy, next_energy):
    """Return [E(p+) - E(p-)]/dp at node p from the energies at its edges."""
    return quotient(2.0 * p, energy + next_energy)


def velocity(p, edge2, next_edge2, q2, m2):
    """Return [E(p+) - E(p-)]/dp from the squared edges and the squared transverse momentum q2."""
    return drift(p, sqrt(edge2 + q2 + m2), sqrt(next_edge2 + q2 + m2))


def node_velocity(p, half, q2, m2):
    """Return [E(p+) - E(p-)]/dp from node p and half the spacing of its axis."""
    low, high = p - half, p + half
    return velocity(p, low * low, high * high, q2, m2)


def pull(change, energy, next_energy, dx):
    """Return -[E(x+) - E(x-)]/dx [GeV/fm] from m^2(x-) - m^2(x+) and the energies at both edges."""
    if change == 0.0:
        return 0.0
    return quotient(change, (energy + next_energy) * dx)


def force(edge2, q2, m2, next_m2, dx):
    """Return the force on a momentum edge; m2, next_m2 : squared masses at the x cell's edges."""
    return pull(m2 - next_m2, sqrt(edge2 + q2 + m2), sqrt(edge2 + q2 + next_m2), dx)


def weights(variation, s0, s1, s2):
    """Return the weights of three parabolas with these roughnesses, up to a common factor."""
    r0 = variation / s0
    r1 = variation / s1
    r2 = variation / s2
    return 1.0 + r0 * r0, 6.0 + 6.0 * (r1 * r1), 3.0 + 3.0 * (r2 * r2)


def reconstruct(a, b, c, d, e):
    """Return the value at the edge between cells c and d, seen from c: fifth-order WENO-Z."""
    x0 = a - 2.0 * b + c
    y0 = a - 4.0 * b + 3.0 * c
    x1 = b - 2.0 * c + d
    y1 = b - d
    x2 = c - 2.0 * d + e
    y2 = 3.0 * c - 4.0 * d + e
    rough0 = 13.0 / 12.0 * (x0 * x0) + 0.25 * (y0 * y0)
    rough1 = 13.0 / 12.0 * (x1 * x1) + 0.25 * (y1 * y1)
    rough2 = 13.0 / 12.0 * (x2 * x2) + 0.25 * (y2 * y2)
    least = ROUGH * (a * a + b * b + c * c + d * d + e * e) + NOTHING
    w0, w1, w2 = weights(abs(rough0 - rough2), rough0 + least, rough1 + least, rough2 + least)
    value = w0 * (2.0 * a - 7.0 * b + 11.0 * c)
    value += w1 * (5.0 * c - b + 2.0 * d)
    value += w2 * (2.0 * c + 5.0 * d - e)
    return quotient(value, 6.0 * (w0 + w1 + w2))


def extrapolated(a, b, c):
    """Return two cells that extrapolate a row a, b, c as a parabola; never below 0.

    Where the row is not smooth, at a front or in a steep tail, slope and curvature are limited so
    that the extrapolation does not change direction.
    """
    first, slope = b - a, c - b
    bend = slope - first
    if abs(bend) > SMOOTH * c:
        if first * slope <= 0.0:
            return c, c
        if abs(slope) > 2.0 * abs(first):
            slope = 2.0 * first
        most = 0.5 * abs(slope)
        bend = min(max(bend, -most), most)
    near = max(c + slope + bend, 0.0)
    return near, max(near + slope + 2.0 * bend, 0.0)


def beyond_wall(a, b, c, d, e, behind, ahead):
    """Fill in those of five cells that lie beyond an open wall.

    behind, ahead : number of outside cells upstream and downstream. Upstream there is vacuum, so
    nothing enters. Downstream f is extrapolated, because nothing outside acts on the inside.
    """
    if behind > 0:
        a = 0.0
    if behind > 1:
        b = 0.0
    if ahead > 1:
        d, e = extrapolated(a, b, c)
    elif ahead > 0:
        e, _ = extrapolated(b, c, d)
    return a, b, c, d, e


def reconstruct_at_wall(a, b, c, d, e, behind, ahead):
    """Return ``reconstruct`` beside an open wall; never below 0."""
    a, b, c, d, e = beyond_wall(a, b, c, d, e, behind, ahead)
    return max(reconstruct(a, b, c, d, e), 0.0)


def transverse(t, inner, count):
    """Return the position of the first cell of line t: ``count`` cells at a stride ``inner``."""
    return (t // inner) * (inner * count) + t % inner


# --- positions in a pencil ----------------------------------------------------------------------
# shape: cells along x and p, lanes, kind of boundary in x and in p; positions are those of lane 0


def spot(i, j, shape):
    """Return the position of cell (i, j) in a row."""
    return (i * (shape[1] + 1) + j) * shape[2]


def stride(shape):
    """Return the distance of x neighbours in a row; for p neighbours it is the number of lanes."""
    return (shape[1] + 1) * shape[2]


def length(shape):
    """Return the length of a row: the lower faces of all cells, and the last upper faces."""
    return (shape[0] + 1) * stride(shape)


def wrapped(i, n):
    """Return i modulo n for cells at most three beyond the edges, as GPUs divide slowly."""
    if n < 3:
        return i & (n - 1)
    if i < 0:
        return i + n
    return i - n if i >= n else i


def place(i, j, shape):
    """Return the position of cell (i, j), or of the cell that represents it beyond the x edges."""
    n = shape[0]
    if i < 0 or i >= n:
        if shape[3] == PERIODIC:
            i = wrapped(i, n)
        elif shape[3] == REFLECTING:
            i = wrapped(i, 2 * n)
            if i >= n:
                i = 2 * n - 1 - i
                j = shape[1] - 1 - j
        else:
            i = min(max(i, 0), n - 1)
    return spot(i, j, shape)


def beside(i, j, shape):
    """Return the position of cell (i, j), or of the cell that represents it beyond the p edges."""
    m = shape[1]
    if j < 0 or j >= m:
        j = wrapped(j, m) if shape[4] == PERIODIC else min(max(j, 0), m - 1)
    return spot(i, j, shape)


def next_site(i, n, kind):
    """Return the site that represents site i, which is at most one beyond the edges."""
    if 0 <= i < n:
        return i
    return wrapped(i, n) if kind == PERIODIC else min(max(i, 0), n - 1)


def rightward(j, shape):
    """Whether particles of this momentum move towards larger x."""
    return 2 * j > shape[1] - 1


def stencil_along(i, j, shape):
    """Return the five-cell stencil of the flux through a lower x face; the third cell is upwind."""
    s = 1 if rightward(j, shape) else -1
    c = i - 1 if s > 0 else i
    return (
        place(c - 2 * s, j, shape), place(c - s, j, shape), place(c, j, shape),
        place(c + s, j, shape), place(c + 2 * s, j, shape),
    )  # fmt: skip


def outside_along(i, j, shape):
    """Count cells of ``stencil_along`` beyond an open wall: behind the third, and ahead of it."""
    if shape[3] != OPEN:
        return 0, 0
    n = shape[0]
    if rightward(j, shape):
        return min(max(3 - i, 0), 2), min(max(i + 2 - n, 0), 2)
    return min(max(i + 3 - n, 0), 2), min(max(2 - i, 0), 2)


def stencil_up(i, j, shape):
    """Return the six cells around a lower p face; the sign of the force decides which is upwind."""
    return (
        beside(i, j - 3, shape), beside(i, j - 2, shape), beside(i, j - 1, shape),
        beside(i, j, shape), beside(i, j + 1, shape), beside(i, j + 2, shape),
    )  # fmt: skip


def passes_along(i, j, shape):
    """Return 1 if particles of this momentum pass a lower x face; open walls let none in."""
    if shape[3] != OPEN:
        return 1.0
    comes_in = i == 0 if rightward(j, shape) else i == shape[0]
    return 0.0 if comes_in else 1.0


def passes_up(j, shape):
    """Return 1 if a p face lets particles pass, 0 if it is closed."""
    return 0.0 if shape[4] == CLOSED and (j == 0 or j == shape[1]) else 1.0


def face_momentum(j, dp, shape):
    """Momentum of a p face [GeV]; the ends of a periodic axis are one face, at their mean, 0."""
    if shape[4] == PERIODIC and (j == 0 or j == shape[1]):
        return 0.0
    return (j - 0.5 * shape[1]) * dp


def is_wall(i, shape):
    """Whether an x face is a wall."""
    return shape[3] != PERIODIC and (i == 0 or i == shape[0])


def mirrored(i, j, shape):
    """Return momentum and sign of the flux through an x face; reflecting walls send p to -p.

    The flux at p > 0 is used for both directions, so that they agree to the last quantum.
    """
    if shape[3] == REFLECTING and is_wall(i, shape) and not rightward(j, shape):
        other = shape[1] - 1 - j
        return other, (-1.0 if other != j else 0.0)
    return j, 1.0


# --- faces: data shared by all lanes ------------------------------------------------------------


def x_face(i, j, shape):
    """Lower x face of a cell: position, 1 if particles pass, stencil, number of outside cells."""
    return (
        spot(i, j, shape), passes_along(i, j, shape), stencil_along(i, j, shape),
        outside_along(i, j, shape),
    )  # fmt: skip


def p_face(i, j, shape):
    """Lower p face of a cell: position, 1 if particles pass, stencil."""
    return spot(i, j, shape), passes_up(j, shape), stencil_up(i, j, shape)


def neighbours_along(i, j, shape):
    """Data for limiting an x face: position, position and sign of its flux, adjacent cells.

    The last two values tell whether the first or the second adjacent cell is beyond an open wall.
    """
    q, sign = mirrored(i, j, shape)
    return (
        spot(i, j, shape), spot(i, q, shape), sign, place(i - 1, q, shape), place(i, q, shape),
        shape[3] == OPEN and i == 0, shape[3] == OPEN and i == shape[0],
    )  # fmt: skip


def neighbours_up(i, j, shape):
    """Data for limiting a p face: position and adjacent cells."""
    return spot(i, j, shape), beside(i, j - 1, shape), beside(i, j, shape)
