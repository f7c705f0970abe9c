"""Parallel runs under mpirun: the first process leads and works, the others follow.

All processes run the same program. The first does what a single process would do; the others reach
the same call and then serve requests until the first process is done.
"""

import functools
import itertools
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..backends.contract import Backend
from ..backends.cpu.threads import available_cores
from ..backends.cuda import driver
from ..backends.team.leader import Each, Team, worst
from ..backends.team.mpi import MpiExchange, pieces
from ..backends.team.worker import StepOutcome, Worker, portable
from ..config.settings import RunSettings, Sampling
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..stepping.accuracy_watch import Interrupt, interruptible
from ..util.errors import AccuracyWarning, Halted, InputError, Interrupted, RunError
from ..util.launcher import started
from .ray import resolve
from .worker_host import team, warm, worker_of

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Recipe = dict[str, Any]
HEAD, BODY = 1, 2
"""Message tags."""
LARGEST_COPY = 2**30
"""Most bytes of a result that are copied to all processes."""
LONGEST_PAUSE = 2e-3
"""Longest pause between two polls in seconds."""


@functools.cache
def world() -> Any:
    """Return the communicator of all processes."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise InputError(
            "mpirun started this program, but mpi4py is missing: pip install 'relboltz[mpi]'"
        ) from None
    if MPI.COMM_WORLD.Get_size() == 1:
        raise InputError(
            "several processes were started, but mpi4py sees one: it uses another MPI library than "
            "mpirun or srun. Load the one of your centre, or build mpi4py with it: pip install "
            "--no-binary mpi4py mpi4py"
        )
    return MPI.COMM_WORLD


def follows() -> bool:
    """Return whether this process follows another one."""
    return started() and world().Get_rank() > 0


def patiently(ready: Callable[[], bool]) -> None:
    """Wait without keeping a core busy, unlike MPI libraries."""
    pause = 0.0
    while not ready():
        time.sleep(pause)
        pause = min(pause + 1e-5, LONGEST_PAUSE)


def call(order: tuple[Any, ...]) -> None:
    """Send a request to all followers."""
    for k in range(1, world().Get_size()):
        send(order, k)


def called() -> tuple[Any, ...]:
    """Wait for the next request of the leader."""
    patiently(lambda: world().Iprobe(0, HEAD))
    order: tuple[Any, ...] = receive(0)
    return order


def send(value: Any, rank: int) -> None:
    """Send any object to one process; arrays go as raw buffers, in messages of limited size."""
    comm, buffers = world(), list[pickle.PickleBuffer]()
    head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    raw = [np.frombuffer(head, np.uint8), *(np.frombuffer(b.raw(), np.uint8) for b in buffers)]
    comm.send([len(one) for one in raw], rank, HEAD)
    for piece in itertools.chain.from_iterable(map(pieces, raw)):
        comm.Send(piece, rank, BODY)


def receive(rank: int) -> Any:
    """Receive an object from another process."""
    comm = world()
    rooms = [np.empty(length, np.uint8) for length in comm.recv(None, rank, HEAD)]
    for piece in itertools.chain.from_iterable(map(pieces, rooms)):
        comm.Recv(piece, rank, BODY)
    return pickle.loads(rooms[0].data, buffers=rooms[1:])


class MpiProcess:
    """Base class of the leader and the followers: an MPI process with a worker."""

    def __init__(self) -> None:
        self.comm = world()
        self.size = self.comm.Get_size()
        self.worker: Worker | None = None
        self._held = False

    def leave(self) -> None:
        """Disband the workers; a collective call of all processes."""
        if self._held:
            self._exchange.close()
            self._here.Free()
        self.worker, self._held = None, False

    def prepare(
        self, make: Callable[[], Model], in_space: bool, sampling: Sampling, run: RunSettings
    ) -> Exception | None:
        """Set up the model, compiling code once on every machine."""
        from mpi4py import MPI

        self.leave()
        self._here, self._exchange = (
            self.comm.Split_type(MPI.COMM_TYPE_SHARED),
            MpiExchange(self.comm),
        )
        self._held = True
        local, many = self._here.Get_rank(), self._here.Get_size()
        cores = available_cores()
        shared = cores > 1 and cores == os.cpu_count()  # process not bound to a subset of cores
        threads = run.threads or max(1, cores // many if shared else cores)
        try:
            self._model = make()
            self._run = run.model_copy(update={"threads": threads, "workers": 0, "address": ""})
            if run.backend == "cuda":
                driver.use(local)
            if local == 0:
                warm(self._model, sampling, self._run, in_space)
        except Exception as error:
            return portable(error)
        finally:
            request = self._here.Ibarrier()
            patiently(request.Test)
        return None

    def join(self, grid: PhaseSpace, sampling: Sampling) -> Exception | None:
        """Create a worker without a state; return an error instead of raising it."""
        try:
            run, neighbours = self._run, self._here.Get_size() - 1
            self.worker = worker_of(self._exchange, self._model, grid, sampling, run, neighbours)
        except Exception as error:
            return portable(error)
        return None


# --- leader -------------------------------------------------------------------------------------


class MpiLeader(MpiProcess):
    """Worker pool of all MPI processes, including this one: see ``leader.WorkerPool``."""

    description = "MPI"

    def __init__(self, model: Model, run: RunSettings, recipe: Recipe):
        super().__init__()
        self.model, self.run, self.recipe = model, run, recipe
        self._interrupt: object = False

    @property
    def interrupt(self) -> object:
        """Once true, the work in progress is abandoned and Halted raised."""
        return self._interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self._interrupt = value
        if self.worker is not None:
            self.worker.member.interrupt = value

    def ask(
        self, name: str, *common: Any, each: Each | None = None, only: int | None = None
    ) -> list[Any]:
        """Call a method of all workers, or of this one only."""
        assert self.worker is not None
        if only is not None:
            return [self.worker.do(name, common, together=False)]
        own = each or [()] * self.size
        heeds = self._interrupt is not False
        for k in range(1, self.size):
            send(("do", name, (*own[k], *common), heeds), k)
        return self._joined(done(self.worker, name, (*own[0], *common)))

    def form(self, grid: PhaseSpace, sampling: Sampling) -> None:
        """Create workers for a grid, without a state."""
        given = grid.sites > 1, sampling, self.run
        call(("prepare", self.recipe | _sent(self.recipe, self.model), *given))
        self._joined(self.prepare(lambda: self.model, *given))
        call(("join", grid, sampling))
        self._joined(self.join(grid, sampling))
        self.interrupt = self._interrupt

    def _joined(self, answer: Any) -> list[Any]:
        told = [answer, *(receive(k) for k in range(1, self.size))]
        trouble = worst([one for one in told if isinstance(one, Exception)])
        if trouble is not None:
            raise trouble
        return told

    def close(self) -> None:
        """Release the workers; the processes stay until ``dismiss``."""
        if self._held:
            call(("leave",))
            self.leave()


def _sent(recipe: Recipe, model: Model) -> Recipe:
    """Return the pickled model if the recipe does not say how to rebuild the model."""
    if recipe.get("model"):
        return {}
    try:
        return {"pickled": pickle.dumps(model)}
    except Exception:  # functions defined in the script, which all processes have run
        return {}


def leading(
    grid: PhaseSpace, model: Model, sampling: Sampling, run: RunSettings, recipe: Recipe
) -> Backend:
    """Create a team of all processes."""
    if run.workers not in (0, world().Get_size()):
        raise InputError(
            f"run.workers = {run.workers}: mpirun started {world().Get_size()} processes, and each "
            "is a worker; omit workers"
        )
    name, precision = resolve(run)
    crew = MpiLeader(
        model, run.model_copy(update={"backend": name, "precision": precision}), recipe
    )
    made: Team = team(crew, name, grid, model, sampling)
    return made


def dismiss(outcome: Any) -> None:
    """End the followers, sending them the outcome."""
    call(("over", outcome))


# --- followers ----------------------------------------------------------------------------------


def done(worker: Worker, name: str, arguments: tuple[Any, ...]) -> Any:
    """Return the answer of a worker, or its error."""
    try:
        return worker.do(name, arguments)
    except Exception as error:
        return portable(error)


class MpiFollower(MpiProcess):
    """A process that serves the requests of the leader."""

    def serve(self, make: Callable[[Recipe], Model]) -> Any:
        """Serve requests until the leader is done; return the outcome."""
        with interruptible() as interrupt:
            while True:
                what, *rest = called()
                if what == "over":
                    return rest[0]
                if what == "prepare":
                    recipe, *given = rest
                    self._tell(self.prepare(functools.partial(make, recipe), *given))
                elif what == "join":
                    self._tell(self.join(*rest))
                elif what == "leave":
                    self.leave()
                else:
                    self._tell(self._answer(interrupt, *rest))

    def _tell(self, answer: Any) -> None:
        send(answer, 0)

    def _answer(
        self, interrupt: Interrupt, name: str, arguments: tuple[Any, ...], heeds: bool
    ) -> Any:
        """Execute a request; heeds : whether interrupts are obeyed."""
        assert self.worker is not None
        self.worker.member.interrupt = interrupt if heeds else False
        answer = done(self.worker, name, arguments)
        trouble = answer.trouble if isinstance(answer, StepOutcome) else answer
        if isinstance(trouble, Halted):
            trouble.args = (interrupt.signal,)
        return answer


def command(work: Callable[[], int], make: Callable[[Recipe], Model]) -> int:
    """Run a program on the first process while the others follow; all return its exit code.

    make : builds the model from a recipe
    """
    if follows():
        code: int = MpiFollower().serve(make)
        return code
    try:
        with _leads(), _aborting():
            code = work()
    except BaseException:
        dismiss(1)
        raise
    dismiss(code)
    return code


_leading = False
"""Whether the first process is inside a call that will dismiss the followers itself."""


@contextmanager
def _leads() -> Iterator[None]:
    """Run functions decorated with ``together`` on the first process alone within the block."""
    global _leading
    _leading = True
    try:
        yield
    finally:
        _leading = False


@contextmanager
def _aborting() -> Iterator[None]:
    """Make Ctrl-C abort all processes within the block, unless a run handles the signal.

    A process that left in the middle of an exchange would leave the others waiting for ever.
    """
    try:
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not usual or threading.current_thread() is not threading.main_thread():
            yield
            return
    except ValueError:
        yield
        return

    def abort(number: int, _: Any) -> None:
        print("interrupted before the run began", file=sys.stderr, flush=True)
        world().Abort(128 + number)

    before = signal.signal(signal.SIGINT, abort)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def together(
    make: Callable[..., Callable[[Recipe], Model]],
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorate a function that all processes call and the first one executes.

    make : returns, from the arguments, how a follower builds its model. All processes return equal
    results, or raise.
    """

    def decorator(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def shared(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            if not started() or _leading:
                return function(*args, **kwargs)
            if follows():
                outcome = MpiFollower().serve(make(*args, **kwargs))
                if isinstance(outcome, BaseException):
                    raise outcome
                return outcome
            try:
                with _leads(), _aborting():
                    result = function(*args, **kwargs)
            except BaseException as error:
                dismiss(_echo(error))
                raise
            dismiss(_copy(result))
            return result

        return shared

    return decorator


def _copy(result: Any) -> Any:
    """Copy a result for the followers, without large variables, which are in the result file."""
    sizes = sorted((variable.nbytes, name) for name, variable in result.variables.items())
    while sizes and sum(size for size, _ in sizes) > LARGEST_COPY:
        result = result.drop_vars(sizes.pop()[1])
    return result.copy(deep=False).load()


def _echo(error: BaseException) -> BaseException:
    """Return the error for the followers to raise, without the result, which the leader has."""
    if isinstance(error, Interrupted):
        return Interrupted(str(error), None, error.signal)
    if isinstance(error, AccuracyWarning):
        echo = AccuracyWarning(str(error))
        echo.dataset = _copy(error.dataset)
        return echo
    if isinstance(error, InputError | RunError):
        return type(error)(str(error))
    return RunError(f"{type(error).__name__}: {error}")
