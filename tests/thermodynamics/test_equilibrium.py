"""Equilibrium states on the nodes: round trips, gap equation, conservation, condensates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, fsolve
from scipy.special import zeta
from test_model import Reaction

from relboltz import gluons, qcd, quarks
from relboltz import thermodynamics as eq
from relboltz.grid.phase_space import PhaseSpace
from relboltz.grid.units import HBARC
from relboltz.model.model import Model, Process, Species
from relboltz.thermodynamics import unlimited
from relboltz.thermodynamics.conserved import reachable

Q = 1.5
FLOW = np.array([0.3, -0.2, 0.1])
MU = np.array([0.1, 0.3, 0.2, -0.1, -0.2, 0.05, 0.4])
MASSES = np.array([0.35, 0.15, 0.16, 0.17, 0.15, 0.16, 0.17])


def step(grid, model, f0):
    """Gluons f0 theta(Q - |p|) sampled at the nodes."""
    f = np.zeros((len(model.species), grid.size))
    f[model.index("g")] = f0 * (grid.momentum_squared < Q * Q)
    return f


def totals(grid, model, f, mass_squared=None):
    """Numbers [fm^-3], momentum and total energy [GeV fm^-3]."""
    m2 = eq.masses(grid, model, f) if mass_squared is None else mass_squared
    momentum = grid.momenta @ (model.degeneracy @ f) * grid.measure
    return (
        model.degeneracy * f.sum(axis=1) * grid.measure,
        momentum,
        eq.total_energy(grid, model, f, m2),
    )


def exact_step(model, f0):
    """Numbers, momentum and total energy of the step in unlimited momentum space."""

    def integral(g):
        return 16 * f0 / (2 * np.pi**2) * quad(lambda p: p * p * g(p), 0, Q)[0]

    def gap(m2):
        return m2 - k * integral(lambda p: 1 / np.hypot(p, np.sqrt(m2)))

    k = model.mass_coupling[0, 0]
    m2 = brentq(gap, 1e-3, 10.0, xtol=1e-13) if k else 0.0
    y = m2 / k if k else 0.0
    energy = integral(lambda p: np.hypot(p, np.sqrt(m2))) - 0.25 * m2 * y
    numbers = np.zeros(len(model.species))
    numbers[0] = integral(lambda p: 1.0) / HBARC**3
    return numbers, np.zeros(3), energy / HBARC**3


def constant(s, t, u, ma2, mb2, mc2, md2):
    return 1.0


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1, -1, 0])
def test_thermal_is_the_distribution_and_never_overflows(eta):
    grid = PhaseSpace(6, 1.0)
    model = Model([Species("a", 1, eta)], [], masses={"a": 0.5})
    f = eq.thermal(grid, model, 0.3, [0.1], FLOW, [0.25])
    gamma = 1 / np.sqrt(1 - FLOW @ FLOW)
    x = (gamma * (grid.energies(0.25) - FLOW @ grid.momenta) - 0.1) / 0.3
    np.testing.assert_allclose(f[0], 1 / (np.exp(x) - eta), rtol=1e-13)
    cold = eq.thermal(grid, model, 1e-5, [0.1 if eta == 1 else 0.9], np.zeros(3), [0.25])
    assert np.isfinite(cold).all()
    if eta == -1:
        assert cold.max() == 1


def test_a_divergent_node_gets_its_cell_average():
    """Massless bosons at mu = 0: <T/|p| - 1/2> over the cell at rest."""
    grid = PhaseSpace(41, 0.5)
    model = Model([Species("a", 1, 1)], [])
    f = eq.thermal(grid, model, 2.0, [0.0], np.zeros(3), [0.0])
    rest = np.flatnonzero(grid.momentum_squared == 0)[0]
    assert f[0, rest] == pytest.approx(2.0 * grid.rest_inverse_energy - 0.5, rel=1e-3)


@pytest.mark.parametrize("velocity", [np.zeros(3), FLOW, np.array([0, 0, 0.7])])
@pytest.mark.parametrize("cells", [20, 21])
def test_local_gives_thermal_states_back(velocity, cells):
    grid, model = PhaseSpace(cells, 2.0), qcd(0.3)
    f = eq.thermal(grid, model, 0.3, MU, velocity, MASSES)
    state = eq.local(grid, model, f, MASSES)
    assert state.found and state.condensate_fraction == 0
    assert state.temperature == pytest.approx(0.3, rel=1e-10)
    np.testing.assert_allclose(state.chemical_potential, MU, atol=1e-10)
    np.testing.assert_allclose(state.velocity, velocity, atol=1e-10)
    np.testing.assert_allclose(state.f, f, rtol=1e-9)


def test_local_does_not_depend_on_its_start():
    grid, model = PhaseSpace(20, 2.0), qcd(0.3)
    far = eq.local(grid, model, eq.thermal(grid, model, 0.5, MU - 0.3, 0 * FLOW, MASSES), MASSES)
    f = eq.thermal(grid, model, 0.3, MU, FLOW, MASSES) * (1 + 0.3 * np.cos(grid.momenta[0]))
    cold, warm = eq.local(grid, model, f, MASSES), eq.local(grid, model, f, MASSES, start=far)
    assert warm.temperature == pytest.approx(cold.temperature, rel=1e-12)
    np.testing.assert_allclose(warm.chemical_potential, cold.chemical_potential, atol=1e-11)


def test_local_keeps_numbers_momentum_and_kinetic_energy_and_raises_entropy():
    grid, model = PhaseSpace(16, 2.0), gluons(0.3)
    f = 0.4 * (((grid.momenta - 0.3) ** 2).sum(axis=0) < 1.0)[None].astype(float)
    m2 = eq.masses(grid, model, f)
    state = eq.local(grid, model, f, m2)
    for kept in (
        lambda f: f.sum(),
        lambda f: (f * grid.momenta[0]).sum(),
        lambda f: eq.kinetic_energy(grid, model, f, m2),
    ):
        assert kept(state.f) == pytest.approx(kept(f), rel=1e-11)

    def entropy(f):
        f = np.maximum(f, 1e-300)
        return ((1 + f) * np.log1p(f) - f * np.log(f)).sum()

    assert entropy(state.f) > entropy(f)


@pytest.mark.parametrize("velocity", [np.zeros(3), FLOW])
@pytest.mark.parametrize("cells", [20, 21])
def test_predict_keeps_charges_momentum_and_total_energy(velocity, cells):
    grid, model = PhaseSpace(cells, 2.0), qcd(0.3)
    f = eq.thermal(grid, model, 0.3, MU, velocity, MASSES)
    numbers, momentum, energy = totals(grid, model, f)
    state = eq.predict(grid, model, numbers, momentum, energy)
    after = totals(grid, model, state.f, state.mass_squared)
    for charge in model.conserved.values():
        assert charge @ after[0] == pytest.approx(charge @ numbers, rel=1e-11, abs=1e-12)
    np.testing.assert_allclose(after[1], momentum, atol=1e-11 * energy)
    assert after[2] == pytest.approx(energy, rel=1e-11)
    np.testing.assert_allclose(eq.masses(grid, model, state.f), state.mass_squared, rtol=1e-11)
    mu = dict(zip(model.names, state.chemical_potential, strict=True))
    for p in model.processes:
        a, b, c, d = (mu[leg] for leg in p.legs)
        assert a + b == pytest.approx(c + d, abs=1e-10)


def test_predict_of_its_own_state_is_that_state():
    grid, model = PhaseSpace(21, 2.0), qcd(0.3)
    start = step(grid, model, 0.5)
    state = eq.predict(grid, model, *totals(grid, model, start))
    again = eq.predict(grid, model, *totals(grid, model, state.f))
    assert again.temperature == pytest.approx(state.temperature, rel=1e-11)
    np.testing.assert_allclose(again.f, state.f, rtol=1e-9)


def test_species_that_cannot_be_produced_stay_empty():
    grid = PhaseSpace(12, 2.0)
    model = Model(
        [Species("a", 2, 1), Species("b", 3, -1), Species("c", 2, 0), Species("d", 1, 0)],
        [Process("a a -> a a", constant), Process("a a -> c c", constant)],
        masses={"a": 0.3, "b": 0.2, "c": 0.5},
    )
    state = eq.predict(grid, model, [1.0, 0.0, 0.0, 0.4], np.zeros(3), 1.5)
    assert np.isnan(state.chemical_potential[1]) and not state.f[1].any()
    mu = state.chemical_potential
    assert mu[0] == pytest.approx(mu[2]) and abs(mu[3] - mu[0]) > 0.01
    numbers = totals(grid, model, state.f, state.mass_squared)[0]
    assert numbers[0] + numbers[2] == pytest.approx(1.0) and numbers[3] == pytest.approx(0.4)


GLUE = [
    Species("g", 16, 1),
    Species("q", 6, -1, {"net q": 1}),
    Species("qbar", 6, -1, {"net q": -1}),
]


@pytest.mark.parametrize("mass", [0.5, 0.0])
def test_particles_that_reactions_create_end_with_mu_of_zero(mass):
    """g g -> g g g: mu_g = 0, also of massless ones, which then cannot condense."""
    grid = PhaseSpace(24, 4.0)
    reactions = [Reaction("g g -> g g g"), Reaction("q qbar -> g g"), Reaction("q g -> q g")]
    model = Model(GLUE, reactions, masses=dict.fromkeys(("g", "q", "qbar"), mass))
    assert model.conserved == {"net q": (0, 1, -1)}
    m2 = np.full(3, mass**2)
    f = eq.thermal(grid, model, 0.3, np.array([-0.4, 0.1, -0.3]), np.zeros(3), m2)
    numbers, momentum, energy = totals(grid, model, f)
    state = eq.predict(grid, model, numbers, momentum, energy)
    assert state.found and state.condensate_fraction == 0
    after = totals(grid, model, state.f, m2)
    assert after[0][1] - after[0][2] == pytest.approx(numbers[1] - numbers[2], rel=1e-10)
    assert after[2] == pytest.approx(energy, rel=1e-10)
    assert abs(after[0].sum() / numbers.sum() - 1) > 0.1
    states = [state, unlimited.predict(model, numbers, momentum, energy)] if mass else [state]
    for mu in (state.chemical_potential for state in states):
        assert mu[0] == pytest.approx(0, abs=1e-10)
        assert mu[1] == pytest.approx(-mu[2]) and mu[1] > 0.01


def test_nothing_but_energy_is_conserved_by_a_gas_of_its_own_quanta():
    """No charge at all: T is that of the same energy without a number."""
    grid = PhaseSpace(40, 5.0)
    model = Model(GLUE[:1], [Reaction("g g -> g g g")], masses={"g": 0.5})
    assert model.conserved == {}
    present, charges = reachable(model, np.ones(1))
    assert present.tolist() == [0] and charges.shape == (0, 1)
    state = eq.predict(grid, model, [2.0], np.zeros(3), 1.5)
    assert state.chemical_potential[0] == 0
    wanted = eq.temperature_without_number(model, 1.5)
    assert state.temperature == pytest.approx(wanted, rel=1e-3)


def test_a_reaction_runs_once_all_species_of_a_side_are_there():
    """a a -> b needs a alone, b c -> a a a both; what is reached shares the charges."""
    species = [Species(name) for name in "abcd"]
    model = Model(species, [Reaction("a a -> b"), Reaction("b c -> a a a"), Reaction("d d -> d c")])
    present, charges = reachable(model, np.array([1.0, 0, 0, 0]))
    assert present.tolist() == [0, 1, 2]
    np.testing.assert_allclose(charges / charges[0, 0], [[1, 2, 1]], atol=1e-12)
    grid = PhaseSpace(12, 2.0)
    state = eq.predict(grid, model, [1.0, 0, 0, 0], np.zeros(3), 1.2)
    mu, numbers = state.chemical_potential, totals(grid, model, state.f)[0]
    assert mu[1] == pytest.approx(2 * mu[0]) and np.isnan(mu[3])
    assert numbers @ [1, 2, 1, 0] == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("momentum", [np.zeros(3), np.array([0.1, 0, 0])])
def test_no_state_is_said_so(momentum):
    grid, model = PhaseSpace(10, 2.0), quarks(0.3)
    full = 6 * grid.size * grid.measure
    for number, energy in ((1.2 * full, 3 * full), (0.5 * full, 0.1 * full), (0.0, 0.0)):
        state = eq.predict(grid, model, [number], momentum, energy)
        assert not state.found and np.isnan(state.temperature) and np.isnan(state.f).all()
        assert np.isnan(eq.edge_loss(grid, model, state))
    degenerate = (grid.momentum_squared < 1.0)[None].astype(float)
    assert not eq.local(grid, model, degenerate, np.array([0.1])).found
    assert not eq.local(grid, model, 3 * degenerate, np.array([0.1])).found


# --- anchors ------------------------------------------------------------------------------------


def test_final_states_of_the_papers_step_on_its_grid():
    grid = PhaseSpace(30, 2.0)
    model = gluons(0.3)
    state = eq.predict(grid, model, *totals(grid, model, step(grid, model, 0.5)))
    assert state.temperature == pytest.approx(0.43514, abs=6e-6)
    assert state.chemical_potential[0] == pytest.approx(0.64688, abs=6e-6)
    assert state.mass_squared[0] == pytest.approx(0.5279, abs=6e-5)
    assert state.condensate_fraction == 0
    model = qcd(0.3)
    state = eq.predict(grid, model, *totals(grid, model, step(grid, model, 0.5)))
    assert state.temperature == pytest.approx(0.4022, abs=6e-5)
    np.testing.assert_allclose(state.chemical_potential, 0.2724, atol=6e-5)
    np.testing.assert_allclose(state.mass_squared, [0.3552] + [0.1579] * 6, atol=6e-5)
    numbers = totals(grid, model, state.f)[0]
    assert numbers[1:].sum() / numbers.sum() == pytest.approx(0.6801, abs=6e-5)


@pytest.mark.parametrize("cells", [60, 61])
def test_final_states_in_a_large_box_are_those_of_unlimited_space(cells):
    grid, model = PhaseSpace(cells, 6.0), gluons(0.3)
    state = eq.predict(grid, model, *exact_step(model, 0.5))
    assert state.temperature == pytest.approx(0.3838, abs=1e-4)
    assert state.chemical_potential[0] == pytest.approx(0.7015, abs=1e-3)
    assert state.mass_squared[0] == pytest.approx(0.5449, abs=1e-4)
    model = qcd(0.3)
    state = eq.predict(grid, model, *exact_step(model, 0.5))
    assert state.temperature == pytest.approx(0.3529, abs=1e-4)
    assert state.chemical_potential[0] == pytest.approx(0.3825, abs=2e-4)
    np.testing.assert_allclose(state.mass_squared, [0.3670] + [0.1631] * 6, atol=1e-4)


@pytest.mark.parametrize("cells", [40, 41])
@pytest.mark.parametrize("build, critical", [(gluons, 0.1544), (qcd, 0.3078)])
def test_massless_gluons_condense_beyond_the_critical_step(cells, build, critical):
    grid, model = PhaseSpace(cells, 5.0), build(0.3, masses="massless", screening=1.0)
    below, above = (
        eq.predict(grid, model, *exact_step(model, f0 * critical)) for f0 in (0.985, 1.015)
    )
    assert below.condensate_fraction == 0
    assert above.condensate_fraction > 0
    assert abs(above.chemical_potential[0]) < 1e-4


@pytest.mark.parametrize("cells", [40, 41])
def test_massless_condensate_fraction_is_exact(cells):
    """N - N_crit(T) with E = 16 pi^2 T^4 / 30 and N_crit = 16 zeta(3) T^3 / pi^2."""
    grid, model = PhaseSpace(cells, 6.0), gluons(0.3, masses="massless", screening=1.0)
    numbers, momentum, energy = exact_step(model, 0.3)
    temperature = (30 * energy * HBARC**3 / (16 * np.pi**2)) ** 0.25
    fraction = 1 - 16 * zeta(3) * (temperature / HBARC) ** 3 / np.pi**2 / numbers[0]
    state = eq.predict(grid, model, numbers, momentum, energy)
    assert state.temperature == pytest.approx(temperature, rel=3e-3)
    assert state.condensate_fraction == pytest.approx(fraction, abs=3e-3)
    kept = 16 * state.f.sum() * grid.measure
    assert kept == pytest.approx(numbers[0] * (1 - state.condensate_fraction), rel=1e-6)


def condensed_exactly(model, f0):
    """T, m^2 and condensate fraction in unlimited space, by radial integrals."""
    numbers, _, energy = exact_step(model, f0)
    number, energy, k = numbers[0] * HBARC**3, energy * HBARC**3, model.mass_coupling[0, 0]

    def residual(unknown):
        t, m, c = unknown

        def integral(g):
            def integrand(p):
                e = np.hypot(p, m)
                return p * p * g(e) / np.expm1(p * p / (e + m) / t)

            return 16 / (2 * np.pi**2) * quad(integrand, 1e-12, 40 * t)[0]

        y = integral(lambda e: 1 / e) + c / m
        return (
            integral(lambda e: 1.0) + c - number,
            integral(lambda e: e) + c * m - 0.25 * m * m * y - energy,
            m * m - k * y,
        )

    t, m, c = fsolve(residual, [0.45, 1.0, 0.1 * number])
    return t, m * m, c / number


@pytest.mark.parametrize("cells", [40, 41])
@pytest.mark.parametrize("alpha_s, f0", [(0.3, 2.0), (0.1, 1.0)])
def test_condensate_with_self_consistent_masses(cells, alpha_s, f0):
    grid, model = PhaseSpace(cells, 6.0), gluons(alpha_s)
    state = eq.predict(grid, model, *exact_step(model, f0))
    temperature, m2, fraction = condensed_exactly(model, f0)
    assert fraction > 0.01
    assert state.condensate_fraction == pytest.approx(fraction, abs=5e-3)
    assert state.temperature == pytest.approx(temperature, rel=5e-3)
    assert state.mass_squared[0] == pytest.approx(m2, rel=5e-3)
    assert state.chemical_potential[0] == pytest.approx(np.sqrt(state.mass_squared[0]), rel=1e-5)


@pytest.mark.parametrize("cells", [40, 41])
def test_no_condensate_at_moderate_occupation(cells):
    grid, model = PhaseSpace(cells, 5.0), gluons(0.3)
    assert eq.predict(grid, model, *exact_step(model, 0.5)).condensate_fraction == 0


def test_a_condensate_flows_with_the_fluid():
    """Number, momentum and total energy close with N_c particles of momentum gamma m v."""
    grid, model = PhaseSpace(30, 5.0), gluons(0.3)
    moving = (np.sqrt(grid.momentum_squared) - 0.4 * grid.momenta[2]) / np.sqrt(0.84)
    numbers, momentum, energy = totals(grid, model, 2.0 * (moving < Q)[None].astype(float))
    state = eq.predict(grid, model, numbers, momentum, energy)
    condensed = state.condensate_fraction * numbers[0]
    assert condensed > 0.05 * numbers[0]
    assert state.velocity[2] > 0.2
    gamma, m2 = 1 / np.sqrt(1 - state.velocity @ state.velocity), state.mass_squared[0]
    m = np.sqrt(m2)
    assert state.chemical_potential[0] == pytest.approx(m, rel=1e-5)
    particles = 16 * grid.measure * state.f
    assert particles.sum() + condensed == pytest.approx(numbers[0], rel=1e-6)
    soft = condensed * gamma * m * state.velocity
    np.testing.assert_allclose(grid.momenta @ particles[0] + soft, momentum, atol=0.02 * energy)
    y = eq.coupling_integrals(grid, model, state.f, state.mass_squared)[0]
    y += condensed * HBARC**3 / (gamma * m)
    assert model.mass_coupling[0, 0] * y == pytest.approx(m2, rel=0.01)
    kinetic = eq.kinetic_energy(grid, model, state.f, state.mass_squared) + condensed * gamma * m
    assert kinetic - 0.25 * m2 * y / HBARC**3 == pytest.approx(energy, rel=0.01)


# --- the box and the number ---------------------------------------------------------------------


def test_edge_loss_is_the_tail_outside_the_box():
    """Massless classical gas: compare with a fine sum over one octant of a huge box."""
    model = Model([Species("a", 1, 0)], [])
    for width, temperature in ((2.0, 0.4), (4.0, 0.3), (1.0, 0.5)):
        grid = PhaseSpace(20, width)
        f = eq.thermal(grid, model, temperature, [0.0], np.zeros(3), [0.0])
        state = eq.local(grid, model, f, np.zeros(1))
        p = (np.arange(200) + 0.5) * 0.1 * temperature
        x, y, z = np.meshgrid(p, p, p, indexing="ij")
        r = np.sqrt(x * x + y * y + z * z)
        energy = r * np.exp(-r / temperature)
        inside = (x < width) & (y < width) & (z < width)
        wanted = 1 - energy[inside].sum() / energy.sum()
        assert eq.edge_loss(grid, model, state) == pytest.approx(wanted, rel=0.1, abs=1e-5)


def test_edge_loss_of_the_papers_box_is_large_and_of_a_big_box_small():
    model = gluons(0.3)
    losses = []
    for width in (2.0, 6.0):
        grid = PhaseSpace(30, width)
        state = eq.predict(grid, model, *totals(grid, model, step(grid, model, 0.5)))
        losses.append(eq.edge_loss(grid, model, state))
    assert losses[0] > 0.05 and losses[1] < 2e-3


def test_temperature_without_number():
    """Black-body gluons E = 16 pi^2 T^4 / 30; thermal masses: the state at mu = 0 itself."""
    model = gluons(0.3, masses="massless", screening=1.0)
    energy = 16 * np.pi**2 / 30 * 0.4**4 / HBARC**3
    assert eq.temperature_without_number(model, energy) == pytest.approx(0.4, rel=2e-3)
    grid = PhaseSpace(50, 6.0)

    model, m2 = qcd(0.3), np.full(7, 0.1)
    for _ in range(60):
        f = eq.thermal(grid, model, 0.35, np.zeros(7), np.zeros(3), m2)
        m2 = model.mass_squared(eq.coupling_integrals(grid, model, f, m2))
    energy = eq.total_energy(grid, model, f, m2)
    assert eq.temperature_without_number(model, energy) == pytest.approx(0.35, rel=1e-4)
