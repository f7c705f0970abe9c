"""A state in space on a GPU: streaming in place, collisions for as many sites at once as fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...equilibrium.fits import FIT_SUMS
from ...errors import Halted, InputError, RunError
from ...events.collisions import SETS, Draw, Flows, Sampling
from ...grid import PhaseSpace
from ...model import Model
from ...records.moments import SUMS, Shells, SiteMoments
from ...stepping.space import Collided
from ...stepping.stepper import capacities
from ...transport.ledger import Passage
from ...transport.pencils import Pencils
from ..cpu.collider import check_size
from ..cpu.threads import Threads
from ..elements import Elements
from . import driver as engine
from . import layout as k
from . import sites as sites_kernels
from .machine import BATCH_BYTES, LEAST_EVENTS, Machine, cuda, event_bytes
from .transport import SWEEPERS, sweep, whole_numbers

COPIES = 3.9
"""Memory that large arrays may take, in copies of the state: small ones come on top."""
LEAST_MEMORY = 2**29
"""Bytes that a run may take in any case."""
SCRATCH_SHARE = 0.2
"""Part of a copy of the state that streaming may use as scratch memory."""
LEAST_SCRATCH = 2**26
SWEEPS_AT_ONCE = 2
"""Blocks of threads for each multiprocessor: more scratch memory than that leaves the caches."""


class Plan:
    """How much memory a state takes, and how many of its sites collide at once."""

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, precision: str):
        from ...events.collisions import channels

        species, self.sites = len(model.species), grid.sites
        cells = species * grid.size
        self.state = 8 * cells * grid.sites
        blocks = SETS * sum(
            -(-sampling.samples_of(channel, grid.size) // k.SPAN)
            for channel in channels(model, sampling.symmetrical)
        )
        roots = 1 if sampling.sampling == "cm" else 2
        self.events = blocks * k.SPAN * roots * event_bytes(precision)
        buckets = 1 << max(0, (grid.size - 1).bit_length())
        self.site = cells * BATCH_BYTES + 4 * species * buckets + 2 * 8 * k.SUMS * blocks
        self.scratch = max(LEAST_SCRATCH, SCRATCH_SHARE * self.state)
        slots = max(1, blocks * k.SPAN * roots)
        self.most = min(65535 // species, (2**32 - 1) // slots, (2**31 - 1) // cells)
        self.least = 2 * self.state + self.scratch + self.site + min(self.events, LEAST_EVENTS)

    def batch(self, free: int) -> tuple[int, float]:
        """Sites that collide at once, and bytes for their events."""
        budget = min(max(COPIES * self.state, LEAST_MEMORY), 0.9 * free)
        room = budget - 2 * self.state - self.scratch
        many = int(room / max(1, self.site + self.events))
        batch = max(1, min(many, self.sites, self.most))
        return batch, max(room - batch * self.site, LEAST_EVENTS)


def check_memory(grid: PhaseSpace, plan: Plan, free: int) -> None:
    """Refuse states that do not fit the GPU, and say which would."""
    if plan.least <= 0.9 * free:
        return
    fixed = plan.least - 2 * plan.state - SCRATCH_SHARE * plan.state
    part = max(0.9 * free - max(fixed, 0) - LEAST_SCRATCH, 0) / ((2 + SCRATCH_SHARE) * plan.state)
    cells = [int(n * part ** (1 / max(1, len(grid.moving_axes)))) if n > 1 else 1
             for n in grid.space_cells]  # fmt: skip
    remedy = f"space_cells = {cells} would fit" if min(cells) > 0 else "use fewer momentum_cells"
    raise InputError(
        f"grid.space_cells = {list(grid.space_cells)} with momentum_cells = "
        f"{list(grid.momentum_cells)} need {plan.least / 2**30:.1f} GiB, and the GPU has "
        f"{free / 2**30:.1f} GiB free; {remedy}, or use run.backend = 'cpu'"
    )


class CudaSpace(Threads):
    """All sites of a state, on one GPU.

    Parameters
    ----------
    grid, model, sampling : what to solve
    precision : "float32" or "float64", of weights and exponentials
    """

    name = "cuda"

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, precision: str):
        super().__init__()
        one = grid.at_a_site
        check_size(one, model, sampling)
        self.grid, self.model, self.precision = grid, model, precision
        self.elements = Elements(model)
        plan, free = Plan(grid, model, sampling, precision), engine.free_memory()
        self._plan = plan
        check_memory(grid, plan, free)
        batch, room = plan.batch(free)
        self.machine = machine = Machine(
            one, model, sampling, precision, self.elements, grid.sites, batch, room
        )
        machine.illegal = machine.new(batch, np.int64)
        machine.counts = machine.new(k.COUNTS * batch, np.int64)
        self._squares = machine.new((grid.sites, machine.width), np.float64)
        self._push = machine.new((grid.sites, machine.species, 2), np.float64)
        self._spread = machine.new((batch, 2), np.float64)
        self._axes = {axis: self._prepare_axis(plan, axis) for axis in grid.moving_axes}
        size = machine.work.shape[0]
        rows = grid.sites if size > k.NEAR_BY else 1
        self._work = machine.new((rows, size if rows > 1 else 1), np.float64)
        axes = np.concatenate([grid.axis(i) for i in range(3)])
        self._momentum = machine.to(axes, np.float64)
        self._measures: tuple[Any, ...] = ()
        self._fit_room: tuple[Any, ...] | None = None
        self._bits = 0

    def _prepare_axis(self, plan: Plan, axis: int) -> tuple[Any, ...]:
        """What a sweep along an axis needs on the GPU."""
        pencils, machine = Pencils.of(self.grid, self.model, axis), self.machine
        rows, size = pencils.scratch
        fitting = int(plan.scratch / (8 * rows * size))
        blocks = max(1, min(pencils.groups, fitting, SWEEPS_AT_ONCE * engine.multiprocessors()))
        previous = getattr(self, "_scratch", None)
        if previous is None or previous.size < blocks * rows * size:
            self._scratch = cuda.device_array(blocks * rows * size, np.float64)
        ledger = 2 * len(self.model.species) * self.grid.size if pencils.open else 1
        return (
            pencils, blocks,
            machine.to(whole_numbers(pencils, self.grid.size), np.int64),
            machine.to(pencils.p, np.float64), machine.to(pencils.transverse_p2, np.float64),
            machine.new(ledger, np.int64), machine.new((pencils.groups, 2), np.float64),
            machine.new((pencils.groups, 2), np.float64),
        )  # fmt: skip

    @property
    def words(self) -> str:
        """Where the work is done, in words."""
        return f"cuda, {engine.device()['name']}, {self.precision}"

    @property
    def allocated(self) -> int:
        """Bytes of all arrays on the GPU."""
        own = [self._scratch, self._squares, self._push, self._spread, self._work]
        own += [*self._measures, *(self._fit_room or ())]
        own += [v for axis in self._axes.values() for v in axis if hasattr(v, "copy_to_host")]
        return self.machine.allocated + sum(int(v.nbytes) for v in own)

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: NDArray[np.int64], bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""
        machine = self.machine
        flat = np.ascontiguousarray(number, np.int64).reshape(-1)
        machine.number[0].copy_to_device(flat)
        full = capacities(self.model, bits)
        machine.capacity.copy_to_device(full)
        self._capacity = machine.to(full, np.float64)
        self._bits = bits
        self._control, self._scalars = machine.fresh_control(2.0**-bits)
        self._control[k.STATUS], self._control[k.THERMAL] = k.GO, 0

    def get(self) -> NDArray[np.int64]:
        """The state (sites, species, nodes) in quanta."""
        number = self.machine.number[0].copy_to_host()
        return number.reshape(self.grid.sites, len(self.model.species), self.grid.size)

    def save(self) -> None:
        """Remember the state."""
        self.machine.number[1].copy_to_device(self.machine.number[0])

    def restore(self) -> None:
        """Back to what was remembered."""
        self.machine.number[0].copy_to_device(self.machine.number[1])

    def _set(self, step: int = 0, scale: float = 0.0, length: float = 1.0) -> None:
        """Tell the GPU what the next kernels are about."""
        self._control[k.STEP] = step
        self._scalars[k.SCALE], self._scalars[k.LENGTH] = scale, length
        self.machine.control.copy_to_device(self._control)
        self.machine.scalars.copy_to_device(self._scalars)

    def _upload(self, squares: NDArray[np.float64]) -> None:
        self._squares.copy_to_device(np.ascontiguousarray(squares))

    def _wait(self) -> None:
        if self.machine.stream:
            self.machine.stream.synchronize()

    # -- what happens to the state ---------------------------------------------------------------

    def sweep(
        self,
        axis: int,
        length: float,
        squares: NDArray[np.float64],
        push: NDArray[np.float64] | None = None,
    ) -> Passage:
        """Stream along an axis for a length [fm], with these squared masses at the sites.

        push : external force along the axis (sites, species, 2), see ``transport.forces``
        """
        if self.interrupt:
            raise Halted
        machine = self.machine
        if axis not in self._axes:
            self._axes[axis] = self._prepare_axis(self._plan, axis)
        pencils, blocks, whole, p, transverse_p2, ledger, energies, refused = self._axes[axis]
        self._upload(squares)
        force = np.zeros(self._push.shape) if push is None else np.ascontiguousarray(push)
        self._push.copy_to_device(force)
        ledger.copy_to_device(np.zeros(ledger.shape, np.int64))
        real = machine.to([length, *pencils.widths], np.float64)
        rows, size = pencils.scratch
        scratch = self._scratch[: blocks * rows * size].reshape(blocks, rows, size)
        sweep[blocks, SWEEPERS, machine.stream](
            machine.number[0], self._squares, self._push, whole, real, p, transverse_p2,
            self._capacity, scratch, ledger, energies, refused,
        )  # fmt: skip
        self._wait()
        left = np.zeros((0, len(self.model.species), self.grid.size), np.int64)
        if pencils.open:
            left = ledger.copy_to_host().reshape(2, len(self.model.species), -1)
        return pencils.passage(left, energies.copy_to_host(), refused.copy_to_host())

    def masses(self, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared masses of all species and of the screenings, at all sites [GeV^2]."""
        machine = self.machine
        self._set()
        self._upload(start)
        number = machine.number[0].reshape(self.grid.sites, machine.cells)
        sites_kernels.site_masses[self.grid.sites, k.THREADS, machine.stream](
            machine.control, machine.scalars, number, machine.groups, machine.p2,
            machine.mass_model, self._work, self._squares,
        )  # fmt: skip
        self._wait()
        squares = self._squares.copy_to_host()
        bad = ~np.isfinite(squares).all(axis=1)
        if bad.any():
            raise RunError(f"the thermal masses of space cell {bad.argmax()} do not converge")
        return squares

    def _batches(self) -> Any:
        """Sites that collide at once; the machine is set to them."""
        machine = self.machine
        for first in range(0, self.grid.sites, machine.batch):
            if self.interrupt:
                raise Halted
            machine.first_site = first
            machine.count = min(machine.batch, self.grid.sites - first)
            machine.squares = self._squares[first : first + machine.count]
            rows = machine.species * machine.count
            sites_kernels.peaks[rows, k.THREADS, machine.stream](
                machine.control, machine.number, machine.highest, first * machine.species
            )
            yield first, machine.count

    def collide(self, step: int, length: float, squares: NDArray[np.float64]) -> Collided:
        """Collisions at all sites for a length [fm]."""
        machine, unit = self.machine, 2.0**-self._bits
        if not machine.blocks:
            return Collided.nothing(self.grid.sites, length)
        self._set(step, 0.5 * length / unit, length)
        self._upload(squares)
        counts: list[NDArray[np.int64]] = []
        limited = np.zeros(self.grid.sites)
        looks: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        noise: list[NDArray[np.float64]] = []
        for first, count in self._batches():
            refused = self._stages()
            looks.append(self._sums(step, squares))
            machine.counts.copy_to_device(np.zeros(machine.counts.shape, np.int64))
            machine.update(False)
            self._wait()
            found = machine.counts.copy_to_host()[: k.COUNTS * count]
            counts.append(found.reshape(-1, k.COUNTS))
            limited[first : first + count] = refused
            noise.append(self._noise())
        moved = np.concatenate(counts)
        weights = moved[:, 0].astype(float)
        mean = float(limited @ weights / weights.sum()) if weights.sum() > 0 else 0.0
        sums = [(int(d), int(m), int(t)) for m, d, t in moved]
        error, size = (float(v) for v in np.concatenate(noise).sum(axis=0))
        return Collided.from_sums(length, sums, *self._told(looks), mean, (error, size))

    def _stages(self) -> NDArray[np.float64]:
        """All stages at the sites at work; the part that limits refused at each."""
        machine = self.machine
        machine.clear_illegal()
        machine.prepare()
        machine.draw_all(True)
        machine.predict()
        machine.apply(k.LAST_STAGE)
        self._wait()
        scale = float(self._scalars[k.SCALE])
        moves = machine.site_sums(machine.sums, k.MOVES) + machine.site_sums(
            machine.sums_2, k.MOVES
        )
        fine = ~(scale * moves >= k.LARGEST_SUM)
        if not machine.sampling.symmetrical:
            if fine.all():
                return np.zeros(machine.count)
            raise RunError("the step is far too long: what it moves does not fit 64-bit numbers")
        fine &= machine.legal(k.LAST_STAGE)
        return np.zeros(machine.count) if fine.all() else machine.limited_stages(fine)

    def _noise(self) -> NDArray[np.float64]:
        """Sums of the squared standard error of C, and of C^2, at the sites at work."""
        machine = self.machine
        sites_kernels.site_noise[machine.count, k.THREADS, machine.stream](
            machine.spread, self._spread, machine.species * machine.tiles
        )
        self._wait()
        return self._spread.copy_to_host()[: machine.count]

    def _sums(
        self, step: int, squares: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Flows of the channels, and all and lost weight, at each site."""
        machine = self.machine
        rows = machine.sums.copy_to_host()[: machine.blocks * machine.count]
        bad = machine.faulty(rows)
        if bad:
            block = bad[0]
            site = machine.first_site + block // machine.blocks
            draw = Draw.of(step, squares[site], machine.species, site)
            f = self.get()[site] * (2.0**-self._bits / self.model.degeneracy[:, None])
            machine.report_fault(block % machine.blocks, draw, f)
        table = rows.reshape(machine.count, machine.blocks, -1)
        drawn = table[:, :, [k.EVERYTHING, k.LOST]].sum(axis=1)
        return machine.channel_flows(table), drawn

    def _told(
        self, looks: list[tuple[NDArray[np.float64], NDArray[np.float64]]]
    ) -> tuple[Flows, tuple[float, float]]:
        """Mean flows of the processes over all sites, and the weight of collisions."""
        flows = np.concatenate([flows for flows, _ in looks]).sum(axis=0) / self.grid.sites
        everything, lost = np.concatenate([drawn for _, drawn in looks]).sum(axis=0)
        return self.machine.flows_of(flows), (float(everything), float(lost))

    def look(self, step: int, squares: NDArray[np.float64]) -> Collided:
        """Flows of the state as it is; nothing moves."""
        machine = self.machine
        if not machine.blocks:
            return Collided.nothing(self.grid.sites, 1.0)
        self._set(step)
        self._upload(squares)
        looks = []
        for _ in self._batches():
            machine.prepare()
            machine.draw_all(True)
            self._wait()
            looks.append(self._sums(step, squares))
        flows, drawn = self._told(looks)
        return Collided(1.0, 0, 0, 1, flows, drawn, 0.0, (0.0, 0.0))

    def fit_sums(
        self,
        theta: NDArray[np.float64],
        squares: NDArray[np.float64],
        which: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Sums over the nodes for ``Fits``, at some sites."""
        machine, count = self.machine, len(which)
        rows = count * machine.species
        if not count:
            return np.zeros((0, machine.species, FIT_SUMS))
        self._upload(squares)
        if self._fit_room is None:
            sites = self.grid.sites
            self._fit_room = (
                machine.new((sites, theta.shape[1]), np.float64), machine.new(sites, np.int64),
                machine.new((sites * machine.species, FIT_SUMS), np.float64),
            )  # fmt: skip
        there, chosen, sums = self._fit_room
        there[:count].copy_to_device(np.ascontiguousarray(theta))
        chosen[:count].copy_to_device(which)
        sites_kernels.fit_sums[rows, k.THREADS, machine.stream](
            there, self._squares, chosen, machine.species_numbers, machine.p2, machine.packed,
            self._momentum, machine.geometry, sums,
        )  # fmt: skip
        self._wait()
        return sums[:rows].copy_to_host().reshape(count, machine.species, FIT_SUMS)

    def moments(
        self, squares: NDArray[np.float64], shells: Shells, final: NDArray[np.float64]
    ) -> SiteMoments:
        """Sums over the nodes of every site."""
        machine, grid = self.machine, self.grid
        rows, cells = grid.sites * machine.species, grid.momentum_cells
        self._set()
        self._upload(squares)
        if not self._measures:
            self._measures = (
                self._momentum, machine.to(shells.index, np.int32),
                machine.new(final.size, np.float64), machine.new(rows, np.int64),
                machine.new((grid.sites, sum(cells)), np.int64),
                machine.new((rows, len(shells.p)), np.int64),
                machine.new((rows, SUMS), np.float64),
            )  # fmt: skip
        momentum, shell, end, totals, planes, in_shells, sums = self._measures
        end.copy_to_device(np.nan_to_num(final).ravel())
        for whole in (planes, in_shells):
            whole.copy_to_device(np.zeros(whole.shape, np.int64))
        sites_kernels.measure_sites[rows, k.THREADS, machine.stream](
            machine.control, machine.scalars, machine.number, machine.species_numbers,
            self._squares, machine.p2, machine.packed, momentum, machine.geometry, shell, end,
            totals, planes, in_shells, sums,
        )  # fmt: skip
        self._wait()
        x, y, z = np.split(planes.copy_to_host(), np.cumsum(cells)[:-1], axis=1)
        found = sums.copy_to_host().reshape(grid.sites, machine.species, SUMS)
        if not np.isfinite(final).all():
            found[:, :, k.DISTANCE] = np.nan
        return SiteMoments(
            totals.copy_to_host().reshape(grid.sites, -1), (x, y, z),
            in_shells.copy_to_host().reshape(grid.sites, machine.species, -1), found,
        )  # fmt: skip
