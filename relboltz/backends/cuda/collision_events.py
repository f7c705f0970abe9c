"""Kernel that applies kept events, and device functions shared with drawing and limiting."""

import math

import numpy as np
from numba import float64, int32, int64

from ...events.collisions import SETS
from ...events.projection import FAR
from . import layout as k
from .driver import SIMULATED, kernel
from .layout import THREADS
from .physics import ALL, add, array_function, cuda, flow_single, keep_sums, physics


@array_function
def independent(cumulative, guide, a, word, shift, even):
    """Return the node that a random word selects, and its probability in units of 2^-32.

    even : number of nodes if all are equally likely, else 0
    """
    if even > 0:
        i = (word * even) >> 32
        return i, physics.even_word(i + 1, even) - physics.even_word(i, even)
    a = np.uint32(a)
    i = guide[a, np.uint32(word >> shift)]
    begin, end = cumulative[a, np.uint32(i)], cumulative[a, np.uint32(i + 1)]
    while end <= word:
        i += 1
        begin, end = end, cumulative[a, np.uint32(i + 1)]
    return int64(i), end - begin


@array_function
def stratified(cumulative, guide, a, sample, word, samples, shift, even):
    """Return the node at cumulative weight (sample + word 2^-32) / samples, and its probability."""
    position = (np.uint64(sample) << np.uint64(32)) | np.uint64(word)
    estimate = (float(sample) + word * 2.0**-32) * (4294967296.0 / samples)
    at = min(int64(estimate), 4294967295)
    count = np.uint64(samples)
    if even > 0:
        if np.uint64(at) * count > position:  # the estimate may be off by one
            at -= 1
        elif np.uint64(at + 1) * count <= position:
            at += 1
        i = (at * even) >> 32
        return i, physics.even_word(i + 1, even) - physics.even_word(i, even)
    a = np.uint32(a)
    i = guide[a, np.uint32(at >> shift)]
    while np.uint64(cumulative[a, np.uint32(i + 1)]) * count <= position:
        i += 1
    while np.uint64(cumulative[a, np.uint32(i)]) * count > position:
        i -= 1
    return int64(i), cumulative[a, np.uint32(i + 1)] - cumulative[a, np.uint32(i)]


@array_function
def pair_logs(table, cells):
    """Sum ln(f/F), then ln F, over the low pair, the high pair, and p and k3."""
    p, k3, l0, m0, l1, m1 = cells
    return (
        table[l0, 0] + table[m0, 0], table[l1, 0] + table[m1, 0], table[p, 0] + table[k3, 0],
        table[l0, 1] + table[m0, 1], table[l1, 1] + table[m1, 1], table[p, 1] + table[k3, 1],
    )  # fmt: skip


@array_function
def flow_of(logs, r, single):
    """Return net and forward flow at unit weight; logs : ``pair_logs``; r : energy split."""
    x, y = physics.exponents(*logs, r)
    if single != 0:
        return flow_single(x, y)
    return physics.flow(x, y)


@array_function
def event_flow(table, cells, r, single):
    """Return net and forward flow of an event of unit weight on six cells."""
    return flow_of(pair_logs(table, cells), r, single)


@array_function
def across_front(table, start, both, logs, landed, where, grid):
    """Land at a front of f on the closest pairs that hold particles, as the CPU does.

    start : first cell of the species of k1; both : sum of the cell indices of k1 and its partner;
    logs : ``pair_logs``; landed : nodes of the low and of the high pair, and the split; where :
    position of k1, index sum of p and k3, energy, squared masses. The CPU version is
    ``cpu.collision_events.land_across_front``.
    """
    position, total, e, m2 = where
    cells, h = grid
    below, above, own = logs[0] + logs[3], logs[1] + logs[4], logs[2] + logs[5]
    best = (-1.0, 0.0, FAR, -1.0, 0.0, FAR)
    for corner in range(int32(min(8.0, 8.0 * cells[0]))):  # 8, written so that it is not unrolled
        node, pair, distance = physics.corner_pair(corner, position, total, m2, cells, h)
        if distance < FAR:
            k1 = start + int64(node)
            held = table[k1, 0] + table[both - k1, 0] + (table[k1, 1] + table[both - k1, 1])
            far = physics.detour(distance, held, own, max(below, above), h)
            best = physics.closer(node, pair, far, e, best)
    if best[0] >= 0.0 and best[3] >= 0.0:
        return best[0], best[3], physics.share_of_high_pair(e, best[1], best[4])
    return landed


@array_function
def both_occupied(table, p, k3):
    """Return f_p f_k3 in single precision."""
    return math.exp(np.float32(table[p, 0] + table[p, 1] + table[k3, 0] + table[k3, 1]))


@array_function
def deposit(change, row, cells, whole, low, high):
    """Add integer amounts at k3 and take them from both pairs; the caller adds at p."""
    _, k3, l0, m0, l1, m1 = cells
    if whole != 0:
        add(change, row, k3, whole)
    if low != 0:
        add(change, row, l0, -low)
        add(change, row, m0, -low)
    if high != 0:
        add(change, row, l1, -high)
        add(change, row, m1, -high)


@array_function
def move(change, row, cells, r, amount, only_p):
    """Round an amount and move it at all cells except p; return it for the caller to add at p.

    only_p : 1 if only p changes (sampling that is not symmetrical)
    """
    whole = int64(physics.nearest_integer(amount))
    if whole != 0 and only_p == 0:
        low, high = physics.shares(whole, r)
        deposit(change, row, cells, whole, low, high)
    return whole


PAIRED = not SIMULATED
"""Whether neighbouring threads exchange what they add, by a shuffle."""


@array_function
def shared_out(net, gain, odd):
    """Return what this thread adds for the events of the even and the odd thread of a pair."""
    own, other = (gain, net) if odd != 0 else (net, gain)
    if not PAIRED:
        return net, gain
    other = cuda.shfl_xor_sync(ALL, other, 1)
    return (other, own) if odd != 0 else (own, other)


@array_function
def add_apart(change, row, cell, amounts, odd):
    """Add to the two slots of a cell: even threads add both net changes, odd ones both gains."""
    first, second = amounts
    if not PAIRED:
        if first != 0:
            add(change, row, 2 * int64(cell), first)
        if second != 0:
            add(change, row, 2 * int64(cell) + 1, second)
        return
    other = cuda.shfl_xor_sync(ALL, int32(cell), 1)
    even_cell, odd_cell = (other, int32(cell)) if odd != 0 else (int32(cell), other)
    if first != 0:
        add(change, row, 2 * int64(even_cell) + odd, first)
    if second != 0:
        add(change, row, 2 * int64(odd_cell) + odd, second)


@array_function
def deposit_apart(change, row, cells, r, whole, gain):
    """Add net changes and gains of an event, except at p, to the two slots of each cell.

    The gain of the pairs is the gain at the nodes minus the net amount. Two threads add to
    neighbouring slots at once, which the memory handles as one addition.
    """
    _, k3, l0, m0, l1, m1 = cells
    odd = cuda.threadIdx.x & 1
    low_out, high_out = physics.shares(gain, r)
    low_in, high_in = physics.shares(gain - whole, r)
    add_apart(change, row, k3, shared_out(whole, gain, odd), odd)
    low = shared_out(low_in - low_out, low_in, odd)
    add_apart(change, row, l0, low, odd)
    add_apart(change, row, m0, low, odd)
    high = shared_out(high_in - high_out, high_in, odd)
    add_apart(change, row, l1, high, odd)
    add_apart(change, row, m1, high, odd)


@array_function
def gather(change, row, p, whole, last_p, gathered):
    """Accumulate amounts for p; flush the sum when p changes. Return p and the running sum."""
    if p == last_p:
        return p, gathered + whole
    if gathered != 0:
        add(change, row, last_p, gathered)
    return p, whole


@array_function
def three(shared, place):
    """Return three consecutive numbers of shared memory."""
    return shared[place], shared[place + 1], shared[place + 2]


@array_function
def four(shared, place):
    """Return four consecutive numbers of shared memory."""
    return shared[place], shared[place + 1], shared[place + 2], shared[place + 3]


@array_function
def add_to_pairs(into, cells, low, high):
    """Add to the cells of the low and of the high pair of an event."""
    cuda.atomic.add(into, cells[2], low)
    cuda.atomic.add(into, cells[3], low)
    cuda.atomic.add(into, cells[4], high)
    cuda.atomic.add(into, cells[5], high)


@array_function
def cells_of(nodes, j, shift, conserving):
    """Return the six cells of a kept event.

    Conserving: the low and the high node of k1 are stored, and k2 is the partner P - k1 of each.
    Nearest: the cells of k1 and k2 are stored, and count as the low pair.
    """
    p, k3, l0, l1 = nodes[0, j], nodes[1, j], nodes[2, j], nodes[3, j]
    m0 = p + k3 - l0 + shift if conserving != 0 else l1
    m1 = p + k3 - l1 + shift if conserving != 0 else l1
    l1 = l1 if conserving != 0 else l0
    return np.uint32(p), np.uint32(k3), np.uint32(l0), np.uint32(m0), np.uint32(l1), np.uint32(m1)


@array_function
def slot_of(i, roots):
    """Return the slot of this thread's i-th event, ordered by site and block."""
    block = cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x
    return np.uint32((block * k.EACH * roots + i) * THREADS + cuda.threadIdx.x)


@array_function
def partner_shift(control, channels, channel):
    """Return the offset from p + k3 - k1, as cell indices of their species, to the cell of k2."""
    a = channels[channel, k.K1] + channels[channel, k.K2]
    return (a - channels[channel, k.K3] - channels[channel, k.P]) * control[k.NODES]


@array_function
def seen(which, stage):
    """Return the table a set uses: the state, or in the last stage the other set's prediction."""
    return 1 - which if stage == k.LAST_STAGE else 0


@array_function
def first_half(change, cell):
    """Return the first-stage change of both sets together: half an Euler step."""
    return change[0, cell] + change[1, cell]


@kernel
def apply(
    control, scalars, channels, blocks, nodes, weights, ratios, tables, first_block, roots,
    conserving, change, trouble, sums, stage, redone,
):  # fmt: skip
    """Apply kept events to the cells; redone : 1 for only sites whose first stage was redone."""
    shared = cuda.shared.array(THREADS, float64)
    if control[k.STATUS] != k.GO or (redone != 0 and trouble[cuda.blockIdx.y, k.REDONE] == 0):
        return
    block = cuda.blockIdx.x + first_block
    channel, which = blocks[block, k.CHANNEL], blocks[block, k.SET]
    table, row = tables[seen(which, stage)], SETS if stage == k.LAST_STAGE else which
    shift = partner_shift(control, channels, channel)
    only_p = channels[channel, k.ONLY_P]
    forward, net, moves = 0.0, 0.0, 0.0
    last_p, gathered = np.uint32(0), int64(0)
    for i in range(k.EACH * roots):
        j = slot_of(i, roots)
        weight = float64(weights[j])
        if weight > 0.0:
            cells, r = cells_of(nodes, j, shift, conserving), ratios[j]
            flow, one_way = event_flow(table, cells, r, control[k.SINGLE])
            flow *= weight
            net += flow
            moves += abs(flow)
            forward += one_way * weight
            whole = move(change, row, cells, r, scalars[k.SCALE] * flow, only_p)
            last_p, gathered = gather(change, row, cells[0], whole, last_p, gathered)
    if gathered != 0:
        add(change, row, last_p, gathered)
    block += cuda.blockIdx.y * blocks.shape[0]
    keep_sums(shared, (forward, net, moves), sums[block, k.FORWARD :])


@kernel
def hammer(array, additions):
    """Benchmark memory by adding to cells all over an array, as events do."""
    word = np.uint32(cuda.grid(1) * 2654435761 + 12345)
    for _ in range(additions):
        word = np.uint32(word * 1664525 + 1013904223)
        cell = np.uint32((np.uint64(word) * np.uint64(array.shape[1])) >> np.uint64(32))
        add(array, 0, cell, 1)
