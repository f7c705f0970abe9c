"""Sums over nodes: the terms of one node, marginals, and what the gap equation takes from them."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.backends.cpu.moments import marginal, measure_sites, tables
from relboltz.events.collisions import bound, demand, tightest
from relboltz.transport.moments import AXES, SUMS, Shells, add_moments, entropy_term, halves_of


@pytest.mark.parametrize("kept", [(), ("x",), ("y", "pz"), ("px", "py", "pz"), AXES])
def test_marginals_are_exact(kept):
    """Sums of 2^60 quanta per cell do not fit 64 bits, but two words."""
    grid = rb.PhaseSpace((4, 3, 2), 2.0, [2, 3, 1], 2.0)
    number = np.random.default_rng(1).integers(0, 2**60, (grid.sites, 2, grid.size))
    high, low = marginal(grid, number, kept)
    cells = np.moveaxis(number.reshape(2, 3, 1, 2, 4, 3, 2).astype(object), 3, 0)
    dropped = tuple(1 + i for i, axis in enumerate(AXES) if axis not in kept)
    assert (
        high.astype(object) * 2**32 + low == (cells.sum(axis=dropped) if dropped else cells)
    ).all()


def test_sums_of_the_kernel_are_sums_over_nodes_of_the_scalar_function():
    """Compare the moments of one species, compiled and as written."""
    grid, m2, unit = rb.PhaseSpace((6, 5, 4), 2.0), 0.09, 2.0**-40
    shells = Shells.of(grid)
    number = np.int64(0.4 * np.exp(-grid.momentum_squared) / unit)
    final = 0.2 * np.exp(-grid.momentum_squared)
    planes = [np.zeros((1, n), np.int64) for n in grid.momentum_cells]
    in_shells, found = np.zeros((1, 1, len(shells.p)), np.int64), np.zeros((1, 1, SUMS))
    measure_sites(
        number.reshape(1, 1, -1), unit, np.array([[2.0, 1.0]]), np.array([[m2]]),
        tables(grid, shells), final[None], (0, 1), (*planes, in_shells, found),
    )  # fmt: skip
    sums = np.zeros(SUMS)
    for i, p in enumerate(grid.momenta.T):
        f = number[i] * unit / 2
        add_moments(f, tuple(p), halves_of(grid), m2, 1.0, 0.0, final[i], sums)
    assert found[0, 0] == pytest.approx(sums, rel=1e-12, abs=1e-14)
    assert all(whole.sum() == number.sum() for whole in (*planes, in_shells))


def test_entropy_of_full_empty_and_classical_states():
    """A full and an empty fermion state have none; of classical f it is f - f ln f."""
    assert entropy_term(0.0, 1) == entropy_term(0.0, -1) == 0.0
    assert entropy_term(1.0, -1) == pytest.approx(0.0, abs=1e-290)
    assert entropy_term(0.5, -1) == pytest.approx(np.log(2))
    assert entropy_term(2.0, 0) == pytest.approx(2 - 2 * np.log(2))


def test_bounds_leave_half_of_what_there_is():
    """An event moves what the tightest of its cells allows; a pair without a share has no say."""
    assert demand(-2.5, 0.5) == (3, 2, 2)
    assert bound(10, 0, 1.0) == 1.0
    assert bound(10, 20, 1.0) == 0.25
    assert bound(-1, 20, 1.0) == 0.0
    assert bound(100, 2, 1.0) == 1.0
    assert tightest(1.0, 0.9, 0.2, 0.5, 0.1, 0.3, 0.5) == 0.1
    assert tightest(1.0, 0.9, 0.2, 0.5, 0.1, 0.3, 0.0) == 0.2
    assert tightest(1.0, 0.9, 0.2, 0.5, 0.1, 0.3, 1.0) == 0.1
