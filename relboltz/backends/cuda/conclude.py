"""The end of a step: masses of the new state; it replaces the old one, or the step is done again.

A step is planned and judged by single threads; everything they decide stays in ``control`` and
``scalars``, so that the host launches steps without looking.
"""

from __future__ import annotations

import math
from functools import partial

from numba import float64, int64

from .driver import kernel
from .layout import (
    ACCEPTED,
    AGAIN,
    ARRIVED,
    AT_REST,
    AUTOMATIC,
    BEFORE,
    BELOW,
    CELL,
    CHANGED,
    CURRENT,
    DIFFERENCE,
    ERROR,
    EVERYTHING,
    FAULT,
    FAULTY,
    FIRST,
    FIRST_BLOCK,
    FORWARD,
    GO,
    ILLEGAL,
    LANES,
    LARGEST_SUM,
    LAST_BLOCK,
    LAST_LENGTH,
    LENGTH,
    LIMIT,
    LIMITED,
    LIMITED_MAX,
    LIMITED_SUM,
    LOST,
    MANUAL,
    MASS_ROWS,
    MOVED,
    MOVES,
    NEAR,
    NEAR_BY,
    NEGATIVE,
    NET,
    NO_MASSES,
    NODES,
    NOISE,
    NOT_FINITE,
    NOW,
    NULL,
    NULL_MAX,
    PAST,
    PAST_1,
    PAST_2,
    PHASE,
    POSITIVE,
    RATES_NULL,
    RATIO,
    REAL,
    ROWS,
    SCALE,
    SCATTER,
    SIZE,
    STANDS,
    STATUS,
    STEP,
    STOP,
    SUMS,
    SYMMETRICAL,
    THERMAL,
    TIME,
    TOLERANCE,
    TOTAL,
    TRIAL,
    TRIED,
    UNIT,
    USED,
    WANT_RATES,
    WANTED,
    WIDE,
)
from .physics import (
    adapted,
    block_sum,
    cuda,
    eliminate,
    expected,
    illegal,
    inverse_energy,
    largest_change,
    mean_ahead,
    piece,
    step_length,
)


@kernel
def set_course(control, scalars, stop):
    """Go on to a stop [fm]; the rates of the state as it is now are wanted."""
    width = (scalars.size - ROWS) // MASS_ROWS
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
    """Whether the attempt stands, was a first trial, or has to be done again; sets the status."""
    lost = totals[LOST] / totals[EVERYTHING] if totals[EVERYTHING] > 0.0 else 0.0
    moved = float(control[MOVED])
    scalars[NULL] = lost
    scalars[ERROR] = control[DIFFERENCE] / max(float(control[TOTAL]), 1.0)
    scalars[RATIO] = control[DIFFERENCE] / moved if moved > 0.0 else 0.0
    quanta = scalars[SCALE] * totals[MOVES]
    if control[FAULT] >= 0:
        control[STATUS] = FAULTY
        return AGAIN
    if not math.isfinite(quanta):
        control[STATUS] = NOT_FINITE
        return AGAIN
    if control[MANUAL] == 0:
        scalars[LIMITED] = 0.0
        if quanta >= LARGEST_SUM or (control[SYMMETRICAL] != 0 and control[ILLEGAL] != 0):
            control[STATUS] = LIMIT
            return AGAIN
    if control[PHASE] == TRIAL:
        return TRIED
    if control[AUTOMATIC] != 0:
        noise = totals[SUMS] / totals[SUMS + 1] if totals[SUMS + 1] > 0.0 else 0.0
        stands, scalars[WANTED] = adapted(
            scalars[LENGTH], scalars[ERROR], scalars[RATIO],
            largest_change(scalars[TOLERANCE], noise), scalars[WANTED], scalars[TOLERANCE],
        )  # fmt: skip
        if not stands:
            return AGAIN
    return STANDS


@piece
def commit(control, scalars, totals, width):
    """The new state becomes the state; what the step showed of the accuracy is added up."""
    control[ACCEPTED] += 1
    control[STEP] += 1
    control[CURRENT] = 1 - control[CURRENT]
    apart, size = totals[SUMS], totals[SUMS + 1]
    scalars[NOISE] = math.sqrt(apart / size) if size > 0.0 else math.nan
    scalars[SCATTER] += apart
    scalars[SIZE] += size
    scalars[CHANGED] += scalars[RATIO] * scalars[LENGTH]
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
def newton_step(model, work, s, width):
    """Newton's step for m_a^2 = m_a,0^2 + Sum_b K_ab Y_b, from m^2, Y and its slope in work."""
    matrix = work[7 * width + 1 :]
    for a in range(s):
        wanted = model[s * s + a]
        for b in range(s):
            wanted += model[a * s + b] * work[width + b]
            matrix[a * s + b] = -model[a * s + b] * work[2 * width + b]
        matrix[a * s + a] += 1.0
        work[3 * width + a] = wanted - work[a]
    eliminate(matrix, work[3 * width :], s)


@piece
def screening_of(model, work, s, width):
    """Squared screening masses that follow from Y in work, behind those of the s species."""
    rows = s * s + s
    for row in range(width - s):
        screening = model[rows + (width - s) * s + row]
        for a in range(s):
            screening += model[rows + row * s + a] * work[width + a]
        work[s + row] = screening


@piece
def expand(scalars, group, work, width):
    """Y and its slope at the masses in work, by their Taylor series about the expected ones."""
    sums = 4 * width + 1
    for a in range(group.size):
        d = work[a] - expected(scalars, a)
        one, three, five = work[sums + a], work[sums + width + a], work[sums + 2 * width + a]
        couples = scalars[CELL] * scalars[UNIT] if group[a] >= 0 else 0.0
        work[width + a] = couples * (one + d * (-0.5 * three + d * 0.375 * five))
        work[2 * width + a] = couples * (-0.5 * three + d * 0.75 * five)


@piece
def quick_masses(scalars, group, model, work, width):
    """The masses from Y and its derivatives at the expected masses; one thread.

    work[4 width + 1:] holds Sum f/E, Sum f/E^3, Sum f/E^5 of every species. Returns whether the
    masses are so near to the expected ones that what is left out is below rounding.
    """
    s = group.size
    for a in range(s):
        work[a] = expected(scalars, a)
    for _ in range(2):  # errors of 1e-5, 1e-10, 1e-20
        expand(scalars, group, work, width)
        newton_step(model, work, s, width)
        for a in range(s):
            work[a] += work[3 * width + a]
    expand(scalars, group, work, width)
    screening_of(model, work, s, width)
    near = True
    for a in range(s):
        d = work[a] - expected(scalars, a)
        near = near and abs(d) <= 1e-5 * work[a] and abs(work[3 * width + a]) <= 1e-8 * work[a]
    return near


@piece
def node_sums(shared, number, row, group, g, n, unit, p2, m2, at_rest):
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
def solve_masses(
    shared, control, scalars, number, row, group, p2, model, start, first, work, width
):  # fmt: skip
    """The masses by Newton's iteration over all nodes of a row of the state.

    start, first : where squared masses of a similar state are found
    model : K, constant m^2, couplings and constants of the screenings. work : m^2 of species and
    screenings, Y, slope, step; how far the iteration is; three sums of every species; the matrix.
    """
    t = cuda.threadIdx.x
    s = group.size
    n = control[NODES]
    if t == 0:
        for a in range(width):
            work[a] = start[first + a]
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
                    shared, number, row, group, leader, n, scalars[UNIT], p2, work[a],
                    scalars[AT_REST],
                )  # fmt: skip
            if t == 0:
                work[width + a] = y * scalars[CELL] if leader >= 0 else 0.0
                work[2 * width + a] = -0.5 * third * scalars[CELL] if leader >= 0 else 0.0
        if t == 0:
            if work[4 * width] > 0.0:  # Y of the converged masses: the screening masses follow
                screening_of(model, work, s, width)
                work[4 * width] = 2.0
            else:
                newton_step(model, work, s, width)
                largest = 0.0
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


@piece
def add_up_events(shared, control, sums, sums_2, totals):
    """Totals over the blocks that drew events; notes a block with an illegal matrix element."""
    t = cuda.threadIdx.x
    everything = 0.0
    lost = 0.0
    moves = 0.0
    for block in range(t, sums.shape[0], WIDE):
        everything += sums[block, EVERYTHING]
        lost += sums[block, LOST]
        moves += sums[block, MOVES] + sums_2[block, MOVES]  # of both stages
        if illegal(sums[block, NEGATIVE], sums[block, POSITIVE]):
            cuda.atomic.max(control, FAULT, block)
    everything = block_sum(shared, everything)
    lost = block_sum(shared, lost)
    moves = block_sum(shared, moves)
    if t == 0:
        totals[EVERYTHING] = everything
        totals[LOST] = lost
        totals[MOVES] = moves


@piece
def add_up_cells(shared, spread, totals, work, s, width):
    """Totals over the tiles of every species: noise of C for totals, sums of N f/E^n for work."""
    t = cuda.threadIdx.x
    if t == 0:
        totals[SUMS] = 0.0
        totals[SUMS + 1] = 0.0
    many = 5 * s
    tiles = spread.shape[0] // s
    for base in range(0, many, WIDE // LANES):
        which = base + t // LANES
        part = 0.0
        if which < many:
            for tile in range(t % LANES, tiles, LANES):
                part += spread[which // 5 * tiles + tile, which % 5]
        shared[t] = part
        cuda.syncthreads()
        if t == 0:
            for row in range(min(WIDE // LANES, many - base)):
                part = 0.0
                for lane in range(LANES):
                    part += shared[row * LANES + lane]
                a, column = (base + row) // 5, (base + row) % 5
                if column < 2:
                    totals[SUMS + column] += part
                else:
                    work[4 * width + 1 + (column - 2) * width + a] = part
        cuda.syncthreads()


@piece
def keep_rates(scalars, channels, sums, flows):
    """Flows of every channel (``Machine.flows_of``), of the state that the step started from."""
    for channel in range(cuda.threadIdx.x, channels.shape[0], WIDE):
        forward = 0.0
        net = 0.0
        above = 0.0
        below = 0.0
        for block in range(channels[channel, FIRST_BLOCK], channels[channel, LAST_BLOCK]):
            forward += sums[block, FORWARD]
            net += sums[block, NET]
            above += sums[block, EVERYTHING]
            below += sums[block, BELOW]
        flows[channel, 0] = forward
        flows[channel, 1] = max(forward - net, 0.0)
        flows[channel, 2] = above
        flows[channel, 3] = below
    if cuda.threadIdx.x == 0:
        scalars[RATES_NULL] = scalars[NULL]


@piece
def settle(control, scalars, totals, work, width, outcome):
    """What follows from the verdict: another attempt, or the new state; one thread."""
    if outcome == TRIED:  # the first step: done again with the mean masses
        for a in range(width):
            now = scalars[ROWS + NOW * width + a]
            scalars[ROWS + USED * width + a] = 0.5 * (now + work[a])
        control[PHASE] = REAL
        return
    if outcome == STANDS:
        commit(control, scalars, totals, width)
        control[WANT_RATES] = 0
        if control[THERMAL] != 0:
            for a in range(width):
                scalars[ROWS + NOW * width + a] = work[a]
    if control[STATUS] == GO:
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
    if control[STATUS] != GO:
        return
    t = cuda.threadIdx.x
    width = (scalars.size - ROWS) // MASS_ROWS
    if work.size <= NEAR_BY:
        work = near_by
    add_up_events(shared, control, sums, sums_2, totals)
    add_up_cells(shared, spread, totals, work, group.size, width)
    if t == 0:
        verdict[0] = judge(control, scalars, totals)
        verdict[1] = 0
        if verdict[0] != AGAIN and control[THERMAL] != 0:
            verdict[1] = 0 if quick_masses(scalars, group, model, work, width) else 1
    cuda.syncthreads()
    if verdict[0] == STANDS and control[WANT_RATES] != 0:
        keep_rates(scalars, channels, sums, flows)
    if verdict[1] != 0:
        solve_masses(
            shared, control, scalars, number, 1 - control[CURRENT], group, p2, model,
            scalars, ROWS + NOW * width, work, width,
        )  # fmt: skip
    cuda.syncthreads()
    if t == 0:
        if control[STATUS] == GO:
            settle(control, scalars, totals, work, width, verdict[0])
        for index in (MOVED, DIFFERENCE, TOTAL, ILLEGAL, MANUAL):
            control[index] = 0
        for a in range(species.shape[0]):
            highest[1 - control[CURRENT], a] = 0
