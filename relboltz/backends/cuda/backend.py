"""CUDA backend for one GPU: streams in place and collides as many sites at once as fit.

Work requested by the host is launched from a separate ``device_buffers.LaunchContext``, so it never
disturbs the steps that the GPU takes on its own (``graph_stepper.GraphStepper``).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...config.settings import Sampling
from ...events.collisions import DrawInput
from ...events.estimates import Estimates
from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import unsolved
from ...model.model import Model
from ...stepping.expanding import stresses
from ...stepping.quanta import capacities, occupation
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan, advance
from ...stepping.step_report import StepReport, no_limits, too_long
from ...transport.ledger import WallFlux
from ...transport.moments import FIT_SUMS, Moments
from ...transport.pencils import Pencils
from ...util.arrays import Array, Integers
from ...util.errors import Halted
from ..cpu import fitting, landau
from ..elements import Elements
from ..team.division import Division
from ..team.exchange import Exchange
from . import driver
from . import layout as k
from .compiler_processes import build_ahead
from .device_buffers import DeviceBuffers
from .distributed_sweep import DistributedSweep
from .estimates import Estimator
from .graph_stepper import GraphStepper
from .masses import MassMemory, launch_masses
from .memory import MemoryPlan, check_memory
from .moments import MarginalSums, MomentMeasurer, fit_sums
from .multi_gpu import MultiGpuStepper
from .process_rates import flows_of, report_fault
from .stages import BatchStages
from .sweeps import Sweep, SweepMemory, passage

NONE_LEFT = np.zeros(0, np.int64)


class CudaBackend:
    """Backend that keeps all its sites on one GPU; implements ``contract.Backend``.

    Parameters
    ----------
    grid, model, sampling : phase-space grid, physics model and sampling settings
    precision : "float32" or "float64", for weights and exponentials; everything that decides
        where a particle goes, and every conserved quantity, is float64 or an integer anyway
    site_ids : site numbers in the run, if this backend holds only some of the sites
    exchange : communication between workers that share the samples of homogeneous matter, or the
        sites of a division
    part : fraction of the free GPU memory that this backend may use
    division : division of the run's sites into slabs, if this backend holds one (``slab``)
    """

    name = "cuda"
    local_sites = slice(None)

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        precision: str,
        site_ids: Integers | None = None,
        exchange: Exchange | None = None,
        part: float = 1.0,
        division: Division | None = None,
    ):
        self.grid, self.model, self.sampling, self.precision = grid, model, sampling, precision
        self.site_ids = np.arange(grid.sites) if site_ids is None else site_ids
        self.shape = (grid.sites, len(model.species), grid.size)
        self.interrupt: object = False
        shared, workers, beside = None, 1, 0
        if division is not None and exchange is not None:
            beside = DistributedSweep.bytes(division, exchange.rank, self.shape[1])
        elif exchange is not None:
            shared, workers = exchange, exchange.size
        plan, free = (
            MemoryPlan(grid, model, sampling, precision, workers, beside),
            part * driver.free_memory(),
        )
        check_memory(plan, free)
        self.elements = Elements(model)
        self.buffers = buffers = DeviceBuffers(plan, self.elements, self.site_ids, free, shared)
        self.row = 0
        """Index of the row of ``buffers.number`` (0 or 1) that holds the state."""
        self._squares = buffers.new((grid.sites, buffers.width), np.float64)
        self.context = buffers.context
        self._uploaded: Array | None = None
        self._push = buffers.new((*self.shape[:2], 2), np.float64)
        self.no_push = self._push[:0]
        self.capacity = buffers.new(self.shape[1], np.float64)
        self.mass_room = MassMemory.of(buffers)
        self._measurer, self._sums = (
            MomentMeasurer(buffers, grid),
            dict[tuple[str, ...], MarginalSums](),
        )
        self._axes: dict[int, Sweep] = {}
        self.scratch = SweepMemory(buffers, plan.scratch)
        sites, kinds = grid.sites, buffers.species
        self._fits = (
            buffers.new((sites, 4 + kinds), np.float64), buffers.new(sites, np.int64),
            buffers.new((sites * kinds, FIT_SUMS), np.float64),
        )  # fmt: skip
        self._stages = BatchStages(buffers)
        self.stepper: GraphStepper
        if division is not None and exchange is not None:
            self.stepper = MultiGpuStepper(self, division, exchange)
        else:
            self.stepper = GraphStepper(self)
        if not driver.SIMULATED:
            build_ahead(self.stepper.launches, driver.device, [fitting.JOB, landau.JOB])

    @property
    def description(self) -> str:
        """GPU name and precision, for display."""
        return f"cuda, {driver.device()['name']}, {self.precision}"

    @property
    def memory(self) -> int:
        """Total size of all arrays on the GPU in bytes."""
        return self.buffers.allocated

    def load(self) -> dict[str, Any]:
        """Return an empty dictionary: a single process does all the work."""
        return {}

    def close(self) -> None:
        """Do nothing: there are no worker processes to stop."""

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Upload a state (sites, species, nodes) in quanta of 2^-bits."""
        buffers = self.buffers
        self.synchronize()
        self.row, self._bits = 0, bits
        buffers.number[0].copy_to_device(np.ascontiguousarray(number, np.int64).reshape(-1))
        full = capacities(self.model, bits)
        buffers.capacity.copy_to_device(full)
        self.capacity.copy_to_device(full.astype(float))
        self._control, self._scalars = buffers.fresh_control(2.0**-bits)
        self._control[k.STATUS], self._control[k.THERMAL] = k.GO, 0
        self.stepper.forget()

    def get(self) -> Integers:
        """Return the state (sites, species, nodes) in quanta."""
        self.synchronize()
        return self.buffers.fetch(self.buffers.number[self.row]).reshape(self.shape)

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid."""
        if grid.momentum_max == self.grid.momentum_max:
            return
        self.synchronize()
        self.buffers.wait()
        self.grid = grid
        self.buffers.set_momentum_grid(grid.without_space)
        self.buffers.of_nodes(self._scalars)
        self._measurer.set_momentum_grid(grid)
        for axis, sweep in self._axes.items():
            sweep.set_momentum_grid(self.pencils(axis))
        self.stepper.forget()

    def f_of(self, site: int, row: int) -> Array:
        """Return f (species, nodes) at a site from one row of ``buffers.number``."""
        cells = self.buffers.number[
            row, site * self.buffers.cells : (site + 1) * self.buffers.cells
        ]
        return occupation(self.buffers.fetch(cells).reshape(self.shape[1:]), self._bits, self.model)

    def where(self, site: int) -> str:
        """Return a phrase that names a site, for messages."""
        return f" in space cell {self.site_ids[site]}" if self.grid.sites > 1 else ""

    def save(self) -> None:
        """Save a copy of the state for ``restore``."""
        self.synchronize()
        number = self.buffers.number
        number[1 - self.row].copy_to_device(number[self.row])

    def restore(self) -> None:
        """Return to the state saved by ``save``."""
        self.synchronize()
        number = self.buffers.number
        number[self.row].copy_to_device(number[1 - self.row])
        self.stepper.forget()

    def _set(
        self, step: int = 0, scale: float = 0.0, length: float = 1.0, lasts: float = 0.0
    ) -> None:
        """Upload the control numbers and scalars for the next kernels."""
        buffers = self.buffers
        self.synchronize()
        buffers.context = self.context
        self._control[k.STEP] = step
        self._control[k.SOURCE] = self._control[k.TARGET] = self.row
        self._scalars[k.SCALE], self._scalars[k.LENGTH] = scale, length
        self._scalars[k.LASTS] = lasts
        self.context.control.copy_to_device(self._control)
        self.context.scalars.copy_to_device(self._scalars)

    def _upload(self, squares: Array) -> None:
        if squares is not self._uploaded:
            self._squares.copy_to_device(np.ascontiguousarray(squares))
            self._uploaded = squares

    # -- evolution ----------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until ``stop`` [fm], on the GPU alone unless the host must control each step."""
        if self.led(step_plan):
            return advance(self, state, step_plan, stop)
        return self.stepper.advance(state, step_plan, stop)

    def launch_steps(self, state: State, step_plan: StepPlan, stop: float) -> None:
        """Launch steps towards ``stop`` while the host does other work."""
        if self.stepper.alone and not self.led(step_plan) and not self.interrupt:
            self.stepper.launch_steps(state, step_plan, stop)

    def synchronize(self) -> None:
        """Wait for launched steps and take over their state."""
        self.stepper.synchronize()

    def led(self, step_plan: StepPlan) -> bool:
        """Return whether the host controls every step."""
        pushed = bool(step_plan.forces) or step_plan.schedule is not None
        return pushed or not (self.buffers.blocks or self.grid.moving_axes)

    def pencils(self, axis: int) -> Pencils:
        """Return the pencils along an axis."""
        return Pencils.of(self.grid, self.model, axis)

    def _axis(self, axis: int) -> Sweep:
        """Return the sweep along an axis, allocated on first use."""
        if axis not in self._axes:
            pencils = self.pencils(axis)
            self._axes[axis] = Sweep(self.buffers, pencils, self.grid.size, self.scratch)
        return self._axes[axis]

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream along an axis for ``length`` [fm]; squares : squared masses at the sites."""
        if self.interrupt:
            raise Halted
        swept = self.swept(axis, length, squares, push)
        left = self.taken_out(axis).reshape(-1, *self.shape[1:])
        return passage(axis, left, swept.sums())

    def swept(self, axis: int, length: float, squares: Array, push: Array | None) -> Sweep:
        """Stream along an axis and return the ``Sweep`` that holds the results."""
        self.let_last(length)
        self._upload(squares)
        if push is not None:
            self._push.copy_to_device(np.ascontiguousarray(push))
        return self.sweep(axis, self._squares, push is not None)

    def taken_out(self, axis: int) -> Integers:
        """Return and clear the quanta that left in sweeps along an axis (``take_out``)."""
        return self.take_out(self._axis(axis))

    def let_last(self, length: float) -> None:
        """Set the duration of the next sweep [fm]."""
        self.stepper.forget()
        self._set(lasts=length)

    def take_out(self, swept: Sweep) -> Integers:
        """Return and clear the quanta that left in sweeps; empty if no wall is open."""
        if not swept.pencils.open:
            return NONE_LEFT
        left: Integers = self.buffers.fetch(swept.let_out)
        driver.clear(swept.let_out, self.buffers.stream)
        return left

    def sweep(self, axis: int, squares: Any, pushed: bool = False) -> Sweep:
        """Launch a sweep along an axis for the duration in the context, with or without a push."""
        buffers, swept = self.buffers, self._axis(axis)
        push = self._push if pushed else self.no_push
        swept.launch(buffers.context.control, buffers.number, squares, push, self.capacity)
        return swept

    def let_out(self, axis: int) -> Any:
        """Return the GPU array in which a sweep adds up the quanta that leave."""
        return self._axis(axis).let_out

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites for ``length`` [fm]; 0 gives the rates and moves nothing."""
        if not self.buffers.blocks:
            return StepReport.nothing(self.grid.sites, length)
        return self.report(length, *self.collided(step, length, squares))

    def collided(self, step: int, length: float, squares: Array) -> tuple[Array, Integers, Array]:
        """Collide and return sums and counts of every site (``layout``) and its channel flows."""
        buffers = self.buffers
        self.stepper.forget()
        scale = 0.5 * length * 2.0**self._bits
        self._control[k.WANT_RATES] = 1
        self._set(step, scale, length)
        self._upload(squares)

        def look() -> None:
            self._look(step, squares)

        self._stages.everywhere(self._squares, True, look)
        return (
            buffers.fetch(buffers.told),
            buffers.fetch(buffers.counts),
            buffers.fetch(buffers.site_flows),
        )

    def report(self, length: float, told: Array, counts: Integers, flows: Array) -> StepReport:
        """Combine the collision sums of the sites into a ``StepReport``."""
        if not self.sampling.symmetrical and (told[:, k.TOLD_QUANTA] >= k.LARGEST_SUM).any():
            raise too_long()
        mean = flows.sum(axis=0) / len(flows)
        all_, lost, _, apart, size, limited = (told[:, i] for i in range(6))
        return StepReport(
            length, [(int(d), int(m), int(t)) for m, d, t in counts],
            flows_of(self.buffers, mean), (float(all_.sum()), float(lost.sum())), limited,
            (float(apart.sum()), float(size.sum())),
        )  # fmt: skip

    def _look(self, step: int, squares: Array) -> None:
        """Apply limits if a site of the batch needs them, so that no illegal state is kept."""
        if self.interrupt:
            raise Halted
        buffers = self.buffers
        self._stages.question()
        control = buffers.fetch(self.context.control)
        if control[k.FAULT] < k.NO_FAULT:
            site, block = divmod(int(control[k.FAULT]), buffers.blocks)
            site -= buffers.before
            draw = DrawInput.of(step, squares[site], buffers.species, int(self.site_ids[site]))
            report_fault(buffers, block, draw, self.f_of(site, self.row))
        if control[k.TROUBLED]:
            self._stages.limited()
            if buffers.fetch(self.context.control)[k.STATUS] == k.NO_LIMITS:
                raise no_limits()

    # -- observables ------------------------------------------------------------------

    def masses(self, start: Array) -> Array:
        """Return the squared masses of species and screenings at all sites [GeV^2]."""
        buffers = self.buffers
        self._set()
        self._upload(start)
        there = self._squares
        launch_masses(buffers, self.mass_room, self.context, there, there, there)
        self._uploaded = squares = buffers.fetch(self._squares)
        bad = ~np.isfinite(squares).all(axis=1)
        if bad.any():
            raise unsolved(self.where(int(bad.argmax())))
        return squares

    @cached_property
    def _nothing(self) -> Array:
        return np.zeros(self.shape[1:])

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows unchanged: this backend holds all sites."""
        return rows

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites."""
        return stresses(self.grid, self.model, self.moments(squares, self._nothing), squares)

    def moments(self, squares: Array, final: Array) -> Moments:
        """Return sums over the nodes of every site."""
        self.synchronize()
        there = self.stepper.now
        if not self.stepper.knows(squares):
            self._upload(squares)
            there = self._squares
        return self._measurer.moments(self.row, 2.0**-self._bits, there, final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Return N f in quanta, summed over all axes except those kept."""
        self._set()
        axes = tuple(kept)
        if axes not in self._sums:
            self._sums[axes] = MarginalSums(self.buffers, self.grid, axes)
        return self._sums[axes].of_state()

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Return the sums over nodes that ``Fits`` needs, at the sites ``which``."""
        buffers, count = self.buffers, len(which)
        rows = count * buffers.species
        if not count:
            return np.zeros((0, buffers.species, FIT_SUMS))
        self._upload(squares)
        there, chosen, sums = self._fits
        if count < self.grid.sites:
            there, chosen, sums = there[:count], chosen[:count], sums[:rows]
        there.copy_to_device(np.ascontiguousarray(theta))
        chosen.copy_to_device(which)
        buffers.launch(
            fit_sums, rows, there, self._squares, chosen, buffers.species_numbers, buffers.packed,
            buffers.momentum, buffers.geometry, sums,
        )  # fmt: skip
        return buffers.fetch(sums).reshape(count, buffers.species, FIT_SUMS)

    def squares(self, f: Array) -> Array:
        """Return the squared masses of species, then screenings, for a given f (species, nodes)."""
        return self._estimator.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Start estimating C[f] for f (species, nodes) from independent draws of events."""
        return self._estimator.estimates(f, squares, batches)

    @cached_property
    def _estimator(self) -> Estimator:
        return Estimator(self.buffers)
