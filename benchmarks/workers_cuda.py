"""Compare workers with a GPU each, or sharing one, with a single process: bits and time per step.

    mpirun -n 2 python benchmarks/workers_cuda.py [NAME ...] [--steps 20] [--samples 1]

The first worker first runs every system alone while the others wait.
"""

import argparse
import gc
import time
import warnings
from typing import Any

import numpy as np
from mpi4py import MPI
from numba import cuda

import relboltz as rb
from relboltz.backends.cuda.backend import CudaBackend
from relboltz.backends.cuda.slab import CudaSlab
from relboltz.backends.team.division import Division
from relboltz.backends.team.exchange import ExchangeBase
from relboltz.config.settings import Sampling
from relboltz.initial.functions import FromFunction
from relboltz.stepping.quanta import quantised
from relboltz.stepping.state import State
from relboltz.stepping.step import FIRST_STEP, StepPlan
from relboltz.transport.ledger import LostQuanta

WORLD = MPI.COMM_WORLD
WARM = 4
"""Steps before timing starts."""


class OverMpi(ExchangeBase):
    """Exchange of words and arrays by MPI."""

    def __init__(self):
        super().__init__(WORLD.rank, WORLD.size)

    def _words(self, word: int) -> list[int]:
        return WORLD.allgather(word)

    def _bodies(self, parts, rooms) -> None:
        copies = [np.ascontiguousarray(part) for part in parts]
        come = [room if room.flags.c_contiguous else np.empty_like(room) for room in rooms]
        waits = [WORLD.Irecv(come[k], k) for k in self.others if come[k].size]
        waits += [WORLD.Isend(copies[k], k) for k in self.others if copies[k].size]
        MPI.Request.Waitall(waits)
        for k in self.others:
            if come[k] is not rooms[k]:
                rooms[k][...] = come[k]


def wave(x, y, z, px, py, pz):
    """Return f of a moving density wave."""
    f = np.exp(-(px**2) - py**2 - pz**2) * (1 + 0.4 * np.cos(x) + 0.2 * np.sin(2 * y))
    return 0.3 * f * (1 + 0.2 * px + 0.3 * py)


def in_space(walls, cells=(8, 4, 1), momenta=16) -> tuple[Any, ...]:
    """Return a mixture in 8 x 4 cells."""
    model = rb.qcd(0.3)
    grid = rb.PhaseSpace(momenta, 2.0, cells, 3.0, walls)
    return model, grid, {name: FromFunction(wave) for name in model.names}


def without_space() -> tuple[Any, ...]:
    """Return a homogeneous mixture."""
    start = {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5]), "u": rb.initial.step(0.5, 1.5)}
    return rb.qcd(0.3), rb.PhaseSpace(20, 2.0), start


SYSTEMS = {
    "open": lambda: in_space("open"),
    "periodic": lambda: in_space("periodic"),
    "homogeneous": without_space,
    "large": lambda: in_space("periodic", (10, 10, 1), 30),
}
STEPS = {"given": (0.01, 0.01), "auto": ("auto", 0.01)}
"""Step length, and the longest time covered per step [fm]."""


def begun(backend, number, bits, sites) -> State:
    """Return a state on a backend, or the part of it that a worker owns."""
    grid, model = backend.grid, backend.model
    backend.put(number[sites], bits)
    bare = np.append(model.constant_mass_squared, np.zeros(len(model.screenings)))
    squares = backend.masses(np.tile(bare, (grid.sites, 1)))
    return State(bits, squares, len(model.species), FIRST_STEP, LostQuanta(grid, model))


def gone(backend, state, step_plan, length, steps) -> tuple[dict[str, Any], float]:
    """Return everything that must agree bit for bit, and the seconds per step."""
    flows, before = [], 0
    for i, count in enumerate((1, WARM, steps)):
        before, began = state.watch.steps, time.perf_counter()
        legs = backend.advance(state, step_plan, state.time + count * length)
        flows += [(i, leg.flows, leg.null_weight) for leg in legs if leg.flows is not None]
        seconds = (time.perf_counter() - began) / max(1, state.watch.steps - before)
    found = {f"state: {name}": np.asarray(value) for name, value in state.packed().items()}
    for i, flow, null in flows:
        found |= {f"flows {i}: null": np.array(null)}
        for name in ("forward", "backward", "signed"):
            found[f"flows {i}: {name}"] = getattr(flow, name)
    return found, seconds


def compare(name: str, step: str, precision: str, steps: int, samples: int) -> None:
    """Run a system alone and with all workers, and print the differences."""
    model, grid, start = SYSTEMS[name]()
    f = rb.initial.evaluate(start, grid, model).reshape(grid.sites, len(model.species), -1)
    number, bits = quantised(f, model)
    sampling, (given, length) = Sampling(samples=samples), STEPS[step]
    step_plan = StepPlan(given, 1e-3, 1e-9, grid)
    label = f"{name}, {step} steps, {precision}"
    if WORLD.rank == 0:
        one = CudaBackend(grid, model, sampling, precision)
        state = begun(one, number, bits, slice(None))
        alone, seconds = gone(one, state, step_plan, length, steps)
        alone["numbers"] = one.get()
        told = f"{label:40s} alone {1e3 * seconds:8.3f} ms a step ({state.watch.steps} steps)"
        print(told, flush=True)
        del one
        gc.collect()
    WORLD.barrier()
    exchange, part = OverMpi(), 1.0 / -(-WORLD.size // len(cuda.gpus))
    if grid.sites > 1:
        division = Division.of(grid, WORLD.size)
        sites = division.sites(exchange.rank)
        backend = CudaSlab(division, model, sampling, precision, exchange, part=part)
    else:
        sites = slice(None)
        backend = CudaBackend(grid, model, sampling, precision, exchange=exchange, part=part)
    state = begun(backend, number, bits, sites)
    exchange.waited = 0.0
    found, seconds = gone(backend, state, step_plan, length, steps)
    parts = WORLD.gather(backend.get())
    waited = exchange.waited / max(1, state.watch.steps)
    if WORLD.rank == 0:
        found["numbers"] = np.concatenate(parts) if grid.sites > 1 else parts[0]
        differ = [key for key in alone if alone[key].tobytes() != found[key].tobytes()]
        if grid.sites == 1:
            differ += [
                f"worker {k}" for k, p in enumerate(parts) if not np.array_equal(p, parts[0])
            ]
        told = f"{label:40s} {WORLD.size} workers {1e3 * seconds:8.3f} ms a step, "
        told += f"{1e3 * waited:.3f} ms of it exchange, {backend.memory / 2**20:.0f} MiB: "
        print(told + (f"DIFFER: {differ}" if differ else "same bits"), flush=True)
    del backend
    gc.collect()


def main() -> None:
    """Run all systems, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(SYSTEMS)[:3])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--samples", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    cuda.select_device(WORLD.rank % len(cuda.gpus))
    for name in given.names:
        for precision in ("float64", "float32"):
            for step in STEPS:
                compare(name, step, precision, given.steps, given.samples)


if __name__ == "__main__":
    main()
