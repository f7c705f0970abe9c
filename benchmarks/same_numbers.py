"""The final f of eight set-ups, bit by bit: what a change of the code that claims to change nothing
is measured with.

    python benchmarks/same_numbers.py --keep before.npz        # with the code as it was
    python benchmarks/same_numbers.py --against before.npz     # with the code as it is

Prints, for every set-up, whether f has the same bits, max|df|/max f, and the largest relative
difference of anything that a record holds.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

import relboltz as rb

SKIP = ("step", "noise")
"""Compared with nothing: as long as f is the same, they are."""


def exchange(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    """The matrix element of the README."""
    return coupling * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2


def own_model() -> rb.Model:
    """Two species of one's own."""
    a = rb.Species("a", degeneracy=2, statistics=-1)
    b = rb.Species("b", degeneracy=3, statistics=+1)
    process = rb.Process("a b -> a b", exchange, peak="t", coupling=20000.0)
    return rb.Model([a, b], [process], masses={"a": 0.3, "b": 0.4}, screening=0.5)


def hot(x, y, z, px, py, pz):
    """A hot spot."""
    p = np.sqrt(px**2 + py**2 + pz**2)
    return 0.1 * np.exp(-p / 0.4) + 0.8 * np.exp(-(x**2) - y**2 - z**2) * np.exp(-p / 0.5)


STEP = {"g": rb.initial.step(0.5, 1.2)}
SETUPS = {
    "gluons": lambda: (rb.gluons(0.3), rb.PhaseSpace(20, 2.0), STEP, {}),
    "mixture": lambda: (rb.qcd(0.3), rb.PhaseSpace(12, 2.0), STEP, {}),
    "own model": lambda: (
        own_model(), rb.PhaseSpace(12, 2.0),
        {"a": rb.initial.step(0.5, 1.0), "b": rb.initial.gaussian(0.3, [0.5, 0.6, 0.7])}, {},
    ),
    "nearest": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(12, 2.0), STEP, {"projection": "nearest"},
    ),
    "k3 without symmetry": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(12, 2.0), STEP,
        {"projection": "nearest", "sampling": "k3", "symmetrical": False, "end": 0.05},
    ),
    "1-D": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(10, 2.0, [8, 1, 1], 2.0), {"g": hot}, {"samples": 8},
    ),
    "2-D, open walls": lambda: (
        rb.qcd(0.3, flavors=1), rb.PhaseSpace(8, 2.0, [5, 4, 1], 2.0, "open"),
        {"g": hot, "quarks": hot}, {"samples": 4},
    ),
    "3-D": lambda: (
        rb.gluons(0.3), rb.PhaseSpace(8, 2.0, [4, 3, 2], 2.0, ["reflecting", "periodic", "open"]),
        {"g": hot}, {"samples": 4, "marginals": ["x px"]},
    ),
}  # fmt: skip


def solved(name: str, **options) -> dict[str, np.ndarray]:
    """f at the end and everything recorded, of one set-up."""
    model, grid, start, more = SETUPS[name]()
    end = more.get("end", 0.3)
    given = {"end": end, "every": end / 3, "snapshots": [end], **more, **options}
    ds = rb.solve(model, grid, start, progress=False, **given)
    records = {k: v.values for k, v in ds.data_vars.items() if v.dtype.kind in "fi" and k != "f"}
    return {"f": ds.f.values, **records}


def apart(now: np.ndarray, before: np.ndarray) -> float:
    """Largest difference, relative to the largest value; NaN must stand where NaN stood."""
    if now.shape != before.shape or (np.isnan(now) != np.isnan(before)).any():
        return np.inf
    size = np.nanmax(np.abs(before), initial=0.0)
    return float(np.nanmax(np.abs(now - before), initial=0.0) / (size or 1.0))


def main() -> None:
    """Compute, keep and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--keep")
    parser.add_argument("--against")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--precision")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    before = np.load(given.against) if given.against else {}
    kept: dict[str, np.ndarray] = {}
    worst = 0.0
    for name in given.names or SETUPS:
        options = {"precision": given.precision} if given.precision else {}
        found = solved(name, backend=given.backend, **options)
        kept |= {f"{name}/{key}": values for key, values in found.items()}
        if f"{name}/f" not in before:
            print(f"{name:20s} max f = {found['f'].max():.17g}")
            continue
        old = before[f"{name}/f"]
        same = old.tobytes() == found["f"].tobytes()
        df = apart(found["f"], old)
        others = {k: apart(v, before[f"{name}/{k}"]) for k, v in found.items()
                  if f"{name}/{k}" in before and k not in SKIP}  # fmt: skip
        key = max(others, key=lambda k: others[k])
        missing = [k for k in before if k.startswith(f"{name}/") and k not in kept]
        bits = "same bits" if same else "other bits"
        print(f"{name:20s} {bits}   df/f = {df:.1e}   records: {others[key]:.1e} ({key})")
        if missing:
            print(f"{'':20s} missing: {', '.join(missing)}")
        worst = max(worst, df)
    if given.keep:
        np.savez_compressed(given.keep, **kept)
    sys.exit(worst >= 1e-11)


if __name__ == "__main__":
    main()
