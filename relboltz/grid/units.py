"""GeV and fm: the only place where one is turned into the other.

Momenta, energies, masses and temperatures are in GeV, lengths and times in fm, and natural units
(hbar = c = k_B = 1) relate the two through ``HBARC``.
"""

HBARC = 0.1973269804
"""hbar c [GeV fm] (CODATA 2018)."""
SMALLEST, LARGEST = 1e-9, 1e9
"""What is taken of GeV and fm alike: far beyond all matter, and products of six of them, such as
d^3p times s^2 or their inverses, stay far from the limits of double precision."""
