"""The physics functions compiled for the GPU, and what all its kernels share.

The functions are those of the CPU; roots, reciprocals, floor, powers
of two and Philox words are the GPU's own.
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
        """The largest whole number not above x."""
        return libdevice.floor(x)

    def exp(x):
        """e^x in single precision."""
        return float64(libdevice.fast_expf(np.float32(x)))

    def expm1(x):
        """e^x - 1 in single precision, for any x <= 0."""
        return float64(libdevice.expm1f(np.float32(x)))

    SLACK = int(np.float64(1.0 + 1e-9).view(np.int64)) - (1023 << 52) + 1
    """A number above a power of two by less counts as one, as for the CPU."""
    _rcp, _rsqrt = instruction("rcp.approx.ftz.f64"), instruction("rsqrt.approx.ftz.f64")

    def reciprocal(x):
        """1/x to one or two units in the last place: two Newton steps, no branches."""
        y = _rcp(x)
        y += y * (1.0 - x * y)
        return y + y * (1.0 - x * y)

    def inverse_root(x):
        """1 over the square root of x > 0, likewise: one step of third order."""
        y = _rsqrt(x)
        e = 1.0 - (x * y) * y
        return y + (y * e) * (0.5 + 0.375 * e)

    def root(x):
        """The square root of x >= 0."""
        y = _rsqrt(x + 1e-300)
        e = 1.0 - (x * y) * y
        return x * (y + (y * e) * (0.5 + 0.375 * e))

    def level(ratio):
        """The power of two at or above a number from 0 to 1, from its bits; not below 2^-10."""
        above = ((libdevice.double_as_longlong(ratio) - SLACK) >> 52) + 1
        return libdevice.longlong_as_double(min(max(above, 1013), 1023) << 52)

    def philox_round(c0, c1, c2, c3, k0, k1):
        """One round in words of 32 bits."""
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
"""Type of the words that Philox takes."""
ALL = 0xFFFFFFFF
"""The threads of a warp that take part in a shuffle."""


# --- sums over a block, and additions to cells --------------------------------------------------


def piece(function):
    """A part of kernels that works on arrays."""
    return cuda.jit(device=True, fastmath=True)(function)


if SIMULATED:

    def add(array, row, column, value):
        """array[row, column] += value, atomically."""
        cuda.atomic.add(array, (row, column), value)

    add = piece(add)
else:
    add = adder()


@piece
def warp_sum(value):
    """Sum over the threads of a warp, in a fixed order; valid in the first of them."""
    if not SIMULATED:
        for reach in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(ALL, value, reach)
    return value


@piece
def warp_max(value):
    """The largest number of the threads of a warp; valid in the first of them."""
    if not SIMULATED:
        for reach in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_down_sync(ALL, value, reach))
    return value


@piece
def warp_scan(value):
    """Sum of the int32 of all threads of a warp up to this one."""
    if not SIMULATED:
        lane = cuda.threadIdx.x % k.WARP
        for reach in (1, 2, 4, 8, 16):
            before = cuda.shfl_up_sync(ALL, value, reach)
            if lane >= reach:
                value = int32(value + before)
    return value


@piece
def block_sum(shared, value):
    """Sum of one number of every thread, in a fixed order."""
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


@piece
def block_max(shared, value):
    """The largest number of all threads."""
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


@piece
def keep_sums(shared, values, row):
    """Write sums over the threads of the numbers that each one holds, a tuple; fixed order."""
    t = cuda.threadIdx.x
    many = len(values)
    if SIMULATED:  # warps of one thread: all numbers at once do not fit the shared memory
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


@piece
def column_totals(shared, first, count, sums):
    """Sums over the threads of what each left in shared memory; every warp takes some columns.

    first : where the sums of the columns begin among all sums
    """
    t = cuda.threadIdx.x
    for j in range(t // k.WARP, count, k.THREADS // k.WARP):
        part = 0.0
        for i in range(t % k.WARP, k.THREADS, k.WARP):
            part += shared[j * k.THREADS + i]
        total = warp_sum(part)
        if t % k.WARP == 0:
            sums[first + j] = total


@piece
def block_sums(shared, row):
    """Write sums over the threads of the SUMS numbers each left in shared memory; fixed order."""
    column_totals(shared, 0, k.SUMS, row)


@piece
def column_sums(shared, own, count, sums):
    """Sums over the threads of the ``count`` numbers that each one holds, in a fixed order.

    As many of them at once as the shared memory holds.
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


@piece
def place(row, kinds):
    """Site and species of a row of nodes, divided in words of 32 bits."""
    row, kinds = np.uint32(row), np.uint32(kinds)
    return int64(row // kinds), int64(row % kinds)


@piece
def inverse_energy(p2, m2, at_rest):
    """1/E at a node; a massless one at rest takes its cell average."""
    return physics.inverse_energy(math.sqrt(p2 + m2), at_rest)


@piece
def quick_inverse(p2, m2, at_rest):
    """1/E at a node without divisions and branches, to one or two units in the last place."""
    e2 = p2 + m2
    inverse = physics.inverse_root(e2 if e2 > 0.0 else 1.0)
    return inverse if e2 > 0.0 else at_rest


@piece
def momentum_at(packed, momentum, geometry):
    """Momentum of a packed node; momentum : nodes along the three axes, one after the other."""
    nx, ny = int64(geometry[0]), int64(geometry[1])
    return (
        momentum[physics.packed_index(packed, 0)],
        momentum[nx + physics.packed_index(packed, 1)],
        momentum[nx + ny + physics.packed_index(packed, 2)],
    )
