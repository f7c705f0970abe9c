"""GeV and fm: the only place where one is turned into the other.

Momenta, energies, masses and temperatures are in GeV, lengths and times in fm, and natural units
(hbar = c = k_B = 1) relate the two through ``HBARC``.
"""

HBARC = 0.1973269804
"""hbar c [GeV fm] (CODATA 2018)."""
