"""Stepping on the GPU from one stop to the next, without a decision by the host.

All decisions during steps are taken on the GPU (``judge``, ``conclude``): masses, step lengths,
limits, and whether a step is accepted. The host launches steps without waiting, and then reads how
far the GPU has come. A step is one CUDA graph, with or without limits: most steps need none, and a
step that turns out to need them is repeated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...events.collisions import DrawInput
from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import unsolved
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan
from ...stepping.step_report import no_limits, too_long
from ...stepping.substeps import parts
from ...transport.pencils import Pencils
from ...transport.plane import PERIODIC
from ...util.arrays import Array
from ...util.errors import Halted, RunError
from . import driver, kernels
from . import layout as k
from .device_buffers import LaunchContext
from .masses import launch_masses
from .process_rates import flows_of, report_fault
from .stages import BatchStages
from .wall_ledger import WallLedger

if TYPE_CHECKING:
    from .backend import CudaBackend

LONGEST_BATCH = 0.25
"""Seconds of work to launch before the host reads the state again."""
CAREFUL_STEPS = 8
"""Number of steps with limits after one that needed them."""
WATCHED = {
    "noise": k.NOISE, "scatter": k.SCATTER, "moved": k.SIZE, "null_max": k.NULL_MAX,
    "limited_sum": k.LIMITED_SUM, "changed": k.CHANGED, "elapsed": k.ELAPSED,
    "length": k.LAST_LENGTH,
}  # fmt: skip
"""Positions in ``scalars`` of the sums that ``AccuracyWatch`` holds."""


class GraphStepper:
    """Steps a state on a GPU by launching graphs of kernels.

    grid : grid of all sites of the run, if the backend holds only some of them (``multi_gpu``)
    """

    def __init__(self, backend: CudaBackend, grid: PhaseSpace | None = None):
        self.backend, self.buffers = backend, backend.buffers
        buffers = self.buffers
        self.alone = buffers.exchange is None and grid is None
        """Whether steps need no communication with other workers."""
        grid = grid or backend.grid
        self.told, self.counts, self.site_flows = buffers.told, buffers.counts, buffers.site_flows
        self.context = buffers.new_context()
        self.parts = parts(grid)
        self.rows = buffers.new(
            (k.PARTS + 3 * len(self.parts), grid.sites, buffers.width), np.float64
        )
        pencils = {axis: Pencils.of(grid, backend.model, axis) for axis in grid.moving_axes}
        walls = [(*p.lines[:2], p.walls[0] == PERIODIC) for p in pencils.values()]
        self.now = self.rows[k.NOW]
        self._axes = buffers.to(np.reshape(walls, (-1, 3)), np.int64)
        self._widths = buffers.to(np.reshape([p.widths for p in pencils.values()], (-1, 2)), float)
        self.ledger = WallLedger(buffers, pencils)
        self._stages = BatchStages(buffers)
        self._steps = [
            driver.RepeatedLaunch(buffers.stream, partial(self.step, careful))
            for careful in (False, True)
        ]
        self._copies = driver.HostCopies(
            buffers.stream, self.context.control, self.context.scalars, self.rows, buffers.flows,
            *self.ledger.arrays,
        )  # fmt: skip
        self._look = self._again(self._copies.launch)
        self._stop, self._next = buffers.new(1, np.float64), driver.pinned(1)
        self._set_off = self._again(self._set_step_plan)
        self._step_seconds, self._careful = 0.0, False
        self._under_way: tuple[State, float] | None = None
        self.forget()

    def forget(self) -> None:
        """Forget the uploaded state, because it has been changed elsewhere."""
        self._known: tuple[Any, ...] = (None,) * 3

    def _again(self, work: Callable[[], None]) -> Callable[[], None]:
        """Record launches as a graph, unless workers share the run: these may be threads."""
        return driver.RepeatedLaunch(self.buffers.stream, work) if self.alone else work

    # -- a step, as launches ---------------------------------------------------------------------

    def step(self, careful: bool) -> None:
        """Launch one attempt at a step, without waiting for it."""
        buffers, thermal = self.buffers, self.buffers.model.thermal
        seen: set[int] = set()
        for i, part in enumerate(self.parts):
            self._next_part(i)
            if part.axis is None:
                self._collide(careful)
            else:
                self.ledger.see(part.axis, *self._sweep(part.axis), part.axis in seen)
                seen.add(part.axis)
            if thermal:
                self._masses()
        self._next_part(len(self.parts))
        self.ledger.enter(self._let_out())
        kernels.conclude[1, k.WIDE, buffers.stream](
            self.context.control, self.context.scalars, self.rows, self._axes, self._widths,
            self.site_flows, buffers.flows, self.ledger.passed, self.ledger.all,
        )  # fmt: skip

    def launches(self) -> None:
        """Launch every kernel that a run uses repeatedly, so that all can be compiled."""
        buffers = self.buffers
        before = buffers.context, buffers.exchange
        buffers.context, buffers.exchange = (
            self.context,
            None,
        )  # launches are only noted: no exchange needed
        self.step(careful=True)
        buffers.find_peaks()
        self._set_step_plan()
        buffers.context, buffers.exchange = before

    def _next_part(self, i: int) -> None:
        share = self.parts[i].share if i < len(self.parts) else 0.0
        last = self.parts[i - 1].share if i > 0 else 0.0
        blocks = -(-self.rows[0].size // k.THREADS)
        self.buffers.launch(
            kernels.next_part, blocks, self.context.control, self.context.scalars, self.rows, i,
            share, last,
        )  # fmt: skip

    def _collide(self, careful: bool) -> None:
        buffers = self.buffers
        if buffers.blocks:
            limited = self._stages.careful if careful else lambda: None
            self._stages.everywhere(self._own(k.USED), len(self.parts) > 1, limited)
            self._tell_collisions()
        buffers.launch(
            kernels.judge, 1, self.context.control, self.context.scalars, self.told, self.counts,
            int(careful),
        )  # fmt: skip

    def _own(self, row: int) -> Any:
        """Return a row of ``rows`` for the sites that the backend holds."""
        return self.rows[row]

    def _sweep(self, axis: int) -> tuple[Any, Any]:
        """Sweep along an axis; return the energies that left and the quanta refused."""
        swept = self.backend.sweep(axis, self.rows[k.USED])
        return swept.energies, swept.refused

    def _masses(self) -> None:
        """Solve the masses after a part of the step."""
        now, expected = self._own(k.AT), self._own(k.EXPECTED)
        launch_masses(self.buffers, self.backend.mass_room, self.context, now, expected, expected)

    def _tell_collisions(self) -> None:
        """Send collision sums to other workers; a single GPU has none to inform."""

    def _let_out(self) -> dict[int, Any]:
        """Return the quanta that left through open walls in this step, by axis."""
        return {axis: self.backend.let_out(axis) for axis in self.ledger.words}

    def steps(self, count: int) -> None:
        """Launch ``count`` attempts at steps."""
        self.buffers.context = self.context
        if self.alone:
            self._steps[self._careful](count)
        else:  # a single one, not as a graph: workers communicate within it
            self.step(self._careful)

    # -- from stop to stop -----------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until ``stop`` [fm]."""
        buffers, under_way = self.buffers, self._under_way
        launched = under_way is not None and under_way[0] is state and under_way[1] == stop
        if not launched:
            self.synchronize()
            if state.time >= stop:
                return
            self.start(state, step_plan, stop)
        rates_known = False
        while True:
            began, before = time.perf_counter(), state.watch.steps
            if not launched:
                self.steps(self._batch(state, stop))
            status = self._read(state)
            done = state.watch.steps - before
            if before and done and not launched:
                self._step_seconds = (time.perf_counter() - began) / done
            launched = False
            flows = None
            if not rates_known and self._integers[k.WANT_RATES] == 0:
                flows = flows_of(buffers, self._flows)
                rates_known = True
            if done:
                yield Segment(state.watch.length, flows, float(self._scalars[k.RATES_NULL]))
            self._raise_trouble(state, status)
            if status == k.ARRIVED:  # the next steps may already be launched
                return
            if self.backend.interrupt:
                raise Halted
            if status == k.LIMIT:
                self._go_on_carefully()

    def launch_steps(self, state: State, step_plan: StepPlan, stop: float) -> None:
        """Launch steps towards ``stop``; the next call reads how far they came."""
        self.synchronize()
        self.start(state, step_plan, stop)
        self.steps(self._batch(state, stop))
        self._under_way = state, stop

    def knows(self, squares: Array) -> bool:
        """Return whether these squared masses are the ones held on the GPU in ``now``."""
        return squares is self._known[1]

    def synchronize(self) -> None:
        """Wait for launched steps and read back their state."""
        if self._under_way is not None:
            self._read(self._under_way[0])

    def _go_on_carefully(self) -> None:
        """Repeat the step with limits, and take the next few with limits as well."""
        self._careful = True
        self._integers[k.STATUS] = k.GO
        self._integers[k.NEEDED] = self._integers[k.ACCEPTED] + 1
        self.context.control.copy_to_device(self._integers)

    def start(self, state: State, step_plan: StepPlan, stop: float) -> LaunchContext:
        """Prepare stepping to ``stop``; return the context that steps are launched from."""
        self.buffers.context = self.context
        pace, squares, known = self._known
        same = squares is state.squares and known == step_plan
        if not same or pace != (state.step, state.wanted):
            self._upload(state, step_plan)
        self._step_plan = step_plan
        self._next[0] = stop
        self._set_off()
        return self.context

    def _set_step_plan(self) -> None:
        stream = self.buffers.stream
        self._stop.copy_to_device(self._next, stream=stream)
        kernels.set_step_plan[1, k.WIDE, stream](
            self.context.control,
            self.context.scalars,
            self.rows,
            self._axes,
            self._widths,
            self._stop,
        )

    def _upload(self, state: State, step_plan: StepPlan) -> None:
        """Upload the control data of a state that the GPU does not hold."""
        buffers = self.buffers
        integers, scalars = buffers.fresh_control(state.unit)
        integers[k.AUTOMATIC], integers[k.STATUS] = step_plan.automatic, k.ARRIVED
        integers[k.CURRENT] = integers[k.SOURCE] = self.backend.row
        integers[k.TARGET], integers[k.STEP] = 1 - self.backend.row, state.step
        integers[k.ACCEPTED], integers[k.PAST] = state.watch.steps, len(state.past)
        for name, place in WATCHED.items():
            scalars[place] = getattr(state.watch, name)
        scalars[k.TIME], scalars[k.WANTED] = state.time, step_plan.wanted(state)
        scalars[k.TOLERANCE], scalars[k.NEAR] = step_plan.tolerance, step_plan.time_tolerance
        rows = np.zeros(self.rows.shape)
        rows[k.NOW] = rows[k.AT] = rows[k.USED] = state.squares
        for first, history in zip(self._places(), (state.past, *state.by_part), strict=False):
            for i, (rate, _) in enumerate(history):
                rows[first + i] = rate
        for place, (_, length) in zip((k.PAST_1, k.PAST_2), state.past, strict=False):
            scalars[place] = length
        self.rows.copy_to_device(rows)
        self.context.control.copy_to_device(integers)
        self.context.scalars.copy_to_device(scalars)
        self.ledger.upload(state.ledger)
        if len(self.parts) == 1:
            buffers.find_peaks()

    def _places(self) -> list[int]:
        """Return the first rows of the rates of the step and of each of its parts."""
        return [k.PAST_RATE, *range(k.PARTS, self.rows.shape[0], 3)]

    def _read(self, state: State) -> int:
        """Read how far the GPU has come into ``state``; return its status."""
        watch = state.watch
        self._under_way = None
        self._look()
        i, x, rows, self._flows, *left = self._copies.arrived()
        self._integers, self._scalars = i, x
        for name, place in WATCHED.items():
            setattr(watch, name, float(x[place]))
        watch.limited_max = max(watch.limited_max, float(x[k.LIMITED_MAX]))
        self.backend.row = int(i[k.CURRENT])
        self._careful = bool(0 < i[k.NEEDED] and i[k.ACCEPTED] < i[k.NEEDED] + CAREFUL_STEPS)
        watch.steps = int(i[k.ACCEPTED])
        state.time, state.step = float(x[k.TIME]), int(i[k.STEP])
        state.squares = rows[k.NOW]
        if self._step_plan.automatic:
            state.wanted = float(x[k.WANTED])
        lengths = (float(x[k.PAST_1]), float(x[k.PAST_2]))[: int(i[k.PAST])]
        histories = [
            [(rows[first + n], length) for n, length in enumerate(lengths)]
            for first in self._places()
        ]
        state.past, state.by_part = histories[0], histories[1:] if lengths else []
        self.ledger.read(left, state.ledger)
        self._known = (state.step, state.wanted), state.squares, self._step_plan
        return int(i[k.STATUS])

    def _batch(self, state: State, stop: float) -> int:
        """Return how many steps to launch before reading again."""
        steps = math.ceil(min((stop - state.time) / self._step_plan.wanted(state), 1000.0)) + 1
        if self._step_seconds > 0:
            steps = min(steps, max(1, int(LONGEST_BATCH / self._step_seconds)))
        if self._careful:
            steps = min(steps, CAREFUL_STEPS)
        single = driver.SIMULATED or not self.alone or state.watch.steps < 2
        return 1 if single else min(steps, 64)

    def _raise_trouble(self, state: State, status: int) -> None:
        model = self.backend.model
        if status == k.FAULTY:
            self._report_fault(state, *divmod(int(self._integers[k.FAULT]), self.buffers.blocks))
        if status == k.NOT_FINITE:
            raise RunError(
                f"rates or masses are not finite at t = {state.time:.6g} fm: "
                + ", ".join(
                    f"m^2({n}) = {m:.4g}"
                    for n, m in zip(model.names, state.squares[0], strict=False)
                )
            )
        if status == k.NO_MASSES:
            bad = ~np.isfinite(self.rows[k.EXPECTED].copy_to_host()).all(axis=1)
            raise unsolved(self._where(int(bad.argmax())))
        if status == k.TOO_LONG:
            raise too_long()
        if status == k.NO_LIMITS:
            raise no_limits()

    def _report_fault(self, state: State, site: int, block: int) -> None:
        """Raise InputError that names the illegal matrix element."""
        buffers, own = self.buffers, site - self.buffers.before
        used = self.rows[k.USED].copy_to_host()[site]
        draw = DrawInput.of(state.step, used, buffers.species, int(self.backend.site_ids[own]))
        report_fault(buffers, block, draw, self.backend.f_of(own, int(self._integers[k.SOURCE])))

    def _where(self, site: int) -> str:
        return self.backend.where(site)
