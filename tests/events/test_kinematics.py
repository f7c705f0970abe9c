"""Two-body kinematics: conservation, invariants, phase space and the paper's delta functions."""

import math

import numpy as np
import pytest

from relboltz.backends.physics import compiled
from relboltz.events import kinematics as kin

# m_a, m_b, m_c, m_d [GeV]
MASSES = {
    "massless": (0.0, 0.0, 0.0, 0.0),
    "equal": (0.5, 0.5, 0.5, 0.5),
    "quark gluon": (0.4, 0.7, 0.4, 0.7),
    "annihilation": (0.0, 0.0, 0.3, 0.3),
    "creation": (0.3, 0.3, 0.0, 0.0),
    "all different": (0.9, 0.2, 0.5, 0.05),
}
REST = 7.0
INNER = (REST, REST, 0.0)
"""1/E of a massless node at rest [GeV^-1]."""
FLAT = (0.0, 0.0, 2.0)


def squares(masses):
    """Squared masses [GeV^2]."""
    return tuple(m * m for m in masses)


def vectors(rng, n=1, scale=1.0):
    """n momenta of a GeV or so."""
    return [tuple(v) for v in rng.normal(0, scale, (n, 3)).tolist()]


def add(a, b):
    """a + b."""
    return tuple(x + y for x, y in zip(a, b, strict=True))


def subtract(a, b):
    """a - b."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def four(k, m2):
    """(E, k) as an array."""
    return np.array([math.sqrt(sum(x * x for x in k) + m2), *k])


def square(k):
    """Invariant square of a four-vector."""
    return k[0] ** 2 - k[1] ** 2 - k[2] ** 2 - k[3] ** 2


def boost(total):
    """The Lorentz matrix into the rest frame of a four-vector, from its textbook form."""
    beta = total[1:] / total[0]
    gamma = total[0] / math.sqrt(square(total))
    matrix = np.eye(4)
    matrix[0, 0] = gamma
    matrix[0, 1:] = matrix[1:, 0] = -gamma * beta
    matrix[1:, 1:] += (gamma - 1) * np.outer(beta, beta) / (beta @ beta)
    return matrix


def open_pairs(masses, seed, n):
    """Random (p, k3) above threshold."""
    rng = np.random.default_rng(seed)
    m2 = squares(masses)
    found = []
    while len(found) < n:
        p, k3 = vectors(rng, 2)
        s = square(four(p, m2[3]) + four(k3, m2[2]))
        if s > 1.05 * (masses[0] + masses[1]) ** 2 + 0.05:
            found.append((p, k3))
    return found


# --- frames -------------------------------------------------------------------------------------


def test_boosts_lead_to_the_rest_frame_and_back():
    """to_rest_frame agrees with the Lorentz matrix; from_rest_frame undoes it."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        k, q = vectors(rng, 2, 2.0)
        ka, qa = four(k, 0.3), four(q, 0.0)
        total = ka + qa
        root_s = math.sqrt(square(total))
        frame = (tuple(total[1:]), 1 / root_s, 1 / (root_s * (total[0] + root_s)))
        expected = boost(total) @ ka
        there = kin.to_rest_frame(k, ka[0], *frame)
        assert there == pytest.approx(expected[1:], rel=1e-10, abs=1e-12)
        other = kin.to_rest_frame(q, qa[0], *frame)
        assert add(there, other) == pytest.approx((0, 0, 0), abs=1e-12)
        assert kin.from_rest_frame(there, expected[0], *frame) == pytest.approx(k, abs=1e-12)


def test_breakup_momentum_adds_up_to_the_total_energy():
    """sqrt(k*^2 + m^2) + sqrt(k*^2 + n^2) = sqrt s, and k* = 0 at threshold."""
    for s, m, n in [(4.0, 0.3, 0.5), (9.0, 0.0, 1.0), (1.0, 0.0, 0.0), (6.25, 1.25, 1.25)]:
        k2 = kin.breakup_momentum2(s, m * m, n * n)
        assert math.sqrt(k2 + m * m) + math.sqrt(k2 + n * n) == pytest.approx(math.sqrt(s))
    assert kin.breakup_momentum2(6.25, 1.25**2, 1.25**2) == 0.0


def test_turn_gives_unit_vectors_at_the_asked_angle():
    """|v| = 1, v.n = cos(theta), and opposite azimuths average to n cos(theta), for every n."""
    rng = np.random.default_rng(3)
    axes = [kin.unit_vector(v) for v in vectors(rng, 20)]
    axes += [(0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (1.0, 0.0, 0.0), (0.0, 1.0, -0.0)]
    for n in axes:
        for cosine in (-1.0, -0.3, 0.0, 0.8, 1.0):
            v = kin.turn(n, 1 - cosine, 0.6, 0.8)
            w = kin.turn(n, 1 - cosine, -0.6, -0.8)
            assert kin.dot(v, v) == pytest.approx(1, abs=1e-13)
            assert kin.dot(v, n) == pytest.approx(cosine, abs=1e-13)
            assert add(v, w) == pytest.approx([2 * cosine * x for x in n], abs=1e-13)
            across = kin.turn(n, 1 - cosine, -0.8, 0.6)
            assert kin.dot(across, v) == pytest.approx(cosine**2, abs=1e-13)


def test_the_direction_of_nothing_is_the_z_axis():
    """unit_vector(0) is defined, and has length 1."""
    assert kin.unit_vector((0.0, 0.0, 0.0)) == (0.0, 0.0, 1.0)
    assert kin.unit_vector((0.0, -3.0, 4.0)) == pytest.approx((0, -0.6, 0.8))


# --- scatter ------------------------------------------------------------------------------------


@pytest.mark.parametrize("angle", [FLAT, (0.3, 1.0, 2.0), (0.3, 1.0, 1.0)], ids=str)
@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_scattering_conserves_energy_and_momentum(masses, angle):
    """E_a(k1) + E_b(P - k1) = E, t = (k1 - k3)^2, s + t + u = sum of squared masses."""
    ma2, mb2, mc2, md2 = m2 = squares(masses)
    rng = np.random.default_rng(4)
    for p, k3 in open_pairs(masses, 5, 40):
        draws = tuple(rng.random(2).tolist())
        k1, e, s, t, weight = kin.scatter(p, k3, m2, draws, angle, INNER)
        total = add(p, k3)
        a, b = four(k1, ma2), four(subtract(total, k1), mb2)
        c, d = four(k3, mc2), four(p, md2)
        assert weight > 0
        assert e == pytest.approx(c[0] + d[0], rel=1e-14)
        assert a[0] + b[0] == pytest.approx(e, rel=1e-12)
        assert s == pytest.approx(square(c + d), rel=1e-12)
        assert t == pytest.approx(square(a - c), abs=1e-11 * e * e)
        u = square(a - d)
        assert s + t + u == pytest.approx(sum(m2), abs=1e-11 * e * e)


@pytest.mark.parametrize("masses", [MASSES["massless"], MASSES["all different"]], ids=str)
def test_flat_angles_are_isotropic_in_the_rest_frame_of_the_pair(masses):
    """First and second moments of the direction of k1 within 4 sigma."""
    m2 = squares(masses)
    (p, k3), n = open_pairs(masses, 6, 1)[0], 8000
    rng = np.random.default_rng(7)
    matrix = boost(four(p, m2[3]) + four(k3, m2[2]))
    directions = np.empty((n, 3))
    for i, draws in enumerate(rng.random((n, 2)).tolist()):
        k1 = kin.scatter(p, k3, m2, draws, FLAT, INNER)[0]
        rest = (matrix @ four(k1, m2[0]))[1:]
        directions[i] = rest / np.linalg.norm(rest)
    assert np.all(np.abs(directions.mean(axis=0)) < 4 * math.sqrt(1 / 3 / n))
    second = directions.T @ directions / n - np.eye(3) / 3
    sigma = np.where(np.eye(3) > 0, math.sqrt(4 / 45 / n), math.sqrt(1 / 15 / n))
    assert np.all(np.abs(second) < 4 * sigma)


def phase_space_average(p, k3, m2, angle, function, n=4000):
    """Average of weight E_c E_d function(t, u) over evenly spread first draws."""
    energies = kin.energy(p, m2[3]) * kin.energy(k3, m2[2])
    total = 0.0
    for i in range(n):
        _, _, s, t, weight = kin.scatter(p, k3, m2, ((i + 0.5) / n, 0.3), angle, INNER)
        total += weight * energies * function(t, sum(m2) - s - t)
    return total / n


@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_the_peak_in_t_changes_no_average(masses):
    """<weight E_c E_d> = k*/(4 pi sqrt s), <.. t>, <.. t^2> in closed form, flat and peaked."""
    m2 = squares(masses)
    ma2, mb2, mc2, md2 = m2
    p, k3 = open_pairs(masses, 8, 1)[0]
    s = square(four(p, md2) + four(k3, mc2))
    root = math.sqrt(s)
    e1, e3 = (s + ma2 - mb2) / (2 * root), (s + mc2 - md2) / (2 * root)
    k_out, k_in = math.sqrt(e1 * e1 - ma2), math.sqrt(e3 * e3 - mc2)
    phase_space = k_out / (4 * math.pi * root)
    middle, half = ma2 + mc2 - 2 * e1 * e3, 2 * k_in * k_out
    for angle in (FLAT, (0.2, 1.0, 2.0)):
        for function, mean in [
            (lambda t, u: 1.0, 1.0),
            (lambda t, u: t, middle),
            (lambda t, u: t * t, middle**2 + half**2 / 3),
        ]:
            average = phase_space_average(p, k3, m2, angle, function)
            assert average == pytest.approx(phase_space * mean, rel=1e-4)


@pytest.mark.parametrize("masses", ["massless", "equal", "annihilation", "creation"])
def test_half_the_sphere_serves_functions_symmetric_in_t_and_u(masses):
    """span = 1 gives the same averages of t u and of 1/(m - t)^2 + 1/(m - u)^2 as span = 2."""
    m2 = squares(MASSES[masses])
    p, k3 = open_pairs(MASSES[masses], 9, 1)[0]
    for function in (
        lambda t, u: t * u,
        lambda t, u: (0.2 - t) ** -2 + (0.2 - u) ** -2,
    ):
        whole = phase_space_average(p, k3, m2, FLAT, function, n=20000)
        half = phase_space_average(p, k3, m2, (0.2, 1.0, 1.0), function)
        assert half == pytest.approx(whole, rel=1e-4)


def test_the_peak_draws_small_t_most_often():
    """P(tau) ~ 1/tau^2: 1/tau is uniform between its ends."""
    m2 = squares(MASSES["massless"])
    p, k3 = open_pairs(MASSES["massless"], 10, 1)[0]
    angle = (0.2, 1.0, 2.0)
    inverse = [
        1 / (0.2 - kin.scatter(p, k3, m2, (u, 0.1), angle, INNER)[3])
        for u in np.linspace(1e-9, 1 - 1e-9, 11)
    ]
    np.testing.assert_allclose(np.diff(inverse), inverse[-1] / 10 - inverse[0] / 10, rtol=1e-6)
    assert max(inverse) == pytest.approx(5, rel=1e-6)


def test_there_is_no_scattering_below_threshold():
    """Weight 0 and finite numbers, at, below and far below threshold."""
    for m_out, p, k3 in [
        ((1.0, 1.0), (0.3, 0.0, 0.0), (-0.3, 0.0, 0.0)),
        ((2.0, 0.1), (0.3, 0.1, 0.0), (-0.2, 0.4, 0.1)),
        ((0.0, 0.0), (0.4, 0.0, 0.8), (0.2, 0.0, 0.4)),
        ((0.0, 0.0), (0.0, 0.0, 0.0), (0.2, 0.0, 0.4)),
        ((0.5, 0.5), (0.3, 0.0, 0.4), (-0.3, 0.0, -0.4)),
    ]:
        m2 = (m_out[0] ** 2, m_out[1] ** 2, 0.0, 0.0)
        for angle in (FLAT, (0.2, 1.0, 2.0)):
            k1, e, s, t, weight = kin.scatter(p, k3, m2, (0.4, 0.7), angle, INNER)
            assert weight == 0.0
            assert all(math.isfinite(v) for v in (*k1, e, s, t))
    m2 = (0.25, 0.25, 0.0, 0.0)
    assert kin.scatter((0.3, 0.0, 0.41), (-0.3, 0.0, -0.41), m2, (0.4, 0.7), FLAT, INNER)[4] > 0


def test_a_massless_node_at_rest_gives_a_finite_weight():
    """p = 0 with m_d = 0 meets a heavy k3 and both turn into light particles: s = m_c^2 is open."""
    arguments = ((0.0, 0.0, 0.0), (0.2, 0.0, 0.4), (0.0, 0.0, 0.25, 0.0), (0.4, 0.7), FLAT)
    weights = [
        f(*arguments, (at_rest, at_rest, 0.0))[4]
        for f in (compiled.scatter, kin.scatter)
        for at_rest in (REST, 2 * REST)
    ]
    phase_space = kin.two_body_phase_space(0.25, 0.25)
    expected = phase_space * REST / math.sqrt(0.2**2 + 0.4**2 + 0.25)
    assert weights == pytest.approx([expected, 2 * expected] * 2, rel=1e-12)


def test_inner_nodes_gain_what_sums_of_1_over_e_miss():
    """1/E -> 1/E + more for each leg within reach, and for no other."""
    near, far = (0.1, 0.0, 0.1), (0.3, 0.2, -0.4)
    m2 = (0.04, 0.09, 0.04, 0.09)
    ep, ek = (math.sqrt(kin.dot(k, k) + mass) for k, mass in ((near, 0.09), (far, 0.04)))

    def weight(p, k3, inner):
        return kin.scatter(p, k3, m2, (0.4, 0.7), FLAT, inner)[4]

    plain = weight(near, far, kin.NO_NODES)
    assert weight(near, far, (5.0, 3.0, 0.021)) / plain == pytest.approx(1 + 3.0 * ep, rel=1e-12)
    both = (1 + 3.0 * ep) * (1 + 5.0 * ek)
    assert weight(near, far, (5.0, 3.0, 0.3)) / plain == pytest.approx(both, rel=1e-12)
    assert weight(near, far, (5.0, 3.0, 0.01)) == plain


def test_both_forms_of_screening():
    """t - m^2, and t (q^2 + m^2)/q^2."""
    for t, q2, m2 in [(-0.7, 0.9, 0.3), (-1e-4, 2e-4, 0.5), (-5.0, 40.0, 0.01)]:
        assert kin.screened(t, q2, m2, 0.0, 2.0, 0.1) == pytest.approx(t - m2, rel=1e-15)
        assert kin.screened(t, q2, m2, 1.0, 2.0, 0.0) == pytest.approx(t * (q2 + m2) / q2)


@pytest.mark.parametrize("masses", MASSES)
def test_exchanges_are_spacelike_whatever_the_masses(masses):
    """Less their part along P, k1 - k3 and k1 - p have t = w^2 - q^2 < 0, with w E = q.P."""
    m2, rng = squares(MASSES[masses]), np.random.default_rng(5)
    ma2, mb2, mc2, md2 = m2
    for _ in range(40):
        p, k3 = vectors(rng, 2)
        draws = tuple(rng.random(2).tolist())
        k1, e, s, t, weight = kin.scatter(p, k3, m2, draws, (0.3, 0.0, 2.0), INNER)
        if weight == 0.0:
            continue
        total = np.add(p, k3)
        sides = (
            (t, k3, (mc2, md2), kin.energy_part(s, ma2, mb2, mc2, md2)),
            (sum(m2) - s - t, p, (md2, mc2), kin.energy_part(s, ma2, mb2, md2, mc2)),
        )
        for invariant, other, (n2, _), part in sides:
            exchanged = four(k1, ma2) - four(other, n2) - part * np.array([e, *total])
            q2 = kin.momentum_transfer2(k1, other, total, part)
            assert q2 == pytest.approx(float(exchanged[1:] @ exchanged[1:]), rel=1e-9, abs=1e-12)
            assert exchanged[0] * e == pytest.approx(float(exchanged[1:] @ total), abs=1e-9)
            bare = kin.screened(invariant, q2, 0.0, 1.0, s, part)
            assert bare == pytest.approx(square(exchanged), rel=1e-6, abs=1e-9)
            assert -q2 * (1 + 1e-9) <= bare < 0


def test_vanishing_exchanges_leave_a_propagator_finite():
    """At t = q^2 = 0, and where rounding makes t positive, screening still divides by a number."""
    for t, q2 in [(0.0, 0.0), (1e-16, 1e-15), (-1e-16, 0.0)]:
        for m2 in (0.0, 0.3):
            assert -math.inf < 1 / kin.screened(t, q2, m2, 1.0, 2.0, 0.0) < 0


def test_invariants_from_vectors():
    """s, t and q^2 from their definitions."""
    k, q = (0.3, -0.2, 0.5), (0.1, 0.7, -0.4)
    a, b = four(k, 0.3), four(q, 0.1)
    assert kin.invariant_mass2(k, a[0], q, b[0], 0.4) == pytest.approx(square(a + b))
    assert kin.invariant_t(k, a[0], q, b[0], 0.4) == pytest.approx(square(a - b))
    none = (0.0, 0.0, 0.0)
    assert kin.momentum_transfer2(k, q, none, 0.3) == pytest.approx(0.04 + 0.81 + 0.81)


# --- the paper's delta functions ----------------------------------------------------------------


def roots(function, masses, seed, n):
    """(p, other, k1, weight) of every root among n random settings."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        p, other = vectors(rng, 2)
        k1x, k1y = rng.normal(0, 0.5, 2).tolist()
        for branch in (1.0, -1.0):
            k1z, weight = function(p, other, k1x, k1y, squares(masses), branch)
            assert weight >= 0 and math.isfinite(weight) and math.isfinite(k1z)
            if weight > 0:
                found.append((p, other, (k1x, k1y, k1z), weight))
    return found


def shifted(k, dz):
    """k with its z component moved."""
    return k[0], k[1], k[2] + dz


@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_roots_through_k2_conserve_energy_with_the_right_jacobian(masses):
    """E1 + E2 = E, and 1/(4 E1 E2 |J|) with J = d(E1 + E2)/dk1z by finite differences."""
    ma2, mb2, mc2, md2 = squares(masses)
    found = roots(kin.root_through_k2, masses, 11, 150)
    assert len(found) > 40
    for p, k3, k1, weight in found:
        total = add(p, k3)
        e = kin.energy(p, md2) + kin.energy(k3, mc2)

        def energies(dz, k1=k1, total=total):
            k = shifted(k1, dz)
            return kin.energy(k, ma2), kin.energy(subtract(total, k), mb2)

        e1, e2 = energies(0.0)
        assert e1 + e2 == pytest.approx(e, rel=1e-9)
        d = 1e-5
        slope = abs(sum(energies(d)) - sum(energies(-d))) / (2 * d)
        if slope > 1e-2:
            assert weight == pytest.approx(1 / (4 * e1 * e2 * slope), rel=1e-5)


@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_roots_through_k3_conserve_energy_with_the_right_jacobian(masses):
    """E1 + E2 = E3 + E_p, and 1/(4 E1 E3 |J|) with J = d(E1 - E3)/dk1z."""
    ma2, mb2, mc2, md2 = squares(masses)
    found = roots(kin.root_through_k3, masses, 12, 200)
    assert len(found) > 40
    for p, k2, k1, weight in found:
        q = subtract(k2, p)

        def energies(dz, k1=k1, q=q):
            k = shifted(k1, dz)
            return kin.energy(k, ma2), kin.energy(add(k, q), mc2)

        e1, e3 = energies(0.0)
        scale = e1 + e3
        assert e1 + kin.energy(k2, mb2) - e3 - kin.energy(p, md2) == pytest.approx(
            0, abs=1e-9 * scale
        )
        d = 1e-5 * max(1.0, abs(k1[2]))
        (up1, up3), (down1, down3) = energies(d), energies(-d)
        slope = abs(up1 - up3 - down1 + down3) / (2 * d)
        if slope > 1e-2 and scale < 50:
            assert weight == pytest.approx(1 / (4 * e1 * e3 * slope), rel=1e-4)


def test_no_root_through_k3_is_missed():
    """As many sign changes of E1 + E2 - E3 - E_p along k1z as roots returned."""
    masses = MASSES["all different"]
    ma2, mb2, mc2, md2 = m2 = squares(masses)
    rng = np.random.default_rng(13)
    z = np.linspace(-60, 60, 120001)
    seen = 0
    for i in range(150):
        p, k2 = vectors(rng, 2, (0.2, 0.5, 1.0)[i % 3])
        k1x, k1y = rng.normal(0, 0.2, 2).tolist()
        q = subtract(k2, p)
        e1 = np.sqrt(k1x**2 + k1y**2 + z**2 + ma2)
        e3 = np.sqrt((k1x + q[0]) ** 2 + (k1y + q[1]) ** 2 + (z + q[2]) ** 2 + mc2)
        change = np.sign(e1 + kin.energy(k2, mb2) - e3 - kin.energy(p, md2))
        expected = z[:-1][change[1:] != change[:-1]]
        got = [kin.root_through_k3(p, k2, k1x, k1y, m2, b) for b in (1.0, -1.0)]
        got = sorted(k1z for k1z, weight in got if weight > 0 and abs(k1z) < 60)
        np.testing.assert_allclose(got, expected, atol=2e-3)
        seen += len(got)
    assert seen > 50


@pytest.mark.parametrize("masses", MASSES.values(), ids=MASSES)
def test_the_integral_over_roots_is_the_two_body_phase_space(masses):
    """Int dk1x dk1y Sum 1/(4 E1 E2 |J|) = pi k*/sqrt s.

    k1 in the grid's frame lies on an ellipsoid; its shadow in the (x, y) plane is an ellipse
    c + M^(1/2) sin(chi) (cos phi, sin phi), which takes the singular edge out of the integral.
    """
    m2 = squares(masses)
    ma2, mb2, mc2, md2 = m2
    for p, k3 in open_pairs(masses, 14, 3):
        total = four(p, md2) + four(k3, mc2)
        s = square(total)
        e1 = (s + ma2 - mb2) / (2 * math.sqrt(s))
        k_out = math.sqrt(e1 * e1 - ma2)
        back = np.linalg.inv(boost(total))
        half, centre = k_out * back[1:3, 1:], e1 * back[1:3, 0]
        values, axes = np.linalg.eigh(half @ half.T)
        shape = axes @ np.diag(np.sqrt(values)) @ axes.T
        n, integral = 24, 0.0
        for i in range(n):
            chi = 0.5 * math.pi * (i + 0.5) / n
            for j in range(n):
                phi = 2 * math.pi * (j + 0.5) / n
                k = centre + shape @ (math.sin(chi) * np.array([math.cos(phi), math.sin(phi)]))
                both = sum(kin.root_through_k2(p, k3, *k.tolist(), m2, b)[1] for b in (1.0, -1.0))
                integral += both * math.sin(chi) * math.cos(chi)
        integral *= np.linalg.det(shape) * math.pi**2 / n**2
        assert integral == pytest.approx(math.pi * k_out / math.sqrt(s), rel=1e-3)
        outside = centre + shape @ np.array([1.001, 0.0])
        assert kin.root_through_k2(p, k3, *outside.tolist(), m2, 1.0)[1] == 0


@pytest.mark.parametrize(
    "out",
    [
        (0.8, 0.8),
        (2.0, 0.1),
        (0.1, 2.0),
    ],
)
def test_there_is_no_root_through_k2_below_threshold(out):
    """Also where s < (m_a - m_b)^2, where squaring would admit E1 - E2 = E."""
    masses = (*out, 0.1, 0.1)
    p, k3 = (0.3, 0.1, -0.2), (-0.4, 0.3, 0.2)
    for k1x in np.linspace(-1, 1, 9).tolist():
        for branch in (1.0, -1.0):
            assert kin.root_through_k2(p, k3, k1x, 0.05, squares(masses), branch)[1] == 0


# --- compiled -----------------------------------------------------------------------------------


def flat(result):
    """Nested tuples as one list of numbers."""
    if isinstance(result, tuple):
        return [x for part in result for x in flat(part)]
    return [result]


@pytest.mark.parametrize("angle", [FLAT, (0.3, 1.0, 1.0)], ids=str)
def test_compiled_scattering_gives_the_same_numbers(angle):
    """Python and compiled agree to 1e-12."""
    rng = np.random.default_rng(15)
    for masses in MASSES.values():
        for p, k3 in open_pairs(masses, 16, 5):
            arguments = (p, k3, squares(masses), tuple(rng.random(2).tolist()), angle, INNER)
            expected = flat(kin.scatter(*arguments))
            assert flat(compiled.scatter(*arguments)) == pytest.approx(
                expected, rel=1e-12, abs=1e-12
            )


@pytest.mark.parametrize("name", ["root_through_k2", "root_through_k3"])
def test_compiled_roots_give_the_same_numbers(name):
    """Python and compiled agree to 1e-12 (relative to what cancels)."""
    rng = np.random.default_rng(17)
    compared = 0
    for masses in MASSES.values():
        for _ in range(10):
            p, other = vectors(rng, 2)
            k1x, k1y = rng.normal(0, 0.3, 2).tolist()
            arguments = (p, other, k1x, k1y, squares(masses), 1.0)
            expected = getattr(kin, name)(*arguments)
            got = getattr(compiled, name)(*arguments)
            assert got == pytest.approx(expected, rel=1e-10, abs=1e-12)
            compared += expected[1] > 0
    assert compared > 20


def test_compiled_screening_gives_the_same_numbers():
    """Both forms."""
    for ekt in (0.0, 1.0):
        assert compiled.screened(-0.7, 0.9, 0.3, ekt, 2.0, 0.1) == pytest.approx(
            kin.screened(-0.7, 0.9, 0.3, ekt, 2.0, 0.1), rel=1e-14
        )
