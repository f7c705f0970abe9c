"""Kernels over cells: before, between and after the stages of a step.

Cells are added up in whole numbers; sums of floating-point numbers are taken in a fixed order.
"""

from numba import float64, int64

from ...events.collisions import AHEAD, SETS
from . import layout as k
from .driver import kernel
from .events import first_half
from .layout import THREADS
from .physics import block_max, block_sum, cuda, inverse_energy, keep_sums, physics, piece


@piece
def largest_inverse(scalars, m2):
    """The largest 1/E of all nodes: of the slowest one, or of a massless one at rest."""
    if scalars[k.P2_MIN] + m2 > 0.0:
        return inverse_energy(scalars[k.P2_MIN], m2, 0.0)
    return max(scalars[k.AT_REST], inverse_energy(scalars[k.P2_NEXT], m2, 0.0))


@kernel
def prepare(control, first_site, scalars, squares, given, number, species, highest, p2, tables,
            change, prefix, tiles):  # fmt: skip
    """Logarithms and importance of every cell; clears what the step will add up.

    squares : squared masses of the species and of the screenings at every site
    given : f of every cell, and the largest of every species, to be used instead of the state
        if it has entries
    species : degeneracy, statistics of each; prefix : whole weights of the nodes before, in a tile
    """
    shared = cuda.shared.array(THREADS, int64)
    if control[k.STATUS] != k.GO:
        return
    t, tile, row = cuda.threadIdx.x, cuda.blockIdx.x, cuda.blockIdx.y
    kinds = species.shape[0]
    site, a = row // kinds, row % kinds
    n = p2.size
    i = tile * THREADS + t
    whole = 0
    scale = scalars[k.UNIT] / species[a, 0]
    if i < n:
        cell = row * n + i
        f = number[control[k.SOURCE], first_site * kinds * n + cell] * scale
        if given.size > 0:
            f = given[cell]
        tables[0, cell, 0], tables[0, cell, 1] = physics.logarithms(f, species[a, 1])
        for which in range(change.shape[0]):
            change[which, cell] = 0
        if control[k.IMPORTANCE] != 0:
            m2 = squares[site, a]
            top = highest[control[k.SOURCE], row] * scale
            if given.size > 0:
                top = given[kinds * n + a]
            largest = physics.node_weight(top, top, largest_inverse(scalars, m2))
            weight = physics.node_weight(f, top, inverse_energy(p2[i], m2, scalars[k.AT_REST]))
            whole = physics.whole_weight(weight, largest)
    if control[k.IMPORTANCE] == 0:
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
        prefix[row, i] = shared[t] - whole
    if t == THREADS - 1:
        tiles[row, tile] = shared[t]


@kernel
def cumulate(control, first_site, prefix, tiles, shift, cumulative, guide):
    """First random word of every node, and the node of every bucket's first word."""
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
    i = tile * THREADS + t
    if i < n:
        scale = (4294967296.0 - n) / everything
        first = physics.cumulated(i, before + prefix[a, i], n, scale)
        here = prefix[a, i + 1] if t + 1 < THREADS and i + 1 < n else tiles[a, tile]
        last = physics.cumulated(i + 1, before + here, n, scale)
        cumulative[a, i] = first
        if i == n - 1:
            cumulative[a, n] = last
        for bucket in range(((first - 1) >> shift) + 1, ((last - 1) >> shift) + 1):
            guide[a, bucket] = i


@kernel
def predict(control, first_site, scalars, number, species, capacity, tables, change):
    """Logarithms of what each set predicts: n0 plus 4 times its part of half a step."""
    if control[k.STATUS] != k.GO:
        return
    i, row = cuda.grid(1), cuda.blockIdx.y
    kinds = species.shape[0]
    a = row % kinds
    n = control[k.NODES]
    if i < n:
        cell = row * n + i
        held = number[control[k.SOURCE], first_site * kinds * n + cell]
        for which in range(SETS):
            guess = min(max(held + AHEAD * change[which, cell], 0), capacity[a])
            f = guess * (scalars[k.UNIT] / species[a, 0])
            tables[which, cell, 0], tables[which, cell, 1] = physics.logarithms(f, species[a, 1])


@kernel
def update(
    control, first_site, number, species, capacity, change, highest, spread, trouble, counts
):
    """The new state; how far the stages are apart, and the sets of events.

    spread : sums of the blocks of the squared standard error of C, and of C^2
    """
    whole = cuda.shared.array(THREADS, int64)  # the simulator tells them apart by their lines
    real = cuda.shared.array(THREADS, float64)
    if control[k.STATUS] != k.GO:
        return
    i, row = cuda.grid(1), cuda.blockIdx.y
    kinds = species.shape[0]
    site, a = row // kinds, row % kinds
    n, target = control[k.NODES], control[k.TARGET]
    moved, difference, held, new = 0, 0, 0, 0
    apart, size = 0.0, 0.0
    if i < n:
        cell = row * n + i
        d1, d2 = first_half(change, cell), change[SETS, cell]
        held = number[control[k.SOURCE], first_site * kinds * n + cell]
        new = held + d1 + d2
        if control[k.SYMMETRICAL] == 0:
            new = min(max(new, 0), capacity[a])
        elif new < 0 or new > capacity[a]:
            trouble[site, k.ILLEGAL] = 1
        number[target, first_site * kinds * n + cell] = new
        moved, difference = abs(d1), abs(d2 - d1)
        apart, size = float(change[0, cell] - change[1, cell]) ** 2, float(d1) ** 2
    block = row * cuda.gridDim.x + cuda.blockIdx.x
    keep_sums(real, (apart, size), spread[block])
    moved = block_sum(whole, moved)
    difference = block_sum(whole, difference)
    total = block_sum(whole, held)
    largest = block_max(whole, new)
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(counts, (first_site + site, k.MOVED), moved)
        cuda.atomic.add(counts, (first_site + site, k.DIFFERENCE), difference)
        cuda.atomic.add(counts, (first_site + site, k.TOTAL), total)
        cuda.atomic.max(highest, (target, row), largest)


@kernel
def peaks(control, number, highest, first_row):
    """The largest number of quanta of every row of nodes."""
    shared = cuda.shared.array(THREADS, int64)
    row, n = cuda.blockIdx.x, control[k.NODES]
    largest = 0
    for i in range(cuda.threadIdx.x, n, THREADS):
        largest = max(largest, number[control[k.SOURCE], (first_row + row) * n + i])
    largest = block_max(shared, largest)
    if cuda.threadIdx.x == 0:
        highest[control[k.SOURCE], row] = largest
