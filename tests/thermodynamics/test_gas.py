"""A gas on points of momentum space: occupations, points near a singularity, the dual problem."""

import numpy as np
import pytest

import relboltz as rb
from relboltz.thermodynamics.gas import (
    cold_start,
    gas_on,
    nodes,
    nodes_by_energy,
    occupation,
    refine,
)

GRID = rb.PhaseSpace([9, 8, 7], [2.0, 1.9, 1.8])
PAIR = rb.Model([rb.Species("a", 2, -1), rb.Species("b", 3, 1)], [], masses={"a": 0.3, "b": 0.4})
CHARGES = (np.arange(2), np.eye(2))
M2 = np.array([0.09, 0.16])


@pytest.mark.parametrize("eta", [-1, 0, 1])
def test_occupations_are_accurate_and_never_overflow(eta):
    x = np.array([1e-9, 1e-3, 1.0, 30.0, 600.0])
    assert occupation(x, eta) * (np.expm1(x) + (1 - eta)) == pytest.approx(1.0, rel=1e-12)
    assert np.isfinite(occupation(np.array([1e5, -1e5]), eta)).all()
    assert occupation(np.array([-1e5]), -1) == pytest.approx(1.0)


def test_refined_cells_keep_their_volume_and_resolve_a_pole():
    """1/p^2 integrated over the cell around it."""
    grid = rb.PhaseSpace(9, 1.0)
    cell, points, share = refine(grid, np.zeros(3))
    assert np.bincount(cell, share)[np.unique(cell)] == pytest.approx(1.0, rel=1e-13)
    h = grid.spacing[0]
    inside = np.abs(points).max(axis=0) < 0.5 * h
    found = (share[inside] / (points[:, inside] ** 2).sum(axis=0)).sum() * h**3
    assert found == pytest.approx(7.674124 * h, rel=0.01)  # a cube of side 1


def test_points_of_one_energy_are_as_good_as_all_nodes_of_a_gas_at_rest():
    (p, weight), (merged, fewer) = nodes(GRID), nodes_by_energy(GRID)
    assert len(fewer) < len(weight) and fewer.sum() == pytest.approx(weight.sum(), rel=1e-13)
    f = [np.exp(-np.sqrt((q**2).sum(axis=0))) for q in (p, merged)]
    assert f[0] @ weight == pytest.approx(f[1] @ fewer, rel=1e-12)


@pytest.mark.parametrize("flowing", [False, True])
def test_newton_finds_the_state_that_has_the_densities_from_a_cold_start(flowing):
    """The dual is convex: whatever beta, v and mu were put in come out."""
    axes = np.full(3, flowing)
    there = gas_on(nodes(GRID), PAIR, CHARGES, axes)
    theta = np.array([3.0, *([0.6, -0.3, 0.2] if flowing else []), 0.1, -0.4])
    vectors = {m: there.vectors(m) for m in M2}
    target, curvature = there.densities(vectors, M2, theta)[:2]
    assert (np.linalg.eigvalsh(0.5 * (curvature + curvature.T)) > 0).all()
    number = -target[-2:].sum()
    found = there.newton(M2, target, cold_start(there, number, target[0]))
    assert found == pytest.approx(theta, rel=1e-9, abs=1e-9)
    f = there.occupations(M2, found)
    weight = there.degeneracy[:, None] * f * there.weight
    assert weight.sum(axis=1) == pytest.approx(-target[-2:], rel=1e-12)


def test_densities_that_no_state_has_are_said_so():
    """More fermions than there are cells."""
    there = gas_on(nodes(GRID), PAIR, CHARGES)
    theta = np.array([3.0, 0.1, -0.4])
    target = there.densities({m: there.vectors(m) for m in M2}, M2, theta)[0].copy()
    full = 2.1 * GRID.size * GRID.measure
    target[1] = -full
    assert there.newton(M2, target, cold_start(there, full, 2 * full)) is None
