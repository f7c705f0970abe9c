"""Generates the kernel that draws events, with the matrix elements of a model inside.

One launch serves all processes: every block works on one channel, so the choice between the
matrix elements is the same for all its threads.
"""

from __future__ import annotations

import dis
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ...errors import InputError
from ...model import Process
from ..elements import arguments_of, derived, load

REGISTERS = 128
"""Most registers of a thread: more threads at once hide more of the waiting for memory."""

TEMPLATE = '''"""Generated: draws, lands and applies the events of a model on a GPU."""

import numpy as np
from numba import float64, int64

from relboltz.backends.cuda.driver import device_function, kernel
from relboltz.backends.cuda.events import (
    both_occupied, event_flow, independent, move, partner_shift, slot_of, stratified,
)
from relboltz.backends.cuda.layout import (
    ANGLE_SPAN, AT_REST, BELOW, CHANNEL, CLAMPS, COUNT, EACH, EKT, ELEMENT, EVERYTHING, EXCHANGE,
    FACTOR, FORWARD, GO, IMPORTANCE, K1, K2, K3, LEG_A, LOST, MOVES, NEGATIVE, NET, NODES,
    ONLY_P, OWN, P, PEAK, POSITIVE, SAMPLE, SAMPLES, SCALE, SEED, SET, SHARED_SUMS, SINGLE,
    SPECIES, STATUS, STEP, SUMS, THREADS,
)
from relboltz.backends.cuda.physics import (
    WORD, add, block_sums, cuda, element_flaw, physics,
)
from relboltz.events.collisions import LARGEST_ELEMENT, MORE_WORDS
{imports}
landing = physics.landing
energy_part = physics.energy_part
momentum_transfer2 = physics.momentum_transfer2
nearest_integer = physics.nearest_integer
nearest_node = physics.nearest_node
node_momentum = physics.node_momentum
node_position = physics.node_position
node_indices = physics.node_indices
philox = physics.philox
reciprocal = physics.reciprocal
root_event = physics.root_event
scatter = physics.scatter
screened = physics.screened
uniform = physics.uniform
ROOTS = {roots}
CELLS, M2, LEGS = SHARED_SUMS, SHARED_SUMS + 6, SHARED_SUMS + 10
SCREENED, PEAKED, SPANNED, WEIGHED, RESTING, SCALED, EFFECTIVE, CLAMPED, EXCHANGED = (
    SHARED_SUMS + 14 + i for i in range(9)
)
SHARED = SHARED_SUMS + 24
{elements}

def matrix_element(kind, s, t, m2, screening2, exchange2, q2, qu2, ekt, own, channel):
    """|M|^2 of the process that a channel belongs to."""
    ma2, mb2, mc2, md2 = m2
    u = ma2 + mb2 + mc2 + md2 - s - t
{choice}
    return 0.0


matrix_element = device_function(matrix_element)


def draw(
    control, scalars, squares, geometry, channels, channel_scalars, blocks, cumulative, guide,
    table, nodes, weights, ratios, change, sums, first_block, first_site, shift, land, use,
):
    """Draw the samples of a block at a site; land and keep them, and use them, if asked to.

    A block belongs to one set of the events of a channel, whose samples are stratified together.
    Cells and tables of a species lie behind those of all species of the sites before.
    """
    shared = cuda.shared.array(SHARED, float64)
    if control[STATUS] != GO:
        return
    thread = cuda.threadIdx.x
    block = cuda.blockIdx.x + first_block
    channel = blocks[block, CHANNEL]
    n = control[NODES]
    before = cuda.blockIdx.y * control[SPECIES]
    kind_1, kind_2 = before + channels[channel, K1], before + channels[channel, K2]
    kind_3, kind_p = before + channels[channel, K3], before + channels[channel, P]
    site = WORD(first_site + cuda.blockIdx.y)
    element = channels[channel, ELEMENT]
    samples = channels[channel, SAMPLES]
    only_p = channels[channel, ONLY_P]
    partner = partner_shift(control, channels, channel)
    single = control[SINGLE]
    row = blocks[block, SET]
    key_0 = WORD(control[SEED] & 0xFFFFFFFF)
    key_1 = WORD(control[SEED] >> 32)
    step = WORD(control[STEP])
    first = blocks[block, SAMPLE]
    others = row * samples
    even = n if control[IMPORTANCE] == 0 else 0
    for i in range(SUMS):
        shared[i * THREADS + thread] = 0.0
    if thread == 0:  # numbers of the whole block: read when needed, to leave registers free
        for i in range(6):
            shared[CELLS + i] = geometry[i]
        for i in range(4):
            shared[M2 + i] = squares[cuda.blockIdx.y, channels[channel, K1 + i]]
            shared[LEGS + i] = squares[cuda.blockIdx.y, channels[channel, LEG_A + i]]
        shared[SCREENED] = squares[cuda.blockIdx.y, control[SPECIES]]
        shared[EXCHANGED] = squares[cuda.blockIdx.y, control[SPECIES] + channels[channel, EXCHANGE]]
        shared[PEAKED] = channel_scalars[channel, PEAK]
        shared[SPANNED] = channel_scalars[channel, ANGLE_SPAN]
        shared[WEIGHED] = channel_scalars[channel, FACTOR]
        shared[RESTING] = scalars[AT_REST]
        shared[SCALED] = scalars[SCALE]
        shared[EFFECTIVE] = scalars[EKT]
        shared[CLAMPED] = float(channels[channel, CLAMPS])
    cuda.syncthreads()
    last_p = np.uint32(0)
    gathered = int64(0)
    for i in range(EACH):
        if thread * EACH + i >= blocks[block, COUNT]:
            for branch in range(ROOTS):
                weights[slot_of(i * ROOTS + branch, ROOTS)] = 0.0
            continue
        sample = first + thread * EACH + i
        cells = (shared[CELLS], shared[CELLS + 1], shared[CELLS + 2])
        h = (shared[CELLS + 3], shared[CELLS + 4], shared[CELLS + 5])
        m2 = (shared[M2], shared[M2 + 1], shared[M2 + 2], shared[M2 + 3])
        w0, w1, w2, w3 = philox(
            WORD(others + sample), WORD(channel), step, site, key_0, key_1
        )
        p, chance_p = stratified(
            cumulative, guide, kind_p, sample, int64(w0), samples, shift, even
        )
        px, py, pz = node_indices(float(p), cells)
        p3 = (
            node_momentum(px, cells[0], h[0]), node_momentum(py, cells[1], h[1]),
            node_momentum(pz, cells[2], h[2]),
        )
        cell_p = np.uint32(kind_p * n + p)
{body}
    if gathered != 0:
        add(change, row, last_p, gathered)
    cuda.syncthreads()
    block_sums(shared, sums[cuda.blockIdx.y * blocks.shape[0] + block])


draw = kernel(draw, cached={cached}, max_registers={registers})
'''

THROUGH_CM = """        k, chance_k = independent(cumulative, guide, kind_3, int64(w1), shift, even)
        kx, ky, kz = node_indices(float(k), cells)
        k3 = (
            node_momentum(kx, cells[0], h[0]), node_momentum(ky, cells[1], h[1]),
            node_momentum(kz, cells[2], h[2]),
        )
        inverse_q = 18446744073709551616.0 * reciprocal(float(chance_p) * float(chance_k))
        cell_3 = np.uint32(kind_3 * n + k)
        k1, e, s, t, weight = scatter(
            p3, k3, m2, (uniform(w2), uniform(w3)),
            (shared[SCREENED], shared[PEAKED], shared[SPANNED]), shared[RESTING],
        )
        slot = slot_of(i, 1)
{weigh}
        low = -1.0
        high = -1.0
        r = 0.0
        if weight > 0.0 and land != 0:
{land}
{finish}"""

CONSERVING = """            cells = (shared[CELLS], shared[CELLS + 1], shared[CELLS + 2])
            h = (shared[CELLS + 3], shared[CELLS + 4], shared[CELLS + 5])
            position = (
                node_position(k1[0], cells[0], h[0]), node_position(k1[1], cells[1], h[1]),
                node_position(k1[2], cells[2], h[2]),
            )
            total = (px + kx, py + ky, pz + kz)
            low, high, r = landing(
                position, total, e, (shared[M2], shared[M2 + 1]), cells, h
            )"""

NEAREST = """            low = nearest_node(k1, cells, h)
            k2 = (p3[0] + k3[0] - k1[0], p3[1] + k3[1] - k1[1], p3[2] + k3[2] - k1[2])
            high = nearest_node(k2, cells, h)"""

WEIGH = """        m2 = (shared[M2], shared[M2 + 1], shared[M2 + 2], shared[M2 + 3])
        both = (p3[0] + k3[0], p3[1] + k3[1], p3[2] + k3[2])
        value = matrix_element(
            element, s, t,
            (shared[LEGS], shared[LEGS + 1], shared[LEGS + 2], shared[LEGS + 3]),
            shared[SCREENED], shared[EXCHANGED],
            momentum_transfer2(k1, k3, both, energy_part(s, m2[0], m2[1], m2[2], m2[3])),
            momentum_transfer2(k1, p3, both, energy_part(s, m2[0], m2[1], m2[3], m2[2])),
            shared[EFFECTIVE], channel_scalars, channel,
        )
        if weight > 0.0:
            flaw = element_flaw(value, shared[CLAMPED])
            shared[NEGATIVE * THREADS + thread] += flaw
            if flaw == 0.0:
                shared[POSITIVE * THREADS + thread] += max(value, 0.0)
            value = value if flaw < LARGEST_ELEMENT else 0.0
        weight *= shared[WEIGHED] * value * inverse_q"""

FINISH = """        found = low >= 0.0 and high >= 0.0
        if weight > 0.0:
            physical = weight * both_occupied(table, cell_p, cell_3)
            shared[EVERYTHING * THREADS + thread] += physical
            if not found:
                shared[LOST * THREADS + thread] += physical
        elif weight < 0.0:
            physical = weight * both_occupied(table, cell_p, cell_3)
            shared[BELOW * THREADS + thread] -= physical
        weight = weight if found else 0.0
        if single != 0:  # the same weight in both stages
            weight = float64(np.float32(weight))
        l0 = np.uint32(kind_1 * n + int64(max(low, 0.0)))
        l1 = {other}
        if land != 0:
            nodes[0, slot] = cell_p
            nodes[1, slot] = cell_3
            nodes[2, slot] = l0
            nodes[3, slot] = l1
            weights[slot] = weight
            ratios[slot] = r
        if use != 0 and weight > 0.0:
            {cells}
            flow, ahead = event_flow(table, cell_p, cell_3, {six}, r, single)
            flow *= weight
            shared[NET * THREADS + thread] += flow
            shared[MOVES * THREADS + thread] += abs(flow)
            shared[FORWARD * THREADS + thread] += ahead * weight
            amount = shared[SCALED] * flow
            if only_p != 0:
                whole = int64(nearest_integer(amount))
            else:
                whole = move(change, row, cell_3, {six}, r, amount)
            if cell_p != last_p:
                if gathered != 0:
                    add(change, row, last_p, gathered)
                gathered = int64(0)
                last_p = cell_p
            gathered += whole"""

THROUGH_ROOTS = """        area = 4.0 * (0.5 * cells[0] * h[0]) * (0.5 * cells[1] * h[1])
        size = cells[0] * cells[1] * cells[2]
        inverse_q = area * size * 4294967296.0 / float(chance_p)
        v0, v1, v2, _ = philox(
            WORD(others + sample), WORD(channel | MORE_WORDS), step, site, key_0, key_1
        )
        k1x = (uniform(w2) - 0.5) * cells[0] * h[0]
        k1y = (uniform(w3) - 0.5) * cells[1] * h[1]
        free = (
            (uniform(v0) - 0.5) * cells[0] * h[0], (uniform(v1) - 0.5) * cells[1] * h[1],
            (uniform(v2) - 0.5) * cells[2] * h[2],
        )
        for branch in range(2):
            sign = 1.0 - 2.0 * branch
            k1, k3, s, t, weight = root_event(p3, free, k1x, k1y, m2, sign, {through_k3})
            slot = slot_of(i * 2 + branch, 2)
            k = nearest_node(k3, cells, h)
            cell_3 = np.uint32(kind_3 * n + int64(max(k, 0.0)))
            weight = weight if k >= 0.0 else 0.0
{weigh}
            low = -1.0
            high = -1.0
            r = 0.0
            if weight > 0.0 and land != 0:
{land}
{finish}"""


def _deeper(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.splitlines())


def body(projection: str, sampling: str) -> str:
    """What happens to a sample once p is drawn."""
    conserving = projection == "conserving"
    if conserving:
        finish = FINISH.format(
            other="np.uint32(kind_1 * n + int64(max(high, 0.0)))",
            cells="both = int64(cell_p) + int64(cell_3) + partner",
            six="l0, np.uint32(both - int64(l0)), l1, np.uint32(both - int64(l1))",
        )
    else:
        finish = FINISH.format(
            other="np.uint32(kind_2 * n + int64(max(high, 0.0)))",
            cells="pass",
            six="l0, l1, l0, l1",
        )
    if sampling == "cm":
        return THROUGH_CM.format(
            weigh=WEIGH, land=CONSERVING if conserving else NEAREST, finish=finish
        )
    return THROUGH_ROOTS.format(
        through_k3=sampling == "k3", weigh=_deeper(WEIGH), land=_deeper(NEAREST),
        finish=_deeper(finish),
    )  # fmt: skip


NUMPY = types.ModuleType("numpy", "What matrix elements may use of NumPy on a GPU: scalars only.")
vars(NUMPY).update(
    {name: getattr(math, name) for name in (
        "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh",
        "cosh", "tanh", "hypot", "pi", "e",
    )},
    abs=abs, absolute=abs, fabs=abs, power=pow, maximum=max, minimum=min, arctan=math.atan,
    arctan2=math.atan2, arcsin=math.asin, arccos=math.acos,
)  # fmt: skip


def for_gpu(function: Callable) -> Callable:
    """A user's function as a GPU can compile it: NumPy's scalar functions are those of math."""
    plain = inspect.unwrap(getattr(function, "py_func", function))
    if any(step.opname == "RAISE_VARARGS" for step in dis.get_instructions(plain)):
        raise InputError(
            f"the matrix element {plain.__name__} may raise an error, which a GPU cannot: return "
            "-1.0 there (a negative |M|^2 stops the run), or use run.backend = 'cpu'"
        )
    space = {k: NUMPY if v is numpy else v for k, v in plain.__globals__.items()}
    copy = types.FunctionType(
        plain.__code__, space, plain.__name__, plain.__defaults__, plain.__closure__
    )
    copy.__module__ = plain.__module__
    return copy


def draw_kernel(
    processes: Sequence[Process], projection: str, sampling: str
) -> tuple[Any, list[int], list[list[float]]]:
    """The kernel, which of its matrix elements each process uses, and their parameters."""
    kinds: dict[tuple[Callable, str], int] = {}
    numbers, parameters = [], []
    for process in processes:
        arguments, own = arguments_of(process)
        numbers.append(kinds.setdefault((process.matrix_element, arguments), len(kinds)))
        parameters.append(own)
    ours = all(process.built_in for process in processes)
    imports, elements, choice = [], [], []
    functions: dict[str, Any] = {}
    for (function, arguments), i in kinds.items():
        if ours:
            imports.append(f"from relboltz.qcd import {function.__name__} as function_{i}")
        functions[f"function_{i}"] = for_gpu(function)
        elements.append(f"element_{i} = device_function(function_{i})")
        lines = [f"    if kind == {i}:", derived(arguments, 8)]
        lines += [
            f"        own_{k} = own[channel, OWN + {k}]" for k in range(arguments.count("own_"))
        ]
        choice.append("\n".join([*lines, f"        return float64(element_{i}({arguments}))"]))
    text = TEMPLATE.format(
        imports="\n".join(imports),
        elements="\n".join(elements),
        choice="\n".join(choice) or "    pass",
        body=body(projection, sampling),
        cached=ours,
        registers=REGISTERS,
        roots=1 if sampling == "cm" else 2,
    )
    if ours:
        return load(text, "draw").draw, numbers, parameters
    space: dict[str, Any] = dict(functions)
    exec(text, space)
    return space["draw"], numbers, parameters
