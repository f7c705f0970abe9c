"""Estimate steps, time, memory and disk space of a run on this machine before it starts.

The estimate uses two short trials. A coarse trial, the same set-up with few momentum cells and,
in space, only cells in the middle of the box, is stepped within a budget of seconds to predict the
lengths of the steps. A few steps of the set-up itself, in space with as many of its cells as a
reliable timing needs, give the time per step.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..backends.cpu.threads import available_cores
from ..checks.matter import host_memory
from ..grid.phase_space import PhaseSpace
from ..initial import evaluate
from ..io.checkpoint import KEPT
from ..io.quantities import quantities
from ..parallel.ray import resolve
from ..run.preflight import Preflight
from ..run.runner import Run
from ..run.setup import Case
from ..stepping.accuracy_watch import OutputTimes
from ..transport.forces import courant_limit
from ..transport.moments import Shells
from ..util.errors import AccuracyWarning, InputError

COARSE, COARSE_IN_SPACE = 11, 7
"""Largest number of momentum cells along an axis of the coarse trial, homogeneous and in space."""
BUDGET = 10.0
"""Seconds for each trial."""
COARSE_EVENTS = 1_000_000
"""Largest number of events per step of the coarse trial, so that it can reach the end of the run.
"""
FEWEST, FEWEST_COARSE = 2, 8
"""Timed steps of a trial, after the first step, which compiles; and steps of the coarse trial."""
TRIAL_CELLS = 4_000_000
"""Largest number of values of f in a trial; larger runs in space are tried with some of their
cells.
"""
PROGRAM = 272 * 2**20
"""Bytes of Python, its libraries and compiled code: 261 to 285 MiB, measured with tiny runs of
gluons, quarks and QCD, in a box and in space.
"""
START = 3.5
"""Seconds to load Python, its libraries and compiled code: 2.8 to 4.5, measured with the same runs.
"""
PACKED, HEADINGS = 0.75, 150_000
"""Compressed size of records and f relative to their bytes, and bytes of their metadata: measured,
see benchmarks/README.md.
"""
CHECKPOINT = 15_000
"""Bytes of a checkpoint besides f and the predicted f of a site: mostly the configuration."""


@dataclass(frozen=True)
class CostEstimate:
    """Estimated cost of a run."""

    steps: float
    seconds_to_begin: float
    """Time until the first step: libraries, initial state, masses, predicted final state."""
    seconds_per_step: float
    seconds_per_record: float
    busy: float
    """Average number of cores that a step keeps busy on an otherwise idle machine."""
    records: int
    snapshots: int
    memory: float
    """Host memory in bytes."""
    device_memory: float
    """GPU memory in bytes; 0 without a GPU."""
    file_size: float
    """Size of the result in bytes."""
    checkpoint_size: float
    """Size of the files kept beside the result during the run, in bytes."""
    finished: bool
    """Whether the coarse trial reached the end; otherwise its last steps are extrapolated."""
    known: Preflight

    @property
    def seconds(self) -> float:
        """Wall time of the whole run if all code is compiled already."""
        work = self.steps * self.seconds_per_step + self.records * self.seconds_per_record
        return self.seconds_to_begin + work

    @property
    def core_seconds(self) -> float:
        """Core time of the whole run, summed over cores."""
        return self.seconds_to_begin + self.busy * (self.seconds - self.seconds_to_begin)


def estimate(case: Case, budget: float = BUDGET) -> CostEstimate:
    """Estimate the cost of a case on this machine; budget : seconds for each of two trials."""
    settings, grid = case.settings, case.grid
    if settings.run.workers:
        raise InputError(
            f"run.workers = {settings.run.workers}: one process can be estimated; set it to 0"
        )
    time, kept = settings.time, settings.output
    stops = OutputTimes(time.end, kept.every, kept.snapshots or (), time.start)
    if isinstance(settings.time.step, str):
        steps, finished = _steps(case, budget)
    else:
        _steps(case, 0.0)  # compiles the code, so that the timing below excludes compilation
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
    return CostEstimate(
        steps=steps,
        seconds_to_begin=START + timed.begin * share,
        seconds_per_step=timed.step * share,
        seconds_per_record=timed.record * share,
        busy=timed.busy,
        records=records,
        snapshots=snapshots,
        memory=PROGRAM + host,
        device_memory=timed.device * share if backend == "cuda" else 0.0,
        file_size=HEADINGS + PACKED * (records * of_record + snapshots * of_f),
        checkpoint_size=KEPT * (of_f * (1 + 1 / grid.sites) + CHECKPOINT),
        finished=finished,
        known=timed.known,
    )


# --- steps --------------------------------------------------------------------------------------


def _steps(case: Case, budget: float) -> tuple[float, bool]:
    """Return the automatic steps from a coarse trial, and whether it reached the end."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)  # it is coarse on purpose
        run = _begun(_coarse(case))
    try:
        backend, state, stops = run.backend, run.state, run.stops
        began = math.inf  # the first step compiles
        marks, every = [(0.0, 0)], case.settings.output.every
        while state.time < stops.end:
            for _ in backend.advance(state, run.step_plan, stops.next(state.time)):
                began = min(began, time.perf_counter())
                marks.append((state.time, state.step))
                spent = time.perf_counter() - began
                if spent > budget and state.step >= FEWEST_COARSE:
                    longest = min(courant_limit(run.grid, state.mass_squared), every)
                    return state.step + steps_left(marks, stops.end, longest), False
        return float(state.step), True
    finally:
        run.backend.close()


def steps_left(marks: Sequence[tuple[float, int]], end: float, longest: float) -> float:
    """Return the steps from the last mark to the end, if their lengths keep growing as before.

    The step length is assumed to be a power of time, with an exponent between 0 and 1 that follows
    from the mean length over the last half of the elapsed time and over the quarter before it.

    marks : times [fm] and numbers of steps until then, starting with (0, 0); longest : longest step
    [fm]
    """
    now = marks[-1][0]
    times, counts = (np.array(row, float) for row in zip(*marks, strict=True))
    quarter, half, whole = np.interp([now / 4, now / 2, now], times, counts)
    late, early = (now / 2) / (whole - half), (now / 4) / max(half - quarter, 1e-9)
    power = min(max(math.log2(late / early), 0.0), 1.0)
    ahead = np.linspace(now, end, 2000)
    lengths = np.minimum(late * (ahead / (0.75 * now)) ** power, longest)
    return float(np.trapezoid(1 / lengths, ahead))


def _given_steps(stops: OutputTimes, step: float) -> float:
    """Return the number of steps of a given length, shortened at output times."""
    between = np.diff(stops.all)
    return float(np.ceil(between / step - 1e-9).sum())


def _coarse(case: Case) -> Case:
    """Return the case with few momentum cells of equal parity and few space cells.

    Initial conditions given on nodes keep all cells.
    """
    grid = case.grid
    most = COARSE if grid.sites == 1 else COARSE_IN_SPACE
    cells = [n if n <= most else most + (n - most) % 2 for n in grid.momentum_cells]
    each = math.prod(cells) * case.settings.collisions.samples * len(case.model.processes)
    return _evaluated(case, _middle(grid, cells, COARSE_EVENTS / each, 1))


def _middle(grid: PhaseSpace, cells: Sequence[int], most: float, least: int) -> PhaseSpace:
    """Return a grid with space cells of the same width in the middle of the box.

    cells : momentum cells; most, least : bounds on the number of space cells
    """
    places = list(grid.space_cells)
    while math.prod(places) > max(most, least) and max(places) > 2:
        axis = places.index(max(places))
        places[axis] -= 2 if places[axis] > 3 else 1  # the remaining cells keep their positions
    widths = [w * n / m for w, n, m in zip(grid.space_max, places, grid.space_cells, strict=True)]
    return PhaseSpace(
        cells,
        grid.momentum_max,
        places,
        widths,
        grid.boundary,
        grid.momentum_boundary,
        grid.expansion,
    )


def _evaluated(case: Case, grid: PhaseSpace) -> Case:
    """Return the case on another grid, or unchanged if its start is tied to its nodes."""
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
class TrialTiming:
    """Timing of a trial: seconds to begin, per step, per record; cores in use; bytes on a GPU."""

    begin: float
    step: float
    record: float
    busy: float
    device: float
    known: Preflight


def _timed(case: Case, budget: float) -> TrialTiming:
    """Time a few steps of a case and a record."""
    at = time.perf_counter()
    run = _begun(case)
    begin = time.perf_counter() - at
    try:
        backend, state, step_plan = run.backend, run.state, run.step_plan
        seconds: list[float] = []
        cores: list[float] = []
        began = time.perf_counter()
        while len(seconds) < 1 + FEWEST or time.perf_counter() - began < 0.2 * budget:
            first, at, used = state.step, time.perf_counter(), time.process_time()
            stop = state.time + step_plan.length(state, math.inf)
            for _ in backend.advance(state, step_plan, stop):
                pass
            backend.synchronize()
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
        return TrialTiming(begin, step, record, busy, float(backend.memory), run.known)
    finally:
        run.backend.close()


def _smaller(case: Case) -> tuple[Case, float]:
    """Return a case with fewer space cells if there are very many, and the reduction factor."""
    grid = case.grid
    each = grid.size * len(case.model.species)
    few = _middle(grid, grid.momentum_cells, TRIAL_CELLS / each, 64)
    if few.sites == grid.sites:
        return case, 1.0
    other = _evaluated(case, few)
    return other, grid.sites / other.grid.sites


# --- bytes --------------------------------------------------------------------------------------


def _bytes(case: Case) -> tuple[float, float]:
    """Return the bytes of a record and of f."""
    grid, model, kept = case.grid, case.model, case.settings.output
    lengths = {
        "species": len(model.species), "charge": len(model.conserved), "axis": 3, "axis2": 3,
        "mu": 4, "nu": 4, "wall": 6, "process": len(model.processes),
        "p": len(Shells.of(grid).count),
        **dict(zip("xyz", grid.space_cells, strict=True)),
        **dict(zip(("px", "py", "pz"), grid.momentum_cells, strict=True)),
    }  # fmt: skip
    record = 8 * sum(
        math.prod(lengths[d] for d in dims)
        for dims, _, _ in quantities(grid, kept.marginals).values()
    )
    return float(record), 8.0 * grid.sites * grid.size * len(model.species)
