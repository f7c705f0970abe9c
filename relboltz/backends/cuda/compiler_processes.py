"""Parallel compilation of kernels by other processes, into the cache that this process reads.

Numba compiles one function at a time per process and needs half a minute for all kernels of a step.
Kernels missing from the cache are shared among processes that need no GPU and exit once their
kernels are written. If such a process fails, this process compiles the kernel itself.
"""

import atexit
import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from ...util import cache
from ...util.gc_pause import resting
from ...util.jit import cache_folder

FEWEST_CORES = 4
"""Least number of cores: with fewer, the processes would wait for one another."""
MOST_BUILDERS = 6
"""Most processes at a time: each needs a quarter of a gigabyte."""
OFTEN = 0.05
"""Seconds between checks of the cache."""
LONGEST = 100.0
"""Seconds to wait for a kernel before compiling it in this process."""
PROGRAM = "from relboltz.backends.cuda.compiler_processes import serve; serve()"
Job = tuple[str, str, tuple[Any, ...]]
"""Module and name of a kernel, and the types of its arguments."""


class Kernel:
    """A numba-cuda kernel that waits for the process compiling it, if there is one.

    noting.list : if a list, this thread appends kernels and arguments to it instead of launching
    """

    noting = threading.local()

    def __init__(self, compiled: Any, cached: bool):
        self.compiled, self.cached = compiled, cached
        self.builder: subprocess.Popen[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    def __getitem__(self, configuration: Any) -> Any:
        """Return the kernel configured with numbers of blocks and threads."""
        noted = getattr(Kernel.noting, "list", None)
        if noted is not None:
            return partial(self._note, noted)
        if self.builder is not None:
            self._wait(self.builder)
            self.builder = None
        return self.compiled[configuration]

    def _wait(self, builder: "subprocess.Popen[bytes]") -> None:
        """Wait until the kernel is in the cache, its process has ended, or LONGEST has passed."""
        patience = time.monotonic() + LONGEST
        with resting():
            while builder.poll() is None and time.monotonic() < patience and not self.kept:
                time.sleep(OFTEN)

    def _note(self, noted: list[Any], *arguments: Any) -> None:
        noted.append((self, arguments))

    def job(self, arguments: tuple[Any, ...]) -> Job:
        """Return what another process needs to compile this kernel."""
        kinds = tuple(self.compiled.typeof_pyval(argument) for argument in arguments)
        return self.compiled.py_func.__module__, self.compiled.py_func.__name__, kinds

    @property
    def kept(self) -> bool:
        """Whether compiled code of this kernel is in the cache, or is never cached."""
        if not self.cached:  # generated from a user's function, without a module
            return True
        folder = cache_folder()
        name = f"{self.compiled._cache._cache_file.name}-*.nbc"
        return folder is not None and any(folder.glob(name))


def build_ahead(
    work: Callable[[], None], device: Callable[[], dict[str, Any]], others: Sequence[Job] = ()
) -> None:
    """Compile the kernels that ``work`` would launch in other processes; none is launched.

    device : returns the properties of the target GPU; others : host functions needed later
    """
    noted: list[tuple[Kernel, tuple[Any, ...]]] = []
    Kernel.noting.list = noted
    try:
        work()
    finally:
        Kernel.noting.list = None
    wanted = {kernel: arguments for kernel, arguments in noted if not kernel.kept}
    builders = min(MOST_BUILDERS, _cores() - 1, len(wanted))
    if not wanted or _cores() < FEWEST_CORES or cache_folder() is None or not sys.executable:
        return
    capability = device()["capability"]
    kernels = list(wanted)[::-1]  # masses come last in a step but are needed first
    for i in range(builders):
        own = kernels[i::builders]
        builder = _started([kernel.job(wanted[kernel]) for kernel in own], capability)
        for kernel in own:
            kernel.builder = builder
    if others:
        _started(list(others), capability)


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _started(jobs: list[Job], capability: tuple[int, int]) -> "subprocess.Popen[bytes] | None":
    """Start a process that compiles some kernels and exits if this process does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        pickle.dump((jobs, capability), process.stdin)
        process.stdin.flush()  # left open: end of file tells it that we exited
    except OSError:
        return None
    atexit.register(process.kill)
    return process


# --- run in the other process -------------------------------------------------------------------


def serve() -> None:
    """Compile the kernels listed on standard input into the cache."""
    jobs, capability = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _pretend(capability)
    for module, name, kinds in jobs:
        getattr(_imported(module), name).compile(kinds)
    os._exit(0)  # the other thread is still reading


def _end_with_parent() -> None:
    """Exit when standard input closes, that is, when the parent process is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)


def _imported(module: str) -> Any:
    """Import a module of the package, or load one that it generated."""
    if module.startswith("relboltz."):
        return importlib.import_module(module)
    from ..elements import load

    folder = cache_folder()
    text = None if folder is None else cache.read(folder / f"{module}.py")
    return load((text or b"").decode(), module.split("_")[0])


def _pretend(capability: tuple[int, int]) -> None:
    """Compile for a GPU without opening it, which would cost time and GPU memory."""
    codegen: Any = importlib.import_module("numba.cuda.codegen")
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    device = SimpleNamespace(compute_capability=capability)
    context = SimpleNamespace(device=device)
    dispatcher.get_current_device = lambda: device
    codegen.devices = SimpleNamespace(get_context=lambda: context)
    dispatcher._Kernel.bind = lambda kernel: kernel.library.get_cubin()
