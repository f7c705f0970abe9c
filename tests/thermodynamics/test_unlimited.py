"""Equilibrium in unlimited momentum space: anchors, conservation, flow, condensates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from test_equilibrium import condensed_exactly, constant, exact_step, step, totals

from relboltz import gluons, qcd, quarks
from relboltz import thermodynamics as eq
from relboltz.grid.phase_space import PhaseSpace
from relboltz.grid.units import HBARC
from relboltz.model.model import Model, Process, Species
from relboltz.thermodynamics import unlimited


def gas(eta, mass):
    """One species that collides with itself."""
    process = Process("a a -> a a", constant)
    return Model([Species("a", 2, eta)], [process], masses={"a": mass})


def densities(state, degeneracy, eta):
    """Number [fm^-3] and energy density [GeV fm^-3] in the rest frame of a single species."""
    t, mu, m2 = state.temperature, state.chemical_potential[0], state.mass_squared[0]

    def integral(power):
        def integrand(p):
            e = np.sqrt(p * p + m2)
            return p * p * e**power / (np.exp((e - mu) / t) - eta)

        top = 40 * t + 2 * max(mu, 0.0) + np.sqrt(m2)
        return degeneracy / (2 * np.pi**2) * quad(integrand, 0, top, limit=200)[0] / HBARC**3

    return integral(0), integral(1)


def test_final_states_of_the_papers_step_in_unlimited_space():
    """Gluons and mixture: the numbers of a step of exact radial integrals."""
    model = gluons(0.3)
    state = unlimited.predict(model, *exact_step(model, 0.5))
    assert state.temperature == pytest.approx(0.3838, abs=5e-5)
    assert state.chemical_potential[0] == pytest.approx(0.7015, abs=5e-5)
    assert state.mass_squared[0] == pytest.approx(0.5449, abs=5e-5)
    assert state.screening2 == pytest.approx(state.mass_squared[0], rel=1e-8)
    model = qcd(0.3)
    state = unlimited.predict(model, *exact_step(model, 0.5))
    assert state.temperature == pytest.approx(0.3529, abs=5e-5)
    np.testing.assert_allclose(state.chemical_potential, 0.3825, atol=5e-5)
    np.testing.assert_allclose(state.mass_squared, [0.3670] + [0.1631] * 6, atol=5e-5)


@pytest.mark.parametrize(
    ("eta", "mass", "number", "energy"),
    [
        (1, 0.4, 0.5, 0.6),
        (-1, 0.0, 2.0, 2.4),
        (-1, 0.3, 6.0, 6.5),
        (0, 0.0, 1.0, 0.9),
        (0, 3, 1, 4),
    ],
)
def test_number_and_energy_are_those_given(eta, mass, number, energy):
    """Against adaptive quadrature, also for degenerate fermions and heavy particles."""
    state = unlimited.predict(gas(eta, mass), [number], np.zeros(3), energy)
    assert densities(state, 2, eta) == pytest.approx((number, energy), rel=1e-7)


@pytest.mark.parametrize("velocity", [[0.3, -0.2, 0.1], [0.0, 0.0, 0.7]])
def test_a_moving_fluid_is_the_boosted_one_at_rest(velocity):
    """N, P and E of nodes in a large box; masses from the gap equation of the moving gas."""
    grid, model, velocity = PhaseSpace(64, 9.0), gluons(0.3), np.array(velocity)
    f = eq.thermal(grid, model, 0.35, [0.2], velocity, [0.4])
    found = totals(grid, model, f)
    state, on_nodes = unlimited.predict(model, *found), eq.predict(grid, model, *found)
    assert state.temperature == pytest.approx(on_nodes.temperature, rel=3e-3)
    np.testing.assert_allclose(state.velocity, on_nodes.velocity, atol=2e-3)
    np.testing.assert_allclose(state.chemical_potential, on_nodes.chemical_potential, atol=5e-3)
    np.testing.assert_allclose(state.mass_squared, on_nodes.mass_squared, rtol=5e-3)


def test_momentum_of_a_moving_classical_gas():
    """Massless: n = N/gamma, T = e/(3 n), P = (4/3) e gamma^2 v."""
    v, t = 0.6, 0.3
    gamma, energy = 1.25, 3 * t  # per particle at rest
    momentum = [0.0, 4 / 3 * energy * gamma**2 * v, 0.0]
    state = unlimited.predict(
        gas(0, 0.0), [gamma], momentum, energy * gamma**2 * (1 + v * v / 3)
    )  # fmt: skip
    np.testing.assert_allclose(state.velocity, [0, v, 0], atol=1e-8)
    assert state.temperature == pytest.approx(t, rel=1e-7)


@pytest.mark.parametrize(("alpha_s", "f0"), [(0.3, 2.0), (0.1, 1.0)])
def test_bosons_that_condense_have_mu_equal_to_m(alpha_s, f0):
    model = gluons(alpha_s)
    state = unlimited.predict(model, *exact_step(model, f0))
    temperature, m2, _ = condensed_exactly(model, f0)
    assert state.temperature == pytest.approx(temperature, rel=1e-4)
    assert state.mass_squared[0] == pytest.approx(m2, rel=1e-4)
    assert state.chemical_potential[0] == pytest.approx(np.sqrt(m2), rel=1e-4)


def test_what_cannot_be_produced_stays_empty_and_screening_follows_the_state():
    model = quarks(0.3, flavors=2, masses="massless", screening="thermal")
    state = unlimited.predict(model, [1.0, 0.0], np.zeros(3), 1.2)
    assert np.isnan(state.chemical_potential[1]) and state.screening2 > 0
    assert (state.mass_squared == 0).all()


def test_no_state_is_none():
    """Nothing, less energy than momentum, and more fermions than the energy allows."""
    model = gas(-1, 0.3)
    for number, momentum, energy in ((0.0, 0.0, 1.0), (1.0, 2.0, 1.5), (1.0, 0.0, 0.2)):
        assert unlimited.predict(model, [number], [momentum, 0, 0], energy) is None


def test_the_nodes_of_a_box_decide_what_is_conserved():
    """The start at the nodes of the paper's box has other totals than the exact step."""
    grid, model = PhaseSpace(30, 2.0), gluons(0.3)
    state = unlimited.predict(model, *totals(grid, model, step(grid, model, 0.5)))
    assert state.temperature == pytest.approx(0.38244, abs=5e-5)
