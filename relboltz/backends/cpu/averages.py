"""Cell averages of thermal states, for initial conditions with masses solved at every site."""

from math import exp, expm1, sqrt

import numpy as np

from ...util.jit import kernel


@kernel
def bath_averages(centres, offsets, weights, squeezed, m2, mu, temperature, eta, out):
    """Fill cell averages of f = 1/(exp((E - mu)/T) - eta), E^2 = p_T^2 + squeezed p_z^2 + m^2.

    centres : (3, cells) [GeV]; offsets : (3, points) of a quadrature in a cell, with weights.
    Returns whether E > mu at all points, as required for bosons; otherwise ``out`` is invalid.
    """
    points = weights.size
    x2, y2, z2 = np.empty(points), np.empty(points), np.empty(points)
    for i in range(centres.shape[1]):
        for j in range(points):
            x2[j] = (centres[0, i] + offsets[0, j]) ** 2
            y2[j] = (centres[1, i] + offsets[1, j]) ** 2
            z2[j] = (centres[2, i] + offsets[2, j]) ** 2
        total = 0.0
        for j in range(points):
            x = (sqrt(x2[j] + y2[j] + squeezed * z2[j] + m2) - mu) / temperature
            if eta > 0 and not x > 0.0:
                return False
            x = min(x, 700.0)
            total += weights[j] * (1.0 / expm1(x) if eta > 0 else 1.0 / (exp(x) - eta))
        out[i] = total
    return True
