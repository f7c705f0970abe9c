"""Projection ("landing") of a pair of off-grid momenta onto nodes: conserving or nearest.

All functions work in index space: along each axis node i has position i, and P = p + k3 has the
index sum i_p + i_3, so the partner of a node l is the node i_p + i_3 - l. For any node l chosen
for k1, the pair (l, P - l) has exactly the momentum P. Indices are stored as floating-point
numbers, which is exact and lets a CPU process many events at once.
"""

import numpy as np

from .elementary import floor, reciprocal, root
from .kinematics import energy, minus, plus

FAR = 1e30
TIE = 1e-12
"""Relative distance from the energy shell below which a pair counts as on shell."""
ON_SHELL = 4.0 * (1.0 - TIE)
FRONT = 2.302585092994046
"""ln 10: a drop of f f between two pairs of nodes by more than a factor 10 is a front."""
PER_LEVEL = 11.541560327111707
"""Levels per e-fold of f: eight per factor of two."""
EMPTY = -1024.0
"""Level of a cell without particles."""
LEAST_LEVELS = 24
"""Least difference between sums of two levels if two products f f differ by a factor 10."""
NOTABLE = 6.907755278982137
"""ln 1000: a front counts if its larger f f is at least 1/1000 of the largest f f."""
WALK = 32
"""Steps of the search from k1 towards P/2 for a pair below the energy shell."""
RESOLVED = 16.0
"""Ratio of s to the squared spacing above which nodes resolve the surface on which k1 may lie."""
AVERAGED, LARGE, LARGEST = 32.0, 1.5, 5.0
"""Parameters of ``compensation``: strength, |Q| in units of the spacing beyond which it fades, and
maximum. Measured with ``benchmarks/coarse_grids.py``."""


def node_momentum(index, cells, h):
    """Momentum of a node along one axis [GeV]."""
    return (index - 0.5 * (cells - 1.0)) * h


def node_position(k, cells, h):
    """Position of a momentum in index space along one axis."""
    return k * reciprocal(h) + 0.5 * (cells - 1.0)


def momentum_of(node, cells, h):
    """Momentum of the node with these three indices [GeV]."""
    return (
        node_momentum(node[0], cells[0], h[0]),
        node_momentum(node[1], cells[1], h[1]),
        node_momentum(node[2], cells[2], h[2]),
    )


def position_of(k, cells, h):
    """Position of a momentum in index space."""
    return (
        node_position(k[0], cells[0], h[0]),
        node_position(k[1], cells[1], h[1]),
        node_position(k[2], cells[2], h[2]),
    )


def candidate(index, position, total, cells, h):
    """Return the squared momenta of a node and its partner along one axis, and a squared distance.

    The distance is that of the node from ``position``; it is FAR for a pair outside the box.
    """
    k = node_momentum(index, cells, h)
    q = node_momentum(total - index, cells, h)
    d = (position - index) * h
    last = cells - 1.0
    inside = max(total - last, 0.0) <= index and index <= min(total, last)
    return k * k, q * q, (d * d if inside else FAR)


def consider(corner, a, b, distance, e2, best):
    """Update the closest pairs below and above the energy shell with the pair of a corner.

    With a and b the squared energies of the pair, sqrt(a) + sqrt(b) <= e is equivalent to
    4 a b <= (e^2 - a - b)^2 with e^2 - a - b >= 0, which needs no square roots.
    """
    low, d_low, high, d_high = best
    rest = e2 - a - b
    below = ON_SHELL * (a * b) <= rest * abs(rest)
    nearer = distance < (d_low if below else d_high)
    nearer_low = nearer and below
    nearer_high = nearer and not below
    low = corner if nearer_low else low
    d_low = distance if nearer_low else d_low
    high = corner if nearer_high else high
    d_high = distance if nearer_high else d_high
    return low, d_low, high, d_high


def corner_node(corner, j, cells, x0, x1, y0, y1, z0, z1):
    """Return the node number at a corner of the cube above indices j, and its pair's energy."""
    upper_z = corner >= 4.0
    rest = corner - 4.0 if upper_z else corner
    upper_y = rest >= 2.0
    upper_x = (rest - 2.0 if upper_y else rest) >= 1.0
    a = (x1[0] if upper_x else x0[0]) + (y1[0] if upper_y else y0[0])
    b = (x1[1] if upper_x else x0[1]) + (y1[1] if upper_y else y0[1])
    a = a + (z1[0] if upper_z else z0[0])
    b = b + (z1[1] if upper_z else z0[1])
    x = j[0] + 1.0 if upper_x else j[0]
    y = j[1] + 1.0 if upper_y else j[1]
    z = j[2] + 1.0 if upper_z else j[2]
    return ((x * cells[1] + y) * cells[2] + z if corner >= 0.0 else -1.0), root(a) + root(b)


def bracket(position, total, e, m2, cells, h):
    """Find the two corners of the cube around k1 whose node pairs bracket the energy e.

    Returns (low, e_low, high, e_high): the nodes of the closest pair with energy <= e and of the
    closest pair with energy > e, -1 if there is none, and the energies of these pairs.
    """
    j = (floor(position[0]), floor(position[1]), floor(position[2]))
    x0 = candidate(j[0], position[0], total[0], cells[0], h[0])
    x1 = candidate(j[0] + 1.0, position[0], total[0], cells[0], h[0])
    y0 = candidate(j[1], position[1], total[1], cells[1], h[1])
    y1 = candidate(j[1] + 1.0, position[1], total[1], cells[1], h[1])
    z0 = candidate(j[2], position[2], total[2], cells[2], h[2])
    z1 = candidate(j[2] + 1.0, position[2], total[2], cells[2], h[2])
    z0 = (z0[0] + m2[0], z0[1] + m2[1], z0[2])
    z1 = (z1[0] + m2[0], z1[1] + m2[1], z1[2])
    a00, a10, a01, a11 = x0[0] + y0[0], x1[0] + y0[0], x0[0] + y1[0], x1[0] + y1[0]
    b00, b10, b01, b11 = x0[1] + y0[1], x1[1] + y0[1], x0[1] + y1[1], x1[1] + y1[1]
    d00, d10, d01, d11 = x0[2] + y0[2], x1[2] + y0[2], x0[2] + y1[2], x1[2] + y1[2]
    e2 = e * e
    best = (-1.0, FAR, -1.0, FAR)
    best = consider(0.0, a00 + z0[0], b00 + z0[1], d00 + z0[2], e2, best)
    best = consider(1.0, a10 + z0[0], b10 + z0[1], d10 + z0[2], e2, best)
    best = consider(2.0, a01 + z0[0], b01 + z0[1], d01 + z0[2], e2, best)
    best = consider(3.0, a11 + z0[0], b11 + z0[1], d11 + z0[2], e2, best)
    best = consider(4.0, a00 + z1[0], b00 + z1[1], d00 + z1[2], e2, best)
    best = consider(5.0, a10 + z1[0], b10 + z1[1], d10 + z1[2], e2, best)
    best = consider(6.0, a01 + z1[0], b01 + z1[1], d01 + z1[2], e2, best)
    best = consider(7.0, a11 + z1[0], b11 + z1[1], d11 + z1[2], e2, best)
    low, e_low = corner_node(best[0], j, cells, x0, x1, y0, y1, z0, z1)
    high, e_high = corner_node(best[2], j, cells, x0, x1, y0, y1, z0, z1)
    return low, e_low, high, e_high


def walk(step, position, total, e, m2, cells, h):
    """Try one step of the search from k1 to P/2 for a node pair below the energy shell.

    Returns the node's indices along x, y, z and the pair's energy, or FAR if the pair is not below
    the shell.
    """
    part = step / WALK
    lx = floor(position[0] + part * (0.5 * total[0] - position[0]) + 0.5)
    ly = floor(position[1] + part * (0.5 * total[1] - position[1]) + 0.5)
    lz = floor(position[2] + part * (0.5 * total[2] - position[2]) + 0.5)
    x = candidate(lx, position[0], total[0], cells[0], h[0])
    y = candidate(ly, position[1], total[1], cells[1], h[1])
    z = candidate(lz, position[2], total[2], cells[2], h[2])
    pair = root(x[0] + y[0] + z[0] + m2[0]) + root(x[1] + y[1] + z[1] + m2[1])
    below = pair <= e * (1.0 + TIE) and x[2] + y[2] + z[2] < FAR
    return lx, ly, lz, (pair if below else FAR)


def walk_down(position, total, e, m2, cells, h):
    """Return node (-1 if none) and energy of the first pair below the energy shell towards P/2."""
    for step in range(1, WALK + 1):
        lx, ly, lz, pair = walk(float(step), position, total, e, m2, cells, h)
        if pair < FAR:
            return (lx * cells[1] + ly) * cells[2] + lz, pair
    return -1.0, 0.0


def at_front(low, high, own, largest):
    """Whether an event lies across a front: a sharp drop of f between its two node pairs.

    low, high, own : ln(f f) of the low pair, of the high pair and of the nodes p and k3. Between
    the pairs f f is interpolated geometrically, so that a full pair contributes nothing if the
    other is empty: transfer across a front would be lost. Losses of full nodes are not affected.
    largest : ln(f f) of the two species at their fullest nodes
    """
    full = max(low, high)
    return full > largest - NOTABLE and max(own, min(low, high)) < full - FRONT


def level_of(ln_f):
    """Return ln f in units of ln(2)/8, rounded down; sums of two levels show possible fronts."""
    return np.int64(max(floor(ln_f * PER_LEVEL), EMPTY))


def far_apart(low, high, largest):
    """Whether ``at_front`` may hold for two pairs, given the sum of two ``level_of`` for each."""
    notable = floor((largest - NOTABLE) * PER_LEVEL) - 1.0
    return abs(low - high) >= LEAST_LEVELS and max(low, high) >= notable


def may_be_front(low, high, own):
    """Whether ``at_front`` may hold for ``far_apart`` pairs; own : level sum of nodes p and k3."""
    return max(low, high) - own >= LEAST_LEVELS


def detour(distance, pair, own, fullest, h):
    """Return the squared distance to a node pair, increased if it is empty beside the fullest.

    pair, own, fullest : ln(f f) of the pair, of the nodes p and k3 and of the fullest pair. The
    increase grows with the logarithm up to the diagonal of a cell and is 0 without a front, so that
    the projection changes gradually as a front fades.
    """
    empty = min(max((fullest - max(pair, own)) * (1.0 / FRONT) - 1.0, 0.0), 1.0)
    return distance + empty * (h[0] * h[0] + h[1] * h[1] + h[2] * h[2])


def corner_pair(corner, position, total, m2, cells, h):
    """Return node number, pair energy and distance for a corner, 0 to 7, of the cube around k1.

    The distance from k1 is squared, and FAR for a pair outside the box. ``bracket`` treats all
    corners at once; a GPU has no room for that and takes them one by one.
    """
    x = floor(position[0]) + (1.0 if corner % 2 == 1 else 0.0)
    y = floor(position[1]) + (1.0 if corner // 2 % 2 == 1 else 0.0)
    z = floor(position[2]) + (1.0 if corner >= 4 else 0.0)
    along = candidate(x, position[0], total[0], cells[0], h[0])
    up = candidate(y, position[1], total[1], cells[1], h[1])
    deep = candidate(z, position[2], total[2], cells[2], h[2])
    a = along[0] + up[0] + (deep[0] + m2[0])
    b = along[1] + up[1] + (deep[1] + m2[1])
    node = (x * cells[1] + y) * cells[2] + z
    return node, root(a) + root(b), along[2] + up[2] + deep[2]


def closer(node, pair, distance, e, best):
    """Update the closest pairs below and above the energy shell with one more pair.

    best : (node, energy, distance) of the low and of the high pair so far
    """
    low, e_low, d_low, high, e_high, d_high = best
    if pair <= e * (1.0 + TIE):
        if distance < d_low:
            low, e_low, d_low = node, pair, distance
    elif distance < d_high:
        high, e_high, d_high = node, pair, distance
    return low, e_low, d_low, high, e_high, d_high


def nearest_node(k, cells, h):
    """Return the number of the node whose cell contains a momentum; -1 outside the box."""
    x = floor(node_position(k[0], cells[0], h[0]) + 0.5)
    y = floor(node_position(k[1], cells[1], h[1]) + 0.5)
    z = floor(node_position(k[2], cells[2], h[2]) + 0.5)
    low = min(min(x, y), z)
    high = max(max(x - cells[0], y - cells[1]), z - cells[2])
    return (x * cells[1] + y) * cells[2] + z if low >= 0.0 and high < 0.0 else -1.0


def share_of_high_pair(e, e_low, e_high):
    """Return the share r of the high pair, 0 <= r <= 1, with (1 - r) e_low + r e_high = e."""
    gap = e_high - e_low
    return min(max((e - e_low) * reciprocal(gap if gap > 0.0 else 1.0), 0.0), 1.0)


def add_stress(q, k, m2, sign):
    """Add sign p_i p_j/E of one particle to the sums xx, yy, zz, xy, yz, zx."""
    e = energy(k, m2)
    share = sign * reciprocal(e if e > 0.0 else 1.0)
    x, y, z = share * k[0], share * k[1], share * k[2]
    return (
        q[0] + x * k[0], q[1] + y * k[1], q[2] + z * k[2],
        q[3] + x * k[1], q[4] + y * k[2], q[5] + z * k[0],
    )  # fmt: skip


def stress_change2(k1, k3, p, m2):
    """Return |Q|^2 = Sum_ij Q_ij^2, Q_ij the change of Sum p_i p_j/E in an event [GeV^2]."""
    q = add_stress((0.0, 0.0, 0.0, 0.0, 0.0, 0.0), k1, m2[0], 1.0)
    q = add_stress(q, minus(plus(p, k3), k1), m2[1], 1.0)
    q = add_stress(q, k3, m2[2], -1.0)
    q = add_stress(q, p, m2[3], -1.0)
    along = q[0] * q[0] + q[1] * q[1] + q[2] * q[2]
    return along + 2.0 * (q[3] * q[3] + q[4] * q[4] + q[5] * q[5])


def heavy(m2, spacing2):
    """Whether these masses are so large that ``compensation`` leaves all events unchanged."""
    first = root(max(m2[0], 0.0)) + root(max(m2[1], 0.0))
    second = root(max(m2[2], 0.0)) + root(max(m2[3], 0.0))
    return max(first * first, second * second) >= RESOLVED * spacing2


def compensation(k1, k3, p, m2, s, spacing2):
    """Return the factor of an event's weight that compensates the averaging by the projection.

    For a nearly collinear pair of light particles k1 lies on a long ellipsoid of width sqrt(s). If
    the width is below the spacing, low and high pair lie on either side of the ellipsoid, and the
    energy exchanged by the two particles is averaged out. The factor is a fit of the reduction of
    (change of Sum E^2)^2 in the mean over events with the same s and |Q| (``stress_change2``).
    spacing2 : squared spacing [GeV^2]; the factor is 1 for spacing2 = 0 or s >= RESOLVED spacing2
    """
    if s >= RESOLVED * spacing2:
        return 1.0
    narrow = spacing2 * reciprocal(s)
    change2 = stress_change2(k1, k3, p, m2) * reciprocal(spacing2)
    fades = root(change2) * reciprocal(1.0 + change2 * (1.0 / (LARGE * LARGE)))
    lost = AVERAGED * fades * (narrow * narrow * narrow - 1.0 / (RESOLVED * RESOLVED * RESOLVED))
    return min(1.0 + lost, LARGEST)


def landing(position, total, e, m2, cells, h):
    """Return the nodes of the low and of the high pair, -1 if none, and the high pair's share."""
    low, e_low, high, e_high = bracket(position, total, e, m2, cells, h)
    if high >= 0.0 and low < 0.0:
        low, e_low = walk_down(position, total, e, m2, cells, h)
    return low, high, share_of_high_pair(e, e_low, e_high)
