"""Collisions at one site: threads over chunks of events, private integer accumulators.

Results do not depend on which thread takes which chunk: deposits are integers, and floating-point
sums are taken per chunk and then in the order of the chunks.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ...config.settings import Sampling
from ...events.collisions import (  # fmt: skip
    SETS,
    Channel,
    DrawInput,
    Estimate,
    Flows,
    channels,
    finest_scale,
)
from ...grid.phase_space import PhaseSpace
from ...util.arrays import Array, Integers
from ...util.errors import negative_element, raising_element
from ..elements import Elements
from ..team.exchange import Exchange, gathered, total
from . import collision_events as k
from . import deposits as d
from .plan import ChunkGroup, Events, Kept, ThreadMemory, new_events
from .threads import Threads

STORE_LIMIT = 4e9
"""Most bytes of events to keep between the stages of a step; larger sets are redrawn."""
EVENT_BYTES = 6 * 4 + 8 + 8
Tables = Sequence[Array]
"""ln(f/F) and ln F of every cell, one table for each set of events."""
Demands = tuple[Integers, Integers]
"""Total demands for losses and gains over all events, by cell."""
NO_LIMITS = (np.empty(0), np.empty(0))
ALONE = Threads(1)
MOST_CHUNKS = 16
GROUPS_PER_THREAD = 8


class Collider:
    """Draws the events of a step at one site and applies them to states.

    Parameters
    ----------
    grid, elements, sampling : the problem to solve
    threads : threads that share the events; one by default
    exchange : connection to workers that have the same state and share the events
    """

    def __init__(
        self,
        grid: PhaseSpace,
        elements: Elements,
        sampling: Sampling,
        threads: Threads = ALONE,
        exchange: Exchange | None = None,
    ):
        model = elements.model
        self.grid, self.model, self.sampling = grid, model, sampling
        self.threads, self.size = threads, grid.size
        self.cells = len(model.species) * grid.size
        self.channels = channels(model, sampling.symmetrical)
        self.elements = elements
        self.set_momentum_grid(grid)
        self._tables = [self._new_table() for _ in model.species]
        self._exchange = exchange
        plan = self._plan()
        of_chunk = [self.channels[group.channel] for group in plan for _ in group.chunks]
        self._groups = self._shared_out(plan)
        self._process_of = np.array([channel.process for channel in of_chunk], dtype=np.int64)
        self._gain_rows = np.array([not channel.forward for channel in of_chunk], dtype=np.int64)
        self._only_p = not sampling.symmetrical
        self._leg_share = 0.25 if self._only_p else 1.0
        self._scratch = [ThreadMemory(self.cells) for _ in range(self.threads.count)]
        own = sum(len(group.chunks) for group in self._groups)
        capacity = own * self._capacity
        self._stored = capacity * EVENT_BYTES <= STORE_LIMIT
        self._all = new_events(capacity if self._stored else 0)
        self._counts = np.zeros(own, np.int64)
        self._levels = np.empty(self.cells, np.int16)
        self._ln_top = np.zeros(len(model.species))
        self._draw: DrawInput | None = None
        self._signed = np.zeros((2, len(model.processes)))
        self._added = np.zeros((0, 2))
        """Forward and net flow that compensation adds to the collisions of each chunk."""

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid with equally many nodes but different momenta."""
        self.grid = grid
        self._inner = self.elements.inner_weights(grid, self.channels)
        self._geometry = tuple(map(float, grid.momentum_cells)), tuple(map(float, grid.spacing))

    @property
    def memory(self) -> int:
        """Bytes of the stored events and of the accumulators of all threads."""
        kept = sum(part.nbytes for part in self._all)
        return kept + sum(scratch.total.nbytes for scratch in self._scratch)

    # -- plan ------------------------------------------------------------------------------------

    @property
    def _capacity(self) -> int:
        """Most events in a chunk: the paper's samplings have two roots per sample."""
        return k.CHUNK if self.sampling.kinematics == "cm" else 2 * k.CHUNK

    def samples_of(self, channel: Channel) -> int:
        """Return the number of samples of a channel in one set of a step."""
        return self.sampling.samples_of(channel, self.size)

    def _plan(self) -> list[ChunkGroup]:
        """Divide all samples of a step into chunks, and the chunks into groups, one per call.

        Chunks are independent of the number of threads, so floating-point sums are too; groups
        only determine how often threads synchronize.
        """
        chunks = [-(-self.samples_of(channel) // k.CHUNK) for channel in self.channels]
        many = self.threads.count * (self._exchange.size if self._exchange is not None else 1)
        most = min(MOST_CHUNKS, max(1, SETS * sum(chunks) // (GROUPS_PER_THREAD * many)))
        plan, before = [], 0
        for which, (index, channel) in product(range(SETS), enumerate(self.channels)):
            total = self.samples_of(channel)
            for first in range(0, chunks[index], most):
                last = min(first + most, chunks[index])
                count = min(last * k.CHUNK, total) - first * k.CHUNK
                span = slice(before + first, before + last)
                plan.append(ChunkGroup(which, index, first * k.CHUNK, count, span))
            before += chunks[index]
        self._chunks_of_set = sum(chunks)
        return plan

    def _shared_out(self, plan: list[ChunkGroup]) -> list[ChunkGroup]:
        """Return the groups that this worker draws, with chunks renumbered from 0."""
        if self._exchange is None:
            return plan
        rank, size = self._exchange.rank, self._exchange.size
        self._chunks = [
            np.array([c for group in plan[k::size] for c in group.chunks], np.int64)
            for k in range(size)
        ]
        own, before = [], 0
        for group in plan[rank::size]:
            span = slice(before, before + len(group.chunks))
            own.append(replace(group, span=span))
            before = span.stop
        return own

    def _told(self, sums: Array) -> Array:
        """Gather the sums of the chunks of all workers, in the order of the chunks."""
        if self._exchange is None:
            return sums
        rooms = [np.empty((len(chunks), sums.shape[1])) for chunks in self._chunks]
        gathered(self._exchange, sums, rooms)
        every = np.empty((len(self._process_of), sums.shape[1]))
        for chunks, room in zip(self._chunks, rooms, strict=True):
            every[chunks] = room
        return every

    def _of_all(self, parts: list[Integers]) -> Integers:
        """Add the accumulators of all threads of all workers into new memory."""
        own = sum(parts[1:], parts[0].copy())
        return own if self._exchange is None else total(self._exchange, own)

    def _new_table(self) -> tuple[Integers, Integers, Integers]:
        """Allocate cumulative, record and guide of ``sampling_table``."""
        buckets = 1 << max(0, (self.size - 1).bit_length())
        cumulative, record, guide = (
            np.zeros(length, np.int64) for length in (self.size + 1, self.size, buckets)
        )
        return cumulative, record, guide

    # -- one step --------------------------------------------------------------------------------

    def tables(self, number: Integers, unit: float) -> tuple[Array, Array]:
        """Return ln(f/F), ln F of every cell, and f, from N f in units of ``unit``."""
        table = np.empty((self.cells, 2))
        occupancy = np.empty(self.cells)

        def convert(thread: int, a: int) -> None:
            part, species = self._cells_of(a), self.model.species[a]
            d.fill_logarithms(
                number[part], unit, float(species.degeneracy), float(species.statistics),
                table[part], occupancy[part],
            )  # fmt: skip

        self.threads.share(convert, len(self.model.species))
        return table, occupancy

    def draw(
        self, draw: DrawInput, table: Array, occupancy: Array, compensates: bool = True
    ) -> tuple[float, float]:
        """Draw all events of a step; return the weight of physical collisions and the weight lost.

        table, occupancy : ``tables`` of the state
        compensates : whether weights include the factor ``projection.compensation``
        """
        self._compensates = compensates
        self._draw = draw
        self._state = occupancy, self._levels, table

        def prepare(thread: int, a: int) -> None:
            part = self._cells_of(a)
            self._ln_top[a] = k.fill_levels(table[part], self._levels[part])
            self._fill_table(a, draw.mass_squared[a], occupancy)

        self.threads.share(prepare, len(self.model.species))
        sums = np.zeros((len(self._counts), 5))

        def work(scratch: ThreadMemory, group: ChunkGroup) -> None:
            self._generate(scratch, group, self._events(scratch, group), sums[group.span])

        self._run(work)
        sums = self._told(sums)
        self._signed = np.zeros((2, len(self.model.processes)))
        for row, column in zip(self._signed, (0, 2), strict=True):
            np.add.at(row, self._process_of, sums[:, column])
        self._added = sums[:, 3:]
        total, lost, *_ = (float(v) for v in sums.sum(axis=0))
        return total, lost

    def net(
        self, tables: Tables, scale: float, limits: tuple[Array, Array] = NO_LIMITS
    ) -> tuple[Integers, Flows]:
        """Return the net change (sets, cells) due to each set of events, in whole units, and flows.

        An event moves round(scale W (e^x - e^y)), where x and y are from the table of its set.
        """
        for scratch in self._scratch:
            scratch.total[:] = 0
        sums = np.zeros((len(self._counts), 4))
        if self._in_one_call:
            scratch, chunks = self._scratch[0], self._chunks_of_set
            for which, table in enumerate(tables):
                span = slice(which * chunks, (which + 1) * chunks)
                d.apply_group(
                    self._kept(span), table, scale, limits, self._only_p, scratch.w,
                    scratch.total[which], sums[span],
                )  # fmt: skip
            return scratch.total.copy(), self._flows(sums)

        def work(scratch: ThreadMemory, group: ChunkGroup) -> None:
            d.apply_group(
                self._again(scratch, group), tables[group.which], scale, limits, self._only_p,
                scratch.w, scratch.total[group.which], sums[group.span],
            )  # fmt: skip

        self._run(work)
        return self._of_all([s.total for s in self._scratch]), self._flows(self._told(sums))

    @property
    def _in_one_call(self) -> bool:
        """Whether one thread has the events of all channels of a set in contiguous memory."""
        alone = self.threads.pool is None and self._exchange is None
        return alone and self._stored and bool(self._groups)

    def gross(self, table: Array, scale: float) -> Demands:
        """Return gain and loss of every cell in whole units."""

        def work(scratch: ThreadMemory, group: ChunkGroup) -> None:
            events, gain, loss = self._again(scratch, group), scratch.gain, scratch.total[0]
            d.gross_group(events, table, scale, self._only_p, scratch.w, gain, loss)

        loss, gain = self._two_sums(work)
        return gain, loss

    def demands(self, tables: Tables, scale: float) -> Demands:
        """Return the total quanta that all events would take from and add to every cell."""

        def work(scratch: ThreadMemory, group: ChunkGroup) -> None:
            events, table = self._again(scratch, group), tables[group.which]
            d.demands_group(events, table, scale, scratch.w, scratch.total[0], scratch.gain)

        return self._two_sums(work)

    def estimate(self, f: Array, draw: DrawInput) -> Estimate:
        """Estimate C[f] of f (species, nodes) from one event sample."""
        total, lost, table = self.draw_of(draw, f.ravel())
        same = (table,) * SETS
        scale = finest_scale(self.net(same, 0.0)[1])
        net, flows = self.net(same, scale)
        change = net.sum(axis=0)
        if self._added.any():  # gain and loss of collisions only, without compensation
            self.draw_of(draw, f.ravel(), compensates=False)
        gain, loss = self.gross(table, scale)
        null = lost / total if total > 0 else 0.0
        return Estimate(change / scale, gain / scale, loss / scale, flows, null)

    def draw_of(
        self, draw: DrawInput, f: Array, compensates: bool = True
    ) -> tuple[float, float, Array]:
        """Draw the events of a given f; return the weights as ``draw`` does, and the table of f."""
        number = f * np.repeat(self.model.degeneracy, self.size)
        table, occupancy = self.tables(number, 1.0)
        return *self.draw(draw, table, occupancy, compensates), table

    def negative_weight(self, draw: DrawInput, occupancy: Array) -> Array:
        """Return ``Flows.negative_weight`` for newly drawn events."""
        self.draw_of(draw, occupancy)
        return self._flows(np.zeros((len(self._process_of), 4))).negative_weight

    def landing_share(self, draw: DrawInput, occupancy: Array) -> float:
        """Measure the share of drawing time spent on landing, from one chunk of each channel."""
        self.draw_of(draw, occupancy)
        scratch, spent = self._scratch[0], [0.0, 0.0]
        firsts = {group.channel: group for group in reversed(self._groups)}
        for repeat in range(3):  # the first one warms up
            for group in firsts.values():
                times = self._time_landing(scratch, group, draw)
                spent = [a + b if repeat else 0.0 for a, b in zip(spent, times, strict=True)]
        return min(1.0, spent[1] / spent[0])

    def _time_landing(
        self, scratch: ThreadMemory, group: ChunkGroup, draw: DrawInput
    ) -> tuple[float, float]:
        """Return the seconds for drawing and landing one chunk, and for landing it again."""
        first = ChunkGroup(0, group.channel, 0, min(group.count, k.CHUNK), slice(0, 1))
        channel, room = self.channels[group.channel], scratch.events(self._capacity)
        mass, offsets = self._of_legs(channel, draw)
        began = time.perf_counter()
        self._generate(scratch, first, room, np.empty((1, 5)))
        between = time.perf_counter()
        k.bracket_chunk(first.count, mass[:2], self._geometry, 1.0, scratch.w)
        k.land(
            first.count, True, mass, self._geometry, self._spacing2(channel), offsets,
            self._before(channel), scratch.w, scratch.nodes, room, np.zeros(5),
        )  # fmt: skip
        return between - began, time.perf_counter() - between

    def _two_sums(self, work: Callable[[ThreadMemory, ChunkGroup], None]) -> Demands:
        """Run work that adds to both accumulators; return their sums over the threads."""
        for scratch in self._scratch:
            scratch.gain = np.zeros(self.cells, np.int64)
            scratch.total[:] = 0
        self._run(work)
        first = self._of_all([s.total[0] for s in self._scratch])
        return first, self._of_all([s.gain for s in self._scratch])

    # -- pieces ----------------------------------------------------------------------------------

    def _fill_table(self, a: int, mass_squared: float, occupancy: Array) -> None:
        """Fill the sampling table with weights sqrt(f + 0.02 f_max)/E, or equal weights."""
        f, inverse_e = np.empty(0), np.empty(0)
        if self.sampling.pair_sampling == "importance":
            f = occupancy[self._cells_of(a)]
            inverse_e = self.grid.inverse_energies(mass_squared)
        k.sampling_table(f, inverse_e, self.grid.packed, *self._tables[a])

    def _cells_of(self, a: int) -> slice:
        """Return the cells of a species."""
        return slice(a * self.size, (a + 1) * self.size)

    def _events(self, scratch: ThreadMemory, group: ChunkGroup) -> Events:
        """Return the memory for a group's events."""
        if not self._stored:
            return scratch.events(len(group.chunks) * self._capacity)
        return self._kept(group.span)[2]

    def _kept(self, span: slice) -> Kept:
        """Return the stored events of some chunks."""
        part = slice(span.start * self._capacity, span.stop * self._capacity)
        legs, weights, ratios = self._all
        return self._counts[span], self._capacity, (legs[part], weights[part], ratios[part])

    def _again(self, scratch: ThreadMemory, group: ChunkGroup) -> Kept:
        """Return a group's events, redrawn if they were not stored."""
        events = self._events(scratch, group)
        if not self._stored:
            self._generate(scratch, group, events, np.empty((len(group.chunks), 5)))
        return self._counts[group.span], self._capacity, events

    def _of_legs(
        self, channel: Channel, draw: DrawInput
    ) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Return the squared masses of k1, k2, k3 and p, and the first cells of their species."""
        kinds = (*channel.pair, *channel.nodes)
        mass = tuple(float(draw.mass_squared[a]) for a in kinds)
        return mass, tuple(a * self.size for a in kinds)

    def _spacing2(self, channel: Channel) -> float:
        """Return the squared spacing for ``compensation``, 0 without compensation."""
        process = self.model.processes[channel.process]
        return self._compensates * self.sampling.compensated_spacing2(self.grid, process)

    def _before(self, channel: Channel) -> tuple[Any, ...]:
        """Return the argument ``state`` of ``land``."""
        a, b = channel.pair
        return *self._state, float(self._ln_top[a] + self._ln_top[b])

    def _generate(
        self, scratch: ThreadMemory, group: ChunkGroup, events: Events, sums: Array
    ) -> None:
        """Draw and land a group of chunks; sums : weights of each chunk, see ``land``."""
        assert self._draw is not None
        channel, draw = self.channels[group.channel], self._draw
        (k3, p), (mass, offsets) = channel.nodes, self._of_legs(channel, draw)
        process = self.model.processes[channel.process]
        legs = [self.model.index(leg) for leg in process.legs]
        function, parameters = self.elements.compiled[channel.process]
        samples = self.samples_of(channel)
        how = (
            float(process.peak == "t"), 1.0 if self.elements.folds[channel.process] else 2.0,
            self._spacing2(channel), channel.weight(self.grid.cell_volume, SETS * samples),
            float(self.sampling.projection == "nearest"), float(process.built_in),
            k.THROUGH[self.sampling.kinematics],
            4 * self.grid.momentum_max[0] * self.grid.momentum_max[1],
        )  # fmt: skip
        element_m2 = tuple(float(draw.mass_squared[a]) for a in legs)
        fault = np.zeros(6)  # see ``inspect_elements``
        arguments = (
            function, (group.first, group.count, samples, group.which),
            (group.channel, draw.step, self.sampling.seed, draw.site),
            (self._tables[p], self._tables[k3]), self._geometry, mass,
            (element_m2, self.elements.screening(channel.process, draw.screening2), parameters),
            how, self._inner[group.channel], offsets, self._before(channel),
            (scratch.w, scratch.words, scratch.more, scratch.nodes),
            events, (self._counts[group.span], sums, fault),
        )  # fmt: skip
        try:
            found = k.draw_group(*arguments)
        except Exception as error:
            raise raising_element(process.name, error) from error
        if found < 0:
            value, s, t = (float(v) for v in fault[3:])
            raise negative_element(process.name, value, s, t, sum(element_m2) - s - t)

    def _run(self, work: Callable[[ThreadMemory, ChunkGroup], None]) -> None:
        """Do the work for all groups, on all threads."""
        groups, scratch = self._groups, self._scratch
        self.threads.share(lambda thread, item: work(scratch[thread], groups[item]), len(groups))

    def _flows(self, sums: Array) -> Flows:
        """Sum the flows of the chunks in order, by process; unsymmetric channels count one leg.

        The weight that compensation adds to events is not due to collisions and is subtracted.
        """
        totals = np.zeros((2, len(self.model.processes)))
        forward, net = self._added.T
        for flows, added, rows in (
            (sums[:, 0], forward, self._gain_rows), (sums[:, 1], forward - net, 1 - self._gain_rows)
        ):  # fmt: skip
            np.add.at(totals, (rows, self._process_of), (flows - added) * self._leg_share)
        totals = np.maximum(totals, 0.0)  # rounding may give negative values
        wanted, refused = float(sums[:, 2].sum()), float(sums[:, 3].sum())
        return Flows(totals[0], totals[1], wanted, refused, self._signed)
