"""GeV and fm: the only place where one is turned into the other.

Momenta, energies, masses and temperatures are in GeV, lengths and times in fm, and
natural units (hbar = c = k_B = 1) relate the two through ``HBARC``.
"""

HBARC = 0.1973269804
"""hbar c [GeV fm] (CODATA 2018)."""


def per_gev_from_fm(time: float) -> float:
    """A time in fm, in GeV^-1."""
    return time / HBARC


def fm3_from_gev3(density: float) -> float:
    """A density in GeV^3, in fm^-3."""
    return density / HBARC**3
