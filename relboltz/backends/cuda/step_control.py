"""Step control on the GPU: the parts of a step, whether it is accepted, and what follows.

All decisions stay in ``control``, ``scalars`` and the rows of squared masses, so that the host
launches steps without reading results. The rules are those of ``stepping``, written here for one
block of threads.
"""

import math
from functools import partial

from numba import float64, int64

from ...stepping.control import STILL
from ...transport.plane import COURANT
from . import layout as k
from .driver import kernel
from .layout import THREADS, WIDE
from .physics import array_function, block_max, cuda, keep_sums, physics

# --- a step and its parts -----------------------------------------------------------------------


@array_function
def longest(shared, rows, species, axes, widths):
    """Return the longest step [fm] whose halves empty no cell (``transport.forces``).

    Needs a whole block. axes : cells, distance in sites, 1 if periodic; widths : dx, dp
    """
    fastest = 0.0
    sites = rows.shape[1]
    for axis in range(axes.shape[0]):
        n, step, around = axes[axis, 0], axes[axis, 1], axes[axis, 2]
        steepest = 0.0
        for i in range(cuda.threadIdx.x, sites * species, cuda.blockDim.x):
            site, a = i // species, i % species
            at = site // step % n
            other = site + step if at < n - 1 else site - (n - 1) * step
            if at < n - 1 or around != 0:
                change = math.sqrt(rows[k.NOW, other, a]) - math.sqrt(rows[k.NOW, site, a])
                steepest = max(steepest, abs(change))
        steepest = block_max(shared, steepest)
        rate = 1.0 / widths[axis, 0] + steepest / widths[axis, 0] / widths[axis, 1]
        fastest = max(fastest, rate)
    return 2.0 * COURANT / fastest if fastest > 0.0 else math.inf


@array_function
def plan(shared, control, scalars, rows, axes, widths):
    """Set the length of the next attempt."""
    most = longest(shared, rows, control[k.SPECIES], axes, widths)
    if cuda.threadIdx.x == 0:
        room = scalars[k.STOP] - scalars[k.TIME]
        wanted = min(scalars[k.WANTED], most)
        scalars[k.LENGTH] = physics.step_length(wanted, room, control[k.AUTOMATIC] != 0)
        first = control[k.THERMAL] != 0 and control[k.PAST] == 0
        control[k.PHASE] = k.TRIAL if first else k.REAL


@partial(kernel, max_registers=64)  # for blocks of 1024 threads
def set_step_plan(control, scalars, rows, axes, widths, stop):
    """Plan steps to a new stop [fm], and request the rates of the present state. One block."""
    shared = cuda.shared.array(WIDE, float64)
    if cuda.threadIdx.x == 0:
        scalars[k.STOP] = stop[0]
        scalars[k.LIMITED_MAX] = 0.0
        control[k.WANT_RATES] = 1
        control[k.STATUS] = k.GO
    cuda.syncthreads()
    plan(shared, control, scalars, rows, axes, widths)


@kernel
def next_part(control, scalars, rows, part, share, last_share):
    """Store the masses after the last part and set those for the next; one thread per mass.

    part : index of the next part, or the number of parts if none follows; share, last_share :
    fractions of the step length of the next and the last part
    """
    if control[k.STATUS] != k.GO:
        return
    i = cuda.grid(1)
    width = rows.shape[2]
    length = scalars[k.LENGTH]
    if i == 0:
        control[k.SOURCE] = control[k.CURRENT] if part == 0 else 1 - control[k.CURRENT]
        control[k.TARGET] = 1 - control[k.CURRENT]
        scalars[k.LASTS] = share * length
        scalars[k.SCALE] = 0.5 * share * length / scalars[k.UNIT]
    if i >= rows.shape[1] * width:
        return
    site, a = i // width, i % width
    now = rows[k.NOW if part == 0 else k.AT, site, a]
    if part > 0:
        found = rows[k.EXPECTED, site, a] if control[k.THERMAL] != 0 else now
        rows[k.PARTS + 3 * (part - 1) + k.NEW, site, a] = (found - now) / (last_share * length)
        now = found
    rows[k.AT, site, a] = now
    mine = k.PARTS + 3 * part
    if mine >= rows.shape[0]:
        return
    mean = now
    if control[k.THERMAL] != 0 and control[k.PHASE] == k.REAL:
        steps = control[k.PAST]  # 0: a trial of this length came before
        mean = physics.mean_during(
            now, share * length, length, rows[mine + k.RATE, site, a],
            scalars[k.PAST_1] if steps > 0 else length, rows[mine + k.EARLIER, site, a],
            scalars[k.PAST_2] if steps > 1 else 0.0,
        )  # fmt: skip
    rows[k.USED, site, a] = mean
    rows[k.EXPECTED, site, a] = max(2.0 * mean - now, 0.5 * now)


# --- collision sums -----------------------------------------------------------------------------


@kernel
def find_faults(control, sums, sites, first_site):
    """Note the first event block with an illegal matrix element; one thread block per site.

    This runs before the state changes, so that the event can be identified.
    """
    if control[k.STATUS] != k.GO:
        return
    blocks = sums.shape[0] // sites
    site = first_site + cuda.blockIdx.x
    for block in range(cuda.threadIdx.x, blocks, cuda.blockDim.x):
        row = cuda.blockIdx.x * blocks + block
        if physics.illegal(sums[row, k.NEGATIVE], sums[row, k.POSITIVE]):
            cuda.atomic.min(control, k.FAULT, site * blocks + block)


@kernel
def tell_sites(
    control, scalars, sums, sums_2, spread, channels, trouble, bounds, told, flows, first_site
):  # fmt: skip
    """Write the collision sums of each site, and the flows of its channels if requested."""
    shared = cuda.shared.array(THREADS, float64)
    if control[k.STATUS] != k.GO:
        return
    t, here = cuda.threadIdx.x, cuda.blockIdx.x
    site = first_site + here
    blocks, tiles = sums.shape[0] // trouble.shape[0], spread.shape[0] // trouble.shape[0]
    everything, lost, moves, apart, size = 0.0, 0.0, 0.0, 0.0, 0.0
    for block in range(t, blocks, THREADS):
        row = here * blocks + block
        everything += sums[row, k.EVERYTHING]
        lost += sums[row, k.LOST]
        moves += sums[row, k.MOVES] + sums_2[row, k.MOVES]  # of both stages
    for tile in range(t, tiles, THREADS):
        apart += spread[here * tiles + tile, 0]
        size += spread[here * tiles + tile, 1]
    keep_sums(shared, (everything, lost, scalars[k.SCALE] * moves, apart, size), told[site])
    if t == 0:
        told[site, k.TOLD_LIMITED] = bounds[here, k.REFUSED]
        told[site, k.TOLD_ILLEGAL] = float(trouble[here, k.ILLEGAL])
    if control[k.WANT_RATES] != 0:
        for channel in range(t, channels.shape[0], THREADS):
            forward, net, above, below = 0.0, 0.0, 0.0, 0.0
            for block in range(channels[channel, k.FIRST_BLOCK], channels[channel, k.LAST_BLOCK]):
                row = here * blocks + block
                forward += sums[row, k.FORWARD]
                net += sums[row, k.NET]
                above += sums[row, k.EVERYTHING]
                below += sums[row, k.BELOW]
            flows[site, channel, 0], flows[site, channel, 1] = forward, max(forward - net, 0.0)
            flows[site, channel, 2], flows[site, channel, 3] = above, below


@array_function
def add_up_sites(shared, scalars, told, counts, totals):
    """Combine the sums of all sites (``stepping.step_report``); totals : eight shared numbers."""
    everything, lost, quanta, apart, size, refused = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    difference, moved, total, illegal, largest, counting = 0.0, 0.0, 0.0, 0.0, 0.0, -1.0
    for site in range(cuda.threadIdx.x, told.shape[0], cuda.blockDim.x):
        d, m = float(counts[site, k.DIFFERENCE]), float(counts[site, k.MOVED])
        held = max(float(counts[site, k.TOTAL]), 1.0)
        everything += told[site, k.TOLD_ALL]
        lost += told[site, k.TOLD_LOST]
        quanta = max(quanta, told[site, k.TOLD_QUANTA])
        if not math.isfinite(told[site, k.TOLD_QUANTA]):
            illegal = math.inf
        apart += told[site, k.TOLD_APART]
        size += told[site, k.TOLD_SIZE]
        refused += told[site, k.TOLD_LIMITED] * m
        illegal = max(illegal, told[site, k.TOLD_ILLEGAL])
        difference += d
        moved += m
        total += float(counts[site, k.TOTAL])
        ratio = d / m if m > 0.0 else 0.0
        largest = max(largest, ratio)
        if d > STILL * scalars[k.TOLERANCE] * held:
            counting = max(counting, ratio)
    largest, counting = block_max(shared, largest), block_max(shared, counting)
    quanta, illegal = block_max(shared, quanta), block_max(shared, illegal)
    keep_sums(shared, (everything, lost, apart, size, refused, moved, difference, total), totals)
    if cuda.threadIdx.x == 0:
        everything, lost, apart, size = totals[0], totals[1], totals[2], totals[3]
        refused, moved, difference, total = totals[4], totals[5], totals[6], totals[7]
        scalars[k.NULL] = lost / everything if everything > 0.0 else 0.0
        scalars[k.APART], scalars[k.SIZED] = apart, size
        scalars[k.LIMITED] = refused / moved if moved > 0.0 else 0.0
        scalars[k.ERROR] = difference / max(total, 1.0)
        scalars[k.RATIO] = counting if counting >= 0.0 else largest
    return quanta, illegal


@array_function
def verdict(control, scalars, quanta, illegal, careful):
    """Return the status that follows from the attempt, and set the next wanted length."""
    if control[k.FAULT] < k.NO_FAULT:
        return k.FAULTY
    if not (math.isfinite(quanta) and math.isfinite(illegal)):
        return k.NOT_FINITE
    if control[k.SYMMETRICAL] == 0 and quanta >= k.LARGEST_SUM:
        return k.TOO_LONG
    if illegal > 0.0 or (quanta >= k.LARGEST_SUM and careful == 0):
        return k.LIMIT if careful == 0 else k.NO_LIMITS
    if control[k.PHASE] == k.TRIAL or control[k.AUTOMATIC] == 0:
        return k.GO
    noise = scalars[k.APART] / scalars[k.SIZED] if scalars[k.SIZED] > 0.0 else 0.0
    stands, scalars[k.WANTED] = physics.adapted(
        scalars[k.LENGTH], scalars[k.ERROR], scalars[k.RATIO],
        physics.largest_change(scalars[k.TOLERANCE], noise),
        scalars[k.WANTED], scalars[k.TOLERANCE],
    )  # fmt: skip
    return k.GO if stands else k.REJECTED


@kernel
def judge(control, scalars, told, counts, careful):
    """Judge the collisions of a step; careful : limits were applied if needed. One block."""
    shared = cuda.shared.array(THREADS, float64)
    totals = cuda.shared.array(8, float64)
    if control[k.STATUS] != k.GO:
        return
    quanta, illegal = add_up_sites(shared, scalars, told, counts, totals)
    if cuda.threadIdx.x == 0:
        control[k.STATUS] = verdict(control, scalars, quanta, illegal, careful)


# --- the end of a step --------------------------------------------------------------------------


@array_function
def keep_rates(scalars, flows, mean):
    """Store site-averaged flows of every channel, for the state at the start of the step."""
    sites, channels = flows.shape[0], flows.shape[1]
    for i in range(cuda.threadIdx.x, 4 * channels, cuda.blockDim.x):
        total = 0.0
        for site in range(sites):
            total += flows[site, i // 4, i % 4]
        mean[i // 4, i % 4] = total / sites
    if cuda.threadIdx.x == 0:
        scalars[k.RATES_NULL] = scalars[k.NULL]


@array_function
def keep_masses(rows, length, stands):
    """Store rates of change of the squared masses; stands : step accepted, else a trial."""
    width = rows.shape[2]
    for i in range(cuda.threadIdx.x, rows.shape[1] * width, cuda.blockDim.x):
        site, a = i // width, i % width
        for part in range(k.PARTS, rows.shape[0], 3):
            rows[part + k.EARLIER, site, a] = rows[part + k.RATE, site, a]
            rows[part + k.RATE, site, a] = rows[part + k.NEW, site, a]
        if stands:
            new = rows[k.AT, site, a]
            rows[k.EARLIER_RATE, site, a] = rows[k.PAST_RATE, site, a]
            rows[k.PAST_RATE, site, a] = (new - rows[k.NOW, site, a]) / length
            rows[k.NOW, site, a] = new


@array_function
def commit(control, scalars):
    """Make the new state current, and accumulate the accuracy measures of the step."""
    control[k.ACCEPTED] += 1
    control[k.STEP] += 1
    control[k.CURRENT] = 1 - control[k.CURRENT]
    control[k.WANT_RATES] = 0
    apart, size, length = scalars[k.APART], scalars[k.SIZED], scalars[k.LENGTH]
    scalars[k.NOISE] = math.sqrt(apart / size) if size > 0.0 else math.nan
    scalars[k.SCATTER] += apart
    scalars[k.SIZE] += size
    scalars[k.CHANGED] += scalars[k.RATIO] * length
    scalars[k.LAST_LENGTH] = length
    scalars[k.ELAPSED] += length
    scalars[k.NULL_MAX] = max(scalars[k.NULL_MAX], scalars[k.NULL])
    scalars[k.LIMITED_SUM] += scalars[k.LIMITED]
    scalars[k.LIMITED_MAX] = max(scalars[k.LIMITED_MAX], scalars[k.LIMITED])
    scalars[k.PAST_2] = scalars[k.PAST_1]
    scalars[k.PAST_1] = length
    control[k.PAST] = min(control[k.PAST] + 1, 2)
    time = scalars[k.TIME] + length
    if abs(scalars[k.STOP] - time) <= scalars[k.NEAR]:
        time = scalars[k.STOP]
        control[k.STATUS] = k.ARRIVED
    scalars[k.TIME] = time


@partial(kernel, max_registers=64)
def conclude(control, scalars, rows, axes, widths, flows, mean, passed, ledger):
    """Accept the new state, or plan another attempt. One block of threads.

    passed : energy and refused quanta of this step, each as two numbers (``wall_ledger``); ledger :
    the same totals over all steps
    """
    shared = cuda.shared.array(WIDE, float64)
    status = cuda.shared.array(2, int64)
    t = cuda.threadIdx.x
    if t == 0:
        status[0], status[1] = control[k.STATUS], control[k.PHASE]
    cuda.syncthreads()
    if status[0] != k.GO and status[0] != k.REJECTED:
        return
    if status[0] == k.GO:
        stands = status[1] == k.REAL
        keep_masses(rows, scalars[k.LENGTH], stands)
        if stands:
            if control[k.WANT_RATES] != 0:
                keep_rates(scalars, flows, mean)
            for i in range(t, ledger.size, cuda.blockDim.x):
                ledger[i] += passed[2 * i] * k.SPLIT + passed[2 * i + 1]
        cuda.syncthreads()
        if t == 0:
            if stands:
                commit(control, scalars)
            else:
                control[k.PHASE] = k.REAL  # the first step, again with the mean masses
        if not stands:
            return
    elif t == 0:
        control[k.STATUS] = k.GO
    cuda.syncthreads()
    plan(shared, control, scalars, rows, axes, widths)
