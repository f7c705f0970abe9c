"""Generates the kernel that draws events, with the matrix elements of a model inlined.

One launch serves all processes: every block works on one channel, so the choice of matrix element
is the same for all its threads.
"""

import dis
import inspect
import math
import types
from collections.abc import Sequence
from typing import Any

import numpy

from ...model.model import Model
from ...model.process import Process
from ...util.errors import InputError
from ...util.jit import Function
from ..elements import arguments_of, load, preamble

Kinds = dict[tuple[Function, str], int]
"""Distinct matrix elements and their arguments, numbered."""
REGISTERS = 128
"""Most registers per thread: more resident threads hide more of the memory latency."""

TEMPLATE = '''"""Generated code: draws, lands and applies the events of a model on a GPU."""

import numpy as np
from numba import float64, int64

from relboltz.backends.cuda import layout as k
from relboltz.backends.cuda.driver import device_function, kernel
from relboltz.backends.cuda.collision_events import (
    across_front, both_occupied, deposit_apart, flow_of, four, gather, independent, move,
    pair_logs, partner_shift, slot_of, stratified, three,
)
from relboltz.backends.cuda.physics import WORD, add, block_sums, cuda, physics
from relboltz.events.collisions import LARGEST_ELEMENT, MORE_WORDS
{imports}
ROOTS = {roots}
CELLS, M2, LEGS = k.SHARED_SUMS, k.SHARED_SUMS + 6, k.SHARED_SUMS + 10
SCREENED, PEAKED, SPANNED, WEIGHED, SCALED, EFFECTIVE, CLAMPED, EXCHANGED, FULLEST = (
    k.SHARED_SUMS + 14 + i for i in range(9)
)
MORE, SPACED = k.SHARED_SUMS + 23, k.SHARED_SUMS + 26
SHARED = k.SHARED_SUMS + 27
{elements}

def matrix_element(kind, s, t, m2, screening2, exchange2, q2, qu2, ekt, own, channel):
    """Return |M|^2 of the process that a channel belongs to."""
    ma2, mb2, mc2, md2 = m2
{choice}
    return 0.0


matrix_element = device_function(matrix_element)


def draw(
    control, scalars, squares, geometry, channels, channel_scalars, blocks, cumulative, guide,
    table, tops, {arguments}
):
    """{words}

    Each block belongs to one set of events of a channel; samples of a set are stratified together.
    """
    shared = cuda.shared.array(SHARED, float64)
    if control[k.STATUS] != k.GO:
        return
    thread = cuda.threadIdx.x
    {place}
    channel = blocks[block, k.CHANNEL]
    n = control[k.NODES]
    before = place * control[k.SPECIES]
    kind_1, kind_2 = before + channels[channel, k.K1], before + channels[channel, k.K2]
    kind_3, kind_p = before + channels[channel, k.K3], before + channels[channel, k.P]
    site = WORD({site})
    element = channels[channel, k.ELEMENT]
    samples = channels[channel, k.SAMPLES]
    only_p = channels[channel, k.ONLY_P]
    partner = partner_shift(control, channels, channel)
    single = control[k.SINGLE]
    which = blocks[block, k.SET]
    row = {row}
    key_0 = WORD(control[k.SEED] & 0xFFFFFFFF)
    key_1 = WORD(control[k.SEED] >> 32)
    step = WORD({step})
    first = blocks[block, k.SAMPLE]
    others = which * samples
    even = n if control[k.IMPORTANCE] == 0 else 0
    for i in range(k.SUMS):
        shared[i * k.THREADS + thread] = 0.0
    if thread == 0:  # numbers of the block, in shared memory to save registers
        for i in range(6):
            shared[CELLS + i] = geometry[i]
        for i in range(4):
            shared[M2 + i] = squares[place, channels[channel, k.K1 + i]]
            shared[LEGS + i] = squares[place, channels[channel, k.LEG_A + i]]
        shared[SCREENED] = squares[place, control[k.SPECIES]]
        exchange = control[k.SPECIES] + channels[channel, k.EXCHANGE]
        shared[EXCHANGED] = squares[place, exchange]
        shared[PEAKED] = channel_scalars[channel, k.PEAK]
        shared[SPANNED] = channel_scalars[channel, k.ANGLE_SPAN]
        shared[WEIGHED] = channel_scalars[channel, k.FACTOR]
        for i in range(3):
            shared[MORE + i] = channel_scalars[channel, k.MORE_3 + i]
        spacing2 = channel_scalars[channel, k.SPACING]
        shared[SPACED] = 0.0 if physics.heavy(four(shared, M2), spacing2) else spacing2
        shared[SCALED] = scalars[k.SCALE]
        shared[EFFECTIVE] = scalars[k.EKT]
        shared[CLAMPED] = float(channels[channel, k.CLAMPS])
        shared[FULLEST] = tops[kind_1] + tops[kind_2]
    cuda.syncthreads()
    last_p, gathered = np.uint32(0), int64(0)
    {gained}
    for i in range(k.EACH):
{sample}
        cells, h, m2 = three(shared, CELLS), three(shared, CELLS + 3), four(shared, M2)
        w0, w1, w2, w3 = physics.philox(
            WORD(others + sample), WORD(channel), step, site, key_0, key_1
        )
        p, chance_p = stratified(
            cumulative, guide, kind_p, sample, int64(w0), samples, shift, even
        )
        at_p = physics.node_indices(float(p), cells)
        p3 = physics.momentum_of(at_p, cells, h)
        cell_p = np.uint32(kind_p * n + p)
{body}
    if gathered != 0:
        add(change, row, last_p, gathered)
    {rest}
    cuda.syncthreads()
    block_sums(shared, sums[cuda.blockIdx.y * blocks.shape[0] + block])


draw = kernel(draw, cached={cached}, max_registers={registers})
'''

THROUGH_CM = """\
        node, chance_k = independent(cumulative, guide, kind_3, int64(w1), shift, even)
        at_k = physics.node_indices(float(node), cells)
        k3 = physics.momentum_of(at_k, cells, h)
        inverse_q = 18446744073709551616.0 * physics.reciprocal(float(chance_p) * float(chance_k))
        cell_3 = np.uint32(kind_3 * n + node)
        k1, e, s, t, weight = physics.scatter(
            p3, k3, m2, (physics.uniform(w2), physics.uniform(w3)),
            (shared[SCREENED], shared[PEAKED], shared[SPANNED]), three(shared, MORE),
        )
        slot = slot_of(i, 1)
{weigh}"""

CONSERVING = """            cells, h = three(shared, CELLS), three(shared, CELLS + 3)
            position, total = physics.position_of(k1, cells, h), physics.plus(at_p, at_k)
            pair_m2 = (shared[M2], shared[M2 + 1])
            low, high, r = physics.landing(position, total, e, pair_m2, cells, h)
            if low >= 0.0 and high >= 0.0:
                start, both = kind_1 * n, int64(cell_p) + int64(cell_3) + partner
                j0, j1 = start + int64(low), start + int64(high)
                logs = pair_logs(table, (cell_p, cell_3, j0, both - j0, j1, both - j1))
                if physics.at_front(
                    logs[0] + logs[3], logs[1] + logs[4], logs[2] + logs[5], shared[FULLEST]
                ):
                    low, high, r = across_front(
                        table, start, both, logs, (low, high, r),
                        (position, total, e, pair_m2), (cells, h),
                    )
                    j0, j1 = start + int64(low), start + int64(high)
                    logs = pair_logs(table, (cell_p, cell_3, j0, both - j0, j1, both - j1))"""

NEAREST = """            low = physics.nearest_node(k1, cells, h)
            k2 = physics.minus(physics.plus(p3, k3), k1)
            high = physics.nearest_node(k2, cells, h)"""

WEIGH = """{only}        q2, qu2 = physics.transfers(k1, k3, p3, s, four(shared, M2))
        value = matrix_element(
            element, s, t, four(shared, LEGS), shared[SCREENED], shared[EXCHANGED], q2, qu2,
            shared[EFFECTIVE], channel_scalars, channel,
        )
        if weight > 0.0:
            flaw = physics.element_flaw(value, shared[CLAMPED])
            shared[k.NEGATIVE * k.THREADS + thread] += flaw
            if flaw == 0.0:
                shared[k.POSITIVE * k.THREADS + thread] += max(value, 0.0)
            value = value if flaw < LARGEST_ELEMENT else 0.0
        weight *= shared[WEIGHED] * value * inverse_q
        low, high, r = -1.0, -1.0, 0.0
        logs, more = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0), 1.0
        if weight > 0.0 and shared[SPACED] > 0.0:
            more = physics.compensation(k1, k3, p3, four(shared, M2), s, shared[SPACED])
        if weight > 0.0{if_landing}:
{land}
        found = low >= 0.0 and high >= 0.0
        if weight > 0.0:
            physical = weight * both_occupied(table, cell_p, cell_3)
            shared[k.EVERYTHING * k.THREADS + thread] += physical
            if not found:
                shared[k.LOST * k.THREADS + thread] += physical
        elif weight < 0.0:
            physical = weight * both_occupied(table, cell_p, cell_3)
            shared[k.BELOW * k.THREADS + thread] -= physical
        weight = more * weight if found else 0.0
        if single != 0:  # the same weight in both stages
            weight = float64(np.float32(weight))
        l0, l1 = np.uint32(kind_1 * n + int64(max(low, 0.0))), {other}
{use}"""

THROUGH_ROOTS = """        area = 4.0 * (0.5 * cells[0] * h[0]) * (0.5 * cells[1] * h[1])
        size = cells[0] * cells[1] * cells[2]
        inverse_q = area * size * 4294967296.0 / float(chance_p)
        v0, v1, v2, _ = physics.philox(
            WORD(others + sample), WORD(channel | MORE_WORDS), step, site, key_0, key_1
        )
        k1x = physics.across(physics.uniform(w2), cells[0], h[0])
        k1y = physics.across(physics.uniform(w3), cells[1], h[1])
        free = (
            physics.across(physics.uniform(v0), cells[0], h[0]),
            physics.across(physics.uniform(v1), cells[1], h[1]),
            physics.across(physics.uniform(v2), cells[2], h[2]),
        )
        for branch in range(2):
            sign = 1.0 - 2.0 * branch
            k1, k3, s, t, weight = physics.root_event(p3, free, k1x, k1y, m2, sign, {through_k3})
            slot = slot_of(i * 2 + branch, 2)
            node = physics.nearest_node(k3, cells, h)
            cell_3 = np.uint32(kind_3 * n + int64(max(node, 0.0)))
            weight = weight if node >= 0.0 else 0.0
{weigh}"""


TWO_PAIRS = {
    "other": "np.uint32(kind_1 * n + int64(max(high, 0.0)))",
    "cells": "both = int64(cell_p) + int64(cell_3) + partner",
    "pairs": "l0, np.uint32(both - int64(l0)), l1, np.uint32(both - int64(l1))",
    "logs": "pass",
}
"""Template parts for events that store one node each of the low and the high pair."""
ONE_PAIR = {
    "other": "np.uint32(kind_2 * n + int64(max(high, 0.0)))", "cells": "pass",
    "pairs": "l0, l1, l0, l1", "logs": "logs = pair_logs(table, six)",
}  # fmt: skip
"""Template parts for events that store the nodes of k1 and k2."""


STEPS = {
    "arguments": "nodes, weights, ratios, change, sums, numbers, first_block, first_site, shift, "
    "land, use,",
    "words": "Draw the samples of a block at a site; land, keep and use them if asked to.",
    "place": "block, place = cuda.blockIdx.x + first_block, cuda.blockIdx.y",
    "site": "numbers[first_site + place]",
    "step": "control[k.STEP]",
    "row": "which",
    "gained": "",
    "sample": """        if thread * k.EACH + i >= blocks[block, k.COUNT]:
            for branch in range(ROOTS):
                weights[slot_of(i * ROOTS + branch, ROOTS)] = 0.0
            continue
        sample = first + thread * k.EACH + i""",
    "rest": "",
}
"""Template parts for the steps of a run: events are kept for the last stage; cells, tables and
masses are ordered by site."""
STEPS_OF_EVENTS = {
    "only": "",
    "if_landing": " and land != 0",
    "use": """        if land != 0:
            nodes[0, slot], nodes[1, slot] = cell_p, cell_3
            nodes[2, slot], nodes[3, slot] = l0, l1
            weights[slot], ratios[slot] = weight, r
        if use != 0 and weight > 0.0:
            {cells}
            six = (cell_p, cell_3, {pairs})
            {logs}
            flow, ahead = flow_of(logs, r, single)
            flow *= weight
            shared[k.NET * k.THREADS + thread] += flow
            shared[k.MOVES * k.THREADS + thread] += abs(flow)
            shared[k.FORWARD * k.THREADS + thread] += ahead * weight
            if more > 1.0:  # rates exclude compensation
                shared[k.NET * k.THREADS + thread] -= (1.0 - 1.0 / more) * flow
                shared[k.FORWARD * k.THREADS + thread] -= (1.0 - 1.0 / more) * ahead * weight
            whole = move(change, row, six, r, shared[SCALED] * flow, only_p)
            last_p, gathered = gather(change, row, cell_p, whole, last_p, gathered)""",
}
APART = {
    "arguments": "change, sums, first_draw, shift,",
    "words": "Draw the samples of a block in one of many draws from the same state, and use them.",
    "place": "block, place = cuda.blockIdx.x, 0",
    "site": "0",
    "step": "first_draw + cuda.blockIdx.y",
    "row": "cuda.blockIdx.y",
    "gained": "gained = int64(0)",
    "sample": """        alive = thread * k.EACH + i < blocks[block, k.COUNT]
        sample = first + (thread * k.EACH + i if alive else 0)""",
    "rest": "if gained != 0:\n        add(change, row, last_p + 1, gained)",
}
"""Template parts for C[f]: no event is kept, and every draw has its own row with two slots for each
cell, net change and gain. No thread skips a sample, since threads exchange what they add."""
APART_OF_EVENTS = {
    "only": "        weight = weight if alive else 0.0\n",
    "if_landing": "",
    "use": """        {cells}
        six = (cell_p, cell_3, {pairs})
        whole, gain = int64(0), int64(0)
        if weight > 0.0:
            {logs}
            flow, ahead = flow_of(logs, r, single)
            flow *= weight
            ahead *= weight
            shared[k.NET * k.THREADS + thread] += flow
            shared[k.FORWARD * k.THREADS + thread] += ahead
            if more > 1.0:  # rates exclude compensation
                shared[k.NET * k.THREADS + thread] -= (1.0 - 1.0 / more) * flow
                shared[k.FORWARD * k.THREADS + thread] -= (1.0 - 1.0 / more) * ahead
            whole = int64(physics.nearest_integer(shared[SCALED] * flow))
            gain = int64(physics.nearest_integer(shared[SCALED] * ahead))
            at = np.uint32(2 * cell_p)
            same_p, gained = gather(change, row, at + 1, gain, last_p + 1, gained)
            last_p, gathered = gather(change, row, at, whole, last_p, gathered)
        if only_p == 0:
            deposit_apart(change, row, six, r, whole, gain)""",
}


def _deeper(text: str) -> str:
    return "\n".join("    " + line if line else line for line in text.splitlines())


def body(projection: str, sampling: str, apart: bool) -> str:
    """Return the source that handles a sample once p is drawn."""
    conserving = projection == "conserving"
    variant = dict(APART_OF_EVENTS if apart else STEPS_OF_EVENTS)
    pairs = TWO_PAIRS if conserving else ONE_PAIR
    use = variant.pop("use").format(**pairs)
    land = CONSERVING if conserving else NEAREST
    weigh = WEIGH.format(land=land, other=pairs["other"], use=use, **variant)
    if sampling == "cm":
        return THROUGH_CM.format(weigh=weigh)
    return THROUGH_ROOTS.format(through_k3=sampling == "k3", weigh=_deeper(weigh))


NUMPY = types.ModuleType("numpy", "NumPy functions for matrix elements on a GPU: scalars only.")
vars(NUMPY).update(
    {name: getattr(math, name) for name in (
        "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh",
        "cosh", "tanh", "hypot", "pi", "e",
    )},
    abs=abs, absolute=abs, fabs=abs, power=pow, maximum=max, minimum=min, arctan=math.atan,
    arctan2=math.atan2, arcsin=math.asin, arccos=math.acos,
)  # fmt: skip


def for_gpu(function: Function) -> Function:
    """Return a user's function with NumPy's scalar functions replaced by those of math."""
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


def kinds_of(processes: Sequence[Process]) -> tuple[Kinds, list[int], list[list[float]]]:
    """Return the distinct matrix elements, the one each process uses, and its parameters."""
    kinds: Kinds = {}
    numbers, parameters = [], []
    for process in processes:
        arguments, own = arguments_of(process)
        numbers.append(kinds.setdefault((process.matrix_element, arguments), len(kinds)))
        parameters.append(own)
    return kinds, numbers, parameters


_package: dict[Any, Any] = {}
"""Kernels that use only this package's own matrix elements, which do not change."""


def draw_kernel(model: Model, projection: str, sampling: str, apart: bool) -> Any:
    """Return the kernel that draws the events of a model, for steps or (apart) for C[f]."""
    kinds, _, _ = kinds_of(model.processes)
    if not all(process.built_in for process in model.processes):
        return _generated(kinds, projection, sampling, apart, False)
    key = (tuple(kinds), projection, sampling, apart)
    if key not in _package:
        _package[key] = _generated(kinds, projection, sampling, apart, True)
    return _package[key]


def element_parts(kinds: Kinds, ours: bool) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the matrix-element functions and the source parts of a module that calls them."""
    imports, elements, choice = [], [], []
    functions: dict[str, Any] = {}
    for (function, arguments), i in kinds.items():
        if ours:
            where = function.__module__
            imports.append(f"from {where} import {function.__name__} as function_{i}")
        functions[f"function_{i}"] = for_gpu(function)
        elements.append(f"element_{i} = device_function(function_{i})")
        lines = [f"    if kind == {i}:", preamble(arguments, 8)]
        count = arguments.count("own_")
        lines += [f"        own_{j} = own[channel, k.OWN + {j}]" for j in range(count)]
        choice.append("\n".join([*lines, f"        return float64(element_{i}({arguments}))"]))
    parts = {
        "imports": "\n".join(imports), "elements": "\n".join(elements),
        "choice": "\n".join(choice) or "    pass",
    }  # fmt: skip
    return functions, parts


def _generated(kinds: Kinds, projection: str, sampling: str, apart: bool, ours: bool) -> Any:
    """Generate the kernel with these matrix elements; ours : all belong to this package."""
    functions, parts = element_parts(kinds, ours)
    text = TEMPLATE.format(
        **parts, body=body(projection, sampling, apart),
        cached=ours, registers=REGISTERS, roots=1 if sampling == "cm" else 2,
        **(APART if apart else STEPS),
    )  # fmt: skip
    if ours:
        return load(text, "draw").draw
    space: dict[str, Any] = dict(functions)
    exec(text, space)
    return space["draw"]
