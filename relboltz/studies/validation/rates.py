"""Absolute rates: 34 processes against quadrature, and three treatments of the delta function."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...grid.phase_space import PhaseSpace
from ...model.qcd import gluons, qcd
from ...run.collision_term import collision_term
from ...thermodynamics import thermal
from ...util.arrays import Array
from . import quadrature
from .rows import Comparison, ValidationEffort, nothing, relative

T, MG2, MQ2, ALPHA = 0.2, 0.25, 0.12, 0.3
"""Temperature [GeV], squared masses of gluons and quarks [GeV^2], coupling."""
MODEL = qcd(ALPHA, masses={"g": MG2**0.5, "quarks": MQ2**0.5})


def expected_rates() -> dict[str, float]:
    """Rates [fm^-4] in a thermal gas at rest, by quadrature in unlimited momentum space."""
    m2 = dict(zip(MODEL.names, MODEL.constant_mass_squared, strict=True))
    return quadrature.rates(T, dict.fromkeys(MODEL.names, 0.0), m2, MG2, ALPHA)


def sampled_rates(samples: int = 4, batches: int = 16, **options: Any) -> dict[str, Array]:
    """Return (rate, reverse, error) by name from sampled events on 30^3 nodes.

    On these nodes the grid and its edge cost 0.2 % at most (measured with errors of 0.05 %: -0.15 %
    u u, -0.19 % u ubar -> g g, -0.04 % u ubar -> d dbar).
    """
    grid = PhaseSpace(30, 14 * T)
    f = thermal(grid, MODEL, T, np.zeros(7), np.zeros(3), MODEL.constant_mass_squared)
    ds = collision_term(MODEL, grid, f, samples=samples, batches=batches, **options)
    columns = np.stack([ds.rate.values, ds.rate_reverse.values, ds.rate_error.values], axis=1)
    return dict(zip(ds.process.values.tolist(), columns, strict=True))


def absolute_rates(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare all rates with quadrature: conservation laws do not test factors of the rows."""
    expected = expected_rates()
    found = sampled_rates(3 if effort.quick else 16, 16, **effort.options)
    missing = sorted(set(expected) ^ set(found))
    description = f"processes of the model that quadrature has not, or the reverse {missing or ''}"
    yield nothing(description.strip(), len(missing), 0.0, "the same list")
    for name, value in expected.items():
        if name in found:
            rate, _, error = found[name]
            yield relative(
                f"{name} [fm^-4]", rate, value, 0.002 + 3.5 * error / value,
                "0.2 % of grid and edge, and 3.5 standard errors",
            )  # fmt: skip


# --- three samplings ------------------------------------------------------------------------------

CELLS = 16, 24
"""Nodes per axis; results are extrapolated to h = 0."""


def rates_by_sampling(
    sampling: str, cells: int, samples: int, effort: ValidationEffort
) -> tuple[Array, Array]:
    """Return d<p^4>/dt [GeV^4/fm] and the rate [fm^-4] of massive gluons, with errors.

    Uses nearest cells, the only projection that the samplings through k2 and k3 support.
    """
    grid = PhaseSpace(cells, 2.0)
    model = gluons(0.3, masses={"g": 0.7})
    f = 0.4 * np.exp(-grid.momentum_squared / 0.8)[None]
    p4 = grid.momentum_squared**2
    found = []
    for seed in range(16):
        term = collision_term(
            model, grid, f, samples=samples, batches=2, projection="nearest", kinematics=sampling,
            pair_sampling="uniform", **effort.options | {"seed": effort.seed + seed},
        )  # fmt: skip
        moment = float(term.collision_term.values.ravel() @ p4 / f.sum())
        found.append((moment, float(term.rate[0])))
    values = np.array(found)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def three_samplings(effort: ValidationEffort) -> Iterator[Comparison]:
    """Compare the rates from sampling in the centre-of-mass frame, through k2 and through k3.

    Nearest cells heat the gas by O(h^2), more so if k3 is not a node either, as in sampling through
    k2 and k3; extrapolation removes this error.
    """
    results = {}
    h2 = (4.0 / np.array(CELLS)) ** 2
    weight = np.linalg.inv(np.stack([h2**0, h2], axis=1))[0]
    for way in ("cm", "k2", "k3"):
        many = 1 if way == "cm" else 3  # their weights fluctuate more
        both = [
            rates_by_sampling(way, n, many * (s if effort.quick else 8 * s), effort)
            for n, s in zip(CELLS, (20, 12), strict=True)
        ]
        values, errors = (np.array(column) for column in zip(*both, strict=True))
        results[way] = weight @ values, np.sqrt(weight**2 @ errors**2)
    middle, error = results["cm"]
    for way in ("k2", "k3"):
        value, own = results[way]
        for i, description in enumerate(("d<p^4>/dt [GeV^4/fm]", "collisions [fm^-4]")):
            combined = float(np.hypot(error[i], own[i]) / middle[i])
            yield relative(
                f"{description}, {way} against cm, h -> 0", value[i], middle[i],
                3.5 * combined + (0.02, 0.005)[i],
                "3.5 standard errors, and h^4 of the nearest cells",
            )  # fmt: skip
