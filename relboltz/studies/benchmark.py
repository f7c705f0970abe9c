"""relboltz bench: speed of sampling, landing and applying events on this machine.

All species are present and out of equilibrium (Gaussians), so that no event is idle.
"""

import platform
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from ..backends import choose, resolve
from ..config.settings import Pairs, Sampling, Settings
from ..events.collisions import SETS, DrawInput, channels
from ..grid.phase_space import PhaseSpace
from ..initial import evaluate, gaussian
from ..io.output import versions
from ..model.qcd import gluons, qcd
from ..stepping.state import State
from ..stepping.step import StepPlan, begin

SIZES = (20, 30, 40)
PAIRS: tuple[Pairs, ...] = ("uniform", "importance")
SAMPLES = {"cpu": {"gluons": 16, "qcd": 2}, "cuda": {"gluons": 128, "qcd": 16}}
"""Samples per node and process: enough to fill the machine, few enough to finish in time."""
SECONDS = {"cpu": 3.0, "cuda": 0.5}
"""Seconds for which each case is repeated."""
VARIANCE_BATCHES = {"cpu": 4, "cuda": 16}

Case = tuple[str, int, Pairs]


def measure(backend: str, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Return events per second and time per step of all cases, and variance times time of C[f].

    Each sample counts once in each of the two stages, including null samples.
    """
    name, precision = resolve(backend)
    machine = {"processor": platform.processor() or platform.machine(), "system": platform.system()}
    if name == "cuda":
        from ..backends.cuda.driver import device

        machine["gpu"] = device()["name"]
    runs = []
    for model, cells, pairs in product(("gluons", "qcd"), SIZES, PAIRS):
        if pairs == "uniform" or cells == 30:
            say(f"{model} {cells}^3, {pairs} pairs ...")
            runs.append(_case(name, (model, cells, pairs), threads))
    say("variance of C[f], mixture ...")
    variance = {pairs: _variance(name, pairs, threads) for pairs in PAIRS}
    ratio = variance["uniform"]["cost"] / variance["importance"]["cost"]
    return {
        "backend": name, "precision": precision, **versions(), **machine, "runs": runs,
        "variance": variance, "importance_gain": ratio,
    }  # fmt: skip


def _setup(backend: str, case: Case, threads: int) -> tuple[Any, np.ndarray, State]:
    """Return the backend, f and state of a case."""
    name, cells, pairs = case
    model = qcd(0.3) if name == "qcd" else gluons(0.3)
    grid = PhaseSpace(cells, 2.0)
    start = {"g": gaussian(0.5, [0.8, 0.8, 0.6])}
    if name == "qcd":
        start["quarks"] = start["antiquarks"] = gaussian(0.3, [0.8, 0.8, 0.6])
    f = evaluate(start, grid, model)
    run = Settings.from_options(end=1.0, backend=backend, threads=threads).run
    worker = choose(grid, model, Sampling(pair_sampling=pairs, samples=SAMPLES[backend][name]), run)
    return worker, f, begin(worker, f[None])


def _case(backend: str, case: Case, threads: int) -> dict[str, Any]:
    """Return the measurements of a case."""
    name, cells, pairs = case
    worker, _, state = _setup(backend, case, threads)
    parts = _on_gpu(worker, state) if backend == "cuda" else _on_cpu(worker, state)
    sampling, size = worker.sampling, worker.grid.size
    drawn = channels(worker.model, sampling.symmetrical)
    events = SETS * sum(sampling.samples_of(channel, size) for channel in drawn)
    seconds = parts.pop("step")
    split = {part: 1e3 * parts.pop(part) for part in ("draw", "land", "deposit", "update")}
    rate = 2 * events / seconds
    if backend == "cuda":
        bound = parts["additions_per_second"] / parts["additions_per_event"]
        parts["part_of_bound"] = rate / bound
    return {
        "model": name, "cells": cells, "pairs": pairs, "samples": sampling.samples,
        "processes": len(worker.model.processes), "events_per_second": rate,
        "ms_per_step": 1e3 * seconds, "ms": split, **parts,
    }  # fmt: skip


def _median(work: Callable[[], Any], seconds: float) -> float:
    """Return the median time of repeated work; the first repetition compiles and is not counted."""
    work()
    times: list[float] = []
    while len(times) < 3 or sum(times) < seconds:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _on_cpu(worker: Any, state: State) -> dict[str, float]:
    """Time a step of fixed length and its parts; landing is timed on one chunk."""
    collider, number, scale = worker.colliders[0], worker.get()[0].ravel(), 0.001 / state.unit
    draw = DrawInput(0, state.mass_squared[0], state.screening2[0])
    table, occupancy = collider.tables(number, state.unit)
    share = SECONDS["cpu"] / 4
    drawing = _median(lambda: collider.draw(draw, table, occupancy), share)
    landing = drawing * collider.landing_share(draw, occupancy)
    worker.save()

    def step() -> None:
        worker.collide(0, 0.002, state.squares)
        worker.restore()

    return {
        "threads": worker.count,
        "step": _median(step, share),
        "draw": drawing - landing,
        "land": landing,
        "deposit": 2 * _median(lambda: collider.net((table, table), scale), share),
        "update": 3 * _median(lambda: collider.tables(number, state.unit), share),
    }


def _on_gpu(worker: Any, state: State) -> dict[str, float]:
    """Time a step and its parts, each as a recorded graph; parts are found by leaving one out."""
    from ..backends.cuda import driver, kernels
    from ..backends.cuda import layout as k

    buffers = worker.buffers
    context = worker.stepper.start(state, StepPlan(1e-6, 1e-3, 0.0, worker.grid), 1e6)

    def timed(work: Callable[[], Any], often: int = 8) -> float:
        work()
        graph = driver.recorded(buffers.stream, work)

        def repeat() -> None:
            for _ in range(often):
                graph()
            buffers.stream.synchronize()

        return _median(repeat, SECONDS["cuda"] / 5) / often

    step = timed(lambda: worker.stepper.step(careful=False))
    control = context.control.copy_to_host()
    assert control[k.STATUS] == k.GO, f"the timed steps stopped with status {control[k.STATUS]}"
    landed = timed(lambda: buffers.draw_all(False))
    used = timed(lambda: buffers.draw_all(True))
    drawn = timed(lambda: [buffers.draw(*slab, buffers.sums_2, False, False)
                           for slab in buffers.slabs()])  # fmt: skip
    buffers.draw_all(False)
    weights = buffers.event_weights.copy_to_host()
    live = float((weights > 0).mean()) * buffers.slab * k.SPAN / max(1, buffers.samples_drawn)
    deposit = used - landed + timed(lambda: buffers.apply(k.LAST_STAGE))
    blocks, often = 2048, 256
    hammer = timed(lambda: kernels.hammer[blocks, k.THREADS, buffers.stream](buffers.change, often))
    return {
        "step": step,
        "draw": drawn,
        "land": landed - drawn,
        "deposit": deposit,
        "update": step - landed - deposit,
        "additions_per_event": live * (5 + 1 / k.EACH),
        "additions_per_second": blocks * k.THREADS * often / hammer,
        "memory_gib": worker.memory / 2**30,
    }


def _variance(backend: str, pairs: Pairs, threads: int) -> dict[str, float]:
    """Return Sum Var(C) / Sum f^2 [fm^-2] of one estimate of C[f], and its seconds."""
    cells = 30 if backend == "cuda" else 20
    worker, f, state = _setup(backend, ("qcd", cells, pairs), threads)
    batches = VARIANCE_BATCHES[backend]
    worker.estimates(f, state.squares[0], range(1))()
    began = time.perf_counter()
    found = worker.estimates(f, state.squares[0], range(1, 1 + batches))()
    seconds = (time.perf_counter() - began) / batches
    spread = float(batches * (found.error**2).sum() / (f**2).sum())
    return {"variance": spread, "seconds": seconds, "cost": spread * seconds}
