"""The parts of a step, and the masses that each of them takes."""

import numpy as np

import relboltz as rb
from relboltz.stepping.control import mean_during
from relboltz.stepping.substeps import Substep, mean_squares, parts


def test_a_step_is_a_palindrome():
    """H_x/2 H_z/2 C H_z/2 H_x/2: homogeneous axes are left out."""
    found = parts(rb.PhaseSpace(4, 1.0, [2, 1, 3]))
    assert [part.axis for part in found] == [0, 2, None, 2, 0]
    assert [part.share for part in found] == [0.5, 0.5, 1.0, 0.5, 0.5]


def test_homogeneous_matter_only_collides_unless_it_is_pushed():
    class Push:
        axis = 1

    grid = rb.PhaseSpace(4, 1.0)
    assert parts(grid) == [Substep(None, 1.0)]
    assert [part.axis for part in parts(grid, [Push()])] == [1, None, 1]


def test_every_mass_at_every_site_has_its_own_mean():
    rng = np.random.default_rng(2)
    now, rate, before = rng.uniform(1.0, 2.0, (3, 4, 5))
    means = mean_squares(now, 0.05, 0.1, [(rate, 0.2), (before, 0.3)])
    expected = np.vectorize(lambda n, r, b: mean_during(n, 0.05, 0.1, r, 0.2, b, 0.3))
    np.testing.assert_array_equal(means, expected(now, rate, before))
    once = np.vectorize(lambda n, r: mean_during(n, 0.05, 0.1, r, 0.2, r, 0.0))
    np.testing.assert_array_equal(mean_squares(now, 0.05, 0.1, [(rate, 0.2)]), once(now, rate))
    assert mean_squares(now, 0.05, 0.1, []) is now
