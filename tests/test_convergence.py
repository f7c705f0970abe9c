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


def test_a_bar_of_fourth_order_is_twice_what_three_values_tell():
    """With slopes that barely agree, 2 bent is the larger part of the bar."""
    tiny = np.full(1, 1e-20)
    base, fine, coarse = (
        Measured(one.value, tiny) for one in along(lambda h: 1.0 - 0.024 * h**2 + 0.02 * h**4)
    )
    found = power_law(base, fine, coarse, X, 1e12)  # as if all of it were noise
    steep = -(fine.value - base.value) / 0.75
    gentle = (coarse.value - base.value) / 1.25
    bent = abs(gentle - steep) * 0.25 / 2.0
    assert float(found.bar[0]) == pytest.approx(float(2 * bent[0]))
    assert float(2 * bent[0]) > convergence.HELD * abs(float(found.shift[0]))


def test_slopes_share_the_noise_of_the_middle():
    """Variance of a difference: a large B makes both slopes wrong in opposite directions."""
    draw, count = np.random.default_rng(2).normal, 200_000
    b, f, c = 1.0 * draw(size=count), 0.5 * draw(size=count), 0.7 * draw(size=count)
    measured = [Measured(v, np.full(count, s**2)) for v, s in ((b, 1.0), (f, 0.5), (c, 0.7))]
    own, other, mixed = convergence._slope_variances(*measured, X)
    steep, gentle = (b - f) / 0.75, (c - b) / 1.25
    for values, variance in ((steep, own), (gentle, other), (gentle - steep, mixed)):
        assert values.var() == pytest.approx(float(variance[0]), rel=0.02)  # 4 sqrt(2/N)


def test_noise_of_the_limit_is_that_of_its_terms():
    """The weight of B is what the shifts leave of it: measured on made-up runs."""
    draw, count = np.random.default_rng(3).normal, 100_000
    b, f, w = (s * draw(size=count) for s in (1.0, 0.5, 0.9))
    base, fine, wide = (
        Measured(v, np.full(count, s**2)) for v, s in ((b, 1.0), (f, 0.5), (w, 0.9))
    )
    shifts = [exponential(base, wide, 0.2), power_law(base, fine, None, X, 3.5)]
    found = limit(base, shifts, 1.0)
    assert found.value.std() == pytest.approx(float(found.noise[0]), rel=0.02)


def test_a_coarse_run_without_a_value_leaves_the_others():
    base = Measured(np.array([1.0, 1.0]), np.zeros(2))
    fine = Measured(np.array([1.1, 1.1]), np.zeros(2))
    coarse = Measured(np.array([np.nan, 0.8]), np.zeros(2))
    found, alone = (power_law(base, fine, one, X, 3.5) for one in (coarse, None))
    assert found.bar[0] == alone.bar[0] and found.shift[0] == alone.shift[0]
    assert np.isfinite(found.bar).all() and np.isfinite(found.noise()).all()
