"""Matter on a backend: what many tests begin with, on every backend that this machine has."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import relboltz as rb
from relboltz.backends.contract import Backend
from relboltz.backends.cpu.backend import CpuBackend
from relboltz.backends.cuda import driver
from relboltz.records.observables import Observer
from relboltz.records.quantities import quantities
from relboltz.settings import Sampling
from relboltz.stepping.quanta import occupation
from relboltz.stepping.state import State
from relboltz.stepping.step import Course, begin

GPU = driver.trouble() is None
BACKENDS = ("cpu", "cuda") if GPU else ("cpu",)
EVERYWHERE = pytest.mark.parametrize("where", BACKENDS)

if driver.SIMULATED:  # a manager polls the threads of a block: short turns, and on one core
    sys.setswitchinterval(1e-5)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ.get("CORE", "0")) % len(cores)]})

    from numba.core import types
    from numba.cuda.simulator import kernelapi
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

    kernelapi.FakeCUDAShared.array = shared_array


def backend_of(grid, model, where="cpu", numbers=None, threads=2, **sampling) -> Backend:
    """A backend without a state; both work in double precision."""
    if where == "cpu":
        return CpuBackend(grid, model, Sampling(**sampling), threads, numbers)
    from relboltz.backends.cuda.backend import CudaBackend

    return CudaBackend(grid, model, Sampling(**sampling), "float64", numbers)


def begun(grid, model, start, where="cpu", **sampling) -> tuple[Backend, State]:
    """A backend that holds a start, as ``solve`` takes it, or f (sites, species, nodes)."""
    f = start if isinstance(start, np.ndarray) else rb.initial.evaluate(start, grid, model)
    backend = backend_of(grid, model, where, **sampling)
    return backend, begin(backend, f.reshape(grid.sites, len(model.species), grid.size))


def course_of(grid, step="auto", tolerance=1e-3, forces=()) -> Course:
    """As a run has it."""
    return Course(step, tolerance, 1e-9, grid, forces)


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
