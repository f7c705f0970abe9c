"""Elementary functions that a CPU can evaluate for many events at once.

The C library's exp, sin and cos are calls that keep a compiler from vectorising a loop; these
polynomials do not. Exponentials hold to about 1e-15 relative, the circle to 1e-13.
"""

from __future__ import annotations

from math import pi, sqrt

import numpy as np

LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
INVERSE_LN2 = 1.4426950408889634
FARTHEST = 708.0


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


def expm1_reduced(r):
    """exp(r) - 1 for |r| <= ln(2)/2, by its Taylor series to order 13."""
    q = 1.0 / 6227020800.0
    q = q * r + 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    return r + r * r * q


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
    s = -1.0 / 121645100408832000.0
    s = s * z + 1.0 / 355687428096000.0
    s = s * z - 1.0 / 1307674368000.0
    s = s * z + 1.0 / 6227020800.0
    s = s * z - 1.0 / 39916800.0
    s = s * z + 1.0 / 362880.0
    s = s * z - 1.0 / 5040.0
    s = s * z + 1.0 / 120.0
    s = s * z - 1.0 / 6.0
    s = x + x * z * s
    c = 1.0 / 2432902008176640000.0
    c = c * z - 1.0 / 6402373705728000.0
    c = c * z + 1.0 / 20922789888000.0
    c = c * z - 1.0 / 87178291200.0
    c = c * z + 1.0 / 479001600.0
    c = c * z - 1.0 / 3628800.0
    c = c * z + 1.0 / 40320.0
    c = c * z - 1.0 / 720.0
    c = c * z + 1.0 / 24.0
    c = c * z - 0.5
    c = 1.0 + z * c
    return 2.0 * s * s - 1.0, -2.0 * s * c
