"""relboltz bench: how fast events are drawn, landed and applied on this machine."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .backends.cpu import CpuBackend
from .collisions import Draw, Sampling
from .errors import InputError
from .grid import PhaseSpace
from .initial import evaluate, step
from .output import versions
from .qcd import gluons, qcd
from .stepping import initial_state

CASES = [
    ("gluons", 20, "uniform", 16),
    ("gluons", 30, "uniform", 16),
    ("gluons", 30, "importance", 16),
    ("gluons", 40, "uniform", 16),
    ("qcd", 20, "uniform", 8),
    ("qcd", 30, "uniform", 4),
    ("qcd", 30, "importance", 4),
]
"""model, nodes per axis, pairs, samples."""
SECONDS = 4.0
"""How long each case is repeated."""


def measure(backend: str, threads: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Events per second of all cases: one drawn sample counts once for each of two stages."""
    if backend not in ("auto", "cpu"):
        raise InputError(f"--backend {backend}: this version has 'cpu' only")
    runs = []
    for name, cells, pairs, samples in CASES:
        say(f"{name} {cells}^3, {pairs} pairs ...")
        runs.append(_case(name, cells, pairs, samples, threads))
    machine = {"processor": platform.processor() or platform.machine(), "system": platform.system()}
    return {"backend": "cpu", **versions(), **machine, "runs": runs}


def _case(name: str, cells: int, pairs: str, samples: int, threads: int) -> dict[str, Any]:
    model = qcd(0.3) if name == "qcd" else gluons(0.3)
    grid = PhaseSpace(cells, 2.0)
    start = {"g": step(0.5, 1.5), **({"quarks": step(0.2, 1.5)} if name == "qcd" else {})}
    state = initial_state(grid, model, evaluate(start, grid, model))
    backend = CpuBackend(grid, model, Sampling(pairs=pairs, samples=samples), threads)
    scale = 0.01 / state.unit
    draws, stages, totals = [], [], []
    events = sum(backend.samples_of(channel) for channel in backend.channels)
    began = time.perf_counter()
    repeat = 0
    while repeat < 3 or time.perf_counter() - began < SECONDS:
        t0 = time.perf_counter()
        table, occupancy = backend.tables(state.number, state.unit)
        backend.draw(Draw(repeat, state.mass_squared, state.screening2), occupancy)
        t1 = time.perf_counter()
        change, _ = backend.net(table, scale)
        t2 = time.perf_counter()
        table, _ = backend.tables(state.number + 2 * change, state.unit)
        backend.net(table, scale)
        t3 = time.perf_counter()
        if repeat > 0:  # the first one compiles
            draws.append(t1 - t0)
            stages.append(t2 - t1)
            totals.append(t3 - t0)
        repeat += 1
    seconds = float(np.median(totals))
    return {
        "model": name,
        "cells": cells,
        "pairs": pairs,
        "samples": samples,
        "threads": backend.threads,
        "processes": len(model.processes),
        "events_per_second": 2 * events / seconds,
        "seconds_per_step": seconds,
        "draw_ns": float(np.median(draws)) / events * 1e9,
        "stage_ns": float(np.median(stages)) / events * 1e9,
    }
