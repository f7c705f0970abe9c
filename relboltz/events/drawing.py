"""Which pairs of nodes are drawn: importance as whole numbers, probabilities in units of 2^-32.

Node i of n is drawn for random words from ``cumulated(i)`` to ``cumulated(i + 1)``. f enters
rounded to a power of two, on purpose: a draw then depends on a state, not on the last bits of it,
so that machines which round differently draw the same events.
"""

from math import sqrt

import numpy as np

from .elementary import floor, reciprocal

BACKGROUND = 0.02
"""Part of the largest f that is added to every f."""
FINEST = 1023.0
"""Largest whole weight, less one."""
WORDS = 4294967296.0
"""Number of different random words."""


def level(ratio):
    """The power of two at or above a number from 0 to 1; not below 2^-10."""
    found = 1.0
    while found > 1e-3 and ratio <= 0.5 * found * (1.0 + 1e-9):
        found *= 0.5
    return found


def node_weight(f, highest, inverse_e):
    """Importance of a node: sqrt(f + 0.02 f_max)/E, f in powers of two; 1/E if all f are 0."""
    if not highest > 0.0:
        return inverse_e
    ratio = (f + BACKGROUND * highest) / ((1.0 + BACKGROUND) * highest)
    return sqrt(level(ratio)) * inverse_e


def whole_weight(weight, largest):
    """A weight as a whole number from 1 to 1024 for the largest."""
    return np.int64(1.5 + FINEST * (weight / largest))


def cumulated(i, before, n, scale):
    """Random words below the first one of node i.

    before : whole weights of all nodes before i
    scale : (2^32 - n) / (whole weights of all n nodes)

    At least one word remains for every node, and the last node ends at 2^32.
    """
    return np.int64(WORDS) if i == n else i + np.int64(floor(before * scale))


def even_word(i, n):
    """Random words below the first one of node i if all n nodes are drawn alike.

    The node of a word is then (word n) >> 32.
    """
    word = np.int64(i * (WORDS / n))  # one off at most: whole numbers settle it
    while word * n < i << 32:
        word += 1
    while (word - 1) * n >= i << 32:
        word -= 1
    return word


def node_indices(i, cells):
    """Indices of node number i along x, y and z, all held as floats."""
    plane = cells[1] * cells[2]
    x = floor((i + 0.5) * reciprocal(plane))
    rest = i - x * plane
    y = floor((rest + 0.5) * reciprocal(cells[2]))
    return x, y, rest - y * cells[2]


def packed_index(node, axis):
    """Index of a packed node along one axis."""
    return (node >> (10 * axis)) & 1023


def unpacked(node):
    """Indices of a packed node along x, y and z, as floats."""
    return float(packed_index(node, 0)), float(packed_index(node, 1)), float(packed_index(node, 2))


def across(u, cells, h):
    """A momentum along one axis of the box, from its lower edge (u = 0) to the upper (1)."""
    return (u - 0.5) * cells * h
