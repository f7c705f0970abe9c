"""Settings of the QCD models: constant masses by species, and the screening of t and u."""

import math
from collections.abc import Mapping, Sequence

from ..grid.units import SMALLEST
from ..util.errors import InputError
from ..util.text import is_number, shown, suggest
from .model import Screening

Masses = str | Mapping[str, float]
"""A word, or constant masses [GeV] by species or group."""
Screened = str | float | None
"""A word, or a mass [GeV]."""

HEAVIEST = 1e3
"""Largest accepted constant mass [GeV]: a larger value must be in MeV."""
XI_GLUON = math.exp(5 / 6) / 2
"""Ratio of the screening mass of gluon exchange to the asymptotic gluon mass, the paper's m_g.

With it t -> t (q^2 + xi^2 m_g^2)/q^2 reproduces the soft drag of hard thermal loops at leading
order in the coupling; equivalent to xi = e^(5/6)/sqrt(8) with the Debye mass, m_D^2 = 2 m_g^2.
"""
XI_QUARK = math.e / 2
"""Ratio of the screening mass of quark exchange to the asymptotic quark mass, the paper's m_q.

With it u/t -> (u/t) q^2/(q^2 + xi^2 m_q^2) reproduces the soft conversion between quarks and
gluons: hard thermal loops give the rate Int d^2q_perp/(q_perp^2 + m_q^2); without screening it is
Int d^3q/(2 q^3). The two cut-offs at large q agree for q_perp < 2 Lambda/e and q < Lambda.
Equivalent to xi = e/sqrt(2) with the mass of a quark at rest, whose square is half as large.
"""
EKT_OVER_GLUON = XI_GLUON**2
"""Squared screening mass of gluon exchange over m_g^2."""


def constant_masses(
    masses: Masses, names: tuple[str, ...], groups: Mapping[str, tuple[str, ...]]
) -> dict[str, float]:
    """Return constant masses: a species overrides its group, a quark implies its antiquark."""
    if not isinstance(masses, Mapping):
        if masses not in ("thermal", "massless"):
            raise InputError(
                f"model.masses = {shown(masses)}: use 'thermal', 'massless' or a table of masses "
                "in GeV such as { g = 0.7, quarks = 0.4 }"
            )
        return {}
    known = (*names, *groups)
    for key, value in masses.items():
        if key not in known:
            raise InputError(f"unknown key model.masses.{key}: {suggest(key, known)}")
        if not is_number(value) or not 0 <= value <= HEAVIEST:
            raise InputError(
                f"model.masses.{key} = {shown(value)}: a mass in GeV is 0 or positive, at most "
                f"{HEAVIEST:g}"
            )
    result: dict[str, float] = {}
    for n in names:
        particle = n.removesuffix("bar")
        anti = ("antiquarks", particle) if n != particle else ()
        given = [key for key in (n, *anti, *["quarks"] * (n != "g")) if key in masses]
        if given:
            result[n] = float(masses[given[0]])
    missing = [n for n in names if n not in result]
    if missing:
        raise InputError(
            f"model.masses has no entry for {', '.join(missing)}: give each species or its group "
            "a mass in GeV (0 if massless)"
        )
    return result


def check_pole(masses: Mapping[str, float], screening: Screened) -> None:
    """Refuse constant masses too far apart for the regulator of the u channel of q g -> q g.

    In this channel u reaches (m_q - m_g)^2 at threshold. The pole of s/(u - m^2) lies inside phase
    space if this exceeds m^2; with the gluon mass as regulator, if m_q > 2 m_g. A pole at the edge
    of phase space, as for m_q = 2 m_g and m_q = 0, is harmless: phase space closes as fast as the
    pole rises.
    """
    gluon = masses.get("g", 0.0)
    others = {name: mass for name, mass in masses.items() if name != "g"}
    if "g" not in masses or not others:
        return
    heaviest = max(others, key=lambda name: others[name])
    heavy, advice = others[heaviest], f"lower {heaviest}, raise g, or raise model.screening"
    where = "the u channel of q g -> q g runs into the pole of its regulator"
    if screening in (None, "thermal") and heavy > 2 * gluon * (1 + 1e-12) > 0:
        raise InputError(
            f"model.masses: {heaviest} = {heavy:.4g} GeV exceeds 2 m_g = {2 * gluon:.4g} GeV: "
            f"{where}; {advice}"
        )
    apart = max(abs(mass - gluon) for mass in others.values())
    if isinstance(screening, int | float) and apart > screening * (1 + 1e-12):
        raise InputError(
            f"model.screening = {screening!r}: |m_q - m_g| = {apart:.4g} GeV exceeds it: {where}; "
            f"{advice}"
        )


def screening_of(
    screening: Screened,
    masses: Masses,
    constant: Mapping[str, float],
    names: tuple[str, ...],
    coupling: Mapping[str, Sequence[float]],
) -> Screening:
    """Return the screening of t and u.

    "thermal" is the squared gluon mass of the model; if the model has none (massless gluons, or
    quarks alone), it is m_g^2 of Eq. (mg) for the state. "ekt" is xi^2 times this m_g^2, and for
    the exchange of a quark xi^2 times the squared mass of its flavour, of the model or of Eq. (mq).

    coupling : rows of K of m_a^2 = Sum_b K_ab Y_b, Eqs. (mg) and (mq), for names and the gluon
    """
    if screening is None:
        if masses == "massless" or constant.get("g", 1.0) == 0:
            raise InputError(
                "model.screening is required with massless gluons: 'thermal' (m_g^2 of the state), "
                "'ekt', or a mass in GeV"
            )
        screening = "thermal"
    if not isinstance(screening, str):
        if not is_number(screening) or not SMALLEST <= screening <= HEAVIEST:
            raise InputError(
                f"model.screening = {shown(screening)}: a mass in GeV must be positive, from "
                f"{SMALLEST:g} to {HEAVIEST:g}; or use 'thermal' or 'ekt'"
            )
        return Screening(float(screening) ** 2)
    if screening not in ("thermal", "ekt"):
        raise InputError(
            f"model.screening = {shown(screening)}: use 'thermal', 'ekt' or a mass in GeV"
        )
    if screening == "thermal":
        return _mass_in_force("g", 1.0, constant, coupling)
    gluon = _mass_in_force("g", XI_GLUON, constant, coupling)
    quarks = [n for n in names if n != "g" and "g" in names]
    exchange = {n: _mass_in_force(n, XI_QUARK, constant, coupling) for n in quarks}
    return Screening(gluon.constant, gluon.coupling, ekt=True, exchange=exchange)


def _mass_in_force(
    name: str, xi: float, constant: Mapping[str, float], coupling: Mapping[str, Sequence[float]]
) -> Screening:
    """Return xi times the mass of a species: its constant mass, or that of Eqs. (mg) and (mq)."""
    if constant.get(name, 0.0) > 0:
        return Screening((xi * constant[name]) ** 2)
    return Screening(coupling=tuple(float(xi**2 * k) for k in coupling[name]))
