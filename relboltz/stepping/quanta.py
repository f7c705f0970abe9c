"""Particle numbers in 64-bit fixed point: size of a quantum and capacity of a cell.

The state is the particle number N_a f per cell in whole quanta. Every deposit is a whole number of
quanta, so number and momentum are conserved to the last bit, in any order of events.
"""

import math

import numpy as np

from ..model.model import Model
from ..util.arrays import Array, Integers
from ..util.errors import InputError

MOST_BITS = 44
"""The quantum of N_a f is 2^-44 unless a large total requires a coarser one."""
FEWEST_BITS = 50
"""Most binary digits of the total before the binary point."""
TOTAL_BITS = 61
"""Most binary digits of a site's total, so that all particles fit into one cell."""
SUM_BITS = 59
"""Most binary digits of a sum over all events."""
LOW_WORD = 0xFFFFFFFF


def exact_sum(values: Integers) -> int:
    """Sum 64-bit integers without overflow."""
    high = int((values >> 32).sum(dtype=np.int64))
    low = int((values & LOW_WORD).sum(dtype=np.int64))
    return (high << 32) + low


def fraction_bits(f: Array, model: Model, reserve: int = 0) -> int:
    """Return the fractional binary digits of N_a f: 44, fewer if a site's total is huge.

    reserve : digits that numbers may gain later
    """
    total = float(np.max((f.sum(axis=-1) * model.degeneracy).sum(axis=-1)))
    if not total < 2.0**FEWEST_BITS:
        raise InputError(
            f"initial: N f summed over all nodes is {total:.3g}, too much for 64-bit numbers; "
            "lower the initial state"
        )
    room = TOTAL_BITS - reserve - max(0, math.ceil(math.log2(max(total, 1e-300))))
    return min(MOST_BITS, room)


def quantised(f: Array, model: Model, reserve: int = 0) -> tuple[Integers, int]:
    """Return N_a f (sites, species, nodes) in quanta of 2^-bits, and bits."""
    bits = fraction_bits(f, model, reserve)
    scale = model.degeneracy[:, None] * 2.0**bits
    number = np.empty(f.shape, np.int64)
    for site, here in enumerate(f):  # site by site: a state in space may be large
        number[site] = np.rint(here * scale)
    if not number.any():
        raise InputError(
            f"the system is empty: f is below the resolution of {2.0**-bits:.1e} at every node; "
            "raise the initial state"
        )
    return number, bits


def occupation(number: Integers, bits: int, model: Model) -> Array:
    """Return f (..., species, nodes) from numbers in quanta of 2^-bits."""
    return number * (2.0**-bits / model.degeneracy[:, None])


def capacities(model: Model, bits: int) -> Integers:
    """Return the capacity of a cell in quanta by species: N for fermions, else the 64-bit limit."""

    full = np.minimum(np.rint(model.degeneracy * 2.0**bits), 2.0**62)
    return np.where(model.statistics < 0, full, 2.0**62).astype(np.int64)
