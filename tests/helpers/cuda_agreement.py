"""Differences between the CPU and the CUDA backend for the same small systems.

On a GPU the functions are called as they are; without one this file runs as a program in Numba's
CUDA simulator (NUMBA_ENABLE_CUDASIM=1), a process of its own, and prints JSON:

    python tests/cuda_agreement.py NAME ...
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import warnings

import begun  # noqa: F401, sets up the simulator
import numpy as np

import relboltz as rb
from relboltz.analysis.comparison import SCALES

STEP = {"g": rb.initial.step(0.5, 1.5)}
GAUSSIAN = {"g": rb.initial.gaussian(0.5, [0.8, 0.8, 0.5])}
SMALL = rb.PhaseSpace([4, 3, 3], 2.0)
FLAT = rb.PhaseSpace(3, [2.0, 2.0, 0.2])


def scalar_exchange(s, t, u, ma2, mb2, mc2, md2, coupling, screening2):
    """A user's matrix element."""
    return coupling * (t - 4 * ma2) * (t - 4 * mb2) / (t - screening2) ** 2


def two_species():
    """A Fermi and a Bose gas with an own matrix element, and grids that are not cubes."""
    return rb.Model(
        [rb.Species("a", 2, -1), rb.Species("b", 3, 1)],
        [rb.Process("a b -> a b", scalar_exchange, peak="t", coupling=20000.0)],
        masses={"a": 0.3, "b": 0.4}, screening=0.5,
    )  # fmt: skip


def massless_quarks():
    """Rows with quark exchange, with screening masses of their own and a negative part."""
    full = rb.qcd(0.2, flavors=1, masses="massless", screening="ekt")
    rows = [p for p in full.processes if p.name in ("u g -> u g", "u ubar -> g g")]
    return rb.Model(full.species, rows, screening=full.screening, groups=full.groups)


def cross_sections():
    """Constant cross sections of an elastic and of an inelastic process."""
    return rb.Model(
        [rb.Species("a", 2, 1), rb.Species("b", 3)],
        [rb.Process("a a -> b b", sigma=0.8), rb.Process("a b -> a b", sigma=1.2)],
        masses={"a": 0.2, "b": 0.5},
    )


RUNS = {
    "constant cross sections": (
        cross_sections(), SMALL, {"a": rb.initial.thermal(0.5), "b": rb.initial.step(0.2, 1.5)},
        dict(end=0.002, step=0.001, samples=1),
    ),
    "thermal masses": (rb.gluons(0.3), SMALL, STEP, dict(end=0.0004, step=0.0002, samples=1)),
    "automatic steps": (
        rb.gluons(0.3), SMALL, GAUSSIAN, dict(end=0.001, samples=1, pair_sampling="uniform"),
    ),
    "long steps are limited": (
        rb.gluons(0.3, masses={"g": 0.7}), SMALL, {"g": rb.initial.random(0.05, 1.0, seed=3)},
        dict(end=0.5, step=0.5, samples=1),
    ),
    "events in parts": (
        rb.gluons(0.3), SMALL, GAUSSIAN, dict(end=0.002, step=0.002, samples=1),
    ),
    "a snapshot between records": (
        rb.gluons(0.3, masses={"g": 0.7}), SMALL, {"g": rb.initial.random(0.05, 1.0, seed=3)},
        dict(end=0.2, step=0.1, every=0.2, snapshots=[0.1, 0.2], samples=1),
    ),
    "a user's model": (
        two_species(), rb.PhaseSpace([4, 3, 3], [1.5, 1.4, 1.2]),
        {"a": rb.initial.thermal(0.2), "b": rb.initial.thermal(0.4)},
        dict(end=0.02, step=0.02, samples=1),
    ),
    "massless quarks": (
        massless_quarks(), rb.PhaseSpace([4, 3, 3], 1.2),
        {"g": rb.initial.gaussian(0.3, [0.8, 0.8, 0.5]), "u": rb.initial.step(0.5, 1.5)},
        dict(end=0.002, step=0.001, samples=1),
    ),
}  # fmt: skip
"""name: model, grid, start, options of solve()."""


def hump(x, y, z, px, py, pz):
    """Denser in the middle and to the right."""
    f = np.exp(-(px**2) - py**2 - pz**2) * (1 + 0.4 * np.cos(np.pi * x / 3) + 0.1 * z)
    return 0.5 * f


def wind(x, y, z, px, py, pz):
    """Return the state moving along all axes."""
    return hump(x, y, z, px, py, pz) * (1 + 0.2 * px + 0.3 * py - 0.1 * pz)


SPACES = {
    "in space": (
        rb.gluons(0.3), rb.PhaseSpace(3, 2.0, [2, 1, 2], 3.0, ["periodic"] * 2 + ["open"]),
        {"g": hump}, dict(end=0.1, step=0.1, samples=1, snapshots=[0.1]),
    ),
    "in space, limited": (
        two_species(), rb.PhaseSpace(3, 1.5, [2, 1, 1], 1.0, "reflecting"),
        {"a": rb.initial.random(0.0, 1.0, seed=2), "b": hump},
        dict(end=0.5, step=0.5, samples=1, snapshots=[0.5]),
    ),
    "in space, massless quarks": (
        massless_quarks(),
        rb.PhaseSpace(3, 1.2, [2, 1, 1], 3.0), {"g": wind, "u": wind},
        dict(end=0.02, step=0.02, samples=1, snapshots=[0.02]),
    ),
}  # fmt: skip
"""name: model, grid, start, options of solve(); in batches of up to three sites."""

TERMS = {
    "conserving": dict(),
    "another amplitude": dict(height=0.11),
    "massless, flat cells": dict(massless=True),
    "nearest": dict(projection="nearest"),
    "k2": dict(projection="nearest", kinematics="k2"),
    "k3, without symmetry": dict(projection="nearest", kinematics="k3", symmetrical=False),
    "ekt": dict(screening="ekt"),
}
"""name: options of collision_term()."""


def run(name: str) -> dict:
    """A run on both: differences relative to the largest f, and what must not change."""
    model, grid, start, options = RUNS[name]
    options = {"every": options["end"], "progress": False, **options}
    if name == "events in parts":
        from relboltz.backends.cuda import device_buffers

        device_buffers.event_bytes = lambda precision: 2**50  # one block at a time
    cpu = rb.solve(model, grid, start, backend="cpu", **options)
    gpu = rb.solve(model, grid, start, backend="cuda", precision="float64", **options)
    f, g = cpu.f.values, gpu.f.values
    same = ("number", "energy_total", "entropy", "mass_squared", "temperature", "spectrum",
            "energy_momentum", "momentum_flux", "step", "noise", "null_weight", "rate",
            "rate_reverse", "source", "limited_weight", "equilibrium_distance",
            "screening_mass_squared", "negative_weight", "pressure_ratio")  # fmt: skip
    apart = {}
    for key in same:
        a, b = cpu[key].values, gpu[key].values
        scale = np.nanmax(np.abs(a)) if np.isfinite(a).any() else 1.0
        assert np.array_equal(np.isnan(a), np.isnan(b)), key
        apart[key] = float(np.nanmax(np.abs(a - b), initial=0.0) / (scale or 1.0))
    return {
        "steps": [int(cpu.attrs["steps"]), int(gpu.attrs["steps"])],
        "f": float(np.abs(f - g).max() / f.max()),
        "moved": float(np.abs(g[-1] - g[0]).max()),
        "drift": int(np.abs(gpu.charge_drift).max() + np.abs(gpu.momentum_drift).max()),
        "limited": float(gpu.limited_weight.max()),
        "negative": float(cpu.negative_weight.max()),
        "same bits": _repeats(gpu, model, grid, start, options),
        "lowest": float(g.min()),
        "apart": apart,
    }


def in_space(name: str) -> dict:
    """A run in space on both: differences of everything that is recorded."""
    from relboltz.backends.cuda.memory import MemoryPlan

    model, grid, start, options = SPACES[name]
    options = {"every": options["end"], "progress": False, **options}
    MemoryPlan.batch = lambda self, free: (min(3, self.sites), 2**24)
    cpu = rb.solve(model, grid, start, backend="cpu", **options)
    gpu = rb.solve(model, grid, start, backend="cuda", precision="float64", **options)
    apart = {}
    for key, values in cpu.data_vars.items():
        if values.dtype.kind == "f" and values.size:
            a, b = values.values, gpu[key].values
            assert np.array_equal(np.isnan(a), np.isnan(b)), key
            size = cpu[SCALES.get(key.removeprefix("total_")) or key].values  # of what may vanish
            scale = np.nanmax(np.abs(size)) if np.isfinite(size).any() else 1.0
            difference = np.abs(a - b)[np.isfinite(a)]
            apart[key] = float(difference.max(initial=0.0) / (scale or 1.0))
    return {
        "steps": [int(cpu.attrs["steps"]), int(gpu.attrs["steps"])],
        "drift": int(np.abs(gpu.charge_drift).max()),
        "limited": float(gpu.limited_weight.max()),
        "left": float(gpu.left_number.sum()),
        "apart": apart,
    }


def _repeats(first, model, grid, start, options) -> bool:
    """Whether another run gives the same bits."""
    again = rb.solve(model, grid, start, backend="cuda", precision="float64", **options)
    return all(np.array_equal(first[key], again[key]) for key in ("f", "rate", "energy_total"))


def term(name: str) -> dict:
    """C[f] from the same events on both, relative to the largest."""
    options = dict(TERMS[name])
    screening, height = options.pop("screening", "thermal"), options.pop("height", 0.6)
    model, grid = rb.gluons(0.3, masses={"g": 0.7}, screening=screening), SMALL
    if options.pop("massless", False):
        model, grid = rb.gluons(0.3, masses="massless", screening=0.5), FLAT
    f = {"g": rb.initial.gaussian(height, [0.9, 0.8, 0.5])}
    cpu, gpu = (
        rb.collision_term(model, grid, f, samples=1, batches=2, **kind, **options)
        for kind in (dict(backend="cpu"), dict(backend="cuda", precision="float64"))
    )
    names = ("collision_term", "gain", "loss", "error", "rate", "rate_reverse", "rate_error",
             "null_weight", "negative_weight")  # fmt: skip
    return {
        key: float(np.abs(cpu[key] - gpu[key]).max() / max(float(np.abs(cpu[key]).max()), 1e-300))
        for key in names
    }


def nowhere_defined(s, t):
    """Infinite for half of all s."""
    return 1.0 / (s - s) if s > 6.0 else 1.0


def unphysical(s):
    """Negative for small s; uses NumPy."""
    return np.sqrt(s) * np.abs(1.0) - 2.0


def rounding(s):
    """Negative by next to nothing where s is small."""
    return -1e-12 if s < 6.0 else 1.0


FAULTS = {"infinite": nowhere_defined, "negative": unphysical}
FINE = {"rounding": rounding}
"""Matrix elements that are illegal, and that are not: value and place are named, or nothing."""


def fault(name: str) -> dict:
    """Return the message for a matrix element that is legal where it is checked, not everywhere."""
    from relboltz.backends import choose
    from relboltz.config.settings import Sampling
    from relboltz.run.input_file import Settings

    model = rb.Model(
        [rb.Species("a", 1, 1)],
        [rb.Process("a a -> a a", {**FAULTS, **FINE}[name])],
        masses={"a": 0.5},
    )
    run = Settings.from_options(end=1.0, backend="cuda").run
    backend = choose(SMALL, model, Sampling(samples=1), run)
    try:
        backend.estimates(np.full((1, SMALL.size), 0.3), np.array([0.25, 0.0]), range(1))()
    except rb.InputError as error:
        return {"message": str(error)}
    return {"message": ""}


SITES = ("a site is not limited for its neighbour",)
"""Two sites that collide at once; one needs limits, and the other would after its first stage."""


def neighbours(name: str) -> dict:
    """Largest difference of N f at both sites, relative, and the parts that limits refused."""
    from relboltz.backends.cpu.backend import CpuBackend
    from relboltz.backends.cpu.stages import SiteStages
    from relboltz.backends.cuda.backend import CudaBackend, MemoryPlan
    from relboltz.config.settings import Sampling
    from relboltz.events.collisions import SETS, DrawInput

    model, bits, length = rb.gluons(0.3, masses={"g": 0.7}), 44, 0.1
    grid = rb.PhaseSpace([4, 3, 3], 2.0, [2, 1, 1], 3.0)
    sampling, squares = Sampling(samples=1), np.tile([0.49, 0.49], (2, 1))
    cpu = CpuBackend(grid, model, sampling, 1)
    collider, stages = cpu.colliders[0], SiteStages(cpu.colliders[0], bits)

    def kind(number, site):
        table, f = collider.tables(number, 2.0**-bits)
        collider.draw(DrawInput.of(0, squares[site], 1, site), table, f)
        half = 0.5 * length * 2.0**bits
        first, _ = collider.net((table,) * SETS, half)
        legal = stages._stages(number, table, half) is not None
        return legal, bool(stages._legal(number + 2 * first.sum(axis=0)))

    rng, found = np.random.default_rng(0), {}
    while len(found) < 2:
        number = np.rint(rng.uniform(0, 1, grid.size) ** 4 * 16 * 2.0**bits).astype(np.int64)
        for site, wanted in ((0, False), (1, True)):
            if site not in found and kind(number, site) == (wanted, False):
                found[site] = number
    start = np.stack([found[0], found[1]]).reshape(2, 1, -1)
    room = MemoryPlan.batch
    MemoryPlan.batch = lambda self, free: (2, 2.0**24)
    try:
        states, limited = [], []
        for backend in (cpu, CudaBackend(grid, model, sampling, "float64")):
            backend.put(start, bits)
            limited.append(backend.collide(0, length, squares).limited_weight)
            states.append(backend.get().copy())
    finally:
        MemoryPlan.batch = room
    apart = np.abs(states[0] - states[1]).max(axis=(1, 2)) / states[0].max(axis=(1, 2))
    return {"apart": apart.tolist(), "limited": limited}


PUSHES = ("forces from outside", "forces from outside, long pencils")
"""Sweeps with forces of either sign between sites, faces and lanes; along homogeneous axes too.
The second without shared memory."""


def pushes(name: str) -> dict:
    """Largest difference of N f after each sweep, of what left and what was refused, relative."""
    from relboltz.backends.cpu.backend import CpuBackend
    from relboltz.backends.cuda import driver
    from relboltz.backends.cuda.backend import CudaBackend
    from relboltz.config.settings import Sampling

    shared_memory = driver.shared_memory
    if name != PUSHES[0]:
        driver.shared_memory = lambda: (0, 0)
    model, rng = two_species(), np.random.default_rng(4)
    grid = rb.PhaseSpace([4, 3, 3], 1.5, [3, 1, 2], 3.0, ["open", "open", "reflecting"])
    both = (
        CpuBackend(grid, model, Sampling(samples=1), 1),
        CudaBackend(grid, model, Sampling(samples=1), "float64"),
    )
    start = np.rint(rng.random((grid.sites, 2, grid.size)) * 2.0**44).astype(np.int64)
    for backend in both:
        backend.put(start, 44)
    apart = {}
    for axis in range(3):
        squares, push = rng.random((grid.sites, 3)), rng.normal(0.0, 1.0, (grid.sites, 2, 2))
        cpu, gpu = (backend.stream(axis, 0.3, squares, push) for backend in both)
        a, b = (backend.get() for backend in both)
        apart[f"state, {axis}"] = float(np.abs(a - b).max() / a.max())
        apart[f"refused, {axis}"] = float(np.abs(cpu.refused - gpu.refused).max() / a.max())
        apart[f"left, {axis}"] = float(np.abs(cpu.left - gpu.left).max(initial=0) / a.max())
    driver.shared_memory = shared_memory
    return {"apart": apart, "moved": float(np.abs(a - start).max() / a.max())}


RESUMED = ("resumed",)
"""A run in space that ends early and goes on from its file."""


def resumed(name: str) -> dict:
    """Variables that have other bits than those of one run: interrupted, and beyond the end."""
    model, start = rb.gluons(0.3, masses={"g": 0.7}), GAUSSIAN
    grid = rb.PhaseSpace(3, 2.0, [2, 1, 1], 3.0, "open")
    options = dict(step=0.001, every=0.002, samples=1, backend="cuda", precision="float64")
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {key: f"{folder}/{key}.nc" for key in ("whole", "until", "step", "record")}

        def solve(key, end, progress=False):
            return rb.solve(
                model, grid, start, end=end, file=files[key], progress=progress, **options
            )

        whole = solve("whole", 0.004)
        solve("until", 0.002)
        found["until"] = rb.resume(files["until"], until=0.004, progress=False)
        for key, time in (("step", 0.001), ("record", 0.002)):

            def stop(moment, time=time):
                if moment.time == time:
                    os.kill(os.getpid(), signal.SIGTERM)

            try:
                solve(key, 0.004, stop)
            except rb.Interrupted:
                found[key] = rb.resume(files[key], progress=False)
        return {
            key: [
                n
                for n, v in whole.variables.items()
                if v.values.tobytes() != ds[n].values.tobytes()
            ]
            for key, ds in found.items()
        }


def measure(name: str) -> dict:
    """One of the systems above, or of ``cuda_teams`` and ``cuda_brackets``."""
    import cuda_brackets  # which take some systems from here
    import cuda_teams

    kinds = ((RUNS, run), (SPACES, in_space), (TERMS, term), (FAULTS, fault), (FINE, fault),
             (SITES, neighbours), (PUSHES, pushes), (RESUMED, resumed))  # fmt: skip
    if name in cuda_brackets.BRACKETS:
        return cuda_brackets.brackets(name)
    if name in cuda_teams.TEAMS:
        return cuda_teams.teams(name)
    return next(function(name) for systems, function in kinds if name in systems)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({name: measure(name) for name in sys.argv[1:]}))
