"""What a worker does when it is asked: it has a member of the team, and never decides alone."""

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
from ...stepping.expanding import ExpansionHistory
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
    """So many steps towards a stop, or fewer if it is met."""

    step: float | str
    tolerance: float
    near: float
    forces: tuple[Force, ...]
    flow: ExpansionHistory | None
    stop: float
    steps: int
    limited: float
    """Largest part that limits refused since the last record, up to now."""


@dataclass(frozen=True)
class StepOutcome:
    """What steps came to, as far as they came."""

    done: int
    step: int
    length: float
    flows: Flows | None
    """Of the first of these steps."""
    null_weight: float
    state: dict[str, Array] | None
    """Packed; of the first worker alone."""
    trouble: Exception | None


def portable(error: Exception) -> Exception:
    """An error that another process can read."""
    if isinstance(error, InputError | RunError | Halted | WorkerLost | ExchangeAborted):
        return error
    return RunError(f"{type(error).__name__}: {error}")


class WorkerLoad(NamedTuple):
    """How busy a worker was."""

    where: str
    seconds: float
    """At work, waiting for others included."""
    waited: float


class Worker:
    """One of the workers of a team."""

    def __init__(
        self,
        exchange: Exchange,
        model: Model,
        grid: PhaseSpace,
        sampling: Sampling,
        run: RunSettings,
        part: float = 1.0,
    ):
        """run : of this worker, with its backend, precision and threads; part : of a GPU's memory
        that is its own"""
        self.exchange, self.grid, self.model = exchange, grid, model
        self.member = member_of(exchange, model, grid, sampling, run, part)
        self.seconds = 0.0
        self._state: State | None = None

    def do(self, name: str, arguments: Sequence[Any], together: bool = True) -> Any:
        """Do what is asked; together : of all workers, so one who cannot go on tells the others."""
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

    # -- what may be asked -----------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Take over the part of a state that is this worker's."""
        self.member.put(number, bits)
        self._state = None

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid."""
        self.member.set_momentum_grid(grid)

    def stresses(self, squares: Array) -> Array | None:
        """Pressures of all sites; the first worker tells them."""
        return self._first(self.member.stresses(squares))

    def get(self) -> Integers:
        """That part."""
        return self.member.get()

    def save(self) -> None:
        """Remember it."""
        self.member.save()

    def restore(self) -> None:
        """Back to what was remembered."""
        self.member.restore()

    def moments(self, squares: Array, final: Array) -> Any:
        """Sums over the nodes."""
        return self.member.moments(squares, final)

    def marginal(self, kept: Sequence[str]) -> Any:
        """N f summed over all directions but those kept."""
        return self.member.marginal(kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums over thermal states at some of its sites."""
        return self.member.fits(theta, squares, which)

    def masses(self, start: Array) -> Array | None:
        """Squared masses of all sites; the first worker tells them."""
        return self._first(self.member.masses(start))

    def collide(self, step: int, length: float, squares: Array) -> Any:
        """Collisions at all sites."""
        return self._first(self.member.collide(step, length, squares))

    def stream(self, axis: int, length: float, squares: Array, push: Array | None) -> Any:
        """Stream along an axis."""
        return self._first(self.member.stream(axis, length, squares, push))

    def squares(self, f: Array) -> Array:
        """The squares that f (species, nodes) causes."""
        return self.member.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Any:
        """C[f] of f (species, nodes)."""
        return self.member.estimates(f, squares, batches)()

    def description(self) -> tuple[str, int]:
        """Where it works, and bytes that it holds."""
        return self.member.description, self.member.memory

    def load(self) -> WorkerLoad:
        """How busy it was."""
        where = f"{socket.gethostname()}, process {os.getpid()}"
        return WorkerLoad(where, self.seconds, self.exchange.waited)

    def advance(self, state: Mapping[str, Array] | None, order: StepOrder) -> StepOutcome:
        """Steps, from a state that is given or the one that is here; errors are told as well."""
        if state is not None:
            self._state = State.unpacked(dict(state), LostQuanta(self.grid, self.model))
        assert self._state is not None
        now, before, legs = self._state, self._state.step, list[Segment]()
        now.watch.limited_max = order.limited
        course = StepPlan(
            order.step, order.tolerance, order.near, self.grid, order.forces, order.flow
        )
        trouble: Exception | None = None
        try:
            for leg in self.member.advance(now, course, order.stop):
                legs.append(leg)
                if len(legs) == order.steps:
                    break
        except ExchangeAborted as error:
            trouble = error
        except Exception as error:  # the others wait for what will not come
            trouble = portable(error)
            self.exchange.give_up()
        first, last = (legs[0], legs[-1]) if legs else (Segment(0.0, None, 0.0),) * 2
        return StepOutcome(
            now.step - before, now.step, last.length, first.flows, first.null_weight,
            self._first(now.packed()), trouble,
        )  # fmt: skip

    def _first(self, answer: Any) -> Any:
        """What all know alike is told by one."""
        return answer if self.exchange.rank == 0 else None


def member_of(
    exchange: Exchange,
    model: Model,
    grid: PhaseSpace,
    sampling: Sampling,
    run: RunSettings,
    part: float,
) -> Backend:
    """The part of one worker: of the sites of matter in space, else of the samples."""
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
