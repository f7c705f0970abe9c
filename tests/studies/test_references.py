"""Own solvers and quadratures that ``relboltz validate`` compares with: laws and known values."""

from functools import partial

import numpy as np
import pytest
from scipy import integrate

from relboltz.studies.validation import isotropic, quadrature, quantum, step_start, vlasov

G4 = (4 * np.pi * 0.3) ** 2


def thermal(temperature, mu, eta):
    return lambda e: 1 / (np.exp((e - mu) / temperature) - eta)


def test_integrals_over_energies_are_those_in_the_rest_frame():
    """u g -> u g of a thermal gas: E, P and two energies here, s and Legendre moments there."""
    quark = isotropic.ScatteringSpecies(0.16, thermal(0.25, 0.05, -1), -1)
    gluon = isotropic.ScatteringSpecies(0.2, thermal(0.25, 0.0, 1), 1)
    row = partial(quadrature.qg_qg, g4=G4, m2=0.2)
    legs = (quark, gluon, quark, gluon)
    rate = isotropic.collisions(row, legs, {"rate": isotropic.one}, 8.0, 14)["rate"]
    masses2, mu = (0.16, 0.2, 0.16, 0.2), (0.05, 0.0, 0.05, 0.0)
    other = quadrature.rate(row, masses2, (0.25, mu), (-1, 1, -1, 1), 1.0)
    assert rate == pytest.approx(other, rel=1e-3)


def test_integrals_of_a_step_have_the_outside_numbers():
    """With rules too short for their errors, but far better than a wrong factor."""
    gluon2, quark2 = step_start.thermal_masses()

    def integrand(p):
        return 16 * 0.5 * p * p / np.sqrt(p * p + gluon2) / (2 * np.pi**2)

    y = integrate.quad(integrand, 0, 1.5)[0]
    assert gluon2 == pytest.approx(4 * np.pi * 0.3 * 3 / 8 * y, rel=1e-9)
    assert quark2 == pytest.approx(4 * np.pi * 0.3 / 6 * y, rel=1e-9)
    found = step_start.integrated(8)
    for name, (value, error) in step_start.REFERENCES.items():
        assert found[name] == pytest.approx(value, abs=3 * error + 1e-3 * value), name


# --- the solver in one dimension ------------------------------------------------------------------


@pytest.mark.parametrize("eta", [1, -1, 0])
def test_the_solver_conserves_and_leaves_equilibrium_alone(eta):
    p = np.sqrt((0.5 + (np.arange(40) + 0.5) * 0.1) ** 2 - 0.25)
    energy, change = np.sqrt(p * p + 0.25), np.empty(40)
    quantum._collided(0.6 * np.exp(-(p**4)), p, float(eta), change)
    size = np.abs(change).sum()
    assert size > 0 and abs(change.sum()) < 1e-13 * size
    assert abs(change @ energy) < 1e-13 * size * energy.max()
    quantum._collided(thermal(0.4, 0.2, eta)(energy), p, float(eta), change)
    assert np.abs(change).sum() < 1e-12 * size


@pytest.mark.parametrize("gas", quantum.GASES[:2], ids=["Bose", "Fermi"])
def test_the_solver_starts_with_the_rate_of_all_collisions(gas):
    """d<p^2>/dt at the start: sums over energies against the integral with its own prefactor."""
    energy = gas.mass + (np.arange(120) + 0.5) * 0.025
    p2 = energy**2 - gas.mass**2
    p, change = np.sqrt(p2), np.empty(120)
    quantum._collided(gas.start(p2), p, float(gas.statistics), change)
    factor = gas.element * 0.025**3 / (128 * np.pi**3 * gas.states * quantum.HBARC)
    found = factor * (change @ p2) * gas.states / (2 * np.pi**2) / quantum.HBARC**3

    leg = isotropic.ScatteringSpecies(
        gas.mass**2, lambda e: gas.start(e * e - gas.mass**2), gas.statistics
    )
    exact = isotropic.collisions(
        lambda s, t, u: np.full_like(t, gas.element), (leg,) * 4,
        {"p2": lambda a, b, c, d: c * c + d * d - a * a - b * b}, 5.0, 12,
    )["p2"] / 4  # fmt: skip
    assert found == pytest.approx(exact, rel=0.015)  # 0.6 % of dE, 0.6 % of the rule


# --- markers --------------------------------------------------------------------------------------


def test_markers_move_with_the_hamiltonian_of_their_masses():
    rng = np.random.default_rng(1)
    state, across2 = rng.uniform(-1.0, 1.0, (2, 20)), rng.uniform(0.1, 0.5, 20)
    modes, rate = np.array([0.4, 0.1, -0.05, 0.03, 0.02]), np.empty((2, 20))

    def hamiltonian(x, p):
        angle = vlasov.K * x
        m2 = 0.4 + 0.1 * np.cos(angle) - 0.05 * np.sin(angle)
        m2 = m2 + 0.03 * np.cos(2 * angle) + 0.02 * np.sin(2 * angle)
        return np.sqrt(p * p + across2 + m2)

    vlasov._moved(state, across2, modes, rate)
    (x, p), d = state, 1e-5
    by_p = (hamiltonian(x, p + d) - hamiltonian(x, p - d)) / (2 * d)
    by_x = (hamiltonian(x + d, p) - hamiltonian(x - d, p)) / (2 * d)
    assert rate[0] == pytest.approx(by_p, rel=1e-7)
    assert rate[1] == pytest.approx(-by_x, rel=1e-6, abs=1e-9)


def test_masses_of_markers_are_self_consistent():
    rng = np.random.default_rng(2)
    state, across2 = rng.uniform(-1.0, 1.0, (2, 20)), rng.uniform(0.1, 0.5, 20)
    weight, modes = np.full(20, 0.001), np.array([0.3, 0.0, 0.0])
    for _ in range(8):
        vlasov._masses(state, across2, weight, modes)
    c, s = np.cos(vlasov.K * state[0]), np.sin(vlasov.K * state[0])
    m2 = modes[0] + modes[1] * c + modes[2] * s
    over = vlasov.COUPLING * weight / np.sqrt(state[1] ** 2 + across2 + m2)
    exact = [vlasov.BARE2 + over.sum(), 2 * over @ c, 2 * over @ s]
    assert modes == pytest.approx(np.array(exact), rel=1e-9)
