"""Kernels over cells that run before, between and after the stages of a step.

Cells accumulate integers; floating-point sums are taken in a fixed order.
"""

from functools import partial

import numpy as np
from numba import float64, int32, int64

from ...events.collisions import AHEAD, SETS
from . import layout as k
from .driver import kernel
from .layout import FEW, THREADS
from .physics import (  # fmt: skip
    array_function,
    block_max,
    block_sum,
    cuda,
    inverse_energy,
    keep_sums,
    physics,
    place,
    warp_max,
    warp_scan,
    warp_sum,
)

CHUNKS = k.TILE // k.WARP
"""Warp-sized chunks of a tile."""
COUNTED = (k.COUNTS + 1) * (THREADS // k.WARP)


@array_function
def largest_inverse(scalars, m2):
    """Return the largest 1/E of all nodes: the slowest node, or a massless one at rest."""
    if scalars[k.P2_MIN] + m2 > 0.0:
        return inverse_energy(scalars[k.P2_MIN], m2, 0.0)
    return max(scalars[k.AT_REST], inverse_energy(scalars[k.P2_NEXT], m2, 0.0))


@array_function
def importance(scalars, top, m2):
    """Return the largest node weight of a species; top : its largest f."""
    return physics.node_weight(top, top, largest_inverse(scalars, m2))


@partial(kernel, max_registers=48)
def prepare(control, first_site, scalars, squares, given, number, species, highest, p2, tables,
            tops, change, prefix, tiles):  # fmt: skip
    """Compute logarithms and importance of every cell; clear the changes of the step.

    squares : squared masses of the species and of the screenings at every site
    given : f of every cell and the largest f of every species, used instead of the state unless
        empty
    species : degeneracy and statistics of each; tops : ln f at the fullest node of every species
    prefix : sum of the integer weights of the preceding nodes in a tile
    """
    chunks = cuda.shared.array(CHUNKS, int32)
    own = cuda.local.array(FEW, int32)
    if control[k.STATUS] != k.GO:
        return
    t, tile, row = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    kinds, n = species.shape[0], p2.size
    site, a = place(row, kinds)
    weighed = control[k.IMPORTANCE] != 0
    scale = scalars[k.UNIT] / species[a, 0]
    top, m2, at_rest = highest[control[k.SOURCE], row] * scale, squares[site, a], scalars[k.AT_REST]
    if given.size > 0:
        top = given[kinds * n + a]
    largest = importance(scalars, top, m2) if weighed else 1.0
    if tile == 0 and t == 0:
        ln_x, ln_full = physics.logarithms(top, species[a, 1])
        tops[row] = ln_x + ln_full
    state = number[control[k.SOURCE], first_site * kinds * n :]
    last = tables.shape[0] - 1
    for j in range(FEW):
        i = tile * k.TILE + j * THREADS + t
        own[j] = 0
        if i < n:
            cell = np.uint32(row * n + i)
            f = given[cell] if given.size > 0 else state[cell] * scale
            tables[last, cell, 0], tables[last, cell, 1] = physics.logarithms(f, species[a, 1])
            for which in range(change.shape[0]):
                change[which, cell] = 0
            if weighed:
                weight = physics.node_weight(f, top, inverse_energy(p2[i], m2, at_rest))
                own[j] = physics.whole_weight(weight, largest)
    if weighed:
        cumulate_tile(chunks, own, prefix[row], tiles[row])


@array_function
def cumulate_tile(chunks, own, prefix, tiles):
    """Prefix-sum the node weights of a tile, and its total; own : weights of this thread."""
    t, tile = cuda.threadIdx.x, cuda.blockIdx.x
    warp, warps = t // k.WARP, THREADS // k.WARP
    for j in range(FEW):
        whole = own[j]
        up_to = warp_scan(whole)
        if t % k.WARP == k.WARP - 1:
            chunks[j * warps + warp] = up_to
        own[j] = up_to - whole
    cuda.syncthreads()
    before, passed = 0, 0
    for j in range(FEW):
        while passed < j * warps + warp:
            before += chunks[passed]
            passed += 1
        i = tile * k.TILE + j * THREADS + t
        if i < prefix.size:
            prefix[i] = before + own[j]
    if t == THREADS - 1:
        tiles[tile] = before + chunks[CHUNKS - 1]


@kernel
def cumulate(control, first_site, prefix, tiles, shift, cumulative, guide):
    """Compute the first random word of every node, and the node of every bucket's first word."""
    shared = cuda.shared.array(THREADS, int64)
    if control[k.STATUS] != k.GO or control[k.IMPORTANCE] == 0:
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
    scale = (4294967296.0 - n) / everything
    behind = min((tile + 1) * k.TILE, n)
    for j in range(FEW):
        i = tile * k.TILE + j * THREADS + t
        if i < behind:
            first = physics.cumulated(i, before + prefix[a, np.uint32(i)], n, scale)
            here = prefix[a, np.uint32(i + 1)] if i + 1 < behind else tiles[a, tile]
            last = physics.cumulated(i + 1, before + here, n, scale)
            cumulative[a, np.uint32(i)] = first
            if i == n - 1:
                cumulative[a, np.uint32(n)] = last
            bucket, stop = np.uint32(((first - 1) >> shift) + 1), ((last - 1) >> shift) + 1
            while bucket < stop:
                guide[a, bucket] = i
                bucket = np.uint32(bucket + 1)


@kernel
def predict(control, first_site, scalars, number, species, capacity, tables, change):
    """Take logarithms of each set's prediction: n0 plus 4 times its part of half a step."""
    if control[k.STATUS] != k.GO:
        return
    tile, row = cuda.blockIdx.x, cuda.blockIdx.y
    kinds, n = species.shape[0], control[k.NODES]
    _, a = place(row, kinds)
    scale, eta, most = scalars[k.UNIT] / species[a, 0], species[a, 1], capacity[a]
    state = number[control[k.SOURCE], first_site * kinds * n :]
    for j in range(FEW):
        i = tile * k.TILE + j * THREADS + cuda.threadIdx.x
        if i < n:
            cell = np.uint32(row * n + i)
            held = state[cell]
            for which in range(SETS):
                f = min(max(held + AHEAD * change[which, cell], 0), most) * scale
                tables[which, cell, 0], tables[which, cell, 1] = physics.logarithms(f, eta)


@array_function
def count(shared, values, counts, highest):
    """Add block sums of all values but the last to ``counts``; the last updates a maximum."""
    t, most = cuda.threadIdx.x, k.COUNTS
    warp, warps = t // k.WARP, THREADS // k.WARP
    for i in range(most):
        part = warp_sum(values[i])
        if t % k.WARP == 0:
            shared[i * warps + warp] = part
    largest = warp_max(values[most])
    if t % k.WARP == 0:
        shared[most * warps + warp] = largest
    cuda.syncthreads()
    if t <= most:
        result = shared[t * warps]
        for other in range(1, warps):
            one = shared[t * warps + other]
            result = result + one if t < most else max(result, one)
        if t < most:
            cuda.atomic.add(counts, t, result)
        else:
            cuda.atomic.max(highest, 0, result)


@kernel
def update(
    control, first_site, number, species, capacity, change, highest, spread, trouble, counts
):
    """Write the new state, and compare the two stages and the two sets of events.

    spread : block sums of the squared standard error of C, and of C^2
    """
    shared = cuda.shared.array(THREADS, float64)
    whole = cuda.shared.array(COUNTED, int64)  # own line: the simulator identifies arrays by line
    if control[k.STATUS] != k.GO or control[k.FAULT] < k.NO_FAULT:
        return
    tile, row = cuda.blockIdx.x, cuda.blockIdx.y
    kinds, n, target = species.shape[0], control[k.NODES], control[k.TARGET]
    site, a = place(row, kinds)
    symmetrical = control[k.SYMMETRICAL] != 0
    moved, difference, total, largest, apart, size = 0, 0, 0, 0, 0.0, 0.0
    first_cell = first_site * kinds * n
    old, state = number[control[k.SOURCE], first_cell:], number[target, first_cell:]
    for j in range(FEW):
        i = tile * k.TILE + j * THREADS + cuda.threadIdx.x
        if i < n:
            cell = np.uint32(row * n + i)
            one, two, d2, held = change[0, cell], change[1, cell], change[SETS, cell], old[cell]
            d1 = one + two
            new = held + d1 + d2
            if not symmetrical:
                new = min(max(new, 0), capacity[a])
            elif new < 0 or new > capacity[a]:
                trouble[site, k.ILLEGAL] = 1
            state[cell] = new
            moved += abs(d1)
            difference += abs(d2 - d1)
            total += held
            largest = max(largest, new)
            apart += float(one - two) ** 2
            size += float(d1) ** 2
    keep_sums(shared, (apart, size), spread[row * cuda.gridDim.x + tile])
    count(
        whole, (moved, difference, total, largest), counts[first_site + site], highest[target, row:]
    )


@kernel
def peaks(control, number, highest, first_row):
    """Find the largest number of quanta in every row of nodes."""
    shared = cuda.shared.array(THREADS, int64)
    row, n = cuda.blockIdx.x, control[k.NODES]
    state = number[control[k.SOURCE], (first_row + row) * n :]
    largest = 0
    for first in range(cuda.threadIdx.x, n, k.TILE):
        for j in range(FEW):  # no branches, so that all loads are issued at once
            i = first + j * THREADS
            largest = max(largest, state[np.uint32(i if i < n else 0)])
    largest = block_max(shared, largest)
    if cuda.threadIdx.x == 0:
        highest[control[k.SOURCE], row] = largest
