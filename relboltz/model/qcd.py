"""Quarks and gluons: the paper's table of matrix elements and its thermal masses.

Departures from the paper: the masses are solved self-consistently from the first step on (the
paper starts with E = |p|), and screening is a setting of its own, with a second form of the table.
"""

import inspect
import math
from collections.abc import Callable
from functools import wraps
from itertools import combinations
from typing import ParamSpec

import numpy as np

from ..util.errors import InputError
from ..util.renamed import renamed_option
from ..util.text import is_number, shown
from .model import Model, Process, Species
from .qcd_settings import Masses, Screened, check_pole, constant_masses, screening_of

P = ParamSpec("P")

D_F = 3.0
D_A = 8.0
C_F = 4.0 / 3.0
C_A = 3.0
N_G = 16
"""Gluon helicities times colours, N_g."""
N_Q = 6
"""Quark helicities times colours, N_q."""

WEAKEST, STRONGEST = 1e-6, 1e3
"""Accepted range of alpha_s: a weaker coupling relaxes nothing within the longest run, and a
stronger one is an input error, as perturbation theory ends at 1."""
FLAVORS = ("u", "d", "s")
ELECTRIC = {"u": 2 / 3, "d": -1 / 3, "s": -1 / 3}


# --- |M|^2 of a(k1) b(k2) -> c(k3) d(p), summed over colours and helicities [dimensionless] -----
# t_regulated and u_regulated are t - m_g^2 and u - m_g^2 (or another screening mass): the paper's.


def q1q2_q1q2(s, u, t_regulated, g4):
    """q1 q2 -> q1 q2, and with either or both replaced by antiquarks of another flavour."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * (s * s + u * u) / (t_regulated * t_regulated)


def q1q1_q1q1(s, t, u, t_regulated, u_regulated, g4):
    """q1 q1 -> q1 q1 and qbar1 qbar1 -> qbar1 qbar1."""
    t2, u2 = t_regulated * t_regulated, u_regulated * u_regulated
    squares = (s * s + u * u) / t2 + (s * s + t * t) / u2
    interference = s * s / (t_regulated * u_regulated)
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return alone * squares + crossed * interference


def q1q1bar_q1q1bar(s, t, u, t_regulated, g4):
    """q1 qbar1 -> q1 qbar1."""
    squares = (s * s + u * u) / (t_regulated * t_regulated) + (u * u + t * t) / (s * s)
    interference = u * u / (t_regulated * s)
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return alone * squares + crossed * interference


def q1q1bar_q2q2bar(s, t, u, g4):
    """q1 qbar1 -> q2 qbar2."""
    return 8 * g4 * D_F**2 * C_F**2 / D_A * (t * t + u * u) / (s * s)


def q1q1bar_gg(s, t, u, t_regulated, u_regulated, g4):
    """q1 qbar1 -> g g."""
    exchange = u / t_regulated + t / u_regulated
    contact = (t * t + u * u) / (s * s)
    return 8 * g4 * D_F * C_F**2 * exchange - 8 * g4 * D_F * C_F * C_A * contact


def q1g_q1g(s, u, t_regulated, u_regulated, g4):
    """q1 g -> q1 g and qbar1 g -> qbar1 g."""
    exchange, t2 = u / s + s / u_regulated, t_regulated * t_regulated
    return -8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * (s * s + u * u) / t2


def qq_qq(s, t, u, t_regulated, u_regulated, g4, flavors):
    """q q -> q q, where q stands for every quark and antiquark of all (equal) flavours.

    Sum of the four rows above over the 2 N_f quarks and antiquarks, with their numbers of channels:
    2 N_f equal pairs, 2 N_f (N_f - 1) pairs of different flavour, N_f quark-antiquark pairs and
    N_f (N_f - 1)/2 flavour changes; times 8 w of the row, averaged over the two choices of k3.
    """
    t2, u2 = t_regulated * t_regulated, u_regulated * u_regulated
    squares = (s * s + u * u) / t2 + (s * s + t * t) / u2 + (t * t + u * u) / (s * s)
    same = s * s / (t_regulated * u_regulated)
    interference = same + u * u / (t_regulated * s) + t * t / (u_regulated * s)
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return 4 * flavors**2 * alone * squares + 2 * flavors * crossed * interference


def gg_gg(s, t, u, t_regulated, u_regulated, g4):
    """g g -> g g."""
    t2, u2 = t_regulated * t_regulated, u_regulated * u_regulated
    sum_of_channels = 3 - s * u / t2 - s * t / u2 - t * u / (s * s)
    return 16 * g4 * D_A * C_A**2 * sum_of_channels


# --- the same rows with the screening of effective kinetic theory --------------------------------
# For s + t + u = 0 each row is a polynomial in x_t = (s - u)/t and x_u = (s - t)/u for gluon
# exchange, in u/t and t/u for quark exchange, plus a remainder without poles:
#   (s^2 + u^2)/t^2 = (1 + x_t^2)/2         s^2/(t u) = 1 - (x_t + x_u)/2
#   -s u/t^2 = (x_t^2 - 1)/4                u^2/(t s) = (1 + x_t)/2 - u/s
# Screening multiplies only these four ratios by q^2/(q^2 + m^2): t_screened and u_screened for
# gluons, t_exchanged and u_exchanged for quarks. Masses in the kinematics do not change the
# remainder. Without screening and masses the rows equal those above.


def q1q2_q1q2_ekt(s, u, t_screened, g4):
    """q1 q2 -> q1 q2."""
    x_t = (s - u) / t_screened
    return 8 * g4 * D_F**2 * C_F**2 / D_A * 0.5 * (1 + x_t * x_t)


def q1q1_q1q1_ekt(s, t, u, t_screened, u_screened, g4):
    """q1 q1 -> q1 q1."""
    x_t = (s - u) / t_screened
    x_u = (s - t) / u_screened
    squares = 1 + 0.5 * (x_t * x_t + x_u * x_u)
    interference = 1 - 0.5 * (x_t + x_u)
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return alone * squares + crossed * interference


def q1q1bar_q1q1bar_ekt(s, t, u, t_screened, g4):
    """q1 qbar1 -> q1 qbar1."""
    x_t = (s - u) / t_screened
    squares = 0.5 * (1 + x_t * x_t) + (u * u + t * t) / (s * s)
    interference = 0.5 * (1 + x_t) - u / s
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return alone * squares + crossed * interference


def q1q1bar_gg_ekt(s, t, u, t_exchanged, u_exchanged, g4):
    """q1 qbar1 -> g g."""
    exchange = u / t_exchanged + t / u_exchanged
    contact = (t * t + u * u) / (s * s)
    return 8 * g4 * D_F * C_F**2 * exchange - 8 * g4 * D_F * C_F * C_A * contact


def q1g_q1g_ekt(s, u, t_screened, u_exchanged, g4):
    """q1 g -> q1 g."""
    x_t = (s - u) / t_screened
    exchange = u / s + s / u_exchanged
    return -8 * g4 * D_F * C_F**2 * exchange + 8 * g4 * D_F * C_F * C_A * 0.5 * (1 + x_t * x_t)


def qq_qq_ekt(s, t, u, t_screened, u_screened, g4, flavors):
    """q q -> q q, where q stands for every quark and antiquark of all (equal) flavours."""
    x_t = (s - u) / t_screened
    x_u = (s - t) / u_screened
    squares = 1 + 0.5 * (x_t * x_t + x_u * x_u) + (u * u + t * t) / (s * s)
    same = 1 - 0.5 * (x_t + x_u)
    interference = same + 0.5 * (1 + x_t) - u / s + 0.5 * (1 + x_u) - t / s
    alone, crossed = 8 * g4 * D_F**2 * C_F**2 / D_A, 16 * g4 * D_F * C_F * (C_F - C_A / 2)
    return 4 * flavors**2 * alone * squares + 2 * flavors * crossed * interference


def gg_gg_ekt(s, t, u, t_screened, u_screened, g4):
    """g g -> g g."""
    x_t = (s - u) / t_screened
    x_u = (s - t) / u_screened
    return 16 * g4 * D_A * C_A**2 * (2.5 + 0.25 * (x_t * x_t + x_u * x_u) - t * u / (s * s))


Row = Callable[..., float]
EKT: dict[Row, Row] = {
    q1q2_q1q2: q1q2_q1q2_ekt,
    q1q1_q1q1: q1q1_q1q1_ekt,
    q1q1bar_q1q1bar: q1q1bar_q1q1bar_ekt,
    q1q1bar_q2q2bar: q1q1bar_q2q2bar,
    q1q1bar_gg: q1q1bar_gg_ekt,
    q1g_q1g: q1g_q1g_ekt,
    qq_qq: qq_qq_ekt,
    gg_gg: gg_gg_ekt,
}
"""Rows of the table with the screening of effective kinetic theory."""


# --- models -------------------------------------------------------------------------------------


def _kept(function: Callable[P, Model]) -> Callable[P, Model]:
    """Store the arguments in the model, so that a run can be continued from its file alone."""
    signature = inspect.signature(function)

    @wraps(function)
    def make(*given: P.args, **named: P.kwargs) -> Model:
        for option in named.keys() - signature.parameters.keys():
            if present := renamed_option(option):
                raise InputError(f"unknown option {option}: it is called {present} now")
        model = function(*given, **named)
        model.recipe = {"name": function.__name__, **signature.bind(*given, **named).arguments}
        return model

    return make


@_kept
def qcd(
    alpha_s: float,
    flavors: int = 3,
    masses: Masses = "thermal",
    screening: Screened = None,
    flavor_symmetric: bool = False,
) -> Model:
    """Gluons and ``flavors`` quark flavours with their antiquarks: 34 processes for three.

    Parameters
    ----------
    alpha_s : strong coupling, g^2 = 4 pi alpha_s
    flavors : 0 to 3 (u, d, s)
    masses : "thermal" | "massless" | constant masses [GeV] such as {"g": 0.7, "quarks": 0.4}
    screening : "thermal" (the gluon mass in t and u, as in the paper) | a mass [GeV] | "ekt"
        (only soft exchange is screened, of gluons and of quarks each by its own mass)
    flavor_symmetric : one species, q, represents the quarks and antiquarks of all flavours, which
        stay equal if they start equal: the same physics with 2 species instead of 7, 4 processes
        instead of 34
    """
    quarks = FLAVORS[: _flavors(flavors, 0)]
    if _flag("flavor_symmetric", flavor_symmetric):
        if not quarks:
            raise InputError("model.flavor_symmetric = true: there are no quarks with flavors = 0")
        return _alike(alpha_s, len(quarks), masses, screening)
    return _build("qcd", alpha_s, ("g", *quarks, *(q + "bar" for q in quarks)), masses, screening)


@_kept
def gluons(alpha_s: float, masses: Masses = "thermal", screening: Screened = None) -> Model:
    """Gluons alone: g g -> g g."""
    return _build("gluons", alpha_s, ("g",), masses, screening)


@_kept
def quarks(
    alpha_s: float,
    flavors: int = 1,
    antiquarks: bool = False,
    masses: Masses = "thermal",
    screening: Screened = None,
) -> Model:
    """Quarks without gluons: the paper's pure u quarks, or more flavours and antiquarks."""
    names = FLAVORS[: _flavors(flavors, 1)]
    if _flag("antiquarks", antiquarks):
        names = (*names, *(q + "bar" for q in names))
    return _build("quarks", alpha_s, names, masses, screening)


def _flag(name: str, value: bool) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"model.{name} = {shown(value)}: use true or false")
    return value


def _flavors(value: int, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 3:
        raise InputError(f"model.flavors = {shown(value)}: use a whole number from {least} to 3")
    return value


def flavor(name: str) -> str:
    """Return the quark flavour of a species, '' for the gluon."""
    return "" if name == "g" else name.removesuffix("bar")


def species(name: str) -> Species:
    """Return a QCD species by name: g u d s ubar dbar sbar."""
    if name == "g":
        return Species("g", N_G, +1)
    sign = -1 if name.endswith("bar") else 1
    q = flavor(name)
    charges = {f"net {q}": sign, "baryon": sign / 3, "electric": sign * ELECTRIC[q]}
    return Species(name, N_Q, -1, charges)


def processes(names: tuple[str, ...], g4: float, ekt: bool = False) -> list[Process]:
    """Return all 2 <-> 2 processes of the paper's table among these species, each once."""
    rows: list[tuple[str, Row, str | None]] = []
    fermions = [n for n in names if n != "g"]
    pairs = [(n, n + "bar") for n in fermions if n + "bar" in names]
    if "g" in names:
        rows.append(("g g -> g g", gg_gg, "t"))
        rows += [(f"{q} g -> {q} g", q1g_q1g, "t") for q in fermions]
        rows += [(f"{q} {qbar} -> g g", q1q1bar_gg, None) for q, qbar in pairs]
    rows += [(f"{q} {q} -> {q} {q}", q1q1_q1q1, "t") for q in fermions]
    rows += [(f"{q} {r} -> {q} {r}", q1q1bar_q1q1bar, "t") for q, r in pairs]
    rows += [
        (f"{q} {r} -> {q} {r}", q1q2_q1q2, "t")
        for q, r in combinations(fermions, 2)
        if flavor(q) != flavor(r)
    ]
    rows += [
        (f"{q} {qbar} -> {r} {rbar}", q1q1bar_q2q2bar, None)
        for (q, qbar), (r, rbar) in combinations(pairs, 2)
    ]
    return [
        Process(reaction, EKT[row] if ekt else row, peak=peak, g4=g4)
        for reaction, row, peak in rows
    ]


def mass_coupling(names: tuple[str, ...], g2: float) -> np.ndarray:
    """Return K of m_a^2 = Sum_b K_ab Y_b, Eqs. (mg) and (mq); symmetric, as energy is conserved.

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
    name: str, alpha_s: float, names: tuple[str, ...], masses: Masses, screening: Screened
) -> Model:
    """Build the model of some of the QCD species."""
    g2 = _squared_coupling(alpha_s)
    groups = {
        "quarks": tuple(n for n in names if n in FLAVORS),
        "antiquarks": tuple(n for n in names if n.endswith("bar")),
    }
    coupling = mass_coupling(("g", *names), g2)[:, 1:]
    rows = processes(names, g2 * g2, ekt=screening == "ekt")
    return _model(name, [species(n) for n in names], rows, groups, coupling, masses, screening)


def _alike(alpha_s: float, flavors: int, masses: Masses, screening: Screened) -> Model:
    """Build the model of gluons and q: all 2 N_f quarks and antiquarks have the f of q.

    K of q is the mean of K of one quark over all quarks: a flavour has Y_i = Y_q/N_f.
    """
    g2 = _squared_coupling(alpha_s)
    g4, kinds = g2 * g2, 2 * flavors
    rows: list[tuple[str, Row, str | None, dict[str, float]]] = [
        ("g g -> g g", gg_gg, "t", {"g4": g4}),
        ("q g -> q g", q1g_q1g, "t", {"g4": kinds * g4}),
        ("q q -> g g", q1q1bar_gg, None, {"g4": kinds * g4}),
        ("q q -> q q", qq_qq, "t", {"g4": g4, "flavors": flavors}),
    ]
    ekt = screening == "ekt"
    list_ = [Process(r, EKT[row] if ekt else row, peak=peak, **own) for r, row, peak, own in rows]
    k = mass_coupling(("g", "u"), g2)
    k[1, 1] /= flavors
    here = [species("g"), Species("q", kinds * N_Q, -1)]
    coupling = k[[0, 0, 1]]
    return _model("qcd", here, list_, {"quarks": ("q",)}, coupling, masses, screening)


def _squared_coupling(alpha_s: float) -> float:
    if not is_number(alpha_s) or not WEAKEST <= alpha_s <= STRONGEST:
        raise InputError(
            f"model.alpha_s = {shown(alpha_s)}: the coupling must be a positive number, from "
            f"{WEAKEST:g} to {STRONGEST:g}"
        )
    return 4 * math.pi * alpha_s


def _model(
    name: str,
    here: list[Species],
    rows: list[Process],
    groups: dict[str, tuple[str, ...]],
    coupling: np.ndarray,
    masses: Masses,
    screening: Screened,
) -> Model:
    """Build the Model.

    coupling : K of m_a^2 = Sum_b K_ab Y_b, one row for the gluon, then one for each species
    """
    names = tuple(s.name for s in here)
    groups = {key: members for key, members in groups.items() if members}
    constant = constant_masses(masses, names, groups)
    check_pole(constant, screening)
    by_name = dict(zip(("g", *names), coupling, strict=True))
    return Model(
        here,
        rows,
        masses=constant,
        mass_coupling=coupling[1:] if masses == "thermal" else None,
        screening=screening_of(screening, masses, constant, names, by_name),
        groups=groups,
        name=name,
    )
