"""Two-body kinematics as scalar functions. Momenta and energies in GeV; s, t, u in GeV^2.

Labels are those of a(k1) b(k2) <-> c(k3) d(p): p and k3 are given, k1 and k2 = P - k1 are
determined, with P = p + k3 and E = E_d(p) + E_c(k3). Vectors are tuples of three numbers.
"""

from math import pi, sqrt

from .elementary import circle, inverse_root, reciprocal, root

TINY = 1e-300
LEAST = 1e-30
"""Added to a squared momentum transfer [GeV^2] that may vanish up to rounding."""
LIGHTLIKE = 1e-9
"""Lower bound of -t/q^2 of a spacelike exchange; the true value is at least s/E^2."""
NOTHING = 1e-18
"""Squared momenta [GeV^2] below this value count as 0: nodes are never that close."""
NO_NODES = (0.0, 0.0, -1.0)
"""Argument ``inner`` of ``scatter`` for momenta that are not nodes: no correction of 1/E."""
LEVEL = 1e-6
"""A unit vector with z > -LEVEL points up; for momenta on nodes z often vanishes up to rounding."""


def dot(a, b):
    """Return the scalar product of two vectors."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def plus(a, b):
    """Return the sum of two vectors."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def minus(a, b):
    """Return the difference of two vectors."""
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def energy(p, m2):
    """Return E = sqrt(p^2 + m^2)."""
    return root(dot(p, p) + m2)


def invariant_mass2(p, ep, k, ek, sum_m2):
    """Return s = m_c^2 + m_d^2 + 2 (E_p E_k - p.k)."""
    return sum_m2 + 2.0 * (ep * ek - dot(p, k))


def kallen(s, m2, n2):
    """Return 4 s k*^2 of particles with squared masses m2 and n2; k* : momentum in the CM frame."""
    gap = s - m2 - n2
    return gap * gap - 4.0 * m2 * n2


def breakup_momentum2(s, m2, n2):
    """Return the squared CM momentum k*^2 of two particles with squared masses m2 and n2."""
    return kallen(s, m2, n2) / (4.0 * s)


def two_body_phase_space(s, k_out):
    """Return Phi2 = (1 / 8 pi) (2 k* / sqrt s)."""
    return k_out * inverse_root(s) * (0.25 / pi)


def to_rest_frame(k, ek, total, over_root, boost):
    """Boost the vector k to the rest frame of the pair (total, e).

    over_root = 1/sqrt(s), boost = 1/(sqrt(s) (e + sqrt(s)))
    """
    c = dot(total, k) * boost - ek * over_root
    return k[0] + total[0] * c, k[1] + total[1] * c, k[2] + total[2] * c


def from_rest_frame(k, ek, total, over_root, boost):
    """Boost the vector k from the rest frame of the pair (total, e) to the frame of the grid."""
    c = dot(total, k) * boost + ek * over_root
    return k[0] + total[0] * c, k[1] + total[1] * c, k[2] + total[2] * c


def unit_vector(k):
    """Return k / |k|, or the z axis if k vanishes up to rounding."""
    norm2 = dot(k, k)
    there = norm2 > NOTHING
    inverse = inverse_root(norm2) if there else 0.0
    return k[0] * inverse, k[1] * inverse, (k[2] * inverse if there else 1.0)


def turn(n, one_minus_cos, phi_cos, phi_sin):
    """Return the unit vector at polar angle theta and azimuth phi about the unit vector n.

    The two axes orthogonal to n come from the branch-free construction of Duff et al. (2017).
    """
    cosine = 1.0 - one_minus_cos
    sine = root(one_minus_cos * (1.0 + cosine))
    sign = 1.0 if n[2] > -LEVEL else -1.0
    a = -reciprocal(sign + n[2])
    b = n[0] * n[1] * a
    x = sine * phi_cos
    y = sine * phi_sin
    return (
        cosine * n[0] + x * (1.0 + sign * n[0] * n[0] * a) + y * b,
        cosine * n[1] + x * sign * b + y * (sign + n[1] * n[1] * a),
        cosine * n[2] - x * sign * n[0] - y * n[1],
    )


def peaked_angle(u, tau_min, tau_max, span):
    """Draw 1 - cos(theta) with weight 1/tau^2; return it and the factor that undoes the weight.

    tau = screening2 - t runs from tau_min at cos = 1 to tau_max at cos = 1 - span, linearly in
    cos; tau_min = tau_max gives a uniform distribution.
    """
    inverse = reciprocal(tau_max - u * (tau_max - tau_min))
    ratio = tau_min * inverse
    return span * u * ratio, ratio * tau_max * inverse


def inverse_energy(e, at_rest):
    """Return 1/E; for a massless particle at rest the average of 1/E over its cell."""
    return 1.0 / e if e > 0.0 else at_rest


def scatter(p, k3, m2, draws, angle, inner):
    """Draw an event; return k1 in the frame of the grid, the pair's energy, s, t and the weight.

    m2 = (m_a^2, m_b^2, m_c^2, m_d^2); draws = two uniforms; angle = (screening2, peak, span):
    peak = 1 draws t with the weight 1/(screening2 - t)^2, peak = 0 an isotropic angle; span = 2
    covers the sphere, span = 1 the forward half (which has the same average for identical
    particles, as M(t, u) is symmetric). The weight is Phi2 / (E_c E_d) times the factor that undoes
    the peak; it is 0 below threshold. inner = (more_c, more_d, reach2): corrections added to 1/E_c
    and 1/E_d if the squared momentum is at most reach2 (``PhaseSpace.missing_inverse_energy``);
    they replace 1/E of a massless leg with p = 0.
    """
    ma2, mb2, mc2, md2 = m2
    screening2, peak, span = angle
    ep = energy(p, md2)
    ek = energy(k3, mc2)
    e = ep + ek
    total = plus(p, k3)
    s = invariant_mass2(p, ep, k3, ek, mc2 + md2)
    threshold = sqrt(ma2) + sqrt(mb2)
    open_ = s > threshold * threshold * (1.0 + 1e-12) + 1e-12
    s = s if open_ else 1.0 + threshold * threshold
    over_root = inverse_root(s)
    root_s = s * over_root
    half_over_root = 0.5 * over_root
    k_out = root(max(kallen(s, ma2, mb2), 0.0)) * half_over_root
    k_in = root(max(kallen(s, mc2, md2), 0.0)) * half_over_root
    e1 = (s + ma2 - mb2) * half_over_root
    e3 = (s + mc2 - md2) * half_over_root
    t_forward = ma2 + mc2 - 2.0 * (e1 * e3 - k_in * k_out)
    tau_min = peak * (screening2 - t_forward) + (1.0 - peak)
    tau_max = tau_min + peak * span * 2.0 * k_in * k_out
    one_minus_cos, unpeak = peaked_angle(draws[0], tau_min, tau_max, span)
    t = t_forward - 2.0 * k_in * k_out * one_minus_cos
    phi_cos, phi_sin = circle(draws[1])
    moving = ep * ek > 0.0
    both = ep * ek if moving else 1.0
    inverse = reciprocal((e + root_s) * both)  # one division for two
    boost = inverse * both * over_root
    axis = unit_vector(to_rest_frame(k3, ek, total, over_root, boost))
    n = turn(axis, one_minus_cos, phi_cos, phi_sin)
    k1 = from_rest_frame((k_out * n[0], k_out * n[1], k_out * n[2]), e1, total, over_root, boost)
    over_energies = inverse * (e + root_s)
    if not moving:
        over_energies = inverse_energy(ep, inner[1]) * inverse_energy(ek, inner[0])
    over_energies *= 1.0 + (inner[1] * ep if dot(p, p) <= inner[2] else 0.0)
    over_energies *= 1.0 + (inner[0] * ek if dot(k3, k3) <= inner[2] else 0.0)
    weight = two_body_phase_space(s, k_out) * unpeak * over_energies if open_ else 0.0
    return k1, e, s, t, weight


def invariant_t(k1, e1, k3, e3, sum_m2):
    """Return t = m_a^2 + m_c^2 - 2 (E_1 E_3 - k1.k3)."""
    return sum_m2 - 2.0 * (e1 * e3 - dot(k1, k3))


def energy_part(s, m2, n2, other_m2, other_n2):
    """Return (E - E')/sqrt(s) of an exchange between (m2, n2) and (other_m2, other_n2), CM frame.

    This is the component of the exchanged four-momentum along the total four-momentum. It vanishes
    for equal masses.
    """
    return 0.5 * (m2 - n2 - other_m2 + other_n2) * reciprocal(s)


def momentum_transfer2(k1, k3, total, part):
    """Return q^2 = |k1 - k3 - part total|^2 in the grid frame; this remainder is spacelike."""
    d = minus(minus(k1, k3), (part * total[0], part * total[1], part * total[2]))
    return dot(d, d)


def transfers(k1, k3, p, s, m2):
    """Return q^2 of k1 -> k3 and of k1 -> p; m2 : squared masses of (k1, k2, k3, p)."""
    total = plus(p, k3)
    t_part = energy_part(s, m2[0], m2[1], m2[2], m2[3])
    u_part = energy_part(s, m2[0], m2[1], m2[3], m2[2])
    return momentum_transfer2(k1, k3, total, t_part), momentum_transfer2(k1, p, total, u_part)


def screened(t, q2, screening2, ekt, s, part):
    """Return the screened t of a propagator: t - m^2 (ekt = 0) or t (q^2 + m^2)/q^2 (ekt = 1).

    The second form uses t, like q^2, without the component along the total momentum. It is then
    spacelike for all masses, -1 <= t/q^2 < 0, and there is no pole.
    """
    if ekt == 0.0:
        return t - screening2
    q2 += LEAST
    spacelike = min(t - part * part * s, -LIGHTLIKE * q2)  # up to rounding
    return spacelike * (q2 + screening2) / q2


def root_through_k2(p, k3, k1x, k1y, m2, branch):
    """Solve E_1 + E_2 = E_3 + E_p, k2 = k3 + p - k1, for k1z; return k1z and 1/(4 E1 E2 |J|).

    The paper's first choice: k1z = (A + branch sqrt H)/B with branch = +1 or -1. The weight,
    1/(4 E sqrt H) for either root, is 0 if there is no root.
    """
    ma2, mb2, mc2, md2 = m2
    e = energy(p, md2) + energy(k3, mc2)
    px, py, pz = plus(p, k3)
    s = e * e - px * px - py * py - pz * pz
    alpha = (s + ma2 - mb2 + 2.0 * (px * k1x + py * k1y)) / (2.0 * e)
    beta = pz / e
    rest = 1.0 - beta * beta
    h = alpha * alpha - rest * (k1x * k1x + k1y * k1y + ma2)
    threshold = sqrt(ma2) + sqrt(mb2)
    exists = h > 0.0 and rest > 0.0 and alpha > 0.0 and s > threshold * threshold
    sqrt_h = sqrt(h) if exists else 1.0
    k1z = (alpha * beta + branch * sqrt_h) / (rest if rest > 0.0 else 1.0)
    return k1z, (1.0 / (4.0 * e * sqrt_h) if exists else 0.0)


def root_through_k3(p, k2, k1x, k1y, m2, branch):
    """Solve E_1 + E_2 = E_3 + E_p, k3 = k1 + k2 - p, for k1z; return k1z and 1/(4 E1 E3 |J|).

    The paper's second choice: k1z depends on the difference E_2 - E_p, which may change sign.
    """
    ma2, mb2, mc2, md2 = m2
    delta = energy(k2, mb2) - energy(p, md2)
    qx, qy, qz = minus(k2, p)
    a0 = 0.5 * (qx * qx + qy * qy + qz * qz + mc2 - ma2 - delta * delta) + k1x * qx + k1y * qy
    perp2 = k1x * k1x + k1y * k1y + ma2
    a = qz * qz - delta * delta
    h = delta * delta * (a0 * a0 + a * perp2)
    exists = h > 0.0 and a != 0.0
    k1z = (-a0 * qz + branch * sqrt(h)) / a if exists else 0.0
    e1 = sqrt(perp2 + k1z * k1z)
    e3 = e1 + delta
    exists = exists and e3 > 0.0 and (a0 + k1z * qz) * delta > 0.0
    jacobian = abs(k1z * e3 - (k1z + qz) * e1)
    return k1z, (1.0 / (4.0 * jacobian + TINY) if exists and jacobian > 0.0 else 0.0)


def root_event(p, free, k1x, k1y, m2, branch, through_k3):
    """Return k1, k3, s, t and weight of the event at one root of the paper's delta function.

    ``free`` is k3, or k2 if the delta function was used to fix k3. The weight corresponds to
    Phi2 / (E_c E_d) in ``scatter`` and is 0 if there is no root.
    """
    ma2, mb2, mc2, md2 = m2
    if through_k3:
        k1z, chance = root_through_k3(p, free, k1x, k1y, m2, branch)
        k3 = minus(plus((k1x, k1y, k1z), free), p)
        e_free = energy(free, mb2)
    else:
        k1z, chance = root_through_k2(p, free, k1x, k1y, m2, branch)
        k3 = (free[0], free[1], free[2])
        e_free = energy(free, mc2)
    k1 = (k1x, k1y, k1z)
    ep = energy(p, md2)
    e3 = energy(k3, mc2)
    s = invariant_mass2(p, ep, k3, e3, mc2 + md2)
    threshold = sqrt(ma2) + sqrt(mb2)
    open_ = s > threshold * threshold * (1.0 + 1e-12) + 1e-12
    valid = chance > 0.0 and e_free > 0.0 and ep > 0.0 and open_
    t = invariant_t(k1, energy(k1, ma2), k3, e3, ma2 + mc2)
    weight = chance / (4.0 * pi * pi * e_free * ep) if valid else 0.0
    return k1, k3, (s if valid else 1.0), (t if valid else -0.5), weight
