"""Brackets of trial functions with the linearised collision term: what one event adds to them.

Around equilibrium, f = f0 + f0 F0 phi, an event a(k1) b(k2) <-> c(k3) d(p) adds its weight times
(Delta phi)(Delta psi) to (phi, C psi), with Delta phi = phi_a + phi_b - phi_c - phi_d. Trial
functions are a tensor of the momentum times a power of the energy, and tensors of two legs are
contracted over all their components: then only the angles between the legs matter. Momenta and
energies here are in units of T.
"""

from math import exp, expm1, log, pi

from .elementary import reciprocal, root
from .kinematics import dot, invariant_mass2, kallen

NARROW = 1e-12
"""A range of t relative to its end below which angles are drawn evenly."""


def thermal_occupation(x, eta):
    """f = 1/(e^x - eta) and F = 1 + eta f of a state with x = (E - mu)/T."""
    z = exp(-x)
    full = 1.0 / (-expm1(-x) if eta > 0.0 else 1.0 - eta * z)
    return z * full, full


def radius(u, i, edges, cumulative):
    """|p| in bin i of a table of the radial density, and the inverse of its density in d^3p.

    u lies between cumulative[i] and cumulative[i + 1].
    """
    width = edges[i + 1] - edges[i]
    inverse = width / (cumulative[i + 1] - cumulative[i])
    p = edges[i] + (u - cumulative[i]) * inverse
    return p, 4.0 * pi * p * p * inverse


def radial_density(p, i, edges, cumulative):
    """Density in d^3p of a momentum p in bin i of a table; 0 beyond its end."""
    if p >= edges[i + 1]:
        return 0.0
    return (cumulative[i + 1] - cumulative[i]) / ((edges[i + 1] - edges[i]) * 4.0 * pi * p * p)


def mirrored(there, back):
    """Factor of a drawn event if its mirror image, before and after exchanged, counts as well.

    there, back : densities, in d^3p d^3k/(E E'), at which the event and its mirror image are drawn.
    Both weigh the same in equilibrium. With 2 there/(there + back) sums over both directions stay
    as they are, and weights are bounded where soft bosons come out that seldom go in.
    """
    return 2.0 * there / (there + back) if there > 0.0 else 1.0


def across_plane(p, k, cosine):
    """Two momenta of given lengths and angle: where they point together does not matter."""
    return (0.0, 0.0, p), (k * root(max(1.0 - cosine * cosine, 0.0)), 0.0, k * cosine)


def pole_distance(s, m2, both, pole, e):
    """m^2 - t at t's largest value, at cos theta = 1; 0 where t has no pole.

    m2 : of (k1, k2, k3, p), or with k3 and p exchanged for u; both = 4 s k k'; e : of the pair.
    pole = (m^2, ekt): with ekt = 1 it is q^2 that is screened, and of a pair that flies along
    together q^2 may be as large as -t e^2/s: then |M|^2 rises down to -t = m^2 s/e^2.
    """
    if pole[0] == 0.0:
        return 0.0
    energies = (s + m2[0] - m2[1]) * (s + m2[2] - m2[3]) * reciprocal(4.0 * s)
    forward = m2[0] + m2[2] - 2.0 * energies + both * reciprocal(2.0 * s)
    scale = s * reciprocal(e * e) if pole[1] != 0.0 else 1.0
    return pole[0] * scale - forward


def soft_undo(part, low, width):
    """Inverse of the density of ``soft_part``."""
    return (low + part * width) * log(1.0 + width / low) / width


def soft_part(u, low, width):
    """x from 0 to 1, drawn with a density 1/(low + x width), and the inverse of the density."""
    part = low * expm1(u * log(1.0 + width / low)) / width
    return part, soft_undo(part, low, width)


def soft_angle(u, p, ep, k3, ek, m2, angle):
    """Where to draw x = (1 - cos theta)/span, and the inverse of the density of the draw in x.

    angle = (t_pole, u_pole, share, ekt, span): squared masses of the poles in t and u, 0 for none,
    and the part of the events that is drawn for t where both have one; the density is then that of
    the mixture. At a pole in t, tau = m^2 - t is drawn with the density 1/tau: gluon exchange,
    |M|^2 ~ 1/tau^2, comes with (Delta phi)^2 ~ tau, and quark exchange is |M|^2 ~ 1/tau. (With
    1/tau^2, which serves rates, hardly an event would lie where a bracket comes from.) So in u.
    """
    t_pole, u_pole, share, ekt, span = angle
    s = max(invariant_mass2(p, ep, k3, ek, m2[2] + m2[3]), 1e-300)
    both = root(max(kallen(s, m2[0], m2[1]), 0.0) * max(kallen(s, m2[2], m2[3]), 0.0))
    width = span * both * reciprocal(2.0 * s)  # 2 k k' (1 - cos) at its end
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
    """Sum over the two components x^2 - y^2 and 3 z^2 - r^2 (E_g) of traceless a a and b b."""
    along = dot((a[0] * a[0], a[1] * a[1], a[2] * a[2]), (b[0] * b[0], b[1] * b[1], b[2] * b[2]))
    return along - dot(a, a) * dot(b, b) / 3.0


def tensor_planes(a, b):
    """Sum over the three components x y, y z and z x (T_2g) of a a and b b."""
    xy, yz = a[0] * a[1] * b[0] * b[1], a[1] * a[2] * b[1] * b[2]
    return 2.0 * (xy + yz + a[2] * a[0] * b[2] * b[0])


def tensor(a, b):
    """Sum over all components of traceless a a and b b: (a.b)^2 - a^2 b^2/3."""
    along = dot(a, b)
    return along * along - dot(a, a) * dot(b, b) / 3.0


def share_of(leg, r):
    """Part of an event on nodes at low k1 and k2 (0, 1), high k1 and k2 (2, 3), k3 and p (4, 5)."""
    if leg < 2:
        return 1.0 - r
    return r if leg < 4 else 1.0
