"""Kernels that other processes compile."""

import importlib.util
import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from relboltz.backends.cuda.compiler_processes import Kernel, build_ahead

PARTS = importlib.util.find_spec("numba_cuda") is not None
PROGRAM = """
import json, os
import numpy as np
from relboltz.backends.cuda import compiler_processes, kernels
from relboltz.backends.cuda.compiler_processes import build_ahead
from relboltz.util.jit import cache_folder

os.sched_getaffinity = lambda process: set(range({cores}))
whole = np.zeros((2, 8), np.int64)
launches = []

def work():
    kernels.peaks[1, 1](np.zeros(64, np.int64), whole, whole, 0)
    launches.append(kernels.peaks.builder)

before = kernels.peaks.kept
build_ahead(work, lambda: {{"capability": (9, 0)}})
builder = kernels.peaks.builder
code = None if builder is None else builder.wait()
compiler_processes._pretend((9, 0))
kinds = kernels.peaks.job((np.zeros(64, np.int64), whole, whole, 0))[2]
found = kernels.peaks._cache.load_overload(kinds, kernels.peaks.targetctx)
kept = kernels.peaks.kept
for path in cache_folder().glob("*.nbc"):
    path.write_bytes(path.read_bytes()[:-1])
damaged = kernels.peaks._cache.load_overload(kinds, kernels.peaks.targetctx)
print(json.dumps([before, launches, code, kept, found is not None, damaged]))
"""


def told(cores, folder):
    """Run a program that has a kernel compiled, with an empty cache and some cores."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM.format(cores=cores)], env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(not PARTS, reason="numba-cuda is not installed (Linux only)")
@pytest.mark.skipif(os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0", reason="the simulator")
def test_a_kernel_that_another_process_compiled_is_in_the_cache(tmp_path):
    """The cache key agrees without a GPU; with few cores nothing is started; damage is detected."""
    assert told(4, tmp_path / "many") == [False, [None], 0, True, True, None]
    assert told(2, tmp_path / "few") == [False, [None], None, False, False, None]


def test_a_users_kernel_is_for_nobody_else():
    """It is made without a module, kept nowhere, and compiled by this process alone."""
    space: dict = {}
    exec("def draw(x): pass", space)
    space["draw"].__module__ = None
    kernel = Kernel(SimpleNamespace(py_func=space["draw"]), cached=False)
    assert kernel.kept
    launched = []
    build_ahead(lambda: launched.append(kernel[1, 1](0.0)), lambda: {"capability": (9, 0)})
    assert launched == [None] and kernel.builder is None


def test_kernels_of_other_threads_are_launched():
    """While one thread only notes what it would launch."""
    seen, noted = [], []
    kernel = Kernel({(1, 1): lambda *arguments: seen.append(arguments)}, cached=False)

    def work():
        other = threading.Thread(target=lambda: kernel[1, 1]("launched"))
        other.start()
        other.join()
        noted.append(kernel[1, 1]("noted"))

    build_ahead(work, lambda: {"capability": (9, 0)})
    assert seen == [("launched",)] and noted == [None]
