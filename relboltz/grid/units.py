"""Units: momenta, energies, masses and temperatures in GeV, lengths and times in fm.

With hbar = c = k_B = 1, ``HBARC`` converts between GeV and fm; no other module defines a
conversion.
"""

HBARC = 0.1973269804
"""hbar c [GeV fm] (CODATA 2018)."""
SMALLEST, LARGEST = 1e-9, 1e9
"""Accepted range of inputs in GeV and in fm: far beyond all matter, while products of six factors,
such as d^3p times s^2 or their inverses, stay far from the limits of double precision."""
