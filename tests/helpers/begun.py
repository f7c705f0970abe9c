"""Matter on a backend: what many tests begin with, on every backend that this machine has."""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import threading

import numpy as np
import pytest
from thread_workers import ThreadWorkerPool

import relboltz as rb
from relboltz.backends.contract import Backend
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.backends.cuda import driver
from relboltz.backends.team.leader import Team
from relboltz.config.settings import RunSettings as RunSettings
from relboltz.config.settings import Sampling
from relboltz.io.observables import Observer
from relboltz.io.quantities import quantities
from relboltz.stepping.quanta import occupation
from relboltz.stepping.state import State
from relboltz.stepping.step import StepPlan, begin

GPU = driver.trouble() is None
NAMES = ("cpu", "cuda") if GPU else ("cpu",)
BY_NAME = pytest.mark.parametrize("where", NAMES)
"""On what ``run.backend`` may say."""
EVERYWHERE = pytest.mark.parametrize("where", (*NAMES, "team"))
"""A team too: it tells of several steps at once."""

if driver.SIMULATED:  # threads take turns anyway: on one core
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ.get("CORE", "0")) % len(cores)]})

    from numba.core import types
    from numba.cuda.simulator import kernel, kernelapi
    from numba.np import numpy_support

    def shared_array(self, shape, dtype, alignment=None):
        """As the simulator's, but two threads that ask at once are never given different ones."""
        kind = numpy_support.as_dtype(dtype) if isinstance(dtype, types.Type) else dtype
        if shape == 0:  # as large as the launch says
            count = self._dynshared_size // np.dtype(kind).itemsize
            return np.frombuffer(self._dynshared.data, kind, count)
        caller = sys._getframe(1)
        key = caller.f_code.co_filename, caller.f_lineno
        return self._allocations.setdefault(key, np.empty(shape, kind))

    def wait_for_all(self):
        """``syncthreads``, without a manager that polls: until all that are left wait as well."""
        block = self._manager
        with block.turn:
            block.waiting += 1
            mine = block.round
            block.open()
            block.turn.wait_for(lambda: block.round != mine or block.failed)
            if block.failed:
                raise RuntimeError("another thread failed")

    class Block(kernel.BlockManager):
        """The threads of a block; who waits for others sleeps."""

        def run(self, grid_point, *arguments):
            self.turn, self.waiting, self.round, self.failed = threading.Condition(), 0, 0, False

            def work():
                try:
                    self._f(*arguments)
                except Exception:
                    self.failed = True
                    raise
                finally:
                    with self.turn:
                        self.left -= 1
                        self.open()

            points = list(np.ndindex(*self._block_dim))
            self.left = len(points)
            threads = [kernel.BlockThread(work, self, grid_point, p, self._debug) for p in points]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wrong = [thread.exception for thread in threads if thread.exception]
            for error, trace in sorted(wrong, key=lambda one: isinstance(one[0], RuntimeError)):
                raise error.with_traceback(trace)

        def open(self):
            """Let all go on if all that are left wait, or one has failed."""
            if self.failed or self.waiting == self.left:
                self.waiting, self.round = 0, self.round + 1
                self.turn.notify_all()

    def called(self, *arguments):
        """As the simulator's, but a function that does not name ``cuda`` is just called."""
        if self._device and "cuda" not in self.fn.__code__.co_names:
            return self.fn(*arguments)
        return launched(self, *arguments)

    launched = kernel.FakeCUDAKernel.__call__
    kernel.FakeCUDAKernel.__call__ = called
    kernelapi.FakeCUDAShared.array = shared_array
    kernel.BlockThread.syncthreads = wait_for_all
    kernel.BlockManager = Block


def take_turns() -> None:
    """Let threads use the simulator, one kernel at a time; a GPU takes them as they come."""
    if not driver.SIMULATED or hasattr(kernel.FakeCUDAKernel, "turns"):
        return
    kind = kernel.FakeCUDAKernel
    call, configure = kind.__call__, kind.__getitem__
    kind.turns = threading.Lock()

    def launch(self, *arguments):
        with contextlib.nullcontext() if self._device else self.turns:
            return call(self, *arguments)

    kind.__call__ = launch
    kind.__getitem__ = lambda self, how: configure(copy.copy(self), how)


def backend_of(grid, model, where="cpu", numbers=None, threads=2, **sampling) -> Backend:
    """A backend without a state; both work in double precision."""
    if where == "cpu":
        return CpuBackend(grid, model, Sampling(**sampling), threads, numbers)
    if where == "team":
        return team_of(grid, model, numbers=numbers, **sampling)
    from relboltz.backends.cuda.backend import CudaBackend

    return CudaBackend(grid, model, Sampling(**sampling), "float64", numbers)


def team_of(grid, model, size=2, crew=ThreadWorkerPool, numbers=None, **sampling) -> Team:
    """Workers in threads; of sites that are not all of the run only where one process has them."""
    if numbers is not None:
        pytest.skip("a team has all sites of a run")
    workers = min(size, grid.sites) if grid.sites > 1 else size
    members = crew(workers, model, RunSettings(backend="cpu", threads=1))
    return Team(members, "cpu", grid, model, Sampling(**sampling))


def begun(grid, model, start, where="cpu", **sampling) -> tuple[Backend, State]:
    """A backend that holds a start, as ``solve`` takes it, or f (sites, species, nodes)."""
    f = start if isinstance(start, np.ndarray) else rb.initial.evaluate(start, grid, model)
    backend = backend_of(grid, model, where, **sampling)
    return backend, begin(backend, f.reshape(grid.sites, len(model.species), grid.size))


def course_of(grid, step="auto", tolerance=1e-3, forces=()) -> StepPlan:
    """As a run has it."""
    return StepPlan(step, tolerance, 1e-9, grid, forces)


def advanced(backend, state, length) -> None:
    """One step of a given length [fm]."""
    for _ in backend.advance(state, course_of(backend.grid, length), state.time + length):
        pass


def observer_of(backend, *marginals) -> Observer:
    """Records of a state on this backend; the final state is empty."""
    shown = quantities(backend.grid, marginals)
    nothing = np.zeros((len(backend.model.species), backend.grid.size))
    return Observer(backend, nothing, shown, marginals)


def f_of(backend, state) -> np.ndarray:
    """f (sites, species, nodes)."""
    return occupation(backend.get(), state.bits, backend.model)
