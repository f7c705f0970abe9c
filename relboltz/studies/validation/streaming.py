"""Left-hand side: free streaming, Liouville's theorem, and matter at rest in a mass field."""

from collections.abc import Iterator

import numpy as np

from ... import backends
from ...backends.contract import Backend
from ...config.settings import RunSettings, Sampling
from ...grid.phase_space import PhaseSpace
from ...initial import from_function
from ...model.model import Model, Species
from ...run.solve import solve
from ...util.arrays import Array
from .rows import Comparison, ValidationEffort, at_least, nothing

BITS = 44
"""A quantum is 2^-44 of a particle per state."""


def free_gas(statistics: int = 1, mass: float = 0.5, degeneracy: int = 1) -> Model:
    """Return a model of particles that never collide."""
    return Model([Species("a", degeneracy, statistics)], [], masses={"a": mass})


def holding(grid: PhaseSpace, model: Model, f: Array, effort: ValidationEffort) -> Backend:
    """Return a backend with the state f (sites, species, nodes)."""
    run = RunSettings(backend=effort.backend, threads=effort.threads, precision="auto")  # type: ignore
    backend = backends.choose(grid, model, Sampling(), run)
    number = np.rint(f * model.degeneracy[:, None] * 2.0**BITS).astype(np.int64)
    shape = (grid.sites, len(model.species), grid.size)
    backend.put(np.ascontiguousarray(np.broadcast_to(number, shape)), BITS)
    return backend


def grid_velocity(grid: PhaseSpace, axis: int, mass: float) -> Array:
    """Return v = [E(p + h/2) - E(p - h/2)]/h along an axis, the streaming velocity on the nodes."""
    h = grid.spacing[axis]
    shift = np.eye(3)[axis][:, None] * h / 2
    up, down = (np.sqrt(((grid.momenta + s * shift) ** 2).sum(axis=0) + mass**2) for s in (1, -1))
    return np.asarray((up - down) / h)


# --- free streaming -------------------------------------------------------------------------------


def streamed(cells: int, axis: int, mass: float, effort: ValidationEffort) -> tuple[float, int]:
    """Return the mean |f - f0(x - v t, p)| after 2 fm over the mean f, and the quanta lost."""
    end, space = 2.0, [1, 1, 1]
    space[axis] = cells
    grid = PhaseSpace([6, 5, 4], 2.0, space, 3.0)

    def start(x: Array, y: Array, z: Array, px: Array, py: Array, pz: Array) -> Array:
        place = (x, y, z)[axis]
        return np.exp(np.sin(np.pi * place / 3) - px**2 - py**2 + 0.3 * pz)

    ds = solve(
        free_gas(mass=mass), grid, {"a": from_function(start, sampling="node")}, end=end,
        step=0.8 * 6 / cells, every=end, snapshots=[end], **effort.solving,
    )  # fmt: skip
    x = grid.space_axis(axis)[:, None] - grid_velocity(grid, axis, mass) * end
    exact = start(x, x, x, *grid.momenta)
    f = ds.f.values[-1, 0].reshape(cells, -1)
    return float(np.abs(f - exact).mean() / exact.mean()), int(ds.charge_drift[-1, 0])


def free_streaming(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare with f0(x - v t, p), massless and massive, along different axes."""
    for axis, mass in ((0, 0.0), (1, 0.5)):
        errors, lost = zip(*(streamed(n, axis, mass, effort) for n in (12, 24, 48)), strict=True)
        description = f"along {'xyz'[axis]}, m = {mass:g} GeV"
        orders = np.log2(np.array(errors[:-1]) / errors[1:])
        yield nothing(f"{description}, 48 cells: mean |f - exact| over mean f", errors[-1], 1e-4,
                      "(2 pi/48)^3 of the SSP-RK3 steps, 1/12 of it at most")  # fmt: skip
        yield at_least(f"{description}: order in cells and steps", orders.min(), 3.0,
                       "fifth order in dx, third in dt, dt ~ dx")  # fmt: skip
        yield nothing(f"{description}: quanta lost", max(map(abs, lost)), 0.0, "fluxes are whole")


# --- Liouville ------------------------------------------------------------------------------------


def liouville(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check that a uniform f stays uniform for any masses, and f(E) static in a mass field."""
    grid = PhaseSpace([6, 5, 4], 2.0, [5, 4, 3], 3.0, "periodic", "periodic")
    backend = holding(grid, free_gas(degeneracy=6), np.ones((1, 1, grid.size)), effort)
    rng = np.random.default_rng(3)
    for _ in range(10):
        squares = np.repeat(rng.uniform(0.1, 0.6, (grid.sites, 1)), 2, axis=1)
        for axis in (0, 1, 2, 2, 1, 0):
            backend.stream(axis, 0.05, squares, None)
    worst = np.abs(backend.get() * 2.0**-BITS / 6 - 1).max()
    yield nothing("uniform f in random masses, 60 sweeps: largest change", worst, 1e-12,
                  "60 times a few quanta of 2^-44/6")  # fmt: skip
    resting, moved = zip(*(at_rest(n, effort) for n in (12, 24)), strict=True)
    order = float(np.log2(resting[0] / resting[1]))
    yield nothing(
        "exp(-E/T) in a wave of masses: change, over that without the force",
        resting[1] / moved[1], 0.05, "masses on edges are means of neighbours: O(dx^2, dp^2)",
    )  # fmt: skip
    yield at_least("exp(-E/T) in a wave of masses: order in dx and dp", order, 1.8,
                   "second order, measured between 12 and 24 cells")  # fmt: skip


def at_rest(cells: int, effort: ValidationEffort) -> tuple[float, float]:
    """Return the change of f = exp(-E(x, p)/T) in 2 fm with the force, and by streaming alone.

    m^2(x) = 0.4 + 0.2 cos(pi x/3) GeV^2, and T = 0.3 GeV. Mean |change| over the mean of f.
    """
    temperature, end = 0.3, 2.0
    grid = PhaseSpace([cells, 4, 4], [2.4, 0.8, 0.8], [cells, 1, 1], 3.0)
    x = grid.space_axis(0)
    m2 = 0.4 + 0.2 * np.cos(np.pi * x / 3)
    f0 = np.exp(-np.sqrt(grid.momentum_squared + m2[:, None]) / temperature)[:, None]
    backend = holding(grid, free_gas(), f0, effort)
    squares = np.repeat(m2[:, None], 2, axis=1)
    steps = 4 * cells
    for _ in range(steps):
        backend.stream(0, end / steps, squares, None)
    f = backend.get() * 2.0**-BITS
    v = grid.momenta[0] / np.sqrt(grid.momentum_squared + 0.4)
    away = x[:, None] - v * end
    there = 0.4 + 0.2 * np.cos(np.pi * away / 3)
    streamed = np.exp(-np.sqrt(grid.momentum_squared + there) / temperature)[:, None]
    return float(np.abs(f - f0).mean() / f0.mean()), float(np.abs(streamed - f0).mean() / f0.mean())
