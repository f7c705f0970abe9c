"""Brackets of trial functions with the linearised collision term: contribution of one event.

Around equilibrium, f = f0 + f0 F0 phi, an event a(k1) b(k2) <-> c(k3) d(p) adds its weight times
(Delta phi)(Delta psi) to (phi, C psi), with Delta phi = phi_a + phi_b - phi_c - phi_d. Trial
functions are a tensor of the momentum times a power of the energy. Tensors of two legs are
contracted over all components, so only the angles between the legs matter. Momenta and energies
are in units of T.
"""

from math import exp, expm1, log, pi

from .elementary import reciprocal, root
from .kinematics import dot, invariant_mass2, kallen

NARROW = 1e-12
"""Range of t, relative to its end, below which angles are drawn uniformly."""


def thermal_occupation(x, eta):
    """Return f = 1/(e^x - eta) and F = 1 + eta f for x = (E - mu)/T."""
    z = exp(-x)
    full = 1.0 / (-expm1(-x) if eta > 0.0 else 1.0 - eta * z)
    return z * full, full


def radius(u, i, edges, cumulative):
    """Draw |p| in bin i of a radial density table; return it and its inverse density in d^3p.

    u lies between cumulative[i] and cumulative[i + 1].
    """
    width = edges[i + 1] - edges[i]
    inverse = width / (cumulative[i + 1] - cumulative[i])
    p = edges[i] + (u - cumulative[i]) * inverse
    return p, 4.0 * pi * p * p * inverse


def radial_density(p, i, edges, cumulative):
    """Return the density in d^3p of a momentum p in bin i of a table; 0 beyond the bin's end."""
    if p >= edges[i + 1]:
        return 0.0
    return (cumulative[i + 1] - cumulative[i]) / ((edges[i + 1] - edges[i]) * 4.0 * pi * p * p)


def mirrored(there, back):
    """Return the weight factor of a drawn event that is symmetrised with its reverse.

    there, back : densities, in d^3p d^3k/(E E'), at which the event and its reverse are drawn. Both
    have the same rate in equilibrium. The factor 2 there/(there + back) preserves sums over both
    directions and bounds the weights of events with soft outgoing bosons that are rarely incoming.
    """
    return 2.0 * there / (there + back) if there > 0.0 else 1.0


def across_plane(p, k, cosine):
    """Return two momenta of given lengths and angle; their common orientation is arbitrary."""
    return (0.0, 0.0, p), (k * root(max(1.0 - cosine * cosine, 0.0)), 0.0, k * cosine)


def pole_distance(s, m2, both, pole, e):
    """Return m^2 - t at the largest t, cos theta = 1; 0 if t has no pole.

    m2 : squared masses of (k1, k2, k3, p), for u with k3 and p exchanged; both = 4 s k k'; e :
    energy of the pair. pole = (m^2, ekt): with ekt = 1 q^2 is screened, and for a nearly collinear
    pair q^2 may be as large as -t e^2/s, so that |M|^2 rises down to -t = m^2 s/e^2.
    """
    if pole[0] == 0.0:
        return 0.0
    energies = (s + m2[0] - m2[1]) * (s + m2[2] - m2[3]) * reciprocal(4.0 * s)
    forward = m2[0] + m2[2] - 2.0 * energies + both * reciprocal(2.0 * s)
    scale = s * reciprocal(e * e) if pole[1] != 0.0 else 1.0
    return pole[0] * scale - forward


def soft_undo(part, low, width):
    """Return the inverse of the density of ``soft_part``."""
    return (low + part * width) * log(1.0 + width / low) / width


def soft_part(u, low, width):
    """Draw x from 0 to 1 with density 1/(low + x width); return it and the inverse density."""
    part = low * expm1(u * log(1.0 + width / low)) / width
    return part, soft_undo(part, low, width)


def soft_angle(u, p, ep, k3, ek, m2, angle):
    """Draw x = (1 - cos theta)/span; return it and the inverse of its density.

    angle = (t_pole, u_pole, share, ekt, span): squared masses of the poles in t and u, 0 for none,
    and the fraction of events drawn for t where both have one; the density is then that of the
    mixture. At a pole in t, tau = m^2 - t is drawn with density 1/tau: gluon exchange,
    |M|^2 ~ 1/tau^2, comes with (Delta phi)^2 ~ tau, and quark exchange has |M|^2 ~ 1/tau. (With
    1/tau^2, which suits rates, few events would fall where a bracket has its weight.) A pole in u
    is treated in the same way.
    """
    t_pole, u_pole, share, ekt, span = angle
    s = max(invariant_mass2(p, ep, k3, ek, m2[2] + m2[3]), 1e-300)
    both = root(max(kallen(s, m2[0], m2[1]), 0.0) * max(kallen(s, m2[2], m2[3]), 0.0))
    width = span * both * reciprocal(2.0 * s)  # 2 k k' (1 - cos) at the end
    ahead = pole_distance(s, (m2[0], m2[1], m2[2], m2[3]), both, (t_pole, ekt), ep + ek)
    behind = pole_distance(s, (m2[0], m2[1], m2[3], m2[2]), both, (u_pole, ekt), ep + ek)
    has_t, has_u = width > NARROW * ahead > 0.0, width > NARROW * behind > 0.0
    if not has_t and not has_u:
        return u, 1.0
    if not has_u:
        return soft_part(u, ahead, width)
    if not has_t:
        part, undo = soft_part(u, behind, width)
        return 1.0 - part, undo
    if u < share:
        part, in_t = soft_part(u / share, ahead, width)
        in_u = soft_undo(1.0 - part, behind, width)
    else:
        part, in_u = soft_part((u - share) / (1.0 - share), behind, width)
        part = 1.0 - part
        in_t = soft_undo(part, ahead, width)
    return part, in_t * in_u / (share * in_u + (1.0 - share) * in_t)


def tensor_axes(a, b):
    """Contract traceless a a and b b over the components x^2 - y^2 and 3 z^2 - r^2 (E_g)."""
    along = dot((a[0] * a[0], a[1] * a[1], a[2] * a[2]), (b[0] * b[0], b[1] * b[1], b[2] * b[2]))
    return along - dot(a, a) * dot(b, b) / 3.0


def tensor_planes(a, b):
    """Contract a a and b b over the three components x y, y z and z x (T_2g)."""
    xy, yz = a[0] * a[1] * b[0] * b[1], a[1] * a[2] * b[1] * b[2]
    return 2.0 * (xy + yz + a[2] * a[0] * b[2] * b[0])


def tensor(a, b):
    """Contract traceless a a and b b over all components: (a.b)^2 - a^2 b^2/3."""
    along = dot(a, b)
    return along * along - dot(a, a) * dot(b, b) / 3.0


def share_of(leg, r):
    """Share of an event on the nodes of low k1, k2 (0, 1), high k1, k2 (2, 3), and k3, p (4, 5)."""
    if leg < 2:
        return 1.0 - r
    return r if leg < 4 else 1.0
