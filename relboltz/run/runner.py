"""One run: preparation before the first step, the time loop, and the result."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ..checks import accuracy, poles
from ..config.settings import GridSettings, Settings, of_expansion, refuse, short_axes
from ..events.collisions import Flows
from ..grid.phase_space import PhaseSpace
from ..io.checkpoint import WAITED_FOR, CheckpointContent, CheckpointWriter
from ..io.contents import check_state, readable
from ..io.journal import Journal
from ..io.observables import Observer, StateSums
from ..io.output import ResultFrame, versions
from ..io.quantities import quantities
from ..model.model import Model
from ..parallel.ray import choose
from ..stepping.accuracy_watch import Interrupt, OutputTimes, interruptible
from ..stepping.expanding import ExpansionSchedule
from ..stepping.quanta import occupation
from ..stepping.state import State
from ..stepping.step import Segment, StepPlan, begin
from ..transport.ledger import LostQuanta
from ..util.arrays import Array, Integers
from ..util.errors import CheckpointWarning, Halted, Interrupted, RunError, say
from .preflight import Preflight, described, run_checks
from .progress import Report, RunProgress, stage


@dataclass(frozen=True)
class RunInfo:
    """Metadata of a run: texts for its file, and a recipe to rebuild its model.

    recipe : see ``resume``; claim : raises an error if the output must not be written
    """

    title: str = ""
    configuration: str = ""
    recipe: dict[str, Any] = field(default_factory=dict)
    claim: Callable[[], None] = field(default=lambda: None)

    def packed(self) -> dict[str, Any]:
        """Return the metadata stored in a checkpoint."""
        return {
            "title": self.title, "configuration": self.configuration, "recipe": self.recipe,
        }  # fmt: skip


class Run:
    """One run: preparation before the first step, and the time loop."""

    def __init__(
        self,
        model: Model,
        grid: PhaseSpace,
        start: Array | CheckpointContent,
        settings: Settings,
        file: Path | None = None,
        about: RunInfo | None = None,
    ):
        """start : f (sites, species, nodes), or the checkpoint from which to continue"""
        refuse(short_axes(grid.momentum_cells, settings.collisions.projection))
        refuse(of_expansion(grid, settings.time))
        self.model, self.grid, self.settings = model, grid, settings
        self.about = about or RunInfo()
        self.backend = choose(grid, model, settings.collisions, settings.run, self.about.recipe)
        try:
            self._set_up(start, file)
        except BaseException:
            self.backend.close()
            raise

    def _set_up(self, start: Array | CheckpointContent, file: Path | None) -> None:
        """Prepare everything that is fixed before the first step."""
        model, grid, settings = self.model, self.grid, self.settings
        wants, kept = settings.time, settings.output
        named = () if isinstance(wants.regrid_times, str) else wants.regrid_times
        self.stops = OutputTimes(wants.end, kept.every, kept.snapshots, wants.start, named)
        law = grid.expansion
        schedule = None if law is None else ExpansionSchedule(law, wants.start, wants.regrid_times)
        self.step_plan = StepPlan(
            wants.step, wants.tolerance, self.stops.time_tolerance, grid, schedule=schedule
        )
        self._wall = 0.0
        self._last: tuple[dict[str, Any], dict[str, Any]] | None = None
        if isinstance(start, CheckpointContent):
            self._take_up(start)
        else:
            f = start.reshape(-1, len(model.species), grid.size)
            stage("masses of the start (compiling if necessary)")
            self.state = begin(self.backend, f, schedule)
            self.state.time = wants.start
            stage("predicted final state, matrix elements, accuracy")
            self.known = run_checks(self.backend, self.state, settings.time, f)
            self.known.attributes |= {"run": uuid.uuid4().hex, **self._attributes()}
        shown = quantities(grid, kept.marginals)
        known = self.known
        self.observer = Observer(
            self.backend, known.predicted.f, shown, kept.marginals, self.step_plan
        )
        p = self.observer.shells.p
        self.journal = Journal(
            file, ResultFrame(grid, model, p, known.predicted, known.lost, shown)
        )
        if isinstance(start, CheckpointContent):
            self._recall(start)
        self._keeper = None
        if file is not None:
            origin = start.path if isinstance(start, CheckpointContent) else None
            self._keeper = CheckpointWriter(file, self._settle, origin)

    def _take_up(self, saved: CheckpointContent) -> None:
        """Continue from a checkpoint."""
        facts, arrays = saved.facts, saved.arrays
        with readable(saved):
            self.state = State.unpacked(arrays, LostQuanta(self.grid, self.model))
            check_state(saved, self.state, self.model)
            self.known = Preflight.unpacked(facts["known"], arrays)
        self.backend.put(arrays["number"], self.state.bits)
        if self.step_plan.schedule is not None:
            now = self.step_plan.grid_at(self.state.time, self.state.doublings)
            self.backend.set_momentum_grid(now)
        self.known.attributes |= self._attributes()
        self._wall = facts["wall_seconds"]

    def _recall(self, saved: CheckpointContent) -> None:
        """Restore records and snapshots up to a checkpoint."""
        stops, now = self.stops, self.state.time

        def kept(time: float) -> bool:
            return time <= now + stops.time_tolerance and stops.wants_snapshot(time)

        run, needed = self.known.attributes["run"], stops.snapshots_until(now)
        place = saved.facts["place"]
        lost = self.journal.go_on(place, run, kept, needed)
        if lost:
            text = (
                f"{lost}; its {place['records']} records and {place['snapshots']} snapshots up to "
                f"t = {now:.6g} fm are lost, and the run goes on from {saved.path.name} without "
                "them"
            )
            self.state.said.append(text)
            say(text, CheckpointWarning)

    def _attributes(self) -> dict[str, Any]:
        return {
            "title": self.about.title or f"{self.model.name}: relativistic Boltzmann equation",
            "model": self.model.name,
            "configuration": self.about.configuration,
            "seed": self.settings.collisions.seed,
            "backend": self.backend.name,
            "device": self.backend.description,
            "quantum": self.state.unit,
            "momentum_max": list(self.grid.momentum_max),
            **({} if self.grid.expansion is None else {"expansion": str(self.grid.expansion)}),
            **(self._walls() if self.grid.moving_axes else {}),
        }

    def _walls(self) -> dict[str, Any]:
        return {"boundary": list(self.grid.boundary), "space_max": list(self.grid.space_max)}

    def _say(self, texts: Iterable[str]) -> None:
        """Issue each warning only once."""
        accuracy.warn(texts, self.state.said)

    # -- the loop --------------------------------------------------------------------------------

    def go(self, progress: Report | None = None) -> xr.Dataset:
        """Step from start to end; computed results are kept whatever happens."""
        self._began = time.perf_counter() - self._wall
        try:
            self.journal.reserve()
        except BaseException:
            self.backend.close()
            raise
        try:
            self.about.claim()
            self.journal.open()
            with interruptible() as interrupt:
                ds = self._gone(interrupt, progress)
        finally:
            if self._keeper is not None:
                self._keeper.wait()
            self.journal.close()
            self.backend.close()
        if self.journal.trouble:
            raise RunError(self.journal.trouble, ds)
        if ds.attrs["status"] != "done":
            raise Interrupted(ds.attrs["status"], ds, interrupt.signal)
        warning = accuracy.made_error(self.state.said)
        if warning is not None:  # nothing can be lost any more
            warning.dataset = ds
            raise warning
        return ds

    def _gone(self, interrupt: Interrupt, progress: Report | None) -> xr.Dataset:
        """Run the loop and return the result."""
        self.backend.interrupt = interrupt
        try:
            self._loop(interrupt, progress)
        except Halted:
            pass
        except BaseException as error:
            self.backend.interrupt = False
            ds = self._finish(f"failed: {error}")
            if not isinstance(error, Exception):  # such as sys.exit() in a user's function
                raise
            description = [str(error), self.journal.trouble]
            raise RunError("; ".join(word for word in description if word), ds) from error
        self.backend.interrupt = False  # only saving remains
        return self._conclude(interrupt)

    def _loop(self, interrupt: Interrupt, progress: Report | None) -> None:
        """Advance from stop to stop, check the steps and record."""
        backend, state, end = self.backend, self.state, self.stops.end
        stage("first record and checkpoint")
        self._record(self._look())
        self._checkpoint(first=True)
        stage("first step (compiling if necessary)")
        sent = False
        while state.time < end and (sent or not interrupt):  # launched steps are reported
            for segment in backend.advance(state, self.step_plan, self.stops.next(state.time)):
                due = self._due()
                try:
                    looked = self._look()
                except Halted:
                    self._complete(segment.flows, segment.null_weight)  # the step itself stands
                    raise
                sent = looked is not None and not due and not interrupt and state.time < end
                if sent:
                    backend.launch_steps(state, self.step_plan, self.stops.next(state.time))
                self._complete(segment.flows, segment.null_weight)
                self._record(looked)
                self._say(text for text in state.stuck if text)
                if self.journal.due():
                    self.journal.update(self._told("running"), state.pending)
                if due:
                    self._checkpoint()
                if progress is not None:
                    progress(self._progress(segment))
                if interrupt and not sent:
                    return
        if state.time >= end:  # data for the last record that the next step would give
            self._last = self._packed()
            report = backend.collide(state.step, 0.0, state.squares)
            self._complete(report.flows, report.null_weight)

    def _look(self) -> tuple[StateSums | None, Integers | None] | None:
        """Query the state for a due record and snapshot; None if none is due.

        The next steps may begin while the host turns the answers into a record.
        """
        state, stops, now = self.state, self.stops, self.state.time
        record = stops.wants_record(now) and state.recorded < now
        snapshot = stops.wants_snapshot(now) and state.kept < now
        if not record and not snapshot:
            return None
        seen = self.observer.look(state) if record else None
        return seen, self.backend.get() if snapshot else None

    def _record(self, looked: tuple[StateSums | None, Integers | None] | None) -> None:
        """Store the record and the snapshot that were due, if any."""
        if looked is None:
            return
        seen, number = looked
        if seen is not None:
            self._measure(seen)
        if number is not None:
            self._snapshot(number)

    def _measure(self, seen: StateSums | None = None) -> None:
        """Make a record of the state; data from the next steps are added later."""
        state = self.state
        state.pending.append(self.observer.record(state, seen) | state.watch.since_last_record())
        state.recorded = state.time
        state.first = state.first or dict(state.pending[0])

    def _snapshot(self, number: Integers | None = None) -> None:
        """Store a snapshot of f."""
        number = self.backend.get() if number is None else number
        scale = np.divide(self.backend.grid.momentum_max, self.grid.momentum_max)
        f = occupation(number, self.state.bits, self.model)
        self.journal.snapshot(self.state.time, f, scale)
        self.state.kept = self.state.time

    def _complete(self, flows: Flows | None, null_weight: float) -> None:
        """Complete records: rates are known after one step, rates of change of masses after two."""
        state, waiting = self.state, self.state.pending
        if flows is not None and waiting and np.isnan(waiting[-1]["null_weight"]):
            waiting[-1] |= self.observer.rates(flows, null_weight)
        for record in waiting:
            if record["step_number"] < 2 and state.step <= 2:
                record |= self.observer.sources(state, record)
        if state.step >= 2:
            self._keep([r for r in waiting if not np.isnan(r["null_weight"])])

    def _keep(self, complete: list[dict[str, Any]]) -> None:
        """Store records that are complete."""
        for record in complete:
            self.state.watch.note(record)
            self.journal.record(record)
            self.state.last = record
        done = {id(record) for record in complete}
        self.state.pending = [r for r in self.state.pending if id(r) not in done]

    def _ends(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the first and the latest record."""
        waiting = self.state.pending
        return self.state.first, waiting[-1] if waiting else self.state.last

    def _progress(self, segment: Segment) -> RunProgress:
        first, last = self._ends()
        drift = max((abs(int(d)) for d in last["charge_drift"]), default=0)
        energy = energy_of(last) / energy_of(first) - 1
        return RunProgress(
            self.state.time, self.stops.end, segment.length, drift, energy, last["time"]
        )

    # -- checkpoints -----------------------------------------------------------------------------

    def _due(self) -> bool:
        """Whether a checkpoint is due."""
        if self._keeper is None or self._keeper.busy:
            return False
        return time.monotonic() - self._checkpointed >= self.settings.output.checkpoint_every

    def _checkpoint(self, first: bool = False) -> None:
        """Write a checkpoint in the background; wait for the first if it is small."""
        self._checkpointed = time.monotonic()
        packed = self._packed()
        if self._keeper is not None and packed is not None:
            small = packed[1]["number"].nbytes < WAITED_FOR
            self._keeper.keep(*packed, wait=first and small)

    def _settle(self, facts: Mapping[str, Any]) -> None:
        """Flush the journal before a checkpoint refers to it."""
        self.journal.flush(facts["place"])

    def _packed(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the content of a checkpoint; None without a file, or if it is unavailable."""
        if self._keeper is None:
            return None
        try:
            self.backend.synchronize()
            return self._facts_and_arrays()
        except Exception as error:  # such as a lack of memory: the run continues
            say(f"no checkpoint at t = {self.state.time:.6g} fm: {error}", CheckpointWarning)
            return None

    def _facts_and_arrays(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return all data needed to continue from here, as JSON values and arrays."""
        known, arrays = self.known.packed()
        settings = self.settings.to_dict()
        settings["run"]["backend"] = self.backend.name
        if self.settings.default_snapshots and self.grid.sites == 1:
            del settings["output"]["snapshots"]
        law, start = self.grid.expansion, self.settings.time.start
        now = self.state.time
        facts = {
            "scales": None if law is None else law.fingerprint(start, now),
            "law": None if law is None else law.source,
            "known": known, "about": self.about.packed(), "place": self.journal.place(),
            "settings": {name: settings[name] for name in Settings.model_fields},
            "grid": GridSettings.told(self.grid),
            "described": described(self.model), "time": self.state.time, "end": self.stops.end,
            "wall_seconds": time.perf_counter() - self._began, "versions": versions(),
        }  # fmt: skip
        return facts, {"number": self.backend.get(), **self.state.packed(), **arrays}

    # -- the end ---------------------------------------------------------------------------------

    def _conclude(self, interrupt: Interrupt) -> xr.Dataset:
        """Write a last checkpoint, from which the run can be extended; return the result."""
        done = self.state.time >= self.stops.end
        last = self._last if done else self._packed()
        ds = self._finish("done" if done else f"interrupted by {interrupt.name}")
        if self._keeper is not None and last is not None:
            self._keeper.keep(*last, wait=True)
        return ds

    def _finish(self, status: str) -> xr.Dataset:
        """Return the whole result; a run that ended early also stores the last valid state."""
        if status != "done":
            for kept, keep in (("kept", self._snapshot), ("recorded", self._measure)):
                try:
                    self.backend.synchronize()
                    if getattr(self.state, kept) < self.state.time:
                        keep()
                except Exception as error:  # a failed GPU cannot be queried
                    status += f"; the last state is lost: {error}"
        self._keep(list(self.state.pending))
        self._warn()
        self.known.attributes["wall_seconds"] = time.perf_counter() - self._began
        self.known.attributes["steps"] = self.state.watch.steps
        with contextlib.suppress(Exception):  # lost workers do not answer
            self.known.attributes |= self.backend.load()
        return self.journal.finish(self._told(status))

    def _warn(self) -> None:
        """Warn about poor accuracy found during the steps."""
        watch = self.state.watch
        if not watch.steps:
            return
        first, last = self._ends()
        in_space = bool(self.grid.moving_axes)
        self._say(accuracy.of_steps(watch.summary(), self.settings.time.step, in_space))
        self._say(accuracy.of_flow(self.model, np.array([watch.fastest])))
        self._say(poles.of_negative(self.model, np.array(watch.negative), self.known.negative))
        # first and last record refer to their own volumes
        volume = float(np.prod(last.get("scale", 1.0)))
        density = volume * self.state.unit * self.backend.grid.measure / self.grid.sites
        charges = accuracy.charge_drifts(self.model, first, last, density)
        energy = energy_of(last) / energy_of(first) - 1
        nearest = self.settings.collisions.projection == "nearest"
        self._say(accuracy.of_drift(charges, energy, nearest, in_space))
        self._say(accuracy.of_refusals(last, first))

    def _told(self, status: str) -> dict[str, Any]:
        """Return the attributes of the result."""
        return {**self.known.attributes, "status": status, "warnings": "\n".join(self.state.said)}


def energy_of(record: Mapping[str, Any]) -> float:
    """Return the total energy density of a record, with escaped energy included [GeV fm^-3].

    With expansion it refers to the initial volume and includes the work done.
    """
    density = float(np.mean(record["energy_total"]) + np.sum(record.get("left_energy", 0.0)))
    return density * float(np.prod(record.get("scale", 1.0))) + record.get("energy_work", 0.0)
