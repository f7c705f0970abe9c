"""Kernels over many sites: masses, the largest f, and what is measured."""

from __future__ import annotations

import math

from numba import float64, int64

from ...equilibrium.fits import FIT_SUMS
from ...equilibrium.fits import thermal_terms as terms
from . import layout as k
from .driver import SIMULATED, device_function, kernel
from .layout import THREADS
from .physics import block_sum, cuda, flux_term, inverse_energy, physics

FIT_ROOM = FIT_SUMS * THREADS
thermal_terms = terms if SIMULATED else device_function(terms)


@kernel
def peaks(control, number, highest, first_row):
    """The largest number of quanta of every row of nodes."""
    shared = cuda.shared.array(THREADS, int64)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    n = control[k.NODES]
    largest = 0
    for i in range(t, n, THREADS):
        largest = max(largest, number[control[k.CURRENT], (first_row + row) * n + i])
    shared[t] = largest
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            shared[t] = max(shared[t], shared[t + half])
        cuda.syncthreads()
        half //= 2
    if t == 0:
        highest[control[k.CURRENT], row] = shared[0]


@kernel
def site_noise(spread, noise, rows):
    """Sums of the first two columns of ``spread`` over the rows of every site, in a fixed order."""
    shared = cuda.shared.array(THREADS, float64)
    error = 0.0
    size = 0.0
    for row in range(cuda.threadIdx.x, rows, THREADS):
        error += spread[cuda.blockIdx.x * rows + row, 0]
        size += spread[cuda.blockIdx.x * rows + row, 1]
    error = block_sum(shared, error)
    size = block_sum(shared, size)
    if cuda.threadIdx.x == 0:
        noise[cuda.blockIdx.x, 0] = error
        noise[cuda.blockIdx.x, 1] = size


@kernel
def fit_sums(theta, squares, which, species, p2, packed, momentum, geometry, sums):
    """Sums over the nodes of one species at one site; as ``fits.fit_sums``.

    momentum : nodes along the three axes, one after the other; geometry begins with their counts
    """
    shared = cuda.shared.array(FIT_ROOM, float64)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    kinds = species.shape[0]
    at, a = row // kinds, row % kinds
    nx, ny = int64(geometry[0]), int64(geometry[1])
    alpha = theta[at, 4 + a]
    m2 = squares[which[at], a]
    s = cuda.local.array(FIT_SUMS, float64)
    for j in range(FIT_SUMS):
        s[j] = 0.0
    for i in range(t, p2.size, THREADS):
        px = momentum[physics.packed_index(packed[i], 0)]
        py = momentum[nx + physics.packed_index(packed[i], 1)]
        pz = momentum[nx + ny + physics.packed_index(packed[i], 2)]
        e = math.sqrt(p2[i] + m2)
        x = theta[at, 0] * e - theta[at, 1] * px - theta[at, 2] * py - theta[at, 3] * pz - alpha
        value, f, g = thermal_terms(x, species[a, 1])
        if f < 0.0:
            s[0] = math.inf
        elif f > 0.0:
            s[0] += value
            s[1] += f
            s[2] += f * e
            s[3] += f * px
            s[4] += f * py
            s[5] += f * pz
            s[6] += g
            s[7] += g * e
            s[8] += g * e * e
            s[9] += g * e * px
            s[10] += g * e * py
            s[11] += g * e * pz
            s[12] += g * px
            s[13] += g * py
            s[14] += g * pz
            s[15] += g * px * px
            s[16] += g * py * py
            s[17] += g * pz * pz
            s[18] += g * px * py
            s[19] += g * px * pz
            s[20] += g * py * pz
    for j in range(FIT_SUMS):
        shared[j * THREADS + t] = s[j]
    cuda.syncthreads()
    for j in range(t, FIT_SUMS, THREADS):
        total = 0.0
        for i in range(THREADS):
            total += shared[j * THREADS + i]
        sums[row, j] = total


@kernel
def measure_sites(control, scalars, number, species, squares, p2, packed, momentum, geometry,
                  shell, final, totals, planes, shells, sums):  # fmt: skip
    """Sums over the nodes of one species at one site; arguments as of ``moments.measure_sites``.

    momentum : nodes along the three axes, one after the other, and planes in the same order;
        geometry : counts and spacings of the nodes
    """
    whole = cuda.shared.array(THREADS, int64)
    shared = cuda.shared.array(THREADS, float64)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    kinds = species.shape[0]
    site, a = row // kinds, row % kinds
    n, nx, ny = control[k.NODES], control[k.CELLS_X], control[k.CELLS_Y]
    scale, eta = scalars[k.UNIT] / species[a, 0], species[a, 1]
    m2 = squares[site, a]
    total = 0
    for i in range(t, n, THREADS):
        held = number[control[k.CURRENT], row * n + i]
        total += held
        ix = physics.packed_index(packed[i], 0)
        iy = nx + physics.packed_index(packed[i], 1)
        iz = nx + ny + physics.packed_index(packed[i], 2)
        cuda.atomic.add(planes, (site, ix), held)
        cuda.atomic.add(planes, (site, iy), held)
        cuda.atomic.add(planes, (site, iz), held)
        cuda.atomic.add(shells, (row, shell[i]), held)
    total = block_sum(whole, total)
    if t == 0:
        totals[row] = total
    for which in range(k.MOMENTS):
        part = 0.0
        for i in range(t, n, THREADS):
            f = number[control[k.CURRENT], row * n + i] * scale
            x = momentum[physics.packed_index(packed[i], 0)]
            y = momentum[nx + physics.packed_index(packed[i], 1)]
            z = momentum[nx + ny + physics.packed_index(packed[i], 2)]
            inverse = inverse_energy(p2[i], m2, scalars[k.AT_REST])
            if which == k.ENERGY:
                part += f * math.sqrt(p2[i] + m2)
            elif which == k.INVERSE:
                part += f * inverse
            elif which == k.XX:
                part += f * x * x * inverse
            elif which == k.YY:
                part += f * y * y * inverse
            elif which == k.ZZ:
                part += f * z * z * inverse
            elif which == k.XY:
                part += f * x * y * inverse
            elif which == k.XZ:
                part += f * x * z * inverse
            elif which == k.YZ:
                part += f * y * z * inverse
            elif which == k.ENTROPY and f > 0.0:
                full = max(1.0 + eta * f, 1e-300)
                part += (eta * full * math.log(full) if eta != 0.0 else f) - f * math.log(f)
            elif which == k.DISTANCE:
                part += abs(f - final[a * n + i])
            elif which >= k.FLUX:
                part += f * flux_term(which - k.FLUX, x, y, z, m2, geometry)
        part = block_sum(shared, part)
        if t == 0:
            sums[row, which] = part
