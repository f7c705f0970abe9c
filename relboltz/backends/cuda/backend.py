"""All sites of a state on one GPU: streaming in place, collisions for as many at once as fit.

What is done to the state is launched from a desk of its own (``machine.Desk``), so that it never
disturbs steps that the GPU takes on its own (``ahead``).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import Array, Integers
from ...errors import Halted
from ...events.collisions import Draw, Estimate
from ...grid import PhaseSpace
from ...masses import unsolved
from ...model import Model
from ...moments import FIT_SUMS, Moments
from ...settings import Sampling
from ...stepping.quanta import capacities, occupation
from ...stepping.report import StepReport
from ...stepping.state import State
from ...stepping.step import Course, Leg, advance
from ...transport.ledger import Passage
from ...transport.pencils import Pencils
from ..elements import Elements
from . import driver, flows, kernels
from . import layout as k
from .ahead import Ahead
from .machine import Desk, Machine
from .masses import site_masses
from .memory import Plan, check_memory
from .moments import Meter, fit_sums, marginal
from .stages import Stages
from .sweeps import sharing, whole_numbers
from .transport import far_sweep, sweep

NONE_LEFT = np.zeros((0, 1, 1), np.int64)


class CudaBackend:
    """All sites of a state, on one GPU: see ``contract.Backend``.

    Parameters
    ----------
    grid, model, sampling : what to solve
    precision : "float32" or "float64", of weights and exponentials; everything that decides
        where a particle goes, and all that is conserved, is float64 or whole numbers anyway
    numbers : of the sites among all of the run, if these are not all
    """

    name = "cuda"

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        precision: str,
        numbers: Integers | None = None,
    ):
        self.grid, self.model, self.sampling, self.precision = grid, model, sampling, precision
        self.numbers = np.arange(grid.sites) if numbers is None else numbers
        self.shape = (grid.sites, len(model.species), grid.size)
        self.interrupt: object = False
        self._plan, free = Plan(grid, model, sampling, precision), driver.free_memory()
        check_memory(self._plan, free)
        self.elements = Elements(model)
        batch, room = self._plan.batch(free)
        self.machine = machine = Machine(self._plan, self.elements, self.numbers, batch, room)
        self.row = 0
        """Of the two rows of numbers, the one that holds the state."""
        self._squares = machine.new((grid.sites, machine.width), np.float64)
        self.desk = Desk(
            machine.desk.control, machine.desk.scalars, self._squares[:batch],
            machine.new(batch, np.int64), machine.new(k.COUNTS * batch, np.int64),
        )  # fmt: skip
        self._uploaded: Array | None = None
        self._spread = machine.new((batch, 2), np.float64)
        self._push = machine.new((*self.shape[:2], 2), np.float64)
        size = machine.work.shape[0]
        rows = grid.sites if size > k.NEAR_BY else 1
        self._work = machine.new((rows, size if rows > 1 else 1), np.float64)
        self._meter = Meter(machine, grid)
        self._axes: dict[int, tuple[Any, ...]] = {}
        self._scratch: Any = None
        sites, kinds = grid.sites, machine.species
        self._fits = (
            machine.new((sites, 4 + kinds), np.float64), machine.new(sites, np.int64),
            machine.new((sites * kinds, FIT_SUMS), np.float64),
        )  # fmt: skip
        self._stages, self.ahead = Stages(machine), Ahead(self)

    @property
    def words(self) -> str:
        """Where the work is done, in words."""
        return f"cuda, {driver.device()['name']}, {self.precision}"

    @property
    def memory(self) -> int:
        """Bytes of all arrays on the GPU."""
        return self.machine.allocated

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""
        machine = self.machine
        self.row, self._bits = 0, bits
        machine.number[0].copy_to_device(np.ascontiguousarray(number, np.int64).reshape(-1))
        full = capacities(self.model, bits)
        machine.capacity.copy_to_device(full)
        self._capacity = machine.upload(full, np.float64)
        self._control, self._scalars = machine.fresh_control(2.0**-bits)
        self._control[k.STATUS], self._control[k.THERMAL] = k.GO, 0
        self.ahead.forget()

    def get(self) -> Integers:
        """The state (sites, species, nodes) in quanta."""
        return self.machine.fetch(self.machine.number[self.row]).reshape(self.shape)

    def f_of(self, site: int) -> Array:
        """f (species, nodes) of a site."""
        return occupation(self.get()[site], self._bits, self.model)

    def save(self) -> None:
        """Remember the state."""
        number = self.machine.number
        number[1 - self.row].copy_to_device(number[self.row])

    def restore(self) -> None:
        """Back to what was remembered."""
        number = self.machine.number
        number[self.row].copy_to_device(number[1 - self.row])

    def _set(
        self, step: int = 0, scale: float = 0.0, length: float = 1.0, lasts: float = 0.0
    ) -> None:
        """Tell the GPU what the next kernels are about."""
        machine = self.machine
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

    def advance(self, state: State, course: Course, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm]; where nothing streams, the GPU does so on its own."""
        if len(course.parts) == 1 and self.grid.sites == 1:
            return self.ahead.advance(state, course, stop)
        return advance(self, state, course, stop)

    def _axis(self, axis: int) -> tuple[Any, ...]:
        """What a sweep along an axis needs on the GPU."""
        if axis in self._axes:
            return self._axes[axis]
        pencils, machine = Pencils.of(self.grid, self.model, axis), self.machine
        shared = sharing(pencils, self._plan.scratch)
        size = 1 if shared.near else shared.blocks * shared.bytes // 8
        if self._scratch is None or self._scratch.size < size:
            self._scratch = machine.room(size, np.float64)
        ledger = 2 * self.shape[1] * self.shape[2] if pencils.open else 1
        self._axes[axis] = (
            pencils, shared,
            machine.to(whole_numbers(pencils, self.grid.size, shared.lanes), np.int64),
            machine.to(pencils.widths, np.float64),
            machine.to(pencils.p, np.float64), machine.to(pencils.transverse_p2, np.float64),
            machine.new(ledger, np.int64), machine.new((shared.blocks, 2), np.float64),
            machine.new((shared.blocks * pencils.species, 2), np.float64),
        )  # fmt: skip
        return self._axes[axis]

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> Passage:
        """Stream along an axis for a length [fm], with these squared masses at the sites."""
        if self.interrupt:
            raise Halted
        machine, pencils = self.machine, self._axis(axis)[0]
        ledger, energies, refused = self._axis(axis)[-3:]
        self._set(lasts=length)
        self._upload(squares)
        if push is not None:
            self._push.copy_to_device(np.ascontiguousarray(push))
        if pencils.open:
            ledger.copy_to_device(np.zeros(ledger.shape, np.int64))
        self.sweep(axis, push is not None)
        left = machine.fetch(ledger).reshape(2, *self.shape[1:]) if pencils.open else NONE_LEFT
        by_species = machine.fetch(refused).reshape(-1, pencils.species, 2).sum(axis=0)
        return Passage(axis, left, machine.fetch(energies).sum(axis=0), by_species.T)

    def sweep(self, axis: int, pushed: bool) -> None:
        """Launch a sweep along an axis, for as long as the desk says, with or without a push."""
        _, shared, *constants, ledger, energies, refused = self._axis(axis)
        given = (
            self.desk.control, self.desk.scalars, self.machine.number, self._squares,
            self._push if pushed else self._push[:0], *constants, self._capacity,
        )  # fmt: skip
        found, launch = (ledger, energies, refused), (shared.blocks, shared.threads)
        if shared.near:
            roomy = driver.roomy(sweep[*launch, self.machine.stream, shared.bytes])
            roomy(*given, *found)
        else:
            size = shared.bytes // 8
            scratch = self._scratch[: shared.blocks * size].reshape(shared.blocks, size)
            far_sweep[*launch, self.machine.stream](*given, scratch, *found)

    def _batches(self) -> Iterator[tuple[int, int]]:
        """Sites that collide at once; the machine is set to them."""
        machine = self.machine
        for first in range(0, self.grid.sites, machine.batch):
            if self.interrupt:
                raise Halted
            machine.first_site = first
            machine.count = min(machine.batch, self.grid.sites - first)
            self.desk.squares = self._squares[first : first + machine.count]
            self.find_peaks()
            yield first, machine.count
        machine.first_site, machine.count = 0, machine.batch

    def find_peaks(self) -> None:
        """The largest numbers of the sites at work: what drawing needs to know of them."""
        machine = self.machine
        machine.launch(
            kernels.peaks, machine.species * machine.count, machine.desk.control, machine.number,
            machine.highest, machine.first_site * machine.species,
        )  # fmt: skip

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collisions at all sites for a length [fm]; 0 tells their rates and moves nothing."""
        machine, kinds = self.machine, self.shape[1]
        if not machine.blocks:
            return StepReport.nothing(self.grid.sites, length)
        scale = 0.5 * length * 2.0**self._bits
        self._set(step, scale, length)
        self._upload(squares)
        parts: list[tuple[NDArray[Any], ...]] = []
        for first, count in self._batches():

            def origin(i: int, first: int = first) -> tuple[Draw, Array]:
                site = first + i
                draw = Draw.of(step, squares[site], kinds, int(self.numbers[site]))
                return draw, self.f_of(site)

            limited = self._stages.all(scale)
            rates, drawn = flows.look(machine, origin)
            self.desk.counts.copy_to_device(np.zeros(self.desk.counts.shape, np.int64))
            machine.update()
            counts = machine.fetch(self.desk.counts)[: k.COUNTS * count].reshape(-1, k.COUNTS)
            parts.append((counts, rates, drawn, limited, self._noise()))
        counts, rates, drawn, limited, noise = map(np.concatenate, zip(*parts, strict=True))
        return StepReport(
            length, [(int(d), int(m), int(t)) for m, d, t in counts],
            flows.flows_of(machine, rates.sum(axis=0) / self.grid.sites),
            tuple(drawn.sum(axis=0).tolist()), limited, tuple(noise.sum(axis=0).tolist()),
        )  # fmt: skip

    def _noise(self) -> Array:
        """Sums of the squared standard error of C, and of C^2, at the sites at work."""
        machine = self.machine
        rows = machine.species * machine.tiles
        machine.launch(kernels.site_noise, machine.count, machine.spread, self._spread, rows)
        return machine.fetch(self._spread)[: machine.count]

    # -- what is asked about it ------------------------------------------------------------------

    def masses(self, start: Array) -> Array:
        """Squared masses of all species and of the screenings, at all sites [GeV^2]."""
        machine, sites = self.machine, self.grid.sites
        self._set()
        self._upload(start)
        number = machine.number[self.row].reshape(sites, machine.cells)
        machine.launch(
            site_masses, sites, self.desk.control, self.desk.scalars, number, machine.groups,
            machine.p2, machine.mass_model, self._work, self._squares,
        )  # fmt: skip
        self._uploaded = squares = machine.fetch(self._squares)
        bad = ~np.isfinite(squares).all(axis=1)
        if bad.any():
            where = f" in space cell {self.numbers[bad.argmax()]}" if sites > 1 else ""
            raise unsolved(where)
        return squares

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sums over the nodes of every site."""
        self._upload(squares)
        return self._meter.moments(self.row, 2.0**-self._bits, self._squares, final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """N f summed over all directions but those kept, in quanta."""
        self._set()
        return marginal(self.machine, self.grid, kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums over the nodes for ``Fits``, at some sites."""
        machine, count = self.machine, len(which)
        rows = count * machine.species
        if not count:
            return np.zeros((0, machine.species, FIT_SUMS))
        self._upload(squares)
        there, chosen, sums = self._fits
        there[:count].copy_to_device(np.ascontiguousarray(theta))
        chosen[:count].copy_to_device(which)
        machine.launch(
            fit_sums, rows, there, self._squares, chosen, machine.species_numbers, machine.packed,
            machine.momentum, machine.geometry, sums,
        )  # fmt: skip
        return machine.fetch(sums[:rows]).reshape(count, machine.species, FIT_SUMS)

    def estimate(self, f: Array, draw: Draw) -> Estimate:
        """C[f] of f (species, nodes) from one draw of events."""
        self.machine.desk = self.ahead.desk
        self.ahead.forget()
        return flows.estimate(self.machine, f, draw)
