"""GPU arrays of the CUDA backend, and the launches of its kernels."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...events.collisions import SETS
from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import MassModel
from ...util.arrays import Integers
from ..elements import Elements
from ..team.exchange import Exchange, bounds, concatenated, total
from . import driver as engine
from . import kernels
from . import layout as k
from .device_problem import DeviceProblem
from .memory import USED_PART, MemoryPlan, event_bytes

cuda = engine.toolkit()


@dataclass
class LaunchContext:
    """Control numbers, scalars and masses that a sequence of kernel launches reads."""

    control: Any
    scalars: Any
    squares: Any = None
    """Squared masses at the sites of the current batch."""


class DeviceBuffers(DeviceProblem):
    """Arrays and kernels of one model on one grid.

    exchange : communication with workers that hold the same one-site state and share its events
    before : number of sites of the run before the first one here, used only to report faults
    """

    before = 0

    def __init__(
        self,
        plan: MemoryPlan,
        elements: Elements,
        site_ids: Integers,
        free: float,
        exchange: Exchange | None = None,
    ):
        """site_ids : site numbers in the run; free : free GPU memory in bytes"""
        super().__init__(*plan.given, elements)
        self.batch, self._most_events = plan.batch(free)
        self.sites, self.exchange = len(site_ids), exchange
        self._edges = bounds(self.blocks, exchange.size if exchange is not None else 1)
        rank = exchange.rank if exchange is not None else 0
        self.own_blocks = range(self._edges[rank], self._edges[rank + 1])
        batch = self.batch
        self.first_site, self.count = 0, batch
        self.roots = 1 if self.sampling.kinematics == "cm" else 2
        self.conserving = int(self.sampling.projection == "conserving")
        self.stream: Any = 0 if engine.SIMULATED else cuda.stream()
        self.draw_kernel = self.drawing(apart=False)
        self.site_ids = self.to(site_ids, np.int64)
        self._upload_constants()
        self._allocate_cells()
        self._allocate_events()
        self.context = self.new_context()
        if not all(process.built_in for process in self.model.processes):
            self._compile_draw()

    def new_context(self) -> LaunchContext:
        """Return a new, independent launch context."""
        return LaunchContext(self.new(k.CONTROLS, np.int64), self.new(k.SCALARS, np.float64))

    def launch(self, kernel: Any, blocks: int | tuple[int, int], *arguments: Any) -> None:
        """Launch a kernel with the given number of thread blocks."""
        kernel[blocks, k.THREADS, self.stream](*arguments)

    def over_cells(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel over all cells of the current batch of sites, one thread per cell."""
        blocks = (-(-self.nodes // k.THREADS), self.species * self.count)
        self.launch(kernel, blocks, self.context.control, self.first_site, *arguments)

    def over_tiles(self, kernel: Any, *arguments: Any) -> None:
        """Launch a kernel over all cells of the current batch of sites, FEW cells per thread."""
        blocks = (self.tiles, self.species * self.count)
        self.launch(kernel, blocks, self.context.control, self.first_site, *arguments)

    # -- memory ----------------------------------------------------------------------------------

    def _upload_constants(self) -> None:
        grid = self.grid
        self.packed = self.to(grid.packed, np.int32)
        self.momentum = self.to(np.concatenate([grid.axis(i) for i in range(3)]), np.float64)
        masses = MassModel.of(grid, self.model)
        self.mass_model = self.to(masses.flat, np.float64)
        self.mass_model_of_groups = self.to(masses.of_groups, np.float64)
        self.group_numbers = self.to(np.arange(masses.group.max(initial=-1) + 1), np.int64)
        self.groups = self.to(masses.group, np.int64)

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid."""
        super().set_momentum_grid(grid)
        self.momentum.copy_to_device(np.concatenate([grid.axis(i) for i in range(3)]))

    def _allocate_cells(self) -> None:
        s, n = self.species, self.nodes
        rows, cells = s * self.batch, self.cells * self.batch
        blocks = max(1, self.blocks * self.batch)
        self.number = self.room((2, self.sites * self.cells), np.int64)
        self.change = self.new((SETS + 1, cells), np.int64)
        self.tables = self.new((SETS + 1, cells, 2), np.float64)
        self.table = self.tables[SETS]  # of the state itself; the others: predictions of the sets
        self.tops = self.new(rows, np.float64)
        self.prefix = self.new((rows, n), np.int32)
        self.tile_sums = self.new((rows, self.tiles), np.int64)
        self.cumulative = self.new((rows, n + 1), np.int64)
        self.guide = self.new((rows, self.buckets), np.int32)
        self.highest = self.new((2, rows), np.int64)
        self.spread = self.new((rows * self.tiles, 2), np.float64)
        self.sums, self.sums_2, self.sums_3 = (
            self.new((blocks, k.SUMS), np.float64) for _ in range(3)
        )
        channels = max(1, len(self.channels))
        self.site_flows = self.new((self.sites, channels, 4), np.float64)
        self.flows = self.new((channels, 4), np.float64)
        self.told = self.new((self.sites, k.TOLD), np.float64)
        self.counts = self.new((self.sites, k.COUNTS), np.int64)
        self.trouble = self.new((self.batch, k.TROUBLES), np.int64)
        self.bounds = self.new((self.batch, k.BOUNDS), np.float64)
        self.capacity = self.new(s, np.int64)
        self.nothing = self.to(np.empty(0), np.float64)
        kinds = (np.int64, np.int64, np.float64, np.float64, np.uint8)
        self.limits = tuple(self.room(cells, kind) for kind in kinds)

    def _allocate_events(self) -> None:
        """Allocate all event blocks, or as many as fit; the others are drawn again when needed."""
        per_block = event_bytes(self.precision) * k.SPAN * self.roots
        room = min(USED_PART * engine.free_memory(), self._most_events) / self.batch
        own = len(self.own_blocks)
        countable = (2**32 - 1) // (k.SPAN * self.roots)  # slots are counted in 32 bits
        self.slab = max(1, min(own, int(room / per_block), countable // self.batch))
        events = self.slab * self.batch * k.SPAN * self.roots
        weight = np.float32 if self.precision == "float32" else np.float64
        self.event_nodes = self.room((4, events), np.int32)
        self.event_weights = self.room(events, weight)
        self.event_ratios = self.room(events, np.float64)

    @property
    def samples_drawn(self) -> int:
        """Number of samples in a step, summed over channels."""
        return SETS * sum(self.sampling.samples_of(c, self.nodes) for c in self.channels)

    def _compile_draw(self) -> None:
        """Compile the model's matrix elements now, to report errors before the run."""
        control = np.zeros(k.CONTROLS, np.int64)
        control[k.STATUS] = k.ARRIVED  # the kernel does nothing
        self.context.control.copy_to_device(control)
        self.context.squares = self.new((1, self.width), np.float64)
        if self.blocks:
            with self.compiling():
                self.draw(0, 1, self.sums, False)

    # -- launches --------------------------------------------------------------------------------

    def prepare(self, given: Any = None) -> None:
        """Compute logarithms and sampling tables of the state, or of a given f."""
        self.over_tiles(
            kernels.prepare, self.context.scalars, self.context.squares,
            self.nothing if given is None else given, self.number, self.species_numbers,
            self.highest, self.p2, self.tables, self.tops, self.change,
            self.prefix, self.tile_sums,
        )  # fmt: skip
        self.over_tiles(
            kernels.cumulate, self.prefix, self.tile_sums, self.shift, self.cumulative, self.guide
        )

    def slabs(self) -> Iterator[tuple[int, int]]:
        """Yield first block and number of blocks whose events fit into memory together."""
        last = self.own_blocks.stop
        for first in range(self.own_blocks.start, last, self.slab):
            yield first, min(self.slab, last - first)

    def draw(self, first: int, count: int, sums: Any, use: bool, land: bool = True) -> None:
        """Draw and keep the events of some blocks; use : apply them as well."""
        context = self.context
        self.launch(
            self.draw_kernel, (count, self.count), context.control, context.scalars,
            context.squares, self.geometry, self.channel_integers, self.channel_floats,
            self.block_table, self.cumulative, self.guide, self.table, self.tops, self.event_nodes,
            self.event_weights, self.event_ratios, self.change, sums, self.site_ids, first,
            self.first_site, self.shift, int(land), int(use),
        )  # fmt: skip

    def draw_all(self, use: bool) -> None:
        """Draw all events of a step; those that do not fit in memory are redrawn when needed."""
        with self._shared_out([self.change[:SETS]], self.sums):
            for first, count in self.slabs():
                self.draw(first, count, self.sums, use)

    def over_events(
        self, kernel: Any, *arguments: Any, cells: Sequence[Any], sums: Any = None
    ) -> None:
        """Launch a kernel over the events of all blocks, drawn again if they were not kept.

        cells : arrays that the kernel adds to; sums : its sums for every block
        """
        context = self.context
        with self._shared_out(cells, sums):
            for first, count in self.slabs():
                if self.slab < len(self.own_blocks):
                    self.draw(first, count, self.sums_3, False)
                self.launch(
                    kernel, (count, self.count), context.control, context.scalars,
                    self.channel_integers, self.block_table, self.event_nodes, self.event_weights,
                    self.event_ratios, self.tables, first, self.roots, self.conserving,
                    *arguments,
                )  # fmt: skip

    @contextmanager
    def _shared_out(self, cells: Sequence[Any], sums: Any) -> Iterator[None]:
        """Let events add to cells in the body, then add up the contributions of all workers."""
        exchange = self.exchange
        if exchange is None:
            yield
            return
        if exchange.rank > 0:  # existing content must be counted only once
            for array in cells:
                engine.clear(array, self.stream)
        yield
        for array in cells:
            array.copy_to_device(total(exchange, self.fetch(array)))
        if sums is not None:
            mine = self.fetch(sums)[self.own_blocks.start : self.own_blocks.stop]
            sums.copy_to_device(concatenated(exchange, mine, np.diff(self._edges).tolist()))

    def stage_of(self, stage: int) -> Any:
        """Return the rows of changes made by a stage."""
        return self.change[SETS:] if stage == k.LAST_STAGE else self.change[:SETS]

    def apply(self, stage: int, redone: bool = False) -> None:
        """Apply kept events as a stage; redone : only where the first stage was redone."""
        self.over_events(
            kernels.apply, self.change, self.trouble, self.sums_2, stage, int(redone),
            cells=[self.stage_of(stage)], sums=self.sums_2,
        )  # fmt: skip

    def find_peaks(self) -> None:
        """Find the largest number of quanta per site and species, which drawing needs."""
        self.launch(
            kernels.peaks, self.species * self.count, self.context.control, self.number,
            self.highest, self.first_site * self.species,
        )  # fmt: skip

    def predict(self) -> None:
        """Take logarithms of the predictions of the two sets of events."""
        self.over_tiles(
            kernels.predict, self.context.scalars, self.number, self.species_numbers, self.capacity,
            self.tables, self.change,
        )  # fmt: skip

    def update(self) -> None:
        """Write the new state."""
        self.over_tiles(
            kernels.update, self.number, self.species_numbers, self.capacity, self.change,
            self.highest, self.spread, self.trouble, self.counts,
        )  # fmt: skip

    def wait(self) -> None:
        """Wait until everything launched is done."""
        if self.stream:
            self.stream.synchronize()

    def fetch(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host, once everything launched is done."""
        self.wait()
        copy: NDArray[Any] = array.copy_to_host()
        return copy
