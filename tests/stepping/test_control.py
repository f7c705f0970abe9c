"""How long a step may be, and which masses it takes."""

import pytest

from relboltz.stepping.control import (
    CHANGE,
    FIRST_STEP,
    GROWTH,
    STABLE,
    adapted,
    largest_change,
    mean_during,
    step_length,
)


def learned(length, error, ratio, wanted=FIRST_STEP, tolerance=1e-3):
    return adapted(length, error, ratio, largest_change(tolerance, 0.0), wanted, tolerance)


def test_step_control_follows_error_and_change():
    """Grows while both are small, shrinks with either, rejects what was far too long."""
    stands, wanted = learned(FIRST_STEP, 1e-6, 0.01)
    assert stands and wanted == pytest.approx(GROWTH * FIRST_STEP)
    stands, wanted = learned(0.1, 1e-2, 0.1, wanted)
    assert not stands and wanted < 0.1 * 0.35
    assert not learned(0.1, 1e-5, 3 * CHANGE, wanted)[0]
    stands, shorter = learned(0.1, 1e-5, 1.1 * CHANGE, 0.1)
    assert stands and shorter < 0.1


def test_the_change_that_is_allowed_follows_tolerance_and_noise():
    assert largest_change(1e-5, 0.0) == pytest.approx(0.1 * CHANGE)  # finer with the tolerance
    assert largest_change(1e-3, 0.25) == pytest.approx(0.5 * CHANGE)  # and where there is noise
    assert largest_change(0.5, 0.0) == STABLE


def test_stops_are_met_without_tiny_steps():
    """A stop within reach is hit, one just beyond is split in two."""
    assert step_length(0.1, 0.1, True) == 0.1
    assert step_length(0.1, 0.11, True) == pytest.approx(0.055)
    assert step_length(0.1, 0.3, True) == 0.1
    assert step_length(0.1, 0.11, False) == 0.1  # a given step is that step


def test_the_extrapolated_mean_is_exact_for_parabolas():
    """Values 1 + t + t^2 at uneven times; a straight line with one past value; never below half."""
    a, b, c, d = (1 + t + t * t for t in (-0.3, -0.1, 0.0, 0.2))
    mean = mean_during(c, 0.2, 0.2, (c - b) / 0.1, 0.1, (b - a) / 0.2, 0.2)
    assert mean == pytest.approx(0.5 * (c + d), rel=1e-14)
    assert mean_during(2.0, 0.2, 0.2, 10.0, 0.1, 0.0, 0.0) == pytest.approx(3.0)
    assert mean_during(1.0, 0.5, 0.5, -10.0, 0.1, 0.0, 0.0) == pytest.approx(0.5)
    assert mean_during(1.0, 0.5, 0.5, 10.0, 0.1, 0.0, 0.0) == pytest.approx(2.0)
