"""Kernels of the CUDA backend: a step is a short sequence of them, all state stays on the GPU.

    prepare    ln(f/F) and ln F of every cell; importance of every node, summed within tiles
    cumulate   sampling tables from these sums
    draw       events: drawn, landed, kept, and applied for the first stage (generated source)
    middle     the same logarithms after the first stage
    apply      the kept events for the second stage
    update     the new state beside the old one, and how far they are apart
    conclude   masses of the new state; it replaces the old one, or the step is done again

``control`` (whole numbers) and ``scalars`` hold everything that is decided on the way, so the
host launches steps without looking. A status other than GO turns all kernels into no-ops.
Sums of floating-point numbers are taken in a fixed order; cells are added up in whole numbers.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import float64, int64

from .. import collisions, control, elementary, masses
from ..compiling import build
from ..philox import HALF, M0, M1, W0, W1
from .cuda_engine import SIMULATED, adder, device_function, instruction, kernel, toolkit
from .physics import FUNCTIONS

cuda = toolkit()

THREADS = 8 if SIMULATED else 256
"""Threads of a block, and cells of a tile."""
WIDE = 2 if SIMULATED else 1024
"""Threads of the one block that concludes a step."""
EACH = 8
"""Consecutive samples of a thread: they mostly share p, which is added up before it is moved."""
LANES = 2 if SIMULATED else 32
"""Threads that share a sum over tiles at the end of a step."""
SPAN = EACH * THREADS
"""Samples of a block."""

# --- control: whole numbers ---------------------------------------------------------------------

(STATUS, STEP, CURRENT, CHANGE, PHASE, PAST, ACCEPTED, REJECTED, WANT_RATES, ILLEGAL, MOVED,
 DIFFERENCE, TOTAL, CLAMPED, FAULT, HAVE_RATE, MANUAL, SYMMETRICAL, THERMAL, AUTOMATIC, SINGLE,
 SEED, IMPORTANCE, NODES, CELLS_X, CELLS_Y) = range(26)  # fmt: skip
CONTROLS = 32
GO, ARRIVED, LIMIT, FAULTY, NOT_FINITE, NO_MASSES = range(6)
TRIAL, REAL = 0, 1

# --- scalars: floating-point numbers, then rows of squared masses and the screening mass --------

(TIME, STOP, NEAR, LENGTH, WANTED, TOLERANCE, UNIT, LAST_LENGTH, NULL, LIMITED, ERROR, RATIO,
 NOISE, SCATTER, SIZE, NULL_MAX, LIMITED_SUM, LIMITED_MAX, P2_MIN, AT_REST, SCALE, SCREENING,
 PAST_1, PAST_2, CELL, EKT, RATES_NULL,
 START_LENGTH) = range(28)  # fmt: skip
ROWS = 32
"""Where the rows begin: used in this step, of the state, before the last step, before that,
after the very first step."""
USED, NOW, BEFORE, FIRST, START = range(5)

# --- channels -----------------------------------------------------------------------------------

(K1, K2, K3, P, ONLY_P, ELEMENT, SAMPLES, LEG_A, LEG_B, LEG_C, LEG_D, FIRST_BLOCK,
 LAST_BLOCK) = range(13)  # fmt: skip
PEAK, ANGLE_SPAN, FACTOR, OWN = range(4)
"""Floating-point numbers of a channel; the parameters of its matrix element follow at OWN."""

EVERYTHING, LOST, FORWARD, NET, MOVES, POSITIVE, NEGATIVE, BELOW = range(8)
"""What a block sums up while drawing; applying leaves the first two out, refused in NEGATIVE."""
SUMS = 8
SHARED_SUMS = SUMS * THREADS
NEAR_BY = 512
"""Numbers of the mass equations that fit into shared memory: up to 18 species."""
LARGEST_SUM = 2.0**59
"""Quanta that all events together may move: sums over cells then fit 64 bits."""


# --- physics ------------------------------------------------------------------------------------

if SIMULATED:
    physics = build(FUNCTIONS, lambda function: function)
    flow_single = physics.flow
    control_functions = build(
        [control.step_length, control.adapted, control.mean_ahead], lambda function: function
    )
    eliminate = masses.eliminate
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

    def philox_round(c0, c1, c2, c3, k0, k1):
        """One round in words of 32 bits."""
        p0 = M0 * np.uint64(np.uint32(c0))
        p1 = M1 * np.uint64(np.uint32(c2))
        high_0, high_1 = np.uint32(p0 >> HALF), np.uint32(p1 >> HALF)
        return (
            np.uint32(high_1 ^ np.uint32(c1) ^ np.uint32(k0)), np.uint32(p1),
            np.uint32(high_0 ^ np.uint32(c3) ^ np.uint32(k1)), np.uint32(p0),
        )  # fmt: skip

    def philox(c0, c1, c2, c3, k0, k1):
        """Ten rounds: four words of 32 random bits."""
        for _ in range(10):
            c0, c1, c2, c3 = one_round(c0, c1, c2, c3, k0, k1)
            k0 = np.uint32(k0 + W0)
            k1 = np.uint32(k1 + W1)
        return c0, c1, c2, c3

    one_round = device_function(philox_round)
    _own = {f.__name__: device_function(f) for f in (floor, reciprocal, inverse_root, root, philox)}
    _host_only = (elementary.split, elementary.expm1_reduced, elementary.exp, elementary.expm1)
    physics = build([f for f in FUNCTIONS if f not in _host_only], device_function, _own)
    flow_single = build(
        [collisions.flow],
        device_function,
        {"exp": device_function(exp), "expm1": device_function(expm1)},
    ).flow
    control_functions = build(
        [control.step_length, control.adapted, control.mean_ahead], device_function
    )
    eliminate = device_function(masses.eliminate)

WORD = np.uint64 if SIMULATED else np.uint32
"""Type of the words that Philox takes."""
flow_double = physics.flow
shares = physics.shares
exponents = physics.exponents
nearest_integer = physics.nearest_integer
logarithms = physics.logarithms
node_weight = physics.node_weight
whole_weight = physics.whole_weight
cumulated = physics.cumulated
even_word = physics.even_word
step_length = control_functions.step_length
adapted = control_functions.adapted
mean_ahead = control_functions.mean_ahead


# --- sums over a block --------------------------------------------------------------------------


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
def block_sum(shared, value):
    """Sum of one number of every thread, in a fixed order; valid in thread 0."""
    t = cuda.threadIdx.x
    shared[t] = value
    cuda.syncthreads()
    half = cuda.blockDim.x // 2
    while half > 0:
        if t < half:
            shared[t] += shared[t + half]
        cuda.syncthreads()
        half //= 2
    result = shared[0]
    cuda.syncthreads()
    return result


@piece
def block_sums(shared, row):
    """Write sums over the threads of the SUMS numbers each left in shared memory; fixed order."""
    t = cuda.threadIdx.x
    lanes = THREADS // SUMS
    which, lane = t // lanes, t % lanes
    part = 0.0
    for i in range(lane, THREADS, lanes):
        part += shared[which * THREADS + i]
    cuda.syncthreads()
    shared[t] = part
    cuda.syncthreads()
    if t < SUMS:
        part = 0.0
        for i in range(lanes):
            part += shared[t * lanes + i]
        row[t] = part


@piece
def inverse_energy(p2, m2, at_rest):
    """1/E; a massless node at rest takes its cell average."""
    e2 = p2 + m2
    return 1.0 / math.sqrt(e2) if e2 > 0.0 else at_rest


@piece
def expected(scalars, a):
    """Squared mass that the end of a step should have: a step takes the mean of now and then."""
    width = (scalars.size - ROWS) // 5
    now = scalars[ROWS + NOW * width + a]
    return max(2.0 * scalars[ROWS + USED * width + a] - now, 0.5 * now)


# --- the cells: before, between and after the stages --------------------------------------------


@kernel
def prepare(control, scalars, given, number, species, highest, p2, table, change, prefix, tiles):
    """Logarithms and importance of every cell; clears what the step will add up.

    given : f of every cell, to be used instead of the state if it has entries
    species : degeneracy, statistics of each; prefix : whole weights of the nodes before, in a tile
    """
    shared = cuda.shared.array(THREADS, int64)
    if control[STATUS] != GO:
        return
    t, tile, a = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    n = p2.size
    i = tile * THREADS + t
    whole = 0
    scale = scalars[UNIT] / species[a, 0]
    if i < n:
        cell = a * n + i
        f = given[cell] if given.size > 0 else number[control[CURRENT], cell] * scale
        table[cell, 0], table[cell, 1] = logarithms(f, species[a, 1])
        change[control[CHANGE], cell] = 0
        change[2, cell] = 0
        if control[IMPORTANCE] != 0:
            m2 = scalars[ROWS + a]
            top = highest[control[CURRENT], a] * scale
            largest = node_weight(top, top, inverse_energy(scalars[P2_MIN], m2, scalars[AT_REST]))
            weight = node_weight(f, top, inverse_energy(p2[i], m2, scalars[AT_REST]))
            whole = whole_weight(weight, largest)
    if control[IMPORTANCE] == 0:
        return
    shared[t] = whole
    cuda.syncthreads()
    reach = 1
    while reach < THREADS:  # inclusive sums of the tile
        more = shared[t - reach] if t >= reach else 0
        cuda.syncthreads()
        shared[t] += more
        cuda.syncthreads()
        reach *= 2
    if i < n:
        prefix[a, i] = shared[t] - whole
    if t == THREADS - 1:
        tiles[a, tile] = shared[t]


@kernel
def cumulate(control, prefix, tiles, shift, cumulative, guide):
    """First random word of every node, and the node of every bucket's first word."""
    shared = cuda.shared.array(THREADS, int64)
    if control[STATUS] != GO or control[IMPORTANCE] == 0:
        return
    t, tile, a = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    n = prefix.shape[1]
    before = 0
    everything = 0
    for other in range(t, tiles.shape[1], THREADS):
        everything += tiles[a, other]
        if other < tile:
            before += tiles[a, other]
    before = block_sum(shared, before)
    everything = block_sum(shared, everything)
    i = tile * THREADS + t
    if i < n:
        scale = (4294967296.0 - n) / everything
        first = cumulated(i, before + prefix[a, i], n, scale)
        here = prefix[a, i + 1] if t + 1 < THREADS and i + 1 < n else tiles[a, tile]
        last = cumulated(i + 1, before + here, n, scale)
        cumulative[a, i] = first
        if i == n - 1:
            cumulative[a, n] = last
        for bucket in range(((first - 1) >> shift) + 1, ((last - 1) >> shift) + 1):
            guide[a, bucket] = i


@kernel
def middle(control, scalars, number, species, capacity, table, change):
    """Logarithms after the first stage; says if a cell left its bounds."""
    if control[STATUS] != GO:
        return
    i, a = cuda.grid(1), cuda.blockIdx.y
    n = control[NODES]
    if i < n:
        cell = a * n + i
        new = number[control[CURRENT], cell] + 2 * change[control[CHANGE], cell]
        if new < 0 or new > capacity[a]:
            control[ILLEGAL] = 1
        f = new * (scalars[UNIT] / species[a, 0])
        table[cell, 0], table[cell, 1] = logarithms(f, species[a, 1])


@kernel
def update(control, scalars, number, species, p2, capacity, change, highest, spread):
    """The new state beside the old one; how far the stages are apart, and the last two steps.

    spread : sums of the blocks of |C - C before|, of |C| + |C before|, and of N f/E, N f/E^3,
        N f/E^5 with the masses that are expected of the new state
    """
    shared = cuda.shared.array(THREADS, int64)
    shared_floats = cuda.shared.array(THREADS, float64)
    if control[STATUS] != GO:
        return
    t, a = cuda.threadIdx.x, cuda.blockIdx.y
    i = cuda.blockIdx.x * THREADS + t
    n = control[NODES]
    current, mine = control[CURRENT], control[CHANGE]
    moved = 0
    difference = 0
    new = 0
    apart = 0.0
    size = 0.0
    first = 0.0
    third = 0.0
    fifth = 0.0
    if i < n:
        cell = a * n + i
        d1 = change[mine, cell]
        d2 = change[2, cell]
        new = number[current, cell] + d1 + d2
        if control[SYMMETRICAL] == 0:
            new = min(max(new, 0), capacity[a])
        elif new < 0 or new > capacity[a]:
            control[ILLEGAL] = 1
        number[1 - current, cell] = new
        moved = abs(d1)
        difference = abs(d2 - d1)
        if control[HAVE_RATE] != 0:
            rate = d1 * (2.0 / scalars[LENGTH])
            old = change[1 - mine, cell] * (2.0 / scalars[LAST_LENGTH])
            apart = abs(rate - old)
            size = abs(rate) + abs(old)
        if control[THERMAL] != 0:
            inverse = inverse_energy(p2[i], expected(scalars, a), scalars[AT_REST])
            first = new * inverse
            third = first * inverse * inverse
            fifth = third * inverse * inverse
    moved = block_sum(shared, moved)
    difference = block_sum(shared, difference)
    total = block_sum(shared, new)
    apart = block_sum(shared_floats, apart)
    size = block_sum(shared_floats, size)
    first = block_sum(shared_floats, first)
    third = block_sum(shared_floats, third)
    fifth = block_sum(shared_floats, fifth)
    block = a * cuda.gridDim.x + cuda.blockIdx.x
    if t == 0:
        spread[block, 0] = apart
        spread[block, 1] = size
        spread[block, 2] = first
        spread[block, 3] = third
        spread[block, 4] = fifth
        cuda.atomic.add(control, MOVED, moved)
        cuda.atomic.add(control, DIFFERENCE, difference)
        cuda.atomic.add(control, TOTAL, total)
    shared[t] = new
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            shared[t] = max(shared[t], shared[t + half])
        cuda.syncthreads()
        half //= 2
    if t == 0:
        cuda.atomic.max(highest, (1 - current, a), shared[0])


# --- events -------------------------------------------------------------------------------------


@piece
def independent(cumulative, guide, a, word, shift, even):
    """The node that a random word stands for, and its chance in units of 2^-32.

    even : number of nodes if all are drawn alike, else 0
    """
    if even > 0:
        i = (word * even) >> 32
        return i, even_word(i + 1, even) - even_word(i, even)
    a = np.uint32(a)
    i = guide[a, np.uint32(word >> shift)]
    begin, end = cumulative[a, np.uint32(i)], cumulative[a, np.uint32(i + 1)]
    while end <= word:
        i += 1
        begin, end = end, cumulative[a, np.uint32(i + 1)]
    return int64(i), end - begin


@piece
def stratified(cumulative, guide, a, sample, word, samples, shift, even):
    """The node at (sample + word 2^-32) / samples of the cumulative weight, and its chance."""
    position = (np.uint64(sample) << np.uint64(32)) | np.uint64(word)
    estimate = (float(sample) + word * 2.0**-32) * (4294967296.0 / samples)
    at = min(int64(estimate), 4294967295)
    count = np.uint64(samples)
    if even > 0:
        if np.uint64(at) * count > position:  # the estimate may be one off
            at -= 1
        elif np.uint64(at + 1) * count <= position:
            at += 1
        i = (at * even) >> 32
        return i, even_word(i + 1, even) - even_word(i, even)
    a = np.uint32(a)
    i = guide[a, np.uint32(at >> shift)]
    while np.uint64(cumulative[a, np.uint32(i + 1)]) * count <= position:
        i += 1
    while np.uint64(cumulative[a, np.uint32(i)]) * count > position:
        i -= 1
    return int64(i), cumulative[a, np.uint32(i + 1)] - cumulative[a, np.uint32(i)]


@piece
def event_flow(table, p, k3, l0, m0, l1, m1, r, single):
    """Net and forward flow of an event, per unit weight; six cells and the split."""
    x, y = exponents(
        table[l0, 0] + table[m0, 0], table[l1, 0] + table[m1, 0], table[p, 0] + table[k3, 0],
        table[l0, 1] + table[m0, 1], table[l1, 1] + table[m1, 1], table[p, 1] + table[k3, 1], r,
    )  # fmt: skip
    if single != 0:
        return flow_single(x, y)
    return flow_double(x, y)


@piece
def both_occupied(table, p, k3):
    """f_p f_k3, to single precision."""
    return math.exp(np.float32(table[p, 0] + table[p, 1] + table[k3, 0] + table[k3, 1]))


@piece
def move(change, row, k3, l0, m0, l1, m1, r, amount):
    """Whole amounts: in at k3, out at the low and the high pair; p is for the caller."""
    whole = int64(nearest_integer(amount))
    if whole != 0:
        add(change, row, k3, whole)
        low, high = shares(whole, r)
        if low != 0:
            add(change, row, l0, -low)
            add(change, row, m0, -low)
        if high != 0:
            add(change, row, l1, -high)
            add(change, row, m1, -high)
    return whole


@piece
def cells_of(nodes, j, shift, conserving):
    """The six cells of a kept event.

    Conserving: the low and the high node of k1 are kept, and k2 is the partner P - k1 of each.
    Nearest: the cells of k1 and k2 are kept, and the pair counts as the low one.
    """
    p, k3, l0, l1 = nodes[0, j], nodes[1, j], nodes[2, j], nodes[3, j]
    m0 = p + k3 - l0 + shift if conserving != 0 else l1
    m1 = p + k3 - l1 + shift if conserving != 0 else l1
    l1 = l1 if conserving != 0 else l0
    return np.uint32(p), np.uint32(k3), np.uint32(l0), np.uint32(m0), np.uint32(l1), np.uint32(m1)


@piece
def partner_shift(control, channels, channel):
    """Takes p + k3 - k1, all as cells of their species, to the cell of k2."""
    a = channels[channel, K1] + channels[channel, K2]
    return (a - channels[channel, K3] - channels[channel, P]) * control[NODES]


@kernel
def apply(
    control, scalars, channels, blocks, nodes, weights, ratios, table, change, low, high, sums,
    first_block, roots, conserving, stage,
):  # fmt: skip
    """Apply kept events to the cells; low and high: limits of losses and gains, or no entries.

    Every event is scaled as a whole by the tightest limit of its cells.
    """
    shared = cuda.shared.array(THREADS, float64)
    if control[STATUS] != GO:
        return
    t = cuda.threadIdx.x
    block = cuda.blockIdx.x + first_block
    channel = blocks[block, 0]
    shift = partner_shift(control, channels, channel)
    only_p = channels[channel, ONLY_P]
    row = control[CHANGE] if stage == 1 else 2
    scale = scalars[SCALE]
    single = control[SINGLE]
    forward = 0.0
    net = 0.0
    moves = 0.0
    refused = 0.0
    last_p = np.uint32(0)
    gathered = 0
    for i in range(EACH * roots):
        j = np.uint32((cuda.blockIdx.x * EACH * roots + i) * THREADS + t)
        weight = float64(weights[j])
        if weight > 0.0:
            r = ratios[j]
            p, k3, l0, m0, l1, m1 = cells_of(nodes, j, shift, conserving)
            flow, ahead = event_flow(table, p, k3, l0, m0, l1, m1, r, single)
            flow *= weight
            net += flow
            moves += abs(flow)
            forward += ahead * weight
            if low.size > 0 and flow != 0.0:
                into, out = (high, low) if flow > 0.0 else (low, high)
                s = min(into[p], into[k3])
                if r < 1.0:
                    s = min(s, min(out[l0], out[m0]))
                if r > 0.0:
                    s = min(s, min(out[l1], out[m1]))
                s = min(s, 1.0)
                refused += abs(flow) * (1.0 - s)
                flow *= s
            if only_p != 0:
                whole = int64(nearest_integer(scale * flow))
            else:
                whole = move(change, row, k3, l0, m0, l1, m1, r, scale * flow)
            if p != last_p:
                if gathered != 0:
                    add(change, row, last_p, gathered)
                gathered = 0
                last_p = p
            gathered += whole
    if gathered != 0:
        add(change, row, last_p, gathered)
    forward = block_sum(shared, forward)
    net = block_sum(shared, net)
    moves = block_sum(shared, moves)
    refused = block_sum(shared, refused)
    if t == 0:
        sums[block, FORWARD] = forward
        sums[block, NET] = net
        sums[block, MOVES] = moves
        sums[block, NEGATIVE] = refused


@kernel
def demands(
    control, scalars, channels, blocks, nodes, weights, ratios, table, loss, gain,
    first_block, roots, conserving, coarser,
):  # fmt: skip
    """What all events together want to take from, and to put into, every cell (rounded up)."""
    t = cuda.threadIdx.x
    block = cuda.blockIdx.x + first_block
    shift = partner_shift(control, channels, blocks[block, 0])
    scale = scalars[SCALE] / coarser
    for i in range(EACH * roots):
        j = np.uint32((cuda.blockIdx.x * EACH * roots + i) * THREADS + t)
        weight = float64(weights[j])
        if weight > 0.0:
            r = ratios[j]
            p, k3, l0, m0, l1, m1 = cells_of(nodes, j, shift, conserving)
            flow, _ = event_flow(table, p, k3, l0, m0, l1, m1, r, control[SINGLE])
            amount = scale * (flow * weight)
            into, out = (gain, loss) if amount > 0.0 else (loss, gain)
            cuda.atomic.add(into, p, int64(math.ceil(abs(amount))))
            cuda.atomic.add(into, k3, int64(math.ceil(abs(amount))))
            part = int64(math.ceil(abs(amount - r * amount)))
            cuda.atomic.add(out, l0, part)
            cuda.atomic.add(out, m0, part)
            part = int64(math.ceil(abs(r * amount)))
            cuda.atomic.add(out, l1, part)
            cuda.atomic.add(out, m1, part)


@kernel
def limits(control, number, change, species, capacity, loss, gain, low, high, stage, allowance):
    """s = min(1, f / 2D) for losses and, for fermions, min(1, (1 - f) / 2G) for gains.

    Also clears the change that is to be found again.
    """
    i, a = cuda.grid(1), cuda.blockIdx.y
    n = control[NODES]
    if i < n:
        cell = a * n + i
        held = number[control[CURRENT], cell]
        if stage == 2:
            held += 2 * change[control[CHANGE], cell]
        s = allowance * held / (2.0 * loss[cell]) if loss[cell] > 0 else 1.0
        low[cell] = min(max(s, 0.0), 1.0)
        s = 1.0
        if species[a, 1] < 0.0 and gain[cell] > 0:
            s = allowance * (capacity[a] - held) / (2.0 * gain[cell])
        high[cell] = min(max(s, 0.0), 1.0)
        change[control[CHANGE] if stage == 1 else 2, cell] = 0


@kernel
def check(control, number, capacity, change, stage):
    """Whether a stage leaves every cell within its bounds."""
    i, a = cuda.grid(1), cuda.blockIdx.y
    n = control[NODES]
    if i < n:
        cell = a * n + i
        new = number[control[CURRENT], cell] + change[control[CHANGE], cell]
        new += change[control[CHANGE], cell] if stage == 1 else change[2, cell]
        if new < 0 or new > capacity[a]:
            control[ILLEGAL] = 1


@kernel
def gross(
    control, scalars, channels, blocks, nodes, weights, ratios, table, gain, loss,
    first_block, roots, conserving,
):  # fmt: skip
    """What comes in and what goes out, apart: e^x into the nodes, e^y out of them."""
    t = cuda.threadIdx.x
    block = cuda.blockIdx.x + first_block
    channel = blocks[block, 0]
    shift = partner_shift(control, channels, channel)
    for i in range(EACH * roots):
        j = np.uint32((cuda.blockIdx.x * EACH * roots + i) * THREADS + t)
        weight = float64(weights[j])
        if weight > 0.0:
            r = ratios[j]
            p, k3, l0, m0, l1, m1 = cells_of(nodes, j, shift, conserving)
            net, ahead = event_flow(table, p, k3, l0, m0, l1, m1, r, control[SINGLE])
            ahead *= weight
            back = max(ahead - net * weight, 0.0)
            for direction in range(2):
                into, out = (gain, loss) if direction == 0 else (loss, gain)
                whole = int64(nearest_integer(scalars[SCALE] * (ahead if direction == 0 else back)))
                cuda.atomic.add(into, p, whole)
                if channels[channel, ONLY_P] == 0:
                    cuda.atomic.add(into, k3, whole)
                    less, more = shares(whole, r)
                    cuda.atomic.add(out, l0, less)
                    cuda.atomic.add(out, m0, less)
                    cuda.atomic.add(out, l1, more)
                    cuda.atomic.add(out, m1, more)


@kernel
def merge(sums, sums_2):
    """Flows of events that were drawn first and applied later."""
    block = cuda.grid(1)
    if block < sums.shape[0]:
        sums[block, FORWARD] = sums_2[block, FORWARD]
        sums[block, NET] = sums_2[block, NET]
        sums[block, MOVES] = sums_2[block, MOVES]


# --- the end of a step --------------------------------------------------------------------------


@kernel
def set_course(control, scalars, stop):
    """Go on to a stop [fm]; the rates of the state as it is now are wanted."""
    width = (scalars.size - ROWS) // 5
    scalars[STOP] = stop
    scalars[LIMITED_MAX] = 0.0
    control[WANT_RATES] = 1
    control[STATUS] = GO
    plan(control, scalars, width)


@piece
def plan(control, scalars, width):
    """Length of the next attempt and the masses it takes."""
    room = scalars[STOP] - scalars[TIME]
    length = step_length(scalars[WANTED], room, control[AUTOMATIC] != 0)
    scalars[LENGTH] = length
    scalars[SCALE] = 0.5 * length / scalars[UNIT]
    for a in range(width):
        now = scalars[ROWS + NOW * width + a]
        if control[THERMAL] != 0 and control[PAST] > 0:
            earlier = scalars[PAST_2] if control[PAST] > 1 else 0.0
            now = mean_ahead(
                now, scalars[ROWS + BEFORE * width + a], scalars[PAST_1],
                scalars[ROWS + FIRST * width + a], earlier, length,
            )  # fmt: skip
        scalars[ROWS + USED * width + a] = now
    control[PHASE] = TRIAL if control[THERMAL] != 0 and control[PAST] == 0 else REAL


@piece
def judge(control, scalars, totals):
    """Whether the attempt stands (1), was a first trial (2), or neither (0); sets the status."""
    control[CLAMPED] += int64(totals[BELOW])
    lost = totals[LOST] / totals[EVERYTHING] if totals[EVERYTHING] > 0.0 else 0.0
    moved = float(control[MOVED])
    scalars[NULL] = lost
    scalars[ERROR] = control[DIFFERENCE] / max(float(control[TOTAL]), 1.0)
    scalars[RATIO] = control[DIFFERENCE] / moved if moved > 0.0 else 0.0
    wanted = scalars[SCALE] * totals[MOVES]
    if control[FAULT] >= 0:
        control[STATUS] = FAULTY
        return 0
    if not math.isfinite(wanted):
        control[STATUS] = NOT_FINITE
        return 0
    if control[MANUAL] == 0:
        scalars[LIMITED] = 0.0
        if wanted >= LARGEST_SUM or (control[SYMMETRICAL] != 0 and control[ILLEGAL] != 0):
            control[STATUS] = LIMIT
            return 0
    if control[PHASE] == TRIAL:
        return 2
    if control[AUTOMATIC] != 0:
        stands, wanted = adapted(
            scalars[LENGTH], scalars[ERROR], scalars[RATIO], scalars[WANTED], scalars[TOLERANCE]
        )
        scalars[WANTED] = wanted
        if not stands:
            control[REJECTED] += 1
            return 0
    return 1


@piece
def commit(control, scalars, totals, width):
    """The new state becomes the state; what the step showed of the accuracy is added up."""
    control[ACCEPTED] += 1
    control[STEP] += 1
    control[CURRENT] = 1 - control[CURRENT]
    if control[HAVE_RATE] != 0:
        apart, size = totals[SUMS], totals[SUMS + 1]
        scalars[NOISE] = apart / size if size > 0.0 else math.nan
        scalars[SCATTER] += apart * scalars[LENGTH]
        scalars[SIZE] += size * scalars[LENGTH]
    control[HAVE_RATE] = 1
    control[CHANGE] = 1 - control[CHANGE]
    scalars[LAST_LENGTH] = scalars[LENGTH]
    scalars[NULL_MAX] = max(scalars[NULL_MAX], scalars[NULL])
    scalars[LIMITED_SUM] += scalars[LIMITED]
    scalars[LIMITED_MAX] = max(scalars[LIMITED_MAX], scalars[LIMITED])
    for a in range(width):
        scalars[ROWS + FIRST * width + a] = scalars[ROWS + BEFORE * width + a]
        scalars[ROWS + BEFORE * width + a] = scalars[ROWS + NOW * width + a]
    scalars[PAST_2] = scalars[PAST_1]
    scalars[PAST_1] = scalars[LENGTH]
    control[PAST] = min(control[PAST] + 1, 2)
    time = scalars[TIME] + scalars[LENGTH]
    if abs(scalars[STOP] - time) <= scalars[NEAR]:
        time = scalars[STOP]
        control[STATUS] = ARRIVED
    scalars[TIME] = time


@piece
def quick_masses(scalars, group, model, work, width):
    """The same masses from Y and its derivatives at the expected masses; one thread.

    work[4 width + 1:] holds Sum f/E, Sum f/E^3, Sum f/E^5 of every species. Returns whether the
    masses are so near to the expected ones that what is left out is below rounding.
    """
    s = width - 1
    sums = 4 * width + 1
    matrix = work[sums + 3 * width :]
    for a in range(s):
        work[a] = expected(scalars, a)
    for _ in range(2):  # errors of 1e-5, 1e-10, 1e-20
        for a in range(s):
            d = work[a] - expected(scalars, a)
            one, three, five = work[sums + a], work[sums + width + a], work[sums + 2 * width + a]
            couples = scalars[CELL] * scalars[UNIT] if group[a] >= 0 else 0.0
            work[width + a] = couples * (one + d * (-0.5 * three + d * 0.375 * five))
            work[2 * width + a] = couples * (-0.5 * three + d * 0.75 * five)
        for a in range(s):
            wanted = model[s * s + a]
            for b in range(s):
                wanted += model[a * s + b] * work[width + b]
                matrix[a * s + b] = -model[a * s + b] * work[2 * width + b]
            matrix[a * s + a] += 1.0
            work[3 * width + a] = wanted - work[a]
        eliminate(matrix, work[3 * width :], s)
        for a in range(s):
            work[a] += work[3 * width + a]
    near = True
    screening = scalars[SCREENING]
    for a in range(s):
        d = work[a] - expected(scalars, a)
        near = near and abs(d) <= 1e-5 * work[a] and abs(work[3 * width + a]) <= 1e-8 * work[a]
        screening += model[s * s + s + a] * work[width + a]
    work[s] = screening
    return near


@piece
def node_sums(shared, number, row, group, g, n, species, unit, p2, m2, at_rest):
    """Sum N f/E and Sum N f/E^3 over the nodes of the species of a group, in a fixed order."""
    first = 0.0
    third = 0.0
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        held = 0
        for a in range(group.size):
            if group[a] == g:
                held += number[row, a * n + i]
        r = inverse_energy(p2[i], m2, at_rest)
        first += held * r
        third += held * r * r * r
    return block_sum(shared, first) * unit, block_sum(shared, third) * unit


@piece
def solve_masses(shared, control, scalars, number, row, group, species, p2, model, work, width):
    """Newton's iteration for m_a^2 = m_a,0^2 + Sum_b K_ab Y_b of a row of the state.

    model : K, constant m^2, screening coupling. work : m^2, Y, slope, residual, matrix; the
    result is left in the first entries of work, the squared screening mass after m^2.
    """
    t = cuda.threadIdx.x
    s = width - 1
    n = control[NODES]
    if t == 0:
        for a in range(width):
            work[a] = scalars[ROWS + NOW * width + a]
        work[4 * width] = 0.0  # passes that changed next to nothing
    cuda.syncthreads()
    for _ in range(100):
        for a in range(s):
            leader = group[a]
            for b in range(a):
                if group[b] == group[a]:
                    leader = -1  # another species speaks for this one
            if leader >= 0:
                y, third = node_sums(
                    shared, number, row, group, leader, n, species, scalars[UNIT], p2, work[a],
                    scalars[AT_REST],
                )  # fmt: skip
            if t == 0:
                work[width + a] = y * scalars[CELL] if leader >= 0 else 0.0
                work[2 * width + a] = -0.5 * third * scalars[CELL] if leader >= 0 else 0.0
        if t == 0:
            if work[4 * width] > 0.0:  # Y of the converged masses: the screening mass follows
                screening = scalars[SCREENING]
                for a in range(s):
                    screening += model[s * s + s + a] * work[width + a]
                work[s] = screening
                work[4 * width] = 2.0
            else:
                matrix = work[4 * width + 1 + 3 * width :]
                largest = 0.0
                for a in range(s):
                    wanted = model[s * s + a]
                    for b in range(s):
                        wanted += model[a * s + b] * work[width + b]
                        matrix[a * s + b] = -model[a * s + b] * work[2 * width + b]
                    matrix[a * s + a] += 1.0
                    work[3 * width + a] = wanted - work[a]
                eliminate(matrix, work[3 * width :], s)
                moved = 0.0
                for a in range(s):
                    new = max(work[a] + work[3 * width + a], 0.1 * work[a])
                    moved = max(moved, abs(new - work[a]))
                    largest = max(largest, new)
                    work[a] = new
                if moved <= 1e-9 * largest or not math.isfinite(moved):
                    work[4 * width] = 1.0
        cuda.syncthreads()
        done = work[4 * width]
        cuda.syncthreads()
        if done == 2.0:
            break
    if t == 0:
        for a in range(width):
            if not math.isfinite(work[a]):
                control[STATUS] = NOT_FINITE
        if work[4 * width] != 2.0:
            control[STATUS] = NO_MASSES


@partial(kernel, max_registers=64)  # of 1024 threads
def conclude(
    control, scalars, sums, sums_2, spread, blocks, channels, channel_scalars, number, group,
    species, p2, model, work, highest, flows, totals,
):  # fmt: skip
    """Judge the attempt; keep the new state or plan another attempt. One block of threads."""
    shared = cuda.shared.array(WIDE, float64)
    near_by = cuda.shared.array(NEAR_BY, float64)
    verdict = cuda.shared.array(1, int64)
    if control[STATUS] != GO:
        return
    t = cuda.threadIdx.x
    width = (scalars.size - ROWS) // 5
    if work.size <= NEAR_BY:
        work = near_by
    everything = 0.0
    lost = 0.0
    moves = 0.0
    below = 0.0
    for block in range(t, sums.shape[0], WIDE):
        everything += sums[block, EVERYTHING]
        lost += sums[block, LOST]
        moves += sums[block, MOVES] + sums_2[block, MOVES]  # of both stages
        below += sums[block, BELOW]
        if not sums[block, NEGATIVE] <= 1e-9 * sums[block, POSITIVE]:
            cuda.atomic.max(control, FAULT, block)
    everything = block_sum(shared, everything)
    lost = block_sum(shared, lost)
    moves = block_sum(shared, moves)
    below = block_sum(shared, below)
    if t == 0:
        totals[EVERYTHING] = everything
        totals[LOST] = lost
        totals[MOVES] = moves
        totals[BELOW] = below
        totals[SUMS] = 0.0
        totals[SUMS + 1] = 0.0
    tiles = spread.shape[0] // (width - 1)
    for base in range(0, 5 * (width - 1), WIDE // LANES):  # five sums of every species
        which = base + t // LANES
        a, column = which // 5, which % 5
        part = 0.0
        if a < width - 1:
            for tile in range(t % LANES, tiles, LANES):
                part += spread[a * tiles + tile, column]
        shared[t] = part
        cuda.syncthreads()
        if t % LANES == 0 and a < width - 1:
            for lane in range(1, LANES):
                part += shared[t + lane]
            shared[t] = part
        cuda.syncthreads()
        if t == 0:
            for group_of_sums in range(min(WIDE // LANES, 5 * (width - 1) - base)):
                which = base + group_of_sums
                a, column = which // 5, which % 5
                if column < 2:
                    totals[SUMS + column] += shared[group_of_sums * LANES]
                else:
                    work[4 * width + 1 + (column - 2) * width + a] = shared[group_of_sums * LANES]
        cuda.syncthreads()
    cuda.syncthreads()
    if t == 0:
        verdict[0] = judge(control, scalars, totals)
    cuda.syncthreads()
    outcome = verdict[0]
    if outcome == 1 and control[WANT_RATES] != 0:
        for channel in range(t, channels.shape[0], WIDE):
            forward = 0.0
            net = 0.0
            for block in range(channels[channel, FIRST_BLOCK], channels[channel, LAST_BLOCK]):
                forward += sums[block, FORWARD]
                net += sums[block, NET]
            flows[channel, 0] = forward
            flows[channel, 1] = max(forward - net, 0.0)
        if t == 0:
            scalars[RATES_NULL] = scalars[NULL]
    if t == 0:
        verdict[0] = 0
        if outcome != 0 and control[THERMAL] != 0:
            verdict[0] = 0 if quick_masses(scalars, group, model, work, width) else 1
    cuda.syncthreads()
    if verdict[0] != 0:
        solve_masses(
            shared, control, scalars, number, 1 - control[CURRENT], group, species, p2, model,
            work, width,
        )  # fmt: skip
    cuda.syncthreads()
    if t == 0 and control[STATUS] == GO:
        if outcome == 2:  # the first step: done again with the mean masses
            for a in range(width):
                now = scalars[ROWS + NOW * width + a]
                scalars[ROWS + USED * width + a] = 0.5 * (now + work[a])
            control[PHASE] = REAL
        else:
            if outcome == 1:
                commit(control, scalars, totals, width)
                control[WANT_RATES] = 0
                if control[THERMAL] != 0:
                    for a in range(width):
                        scalars[ROWS + NOW * width + a] = work[a]
                if control[STEP] == 1:
                    scalars[START_LENGTH] = scalars[LENGTH]
                    for a in range(width):
                        scalars[ROWS + START * width + a] = scalars[ROWS + NOW * width + a]
            if control[STATUS] == GO:
                plan(control, scalars, width)
    cuda.syncthreads()
    if t == 0:
        for index in (MOVED, DIFFERENCE, TOTAL, ILLEGAL, MANUAL):
            control[index] = 0
        for a in range(species.shape[0]):
            highest[1 - control[CURRENT], a] = 0


@kernel
def hammer(array, additions):
    """Additions to cells all over an array, as events make them: what the memory can take."""
    word = np.uint32(cuda.grid(1) * 2654435761 + 12345)
    for _ in range(additions):
        word = np.uint32(word * 1664525 + 1013904223)
        cell = np.uint32((np.uint64(word) * np.uint64(array.shape[1])) >> np.uint64(32))
        add(array, 0, cell, 1)


# --- what is measured of a state ----------------------------------------------------------------

(ENERGY, INVERSE, XX, YY, ZZ, XY, XZ, YZ, ENTROPY, DISTANCE) = range(10)
MOMENTS = 10


@kernel
def measure(control, scalars, number, species, p2, packed, momentum, shell, final, planes, shells,
            moments):  # fmt: skip
    """Sums of a state over planes and shells in whole numbers, and of its moments.

    momentum : nodes along the three axes, one after the other, and planes in the same order
    moments : per block: Sum f E, f/E, f p p/E, entropy, |f - f_final|
    """
    shared = cuda.shared.array(THREADS, float64)
    t, a = cuda.threadIdx.x, cuda.blockIdx.y
    i = cuda.blockIdx.x * THREADS + t
    n, nx, ny = control[NODES], control[CELLS_X], control[CELLS_Y]
    f = 0.0
    e = 0.0
    inverse = 0.0
    x = 0.0
    y = 0.0
    z = 0.0
    entropy = 0.0
    distance = 0.0
    if i < n:
        held = number[control[CURRENT], a * n + i]
        ix = packed[i] & 1023
        iy = nx + ((packed[i] >> 10) & 1023)
        iz = nx + ny + ((packed[i] >> 20) & 1023)
        cuda.atomic.add(planes, (a, ix), held)
        cuda.atomic.add(planes, (a, iy), held)
        cuda.atomic.add(planes, (a, iz), held)
        cuda.atomic.add(shells, (a, shell[i]), held)
        x, y, z = momentum[ix], momentum[iy], momentum[iz]
        eta = species[a, 1]
        f = held * (scalars[UNIT] / species[a, 0])
        m2 = scalars[ROWS + NOW * (species.shape[0] + 1) + a]
        e = math.sqrt(p2[i] + m2)
        inverse = inverse_energy(p2[i], m2, scalars[AT_REST])
        if f > 0.0:
            entropy = -f * math.log(f)
            full = max(1.0 + eta * f, 1e-300)
            entropy += eta * full * math.log(full) if eta != 0.0 else f
        distance = abs(f - final[a * n + i])
    block = a * cuda.gridDim.x + cuda.blockIdx.x
    for which in range(MOMENTS):
        value = 0.0
        if which == ENERGY:
            value = f * e
        elif which == INVERSE:
            value = f * inverse
        elif which == XX:
            value = f * x * x * inverse
        elif which == YY:
            value = f * y * y * inverse
        elif which == ZZ:
            value = f * z * z * inverse
        elif which == XY:
            value = f * x * y * inverse
        elif which == XZ:
            value = f * x * z * inverse
        elif which == YZ:
            value = f * y * z * inverse
        elif which == ENTROPY:
            value = entropy
        else:
            value = distance
        value = block_sum(shared, value)
        if t == 0:
            moments[block, which] = value
