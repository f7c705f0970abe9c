"""Stages of a collision step on a GPU: the order of launches, without waiting.

The scheme is that of ``cpu/stages``: both stages without limits first; where a cell would become
illegal, again with limits that keep every cell legal.
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
    """Collisions at the sites of the buffers, in batches as large as fit."""

    def __init__(self, buffers: DeviceBuffers):
        self.buffers = buffers

    def everywhere(self, squares: Any, peaks: bool, limited: Callable[[], None]) -> None:
        """Launch collisions at all sites.

        squares : squared masses of all sites; peaks : whether to find the largest numbers of
        quanta; limited : called after both stages without limits, to apply limits where needed
        """
        buffers = self.buffers
        for first, count in self._batches(squares):
            self._begin(first, peaks)
            self.plain()
            buffers.launch(
                kernels.find_faults, count, buffers.context.control, buffers.sums, buffers.batch,
                buffers.before + first,
            )  # fmt: skip
            limited()
            buffers.update()
            self._tell(first, count)

    def _batches(self, squares: Any) -> Iterator[tuple[int, int]]:
        """Yield the batches of sites that collide at once, with the buffers set to each."""
        buffers = self.buffers
        try:
            for first in range(0, buffers.sites, buffers.batch):
                count = min(buffers.batch, buffers.sites - first)
                buffers.first_site, buffers.count = first, count
                buffers.context.squares = squares[first : first + count]
                yield first, count
        finally:
            buffers.first_site, buffers.count = 0, buffers.batch

    def _begin(self, first: int, peaks: bool) -> None:
        buffers, control = self.buffers, self.buffers.context.control
        buffers.launch(
            rules.clear_sites, -(-buffers.batch // k.THREADS), control, buffers.trouble,
            buffers.bounds, buffers.counts, buffers.highest, first,
        )  # fmt: skip
        if peaks:
            buffers.find_peaks()

    def _tell(self, first: int, count: int) -> None:
        buffers, context = self.buffers, self.buffers.context
        buffers.launch(
            kernels.tell_sites, count, context.control, context.scalars, buffers.sums,
            buffers.sums_2, buffers.spread, buffers.channel_integers, buffers.trouble,
            buffers.bounds, buffers.told, buffers.site_flows, first,
        )  # fmt: skip

    def plain(self) -> None:
        """Launch both stages without limits."""
        buffers = self.buffers
        buffers.prepare()
        buffers.draw_all(True)
        buffers.predict()
        buffers.apply(k.LAST_STAGE)

    def careful(self) -> None:
        """Check whether limits are needed, and apply them where they are."""
        buffers = self.buffers
        self.question()
        # workers read the flag, since unneeded limits would only cost communication
        if buffers.exchange is None or buffers.fetch(buffers.context.control)[k.TROUBLED]:
            self.limited()

    def question(self) -> None:
        """Flag the sites that would become illegal."""
        self._check(k.LAST_STAGE, -1)
        self._ask(rules.BOTH, k.LAST_STAGE)

    def limited(self) -> None:
        """Repeat both stages at the sites that need limits."""
        buffers = self.buffers
        self._begin_stage(k.FIRST_STAGE)
        self._stage(k.FIRST_STAGE, rules.FIRST)
        self._ask(rules.BETWEEN, k.FIRST_STAGE)
        self._begin_stage(k.LAST_STAGE)
        buffers.apply(k.LAST_STAGE, redone=True)
        self._stage(k.LAST_STAGE, rules.LAST)
        self._ask(rules.END, k.LAST_STAGE)

    def _stage(self, stage: int, when: int) -> None:
        """Apply a stage, with limits where a site needs them."""
        buffers = self.buffers
        loss, gain, low, high, tight = buffers.limits
        self._check(stage, k.NEEDY)
        self._ask(when, stage)
        buffers.over_events(
            rules.demands, loss, gain, buffers.trouble, buffers.bounds, stage, cells=[loss, gain]
        )
        for attempt in range(len(rules.ATTEMPTS)):
            buffers.over_cells(
                rules.limits, buffers.number, buffers.change, buffers.species_numbers,
                buffers.capacity, loss, gain, low, high, tight, buffers.trouble, buffers.bounds,
                stage, attempt,
            )  # fmt: skip
            buffers.over_events(
                rules.apply_limited, buffers.change, low, high, tight, buffers.trouble,
                buffers.bounds, buffers.sums_3, stage, attempt,
                cells=[buffers.stage_of(stage)], sums=buffers.sums_3,
            )  # fmt: skip
            self._check(stage, k.LIMITED_NOW)
            self._ask(rules.TRIED, stage, attempt)

    def _begin_stage(self, stage: int) -> None:
        buffers = self.buffers
        buffers.over_cells(
            rules.begin_stage, buffers.context.scalars, buffers.number, buffers.species_numbers,
            buffers.capacity, buffers.change, buffers.tables, *buffers.limits[:2],
            buffers.trouble, stage,
        )  # fmt: skip

    def _check(self, stage: int, column: int) -> None:
        buffers = self.buffers
        buffers.over_cells(
            rules.check, buffers.number, buffers.capacity, buffers.change, buffers.trouble, stage,
            column,
        )  # fmt: skip

    def _ask(self, when: int, stage: int, attempt: int = 0) -> None:
        buffers, context = self.buffers, self.buffers.context
        buffers.launch(
            rules.ask, buffers.count, context.control, context.scalars, buffers.sums,
            buffers.sums_2, buffers.sums_3, buffers.trouble, buffers.bounds, when, stage, attempt,
        )  # fmt: skip
