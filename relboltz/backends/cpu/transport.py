"""One substep of transport on the CPU: threads share independent pencils.

The compiler vectorises the loops over lanes: quantities common to all lanes are computed first.
"""

import numpy as np

from ...transport import phases, plane
from ...transport.plane import ALONG, LANES, NUMBER, OPEN, STAGE, SUM_ALONG, SUM_UP, UP
from ...util.jit import build, functions_of, kernel, scalar
from ..physics import compiled as physics

compiled = build(
    functions_of(plane, phases),
    scalar,
    {"floor": physics.floor, "nearest_integer": physics.nearest_integer},
)


@kernel
def flow_field(w, q2, m2, push, p, dp, dx, shape):
    """Fill velocity on x faces and force on p faces; push : external force of every x cell."""
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        for j in range(m):
            for lane in range(lanes):
                compiled.set_speed(w, i, j, lane, p[j], q2[lane], m2, dp, shape)
    for i in range(n):
        if not compiled.is_pushed(i, m2, push):  # the row stays 0
            continue
        for j in range(m + 1):
            for lane in range(lanes):
                compiled.set_force(w, i, j, lane, q2[lane], m2, push, dp, dx, shape)


@kernel
def fluxes(w, along, up, m2, push, upwind, shape):
    """Fill the fluxes of a stage, or the upwind fluxes of the whole substep.

    In the second case, the sums become the excess over upwind. along and up : substep over dx, dp
    """
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        for j in range(m):
            face = compiled.x_face(i, j, shape)
            for lane in range(lanes):
                if upwind:
                    compiled.upwind_along(w, lane, along, face)
                else:
                    compiled.flux_along(w, lane, along, face)
    for i in range(n):
        if not compiled.is_pushed(i, m2, push):
            continue
        for j in range(m + 1):
            face = compiled.p_face(i, j, shape)
            for lane in range(lanes):
                if upwind:
                    compiled.upwind_up(w, lane, up, face)
                else:
                    compiled.flux_up(w, lane, up, face)


@kernel
def make_stage(w, along, up, part, shape):
    """Fill STAGE = NUMBER plus a fraction of the change by the fluxes in two rows."""
    for i in range(shape[0]):
        here = compiled.spot(i, 0, shape)
        for k in range(here, here + shape[1] * shape[2]):
            compiled.advance(w, k, along, up, part, shape)


@kernel
def runge_kutta(w, along, up, m2, push, shape):
    """Sum the weighted fluxes of the three stages in SUM_ALONG and SUM_UP."""
    for keep, share, part in plane.STAGES:
        fluxes(w, along, up, m2, push, False, shape)
        for k in range(compiled.length(shape)):
            compiled.add_up(w, k, keep, share)
        if part > 0.0:
            make_stage(w, SUM_ALONG, SUM_UP, part, shape)


@kernel
def find_limits(w, held, capacity, only, shape):
    """Fill the limits on outflow and inflow of every cell."""
    for i in range(shape[0]):
        here = compiled.spot(i, 0, shape)
        for k in range(here, here + shape[1] * shape[2]):
            compiled.set_limits(w, k, held, capacity, only, shape)


@kernel
def limited_fluxes(w, strict, shape):
    """Compute the whole-quanta fluxes that the limits allow."""
    n, m, lanes, _, _ = shape
    for i in range(n + 1):
        for j in range(m):
            face = compiled.neighbours_along(i, j, shape)
            for lane in range(lanes):
                compiled.limited_along(w, lane, strict, face)
    for i in range(n):
        for j in range(m + 1):
            face = compiled.neighbours_up(i, j, shape)
            for lane in range(lanes):
                compiled.limited_up(w, lane, strict, face)


@kernel
def mark_illegal(w, capacity, everything, shape):
    """Mark the cells that the fluxes would take out of bounds; return their number."""
    bad = 0
    for i in range(shape[0]):
        here = compiled.spot(i, 0, shape)
        for k in range(here, here + shape[1] * shape[2]):
            bad += compiled.marks(w, k, capacity, everything, shape)
    return bad


@kernel
def limit_fluxes(w, capacity, shape):
    """Compute whole-quanta fluxes that leave every cell within its bounds.

    Limits apply to the excess over the upwind fluxes, which by themselves keep f legal where the
    flow is divergence-free. Violations due to rounding, closed momentum faces or an external force
    are repaired cell by cell: a cell that is still illegal gives no more than it had and takes no
    more than fits.
    """
    make_stage(w, ALONG, UP, 1.0, shape)
    find_limits(w, STAGE, capacity, False, shape)
    limited_fluxes(w, False, shape)
    for k in range(compiled.length(shape)):
        compiled.accept_x_fluxes(w, k)
    if mark_illegal(w, capacity, False, shape) == 0:
        return
    for k in range(compiled.length(shape)):
        compiled.begin_mending(w, k)
    for turn in range(plane.MOST_PASSES):
        find_limits(w, NUMBER, capacity, True, shape)
        limited_fluxes(w, True, shape)
        if mark_illegal(w, capacity, turn == plane.MOST_PASSES - 2, shape) == 0:
            return


@kernel
def refusal(w, up, shape):
    """Return the quanta that the force would have pushed through closed momentum faces."""
    low, high = 0.0, 0.0
    for i in range(shape[0]):
        for lane in range(shape[2]):
            low += compiled.refused_below(w, i, lane, up, shape)
            high += compiled.refused_above(w, i, lane, up, shape)
    return low, high


@kernel
def sweep(number, squares, push, span, lines, walls, steps, p, transverse_p2, capacity, w, found):
    """Advance the pencils of the groups in ``span``, first to last, along one axis, in place.

    number : (sites, species, nodes) in quanta; squares : (sites, species ...), m^2 to use
    push : (sites, species, 2), external force along the axis, constant and linear in p
    lines : space cells and their distance in sites; momentum cells and their distance in nodes
    walls : kinds of boundary in x and p; steps : substep [fm], dx [fm], dp [GeV]
    capacity : quanta that a cell of each species can hold
    found : ledger (2, species, nodes) of quanta that left through open walls; for every group the
        energy that left and the quanta that closed momentum faces refused, low and high side
    """

    n, site_step, m, node_step = lines
    dt, dx, dp = steps
    along, up = dt / dx, dt / dp
    ledger, energies, refused = found
    kinds, nodes = number.shape[1:]
    across = nodes // m
    blocks = (across + LANES - 1) // LANES
    m2 = np.empty(n + 2)
    for group in range(span[0], span[1]):
        block, rest = group % blocks, group // blocks
        a, line = rest % kinds, rest // kinds
        lanes = min(LANES, across - block * LANES)
        shape = (n, m, lanes, walls[0], walls[1])
        start = compiled.transverse(line, site_step, n)
        q2 = transverse_p2[block * LANES : block * LANES + lanes]
        for i in range(n + 2):
            m2[i] = squares[start + compiled.next_site(i - 1, n, walls[0]) * site_step, a]
        w[:, : compiled.length(shape)] = 0.0
        for i in range(n):
            row = number[start + i * site_step, a]
            for j in range(m):
                here = compiled.spot(i, j, shape)
                for lane in range(lanes):
                    node = compiled.transverse(block * LANES + lane, node_step, m) + j * node_step
                    w[NUMBER, here + lane] = row[node]
                    w[STAGE, here + lane] = row[node]
        force = push[start::site_step, a]
        flow_field(w, q2, m2, force, p, dp, dx, shape)
        runge_kutta(w, along, up, m2, force, shape)
        refused[group, 0], refused[group, 1] = refusal(w, up, shape)
        fluxes(w, along, up, m2, force, True, shape)
        limit_fluxes(w, capacity[a], shape)
        energies[group, 0], energies[group, 1] = 0.0, 0.0
        for i in range(n):
            row = number[start + i * site_step, a]
            at_wall = walls[0] == OPEN and (i == 0 or i == n - 1)
            for j in range(m):
                for lane in range(lanes):
                    node = compiled.transverse(block * LANES + lane, node_step, m) + j * node_step
                    here = compiled.spot(i, j, shape) + lane
                    row[node] += compiled.gained(w, here, shape)
                    if at_wall:
                        energy = np.sqrt(p[j] * p[j] + q2[lane] + m2[i + 1])
                        for side in range(2):
                            out = compiled.leaves(w, i, here, side, shape)
                            ledger[side, a, node] += np.int64(out)
                            energies[group, side] += out * energy
