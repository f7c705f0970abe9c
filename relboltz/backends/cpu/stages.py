"""A step of collisions at one site: crossed sets of events, limits that keep f legal.

The events of a step are split into two sets A and B, each an unbiased estimate of C, and each is
evaluated again on the prediction of the other:

    n = n0 + dt/4 [A(n0) + B(n0) + A(n0 + dt B(n0)) + B(n0 + dt A(n0))]

An event evaluated again on cells that it has itself changed would saturate itself, and relaxation
would be too slow by O(dt/samples), even with exact conservation.
"""

import math

import numpy as np

from ...events.collisions import AHEAD, SETS, DrawInput, Flows
from ...stepping.quanta import SUM_BITS, capacities, exact_sum
from ...stepping.step_report import StepReport, no_limits, too_long
from ...util.arrays import Array, Integers
from .collider import Collider, Demands, Tables
from .deposits import limits

Both = tuple[Integers, Integers, Flows, float]
"""Changes of the first and the last stage, flows of the first, fraction refused by limits."""


def noise_sums(first: Integers) -> tuple[float, float]:
    """Return the sums over the cells of the squared standard error of C, and of C^2.

    first : contributions A, B of the two independent sets of events: with C = (A + B)/2 the
        standard error is |A - B|/2.
    """
    a, b = first.astype(np.float64)
    return float(np.square(a - b).sum()), float(np.square(a + b).sum())


class SiteStages:
    """The stages of a step of collisions at one site."""

    def __init__(self, collider: Collider, bits: int):
        self.collider, self.unit = collider, 2.0**-bits
        model = collider.model
        species = np.repeat(np.arange(len(model.species)), collider.size)
        self._fermion = model.statistics[species] < 0
        self._capacity = capacities(model, bits)[species]
        self._all = collider.sampling.symmetrical

    def collide(self, n0: Integers, draw: DrawInput, length: float) -> tuple[Integers, StepReport]:
        """Return the numbers of quanta after a step of collisions with these events."""
        table, occupancy = self.collider.tables(n0, self.unit)
        drawn = self.collider.draw(draw, table, occupancy)
        half = 0.5 * length / self.unit
        stages = self._stages(n0, table, half) or self._limited(n0, table, half)
        first, last, flows, limited = stages
        d1, d2 = first.sum(axis=0), last.sum(axis=0)
        number = n0 + d1 + d2
        if not self._all:
            number = np.clip(number, 0, self._capacity)
        counts = (exact_sum(np.abs(d2 - d1)), exact_sum(np.abs(d1)), exact_sum(n0))
        refused, noise = np.array([limited]), noise_sums(first)
        return number, StepReport(length, [counts], flows, drawn, refused, noise)

    def _stages(self, n0: Integers, table: Array, half: float) -> Both | None:
        """Compute both stages of a step without limits; None if a cell would become illegal."""
        first, flows = self.collider.net((table,) * SETS, half)
        last, again = self.collider.net(self._predicted(n0, first), half)
        wanted = half * (flows.wanted + again.wanted)
        fits = not wanted >= 2.0**SUM_BITS  # NaN is for the caller to report
        if not self._all and not fits:
            raise too_long()
        if fits and (not self._all or self._legal(n0 + first.sum(axis=0) + last.sum(axis=0))):
            return first, last, flows, 0.0
        return None

    def _limited(self, n0: Integers, table: Array, half: float) -> Both:
        """Compute both stages, each limited where a cell requires it, and the fraction refused.

        The first stage may use half of the content of a cell, the last stage the remainder.
        """
        first, flows, limited = self._stage((table,) * SETS, half, n0, 2)
        tables = self._predicted(n0, first)
        last, _, more = self._stage(tables, half, n0 + first.sum(axis=0), 1)
        return first, last, flows, max(limited, more)

    def _predicted(self, n0: Integers, first: Integers) -> Tables:
        """Return for each set the table of the other's prediction, so that no event sees itself.

        first : half a step by both sets together
        """
        guesses = (np.clip(n0 + AHEAD * part, 0, self._capacity) for part in reversed(first))
        return [self.collider.tables(guess, self.unit)[0] for guess in guesses]

    def _stage(
        self, tables: Tables, half: float, base: Integers, times: int
    ) -> tuple[Integers, Flows, float]:
        """Return the change due to each set of events in one stage, limited only if necessary.

        Each set contributes half of the change in an Euler step.

        base + times * change must be legal. If it is not, every event is scaled as a whole by
        the tightest limit of its cells, so that conservation stays exact.
        """
        change, flows = self.collider.net(tables, half)
        wanted = half * flows.wanted  # no cell can change by more than twice this amount
        fits = not wanted >= 2.0**SUM_BITS
        if fits and self._legal(base + times * change.sum(axis=0)):
            return change, flows, 0.0
        coarser = 1.0 if fits else 2.0 ** (math.ceil(math.log2(wanted)) - SUM_BITS)
        demands = self.collider.demands(tables, half / coarser)
        allowance = 0.5
        for _ in range(20):
            bounds = self._bounds(base, demands, allowance / coarser)
            change, limited = self.collider.net(tables, half, bounds)
            if self._legal(base + times * change.sum(axis=0)):
                refused = limited.refused / limited.wanted if limited.wanted > 0 else 0.0
                return change, flows, refused
            allowance *= 0.25
        raise no_limits()

    def _legal(self, number: Integers) -> bool:
        return bool((number >= 0).all() and (number <= self._capacity).all())

    def _bounds(self, number: Integers, demands: Demands, allowance: float) -> tuple[Array, Array]:
        """Return min(1, f / 2D) for losses and, for fermions, min(1, (1 - f) / 2G) for gains."""
        low, high = np.empty(number.size), np.empty(number.size)
        limits(number, demands, self._capacity, self._fermion, allowance, low, high)
        return low, high
