"""Kernels that apply events on the CPU: net transfer, separate gain and loss, limits.

An event has six cells (two nodes, a low and a high pair), a weight, and the split between the
pairs.
"""

import numpy as np

from ...util.jit import kernel, scalar
from ..physics import compiled as physics
from .collision_events import FORWARD, NET, X, Y, event_exponents


@kernel
def fill_logarithms(number, unit, degeneracy, eta, table, occupancy):
    """Fill ln(f/F), ln F and f at the nodes of one species from the fixed-point number N f."""
    scale = unit / degeneracy
    for i in range(number.size):
        f = number[i] * scale
        occupancy[i] = f
        table[i, 0], table[i, 1] = physics.logarithms(f, eta)


@scalar
def chunk_of(group, chunk):
    """Return the number of events of a chunk, and their cells, weights and splits."""
    counts, capacity, (legs, weights, ratios) = group
    part = slice(chunk * capacity, chunk * capacity + counts[chunk])
    return counts[chunk], legs[part], weights[part], ratios[part]


@scalar
def add_to_pairs(cells, legs, i, low, high):
    """Add to the cells of the low and of the high pair of an event."""
    cells[legs[i, 2]] += low
    cells[legs[i, 3]] += low
    cells[legs[i, 4]] += high
    cells[legs[i, 5]] += high


@kernel
def amounts(count, legs, weights, ratios, table, w):
    """Compute net and forward flow of every event; return the sums of forward, backward, |net|."""
    for i in range(count):
        w[X + i], w[Y + i] = event_exponents(legs[i], table, ratios[i])
    for i in range(count):
        w[NET + i], w[FORWARD + i] = physics.flow(w[X + i], w[Y + i])
    forward, net, moved = 0.0, 0.0, 0.0
    for i in range(count):
        w[NET + i] *= weights[i]
        net += w[NET + i]
        moved += abs(w[NET + i])
        forward += w[FORWARD + i] * weights[i]
    return forward, max(forward - net, 0.0), moved  # rounding may give a negative difference


@kernel
def deposit(count, legs, ratios, scale, only_p, w, total):
    """Move whole quanta: into p and k3, out of the low and the high pair.

    only_p : without symmetric sampling, a sample changes only the leg p
    """
    for i in range(count):
        amount = physics.nearest_integer(scale * w[NET + i])
        if amount == 0.0:
            continue
        whole = np.int64(amount)
        total[legs[i, 0]] += whole
        if not only_p:
            total[legs[i, 1]] += whole
            low, high = physics.shares(whole, ratios[i])
            add_to_pairs(total, legs, i, -low, -high)


@kernel
def limits(number, demands, capacity, fermion, allowance, low, high):
    """Fill limits on the losses of cells and, for fermions, on gains; demands : loss and gain."""
    loss, gain = demands
    for i in range(number.size):
        low[i] = physics.bound(number[i], loss[i], allowance)
        high[i] = 1.0
        if fermion[i]:
            high[i] = physics.bound(capacity[i] - number[i], gain[i], allowance)


@kernel
def limit(count, legs, ratios, bounds, w):
    """Scale whole events by the tightest limit of their legs; return the amount refused."""
    loss, gain = bounds
    refused = 0.0
    for i in range(count):
        net = w[NET + i]
        if net == 0.0:
            continue
        into, out = (gain, loss) if net > 0.0 else (loss, gain)
        s = physics.tightest(
            into[legs[i, 0]], into[legs[i, 1]], out[legs[i, 2]], out[legs[i, 3]],
            out[legs[i, 4]], out[legs[i, 5]], ratios[i],
        )  # fmt: skip
        refused += abs(net) * (1.0 - s)
        w[NET + i] = s * net
    return refused


# --- several chunks in one call: threads synchronize only between calls -------------------------
# group: number of events in each of its chunks, capacity of a chunk, and the events themselves


@kernel
def apply_group(group, table, scale, bounds, only_p, w, total, sums):
    """Add the net flows of a group of chunks to the cells, limited if bounds are given."""
    for chunk in range(group[0].size):
        n, legs, weights, ratios = chunk_of(group, chunk)
        sums[chunk, 0], sums[chunk, 1], sums[chunk, 2] = amounts(n, legs, weights, ratios, table, w)
        if bounds[0].size > 0:
            sums[chunk, 3] = limit(n, legs, ratios, bounds, w)
        deposit(n, legs, ratios, scale, only_p, w, total)


@kernel
def gross_group(group, table, scale, only_p, w, gain, loss):
    """Add gains and losses separately: e^x into the nodes, e^y out of them."""
    for chunk in range(group[0].size):
        n, legs, weights, ratios = chunk_of(group, chunk)
        amounts(n, legs, weights, ratios, table, w)
        for i in range(n):
            ahead = w[FORWARD + i] * weights[i]
            back = max(ahead - w[NET + i], 0.0)
            for into, out, flow in ((gain, loss, ahead), (loss, gain, back)):
                whole = np.int64(physics.nearest_integer(scale * flow))
                into[legs[i, 0]] += whole
                if not only_p:
                    into[legs[i, 1]] += whole
                    low, high = physics.shares(whole, ratios[i])
                    add_to_pairs(out, legs, i, low, high)


@kernel
def demands_group(group, table, scale, w, loss, gain):
    """Add the quanta that all events would take from and add to every cell (rounded up)."""
    for chunk in range(group[0].size):
        n, legs, weights, ratios = chunk_of(group, chunk)
        amounts(n, legs, weights, ratios, table, w)
        for i in range(n):
            amount = scale * w[NET + i]
            into, out = (gain, loss) if amount > 0.0 else (loss, gain)
            whole, low, high = physics.demand(amount, ratios[i])
            into[legs[i, 0]] += whole
            into[legs[i, 1]] += whole
            add_to_pairs(out, legs, i, low, high)
