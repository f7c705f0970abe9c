"""One substep of transport on the CPU: pencils are independent, threads share them out."""

from __future__ import annotations

import numpy as np

from ...compiling import build, kernel, scalar
from ...transport.plane import (
    ALONG,
    CLOSED,
    FORCE,
    FUNCTIONS,
    LANES,
    MOST_PASSES,
    NUMBER,
    OPEN,
    SPEED,
    STAGE,
    SUM_ALONG,
    SUM_UP,
    UP,
)
from ..physics import compiled as physics

compiled = build(FUNCTIONS, scalar, {"floor": physics.floor})
velocity = compiled.velocity
force = compiled.force
reconstruct = compiled.reconstruct
reconstruct_at_wall = compiled.reconstruct_at_wall
limit = compiled.limit
transverse = compiled.transverse
spot = compiled.spot
place = compiled.place
beside = compiled.beside
next_site = compiled.next_site
stencil_along = compiled.stencil_along
outside_along = compiled.outside_along
stencil_up = compiled.stencil_up
passes_along = compiled.passes_along
passes_up = compiled.passes_up
mirrored = compiled.mirrored
taken = compiled.taken
given = compiled.given
allowed = compiled.allowed
truncated = compiled.truncated
nearest_integer = physics.nearest_integer


@kernel
def flow_field(w, q2, m2, p, dp, dx, shape):
    """Velocity on x faces and force on p faces; m2 holds n + 2 values, one beyond each edge."""
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        edge = 0.5 * (m2[i] + m2[i + 1])
        after = 0.5 * (m2[i + 1] + m2[i + 2]) if i < n else edge
        for j in range(m + 1):
            low = (j - 0.5 * m) * dp
            high = (j + 1 - 0.5 * m) * dp
            here = spot(i, j, shape)
            if j < m:
                for lane in range(lanes):
                    w[SPEED, here + lane] = velocity(p[j], low * low, high * high, q2[lane], edge)
            if i < n and edge != after:
                for lane in range(lanes):
                    w[FORCE, here + lane] = force(low * low, q2[lane], edge, after, dx)


@kernel
def fluxes(w, along, up, m2, shape):
    """Fluxes of a stage; along and up: substep over dx and dp."""
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        for j in range(m):
            here = spot(i, j, shape)
            a, b, c, d, e = stencil_along(i, j, shape)
            scale = along * passes_along(i, j, shape)
            behind, ahead = outside_along(i, j, shape)
            if behind + ahead > 0:
                for k in range(lanes):
                    edge = reconstruct_at_wall(
                        w[STAGE, a + k], w[STAGE, b + k], w[STAGE, c + k], w[STAGE, d + k],
                        w[STAGE, e + k], behind, ahead,
                    )  # fmt: skip
                    w[ALONG, here + k] = scale * w[SPEED, here + k] * edge
                continue
            for k in range(lanes):
                edge = reconstruct(
                    w[STAGE, a + k], w[STAGE, b + k], w[STAGE, c + k], w[STAGE, d + k],
                    w[STAGE, e + k],
                )  # fmt: skip
                w[ALONG, here + k] = scale * w[SPEED, here + k] * edge
    for i in range(n):
        if m2[i] == m2[i + 2]:  # no force: the row stays 0
            continue
        upward = m2[i] > m2[i + 2]
        for j in range(m + 1):
            here = spot(i, j, shape)
            a, b, c, d, e = stencil_up(i, j, shape, upward)
            scale = up * passes_up(j, shape)
            for k in range(lanes):
                edge = reconstruct(
                    w[STAGE, a + k], w[STAGE, b + k], w[STAGE, c + k], w[STAGE, d + k],
                    w[STAGE, e + k],
                )  # fmt: skip
                w[UP, here + k] = scale * w[FORCE, here + k] * edge


@kernel
def add_up(w, keep, share):
    """sum = keep sum + share flux, for all faces."""
    for k in range(w.shape[1]):
        w[SUM_ALONG, k] = keep * w[SUM_ALONG, k] + share * w[ALONG, k]
    for k in range(w.shape[1]):
        w[SUM_UP, k] = keep * w[SUM_UP, k] + share * w[UP, k]


@kernel
def advance(w, along, up, part, shape):
    """STAGE = NUMBER and a part of what the fluxes in two rows bring."""
    n, m, lanes, _, _ = shape
    right = (m + 1) * lanes
    for i in range(n):
        here = spot(i, 0, shape)
        for k in range(here, here + m * lanes):
            x = w[along, k] - w[along, k + right]
            w[STAGE, k] = w[NUMBER, k] + part * (x + (w[up, k] - w[up, k + lanes]))


@kernel
def runge_kutta(w, along, up, m2, shape):
    """Fluxes of the three stages, weighted, in SUM_ALONG and SUM_UP."""
    fluxes(w, along, up, m2, shape)
    add_up(w, 0.0, 1.0)
    advance(w, SUM_ALONG, SUM_UP, 1.0, shape)
    fluxes(w, along, up, m2, shape)
    add_up(w, 1.0, 1.0)
    advance(w, SUM_ALONG, SUM_UP, 0.25, shape)
    fluxes(w, along, up, m2, shape)
    add_up(w, 1.0 / 6.0, 4.0 / 6.0)


@kernel
def upwind_fluxes(w, along, up, m2, shape):
    """Upwind fluxes of the whole substep; the sums become what goes beyond them."""
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        for j in range(m):
            here, c = spot(i, j, shape), stencil_along(i, j, shape)[2]
            scale = along * passes_along(i, j, shape)
            for k in range(lanes):
                flux = scale * w[SPEED, here + k] * w[NUMBER, c + k]
                w[ALONG, here + k] = flux
                w[SUM_ALONG, here + k] -= flux
    for i in range(n):
        upward = m2[i] > m2[i + 2]
        for j in range(m + 1):
            here, c = spot(i, j, shape), stencil_up(i, j, shape, upward)[2]
            scale = up * passes_up(j, shape)
            for k in range(lanes):
                flux = scale * w[FORCE, here + k] * w[NUMBER, c + k]
                w[UP, here + k] = flux
                w[SUM_UP, here + k] -= flux


@kernel
def set_limits(w, held, capacity, only, shape):
    """What of the fluxes in the sums every cell can give and take, from f in the row ``held``.

    only : just cells marked in STAGE; the others keep their limits. Limits replace SPEED, FORCE.
    """
    n, m, lanes, _, _ = shape
    right = (m + 1) * lanes
    for i in range(n):
        here = spot(i, 0, shape)
        for k in range(here, here + m * lanes):
            if only and w[STAGE, k] == 0.0:
                continue
            x0, x1 = w[SUM_ALONG, k], w[SUM_ALONG, k + right]
            p0, p1 = w[SUM_UP, k], w[SUM_UP, k + lanes]
            low = w[held, k]
            w[SPEED, k] = limit(low, taken(x0, x1, p0, p1))
            w[FORCE, k] = limit(capacity - low, given(x0, x1, p0, p1))


@kernel
def limited_fluxes(w, strict, shape):
    """Whole fluxes in ALONG and UP: upwind and what the limits allow of the sums beyond it.

    strict : the sums are whole fluxes themselves, to be cut down where limits ask for it
    """
    n, m, lanes, wall, _ = shape
    for i in range(n + 1):
        from_outside, to_outside = wall == OPEN and i == 0, wall == OPEN and i == n
        for j in range(m):
            q, sign = mirrored(i, j, shape)
            here, face = spot(i, j, shape), spot(i, q, shape)
            left, right = place(i - 1, q, shape), place(i, q, shape)
            for k in range(lanes):
                more = w[SUM_ALONG, face + k]
                s = allowed(
                    more, 1.0 if from_outside else w[SPEED, left + k],
                    1.0 if from_outside else w[FORCE, left + k],
                    1.0 if to_outside else w[SPEED, right + k],
                    1.0 if to_outside else w[FORCE, right + k],
                )  # fmt: skip
                if strict:
                    w[ALONG, here + k] = sign * truncated(more, s)
                else:
                    # the other half of a wall is still needed: kept apart
                    w[STAGE, here + k] = sign * nearest_integer(w[ALONG, face + k] + s * more)
    for i in range(n):
        for j in range(m + 1):
            here = spot(i, j, shape)
            left, right = beside(i, j - 1, shape), beside(i, j, shape)
            for k in range(lanes):
                more = w[SUM_UP, here + k]
                s = allowed(
                    more, w[SPEED, left + k], w[FORCE, left + k], w[SPEED, right + k],
                    w[FORCE, right + k],
                )  # fmt: skip
                if strict:
                    w[UP, here + k] = truncated(more, s)
                else:
                    w[UP, here + k] = nearest_integer(w[UP, here + k] + s * more)


@kernel
def mark_illegal(w, capacity, everything, shape):
    """Mark the cells that the fluxes would take beyond their bounds; returns how many."""
    n, m, lanes, _, _ = shape
    right = (m + 1) * lanes
    bad = 0
    for i in range(n):
        here = spot(i, 0, shape)
        for k in range(here, here + m * lanes):
            x = w[ALONG, k] - w[ALONG, k + right]
            new = w[NUMBER, k] + x + (w[UP, k] - w[UP, k + lanes])
            if new < 0.0 or new > capacity or everything:
                w[STAGE, k] = 1.0
                bad += 1
    return bad


@kernel
def limit_fluxes(w, capacity, shape):
    """Whole fluxes that leave every cell within its bounds.

    Limits are found for the fluxes beyond upwind, which alone keeps f legal where the flow is free
    of divergence. What rounding or closed momentum faces spoil is mended cell by cell: a cell that
    is still illegal gives no more than it had and takes no more than fits.
    """
    advance(w, ALONG, UP, 1.0, shape)
    set_limits(w, STAGE, capacity, False, shape)
    limited_fluxes(w, False, shape)
    for k in range(w.shape[1]):
        w[ALONG, k] = w[STAGE, k]
        w[STAGE, k] = 0.0
    if mark_illegal(w, capacity, False, shape) == 0:
        return
    for k in range(w.shape[1]):
        w[SUM_ALONG, k] = w[ALONG, k]
        w[SUM_UP, k] = w[UP, k]
        w[SPEED, k] = 1.0
        w[FORCE, k] = 1.0
    for sweep in range(MOST_PASSES):
        set_limits(w, NUMBER, capacity, True, shape)
        limited_fluxes(w, True, shape)
        if mark_illegal(w, capacity, sweep == MOST_PASSES - 2, shape) == 0:
            return


@kernel
def refusal(w, up, shape):
    """Quanta that the force would have pushed through closed momentum faces."""
    n, m, lanes, _, kind = shape
    low, high = 0.0, 0.0
    if kind == CLOSED:
        for i in range(n):
            for lane in range(lanes):
                here = spot(i, 0, shape) + lane
                low += max(-up * w[FORCE, here] * w[NUMBER, here], 0.0)
                here = spot(i, m, shape) + lane
                high += max(up * w[FORCE, here] * w[NUMBER, here - lanes], 0.0)
    return low, high


@kernel
def sweep(number, squares, first, last, lines, walls, steps, p, transverse_p2, capacity, w, found):
    """Advance the pencils of groups first to last along one axis, in place.

    number : (sites, species, nodes) in quanta; squares : (sites, species ...), m^2 to use
    lines : space cells and their distance in sites; momentum cells and their distance in nodes
    walls : kinds of boundary in x and p; steps : substep [fm], dx [fm], dp [GeV]
    capacity : quanta that a cell of each species can hold
    found : ledger (2, species, nodes) of what left through open walls; of every group the energy
        that left and the quanta that closed momentum faces refused, low and high side
    """
    n, site_step, m, node_step = lines
    dt, dx, dp = steps
    ledger, energies, refused = found
    kinds, nodes = number.shape[1:]
    across = nodes // m
    blocks = (across + LANES - 1) // LANES
    m2 = np.empty(n + 2)
    for group in range(first, last):
        block, rest = group % blocks, group // blocks
        a, line = rest % kinds, rest // kinds
        lanes = min(LANES, across - block * LANES)
        shape = (n, m, lanes, walls[0], walls[1])
        start = transverse(line, site_step, n)
        q2 = transverse_p2[block * LANES : block * LANES + lanes]
        for i in range(n + 2):
            m2[i] = squares[start + next_site(i - 1, n, walls[0]) * site_step, a]
        part = w[:, : (n + 1) * (m + 1) * lanes]
        part[:] = 0.0
        for i in range(n):
            row = number[start + i * site_step, a]
            for j in range(m):
                here = spot(i, j, shape)
                for lane in range(lanes):
                    node = transverse(block * LANES + lane, node_step, m) + j * node_step
                    part[NUMBER, here + lane] = row[node]
                    part[STAGE, here + lane] = row[node]
        flow_field(part, q2, m2, p, dp, dx, shape)
        along, up = dt / dx, dt / dp
        runge_kutta(part, along, up, m2, shape)
        refused[group, 0], refused[group, 1] = refusal(part, up, shape)
        upwind_fluxes(part, along, up, m2, shape)
        limit_fluxes(part, capacity[a], shape)
        energies[group, 0], energies[group, 1] = 0.0, 0.0
        for i in range(n):
            row = number[start + i * site_step, a]
            for j in range(m):
                for lane in range(lanes):
                    node = transverse(block * LANES + lane, node_step, m) + j * node_step
                    here = spot(i, j, shape) + lane
                    right = here + (m + 1) * lanes
                    row[node] += (
                        np.int64(part[ALONG, here]) - np.int64(part[ALONG, right])
                        + np.int64(part[UP, here]) - np.int64(part[UP, here + lanes])
                    )  # fmt: skip
                    if walls[0] == OPEN and (i == 0 or i == n - 1):
                        energy = np.sqrt(p[j] * p[j] + q2[lane] + m2[i + 1])
                        if i == 0:
                            ledger[0, a, node] -= np.int64(part[ALONG, here])
                            energies[group, 0] -= part[ALONG, here] * energy
                        if i == n - 1:
                            ledger[1, a, node] += np.int64(part[ALONG, right])
                            energies[group, 1] += part[ALONG, right] * energy
