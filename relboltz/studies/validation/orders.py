"""Orders of convergence in the time step, the spacing of the nodes and the number of samples."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ... import backends
from ...config.settings import RunSettings, Sampling
from ...grid.phase_space import PhaseSpace
from ...model.qcd import gluons
from ...run.collision_term import collision_term
from ...stepping.step import begin
from ...util.arrays import Array
from .exact_relaxation import ISOTROPIC, T
from .rows import Comparison, ValidationEffort, absolute, at_least

BITS = 44


def orders_of_convergence(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check second order in dt and in h, and order 1/2 in samples."""
    yield from _in_the_step(effort)
    yield from _in_the_spacing(effort)
    yield from _in_the_samples(effort)


def fixed_events(lengths: Sequence[float], end: float, effort: ValidationEffort) -> list[Array]:
    """Return the final f for each step length, with the same events in every step.

    C is then a fixed function of the state, without noise. Its two halves differ slightly; the
    remaining first-order error falls with the number of samples, which is therefore large. Pairs
    are drawn uniformly, because importance sampling follows the state discontinuously.
    """
    grid, model = PhaseSpace(8, 2.0), gluons(0.3, masses={"g": 0.7})
    f = 0.5 * np.exp(-grid.momentum_squared - 0.5 * grid.momenta[2] ** 2)[None, None]
    run = RunSettings(backend=effort.backend, threads=effort.threads, precision="float64")  # type: ignore
    sampling = Sampling(samples=1024, pair_sampling="uniform", seed=effort.seed)
    states = []
    for length in lengths:
        backend = backends.choose(grid, model, sampling, run)
        state = begin(backend, f)
        for _ in range(round(end / length)):
            backend.collide(0, length, state.squares)
        states.append(backend.get()[0, 0] * 2.0**-state.bits)
    return states


def _in_the_step(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare runs with successively halved steps on the same events."""
    states = fixed_events((0.4, 0.2, 0.1, 0.05), 0.8, effort)
    apart = [float(np.abs(a - b).sum()) for a, b in pairwise(states)]
    orders = np.log2(np.array(apart[:-1]) / apart[1:])
    yield at_least(
        "order in dt of a step of collisions", orders.min(), 1.9,
        "2, and of first order what 1024 samples leave of the difference of the halves",
    )  # fmt: skip


def rate_of_change(
    cells: int, box: float, samples: int, effort: ValidationEffort
) -> tuple[float, float]:
    """Return d<k^2>/dtau of the soluble gas at tau = 0 over exact, and its standard error.

    1 - <k^2>/<k^2>_eq = exp(-tau/3)/16, so <k^2> grows by <k^2>_eq/48 = T^2/4.
    """
    grid = PhaseSpace(cells, box * T)
    k2 = grid.momentum_squared
    f = ISOTROPIC.f(np.sqrt(k2), 0.0)
    model = ISOTROPIC.model(float(f.sum()) * grid.measure)
    found = []
    for seed in range(6):
        term = collision_term(
            model, grid, f[None], samples=samples, batches=2,
            **effort.options | {"seed": effort.seed + seed},
        )  # fmt: skip
        found.append(float(term.collision_term.values.ravel() @ k2 / f.sum()) / (T * T / 4))
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))


def _in_the_spacing(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare the rate of <k^2> on coarser and finer nodes with the exact rate."""
    box, cells = 12.0, (24, 36, 48)
    found = [rate_of_change(n, box, 32 if n < 30 else 16, effort) for n in cells]
    value, errors = (np.array(column) for column in zip(*found, strict=True))
    order = np.log((1 - value[0]) / (1 - value[1])) / np.log(cells[1] / cells[0])
    yield at_least("order in h of d<k^2>/dtau, h = T and 2 T/3", order, 1.8,
                   "landing is of second order; the second has 5 % of noise")  # fmt: skip
    yield absolute(
        "d<k^2>/dtau over exact, h = T/2", value[2], 1.0,
        abs(1 - value[0]) * (cells[0] / cells[2]) ** 2 + 3 * errors[2],
        "what is missing at h = T, times (1/2)^2; 3 standard errors",
    )  # fmt: skip


def _in_the_samples(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare the standard error of a rate with 4 and with 64 samples."""
    grid, model = PhaseSpace(12, 2.0), gluons(0.3, masses={"g": 0.7})
    f = 0.4 * np.exp(-grid.momentum_squared)[None]
    errors = []
    for samples in (4, 64):
        term = collision_term(model, grid, f, samples=samples, batches=64, **effort.options)
        errors.append(float(np.sqrt(np.square(term.error.values).mean())))
    order = np.log(errors[0] / errors[1]) / np.log(16)
    yield absolute("order of the error of C[f] in samples", order, 0.5, 0.05,
                   "errors of 64 batches are known to 1 % in the mean over nodes")  # fmt: skip
