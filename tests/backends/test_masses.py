"""Thermal masses of a given f: the gap equation, and the energy that it conserves."""

import numpy as np
import pytest

import relboltz as rb
from relboltz import gluons, qcd
from relboltz import thermodynamics as eq
from relboltz.backends.cpu.masses import coupling_integrals, masses
from relboltz.grid.phase_space import PhaseSpace
from relboltz.grid.units import HBARC
from relboltz.model.gap_equation import MassModel, eliminate, leader

FLOW = np.array([0.3, -0.2, 0.1])
MU = np.array([0.1, 0.3, 0.2, -0.1, -0.2, 0.05, 0.4])
MASSES = np.array([0.35, 0.15, 0.16, 0.17, 0.15, 0.16, 0.17])


@pytest.mark.parametrize("cells", [5, 20, 31])
@pytest.mark.parametrize("scale", [None, 0.0, 1e-6, 100.0])
def test_masses_solve_the_gap_equation_from_any_start(cells, scale):
    grid, model = PhaseSpace(cells, 2.0), qcd(0.3)
    f = eq.thermal(grid, model, 0.3, MU, FLOW, MASSES)
    m2 = eq.masses(grid, model, f, start=None if scale is None else scale * MASSES)
    wanted = model.mass_squared(eq.coupling_integrals(grid, model, f, m2))
    np.testing.assert_allclose(m2, wanted, rtol=4e-15)


def test_masses_without_particles_or_coupling_are_the_constant_ones():
    grid = PhaseSpace(9, 2.0)
    assert (eq.masses(grid, qcd(0.3), np.zeros((7, grid.size))) == 0).all()
    model = gluons(0.3, masses={"g": 0.7})
    assert eq.masses(grid, model, np.ones((1, grid.size))) == pytest.approx([0.49])


def test_coupling_integrals_average_a_massless_node_at_rest():
    grid, model = PhaseSpace(7, 1.0), gluons(0.3, masses="massless", screening=1.0)
    y = eq.coupling_integrals(grid, model, np.ones((1, grid.size)), np.zeros(1))
    wanted = 16 * grid.inverse_energies(0.0).sum() * grid.cell_volume / (2 * np.pi) ** 3
    assert y == pytest.approx([wanted], rel=1e-14)


def test_total_energy_is_stationary_in_the_masses():
    """With Y held in the field term as K^-1 dm^2, dE_total/dm^2 = 0 at the gap solution."""
    grid, model = PhaseSpace(12, 2.0), gluons(0.3)
    f = 0.5 * (grid.momentum_squared[None] < 1.5**2)
    m2, k = eq.masses(grid, model, f)[0], model.mass_coupling[0, 0]

    def energy(m2):
        kinetic = eq.kinetic_energy(grid, model, f, np.array([m2]))
        return kinetic - 0.25 * m2**2 / k / HBARC**3

    assert energy(m2) == pytest.approx(eq.total_energy(grid, model, f, np.array([m2])), rel=1e-13)
    slope = (energy(m2 + 1e-4) - energy(m2 - 1e-4)) / 2e-4
    assert abs(slope) < 1e-6 * energy(m2) / m2


def test_masses_do_not_depend_on_where_newton_starts():
    grid, model = rb.PhaseSpace(8, 2.0), rb.qcd(0.3)
    f = np.full((7, grid.size), 0.2) * np.exp(-grid.momentum_squared)
    m2 = masses(grid, model, f)
    assert masses(grid, model, f, start=3 * m2) == pytest.approx(m2, rel=1e-13)
    assert model.mass_squared(coupling_integrals(grid, model, f, m2)) == pytest.approx(m2)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_elimination_solves_linear_equations(n):
    """Also where the first pivot is 0."""
    rng = np.random.default_rng(n)
    matrix, right = rng.normal(size=(n, n)), rng.normal(size=n)
    if n > 1:
        matrix[0, 0] = 0.0
    x = right.copy()
    eliminate(matrix.ravel().copy(), x, n)
    assert matrix @ x == pytest.approx(right, rel=1e-11, abs=1e-12)


def test_species_that_share_a_mass_are_summed_under_the_first_of_them():
    """A quark and its antiquark do; none is summed where nothing couples."""
    grid = PhaseSpace(5, 2.0)
    group = MassModel.of(grid, qcd(0.3)).group
    assert [leader(group, a) for a in range(7)] == [0, 1, 2, 3, 1, 2, 3]
    unequal = MassModel.of(grid, qcd(0.1, flavors=2, masses="massless", screening="ekt")).group
    assert [leader(unequal, a) for a in range(5)] == [0, 1, 2, 1, 2]
    alone = MassModel.of(grid, gluons(0.3, masses={"g": 0.7}, screening=0.5)).group
    assert [leader(alone, a) for a in range(1)] == [-1]


def test_the_gap_equation_flat_for_kernels_is_that_of_the_model():
    grid, model = PhaseSpace(5, 2.0), qcd(0.1, flavors=1, screening="ekt")
    flat, s = MassModel.of(grid, model).flat, 3
    y = np.array([0.3, 0.2, 0.1])
    m2 = flat[: s * s].reshape(s, s) @ y + flat[s * s : s * s + s]
    assert m2 == pytest.approx(model.mass_squared(y), rel=1e-14)
    rest, rows = flat[s * s + s :], len(model.screenings)
    found = rest[: rows * s].reshape(rows, s) @ y + rest[rows * s :]
    assert found == pytest.approx(model.screening_squared(y), rel=1e-14)


def test_a_gap_equation_without_solution_is_an_error():
    """A coupling below 0 and far too strong."""
    model = rb.Model([rb.Species("a", 1, 0)], [], masses={"a": 0.3})
    broken = rb.Model(model.species, [], mass_coupling=np.array([[-1e9]]))
    with pytest.raises(rb.RunError, match="the thermal masses of this state do not converge"):
        masses(PhaseSpace(5, 1.0), broken, np.ones((1, 125)))
