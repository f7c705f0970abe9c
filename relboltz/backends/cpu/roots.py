"""The paper's own way through the delta function, kept for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...events.collisions import MORE_WORDS, illegal
from . import events as k


def draw_roots(
    arguments: tuple[Any, ...], area: float, through_k3: bool, more: NDArray[np.uint64]
) -> int:
    """As ``draw_group``, through both roots of one of the paper's delta functions.

    arguments : of ``draw_group``; area : of the box across z; more : room for random words.
    Kept for comparison, so it is not compiled as a whole.
    """
    (evaluate, span, who, tables, grid, m2, element, how, offsets, occupancy, scratch, events,
     found) = arguments  # fmt: skip
    first, total, samples, which = span
    channel, step, seed, site = who
    w, words, nodes = scratch
    legs, weights, ratios = events
    counts, sums, fault = found
    for chunk in range(len(counts)):
        done = chunk * k.CHUNK
        count = min(k.CHUNK, total - done)
        sample = which * samples + first + done
        k.draw_words(sample, count, channel, step, site, seed, words)
        k.draw_pairs(first + done, count, samples, words, *tables, grid, w, nodes)
        k.draw_words(sample, count, channel | MORE_WORDS, step, site, seed, more)
        k.draw_box(count, words, more, grid, nodes, w)
        counts[chunk], sums[chunk], fault[:] = 0, 0.0, 0.0
        for branch in (1.0, -1.0):
            k.roots_chunk(count, m2, grid, area, branch, through_k3, w)
            evaluate(count, *element, w)
            k.inspect_elements(count, how[5], w, fault)
            part = slice(2 * done + counts[chunk], 2 * (done + k.CHUNK))
            landed, *weighed = k.land_nearest(
                count, grid, how[3], offsets, occupancy, w, nodes,
                legs[part], weights[part], ratios[part],
            )  # fmt: skip
            counts[chunk] += landed
            sums[chunk] += weighed
        if illegal(fault[0], fault[1]):
            return -1
    return 0
