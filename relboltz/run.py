"""One run: everything that is fixed before its first step, and the loop."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .backends import choose
from .checks import accuracy as checks
from .checks import box
from .config import Settings, short_axes
from .equilibrium import states as equilibrium
from .errors import Halted, InputError, Interrupted, RunError
from .events.collisions import Flows, Sampling
from .grid import PhaseSpace
from .model import Model
from .progress import Moment, Report
from .records.journal import Journal
from .records.moments import Shells
from .records.observables import Observer
from .records.output import Frame
from .records.space import SpaceObserver
from .stepping.flight import Leg, launch
from .stepping.space import courant_limit, take_over
from .stepping.stepper import StepControl, initial_state
from .stepping.watch import Interrupt, Stops, interruptible
from .transport.plane import COURANT


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
        self.backend = choose(
            grid, model, Sampling(**settings.collisions.model_dump()), settings.run
        )
        self._check_physics(f)
        time, kept = settings.time, settings.output
        self.stops = Stops(time.end, kept.every, kept.snapshots)
        shells = Shells.of(grid)
        self.attributes = self._attributes(title, configuration)
        self.records: list[dict[str, Any]] = []
        self.kept = 0
        self.snapshot_time = -1.0
        self.flight = launch(
            self.backend, self.start, StepControl(time.step, time.tolerance), self.stops.near,
            shells, self.predicted.f,
        )  # fmt: skip
        if grid.sites > 1:
            self.observer: Any = SpaceObserver(cast(Any, self.flight), kept.marginals)
        else:
            self.observer = Observer(grid, model, self.flight.moments())
        self.journal = Journal(
            file,
            Frame(grid, model, shells.p, self.predicted, self.lost, self.observer.quantities()),
        )

    def _check_physics(self, f: NDArray[np.float64]) -> None:
        """Predict the final state, and check matrix elements and accuracy before the first step."""
        grid, model, start = self.grid.at_a_site, self.model, self.start
        time, elements = self.settings.time, self.backend.elements
        if self.grid.sites > 1:
            start, moments = take_over(cast(Any, self.backend), start, Shells.of(grid))
            self.start = start
            conserved = checks.totals_in_space(self.grid, model, start, moments)
            for extreme in checks.extreme_masses(start):
                checks.check_model(elements, grid, *extreme)
            squares = checks.typical_masses(start, moments)
            f = f.mean(axis=0)
            checks.warn_of_parity(self.grid, self.said)
            longest = courant_limit(self.grid, start.mass_squared)
            if not isinstance(time.step, str) and time.step > longest:
                raise InputError(
                    f"time.step = {time.step!r}: a particle would cross more than {COURANT:g} of a "
                    f"space cell in half a step; use at most {longest:.4g} fm, or fewer space_cells"
                )
        else:
            conserved = checks.totals(grid, model, start.occupation(model))
            squares = (start.mass_squared, start.screening2)
        self._energy, leaks = conserved[2], checks.leaks(self.grid)
        self.predicted = equilibrium.nowhere(grid, model)
        if not leaks:
            self.predicted = equilibrium.predict(grid, model, *conserved)
        negative = checks.check_model(elements, grid, *squares)
        self._negative = checks.weigh_negative(grid, model, negative, f, squares, self.said)
        if self.predicted.found and model.thermal:  # masses move: check where they will end, too
            final, m2 = self.predicted.f, self.predicted.mass_squared
            y = equilibrium.coupling_integrals(grid, model, final, m2)
            last = (m2, model.screening_squared(y))
            negative = checks.check_model(elements, grid, *last)
            self._negative = checks.weigh_negative(
                grid, model, negative, final, last, self.said, self._negative
            )
        checks.warn_of_setup(grid, model, squares, self.predicted, self.said, leaks)
        reach = None if leaks else box.reach_of(elements, conserved)
        self.lost = (np.nan, np.nan) if reach is None else reach.loss(grid.momentum_max)
        checks.warn_of_box(grid, model, squares, self.predicted, reach, self.said)

    def _attributes(self, title: str, configuration: str) -> dict[str, Any]:
        energy = self._energy
        return {
            "title": title or f"{self.model.name}: relativistic Boltzmann equation",
            "model": self.model.name,
            "configuration": configuration,
            "seed": self.settings.collisions.seed,
            "backend": self.backend.name,
            "device": self.backend.words,
            "quantum": self.start.unit,
            "momentum_max": list(self.grid.momentum_max),
            **({"boundary": list(self.grid.boundary)} if self.grid.sites > 1 else {}),
            "temperature_at_zero_chemical_potential": equilibrium.temperature_without_number(
                self.model, energy
            ),
        }

    def go(self, progress: Report | None = None) -> xr.Dataset:
        """Step from start to end; whatever happens, what was computed is kept."""
        began = time.perf_counter()
        with interruptible() as interrupt:
            self.backend.interrupt = interrupt
            try:
                self._loop(interrupt, progress)
            except Halted:
                pass
            except Exception as error:
                self.backend.interrupt = False
                ds = self._finish(f"failed: {error}", began)
                raise RunError(str(error), ds) from error
            self.backend.interrupt = False  # what is left to do is to save
            status = f"interrupted by {interrupt.name}" if interrupt else "done"
            ds = self._finish(status, began)
        if self.journal.trouble:
            raise RunError(self.journal.trouble, ds)
        if interrupt:
            raise Interrupted(status, ds, interrupt.signal)
        return ds

    def _loop(self, interrupt: Interrupt, progress: Report | None) -> None:
        """From stop to stop: advance, look at what the steps showed, record."""
        flight, end = self.flight, self.settings.time.end
        self._record()
        while flight.state.time < end and not interrupt:
            for leg in flight.advance(self.stops.next(flight.state.time)):
                self._complete(leg.flows, leg.null_weight)
                self._record()
                if flight.state.step <= 2:  # rates of change need two steps
                    sources = self.observer.early_sources(flight.state)
                    for record, found in zip(self.records, sources, strict=False):
                        record |= found
                if progress is not None:
                    progress(self._progress(leg))
                if interrupt:
                    return
        if not interrupt:
            self._complete(*flight.evaluate())

    def _warn(self) -> None:
        """Say what the steps themselves showed of the accuracy."""
        if not self.flight.watch.steps:
            return
        checks.warn_of_run(self.flight.watch.summary(), self.settings.time.step, self.said)
        for record in self.records:
            checks.warn_of_flow(self.model, np.asarray(record["velocity"]), self.said)
        negative = np.nan_to_num([record["negative_weight"] for record in self.records])
        checks.warn_of_negative(self.model, negative.max(axis=0), self._negative, self.said)
        first, last = self.records[0], self.records[-1]
        density = self.start.unit * self.grid.measure / self.grid.sites
        number = int(last["charge_drift"][0]) * density / float(first["charge_density"][0])
        energy = total_energy(last) / total_energy(first) - 1
        nearest = self.settings.collisions.projection == "nearest"
        in_space = self.grid.sites > 1
        checks.warn_of_drift(number, energy, self.said, nearest, in_space)
        if in_space:
            checks.warn_of_refusals(last, first, self.said)

    def _record(self) -> None:
        """Measure the state if a record is due, keep its f if a snapshot is."""
        now = self.flight.state.time
        record, snapshot = self.stops.wants_record(now), self.stops.wants_snapshot(now)
        if record:
            self._measure()
        if snapshot:
            self._snapshot()
        if record or snapshot:
            if self.flight.state.step > 2:
                self._keep(len(self.records) - 1)
            self.journal.update(self._told("running"), self.records[self.kept :])

    def _snapshot(self) -> None:
        self.snapshot_time = self.flight.state.time
        f = self.flight.occupation()
        self.journal.snapshot(self.snapshot_time, f if self.grid.sites > 1 else f[None])

    def _keep(self, number: int) -> None:
        """Records up to this one are complete."""
        for record in self.records[self.kept : number]:
            self.journal.record(record)
        self.kept = max(self.kept, number)

    def _measure(self) -> None:
        state, moments = self.flight.state, self.flight.moments()
        record = self.observer.record(state, moments)
        self.records.append(record | self.flight.watch.since_last_record())

    def _complete(self, flows: Flows | None, null_weight: float) -> None:
        """Rates of a recorded state are known once the next step has looked at it."""
        if flows is not None and np.isnan(self.records[-1]["null_weight"]):
            self.records[-1] |= self.observer.rates(flows, null_weight)

    def _progress(self, leg: Leg) -> Moment:
        energy = total_energy(self.records[-1]) / total_energy(self.records[0]) - 1
        drift = max((abs(int(d)) for d in self.records[-1]["charge_drift"]), default=0)
        state = self.flight.state
        return Moment(state.time, self.settings.time.end, leg.length, drift, energy)

    def _finish(self, status: str, began: float) -> xr.Dataset:
        """The whole result; a run that ended early also keeps the last good state."""
        if status != "done":
            for keep in (self._keep_last_state, self._keep_last_record):
                try:
                    keep()
                except Exception as error:  # a GPU that failed cannot be asked
                    status += f"; the last state is lost: {error}"
        self._warn()
        self.attributes["wall_seconds"] = time.perf_counter() - began
        self.attributes["steps"] = self.flight.watch.steps
        self._keep(len(self.records))
        return self.journal.finish(self._told(status))

    def _keep_last_state(self) -> None:
        """A snapshot of the state as it is."""
        if self.snapshot_time < self.flight.state.time:
            self._snapshot()

    def _keep_last_record(self) -> None:
        """A record of the state as it is."""
        if not self.records or self.records[-1]["time"] < self.flight.state.time:
            self._measure()

    def _told(self, status: str) -> dict[str, Any]:
        return {**self.attributes, "status": status, "warnings": "\n".join(self.said)}


def total_energy(record: Mapping[str, Any]) -> float:
    """Total energy density of a record, what left the box included [GeV fm^-3]."""
    if "total_energy_total" not in record:
        return float(record["energy_total"])
    return float(record["total_energy_total"] + np.sum(record["left_energy"]))
