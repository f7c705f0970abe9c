"""A GPU that steps ahead on its own from one stop to the next; the host looks when it arrives.

Everything that is decided during steps is decided there (``conclude``): masses, lengths, whether a
step stands. The host launches steps without waiting, reads where the GPU is, and repeats the few
steps that need limits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import Halted, RunError
from ...events.collisions import Draw
from ...masses import unsolved
from ...stepping.state import State
from ...stepping.step import Course, Leg
from . import driver, kernels
from . import layout as k
from .flows import flows_of, report_fault
from .machine import Desk
from .stages import Stages

if TYPE_CHECKING:
    from .backend import CudaBackend

LONGEST_BATCH = 0.25
"""Seconds of work to launch before the host looks again."""
WATCHED = {
    "noise": k.NOISE, "scatter": k.SCATTER, "moved": k.SIZE, "null_max": k.NULL_MAX,
    "limited_sum": k.LIMITED_SUM, "changed": k.CHANGED, "elapsed": k.ELAPSED,
    "length": k.LAST_LENGTH,
}  # fmt: skip
"""Where a GPU keeps what ``Watch`` adds up."""


class Ahead:
    """Homogeneous matter on its way on a GPU."""

    def __init__(self, backend: CudaBackend):
        self.backend, self.machine = backend, backend.machine
        self.desk = backend.machine.new_desk()
        self._stages = Stages(backend.machine)
        self._step_seconds = 0.0
        self.forget()

    def forget(self) -> None:
        """The state was changed by others: what is known of it here no longer holds."""
        self._known: tuple[Any, ...] = (None,) * 3

    def advance(self, state: State, course: Course, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm]."""
        machine = self.machine
        self.start(state, course, stop)
        rates_known = False
        while True:
            began, before = time.perf_counter(), state.watch.steps
            machine.desk = self.desk
            machine.steps(self._batch(state, stop))
            status = self._read(state)
            if status == k.LIMIT:
                self._limited_step()
                status = self._read(state)
            done = state.watch.steps - before
            if before and done:
                self._step_seconds = (time.perf_counter() - began) / done
            flows = None
            if not rates_known and self._integers[k.WANT_RATES] == 0:
                flows = flows_of(machine, machine.flows.copy_to_host())
                rates_known = True
            if done:
                yield Leg(state.watch.length, flows, float(self._scalars[k.RATES_NULL]))
            self._raise_trouble(state, status)
            if self.backend.interrupt:
                raise Halted
            if status == k.ARRIVED:
                return

    def start(self, state: State, course: Course, stop: float) -> Desk:
        """Set out for a stop; the desk that steps are launched from."""
        self.machine.desk = self.desk
        pace, squares, known = self._known
        same = squares is state.squares and known is course
        if not same or pace != (state.step, state.wanted):
            self._upload(state, course)
        self._course = course
        kernels.set_course[1, 1, self.machine.stream](self.desk.control, self.desk.scalars, stop)
        return self.desk

    def _limited_step(self) -> None:
        """The same step with limits that keep every cell legal; the host waits for each stage."""
        control, scalars = self.desk.control.copy_to_host(), self.desk.scalars.copy_to_host()
        control[k.STATUS], control[k.MANUAL] = k.GO, 1
        self.desk.control.copy_to_device(control)
        limited = self._stages.limited(float(scalars[k.SCALE]), np.zeros(1, bool))
        scalars[k.LIMITED] = limited[0]
        self.desk.scalars.copy_to_device(scalars)
        self.machine.conclude()

    def _upload(self, state: State, course: Course) -> None:
        """Tell the GPU of a state that it does not know."""
        machine, row = self.machine, self.machine.row
        integers, scalars = machine.fresh_control(state.unit)
        integers[k.AUTOMATIC], integers[k.STATUS] = course.automatic, k.ARRIVED
        integers[k.CURRENT] = integers[k.SOURCE] = self.backend.row
        integers[k.TARGET], integers[k.STEP] = 1 - self.backend.row, state.step
        integers[k.ACCEPTED], integers[k.PAST] = state.watch.steps, len(state.past)
        for name, place in WATCHED.items():
            scalars[place] = getattr(state.watch, name)
        scalars[k.TIME], scalars[k.WANTED] = state.time, course.wanted(state)
        scalars[k.TOLERANCE], scalars[k.NEAR] = course.tolerance, course.near
        scalars[row(k.NOW)] = state.squares[0]
        rows = ((k.RATE, k.PAST_1), (k.EARLIER, k.PAST_2))
        for (rate, length), (which, place) in zip(state.past, rows, strict=False):
            scalars[row(which)], scalars[place] = rate[0], length
        self.desk.control.copy_to_device(integers)
        self.desk.scalars.copy_to_device(scalars)
        self.backend.find_peaks()

    def _read(self, state: State) -> int:
        """Look at where the GPU is; returns its status."""
        machine, watch = self.machine, state.watch
        self._integers = i = self.desk.control.copy_to_host(stream=machine.stream)
        self._scalars = x = self.desk.scalars.copy_to_host(stream=machine.stream)
        machine.wait()
        for name, place in WATCHED.items():
            setattr(watch, name, float(x[place]))
        watch.steps = int(i[k.ACCEPTED])
        watch.limited_max = max(watch.limited_max, float(x[k.LIMITED_MAX]))
        self.backend.row = int(i[k.CURRENT])
        state.time, state.step = float(x[k.TIME]), int(i[k.STEP])
        state.squares = x[machine.row(k.NOW)][None]
        if self._course.automatic:
            state.wanted = float(x[k.WANTED])
        rows = ((k.RATE, k.PAST_1), (k.EARLIER, k.PAST_2))[: int(i[k.PAST])]
        state.past = [(x[machine.row(which)][None], float(x[place])) for which, place in rows]
        state.by_part = [list(state.past)] if state.past else []
        self._known = (state.step, state.wanted), state.squares, self._course
        return int(i[k.STATUS])

    def _batch(self, state: State, stop: float) -> int:
        """How many steps to launch before looking again."""
        ahead = math.ceil(min((stop - state.time) / self._course.wanted(state), 1000.0)) + 1
        if self._step_seconds > 0:
            ahead = min(ahead, max(1, int(LONGEST_BATCH / self._step_seconds)))
        return 1 if driver.SIMULATED or state.watch.steps < 2 else min(ahead, 64)

    def _raise_trouble(self, state: State, status: int) -> None:
        if status == k.FAULTY:
            used = self._scalars[self.machine.row(k.USED)]
            draw = Draw.of(state.step, used, self.machine.species)
            report_fault(self.machine, int(self._integers[k.FAULT]), draw, self.backend.f_of(0))
        if status == k.NOT_FINITE:
            raise RunError(
                f"rates or masses are not finite at t = {state.time:.6g} fm: "
                + ", ".join(
                    f"m^2({n}) = {m:.4g}"
                    for n, m in zip(self.backend.model.names, np.ravel(state.squares), strict=False)
                )
            )
        if status == k.NO_MASSES:
            raise unsolved()
