"""Measure all figures quoted for matter in space, through the public interface.

    python benchmarks/space.py [paper paper3d shares large agreement] [--backend B] [--json F]

``shares`` and ``large`` need a GPU with 40 GB of memory; ``large`` takes three minutes.
"""

import argparse
import json
import sys
import time
import warnings
from collections import deque
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz.backends.cuda.driver import trouble
from relboltz.config.settings import Settings
from relboltz.initial import evaluate, starting_states
from relboltz.run.solve import Run

FIGURES: dict = {}
BACKEND = "auto"


def tell(name: str, value: object) -> None:
    """Print a figure and keep it."""
    FIGURES[name] = value
    print(f"{name:72s} {value}", flush=True)


def spread(values) -> float:
    """Return (max - min) / mean."""
    return float((values.max() - values.min()) / values.mean())


def relaxes(label: str, momentum_cells, **options) -> None:
    """Run the paper's Fig. 7 and 8: gluons with a gradient, the mixture to 20 fm."""
    model = rb.qcd(0.3)
    grid = rb.PhaseSpace(momentum_cells, 2.0, [10, 10, 1], 3.0)
    start = {"g": rb.initial.gradient(0.1, 0.2)}
    options = dict(every=0.5, backend=BACKEND, progress=False, marginals=["x", "y"], **options)
    rb.solve(model, grid, start, end=0.01, **options)  # compiles
    began = time.perf_counter()
    ds = rb.solve(model, grid, start, end=20.0, **options)
    tell(f"{label}: seconds of solve()", round(time.perf_counter() - began, 2))
    tell(f"{label}: steps, last step [fm]", (int(ds.attrs["steps"]), round(float(ds.step[-1]), 3)))
    for name in ("g", "u"):
        f = ds.f_x.sel(species=name).values
        first = spread(f[0]) if f[0].max() > 0 else 0.0
        tell(
            f"{label}: spread of f_{name}(x), first and last",
            (f"{first:.3f}", f"{spread(f[-1]):.1e}"),
        )
        m2 = ds.mass_squared.sel(species=name).values
        tell(
            f"{label}: spread of m2_{name}, first and last",
            (f"{spread(m2[0]):.3f}", f"{spread(m2[-1]):.1e}"),
        )
    energy = ds.total_energy_total.values
    tell(f"{label}: change of total energy, relative", f"{energy[-1] / energy[0] - 1:.1e}")
    tell(f"{label}: change of charges [quanta]", int(np.abs(ds.charge_drift).max()))
    tell(f"{label}: refused at momentum faces, part of all",
         f"{float(ds.refused_number[-1].sum() / ds.total_number[-1].sum()):.1e}")  # fmt: skip


def paper() -> None:
    """Run 10 x 10 x 1 space cells, 10 x 10 x 1 momentum cells, nearest, as in the paper."""
    relaxes("Fig. 7 and 8, [10, 10, 1], nearest", [10, 10, 1], projection="nearest")


def paper3d() -> None:
    """Run the paper's case with 10^3 momentum cells, conserving, 4 samples."""
    relaxes("Fig. 7 and 8, 10^3, conserving", 10, samples=4)


def stepped(model, grid, start, steps: int, **options):
    """Return seconds per step after compilation, seconds of its sweeps alone, and the run."""
    length = options.pop("step", 0.01)
    settings = Settings.from_options(
        end=100 * length, step=length, every=100 * length, snapshots=[], backend=BACKEND, **options
    )
    f = evaluate(starting_states(start, model), grid, model)
    run = Run(model, grid, f, settings)
    backend, state, step_plan = run.backend, run.state, run.step_plan
    deque(backend.advance(state, step_plan, 4 * length), 0)  # compiles, tries, records launches
    began = time.perf_counter()
    deque(backend.advance(state, step_plan, (4 + steps) * length), 0)
    return (time.perf_counter() - began) / steps, swept(run, length), run


def swept(run, length: float) -> float:
    """Return the seconds of all sweeps of a step."""
    backend, squares = run.backend, run.state.squares
    axes = [part.axis for part in run.step_plan.parts if part.axis is not None]
    backend.stream(axes[0], 0.0, squares)
    began = time.perf_counter()
    for axis in axes:
        backend.stream(axis, 0.5 * length, squares)
    return time.perf_counter() - began


def drift(run) -> int:
    """Return the largest change of a charge since the start [quanta]."""
    return int(np.abs(run.observer.record(run.state)["charge_drift"]).max())


def shares() -> None:
    """Measure the time of a step and of its transport: 10 x 10 x 1 x 30^3, mixture.

    With quarks everywhere initially, and without quarks, which requires limiters.
    """
    model = rb.qcd(0.3)
    grid = rb.PhaseSpace(30, 2.0, [10, 10, 1], 3.0)
    warm = rb.initial.gaussian(0.3, [0.8, 0.8, 0.6])
    gluons = {"g": rb.initial.gradient(0.1, 0.2)}
    for samples in (16, 4):
        for words, start in (
            ("", {**gluons, "quarks": warm, "antiquarks": warm}), (", no quarks", gluons),
        ):  # fmt: skip
            seconds, sweeps, run = stepped(model, grid, start, 8, samples=samples)
            label = f"10 x 10 x 1 x 30^3 mixture, {samples} samples{words}"
            tell(f"{label}: ms a step", round(1e3 * seconds, 1))
            tell(f"{label}: transport, part of the step", round(sweeps / seconds, 3))
            tell(f"{label}: limited in the last step", round(run.state.watch.limited_max, 4))
            tell_memory(label, run)
            del run


def tell_memory(label: str, run) -> None:
    """Report memory in copies of the state."""
    if run.backend.name != "cuda":
        return
    state = 8 * run.grid.sites * run.grid.size * len(run.model.species)
    taken = run.backend.memory
    tell(f"{label}: memory [GiB], copies of the state",
         (round(taken / 2**30, 2), round(taken / state, 2)))  # fmt: skip


def large() -> None:
    """Measure states of 4 and 7.5 GB."""
    for label, model, cells, space, samples in (
        ("20^3 x 40^3 gluons, 4 samples", rb.gluons(0.3), 40, 20, 4),
        ("16^3 x 32^3 mixture, 2 samples", rb.qcd(0.3), 32, 16, 2),
        ("16^3 x 32^3 mixture, 4 samples", rb.qcd(0.3), 32, 16, 4),
    ):
        grid = rb.PhaseSpace(cells, 2.0, space, 3.0)
        shape = rb.initial.gaussian(0.4, [0.8, 0.8, 0.6])
        start = {name: shape for name in model.names}
        seconds, sweeps, run = stepped(model, grid, start, 3, samples=samples)
        tell(f"{label}: seconds a step, of these transport", (round(seconds, 3), round(sweeps, 3)))
        tell(f"{label}: change of charges [quanta]", drift(run))
        tell_memory(label, run)
        del run


def agreement() -> None:
    """Compare CPU and GPU with the same seed: 20 steps in space."""
    model = rb.qcd(0.3)
    grid = rb.PhaseSpace(9, 2.0, [6, 4, 3], 3.0, ["periodic", "reflecting", "open"])

    def wave(x, y, z, px, py, pz):
        return 0.4 * np.exp(-(px**2 + py**2 + pz**2)) * (1 + 0.5 * np.cos(np.pi * x / 3))

    options = dict(end=0.4, step=0.02, every=0.2, snapshots=[0.4], samples=4, progress=False)
    start = {"g": wave, "quarks": wave, "antiquarks": wave}
    cpu = rb.solve(model, grid, start, backend="cpu", **options)
    tell("space: limits on the CPU", float(cpu.limited_weight.max()))
    for precision in ("float64", "float32"):
        gpu, again = (
            rb.solve(model, grid, start, backend="cuda", precision=precision, **options)
            for _ in range(2)
        )
        apart = float(np.abs(cpu.f - gpu.f).max() / cpu.f.max())
        tell(f"space, {precision}, 20 steps: max |df| / max f", f"{apart:.1e}")
        tell(f"space, {precision}: same bits twice", bool((gpu.f == again.f).all()))
        tell(f"space, {precision}: charges inside and in the ledger [quanta]",
             int(np.abs(gpu.charge_drift).max()))  # fmt: skip


PARTS = {part.__name__: part for part in (paper, paper3d, shares, large, agreement)}


def main() -> None:
    """Run the requested parts."""
    global BACKEND
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    BACKEND = arguments.backend
    warnings.simplefilter("ignore")
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {min(unknown)}; known: {', '.join(PARTS)}")
    wanted = arguments.parts or list(PARTS)
    if {"shares", "large"} & set(wanted) and (BACKEND == "cpu" or trouble() is not None):
        parser.error(f"shares and large need a GPU: {trouble() or 'leave out --backend cpu'}")
    for name in wanted:
        began = time.perf_counter()
        PARTS[name]()
        print(f"-- {name}: {time.perf_counter() - began:.0f} s", flush=True)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(FIGURES, indent=1, default=str))


if __name__ == "__main__":
    sys.exit(main())
