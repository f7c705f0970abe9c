"""How a pair that left the nodes lands on the grid: conserving or nearest.

Everything here works in index space: along each axis node i sits at i, and P = p + k3 has the
index sum i_p + i_3, so the partner of a node l is the node i_p + i_3 - l. Whatever node l is
chosen for k1, the pair (l, P - l) has exactly the momentum P. Indices are held as floating-point
numbers, which is exact and lets a CPU land many events at once.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

FAR = 1e30
WALK = 32
"""Steps of the walk from k1 to P/2 that looks for a pair below the energy shell."""


def node_momentum(index, cells, h):
    """Momentum of a node along one axis [GeV]."""
    return (index - 0.5 * (cells - 1.0)) * h


def node_position(k, cells, h):
    """Where a momentum lies in units of nodes along one axis."""
    return k / h + 0.5 * (cells - 1.0)


def candidate(index, position, total, cells, h):
    """A node and its partner along one axis: their squared momenta, and the squared distance.

    A pair that leaves the box is put infinitely far away.
    """
    k = node_momentum(index, cells, h)
    q = node_momentum(total - index, cells, h)
    d = (position - index) * h
    last = cells - 1.0
    outside = max(max(-index, index - last), max(index - total, total - index - last))
    return k * k, q * q, (FAR if outside > 0.0 else d * d)


def consider(corner, x, y, z, e, m2, best):
    """Keep the corner if its pair is the closest below, or the closest above, the energy e."""
    low, d_low, e_low, high, d_high, e_high = best
    pair = sqrt(x[0] + y[0] + z[0] + m2[0]) + sqrt(x[1] + y[1] + z[1] + m2[1])
    distance = x[2] + y[2] + z[2]
    d_below = distance if pair <= e else FAR
    d_above = FAR if pair <= e else distance
    nearer = d_below < d_low
    low = corner if nearer else low
    e_low = pair if nearer else e_low
    d_low = min(d_below, d_low)
    nearer = d_above < d_high
    high = corner if nearer else high
    e_high = pair if nearer else e_high
    d_high = min(d_above, d_high)
    return low, d_low, e_low, high, d_high, e_high


def bracket(position, total, e, m2, cells, h):
    """The two corners of the cube around k1 whose node pairs bracket the energy e.

    Returns (low, e_low, high, e_high): corner codes 0-7 (bits 0, 1, 2: the upper node in x, y,
    z) of the closest pair with energy <= e and of the closest with energy > e, -1 where none.
    """
    jx = np.floor(position[0])
    jy = np.floor(position[1])
    jz = np.floor(position[2])
    x0 = candidate(jx, position[0], total[0], cells[0], h[0])
    x1 = candidate(jx + 1.0, position[0], total[0], cells[0], h[0])
    y0 = candidate(jy, position[1], total[1], cells[1], h[1])
    y1 = candidate(jy + 1.0, position[1], total[1], cells[1], h[1])
    z0 = candidate(jz, position[2], total[2], cells[2], h[2])
    z1 = candidate(jz + 1.0, position[2], total[2], cells[2], h[2])
    best = (-1.0, FAR, 0.0, -1.0, FAR, 0.0)
    best = consider(0.0, x0, y0, z0, e, m2, best)
    best = consider(1.0, x1, y0, z0, e, m2, best)
    best = consider(2.0, x0, y1, z0, e, m2, best)
    best = consider(3.0, x1, y1, z0, e, m2, best)
    best = consider(4.0, x0, y0, z1, e, m2, best)
    best = consider(5.0, x1, y0, z1, e, m2, best)
    best = consider(6.0, x0, y1, z1, e, m2, best)
    best = consider(7.0, x1, y1, z1, e, m2, best)
    low, _, e_low, high, _, e_high = best
    return low, e_low, high, e_high


def walk(step, position, total, e, m2, cells, h):
    """A node pair below the energy shell, found on the way from k1 to P/2.

    Returns the node's indices along x, y, z and the pair's energy; an energy above e (or FAR,
    out of the box) says that this step of the walk found none.
    """
    part = step / WALK
    lx = np.floor(position[0] + part * (0.5 * total[0] - position[0]) + 0.5)
    ly = np.floor(position[1] + part * (0.5 * total[1] - position[1]) + 0.5)
    lz = np.floor(position[2] + part * (0.5 * total[2] - position[2]) + 0.5)
    x = candidate(lx, position[0], total[0], cells[0], h[0])
    y = candidate(ly, position[1], total[1], cells[1], h[1])
    z = candidate(lz, position[2], total[2], cells[2], h[2])
    pair = sqrt(x[0] + y[0] + z[0] + m2[0]) + sqrt(x[1] + y[1] + z[1] + m2[1])
    return lx, ly, lz, (pair if x[2] + y[2] + z[2] < FAR else FAR)


def corner_node(corner, position, cells):
    """Number of the node at a corner of the cube around a position; -1 for no corner."""
    bz = np.floor(0.25 * corner)
    by = np.floor(0.5 * (corner - 4.0 * bz))
    bx = corner - 4.0 * bz - 2.0 * by
    x = np.floor(position[0]) + bx
    y = np.floor(position[1]) + by
    z = np.floor(position[2]) + bz
    return (x * cells[1] + y) * cells[2] + z if corner >= 0.0 else -1.0


def energy_split(e, e_low, e_high):
    """r with (1 - r) e_low + r e_high = e: the share of the high pair, between 0 and 1."""
    gap = e_high - e_low
    return min(max((e - e_low) / (gap if gap > 0.0 else 1.0), 0.0), 1.0)
