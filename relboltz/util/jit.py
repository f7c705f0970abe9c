"""Compile the scalar physics functions for a backend, and cache compiled code between runs.

The physics is written once as scalar Python functions. ``build`` compiles a list of them with a
backend's own compiler and flags, so that compiled functions call compiled functions. Kernels are
cached on disk in a folder named by a hash of all sources and versions, because an edited callee
in another module would not invalidate an ordinary Numba cache.
"""

import contextlib
import hashlib
import importlib.metadata
import inspect
import platform
import sys
import threading
import types
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import event
from numba.core.caching import FunctionCache

from .cache import found, kept, tell
from .gc_pause import collector

UNCOMPILED = (
    "analysis", "checks", "cli", "config", "initial", "io", "linear_response", "parallel", "run",
    "studies", "visualization",
)  # fmt: skip
"""Packages without compiled functions: editing them triggers no compilation."""
Function = Callable[..., Any]
FASTMATH = {"contract", "nsz", "arcp"}
"""Fast-math flags that preserve NaN and infinities."""


class CompilationListener(event.Listener):
    """Listener that pauses the garbage collector while Numba compiles or loads compiled code."""

    def on_start(self, event: Any) -> None:
        """Handle the start of a compilation, possibly nested in another one of this thread."""
        collector.rest()

    def on_end(self, event: Any) -> None:
        """Handle the end of the compilation that a thread started last."""
        collector.go_on()


event.register("numba:compiler_lock", CompilationListener())  # type: ignore[no-untyped-call]


@cache
def cache_folder() -> Path | None:
    """Return the folder of compiled code, which changes with every source and version.

    None if there is no writable folder that belongs to the user alone.
    """
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for source in sorted(package.rglob("*.py")):
        if source.relative_to(package).parts[0] not in UNCOMPILED:
            digest.update(source.read_bytes())
    for version in (numba.__version__, llvmlite.__version__, np.__version__, sys.version):
        digest.update(version.encode())
    for part in ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            digest.update(importlib.metadata.version(part).encode())
    folder, trouble = found(f"{platform.machine()}-{digest.hexdigest()[:16]}")
    if trouble is not None:
        tell(trouble)
        return None
    return folder


def kernel(function: Function, signature: Any = None, inlined: bool = False) -> Any:
    """Return a CPU kernel that is compiled on first use, cached, and releases the interpreter lock.

    inlined : inline into the calling kernel. Otherwise there are two compiled versions, a separate
        one and one inside the caller: the process that compiles them runs the first, later
        processes the second; if their arithmetic is contracted differently, the last bits differ.
    """
    flags: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "boundscheck": False,
        "forceinline": inlined,
    }  # fmt: skip
    dispatcher = keep(numba.njit(**flags)(function), FunctionCache)
    return dispatcher if signature is None else SignedKernel(dispatcher, signature)


def keep(dispatcher: Any, kind: Any) -> Any:
    """Cache compiled code of a function between runs; kind : Numba's class for such code."""
    if hasattr(dispatcher, "py_func"):  # absent if Numba's compilation is disabled
        dispatcher._cache = kept(kind, cache_folder)(dispatcher.py_func)
    return dispatcher


class SignedKernel:
    """Kernel with a fixed signature, compiled at the first call and not at import."""

    def __init__(self, dispatcher: Any, signature: Any):
        self._dispatcher, self._signature = dispatcher, signature
        self._lock = threading.Lock()
        self._compiled: Function | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled kernel."""
        if self._compiled is None:
            with self._lock:
                if self._compiled is None:
                    self._compiled = compiled_for(self._dispatcher, self._signature)
        return self._compiled(*arguments)


def compiled_for(dispatcher: Any, signature: Any) -> Any:
    """Return a function compiled for a single signature."""
    if hasattr(dispatcher, "py_func"):
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def scalar(function: Function) -> Any:
    """Return a scalar physics function for the CPU, to be inlined into kernels."""
    return numba.njit(error_model="numpy", fastmath=FASTMATH, forceinline=True)(function)


def functions_of(*modules: types.ModuleType) -> list[Function]:
    """Return the functions defined in modules, in order: callees before callers."""
    found = [(m, f) for m in modules for f in vars(m).values() if inspect.isfunction(f)]
    own: list[Function] = [one for module, one in found if one.__module__ == module.__name__]
    names = [function.__name__ for function in own]
    twice = {name for name in names if names.count(name) > 1}
    if twice:  # all are compiled into one module
        raise ValueError(f"two functions have the name {', '.join(sorted(twice))}")
    return own


def build(
    functions: Iterable[Function],
    compiler: Callable[[Function], Any],
    replacements: Mapping[str, Any] | None = None,
) -> types.ModuleType:
    """Compile plain functions, callees before callers, so that compiled functions call each other.

    ``replacements`` are compiled substitutes for functions with these names, such as a backend's
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
    space = types.ModuleType("compiled")  # kernels may call functions of a module by name
    vars(space).update(compiled)
    return space
