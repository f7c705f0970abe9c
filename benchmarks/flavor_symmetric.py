"""Compare qcd(flavor_symmetric=True) with all seven species: time, numbers, final state, memory.

    python benchmarks/flavor_symmetric.py [--backend cpu|cuda] [--cells 30] [--end 50] [--seeds 3]

The paper's mixture: gluons with f = 0.5 below 1.5 GeV, no quarks, box of 2 GeV, 16 samples. Gluon
numbers are compared at all records, as means over seeds and in units of their standard error.
"""

import argparse
import time
import warnings

import numpy as np

import relboltz as rb
from relboltz.backends import choose
from relboltz.config.settings import RunSettings, Sampling
from relboltz.stepping.step import begin


def solved(model: rb.Model, cells: int, end: float, seed: int, backend: str):
    """Return a run and the seconds that it took."""
    start = {"g": rb.initial.step(0.5, 1.5, sampling="node")}
    began = time.perf_counter()
    ds = rb.solve(
        model, rb.PhaseSpace(cells, 2.0), start, end=end, every=0.5, seed=seed, backend=backend,
        progress=False,
    )  # fmt: skip
    return ds, time.perf_counter() - began


def memory(model: rb.Model, backend: str) -> int:
    """Return the bytes of a state of 4 x 4 x 1 cells with 12^3 nodes."""
    grid = rb.PhaseSpace(12, 2.0, [4, 4, 1])
    there = choose(grid, model, Sampling(samples=1), RunSettings(backend=backend))
    begin(there, np.full((grid.sites, len(model.species), grid.size), 0.1))
    return there.memory


def main() -> None:
    """Run both models, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--cells", type=int, default=30)
    parser.add_argument("--end", type=float, default=50.0)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    models = {"all": rb.qcd(0.3), "alike": rb.qcd(0.3, flavor_symmetric=True)}
    found = {}
    for name, model in models.items():
        solved(model, 8, 0.5, 1, given.backend)  # compiles
        runs = [solved(model, given.cells, given.end, s + 1, given.backend)
                for s in range(given.seeds)]  # fmt: skip
        seconds = [took for _, took in runs]
        steps = [int(ds.attrs["steps"]) for ds, _ in runs]
        room = memory(model, given.backend) / 2**20
        took = f"{np.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
        print(f"{name}: {took}, {steps} steps, {room:.1f} MiB in space", flush=True)
        found[name] = runs
    gluons = {n: np.array([ds.number.sel(species="g").values for ds, _ in runs])
              for n, runs in found.items()}  # fmt: skip
    means = {n: v.mean(axis=0) for n, v in gluons.items()}
    apart = means["alike"] / means["all"] - 1
    squares = sum(v.var(axis=0, ddof=1) / len(v) for v in gluons.values())
    error = np.sqrt(squares) / means["all"]
    rms, noise = (np.sqrt((v**2).mean()) for v in (apart, error))
    print(f"gluons, alike over all - 1: rms {rms:.2e}, largest {np.abs(apart).max():.2e}; "
          f"standard error {noise:.2e}")  # fmt: skip
    for name in ("temperature", "equilibrium_temperature", "energy_total", "entropy"):
        values = [float(runs[0][0][name].values.ravel()[-1]) for runs in found.values()]
        print(f"{name}, at the end: {values[0]:.6g} {values[1]:.6g}")
    ratio = np.median([s for _, s in found["all"]]) / np.median([s for _, s in found["alike"]])
    print(f"alike is {ratio:.1f} times faster")


if __name__ == "__main__":
    main()
