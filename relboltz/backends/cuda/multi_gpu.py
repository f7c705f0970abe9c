"""Stepping on several GPUs, each of which holds some of the sites.

Every GPU has the masses and collision sums of all sites, and takes the same decisions as a single
GPU with all sites would, by the same kernels. The workers exchange results of their own sites
within a step; so the host waits, and a step is not recorded as a graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...stepping.state import State
from ..team.division import Division
from ..team.exchange import Exchange, concatenated, total
from . import layout as k
from .distributed_sweep import DistributedSweep
from .graph_stepper import GraphStepper

if TYPE_CHECKING:
    from .backend import CudaBackend


class MultiGpuStepper(GraphStepper):
    """Steps a state on several GPUs; ``rows`` has all sites, of which ``sites`` are local."""

    def __init__(self, backend: CudaBackend, division: Division, exchange: Exchange):
        buffers = backend.buffers
        self.division, self.sites = division, division.sites(exchange.rank)
        self.exchange: Exchange | None = exchange
        buffers.before = self.sites.start
        own = (buffers.told, buffers.counts, buffers.site_flows)
        every = [buffers.new((division.grid.sites, *a.shape[1:]), a.dtype) for a in own]
        buffers.told, buffers.counts, buffers.site_flows = (a[self.sites] for a in every)
        super().__init__(backend, division.grid)
        self.told, self.counts, self.site_flows = every
        self.across = DistributedSweep(backend, division, exchange.rank)
        self._left = {axis: buffers.new(2 * buffers.cells, np.int64) for axis in self.ledger.words}

    def launches(self) -> None:
        """Launch every kernel that a run uses repeatedly, without communication."""
        exchange, self.exchange = self.exchange, None
        super().launches()
        self.exchange = exchange

    def _own(self, row: int) -> Any:
        return self.rows[row][self.sites]

    def _sweep(self, axis: int) -> tuple[Any, Any]:
        if not self.division.cuts(axis):
            swept = self.backend.sweep(axis, self._own(k.USED))
            return swept.energies, swept.refused
        no_push = self.backend.no_push
        cut = self.across.sweep(self.exchange, axis, self.rows[k.USED], no_push)
        return cut.energies, cut.refused

    def _masses(self) -> None:
        super()._masses()
        self._tell(self.rows[k.EXPECTED])

    def _tell_collisions(self) -> None:
        self._tell(self.told, self.counts, self.site_flows)

    def _tell(self, *arrays: Any) -> None:
        """Exchange rows of local sites, and merge status, fault and need as a single GPU would."""
        if self.exchange is None:
            return
        control, sites = self.buffers.fetch(self.context.control), self.division.counts
        if len(arrays) > 2 and not control[k.WANT_RATES]:
            arrays = arrays[:2]
        own = sites[self.exchange.rank]
        flags = np.tile(control[[k.STATUS, k.FAULT, k.NEEDED]], (own, 1))
        mine = [a[self.sites].copy_to_host().reshape(own, -1) for a in arrays] + [flags]
        every = concatenated(self.exchange, np.hstack([a.view(np.float64) for a in mine]), sites)
        *told, flags = np.split(every, np.cumsum([a.shape[1] for a in mine])[:-1], axis=1)
        for array, rows in zip(arrays, told, strict=True):
            rows = np.ascontiguousarray(rows).view(array.dtype)
            array.copy_to_device(rows.reshape(array.shape))
        status, fault, needed = np.ascontiguousarray(flags).view(np.int64).T
        control[k.STATUS], control[k.FAULT] = status.max(), fault.min()
        control[k.NEEDED] = needed.max()
        self.context.control.copy_to_device(control)

    def _let_out(self) -> dict[int, Any]:
        if self.exchange is None:
            return self._left
        passed = self.ledger.passed
        passed.copy_to_device(total(self.exchange, self.buffers.fetch(passed)))
        for axis, left in self._left.items():
            left.copy_to_device(self.left(self.exchange, axis).ravel())
        return self._left

    def left(self, exchange: Exchange, axis: int) -> Any:
        """Return and clear the quanta that left in sweeps of all workers along an axis."""
        if self.division.cuts(axis):
            return self.across.left(exchange, axis)
        return total(exchange, self.backend.taken_out(axis))

    def _report_fault(self, state: State, site: int, block: int) -> None:
        if self.exchange is not None and not self.sites.start <= site < self.sites.stop:
            self.exchange.agree()  # the worker that holds the site reports it and stops
        super()._report_fault(state, site, block)

    def _where(self, site: int) -> str:
        return f" in space cell {site}"
