"""Collision rates of the QCD 2 -> 2 processes in a homogeneous thermal gas, by Gauss quadrature.

The rate of a(k1) b(k2) -> c(k3) d(p) per volume and time is

    Gamma = sym * Int dPhi_a dPhi_b dPhi_c dPhi_d (2 pi)^4 delta^4(k1 + k2 - k3 - p)
            * |M|^2(s, t, u) f_a f_b F_c F_d,           dPhi = d^3k / ((2 pi)^3 2 E).

With the total momentum P = (E, P) of the pair as variable, both pairs become two-body phase
spaces at fixed P.  In the rest frame of the pair let x and y be the cosines of k1 and of k3 to the
direction of the boost, and chi the cosine between k1 and k3.  Then f_a f_b depends on (E, s, x),
F_c F_d on (E, s, y) and |M|^2 on (s, chi).  In the expansion |M|^2 = sum_l a_l(s) P_l(chi) the
addition theorem does the azimuthal integral exactly and the five dimensions factorise:

    Gamma = sym / (128 pi^5) * Int ds dE sqrt(E^2 - s) k_in k_out / s * sum_l a_l A_l B_l,
    A_l = <f_a f_b P_l(x)>_x,  B_l = <F_c F_d P_l(y)>_y,  <h>_x = 1/2 Int_{-1}^{1} dx h.

A_l and B_l are smooth and fall fast with l even where |M|^2 is sharply peaked in t.
Momenta are in GeV, rates in fm^-4.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.polynomial.legendre import leggauss, legvander

HBARC = 0.1973269804  # GeV fm
D_F, D_A, C_F, C_A = 3.0, 8.0, 4.0 / 3.0, 3.0  # SU(3) dimensions and Casimirs
CUTOFF = 40.0  # energies are integrated down to a Boltzmann factor exp(-CUTOFF)
QUARKS = ("u", "d", "s")
QUARKS_AND_ANTIQUARKS = (*QUARKS, "ubar", "dbar", "sbar")

Array = np.ndarray
Row = Callable[[Array, Array, Array], Array]
Four = Sequence[float]


# --- Matrix elements squared, summed over helicities and colours; m2 screens t and u -------------


def _scattering(s: Array, t: Array, u: Array, m2: float) -> Array:
    """Exchange of one screened gluon in the t channel."""
    return (s**2 + u**2) / (t - m2) ** 2


def gg_gg(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """g g -> g g."""
    bracket = 3 - s * u / (t - m2) ** 2 - s * t / (u - m2) ** 2 - t * u / s**2
    return 16 * g4 * D_A * C_A**2 * bracket


def qg_qg(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Quark or antiquark scattering on a gluon; k1 and k3 are the quark."""
    compton = C_F * (u / s + s / (u - m2))
    return 8 * g4 * D_F * C_F * (C_A * _scattering(s, t, u, m2) - compton)


def qqbar_gg(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Annihilation of a quark pair into two gluons."""
    exchange = C_F * (u / (t - m2) + t / (u - m2))
    return 8 * g4 * D_F * C_F * (exchange - C_A * (t**2 + u**2) / s**2)


def same_same(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Two identical quarks (or antiquarks)."""
    direct = _scattering(s, t, u, m2) + _scattering(s, u, t, m2)
    mixed = s**2 / ((t - m2) * (u - m2))
    return g4 * (8 * D_F**2 * C_F**2 / D_A * direct + 16 * D_F * C_F * (C_F - C_A / 2) * mixed)


def pair_same_pair(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Elastic scattering of a quark and an antiquark of one flavour."""
    direct = _scattering(s, t, u, m2) + (u**2 + t**2) / s**2
    mixed = u**2 / ((t - m2) * s)
    return g4 * (8 * D_F**2 * C_F**2 / D_A * direct + 16 * D_F * C_F * (C_F - C_A / 2) * mixed)


def different(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Elastic scattering of quarks or antiquarks of two flavours."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * _scattering(s, t, u, m2)


def pair_other_pair(s: Array, t: Array, u: Array, g4: float, m2: float) -> Array:
    """Annihilation of a quark pair into a pair of another flavour."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * (t**2 + u**2) / s**2


# --- Processes ----------------------------------------------------------------------------------


def _processes() -> dict[str, Callable[..., Array]]:
    """Return the 34 processes by name, with their matrix elements."""
    different_flavours = (
        "u d", "u s", "u dbar", "u sbar", "d s", "d ubar", "d sbar", "s ubar", "s dbar",
        "ubar dbar", "ubar sbar", "dbar sbar",
    )  # fmt: skip
    table: dict[str, Callable[..., Array]] = {"g g -> g g": gg_gg}
    table |= {f"{q} g -> {q} g": qg_qg for q in QUARKS_AND_ANTIQUARKS}
    table |= {f"{q} {q}bar -> g g": qqbar_gg for q in QUARKS}
    table |= {f"{q} {q} -> {q} {q}": same_same for q in QUARKS_AND_ANTIQUARKS}
    table |= {f"{q} {q}bar -> {q} {q}bar": pair_same_pair for q in QUARKS}
    table |= {f"{pair} -> {pair}": different for pair in different_flavours}
    table |= {f"{a} {a}bar -> {b} {b}bar": pair_other_pair for a, b in ("ud", "us", "ds")}
    return table


PROCESSES = _processes()


# --- Quadrature ---------------------------------------------------------------------------------


def _occupation(energy: Array, temperature: float, mu: float, eta: int) -> Array:
    """Return f(E): eta = +1 Bose-Einstein, -1 Fermi-Dirac, 0 Boltzmann."""
    return 1.0 / (np.exp((energy - mu) / temperature) - eta)


def quadratic_rule(points: int, length: float) -> tuple[Array, Array]:
    """Return a Gauss rule on [0, length] in the square root of the variable, for thresholds."""
    node, weight = leggauss(points)
    root = 0.5 * (node + 1.0)
    return length * root**2, length * root * weight


def clustered_rule(points: int) -> tuple[Array, Array]:
    """Return a Gauss rule on [-1, 1] with nodes clustered at both ends, where t or u is small."""
    node, weight = leggauss(points)
    return 0.5 * node * (3.0 - node**2), 1.5 * (1.0 - node**2) * weight


def rate(
    row_function: Row,
    masses2: Four,
    thermal: tuple[float, Four],
    etas: Sequence[int],
    identical_factor: float,
    points: int = 32,
) -> float:
    """Return the rate [fm^-4] of a b -> c d for the matrix element squared row_function(s, t, u).

    masses2          squared masses of a, b, c, d [GeV^2]
    thermal          temperature and the chemical potentials of a, b, c, d [GeV]
    etas             statistics of a, b, c, d: +1 boson, -1 fermion, 0 classical (F = 1)
    identical_factor 1 / ((1 + delta_ab) (1 + delta_cd))
    points           nodes per dimension; also sets the Legendre order points // 2

    For four massless bosons at mu = 0 the rate diverges logarithmically in the infrared.
    """
    temperature, mu = thermal
    ma2, mb2, mc2, md2 = masses2
    mass = np.sqrt(masses2)
    for m, potential, eta in zip(mass, mu, etas, strict=True):
        if eta == 1 and potential > m:
            raise ValueError("chemical potential of a boson above its mass")

    threshold = max(mass[0] + mass[1], mass[2] + mass[3])
    length = CUTOFF * temperature + max(mu[0] + mu[1] - threshold, 0.0)
    step, weight = quadratic_rule(points, length)
    root_s = threshold + step
    s = root_s**2
    weight_s = 2.0 * root_s * weight
    energy = root_s[:, None] + step  # E - sqrt(s) runs over the same range
    momentum = np.sqrt(step * (step + 2.0 * root_s[:, None]))

    # Rest frame of the pair: energies and momenta of k1 and k3.
    e_in = 0.5 * (s + ma2 - mb2) / root_s
    e_out = 0.5 * (s + mc2 - md2) / root_s
    k_in = np.sqrt(np.maximum(e_in**2 - ma2, 0.0))
    k_out = np.sqrt(np.maximum(e_out**2 - mc2, 0.0))

    # Legendre coefficients of |M|^2 in the angle between k1 and k3.
    order = points // 2
    chi, weight_chi = clustered_rule(2 * points)
    t = (ma2 + mc2 - 2.0 * e_in * e_out)[:, None] + 2.0 * (k_in * k_out)[:, None] * chi
    u = (sum(masses2) - s)[:, None] - t
    m2 = np.broadcast_to(row_function(s[:, None], t, u), t.shape)
    degree = np.arange(order + 1)
    a = (m2 * weight_chi) @ legvander(chi, order) * (degree + 0.5)

    # Legendre moments of the distributions in the angle to the boost.
    x, weight_x = clustered_rule(points)
    moment = 0.5 * weight_x[:, None] * legvander(x, order)
    boost = [v[:, None, None] / root_s[:, None, None] for v in (e_in, k_in, e_out, k_out)]
    energy, momentum = energy[..., None], momentum[..., None]
    e1 = boost[0] * energy + boost[1] * momentum * x
    e3 = boost[2] * energy + boost[3] * momentum * x
    f = [
        _occupation(e, temperature, potential, eta)
        for e, potential, eta in zip((e1, energy - e1, e3, energy - e3), mu, etas, strict=True)
    ]
    moments_in = (f[0] * f[1]) @ moment
    moments_out = ((1.0 + etas[2] * f[2]) * (1.0 + etas[3] * f[3])) @ moment

    product = np.einsum("sl,sel,sel->se", a, moments_in, moments_out)
    integral = (weight_s * k_in * k_out / s) @ (product * momentum[..., 0]) @ weight
    return float(identical_factor * integral / (128.0 * np.pi**5) / HBARC**4)


def rates(
    T: float,
    mu: Mapping[str, float],
    mass2: Mapping[str, float],
    screening2: float,
    alpha_s: float,
    points: int = 32,
) -> dict[str, float]:
    """Return the rates [fm^-4] of the 34 processes by name; mu [GeV] and mass2 [GeV^2] by species.

    |M|^2 is used unmodified, with its sign: for masses small compared with the screening mass,
    q qbar -> g g is negative at s below about 2.6 screening2. In q g -> q g the largest u is
    (m_q - m_g)^2, which screening2 has to exceed for the integral to exist.
    """
    gaps2 = [(mass2[q] ** 0.5 - mass2["g"] ** 0.5) ** 2 for q in QUARKS_AND_ANTIQUARKS]
    if screening2 <= max(gaps2):
        raise ValueError("screening2 leaves the u channel of q g -> q g singular")
    g4 = (4.0 * np.pi * alpha_s) ** 2
    known: dict[Any, float] = {}
    result = {}
    for name, row in PROCESSES.items():
        a, b, c, d = name.replace("->", "").split()
        masses2 = tuple(mass2[p] for p in (a, b, c, d))
        potentials = tuple(mu[p] for p in (a, b, c, d))
        key = (row, masses2, potentials)
        if key not in known:
            etas = tuple(1 if p == "g" else -1 for p in (a, b, c, d))
            identical = 1.0 / ((1 + (a == b)) * (1 + (c == d)))
            known[key] = rate(
                partial(row, g4=g4, m2=screening2),
                masses2,
                (T, potentials),
                etas,
                identical,
                points,
            )
        result[name] = known[key]
    return result
