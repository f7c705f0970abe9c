"""Particle numbers in 64-bit fixed point."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.stepping.quanta import capacities, exact_sum, fraction_bits, occupation, quantised

GLUONS = rb.gluons(0.3)


def test_the_quantum_leaves_room_for_all_particles_in_one_cell():
    """44 bits behind the point, fewer for huge totals; never an overflow."""
    few, many = np.full((1, 27000), 0.2), np.full((1, 10**6), 50.0)
    assert fraction_bits(few, GLUONS) == 44
    bits = fraction_bits(many, GLUONS)
    assert bits < 44 and (many * 16).sum() * 2.0**bits < 2**62


def test_the_fullest_site_decides_on_the_quantum():
    """All sites share one, and their sum may be larger than any of them."""
    sites = np.full((1000, 1, 1000), 0.2)
    assert fraction_bits(sites, GLUONS) == 44
    sites[7] = 50.0
    assert fraction_bits(sites, GLUONS) == fraction_bits(sites[7], GLUONS)


def test_sums_of_integers_do_not_wrap():
    """Beyond 64 bits, with signs."""
    big = np.full(1000, 2**62, np.int64)
    assert exact_sum(big) == 1000 * 2**62
    assert exact_sum(np.array([-(2**62)] * 3 + [5], np.int64)) == -3 * 2**62 + 5


def test_f_comes_back_to_half_a_quantum():
    model = rb.qcd(0.3, flavors=1)
    f = np.random.default_rng(1).random((2, 3, 50))
    number, bits = quantised(f, model)
    apart = np.abs(occupation(number, bits, model) - f) * model.degeneracy[:, None]
    assert apart.max() <= 0.51 * 2.0**-bits  # and f itself is rounded


def test_fermions_fill_their_cells_and_others_have_room():
    model = rb.qcd(0.3, flavors=1)
    assert capacities(model, 44).tolist() == [2**62, 6 * 2**44, 6 * 2**44]


def test_what_does_not_fit_and_what_is_not_there_is_refused():
    with pytest.raises(rb.InputError, match="too much for 64-bit numbers; lower the initial"):
        quantised(np.full((1, 1, 8), 1e15), GLUONS)
    with pytest.raises(rb.InputError, match="the system is empty: f is below the resolution"):
        quantised(np.full((1, 1, 8), 1e-20), GLUONS)
