"""Kernels that draw and land events on the CPU: loops over a chunk, and over groups of chunks.

A chunk is stored in one flat scratch array with a row for each quantity. Rows are a fixed distance
apart, so the compiler sees that they do not overlap and vectorises over events; operations that
cannot be vectorised (table look-ups, additions into cells) have separate loops.
"""

from functools import partial

import numpy as np
from numba import types

from ...events.collisions import MORE_WORDS
from ...events.drawing import WORDS
from ...events.projection import FAR
from ...util.jit import kernel
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

THROUGH = {"cm": 0.0, "k2": 1.0, "k3": 2.0}
"""Treatments of the delta function: the centre-of-mass frame, or the paper's two root formulas."""
PACKED_BITS = 30
BITS = np.uint64(32)


@kernel
def bucket_shift(buckets):
    """Return the number of bits by which a random word is shifted to give its bucket."""
    shift = 32
    while buckets > 1:
        buckets >>= 1
        shift -= 1
    return shift


@kernel
def sampling_table(f, inverse_e, packed, cumulative, record, guide):
    """Fill tables for drawing nodes from random 32-bit words with weights from f and 1/E, exactly.

    ``cumulative`` holds the first word of every node, ``guide`` the node of every bucket's first
    word: from there the search is short. ``record`` holds the packed indices and the probability
    of every node. An f without entries draws all nodes with equal probability.
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


@partial(kernel, inlined=True)
def draw_words(first, count, channel, step, site, seed, words):
    """Generate four random words for each of the samples first, first + 1, ..."""
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)
    c1, c2, c3 = np.uint64(channel), np.uint64(step), np.uint64(site)
    for i in range(count):
        words[i], words[CHUNK + i], words[2 * CHUNK + i], words[3 * CHUNK + i] = physics.philox(
            np.uint64(first + i), c1, c2, c3, k0, k1
        )


@partial(kernel, inlined=True)
def draw_pairs(first, count, samples, words, table_p, table_k, grid, w, nodes):
    """Draw nodes p (stratified over the samples of a set) and k3 (independent), and 1/(q q).

    Sample j of N is at (j + v)/N of the cumulative weight of p, where v is its first random word.
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
        nodes[i], nodes[CHUNK + i] = p, k
        nodes[2 * CHUNK + i], nodes[3 * CHUNK + i] = record_p[p], record_k[k]
    for i in range(count):
        a, b = nodes[2 * CHUNK + i], nodes[3 * CHUNK + i]
        w[INVERSE_Q + i] = 18446744073709551616.0 / (
            float(a >> PACKED_BITS) * float(b >> PACKED_BITS)
        )
        at_p, at_k = physics.unpacked(a), physics.unpacked(b)
        w[PX + i], w[PY + i], w[PZ + i] = physics.momentum_of(at_p, cells, h)
        w[KX + i], w[KY + i], w[KZ + i] = physics.momentum_of(at_k, cells, h)
        w[TX + i], w[TY + i], w[TZ + i] = physics.plus(at_p, at_k)
        w[U0 + i] = physics.uniform(words[2 * CHUNK + i])
        w[U1 + i] = physics.uniform(words[3 * CHUNK + i])


@partial(kernel, inlined=True)
def draw_box(count, words, more, grid, nodes, w):
    """Draw k1x, k1y and a whole momentum uniformly in the momentum box for the paper's samplings.

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


@partial(kernel, inlined=True)
def scatter_chunk(count, m2, angle, inner, w):
    """Compute k1, s, t and the weight of every drawn pair in the centre-of-mass frame."""
    for i in range(count):
        p, k3 = (w[PX + i], w[PY + i], w[PZ + i]), (w[KX + i], w[KY + i], w[KZ + i])
        k1, w[E + i], s, w[T + i], w[WEIGHT + i] = physics.scatter(
            p, k3, m2, (w[U0 + i], w[U1 + i]), angle, inner
        )
        w[K1X + i], w[K1Y + i], w[K1Z + i] = k1
        w[S + i] = s
        w[Q2 + i], w[QU2 + i] = physics.transfers(k1, k3, p, s, m2)


@partial(kernel, inlined=True)
def roots_chunk(count, m2, grid, area, branch, through_k3, w):
    """Compute k1, k3, s, t and the weight for one root of the paper's delta function.

    The weight is 0 if k3 is outside the momentum box.
    """
    cells, h = grid
    for i in range(count):
        p = (w[PX + i], w[PY + i], w[PZ + i])
        free = (w[U2 + i], w[U3 + i], w[U4 + i])
        k1, k3, s, w[T + i], weight = physics.root_event(
            p, free, w[U0 + i], w[U1 + i], m2, branch, through_k3
        )
        w[KX + i], w[KY + i], w[KZ + i] = k3
        w[K1X + i], w[K1Y + i], w[K1Z + i] = k1
        w[S + i] = s
        w[WEIGHT + i] = area * weight if physics.nearest_node(k3, cells, h) >= 0.0 else 0.0
        w[Q2 + i], w[QU2 + i] = physics.transfers(k1, k3, p, s, m2)


@partial(kernel, inlined=True)
def inspect_elements(count, clamps, w, found):
    """Sum flaws and legal matrix elements of a chunk; found: both sums, and the worst case so far.

    The worst case is stored as its flaw, its value, and its s and t.
    """
    for i in range(count):
        if w[WEIGHT + i] > 0.0:
            flaw = physics.element_flaw(w[M2 + i], clamps)
            found[0] += flaw
            if flaw == 0.0:
                found[1] += max(w[M2 + i], 0.0)
            elif flaw > found[2]:
                found[2], found[3], found[4], found[5] = flaw, w[M2 + i], w[S + i], w[T + i]


@partial(kernel, inlined=True)
def bracket_chunk(count, m2, grid, factor, w):
    """Find the two nodes for every k1 whose pairs bracket its energy, the split, and the weight."""
    cells, h = grid
    for i in range(count):
        position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
        total = (w[TX + i], w[TY + i], w[TZ + i])
        w[LOW + i], e_low, w[HIGH + i], w[E_HIGH + i] = physics.bracket(
            position, total, w[E + i], m2, cells, h
        )
        w[RATIO + i] = physics.share_of_high_pair(w[E + i], e_low, w[E_HIGH + i])
        w[WEIGHT + i] *= factor * w[M2 + i] * w[INVERSE_Q + i]


@partial(kernel, inlined=True)
def land_lower(i, m2, grid, w):
    """Find a node whose pair lies below the energy shell, for an event without one nearby.

    Sets row LOW of the event and the split; leaves LOW = -1 if no such node exists.
    """
    cells, h = grid
    position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
    total = (w[TX + i], w[TY + i], w[TZ + i])
    w[LOW + i], e_low = physics.walk_down(position, total, w[E + i], m2, cells, h)
    w[RATIO + i] = physics.share_of_high_pair(w[E + i], e_low, w[E_HIGH + i])


@kernel
def fill_levels(table, levels):
    """Fill ``level_of`` of every f; return the largest ln f. table : ln(f/F) and ln F"""
    largest = table[0, 0] + table[0, 1]
    for i in range(levels.size):
        ln_f = table[i, 0] + table[i, 1]
        levels[i] = physics.level_of(ln_f)
        largest = max(largest, ln_f)
    return largest


@partial(kernel, inlined=True)
def ln_pair(table, first, second):
    """Return ln(f f) of two cells."""
    return table[first, 0] + table[second, 0] + (table[first, 1] + table[second, 1])


@kernel
def land_across_front(i, m2, grid, offsets, table, largest, p, k3, w):
    """Land an event beyond a front of f on the two closest occupied pairs, if both exist.

    largest : ln(f f) of the two species at the maxima of their f
    """
    cells, h = grid
    off_k1, off_k2, off_k3, off_p = offsets
    low, high, both = np.int64(w[LOW + i]), np.int64(w[HIGH + i]), p + k3
    own = ln_pair(table, off_p + p, off_k3 + k3)
    below = ln_pair(table, off_k1 + low, off_k2 + both - low)
    above = ln_pair(table, off_k1 + high, off_k2 + both - high)
    if not physics.at_front(below, above, own, largest):
        return
    position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
    total = (w[TX + i], w[TY + i], w[TZ + i])
    best = (-1.0, 0.0, FAR, -1.0, 0.0, FAR)
    for corner in range(8):
        node, pair, distance = physics.corner_pair(corner, position, total, m2, cells, h)
        if distance < FAR:
            k1 = np.int64(node)
            held = ln_pair(table, off_k1 + k1, off_k2 + both - k1)
            far = physics.detour(distance, held, own, max(below, above), h)
            best = physics.closer(node, pair, far, w[E + i], best)
    if best[0] >= 0.0 and best[3] >= 0.0:
        w[LOW + i], w[HIGH + i] = best[0], best[3]
        w[RATIO + i] = physics.share_of_high_pair(w[E + i], best[1], best[4])


@partial(kernel, inlined=True)
def nearest_chunk(count, grid, factor, w, nodes):
    """Find the cells that contain k1, k2 and k3 of every pair, as in the paper, and the weight.

    k1 and k2 use the rows of the low and of the high node.
    """
    cells, h = grid
    for i in range(count):
        k1, k3 = (w[K1X + i], w[K1Y + i], w[K1Z + i]), (w[KX + i], w[KY + i], w[KZ + i])
        k2 = physics.minus(physics.plus((w[PX + i], w[PY + i], w[PZ + i]), k3), k1)
        w[LOW + i] = physics.nearest_node(k1, cells, h)
        w[HIGH + i] = physics.nearest_node(k2, cells, h)
        w[RATIO + i] = 0.0
        w[WEIGHT + i] = factor * w[WEIGHT + i] * w[M2 + i] * w[INVERSE_Q + i]
        nodes[CHUNK + i] = np.int64(physics.nearest_node(k3, cells, h))


@partial(kernel, inlined=True)
def compensate(i, m2, spacing2, w):
    """Return ``compensation`` for an event of the scratch array."""
    k1, k3 = (w[K1X + i], w[K1Y + i], w[K1Z + i]), (w[KX + i], w[KY + i], w[KZ + i])
    p = (w[PX + i], w[PY + i], w[PZ + i])
    return physics.compensation(k1, k3, p, m2, w[S + i], spacing2)


@partial(kernel, inlined=True)
def event_exponents(legs, table, ratio):
    """Return ``exponents`` for an event on six cells."""
    p, k3, l0, m0, l1, m1 = legs[0], legs[1], legs[2], legs[3], legs[4], legs[5]
    return physics.exponents(
        table[l0, 0] + table[m0, 0], table[l1, 0] + table[m1, 0], table[p, 0] + table[k3, 0],
        table[l0, 1] + table[m0, 1], table[l1, 1] + table[m1, 1], table[p, 1] + table[k3, 1], ratio,
    )  # fmt: skip


@partial(kernel, inlined=True)
def land(count, conserving, m2, grid, spacing2, offsets, state, w, nodes, events, sums):
    """Turn drawn pairs into events on six cells; return the number of events.

    If ``conserving``, the low and the high node of k1 each have their own partner k2; otherwise the
    cells of k1 and k2 are one pair, used as the low pair. Pairs for which a product leaves the grid
    are lost: they move nothing, and their share of f_c f_d measures the physical collisions lost.
    Pairs with |M|^2 < 0 are treated in the same way. state : f of all cells, ``fill_levels`` of f,
    ln(f/F) and ln F, and ln(f f) of the species of k1 and k2 at the maxima of their f; spacing2 :
    see ``compensation``; sums : incremented by the weights of all physical collisions, of the lost
    ones and of those with |M|^2 < 0, and by the forward and net flow added by compensation
    """
    occupancy, levels, table, largest = state
    off_k1, off_k2, off_k3, off_p = offsets
    legs, weights, ratios = events
    landed, pair = 0, (m2[0], m2[1])
    everything, lost = 0.0, 0.0
    for i in range(count):
        weight = w[WEIGHT + i]
        if not (weight > 0.0 or weight < 0.0):  # NaN: undefined without an event
            continue
        p, k3 = nodes[i], nodes[CHUNK + i]
        physical = weight * occupancy[off_p + p] * occupancy[off_k3 + k3]
        if weight < 0.0:
            sums[2] -= physical
            continue
        everything += physical
        if conserving and w[HIGH + i] >= 0.0 and w[LOW + i] < 0.0:
            land_lower(i, pair, grid, w)
        if w[HIGH + i] < 0.0 or w[LOW + i] < 0.0:
            lost += physical
            continue
        if conserving:
            low, high, both = np.int64(w[LOW + i]), np.int64(w[HIGH + i]), p + k3
            below = np.int64(levels[off_k1 + low]) + np.int64(levels[off_k2 + both - low])
            above = np.int64(levels[off_k1 + high]) + np.int64(levels[off_k2 + both - high])
            if physics.far_apart(below, above, largest):
                own = np.int64(levels[off_p + p]) + np.int64(levels[off_k3 + k3])
                if physics.may_be_front(below, above, own):
                    land_across_front(i, pair, grid, offsets, table, largest, p, k3, w)
        low, high = np.int64(w[LOW + i]), np.int64(w[HIGH + i])
        legs[landed, 0] = off_p + p
        legs[landed, 1] = off_k3 + k3
        legs[landed, 2] = off_k1 + low
        legs[landed, 3] = off_k2 + (p + k3 - low if conserving else high)
        legs[landed, 4] = off_k1 + (high if conserving else low)
        legs[landed, 5] = off_k2 + (p + k3 - high if conserving else high)
        factor = compensate(i, m2, spacing2, w) if spacing2 > 0.0 else 1.0
        if factor > 1.0:
            net, forward = physics.flow(*event_exponents(legs[landed], table, w[RATIO + i]))
            sums[3] += (factor - 1.0) * weight * forward
            sums[4] += (factor - 1.0) * weight * net
        weights[landed] = factor * weight
        ratios[landed] = w[RATIO + i]
        landed += 1
    sums[0] += everything
    sums[1] += lost
    return landed


# --- several chunks in one call: threads synchronize only between calls -------------------------

_F, _I = types.float64, types.int64
ELEMENT = types.void(_I, types.UniTuple(_F, 4), types.UniTuple(_F, 3), _F[::1], _F[::1])
"""A compiled matrix element: count, squared masses, ``Elements.screening``, parameters, scratch."""
_WORDS = types.uint64[::1]
_TABLE = types.Tuple((_I[::1], _I[::1], _I[::1]))
_EVENTS = types.Tuple((types.int32[:, ::1], _F[::1], _F[::1]))


SIGNATURE = _I(
    types.FunctionType(ELEMENT), types.UniTuple(_I, 4), types.UniTuple(_I, 4),
    types.UniTuple(_TABLE, 2), types.UniTuple(types.UniTuple(_F, 3), 2), types.UniTuple(_F, 4),
    types.Tuple((types.UniTuple(_F, 4), types.UniTuple(_F, 3), _F[::1])), types.UniTuple(_F, 8),
    types.UniTuple(_F, 3), types.UniTuple(_I, 4),
    types.Tuple((_F[::1], types.int16[::1], _F[:, ::1], _F)),
    types.Tuple((_F[::1], _WORDS, _WORDS, _I[::1])), _EVENTS,
    types.Tuple((_I[::1], _F[:, ::1], _F[::1])),
)  # fmt: skip


@partial(kernel, signature=SIGNATURE)
def draw_group(
    evaluate, span, who, tables, grid, m2, element, how, inner, offsets, state, scratch, events,
    found,
):  # fmt: skip
    """Draw and land the samples of a group of chunks.

    span: first sample, sample count, samples of the set, number of the set; who: channel, step,
    seed, site; element: squared masses in the order of the matrix element, its screening,
    parameters; how: peak, span of the angle, squared spacing (``compensation``), factor of all
    weights, nearest cells or not, whether |M|^2 < 0 counts as 0, the treatment of the delta
    function (``THROUGH``), transverse area of the momentum box; inner: see ``scatter``; found:
    events of each chunk, their weights as summed by ``land``, and the location of an illegal matrix
    element (value, s, t). Returns -1 if a matrix element is illegal, else 0.
    """

    first, total, samples, which = span
    channel, step, seed, site = who
    element_m2, screening, parameters = element
    peak, angle_span, spacing2, factor, nearest, clamps, through, area = how
    w, words, more, nodes = scratch
    legs, weights, ratios = events
    counts, sums, fault = found
    pair, roots = (m2[0], m2[1]), 2 if through > 0.0 else 1
    spacing2 = 0.0 if physics.heavy(m2, spacing2) else spacing2
    for chunk in range((total + CHUNK - 1) // CHUNK):
        done = chunk * CHUNK
        count, sample = min(CHUNK, total - done), which * samples + first + done
        draw_words(sample, count, channel, step, site, seed, words)
        draw_pairs(first + done, count, samples, words, tables[0], tables[1], grid, w, nodes)
        if roots == 2:
            draw_words(sample, count, channel | MORE_WORDS, step, site, seed, more)
            draw_box(count, words, more, grid, nodes, w)
        counts[chunk], sums[chunk], fault[:] = 0, 0.0, 0.0
        for branch in range(roots):
            if roots == 2:
                roots_chunk(count, m2, grid, area, 1.0 - 2.0 * branch, through == 2.0, w)
            else:
                scatter_chunk(count, m2, (screening[0], peak, angle_span), inner, w)
            evaluate(count, element_m2, screening, parameters, w)
            inspect_elements(count, clamps, w, fault)
            if nearest > 0.0:
                nearest_chunk(count, grid, factor, w, nodes)
            else:
                bracket_chunk(count, pair, grid, factor, w)
            part = slice(roots * done + counts[chunk], roots * (done + CHUNK))
            counts[chunk] += land(
                count, nearest == 0.0, m2, grid, spacing2, offsets, state, w, nodes,
                (legs[part], weights[part], ratios[part]), sums[chunk],
            )  # fmt: skip
        if physics.illegal(fault[0], fault[1]):
            return -1
    return 0
