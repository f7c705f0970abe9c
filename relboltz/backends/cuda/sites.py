"""Kernels over many sites: the largest f, and the noise of C."""

from __future__ import annotations

from numba import float64, int64

from . import layout as k
from .driver import kernel
from .layout import THREADS
from .physics import block_sum, cuda


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
