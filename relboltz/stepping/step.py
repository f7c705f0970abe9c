"""Time steps from one output time to the next: masses, step size, transport, collisions.

Each substep uses its mean masses, extrapolated from that substep of the last two steps, and the
masses are solved again after it: the whole step is then second order in dt. E_total is extremal in
the masses, so collisions with frozen masses conserve E_total if the frozen masses are the mean of
the masses before and after. The very first step is done twice: a trial step measures how the
masses change in each substep.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..events.collisions import Flows
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..transport.forces import Force, courant_limit, total
from ..transport.ledger import LostQuanta, WallFlux
from ..util.arrays import Array
from ..util.errors import RunError
from .control import FIRST_STEP, adapted, largest_change, step_length
from .expanding import (
    DRIVEN,
    QUIET,
    SPREAD,
    ExpansionSchedule,
    begin_expansion,
    carry_on,
    reserve,
    uninterrupted,
)
from .quanta import quantised
from .state import History, State
from .step_report import StepReport
from .substeps import Substep, mean_squares, parts

if TYPE_CHECKING:
    from ..backends.contract import Backend


@dataclass(frozen=True)
class StepPlan:
    """Settings of the time stepping, fixed for the whole run.

    step : a length [fm] or "auto"; time_tolerance : times closer than this [fm] count as equal;
    grid : the grid, for expanding matter the initial one; history : how matter expands
    """

    step: float | str
    tolerance: float
    time_tolerance: float
    grid: PhaseSpace
    forces: Sequence[Force] = ()
    schedule: ExpansionSchedule | None = None

    def grid_at(self, time: float, doublings: list[int]) -> PhaseSpace:
        """Return the grid at a time."""
        return (
            self.grid if self.schedule is None else self.schedule.grid(self.grid, time, doublings)
        )

    @cached_property
    def parts(self) -> list[Substep]:
        """Substeps of a step: streaming, forces, collisions."""
        return parts(self.grid, self.forces)

    @property
    def automatic(self) -> bool:
        """Whether the step length is controlled by the error."""
        return isinstance(self.step, str)

    def wanted(self, state: State) -> float:
        """Return the step length wanted next [fm]: the given one, or the one the errors allow."""
        return state.wanted if isinstance(self.step, str) else self.step

    def length(self, state: State, room: float, longest: float = math.inf) -> float:
        """Return a step length that reaches the stop, ``room`` ahead, without a tiny last step."""
        return step_length(min(self.wanted(state), longest), room, self.automatic)

    def judge(self, report: StepReport, wanted: float) -> tuple[bool, float]:
        """Return whether to accept the step, and the length wanted next."""
        if not self.automatic:
            return True, wanted
        most, spread = largest_change(self.tolerance, report.noise_ratio), math.inf
        if self.schedule is not None:
            most, spread = min(most, DRIVEN * largest_change(self.tolerance, 0.0)), SPREAD
        stands, length = adapted(
            report.length, report.error, report.change_ratio(self.tolerance, spread),
            most, wanted, self.tolerance,
        )  # fmt: skip
        if self.schedule is not None and report.error < QUIET * self.tolerance:
            return True, max(wanted, length)
        return stands, length

    def met(self, time: float, stop: float) -> float:
        """Return the time, or the stop if they agree up to rounding."""
        return stop if abs(stop - time) <= self.time_tolerance else time


@dataclass(frozen=True)
class Segment:
    """Completed steps: length of the last one, and the rates of the state they started from.

    Each of the first two steps of a run is a segment of its own. ``flows`` is None where rates are
    unknown: a GPU that steps ahead reads them only after records.
    """

    length: float
    flows: Flows | None
    null_weight: float


def begin(backend: Backend, f: Array, schedule: ExpansionSchedule | None = None) -> State:
    """Store f (sites, species, nodes) in a backend and solve for self-consistent masses."""
    grid, model = backend.grid, backend.model
    number, bits = quantised(f, model, 0 if schedule is None else reserve(schedule, grid))
    backend.put(number, bits)
    bare = np.append(model.constant_mass_squared, np.zeros(len(model.screenings)))
    squares = backend.masses(np.tile(bare, (grid.sites, 1)))
    state = State(bits, squares, len(model.species), FIRST_STEP, LostQuanta(grid, model))
    if schedule is not None:
        state.time = schedule.start
        begin_expansion(backend, state, schedule)
    return state


def advance(backend: Backend, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
    """Step to the time ``stop`` [fm], yielding a segment after every step."""
    model, forces, schedule = backend.model, step_plan.forces, step_plan.schedule
    while state.time < stop:
        grid = backend.grid
        pushes = {
            axis: total(forces, axis, state.time, state.squares, grid, model)
            for axis in {force.axis for force in forces}
        }
        longest = courant_limit(grid, state.mass_squared, pushes)
        if schedule is not None and step_plan.automatic:
            longest = min(longest, schedule.longest(state.time, step_plan.tolerance))
        length = step_plan.length(state, stop - state.time, longest)
        attempt = _StepAttempt(backend, state, step_plan, length, state.wanted)
        report = attempt.report()
        state.wanted = attempt.wanted
        if report is not None:
            state.watch.see(report, step_plan.tolerance)
            time = step_plan.met(state.time + length, stop)
            state.step_taken(attempt.squares, attempt.rates, length, time)
            state.ledger.enter(attempt.passages)
            if schedule is not None:
                with uninterrupted(backend):  # or the step would be accepted without its work
                    carry_on(backend, state, schedule, step_plan.grid)
            yield Segment(length, report.flows, report.null_weight)


@dataclass
class _StepAttempt:
    """A trial step: all its substeps and their results."""

    backend: Backend
    state: State
    step_plan: StepPlan
    length: float
    wanted: float
    squares: Array = field(init=False)
    rates: list[Array] = field(init=False)
    passages: list[WallFlux] = field(init=False)

    def report(self) -> StepReport | None:
        """Try the step; return the collision report, or None if a shorter step is needed."""
        backend, past = self.backend, self.state.by_part
        backend.save()
        self._stretch(0.5)
        try:
            if backend.model.thermal and not past:
                self._turns([[] for _ in self.step_plan.parts])
                past = [[(rate, self.length)] for rate in self.rates]
                backend.restore()
            report = self._turns(past or [[] for _ in self.step_plan.parts], judged=True)
            if report is not None:
                self._stretch(1.0)
                if backend.model.thermal and (factor := self._shrunk(0.5, 1.0)) != 1.0:
                    self.squares = backend.masses(factor * self.squares)
                check_finite(backend.model, self.state.time, self.squares)
        except BaseException:
            backend.restore()  # keep the last accepted state
            self._stretch(0.0)
            raise
        if report is None:
            backend.restore()
            self._stretch(0.0)
        return report

    def _stretch(self, part: float) -> None:
        """Set the grid at the fraction ``part`` of the step."""
        if self.step_plan.schedule is not None:
            time = self.state.time + part * self.length
            self.backend.set_momentum_grid(self.step_plan.grid_at(time, self.state.doublings))

    def _shrunk(self, now: float, then: float) -> float:
        """Estimate the factor by which squared masses change between two fractions of the step.

        The estimate scales them with the momenta; it is 1 for matter that does not expand.
        """
        schedule, start = self.step_plan.schedule, self.state.time
        if schedule is None:
            return 1.0
        a, b = (schedule.scales(start + part * self.length) for part in (now, then))
        x, y, z = (i / j for i, j in zip(a, b, strict=True))
        return x * x if x == y == z else float((x * y * z) ** (2 / 3))

    def _turns(self, past: Sequence[History], judged: bool = False) -> StepReport | None:
        """Do all substeps in order."""
        backend, state, moving = self.backend, self.state, self.backend.model.thermal
        self.squares, self.rates, self.passages = state.squares, [], []
        if moving and (factor := self._shrunk(0.0, 0.5)) != 1.0:  # masses at the midpoint
            self.squares = backend.masses(factor * state.squares)
        report: StepReport | None = None
        for part, before in zip(self.step_plan.parts, past, strict=True):
            now, lasts = self.squares, part.share * self.length
            done = 0.0 if report is None else lasts  # each axis has a substep before and after C
            used = mean_squares(now, lasts, self.length, before) if moving else now
            if part.axis is not None:
                push = self._push(part.axis, done + 0.5 * lasts, used)
                self.passages.append(backend.stream(part.axis, lasts, used, push))
            else:
                report = backend.collide(state.step, lasts, used)
                check_rates(backend.model, state.time, report.flows)
                if judged:
                    stands, self.wanted = self.step_plan.judge(report, state.wanted)
                    if not stands:
                        return None
            if moving:
                self.squares = backend.masses(now)
            self.rates.append((self.squares - now) / lasts)
        return report

    def _push(self, axis: int, into: float, squares: Array) -> Array | None:
        """Return the external force along an axis, ``into`` [fm] after the start of the step."""
        forces, backend = self.step_plan.forces, self.backend
        if not any(force.axis == axis for force in forces):
            return None
        return total(forces, axis, self.state.time + into, squares, backend.grid, backend.model)


def check_rates(model: Model, time: float, flows: Flows) -> None:
    """Raise RunError if any rate is not finite, before it spoils the state."""
    for process, rate in zip(model.processes, flows.forward, strict=False):
        if not np.isfinite(rate):
            raise RunError(
                f"process {process.name}: its rate is {rate}, not a number, at t = {time:.6g} fm"
            )


def check_finite(model: Model, time: float, squares: Array) -> None:
    """Raise RunError if any squared mass is not finite."""
    if not np.isfinite(squares).all():
        site = int((~np.isfinite(squares)).any(axis=1).argmax())
        where = f" in space cell {site}" if len(squares) > 1 else ""
        rows = zip(model.names, squares[site], strict=False)
        raise RunError(
            f"the masses are not finite at t = {time:.6g} fm{where}: "
            + ", ".join(f"{name}: {m2:.4g}" for name, m2 in rows)
        )
