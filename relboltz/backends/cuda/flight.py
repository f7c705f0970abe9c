"""The CUDA backend: the state lives on the GPU, the host launches steps and reads records."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...errors import Halted, RunError
from ...events.collisions import Draw, Estimate, Flows, Sampling
from ...grid import PhaseSpace
from ...model import Model
from ...records.moments import Moments, Shells
from ...stepping.flight import Leg
from ...stepping.stepper import State, StepControl, capacities
from ...stepping.watch import Watch
from ..cpu.collider import check_size
from ..elements import Elements
from . import driver as engine
from . import kernels
from . import layout as k
from .machine import Machine, check_memory
from .moments import Meter

LONGEST_BATCH = 0.25
"""Seconds of work to launch before the host looks again."""


class CudaBackend:
    """Draws the events of a step and applies them to states, on one GPU.

    Parameters
    ----------
    grid, model, sampling : what to solve
    precision : "float32" or "float64", of weights and exponentials; everything that decides
        where a particle goes, and all that is conserved, is float64 or whole numbers anyway
    """

    name = "cuda"

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, precision: str):
        check_size(grid, model, sampling)
        self.grid, self.model, self.sampling, self.precision = grid, model, sampling, precision
        check_memory(grid, model, engine.free_memory())
        self.elements = Elements(model)
        self.interrupt: object = False
        """Once it is true, a flight is broken off and Halted raised."""
        self.machine = Machine(grid, model, sampling, precision, self.elements)
        self.channels = self.machine.channels

    @property
    def words(self) -> str:
        """Where the work is done, in words."""
        return f"cuda, {engine.device()['name']}, {self.precision}"

    def estimate(self, f: NDArray[np.float64], draw: Draw) -> Estimate:
        """C[f] from one draw of events; f (species, nodes)."""
        return self.machine.estimate(f, draw)


class CudaFlight:
    """A state on its way on a GPU: the host launches steps ahead and looks at stops."""

    def __init__(
        self,
        backend: CudaBackend,
        start: State,
        control: StepControl,
        near: float,
        shells: Shells,
        final: NDArray[np.float64],
    ):
        self.backend, self.machine = backend, backend.machine
        self.watch = Watch()
        self._start, self._shells = start, shells
        self._step_seconds = 0.0
        machine, model = self.machine, backend.model
        integers, scalars = machine.fresh_control(start.unit)
        integers[k.AUTOMATIC] = control.automatic
        integers[k.STATUS] = k.ARRIVED
        scalars[k.WANTED], scalars[k.TOLERANCE] = control.wanted, control.tolerance
        scalars[k.NEAR] = near
        scalars[machine.row(k.NOW)] = np.append(start.mass_squared, start.screening2)
        machine.number.copy_to_device(np.stack([start.number, np.zeros_like(start.number)]))
        rows = start.number.reshape(len(model.species), -1)
        machine.highest.copy_to_device(np.stack([rows.max(axis=1), np.zeros(len(rows), np.int64)]))
        machine.capacity.copy_to_device(capacities(model, start.bits))
        machine.control.copy_to_device(integers)
        machine.scalars.copy_to_device(scalars)
        self._integers, self._scalars = integers, scalars
        self._final, self._meter = final, Meter(machine, backend.grid, shells)

    @property
    def state(self) -> State:
        """Time, step and masses of the state; its numbers stay on the GPU."""
        i, x, row = self._integers, self._scalars, self.machine.row
        m2, screening2 = np.split(x[row(k.NOW)], [self.machine.species])
        past = []
        for which, length in ((k.BEFORE, k.PAST_1), (k.FIRST, k.PAST_2))[: int(i[k.PAST])]:
            before = np.split(x[row(which)], [self.machine.species])
            past.append((before[0].copy(), before[1].copy(), float(x[length])))
        return replace(
            self._start,
            number=np.empty(0, np.int64),
            time=float(x[k.TIME]),
            step=int(i[k.STEP]),
            mass_squared=m2.copy(),
            screening2=screening2.copy(),
            past=tuple(past),
        )

    def _read(self) -> int:
        """Look at where the GPU is; returns its status."""
        machine = self.machine
        self._integers = machine.control.copy_to_host(stream=machine.stream)
        self._scalars = machine.scalars.copy_to_host(stream=machine.stream)
        if machine.stream:
            machine.stream.synchronize()
        i, x, watch = self._integers, self._scalars, self.watch
        watch.steps, watch.length = int(i[k.ACCEPTED]), float(x[k.LAST_LENGTH])
        watch.noise, watch.scatter, watch.moved = x[k.NOISE], x[k.SCATTER], x[k.SIZE]
        watch.null_max, watch.limited_sum = x[k.NULL_MAX], x[k.LIMITED_SUM]
        watch.changed, watch.elapsed = x[k.CHANGED], x[k.TIME]
        watch.limited_max = max(watch.limited_max, x[k.LIMITED_MAX])
        return int(i[k.STATUS])

    def _batch(self, stop: float) -> int:
        """How many steps to launch before looking again."""
        room, length = stop - self._scalars[k.TIME], self._scalars[k.WANTED]
        ahead = math.ceil(min(room / length, 1000.0)) + 1
        if self._step_seconds > 0:
            ahead = min(ahead, max(1, int(LONGEST_BATCH / self._step_seconds)))
        return 1 if engine.SIMULATED or self.watch.steps < 2 else min(ahead, 64)

    def advance(self, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm]."""
        machine = self.machine
        kernels.set_course[1, 1, machine.stream](machine.control, machine.scalars, stop)
        rates_known = False
        while True:
            began, batch, before = time.perf_counter(), self._batch(stop), self.watch.steps
            machine.steps(batch)
            status = self._read()
            if status == k.LIMIT:
                machine.limited_step()
                status = self._read()
            done = self.watch.steps - before
            if before and done:
                self._step_seconds = (time.perf_counter() - began) / done
            flows = None
            if not rates_known and self._integers[k.WANT_RATES] == 0:
                flows = machine.flows_of(machine.flows.copy_to_host())
                rates_known = True
            if done:
                yield Leg(self.watch.length, flows, float(self._scalars[k.RATES_NULL]))
            self._raise_trouble(status)
            if self.backend.interrupt:
                raise Halted
            if status == k.ARRIVED:
                return

    def _raise_trouble(self, status: int) -> None:
        state = self.state
        if status == k.FAULTY:
            values = self._scalars[self.machine.row(k.USED)]
            draw = Draw.of(state.step, values, self.machine.species)
            self.machine.report_fault(int(self._integers[k.FAULT]), draw, self.occupation())
        if status == k.NOT_FINITE:
            raise RunError(
                f"rates or masses are not finite at t = {state.time:.6g} fm: "
                + ", ".join(
                    f"m^2({n}) = {m:.4g}"
                    for n, m in zip(self.backend.model.names, state.mass_squared, strict=True)
                )
            )
        if status == k.NO_MASSES:
            raise RunError(
                "the thermal masses of this state do not converge: check model.mass_coupling"
            )

    def evaluate(self) -> tuple[Flows, float]:
        """Flows of all processes in the state, and the part of collisions that is lost."""
        return self.machine.evaluate()

    def moments(self) -> Moments:
        """Sums over the state."""
        row = self.machine.scalars[self.machine.row(k.NOW)]
        return self._meter.moments(row.reshape(1, self.machine.width), self._final).at(0)

    def occupation(self) -> NDArray[np.float64]:
        """f of every species at every node."""
        return self.machine.occupation(int(self._integers[k.CURRENT]), self._start.unit)
