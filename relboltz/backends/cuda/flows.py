"""What the sums of the blocks tell: flows of processes, lost weight, illegal matrix elements."""

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...events.collisions import SETS, Draw, Estimate, Flows, finest_scale, illegal
from ...stepping.quanta import MOST_BITS
from ..cpu.collider import Collider
from . import kernels
from . import layout as k
from .machine import Machine


def flows_of(machine: Machine, channel_flows: Array) -> Flows:
    """Flows of processes from those of channels: ahead, back, weight above and below 0."""
    totals = np.zeros((2, len(machine.model.processes)))
    signed = np.zeros_like(totals)
    for channel, (ahead, back, *weights) in zip(machine.channels, channel_flows, strict=False):
        share = 0.25 if channel.only_p else 1.0
        rows = (0, 1) if channel.forward else (1, 0)
        totals[rows[0], channel.process] += share * ahead
        totals[rows[1], channel.process] += share * back
        signed[:, channel.process] += weights
    return Flows(totals[0], totals[1], 0.0, 0.0, signed)


def channel_flows(machine: Machine, sums: Array) -> Array:
    """Flows of the channels (..., channels, 4) from the sums (..., blocks, SUMS)."""
    by_channel = np.add.reduceat(sums, machine.first_blocks, axis=-2)
    ahead, net = by_channel[..., k.FORWARD], by_channel[..., k.NET]
    weights = by_channel[..., k.EVERYTHING], by_channel[..., k.BELOW]
    return np.stack([ahead, np.maximum(ahead - net, 0.0), *weights], axis=-1)


def look(machine: Machine, origin: Callable[[int], tuple[Draw, Array]]) -> tuple[Array, Array]:
    """Flows of the channels, and all and lost weight, at each site at work.

    origin : events and f of such a site, if a matrix element turns out to be illegal
    """
    rows = machine.sums.copy_to_host()[: machine.blocks * machine.count]
    for i in np.flatnonzero(rows[:, k.NEGATIVE] != 0.0):
        if illegal(rows[i, k.NEGATIVE], rows[i, k.POSITIVE]):
            site, block = divmod(int(i), machine.blocks)
            report_fault(machine, block, *origin(site))
    table = rows.reshape(machine.count, machine.blocks, -1)
    return channel_flows(machine, table), table[:, :, [k.EVERYTHING, k.LOST]].sum(axis=1)


def report_fault(machine: Machine, block: int, draw: Draw, f: Array) -> NoReturn:
    """The error for an illegal matrix element: the CPU draws the same events and names it."""
    Collider(machine.grid, machine.elements, machine.sampling).draw(draw, f.ravel())
    channel = machine.channels[int(np.searchsorted(machine.first_blocks, block, side="right")) - 1]
    raise InputError(
        f"process {machine.model.processes[channel.process].name}: the matrix element is negative "
        "or not a number; |M|^2 must be a number >= 0 everywhere it is reached"
    )


def estimate(machine: Machine, f: Array, draw: Draw) -> Estimate:
    """C[f] from one draw of events; f (species, nodes)."""
    control, scalars = machine.fresh_control(2.0**-MOST_BITS)
    control[k.STEP] = draw.step
    squares = np.append(draw.mass_squared, draw.screening2)[None]
    machine.desk.squares = machine.upload(squares, np.float64)
    machine.desk.control.copy_to_device(control)
    machine.desk.scalars.copy_to_device(scalars)
    machine.prepare(machine.upload(np.append(f.ravel(), f.max(axis=1)), np.float64))
    machine.draw_all(True)
    flows, scale, null = Flows(np.zeros(0), np.zeros(0), 0.0, 0.0), 1.0, 0.0
    if machine.blocks:
        by_channel, drawn = look(machine, lambda site: (draw, f))
        flows = flows_of(machine, by_channel[0])
        total, lost = drawn[0]
        scale, null = finest_scale(flows), float(lost / total) if total > 0 else 0.0
    scalars[k.SCALE] = scale
    machine.desk.scalars.copy_to_device(scalars)
    gain, loss = (machine.upload(np.zeros(machine.cells), np.int64) for _ in range(2))
    machine.over_events(kernels.gross, gain, loss)
    machine.apply(k.FIRST_STAGE)
    net = machine.change.copy_to_host()[:SETS].sum(axis=0) / scale
    return Estimate(net, gain.copy_to_host() / scale, loss.copy_to_host() / scale, flows, null)
