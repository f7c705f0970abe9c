"""The stages of a step of collisions on a GPU: the order of launches, nothing is waited for.

As ``cpu/stages``: both stages without limits first; where a cell would become illegal, again with
limits that keep every cell legal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import kernels
from . import layout as k
from . import limiter as rules

if TYPE_CHECKING:
    from .device_buffers import DeviceBuffers


class BatchStages:
    """Collisions at the sites of a machine, as many at once as fit."""

    def __init__(self, machine: DeviceBuffers):
        self.machine = machine

    def everywhere(self, squares: Any, peaks: bool, limited: Callable[[], None]) -> None:
        """Collisions at all sites.

        squares : squared masses of all sites; peaks : whether to look for the largest numbers;
        limited : what finds limits, once both stages are done without them
        """
        machine = self.machine
        for first, count in self._batches(squares):
            self._begin(first, peaks)
            self.plain()
            machine.launch(
                kernels.find_faults, count, machine.desk.control, machine.sums, machine.batch,
                machine.before + first,
            )  # fmt: skip
            limited()
            machine.update()
            self._tell(first, count)

    def _batches(self, squares: Any) -> Iterator[tuple[int, int]]:
        """Sites that collide at once; the machine is set to them."""
        machine = self.machine
        try:
            for first in range(0, machine.sites, machine.batch):
                count = min(machine.batch, machine.sites - first)
                machine.first_site, machine.count = first, count
                machine.desk.squares = squares[first : first + count]
                yield first, count
        finally:
            machine.first_site, machine.count = 0, machine.batch

    def _begin(self, first: int, peaks: bool) -> None:
        machine, control = self.machine, self.machine.desk.control
        machine.launch(
            rules.clear_sites, -(-machine.batch // k.THREADS), control, machine.trouble,
            machine.bounds, machine.counts, machine.highest, first,
        )  # fmt: skip
        if peaks:
            machine.find_peaks()

    def _tell(self, first: int, count: int) -> None:
        machine, desk = self.machine, self.machine.desk
        machine.launch(
            kernels.tell_sites, count, desk.control, desk.scalars, machine.sums, machine.sums_2,
            machine.spread, machine.channel_integers, machine.trouble, machine.bounds,
            machine.told, machine.site_flows, first,
        )  # fmt: skip

    def plain(self) -> None:
        """Both stages without limits."""
        machine = self.machine
        machine.prepare()
        machine.draw_all(True)
        machine.predict()
        machine.apply(k.LAST_STAGE)

    def careful(self) -> None:
        """Find out whether limits are needed, and find them where they are."""
        machine = self.machine
        self.question()
        # workers look, because without need nothing is done but to tell each other so
        if machine.exchange is None or machine.fetch(machine.desk.control)[k.TROUBLED]:
            self.limited()

    def question(self) -> None:
        """Which sites would become illegal."""
        self._check(k.LAST_STAGE, -1)
        self._ask(rules.BOTH, k.LAST_STAGE)

    def limited(self) -> None:
        """Both stages at the sites that need limits."""
        machine = self.machine
        self._begin_stage(k.FIRST_STAGE)
        self._stage(k.FIRST_STAGE, rules.FIRST)
        self._ask(rules.BETWEEN, k.FIRST_STAGE)
        self._begin_stage(k.LAST_STAGE)
        machine.apply(k.LAST_STAGE, redone=True)
        self._stage(k.LAST_STAGE, rules.LAST)
        self._ask(rules.END, k.LAST_STAGE)

    def _stage(self, stage: int, when: int) -> None:
        """A stage, limited where a site asks for it."""
        machine = self.machine
        loss, gain, low, high, tight = machine.limits
        self._check(stage, k.NEEDY)
        self._ask(when, stage)
        machine.over_events(
            rules.demands, loss, gain, machine.trouble, machine.bounds, stage, cells=[loss, gain]
        )
        for attempt in range(len(rules.ATTEMPTS)):
            machine.over_cells(
                rules.limits, machine.number, machine.change, machine.species_numbers,
                machine.capacity, loss, gain, low, high, tight, machine.trouble, machine.bounds,
                stage, attempt,
            )  # fmt: skip
            machine.over_events(
                rules.apply_limited, machine.change, low, high, tight, machine.trouble,
                machine.bounds, machine.sums_3, stage, attempt,
                cells=[machine.stage_of(stage)], sums=machine.sums_3,
            )  # fmt: skip
            self._check(stage, k.LIMITED_NOW)
            self._ask(rules.TRIED, stage, attempt)

    def _begin_stage(self, stage: int) -> None:
        machine = self.machine
        machine.over_cells(
            rules.begin_stage, machine.desk.scalars, machine.number, machine.species_numbers,
            machine.capacity, machine.change, machine.tables, *machine.limits[:2],
            machine.trouble, stage,
        )  # fmt: skip

    def _check(self, stage: int, column: int) -> None:
        machine = self.machine
        machine.over_cells(
            rules.check, machine.number, machine.capacity, machine.change, machine.trouble, stage,
            column,
        )  # fmt: skip

    def _ask(self, when: int, stage: int, attempt: int = 0) -> None:
        machine, desk = self.machine, self.machine.desk
        machine.launch(
            rules.ask, machine.count, desk.control, desk.scalars, machine.sums, machine.sums_2,
            machine.sums_3, machine.trouble, machine.bounds, when, stage, attempt,
        )  # fmt: skip
