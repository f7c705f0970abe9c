"""Brackets of trial functions on a GPU: the counterpart of ``backends/cpu/brackets.py``.

One kernel is generated with the matrix elements of the model inlined. Every thread of a block draws
an event into shared memory; every thread then adds up some entries of the sums over these events,
in order. Each block has a fixed part of a batch, so that two runs agree bit for bit.
"""

from typing import Any

from ...model.model import Model
from ...util.errors import InputError
from ..bracket_requests import BracketRequest
from ..elements import load
from .draw import element_parts, kinds_of
from .driver import SIMULATED

THREADS = 4 if SIMULATED else 64
SHARED_NUMBERS = 6000
"""Most 8-byte numbers of shared memory that a block may use."""

TEMPLATE = '''"""Generated code: brackets of trial functions from the events of a model on a GPU."""

import math

from numba import float64, int64

from relboltz.backends.cuda import layout as k
from relboltz.backends.cuda.driver import device_function, kernel
from relboltz.backends.cuda.physics import WORD, array_function, cuda, physics
from relboltz.events.collisions import LARGEST_ELEMENT, MORE_WORDS
{imports}
THREADS, STRIDE, SIZE, OWNED, LEGS = {threads}, {stride}, {size}, {owned}, {legs}
SPAN, LOWEST = {span}, {lowest}
VECTORS, SHARES, WEIGHT, FLAW, LEGAL = {vectors}, {shares}, {weight}, {flaw}, {legal}
{elements}

def matrix_element(kind, s, t, m2, screening2, exchange2, q2, qu2, ekt, own, channel):
    """Return |M|^2 of the process that a task belongs to."""
    ma2, mb2, mc2, md2 = m2
{choice}
    return 0.0


matrix_element = device_function(matrix_element)


def uniform64(high, low):
    """Combine two random words into a number between 0 and 1."""
    return (float64(high) * 4294967296.0 + float64(low) + 0.5) * 5.421010862427522e-20


uniform64 = device_function(uniform64)


def place(cumulative, first, count, u):
    """Return which of the ``count`` bins from ``first`` on contains a number."""
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if cumulative[first + middle] <= u:
            low = middle
        else:
            high = middle
    return low


place = array_function(place)


def density(k, first, bins, edges, cumulative):
    """Return the density in d^3p with which a table samples a momentum."""
    p = physics.root(physics.dot(k, k))
    return physics.radial_density(p, first + place(edges, first, bins, p), edges, cumulative)


density = array_function(density)


def keep(shared, at, leg, momentum, energy, share, temperature):
    """Store momentum and powers of the energy of a leg, in units of T."""
    over = 1.0 / temperature
    for axis in range(3):
        shared[at + VECTORS + 3 * leg + axis] = momentum[axis] * over
    shared[at + SHARES + leg] = share
    upwards = physics.root(energy * over)
    downwards = 1.0 / upwards
    power = 1.0
    for n in range(-LOWEST, SPAN):
        shared[at + leg * SPAN + n] = power
        power *= upwards
    power = downwards
    for n in range(-LOWEST - 1, -1, -1):
        shared[at + leg * SPAN + n] = power
        power *= downwards


keep = array_function(keep)


def contraction(rank, a, b):
    """Return the contraction of the tensors of two legs."""
{ranks}
    return 1.0


contraction = device_function(contraction)


def brackets(
    blocks, whole, numbers, own, edges, cumulative, fields, geometry, entries, seed, first_batch,
    sums,
):
    """Sum over a part of the events of a batch.

    blocks: task, batch, first sample, samples; whole: kind of matrix element, samples of a batch,
    bins, position of the fields, positions of the tables of p, k3, k2, k1; entries: rank, two legs,
    slots of their powers.
    """
    shared = cuda.shared.array(SIZE, float64)
    total = cuda.local.array(OWNED, float64)
    thread, block = cuda.threadIdx.x, cuda.blockIdx.x
    task, batch = blocks[block, 0], blocks[block, 1]
    first, count = blocks[block, 2], blocks[block, 3]
    kind, samples = whole[task, 0], whole[task, 1]
    bins, field, table_p, table_k = whole[task, 2], whole[task, 3], whole[task, 4], whole[task, 5]
    m2 = (numbers[task, 0], numbers[task, 1], numbers[task, 2], numbers[task, 3])
    named = (numbers[task, 4], numbers[task, 5], numbers[task, 6], numbers[task, 7])
    screening2, exchange2, ekt = numbers[task, 8], numbers[task, 9], numbers[task, 10]
    poles, span = (numbers[task, 19], numbers[task, 20], numbers[task, 21]), numbers[task, 22]
    factor, clamps, temperature = numbers[task, 23], numbers[task, 24], numbers[task, 25]
    mirror, at_rest, spacing2 = numbers[task, 26], numbers[task, 27], numbers[task, 31]
    inner = (numbers[task, 28], numbers[task, 29], numbers[task, 30])
    angle = (poles[0], poles[1], poles[2], ekt, span)
    cells = (geometry[0], geometry[1], geometry[2])
    h = (geometry[3], geometry[4], geometry[5])
    key_0, key_1 = WORD(seed & 0xFFFFFFFF), WORD(seed >> 32)
    at = thread * STRIDE
    for j in range(OWNED):
        total[j] = 0.0
    for start in range(0, count, THREADS):
        for j in range(STRIDE):
            shared[at + j] = 0.0
        if start + thread < count:
            sample = first + start + thread
            step = WORD(first_batch + batch)
            w0, w1, w2, w3 = physics.philox(
                WORD(sample), WORD(task), step, WORD(0), key_0, key_1
            )
            v0, v1, v2, v3 = physics.philox(
                WORD(sample), WORD(task | MORE_WORDS), step, WORD(0), key_0, key_1
            )
            where = (sample + uniform64(w0, w1)) / samples
            u = uniform64(w2, w3)
            bin_p = place(cumulative, table_p, bins, where)
            bin_k = place(cumulative, table_k, bins, u)
{draw}
            ep, ek = physics.energy(p3, m2[3]), physics.energy(k3, m2[2])
            part, undo = physics.soft_angle(physics.uniform(v1), p3, ep, k3, ek, m2, angle)
            k1, e, s, t, weight = physics.scatter(
                p3, k3, m2, (part, physics.uniform(v2)), (screening2, 0.0, span), inner
            )
            q2, qu2 = physics.transfers(k1, k3, p3, s, m2)
            value = matrix_element(
                kind, s, t, named, screening2, exchange2, q2, qu2, ekt, own, task
            )
            if weight > 0.0:
                flaw = physics.element_flaw(value, clamps)
                shared[at + FLAW] = flaw
                if flaw == 0.0:
                    shared[at + LEGAL] = max(value, 0.0)
                weight = weight if flaw < LARGEST_ELEMENT and value > 0.0 else 0.0
            weight *= factor / samples * inverse * undo
            if weight > 0.0:
                weight *= value
{use}
        cuda.syncthreads()
        for j in range(OWNED):
            entry = thread + j * THREADS
            if entry < entries.shape[0]:
                rank, a, b = entries[entry, 0], entries[entry, 1], entries[entry, 2]
                slot_a, slot_b = entries[entry, 3], entries[entry, 4]
                found = 0.0
                for i in range(THREADS):
                    row = i * STRIDE
                    if rank < 0:
                        found += shared[row + (FLAW if rank == -1 else LEGAL)]
                    elif shared[row + WEIGHT] > 0.0:
                        one, other = row + VECTORS + 3 * a, row + VECTORS + 3 * b
                        c = contraction(
                            rank, (shared[one], shared[one + 1], shared[one + 2]),
                            (shared[other], shared[other + 1], shared[other + 2]),
                        )
                        c *= shared[row + SHARES + a] * shared[row + SHARES + b]
                        c *= shared[row + slot_a] * shared[row + slot_b]
                        found += shared[row + WEIGHT] * c
                total[j] += found
        cuda.syncthreads()
    for j in range(OWNED):
        entry = thread + j * THREADS
        if entry < entries.shape[0]:
            sums[block, entry] = total[j]


brackets = kernel(brackets, cached={cached})
'''

FREE = {
    "ranks": """    if rank == 0:
        return physics.tensor(a, b)
    if rank == 1:
        return physics.dot(a, b)""",
    "draw": """            p, inverse_p = physics.radius(where, table_p + bin_p, edges, cumulative)
            q, inverse_k = physics.radius(u, table_k + bin_k, edges, cumulative)
            p3, k3 = physics.across_plane(p, q, 2.0 * physics.uniform(v0) - 1.0)
            inverse = inverse_p * inverse_k""",
    "use": """                k2 = physics.minus(physics.plus(p3, k3), k1)
                e1, e2 = physics.energy(k1, m2[0]), physics.energy(k2, m2[1])
                if mirror != 0.0:
                    back = e1 * density(k1, whole[task, 7], bins, edges, cumulative)
                    back *= e2 * density(k2, whole[task, 6], bins, edges, cumulative)
                    weight *= physics.mirrored(ep * ek / inverse, back)
                f3, full = physics.thermal_occupation(
                    ek / temperature - numbers[task, 13], numbers[task, 17]
                )
                fp, full = physics.thermal_occupation(
                    ep / temperature - numbers[task, 14], numbers[task, 18]
                )
                f, full_1 = physics.thermal_occupation(
                    e1 / temperature - numbers[task, 11], numbers[task, 15]
                )
                f, full_2 = physics.thermal_occupation(
                    e2 / temperature - numbers[task, 12], numbers[task, 16]
                )
                shared[at + WEIGHT] = weight * f3 * fp * full_1 * full_2
                keep(shared, at, 0, k1, e1, 1.0, temperature)
                keep(shared, at, 1, k2, e2, 1.0, temperature)
                keep(shared, at, 2, k3, ek, 1.0, temperature)
                keep(shared, at, 3, p3, ep, 1.0, temperature)""",
}
"""Template parts for continuous, unbounded momentum space."""
NODES = {
    "ranks": """    if rank == 0:
        return physics.tensor_axes(a, b)
    if rank == 1:
        return physics.tensor_planes(a, b)
    if rank == 2:
        return physics.dot(a, b)""",
    "draw": """            at_p = physics.node_indices(float64(bin_p), cells)
            at_k = physics.node_indices(float64(bin_k), cells)
            p3, k3 = physics.momentum_of(at_p, cells, h), physics.momentum_of(at_k, cells, h)
            chance = cumulative[table_p + bin_p + 1] - cumulative[table_p + bin_p]
            chance *= cumulative[table_k + bin_k + 1] - cumulative[table_k + bin_k]
            inverse = 1.0 / chance""",
    "use": """                low, high, r = physics.landing(
                    physics.position_of(k1, cells, h), physics.plus(at_p, at_k), e,
                    (m2[0], m2[1]), cells, h,
                )
                if low >= 0.0 and high >= 0.0:
                    both = int64(bin_p + bin_k)
                    six = (
                        int64(low), both - int64(low), int64(high), both - int64(high),
                        int64(bin_k), int64(bin_p),
                    )
                    at_low = fields[field, six[0]] + fields[field + 1, six[1]]
                    at_high = fields[field, six[2]] + fields[field + 1, six[3]]
                    weight *= math.exp(at_low + r * (at_high - at_low))
                    weight *= physics.compensation(k1, k3, p3, m2, s, spacing2)
                    shared[at + WEIGHT] = (
                        weight * fields[field + 2, bin_k] * fields[field + 3, bin_p]
                    )
                    for leg in range(6):
                        node = physics.node_indices(float64(six[leg]), cells)
                        one = physics.momentum_of(node, cells, h)
                        mass = m2[leg % 2] if leg < 4 else m2[leg - 2]
                        inverse_e = physics.inverse_energy(physics.energy(one, mass), at_rest)
                        keep(
                            shared, at, leg, one, 1.0 / inverse_e, physics.share_of(leg, r),
                            temperature,
                        )""",
}
"""Template parts for momenta on the nodes of a grid."""


def bracket_kernel(model: Model, request: BracketRequest, entries: int) -> Any:
    """Return the kernel for a model and a request; entries : number of sums per block."""
    stride, owned = _stride(request), -(-entries // THREADS)
    ours = all(process.built_in for process in model.processes)
    legs, span = request.cells, request.trial.span
    kinds, _, _ = kinds_of(model.processes)
    functions, parts = element_parts(kinds, ours)
    vectors, shares = legs * span, legs * span + 3 * legs
    text = TEMPLATE.format(
        **parts, **(FREE if request.grid is None else NODES), threads=THREADS, stride=stride,
        size=THREADS * stride, owned=owned, legs=legs, span=span, lowest=request.trial.lowest,
        vectors=vectors, shares=shares, weight=shares + legs, flaw=shares + legs + 1,
        legal=shares + legs + 2, cached=ours,
    )  # fmt: skip
    if ours:
        return load(text, "brackets").brackets
    exec(text, functions)
    return functions["brackets"]


def _stride(request: BracketRequest) -> int:
    """Return the count of shared-memory numbers per event, odd to avoid bank conflicts."""
    legs = request.cells
    stride = legs * request.trial.span + 4 * legs + 3
    stride += 1 - stride % 2
    if THREADS * stride > SHARED_NUMBERS:
        raise InputError(
            "powers: they are too far apart for a GPU; use fewer of them, or backend = 'cpu'"
        )
    return stride
