"""Compiles every CUDA kernel, with the arguments the backend gives it, on a machine without a GPU.

Launches are recorded instead of done: arrays stay on the host, and each kernel notes the types of
its arguments. Run as a program it prints one JSON object: kernel and model -> size of its PTX,
or what went wrong.

    python tests/cuda_without_gpu.py 7.5 9.0
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numba
import numpy as np

import relboltz as rb
from relboltz.backends.bracket_requests import BracketRequest, TrialFunctions
from relboltz.backends.cuda import driver as cuda_engine
from relboltz.backends.elements import Elements
from relboltz.backends.team.division import Division
from relboltz.backends.team.exchange import ThreadExchange
from relboltz.config.settings import Sampling
from relboltz.linear_response import brackets
from relboltz.linear_response.reference_state import MomentumPoints, ReferenceState
from relboltz.stepping.step import StepPlan, begin


class HostArray(np.ndarray):
    """An array that stays where it is."""

    def copy_to_host(self, ary=None, stream=0):
        if ary is not None:
            ary[...] = self
        return np.array(self)

    def copy_to_device(self, values, stream=0):
        self[...] = values


def on_host(values):
    return np.array(values, order="C").view(HostArray)


class Recorder:
    """Stands for a kernel: notes how it would have been launched."""

    def __init__(self, name, dispatcher, seen):
        self.name, self.dispatcher, self.seen = name, dispatcher, seen
        self.pre_launch_callbacks = []

    def __getitem__(self, configuration):
        return self

    def __call__(self, *arguments):
        kinds = [a.view(np.ndarray) if isinstance(a, np.ndarray) else a for a in arguments]
        key = (self.name, tuple(numba.typeof(kind) for kind in kinds))
        self.seen[key] = self.dispatcher.py_func


def record_launches(model, sampling, precision):
    """Types of all launches of a run, a limited step and an estimate."""

    from relboltz.backends.cuda import (  # fmt: skip
        backend,
        device_problem,
        distributed_sweep,
        draw,
        estimates,
        kernels,
        limiter,
        masses,
        moments,
        slab,
        sweeps,
        wall_ledger,
    )

    seen: dict = {}
    toolkit = cuda_engine.toolkit()
    toolkit.to_device = on_host
    toolkit.device_array = lambda shape, kind: on_host(np.zeros(shape, kind))
    toolkit.pinned_array = np.zeros
    toolkit.stream = lambda: 0
    cuda_engine.clear = lambda array, stream: array.fill(0)
    cuda_engine.free_memory = lambda: 2**30
    cuda_engine.multiprocessors = lambda: 1
    cuda_engine.shared_memory = lambda: (2**16, 2**16)
    original = []
    modules = kernels, limiter, wall_ledger, masses, moments, backend, sweeps, distributed_sweep
    for module in (*modules, estimates):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func") and not value.targetoptions.get("device"):
                original.append((module, name, value))
                setattr(module, name, Recorder(name, value, seen))
    generate = draw.draw_kernel

    def recorded(*arguments):
        name = "draw apart" if arguments[-1] else "draw"
        return Recorder(name, generate(*arguments), seen)

    device_problem.draw_kernel = recorded
    try:
        for grid in (rb.PhaseSpace(4, 2.0), rb.PhaseSpace(4, 2.0, [2, 1, 1], 3.0, "open")):
            launch_all(backend.CudaBackend(grid, model, sampling, precision), kernels)
        division, worker = Division.of(grid, 2), ThreadExchange.among(2)[0]
        slab.CudaSlab(division, model, sampling, precision, worker)  # notes all its launches
    finally:
        device_problem.draw_kernel = generate
        for module, name, value in original:
            setattr(module, name, value)
    return seen


def record_brackets(model):
    """Types of the launches of brackets, in unlimited momentum space and on nodes."""
    from relboltz.backends.cuda import bracket_measurer

    seen: dict = {}
    generate, names = (
        bracket_measurer.bracket_kernel,
        iter(("draw brackets", "draw brackets on nodes")),
    )
    bracket_measurer.bracket_kernel = lambda *given: Recorder(next(names), generate(*given), seen)
    bracket_measurer.toolkit().to_device = on_host
    try:
        for grid in (None, rb.PhaseSpace(4, 2.0)):
            measurer = bracket_measurer.BracketMeasurer(model)
            points = MomentumPoints.free(1.0) if grid is None else MomentumPoints.nodes(grid)
            state, elements = (
                ReferenceState.of(model, points, 0.4, np.zeros(len(model.species))),
                Elements(model),
            )
            tasks, _ = brackets.plan(elements, state)
            tasks = tuple(replace(task, samples=64) for task in tasks)
            powers = {rank: (-1.0, 0.5, 3.0) for rank in points.ranks}
            measurer.measure(
                elements, BracketRequest(tasks, TrialFunctions.of(powers), 2, 0, 1, grid)
            )
    finally:
        bracket_measurer.bracket_kernel = generate
    return seen


def launch_all(backend, kernels):
    """All launches of a backend."""
    buffers, grid, kinds = backend.buffers, backend.grid, len(backend.model.species)
    f = np.full((grid.sites, kinds, grid.size), 0.25)
    backend._squares[:] = 1.0
    state = begin(backend, f)
    kernels.hammer[1, 1](buffers.change, 8)
    backend.stepper.start(state, StepPlan("auto", 1e-3, 1e-9, grid), 1.0)
    backend.stepper.step(careful=True)
    if grid.sites == 1:
        backend.estimates(f[0], state.squares[0], range(2))()
    else:
        backend.stream(0, 0.1, state.squares)
        cuda_engine.shared_memory = lambda: (0, 0)  # nothing fits there
        backend.stream(1, 0.1, state.squares)
        backend.marginal(["x", "px"])
    backend.collide(0, 0.1, state.squares)
    theta = np.zeros((grid.sites, 4 + kinds))
    backend.fits(theta, state.squares, np.arange(grid.sites))
    backend.moments(state.squares, f[0])


def own_element(s, t, u, strength, a=1.0, b=1.0, c=1.0, d=1.0, e=1.0, f=1.0, g=1.0, h=1.0, i=1.0,
                j=1.0):  # fmt: skip
    """A user's matrix element, with NumPy and more parameters than fingers."""
    return strength * np.sqrt(s * s + t * u) / (s * a * b * c * d * e * f * g * h * i * j)


CASES = {
    "qcd, float32": (rb.qcd(0.3), Sampling(samples=1), "float32"),
    "gluons, float64": (rb.gluons(0.3), Sampling(samples=1), "float64"),
    "ekt": (rb.qcd(0.1, screening="ekt", masses="massless"), Sampling(samples=1), "float32"),
    "nearest": (rb.gluons(0.3), Sampling(samples=1, projection="nearest"), "float32"),
    "k2": (
        rb.gluons(0.3),
        Sampling(samples=1, projection="nearest", kinematics="k2", symmetrical=False),
        "float32",
    ),
    "user": (
        rb.Model(
            [rb.Species("a", 2, 1)], [rb.Process("a a -> a a", own_element, strength=3.0)],
            masses={"a": 0.5},
        ),
        Sampling(samples=1),
        "float32",
    ),
}  # fmt: skip


BRACKETS = ("qcd, float32", "user")
"""Cases for which brackets are compiled too."""


def compile_all(capabilities):
    """PTX of every recorded launch for every compute capability.

    What Numba makes of a kernel is the same for all of them since 7.5: only the last step differs.
    """
    from numba.cuda import compiler, dispatcher

    device = SimpleNamespace(compute_capability=min(capabilities))
    dispatcher.get_current_device = lambda: device
    results, done = {}, set()
    for case, settings in CASES.items():
        launches = record_launches(*settings)
        if case in BRACKETS:
            launches |= record_brackets(settings[0])
        for (name, kinds), function in launches.items():
            key = (case + name if name.startswith("draw") else name, kinds)
            if key in done:
                continue
            done.add(key)
            labels = {c: f"{name}, {case}, {c[0]}.{c[1]}" for c in capabilities}
            try:
                library, _ = compiler._compile_pyfunc_with_fixup(
                    function, kinds, device=False, fastmath=True, abi="numba",
                    cc=device.compute_capability,
                )  # fmt: skip
                for capability, label in labels.items():
                    results[label] = {"ptx": len(library.get_asm_str(cc=capability))}
            except Exception as error:
                results |= {label: {"error": str(error)} for label in labels.values()}
    return results


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    wanted = [tuple(int(n) for n in word.split(".")) for word in sys.argv[1:] if word[0] != "-"]
    print(json.dumps(compile_all(wanted), indent=1))
