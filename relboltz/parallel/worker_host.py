"""Set-up common to all kinds of workers: memory checks, compiled code, picklable errors."""

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import backends
from ..backends.team.division import Division
from ..backends.team.exchange import Exchange, ExchangeAborted, gathered
from ..backends.team.leader import Team
from ..backends.team.sockets import SocketExchange, listen
from ..backends.team.worker import Worker, portable
from ..checks import matter
from ..config.settings import RunSettings, Sampling
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..stepping.step import StepPlan, begin


def team(crew: Any, name: str, grid: PhaseSpace, model: Model, sampling: Sampling) -> Team:
    """Create a team; on failure, release its workers."""
    try:
        return Team(crew, name, grid, model, sampling)
    except BaseException:
        crew.close()
        raise


def worker_of(
    exchange: Exchange,
    model: Model,
    grid: PhaseSpace,
    sampling: Sampling,
    run: RunSettings,
    neighbours: int,
) -> Worker:
    """Create a worker if the machine, shared with ``neighbours`` others, has enough memory."""
    if run.backend == "cpu":
        own = grid if grid.sites == 1 else Division.of(grid, exchange.size).slab(exchange.rank)
        matter.check_host_memory(own, model, sampling.samples, run.threads, 1 + neighbours)
        return Worker(exchange, model, grid, sampling, run)
    try:
        position, turns, sharers = _turn_at_gpu(exchange)
        for turn in range(turns):  # each worker plans with the memory left by the previous one
            if turn == position:
                part = 1.0 / (sharers - position)
                worker = Worker(exchange, model, grid, sampling, run, part)
            exchange.agree()
        exchange.waited = 0.0  # do not count the set-up
        return worker
    except ExchangeAborted:
        raise
    except Exception:
        exchange.give_up()
        raise


def _turn_at_gpu(exchange: Exchange) -> tuple[int, int, int]:
    """Return the position among workers of this GPU, the most workers of any, and those of this."""

    from ..backends.cuda import driver

    name = np.frombuffer(driver.name().encode().ljust(64)[:64], np.uint8)
    rooms = [np.empty(64, np.uint8) for _ in range(exchange.size)]
    gathered(exchange, name, rooms)
    names = [bytes(room) for room in rooms]
    mine = names[exchange.rank]
    most = max(names.count(one) for one in names)
    return names[: exchange.rank].count(mine), most, names.count(mine)


def warm(model: Model, sampling: Sampling, run: RunSettings, in_space: bool) -> None:
    """Compile everything that a run needs, on a grid of a few cells."""
    cells = (2, 1, 1) if in_space else (1, 1, 1)
    grid = PhaseSpace(3, 1.0, cells)
    few = sampling.model_copy(update={"samples": 1})
    backend = backends.choose(grid, model, few, run)
    f = np.full((grid.sites, len(model.species), grid.size), 0.1)
    state = begin(backend, f)
    for _ in backend.advance(state, StepPlan(1e-4, 1e-3, 1e-9, grid), 2e-4):
        pass
    backend.moments(state.squares, np.zeros(f.shape[1:]))


def writable(value: Any) -> Any:
    """Return a value with writable arrays: those that Ray delivers are read-only."""
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy()
    if isinstance(value, dict):
        return {key: writable(item) for key, item in value.items()}
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(writable(item) for item in value)
    return value


class WorkerActor:
    """A process that holds a worker and is called remotely.

    Calls may overtake each other, so each names the round of workers, or the order, it refers to.
    """

    def __init__(self, model: bytes):
        self._model: Model = pickle.loads(model)
        self._worker: Worker | None = None
        self._exchange: SocketExchange | None = None
        self._round, self._stop = 0, StopFlag()

    def warm(self, sampling: Sampling, run: RunSettings, in_space: bool) -> Exception | None:
        """Compile everything that a run needs, so that other workers find the code on disk."""
        try:
            warm(self._model, sampling, run, in_space)
        except Exception as error:
            return portable(error)
        return None

    def listen(self, host: str, round_: int) -> int:
        """Leave the workers of the last round; return the port for connections of the next."""
        self.drop(self._round)
        self._worker, self._round = None, round_
        self._listener = listen(host)
        port: int = self._listener.getsockname()[1]
        return port

    def form(
        self, rank: int, addresses: Sequence[tuple[str, int]], token: bytes, grid: PhaseSpace,
        sampling: Sampling, run: RunSettings, neighbours: int,
    ) -> Exception | None:  # fmt: skip
        """Create a worker without a state and connect to the other workers."""
        try:
            self._exchange = SocketExchange(rank, addresses, self._listener, token)
            self._worker = worker_of(self._exchange, self._model, grid, sampling, run, neighbours)
            self._worker.member.interrupt = self._stop
        except Exception as error:
            return portable(error)
        return None

    def drop(self, round_: int) -> None:
        """Leave the workers of a round; pending swaps with them end."""
        if self._exchange is not None and round_ == self._round:
            self._exchange.leave()

    def halt(self, order: int) -> None:
        """Abandon the work of an order."""
        self._stop.halted = max(self._stop.halted, order)

    def do(
        self, name: str, own: tuple[Any, ...], common: tuple[Any, ...], together: bool, order: int
    ) -> Any:
        """Execute a request; return its answer or error."""
        assert self._worker is not None
        self._stop.order = order
        try:
            return self._worker.do(name, writable((*own, *common)), together)
        except Exception as error:
            return portable(error)


class StopFlag:
    """Flag that is true while the current order is to be abandoned."""

    order, halted = 0, -1

    def __bool__(self) -> bool:
        return self.order <= self.halted
