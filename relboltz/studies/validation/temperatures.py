"""Heat and particle exchange between gluons, quarks and antiquarks at different temperatures.

Each species is thermal with its own temperature and a constant mass. No process is in balance, so
that a wrong weight, leg, or Bose or Fermi factor shows in the flow between species. The exact
values are integrals without a grid (``isotropic``).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...model.qcd import qcd
from ...run.collision_term import collision_term
from ...util.arrays import Array
from . import quadrature
from .isotropic import ScatteringSpecies, collisions, one
from .rows import Comparison, ValidationEffort, relative

MG2, MQ2, ALPHA = 0.2, 0.16, 0.3
"""Squared masses of gluons and quarks [GeV^2], coupling; the gluon mass is the screening mass."""
THERMAL = {"g": (0.3, 0.0), "u": (0.2, 0.1), "ubar": (0.25, 0.0)}
"""Temperature and chemical potential of each species [GeV]."""
BOX = 3.6
"""Half width [GeV]: 12 times the highest temperature."""
HIGHEST = 8.0
"""Largest energy of a pair in the integrals [GeV]: exp(-26) for a pair of gluons."""


def occupation(name: str, energy: Array) -> Array:
    """Return f of a species at an energy [GeV]."""
    temperature, mu = THERMAL[name]
    return np.asarray(1 / (np.exp((energy - mu) / temperature) - (1 if name == "g" else -1)))


def leg(name: str) -> ScatteringSpecies:
    """Return a species in the form that the integrals use."""
    mass2, statistics = (MG2, 1) if name == "g" else (MQ2, -1)
    return ScatteringSpecies(mass2, partial(occupation, name), statistics)


def integrated(points: int = 16) -> dict[str, float]:
    """Return rates [fm^-4] and gains by species [fm^-4, GeV fm^-4]; 16 points: to 4e-4."""
    names = ("g", "u", "ubar")
    gains = {
        **dict.fromkeys((f"dN/dt of {a}" for a in names), 0.0),
        **dict.fromkeys((f"dE/dt of {a}" for a in names), 0.0),
    }
    rates = {}
    for description, element, identical in (
        ("u g -> u g", quadrature.qg_qg, 1),
        ("ubar g -> ubar g", quadrature.qg_qg, 1),
        ("u ubar -> u ubar", quadrature.pair_same_pair, 1),
        ("u ubar -> g g", quadrature.qqbar_gg, 2),
        ("g g -> u ubar", quadrature.qqbar_gg, 2),
    ):
        legs = description.replace("->", "").split()
        a, b, c, d = (leg(name) for name in legs)
        energies: Any = {f"E{i}": lambda *e, i=i: e[i] + 0 * one(*e) for i in range(4)}
        found = collisions(
            partial(element, g4=(4 * np.pi * ALPHA) ** 2, m2=MG2), (a, b, c, d),
            {"rate": one, **energies}, HIGHEST, points,
        )  # fmt: skip
        rates[description] = found["rate"] / identical
        for i, name in enumerate(legs):
            sign = (-1 if i < 2 else 1) / identical
            gains[f"dN/dt of {name}"] += sign * found["rate"]
            gains[f"dE/dt of {name}"] += sign * found[f"E{i}"]
    return rates | {
        description: value for description, value in gains.items() if description != "dN/dt of ubar"
    }


def sampled(
    cells: int, samples: int, effort: ValidationEffort
) -> tuple[dict[str, float], dict[str, float]]:
    """Return rates and gains from events on nodes, and their standard errors, by name."""
    model = qcd(ALPHA, 1, masses={"g": MG2**0.5, "quarks": MQ2**0.5})
    grid = PhaseSpace(cells, BOX)
    energies = [grid.energies(m2) for m2 in model.constant_mass_squared]
    f = np.stack([occupation(a, e) for a, e in zip(model.names, energies, strict=True)])
    found: list[dict[str, float]] = []
    for number in range(8):
        options = effort.options | {"seed": effort.seed + number}
        term = collision_term(model, grid, f, samples=samples, batches=2, **options)
        values = dict(zip(term.process.values.tolist(), term.rate.values.tolist(), strict=True))
        values["g g -> u ubar"] = float(term.rate_reverse.sel(process="u ubar -> g g"))
        change = term.collision_term.values.reshape(f.shape)
        change = change * model.degeneracy[:, None] * grid.measure
        for name, own, e in zip(model.names, change, energies, strict=True):
            values |= {f"dN/dt of {name}": own.sum(), f"dE/dt of {name}": own @ e}
        found.append(values)
    table = {name: np.array([values[name] for values in found]) for name in found[0]}
    means = {name: float(values.mean()) for name, values in table.items()}
    scatter = {name: float(v.std(ddof=1) / np.sqrt(len(v))) for name, v in table.items()}
    return means, scatter


def two_temperatures(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare rates, particle and energy exchange on two grids, extrapolated in h^2."""
    more = 1 if effort.quick else 8
    coarse, fine = 24, 36
    (far, far_error), (near, near_error) = (
        sampled(n, more * samples, effort) for n, samples in ((coarse, 16), (fine, 7))
    )
    part = coarse**2 / (fine**2 - coarse**2)
    for name, exact in integrated().items():
        limit = near[name] + part * (near[name] - far[name])
        error = np.hypot((1 + part) * near_error[name], part * far_error[name])
        unit = "GeV fm^-4" if name.startswith("dE") else "fm^-4"
        yield relative(
            f"{name} [{unit}], h = {2 * BOX / coarse:g} and {2 * BOX / fine:g} GeV, h -> 0", limit,
            exact, 0.005 + 3.5 * error / abs(exact), "0.5 % of h^4 and box, 3.5 standard errors",
        )  # fmt: skip
