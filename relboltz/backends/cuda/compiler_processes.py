"""Kernels that other processes compile, all at once, into the cache that this process reads.

Numba compiles one function at a time in a process, and all kernels of a step take it half a minute.
Where they are not in the cache yet, each goes to a process of its own that needs no GPU and ends
when it has written its kernel. Whatever goes wrong there, this process compiles for itself.
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
"""With fewer, processes would wait for one another."""
MOST_BUILDERS = 6
"""Processes at a time: each needs a quarter of a gigabyte."""
OFTEN = 0.05
"""Seconds between looks into the cache."""
LONGEST = 100.0
"""Seconds to wait for a kernel before it is compiled here."""
PROGRAM = "from relboltz.backends.cuda.compiler_processes import serve; serve()"
Job = tuple[str, str, tuple[Any, ...]]
"""Module and name of a kernel, and the types of its arguments."""


class Kernel:
    """A kernel as numba-cuda has it, that waits for the process that compiles it, if there is one.

    noting.list : while it is one, kernels that this thread launches join it, with their arguments
    """

    noting = threading.local()

    def __init__(self, compiled: Any, cached: bool):
        self.compiled, self.cached = compiled, cached
        self.builder: subprocess.Popen[bytes] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiled, name)

    def __getitem__(self, configuration: Any) -> Any:
        """The kernel, to be launched with so many blocks and threads."""
        noted = getattr(Kernel.noting, "list", None)
        if noted is not None:
            return partial(self._note, noted)
        if self.builder is not None:
            self._wait(self.builder)
            self.builder = None
        return self.compiled[configuration]

    def _wait(self, builder: "subprocess.Popen[bytes]") -> None:
        """Until the kernel is in the cache, or never will be."""
        patience = time.monotonic() + LONGEST
        with resting():
            while builder.poll() is None and time.monotonic() < patience and not self.kept:
                time.sleep(OFTEN)

    def _note(self, noted: list[Any], *arguments: Any) -> None:
        noted.append((self, arguments))

    def job(self, arguments: tuple[Any, ...]) -> Job:
        """What a process must know to compile it."""
        kinds = tuple(self.compiled.typeof_pyval(argument) for argument in arguments)
        return self.compiled.py_func.__module__, self.compiled.py_func.__name__, kinds

    @property
    def kept(self) -> bool:
        """Whether compiled code of this kernel is in the cache, or will not be."""
        if not self.cached:  # a user's, generated without a module
            return True
        folder = cache_folder()
        name = f"{self.compiled._cache._cache_file.name}-*.nbc"
        return folder is not None and any(folder.glob(name))


def build_ahead(
    work: Callable[[], None], device: Callable[[], dict[str, Any]], others: Sequence[Job] = ()
) -> None:
    """Have the kernels that ``work`` launches compiled by other processes; they are not launched.

    device : tells of the GPU that they are for; others : kernels of the host, needed later
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
    kernels = list(wanted)[::-1]  # masses come last in a step, and are needed first
    for i in range(builders):
        own = kernels[i::builders]
        builder = _started([kernel.job(wanted[kernel]) for kernel in own], capability)
        for kernel in own:
            kernel.builder = builder
    if others:
        _started(list(others), capability)


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _started(jobs: list[Job], capability: tuple[int, int]) -> "subprocess.Popen[bytes] | None":
    """A process that compiles some kernels; it ends when this one does."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdin is not None
        pickle.dump((jobs, capability), process.stdin)
        process.stdin.flush()  # and stays open: its end tells the process of ours
    except OSError:
        return None
    atexit.register(process.kill)
    return process


# --- in the other process -----------------------------------------------------------------------


def serve() -> None:
    """Compile what is asked for on standard input, into the cache."""
    jobs, capability = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _pretend(capability)
    for module, name, kinds in jobs:
        getattr(_imported(module), name).compile(kinds)
    os._exit(0)  # the thread still reads


def _end_with_parent() -> None:
    """Nothing more comes on standard input, until the process at its other end is gone."""
    while os.read(0, 1):
        pass
    os._exit(1)


def _imported(module: str) -> Any:
    """A module of the package, or one that it generated."""
    if module.startswith("relboltz."):
        return importlib.import_module(module)
    from ..elements import load

    folder = cache_folder()
    text = None if folder is None else cache.read(folder / f"{module}.py")
    return load((text or b"").decode(), module.split("_")[0])


def _pretend(capability: tuple[int, int]) -> None:
    """Compile for a GPU that this process does not open: it costs time and memory of the GPU."""
    codegen: Any = importlib.import_module("numba.cuda.codegen")
    dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
    device = SimpleNamespace(compute_capability=capability)
    context = SimpleNamespace(device=device)
    dispatcher.get_current_device = lambda: device
    codegen.devices = SimpleNamespace(get_context=lambda: context)
    dispatcher._Kernel.bind = lambda kernel: kernel.library.get_cubin()
