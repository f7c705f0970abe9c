"""Compiles the plain physics functions for a backend, and keeps compiled code between runs.

The physics is written once as scalar Python functions. ``build`` compiles a list of them with a
backend's own compiler and flags, so that they call one another compiled. Compiled kernels are
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
"""Rooms without compiled functions: editing them compiles nothing anew."""
Function = Callable[..., Any]
FASTMATH = {"contract", "nsz", "arcp"}
"""Licences that keep NaN and infinities meaningful."""


class CompilationListener(event.Listener):
    """Numba tells it when it compiles or loads compiled code: the garbage collector rests."""

    def on_start(self, event: Any) -> None:
        """A thread wants to compile, or does so already and goes deeper."""
        collector.rest()

    def on_end(self, event: Any) -> None:
        """A thread is done with what it began last."""
        collector.go_on()


event.register("numba:compiler_lock", CompilationListener())  # type: ignore[no-untyped-call]


@cache
def cache_folder() -> Path | None:
    """Where compiled code is kept: a folder that changes with every source and version.

    None if there is no place that is ours alone and can be written.
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
    """A CPU kernel: releases the interpreter, cached between runs; compiled on first use.

    inlined : into the kernel that calls it. Else there are two compiled versions of it, its own and
        one inside its caller: the process that compiles them runs the first, later ones the
        second, and where the compiler contracts their arithmetic differently the last bits differ.
    """
    flags: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "fastmath": FASTMATH, "boundscheck": False,
        "forceinline": inlined,
    }  # fmt: skip
    dispatcher = keep(numba.njit(**flags)(function), FunctionCache)
    return dispatcher if signature is None else SignedKernel(dispatcher, signature)


def keep(dispatcher: Any, kind: Any) -> Any:
    """Have compiled code of a function kept between runs; kind: Numba's class for such code."""
    if hasattr(dispatcher, "py_func"):  # Numba may be told to compile nothing
        dispatcher._cache = kept(kind, cache_folder)(dispatcher.py_func)
    return dispatcher


class SignedKernel:
    """A kernel with a fixed signature, compiled when it is first called: not at import."""

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
    """A function compiled for one signature, and for no other."""
    if hasattr(dispatcher, "py_func"):
        dispatcher.compile(signature)
        dispatcher.disable_compile()
    return dispatcher


def scalar(function: Function) -> Any:
    """A scalar physics function for the CPU, to be inlined into kernels."""
    return numba.njit(error_model="numpy", fastmath=FASTMATH, forceinline=True)(function)


def functions_of(*modules: types.ModuleType) -> list[Function]:
    """The functions written in modules, in their order: callees stand before callers."""
    found = [(m, f) for m in modules for f in vars(m).values() if inspect.isfunction(f)]
    own: list[Function] = [one for module, one in found if one.__module__ == module.__name__]
    names = [function.__name__ for function in own]
    twice = {name for name in names if names.count(name) > 1}
    if twice:  # they are compiled into one module
        raise ValueError(f"two functions have the name {', '.join(sorted(twice))}")
    return own


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
