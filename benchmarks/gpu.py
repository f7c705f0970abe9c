"""Measure all performance figures quoted for GPUs, through the public interface.

    python benchmarks/gpu.py [rates long variance terms agreement large compile] [--json F]

Without names all parts run, about five minutes on an H200. Every part prints one line per figure.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import relboltz as rb
from relboltz import thermodynamics as equilibrium
from relboltz.backends.cuda.driver import trouble

BOX = 2.0
FIGURES: dict = {}


def tell(name: str, value: object) -> None:
    """Print a figure and keep it."""
    FIGURES[name] = value
    print(f"{name:68s} {value}", flush=True)


def gaussian_start(model: rb.Model) -> dict:
    """Return Gaussian initial conditions with all species, out of equilibrium."""
    start = {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.6])}
    if len(model.species) > 1:
        start["quarks"] = start["antiquarks"] = rb.initial.gaussian(0.3, [0.8, 0.8, 0.6])
    return start


def step_start() -> dict:
    """Return the paper's initial conditions: gluons below 1.5 GeV, evaluated at the nodes."""
    return {"g": rb.initial.step(0.5, 1.5, sampling="node")}


def timed_solve(*arguments, **options):
    """Return the result of solve() and its seconds from call to return."""
    began = time.perf_counter()
    ds = rb.solve(*arguments, backend="cuda", progress=False, **options)
    return ds, time.perf_counter() - began


def rates() -> None:
    """Measure events per second: 200 steps of fixed length, from start to end of solve()'s loop.

    With Gaussian initial conditions every landed event moves particles; with the paper's step most
    cells are initially empty, so that fewer additions are made.
    """
    for name, model, cells, samples in (
        ("mixture", rb.qcd(0.3), 30, 16),
        ("gluons", rb.gluons(0.3), 40, 256),
        ("gluons", rb.gluons(0.3), 40, 16),
    ):
        grid = rb.PhaseSpace(cells, BOX)
        for label, start in (("Gaussian", gaussian_start(model)), ("step", step_start())):
            for pairs in ("uniform", "importance"):
                for precision in ("float32", "float64"):
                    options = dict(step=1e-4, every=1.0, snapshots=[], samples=samples,
                                   pair_sampling=pairs, precision=precision)  # fmt: skip
                    timed_solve(model, grid, start, end=1e-3, **options)
                    ds, _ = timed_solve(model, grid, start, end=2e-2, **options)
                    events = 2 * samples * grid.size * len(model.processes) * ds.attrs["steps"]
                    rate = events / ds.attrs["wall_seconds"] / 1e9
                    case = f"{name} {cells}^3, {label}, {pairs}, {precision}, {samples} samples"
                    tell(f"{case} [G events/s]", round(rate, 2))


def largest_deviation(ds, model, grid) -> float:
    """Return the largest relative deviation of a cell from the final thermal state.

    The thermal state has the run's own final T, mu and masses.
    """
    thermal = equilibrium.thermal(
        grid, model, float(ds.temperature[-1]), ds.chemical_potential.values[-1],
        ds.velocity.values[-1], ds.mass_squared.values[-1],
    )  # fmt: skip
    return float(np.abs(ds.f.values[-1].reshape(thermal.shape) / thermal - 1).max())


def long() -> None:
    """Measure the paper's runs: gluons and mixture to 50 fm, quarks to 20 fm.

    The second of two calls is timed.
    """
    quark = rb.quarks(0.3)
    cases = [
        ("gluons 30^3, 50 fm", rb.gluons(0.3), step_start(), 50.0),
        ("mixture 30^3, 50 fm", rb.qcd(0.3), step_start(), 50.0),
        ("mixture 30^3, 100 fm", rb.qcd(0.3), step_start(), 100.0),
        ("quarks 30^3, 20 fm", quark, {"u": rb.initial.step(0.5, 1.5, sampling="node")}, 20.0),
    ]
    grid = rb.PhaseSpace(30, BOX)
    for label, model, start, end in cases:
        for precision in ("float32", "float64"):
            if precision == "float64" and end == 100.0:
                continue
            options = dict(end=end, every=0.5, precision=precision)
            timed_solve(model, grid, start, **{**options, "end": 0.5})
            ds, seconds = timed_solve(model, grid, start, **options)
            energy, entropy = ds.energy_total.values, ds.entropy.values
            where = f"{label}, {precision}: "
            tell(where + "seconds of solve()", round(seconds, 3))
            tell(where + "seconds of the time loop", round(ds.attrs["wall_seconds"], 3))
            tell(where + "steps", int(ds.attrs["steps"]))
            tell(
                where + "change of charges, momentum [quanta]",
                (int(np.abs(ds.charge_drift).max()), int(np.abs(ds.momentum_drift).max())),
            )
            tell(where + "total energy, relative", f"{np.abs(energy / energy[0] - 1).max():.2e}")
            tell(where + "largest fall of entropy", f"{max(0, -np.diff(entropy).min()):.1e}")
            tell(
                where + "cell farthest from its thermal state",
                f"{largest_deviation(ds, model, grid):.2e}",
            )
            shares = ds.number.values[-1] / ds.equilibrium_number.values - 1
            tell(
                where + "T, predicted",
                (round(float(ds.temperature[-1]), 6), round(float(ds.equilibrium_temperature), 6)),
            )
            tell(
                where + "largest deviation of a number from predicted",
                f"{np.abs(shares).max():.2e}",
            )


def variance() -> None:
    """Measure Sum Var(C) / Sum f^2 x seconds of C[f], mixture 30^3, after 0.3 fm."""
    model, grid = rb.qcd(0.3), rb.PhaseSpace(30, BOX)
    f = timed_solve(model, grid, step_start(), end=0.3, every=0.3)[0].f.values[-1]
    cost = {}
    for pairs in ("uniform", "importance"):
        options = dict(backend="cuda", pair_sampling=pairs, samples=16)
        rb.collision_term(model, grid, f, batches=2, **options)
        began = time.perf_counter()
        term = rb.collision_term(model, grid, f, batches=24, **options)
        seconds = (time.perf_counter() - began) / 24
        spread = float((term.error**2).sum()) * 24 / float((f**2).sum())
        cost[pairs] = spread * seconds
        tell(
            f"C[f], {pairs}: Sum Var(C)/Sum f^2 [fm^-2], seconds per estimate",
            (f"{spread:.3e}", f"{seconds:.4f}"),
        )
    tell(
        "C[f]: variance x time, uniform over importance",
        round(cost["uniform"] / cost["importance"], 2),
    )


def terms() -> None:
    """Time C[f] with error bars, 30^3, 16 samples: median of ten calls, divided by the batches."""
    shape = rb.initial.gaussian(0.3, [0.8, 0.8, 0.6])
    for name, model in (("gluons", rb.gluons(0.3)), ("mixture", rb.qcd(0.3))):
        grid, start = rb.PhaseSpace(30, BOX), {species: shape for species in model.names}
        for batches in (8, 32):
            calls = []
            for _ in range(12):
                began = time.perf_counter()
                rb.collision_term(model, grid, start, batches=batches, samples=16, backend="cuda")
                calls.append(1e3 * (time.perf_counter() - began) / batches)
            label = f"C[f], {name}, {batches} batches [ms an estimate]"
            tell(
                label + ": median, third call", (round(np.median(calls[2:]), 2), round(calls[2], 2))
            )


def agreement() -> None:
    """Compare CPU and GPU with the same seed, and two GPU runs."""
    cases = [
        ("gluons 20^3, step", rb.gluons(0.3), step_start(), 20),
        ("mixture 16^3, Gaussian", rb.qcd(0.3), gaussian_start(rb.qcd(0.3)), 16),
        ("mixture 16^3, empty quarks", rb.qcd(0.3), step_start(), 16),
    ]
    for label, model, start, cells in cases:
        grid = rb.PhaseSpace(cells, BOX)
        for steps in (1, 100):
            options = dict(end=2e-3 * steps, step=2e-3, every=2e-3 * steps, progress=False)
            cpu = rb.solve(model, grid, start, backend="cpu", **options)
            for precision in ("float64", "float32"):
                gpu, again = (
                    rb.solve(model, grid, start, backend="cuda", precision=precision, **options)
                    for _ in range(2)
                )
                apart = np.abs(gpu.f.values[-1] - cpu.f.values[-1]).max() / cpu.f.values.max()
                where = f"{label}, {precision}, {steps} steps: "
                tell(where + "max |df| / max f", f"{apart:.2e}")
                tell(where + "same bits twice", np.array_equal(gpu.f.values, again.f.values))
                p = np.sqrt(grid.momentum_squared).reshape(grid.momentum_cells)
                ratios = [
                    (gpu.f.values[-1] * p**n).sum() / (cpu.f.values[-1] * p**n).sum()
                    for n in (0, 1, 2, 4)
                ]
                worst = np.abs(np.array(ratios) - 1).max()
                tell(where + "moments of |p|, relative", f"{worst:.1e}")


def large() -> None:
    """Measure time per step and memory of grids whose totals exceed 64 bits."""
    from relboltz.backends import choose
    from relboltz.config.settings import Sampling, Settings

    for name, model, cells in (
        ("gluons", rb.gluons(0.3), 96), ("mixture", rb.qcd(0.3), 64),
    ):  # fmt: skip
        grid = rb.PhaseSpace(cells, 4.0)
        options = dict(step=2e-3, every=0.1)
        timed_solve(model, grid, gaussian_start(model), end=4e-3, **options)
        ds, seconds = timed_solve(model, grid, gaussian_start(model), end=0.1, **options)
        where = f"{name} {cells}^3: "
        tell(where + "steps, seconds of solve()", (int(ds.attrs["steps"]), round(seconds, 2)))
        tell(where + "ms per step", round(1e3 * ds.attrs["wall_seconds"] / ds.attrs["steps"], 2))
        tell(
            where + "change of charges, momentum [quanta]",
            (int(np.abs(ds.charge_drift).max()), int(np.abs(ds.momentum_drift).max())),
        )
        energy = ds.energy_total.values
        tell(where + "total energy, relative", f"{np.abs(energy / energy[0] - 1).max():.2e}")
        backend = choose(
            grid, model, Sampling(), Settings.from_options(end=1.0, backend="cuda").run
        )
        tell(where + "memory on the GPU [GiB]", round(backend.memory / 2**30, 2))
        del backend


def compile_() -> None:
    """Time first and second start of a QCD run in a fresh process, first without a cache."""
    code = (
        "import time; t = time.perf_counter(); import relboltz as rb\n"
        "rb.solve(rb.qcd(0.3), rb.PhaseSpace(20, 2.0), {'g': rb.initial.step(0.5, 1.5)}, "
        "end=2e-3, every=1e-3, backend='cuda', progress=False)\n"
        "print(time.perf_counter() - t)"
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ, "XDG_CACHE_HOME": folder, "CUDA_CACHE_DISABLE": "1",
            "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": "",
        }  # fmt: skip
        for label in ("cold", "cached", "cached, again"):
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", code], env=environment, text=True,
                capture_output=True, check=True,
            )  # fmt: skip
            tell(
                f"QCD run of two steps in a new process, {label} [s]",
                round(float(done.stdout.split()[-1]), 2),
            )


PARTS = {
    "rates": rates, "long": long, "variance": variance, "terms": terms,
    "agreement": agreement, "large": large, "compile": compile_,
}  # fmt: skip


def main() -> None:
    """Run the parts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", rb.AccuracyWarning)
    if trouble() is not None:
        parser.error(str(trouble()))
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part {min(unknown)}; known: {', '.join(PARTS)}")
    for part in arguments.parts or PARTS:
        began = time.perf_counter()
        PARTS[part]()
        print(f"-- {part}: {time.perf_counter() - began:.0f} s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(FIGURES, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
