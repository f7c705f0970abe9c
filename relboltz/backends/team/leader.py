"""A backend made of workers: the leader calls them and combines their answers.

The leader keeps only the last state that it was given or fetched. A lost worker is replaced, and
the steps since that state are repeated, with bit-identical results.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ...config.settings import Sampling
from ...events.estimates import Estimates
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...stepping.accuracy_watch import Interrupt
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan
from ...stepping.step_report import StepReport
from ...transport.ledger import LostQuanta, WallFlux
from ...transport.moments import FIT_SUMS, Moments
from ...util.arrays import Array, Integers
from ...util.errors import BackendNotice, Halted, RunError, say
from ..elements import Elements
from .division import Division
from .exchange import ExchangeAborted, WorkerLost
from .worker import StepOrder, StepOutcome, WorkerLoad

Each = Sequence[tuple[Any, ...]]
MOST_LOSSES = 10
"""Most consecutive losses of workers without progress in between."""
REMEMBERED_FOR = 900.0
"""Seconds after which the leader fetches the state, to bound the steps to be repeated."""
CALL_SECONDS = 0.5
"""Approximate duration of the steps requested in one call."""


class WorkerPool(Protocol):
    """The workers and the means of calling them."""

    size: int
    description: str
    """Kind of connection to the workers."""
    interrupt: object

    def form(self, grid: PhaseSpace, sampling: Sampling) -> None:
        """Create workers for a grid, without a state; lost workers are replaced."""

    def ask(
        self, name: str, *common: Any, each: Each | None = None, only: int | None = None
    ) -> list[Any]:
        """Call a method of all workers, or of only one.

        each : leading arguments by worker, followed by the common ones. Raises the error of any
        worker, WorkerLost if one is lost.
        """

    def close(self) -> None:
        """Release the workers."""


class Team:
    """Backend that distributes all sites over workers: see ``contract.Backend``."""

    def __init__(
        self, crew: WorkerPool, name: str, grid: PhaseSpace, model: Model, sampling: Sampling
    ):
        """crew : the pool of workers; name : backend of the workers"""
        self.crew, self.name = crew, name
        self.grid, self.model, self.sampling = grid, model, sampling
        self._base, self.local_sites = grid, slice(None)
        self.division = Division.of(grid, crew.size) if grid.sites > 1 else None
        self.elements = Elements(model)
        self.site_ids = np.arange(grid.sites)
        self._number: Integers | None = None
        self._bits = 0
        self._held: tuple[Integers, int, PhaseSpace] = (np.empty(0, np.int64), 0, grid)
        self._whole, self._losses, self._pace = False, 0, 0.0
        self._known: tuple[int, Array] | None = None
        self._remembered = time.monotonic()
        self._forget()
        self._formed(lambda: None)

    @property
    def interrupt(self) -> object:
        """Once true, the work in progress is abandoned and Halted raised."""
        return self.crew.interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self.crew.interrupt = value

    @property
    def description(self) -> str:
        """Number, connection and backend of the workers in words."""
        where = self._ask("description", only=0)[0][0]
        return f"{self.crew.size} workers ({self.crew.description}), each: {where}"

    @property
    def memory(self) -> int:
        """Total bytes of all workers."""
        return sum(memory for _, memory in self._ask("description"))

    def load(self) -> dict[str, Any]:
        """Return busy and waiting time per worker."""
        loads: list[WorkerLoad] = self._ask("load")
        return {
            "workers": self.crew.size,
            "worker_places": [load.where for load in loads],
            "worker_seconds": [load.seconds for load in loads],
            "worker_waiting": [load.waited for load in loads],
        }

    def close(self) -> None:
        """Release the workers."""
        self.crew.close()

    # -- calling the workers ---------------------------------------------------------------------

    def _ask(
        self, name: str, *common: Any, each: Each | None = None, only: int | None = None
    ) -> list[Any]:
        """Call the workers; lost workers are replaced and brought up to date."""
        return self._formed(lambda: self.crew.ask(name, *common, each=each, only=only))

    def _formed(self, ask: Callable[[], Any]) -> Any:
        """Make the call with a complete team, replacing workers as needed."""
        while True:
            try:
                if not self._whole:
                    self._form()
                    self._whole = True
                answer = ask()
                self._losses = 0
                return answer
            except WorkerLost as error:
                self._whole = False
                self._losses += 1
                if self._losses > MOST_LOSSES:
                    raise RunError(
                        f"workers are lost again and again: {error}. See whether their memory is "
                        "enough, and the log of the cluster"
                    ) from None
                again = sum(order.steps for order in self._since)
                description = f"{again} steps are done again" if again else "the run goes on"
                say(f"{error}; it is replaced, and {description}", BackendNotice)
            except Halted as error:
                self._hear(error)
                raise

    def _hear(self, trouble: Exception) -> None:
        """Take over a signal that another process received."""
        if isinstance(trouble, Halted) and trouble.args and isinstance(self.interrupt, Interrupt):
            self.interrupt.signal = self.interrupt.signal or trouble.args[0]

    def _form(self) -> None:
        """Create workers, give them the last known state, and repeat all steps since then."""
        self.crew.form(self._base, self.sampling)
        if self._number is None:
            return
        self._hand_out(*self._held)
        state = self._packed
        for order in self._since:
            told: list[StepOutcome] = self.crew.ask("advance", state, order)
            trouble = worst([one.trouble for one in told])
            if trouble is not None:
                raise trouble
            state = None
        if not self._since:
            self._known = None

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Store a state (sites, species, nodes) in quanta of 2^-bits."""
        shape = (self.grid.sites, len(self.model.species), self.grid.size)
        given, self._bits = np.array(number, np.int64).reshape(shape), bits
        self._formed(lambda: self._hand_out(given, bits, self.grid))
        self._remember(given)
        self._known = None

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid with equally many nodes but different momenta."""
        self.grid = grid
        self._ask("set_momentum_grid", grid)
        if self._number is not None and not self._since:
            self._held = (*self._held[:2], grid)

    def _hand_out(self, number: Integers, bits: int, grid: PhaseSpace) -> None:
        parts = [number] * self.crew.size
        if self.division is not None:
            parts = [number[self.division.sites(k)] for k in range(self.crew.size)]
        self.crew.ask("put", bits, each=[(part,) for part in parts])
        if grid != self._base:
            self.crew.ask("set_momentum_grid", grid)

    def get(self) -> Integers:
        """Return the state (sites, species, nodes) in quanta."""
        parts = self._ask("get", only=0 if self.division is None else None)
        number = parts[0] if self.division is None else np.concatenate(parts)
        del parts
        self._remember(number)
        return number  # this array is also the leader's copy: callers must not change it

    def _remember(self, number: Integers) -> None:
        """Keep this state as the starting point for repeating steps if a worker is lost."""
        self._number, self._remembered = number, time.monotonic()
        self._held = number, self._bits, self.grid
        self._forget()

    def _forget(self) -> None:
        self._packed: dict[str, Array] | None = None
        self._since: list[StepOrder] = []

    def save(self) -> None:
        """Save a copy of the state."""
        self._ask("save")

    def restore(self) -> None:
        """Return to the saved copy of the state."""
        self._ask("restore")

    # -- evolution -------------------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step to the time ``stop`` [fm]; the workers do several steps per segment."""
        while state.time < stop:
            began = time.perf_counter()
            told, trouble = self._stepped(state, step_plan, stop)
            if told.done:
                self._pace = (time.perf_counter() - began) / told.done
                yield Segment(told.length, told.flows, told.null_weight)
            if trouble is not None:
                self._hear(trouble)
                raise trouble
            if time.monotonic() - self._remembered > REMEMBERED_FOR:
                self.get()  # a run without checkpoints

    def _stepped(
        self, state: State, step_plan: StepPlan, stop: float
    ) -> tuple[StepOutcome, Exception | None]:
        """Let the workers do a few steps; return their result and any error."""
        many = 1 if state.step < 2 or not self._pace else max(1, int(CALL_SECONDS / self._pace))
        order = StepOrder(
            step_plan.step, step_plan.tolerance, step_plan.time_tolerance, tuple(step_plan.forces),
            step_plan.schedule, stop, many, state.watch.limited_max,
        )  # fmt: skip
        packed = state.without_records().packed()
        if self._packed is None:
            self._packed = packed

        def ask() -> list[StepOutcome]:
            known = self._known
            here = known is not None and known[0] == state.step and known[1] is state.squares
            told: list[StepOutcome] = self.crew.ask("advance", None if here else packed, order)
            trouble = worst([one.trouble for one in told])
            if isinstance(trouble, WorkerLost):
                raise trouble
            if len({one.step for one in told}) > 1:
                raise WorkerLost(f"the workers are not at the same step: {trouble}")
            return told

        told = self._formed(ask)
        if told[0].done:
            self._since.append(order._replace(steps=told[0].done))
        state.follow(State.unpacked(told[0].state or {}, LostQuanta(self.grid, self.model)))
        self._known = state.step, state.squares
        self._bits, self.grid = state.bits, step_plan.grid_at(state.time, state.doublings)
        return told[0], worst([one.trouble for one in told])

    def launch_steps(self, state: State, step_plan: StepPlan, stop: float) -> None:
        """Do nothing: records need the workers."""

    def synchronize(self) -> None:
        """Do nothing: no steps are ever in progress."""

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream and push along an axis for ``length`` [fm]."""
        return self._moved("stream", axis, length, squares, push)

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites for ``length`` [fm]; 0 only measures rates and moves nothing."""
        if length == 0.0:
            return self._ask("collide", step, length, squares)[0]
        return self._moved("collide", step, length, squares)

    def _moved(self, name: str, *arguments: Any) -> Any:
        """Change the state outside of steps; this is not repeated if a worker is lost."""
        answer = self.crew.ask(name, *arguments)[0]
        self.get()
        return answer

    # -- measurements ----------------------------------------------------------------------------

    def masses(self, start: Array) -> Array:
        """Solve for the squares of the state, starting from those of a similar state."""
        return self._ask("masses", start)[0]

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows unchanged: the leader sees all sites."""
        return rows

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites."""
        return self._ask("stresses", squares)[0]

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sum over the nodes of every site."""
        parts = self._ask("moments", squares, final, only=0 if self.division is None else None)
        if len(parts) == 1:
            return parts[0]
        x, y, z = (np.concatenate([part.planes[i] for part in parts]) for i in range(3))
        shells, sums = (np.concatenate([getattr(p, n) for p in parts]) for n in ("shells", "sums"))
        return Moments((x, y, z), shells, sums)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Sum N f over all directions except those in ``kept``, in two words."""
        if self.division is None:
            return self._ask("marginal", kept, only=0)[0]
        parts = self._ask("marginal", self.division.kept_of_slab(kept))
        high, low = (self.division.joined([part[i] for part in parts], kept) for i in (0, 1))
        return high, low

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sum thermal states over the nodes at the sites ``which``, each worker for its own."""
        if self.division is None:
            return self._ask("fits", theta, squares, which, only=0)[0]
        spans = [self.division.sites(k) for k in range(self.crew.size)]
        rows = [np.flatnonzero((which >= s.start) & (which < s.stop)) for s in spans]
        each = [(theta[some], squares, which[some]) for some in rows]
        sums = np.zeros((len(which), len(self.model.species), FIT_SUMS))
        for some, part in zip(rows, self._ask("fits", each=each), strict=True):
            sums[some] = part
        return sums

    def squares(self, f: Array) -> Array:
        """Return the squared masses, then squared screening masses, of f (species, nodes)."""
        return self._ask("squares", f, only=0)[0]

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Estimate C[f] of f (species, nodes) on one worker, or on all if they share samples."""
        only = None if self.division is None else 0
        return lambda: self._ask("estimates", f, squares, batches, only=only)[0]


def worst(troubles: Sequence[Exception | None]) -> Exception | None:
    """Return the most important exception: errors, then WorkerLost, Halted, ExchangeAborted."""
    order = (WorkerLost, Halted, ExchangeAborted)
    found = [trouble for trouble in troubles if trouble is not None]
    ranks = [next((1 + i for i, k in enumerate(order) if isinstance(t, k)), 0) for t in found]
    return found[ranks.index(min(ranks))] if found else None
