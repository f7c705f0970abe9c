"""Compare the speed of this version with another version.

    python benchmarks/speed.py --against HEAD~3                  # small cases, on the CPU
    python benchmarks/speed.py gluons mixture space --against HEAD~3 --backend cuda

Both versions are started once, compile, and then run alternately, ten times each: the medians of
``solve()`` are compared, so that drifts in the speed of the machine affect both equally.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from versions import HERE, checked_out, environment

import relboltz as rb

STEP = {"g": rb.initial.step(0.5, 1.5)}


def hot(x, y, z, px, py, pz):
    """Return a hot spot."""
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
    "small expansion": lambda: (
        rb.gluons(0.3), rb.PhaseSpace([16, 16, 33], [3.0, 3.0, 4.0], expansion="bjorken"),
        {"g": rb.initial.romatschke_strickland(0.5, xi=4.0)}, dict(start=0.3, end=2.0, samples=8),
    ),
    "small space": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(12, 2.5, [8, 8, 1], 3.0, "open"), {"g": SPOT},
        dict(end=0.2, step=0.02, samples=4),
    ),
}  # fmt: skip


def seconds(case: str, backend: str) -> Iterator[float]:
    """Time solve() repeatedly; the first run compiles and is not counted."""
    model, grid, start, options = CASES[case]()
    options = {"every": 0.1, "backend": backend, "progress": False} | options
    rb.solve(model, grid, start, **options)
    while True:
        began = time.perf_counter()
        rb.solve(model, grid, start, **options)
        yield time.perf_counter() - began


class Version:
    """A process with the relboltz of a tree, which times a run on request."""

    def __init__(self, tree: Path, case: str, backend: str):
        command = [sys.executable, __file__, case, "--backend", backend, "--serve"]
        self._process = subprocess.Popen(
            command, env=environment(tree), cwd=tree, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdin is not None and self._process.stdout is not None
        self._ask, self._told = self._process.stdin, self._process.stdout

    def timed(self) -> float:
        """Return the seconds of one run."""
        self._ask.write("go\n")
        self._ask.flush()
        return float(self._told.readline())

    def close(self) -> None:
        """End the process."""
        self._ask.close()
        self._process.wait()


def compared(case: str, backend: str, revision: str, often: int) -> float:
    """Print the medians of both versions, run alternately; return new over old."""
    with checked_out(revision) as place:
        both = [Version(tree, case, backend) for tree in (HERE, place)]
        times = [[one.timed() for one in (both if k % 2 else both[::-1])] for k in range(often)]
        for one in both:
            one.close()
    new, old = zip(*(row if k % 2 else row[::-1] for k, row in enumerate(times)), strict=True)
    ratio = statistics.median(new) / statistics.median(old)
    ratios = sorted(a / b for a, b in zip(new, old, strict=True))
    print(
        f"{case}: {statistics.median(new):.3f} s, {revision} {statistics.median(old):.3f} s; "
        f"new over old {ratio:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f} run by run)", flush=True,
    )  # fmt: skip
    return ratio


def main() -> None:
    """Time cases of this version, or of two versions alternately."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="without any: small ones")
    parser.add_argument("--against", help="a revision, or a folder with one")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--often", type=int, default=10)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for case in given.cases or [name for name in CASES if name.startswith("small")]:
        timer = seconds(case, given.backend)
        if given.serve:
            for _ in sys.stdin:
                print(next(timer), flush=True)
        elif given.against:
            compared(case, given.backend, given.against, given.often)
        else:
            median = statistics.median(next(timer) for _ in range(given.often))
            print(f"{case}: {median:.3f} s", flush=True)


if __name__ == "__main__":
    main()
