"""Report of a collision step, for all sites together."""

import numpy as np
import pytest

from relboltz.events.collisions import Flows
from relboltz.stepping.step_report import StepReport, from_rows, mean_flows, to_rows

NONE = Flows(np.zeros(1), np.zeros(1), 0.0, 0.0)


def test_no_place_counts_for_more_than_twice_the_mean_where_that_is_asked_for():
    """Ratios 0.1, 0.1 and 3, of places that move 500, 499 and 1: a mean of 0.1029."""
    report = StepReport(0.1, [(50, 500, 100), (50, 499, 100), (3, 1, 1)], NONE)
    assert report.change_ratio(1e-3) == pytest.approx(3.0)
    assert report.change_ratio(1e-3, spread=2.0) == pytest.approx(2 * 103 / 1000)
    even = StepReport(0.1, [(50, 500, 100), (52, 500, 100)], NONE)
    assert even.change_ratio(1e-3, spread=2.0) == even.change_ratio(1e-3) == 0.104
    still = StepReport(0.1, [(0, 0, 100)], NONE)
    assert still.change_ratio(1e-3, spread=2.0) == 0.0


def test_the_busiest_site_decides_on_the_step():
    """Change of C relative to C, where the error is more than rounding."""
    counts = [(10**6, 10**7, 10**9), (30, 10, 10**12), (0, 0, 0)]
    report = StepReport(0.1, counts, NONE, (1.0, 0.0), np.zeros(3), (1.0, 4.0))
    assert report.change_ratio(1e-3) == pytest.approx(0.1)
    assert report.noise_ratio == 0.25
    assert report.error == pytest.approx((10**6 + 30) / (10**9 + 10**12))


def test_rounding_counts_where_there_is_nothing_else():
    report = StepReport(0.1, [(30, 10, 10**12), (1, 4, 10**12)], NONE)
    assert report.change_ratio(1e-3) == pytest.approx(3.0)


def test_what_limits_refused_is_weighed_with_what_moved():
    report = StepReport(0.1, [(0, 300, 1), (0, 100, 1)], NONE, limited=np.array([0.0, 0.2]))
    assert report.limited_weight == pytest.approx(0.05)


def test_reports_travel_as_rows_to_the_last_bit():
    """Also counts that 64 bits do not hold."""
    flows = Flows(np.array([0.1, 0.2]), np.array([1 / 3, 1e-300]), 0.0, 0.0, np.ones((2, 2)) / 7)
    one = StepReport(0.1, [(2**64 + 5, 3, 2**63)], flows, (0.3, 0.1), np.array([0.7]), (1e-9, 2.0))
    (again,) = from_rows(0.1, *to_rows([one]))
    assert again.counts == one.counts and again.drawn == one.drawn and again.noise == one.noise
    assert again.limited == one.limited
    for name in ("forward", "backward", "signed"):
        assert np.array_equal(getattr(again.flows, name), getattr(flows, name))


def test_sites_together_are_the_sum_of_sites_and_the_mean_of_their_rates():
    one, two = (
        StepReport(
            0.1, [(k, 2 * k, 3 * k)], Flows(np.array([k]), np.array([2.0]), 0.0, 0.0),
            (1.0 * k, 0.25), np.array([0.1 * k]), (1.0, 1.0 * k),
        )
        for k in (1, 3)
    )  # fmt: skip
    both = StepReport.of([one, two])
    assert both.counts == [(1, 2, 3), (3, 6, 9)] and both.limited.tolist() == pytest.approx(
        [0.1, 0.3]
    )
    assert both.null_weight == 0.5 / 4.0 and both.noise == (2.0, 4.0)
    assert both.flows.forward.tolist() == [2.0] and both.flows.backward.tolist() == [2.0]
    assert mean_flows([one.flows]) is one.flows


def test_nothing_is_no_error():
    report = StepReport.nothing(3, 0.1)
    assert report.error == report.null_weight == report.limited_weight == report.noise_ratio == 0
    assert report.change_ratio(1e-3) == 0 and len(report.counts) == 3
