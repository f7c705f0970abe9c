"""Quarks and gluons: the paper's table of matrix elements and its thermal masses.

Departures from the paper: the masses are solved self-consistently from the first step on (the
paper starts with E = |p|), and the screening of t and u is a setting of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations

import numpy as np

from .errors import InputError
from .model import Model, Process, Screening, Species, suggest

D_F = 3.0
D_A = 8.0
C_F = 4.0 / 3.0
C_A = 3.0
N_G = 16
"""Gluon helicities times colours."""
N_Q = 6
"""Quark helicities times colours."""

FLAVORS = ("u", "d", "s")
ELECTRIC = {"u": 2 / 3, "d": -1 / 3, "s": -1 / 3}

DEBYE_OVER_GLUON = 2.0
"""m_D^2 / m_g^2: the paper's m_g is the asymptotic mass."""
XI_EKT = math.exp(5 / 6) / math.sqrt(8)
"""Makes t -> t (q^2 + xi^2 m_D^2) / q^2 reproduce soft drag at leading order."""


EKT_OVER_GLUON = XI_EKT**2 * DEBYE_OVER_GLUON
"""xi^2 m_D^2 / m_g^2."""


# --- |M|^2 of a(k1) b(k2) -> c(k3) d(p), summed over colours and helicities [dimensionless] -----
# t_screened and u_screened belong to the exchange of a gluon: t - m_g^2 and u - m_g^2 in the
# paper's regularisation, t (q^2 + m^2)/q^2 with screening = "ekt". t_regulated and u_regulated,
# always with the paper's regulator, belong to the exchange of a quark: there "ekt" is not the form
# of effective kinetic theory, which screens by the mass of the quark.


def q1q2_q1q2(s, u, t_screened, g4):
    """q1 q2 -> q1 q2, and with either or both replaced by antiquarks of another flavour."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * (s * s + u * u) / (t_screened * t_screened)


def q1q1_q1q1(s, t, u, t_screened, u_screened, g4):
    """q1 q1 -> q1 q1 and qbar1 qbar1 -> qbar1 qbar1."""
    squares = (s * s + u * u) / (t_screened * t_screened) + (s * s + t * t) / (
        u_screened * u_screened
    )
    interference = s * s / (t_screened * u_screened)
    return (
        8 * g4 * D_F**2 * C_F**2 / D_A * squares
        + 16 * g4 * D_F * C_F * (C_F - C_A / 2) * interference
    )


def q1q1bar_q1q1bar(s, t, u, t_screened, g4):
    """q1 qbar1 -> q1 qbar1."""
    squares = (s * s + u * u) / (t_screened * t_screened) + (u * u + t * t) / (s * s)
    interference = u * u / (t_screened * s)
    return (
        8 * g4 * D_F**2 * C_F**2 / D_A * squares
        + 16 * g4 * D_F * C_F * (C_F - C_A / 2) * interference
    )


def q1q1bar_q2q2bar(s, t, u, g4):
    """q1 qbar1 -> q2 qbar2."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)


def q1q1bar_gg(s, t, u, t_regulated, u_regulated, g4):
    """q1 qbar1 -> g g."""
    exchange = u / t_regulated + t / u_regulated
    contact = (t * t + u * u) / (s * s)
    return 8 * g4 * D_F * C_F**2 * exchange - 8 * g4 * D_F * C_F * C_A * contact


def q1g_q1g(s, u, t_screened, u_regulated, g4):
    """q1 g -> q1 g and qbar1 g -> qbar1 g."""
    exchange = u / s + s / u_regulated
    return -8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s + u * u) / (
        t_screened * t_screened
    )


def gg_gg(s, t, u, t_screened, u_screened, g4):
    """g g -> g g."""
    return (
        16
        * g4
        * D_A
        * C_A**2
        * (
            3
            - s * u / (t_screened * t_screened)
            - s * t / (u_screened * u_screened)
            - t * u / (s * s)
        )
    )


# --- models -------------------------------------------------------------------------------------


def qcd(
    alpha_s: float,
    flavors: int = 3,
    masses: str | Mapping[str, float] = "thermal",
    screening: str | float | None = None,
) -> Model:
    """Gluons and ``flavors`` quark flavours with their antiquarks: 34 processes for three.

    Parameters
    ----------
    alpha_s : strong coupling, g^2 = 4 pi alpha_s
    flavors : 0 to 3 (u, d, s)
    masses : "thermal" | "massless" | constant masses [GeV] such as {"g": 0.7, "quarks": 0.4}
    screening : "thermal" (the gluon mass in t and u, the paper's) | "ekt" | a mass [GeV]
    """
    quarks = FLAVORS[: _flavors(flavors, 0)]
    return _build("qcd", alpha_s, ("g", *quarks, *(q + "bar" for q in quarks)), masses, screening)


def gluons(
    alpha_s: float,
    masses: str | Mapping[str, float] = "thermal",
    screening: str | float | None = None,
) -> Model:
    """Gluons alone: g g -> g g."""
    return _build("gluons", alpha_s, ("g",), masses, screening)


def quarks(
    alpha_s: float,
    flavors: int = 1,
    antiquarks: bool = False,
    masses: str | Mapping[str, float] = "thermal",
    screening: str | float | None = None,
) -> Model:
    """Quarks without gluons: the paper's pure u quarks, or more flavours and antiquarks."""
    names = FLAVORS[: _flavors(flavors, 1)]
    if antiquarks:
        names = (*names, *(q + "bar" for q in names))
    return _build("quarks", alpha_s, names, masses, screening)


def _flavors(value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 3:
        raise InputError(f"model.flavors = {value!r}: use a whole number from {least} to 3")
    return value


def flavor(name: str) -> str:
    """The quark flavour of a species, '' for the gluon."""
    return "" if name == "g" else name.removesuffix("bar")


def species(name: str) -> Species:
    """The QCD species of that name: g u d s ubar dbar sbar."""
    if name == "g":
        return Species("g", N_G, +1)
    sign = -1 if name.endswith("bar") else 1
    q = flavor(name)
    charges = {f"net {q}": sign, "baryon": sign / 3, "electric": sign * ELECTRIC[q]}
    return Species(name, N_Q, -1, charges)


def processes(names: tuple[str, ...], g4: float) -> list[Process]:
    """All 2 <-> 2 processes of the paper's table among these species, each once."""
    rows = []
    fermions = [n for n in names if n != "g"]
    pairs = [(n, n + "bar") for n in fermions if n + "bar" in names]
    if "g" in names:
        rows.append(Process("g g -> g g", gg_gg, peak="t", g4=g4))
        rows += [Process(f"{q} g -> {q} g", q1g_q1g, peak="t", g4=g4) for q in fermions]
        rows += [Process(f"{q} {qbar} -> g g", q1q1bar_gg, g4=g4) for q, qbar in pairs]
    rows += [Process(f"{q} {q} -> {q} {q}", q1q1_q1q1, peak="t", g4=g4) for q in fermions]
    rows += [Process(f"{q} {r} -> {q} {r}", q1q1bar_q1q1bar, peak="t", g4=g4) for q, r in pairs]
    rows += [
        Process(f"{q} {r} -> {q} {r}", q1q2_q1q2, peak="t", g4=g4)
        for q, r in combinations(fermions, 2)
        if flavor(q) != flavor(r)
    ]
    rows += [
        Process(f"{q} {qbar} -> {r} {rbar}", q1q1bar_q2q2bar, g4=g4)
        for (q, qbar), (r, rbar) in combinations(pairs, 2)
    ]
    return rows


def mass_coupling(names: tuple[str, ...], g2: float) -> np.ndarray:
    """K of m_a^2 = Sum_b K_ab Y_b, Eqs. (mg) and (mq): symmetric, so total energy is conserved.

    With Y_b = N_b Int d^3p/(2 pi)^3 f_b/E_b:
    m_g^2 = g^2 (3/8 Y_g + 1/6 Sum_i Y_i),  m_i^2 = g^2 (1/6 Y_g + 2/9 Y_i).
    """

    def entry(a: str, b: str) -> float:
        if a == "g" and b == "g":
            return g2 * C_A / D_A
        if "g" in (a, b):
            return g2 * C_F / D_A
        return g2 * C_F / N_Q if flavor(a) == flavor(b) else 0.0

    return np.array([[entry(a, b) for b in names] for a in names])


def _build(
    name: str,
    alpha_s: float,
    names: tuple[str, ...],
    masses: str | Mapping[str, float],
    screening: str | float | None,
) -> Model:
    number = isinstance(alpha_s, int | float) and not isinstance(alpha_s, bool)
    if not number or not 0 < alpha_s < math.inf:
        raise InputError(f"model.alpha_s = {alpha_s!r}: the coupling must be a positive number")
    g2 = 4 * math.pi * alpha_s
    groups = {
        "quarks": tuple(n for n in names if n in FLAVORS),
        "antiquarks": tuple(n for n in names if n.endswith("bar")),
    }
    groups = {key: members for key, members in groups.items() if members}
    constant = _constant_masses(masses, names, groups)
    _check_pole(constant, screening)
    return Model(
        [species(n) for n in names],
        processes(names, g2 * g2),
        masses=constant,
        mass_coupling=mass_coupling(names, g2) if masses == "thermal" else None,
        screening=_screening(screening, masses, constant, names, g2),
        groups=groups,
        name=name,
    )


def _constant_masses(
    masses: str | Mapping[str, float], names: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """Constant masses by species: a species overrides its group, a quark implies its antiquark."""
    if isinstance(masses, str):
        if masses not in ("thermal", "massless"):
            raise InputError(
                f"model.masses = {masses!r}: use 'thermal', 'massless' or a table of masses in "
                "GeV such as { g = 0.7, quarks = 0.4 }"
            )
        return {}
    known = (*names, *groups)
    for key, value in masses.items():
        if key not in known:
            raise InputError(f"unknown key model.masses.{key}: {suggest(key, known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e3:
            raise InputError(f"model.masses.{key} = {value!r}: a mass in GeV is 0 or positive")
    result: dict[str, float] = {}
    for n in names:
        particle = n.removesuffix("bar")
        own = (
            () if n == "g" else ("antiquarks", particle, "quarks") if n != particle else ("quarks",)
        )
        given = [key for key in (n, *own) if key in masses]
        if given:
            result[n] = float(masses[given[0]])
    missing = [n for n in names if n not in result]
    if missing:
        raise InputError(
            f"model.masses has no entry for {', '.join(missing)}: give each species or its group "
            "a mass in GeV (0 if massless)"
        )
    return result


def _check_pole(masses: Mapping[str, float], screening: str | float | None) -> None:
    """Refuse constant masses too far apart for the regulator of the u channel of q g -> q g.

    u reaches (m_q - m_g)^2 > 0 there, so a screening mass has its pole where that is its square.
    With the gluon mass as the regulator the pole is at m_q = 2 m_g, and from m_q^2 = 2 m_g^2 on it
    enhances what it should screen.
    """
    gluon = masses.get("g", 0.0)
    others = {name: mass for name, mass in masses.items() if name != "g"}
    if gluon == 0 or not others:
        return
    heaviest = max(others, key=lambda name: others[name])
    heavy, advice = others[heaviest], f"lower {heaviest}, raise g, or raise model.screening"
    where = "the u channel of q g -> q g runs into the pole of its regulator"
    if screening in (None, "thermal") and heavy**2 > 2 * gluon**2 * (1 + 1e-12):
        raise InputError(
            f"model.masses: m^2 of {heaviest} = {heavy**2:.4g} GeV^2 exceeds 2 m_g^2 = "
            f"{2 * gluon**2:.4g} GeV^2: {where} (at m_q = 2 m_g); {advice}"
        )
    apart = max((mass - gluon) ** 2 for mass in others.values())
    if isinstance(screening, int | float) and apart >= screening**2:
        raise InputError(
            f"model.screening = {screening!r}: (m_q - m_g)^2 = {apart:.4g} GeV^2 reaches its "
            f"square: {where}; {advice}"
        )


def _screening(
    screening: str | float | None,
    masses: str | Mapping[str, float],
    constant: Mapping[str, float],
    names: tuple[str, ...],
    g2: float,
) -> Screening:
    """The regulator of t and u.

    "thermal" is the gluon mass in force; where the model fixes none (massless gluons, or quarks
    alone), it is the m_g^2 of Eq. (mg) that the state would give.
    """
    if screening is None:
        if masses == "massless" or constant.get("g", 1.0) == 0:
            raise InputError(
                "model.screening is required with massless gluons: 'thermal' (m_g^2 of the state), "
                "'ekt', or a mass in GeV"
            )
        screening = "thermal"
    if not isinstance(screening, str):
        number = isinstance(screening, int | float) and not isinstance(screening, bool)
        if not number or not 0 < screening < math.inf:
            raise InputError(f"model.screening = {screening!r}: a mass in GeV must be positive")
        return Screening(float(screening) ** 2)
    if screening not in ("thermal", "ekt"):
        raise InputError(f"model.screening = {screening!r}: use 'thermal', 'ekt' or a mass in GeV")
    ekt = screening == "ekt"
    scale = EKT_OVER_GLUON if ekt else 1.0
    if constant.get("g", 0.0) > 0:
        return Screening(scale * constant["g"] ** 2, ekt=ekt)
    row = [g2 * (C_A if n == "g" else C_F) / D_A for n in names]
    return Screening(coupling=tuple(scale * k for k in row), ekt=ekt)
