"""Elementary functions that a CPU can evaluate for many events at once.

Calls of the C library's exp, sin and cos prevent a compiler from vectorising a loop; these
polynomials do not. Exponentials are accurate to about 1e-15 (relative), the circle to 1e-13.
"""

from math import factorial, pi, sqrt

import numpy as np

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634
FARTHEST = 708.0
EXPONENTIAL = tuple(1.0 / factorial(n) for n in range(13, 1, -1))
SINE = tuple((-1) ** (n // 2) / factorial(n) for n in range(19, 1, -2))
COSINE = tuple((-1) ** (n // 2) / factorial(n) for n in range(20, 0, -2))
"""Taylor coefficients, highest order first."""


def reciprocal(x):
    """Return 1/x."""
    return 1.0 / x


def root(x):
    """Return the square root of x >= 0."""
    return sqrt(x)


def inverse_root(x):
    """Return 1/sqrt(x) for x > 0."""
    return 1.0 / sqrt(x)


def floor(x):
    """Return the largest integer not above x, stored as a float."""
    return np.floor(x)


def series(z, coefficients):
    """Return c_n z^n + ... + c_1 z + c_0; coefficients : highest order first."""
    value = 0.0
    for c in coefficients:
        value = value * z + c
    return value


def expm1_reduced(r):
    """Return exp(r) - 1 for |r| <= ln(2)/2 from its Taylor series to order 13."""
    return r + r * r * series(r, EXPONENTIAL)


def split(x):
    """Return 2^k and exp(r) - 1 with x = k ln 2 + r, |r| <= ln(2)/2; x is clipped to +-708."""
    x = min(max(x, -FARTHEST), FARTHEST)
    k = floor(x * INVERSE_LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return power, expm1_reduced(r)


def exp(x):
    """Return e^x."""
    power, q = split(x)
    return power + power * q


def expm1(x):
    """Return e^x - 1 without cancellation for small x."""
    power, q = split(x)
    return power * q + (power - 1.0)


def circle(u):
    """Return (cos, sin) of 2 pi u for 0 <= u <= 1, from the half angle measured from u = 1/2."""
    x = pi * (u - 0.5)
    z = x * x
    s = x + x * z * series(z, SINE)
    c = 1.0 + z * series(z, COSINE)
    return 2.0 * s * s - 1.0, -2.0 * s * c
