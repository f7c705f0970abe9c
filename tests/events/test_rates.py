"""Absolute collision rates: a wrong factor in one row would pass every conservation law."""

import pytest

from relboltz.studies.validation.rates import MODEL, expected_rates, sampled_rates


@pytest.fixture(scope="module")
def sampled():
    """Rates of all processes in a thermal gas at rest, reversed, and their errors."""
    return sampled_rates(samples=4, batches=16)


@pytest.fixture(scope="module")
def expected():
    """Return the rate by deterministic quadrature in unlimited momentum space."""
    return expected_rates()


@pytest.mark.parametrize("name", [process.name for process in MODEL.processes])
def test_the_rate_of_every_process_agrees_with_quadrature(name, sampled, expected):
    """Within 3 standard errors, beside the 0.2 % that grid and edge cost, and within 1 %."""
    rate, reverse, error = sampled[name]
    assert abs(rate - expected[name]) < 3 * error + 0.002 * expected[name]
    assert rate == pytest.approx(expected[name], rel=0.01)
    assert reverse == pytest.approx(rate, rel=1e-12)


def test_the_list_of_processes_is_the_same(expected):
    """The quadrature's own list of 34 processes is the model's."""
    assert set(expected) == {process.name for process in MODEL.processes}
    assert len(MODEL.processes) == 34
