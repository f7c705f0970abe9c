"""Collisions of step initial conditions without a grid: reference rates and moments for runs.

The state is homogeneous and isotropic: f_g = 0.5 for |p| < 1.5 GeV and 0 above, alpha_s = 0.3,
self-consistent thermal masses (m_g^2 = g^2 (3/8) Y_g, m_q^2 = g^2 (1/6) Y_g with Y_g =
16 Int d^3p/(2 pi)^3 f_g/E), and m_g as the screening mass. There are no quarks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...checks.box import automatic_grid
from ...grid.phase_space import PhaseSpace
from ...grid.units import HBARC
from ...initial import evaluate, starting_states, step
from ...model.model import Model
from ...model.qcd import gluons, qcd
from ...run.collision_term import collision_term
from ...run.solve import solve
from ...util.arrays import Array
from . import quadrature
from .isotropic import ScatteringSpecies, Weight, collisions, one
from .rows import Comparison, ValidationEffort, relative

REFERENCES: dict[str, tuple[float, float]] = {
    "rate g g -> g g": (266.57, 0.09),
    "d<p^2>/dt": (0.2767, 0.0002),
    "d<p^4>/dt": (3.363, 0.002),
    "rate g g -> u ubar": (1.4419, 0.0003),
    "dN_quarks/dt": (8.652, 0.002),
}
"""Values and their errors, from a program that shares nothing with this package.

rate g g -> g g : collisions per volume and time, with the Bose factors (1 + f) [fm^-4]
d<p^2>/dt, d<p^4>/dt : Int p^n C[f_g] / Int f_g with g g -> g g alone [GeV^2/fm, GeV^4/fm]
rate g g -> u ubar : ``rate_reverse`` of the process "u ubar -> g g" [fm^-4]
dN_quarks/dt : production of quarks and antiquarks of three flavours together [fm^-4]
"""

GLUONS = ("rate g g -> g g", "d<p^2>/dt", "d<p^4>/dt")
QUARKS = ("rate g g -> u ubar", "dN_quarks/dt")
ALPHA, HEIGHT, EDGE = 0.3, 0.5, 1.5
START = {"g": step(height=HEIGHT, edge=EDGE)}


# --- without a grid -------------------------------------------------------------------------------


def thermal_masses() -> tuple[float, float]:
    """Return m_g^2 and m_q^2 [GeV^2] of the gap equation; the integral for a step is elementary."""
    m2 = 0.5
    for _ in range(60):
        root = np.sqrt(EDGE**2 + m2)
        integral = 0.5 * (EDGE * root - m2 * np.arcsinh(EDGE / np.sqrt(m2)))
        y = 16 * HEIGHT * integral / (2 * np.pi**2)
        m2 = 4 * np.pi * ALPHA * 3 / 8 * y
    return float(m2), float(m2 * (1 / 6) / (3 / 8))


def integrated(points: int = 12) -> dict[str, float]:
    """Return the five numbers by quadrature; 12 points give errors of 2e-5 (against 16 points)."""
    gluon2, quark2 = thermal_masses()
    top = float(np.sqrt(EDGE**2 + gluon2))
    gluon = ScatteringSpecies(gluon2, lambda e: np.where(e < top, HEIGHT, 0.0), 1, jump=top)
    quark = ScatteringSpecies(quark2, np.zeros_like, -1)
    coupling: dict[str, Any] = {"g4": (4 * np.pi * ALPHA) ** 2, "m2": gluon2}

    def rise(n: int) -> Weight:
        def weight(e1: Array, e2: Array, e3: Array, e4: Array) -> Array:
            squares = (e * e - gluon2 for e in (e3, e4, e1, e2))
            c, d, a, b = (p2 ** (n // 2) for p2 in squares)
            return np.asarray(c + d - a - b)

        return weight

    elastic = collisions(
        partial(quadrature.gg_gg, **coupling), (gluon,) * 4,
        {"rate": one, "2": rise(2), "4": rise(4)}, 2 * top, points,
    )  # fmt: skip
    pairs = collisions(
        partial(quadrature.qqbar_gg, **coupling), (gluon, gluon, quark, quark), {"rate": one},
        2 * top, points,
    )["rate"] / 2  # fmt: skip
    density = 16 * HEIGHT * EDGE**3 / (6 * np.pi**2) / HBARC**3
    values = [elastic[key] / 4 for key in ("rate", "2", "4")]  # identical particles on both sides
    values = [values[0], values[1] / density, values[2] / density, pairs, 6 * pairs]
    return dict(zip(REFERENCES, values, strict=True))


# --- on nodes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepStartGrid:
    """A grid, samples per node, and the number of independent estimates."""

    grid: PhaseSpace
    samples: int
    estimates: int = 8


def model_of(name: str) -> Model:
    """Return gluons with g g -> g g, or gluons and u quarks with u ubar -> g g alone."""
    if name in GLUONS:
        return gluons(ALPHA)
    full = qcd(ALPHA, flavors=1)
    pairs = [process for process in full.processes if process.name == "u ubar -> g g"]
    return Model(full.species, pairs, mass_coupling=full.mass_coupling, screening=full.screening)


def sampled(
    names: Sequence[str], setup: StepStartGrid, effort: ValidationEffort
) -> tuple[Array, Array]:
    """Return values by name and their standard errors, from C[f] of averages over cells."""
    grid, model = setup.grid, model_of(names[0])
    p2 = grid.momentum_squared
    found = []
    for number in range(setup.estimates):
        options = effort.options | {"seed": effort.seed + number}
        term = collision_term(model, grid, START, samples=setup.samples, batches=2, **options)
        change = term.collision_term.values.reshape(len(model.species), -1)
        if names is GLUONS:
            f = evaluate(starting_states(START, model), grid, model)[0]
            moments = [change[0] @ p2 ** (n // 2) / f.sum() for n in (2, 4)]
            found.append([float(term.rate[0]), *moments])
        else:
            quarks = 6 * change[1:].sum() * grid.measure
            found.append([float(term.rate_reverse[0]), 3 * quarks])
    values = np.array(found)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


SLOPE = 0.1
"""Upper bound on the relative error over the spacing [GeV^-1]: 0.03 to 0.09 from h = 0.1 to 0.3
GeV.
"""
CURVATURE = 0.8
"""Upper bound on the coefficient of h^2 in the relative error [GeV^-2]: a h + b h^2 was measured at
h = 0.2, 0.1 and 0.05 GeV.
"""


def collisions_of_a_step(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare quadratures of C[f] with independent numbers, and the nodes with the quadratures."""
    expected = integrated()
    for name, (value, error) in REFERENCES.items():
        yield relative(f"{name}: quadrature against an outside number", expected[name], value,
                       3 * error / value, "3 errors of that number")  # fmt: skip
    more = 1 if effort.quick else 8
    for names, box, fine in ((GLUONS, 2.6, 0.05), (QUARKS, 2.8, 0.07)):
        cells = round(2 * box / fine)
        setups = [
            StepStartGrid(PhaseSpace(n, box), k * more) for n, k in ((cells // 2, 6), (cells, 1))
        ]
        (far, far_error), (near, near_error) = (sampled(names, one, effort) for one in setups)
        limit, scatter = 2 * near - far, np.hypot(2 * near_error, far_error)
        rest = CURVATURE * 2 * fine**2
        for i, name in enumerate(names):
            exact = expected[name]
            yield relative(
                f"{name}, h = {2 * fine:g} and {fine:g} GeV, h -> 0", limit[i], exact,
                rest + 3.5 * scatter[i] / exact,
                f"{100 * rest:.1f} % of h^2 (at most 0.8/GeV^2) and 3.5 standard errors",
            )  # fmt: skip
    usual = automatic_grid(None, gluons(ALPHA), starting_states(START, gluons(ALPHA)))
    h = usual.spacing[0]
    for names in (GLUONS, QUARKS):
        values, errors = sampled(names, StepStartGrid(usual, 32 * more), effort)
        for i, name in enumerate(names):
            yield relative(
                f"{name}, usual spacing of {h:.3f} GeV", values[i], expected[name],
                SLOPE * h + 3.5 * errors[i] / expected[name],
                "first order in h: 0.1 h/GeV at most, and 3.5 standard errors",
            )  # fmt: skip
    ds = solve(gluons(ALPHA), usual, START, end=1e-3, every=1e-3, samples=128, **effort.solving)
    name = GLUONS[0]
    yield relative(
        f"{name} at the start of a run, usual spacing", ds.rate.values[0, 0], expected[name],
        SLOPE * h + 0.005, "first order in h: 0.1 h/GeV at most, and 0.5 % of noise",
    )  # fmt: skip
