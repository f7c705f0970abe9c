"""Physics functions compiled for the GPU, and device functions shared by all kernels.

The physics functions are those of the CPU; roots, reciprocals, floor, powers of two and Philox
rounds have GPU versions.
"""

import math

import numpy as np
from numba import float64, int32, int64

from ...events import collisions, elementary
from ...events.philox import HALF, M0, M1
from ...stepping import control
from ...util.jit import build, functions_of
from ..physics import FUNCTIONS
from . import layout as k
from .driver import SIMULATED, adder, device_function, instruction, toolkit

cuda = toolkit()
CONTROL = functions_of(control)

if SIMULATED:
    physics = build([*FUNCTIONS, *CONTROL], device_function)
    flow_single = physics.flow
else:
    libdevice = cuda.libdevice

    def floor(x):
        """Return the largest integer not above x."""
        return libdevice.floor(x)

    def exp(x):
        """Return e^x in single precision."""
        return float64(libdevice.fast_expf(np.float32(x)))

    def expm1(x):
        """Return e^x - 1 in single precision, for any x <= 0."""
        return float64(libdevice.expm1f(np.float32(x)))

    SLACK = int(np.float64(1.0 + 1e-9).view(np.int64)) - (1023 << 52) + 1
    """Margin above a power of two, in float64 bits, that still counts as it, as on the CPU."""
    _rcp, _rsqrt = instruction("rcp.approx.ftz.f64"), instruction("rsqrt.approx.ftz.f64")

    def reciprocal(x):
        """Return 1/x to one or two units in the last place: two Newton steps, no branches."""
        y = _rcp(x)
        y += y * (1.0 - x * y)
        return y + y * (1.0 - x * y)

    def inverse_root(x):
        """Return 1/sqrt(x), x > 0, to one or two units in the last place: one third-order step."""
        y = _rsqrt(x)
        e = 1.0 - (x * y) * y
        return y + (y * e) * (0.5 + 0.375 * e)

    def root(x):
        """Return the square root of x >= 0."""
        y = _rsqrt(x + 1e-300)
        e = 1.0 - (x * y) * y
        return x * (y + (y * e) * (0.5 + 0.375 * e))

    def level(ratio):
        """Return the power of two at or above a number in [0, 1], from its bits; at least 2^-10."""
        above = ((libdevice.double_as_longlong(ratio) - SLACK) >> 52) + 1
        return libdevice.longlong_as_double(min(max(above, 1013), 1023) << 52)

    def philox_round(c0, c1, c2, c3, k0, k1):
        """Compute one Philox round in 32-bit words."""
        p0 = M0 * np.uint64(np.uint32(c0))
        p1 = M1 * np.uint64(np.uint32(c2))
        high_0, high_1 = np.uint32(p0 >> HALF), np.uint32(p1 >> HALF)
        return (
            np.uint32(high_1 ^ np.uint32(c1) ^ np.uint32(k0)), np.uint32(p1),
            np.uint32(high_0 ^ np.uint32(c3) ^ np.uint32(k1)), np.uint32(p0),
        )  # fmt: skip

    _functions = (floor, reciprocal, inverse_root, root, level, philox_round)
    _own = {f.__name__: device_function(f) for f in _functions}
    _host_only = (elementary.split, elementary.expm1_reduced, elementary.exp, elementary.expm1)
    _device = [f for f in FUNCTIONS if f not in _host_only]
    physics = build([*_device, *CONTROL], device_function, _own)
    flow_single = build(
        [collisions.flow],
        device_function,
        {"exp": device_function(exp), "expm1": device_function(expm1)},
    ).flow

WORD = np.uint64 if SIMULATED else np.uint32
"""Type of the words passed to Philox."""
ALL = 0xFFFFFFFF
"""Mask of the threads of a warp that take part in a shuffle."""


# --- block sums and atomic additions to cells ---------------------------------------------------


def array_function(function):
    """Compile a device function that works on arrays."""
    return cuda.jit(device=True, fastmath=True)(function)


if SIMULATED:

    def add(array, row, column, value):
        """Add ``value`` to array[row, column] atomically."""
        cuda.atomic.add(array, (row, column), value)

    add = array_function(add)
else:
    add = adder()


@array_function
def warp_sum(value):
    """Sum over the threads of a warp in a fixed order; valid in its first thread."""
    if not SIMULATED:
        for reach in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(ALL, value, reach)
    return value


@array_function
def warp_max(value):
    """Return the maximum over the threads of a warp; valid in its first thread."""
    if not SIMULATED:
        for reach in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_down_sync(ALL, value, reach))
    return value


@array_function
def warp_scan(value):
    """Return the inclusive prefix sum of an int32 over the threads of a warp."""
    if not SIMULATED:
        lane = cuda.threadIdx.x % k.WARP
        for reach in (1, 2, 4, 8, 16):
            before = cuda.shfl_up_sync(ALL, value, reach)
            if lane >= reach:
                value = int32(value + before)
    return value


@array_function
def block_sum(shared, value):
    """Sum over the threads of a block in a fixed order."""
    t = cuda.threadIdx.x
    value = warp_sum(value)
    if t % k.WARP == 0:
        shared[t // k.WARP] = value
    cuda.syncthreads()
    result = shared[0]
    for warp in range(1, cuda.blockDim.x // k.WARP):
        result += shared[warp]
    cuda.syncthreads()
    return result


@array_function
def block_max(shared, value):
    """Return the maximum over the threads of a block."""
    t = cuda.threadIdx.x
    value = warp_max(value)
    if t % k.WARP == 0:
        shared[t // k.WARP] = value
    cuda.syncthreads()
    result = shared[0]
    for warp in range(1, cuda.blockDim.x // k.WARP):
        result = max(result, shared[warp])
    cuda.syncthreads()
    return result


@array_function
def keep_sums(shared, values, row):
    """Sum each number of a tuple over the threads, in a fixed order, and write the sums."""
    t = cuda.threadIdx.x
    many = len(values)
    if SIMULATED:  # warps of one thread: all numbers at once exceed shared memory
        for i in range(many):
            total = block_sum(shared, values[i])
            if t == 0:
                row[i] = total
        return
    for i in range(many):
        part = warp_sum(values[i])
        if t % k.WARP == 0:
            shared[t // k.WARP * many + i] = part
    cuda.syncthreads()
    if t < many:
        total = shared[t]
        for warp in range(1, cuda.blockDim.x // k.WARP):
            total += shared[warp * many + t]
        row[t] = total
    cuda.syncthreads()


@array_function
def column_totals(shared, first, count, sums):
    """Sum columns of shared memory over the threads; every warp takes some columns.

    first : position of the first column among all sums
    """
    t = cuda.threadIdx.x
    for j in range(t // k.WARP, count, k.THREADS // k.WARP):
        part = 0.0
        for i in range(t % k.WARP, k.THREADS, k.WARP):
            part += shared[j * k.THREADS + i]
        total = warp_sum(part)
        if t % k.WARP == 0:
            sums[first + j] = total


@array_function
def block_sums(shared, row):
    """Write sums over the threads of SUMS numbers each in shared memory, in a fixed order."""
    column_totals(shared, 0, k.SUMS, row)


@array_function
def column_sums(shared, own, count, sums):
    """Sum ``count`` numbers per thread over the threads, in a fixed order.

    Each round takes as many numbers as shared memory holds.
    """
    columns = shared.size // k.THREADS
    for first in range(0, count, columns):
        many = min(columns, count - first)
        if first > 0:
            cuda.syncthreads()
        for j in range(many):
            shared[j * k.THREADS + cuda.threadIdx.x] = own[first + j]
        cuda.syncthreads()
        column_totals(shared, first, many, sums)


@array_function
def place(row, kinds):
    """Return site and species of a row of nodes, by 32-bit division."""
    row, kinds = np.uint32(row), np.uint32(kinds)
    return int64(row // kinds), int64(row % kinds)


@array_function
def inverse_energy(p2, m2, at_rest):
    """Return 1/E at a node; a massless particle at rest takes the cell average."""
    return physics.inverse_energy(math.sqrt(p2 + m2), at_rest)


@array_function
def quick_inverse(p2, m2, at_rest):
    """Return 1/E at a node to one or two units in the last place, without division or branch."""
    e2 = p2 + m2
    inverse = physics.inverse_root(e2 if e2 > 0.0 else 1.0)
    return inverse if e2 > 0.0 else at_rest


@array_function
def momentum_at(packed, momentum, geometry):
    """Return the momentum of a packed node; momentum : nodes of the three axes in sequence."""
    nx, ny = int64(geometry[0]), int64(geometry[1])
    return (
        momentum[physics.packed_index(packed, 0)],
        momentum[nx + physics.packed_index(packed, 1)],
        momentum[nx + ny + physics.packed_index(packed, 2)],
    )
