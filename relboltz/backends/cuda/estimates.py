"""C[f] of a given f on a GPU: independent draws of events side by side, added up where they are.

No event is kept: drawing moves net changes and gains at once, in quanta that a few blocks of the
first draw have chosen. A draw that turns out to need others is done again with them.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numba import float64

from ...arrays import Array
from ...events.collisions import GROSS_BITS, Draw, Flows, finest_scale
from ...events.estimates import Estimates
from ...grid import PhaseSpace
from ...model import Model
from ...settings import Sampling
from ..elements import Elements
from . import driver, kernels
from . import layout as k
from .driver import kernel
from .events import APART
from .flows import flows_of, rates_of, report_fault
from .layout import THREADS
from .memory import Plan, check_memory
from .physics import cuda, keep_sums, physics
from .problem import Problem

SIDE_BY_SIDE = 2**28
"""Bytes for draws that are done at once: far less than a GPU has, far more than fill it."""
PILOT = 256
"""Blocks of the first draw that choose the quanta."""
GOLDEN = (math.sqrt(5) - 1) / 2
COARSEST, FINEST = GROSS_BITS - 6, GROSS_BITS + 2
"""Binary digits of the sum of all gross rates with which a draw stands."""
NET, GAIN, LOSS, ERROR, SPREAD, ROWS = range(6)
"""What is found of every cell: means, the standard error, and the sum of squared deviations."""


@kernel
def add_up_channels(channels, sums, blocks, found):
    """Sums over the blocks of a channel in a draw, and how many of these are illegal."""
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
def average(change, units, species, nodes, before, found):
    """Means over draws and the scatter of the net change, draw after draw (Welford).

    change : net changes and gains of each draw, in units of its own; before : draws so far
    """
    cell = cuda.grid(1)
    if cell >= found.shape[1]:
        return
    per_state = 1.0 / species[cell // nodes, 0]
    net, gain, loss, spread = 0.0, 0.0, 0.0, 0.0
    if before > 0:
        net, gain, loss = found[NET, cell], found[GAIN, cell], found[LOSS, cell]
        spread = found[SPREAD, cell]
    count = before
    for draw in range(units.size):
        count += 1
        unit, part = units[draw] * per_state, 1.0 / count
        apart = change[2 * draw, cell] * unit - net
        net += apart * part
        spread += apart * (change[2 * draw, cell] * unit - net)
        gain += (change[2 * draw + 1, cell] * unit - gain) * part
        lost = change[2 * draw + 1, cell] - change[2 * draw, cell]
        loss += (lost * unit - loss) * part
    found[NET, cell], found[GAIN, cell], found[LOSS, cell] = net, gain, loss
    found[SPREAD, cell] = spread
    found[ERROR, cell] = math.sqrt(spread / ((count - 1.0) * count)) if count > 1 else math.nan


class Estimator:
    """What ``collision_term`` needs of a GPU: no state, and nothing for steps."""

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, precision: str):
        ours = all(process.built_in for process in model.processes)
        find = known if ours else known.__wrapped__  # a user's function may have changed
        plan, self._problem = find(grid, model, sampling, precision)
        check_memory(plan, driver.free_memory())
        self.elements = self._problem.elements

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """See ``contract.Estimator``."""
        return Draws(self._problem, f, squares, batches).result


@lru_cache(maxsize=1)
def known(
    grid: PhaseSpace, model: Model, sampling: Sampling, precision: str
) -> tuple[Plan, Problem]:
    """How much memory a model on a grid takes, and what a GPU knows of it."""
    plan = Plan(grid, model, sampling, precision)
    check_memory(plan, driver.free_memory())
    return plan, Problem(grid, model, sampling, precision, Elements(model))


class Draws:
    """Independent draws of events from one state, on their way once this is made."""

    def __init__(self, problem: Problem, f: Array, squares: Array, batches: range):
        self.problem, self.f, self.squares, self.batches = problem, f, squares, batches
        cells, kinds, blocks = problem.cells, problem.species, problem.blocks
        of_one = 2 * 8 * cells + 8 * k.SUMS * blocks
        self.rows = max(1, min(len(batches), SIDE_BY_SIDE // of_one, 65535))
        room = cuda.device_array
        self._change = room((2 * self.rows, cells), np.int64)
        self._tables = room((1, cells, 2), np.float64)
        self._prefix = room((kinds, problem.nodes), np.int32)
        self._tiles = room((kinds, problem.tiles), np.int64)
        self._cumulative = room((kinds, problem.nodes + 1), np.int64)
        self._guide = room((kinds, problem.buckets), np.int32)
        self._sums = room((max(1, self.rows * blocks), k.SUMS), np.float64)
        self._flows = room((self.rows, max(1, len(problem.channels)), k.SUMS), np.float64)
        self._found = room((ROWS, cells), np.float64)
        weight = np.float32 if problem.precision == "float32" else np.float64
        self._no_events = (room((4, 1), np.int32), room(1, weight), room(1, np.float64))
        control, self._scalars = problem.fresh_control(1.0)
        self._control = problem.upload(control, np.int64)
        self._there = problem.upload(self._scalars, np.float64)
        self._squares_there = problem.upload(squares[None], np.float64)
        self._number = problem.upload([0], np.int64)
        self._given = problem.upload(np.append(f.ravel(), f.max(axis=1)), np.float64)
        self._prepare()
        self._scale = self._choose_scale() if blocks else 1.0
        self._begin(0)

    def result(self) -> Estimates:
        """Once all draws are done."""
        problem, parts = self.problem, []
        for first in range(0, len(self.batches), self.rows):
            if first > 0:
                self._prepare()
                self._begin(first)
            parts.append(self._add_up(first))
        found = self._found[:SPREAD].copy_to_host()
        sums = np.concatenate(parts)
        total, lost = sums[..., k.EVERYTHING].sum(axis=1), sums[..., k.LOST].sum(axis=1)
        null = np.divide(lost, total, out=np.zeros(len(sums)), where=total > 0)
        net, gain, loss, error = found
        return Estimates(net, gain, loss, error, flows_of(problem, rates_of(sums)), null)

    # -- launches --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Logarithms and sampling tables of f; no draw has changed anything yet."""
        problem, change = self.problem, self._change
        blocks = (problem.tiles, problem.species)
        kernels.prepare[blocks, THREADS](
            self._control, 0, self._there, self._squares_there, self._given, change,
            problem.species_numbers, change, problem.p2, self._tables, change, self._prefix,
            self._tiles,
        )  # fmt: skip
        kernels.cumulate[blocks, THREADS](
            self._control, 0, self._prefix, self._tiles, problem.shift, self._cumulative,
            self._guide,
        )  # fmt: skip

    def _draw(self, blocks: Any, grid: tuple[int, int], first: int, change: Any) -> None:
        """Draw the events of some blocks, in so many draws from the first one on."""
        problem = self.problem
        problem.draw_kernel[grid, THREADS](
            self._control, self._there, self._squares_there, problem.geometry,
            problem.channel_integers, problem.channel_floats, blocks, self._cumulative,
            self._guide, self._tables[0], *self._no_events, change, self._sums, self._number, 0,
            self.batches[first], problem.shift, 1, APART,
        )  # fmt: skip

    def _choose_scale(self) -> float:
        """Quanta per unit of N f, from blocks that lie all over the first draw."""
        problem, rows = self.problem, self.problem.block_rows
        chosen = np.arange(problem.blocks)
        if problem.blocks > PILOT:
            chosen = np.unique((np.arange(PILOT) * GOLDEN % 1.0 * problem.blocks).astype(int))
        some = np.ascontiguousarray(rows[chosen])
        with problem.compiling():
            self._draw(problem.upload(some, np.int64), (len(some), 1), 0, self._change)
        sums = self._sums[: len(some)].copy_to_host()
        part = some[:, k.COUNT].sum() / rows[:, k.COUNT].sum()
        forward = sums[:, k.FORWARD].sum() / part
        backward = forward - sums[:, k.NET].sum() / part
        return 0.5 * finest_scale(Flows(forward, np.maximum(backward, 0.0), 0.0, 0.0))

    def _set_scale(self, scale: float) -> None:
        self._scalars[k.SCALE] = scale
        self._there.copy_to_device(self._scalars)

    def _begin(self, first: int) -> None:
        """Launch as many draws as are done at once."""
        problem, count = self.problem, min(self.rows, len(self.batches) - first)
        if problem.blocks:
            self._set_scale(self._scale)
            self._draw(problem.block_table, (problem.blocks, count), first, self._change)
            add_up_channels[(len(problem.channels), count), THREADS](
                problem.channel_integers, self._sums, problem.blocks, self._flows
            )

    def _add_up(self, first: int) -> Array:
        """Sums of the channels in the draws that are under way; their changes are averaged."""
        problem, count = self.problem, min(self.rows, len(self.batches) - first)
        scales, sums = np.full(count, self._scale), np.zeros((count, 0, k.SUMS))
        if problem.blocks:
            sums = self._flows[:count].copy_to_host()
            self._look_for_faults(first, sums)
            scales = self._redraw(first, sums, scales)
        average[-(-problem.cells // THREADS), THREADS](
            self._change, problem.upload(1.0 / scales, np.float64), problem.species_numbers,
            problem.nodes, first, self._found,
        )  # fmt: skip
        return sums

    def _look_for_faults(self, first: int, sums: Array) -> None:
        """Report the first illegal matrix element."""
        problem = self.problem
        for row, channel in np.argwhere(sums[..., k.NEGATIVE] > 0)[:1]:
            draw = Draw.of(self.batches[first + int(row)], self.squares, problem.species)
            report_fault(problem, int(problem.first_blocks[channel]), draw, self.f)

    def _redraw(self, first: int, sums: Array, scales: Array) -> Array:
        """Draw again what does not fit its quanta; the quanta of all draws."""
        flows = flows_of(self.problem, rates_of(sums))
        for row, scale in enumerate(scales):
            own = Flows(flows.forward[row], flows.backward[row], 0.0, 0.0)
            digits = math.log2(finest_scale(own) / scale)
            if -(FINEST - GROSS_BITS) <= digits <= GROSS_BITS - COARSEST:
                continue
            scales[row] = finest_scale(own)
            change = self._change[2 * row : 2 * row + 2]
            change.copy_to_device(np.zeros(change.shape, np.int64))
            self._set_scale(scales[row])
            blocks = self.problem.block_table
            self._draw(blocks, (self.problem.blocks, 1), first + row, change)
        return scales
