"""All sites of a state on one GPU: streaming in place, collisions for as many at once as fit.

What is done to the state is launched from a desk of its own (``machine.Desk``), so that it never
disturbs steps that the GPU takes on its own (``ahead``).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...config.settings import Sampling
from ...events.collisions import DrawnEvents
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
from .flows import flows_of, report_fault
from .graph_stepper import GraphStepper
from .masses import MassMemory, launch_masses
from .memory import MemoryPlan, check_memory
from .moments import MarginalSums, MomentMeasurer, fit_sums
from .multi_gpu import MultiGpuStepper
from .stages import BatchStages
from .sweeps import Sweep, SweepMemory, passage

NONE_LEFT = np.zeros(0, np.int64)


class CudaBackend:
    """All sites of a state, on one GPU: see ``contract.Backend``.

    Parameters
    ----------
    grid, model, sampling : what to solve
    precision : "float32" or "float64", of weights and exponentials; everything that decides
        where a particle goes, and all that is conserved, is float64 or whole numbers anyway
    numbers : of the sites among all of the run, if these are not all
    exchange : with workers that share the samples of homogeneous matter, or the sites of a division
    part : of the free memory of the GPU that is for this backend
    division : of the sites of the run, of which these are some, see ``slab``
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
        self.machine = machine = DeviceBuffers(plan, self.elements, self.site_ids, free, shared)
        self.row = 0
        """Of the two rows of numbers, the one that holds the state."""
        self._squares = machine.new((grid.sites, machine.width), np.float64)
        self.desk = machine.desk
        self._uploaded: Array | None = None
        self._push = machine.new((*self.shape[:2], 2), np.float64)
        self.no_push = self._push[:0]
        self.capacity = machine.new(self.shape[1], np.float64)
        self.mass_room = MassMemory.of(machine)
        self._meter, self._sums = (
            MomentMeasurer(machine, grid),
            dict[tuple[str, ...], MarginalSums](),
        )
        self._axes: dict[int, Sweep] = {}
        self.scratch = SweepMemory(machine, plan.scratch)
        sites, kinds = grid.sites, machine.species
        self._fits = (
            machine.new((sites, 4 + kinds), np.float64), machine.new(sites, np.int64),
            machine.new((sites * kinds, FIT_SUMS), np.float64),
        )  # fmt: skip
        self._stages = BatchStages(machine)
        self.ahead: GraphStepper
        if division is not None and exchange is not None:
            self.ahead = MultiGpuStepper(self, division, exchange)
        else:
            self.ahead = GraphStepper(self)
        if not driver.SIMULATED:
            build_ahead(self.ahead.launches, driver.device, [fitting.JOB, landau.JOB])

    @property
    def description(self) -> str:
        """Where the work is done, in words."""
        return f"cuda, {driver.device()['name']}, {self.precision}"

    @property
    def memory(self) -> int:
        """Bytes of all arrays on the GPU."""
        return self.machine.allocated

    def load(self) -> dict[str, Any]:
        """Nothing: one process does it all."""
        return {}

    def close(self) -> None:
        """Nobody else works for it."""

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""
        machine = self.machine
        self.synchronize()
        self.row, self._bits = 0, bits
        machine.number[0].copy_to_device(np.ascontiguousarray(number, np.int64).reshape(-1))
        full = capacities(self.model, bits)
        machine.capacity.copy_to_device(full)
        self.capacity.copy_to_device(full.astype(float))
        self._control, self._scalars = machine.fresh_control(2.0**-bits)
        self._control[k.STATUS], self._control[k.THERMAL] = k.GO, 0
        self.ahead.forget()

    def get(self) -> Integers:
        """The state (sites, species, nodes) in quanta."""
        self.synchronize()
        return self.machine.fetch(self.machine.number[self.row]).reshape(self.shape)

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid."""
        if grid.momentum_max == self.grid.momentum_max:
            return
        self.synchronize()
        self.machine.wait()
        self.grid = grid
        self.machine.set_momentum_grid(grid.at_a_site)
        self.machine.of_nodes(self._scalars)
        self._meter.set_momentum_grid(grid)
        for axis, sweep in self._axes.items():
            sweep.set_momentum_grid(self.pencils(axis))
        self.ahead.forget()

    def f_of(self, site: int, row: int) -> Array:
        """f (species, nodes) of a site, in a row of numbers."""
        cells = self.machine.number[
            row, site * self.machine.cells : (site + 1) * self.machine.cells
        ]
        return occupation(self.machine.fetch(cells).reshape(self.shape[1:]), self._bits, self.model)

    def where(self, site: int) -> str:
        """A site in words, for messages."""
        return f" in space cell {self.site_ids[site]}" if self.grid.sites > 1 else ""

    def save(self) -> None:
        """Remember the state."""
        self.synchronize()
        number = self.machine.number
        number[1 - self.row].copy_to_device(number[self.row])

    def restore(self) -> None:
        """Back to what was remembered."""
        self.synchronize()
        number = self.machine.number
        number[self.row].copy_to_device(number[1 - self.row])
        self.ahead.forget()

    def _set(
        self, step: int = 0, scale: float = 0.0, length: float = 1.0, lasts: float = 0.0
    ) -> None:
        """Tell the GPU what the next kernels are about."""
        machine = self.machine
        self.synchronize()
        machine.desk = self.desk
        self._control[k.STEP] = step
        self._control[k.SOURCE] = self._control[k.TARGET] = self.row
        self._scalars[k.SCALE], self._scalars[k.LENGTH] = scale, length
        self._scalars[k.LASTS] = lasts
        self.desk.control.copy_to_device(self._control)
        self.desk.scalars.copy_to_device(self._scalars)

    def _upload(self, squares: Array) -> None:
        if squares is not self._uploaded:
            self._squares.copy_to_device(np.ascontiguousarray(squares))
            self._uploaded = squares

    # -- what happens to it ----------------------------------------------------------------------

    def advance(self, state: State, course: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until the stop [fm]: the GPU does so on its own, unless the host leads."""
        if self.led(course):
            return advance(self, state, course, stop)
        return self.ahead.advance(state, course, stop)

    def launch_steps(self, state: State, course: StepPlan, stop: float) -> None:
        """Steps until the stop begin while the host has other work."""
        if self.ahead.alone and not self.led(course) and not self.interrupt:
            self.ahead.launch_steps(state, course, stop)

    def synchronize(self) -> None:
        """Steps that were set out on are done, and the state is theirs."""
        self.ahead.synchronize()

    def led(self, course: StepPlan) -> bool:
        """Whether the host leads every step."""
        pushed = bool(course.forces) or course.flow is not None
        return pushed or not (self.machine.blocks or self.grid.moving_axes)

    def pencils(self, axis: int) -> Pencils:
        """The pencils of an axis."""
        return Pencils.of(self.grid, self.model, axis)

    def _axis(self, axis: int) -> Sweep:
        """What a sweep along an axis needs on the GPU."""
        if axis not in self._axes:
            pencils = self.pencils(axis)
            self._axes[axis] = Sweep(self.machine, pencils, self.grid.size, self.scratch)
        return self._axes[axis]

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream along an axis for a length [fm], with these squared masses at the sites."""
        if self.interrupt:
            raise Halted
        swept = self.swept(axis, length, squares, push)
        left = self.taken_out(axis).reshape(-1, *self.shape[1:])
        return passage(axis, left, swept.sums())

    def swept(self, axis: int, length: float, squares: Array, push: Array | None) -> Sweep:
        """The same; what was found is with the sweep."""
        self.let_last(length)
        self._upload(squares)
        if push is not None:
            self._push.copy_to_device(np.ascontiguousarray(push))
        return self.sweep(axis, self._squares, push is not None)

    def taken_out(self, axis: int) -> Integers:
        """What left in sweeps along an axis, see ``take_out``."""
        return self.take_out(self._axis(axis))

    def let_last(self, length: float) -> None:
        """The next sweep is to last so long [fm]."""
        self.ahead.forget()
        self._set(lasts=length)

    def take_out(self, swept: Sweep) -> Integers:
        """What left in sweeps, which is then forgotten; nothing if no wall is open."""
        if not swept.pencils.open:
            return NONE_LEFT
        left: Integers = self.machine.fetch(swept.let_out)
        driver.clear(swept.let_out, self.machine.stream)
        return left

    def sweep(self, axis: int, squares: Any, pushed: bool = False) -> Sweep:
        """Launch a sweep along an axis, for as long as the desk says, with or without a push."""
        machine, swept = self.machine, self._axis(axis)
        push = self._push if pushed else self.no_push
        swept.launch(machine.desk.control, machine.number, squares, push, self.capacity)
        return swept

    def let_out(self, axis: int) -> Any:
        """Where a sweep adds up the quanta that leave."""
        return self._axis(axis).let_out

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collisions at all sites for a length [fm]; 0 tells their rates and moves nothing."""
        if not self.machine.blocks:
            return StepReport.nothing(self.grid.sites, length)
        return self.report(length, *self.collided(step, length, squares))

    def collided(self, step: int, length: float, squares: Array) -> tuple[Array, Integers, Array]:
        """The same, told of every site: see ``layout``, and the flows of channels."""
        machine = self.machine
        self.ahead.forget()
        scale = 0.5 * length * 2.0**self._bits
        self._control[k.WANT_RATES] = 1
        self._set(step, scale, length)
        self._upload(squares)

        def look() -> None:
            self._look(step, squares)

        self._stages.everywhere(self._squares, True, look)
        return (
            machine.fetch(machine.told),
            machine.fetch(machine.counts),
            machine.fetch(machine.site_flows),
        )

    def report(self, length: float, told: Array, counts: Integers, flows: Array) -> StepReport:
        """What collisions at so many sites showed."""
        if not self.sampling.symmetrical and (told[:, k.TOLD_QUANTA] >= k.LARGEST_SUM).any():
            raise too_long()
        mean = flows.sum(axis=0) / len(flows)
        all_, lost, _, apart, size, limited = (told[:, i] for i in range(6))
        return StepReport(
            length, [(int(d), int(m), int(t)) for m, d, t in counts],
            flows_of(self.machine, mean), (float(all_.sum()), float(lost.sum())), limited,
            (float(apart.sum()), float(size.sum())),
        )  # fmt: skip

    def _look(self, step: int, squares: Array) -> None:
        """Find limits if a site at work needs them, so that nothing illegal is ever kept."""
        if self.interrupt:
            raise Halted
        machine = self.machine
        self._stages.question()
        control = machine.fetch(self.desk.control)
        if control[k.FAULT] < k.NO_FAULT:
            site, block = divmod(int(control[k.FAULT]), machine.blocks)
            site -= machine.before
            draw = DrawnEvents.of(step, squares[site], machine.species, int(self.site_ids[site]))
            report_fault(machine, block, draw, self.f_of(site, self.row))
        if control[k.TROUBLED]:
            self._stages.limited()
            if machine.fetch(self.desk.control)[k.STATUS] == k.NO_LIMITS:
                raise no_limits()

    # -- what is asked about it ------------------------------------------------------------------

    def masses(self, start: Array) -> Array:
        """Squared masses of all species and of the screenings, at all sites [GeV^2]."""
        machine = self.machine
        self._set()
        self._upload(start)
        there = self._squares
        launch_masses(machine, self.mass_room, self.desk, there, there, there)
        self._uploaded = squares = machine.fetch(self._squares)
        bad = ~np.isfinite(squares).all(axis=1)
        if bad.any():
            raise unsolved(self.where(int(bad.argmax())))
        return squares

    @cached_property
    def _nothing(self) -> Array:
        return np.zeros(self.shape[1:])

    def gather_sites(self, rows: Array) -> Array:
        """It holds all sites."""
        return rows

    def stresses(self, squares: Array) -> Array:
        """Pressures of all sites, and how full their box is."""
        return stresses(self.grid, self.model, self.moments(squares, self._nothing), squares)

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sums over the nodes of every site."""
        self.synchronize()
        there = self.ahead.now
        if not self.ahead.knows(squares):
            self._upload(squares)
            there = self._squares
        return self._meter.moments(self.row, 2.0**-self._bits, there, final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """N f summed over all directions but those kept, in quanta."""
        self._set()
        axes = tuple(kept)
        if axes not in self._sums:
            self._sums[axes] = MarginalSums(self.machine, self.grid, axes)
        return self._sums[axes].of_state()

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums over the nodes for ``Fits``, at some sites."""
        machine, count = self.machine, len(which)
        rows = count * machine.species
        if not count:
            return np.zeros((0, machine.species, FIT_SUMS))
        self._upload(squares)
        there, chosen, sums = self._fits
        if count < self.grid.sites:
            there, chosen, sums = there[:count], chosen[:count], sums[:rows]
        there.copy_to_device(np.ascontiguousarray(theta))
        chosen.copy_to_device(which)
        machine.launch(
            fit_sums, rows, there, self._squares, chosen, machine.species_numbers, machine.packed,
            machine.momentum, machine.geometry, sums,
        )  # fmt: skip
        return machine.fetch(sums).reshape(count, machine.species, FIT_SUMS)

    def squares(self, f: Array) -> Array:
        """Squared masses of all species, then screenings, that f (species, nodes) causes."""
        return self._estimator.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """C[f] of f (species, nodes) from independent draws of events."""
        return self._estimator.estimates(f, squares, batches)

    @cached_property
    def _estimator(self) -> Estimator:
        return Estimator(self.machine)
