"""Limits that keep every cell of every site legal: kernels, and the decisions between them.

The scheme is that of ``cpu/stages``: where a step without limits would leave a cell illegal, both
stages are repeated, with limits if a cell needs them. Only sites that need limits take part, and
only events that touch a limited cell change; all others would move the same amounts again.
"""

import math

from numba import float64, int64

from ...events.collisions import AHEAD, SETS
from . import layout as k
from .collision_events import (
    add_to_pairs,
    cells_of,
    deposit,
    event_flow,
    first_half,
    partner_shift,
    seen,
    slot_of,
)
from .driver import kernel
from .layout import THREADS
from .physics import add, array_function, block_sum, cuda, keep_sums, physics, place

ATTEMPTS = (0.5, 0.125, 0.03125, 1e-12)
"""Fraction of a cell's available quanta that events may take, in successive attempts."""
BOTH, FIRST, TRIED, BETWEEN, LAST, END = range(6)
"""Points in a step at which ``ask`` decides what a site needs."""

# --- cells --------------------------------------------------------------------------------------


@kernel
def clear_sites(control, trouble, bounds, counts, highest, first_site):
    """Clear flags, counts and maxima of the sites before their collisions."""
    site = cuda.grid(1)
    if control[k.STATUS] != k.GO or site >= trouble.shape[0]:
        return
    if site == 0:
        control[k.TROUBLED] = 0
    for i in range(k.TROUBLES):
        trouble[site, i] = 0
    bounds[site, k.REFUSED] = 0.0
    kinds = highest.shape[1] // trouble.shape[0]
    if control[k.SOURCE] != control[k.TARGET]:
        for a in range(kinds):
            highest[control[k.TARGET], site * kinds + a] = 0
    if first_site + site < counts.shape[0]:
        for i in range(k.COUNTS):
            counts[first_site + site, i] = 0


@array_function
def takes_part(control, trouble, site, column):
    """Return whether a site takes part: its flag in ``column`` is 1, or column < 0."""
    if control[k.STATUS] != k.GO:
        return False
    return column < 0 or (control[k.TROUBLED] != 0 and trouble[site, column] == 1)


@array_function
def afresh(bounds, site, attempt):
    """Return whether to reapply all events; a first attempt only takes back what limits refuse."""
    return attempt > 0 or bounds[site, k.COARSER] > 1.0


@kernel
def check(control, first_site, number, capacity, change, trouble, stage, column):
    """Flag sites where a stage leaves a cell outside its bounds; column : selects the sites."""
    i, row = cuda.grid(1), cuda.blockIdx.y
    kinds, n = capacity.size, control[k.NODES]
    site, a = place(row, kinds)
    if i < n and takes_part(control, trouble, site, column):
        cell = row * n + i
        held = number[control[k.SOURCE], first_site * kinds * n + cell]
        first = first_half(change, cell)
        new = held + first + (change[SETS, cell] if stage == k.LAST_STAGE else first)
        if new < 0 or new > capacity[a]:
            trouble[site, k.ILLEGAL] = 1


@kernel
def begin_stage(control, first_site, scalars, number, species, capacity, change, tables, loss, gain,
                trouble, stage):  # fmt: skip
    """Set up the tables of a stage at sites that need limits, and clear the sums of its events."""
    i, row = cuda.grid(1), cuda.blockIdx.y
    kinds = species.shape[0]
    (site, a), n = place(row, kinds), control[k.NODES]
    if i >= n or not takes_part(control, trouble, site, k.NEEDY):
        return
    cell = row * n + i
    held = number[control[k.SOURCE], first_site * kinds * n + cell]
    loss[cell], gain[cell] = 0, 0
    if stage == k.LAST_STAGE and trouble[site, k.REDONE] != 0:
        change[SETS, cell] = 0
    for which in range(SETS):
        guess = held
        if stage == k.LAST_STAGE:
            guess = min(max(held + AHEAD * change[which, cell], 0), capacity[a])
        f = guess * (scalars[k.UNIT] / species[a, 0])
        tables[which, cell, 0], tables[which, cell, 1] = physics.logarithms(f, species[a, 1])


@kernel
def limits(control, first_site, number, change, species, capacity, loss, gain, low, high, tight,
           trouble, bounds, stage, attempt):  # fmt: skip
    """Set bounds on the losses of cells and, for fermions, on their gains.

    The change is cleared if all events are to be applied again.
    """
    i, row = cuda.grid(1), cuda.blockIdx.y
    kinds = species.shape[0]
    (site, a), n = place(row, kinds), control[k.NODES]
    if i >= n or not takes_part(control, trouble, site, k.LIMITED_NOW):
        return
    cell = row * n + i
    held = number[control[k.SOURCE], first_site * kinds * n + cell]
    allowance = bounds[site, k.ALLOWANCE] / bounds[site, k.COARSER]
    if stage == k.LAST_STAGE:
        held += first_half(change, cell)
    if afresh(bounds, site, attempt):
        if stage == k.LAST_STAGE:
            change[SETS, cell] = 0
        else:
            for which in range(SETS):
                change[which, cell] = 0
    low[cell] = physics.bound(held, loss[cell], allowance)
    high[cell] = 1.0
    if species[a, 1] < 0.0:
        high[cell] = physics.bound(capacity[a] - held, gain[cell], allowance)
    tight[cell] = 1 if low[cell] < 1.0 or high[cell] < 1.0 else 0


# --- events -------------------------------------------------------------------------------------


@kernel
def demands(
    control, scalars, channels, blocks, nodes, weights, ratios, tables, first_block, roots,
    conserving, loss, gain, trouble, bounds, stage,
):  # fmt: skip
    """Sum the amounts that all events would take from and add to every cell (rounded up)."""
    if not takes_part(control, trouble, cuda.blockIdx.y, k.LIMITED_NOW):
        return
    block = cuda.blockIdx.x + first_block
    table = tables[seen(blocks[block, k.SET], stage)]
    shift = partner_shift(control, channels, blocks[block, k.CHANNEL])
    scale = scalars[k.SCALE] / bounds[cuda.blockIdx.y, k.COARSER]
    for i in range(k.EACH * roots):
        j = slot_of(i, roots)
        weight = float64(weights[j])
        if weight > 0.0:
            cells, r = cells_of(nodes, j, shift, conserving), ratios[j]
            flow, _ = event_flow(table, cells, r, control[k.SINGLE])
            amount = scale * (flow * weight)
            into, out = (gain, loss) if amount > 0.0 else (loss, gain)
            whole, less, more = physics.demand(amount, r)
            cuda.atomic.add(into, cells[0], whole)
            cuda.atomic.add(into, cells[1], whole)
            add_to_pairs(out, cells, less, more)


@array_function
def touches(tight, cells):
    """Return whether a cell of an event is limited."""
    found = tight[cells[0]] + tight[cells[1]] + tight[cells[2]] + tight[cells[3]]
    return found + tight[cells[4]] + tight[cells[5]] > 0


@array_function
def event_limit(low, high, cells, r, flow):
    """Return the fraction of an event that the limits of its cells allow."""
    into, out = (high, low) if flow > 0.0 else (low, high)
    p, k3, l0, m0, l1, m1 = cells
    return physics.tightest(into[p], into[k3], out[l0], out[m0], out[l1], out[m1], r)


@kernel
def apply_limited(
    control, scalars, channels, blocks, nodes, weights, ratios, tables, first_block, roots,
    conserving, change, low, high, tight, trouble, bounds, sums, stage, attempt,
):  # fmt: skip
    """Apply the events again, each scaled as a whole by the tightest limit of its cells."""
    shared = cuda.shared.array(THREADS, float64)
    if not takes_part(control, trouble, cuda.blockIdx.y, k.LIMITED_NOW):
        return
    block = cuda.blockIdx.x + first_block
    channel, which = blocks[block, k.CHANNEL], blocks[block, k.SET]
    table, row = tables[seen(which, stage)], SETS if stage == k.LAST_STAGE else which
    shift = partner_shift(control, channels, channel)
    refused, everything = 0.0, afresh(bounds, cuda.blockIdx.y, attempt)
    for i in range(k.EACH * roots):
        j = slot_of(i, roots)
        weight = float64(weights[j])
        if weight > 0.0:
            cells, r = cells_of(nodes, j, shift, conserving), ratios[j]
            if everything or touches(tight, cells):
                flow, _ = event_flow(table, cells, r, control[k.SINGLE])
                flow *= weight
                s = event_limit(low, high, cells, r, flow) if flow != 0.0 else 1.0
                refused += abs(flow) * (1.0 - s)
                whole = int64(physics.nearest_integer(scalars[k.SCALE] * (flow * s)))
                less, more = physics.shares(whole, r)
                if not everything:
                    before = int64(physics.nearest_integer(scalars[k.SCALE] * flow))
                    before_less, before_more = physics.shares(before, r)
                    whole, less, more = whole - before, less - before_less, more - before_more
                deposit(change, row, cells, whole, less, more)
                if whole != 0:
                    add(change, row, cells[0], whole)
    block += cuda.blockIdx.y * blocks.shape[0]
    keep_sums(shared, (refused,), sums[block, k.NEGATIVE :])


# --- decisions ----------------------------------------------------------------------------------


@array_function
def moved_by(shared, sums, blocks, column):
    """Return the sum of one column of ``sums`` over the blocks of events at this site."""
    total = 0.0
    for block in range(cuda.threadIdx.x, blocks, cuda.blockDim.x):
        total += sums[cuda.blockIdx.x * blocks + block, column]
    return block_sum(shared, total)


@array_function
def ask_both(control, mine, wanted):
    """Flag the site if both stages without limits leave it illegal or move too many quanta."""
    fits = not wanted >= k.LARGEST_SUM  # NaN is reported by ``verdict``
    mine[k.NEEDY] = 0
    if control[k.SYMMETRICAL] != 0 and not (fits and mine[k.ILLEGAL] == 0):
        mine[k.NEEDY] = 1
        control[k.TROUBLED], control[k.NEEDED] = 1, control[k.ACCEPTED] + 1


@array_function
def ask_stage(mine, own, wanted):
    """Decide whether a stage needs limits."""
    fits = not wanted >= k.LARGEST_SUM
    mine[k.LIMITED_NOW] = 1 if mine[k.ILLEGAL] != 0 or not fits else 0
    own[k.COARSER], own[k.ALLOWANCE] = 1.0, ATTEMPTS[0]
    if not fits:
        own[k.COARSER] = 2.0 ** math.ceil(math.log2(max(wanted / k.LARGEST_SUM, 1.0)))


@array_function
def ask_attempt(mine, own, wanted, refused, attempt):
    """Check whether an attempt left the site legal; if not, the next one allows less."""
    if mine[k.LIMITED_NOW] != 1:
        return
    if mine[k.ILLEGAL] == 0:
        mine[k.LIMITED_NOW] = 2
        own[k.REFUSED] = max(own[k.REFUSED], refused / wanted if wanted > 0.0 else 0.0)
    elif attempt == 0:
        own[k.ALLOWANCE] = ATTEMPTS[1]
    elif attempt == 1:
        own[k.ALLOWANCE] = ATTEMPTS[2]
    else:
        own[k.ALLOWANCE] = ATTEMPTS[3]


@kernel
def ask(control, scalars, sums, sums_2, again, trouble, bounds, when, stage, attempt):
    """Decide what each site needs next; one block of threads per site.

    sums, sums_2, again : sums of event blocks in the first stage, the last stage, and with limits
    """
    shared = cuda.shared.array(THREADS, float64)
    site = cuda.blockIdx.x
    if control[k.STATUS] != k.GO or (when != BOTH and control[k.TROUBLED] == 0):
        return
    blocks = sums.shape[0] // trouble.shape[0]
    wanted = 0.0
    if when == BOTH or stage == k.FIRST_STAGE:
        wanted += moved_by(shared, sums, blocks, k.MOVES)
    if when == BOTH or stage == k.LAST_STAGE:
        wanted += moved_by(shared, sums_2, blocks, k.MOVES)
    refused = moved_by(shared, again, blocks, k.NEGATIVE) if when == TRIED else 0.0
    if cuda.threadIdx.x != 0:
        return
    mine, own = trouble[site], bounds[site]
    if when == BOTH:
        ask_both(control, mine, scalars[k.SCALE] * wanted)
    elif mine[k.NEEDY] == 0:
        return
    elif when in (FIRST, LAST):
        ask_stage(mine, own, scalars[k.SCALE] * wanted)
    elif when == TRIED:
        ask_attempt(mine, own, wanted, refused, attempt)
    if when in (BETWEEN, END):
        if mine[k.LIMITED_NOW] == 1:
            control[k.STATUS] = k.NO_LIMITS
        if when == BETWEEN:
            mine[k.REDONE] = 1 if mine[k.LIMITED_NOW] == 2 else 0
        mine[k.LIMITED_NOW] = 0
    mine[k.ILLEGAL] = 0
