"""The same kernels over arrays, one module for each kind of machine."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..collisions import Sampling
from ..errors import BackendNotice, InputError
from ..grid import PhaseSpace
from ..model import Model

if TYPE_CHECKING:
    from .cpu import CpuBackend
    from .cuda import CudaBackend

_said: set[str] = set()


def resolve(backend: str, precision: str = "auto") -> tuple[str, str]:
    """What "auto" comes to on this machine: the backend and its precision.

    Without a GPU that can be used, "auto" is the CPU; "cuda" is an error that says what to do.
    """
    if backend != "cpu":
        from .cuda_engine import trouble

        problem = trouble()
        if problem is not None and backend == "cuda":
            raise InputError(f"run.backend = 'cuda': {problem}")
        backend = "cpu" if problem is not None else "cuda"
    if backend == "cpu" and precision == "float32":
        raise InputError(
            "run.precision = 'float32': the CPU works in float64; leave it out, or use "
            "run.backend = 'cuda'"
        )
    usual = "float32" if backend == "cuda" else "float64"
    return backend, usual if precision == "auto" else precision


def choose(
    grid: PhaseSpace, model: Model, sampling: Sampling, run: Any
) -> CpuBackend | CudaBackend:
    """The backend that [run] asks for; an "auto" that found no GPU says so once."""
    name, precision = resolve(run.backend, run.precision)
    if name == "cpu" and run.backend == "auto":
        from .cuda_engine import trouble

        problem = trouble() or ""
        if problem not in _said:
            _said.add(problem)
            warnings.warn(f"running on the CPU: {problem}", BackendNotice, stacklevel=2)
    if name == "cuda":
        from .cuda import CudaBackend

        return CudaBackend(grid, model, sampling, precision)
    from .cpu import CpuBackend

    return CpuBackend(grid, model, sampling, run.threads)
