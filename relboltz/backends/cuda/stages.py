"""The stages of a step of collisions on a GPU, at the sites at work, with the host looking on.

As ``cpu/stages``: both stages without limits first; where a cell would become illegal, again with
limits that keep every cell legal.
"""

from typing import Any

import numpy as np

from ...arrays import Array, Flags
from ...errors import RunError
from . import kernels
from . import layout as k
from .machine import Machine


class Stages:
    """The stages of a step of collisions."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def all(self, scale: float) -> Array:
        """Both stages; the part that limits refused at each site. scale: quanta per unit of N f."""
        machine = self.machine
        machine.clear_illegal()
        machine.stages()
        machine.wait()
        moves = self._site_sums(machine.sums, k.MOVES) + self._site_sums(machine.sums_2, k.MOVES)
        fine = ~(scale * moves >= k.LARGEST_SUM)
        if not machine.sampling.symmetrical:
            self._check_size(fine)
            return np.zeros(machine.count)
        fine &= self._legal(k.LAST_STAGE)
        return np.zeros(machine.count) if fine.all() else self.limited(scale, fine)

    def limited(self, scale: float, spared: Flags) -> Array:
        """Both stages, each limited where a cell asks for it; the part refused at every site.

        spared : sites that are known to need no limits
        """
        machine = self.machine
        machine.prepare()
        machine.draw_all(False)
        limited = self._stage(k.FIRST_STAGE, scale, spared)
        rows = machine.blocks * machine.batch
        machine.launch(kernels.merge, -(-rows // k.THREADS), machine.sums, machine.sums_2)
        machine.predict()
        return np.maximum(limited, self._stage(k.LAST_STAGE, scale, spared))

    def _site_sums(self, sums: Any, column: int) -> Array:
        """Sums of a column over the blocks of every site at work."""
        machine = self.machine
        values = sums.copy_to_host()[: machine.blocks * machine.count, column]
        return np.asarray(values.reshape(machine.count, -1).sum(axis=1))

    @staticmethod
    def _check_size(fits: Flags) -> None:
        if not fits.all():
            raise RunError("the step is far too long: what it moves does not fit 64-bit numbers")

    def _stage(self, stage: int, scale: float, spared: Flags) -> Array:
        """A stage, limited only at sites that ask for it; the part that limits refused there."""
        machine = self.machine
        machine.apply(stage)
        wanted = scale * self._site_sums(machine.sums_2, k.MOVES)
        fits = ~(wanted >= k.LARGEST_SUM)
        nothing = np.zeros(machine.count)
        if not machine.sampling.symmetrical:
            self._check_size(fits)
            return nothing
        legal = spared | (fits & self._legal(stage))
        if legal.all():
            return nothing
        excess = np.maximum(wanted / k.LARGEST_SUM, 1.0)
        coarser = np.where(fits, 1.0, 2.0 ** np.ceil(np.log2(excess)))
        self._find_demands(stage, coarser)
        allowance = np.where(legal, 0.0, 0.5)
        for _ in range(20):
            self._limit(stage, allowance / coarser)
            legal = spared | self._legal(stage)
            if legal.all():
                moves = self._site_sums(machine.sums_2, k.MOVES)
                refused = self._site_sums(machine.sums_2, k.NEGATIVE)
                return np.divide(refused, moves, out=nothing, where=moves > 0)
            allowance = np.where(legal, allowance, np.maximum(0.25 * allowance, 1e-12))
        raise RunError("the limiter found no legal step; shorten time.step")

    def _find_demands(self, stage: int, coarser: Array) -> None:
        """What all events together want of every cell; coarser: how much larger quanta are."""
        machine = self.machine
        loss, gain, _, _ = machine.limits
        there = machine.upload(coarser, np.float64)
        for demand in (loss, gain):
            demand.copy_to_device(np.zeros(demand.shape, np.int64))
        machine.over_events(kernels.demands, loss, gain, stage, there)

    def _limit(self, stage: int, allowance: Array) -> None:
        """The stage again, with limits from the demands."""
        machine = self.machine
        loss, gain, low, high = machine.limits
        machine.over_cells(
            kernels.limits, machine.number, machine.change, machine.species_numbers,
            machine.capacity, loss, gain, low, high, machine.upload(allowance, np.float64), stage,
        )  # fmt: skip
        machine.apply(stage, (low, high))

    def _legal(self, stage: int) -> Flags:
        """Whether the stage leaves every cell within its bounds, by site."""
        machine, illegal = self.machine, self.machine.desk.illegal
        machine.clear_illegal()
        machine.over_cells(
            kernels.check, machine.number, machine.capacity, machine.change, illegal, stage
        )
        found: Flags = illegal.copy_to_host()[: machine.count] == 0
        machine.clear_illegal()
        return found
