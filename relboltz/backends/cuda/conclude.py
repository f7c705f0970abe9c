"""The end of a step: masses of the new state; it replaces the old one, or the step is done again.

A step is planned and judged by single threads; everything they decide stays in ``control`` and
``scalars``, so that the host launches steps without looking.
"""

import math
from functools import partial

from numba import float64, int64

from . import layout as k
from .driver import kernel
from .layout import NEAR_BY, WIDE
from .masses import near_masses, solve_masses
from .physics import cuda, expected, keep_sums, physics, piece, warp_sum


@kernel
def set_course(control, scalars, stop):
    """Go on to a stop [fm]; the rates of the state as it is now are wanted."""
    width = (scalars.size - k.ROWS) // k.MASS_ROWS
    scalars[k.STOP] = stop
    scalars[k.LIMITED_MAX] = 0.0
    control[k.WANT_RATES] = 1
    control[k.STATUS] = k.GO
    plan(control, scalars, width)


@piece
def plan(control, scalars, width):
    """Length of the next attempt and the masses it takes."""
    room = scalars[k.STOP] - scalars[k.TIME]
    length = physics.step_length(scalars[k.WANTED], room, control[k.AUTOMATIC] != 0)
    scalars[k.LENGTH] = length
    control[k.SOURCE], control[k.TARGET] = control[k.CURRENT], 1 - control[k.CURRENT]
    scalars[k.SCALE] = 0.5 * length / scalars[k.UNIT]
    for a in range(width):
        now = scalars[k.ROWS + k.NOW * width + a]
        if control[k.THERMAL] != 0 and control[k.PAST] > 0:
            earlier = scalars[k.PAST_2] if control[k.PAST] > 1 else 0.0
            now = physics.mean_during(
                now, length, length, scalars[k.ROWS + k.RATE * width + a], scalars[k.PAST_1],
                scalars[k.ROWS + k.EARLIER * width + a], earlier,
            )  # fmt: skip
        scalars[k.ROWS + k.USED * width + a] = now
    control[k.PHASE] = k.TRIAL if control[k.THERMAL] != 0 and control[k.PAST] == 0 else k.REAL


@piece
def judge(control, scalars, totals):
    """Whether the attempt stands, was a first trial, or has to be done again; sets the status."""
    lost = totals[k.LOST] / totals[k.EVERYTHING] if totals[k.EVERYTHING] > 0.0 else 0.0
    moved = float(control[k.MOVED])
    scalars[k.NULL] = lost
    scalars[k.ERROR] = control[k.DIFFERENCE] / max(float(control[k.TOTAL]), 1.0)
    scalars[k.RATIO] = control[k.DIFFERENCE] / moved if moved > 0.0 else 0.0
    quanta = scalars[k.SCALE] * totals[k.MOVES]
    if control[k.FAULT] >= 0:
        control[k.STATUS] = k.FAULTY
        return k.AGAIN
    if not math.isfinite(quanta):
        control[k.STATUS] = k.NOT_FINITE
        return k.AGAIN
    if control[k.MANUAL] == 0:
        scalars[k.LIMITED] = 0.0
        if quanta >= k.LARGEST_SUM or (control[k.SYMMETRICAL] != 0 and control[k.ILLEGAL] != 0):
            control[k.STATUS] = k.LIMIT
            return k.AGAIN
    if control[k.PHASE] == k.TRIAL:
        return k.TRIED
    if control[k.AUTOMATIC] != 0:
        noise = totals[k.SUMS] / totals[k.SUMS + 1] if totals[k.SUMS + 1] > 0.0 else 0.0
        most = physics.largest_change(scalars[k.TOLERANCE], noise)
        stands, scalars[k.WANTED] = physics.adapted(
            scalars[k.LENGTH], scalars[k.ERROR], scalars[k.RATIO],
            most, scalars[k.WANTED], scalars[k.TOLERANCE],
        )  # fmt: skip
        if not stands:
            return k.AGAIN
    return k.STANDS


@piece
def commit(control, scalars, totals, work, width):
    """The new state becomes the state; what the step showed of the accuracy is added up."""
    control[k.ACCEPTED] += 1
    control[k.STEP] += 1
    control[k.CURRENT] = 1 - control[k.CURRENT]
    apart, size = totals[k.SUMS], totals[k.SUMS + 1]
    scalars[k.NOISE] = math.sqrt(apart / size) if size > 0.0 else math.nan
    scalars[k.SCATTER] += apart
    scalars[k.SIZE] += size
    scalars[k.CHANGED] += scalars[k.RATIO] * scalars[k.LENGTH]
    scalars[k.LAST_LENGTH] = scalars[k.LENGTH]
    scalars[k.ELAPSED] += scalars[k.LENGTH]
    scalars[k.NULL_MAX] = max(scalars[k.NULL_MAX], scalars[k.NULL])
    scalars[k.LIMITED_SUM] += scalars[k.LIMITED]
    scalars[k.LIMITED_MAX] = max(scalars[k.LIMITED_MAX], scalars[k.LIMITED])
    for a in range(width):
        now = k.ROWS + k.NOW * width + a
        new = work[a] if control[k.THERMAL] != 0 else scalars[now]
        scalars[k.ROWS + k.EARLIER * width + a] = scalars[k.ROWS + k.RATE * width + a]
        scalars[k.ROWS + k.RATE * width + a] = (new - scalars[now]) / scalars[k.LENGTH]
        scalars[now] = new
    scalars[k.PAST_2] = scalars[k.PAST_1]
    scalars[k.PAST_1] = scalars[k.LENGTH]
    control[k.PAST] = min(control[k.PAST] + 1, 2)
    time = scalars[k.TIME] + scalars[k.LENGTH]
    if abs(scalars[k.STOP] - time) <= scalars[k.NEAR]:
        time = scalars[k.STOP]
        control[k.STATUS] = k.ARRIVED
    scalars[k.TIME] = time


@piece
def quick_masses(scalars, group, model, work, width):
    """The masses from Y and its derivatives at the expected masses, if they are near; one thread.

    work[4 width + 1:] holds the sums that ``near_masses`` needs. Returns whether they were.
    """
    for a in range(group.size):
        work[8 * width + 1 + a] = expected(scalars, a)
    return near_masses(scalars, group, model, work, width)


@piece
def add_up_events(shared, control, sums, sums_2, totals):
    """Totals over the blocks that drew events; notes a block with an illegal matrix element."""
    everything, lost, moves = 0.0, 0.0, 0.0
    for block in range(cuda.threadIdx.x, sums.shape[0], WIDE):
        everything += sums[block, k.EVERYTHING]
        lost += sums[block, k.LOST]
        moves += sums[block, k.MOVES] + sums_2[block, k.MOVES]  # of both stages
        if physics.illegal(sums[block, k.NEGATIVE], sums[block, k.POSITIVE]):
            cuda.atomic.max(control, k.FAULT, block)
    keep_sums(shared, (everything, lost), totals[k.EVERYTHING :])
    keep_sums(shared, (moves,), totals[k.MOVES :])


@piece
def add_up_cells(spread, totals, work, s, width):
    """Totals over the tiles of every species: noise of C for totals, sums of N f/E^n for work."""
    t = cuda.threadIdx.x
    tiles = spread.shape[0] // s
    for which in range(t // k.WARP, k.SPREAD * s, WIDE // k.WARP):
        a, column = which // k.SPREAD, which % k.SPREAD
        part = 0.0
        for tile in range(t % k.WARP, tiles, k.WARP):
            part += spread[a * tiles + tile, column]
        part = warp_sum(part)
        if t % k.WARP == 0:  # the noise where Y and its slope will be
            row = width * (1 + column) if column < 2 else 4 * width + 1 + width * (column - 2)
            work[row + a] = part
    cuda.syncthreads()
    if t < 2:
        total = 0.0
        for a in range(s):
            total += work[width * (1 + t) + a]
        totals[k.SUMS + t] = total
    cuda.syncthreads()


@piece
def keep_rates(scalars, channels, sums, flows):
    """Flows of every channel (``flows.flows_of``), of the state that the step started from."""
    for channel in range(cuda.threadIdx.x, channels.shape[0], WIDE):
        forward, net, above, below = 0.0, 0.0, 0.0, 0.0
        for block in range(channels[channel, k.FIRST_BLOCK], channels[channel, k.LAST_BLOCK]):
            forward += sums[block, k.FORWARD]
            net += sums[block, k.NET]
            above += sums[block, k.EVERYTHING]
            below += sums[block, k.BELOW]
        flows[channel, 0], flows[channel, 1] = forward, max(forward - net, 0.0)
        flows[channel, 2], flows[channel, 3] = above, below
    if cuda.threadIdx.x == 0:
        scalars[k.RATES_NULL] = scalars[k.NULL]


@piece
def settle(control, scalars, totals, work, width, outcome):
    """What follows from the verdict: another attempt, or the new state; one thread."""
    if outcome == k.TRIED:  # the first step: done again with the mean masses
        for a in range(width):
            now, length = scalars[k.ROWS + k.NOW * width + a], scalars[k.LENGTH]
            rate = (work[a] - now) / length
            mean = physics.mean_during(now, length, length, rate, length, rate, 0.0)
            scalars[k.ROWS + k.USED * width + a] = mean
        control[k.PHASE] = k.REAL
        return
    if outcome == k.STANDS:
        commit(control, scalars, totals, work, width)
        control[k.WANT_RATES] = 0
    if control[k.STATUS] == k.GO:
        plan(control, scalars, width)


@partial(kernel, max_registers=64)  # of 1024 threads
def conclude(
    control, scalars, sums, sums_2, spread, channels, number, group, species, p2, model, work,
    highest, flows, totals,
):  # fmt: skip
    """Judge the attempt; keep the new state or plan another attempt. One block of threads."""
    shared = cuda.shared.array(WIDE, float64)
    near_by = cuda.shared.array(NEAR_BY, float64)
    verdict = cuda.shared.array(2, int64)
    if control[k.STATUS] != k.GO:
        return
    t = cuda.threadIdx.x
    width = (scalars.size - k.ROWS) // k.MASS_ROWS
    if work.size <= NEAR_BY:
        work = near_by
    add_up_events(shared, control, sums, sums_2, totals)
    add_up_cells(spread, totals, work, group.size, width)
    if t == 0:
        verdict[0] = judge(control, scalars, totals)
        verdict[1] = 0
        if verdict[0] != k.AGAIN and control[k.THERMAL] != 0:
            verdict[1] = 0 if quick_masses(scalars, group, model, work, width) else 1
    cuda.syncthreads()
    if verdict[0] == k.STANDS and control[k.WANT_RATES] != 0:
        keep_rates(scalars, channels, sums, flows)
    if verdict[1] != 0:
        solve_masses(
            shared, control, scalars, number, 0, group, p2, model,
            scalars, k.ROWS + k.NOW * width, work, width,
        )  # fmt: skip
    cuda.syncthreads()
    if t == 0:
        if control[k.STATUS] == k.GO:
            settle(control, scalars, totals, work, width, verdict[0])
        for index in (k.MOVED, k.DIFFERENCE, k.TOTAL, k.ILLEGAL, k.MANUAL):
            control[index] = 0
        for a in range(species.shape[0]):
            highest[1 - control[k.CURRENT], a] = 0
