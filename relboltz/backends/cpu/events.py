"""Kernels of the CPU backend: loops over a chunk of events, and over groups of chunks.

A chunk lives in one flat scratch array with a row for each quantity. Rows are a fixed distance
apart, so the compiler sees that they do not overlap and works on several events at once; what
cannot be done that way (table look-ups, additions into cells) has loops of its own.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numba import types

from ...compiling import kernel
from ...events.drawing import WORDS
from ..physics import compiled as physics

CHUNK = 2048
"""Events drawn together; the scratch array of a thread is about half a megabyte."""

# rows of the scratch array
PX, PY, PZ, KX, KY, KZ = (row * CHUNK for row in range(6))
U0, U1, U2, U3, U4 = (row * CHUNK for row in range(6, 11))
K1X, K1Y, K1Z, E, S, T, WEIGHT = (row * CHUNK for row in range(11, 18))
Q2, QU2, INVERSE_Q, TX, TY, TZ = (row * CHUNK for row in range(18, 24))
LOW, HIGH, E_HIGH, RATIO, M2 = (row * CHUNK for row in range(24, 29))
X, Y, NET, FORWARD = (row * CHUNK for row in range(29, 33))
ROWS = 33

PACKED_BITS = 30
BITS = np.uint64(32)


@kernel
def bucket_shift(buckets):
    """By how much a random word is shifted to give its bucket."""
    shift = 32
    while buckets > 1:
        buckets >>= 1
        shift -= 1
    return shift


@kernel
def sampling_table(f, inverse_e, packed, cumulative, record, guide):
    """Tables to draw nodes with the weight of f and 1/E, exactly, from random words of 32 bits.

    ``cumulative`` holds the first word of every node, ``guide`` the node of every bucket's first
    word: from there on a search is short. ``record`` holds what is needed of a node once it is
    drawn: its packed indices and its probability. An f without entries draws all nodes alike.
    """
    n = packed.size
    highest = f.max() if f.size > 0 else 0.0
    largest = physics.node_weight(highest, highest, inverse_e.max()) if f.size > 0 else 1.0
    cumulative[0] = 0
    for i in range(n):
        one = 1
        if f.size > 0:
            one = physics.whole_weight(physics.node_weight(f[i], highest, inverse_e[i]), largest)
        cumulative[i + 1] = cumulative[i] + one
    scale = (WORDS - n) / cumulative[n]
    for i in range(n + 1):
        if f.size > 0:
            cumulative[i] = physics.cumulated(i, cumulative[i], n, scale)
        else:
            cumulative[i] = physics.even_word(i, n)
    shift = bucket_shift(guide.size)
    for i in range(n):
        record[i] = packed[i] | (cumulative[i + 1] - cumulative[i]) << PACKED_BITS
        first = ((cumulative[i] - 1) >> shift) + 1
        last = (cumulative[i + 1] - 1) >> shift
        for bucket in range(first, last + 1):
            guide[bucket] = i


@kernel
def draw_words(first, count, channel, step, site, seed, words):
    """Four random words for each of the samples first, first + 1, ..."""
    k0 = np.uint64(seed & 0xFFFFFFFF)
    k1 = np.uint64(seed >> 32)
    c1 = np.uint64(channel)
    c2 = np.uint64(step)
    c3 = np.uint64(site)
    for i in range(count):
        a, b, c, d = physics.philox(np.uint64(first + i), c1, c2, c3, k0, k1)
        words[i] = a
        words[CHUNK + i] = b
        words[2 * CHUNK + i] = c
        words[3 * CHUNK + i] = d


@kernel
def draw_pairs(first, count, samples, words, table_p, table_k, grid, w, nodes):
    """Nodes p (stratified over the samples of a set) and k3 (independent), and 1/(q q).

    Sample j of N falls at (j + v)/N of the cumulative weight of p, v its first random word.
    """
    cumulative, record_p, _ = table_p
    cumulative_k, record_k, guide = table_k
    cells, h = grid
    shift = bucket_shift(guide.size)
    at = np.uint64(first) << BITS
    p = np.searchsorted(cumulative, np.int64(at // np.uint64(samples)), side="right") - 1
    reach = np.uint64(cumulative[p + 1]) * np.uint64(samples)
    for i in range(count):
        position = (np.uint64(first + i) << BITS) + words[i]
        while position >= reach:
            p += 1
            reach = np.uint64(cumulative[p + 1]) * np.uint64(samples)
        word = np.int64(words[CHUNK + i])
        k = guide[word >> shift]
        while cumulative_k[k + 1] <= word:
            k += 1
        nodes[i] = p
        nodes[CHUNK + i] = k
        nodes[2 * CHUNK + i] = record_p[p]
        nodes[3 * CHUNK + i] = record_k[k]
    for i in range(count):
        a = nodes[2 * CHUNK + i]
        b = nodes[3 * CHUNK + i]
        w[INVERSE_Q + i] = 18446744073709551616.0 / (
            float(a >> PACKED_BITS) * float(b >> PACKED_BITS)
        )
        at_p, at_k = physics.unpacked(a), physics.unpacked(b)
        w[PX + i], w[PY + i], w[PZ + i] = physics.momentum_of(at_p, cells, h)
        w[KX + i], w[KY + i], w[KZ + i] = physics.momentum_of(at_k, cells, h)
        w[TX + i] = at_p[0] + at_k[0]
        w[TY + i] = at_p[1] + at_k[1]
        w[TZ + i] = at_p[2] + at_k[2]
        w[U0 + i] = physics.uniform(words[2 * CHUNK + i])
        w[U1 + i] = physics.uniform(words[3 * CHUNK + i])


@kernel
def draw_box(count, words, more, grid, nodes, w):
    """Five uniforms for the paper's samplings: k1x, k1y and a whole momentum in the box.

    Only p is a node then, so 1/(q q) becomes 1/q of p times the number of nodes.
    """
    cells, h = grid
    size = cells[0] * cells[1] * cells[2]
    for i in range(count):
        w[U0 + i] = physics.across(physics.uniform(words[2 * CHUNK + i]), cells[0], h[0])
        w[U1 + i] = physics.across(physics.uniform(words[3 * CHUNK + i]), cells[1], h[1])
        w[U2 + i] = physics.across(physics.uniform(more[i]), cells[0], h[0])
        w[U3 + i] = physics.across(physics.uniform(more[CHUNK + i]), cells[1], h[1])
        w[U4 + i] = physics.across(physics.uniform(more[2 * CHUNK + i]), cells[2], h[2])
        w[INVERSE_Q + i] = size * 4294967296.0 / float(nodes[2 * CHUNK + i] >> PACKED_BITS)


@kernel
def scatter_chunk(count, m2, angle, at_rest, w):
    """k1, s, t and the weight of every drawn pair, through the centre-of-mass frame."""
    for i in range(count):
        p = (w[PX + i], w[PY + i], w[PZ + i])
        k3 = (w[KX + i], w[KY + i], w[KZ + i])
        k1, e, s, t, weight = physics.scatter(p, k3, m2, (w[U0 + i], w[U1 + i]), angle, at_rest)
        w[K1X + i], w[K1Y + i], w[K1Z + i] = k1
        w[E + i] = e
        w[S + i] = s
        w[T + i] = t
        w[WEIGHT + i] = weight
        w[Q2 + i], w[QU2 + i] = physics.transfers(k1, k3, p, s, m2)


@kernel
def roots_chunk(count, m2, grid, area, branch, through_k3, w):
    """k1, k3, s, t and the weight through one root of the paper's delta function.

    The weight is 0 where k3 is outside of the box.
    """
    cells, h = grid
    for i in range(count):
        p = (w[PX + i], w[PY + i], w[PZ + i])
        free = (w[U2 + i], w[U3 + i], w[U4 + i])
        k1, k3, s, t, weight = physics.root_event(
            p, free, w[U0 + i], w[U1 + i], m2, branch, through_k3
        )
        w[KX + i], w[KY + i], w[KZ + i] = k3
        w[K1X + i], w[K1Y + i], w[K1Z + i] = k1
        w[S + i] = s
        w[T + i] = t
        w[WEIGHT + i] = area * weight if physics.nearest_node(k3, cells, h) >= 0.0 else 0.0
        w[Q2 + i], w[QU2 + i] = physics.transfers(k1, k3, p, s, m2)


@kernel
def inspect_elements(count, clamps, w, found):
    """Add up flaws and legal matrix elements of a chunk; found: both sums, and the worst so far.

    The worst one is told by its flaw, its value, and its s and t.
    """
    for i in range(count):
        if w[WEIGHT + i] > 0.0:
            flaw = physics.element_flaw(w[M2 + i], clamps)
            found[0] += flaw
            if flaw == 0.0:
                found[1] += max(w[M2 + i], 0.0)
            elif flaw > found[2]:
                found[2] = flaw
                found[3] = w[M2 + i]
                found[4] = w[S + i]
                found[5] = w[T + i]


@kernel
def bracket_chunk(count, m2, grid, factor, w):
    """The two nodes for every k1 whose pairs bracket its energy, the split, and the weight."""
    cells, h = grid
    for i in range(count):
        position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
        total = (w[TX + i], w[TY + i], w[TZ + i])
        e = w[E + i]
        low, e_low, high, e_high = physics.bracket(position, total, e, m2, cells, h)
        w[LOW + i] = low
        w[HIGH + i] = high
        w[E_HIGH + i] = e_high
        w[RATIO + i] = physics.energy_split(e, e_low, e_high)
        w[WEIGHT + i] *= factor * w[M2 + i] * w[INVERSE_Q + i]


@kernel
def land_lower(i, m2, grid, w):
    """A node whose pair lies below the energy shell, for an event that has none nearby.

    Sets its row LOW and the split; leaves LOW = -1 if there is none.
    """
    cells, h = grid
    position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
    total = (w[TX + i], w[TY + i], w[TZ + i])
    w[LOW + i], e_low = physics.walk_down(position, total, w[E + i], m2, cells, h)
    w[RATIO + i] = physics.energy_split(w[E + i], e_low, w[E_HIGH + i])


@kernel
def land_conserving(count, m2, grid, offsets, occupancy, w, nodes, legs, weights, ratios):
    """Turn drawn pairs into events on six cells; returns (events, all, lost, negative weight).

    Pairs without a bracket are lost: they move nothing, and their share of f_c f_d says how many
    physical collisions that costs. Likewise those with |M|^2 < 0.
    """
    off_k1, off_k2, off_k3, off_p = offsets
    events = 0
    everything = 0.0
    lost = 0.0
    negative = 0.0
    for i in range(count):
        weight = w[WEIGHT + i]
        if not (weight > 0.0 or weight < 0.0):  # NaN: undefined where there is no event
            continue
        p = nodes[i]
        k3 = nodes[CHUNK + i]
        physical = weight * occupancy[off_p + p] * occupancy[off_k3 + k3]
        if weight < 0.0:
            negative -= physical
            continue
        everything += physical
        if w[HIGH + i] >= 0.0 and w[LOW + i] < 0.0:
            land_lower(i, m2, grid, w)
        if w[HIGH + i] < 0.0 or w[LOW + i] < 0.0:
            lost += physical
            continue
        low = np.int64(w[LOW + i])
        high = np.int64(w[HIGH + i])
        legs[events, 0] = off_p + p
        legs[events, 1] = off_k3 + k3
        legs[events, 2] = off_k1 + low
        legs[events, 3] = off_k2 + p + k3 - low
        legs[events, 4] = off_k1 + high
        legs[events, 5] = off_k2 + p + k3 - high
        weights[events] = weight
        ratios[events] = w[RATIO + i]
        events += 1
    return events, everything, lost, negative


@kernel
def land_nearest(count, grid, factor, offsets, occupancy, w, nodes, legs, weights, ratios):
    """As land_conserving, but every leg goes to the cell that holds it: the paper's way."""
    off_k1, off_k2, off_k3, off_p = offsets
    cells, h = grid
    events = 0
    everything = 0.0
    lost = 0.0
    negative = 0.0
    for i in range(count):
        weight = factor * w[WEIGHT + i] * w[M2 + i] * w[INVERSE_Q + i]
        if not (weight > 0.0 or weight < 0.0):  # NaN: undefined where there is no event
            continue
        p = nodes[i]
        k1 = (w[K1X + i], w[K1Y + i], w[K1Z + i])
        k2 = (
            w[PX + i] + w[KX + i] - k1[0],
            w[PY + i] + w[KY + i] - k1[1],
            w[PZ + i] + w[KZ + i] - k1[2],
        )
        cell_1 = np.int64(physics.nearest_node(k1, cells, h))
        cell_2 = np.int64(physics.nearest_node(k2, cells, h))
        k3 = np.int64(physics.nearest_node((w[KX + i], w[KY + i], w[KZ + i]), cells, h))
        if k3 < 0:
            continue
        physical = weight * occupancy[off_p + p] * occupancy[off_k3 + k3]
        if weight < 0.0:
            negative -= physical
            continue
        everything += physical
        if cell_1 < 0 or cell_2 < 0:
            lost += physical
            continue
        legs[events, 0] = off_p + p
        legs[events, 1] = off_k3 + k3
        legs[events, 2] = off_k1 + cell_1
        legs[events, 3] = off_k2 + cell_2
        legs[events, 4] = off_k1 + cell_1
        legs[events, 5] = off_k2 + cell_2
        weights[events] = weight
        ratios[events] = 0.0
        events += 1
    return events, everything, lost, negative


@kernel
def fill_logarithms(number, unit, degeneracy, eta, table, occupancy):
    """ln(f/F) and ln F of one species' nodes, and f, from the number N f in fixed point."""
    scale = unit / degeneracy
    for i in range(number.size):
        f = number[i] * scale
        occupancy[i] = f
        table[i, 0], table[i, 1] = physics.logarithms(f, eta)


@kernel
def amounts(count, legs, weights, ratios, table, w):
    """Net and forward flow of every event; returns the sums of forward, backward and |net|."""
    for i in range(count):
        p = legs[i, 0]
        k3 = legs[i, 1]
        l0 = legs[i, 2]
        m0 = legs[i, 3]
        l1 = legs[i, 4]
        m1 = legs[i, 5]
        r = ratios[i]
        low = table[l0, 0] + table[m0, 0]
        high = table[l1, 0] + table[m1, 0]
        full_low = table[l0, 1] + table[m0, 1]
        full_high = table[l1, 1] + table[m1, 1]
        w[X + i], w[Y + i] = physics.exponents(
            low, high, table[p, 0] + table[k3, 0],
            full_low, full_high, table[p, 1] + table[k3, 1], r,
        )  # fmt: skip
    for i in range(count):
        net, forward = physics.flow(w[X + i], w[Y + i])
        w[NET + i] = net
        w[FORWARD + i] = forward
    forward_sum = 0.0
    net_sum = 0.0
    moved = 0.0
    for i in range(count):
        w[NET + i] *= weights[i]
        net_sum += w[NET + i]
        moved += abs(w[NET + i])
        forward_sum += w[FORWARD + i] * weights[i]
    return forward_sum, max(forward_sum - net_sum, 0.0), moved  # not below 0 by rounding


@kernel
def deposit(count, scale, legs, ratios, w, total):
    """Move whole amounts: in at p and k3, out at the low and the high pair."""
    for i in range(count):
        amount = physics.nearest_integer(scale * w[NET + i])
        if amount == 0.0:
            continue
        whole = np.int64(amount)
        low, high = physics.shares(whole, ratios[i])
        total[legs[i, 0]] += whole
        total[legs[i, 1]] += whole
        total[legs[i, 2]] -= low
        total[legs[i, 3]] -= low
        total[legs[i, 4]] -= high
        total[legs[i, 5]] -= high


@kernel
def deposit_p(count, scale, legs, w, total):
    """Without symmetrical sampling: a sample counts for the leg p alone."""
    for i in range(count):
        total[legs[i, 0]] += np.int64(physics.nearest_integer(scale * w[NET + i]))


@kernel
def deposit_gross(count, scale, legs, ratios, weights, only_p, w, gain, loss):
    """What comes in and what goes out, apart: e^x into the nodes, e^y out of them."""
    for i in range(count):
        flow_in = w[FORWARD + i] * weights[i]
        forward = np.int64(physics.nearest_integer(scale * flow_in))
        backward = np.int64(physics.nearest_integer(scale * max(flow_in - w[NET + i], 0.0)))
        gain[legs[i, 0]] += forward
        loss[legs[i, 0]] += backward
        if only_p:
            continue
        gain[legs[i, 1]] += forward
        loss[legs[i, 1]] += backward
        low, high = physics.shares(forward, ratios[i])
        loss[legs[i, 2]] += low
        loss[legs[i, 3]] += low
        loss[legs[i, 4]] += high
        loss[legs[i, 5]] += high
        low, high = physics.shares(backward, ratios[i])
        gain[legs[i, 2]] += low
        gain[legs[i, 3]] += low
        gain[legs[i, 4]] += high
        gain[legs[i, 5]] += high


@kernel
def demands(count, scale, legs, ratios, w, loss, gain):
    """What all events together want to take from, and to put into, every cell (rounded up)."""
    for i in range(count):
        amount = scale * w[NET + i]
        into, out = (gain, loss) if amount > 0.0 else (loss, gain)
        whole, low, high = physics.demand(amount, ratios[i])
        into[legs[i, 0]] += whole
        into[legs[i, 1]] += whole
        out[legs[i, 2]] += low
        out[legs[i, 3]] += low
        out[legs[i, 4]] += high
        out[legs[i, 5]] += high


@kernel
def limits(number, loss, gain, capacity, fermion, allowance, low, high):
    """Bounds of what cells lose and, for fermions, of what they gain."""
    for i in range(number.size):
        low[i] = physics.bound(number[i], loss[i], allowance)
        high[i] = 1.0
        if fermion[i]:
            high[i] = physics.bound(capacity[i] - number[i], gain[i], allowance)


@kernel
def limit(count, legs, ratios, loss_scale, gain_scale, w):
    """Scale whole events by the tightest bound of their legs; returns what that refused."""
    refused = 0.0
    for i in range(count):
        net = w[NET + i]
        if net == 0.0:
            continue
        into, out = (gain_scale, loss_scale) if net > 0.0 else (loss_scale, gain_scale)
        s = physics.tightest(
            into[legs[i, 0]], into[legs[i, 1]], out[legs[i, 2]], out[legs[i, 3]],
            out[legs[i, 4]], out[legs[i, 5]], ratios[i],
        )  # fmt: skip
        refused += abs(net) * (1.0 - s)
        w[NET + i] = s * net
    return refused


# --- several chunks in one call: threads meet only between calls --------------------------------

_F, _I = types.float64, types.int64
ELEMENT = types.void(_I, types.UniTuple(_F, 4), types.UniTuple(_F, 3), _F[::1], _F[::1])
"""A compiled matrix element: count, squared masses, ``Elements.screening``, parameters, scratch."""
_TABLE = types.Tuple((_I[::1], _I[::1], _I[::1]))
_EVENTS = types.Tuple((types.int32[:, ::1], _F[::1], _F[::1]))


@partial(
    kernel,
    signature=_I(
        types.FunctionType(ELEMENT),
        types.UniTuple(_I, 4),
        types.UniTuple(_I, 4),
        types.UniTuple(_TABLE, 2),
        types.UniTuple(types.UniTuple(_F, 3), 2),
        types.UniTuple(_F, 4),
        types.Tuple((types.UniTuple(_F, 4), types.UniTuple(_F, 3), _F[::1])),
        types.UniTuple(_F, 6),
        types.UniTuple(_I, 4),
        _F[::1],
        types.Tuple((_F[::1], types.uint64[::1], _I[::1])),
        _EVENTS,
        types.Tuple((_I[::1], _F[:, ::1], _F[::1])),
    ),
)
def draw_group(
    evaluate, span, who, tables, grid, m2, element, how, offsets, occupancy, scratch, events, found
):
    """Draw and land the samples of a group of chunks, through the centre-of-mass frame.

    span: first sample, how many, samples of the set, number of the set; who: channel, step, seed,
    site; element: squared masses as the matrix element names them, its screening, parameters; how:
    peak, span of the angle, 1/E at rest, factor of all weights, nearest cells or not, whether
    |M|^2 < 0 counts as 0. found: events of each chunk, their weights (all, lost, |M|^2 < 0), and
    where a matrix element is illegal (value, s, t): then the result is -1, else 0.
    """
    first, total, samples, which = span
    channel, step, seed, site = who
    element_m2, screening, parameters = element
    peak, angle_span, at_rest, factor, nearest, clamps = how
    w, words, nodes = scratch
    legs, weights, ratios = events
    counts, sums, fault = found
    for chunk in range((total + CHUNK - 1) // CHUNK):
        done = chunk * CHUNK
        count = min(CHUNK, total - done)
        draw_words(which * samples + first + done, count, channel, step, site, seed, words)
        draw_pairs(first + done, count, samples, words, tables[0], tables[1], grid, w, nodes)
        scatter_chunk(count, m2, (screening[0], peak, angle_span), at_rest, w)
        evaluate(count, element_m2, screening, parameters, w)
        fault[:] = 0.0
        inspect_elements(count, clamps, w, fault)
        if physics.illegal(fault[0], fault[1]):
            return -1
        part = slice(done, done + CHUNK)
        if nearest > 0.0:
            counts[chunk], sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = land_nearest(
                count, grid, factor, offsets, occupancy, w, nodes,
                legs[part], weights[part], ratios[part],
            )  # fmt: skip
        else:
            bracket_chunk(count, (m2[0], m2[1]), grid, factor, w)
            counts[chunk], sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = land_conserving(
                count, (m2[0], m2[1]), grid, offsets, occupancy, w, nodes,
                legs[part], weights[part], ratios[part],
            )  # fmt: skip
    return 0


@kernel
def apply_group(counts, capacity, events, table, scale, limits, only_p, w, total, sums):
    """Net flows of a group of chunks, limited if limits are given, added to the cells."""
    legs, weights, ratios = events
    loss_scale, gain_scale = limits
    for chunk in range(counts.size):
        part = slice(chunk * capacity, chunk * capacity + counts[chunk])
        n = counts[chunk]
        sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = amounts(
            n, legs[part], weights[part], ratios[part], table, w
        )
        if loss_scale.size > 0:
            sums[chunk, 3] = limit(n, legs[part], ratios[part], loss_scale, gain_scale, w)
        if only_p:
            deposit_p(n, scale, legs[part], w, total)
        else:
            deposit(n, scale, legs[part], ratios[part], w, total)
