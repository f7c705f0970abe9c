"""Elementary functions that a CPU can evaluate for many events at once.

The C library's exp, sin and cos are calls that keep a compiler from vectorising a loop; these
polynomials do not. Exponentials hold to about 1e-15 relative, the circle to 1e-13.
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
"""Coefficients of Taylor series, highest order first."""


def reciprocal(x):
    """1/x."""
    return 1.0 / x


def root(x):
    """The square root of x >= 0."""
    return sqrt(x)


def inverse_root(x):
    """1 over the square root of x > 0."""
    return 1.0 / sqrt(x)


def floor(x):
    """The largest whole number not above x, held as a float."""
    return np.floor(x)


def series(z, coefficients):
    """c_n z^n + ... + c_1 z + c_0, highest first."""
    value = 0.0
    for c in coefficients:
        value = value * z + c
    return value


def expm1_reduced(r):
    """exp(r) - 1 for |r| <= ln(2)/2, by its Taylor series to order 13."""
    return r + r * r * series(r, EXPONENTIAL)


def split(x):
    """x = k ln 2 + r with |r| <= ln(2)/2: 2^k and exp(r) - 1; x is clipped to +-708."""
    x = min(max(x, -FARTHEST), FARTHEST)
    k = floor(x * INVERSE_LN2 + 0.5)
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    power = np.int64((np.int64(k) + 1023) << 52).view(np.float64)
    return power, expm1_reduced(r)


def exp(x):
    """e^x."""
    power, q = split(x)
    return power + power * q


def expm1(x):
    """e^x - 1 without cancellation for small x."""
    power, q = split(x)
    return power * q + (power - 1.0)


def circle(u):
    """(cos, sin) of 2 pi u for 0 <= u <= 1, through half the angle about its middle."""
    x = pi * (u - 0.5)
    z = x * x
    s = x + x * z * series(z, SINE)
    c = 1.0 + z * series(z, COSINE)
    return 2.0 * s * s - 1.0, -2.0 * s * c
