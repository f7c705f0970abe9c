"""Closed forms, symmetries and a direct five-dimensional sum for the quadrature of the rates."""

from functools import partial

import numpy as np
import pytest
from scipy.special import k1, kn

from relboltz.studies.validation.quadrature import (
    HBARC,
    PROCESSES,
    QUARKS_AND_ANTIQUARKS,
    gg_gg,
    pair_other_pair,
    qg_qg,
    qqbar_gg,
    rate,
    rates,
    same_same,
)

T = 0.2
CLASSICAL = (0, 0, 0, 0)
ZERO = (0.0, 0.0, 0.0, 0.0)
MASS2 = {"g": 0.25} | dict.fromkeys(QUARKS_AND_ANTIQUARKS, 0.12)
G4, SCREENING2 = (4 * np.pi * 0.3) ** 2, 0.25


def constant(s, t, u):
    return np.ones_like(t)


def direct_sum(row, masses2, mu, etas, n=20, angles=28, azimuths=10):
    """The rate in the variables E1, E2, cos(theta_12) and the direction of k3 to k1, sym = 1."""
    ma2, mb2, mc2, md2 = masses2
    node, weight = np.polynomial.legendre.leggauss(n)
    root, length = 0.5 * (node + 1), 35 * T
    step, dstep = length * root**2, length * root * weight
    e1 = (np.sqrt(ma2) + step)[:, None, None, None, None]
    e2 = (np.sqrt(mb2) + step)[:, None, None, None]
    c12 = node[:, None, None]
    cos, weight_cos = np.polynomial.legendre.leggauss(angles)
    cos = cos[:, None]
    phi = np.pi * (np.arange(azimuths) + 0.5) / azimuths

    p1, p2 = np.sqrt(e1**2 - ma2), np.sqrt(e2**2 - mb2)
    s = ma2 + mb2 + 2 * (e1 * e2 - p1 * p2 * c12)
    energy, total = e1 + e2, np.sqrt(p1**2 + p2**2 + 2 * p1 * p2 * c12)
    w = np.sqrt(s)
    e_in, e_out = (s + ma2 - mb2) / (2 * w), (s + mc2 - md2) / (2 * w)
    k_in, k_out = np.sqrt(e_in**2 - ma2), np.sqrt(e_out**2 - mc2)
    x = np.clip((e1 * w - energy * e_in) / (total * k_in), -1, 1)  # k1 to the boost
    y = x * cos + np.sqrt((1 - x**2) * (1 - cos**2)) * np.cos(phi)  # k3 to the boost
    e3 = (energy * e_out + total * k_out * y) / w
    t = ma2 + mc2 - 2 * e_in * e_out + 2 * k_in * k_out * cos
    f = [
        1 / (np.exp((e - m) / T) - eta)
        for e, m, eta in zip((e1, e2, e3, energy - e3), mu, etas, strict=True)
    ]
    value = f[0] * f[1] * (1 + etas[2] * f[2]) * (1 + etas[3] * f[3])
    value = value * row(s, t, sum(masses2) - s - t) * p1 * p2 * k_out / w
    total_sum = np.einsum("abcde,a,b,c,d->", value, dstep, dstep, weight, weight_cos) / azimuths
    return total_sum / (32 * np.pi**4) / (8 * np.pi) / HBARC**4


@pytest.mark.parametrize("sym", [1.0, 0.5, 0.25])
def test_constant_matrix_element(sym):
    # Int dPhi f = T^2 / (4 pi^2) and the final phase space is 1 / (8 pi).
    value = rate(lambda s, t, u: 7.0 * constant(s, t, u), ZERO, (T, ZERO), CLASSICAL, sym)
    assert value == pytest.approx(sym * 7.0 * T**4 / (128 * np.pi**5) / HBARC**4, rel=1e-6)


def test_constant_cross_section():
    # n = T^3 / pi^2 and <v_rel> = <1 - cos> = 1; identical particles: sym = 1/2 * 1/2 and
    # |M|^2 = 32 pi sigma s give n^2 sigma / 2 (a distinct final pair has 16 pi sigma s).
    sigma = 3.0  # GeV^-2
    density = T**3 / np.pi**2
    expected = 0.5 * density**2 * sigma / HBARC**4
    identical = rate(
        lambda s, t, u: 32 * np.pi * sigma * s + 0 * t, ZERO, (T, ZERO), CLASSICAL, 0.25
    )
    distinct = rate(lambda s, t, u: 16 * np.pi * sigma * s + 0 * t, ZERO, (T, ZERO), CLASSICAL, 1.0)
    assert identical == pytest.approx(expected, rel=1e-6)
    assert distinct == pytest.approx(2 * expected, rel=1e-6)


def test_massive_classical_gas_with_chemical_potentials():
    # Int dPhi f = m T K1(m/T) exp(mu/T) / (4 pi^2) for two masses, light final particles.
    ma, mb, mua, mub = 0.5, 0.3, 0.2, -0.1
    value = rate(constant, (ma**2, mb**2, 0.0, 0.0), (T, (mua, mub, 0.0, 0.0)), CLASSICAL, 1.0)
    flux = [m * T * k1(m / T) * np.exp(mu / T) / (4 * np.pi**2) for m, mu in ((ma, mua), (mb, mub))]
    assert value == pytest.approx(flux[0] * flux[1] / (8 * np.pi) / HBARC**4, rel=1e-6)


def test_angular_dependence_in_a_classical_gas():
    # Massless, |M|^2 = t^2: its angular mean is s^2 / 3, where s = 2 E1 E2 (1 - cos),
    # <(1 - cos)^2> = 4/3 and Int dPhi f E^2 = 3! T^4 / (4 pi^2).
    value = rate(lambda s, t, u: t**2, ZERO, (T, ZERO), CLASSICAL, 1.0)
    moment = 6 * T**4 / (4 * np.pi**2)
    expected = 4 * (4 / 3) * moment**2 / 3 / (8 * np.pi) / HBARC**4
    assert value == pytest.approx(expected, rel=1e-6)


def test_quantum_incoming_gas_as_sum_of_boltzmann_terms():
    # f = sum_n (+-1)^(n+1) exp(-n E / T) gives sums of K1 (flux) and K2 (density).
    m2, n = 0.25, np.arange(1, 60)
    m = np.sqrt(m2)
    flux_g = np.sum(m * T / n * k1(n * m / T)) / (4 * np.pi**2)
    flux_q = np.sum((-1.0) ** (n + 1) * m * T / n * k1(n * m / T)) / (4 * np.pi**2)
    masses2 = (m2, m2, 0.0, 0.0)
    value = rate(constant, masses2, (T, ZERO), (1, -1, 0, 0), 1.0)
    assert value == pytest.approx(flux_g * flux_q / (8 * np.pi) / HBARC**4, rel=1e-6)
    # <s> = 2 m^2 + 2 E1 E2, Int dPhi f E = density / 2.
    density_g = np.sum(m2 * T / n * kn(2, n * m / T)) / (2 * np.pi**2)
    density_q = np.sum((-1.0) ** (n + 1) * m2 * T / n * kn(2, n * m / T)) / (2 * np.pi**2)
    value = rate(lambda s, t, u: s + 0 * t, masses2, (T, ZERO), (1, -1, 0, 0), 1.0)
    expected = 2 * m2 * flux_g * flux_q + 0.5 * density_g * density_q
    assert value == pytest.approx(expected / (8 * np.pi) / HBARC**4, rel=1e-6)


@pytest.mark.parametrize(
    ("row", "masses2", "mu", "etas"),
    [
        (gg_gg, (0.25,) * 4, ZERO, (1, 1, 1, 1)),
        (qg_qg, (0.12, 0.25, 0.12, 0.25), (0.1, 0.0, 0.1, 0.0), (-1, 1, -1, 1)),
        (same_same, (0.12,) * 4, (0.3,) * 4, (-1,) * 4),
        (pair_other_pair, (0.12,) * 4, (0.1, -0.1, 0.1, -0.1), (-1,) * 4),
    ],
)
def test_direct_sum(row, masses2, mu, etas):
    function = partial(row, g4=G4, m2=SCREENING2)
    value = rate(function, masses2, (T, mu), etas, 1.0)
    assert value == pytest.approx(direct_sum(function, masses2, mu, etas), rel=3e-4)


def test_detailed_balance_of_annihilation():
    # f_a f_b F_c F_d is symmetric under exchange of initial and final state in equilibrium.
    row = partial(qqbar_gg, g4=G4, m2=SCREENING2)
    mu = (0.1, -0.1, 0.0, 0.0)
    forward = rate(row, (0.12, 0.12, 0.25, 0.25), (T, mu), (-1, -1, 1, 1), 0.5)
    backward = rate(row, (0.25, 0.25, 0.12, 0.12), (T, mu[::-1]), (1, 1, -1, -1), 0.5)
    assert forward == pytest.approx(backward, rel=1e-6)
    direct = direct_sum(row, (0.25, 0.25, 0.12, 0.12), mu[::-1], (1, 1, -1, -1))
    assert forward == pytest.approx(0.5 * direct, rel=3e-4)


def test_exchange_of_identical_final_particles():
    # Without the interference of the t and u channels, both contribute equally.
    both = rate(
        lambda s, t, u: 1 / (t - SCREENING2) ** 2 + 1 / (u - SCREENING2) ** 2,
        (0.12,) * 4, (T, ZERO), (-1,) * 4, 1.0,
    )  # fmt: skip
    one = rate(lambda s, t, u: 2 / (t - SCREENING2) ** 2, (0.12,) * 4, (T, ZERO), (-1,) * 4, 1.0)
    assert both == pytest.approx(one, rel=1e-6)


@pytest.mark.parametrize(
    ("temperature", "mu_q", "mass2", "screening2"),
    [
        (0.2, 0.0, (0.25, 0.12), 0.25),
        (0.4, 0.0, (0.25, 0.12), 0.25),
        (0.2, 0.3, (0.25, 0.12), 0.25),
        (0.3, 0.1, (0.04, 0.01), 0.04),
    ],
)
def test_two_rule_sizes(temperature, mu_q, mass2, screening2):
    masses2 = {"g": mass2[0]} | dict.fromkeys(QUARKS_AND_ANTIQUARKS, mass2[1])
    mu = {q: -mu_q if q.endswith("bar") else mu_q for q in QUARKS_AND_ANTIQUARKS} | {"g": 0.0}
    small = rates(temperature, mu, masses2, screening2, 0.3, points=32)
    large = rates(temperature, mu, masses2, screening2, 0.3, points=48)
    assert small == pytest.approx(large, rel=5e-4)


def test_names_and_symmetries():
    value = rates(T, dict.fromkeys(MASS2, 0.0), MASS2, SCREENING2, 0.3)
    assert list(value) == list(PROCESSES)
    assert len(value) == 34
    assert len({round(v, 12) for v in value.values()}) == 7
    assert all(v > 0 for v in value.values())


def test_unphysical_input_is_refused():
    with pytest.raises(ValueError, match="boson"):
        rate(constant, (0.01,) * 4, (T, (0.2,) * 4), (1,) * 4, 1.0)
    with pytest.raises(ValueError, match="screening2"):
        rates(T, dict.fromkeys(MASS2, 0.0), MASS2, 0.001, 0.3)
