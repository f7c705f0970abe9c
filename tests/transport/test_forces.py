"""Forces from outside: mean momentum, contraction, edges, bounds, and the longest step."""

from dataclasses import dataclass

import numpy as np
import pytest
from test_transport import WALLS, free_gas, holding

import relboltz as rb
from relboltz.transport.forces import courant_limit, total

BITS = 44


def momentum_line(cells, widest=4.0, boundary="closed", axis=0):
    """One space cell, and a fine axis of momenta."""
    momenta, widths = [2, 2, 2], [1.0, 1.0, 1.0]
    momenta[axis], widths[axis] = cells, widest
    return rb.PhaseSpace(momenta, widths, momentum_boundary=boundary)


def gaussian(grid, axis=0, middle=0.0, width=0.6):
    """f of the momenta along one axis, averages over cells."""
    h = grid.spacing[axis]
    x, weight = np.polynomial.legendre.leggauss(5)
    p = grid.momenta[axis][:, None] + 0.5 * h * x
    f = 0.5 * weight @ np.exp(-(((p - middle) / width) ** 2)).T
    return f[None, None]


def pushed(grid, model, f, constant, linear, time, steps, axis=0):
    """The state after a time [fm] under F = constant + linear p, and the quanta refused."""
    backend = holding(grid, model, f, BITS)
    push = np.zeros((grid.sites, len(model.species), 2))
    push[:] = constant, linear
    squares = np.full((grid.sites, 2), 0.25)
    refused = np.zeros(2)
    for _ in range(steps):
        refused += backend.stream(axis, time / steps, squares, push).refused.sum(axis=1)
    return backend.get(), refused


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("force", [0.7, -0.4])
def test_a_constant_force_shifts_the_mean_momentum_by_force_times_time(axis, force):
    """In a single space cell, where nothing streams; no quantum is lost, none is refused.

    Linear weights of the reconstruction would shift the mean exactly; where f bends, nonlinear ones
    miss by 2e-5.
    """
    grid, time = momentum_line(64, axis=axis), 2.0
    before = np.rint(gaussian(grid, axis) * 2.0**BITS).astype(np.int64)
    number, refused = pushed(grid, free_gas(), gaussian(grid, axis), force, 0.0, time, 40, axis)
    assert int(number.sum()) == int(before.sum())
    mean = float((number[0, 0] * grid.momenta[axis]).sum() / number.sum())
    assert mean == pytest.approx(force * time, rel=5e-5)
    assert refused.sum() < 1e-6 * number.sum()


def test_a_force_against_the_momentum_contracts():
    """F = -H p: mean momentum and width fall as exp(-H t)."""
    grid, rate, time = momentum_line(128), 0.5, 1.0
    f = gaussian(grid, middle=0.8, width=0.8)
    p, shrunk = grid.momenta[0], np.exp(-rate * time)
    number, _ = pushed(grid, free_gas(), f, 0.0, -rate, time, 60)
    quanta = number.sum()
    mean = float((number[0, 0] * p).sum() / quanta)
    assert mean == pytest.approx(0.8 * shrunk, rel=1e-4)
    width = float((number[0, 0] * (p - mean) ** 2).sum() / quanta) - grid.spacing[0] ** 2 / 12
    assert width == pytest.approx(0.5 * 0.8**2 * shrunk**2, rel=1e-3)


@pytest.mark.parametrize(("constant", "linear"), [(0.8, 0.0), (-0.8, 0.0), (0.2, -0.6)])
def test_a_push_is_of_third_order(constant, linear):
    """Against the exact f on characteristics, with steps as fine as cells."""
    errors, time = [], 1.0
    for n in (24, 48, 96):
        grid = momentum_line(n)
        number, _ = pushed(grid, free_gas(0), gaussian(grid), constant, linear, time, n // 3)
        grown = np.exp(linear * time)
        moved = constant * time if linear == 0 else constant * (grown - 1) / linear
        exact = gaussian(grid, middle=moved, width=0.6 * grown) / grown
        errors.append(np.abs(number * 2.0**-BITS - exact).mean())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (orders > 2.7).all(), (errors, orders)


@pytest.mark.parametrize("statistics", [1, -1])
def test_free_fall_in_a_closed_box_is_refused_at_the_edge_it_falls_to(statistics):
    """f = 1: what would leave is F dt/dp; a full sea of fermions does not move at all."""
    grid, force, dt = momentum_line(8, 1.0), 0.5, 0.1
    full = np.ones((1, 1, grid.size))
    number, refused = pushed(grid, free_gas(statistics), full, force, 0.0, dt, 1)
    lanes = grid.size // 8
    assert refused[0] == 0
    assert refused[1] * 2.0**-BITS == pytest.approx(force * dt / 0.25 * lanes, rel=1e-9)
    number, _ = pushed(grid, free_gas(statistics), full, force, 0.0, 80 * dt, 80)
    assert int(number.sum()) == grid.size * 2**BITS and number.min() >= 0
    if statistics < 0:
        assert (number == 2**BITS).all()
    else:
        assert number.reshape(8, -1)[-1].min() > 7.9 * 2**BITS


@pytest.mark.parametrize("wall", WALLS)
@pytest.mark.parametrize("edge", ["closed", "periodic"])
@pytest.mark.parametrize("statistics", [1, -1])
def test_rough_states_stay_legal_under_any_push(wall, edge, statistics):
    """Signs that differ between sites, faces and lanes, a mean field, and steps far too long."""
    grid = rb.PhaseSpace([6, 5, 3], 2.0, [4, 3, 1], 3.0, wall, edge)
    rng = np.random.default_rng(11)
    f = (rng.random((grid.sites, 1, grid.size)) > 0.5).astype(float)
    backend = holding(grid, free_gas(statistics), f)
    before, left = int(backend.get().sum()), 0
    squares = np.repeat(rng.uniform(0.0, 1.0, (grid.sites, 1)), 2, axis=1)
    for _ in range(10):
        for axis in range(3):
            push = rng.normal(0.0, 2.0, (grid.sites, 1, 2))
            left += int(backend.stream(axis, 0.3, squares, push).left.sum())
            number = backend.get()
            assert number.min() >= 0 and int(number.sum()) + left == before
            assert number.max() <= 2**BITS or statistics > 0
    assert (left > 0) == (wall == "open")


def test_a_uniform_state_stays_uniform_under_a_force_that_differs_between_sites():
    """A force that does not depend on p is free of divergence too."""
    grid = rb.PhaseSpace([6, 5, 4], 2.0, [5, 4, 1], 3.0, "periodic", "periodic")
    backend = holding(grid, free_gas(degeneracy=6), np.ones((1, 1, grid.size)))
    rng = np.random.default_rng(3)
    for axis in (0, 1, 2) * 5:
        squares = np.repeat(rng.uniform(0.1, 0.6, (grid.sites, 1)), 2, axis=1)
        push = np.zeros((grid.sites, 1, 2))
        push[..., 0] = rng.normal(0.0, 1.0, (grid.sites, 1))
        backend.stream(axis, 0.05, squares, push)
    assert np.abs(backend.get() * 2.0**-BITS / 6 - 1).max() < 1e-12


@pytest.mark.parametrize("wall", WALLS)
def test_nothing_streams_along_an_axis_with_one_cell(wall):
    grid = rb.PhaseSpace([3, 5, 4], 2.0, [4, 1, 1], 3.0, wall)
    f = np.random.default_rng(1).random((grid.sites, 1, grid.size))
    backend = holding(grid, free_gas(), f)
    before = backend.get().copy()
    for axis in (1, 2):
        passage = backend.stream(axis, 0.5, np.full((4, 2), 0.25))
        assert not passage.left.size and not passage.refused.any()
    assert (backend.get() == before).all()
    backend.stream(1, 0.1, np.full((4, 2), 0.25), np.full((4, 1, 2), 0.5))
    assert (backend.get() != before).any() and int(backend.get().sum()) == int(before.sum())


@dataclass
class Constant:
    """A force for tests: the same for all sites, and in proportion to the time."""

    axis: int
    strength: float

    def field(self, time, squares, grid, model):
        push = np.zeros((grid.sites, len(model.species), 2))
        push[..., 0] = self.strength * time
        return push


def test_forces_along_an_axis_add_up():
    grid, model = rb.PhaseSpace(4, 2.0, [2, 1, 1], 3.0), free_gas()
    forces, squares = [Constant(0, 1.0), Constant(1, 5.0), Constant(0, 0.5)], np.ones((2, 2))
    push = total(forces, 0, 2.0, squares, grid, model)
    assert push.shape == (2, 1, 2) and (push[..., 0] == 3.0).all() and not push[..., 1].any()
    assert not total(forces, 2, 2.0, squares, grid, model).any()


def test_the_longest_step_follows_all_that_pushes():
    """Streaming 1/dx, mean field and push over dp; a homogeneous axis is only pushed."""
    grid = rb.PhaseSpace(4, 2.0, [4, 1, 1], 2.0)
    steep = np.array([[0.25], [1.0], [0.25], [1.0]])
    push = np.zeros((4, 1, 2))
    push[2, 0] = -0.25, 0.125
    assert courant_limit(grid, np.full((4, 1), 0.25)) == pytest.approx(2 * 0.8)
    assert courant_limit(grid, steep) == pytest.approx(2 * 0.8 / (1 + 0.5))
    assert courant_limit(grid, steep, {0: push}) == pytest.approx(2 * 0.8 / (1 + 0.5 + 0.5))
    assert courant_limit(grid, steep, {1: 8 * push}) == pytest.approx(2 * 0.8 / 4.0)
    at_rest = rb.PhaseSpace(4, 2.0)
    assert courant_limit(at_rest, steep[:1]) == np.inf
    assert courant_limit(at_rest, steep[:1], {0: push[2:3]}) == pytest.approx(2 * 0.8 / 0.5)
