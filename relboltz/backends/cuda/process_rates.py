"""Flows of processes and illegal matrix elements, from the sums of event blocks."""

from typing import NoReturn

import numpy as np

from ...events.collisions import DrawInput, Flows
from ...util.arrays import Array
from ...util.errors import InputError
from ..cpu.collider import Collider
from . import layout as k
from .device_problem import DeviceProblem


def flows_of(problem: DeviceProblem, channel_flows: Array) -> Flows:
    """Return the flows of processes (...) from those of channels (..., channels, 4).

    Each channel has forward flow, backward flow, and weights above and below 0.
    """
    belongs, same, turned = problem.shares
    there, back, above, below = np.moveaxis(channel_flows[..., : len(belongs), :], -1, 0)
    signed = np.stack([above @ belongs, below @ belongs])
    return Flows(there @ same + back @ turned, back @ same + there @ turned, 0.0, 0.0, signed)


def rates_of(by_channel: Array) -> Array:
    """Return the flows of channels (..., channels, 4) from their sums (..., channels, SUMS)."""
    there, net = by_channel[..., k.FORWARD], by_channel[..., k.NET]
    weights = by_channel[..., k.EVERYTHING], by_channel[..., k.BELOW]
    return np.stack([there, np.maximum(there - net, 0.0), *weights], axis=-1)


def report_fault(problem: DeviceProblem, block: int, draw: DrawInput, f: Array) -> NoReturn:
    """Raise InputError for an illegal matrix element; the CPU redraws the events and names it."""
    Collider(problem.grid, problem.elements, problem.sampling).draw_of(draw, f.ravel())
    channel = problem.channels[int(np.searchsorted(problem.first_blocks, block, side="right")) - 1]
    raise InputError(
        f"process {problem.model.processes[channel.process].name}: the matrix element is negative "
        "or not a number; |M|^2 must be a number >= 0 everywhere it is reached"
    )
