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


def across_plane(p, k, cosine):
    """Two momenta of given lengths and angle: where they point together does not matter."""
    return (0.0, 0.0, p), (k * root(max(1.0 - cosine * cosine, 0.0)), 0.0, k * cosine)


def soft_angle(u, p, ep, k3, ek, m2, angle):
    """Where to draw (1 - cos theta)/span, and the factor that undoes the weight of the draw.

    m2, angle : as ``kinematics.scatter`` takes them. Where the process is peaked, tau =
    screening2 - t is drawn with the weight 1/tau: |M|^2 ~ 1/tau^2 times (Delta phi)^2 ~ tau. With
    1/tau^2, which serves rates, hardly an event would lie where a bracket comes from.
    """
    screening2, peak, span = angle
    s = max(invariant_mass2(p, ep, k3, ek, m2[2] + m2[3]), 1e-300)
    both = root(max(kallen(s, m2[0], m2[1]), 0.0) * max(kallen(s, m2[2], m2[3]), 0.0))
    width = span * both * reciprocal(2.0 * s)  # 2 k k' (1 - cos) at its end
    energies = (s + m2[0] - m2[1]) * (s + m2[2] - m2[3]) * reciprocal(4.0 * s)
    forward = m2[0] + m2[2] - 2.0 * energies + both * reciprocal(2.0 * s)
    low = screening2 - forward
    if peak == 0.0 or not low > 0.0 or width <= NARROW * low:
        return u, 1.0
    stretch = log(1.0 + width / low)
    part = low * expm1(u * stretch) / width
    return part, (low + part * width) * stretch / width


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
