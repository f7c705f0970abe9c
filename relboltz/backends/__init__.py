"""Backends: implementations of the solver for CPUs, GPUs and teams of workers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..config.settings import Sampling
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array, Integers
from ..util.errors import BackendNotice, InputError, say
from ..util.text import shown

if TYPE_CHECKING:
    from .bracket_requests import BracketRequest
    from .contract import Backend, Estimator

_said: set[str] = set()


def resolve(backend: str, precision: str = "auto") -> tuple[str, str]:
    """Resolve "auto" on this machine: return the backend and its precision.

    Without a usable GPU, "auto" means the CPU, and "cuda" raises an error that says what to do.
    """
    problem = None
    if backend != "cpu":
        from .cuda.driver import trouble

        problem = trouble()
        if problem is not None and backend == "cuda":
            raise InputError(f"run.backend = 'cuda': {problem}")
        backend = "cpu" if problem is not None else "cuda"
    if backend == "cpu" and precision == "float32":
        reason = f"no GPU is in use ({problem})" if problem else "run.backend is 'cpu'"
        raise InputError(
            f"run.precision = 'float32': {reason} and the CPU works in float64; leave it out"
        )
    usual = "float32" if backend == "cuda" else "float64"
    return backend, usual if precision == "auto" else precision


def choose(
    grid: PhaseSpace, model: Model, sampling: Sampling, run: Any, site_ids: Integers | None = None
) -> Backend:
    """Return the backend that [run] asks for; an "auto" without a GPU gives one notice.

    site_ids : global numbers of the sites of this grid, if the run has further sites
    """
    name, precision = _ready(grid, model, sampling, run)
    if name == "cuda":
        from .cuda.backend import CudaBackend

        return CudaBackend(grid, model, sampling, precision, site_ids)
    from .cpu.backend import CpuBackend

    return CpuBackend(grid, model, sampling, run.threads, site_ids)


def estimator(grid: PhaseSpace, model: Model, sampling: Sampling, run: Any) -> Estimator:
    """Return an estimator of C[f] on the backend that [run] asks for."""
    name, precision = _ready(grid, model, sampling, run)
    if name == "cuda":
        from .cuda import estimates

        return estimates.estimator(grid, model, sampling, precision)
    from .cpu.backend import CpuBackend

    return CpuBackend(grid, model, sampling, run.threads)


def bracket_measure(
    backend: str, threads: int, model: Model
) -> Callable[[Any, BracketRequest], Array]:
    """Return the function that sums brackets of trial functions on the requested backend."""
    if backend not in ("auto", "cpu", "cuda"):
        raise InputError(f"backend = {shown(backend)}: use 'auto', 'cpu' or 'cuda'")
    name, _ = resolve(backend)
    if name == "cuda":
        from .cuda.bracket_measurer import BracketMeasurer

        return BracketMeasurer(model).measure
    from .cpu.brackets import measure

    return partial(measure, threads=threads)


def _ready(grid: PhaseSpace, model: Model, sampling: Sampling, run: Any) -> tuple[str, str]:
    """Return the backend and precision that [run] asks for, after checking the sizes."""
    name, precision = resolve(run.backend, run.precision)
    if name == "cpu" and run.backend == "auto":
        _say_why()
    check_size(grid, model, sampling)
    return name, precision


def check_size(grid: PhaseSpace, model: Model, sampling: Sampling) -> None:
    """Raise InputError if cells or samples exceed the integers that count them."""
    if len(model.species) * grid.size >= 2**31:
        raise InputError(
            f"grid.momentum_cells = {list(grid.momentum_cells)}: {len(model.species)} species "
            "times nodes must stay below 2^31"
        )
    if sampling.samples * grid.size >= 2**32:
        raise InputError(
            f"collisions.samples = {shown(sampling.samples)}: samples times nodes must stay below "
            f"2^32; use at most {2**32 // grid.size - 1}"
        )


def _say_why() -> None:
    """Say once per process why "auto" chose the CPU."""
    from .cuda.driver import driver, trouble

    nothing = str(driver()).startswith("no NVIDIA driver")
    reason = "no NVIDIA GPU was found" if nothing else trouble()
    if reason not in _said:
        _said.add(str(reason))
        say(f"running on the CPU: {reason} (run.backend = 'cpu' silences this)", BackendNotice)
