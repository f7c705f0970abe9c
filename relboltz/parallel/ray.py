"""Choice of where a run is computed: this process, workers of a Ray cluster, or MPI processes.

No other module imports Ray. Ray places workers, reports their deaths and delivers requests; data
exchanged during steps goes directly from worker to worker (``backends.team.sockets``). The driver
never touches a GPU.
"""

import contextlib
import itertools
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from .. import __version__, backends
from ..backends.contract import Backend
from ..backends.cpu.threads import available_cores
from ..backends.team.exchange import WorkerLost
from ..backends.team.leader import Each, worst
from ..config.settings import RunSettings, Sampling
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..stepping.accuracy_watch import undisturbed
from ..util.errors import BackendNotice, InputError, RunError, say
from ..util.launcher import started
from ..util.text import shown
from .ray_messages import speak_as_usual, speak_plainly
from .worker_host import WorkerActor, team, writable

PLACED_WITHIN = 50.0
"""Seconds to wait until all workers are placed."""
LAST_WORDS = 20.0
"""Seconds to wait for answers after a worker is lost."""
REACHED_WITHIN = 10.0
"""Seconds to wait for an answer of the head node of a cluster."""
POLL = 0.1


def resolve(run: RunSettings) -> tuple[str, str]:
    """Resolve backend and precision; for remote workers, without looking at GPUs here."""
    if not run.workers or started():
        return backends.resolve(run.backend, run.precision)
    name = run.backend
    if name == "auto":
        name = "cuda" if run.gpus_per_worker > 0 else "cpu"
    if name == "cpu":
        return backends.resolve(name, run.precision)
    return name, "float32" if run.precision == "auto" else run.precision


def choose(
    grid: PhaseSpace, model: Model, sampling: Sampling, run: RunSettings, recipe: Mapping[str, Any]
) -> Backend:
    """Return the backend that [run] asks for: one process, or a team; recipe : see ``resuming``."""
    if started():
        from .mpi import leading

        return leading(grid, model, sampling, run, dict(recipe))
    if not run.workers:
        return backends.choose(grid, model, sampling, run)
    backends.check_size(grid, model, sampling)
    name, precision = resolve(run)
    own = run.model_copy(update={"backend": name, "precision": precision})
    return team(RayWorkerPool(model, own), name, grid, model, sampling)


# --- a worker of Ray ----------------------------------------------------------------------------


class NodeInfo(NamedTuple):
    """Host, process, cluster node and relboltz version of a worker."""

    host: str
    process: int
    node: str
    version: str


class RayActor(WorkerActor):
    """A Ray actor: a process of the cluster that holds a worker."""

    def where(self) -> NodeInfo:
        """Return the host, process, node and relboltz version of this actor."""
        import ray

        own: Any = ray
        node = own.get_runtime_context().get_node_id()
        return NodeInfo(own.util.get_node_ip_address(), os.getpid(), node, __version__)


# --- the driver ---------------------------------------------------------------------------------


class RayWorkerPool:
    """Workers of a Ray cluster, either a running one or one started for this run."""

    description = "Ray"

    def __init__(self, model: Model, run: RunSettings):
        self.size, self.run, self.interrupt = run.workers, run, False
        self._ray, self._started = _connected(run)
        self._actors: list[Any] = []
        self._places: list[NodeInfo] = []
        self._gone: set[int] = set()
        self._group: Any = None
        self._warmed: set[str] = set()
        self._round, self._orders = 0, 0
        try:
            self._model = _pickled(self._ray, model)
        except BaseException:
            self.close()
            raise

    # -- placement -------------------------------------------------------------------------------

    @cached_property
    def _needs(self) -> dict[str, float]:
        """CPUs and GPUs that a worker needs."""
        gpus = self.run.gpus_per_worker or (1.0 if self.run.backend == "cuda" else 0.0)
        return {"CPU": float(self._threads)} | ({"GPU": gpus} if gpus else {})

    @cached_property
    def _threads(self) -> int:
        """Threads of one worker."""
        if self.run.threads or self.run.backend == "cuda":
            return self.run.threads or 1
        return largest_share(_cores_by_node(self._ray), self.size)

    def _place(self) -> None:
        """Start missing workers wherever the cluster has room for them."""
        ray = self._ray
        if self._group is None:
            self._group = ray.util.placement_group([self._needs] * self.size, strategy="PACK")
            self._wait_for_room()
            self._actors = [None] * self.size
            self._gone = set(range(self.size))
        for k in self._gone:
            self._actors[k] = self._new_actor(k)
        try:
            told = ray.get([a.where.remote() for a in self._actors], timeout=PLACED_WITHIN)
        except ray.exceptions.GetTimeoutError:
            raise self._no_room(PLACED_WITHIN) from None
        except ray.exceptions.RayActorError as error:
            raise self._lost(error) from None
        self._places, self._gone = told, set()
        for place in told:
            if place.version != __version__:
                raise InputError(
                    f"relboltz {place.version} on {place.host}, {__version__} here: install the "
                    "same version on all machines of the cluster"
                )

    def _wait_for_room(self) -> None:
        """Wait until the cluster has room for all workers; raise InputError if it does not."""
        ray, ready, there = self._ray, self._group.ready(), self._ray.cluster_resources()
        short = any(there.get(kind, 0.0) < n * self.size for kind, n in self._needs.items())
        if short and self._started and not self.run.address:
            raise self._no_room(0.0)
        try:
            ray.get(ready, timeout=min(5.0, PLACED_WITHIN))
            return
        except ray.exceptions.GetTimeoutError:
            say(f"waiting for a place for {self.size} workers on the cluster", BackendNotice)
        try:
            ray.get(ready, timeout=max(0.0, PLACED_WITHIN - 5.0))
        except ray.exceptions.GetTimeoutError:
            raise self._no_room(PLACED_WITHIN) from None

    def _new_actor(self, k: int) -> Any:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        needs = self._needs
        kind = self._ray.remote(RayActor).options(
            num_cpus=needs["CPU"], num_gpus=needs.get("GPU", 0.0), max_restarts=0,
            max_concurrency=4,
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                self._group, placement_group_bundle_index=k
            ),
        )  # fmt: skip
        return kind.remote(self._model)

    def _no_room(self, waited: float) -> InputError:
        ray = self._ray
        needs = ", ".join(f"{n:g} {name}" for name, n in self._needs.items())
        there, free = ray.cluster_resources(), ray.available_resources()
        has = ", ".join(f"{there.get(n, 0):g} {n} ({free.get(n, 0):g} free)" for n in self._needs)
        return InputError(
            f"run.workers = {self.size}: there is no place for all of them"
            f"{f' (waited for {waited:.0f} s)' if waited else ''}: each needs {needs}, and the "
            f"cluster has {has}; use fewer workers, fewer threads or gpus_per_worker each, or a "
            f"larger cluster"
            f"{', or backend = ' + repr('cpu') if 'GPU' in self._needs else ''}"
        )

    def form(self, grid: PhaseSpace, sampling: Sampling) -> None:
        """Create workers for a grid, without a state; lost workers are replaced."""
        self._place()
        run = self.run.model_copy(update={"threads": self._threads, "workers": 0, "address": ""})
        fresh = {place.node: k for k, place in enumerate(self._places)}
        first = {node: k for node, k in fresh.items() if node not in self._warmed}
        self._all("warm", sampling, run, grid.sites > 1, only=list(first.values()))
        self._warmed |= set(first)
        self._round += 1
        hosts = [place.host for place in self._places]
        ports = self._all("listen", each=[(host, self._round) for host in hosts])
        addresses, token = list(zip(hosts, ports, strict=True)), secrets.token_bytes(16)
        ray = self._ray
        nodes = [place.node for place in self._places]
        refs = [
            actor.form.remote(k, addresses, token, grid, sampling, run, nodes.count(nodes[k]) - 1)
            for k, actor in enumerate(self._actors)
        ]
        self._raise(self._answers(ray, refs, range(self.size)))

    def _all(
        self, name: str, *common: Any, each: Each | None = None, only: Sequence[int] | None = None
    ) -> list[Any]:
        """Call a method of all actors, or of some."""
        which = range(self.size) if only is None else only
        own = each or [()] * self.size
        refs = [getattr(self._actors[k], name).remote(*own[k], *common) for k in which]
        told = self._answers(self._ray, refs, which)
        self._raise(told)
        return told

    # -- requests --------------------------------------------------------------------------------

    def ask(
        self, name: str, *common: Any, each: Each | None = None, only: int | None = None
    ) -> list[Any]:
        """Call a method of all workers, or of only one."""
        ray, which = self._ray, range(self.size) if only is None else [only]
        given, own = ray.put(common), each or [()] * self.size
        self._orders += 1
        how = only is None, self._orders
        refs = [self._actors[k].do.remote(name, own[k], given, *how) for k in which]
        told = [writable(one) for one in self._answers(ray, refs, which)]
        self._raise(told)
        return told

    def _answers(self, ray: Any, refs: list[Any], which: Sequence[int]) -> list[Any]:
        """Collect the answers; if a worker has died, note that and tell the others not to wait."""
        waiting, halted, until = list(refs), False, float("inf")
        lost: dict[int, Exception] = {}
        told: dict[Any, Any] = {}
        while waiting and time.monotonic() < until:
            done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=POLL)
            for ref in done:
                k = which[refs.index(ref)]
                try:
                    told[ref] = ray.get(ref)
                except ray.exceptions.RayTaskError as error:
                    told[ref] = RunError(f"worker {k}: {error}")
                except ray.exceptions.RayError as error:
                    lost[k] = error
            if lost and until == float("inf"):
                until = time.monotonic() + LAST_WORDS
                self._hint("halt", self._orders)
                self._hint("drop", self._round)
            if self.interrupt and not halted:
                halted = True
                self._hint("halt", self._orders)
        lost |= {which[refs.index(ref)]: WorkerLost("it does not answer") for ref in waiting}
        if lost:
            self._gone |= set(lost)
            raise self._lost(next(iter(lost.values())))
        return [told[ref] for ref in refs]

    def _hint(self, name: str, *arguments: Any) -> None:
        """Call a method of all actors, ignoring failures."""
        for actor in self._actors:
            with contextlib.suppress(Exception):
                getattr(actor, name).remote(*arguments)

    def _lost(self, error: Exception) -> WorkerLost:
        """Find and kill the lost workers; return an error that names them."""
        for k, actor in enumerate(self._actors):
            if k not in self._gone:
                try:
                    self._ray.get(actor.where.remote(), timeout=LAST_WORDS)
                except Exception:
                    self._gone.add(k)
        for k in self._gone:  # kill any remains
            with contextlib.suppress(Exception):
                self._ray.kill(self._actors[k])
        gone = [(k, self._places[k]) for k in sorted(self._gone) if k < len(self._places)]
        where = [f"{k} ({place.host}, process {place.process})" for k, place in gone]
        why = str(error).strip().splitlines()
        return WorkerLost(f"worker {', '.join(where) or '?'} is gone: {why[0] if why else '?'}")

    def _raise(self, told: Sequence[Any]) -> None:
        """Raise the most important error among the answers, if any."""
        trouble = worst([one for one in told if isinstance(one, Exception)])
        if trouble is not None:
            raise trouble

    def close(self) -> None:
        """Release the workers, and shut down Ray if this run initialised it."""
        ray, actors, group = self._ray, self._actors, self._group
        self._actors, self._group = [], None
        if self._started:  # shutting down Ray ends all workers
            self._started = False
            _shut_down(ray)
            return
        for actor in actors:
            with contextlib.suppress(Exception):
                ray.kill(actor)
        if group is not None:
            with contextlib.suppress(Exception):
                ray.util.remove_placement_group(group)


def _cores_by_node(ray: Any) -> list[int]:
    """Return the cores of every machine of the cluster."""
    return [int(n["Resources"].get("CPU", 0)) for n in ray.nodes() if n.get("Alive", True)]


def largest_share(cores: Sequence[int], workers: int) -> int:
    """Return the most threads per worker for which all fit, each worker on a single machine."""
    fits = (n for n in range(max(cores, default=1), 0, -1) if sum(c // n for c in cores) >= workers)
    return next(fits, 1)


def _connected(run: RunSettings) -> tuple[Any, bool]:
    """Connect to Ray, joining a cluster if an address is given.

    Returns the module, and whether this call initialised Ray.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if run.address and _has_token():
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    try:
        import ray
    except ImportError:
        raise InputError(
            f"run.workers = {run.workers}: needs Ray: pip install 'relboltz[ray]'; or start the "
            f"processes yourself: mpirun -n {run.workers} relboltz run ... (pip install "
            "'relboltz[mpi]')"
        ) from None
    if ray.is_initialized():
        return ray, False
    with undisturbed():
        return ray, _joined(ray, run)


def _joined(ray: Any, run: RunSettings) -> bool:
    """Join a cluster, or start one; return True."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    try:
        if run.address:
            _knock(run.address)
            ray.init(run.address, **quiet)
        else:
            cores = max(available_cores(), run.workers * max(1, run.threads))
            ray.init("local", num_cpus=cores, include_dashboard=False, **quiet)
    except Exception as error:
        description = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"run.address = {shown(run.address)}: Ray cannot be reached: {description}; see "
            "ray status (and RAY_AUTH_MODE, if the cluster asks for a token), or leave address "
            "out to start Ray on this machine"
        ) from None
    speak_plainly(ray)
    return True


def _shut_down(ray: Any) -> None:
    """Leave the cluster, or end it if it was started here."""
    ray.shutdown()
    speak_as_usual(ray)


def _has_token() -> bool:
    """Return whether this user has a cluster token."""
    named = any(name in os.environ for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return named or (Path.home() / ".ray" / "auth_token").is_file()


def _knock(address: str) -> None:
    """Fail at once if no process listens at the address: Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), REACHED_WITHIN).close()


def _pickled(ray: Any, model: Model) -> bytes:
    """Pickle a model with the user's functions by value: other machines may lack their file."""
    pickle = ray.cloudpickle
    names = {p.matrix_element.__module__ for p in model.processes if not p.built_in}
    modules = [sys.modules[name] for name in names if name in sys.modules and name != "__main__"]
    for module in modules:
        pickle.register_pickle_by_value(module)
    try:
        return bytes(pickle.dumps(model))
    except Exception as error:
        raise InputError(f"the model cannot be sent to workers: {error}") from None
    finally:
        for module in modules:
            pickle.unregister_pickle_by_value(module)


# --- independent tasks --------------------------------------------------------------------------


def spread(
    work: Callable[[Any, int], Any], tasks: Sequence[Any], run: RunSettings
) -> Iterator[tuple[int, Any]]:
    """Do independent tasks in ``run.workers`` Ray processes; yield (number, result) as they finish.

    work : function of a task and a number of threads
    """
    ray, own = _connected(run)
    threads = run.threads or largest_share(_cores_by_node(ray), run.workers)
    one: Any = ray.remote(num_cpus=threads, num_gpus=run.gpus_per_worker, max_retries=1)(work)
    waiting: dict[Any, int] = {}
    left = iter(enumerate(tasks))
    try:
        while True:
            for i, task in itertools.islice(left, max(0, run.workers - len(waiting))):
                waiting[one.remote(task, threads)] = i
            if not waiting:
                return
            ready, _ = ray.wait(list(waiting), num_returns=1)
            i = waiting.pop(ready[0])
            try:
                result = ray.get(ready[0])
            except ray.exceptions.RayError as error:
                description = str(error).strip().splitlines() or ["?"]
                result = f"failed: its process is gone: {description[0]}"
            yield i, result
    finally:
        for ref in waiting:
            with contextlib.suppress(Exception):
                ray.cancel(ref, force=True)
        if own:
            _shut_down(ray)
