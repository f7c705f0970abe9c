"""Sums over nodes: the terms of one node, marginals, and what the gap equation takes from them."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.backends.cpu.moments import marginal, measure
from relboltz.equilibrium import masses
from relboltz.events.collisions import bound, demand, tightest
from relboltz.records.moments import AXES, SUMS, Shells, add_moments, entropy_term, halves_of
from relboltz.stepping.stepper import initial_state


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
    """Of one species, compiled and as written."""
    grid, model = rb.PhaseSpace((6, 5, 4), 2.0), rb.gluons(0.3)
    f = 0.4 * np.exp(-grid.momentum_squared)[None]
    state = initial_state(grid, model, f)
    found = measure(grid, model, state, Shells.of(grid), 0.5 * f)
    sums, held = np.zeros(SUMS), state.number * state.unit / model.degeneracy[0]
    for i, p in enumerate(grid.momenta.T):
        add_moments(
            held[i], tuple(p), halves_of(grid), state.mass_squared[0], 1.0, 0.0, 0.5 * f[0, i], sums
        )
    assert found.energy == pytest.approx([sums[0]], rel=1e-13)
    assert found.entropy == pytest.approx([sums[8]], rel=1e-13)
    assert found.distance == pytest.approx([sums[9]], rel=1e-13)
    assert found.flux[0] == pytest.approx(sums[10:], rel=1e-12, abs=1e-14)
    assert found.totals == [int(state.number.sum())]


def test_entropy_of_full_empty_and_classical_states():
    """A full and an empty fermion state have none; of classical f it is f - f ln f."""
    assert entropy_term(0.0, 1) == entropy_term(0.0, -1) == 0.0
    assert entropy_term(1.0, -1) == pytest.approx(0.0, abs=1e-290)
    assert entropy_term(0.5, -1) == pytest.approx(np.log(2))
    assert entropy_term(2.0, 0) == pytest.approx(2 - 2 * np.log(2))


def test_masses_do_not_depend_on_where_newton_starts():
    """Nor on how the state is held: as f, or in quanta."""
    grid, model = rb.PhaseSpace(8, 2.0), rb.qcd(0.3)
    f = np.full((7, grid.size), 0.2) * np.exp(-grid.momentum_squared)
    m2 = masses(grid, model, f)
    assert masses(grid, model, f, start=3 * m2) == pytest.approx(m2, rel=1e-13)
    assert initial_state(grid, model, f).mass_squared == pytest.approx(m2, rel=1e-9)


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
