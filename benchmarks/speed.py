"""Seconds of a run, to be compared between two versions of the code.

    PYTHONPATH=/path/to/one python benchmarks/speed.py CASE    # and again with the other, by turns

The first run of a process compiles and does not count.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import relboltz as rb

STEP = {"g": rb.initial.step(0.5, 1.5)}


def hot(x, y, z, px, py, pz):
    """A hot spot."""
    p = np.sqrt(px**2 + py**2 + pz**2)
    return 0.1 * np.exp(-p / 0.4) + 0.8 * np.exp(-(x**2) - y**2) * np.exp(-p / 0.5)


SPOT = rb.initial.from_function(hot, sampling="node")
CASES = {
    "gluons": lambda: (rb.gluons(0.3), rb.PhaseSpace(30, 2.5), STEP, dict(end=50.0)),
    "mixture": lambda: (rb.qcd(0.3), rb.PhaseSpace(30, 2.5), STEP, dict(end=50.0)),
    "space": lambda: (
        rb.qcd(0.3), rb.PhaseSpace(30, 2.5, [10, 10, 1], 3.0),
        {"g": SPOT, "quarks": SPOT, "antiquarks": SPOT}, dict(end=0.2, step=0.02),
    ),
    "small gluons": lambda: (rb.gluons(0.3), rb.PhaseSpace(24, 2.5), STEP, dict(end=2.0)),
    "small mixture": lambda: (
        rb.qcd(0.3), rb.PhaseSpace(16, 2.5), STEP, dict(end=0.1, every=0.05, samples=8),
    ),
    "small space": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(12, 2.5, [8, 8, 1], 3.0, "open"), {"g": SPOT},
        dict(end=0.2, step=0.02, samples=4),
    ),
}  # fmt: skip


def main() -> None:
    """Time a case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--often", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    model, grid, start, options = CASES[given.case]()
    for often in range(given.often + 1):
        began = time.perf_counter()
        ds = rb.solve(
            model, grid, start, backend=given.backend, progress=False, **{"every": 0.1} | options
        )
        if often:
            seconds, loop = time.perf_counter() - began, ds.attrs["wall_seconds"]
            print(f"{given.case}: solve() {seconds:.3f} s, steps and records {loop:.3f} s, "
                  f"{ds.attrs['steps']} steps", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
