"""Absolute collision rates: a wrong factor in one row would pass every conservation law."""

import numpy as np
import pytest
import quadrature

import relboltz as rb
from relboltz import equilibrium

T, MG2, MQ2, ALPHA = 0.2, 0.25, 0.12, 0.3
MODEL = rb.qcd(ALPHA, masses={"g": MG2**0.5, "quarks": MQ2**0.5})


@pytest.fixture(scope="module")
def sampled():
    """Rates of all processes in a thermal gas at rest, with errors.

    On these nodes grid and edge cost 0.2 % at most (measured with errors of 0.05 %: -0.15 % u u,
    -0.19 % u ubar -> g g, -0.04 % u ubar -> d dbar), less than the statistical errors here.
    """
    grid = rb.PhaseSpace(30, 14 * T)
    f = equilibrium.thermal(grid, MODEL, T, np.zeros(7), np.zeros(3), MODEL.constant_mass_squared)
    return rb.collision_term(MODEL, grid, f, samples=2, batches=64)


@pytest.fixture(scope="module")
def expected():
    """The same by deterministic quadrature in unlimited momentum space."""
    m2 = dict(zip(MODEL.names, MODEL.constant_mass_squared, strict=True))
    return quadrature.rates(T, dict.fromkeys(MODEL.names, 0.0), m2, MG2, ALPHA)


@pytest.mark.parametrize("name", [process.name for process in MODEL.processes])
def test_the_rate_of_every_process_agrees_with_quadrature(name, sampled, expected):
    """Within 3 standard errors, beside the 0.2 % that grid and edge cost, and within 1 %."""
    rate, reverse, error = (
        float(sampled[key].sel(process=name)) for key in ("rate", "rate_reverse", "rate_error")
    )
    assert abs(rate - expected[name]) < 3 * error + 0.002 * expected[name]
    assert rate == pytest.approx(expected[name], rel=0.01)
    assert reverse == pytest.approx(rate, rel=1e-12)


def test_the_list_of_processes_is_the_same(expected):
    """The quadrature's own list of 34 processes is the model's."""
    assert set(expected) == {process.name for process in MODEL.processes}
    assert len(MODEL.processes) == 34
