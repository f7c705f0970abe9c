"""Exact properties of every step: charges, momentum, energy, 0 <= f (<= 1), entropy."""

from collections.abc import Iterator

import numpy as np

from ... import backends, initial
from ...config.settings import RunSettings, Sampling
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...model.qcd import qcd, quarks
from ...stepping.quanta import occupation
from ...stepping.step import begin
from ...util.arrays import Array
from .rows import Comparison, ValidationEffort, nothing

STARTS: dict[str, tuple[Model, PhaseSpace, initial.Start]] = {
    "mixture from gluons alone": (
        qcd(0.3), PhaseSpace([9, 7, 8], [2.0, 1.8, 2.1]),
        {"g": initial.step(0.5, 1.5), "u": initial.gaussian(0.9, [0.5, 0.7, 0.9])},
    ),
    "nearly full Fermi sea": (quarks(0.3), PhaseSpace(9, 2.0), {"u": initial.step(1, 1.5)}),
}  # fmt: skip
"""Initial conditions; both activate the limiters as soon as steps are long."""


def laws_of_a_step(effort: ValidationEffort) -> Iterator[Comparison]:
    """Check three steps of 0.01 fm and of 1 fm, far too long for accuracy, at frozen masses."""
    for name, (model, grid, start) in STARTS.items():
        for length in (0.01, 1.0):
            yield from _obeyed(
                f"{name}, steps of {length:g} fm", model, grid, start, length, effort
            )


def _obeyed(
    description: str,
    model: Model,
    grid: PhaseSpace,
    start: initial.Start,
    length: float,
    effort: ValidationEffort,
) -> Iterator[Comparison]:
    """Compare the state before and after three steps."""
    run = RunSettings(backend=effort.backend, threads=effort.threads, precision="float64")  # type: ignore
    f = initial.evaluate(initial.starting_states(start, model), grid, model)
    backend = backends.choose(grid, model, Sampling(samples=4, seed=effort.seed), run)
    state = begin(backend, f.reshape(1, len(model.species), -1))
    before = backend.get()[0]
    for step in range(3):
        backend.collide(step, length, state.squares)
    after = backend.get()[0]
    f0, f1 = (occupation(n, state.bits, model) for n in (before, after))
    vectors = np.array(list(model.conserved.values()))
    change = np.array([sum(row.tolist()) for row in after - before], dtype=object)
    yield nothing(
        f"{description}: charges gained [quanta]",
        float(np.abs(vectors @ change).max()),
        0.0,
        "whole numbers",
    )
    p, e = (_total(grid, state.mass_squared[0], n) for n in (before, after))
    yield nothing(
        f"{description}: momentum gained over energy",
        np.abs((e - p)[1:] / p[0]).max(),
        1e-13,
        "exact but for the rounding of these sums",
    )
    yield nothing(f"{description}: energy gained, relative", abs(e[0] / p[0] - 1), 1e-12,
                  "a quantum of 2^-44 for each of the events that land")  # fmt: skip
    fermion = model.statistics < 0
    beyond = max(-float(f1.min()), float((f1[fermion] - 1).max(initial=-1)), 0.0)
    yield nothing(f"{description}: f below 0 or, for fermions, above 1", beyond, 0.0, "limits")
    if length < 0.1:
        first, last = (_entropy(model, f) for f in (f0, f1))
        lost = max(1 - last / first, 0.0)
        yield nothing(f"{description}: entropy lost, relative", lost, 1e-12, "rounding")
        yield nothing(f"{description}: share of particles at rest", float((f1 == f0).mean()), 0.5,
                      "something must happen")  # fmt: skip


def _total(grid: PhaseSpace, m2: Array, number: Array) -> Array:
    """Return energy and momentum in quanta times GeV."""
    energy = sum(float(grid.energies(m) @ n) for m, n in zip(m2, number, strict=True))
    return np.array([energy, *(grid.momenta @ number.sum(axis=0))])


def _entropy(model: Model, f: Array) -> float:
    """Return the sum of N [eta F ln F - f ln f] over the nodes, F = 1 + eta f."""
    total = 0.0
    for row, species in zip(f, model.species, strict=True):
        full = 1 + species.statistics * row
        logs = [x * np.log(np.maximum(x, 1e-300)) for x in (full, row)]
        total += species.degeneracy * float((species.statistics * logs[0] - logs[1]).sum())
    return total
