"""Small set-ups that cover the features of relboltz; ``same_numbers.py`` compares them bit by bit.

Only the public interface is used, so that the set-ups run on older and newer versions alike.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import relboltz as rb

CHANGES = tomllib.loads(Path(__file__).with_name("intended_changes.toml").read_text())
FORMER = {new: old for old, new in CHANGES["options"].items()}
"""Former name of each renamed option."""
Numbers = dict[str, np.ndarray]


def called(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function of relboltz, with the former names of its options for older versions."""
    try:
        return function(*arguments, **options)
    except (rb.InputError, TypeError):
        former = {FORMER.get(name, name): value for name, value in options.items()}
        if former == options:
            raise
        return function(*arguments, **former)


def numbers_of(ds: xr.Dataset) -> Numbers:
    """Return every variable of a result, and its number of steps."""
    found = {str(name): np.asarray(v.values) for name, v in ds.variables.items()}
    kept = {name: v for name, v in found.items() if v.dtype.kind in "biufc"}
    return kept | ({"steps": np.array(ds.attrs["steps"])} if "steps" in ds.attrs else {})


# --- models and initial states ------------------------------------------------------------------


def exchange(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    """Scalar exchange in the t channel, the matrix element of the README."""
    return coupling * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2


def own_model() -> rb.Model:
    """Return a Fermi and a Bose gas with a user-defined matrix element."""
    a = rb.Species("a", degeneracy=2, statistics=-1)
    b = rb.Species("b", degeneracy=3, statistics=+1)
    process = rb.Process("a b -> a b", exchange, peak="t", coupling=20000.0)
    return rb.Model([a, b], [process], masses={"a": 0.3, "b": 0.4}, screening=0.5)


def cross_sections() -> rb.Model:
    """Return a classical and a Bose gas with constant cross sections that turn into each other."""
    return rb.Model(
        [rb.Species("a", 2, 1), rb.Species("b", 3)],
        [rb.Process("a a -> b b", sigma=0.8), rb.Process("a b -> a b", sigma=1.2)],
        masses={"a": 0.2, "b": 0.5},
    )


def hot(x, y, z, px, py, pz):
    """Return a hot spot in a warm gas."""
    p = np.sqrt(px**2 + py**2 + pz**2)
    return 0.1 * np.exp(-p / 0.4) + 0.8 * np.exp(-(x**2) - y**2 - z**2) * np.exp(-p / 0.5)


def stretched(t):
    """Return scale factors that grow at different rates along the axes."""
    return 1.0 + 0.1 * t, 1.0, 1.0 + 0.3 * t


STEP = {"g": rb.initial.step(0.5, 1.2)}
QUARKS = {"g": rb.initial.thermal(0.4), "quarks": rb.initial.gaussian(0.3, [0.5, 0.6, 0.7])}
SQUEEZED = rb.initial.romatschke_strickland(0.5, xi=4.0)
GASES = {"a": rb.initial.thermal(0.4), "b": rb.initial.step(0.3, 1.0)}
OWN = {"a": rb.initial.step(0.5, 1.0), "b": rb.initial.gaussian(0.3, [0.5, 0.6, 0.7])}


# --- what is done with them ---------------------------------------------------------------------


def solved(model: Any, grid: Any, initial: Any, **options: Any) -> Numbers:
    """Solve to 0.3 fm unless told otherwise; keep all records and the final f."""
    begin, end = options.get("start", 0.0), options.get("end", 0.3)
    usual = {"end": end, "every": (end - begin) / 3, "snapshots": [end], "progress": False}
    return numbers_of(called(rb.solve, model, grid, initial, **usual | options))


def resumed(model: Any, grid: Any, initial: Any, **options: Any) -> Numbers:
    """Interrupt a run between records, resume it to its end, then continue beyond."""
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/run.nc"

        def stop(moment: Any) -> None:
            if moment.time > 0.03:  # a GPU is always one record ahead
                os.kill(os.getpid(), signal.SIGTERM)

        try:
            solved(model, grid, initial, end=0.2, file=file, **options | {"progress": stop})
        except rb.Interrupted:
            rb.resume(file, progress=False)
            return numbers_of(rb.resume(file, until=0.3, progress=False))
    raise AssertionError("the run was not interrupted")


def with_mpi(name: str, backend: str, folder: str) -> Numbers:
    """Run another set-up with two processes of mpirun."""
    mpirun = Path(sys.executable).with_name("mpirun")
    command = [mpirun if mpirun.exists() else "mpirun", "-n", "2", "--allow-run-as-root"]
    command += ["--oversubscribe", sys.executable, Path(__file__).with_name("same_numbers.py")]
    command += [name, "--keep", f"{folder}/mpi.npz", "--backend", backend, "--no-simulator"]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    with np.load(f"{folder}/mpi.npz") as kept:
        return {key.split("/", 1)[1]: kept[key] for key in kept.files}


def term(model: Any, grid: Any, f: Any, **options: Any) -> Numbers:
    """Estimate C[f]."""
    return numbers_of(called(rb.collision_term, model, grid, f, batches=3, **options))


def coefficients(model: Any, temperature: float, **options: Any) -> Numbers:
    """Compute the transport coefficients of a model; their precision is fixed."""
    options.pop("precision", None)
    return numbers_of(called(rb.transport_coefficients, model, temperature, **options))


def plane(**options: Any) -> Numbers:
    """Let an almond of gluons expand along z and in the transverse plane; add its v_2."""
    grid = rb.PhaseSpace([7, 7, 9], [2.5, 2.5, 3.0], [6, 6, 1], [6.0, 6.0, 1.0], boundary="open",
                         expansion="bjorken")  # fmt: skip
    almond = rb.initial.gaussian_profile(radius=1.5, eccentricity=0.4)
    start = {"g": rb.initial.romatschke_strickland(0.5, xi=2.0, profile=almond)}
    usual = {"start": 0.3, "end": 0.9, "every": 0.2, "samples": 4, "progress": False}
    ds = rb.solve(rb.gluons(0.3), grid, start, **usual | options)
    flow = {f"flow {name}": v for name, v in numbers_of(ds.rb.flow(2)).items()}
    return numbers_of(ds) | flow


def box(cells: Any, width: Any = 2.0, *space: Any, **more: Any) -> rb.PhaseSpace:
    """Return a grid."""
    return rb.PhaseSpace(cells, width, *space, **more)


WALLS = ["reflecting", "periodic", "open"]
MASSLESS = {"masses": "massless", "screening": "ekt"}
SET_UPS: dict[str, Callable[..., Numbers]] = {
    "gluons": lambda **o: solved(rb.gluons(0.3), box(20), STEP, **o),
    "gluons, automatic box": lambda **o: solved(rb.gluons(0.3), 11, STEP, **o),
    "gluons, fixed step": lambda **o: solved(
        rb.gluons(0.3), box([12, 9, 11]), STEP, step=0.02, **o
    ),
    "mixture": lambda **o: solved(rb.qcd(0.3), box(11), STEP, samples=4, **o),
    "mixture, flavor-symmetric": lambda **o: solved(
        called(rb.qcd, 0.3, flavor_symmetric=True), box(12), QUARKS, **o
    ),
    "quarks": lambda **o: solved(
        rb.quarks(0.3, antiquarks=True), box(12), {"quarks": SQUEEZED}, **o
    ),
    "ekt": lambda **o: solved(rb.gluons(0.3, screening="ekt"), box(12), STEP, **o),
    "massless mixture, ekt": lambda **o: solved(
        rb.qcd(0.2, flavors=1, **MASSLESS), box(11), QUARKS, samples=4, **o
    ),
    "constant masses": lambda **o: solved(
        rb.qcd(0.3, flavors=1, masses={"g": 0.7, "quarks": 0.4}), box(11), QUARKS, samples=4, **o
    ),
    "own model": lambda **o: solved(own_model(), box(12), OWN, **o),
    "cross sections": lambda **o: solved(cross_sections(), box(11), GASES, **o),
    "replicas": lambda **o: solved(own_model(), box(8), OWN, replicas=2, **o),
    "nearest": lambda **o: solved(rb.gluons(0.3), box(12), STEP, projection="nearest", **o),
    "k3 without symmetry": lambda **o: solved(
        rb.gluons(0.3), box(12), STEP, projection="nearest", kinematics="k3", symmetrical=False,
        end=0.05, **o,
    ),
    "long steps": lambda **o: solved(
        rb.gluons(0.3, masses={"g": 0.7}), box(9), {"g": rb.initial.random(0.05, 1.0, seed=3)},
        step=0.15, samples=2, **o,
    ),
    "1-D": lambda **o: solved(
        rb.gluons(0.3), box(10, 2.0, [8, 1, 1], 2.0), {"g": hot}, samples=8, **o
    ),
    "2-D, open walls": lambda **o: solved(
        rb.qcd(0.3, flavors=1), box(8, 2.0, [5, 4, 1], 2.0, "open"), {"g": hot, "quarks": hot},
        samples=4, **o,
    ),
    "3-D": lambda **o: solved(
        rb.gluons(0.3), box(8, 2.0, [4, 3, 2], 2.0, WALLS), {"g": hot}, samples=4,
        marginals=["x px"], **o,
    ),
    "bjorken": lambda **o: solved(
        rb.gluons(0.3), box([9, 9, 21], [2.5, 2.5, 3.0], expansion="bjorken"), {"g": SQUEEZED},
        start=0.3, end=1.5, **o,
    ),
    "hubble": lambda **o: solved(
        cross_sections(), box(9, 2.5, expansion="hubble", hubble_rate=0.4), GASES, end=0.6, **o
    ),
    "own expansion": lambda **o: solved(
        rb.gluons(0.3), box(9, 2.5, expansion=stretched), {"g": SQUEEZED}, **o
    ),
    "plane": plane,
    "resumed": lambda **o: resumed(rb.gluons(0.3), box(12), STEP, **o),
    "resumed in space": lambda **o: resumed(
        rb.gluons(0.3), box(8, 2.0, [4, 1, 1], 2.0, "open"), {"g": hot}, samples=4, **o
    ),
    "resumed bjorken": lambda **o: resumed(
        rb.gluons(0.3), box([7, 7, 9], [2.5, 2.5, 2.5], expansion="bjorken"), {"g": SQUEEZED},
        start=0.05, **o,
    ),
    "C[f]": lambda **o: term(own_model(), box(10), OWN, **o),
    "C[f], k2": lambda **o: term(
        rb.gluons(0.3), box(10), STEP, projection="nearest", kinematics="k2",
        pair_sampling="uniform", **o,
    ),
    "coefficients, mixture": lambda **o: coefficients(rb.qcd(0.3), 0.4, events=1e5, **o),
    "coefficients, weak coupling": lambda **o: coefficients(
        rb.qcd(0.01, flavors=1, **MASSLESS), 0.4, events=1e5, **o
    ),
    "coefficients on nodes": lambda **o: coefficients(
        own_model(), 0.3, grid=box(9), events=1e5, tagged="a", **o
    ),
}  # fmt: skip
"""Set-ups of one process; options select where they are computed."""

TEAMS: dict[str, tuple[str, ...]] = {
    "Ray workers": ("1-D", "ray"),
    "Ray workers, homogeneous": ("own model", "ray"),
    "MPI workers": ("1-D", "mpi"),
    "MPI workers, homogeneous": ("own model", "mpi"),
}
"""Set-ups of several processes: the set-up that they run, and their launcher."""

TINY_GRID = ([4, 3, 3], 2.0)
TINY: dict[str, Callable[..., Numbers]] = {
    "tiny gluons": lambda **o: solved(
        rb.gluons(0.3), box(*TINY_GRID), {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])},
        end=0.001, samples=1, **o,
    ),
    "tiny own model": lambda **o: solved(
        own_model(), box(*TINY_GRID), OWN, end=0.02, step=0.02, every=0.02, samples=1, **o
    ),
    "tiny space": lambda **o: solved(
        rb.gluons(0.3, masses={"g": 0.7}), box(3, 2.0, [2, 1, 2], 3.0, ["periodic"] * 2 + ["open"]),
        {"g": hot}, end=0.1, step=0.1, every=0.1, samples=1, **o,
    ),
    "tiny bjorken": lambda **o: solved(
        rb.gluons(0.3), box([3, 3, 5], 2.0, expansion="bjorken"), {"g": SQUEEZED},
        start=0.3, end=0.302, step=0.001, every=0.002, samples=1, **o,
    ),
    "tiny C[f], massless": lambda **o: term(
        rb.gluons(0.3, **MASSLESS), box(*TINY_GRID),
        {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}, samples=1, **o,
    ),
    "tiny coefficients": lambda **o: coefficients(
        rb.gluons(0.01, **MASSLESS), 0.4, events=3000, **o
    ),
}  # fmt: skip
"""Set-ups for the CUDA simulator, which runs some thousand threads per second."""
