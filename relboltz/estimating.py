"""What a run will cost on this machine: steps, time, memory and disk, before anyone waits.

Two short trials tell. A coarse one, the same set-up with few momentum cells, is stepped as far as a
budget of seconds goes: it tells how long steps will be. A few steps of the set-up itself, in space
of as many of its cells as are needed to be sure, tell how long one takes.
"""

from __future__ import annotations

import math
import time
import warnings
from dataclasses import dataclass

import numpy as np

from .backends.cpu.threads import available_cores
from .cases import Case
from .checks.matter import host_memory
from .distributed import resolve
from .errors import AccuracyWarning, InputError
from .grid import PhaseSpace
from .initial import evaluate
from .known import Known
from .records.checkpoint import KEPT
from .records.quantities import quantities
from .run import Run
from .stepping.watch import Stops

COARSE, COARSE_IN_SPACE = 11, 7
"""Momentum cells along an axis of the coarse trial, at most."""
BUDGET = 10.0
"""Seconds for each trial."""
FEWEST = 2
"""Steps of a trial that are timed, after the first, which compiles."""
TRIAL_CELLS = 4_000_000
"""Numbers of f, at most, in a trial; of a larger run in space only some of its cells are tried."""
PROGRAM = 330 * 2**20
"""Bytes of Python, its libraries and compiled code: measured, on Linux."""
PACKED = 0.85
"""Part of its bytes that compression leaves of a record, and of f: measured."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take."""

    steps: float
    seconds_per_step: float
    seconds_per_record: float
    busy: float
    """Cores that a step keeps busy, on average, while nobody else asks for them."""
    records: int
    snapshots: int
    memory: float
    """Bytes on the host."""
    device_memory: float
    """Bytes on a GPU; 0 without one."""
    file_size: float
    """Bytes of the result."""
    checkpoint_size: float
    """Bytes of what lies beside it while it runs."""
    finished: bool
    """Whether the coarse trial came to the end; else its last steps stand for those that follow."""
    known: Known

    @property
    def seconds(self) -> float:
        """Of the whole run, without compilation."""
        return self.steps * self.seconds_per_step + self.records * self.seconds_per_record

    @property
    def core_seconds(self) -> float:
        """The same, of all cores together."""
        return self.busy * self.seconds


def estimate(case: Case, budget: float = BUDGET) -> Estimate:
    """What the run of a case will take on this machine; budget : seconds for each of two trials."""
    settings, grid = case.settings, case.grid
    if settings.run.workers:
        raise InputError(
            f"run.workers = {settings.run.workers}: one process can be estimated; set it to 0"
        )
    time, kept = settings.time, settings.output
    stops = Stops(time.end, kept.every, kept.snapshots or (), time.start)
    if isinstance(settings.time.step, str):
        steps, finished = _steps(case, budget)
    else:
        steps, finished = _given_steps(stops, settings.time.step), True
    trial, share = _smaller(case)
    timed = _timed(trial, budget)
    of_record, of_f = _bytes(case)
    records, snapshots = len(stops.records), len(settings.output.snapshots or ())
    backend, _ = resolve(settings.run)
    threads = settings.run.threads or available_cores()
    host = host_memory(
        grid, case.model, settings.collisions.samples if backend == "cpu" else 0, threads
    )
    return Estimate(
        steps, timed.step * share, timed.record * share, timed.busy, records, snapshots,
        PROGRAM + host, timed.device * share if backend == "cuda" else 0.0,
        PACKED * (records * of_record + snapshots * of_f), KEPT * of_f, finished, timed.known,
    )  # fmt: skip


# --- steps --------------------------------------------------------------------------------------


def _steps(case: Case, budget: float) -> tuple[float, bool]:
    """Automatic steps of the whole run, from a coarse one; whether that came to its end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # it is coarse on purpose
        run = _begun(_coarse(case))
    try:
        backend, state, stops = run.backend, run.state, run.stops
        began = math.inf  # the first step compiles
        while state.time < stops.end:
            before = state.time, state.step
            for _ in backend.advance(state, run.course, stops.next(state.time)):
                began = min(began, time.perf_counter())
                if time.perf_counter() - began > budget and state.step > before[1] + 4:
                    break
            if time.perf_counter() - began > budget:
                pace = (state.step - before[1]) / (state.time - before[0])
                return state.step + (stops.end - state.time) * pace, False
        return float(state.step), True
    finally:
        run.backend.close()


def _given_steps(stops: Stops, step: float) -> float:
    """Steps of a given length, shortened where a stop comes first."""
    between = np.diff(stops.all)
    return float(np.ceil(between / step - 1e-9).sum())


def _coarse(case: Case) -> Case:
    """The same with few momentum cells, odd or even as they were; a start on nodes keeps them."""
    grid = case.grid
    most = COARSE if grid.sites == 1 else COARSE_IN_SPACE
    cells = [n if n <= most else most + (n - most) % 2 for n in grid.momentum_cells]
    coarse = PhaseSpace(
        cells, grid.momentum_max, grid.space_cells, grid.space_max, grid.boundary,
        grid.momentum_boundary,
    )  # fmt: skip
    return _evaluated(case, coarse)


def _evaluated(case: Case, grid: PhaseSpace) -> Case:
    """The case on another grid, or as it is if its start lives on its own nodes."""
    other = case.on(grid)
    try:
        evaluate(other.states, grid, other.model)
    except InputError:
        return case
    return other


def _begun(case: Case) -> Run:
    f = evaluate(case.states, case.grid, case.model)
    return Run(case.model, case.grid, f, case.settings)


# --- time ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timed:
    """What a trial took: seconds of a step and of a record, cores in use, bytes on a GPU."""

    step: float
    record: float
    busy: float
    device: float
    known: Known


def _timed(case: Case, budget: float) -> Timed:
    """A few steps of a case, and a record."""
    run = _begun(case)
    try:
        backend, state, course = run.backend, run.state, run.course
        seconds: list[float] = []
        cores: list[float] = []
        began = time.perf_counter()
        while len(seconds) < 1 + FEWEST or time.perf_counter() - began < 0.2 * budget:
            first, at, used = state.step, time.perf_counter(), time.process_time()
            stop = state.time + course.length(state, math.inf)
            for _ in backend.advance(state, course, stop):
                pass
            backend.settle()
            seconds.append((time.perf_counter() - at) / max(1, state.step - first))
            cores.append((time.process_time() - used) / max(1, state.step - first))
            if time.perf_counter() - began > budget and len(seconds) > FEWEST:
                break
        run.observer.record(state, run.observer.look(state))
        at = time.perf_counter()
        run.observer.record(state, run.observer.look(state))
        record = time.perf_counter() - at
        step = float(np.median(seconds[1:]))
        busy = float(np.median(cores[1:])) / step
        return Timed(step, record, busy, float(backend.memory), run.known)
    finally:
        run.backend.close()


def _smaller(case: Case) -> tuple[Case, float]:
    """A case with fewer space cells, if there are very many; and how many times more there are."""
    grid = case.grid
    each = grid.size * len(case.model.species)
    cells = list(grid.space_cells)
    while math.prod(cells) * each > TRIAL_CELLS and math.prod(cells) > 64:
        axis = cells.index(max(cells))
        cells[axis] = max(1, cells[axis] // 2)
    if cells == list(grid.space_cells):
        return case, 1.0
    widths = [w * n / m for w, n, m in zip(grid.space_max, cells, grid.space_cells, strict=True)]
    few = PhaseSpace(
        grid.momentum_cells, grid.momentum_max, cells, widths, grid.boundary,
        grid.momentum_boundary,
    )  # fmt: skip
    other = _evaluated(case, few)
    return other, grid.sites / other.grid.sites


# --- bytes --------------------------------------------------------------------------------------


def _bytes(case: Case) -> tuple[float, float]:
    """Of a record and of f."""
    grid, model, kept = case.grid, case.model, case.settings.output
    lengths = {
        "species": len(model.species), "charge": len(model.conserved), "axis": 3, "axis2": 3,
        "mu": 4, "nu": 4, "wall": 6, "process": len(model.processes),
        "p": max(grid.momentum_cells),
        **dict(zip("xyz", grid.space_cells, strict=True)),
        **dict(zip(("px", "py", "pz"), grid.momentum_cells, strict=True)),
    }  # fmt: skip
    record = 8 * sum(
        math.prod(lengths[d] for d in dims)
        for dims, _, _ in quantities(grid, kept.marginals).values()
    )
    return float(record), 8.0 * grid.sites * grid.size * len(model.species)
