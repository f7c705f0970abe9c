"""The CPU backend: threads over chunks of events, private integer accumulators.

Which thread takes which chunk never matters: deposits are integers, and everything summed in
floating point is summed per chunk and then in the order of the chunks.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from ..collisions import Channel, Draw, Flows, Sampling, channels
from ..errors import Halted, InputError, negative_element
from ..grid import PhaseSpace
from ..model import Model
from ..units import HBARC
from . import cpu_kernels as k
from .matrix_elements import compile_error, evaluator

STORE_LIMIT = 4e9
"""Bytes of events to keep between the stages of a step; beyond, they are drawn again."""
EVENT_BYTES = 6 * 4 + 8 + 8
MORE_WORDS = 1 << 20
"""Marks the channel number when a sample needs more than four random words."""


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class CpuBackend:
    """Draws the events of a step and applies them to states, on all cores.

    Parameters
    ----------
    grid, model, sampling : what to solve
    threads : 0 for all cores
    """

    name = "cpu"

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, threads: int = 0):
        self.grid, self.model, self.sampling = grid, model, sampling
        self.threads = threads or available_cores()
        self.size = grid.size
        self.cells = len(model.species) * grid.size
        self.channels = channels(model, sampling.symmetrical)
        if self.cells >= 2**31:
            raise InputError(
                f"grid.momentum_cells = {list(grid.momentum_cells)}: {len(model.species)} species "
                "times nodes must stay below 2^31"
            )
        if sampling.samples * grid.size >= 2**32:
            raise InputError(
                f"collisions.samples = {sampling.samples}: samples times nodes must stay below "
                f"2^32; use at most {2**32 // grid.size - 1}"
            )
        self.clamped = 0
        """Matrix elements that rounding had made negative and that were taken as 0."""
        memory: dict = {}
        self._elements = [evaluator(process, memory) for process in model.processes]
        self._folds = [self._foldable(index) for index in range(len(model.processes))]
        self._geometry = (
            tuple(float(n) for n in grid.momentum_cells),
            tuple(float(h) for h in grid.spacing),
        )
        self._tables = [self._new_table() for _ in model.species]
        self._chunks = self._plan()
        of_chunk = [self.channels[index] for index, _, _ in self._chunks]
        self._process_of = np.array([channel.process for channel in of_chunk])
        self._gain_rows = np.array([0 if channel.forward else 1 for channel in of_chunk])
        self._leg_share = np.array([0.25 if channel.only_p else 1.0 for channel in of_chunk])
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self._scratch = [_Scratch(self.cells) for _ in range(self.threads)]
        capacity = len(self._chunks) * self._capacity
        self._stored = capacity * EVENT_BYTES <= STORE_LIMIT
        rows = capacity if self._stored else 0
        self._legs = np.empty((rows, 6), np.int32)
        self._weights = np.empty(rows)
        self._ratios = np.empty(rows)
        self._counts = np.zeros(len(self._chunks), np.int64)
        self._draw: Draw | None = None
        self.interrupt: object = False
        """Once it is true, work in hand is dropped and Halted raised."""

    # -- plan ------------------------------------------------------------------------------------

    @property
    def _capacity(self) -> int:
        """Most events a chunk can hold: the paper's samplings have two roots."""
        return k.CHUNK if self.sampling.sampling == "cm" else 2 * k.CHUNK

    def samples_of(self, channel: Channel) -> int:
        """Samples of a channel in one step."""
        return max(1, round(self.sampling.samples * self.size * channel.share))

    def _plan(self) -> list[tuple[int, int, int]]:
        """(channel, first sample, count) of every chunk."""
        plan = []
        for index, channel in enumerate(self.channels):
            total = self.samples_of(channel)
            plan += [
                (index, first, min(k.CHUNK, total - first)) for first in range(0, total, k.CHUNK)
            ]
        return plan

    def _foldable(self, index: int) -> bool:
        """Whether |M|^2 is symmetric in t and u, as equal particles make it."""
        process = self.model.processes[index]
        if not (process.identical and process.peak == "t"):
            return False
        kinds = sorted(set(process.legs))  # equal legs, and only they, have equal masses
        m2 = tuple(0.04 + 0.05 * kinds.index(leg) for leg in process.legs)
        s = np.repeat([0.8, 2.0, 7.0], 5)
        t = (sum(m2) - s) * np.tile([0.1, 0.25, 0.4, 0.6, 0.8], 3)
        u = sum(m2) - s - t
        at_t = self.evaluate(index, s, t, m2, 0.3, -t, -u)
        at_u = self.evaluate(index, s, u, m2, 0.3, -u, -t)
        return bool(np.allclose(at_t, at_u, rtol=1e-9, atol=0))

    def evaluate(
        self,
        index: int,
        s: NDArray[np.float64],
        t: NDArray[np.float64],
        m2: tuple[float, ...],
        screening2: float,
        q2: NDArray[np.float64],
        qu2: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """|M|^2 of a process at given s and t [GeV^2]."""
        process = self.model.processes[index]
        function, parameters = self._elements[index]
        out = np.empty(len(s))
        w = np.zeros(k.ROWS * k.CHUNK)
        for first in range(0, len(s), k.CHUNK):
            part = slice(first, min(first + k.CHUNK, len(s)))
            count = part.stop - part.start
            for row, values in ((k.S, s), (k.T, t), (k.Q2, q2), (k.QU2, qu2)):
                w[row : row + count] = values[part]
            try:
                function(count, m2, screening2, self._ekt, parameters, w)
            except (NumbaError, AttributeError, TypeError) as error:
                raise compile_error(process, error) from None
            out[part] = w[k.M2 : k.M2 + count]
        return out

    @property
    def _ekt(self) -> float:
        return 1.0 if self.model.screening.ekt else 0.0

    def _new_table(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """cumulative, record and alias of ``sampling_table``."""
        buckets = 1 << max(0, (self.size - 1).bit_length())
        return (
            np.zeros(self.size + 1, np.int64),
            np.empty(self.size, np.int64),
            np.empty(buckets, np.int64),
        )

    # -- one step --------------------------------------------------------------------------------

    def tables(
        self, number: NDArray[np.int64], unit: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """ln(f/F), ln F of every cell, and f, from N f in units of ``unit``."""
        table = np.empty((self.cells, 2))
        occupancy = np.empty(self.cells)

        def convert(a: int) -> None:
            part = slice(a * self.size, (a + 1) * self.size)
            species = self.model.species[a]
            k.logarithms(
                number[part],
                unit,
                float(species.degeneracy),
                float(species.statistics),
                table[part],
                occupancy[part],
            )

        self._each(convert, range(len(self.model.species)))
        return table, occupancy

    def draw(self, draw: Draw, occupancy: NDArray[np.float64]) -> tuple[float, float]:
        """Draw all events of a step; returns (weight of physical collisions, part lost)."""
        self._draw = draw
        self._occupancy = occupancy
        self._each(
            lambda a: self._fill_table(a, draw.mass_squared[a], occupancy),
            range(len(self.model.species)),
        )
        sums = np.zeros((len(self._chunks), 2))

        def work(scratch: _Scratch, chunk: int) -> None:
            legs, weights, ratios = self._events(scratch, chunk)
            count, sums[chunk, 0], sums[chunk, 1] = self._generate(
                scratch, chunk, legs, weights, ratios
            )
            self._counts[chunk] = count

        self._run(work)
        total, lost = (float(v) for v in sums.sum(axis=0))
        return total, lost

    def net(
        self,
        table: NDArray[np.float64],
        scale: float,
        limits: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> tuple[NDArray[np.int64], Flows]:
        """Change of every cell in whole units: round(scale W (e^x - e^y)) per event."""
        for scratch in self._scratch:
            scratch.total[:] = 0
        sums = np.zeros((len(self._chunks), 4))

        def work(scratch: _Scratch, chunk: int) -> None:
            count, legs, weights, ratios = self._again(scratch, chunk)
            row = sums[chunk]
            row[0], row[1] = k.amounts(count, legs, weights, ratios, table, scratch.w)
            if limits is not None:
                row[2], row[3] = k.limit(count, legs, ratios, *limits, scratch.w)
            if self._channel(chunk).only_p:
                k.deposit_p(count, scale, legs, scratch.w, scratch.total)
            else:
                k.deposit(count, scale, legs, ratios, scratch.w, scratch.total)

        self._run(work)
        return self._reduce([s.total for s in self._scratch]), self._flows(sums)

    def gross(
        self, table: NDArray[np.float64], scale: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Gain and loss of every cell in whole units."""
        for scratch in self._scratch:
            scratch.gain = np.zeros(self.cells, np.int64)
            scratch.total[:] = 0

        def work(scratch: _Scratch, chunk: int) -> None:
            count, legs, weights, ratios = self._again(scratch, chunk)
            k.amounts(count, legs, weights, ratios, table, scratch.w)
            k.deposit_gross(
                count,
                scale,
                legs,
                ratios,
                weights,
                self._channel(chunk).only_p,
                scratch.w,
                scratch.gain,
                scratch.total,
            )

        self._run(work)
        gain = self._reduce([s.gain for s in self._scratch])
        return gain, self._reduce([s.total for s in self._scratch])

    def demands(
        self, table: NDArray[np.float64], scale: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What all events together want to take from, and to put into, every cell."""
        for scratch in self._scratch:
            scratch.gain = np.zeros(self.cells, np.int64)
            scratch.total[:] = 0

        def work(scratch: _Scratch, chunk: int) -> None:
            count, legs, weights, ratios = self._again(scratch, chunk)
            k.amounts(count, legs, weights, ratios, table, scratch.w)
            k.demands(count, scale, legs, ratios, scratch.w, scratch.total, scratch.gain)

        self._run(work)
        loss = self._reduce([s.total for s in self._scratch])
        return loss, self._reduce([s.gain for s in self._scratch])

    # -- pieces ----------------------------------------------------------------------------------

    def _fill_table(self, a: int, mass_squared: float, occupancy: NDArray[np.float64]) -> None:
        """Weights sqrt(f + 0.02 f_max)/E, or equal ones."""
        if self.sampling.pairs == "uniform":
            weight = np.ones(self.size)
        else:
            f = occupancy[a * self.size : (a + 1) * self.size]
            highest = f.max()
            weight = self.grid.inverse_energies(mass_squared)
            if highest > 0:
                weight *= np.sqrt(f + 0.02 * highest)
        k.sampling_table(weight, self.grid.packed, *self._tables[a])

    def _channel(self, chunk: int) -> Channel:
        return self.channels[self._chunks[chunk][0]]

    def _events(self, scratch: _Scratch, chunk: int) -> tuple[NDArray, NDArray, NDArray]:
        """Where a chunk's events are kept."""
        if not self._stored:
            return scratch.events(self._capacity)
        part = slice(chunk * self._capacity, (chunk + 1) * self._capacity)
        return self._legs[part], self._weights[part], self._ratios[part]

    def _again(self, scratch: _Scratch, chunk: int) -> tuple[int, NDArray, NDArray, NDArray]:
        """A chunk's events, drawn again if they were not kept."""
        legs, weights, ratios = self._events(scratch, chunk)
        if not self._stored:
            self._generate(scratch, chunk, legs, weights, ratios)
        return int(self._counts[chunk]), legs, weights, ratios

    def _generate(
        self, scratch: _Scratch, chunk: int, legs: NDArray, weights: NDArray, ratios: NDArray
    ) -> tuple[int, float, float]:
        """Draw and land one chunk: (events, all weight, lost weight)."""
        assert self._draw is not None
        index, first, count = self._chunks[chunk]
        channel, draw, w = self.channels[index], self._draw, scratch.w
        samples = self.samples_of(channel)
        (k3, p), (k1, k2) = channel.nodes, channel.pair
        mass = draw.mass_squared
        m2 = (float(mass[k1]), float(mass[k2]), float(mass[k3]), float(mass[p]))
        seed = self.sampling.seed
        k.draw_words(first, count, index, draw.step, 0, seed, scratch.words)
        tables = (self._tables[p], self._tables[k3])
        k.draw_pairs(
            first, count, samples, scratch.words, *tables, self._geometry, w, scratch.nodes
        )
        size = self.size
        offsets = (k1 * size, k2 * size, k3 * size, p * size)
        factor = channel.factor * self.grid.cell_volume / ((2 * np.pi) ** 3 * 4 * samples * HBARC)
        place = (offsets, self._occupancy, w, scratch.nodes)
        if self.sampling.sampling == "cm":
            self._scatter(channel, count, m2, w)
            if self.sampling.projection == "nearest":
                return k.land_nearest(count, self._geometry, factor, *place, legs, weights, ratios)
            k.bracket_chunk(count, m2[:2], self._geometry, factor, w)
            return k.land_conserving(count, m2[:2], self._geometry, *place, legs, weights, ratios)
        k.draw_words(first, count, index | MORE_WORDS, draw.step, 0, seed, scratch.more)
        k.draw_box(count, scratch.words, scratch.more, self._geometry, scratch.nodes, w)
        events, everything, lost = 0, 0.0, 0.0
        for branch in (1.0, -1.0):
            self._root(channel, count, m2, branch, w)
            more, weight, gone = k.land_nearest(
                count, self._geometry, factor, *place,
                legs[events:], weights[events:], ratios[events:],
            )  # fmt: skip
            events, everything, lost = events + more, everything + weight, lost + gone
        return events, everything, lost

    def _scatter(
        self, channel: Channel, count: int, m2: tuple[float, ...], w: NDArray[np.float64]
    ) -> None:
        """k1 and |M|^2 of a chunk through the centre-of-mass frame."""
        assert self._draw is not None
        peak = 1.0 if self.model.processes[channel.process].peak == "t" else 0.0
        span = 1.0 if self._folds[channel.process] else 2.0
        angle = (self._draw.screening2, peak, span)
        k.scatter_chunk(count, m2, angle, self.grid.rest_inverse_energy, w)
        self._element(channel, count, self._draw, w)

    def _root(
        self, channel: Channel, count: int, m2: tuple[float, ...], branch: float, w: NDArray
    ) -> None:
        """k1 and |M|^2 of a chunk through one root of the paper's delta function."""
        assert self._draw is not None
        area = 4 * self.grid.momentum_max[0] * self.grid.momentum_max[1]
        k.roots_chunk(count, m2, area, branch, self.sampling.sampling == "k3", w)
        self._element(channel, count, self._draw, w)

    def _element(self, channel: Channel, count: int, draw: Draw, w: NDArray) -> None:
        """|M|^2 of a chunk; a negative or undefined one stops the run and says where."""
        process = self.model.processes[channel.process]
        legs = [self.model.index(leg) for leg in process.legs]
        m2 = tuple(float(draw.mass_squared[a]) for a in legs)
        function, parameters = self._elements[channel.process]
        try:
            function(count, m2, draw.screening2, self._ekt, parameters, w)
        except (NumbaError, AttributeError, TypeError) as error:
            raise compile_error(process, error) from None
        worst, value, largest, clamped = k.inspect_elements(count, w)
        self.clamped += clamped
        if worst >= 0 and not -1e-9 * largest <= value < 1e300:
            s, t = float(w[k.S + worst]), float(w[k.T + worst])
            raise negative_element(process.name, value, s, t, sum(m2) - s - t)

    def _each(self, function: Callable[[int], None], items: Sequence[int]) -> None:
        if self._pool is None or len(items) == 1:
            for item in items:
                function(item)
        else:
            list(self._pool.map(function, items))

    def _run(self, work: Callable[[_Scratch, int], None]) -> None:
        """All chunks, on all threads; a free thread takes the next chunk."""
        counter = itertools.count()

        def worker(thread: int) -> None:
            for chunk in iter(counter.__next__, None):
                if chunk >= len(self._chunks):
                    return
                if self.interrupt:
                    raise Halted
                work(self._scratch[thread], chunk)

        if self._pool is None:
            worker(0)
            return
        for done in [self._pool.submit(worker, thread) for thread in range(self.threads)]:
            done.result()

    @staticmethod
    def _reduce(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        total = parts[0].copy()
        for part in parts[1:]:
            total += part
        return total

    def _flows(self, sums: NDArray[np.float64]) -> Flows:
        """Sums of the chunks, in their order, by process; unsymmetrical channels count one leg."""
        totals = np.zeros((2, len(self.model.processes)))
        for column, rows in enumerate((self._gain_rows, 1 - self._gain_rows)):
            np.add.at(totals, (rows, self._process_of), sums[:, column] * self._leg_share)
        return Flows(totals[0], totals[1], float(sums[:, 2].sum()), float(sums[:, 3].sum()))


class _Scratch:
    """What one thread needs for one chunk, and its accumulators."""

    def __init__(self, cells: int):
        self.w = np.zeros(k.ROWS * k.CHUNK)
        self.words = np.empty(4 * k.CHUNK, np.uint64)
        self.more = np.empty(4 * k.CHUNK, np.uint64)
        self.nodes = np.empty(4 * k.CHUNK, np.int64)
        self.total = np.zeros(cells, np.int64)
        self.gain = np.zeros(0, np.int64)
        self._own: tuple[NDArray, NDArray, NDArray] | None = None

    def events(self, capacity: int) -> tuple[NDArray, NDArray, NDArray]:
        """Room for the events of one chunk."""
        if self._own is None:
            self._own = (np.empty((capacity, 6), np.int32), np.empty(capacity), np.empty(capacity))
        return self._own
