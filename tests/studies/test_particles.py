"""Particles in Bjorken flow and at rest, against closed forms and published moments."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from relboltz.studies.validation import PROBLEMS, expanding, particles
from relboltz.studies.validation.particles import BATCHES, at_rest, bjorken

TIMES = (1.5, 2.0, 3.0, 5.0, 10.0)
KNOWN = {
    0.1: ([0.798, 0.788, 0.783, 0.784, 0.783], [2.658, 2.450, 2.185, 1.892, 1.557]),
    0.5: ([0.607, 0.495, 0.426, 0.396, 0.386], [2.682, 2.5225, 2.340, 2.146, 1.917]),
}
"""P_L/P_T and e/(n T_0) of a massless gas by Knudsen number, each to 0.001."""


def streamed(scale, mass=0.0):
    """P_L/P_T and e/(n T) of free particles from a thermal start, by quadrature."""

    def mean(what):
        def inner(c, p):
            z2 = (c * p / scale) ** 2
            e = np.sqrt(p * p * (1 - c * c) + z2 + mass**2)
            return p * p * np.exp(mass - np.hypot(p, mass)) * what(z2, p * p * (1 - c * c), e)

        return integrate.dblquad(inner, 0, 40 + mass, 0, 1, epsrel=1e-9)[0]

    number = mean(lambda z2, t2, e: 1.0)
    long, trans, energy = (
        mean(what) / number
        for what in (lambda z, t, e: z / e, lambda z, t, e: t / 2 / e, lambda z, t, e: e)
    )
    return long / trans, energy


@pytest.mark.parametrize("mass", [0.0, 2.0])
def test_free_particles_follow_the_closed_form(mass):
    """Massless: e = (3 n T/2) [1/a + arcsin(w)/w], w^2 = 1 - 1/a^2; all within 4 errors."""
    found = bjorken(mass, np.inf, (1.0, 1.5, 4.0), particles=160_000)
    assert (found.collisions == 0).all()
    for i, scale in enumerate(found.times):
        ratio, energy = streamed(scale, mass)
        assert found.ratio[i] == pytest.approx(ratio, abs=4 * found.ratio_error[i])
        assert found.energy[i] == pytest.approx(energy, abs=4 * found.energy_error[i])
        assert found.ratio_error[i] < 0.004 and found.energy_error[i] < 0.003
        w = np.sqrt(1 - 1 / scale**2)
        if mass == 0 and w > 0:
            assert energy == pytest.approx(1.5 * (1 / scale + np.arcsin(w) / w), rel=1e-8)


@pytest.mark.parametrize("knudsen", KNOWN)
def test_moments_of_the_massless_gas_are_the_published_ones(knudsen):
    """Within 4 standard errors and the 0.001 of the published ones."""
    found = bjorken(0.0, knudsen, TIMES, particles=320_000)
    ratio, energy = KNOWN[knudsen]
    assert (abs(found.ratio - ratio) < 4 * found.ratio_error + 0.001).all()
    assert (abs(found.energy - energy) < 4 * found.energy_error + 0.001).all()
    assert found.ratio_error.max() < 0.003


def test_every_pair_meets_at_the_rate_of_its_velocity():
    """<v> = 1 without masses, whatever the anisotropy; else its thermal mean by quadrature.

    <v> = Int ds (s - 4 m^2) sqrt(s) K_1(sqrt(s)/T)/(8 m^4 T K_2(m/T)^2); counting errors are
    1/sqrt(N t), and 5 of them allowed.
    """
    found = bjorken(0.0, 0.5, (2.0,), particles=160_000)
    assert found.collisions[0] == pytest.approx(np.log(2) / 0.5, rel=5 / np.sqrt(110_000))
    m, count = 1.5, 10_000
    rng = np.random.default_rng(3)
    starts = [particles.thermal(count, m, 0.0, rng) for _ in range(4)]
    integral, _ = integrate.quad(
        lambda w: 2 * w * (w * w - 4 * m * m) * w * special.k1(w), 2 * m, 60
    )
    velocity = integral / (8 * m**4 * special.kn(2, m) ** 2)
    still = at_rest(starts, m, (4.0,))
    assert still.collisions[0] == pytest.approx(4 * velocity, rel=5 / np.sqrt(4 * 2 * count))


def test_collisions_at_rest_conserve_energy_and_momentum_and_leave_equilibrium_alone():
    """To rounding, particle by particle pair; <p_z^2/E> of a thermal state stays T."""
    rng = np.random.default_rng(1)
    starts = [particles.thermal(20_000, 1.0, 0.0, rng) for _ in range(4)]
    before = [k.copy() for k in starts]
    found = at_rest(starts, 1.0, (0.0, 3.0))
    for k, first in zip(starts, before, strict=True):
        assert (abs(k - first).max(axis=1) > 1e-6).mean() > 0.9
        assert k.sum(axis=0) == pytest.approx(first.sum(axis=0), abs=1e-8)
        old, new = (np.sqrt((q**2).sum(axis=1) + 1.0).sum() for q in (first, k))
        assert new == pytest.approx(old, rel=1e-12)
    assert found.ratio == pytest.approx(1.0, abs=4 * found.ratio_error.max())


def test_the_exact_nonlinear_solution_relaxes_as_it_should():
    """f ~ k exp(-4k/3T): <k^2>/12 T^2 = 1 - exp(-tau/3)/16, where noise is 0.002."""
    count, tau = 100_000, 2.0
    rng = np.random.default_rng(5)
    starts = []
    for _ in range(4):
        size = stats.gamma.ppf((rng.permutation(count) + 0.5) / count, 4, scale=0.75)
        n = rng.normal(size=(count, 3))
        starts.append(size[:, None] * n / np.linalg.norm(n, axis=1)[:, None])
    square = [np.mean([(k**2).sum(axis=1).mean() / 12 for k in starts])]
    at_rest(starts, 0.0, (tau,))
    square.append(np.mean([(k**2).sum(axis=1).mean() / 12 for k in starts]))
    assert square[0] == pytest.approx(1 - 1 / 16, abs=1e-4)
    assert square[1] == pytest.approx(1 - np.exp(-tau / 3) / 16, abs=0.007)


def test_the_work_of_expansion_is_the_longitudinal_pressure():
    """d(tau e)/dtau = -P_L: what e/n loses is Int P_L/(n tau) dtau, by Simpson's rule."""
    times = np.linspace(1, 2, 21)
    found = bjorken(0.0, 0.3, times, particles=80_000)
    long = found.energy * found.ratio / (found.ratio + 2)  # e = P_L + 2 P_T
    work = integrate.simpson(long / times, x=times)
    assert found.energy[0] - found.energy[-1] == pytest.approx(work, abs=2e-3)


def test_a_seed_gives_the_same_numbers_and_an_oblate_start_its_pressures():
    """From exp(-sqrt(p_T^2 + (1 + xi) p_z^2)): the start is a thermal one that streamed."""
    a, b, c = (bjorken(0.0, 0.5, (1.0, 1.2), 16_000, seed, xi=3.0) for seed in (1, 1, 2))
    assert (
        (a.ratio == b.ratio).all() and (a.energy == b.energy).all() and (a.ratio != c.ratio).all()
    )
    assert a.ratio[0] == pytest.approx(streamed(2.0)[0], abs=4 * a.ratio_error[0])
    assert len(a.times) == 2 and BATCHES > 8
    with pytest.raises(ValueError, match="they rise"):
        bjorken(0.0, 0.5, (2.0, 1.5), 1600)


def test_a_solution_is_compared_within_the_errors_of_both():
    found = bjorken(0.0, 0.5, (1.5, 2.0), 16_000)
    rows = list(particles.compared("gas", found, found.ratio * 1.004, found.energy, 0.005, "it"))
    assert len(rows) == 4 and all(row.passed for row in rows)
    far = list(particles.compared("gas", found, found.ratio * 1.2, found.energy, 0.005, "it"))
    assert [row.passed for row in far] == [False, True, False, True]
    assert "tau/tau_0 = 1.5" in rows[0].quantity


@pytest.mark.parametrize("mass", [0.0, 1.0])
def test_comoving_nodes_follow_the_particles(mass):
    """Coarse ones, h = 1.25 T: within 3 % of P_L/P_T and 2 % of e; free ones would be 13 % off."""
    setup = expanding.ExpandingGrid((16, 16, 24), (10.0, 10.0, 10.0), 4, (1.5,), 160_000)
    options = {"backend": "cpu", "progress": False}
    found = bjorken(mass, 0.5, setup.times, setup.particles)
    ratio, energy = expanding.expanded(setup, mass, 0.5, **options)
    assert ratio == pytest.approx(found.ratio, rel=0.03)
    assert energy == pytest.approx(found.energy, rel=0.02)
    free = bjorken(mass, np.inf, setup.times, setup.particles)
    assert free.ratio[0] < 0.9 * found.ratio[0]
    assert PROBLEMS["bjorken"].rows is expanding.bjorken_flow
