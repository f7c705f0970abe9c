"""Worker of a team: executes the requests of the leader on its share of the state."""

import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from ...config.settings import RunSettings, Sampling
from ...events.collisions import Flows
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...stepping.expanding import ExpansionSchedule
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan
from ...transport.forces import Force
from ...transport.ledger import LostQuanta
from ...util.arrays import Array, Integers
from ...util.errors import Halted, InputError, RunError
from ..contract import Backend
from .division import Division
from .exchange import Exchange, ExchangeAborted, WorkerLost


class StepOrder(NamedTuple):
    """Request for a number of steps towards a stop, fewer if the stop is reached."""

    step: float | str
    tolerance: float
    time_tolerance: float
    forces: tuple[Force, ...]
    schedule: ExpansionSchedule | None
    stop: float
    steps: int
    limited: float
    """Largest fraction refused by the limiter since the last record."""


@dataclass(frozen=True)
class StepOutcome:
    """Result of the requested steps, as far as they were completed."""

    done: int
    step: int
    length: float
    flows: Flows | None
    """Rates in the first of these steps."""
    null_weight: float
    state: dict[str, Array] | None
    """Packed state, from the first worker only."""
    trouble: Exception | None


def portable(error: Exception) -> Exception:
    """Return an error that can be sent to another process."""
    if isinstance(error, InputError | RunError | Halted | WorkerLost | ExchangeAborted):
        return error
    return RunError(f"{type(error).__name__}: {error}")


class WorkerLoad(NamedTuple):
    """Busy and waiting time of a worker."""

    where: str
    seconds: float
    """Seconds at work, including waiting for other workers."""
    waited: float


class Worker:
    """One worker of a team."""

    def __init__(
        self,
        exchange: Exchange,
        model: Model,
        grid: PhaseSpace,
        sampling: Sampling,
        run: RunSettings,
        part: float = 1.0,
    ):
        """run : settings with the backend, precision and threads of this worker; part : its share
        of the GPU memory"""
        self.exchange, self.grid, self.model = exchange, grid, model
        self.member = member_of(exchange, model, grid, sampling, run, part)
        self.seconds = 0.0
        self._state: State | None = None

    def do(self, name: str, arguments: Sequence[Any], together: bool = True) -> Any:
        """Execute a request; together : whether all workers do, so that a failure is announced."""
        began = time.perf_counter()
        try:
            answer = getattr(self, name)(*arguments)
            if together and not (isinstance(answer, StepOutcome) and answer.trouble):
                self.exchange.agree()
        except ExchangeAborted:
            raise
        except BaseException:
            if together:
                self.exchange.give_up()
            raise
        finally:
            self.seconds += time.perf_counter() - began
        return answer

    # -- requests --------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Store this worker's share of a state in quanta of 2^-bits."""
        self.member.put(number, bits)
        self._state = None

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid with equally many nodes but different momenta."""
        self.member.set_momentum_grid(grid)

    def stresses(self, squares: Array) -> Array | None:
        """Return pressures and outer momentum moments of all sites, from the first worker only."""
        return self._first(self.member.stresses(squares))

    def get(self) -> Integers:
        """Return this worker's share of the state in quanta."""
        return self.member.get()

    def save(self) -> None:
        """Save a copy of the state."""
        self.member.save()

    def restore(self) -> None:
        """Return to the saved copy of the state."""
        self.member.restore()

    def moments(self, squares: Array, final: Array) -> Any:
        """Sum over the nodes of this worker's sites."""
        return self.member.moments(squares, final)

    def marginal(self, kept: Sequence[str]) -> Any:
        """Sum N f over this worker's sites and all directions except those in ``kept``."""
        return self.member.marginal(kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sum thermal states over the nodes at some of this worker's sites."""
        return self.member.fits(theta, squares, which)

    def masses(self, start: Array) -> Array | None:
        """Solve for the squared masses of all sites; only the first worker returns them."""
        return self._first(self.member.masses(start))

    def collide(self, step: int, length: float, squares: Array) -> Any:
        """Collide at all sites; only the first worker returns the report."""
        return self._first(self.member.collide(step, length, squares))

    def stream(self, axis: int, length: float, squares: Array, push: Array | None) -> Any:
        """Stream and push along an axis; only the first worker returns the wall fluxes."""
        return self._first(self.member.stream(axis, length, squares, push))

    def squares(self, f: Array) -> Array:
        """Return the squared masses, then squared screening masses, of f (species, nodes)."""
        return self.member.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Any:
        """Estimate C[f] of f (species, nodes)."""
        return self.member.estimates(f, squares, batches)()

    def description(self) -> tuple[str, int]:
        """Return device, threads and precision in words, and the bytes in use."""
        return self.member.description, self.member.memory

    def load(self) -> WorkerLoad:
        """Return busy and waiting time of this worker."""
        where = f"{socket.gethostname()}, process {os.getpid()}"
        return WorkerLoad(where, self.seconds, self.exchange.waited)

    def advance(self, state: Mapping[str, Array] | None, order: StepOrder) -> StepOutcome:
        """Do the requested steps, from ``state`` if given; return errors as part of the result."""
        if state is not None:
            self._state = State.unpacked(dict(state), LostQuanta(self.grid, self.model))
        assert self._state is not None
        now, before, segments = self._state, self._state.step, list[Segment]()
        now.watch.limited_max = order.limited
        step_plan = StepPlan(
            order.step,
            order.tolerance,
            order.time_tolerance,
            self.grid,
            order.forces,
            order.schedule,
        )
        trouble: Exception | None = None
        try:
            for segment in self.member.advance(now, step_plan, order.stop):
                segments.append(segment)
                if len(segments) == order.steps:
                    break
        except ExchangeAborted as error:
            trouble = error
        except Exception as error:  # the other workers are waiting for data from this one
            trouble = portable(error)
            self.exchange.give_up()
        first, last = (segments[0], segments[-1]) if segments else (Segment(0.0, None, 0.0),) * 2
        return StepOutcome(
            now.step - before, now.step, last.length, first.flows, first.null_weight,
            self._first(now.packed()), trouble,
        )  # fmt: skip

    def _first(self, answer: Any) -> Any:
        """Return the answer on the first worker only, as it is equal on all."""
        return answer if self.exchange.rank == 0 else None


def member_of(
    exchange: Exchange,
    model: Model,
    grid: PhaseSpace,
    sampling: Sampling,
    run: RunSettings,
    part: float,
) -> Backend:
    """Create one worker's backend: a slab of sites or, for homogeneous matter, some samples."""
    division = Division.of(grid, exchange.size) if grid.sites > 1 else None
    if run.backend == "cpu":
        from ..cpu.backend import CpuBackend
        from ..cpu.slab import CpuSlab

        if division is None:
            return CpuBackend(grid, model, sampling, run.threads, exchange=exchange)
        return cast(Backend, CpuSlab(division, model, sampling, run.threads, exchange))
    from ..cuda.backend import CudaBackend
    from ..cuda.slab import CudaSlab

    if division is None:
        return CudaBackend(grid, model, sampling, run.precision, exchange=exchange, part=part)
    slab = CudaSlab(division, model, sampling, run.precision, exchange, part=part)
    return cast(Backend, slab)
