"""Sums over the nodes for fits of thermal states, on a GPU."""

from numba import float64

from ...compiling import build
from ...equilibrium.fits import FIT_SUMS, FUNCTIONS
from .driver import device_function, kernel
from .layout import THREADS
from .physics import column_sums, cuda, momentum_at

ROOM = FIT_SUMS * THREADS
compiled = build(FUNCTIONS, device_function)


@kernel
def fit_sums(theta, squares, which, species, packed, momentum, geometry, sums):
    """Sums over the nodes of one species at one site; as on the CPU.

    momentum : nodes along the three axes, one after the other; geometry begins with their counts
    """
    shared = cuda.shared.array(ROOM, float64)
    row = cuda.blockIdx.x
    at, a = row // species.shape[0], row % species.shape[0]
    alpha, m2, eta = theta[at, 4 + a], squares[which[at], a], species[a, 1]
    s = cuda.local.array(FIT_SUMS, float64)
    for j in range(FIT_SUMS):
        s[j] = 0.0
    for i in range(cuda.threadIdx.x, packed.size, THREADS):
        p = momentum_at(packed[i], momentum, geometry)
        compiled.add_fit_terms(theta[at], alpha, p, m2, eta, 1.0, s)
    column_sums(shared, s, FIT_SUMS, sums[row])
