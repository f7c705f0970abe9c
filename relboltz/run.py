"""One run: everything that is fixed before its first step, and the loop."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .arrays import Array
from .backends import choose
from .backends.cpu.masses import coupling_integrals
from .checks import accuracy, box, duration, matter, poles
from .equilibrium import states as equilibrium
from .equilibrium.conserved import running
from .errors import Halted, Interrupted, RunError
from .events.collisions import Flows
from .grid import PhaseSpace
from .model import Model
from .progress import Moment, Report
from .records.journal import Journal
from .records.observables import Observer
from .records.output import Frame
from .records.quantities import quantities
from .settings import Settings, refuse, short_axes
from .stepping.quanta import occupation
from .stepping.step import Course, Leg, begin
from .stepping.watch import Interrupt, Stops, interruptible
from .transport.forces import courant_limit


class Run:
    """One run: everything that is fixed before its first step, and the loop."""

    def __init__(
        self,
        model: Model,
        grid: PhaseSpace,
        f: Array,
        settings: Settings,
        file: Path | None = None,
        title: str = "",
        configuration: str = "",
    ):
        refuse(short_axes(grid.momentum_cells, settings.collisions.projection))
        self.model, self.grid, self.settings = model, grid, settings
        f = f.reshape(-1, len(model.species), grid.size)
        self.backend = choose(grid, model, settings.collisions, settings.run)
        wants, kept = settings.time, settings.output
        self.stops = Stops(wants.end, kept.every, kept.snapshots)
        self.course = Course(wants.step, wants.tolerance, self.stops.near, grid)
        self.state = begin(self.backend, f)
        self._check_physics(f)
        shown = quantities(grid, kept.marginals)
        self.observer = Observer(self.backend, self.predicted.f, shown, kept.marginals)
        self.attributes = self._attributes(title, configuration)
        self.journal = Journal(
            file, Frame(grid, model, self.observer.shells.p, self.predicted, self.lost, shown)
        )

    def _check_physics(self, f: Array) -> None:
        """Predict the final state, and check matrix elements and accuracy before the first step."""
        grid, model, state = self.grid.at_a_site, self.model, self.state
        elements, leaks = self.backend.elements, matter.leaks(self.grid)
        moments = self.backend.moments(state.squares, np.zeros((len(model.species), grid.size)))
        conserved = matter.totals_of_sites(self.grid, model, moments, state.squares, state.unit)
        squares = matter.typical_masses(model, moments, state.squares)
        self._energy = conserved[2]
        longest = courant_limit(self.grid, state.mass_squared)
        duration.check_step(self.settings.time, longest)
        self._say(duration.of_steps(self.settings.time, longest, self.backend, state))
        self._say(accuracy.of_parity(self.grid))
        self.predicted = equilibrium.nowhere(grid, model)
        if not leaks:
            self.predicted = equilibrium.predict(grid, model, *conserved)
        happens = running(model, conserved[0])
        for extreme in matter.extreme_masses(model, state.squares):
            poles.check_model(elements, grid, *extreme, happens)
        self._negative = poles.check_state(
            elements, grid, f.mean(axis=0), squares, self.state.said, happens=happens
        )
        if self.predicted.found and model.thermal:  # masses move: check where they will end, too
            final, m2 = self.predicted.f, self.predicted.mass_squared
            last = (m2, model.screening_squared(coupling_integrals(grid, model, final, m2)))
            self._negative = poles.check_state(
                elements, grid, final, last, self.state.said, self._negative, happens
            )
        self._say(accuracy.of_setup(grid, model, squares, self.predicted, leaks))
        reach = None if leaks else box.reach_of(elements, conserved)
        self.lost = (np.nan, np.nan) if reach is None else reach.loss(grid.momentum_max)
        self._say(accuracy.of_box(grid, model, squares, self.predicted, reach))

    def _say(self, texts: Iterable[str]) -> None:
        """Warn of what is said for the first time."""
        accuracy.warn(texts, self.state.said)

    def _attributes(self, title: str, configuration: str) -> dict[str, Any]:
        without = equilibrium.temperature_without_number(self.model, self._energy)
        return {
            "title": title or f"{self.model.name}: relativistic Boltzmann equation",
            "model": self.model.name,
            "configuration": configuration,
            "seed": self.settings.collisions.seed,
            "backend": self.backend.name,
            "device": self.backend.words,
            "quantum": self.state.unit,
            "momentum_max": list(self.grid.momentum_max),
            **({"boundary": list(self.grid.boundary)} if self.grid.moving_axes else {}),
            "temperature_at_zero_chemical_potential": without,
        }

    # -- the loop --------------------------------------------------------------------------------

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
                words = [str(error), self.journal.trouble]
                raise RunError("; ".join(word for word in words if word), ds) from error
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
        backend, state, end = self.backend, self.state, self.settings.time.end
        self._record()
        while state.time < end and not interrupt:
            for leg in backend.advance(state, self.course, self.stops.next(state.time)):
                self._complete(leg.flows, leg.null_weight)
                self._record()
                if progress is not None:
                    progress(self._progress(leg))
                if interrupt:
                    return
        if not interrupt:
            report = backend.collide(state.step, 0.0, state.squares)
            self._complete(report.flows, report.null_weight)

    def _record(self) -> None:
        """Measure the state if a record is due, keep its f if a snapshot is."""
        now = self.state.time
        record, snapshot = self.stops.wants_record(now), self.stops.wants_snapshot(now)
        if record:
            self._measure()
        if snapshot:
            self._snapshot()
        if record or snapshot:
            self.journal.update(self._told("running"), self.state.pending)

    def _measure(self) -> None:
        """A record of the state; what the next steps tell of it is added later."""
        state = self.state
        state.pending.append(self.observer.record(state) | state.watch.since_last_record())
        state.recorded = state.time
        state.first = state.first or dict(state.pending[0])

    def _snapshot(self) -> None:
        """f of the state."""
        f = occupation(self.backend.get(), self.state.bits, self.model)
        self.journal.snapshot(self.state.time, f)
        self.state.kept = self.state.time

    def _complete(self, flows: Flows | None, null_weight: float) -> None:
        """Rates of a record are known after one step, rates of change of its masses after two."""
        state, waiting = self.state, self.state.pending
        if flows is not None and waiting and np.isnan(waiting[-1]["null_weight"]):
            waiting[-1] |= self.observer.rates(flows, null_weight)
        for record in waiting:
            if record["step_number"] < 2 and state.step <= 2:
                record |= self.observer.sources(state, record)
        if state.step >= 2:
            self._keep([r for r in waiting if not np.isnan(r["null_weight"])])

    def _keep(self, complete: list[dict[str, Any]]) -> None:
        """Records that nothing will be added to."""
        for record in complete:
            self.state.watch.note(record)
            self.journal.record(record)
        done = {id(record) for record in complete}
        self.state.pending = [r for r in self.state.pending if id(r) not in done]

    def _ends(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The first record and the latest."""
        waiting = self.state.pending
        return self.state.first, waiting[-1] if waiting else self.journal.last

    def _progress(self, leg: Leg) -> Moment:
        first, last = self._ends()
        drift = max((abs(int(d)) for d in last["charge_drift"]), default=0)
        energy = energy_of(last) / energy_of(first) - 1
        return Moment(self.state.time, self.settings.time.end, leg.length, drift, energy)

    # -- the end ---------------------------------------------------------------------------------

    def _finish(self, status: str, began: float) -> xr.Dataset:
        """The whole result; a run that ended early also keeps the last good state."""
        if status != "done":
            now = self.state
            for kept, keep in ((now.kept, self._snapshot), (now.recorded, self._measure)):
                try:
                    if kept < self.state.time:
                        keep()
                except Exception as error:  # a GPU that failed cannot be asked
                    status += f"; the last state is lost: {error}"
        self._keep(list(self.state.pending))
        self._warn()
        self.attributes["wall_seconds"] = time.perf_counter() - began
        self.attributes["steps"] = self.state.watch.steps
        return self.journal.finish(self._told(status))

    def _warn(self) -> None:
        """Say what the steps themselves showed of the accuracy."""
        watch = self.state.watch
        if not watch.steps:
            return
        first, last = self._ends()
        self._say(accuracy.of_steps(watch.summary(), self.settings.time.step))
        self._say(accuracy.of_flow(self.model, np.array([watch.fastest])))
        self._say(poles.of_negative(self.model, np.array(watch.negative), self._negative))
        density = self.state.unit * self.grid.measure / self.grid.sites
        charges = accuracy.charge_drifts(self.model, first, last, density)
        energy = energy_of(last) / energy_of(first) - 1
        nearest = self.settings.collisions.projection == "nearest"
        self._say(accuracy.of_drift(charges, energy, nearest, bool(self.grid.moving_axes)))
        self._say(accuracy.of_refusals(last, first))

    def _told(self, status: str) -> dict[str, Any]:
        """Attributes of the result."""
        return {**self.attributes, "status": status, "warnings": "\n".join(self.state.said)}


def energy_of(record: Mapping[str, Any]) -> float:
    """Total energy density of a record, what left the box included [GeV fm^-3]."""
    return float(np.mean(record["energy_total"]) + np.sum(record.get("left_energy", 0.0)))
