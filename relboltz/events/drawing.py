"""Importance sampling of node pairs: integer weights, probabilities in units of 2^-32.

Node i of n is drawn for random words from ``cumulated(i)`` to ``cumulated(i + 1)``. f is rounded to
a power of two on purpose: the draw then does not depend on the last bits of a state, so that
machines with different rounding draw the same events.
"""

from math import sqrt

import numpy as np

from .elementary import floor, reciprocal

BACKGROUND = 0.02
"""Fraction of the largest f that is added to every f."""
FINEST = 1023.0
"""Largest integer weight, minus one."""
WORDS = 4294967296.0
"""Number of different random words."""


def level(ratio):
    """Round a number from 0 to 1 up to a power of two, at least 2^-10."""
    found = 1.0
    while found > 1e-3 and ratio <= 0.5 * found * (1.0 + 1e-9):
        found *= 0.5
    return found


def node_weight(f, highest, inverse_e):
    """Return a node's importance sqrt(f + 0.02 f_max)/E, f a power of two; 1/E if all f are 0."""
    if not highest > 0.0:
        return inverse_e
    ratio = (f + BACKGROUND * highest) / ((1.0 + BACKGROUND) * highest)
    return sqrt(level(ratio)) * inverse_e


def whole_weight(weight, largest):
    """Return a weight as an integer from 1 to 1024; the largest weight is 1024."""
    return np.int64(1.5 + FINEST * (weight / largest))


def cumulated(i, before, n, scale):
    """Return the first random word of node i.

    before : sum of the integer weights of all nodes before i
    scale : (2^32 - n) / (sum of the integer weights of all n nodes)

    Every node has at least one word, and the last node ends at 2^32.
    """
    return np.int64(WORDS) if i == n else i + np.int64(floor(before * scale))


def even_word(i, n):
    """Return the first random word of node i if all n nodes are equally likely.

    The node of a word is then (word n) >> 32.
    """
    word = np.int64(i * (WORDS / n))  # off by one at most: corrected in integers below
    while word * n < i << 32:
        word += 1
    while (word - 1) * n >= i << 32:
        word -= 1
    return word


def node_indices(i, cells):
    """Return the indices of node number i along x, y and z, as floats."""
    plane = cells[1] * cells[2]
    x = floor((i + 0.5) * reciprocal(plane))
    rest = i - x * plane
    y = floor((rest + 0.5) * reciprocal(cells[2]))
    return x, y, rest - y * cells[2]


def packed_index(node, axis):
    """Return the index of a packed node along one axis."""
    return (node >> (10 * axis)) & 1023


def unpacked(node):
    """Return the indices of a packed node along x, y and z, as floats."""
    return float(packed_index(node, 0)), float(packed_index(node, 1)), float(packed_index(node, 2))


def across(u, cells, h):
    """Return a momentum along one axis of the box, from its lower (u = 0) to its upper edge (1)."""
    return (u - 0.5) * cells * h
