"""Compiles the plain physics functions for a backend, and keeps compiled code between runs.

The physics is written once as scalar Python functions. ``build`` compiles a list of them with a
backend's own compiler and flags, so that they call one another compiled. Compiled kernels are
cached on disk in a folder named by a hash of all sources and versions, because an edited callee
in another module would not invalidate an ordinary Numba cache.
"""

import atexit
import contextlib
import hashlib
import importlib.metadata
import inspect
import os
import platform
import shutil
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import event

from .resting import collector

UNCOMPILED = (
    "plots", "checks", "initial", "cli", "tables", "config", "settings", "simulation", "run",
    "terms", "benchmark", "progress", "resting",
)  # fmt: skip
"""Folders and modules without compiled functions: editing them compiles nothing anew."""
Function = Callable[..., Any]
FLEETING = "relboltz-cache-"
"""How the name of a cache folder begins that goes with its process."""
FASTMATH = {"contract", "nsz", "arcp"}
"""Licences that keep NaN and infinities meaningful."""


class Compiling(event.Listener):
    """Numba tells it when it compiles or loads compiled code: the garbage collector rests."""

    def on_start(self, event: Any) -> None:
        """A thread wants to compile, or does so already and goes deeper."""
        collector.rest()

    def on_end(self, event: Any) -> None:
        """A thread is done with what it began last."""
        collector.go_on()


event.register("numba:compiler_lock", Compiling())  # type: ignore[no-untyped-call]


@cache
def cache_folder() -> Path:
    """Where compiled code is kept: a folder that changes with every source and version."""
    digest = hashlib.sha256()
    package = Path(__file__).parent
    for source in sorted(package.rglob("*.py")):
        if source.relative_to(package).parts[0].removesuffix(".py") not in UNCOMPILED:
            digest.update(source.read_bytes())
    for version in (numba.__version__, llvmlite.__version__, np.__version__, sys.version):
        digest.update(version.encode())
    for part in ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(importlib.metadata.version(part).encode())
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder = base / "relboltz" / f"{platform.machine()}-{digest.hexdigest()[:16]}"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        folder = Path(tempfile.mkdtemp(prefix=FLEETING))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder


def lasting() -> bool:
    """Whether compiled code outlives this process."""
    return not cache_folder().name.startswith(FLEETING)


@contextlib.contextmanager
def caching() -> Iterator[None]:
    """Within it, functions compiled with ``cache=True`` are kept in ``cache_folder()``."""
    settings: Any = numba.config
    before = settings.CACHE_DIR
    settings.CACHE_DIR = str(cache_folder())
    try:
        yield
    finally:
        settings.CACHE_DIR = before


def kernel(function: Function, signature: Any = None, inlined: bool = False) -> Any:
    """A CPU kernel: releases the interpreter, cached between runs; compiled on first use.

    inlined : into the kernel that calls it. Else there are two compiled versions of it, its own and
        one inside its caller: the process that compiles them runs the first, later ones the
        second, and where the compiler contracts their arithmetic differently the last bits differ.
    """
    flags: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "boundscheck": False,
        "forceinline": inlined,
    }  # fmt: skip
    if signature is not None:  # would compile at import: wait for the first call
        return Eager(function, signature, {**flags, "cache": True})
    with caching():
        return numba.njit(cache=True, **flags)(function)


class Eager:
    """A kernel with a fixed signature, compiled when it is first called."""

    def __init__(self, function: Function, signature: Any, flags: dict[str, Any]):
        self._function, self._signature, self._flags = function, signature, flags
        self._lock = threading.Lock()
        self._compiled: Function | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled kernel."""
        if self._compiled is None:
            with self._lock, caching():
                if self._compiled is None:
                    self._compiled = numba.njit(self._signature, **self._flags)(self._function)
        return self._compiled(*arguments)


def scalar(function: Function) -> Any:
    """A scalar physics function for the CPU, to be inlined into kernels."""
    return numba.njit(error_model="numpy", fastmath=FASTMATH, forceinline=True)(function)


def functions_of(*modules: types.ModuleType) -> list[Function]:
    """The functions written in modules, in their order: callees stand before callers."""
    found = [(m, f) for m in modules for f in vars(m).values() if inspect.isfunction(f)]
    return [function for module, function in found if function.__module__ == module.__name__]


def build(
    functions: Iterable[Function],
    compiler: Callable[[Function], Any],
    replacements: Mapping[str, Any] | None = None,
) -> types.ModuleType:
    """Compile plain functions, callees before callers, so that they call one another compiled.

    ``replacements`` are compiled stand-ins for functions of the same name, such as a backend's
    own exponential.
    """
    compiled: dict[str, Any] = dict(replacements or {})
    for function in functions:
        if function.__name__ in compiled:
            continue
        copy = types.FunctionType(
            function.__code__,
            {**function.__globals__, **compiled},
            function.__name__,
            function.__defaults__,
        )
        copy.__qualname__ = function.__qualname__
        copy.__module__ = function.__module__
        compiled[function.__name__] = compiler(copy)
    space = types.ModuleType("compiled")  # kernels may call what a module holds, by name
    vars(space).update(compiled)
    return space
