"""C[f] of a given f on a GPU, from independent draws of events that run in parallel.

No event is kept: drawing adds net changes and gains at once, in quanta chosen from a few blocks of
the first draw. A draw that needs different quanta is repeated with them.
"""

import dataclasses
import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numba import float64

from ...config.settings import Sampling
from ...events.collisions import GROSS_BITS, DrawInput, Flows, finest_scale
from ...events.estimates import Estimates
from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import MassModel, unsolved
from ...model.model import Model
from ...util.arrays import Array, Integers
from ..cpu.masses import site_masses
from ..elements import Elements
from . import driver, kernels
from . import layout as k
from .device_problem import DeviceProblem
from .driver import kernel
from .layout import THREADS
from .memory import MemoryPlan, check_memory
from .physics import cuda, keep_sums, physics
from .process_rates import flows_of, rates_of, report_fault

SIDE_BY_SIDE = 2**26
"""Bytes for draws done in parallel: far less than a GPU has, far more than keep it busy."""
KEPT = 2**27
"""Most bytes of work space that stay on the GPU for the next estimates."""
PILOT = 256
"""Number of blocks of the first draw used to choose the quanta."""
GOLDEN = (math.sqrt(5) - 1) / 2
COARSEST, FINEST = GROSS_BITS - 3, GROSS_BITS + 2
"""Range of bits in the sum of all gross rates within which a draw is accepted."""
NET, GAIN, LOSS, ERROR = range(4)
"""Results for every cell: means, and the standard error of NET."""


@kernel
def add_up_channels(channels, sums, blocks, found):
    """Sum over the blocks of a channel in a draw, and count the illegal blocks."""
    shared = cuda.shared.array(THREADS, float64)
    channel, row = cuda.blockIdx.x, cuda.blockIdx.y
    everything, lost, faults, below, forward, net = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    begin = row * blocks + channels[channel, k.FIRST_BLOCK] + cuda.threadIdx.x
    for block in range(begin, row * blocks + channels[channel, k.LAST_BLOCK], THREADS):
        everything += sums[block, k.EVERYTHING]
        lost += sums[block, k.LOST]
        below += sums[block, k.BELOW]
        forward += sums[block, k.FORWARD]
        net += sums[block, k.NET]
        if physics.illegal(sums[block, k.NEGATIVE], sums[block, k.POSITIVE]):
            faults += 1.0
    keep_sums(
        shared, (everything, lost, 0.0, below, forward, net, 0.0, faults), found[row, channel]
    )


@kernel
def average(change, units, draws, species, nodes, before, found, squared):
    """Update means over draws and the scatter of the net change, draw by draw (Welford).

    change : net changes and gains of each draw, in units of that draw; before : draws so far;
    squared : sum of the squared deviations
    """
    cell = cuda.grid(1)
    if cell >= found.shape[1]:
        return
    per_state = 1.0 / species[cell // nodes, 0]
    net, gain, loss, spread = 0.0, 0.0, 0.0, 0.0
    if before > 0:
        net, gain, loss = found[NET, cell], found[GAIN, cell], found[LOSS, cell]
        spread = squared[cell]
    count = before
    for draw in range(draws):
        count += 1
        unit, part = units[draw] * per_state, 1.0 / count
        moved, gained = change[draw, 2 * cell], change[draw, 2 * cell + 1]
        apart = moved * unit - net
        net += apart * part
        spread += apart * (moved * unit - net)
        gain += (gained * unit - gain) * part
        loss += ((gained - moved) * unit - loss) * part
    found[NET, cell], found[GAIN, cell], found[LOSS, cell] = net, gain, loss
    squared[cell] = spread
    found[ERROR, cell] = math.sqrt(spread / ((count - 1.0) * count)) if count > 1 else math.nan


class Estimator:
    """GPU part of ``collision_term``: holds no state and cannot take steps."""

    def __init__(self, problem: DeviceProblem):
        self.elements, self._problem = problem.elements, problem
        self._draw_kernel = problem.drawing(apart=True)
        self.spare: list[DrawMemory] = []
        """Work space not in use at present."""

    def squares(self, f: Array) -> Array:
        """Implement ``contract.Estimator``; nodes of equal momentum are merged."""
        problem, model = self._problem, self._problem.model
        gap, which = self._gap
        held = [n * np.bincount(which, row) for n, row in zip(model.degeneracy, f, strict=True)]
        squares = np.zeros((1, problem.width))
        squares[0, : problem.species] = model.constant_mass_squared
        if site_masses(np.stack(held)[None], 1.0, 0, 1, gap.numbers, squares) >= 0:
            raise unsolved()
        return squares[0]

    @cached_property
    def _gap(self) -> tuple[MassModel, Integers]:
        """Gap equation with one node per distinct momentum, and the map from nodes to these."""
        p2, which = np.unique(self._problem.grid.momentum_squared, return_inverse=True)
        gap = MassModel.of(self._problem.grid, self._problem.model)
        return dataclasses.replace(gap, p2=p2), which

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Implement ``contract.Estimator``."""
        rows = DrawMemory.rows_of(self._problem, len(batches))
        try:
            room = self.spare.pop()  # only one thread can get it
        except IndexError:
            room = None
        if room is None or room.rows < rows:
            room = DrawMemory(self._problem, rows)
        given = self._draw_kernel, room, f, squares, batches
        draws, problem = IndependentDraws(*given, self._problem.channel_floats), self._problem

        def found() -> Estimates:
            result = draws.result()
            if problem.compensates(squares[: problem.species]):  # gain and loss of collisions alone
                plain = IndependentDraws(*given, problem.plain_floats).result()
                result = dataclasses.replace(result, gain=plain.gain, loss=plain.loss)
            if room.allocated <= KEPT:
                self.spare[:] = [room]
            return result

        return found


def estimator(grid: PhaseSpace, model: Model, sampling: Sampling, precision: str) -> Estimator:
    """Return the estimator of a model on a grid; the last one is kept, with its work space."""
    ours = all(process.built_in for process in model.processes)
    key = (grid, model.value, sampling, precision) if ours else None  # user functions may change
    found = _last.get(key)
    if found is None:
        check_memory(MemoryPlan(grid, model, sampling, precision), driver.free_memory())
        found = Estimator(DeviceProblem(grid, model, sampling, precision, Elements(model)))
        _last.clear()
        if ours:
            _last[key] = found
    return found


_last: dict[Any, Estimator] = {}
"""The last estimator, by its arguments."""


class DrawMemory:
    """Work space for several draws at once."""

    def __init__(self, problem: DeviceProblem, rows: int):
        self.problem, self.rows = problem, rows
        cells, kinds, blocks = problem.cells, problem.species, problem.blocks
        self.allocated = 0
        room, there = self._new, problem.upload
        self.change = room((rows, 2 * cells), np.int64)
        self.halves = self.change.reshape(2 * rows, cells)
        self.tables = room((1, cells, 2), np.float64)
        self.table = self.tables[0]
        self.tops = room(kinds, np.float64)
        self.prefix = room((kinds, problem.nodes), np.int32)
        self.tiles = room((kinds, problem.tiles), np.int64)
        self.cumulative = room((kinds, problem.nodes + 1), np.int64)
        self.guide = room((kinds, problem.buckets), np.int32)
        self.sums = room((max(1, rows * blocks), k.SUMS), np.float64)
        self.flows = room((rows, max(1, len(problem.channels)), k.SUMS), np.float64)
        self.units = room(rows, np.float64)
        self.given = room(cells + kinds, np.float64)
        self.squares = room((1, problem.width), np.float64)
        self.found, self.squared = room((4, cells), np.float64), room(cells, np.float64)
        control, self.fresh = problem.fresh_control(1.0)
        self.control = there(control, np.int64)
        self.scalars = there(self.fresh, np.float64)
        chosen = np.arange(blocks)
        if blocks > PILOT:
            chosen = np.unique((np.arange(PILOT) * GOLDEN % 1.0 * blocks).astype(int))
        self.chosen = problem.block_rows[chosen]
        self.pilot = there(self.chosen, np.int64)
        self.pilot_sums = room((max(1, len(chosen)), k.SUMS), np.float64)

    def _new(self, shape: Any, kind: Any) -> Any:
        """Return uninitialized memory on the GPU."""
        array = cuda.device_array(shape, kind)
        self.allocated += int(array.nbytes)
        return array

    @staticmethod
    def rows_of(problem: DeviceProblem, batches: int) -> int:
        """Return how many of the draws are done at once."""
        of_one = 2 * 8 * problem.cells + 8 * k.SUMS * problem.blocks
        return max(1, min(batches, SIDE_BY_SIDE // of_one, 65535))


class IndependentDraws:
    """Independent draws of events from one state, launched on construction."""

    def __init__(
        self, drawing: Any, room: DrawMemory, f: Array, squares: Array, batches: range, floats: Any
    ):
        """drawing : kernel that draws; floats : its floating-point numbers of the channels"""
        self._draw_kernel, self._channel_floats = drawing, floats
        self.room, self.problem, self.f, self.squares = room, room.problem, f, squares
        self.batches, self.rows = batches, DrawMemory.rows_of(room.problem, len(batches))
        self._scalars = room.fresh.copy()
        room.scalars.copy_to_device(self._scalars)
        room.squares.copy_to_device(np.ascontiguousarray(squares[None]))
        room.given.copy_to_device(np.append(f.ravel(), f.max(axis=1)))
        self._prepare()
        self._scale = self._choose_scale() if self.problem.blocks else 1.0
        self._begin(0)
        self._found = np.full(room.found.shape, np.nan)  # allocated while the GPU draws

    def result(self) -> Estimates:
        """Return the estimates, once all draws are done."""
        problem, parts = self.problem, []
        for first in range(0, len(self.batches), self.rows):
            if first > 0:
                self._prepare()
                self._begin(first)
            parts.append(self._add_up(first))
        self.room.found.copy_to_host(self._found)
        sums = np.concatenate(parts)
        total, lost = sums[..., k.EVERYTHING].sum(axis=1), sums[..., k.LOST].sum(axis=1)
        null = np.divide(lost, total, out=np.zeros(len(sums)), where=total > 0)
        net, gain, loss, error = self._found
        return Estimates(net, gain, loss, error, flows_of(problem, rates_of(sums)), null)

    # -- launches --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Compute logarithms and sampling tables of f; clear the changes."""
        problem, room = self.problem, self.room
        blocks = (problem.tiles, problem.species)
        kernels.prepare[blocks, THREADS](
            room.control, 0, room.scalars, room.squares, room.given, room.halves,
            problem.species_numbers, room.halves, problem.p2, room.tables,
            room.tops, room.halves, room.prefix, room.tiles,
        )  # fmt: skip
        kernels.cumulate[blocks, THREADS](
            room.control, 0, room.prefix, room.tiles, problem.shift, room.cumulative, room.guide
        )

    def _draw(self, blocks: Any, draws: int, first: int, change: Any, sums: Any) -> None:
        """Draw the events of some blocks in ``draws`` draws, starting with draw ``first``."""
        problem, room = self.problem, self.room
        self._draw_kernel[(blocks.shape[0], draws), THREADS](
            room.control, room.scalars, room.squares, problem.geometry, problem.channel_integers,
            self._channel_floats, blocks, room.cumulative, room.guide, room.table,
            room.tops, change, sums, self.batches[first], problem.shift,
        )  # fmt: skip

    def _choose_scale(self) -> float:
        """Return quanta per unit of N f, from blocks spread over the first draw."""
        room = self.room
        with self.problem.compiling():
            self._draw(room.pilot, 1, 0, room.change, room.pilot_sums)
        sums = room.pilot_sums.copy_to_host().sum(axis=0)
        part = room.chosen[:, k.COUNT].sum() / self.problem.block_rows[:, k.COUNT].sum()
        forward, net = sums[k.FORWARD] / part, sums[k.NET] / part
        return 0.5 * finest_scale(Flows(forward, np.maximum(forward - net, 0.0), 0.0, 0.0))

    def _set_scale(self, scale: float) -> None:
        self._scalars[k.SCALE] = scale
        self.room.scalars.copy_to_device(self._scalars)

    def _begin(self, first: int) -> None:
        """Launch the draws that are done at once, starting with draw ``first``."""
        problem, room = self.problem, self.room
        count = min(self.rows, len(self.batches) - first)
        if problem.blocks:
            self._set_scale(self._scale)
            self._draw(problem.block_table, count, first, room.change, room.sums)
            add_up_channels[(len(problem.channels), count), THREADS](
                problem.channel_integers, room.sums, problem.blocks, room.flows
            )

    def _add_up(self, first: int) -> Array:
        """Return the channel sums of the draws in progress, and average their changes."""
        problem, room = self.problem, self.room
        count = min(self.rows, len(self.batches) - first)
        scales, sums = np.full(room.rows, self._scale), np.zeros((count, 0, k.SUMS))
        if problem.blocks:
            sums = room.flows.copy_to_host()[:count]
            self._look_for_faults(first, sums)
            self._redraw(first, sums, scales)
        room.units.copy_to_device(1.0 / scales)
        average[-(-problem.cells // THREADS), THREADS](
            room.change, room.units, count, problem.species_numbers, problem.nodes, first,
            room.found, room.squared,
        )  # fmt: skip
        return sums

    def _look_for_faults(self, first: int, sums: Array) -> None:
        """Raise InputError for the first illegal matrix element."""
        problem = self.problem
        for row, channel in np.argwhere(sums[..., k.NEGATIVE] > 0)[:1]:
            draw = DrawInput.of(self.batches[first + int(row)], self.squares, problem.species)
            report_fault(problem, int(problem.first_blocks[channel]), draw, self.f)

    def _redraw(self, first: int, sums: Array, scales: Array) -> None:
        """Repeat draws whose quanta are too coarse or too fine, with quanta of their own."""
        rates = rates_of(sums).sum(axis=1)
        share = 1.0 if self.problem.sampling.symmetrical else 0.25
        for row, (there, back, *_) in enumerate(share * rates):
            own = finest_scale(Flows(there, back, 0.0, 0.0))
            finer = math.log2(scales[row] / own)
            if COARSEST - GROSS_BITS <= finer <= FINEST - GROSS_BITS:
                continue
            scales[row] = own
            change = self.room.change[row : row + 1]
            change.copy_to_device(np.zeros(change.shape, np.int64))
            self._set_scale(own)
            self._draw(self.problem.block_table, 1, first + row, change, self.room.sums)
