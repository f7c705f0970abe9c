"""Operator splitting of a step: stream along each axis with its force, and collide.

H_x/2 H_y/2 H_z/2 C H_z/2 H_y/2 H_x/2: each H_i streams along x_i and pushes along p_i at once
(``transport``), C collides at every site. An axis without streaming and force has no substep, so
a step of homogeneous matter is C alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..transport.forces import Force
from ..util.arrays import Array
from ..util.jit import build, kernel, scalar
from . import control


@dataclass(frozen=True)
class Substep:
    """One substep: the axis along which to stream and push, None for collisions."""

    axis: int | None
    share: float
    """Fraction of the step length."""


def parts(grid: PhaseSpace, forces: Sequence[Force] = ()) -> list[Substep]:
    """Return the substeps of a step, in order."""
    moving = sorted({*grid.moving_axes, *(force.axis for force in forces)})
    halves = [Substep(axis, 0.5) for axis in moving]
    return [*halves, Substep(None, 1.0), *reversed(halves)]


mean_during = build([control.mean_during], scalar).mean_during


@kernel
def _fill_means(now, lasts, length, rate, last, before, earlier, means):
    """Apply ``mean_during`` to every squared mass."""
    for i in range(now.size):
        means[i] = mean_during(now[i], lasts, length, rate[i], last, before[i], earlier)


def mean_squares(now: Array, lasts: float, length: float, past: list[tuple[Array, float]]) -> Array:
    """Extrapolate the mean squared masses of a substep of duration ``lasts`` [fm] in a step.

    past : rates of change in this substep of the last two steps, newest first, and the lengths of
        these steps
    """

    if not past:
        return now
    rate, last = past[0]
    before, earlier = past[1] if len(past) > 1 else (rate, 0.0)
    means = np.empty(now.shape)
    _fill_means(
        now.ravel(), lasts, length, rate.ravel(), last, before.ravel(), earlier, means.ravel()
    )
    return means
