"""Quadrature points for radial integrals over unlimited momentum space."""

from functools import cache

import numpy as np

from ..util.arrays import Array


@cache
def gauss(count: int) -> tuple[Array, Array]:
    """Return Gauss points and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(count)
    return 0.5 * (1 + x), 0.5 * w


def radii(x: Array, scale: float = 1.0) -> tuple[Array, Array]:
    """Return p from 0 to infinity for x from 0 to 1, densest at 0, and dp/dx, in units of scale."""
    return scale * x * x / (1 - x), scale * x * (2 - x) / (1 - x) ** 2
