"""Limits and error bars from values whose law is known, with and without noise."""

import numpy as np
import pytest
from scipy import stats

from relboltz.studies.convergence import extrapolation as convergence
from relboltz.studies.convergence.extrapolation import (
    NoisyValue,
    exponential,
    holding,
    limit,
    power_law,
    unbiased,
)

RATIOS = 0.5, 1.5
"""Lengths of the fine and the coarse run."""


def exact(*values):
    """Values without noise."""
    return [NoisyValue(np.array([v]), np.zeros(1)) for v in values]


def along(law):
    """A law of h at h, h/2, 1.5 h."""
    return exact(law(1.0), law(0.5), law(1.5))


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 12, 31])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_students_t_is_that_of_the_tables(freedom, level):
    """1e-9: what bisection leaves."""
    found = convergence.students_t(freedom, level)
    assert found == pytest.approx(stats.t.ppf(0.5 + level / 2, freedom), rel=1e-9)


@pytest.mark.parametrize("order", [1.0, 1.1, 1.9, 2.0, 2.5, 3.0])
def test_an_error_of_one_order_is_extrapolated_away(order):
    """a + k h^p: p is measured, the limit is a, and the bar reaches back to F at least."""
    base, fine, coarse = along(lambda h: 3.0 + 0.2 * h**order)
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert found.shown.all()
    assert found.order == pytest.approx(order, abs=1e-9)
    assert base.value + found.shift == pytest.approx(3.0, abs=1e-9)
    assert (found.bar >= abs(fine.value - 3.0) - 1e-9).all()


def test_a_first_order_error_is_not_called_second_order():
    """The g g -> g g rate of the step start, 7 % too low at h: 266.57 is held."""
    base, fine, coarse = along(lambda h: 266.57 * (1 - 0.07 * h))
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert found.order == pytest.approx(1.0, abs=1e-9)
    assert base.value + found.shift == pytest.approx(266.57, rel=1e-9)
    second = base.value - (base.value - fine.value) / 0.75
    assert abs(second[0] - 266.57) > 0.02 * 266.57  # where an extrapolation in h^2 would lead


@pytest.mark.parametrize("order", [1.2, 1.35, 1.5, 1.7])
def test_an_order_between_first_and_second_is_left_open(order):
    """Values may scatter around their law by 0.3: the bar holds the limits of orders 1 and 2."""
    base, fine, coarse = along(lambda h: 3.0 + 0.2 * h**order)
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert not found.shown.any() and found.order == 1.0 and np.isnan(found.order_error).all()
    change = fine.value - base.value
    for other in (3.0, fine.value + change, fine.value + change / 3):
        assert abs(base.value + found.shift - other) <= found.bar * (1 + 1e-12)


@pytest.mark.parametrize("bend", [-0.025, -0.01, 0.01, 0.05])
def test_a_term_of_fourth_order_stays_within_the_bar(bend):
    """a + b h^2 + c h^4: what one power misses of it."""
    base, fine, coarse = along(lambda h: 1.0 + 0.2 * h**2 + bend * h**4)
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert abs(base.value + found.shift - 1.0) <= found.bar


@pytest.mark.parametrize("order", [0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0])
@pytest.mark.parametrize("finer", [1 / 2, 31 / 61, 2 / 3])
def test_limits_of_any_order_are_held(order, finer):
    """Whether it is measured or not; so is a run with half the spacing of the finest."""
    base, fine, coarse = exact(*(2.0 - 0.3 * h**order for h in (1.0, finer, 1.5)))
    found = power_law(base, fine, coarse, (finer, 1.5), 3.5)
    limit = float(base.value[0] + found.shift[0])
    for other in (2.0, 2.0 - 0.3 * (finer / 2) ** order):
        assert abs(limit - other) <= float(found.bar[0]) * (1 + 1e-12)


def test_values_that_turn_round_have_no_order():
    """a + b h + c h^2 with its extremum among the runs: a itself, and a bar that reaches to F."""
    base, fine, coarse = along(lambda h: 5.0 - 0.4 * h + 0.2 * h**2)
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert not found.shown.any() and np.isnan(found.order).all()
    assert base.value + found.shift == pytest.approx(5.0)
    assert found.bar == pytest.approx(abs(fine.value - 5.0))


def test_values_that_differ_in_the_coarse_run_alone_have_no_order():
    """An order of 8: the limit is F, and the bar half of what first order says of C - B."""
    base, fine, coarse = along(lambda h: 2.0 - 0.3 * h**8)
    found = power_law(base, fine, coarse, RATIOS, 3.5)
    assert not found.shown.any() and np.isnan(found.order).all()
    assert base.value + found.shift == pytest.approx(fine.value)
    assert found.bar == pytest.approx(0.5 * 0.3 * (1.5**8 - 1))


def test_two_values_alone_show_no_order():
    base, fine, _ = along(lambda h: 2.0 - 0.3 * h)
    found = power_law(base, fine, None, RATIOS, 3.5)
    assert not found.shown.any() and float(found.bar[0]) == pytest.approx(0.15)
    assert np.isnan(found.order)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("size", [0.0, 2.0, 4.0, 10.0, 100.0])
def test_limits_are_held_whatever_the_order_and_the_noise(order, size):
    """Errors of 0 to 100 times the noise of a run, of eight seeds: 99 % hold the truth.

    4000 sequences: a true 99 % gives 98.4 % or more but once in 10^4 (binomial, 3.7 sigma).
    """
    draw, count, t = np.random.default_rng(7).normal, 4000, convergence.students_t(7)
    runs = 10.0 + size + draw(size=(8, count))
    spread = runs.var(axis=0, ddof=1)
    base = NoisyValue(runs.mean(axis=0), spread / 8)
    fine, coarse = (
        NoisyValue(10.0 + size * h**order + draw(size=count) * v**0.5, spread * v)
        for h, v in ((0.5, 1 / 8), (1.5, 3.4))
    )
    shift = power_law(base, fine, coarse, RATIOS, t)
    found = limit(base, [shift], t)
    assert (np.abs(found.value - 10.0) <= found.error).mean() >= 0.984
    if size == 100 and order != 1.5:
        assert shift.shown.mean() > 0.8
        assert (np.abs(shift.order - order) <= shift.order_error)[shift.shown].mean() > 0.99
    if size == 0:
        assert not shift.shown.mean() > 0.02  # noise alone has no order


def test_noise_excludes_orders_as_often_as_student_says(monkeypatch):
    """Made-up runs without scatter, B the noisiest: the true order is excluded in 1 %.

    100 000 of them: 0.01 is then known to 3 % of itself; 0.012 leaves room for 6 of that.
    """
    monkeypatch.setattr(convergence, "SCATTER", 0.0)
    draw, count = np.random.default_rng(2).normal, 100_000

    def kinds(size, order):
        """Orders of sequences with errors of this size."""
        noise = ((1.0, 1.0), (0.5, 0.5), (1.5, 0.7))
        made = [
            NoisyValue(size * h**order + s * draw(size=count), s**2 + 0 * runs) for h, s in noise
        ]
        return convergence._orders(*made, RATIOS, 2.576, 1.0)

    runs = np.zeros(count)
    found = kinds(200.0, 1.0)
    outside = np.abs(found.order - 1) > found.error
    assert (found.kind == convergence.MEASURED).mean() > 0.999
    assert outside.mean() == pytest.approx(0.01, abs=0.002)
    found = kinds(0.0, 1.0)
    assert (found.kind == convergence.HIDDEN).mean() > 0.93  # 95.4 % are not seen
    assert np.isin(found.kind, (convergence.TURNING, convergence.FLAT)).mean() < 0.012


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
    """Errors ~ 1/samples are extrapolated, errors ~ 1/sqrt(samples) lie within the bar."""
    noise = np.full(1, 1e-12)
    base, more = NoisyValue(np.array([1.4]), noise), NoisyValue(np.array([1.1]), noise)
    found = unbiased(base, more, 4.0, 3.5)
    assert found.shown.all() and base.value + found.shift == pytest.approx(1.0)
    base, more = NoisyValue(np.array([1.4]), noise), NoisyValue(np.array([1.2]), noise)
    found = unbiased(base, more, 4.0, 3.5)
    assert abs(float(base.value[0] + found.shift[0]) - 1.0) <= float(found.bar[0]) * (1 + 1e-9)


def test_a_bar_can_hold_other_runs_too():
    """A run that the knob moves by 1.5 shifts the other way lies within."""
    base, fine, coarse = along(lambda h: 3.0 + 0.2 * h**2)
    found = holding(power_law(base, fine, coarse, RATIOS, 3.5), 1.5)
    assert float(found.bar[0]) >= 1.5 * 0.2


def test_what_is_not_there_stays_unknown():
    """NaN in one run is NaN in the limit, and nowhere else."""
    base = NoisyValue(np.array([1.0, 1.0]), np.zeros(2))
    fine = NoisyValue(np.array([np.nan, 1.1]), np.zeros(2))
    found = limit(base, [power_law(base, fine, None, RATIOS, 3.5)], 3.5)
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
    base = NoisyValue(runs.mean(axis=0), spread / seeds)

    def run(h2, tail, steps, variance):
        value = 10.0 + slope * (h2 + 0.3 * tail + 0.5 * steps)
        return NoisyValue(value + draw(size=count) * np.sqrt(variance * single), spread * variance)

    t = convergence.students_t(seeds - 1)
    shifts = [
        power_law(base, run(0.25, 1, 1, 1 / 8), run(2.25, 1, 1, 3.4), RATIOS, t),
        exponential(base, run(1, 0.2, 1, 1), 0.2),
        power_law(base, run(1, 1, 0.25, 1), run(1, 1, 4, 2), (0.5, 2.0), t, usual=2.0),
        unbiased(base, run(1, 1, 1, 0.25), 4.0, t),
    ]
    found = limit(base, shifts, t)
    held = np.abs(found.value - 10.0) <= found.error
    assert held.mean() >= 0.984
    # and they are not just wide: noise of 2 F with 1/8, box 1, step 0.5, B of two to three times
    # 1/seeds; bars of at most 0.8 of what each knob changes, 1.8 slope in all
    assert found.noise.mean() < 2.5
    assert found.error.mean() < 2.5 * t + 0.8 * 1.8 * slope


def test_noise_of_the_limit_is_that_of_its_terms():
    """The weight of B is what the shifts leave of it: measured on made-up runs."""
    draw, count = np.random.default_rng(3).normal, 100_000
    b, f, w = (s * draw(size=count) for s in (1.0, 0.5, 0.9))
    base, fine, wide = (
        NoisyValue(v, np.full(count, s**2)) for v, s in ((b, 1.0), (f, 0.5), (w, 0.9))
    )
    shifts = [exponential(base, wide, 0.2), power_law(base, fine, None, RATIOS, 3.5)]
    found = limit(base, shifts, 1.0)
    assert found.value.std() == pytest.approx(float(found.noise[0]), rel=0.02)


def test_a_coarse_run_without_a_value_leaves_the_others():
    base = NoisyValue(np.array([1.0, 1.0]), np.zeros(2))
    fine = NoisyValue(np.array([1.1, 1.1]), np.zeros(2))
    coarse = NoisyValue(np.array([np.nan, 0.8]), np.zeros(2))
    found, alone = (power_law(base, fine, one, RATIOS, 3.5) for one in (coarse, None))
    assert found.bar[0] == alone.bar[0] and found.shift[0] == alone.shift[0]
    assert np.isfinite(found.bar).all() and np.isfinite(found.noise()).all()
