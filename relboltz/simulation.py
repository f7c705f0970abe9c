"""solve(): from a model, a grid and a start to a Dataset."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from . import checks, equilibrium, initial, output
from .backends.cpu import CpuBackend, Sampling
from .config import Config, Settings, short_axes
from .errors import InputError, Interrupted, RunError
from .grid import PhaseSpace
from .initial import Shape
from .model import Model
from .observables import Observer
from .progress import Moment, Report, bar
from .stepping import State, StepControl, Stepper, StepReport, initial_state

Start = Mapping[str, Shape | Callable | NDArray] | NDArray


def solve(
    model: Model,
    grid: PhaseSpace | int | Sequence[int],
    initial: Start,
    *,
    end: float,
    file: str | Path | None = None,
    progress: bool | Report = True,
    **options: Any,
) -> xr.Dataset:
    """Solve the Boltzmann equation from t = 0 to ``end`` [fm].

    Parameters
    ----------
    model : such as ``qcd(alpha_s=0.3)``, ``gluons(0.3)``, ``quarks(0.3)`` or your own Model
    grid : a PhaseSpace; or numbers of cells, for a box that is chosen automatically
    initial : f by species or group: shapes of ``relboltz.initial``, functions of (px, py, pz) in
        GeV, or node values; or one array (species, nx, ny, nz)
    end : last time [fm]
    file : NetCDF file to keep up to date while running
    progress : a bar where somebody watches (True), none (False), or a function that is called
        with a ``relboltz.progress.Moment`` after every step
    **options : keys of [collisions], [time], [run] and [output]: samples, seed, projection,
        sampling, symmetrical, pairs, step, tolerance, threads, every, snapshots

    Returns
    -------
    xarray.Dataset with numbers, energies, masses, spectra, snapshots of f, the predicted
    equilibrium, ... all with units

    Raises
    ------
    InputError : before any long work starts
    RunError, Interrupted : what was computed is in their ``dataset``, and in ``file`` if given
    """
    settings = Settings.from_options(end=end, **options)
    if file is not None:
        output.check_writable(Path(file))
    shapes = None if isinstance(initial, np.ndarray) else _shapes(initial)
    if not isinstance(grid, PhaseSpace):
        if shapes is None or any(isinstance(s, np.ndarray) for s in shapes.values()):
            raise InputError("grid: an initial state given as an array needs a PhaseSpace")
        grid = checks.automatic_grid(grid, model, shapes)
    f = _occupation(shapes if shapes is not None else initial, grid, model)
    run = Run(model, grid, f, settings, Path(file) if file is not None else None)
    if not isinstance(progress, bool):
        return run.go(progress)
    with bar() if progress else nullcontext() as report:
        return run.go(report)


def run_config(
    config: Config,
    file: Path | None = None,
    progress: Report | None = None,
    announce: Callable[[Run], None] | None = None,
) -> xr.Dataset:
    """Run a configuration and write its output file; ``announce`` sees the run before it starts."""
    path = file if file is not None else Path(config.output.file)
    output.check_writable(path)
    model, shapes = config.build_model(), config.build_initial()
    grid = config.build_grid() or checks.automatic_grid(config.grid.momentum_cells, model, shapes)
    f = initial.evaluate(shapes, grid, model)
    run = Run(model, grid, f, config, path, config.title, config.to_toml())
    if announce is not None:
        announce(run)
    return run.go(progress)


def _shapes(start: Mapping[str, Shape | Callable | NDArray]) -> dict[str, Any]:
    """Functions become shapes; arrays stay."""
    return {
        name: value if isinstance(value, Shape | np.ndarray) else initial.from_function(value)
        for name, value in start.items()
    }


def _occupation(start: Any, grid: PhaseSpace, model: Model) -> NDArray[np.float64]:
    """f (species, nodes) from shapes, arrays, or both."""
    if isinstance(start, np.ndarray):
        start = dict(zip(model.names, _rows(start, grid, model), strict=True))
    arrays = {k: v for k, v in start.items() if isinstance(v, np.ndarray)}
    shapes = {k: v for k, v in start.items() if k not in arrays}
    shapes |= {k: initial.NodeValues(v) for k, v in arrays.items()}
    return initial.evaluate(shapes, grid, model)


def _rows(values: NDArray, grid: PhaseSpace, model: Model) -> NDArray:
    wanted = (len(model.species), grid.size)
    if values.size != wanted[0] * wanted[1]:
        raise InputError(
            f"initial: an array of shape {values.shape} does not fit {wanted[0]} species on "
            f"{list(grid.momentum_cells)} nodes"
        )
    return values.reshape(wanted)


class Run:
    """One run: everything that is fixed before its first step, and the loop."""

    def __init__(
        self,
        model: Model,
        grid: PhaseSpace,
        f: NDArray[np.float64],
        settings: Settings,
        file: Path | None = None,
        title: str = "",
        configuration: str = "",
    ):
        problems = short_axes(grid.momentum_cells, settings.collisions.projection)
        if problems:
            raise InputError("\n".join(problems))
        self.model, self.grid, self.settings = model, grid, settings
        self.said: list[str] = []
        self.start = initial_state(grid, model, f)
        self.predicted = checks.predict_from(grid, model, self.start.occupation(model))
        self.backend = CpuBackend(
            grid, model, Sampling(**settings.collisions.model_dump()), settings.run.threads
        )
        checks.check_model(self.backend, self.start.mass_squared, self.start.screening2)
        checks.warn_of_setup(grid, model, self.start.screening2, self.predicted, self.said)
        self.observer = Observer(grid, model, self.start)
        self.sink = output.Sink(file)
        self.attributes = self._attributes(title, configuration)
        self.records: list[dict[str, Any]] = []
        self.snapshots: list[tuple[float, NDArray[np.float64]]] = []
        self.watch = _Watch()

    def _attributes(self, title: str, configuration: str) -> dict[str, Any]:
        energy = equilibrium.total_energy(
            self.grid, self.model, self.start.occupation(self.model), self.start.mass_squared
        )
        return {
            "title": title or f"{self.model.name}: relativistic Boltzmann equation",
            "model": self.model.name,
            "configuration": configuration,
            "seed": self.settings.collisions.seed,
            "backend": self.backend.name,
            "quantum": self.start.unit,
            "momentum_max": list(self.grid.momentum_max),
            "temperature_at_zero_chemical_potential": equilibrium.temperature_without_number(
                self.grid, self.model, energy
            ),
        }

    def go(self, progress: Report | None = None) -> xr.Dataset:
        """Step from start to end; whatever happens, what was computed is kept."""
        status = "running"
        began = time.perf_counter()
        with _interruptible() as interrupt:
            try:
                self._loop(interrupt, progress)
                status = f"interrupted by signal {interrupt.signal}" if interrupt else "done"
            except Exception as error:
                status = f"failed: {error}"
                raise RunError(str(error), self._finish(status, began)) from error
        ds = self._finish(status, began)
        if interrupt:
            raise Interrupted(status, ds, interrupt.signal)
        if self.sink.trouble:
            raise RunError(self.sink.trouble, ds)
        return ds

    def _loop(self, interrupt: _Interrupt, progress: Report | None) -> None:
        """Choose a length, step, look at it, record."""
        end = self.settings.time.end
        stepper = Stepper(self.backend, self.start.bits)
        control = StepControl(self.settings.time.step, self.settings.time.tolerance)
        stops = _Stops(self.settings)
        state = self.start
        self._record(state, stops)
        while state.time < end and not interrupt:
            new, report = stepper.step(state, control.length(stops.next(state.time) - state.time))
            if not control.learn(report):
                continue
            self._complete(report)
            state = stops.snap(new)
            if self.watch.steps == 1:  # the first record had no step behind it
                self.records[0]["source"] = self.observer.source(state)
            if stops.reached(state.time):
                self._record(state, stops)
            if progress is not None:
                progress(self._progress(state, report))
        if self.records and not interrupt:
            flows, null = stepper.evaluate(state)
            self._complete(replace(report, flows=flows, null_weight=null), last=True)
        checks.warn_of_run(*self.watch.summary(), self.said)

    def _record(self, state: State, stops: _Stops) -> None:
        record = self.observer.record(state)
        record |= self.watch.since_last_record()
        self.records.append(record)
        if stops.wants_snapshot(state.time):
            f = state.occupation(self.model)
            self.snapshots.append((state.time, f))
        if self.sink.due():
            self.sink.write(self._dataset("running"))

    def _complete(self, report: StepReport, last: bool = False) -> None:
        """Rates of a recorded state are known once the next step has looked at it."""
        _check_finite(self.model, report)
        if np.isnan(self.records[-1]["null_weight"]):
            self.records[-1] |= self.observer.rates(report)
        if not last:
            self.watch.see(report)

    def _progress(self, state: State, report: StepReport) -> Moment:
        energy = self.records[-1]["energy_total"] / self.records[0]["energy_total"] - 1
        drift = max((abs(int(d)) for d in self.records[-1]["charge_drift"]), default=0)
        return Moment(state.time, self.settings.time.end, report.length, drift, energy)

    def _finish(self, status: str, began: float) -> xr.Dataset:
        self.attributes["wall_seconds"] = time.perf_counter() - began
        self.attributes["steps"] = self.watch.steps
        ds = self._dataset(status)
        self.sink.write(ds, final=True)
        return ds

    def _dataset(self, status: str) -> xr.Dataset:
        attributes = {**self.attributes, "status": status, "warnings": "\n".join(self.said)}
        return output.dataset(
            self.grid, self.model, self.observer.shells.p, self.records, self.snapshots,
            self.predicted, attributes,
        )  # fmt: skip


def _check_finite(model: Model, report: StepReport) -> None:
    for process, flow in zip(model.processes, report.flows.forward, strict=True):
        if not np.isfinite(flow):
            raise RunError(f"process {process.name}: its rate is {flow}, not a number")


class _Stops:
    """Times that a step must hit: records, snapshots, the end."""

    def __init__(self, settings: Settings):
        every, end = settings.output.every, settings.time.end
        count = math.floor(end / every + 1e-9)
        self._records = sorted({*(i * every for i in range(count + 1)), end})
        if len(self._records) > 1 and end - self._records[-2] < 1e-9 * end:
            del self._records[-2]
        self._snapshots = sorted(settings.output.snapshots)
        self._all = np.array(sorted({*self._records, *self._snapshots}))
        self._near = 1e-9 * end

    def next(self, now: float) -> float:
        """The first stop after now."""
        return float(self._all[np.searchsorted(self._all, now + self._near)])

    def snap(self, state: State) -> State:
        """A state a rounding error away from a stop is at the stop."""
        nearest = float(self._all[np.abs(self._all - state.time).argmin()])
        return replace(state, time=nearest) if abs(nearest - state.time) < self._near else state

    def reached(self, now: float) -> bool:
        """Whether a record or a snapshot is due."""
        return bool((np.abs(self._all - now) < self._near).any())

    def wants_snapshot(self, now: float) -> bool:
        """Whether a snapshot is due."""
        return any(abs(t - now) < self._near for t in self._snapshots)


@dataclass
class _Watch:
    """Keeps an eye on noise, limits and lost weight."""

    steps: int = 0
    noise: float = np.nan
    scatter: float = 0.0
    moved: float = 0.0
    nulls: list[float] = field(default_factory=list)
    limited: list[float] = field(default_factory=list)
    _rate: NDArray[np.float64] | None = None
    _step: float = np.nan
    _limited: float = 0.0

    def see(self, report: StepReport) -> None:
        """Compare C[f] of two successive steps, whose samples are independent."""
        self.steps += 1
        if self._rate is not None:
            size = float(np.abs(report.rate).sum() + np.abs(self._rate).sum())
            scatter = float(np.abs(report.rate - self._rate).sum())
            self.noise = scatter / size if size > 0 else np.nan
            self.scatter += scatter * report.length
            self.moved += size * report.length
        self._rate, self._step = report.rate, report.length
        self._limited = max(self._limited, report.limited_weight)
        self.limited.append(report.limited_weight)
        self.nulls.append(report.null_weight)

    def since_last_record(self) -> dict[str, float]:
        """What a record holds of the steps before it."""
        result = {"step": self._step, "limited_weight": self._limited, "noise": self.noise}
        self._limited = 0.0
        return result

    def summary(self) -> tuple[float, float, float]:
        """Noise of all that moved, mean limited weight, largest lost weight."""
        if not self.steps:
            return 0.0, 0.0, 0.0
        noise = self.scatter / self.moved if self.moved > 0 else 0.0
        return noise, float(np.mean(self.limited)), max(self.nulls)


class _Interrupt:
    """Set by a signal; true once it came."""

    signal = 0

    def __bool__(self) -> bool:
        return self.signal != 0


@contextmanager
def _interruptible() -> Iterator[_Interrupt]:
    """Within it Ctrl-C and SIGTERM end the loop after the current step; twice is at once."""
    interrupt = _Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handler(number: int, frame: FrameType | None) -> None:
        if interrupt:
            raise KeyboardInterrupt
        interrupt.signal = number

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, old in before.items():
            signal.signal(number, old)
