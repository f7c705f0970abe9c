"""Kernels that sum brackets of trial functions on the CPU: one batch of events per call.

A batch of one channel is drawn in chunks, in order, by one thread: sums do not depend on the number
of threads. An event contributes products over pairs of its legs, without signs: the caller combines
them to the linearised collision term, or to that of a tagged particle.
"""

from functools import partial

import numpy as np
from numba import types

from ...events.collisions import MORE_WORDS
from ...events.kinematics import NO_NODES
from ...util.arrays import Array
from ...util.errors import negative_element, raising_element
from ...util.jit import kernel
from ..bracket_requests import BracketRequest
from ..elements import Elements
from ..physics import compiled as physics
from . import collision_events as k
from .threads import Threads

CHUNK, WEIGHT, M2, INVERSE_Q, E, U0, U1 = k.CHUNK, k.WEIGHT, k.M2, k.INVERSE_Q, k.E, k.U0, k.U1
PX, PY, PZ, KX, KY, KZ = k.PX, k.PY, k.PZ, k.KX, k.KY, k.KZ
K1X, K1Y, K1Z, TX, TY, TZ, LOW, HIGH = k.K1X, k.K1Y, k.K1Z, k.TX, k.TY, k.TZ, k.LOW, k.HIGH
FREE_LEGS = 4
"""k1, k2, k3, p."""
GRID_LEGS = 6
"""Low k1 and k2, high k1 and k2, k3, p."""
UNIT = 2.0**-64
_FREE = types.UniTuple(types.Tuple((types.float64[::1], types.float64[::1])), 4)


@partial(kernel, inlined=True)
def uniform64(high, low):
    """Convert two random words to one number strictly between 0 and 1."""
    return (float(high) * 4294967296.0 + float(low) + 0.5) * UNIT


@partial(kernel, inlined=True)
def draw_free(first, count, samples, who, tables, m2, angle, scratch):
    """Draw pairs p, k3 in unlimited momentum space: lengths from tables, directions isotropic.

    p is stratified over the samples of a batch; U0 and U1 determine the scattering, INVERSE_Q is
    the inverse sampling density.
    """
    channel, batch, seed = who
    edges_p, cumulative_p = tables[0]
    edges_k, cumulative_k = tables[1]
    w, words, more = scratch
    k.draw_words(first, count, channel, batch, 0, seed, words)
    k.draw_words(first, count, channel | MORE_WORDS, batch, 0, seed, more)
    for i in range(count):
        at = (first + i + uniform64(words[i], words[CHUNK + i])) / samples
        u = uniform64(words[2 * CHUNK + i], words[3 * CHUNK + i])
        bin_p = np.searchsorted(cumulative_p[:-1], at, side="right") - 1
        bin_k = np.searchsorted(cumulative_k[:-1], u, side="right") - 1
        p, inverse_p = physics.radius(at, bin_p, edges_p, cumulative_p)
        q, inverse_k = physics.radius(u, bin_k, edges_k, cumulative_k)
        p3, k3 = physics.across_plane(p, q, 2.0 * physics.uniform(more[i]) - 1.0)
        w[PX + i], w[PY + i], w[PZ + i] = p3
        w[KX + i], w[KY + i], w[KZ + i] = k3
        ep, ek = physics.energy(p3, m2[3]), physics.energy(k3, m2[2])
        part, undo = physics.soft_angle(physics.uniform(more[CHUNK + i]), p3, ep, k3, ek, m2, angle)
        w[U0 + i], w[U1 + i] = part, physics.uniform(more[2 * CHUNK + i])
        w[INVERSE_Q + i] = inverse_p * inverse_k * undo


@partial(kernel, inlined=True)
def table_density(k, table):
    """Return the density in d^3p with which a table of lengths draws the momentum k."""
    p = physics.root(physics.dot(k, k))
    i = np.searchsorted(table[0][:-1], p, side="right") - 1
    return physics.radial_density(p, i, table[0], table[1])


@partial(kernel, inlined=True)
def weigh_free(count, factor, m2, legs, temperature, tables, mirror, w):
    """Compute the full weight of every event: |M|^2 f_c f_d F_a F_b over the sampling density."""
    for i in range(count):
        weight = w[WEIGHT + i]
        if not weight > 0.0 or not w[M2 + i] > 0.0:
            w[WEIGHT + i] = 0.0
            continue
        k1 = (w[K1X + i], w[K1Y + i], w[K1Z + i])
        k3, p = (w[KX + i], w[KY + i], w[KZ + i]), (w[PX + i], w[PY + i], w[PZ + i])
        k2 = physics.minus(physics.plus(p, k3), k1)
        weight *= factor * w[M2 + i] * w[INVERSE_Q + i]
        energies = (
            physics.energy(k1, m2[0]), physics.energy(k2, m2[1]), physics.energy(k3, m2[2]),
            physics.energy(p, m2[3]),
        )  # fmt: skip
        if mirror != 0.0:
            there = table_density(p, tables[0]) * table_density(k3, tables[1])
            back = table_density(k2, tables[2]) * table_density(k1, tables[3])
            there, back = there * energies[2] * energies[3], back * energies[0] * energies[1]
            weight *= physics.mirrored(there, back)
        for leg in range(4):
            f, full = physics.thermal_occupation(
                energies[leg] / temperature - legs[leg, 0], legs[leg, 1]
            )
            weight *= full if leg < 2 else f
        w[WEIGHT + i] = weight


@partial(kernel, inlined=True)
def functions_of_leg(leg, energy, exponents, counts, lowest, powers, phi):
    """Compute the trial functions of each rank, powers of the energy in units of T, at a leg."""
    upwards = physics.root(energy)
    downwards = 1.0 / upwards
    powers[-lowest] = 1.0
    for n in range(1 - lowest, powers.size):
        powers[n] = powers[n - 1] * upwards
    for n in range(-lowest - 1, -1, -1):
        powers[n] = powers[n + 1] * downwards
    for rank in range(counts.size):
        for j in range(counts[rank]):
            phi[rank, leg, j] = powers[exponents[rank, j] - lowest]


@partial(kernel, inlined=True)
def add_pairs(legs, weight, gram, counts, phi, sums):
    """Add the products of the trial functions of every pair of legs."""
    for rank in range(counts.size):
        many = counts[rank]
        pair = 0
        for a in range(legs):
            for b in range(a, legs):
                c = weight * gram[rank, pair]
                for i in range(many):
                    ci = c * phi[rank, a, i]
                    for j in range(many):
                        sums[rank, pair, i, j] += ci * phi[rank, b, j]
                pair += 1


@partial(kernel, inlined=True)
def gather_free(count, m2, temperature, trial, room, w, sums):
    """Add the contributions of the events of a chunk to the brackets.

    trial: half powers by rank (shear, vector, scalar), their number, the lowest one
    """
    exponents, counts, lowest = trial
    powers, phi, gram, vectors = room
    over = 1.0 / temperature
    for i in range(count):
        if not w[WEIGHT + i] > 0.0:
            continue
        for axis in range(3):
            vectors[0, axis] = w[K1X + axis * CHUNK + i] * over
            vectors[2, axis] = w[KX + axis * CHUNK + i] * over
            vectors[3, axis] = w[PX + axis * CHUNK + i] * over
            vectors[1, axis] = vectors[2, axis] + vectors[3, axis] - vectors[0, axis]
        pair = 0
        for a in range(FREE_LEGS):
            one = (vectors[a, 0], vectors[a, 1], vectors[a, 2])
            energy = physics.energy(one, m2[a] * over * over)
            functions_of_leg(a, energy, exponents, counts, lowest, powers, phi)
            for b in range(a, FREE_LEGS):
                other = (vectors[b, 0], vectors[b, 1], vectors[b, 2])
                gram[0, pair], gram[1, pair] = physics.tensor(one, other), physics.dot(one, other)
                gram[2, pair] = 1.0
                pair += 1
        add_pairs(FREE_LEGS, w[WEIGHT + i], gram, counts, phi, sums)


_F, _I = types.float64, types.int64
_TRIAL = types.Tuple((_I[:, ::1], _I[::1], _I))
_ROOM = types.Tuple((_F[::1], _F[:, :, ::1], _F[:, ::1], _F[:, ::1]))
_ELEMENT = types.Tuple((types.UniTuple(_F, 4), types.UniTuple(_F, 3), _F[::1]))
_SCRATCH = types.Tuple((_F[::1], types.uint64[::1], types.uint64[::1]))
FREE = _I(
    types.FunctionType(k.ELEMENT), _I, types.UniTuple(_I, 3), _FREE, types.UniTuple(_F, 4),
    _ELEMENT, types.UniTuple(_F, 8), _F[:, ::1], _TRIAL, _SCRATCH, _ROOM, _F[:, :, :, ::1], _F[::1],
)  # fmt: skip


@partial(kernel, signature=FREE)
def free_batch(
    evaluate, samples, who, tables, m2, element, how, legs, trial, scratch, room, sums, fault
):
    """Compute brackets from one batch of events of a channel in unlimited momentum space.

    who: channel, batch, seed; tables: edges and cumulative density of p, k3, k2, k1; element:
    squared masses in the order of the matrix element, its screening, parameters; how: poles in t
    and u, share of t, span of the angle, factor of all weights, whether |M|^2 < 0 counts as 0, T,
    whether mirror images are drawn; legs: mu/T and statistics of k1, k2, k3, p. Returns -1 if a
    matrix element is illegal; ``fault`` says where.
    """
    t_pole, u_pole, share, span, factor, clamps, temperature, mirror = how
    element_m2, screening, parameters = element
    angle = (t_pole, u_pole, share, screening[2], span)
    w = scratch[0]
    fault[:] = 0.0
    for first in range(0, samples, CHUNK):
        count = min(CHUNK, samples - first)
        draw_free(first, count, samples, who, tables, m2, angle, scratch)
        k.scatter_chunk(count, m2, (screening[0], 0.0, span), NO_NODES, w)
        evaluate(count, element_m2, screening, parameters, w)
        k.inspect_elements(count, clamps, w, fault)
        if physics.illegal(fault[0], fault[1]):
            return -1
        weigh_free(count, factor / samples, m2, legs, temperature, tables, mirror, w)
        gather_free(count, m2, temperature, trial, room, w, sums)
    return 0


# --- on the nodes of a grid ---------------------------------------------------------------------


@partial(kernel, inlined=True)
def draw_nodes(first, count, samples, who, tables, m2, angle, grid, scratch):
    """Draw pairs of nodes p, k3 from tables as ``draw_free``; their indices are LOW and HIGH."""
    channel, batch, seed = who
    cumulative_p, cumulative_k = tables[0][1], tables[1][1]
    cells, h = grid
    w, words, more = scratch
    k.draw_words(first, count, channel, batch, 0, seed, words)
    k.draw_words(first, count, channel | MORE_WORDS, batch, 0, seed, more)
    for i in range(count):
        at = (first + i + uniform64(words[i], words[CHUNK + i])) / samples
        u = uniform64(words[2 * CHUNK + i], words[3 * CHUNK + i])
        p = np.searchsorted(cumulative_p[:-1], at, side="right") - 1
        q = np.searchsorted(cumulative_k[:-1], u, side="right") - 1
        at_p, at_k = physics.node_indices(float(p), cells), physics.node_indices(float(q), cells)
        p3, k3 = physics.momentum_of(at_p, cells, h), physics.momentum_of(at_k, cells, h)
        w[LOW + i], w[HIGH + i] = p, q
        w[PX + i], w[PY + i], w[PZ + i] = p3
        w[KX + i], w[KY + i], w[KZ + i] = k3
        w[TX + i], w[TY + i], w[TZ + i] = physics.plus(at_p, at_k)
        ep, ek = physics.energy(p3, m2[3]), physics.energy(k3, m2[2])
        part, undo = physics.soft_angle(physics.uniform(more[CHUNK + i]), p3, ep, k3, ek, m2, angle)
        w[U0 + i], w[U1 + i] = part, physics.uniform(more[2 * CHUNK + i])
        chance = cumulative_p[p + 1] - cumulative_p[p]
        chance *= cumulative_k[q + 1] - cumulative_k[q]
        w[INVERSE_Q + i] = undo / chance


@partial(kernel, inlined=True)
def land_event(i, factor, m2, grid, spacing2, fields, w, cells_of):
    """Land an event on nodes; return its full weight and the share r of the high pair.

    The weight is 0 if a product leaves the grid. cells_of: nodes of low k1 and k2, high k1 and k2,
    k3, p. F_a F_b is interpolated geometrically, and spacing2 enters ``compensation``, as in a run.
    """
    cells, h = grid
    position = physics.position_of((w[K1X + i], w[K1Y + i], w[K1Z + i]), cells, h)
    total = (w[TX + i], w[TY + i], w[TZ + i])
    low, high, r = physics.landing(position, total, w[E + i], (m2[0], m2[1]), cells, h)
    if low < 0.0 or high < 0.0:
        return 0.0, r
    p, q = np.int64(w[LOW + i]), np.int64(w[HIGH + i])
    cells_of[0], cells_of[2], cells_of[4], cells_of[5] = low, high, q, p
    cells_of[1], cells_of[3] = p + q - cells_of[0], p + q - cells_of[2]
    at_low = fields[0, cells_of[0]] + fields[1, cells_of[1]]
    at_high = fields[0, cells_of[2]] + fields[1, cells_of[3]]
    full = physics.exp(at_low + r * (at_high - at_low))
    weight = factor * w[WEIGHT + i] * w[M2 + i] * w[INVERSE_Q + i]
    weight *= k.compensate(i, m2, spacing2, w)
    return weight * full * fields[2, q] * fields[3, p], r


@partial(kernel, inlined=True)
def gather_nodes(count, factor, m2, thermal, grid, spacing2, fields, trial, room, w, sums):
    """Land the events of a chunk, and add their contributions to the brackets."""
    temperature, at_rest = thermal
    exponents, counts, lowest = trial
    powers, phi, gram, vectors = room
    cells, h = grid
    cells_of = np.empty(GRID_LEGS, np.int64)
    for i in range(count):
        if not w[WEIGHT + i] > 0.0 or not w[M2 + i] > 0.0:
            continue
        weight, r = land_event(i, factor, m2, grid, spacing2, fields, w, cells_of)
        if not weight > 0.0:
            continue
        pair = 0
        for a in range(GRID_LEGS):
            mass = m2[a % 2] if a < 4 else m2[a - 2]
            node = physics.node_indices(float(cells_of[a]), cells)
            one = physics.momentum_of(node, cells, h)
            inverse = physics.inverse_energy(physics.energy(one, mass), at_rest)
            vectors[a, 0], vectors[a, 1], vectors[a, 2] = (
                one[0] / temperature, one[1] / temperature, one[2] / temperature
            )  # fmt: skip
            functions_of_leg(
                a, 1.0 / (inverse * temperature), exponents, counts, lowest, powers, phi
            )
        for a in range(GRID_LEGS):
            one = (vectors[a, 0], vectors[a, 1], vectors[a, 2])
            for b in range(a, GRID_LEGS):
                other = (vectors[b, 0], vectors[b, 1], vectors[b, 2])
                share = physics.share_of(a, r) * physics.share_of(b, r)
                gram[0, pair] = share * physics.tensor_axes(one, other)
                gram[1, pair] = share * physics.tensor_planes(one, other)
                gram[2, pair] = share * physics.dot(one, other)
                gram[3, pair] = share
                pair += 1
        add_pairs(GRID_LEGS, weight, gram, counts, phi, sums)


NODES = _I(
    types.FunctionType(k.ELEMENT), _I, types.UniTuple(_I, 3), _FREE, types.UniTuple(_F, 4),
    _ELEMENT, types.UniTuple(_F, 8), _F[:, ::1], types.UniTuple(types.UniTuple(_F, 3), 2), _TRIAL,
    types.UniTuple(_F, 4), _SCRATCH, _ROOM, _F[:, :, :, ::1], _F[::1],
)  # fmt: skip


@partial(kernel, signature=NODES)
def nodes_batch(
    evaluate, samples, who, tables, m2, element, how, fields, grid, trial, coarse, scratch, room,
    sums, fault,
):  # fmt: skip
    """Compute brackets from one batch of events on nodes, with 1/E at rest added to ``how``.

    fields: ln F of k1 and k2, f of k3 and p at all nodes; coarse: ``ChannelEvents.coarse``; the
    other arguments are those of ``free_batch``
    """
    t_pole, u_pole, share, span, factor, clamps, temperature, at_rest = how
    element_m2, screening, parameters = element
    angle = (t_pole, u_pole, share, screening[2], span)
    w = scratch[0]
    fault[:] = 0.0
    for first in range(0, samples, CHUNK):
        count = min(CHUNK, samples - first)
        draw_nodes(first, count, samples, who, tables, m2, angle, grid, scratch)
        k.scatter_chunk(count, m2, (screening[0], 0.0, span), (coarse[0], coarse[1], coarse[2]), w)
        evaluate(count, element_m2, screening, parameters, w)
        k.inspect_elements(count, clamps, w, fault)
        if physics.illegal(fault[0], fault[1]):
            return -1
        gather_nodes(
            count, factor / samples, m2, (temperature, at_rest), grid, coarse[3], fields, trial,
            room, w, sums,
        )  # fmt: skip
    return 0


def measure(elements: Elements, request: BracketRequest, threads: int) -> Array:
    """Sum over the events of every task and batch; bit-identical for any number of threads."""
    pool = Threads(threads)
    sums = np.zeros(request.shape)
    rooms = [_ChunkMemory(request) for _ in range(pool.count)]

    def work(thread: int, item: int) -> None:
        task, batch = divmod(item, request.batches)
        _batch(elements, request, rooms[thread], task, batch, sums[task, batch])

    try:
        pool.share(work, len(request.tasks) * request.batches)
    finally:
        if pool.pool is not None:
            pool.pool.shutdown()
    return sums


class _ChunkMemory:
    """Scratch memory of one thread for a chunk of events."""

    def __init__(self, request: BracketRequest):
        ranks, pairs, many, _ = request.trial.shape(request.cells)
        self.scratch = (
            np.zeros(k.ROWS * CHUNK), np.empty(4 * CHUNK, np.uint64), np.empty(4 * CHUNK, np.uint64)
        )  # fmt: skip
        self.trial = (
            np.empty(request.trial.span), np.zeros((ranks, request.cells, many)),
            np.empty((ranks, pairs)), np.empty((request.cells, 3)),
        )  # fmt: skip


def _batch(
    elements: Elements,
    request: BracketRequest,
    room: _ChunkMemory,
    number: int,
    batch: int,
    sums: Array,
) -> None:
    """Process one batch of the events of a task."""
    task, trial, grid = request.tasks[number], request.trial, request.grid
    function, parameters = elements.compiled[task.process]
    fault = np.zeros(6)
    drawn = (
        function, task.samples, (number, request.first_batch + batch, request.seed), task.tables,
        task.m2, (task.named, task.screening, parameters),
    )  # fmt: skip
    how = (*task.poles, task.span, task.factor, task.clamps, task.temperature)
    functions = (trial.exponents, trial.counts, trial.lowest)
    rest = (room.scratch, room.trial, sums, fault)
    name = elements.model.processes[task.process].name
    try:
        if grid is None:
            found = free_batch(*drawn, (*how, task.mirror), task.legs, functions, *rest)
        else:
            nodes = tuple(map(float, grid.momentum_cells)), tuple(map(float, grid.spacing))
            at_rest = grid.rest_inverse_energy
            found = nodes_batch(
                *drawn,
                (*how, at_rest),
                np.ascontiguousarray(task.fields),
                nodes,
                functions,
                task.coarse,
                *rest,
            )
    except Exception as error:
        raise raising_element(name, error) from error
    if found < 0:
        value, s, t = (float(v) for v in fault[3:])
        raise negative_element(name, value, s, t, sum(task.named) - s - t)
