"""From one stop to the next: masses, step size, transport, collide.

Each part of a step takes the masses that it will have on average, extrapolated from the same part
of the last two steps, and the masses are solved again after it: that makes the whole second order
in dt. E_total is extremal in the masses, so collisions with frozen masses conserve it if these are
the mean of those before and after. The very first step is done twice: a trial tells how the masses
change in its parts.
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
    ExpansionHistory,
    begin_flow,
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
    """How a run is stepped: what stays the same from its start to its end.

    step : a length [fm] or "auto"; near : times closer than this [fm] are the same; grid : the
    nodes, at the start where they move; flow : how matter expands
    """

    step: float | str
    tolerance: float
    near: float
    grid: PhaseSpace
    forces: Sequence[Force] = ()
    flow: ExpansionHistory | None = None

    def grid_at(self, time: float, doublings: list[int]) -> PhaseSpace:
        """The nodes of a moment."""
        return self.grid if self.flow is None else self.flow.grid(self.grid, time, doublings)

    @cached_property
    def parts(self) -> list[Substep]:
        """The parts of a step: what streams, what is pushed, collisions."""
        return parts(self.grid, self.forces)

    @property
    def automatic(self) -> bool:
        """Whether the length of steps follows their error."""
        return isinstance(self.step, str)

    def wanted(self, state: State) -> float:
        """Length that is wanted next [fm]: the given one, or what the errors so far allow."""
        return state.wanted if isinstance(self.step, str) else self.step

    def length(self, state: State, room: float, longest: float = math.inf) -> float:
        """The next length, such that a stop at distance ``room`` is met without a tiny step."""
        return step_length(min(self.wanted(state), longest), room, self.automatic)

    def judge(self, report: StepReport, wanted: float) -> tuple[bool, float]:
        """Whether the step may stand, and the length wanted next."""
        if not self.automatic:
            return True, wanted
        most, spread = largest_change(self.tolerance, report.noise_ratio), math.inf
        if self.flow is not None:
            most, spread = min(most, DRIVEN * largest_change(self.tolerance, 0.0)), SPREAD
        stands, length = adapted(
            report.length, report.error, report.change_ratio(self.tolerance, spread),
            most, wanted, self.tolerance,
        )  # fmt: skip
        if self.flow is not None and report.error < QUIET * self.tolerance:
            return True, max(wanted, length)
        return stands, length

    def met(self, time: float, stop: float) -> float:
        """The time, or the stop if it is as near as rounding."""
        return stop if abs(stop - time) <= self.near else time


@dataclass(frozen=True)
class Segment:
    """Steps that were just done: the last length, and rates of the state they started from.

    The first two steps of a run are legs of their own. ``flows`` is None where rates are not known:
    a GPU that steps ahead looks at them after records only.
    """

    length: float
    flows: Flows | None
    null_weight: float


def begin(backend: Backend, f: Array, flow: ExpansionHistory | None = None) -> State:
    """Hand f (sites, species, nodes) to a backend; masses are solved self-consistently."""
    grid, model = backend.grid, backend.model
    number, bits = quantised(f, model, 0 if flow is None else reserve(flow, grid))
    backend.put(number, bits)
    bare = np.append(model.constant_mass_squared, np.zeros(len(model.screenings)))
    squares = backend.masses(np.tile(bare, (grid.sites, 1)))
    state = State(bits, squares, len(model.species), FIRST_STEP, LostQuanta(grid, model))
    if flow is not None:
        state.time = flow.start
        begin_flow(backend, state, flow)
    return state


def advance(backend: Backend, state: State, course: StepPlan, stop: float) -> Iterator[Segment]:
    """Step until the stop [fm], telling after every step."""
    model, forces, flow = backend.model, course.forces, course.flow
    while state.time < stop:
        grid = backend.grid
        pushes = {
            axis: total(forces, axis, state.time, state.squares, grid, model)
            for axis in {force.axis for force in forces}
        }
        longest = courant_limit(grid, state.mass_squared, pushes)
        if flow is not None and course.automatic:
            longest = min(longest, flow.longest(state.time, course.tolerance))
        length = course.length(state, stop - state.time, longest)
        attempt = _StepAttempt(backend, state, course, length, state.wanted)
        report = attempt.report()
        state.wanted = attempt.wanted
        if report is not None:
            state.watch.see(report, course.tolerance)
            time = course.met(state.time + length, stop)
            state.step_taken(attempt.squares, attempt.rates, length, time)
            state.ledger.enter(attempt.passages)
            if flow is not None:
                with uninterrupted(backend):  # or the step would stand without its work
                    carry_on(backend, state, flow, course.grid)
            yield Segment(length, report.flows, report.null_weight)


@dataclass
class _StepAttempt:
    """One try at a step: all its parts, and what they left behind."""

    backend: Backend
    state: State
    course: StepPlan
    length: float
    wanted: float
    squares: Array = field(init=False)
    rates: list[Array] = field(init=False)
    passages: list[WallFlux] = field(init=False)

    def report(self) -> StepReport | None:
        """What the collisions showed; None if the step has to be done again, shorter."""
        backend, past = self.backend, self.state.by_part
        backend.save()
        self._stretch(0.5)
        try:
            if backend.model.thermal and not past:
                self._turns([[] for _ in self.course.parts])
                past = [[(rate, self.length)] for rate in self.rates]
                backend.restore()
            report = self._turns(past or [[] for _ in self.course.parts], judged=True)
            if report is not None:
                self._stretch(1.0)
                if backend.model.thermal and (factor := self._shrunk(0.5, 1.0)) != 1.0:
                    self.squares = backend.masses(factor * self.squares)
                check_finite(backend.model, self.state.time, self.squares)
        except BaseException:
            backend.restore()  # the last state that stands is what is kept
            self._stretch(0.0)
            raise
        if report is None:
            backend.restore()
            self._stretch(0.0)
        return report

    def _stretch(self, part: float) -> None:
        """The nodes so far into the step."""
        if self.course.flow is not None:
            time = self.state.time + part * self.length
            self.backend.set_momentum_grid(self.course.grid_at(time, self.state.doublings))

    def _shrunk(self, now: float, then: float) -> float:
        """How squared masses change, about, between two places of the step; 1: nodes do not move.

        As if they knew momenta alone.
        """
        flow, start = self.course.flow, self.state.time
        if flow is None:
            return 1.0
        a, b = (flow.scales(start + part * self.length) for part in (now, then))
        x, y, z = (i / j for i, j in zip(a, b, strict=True))
        return x * x if x == y == z else float((x * y * z) ** (2 / 3))

    def _turns(self, past: Sequence[History], judged: bool = False) -> StepReport | None:
        """All parts of the step, one after the other."""
        backend, state, moving = self.backend, self.state, self.backend.model.thermal
        self.squares, self.rates, self.passages = state.squares, [], []
        if moving and (factor := self._shrunk(0.0, 0.5)) != 1.0:  # those of the middle
            self.squares = backend.masses(factor * state.squares)
        report: StepReport | None = None
        for part, before in zip(self.course.parts, past, strict=True):
            now, lasts = self.squares, part.share * self.length
            done = 0.0 if report is None else lasts  # an axis has a part before C and one after
            used = mean_squares(now, lasts, self.length, before) if moving else now
            if part.axis is not None:
                push = self._push(part.axis, done + 0.5 * lasts, used)
                self.passages.append(backend.stream(part.axis, lasts, used, push))
            else:
                report = backend.collide(state.step, lasts, used)
                check_rates(backend.model, state.time, report.flows)
                if judged:
                    stands, self.wanted = self.course.judge(report, state.wanted)
                    if not stands:
                        return None
            if moving:
                self.squares = backend.masses(now)
            self.rates.append((self.squares - now) / lasts)
        return report

    def _push(self, axis: int, into: float, squares: Array) -> Array | None:
        """Forces from outside along an axis, so far [fm] into the step."""
        forces, backend = self.course.forces, self.backend
        if not any(force.axis == axis for force in forces):
            return None
        return total(forces, axis, self.state.time + into, squares, backend.grid, backend.model)


def check_rates(model: Model, time: float, flows: Flows) -> None:
    """Rates that are not numbers end a run before they spoil the state."""
    for process, flow in zip(model.processes, flows.forward, strict=False):
        if not np.isfinite(flow):
            raise RunError(
                f"process {process.name}: its rate is {flow}, not a number, at t = {time:.6g} fm"
            )


def check_finite(model: Model, time: float, squares: Array) -> None:
    """Likewise masses that are not."""
    if not np.isfinite(squares).all():
        site = int((~np.isfinite(squares)).any(axis=1).argmax())
        where = f" in space cell {site}" if len(squares) > 1 else ""
        rows = zip(model.names, squares[site], strict=False)
        raise RunError(
            f"the masses are not finite at t = {time:.6g} fm{where}: "
            + ", ".join(f"{name}: {m2:.4g}" for name, m2 in rows)
        )
