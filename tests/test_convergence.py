"""Limits and error bars from values whose law is known, with and without noise."""

import numpy as np
import pytest
from scipy import stats

from relboltz import convergence
from relboltz.convergence import Measured, exponential, holding, limit, power_law, unbiased

X = 0.25, 2.25
"""h^2 of h/2 and 1.5 h."""


def exact(*values):
    """Values without noise."""
    return [Measured(np.array([v]), np.zeros(1)) for v in values]


def along(law):
    """A law of h at h, h/2, 1.5 h."""
    return exact(law(1.0), law(0.5), law(1.5))


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 12, 31])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_students_t_is_that_of_the_tables(freedom, level):
    """1e-9: what bisection leaves."""
    found = convergence.students_t(freedom, level)
    assert found == pytest.approx(stats.t.ppf(0.5 + level / 2, freedom), rel=1e-9)


def test_an_error_of_second_order_is_extrapolated_away():
    """a + b h^2 leads to a, up to rounding, and the bar is HELD of the way."""
    base, fine, coarse = along(lambda h: 3.0 + 0.2 * h**2)
    found = power_law(base, fine, coarse, X, 3.5)
    assert found.shown.all()
    assert base.value + found.shift == pytest.approx(3.0, abs=1e-14)
    assert found.bar == pytest.approx(convergence.HELD * 0.2)


@pytest.mark.parametrize("bend", [-0.025, -0.01, 0.01, 0.05])
def test_a_term_of_fourth_order_stays_within_the_bar(bend):
    """a + b h^2 + c h^4: Richardson misses c/4, and three values know it."""
    base, fine, coarse = along(lambda h: 1.0 + 0.2 * h**2 + bend * h**4)
    found = power_law(base, fine, coarse, X, 3.5)
    assert found.shown.all()
    missed = float(base.value[0] + found.shift[0] - 1.0)
    assert missed == pytest.approx(-bend / 4)
    assert abs(missed) <= found.bar[0]


@pytest.mark.parametrize("order", [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0])
def test_limits_of_any_order_from_the_first_on_are_held(order):
    """Whether it is extrapolated or not; so is a run with 0.7 of the spacing."""
    base, fine, coarse = along(lambda h: 2.0 - 0.3 * h**order)
    found = power_law(base, fine, coarse, X, 3.5)
    limit = float(base.value[0] + found.shift[0])
    for other in (2.0, 2.0 - 0.3 * 0.7**order):
        assert abs(limit - other) <= float(found.bar[0]) * (1 + 1e-12)


@pytest.mark.parametrize("order", [1.0, 3.5, 4.0])
def test_another_order_is_not_extrapolated(order):
    """The limit is the finest value; from first order on the change holds what is left."""
    base, fine, coarse = along(lambda h: 2.0 - 0.3 * h**order)
    found = power_law(base, fine, coarse, X, 3.5)
    assert not found.shown.any()
    assert base.value + found.shift == pytest.approx(fine.value)
    assert abs(float(fine.value[0]) - 2.0) <= float(found.bar[0]) * (1 + 1e-12)


def test_two_values_alone_show_no_order():
    base, fine, _ = along(lambda h: 2.0 - 0.3 * h)
    found = power_law(base, fine, None, X, 3.5)
    assert not found.shown.any() and float(found.bar[0]) == pytest.approx(0.15)


@pytest.mark.parametrize("decay", [0.1, 0.4, 0.8])
def test_what_a_box_cuts_off_is_held(decay):
    """An effect that falls by ``decay`` from box to box: what remains is within the bar."""
    base, larger = exact(5.0 + 0.3, 5.0 + 0.3 * decay)
    found = exponential(base, larger, decay)
    assert abs(float(base.value[0] + found.shift[0]) - 5.0) <= float(found.bar[0]) * (1 + 1e-9)


def test_the_tail_of_a_thermal_gas_falls_as_its_integral():
    """p^5 exp(-p/T) beyond a width against incomplete gamma functions: within a factor 1.5."""
    from scipy.special import gammaincc

    for width, t in ((2.0, 0.38), (4.85, 0.3866), (3.0, 0.5)):
        true = gammaincc(6, 1.25 * width / t) / gammaincc(6, width / t)
        assert 1 / 1.5 < convergence.tail(width, 1.25 * width, t) / true < 1.5
    assert convergence.tail(1.0, 1.25, 2.0) == 0.9
    assert convergence.tail(1.0, 1.25, float("nan")) == 0.5


def test_a_bias_of_few_samples_is_found_and_held():
    """Of order 1/samples: extrapolated; of order 1/sqrt(samples): within the bar."""
    noise = np.full(1, 1e-12)
    base, more = Measured(np.array([1.4]), noise), Measured(np.array([1.1]), noise)
    found = unbiased(base, more, 4.0, 3.5)
    assert found.shown.all() and base.value + found.shift == pytest.approx(1.0)
    base, more = Measured(np.array([1.4]), noise), Measured(np.array([1.2]), noise)
    found = unbiased(base, more, 4.0, 3.5)
    assert abs(float(base.value[0] + found.shift[0]) - 1.0) <= float(found.bar[0]) * (1 + 1e-9)


def test_a_bar_can_hold_other_runs_too():
    """A run that the knob moves by 1.5 shifts the other way lies within."""
    base, fine, coarse = along(lambda h: 3.0 + 0.2 * h**2)
    found = holding(power_law(base, fine, coarse, X, 3.5), 1.5)
    assert float(found.bar[0]) >= 1.5 * 0.2


def test_what_is_not_there_stays_unknown():
    """NaN in one run is NaN in the limit, and nowhere else."""
    base = Measured(np.array([1.0, 1.0]), np.zeros(2))
    fine = Measured(np.array([np.nan, 1.1]), np.zeros(2))
    found = limit(base, [power_law(base, fine, None, X, 3.5)], 3.5)
    assert np.isnan(found.value[0]) and np.isnan(found.error[0])
    assert found.value[1] == pytest.approx(1.1)


@pytest.mark.parametrize("slope", [0.0, 0.3, 3.0, 30.0])
@pytest.mark.parametrize("seeds", [4, 8])
def test_error_bars_hold_the_truth_as_often_as_they_say(slope, seeds):
    """Made-up runs of a known law, errors from 0 to 30 times the noise of a run: 99 % at least.

    4000 of them: a true 99 % gives 98.4 % or more but once in 10^4 (binomial, 3.7 sigma).
    """
    draw, count = np.random.default_rng(5).normal, 4000
    single = 1.0
    runs = 10.0 + slope * (1 + 0.3 + 0.5) + draw(size=(seeds, count))
    spread = runs.var(axis=0, ddof=1)
    base = Measured(runs.mean(axis=0), spread / seeds)

    def run(h2, tail, steps, variance):
        value = 10.0 + slope * (h2 + 0.3 * tail + 0.5 * steps)
        return Measured(value + draw(size=count) * np.sqrt(variance * single), spread * variance)

    t = convergence.students_t(seeds - 1)
    shifts = [
        power_law(base, run(0.25, 1, 1, 1 / 8), run(2.25, 1, 1, 3.4), X, t),
        exponential(base, run(1, 0.2, 1, 1), 0.2),
        power_law(base, run(1, 1, 0.25, 1), run(1, 1, 4, 2), (0.25, 4.0), t),
        unbiased(base, run(1, 1, 1, 0.25), 4.0, t),
    ]
    found = limit(base, shifts, t)
    held = np.abs(found.value - 10.0) <= found.error
    assert held.mean() >= 0.984
    assert found.error.mean() < 12 * (1 + 0.2 * slope)  # and they are not just wide
