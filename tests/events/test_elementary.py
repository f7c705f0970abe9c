"""Polynomial exponentials and circle against the C library, to the accuracy they state."""

import math

import numpy as np
import pytest

from relboltz.backends.physics import compiled
from relboltz.events import elementary

WIDE = [float(x) for x in np.linspace(-707.9, 707.9, 20001)]
NEAR = [float(x) for x in np.linspace(-3, 3, 20001)]
TINY = [sign * base * 10.0**-k for k in range(1, 307) for base in (1, 3.7) for sign in (1, -1)]


def worst(ours, theirs, values):
    """Largest relative difference."""
    return max(abs(ours(x) - theirs(x)) / abs(theirs(x)) for x in values if theirs(x) != 0)


@pytest.mark.parametrize("values", [WIDE, NEAR, TINY], ids=["wide", "near", "tiny"])
def test_exp_is_accurate_to_1e_15(values):
    """e^x over the whole range of a double."""
    assert worst(elementary.exp, math.exp, values) < 1e-15


@pytest.mark.parametrize("values", [WIDE, NEAR, TINY], ids=["wide", "near", "tiny"])
def test_expm1_is_accurate_to_1e_15(values):
    """e^x - 1 keeps its relative accuracy for arguments down to 1e-306."""
    assert worst(elementary.expm1, math.expm1, values) < 1e-15


def test_expm1_of_zero_is_exactly_zero():
    """Equilibrium moves nothing because of this."""
    assert elementary.expm1(0.0) == 0.0 and elementary.exp(0.0) == 1.0
    assert compiled.expm1(0.0) == 0.0 and compiled.exp(0.0) == 1.0


def test_exp_saturates_at_708():
    """Arguments beyond +-708 give the value at +-708: finite, and never 0."""
    assert elementary.exp(1e6) == elementary.exp(708.0) == pytest.approx(math.exp(708), rel=1e-15)
    assert elementary.exp(-1e6) == elementary.exp(-708.0) > 0


@pytest.mark.parametrize("function", ["exp", "expm1"])
def test_exponentials_meet_at_the_reduction_boundaries(function):
    """No jump where x = (k + 1/2) ln 2 changes the power of two."""
    for k in range(-20, 21):
        edge = (k + 0.5) * math.log(2)
        values = [math.nextafter(edge, -math.inf), edge, math.nextafter(edge, math.inf)]
        assert worst(getattr(elementary, function), getattr(math, function), values) < 1e-15


def test_circle_is_accurate_to_1e_13():
    """(cos, sin) of 2 pi u on [0, 1], ends included."""
    for u in (float(v) for v in np.linspace(0, 1, 4001)):
        cosine, sine = elementary.circle(u)
        assert abs(cosine - math.cos(2 * math.pi * u)) < 1e-13
        assert abs(sine - math.sin(2 * math.pi * u)) < 1e-13


def test_circle_runs_counter_clockwise_from_the_x_axis():
    """Quadrants in order."""
    for u, expected in [(0, (1, 0)), (0.25, (0, 1)), (0.5, (-1, 0)), (0.75, (0, -1)), (1, (1, 0))]:
        assert elementary.circle(u) == pytest.approx(expected, abs=1e-9)


def test_compiled_functions_give_the_same_numbers():
    """Python and compiled agree to 1e-14."""
    for x in [*WIDE[::500], *NEAR[::500], *TINY[::50]]:
        assert compiled.exp(x) == pytest.approx(elementary.exp(x), rel=1e-14)
        assert compiled.expm1(x) == pytest.approx(elementary.expm1(x), rel=1e-14, abs=0)
    for u in (0.0, 0.1, 0.37, 0.5, 0.81, 1.0):
        assert compiled.circle(u) == pytest.approx(elementary.circle(u), rel=1e-14, abs=1e-15)
