"""Matter in space: streaming and collisions by turns, from one stop to the next.

A step of length dt is H_x/2 H_y/2 H_z/2 C H_z/2 H_y/2 H_x/2: each H_i streams along x_i and pushes
along p_i at once (``transport``), C collides at every site. Each of these substeps takes the masses
that it will have on average, extrapolated from the same substep of the last two steps, and the
masses are solved again after it: that makes the whole second order in dt.

The state lives in an *engine*, on the CPU or on a GPU; this module tells it what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..errors import RunError
from ..events.collisions import Flows
from ..grid import PhaseSpace
from ..model import Model
from ..records.moments import Shells, SiteMoments
from ..settings import Sampling
from ..transport import plane as transport
from .control import STILL
from .flight import Leg, check_finite
from .stepper import State, StepControl, StepReport
from .watch import Watch

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOW_WORD = 0xFFFFFFFF


# --- transport along one axis -------------------------------------------------------------------


@dataclass(frozen=True)
class Pencils:
    """The (x_i, p_i) planes of one axis: how they lie in a state, and their walls."""

    axis: int
    lines: tuple[int, int, int, int]
    """Space cells and their distance in sites, momentum cells and their distance in nodes."""
    walls: tuple[int, int]
    widths: tuple[float, float]
    """dx [fm] and dp [GeV]."""
    p: Array
    transverse_p2: Array
    species: int
    across: int
    """Transverse sites."""

    @classmethod
    def of(cls, grid: PhaseSpace, model: Model, axis: int) -> Pencils:
        """Those of an axis of a grid."""
        n, m = grid.space_cells[axis], grid.momentum_cells[axis]
        site_step = math.prod(grid.space_cells[axis + 1 :])
        node_step = math.prod(grid.momentum_cells[axis + 1 :])
        one, other = (grid.axis(i) ** 2 for i in range(3) if i != axis)
        return cls(
            axis, (n, site_step, m, node_step),
            (transport.KINDS[grid.boundary[axis]], transport.KINDS[grid.momentum_boundary]),
            (grid.space_spacing[axis], grid.spacing[axis]), grid.axis(axis),
            (one[:, None] + other[None, :]).ravel(), len(model.species), grid.sites // n,
        )  # fmt: skip

    @property
    def blocks(self) -> int:
        """Groups of lanes that the transverse momenta make."""
        return -(-len(self.transverse_p2) // transport.LANES)

    @property
    def groups(self) -> int:
        """Groups of pencils that advance side by side."""
        return self.across * self.species * self.blocks

    @property
    def scratch(self) -> tuple[int, int]:
        """Shape of the scratch array of a group."""
        n, _, m, _ = self.lines
        return transport.ROWS, (n + 1) * (m + 1) * transport.LANES

    @property
    def open(self) -> bool:
        """Whether something may leave."""
        return self.walls[0] == transport.OPEN

    def passage(self, left: Integers, energies: Array, refused: Array) -> Passage:
        """What left and what was refused, from the sums of the groups in their order."""
        by_species = refused.reshape(self.across, self.species, self.blocks, 2).sum(axis=(0, 2))
        return Passage(self.axis, left, energies.sum(axis=0), by_species.T)


@dataclass(frozen=True)
class Passage:
    """What left through the walls of an axis, and what closed momentum faces refused."""

    axis: int
    left: Integers
    """Quanta by side, species and node; no sides if the walls are not open."""
    energy: Array
    """Energy that left by side, in quanta times GeV."""
    refused: Array
    """Quanta by side and species."""


class Ledger:
    """All that ever left the box, and the flux that was refused at the edge of momenta."""

    def __init__(self, grid: PhaseSpace, model: Model):
        species = len(model.species)
        self.left = {
            axis: np.zeros((2, 2, species, grid.size), np.int64)
            for axis in grid.moving_axes
            if grid.boundary[axis] == "open"
        }
        """Quanta by side, species and node, in two words: 2^32 times the first plus the second."""
        self.energy = np.zeros((3, 2))
        self.refused = np.zeros((3, 2, species))

    def enter(self, passages: Sequence[Passage]) -> None:
        """Add what a step that stands let out."""
        for passage in passages:
            if len(passage.left):
                high, low = self.left[passage.axis]
                low += passage.left & LOW_WORD
                high += (passage.left >> 32) + (low >> 32)
                low &= LOW_WORD
            self.energy[passage.axis] += passage.energy
            self.refused[passage.axis] += passage.refused


# --- collisions at all sites --------------------------------------------------------------------


@dataclass(frozen=True)
class Collided(StepReport):
    """A step of collisions at all sites: sums in quanta, flows per site."""

    ratios: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    """Change of C within the step at every site, relative to C; and its error there."""
    errors: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    tolerance: float = 0.0

    @property
    def change_ratio(self) -> float:
        """The largest of the sites where the error is more than rounding."""
        counts = self.errors > STILL * self.tolerance
        return float(self.ratios[counts].max(initial=0.0))

    @classmethod
    def of(cls, reports: Sequence[StepReport]) -> Collided:
        """From the reports of all sites, in their order."""
        moved = np.array([float(r.moved) for r in reports])
        limited = np.array([r.limited_weight for r in reports])
        return cls.from_sums(
            reports[0].length,
            [(r.difference, r.moved, r.total) for r in reports],
            _mean_flows([r.flows for r in reports]),
            (sum(r.drawn[0] for r in reports), sum(r.drawn[1] for r in reports)),
            float(limited @ moved / moved.sum()) if moved.sum() > 0 else 0.0,
            (sum(r.noise[0] for r in reports), sum(r.noise[1] for r in reports)),
        )

    @classmethod
    def from_sums(
        cls,
        length: float,
        sums: Sequence[tuple[int, int, int]],
        flows: Flows,
        drawn: tuple[float, float],
        limited: float,
        noise: tuple[float, float],
    ) -> Collided:
        """sums : difference, moved and total quanta of every site."""
        difference, moved, total = (np.array(v, float) for v in zip(*sums, strict=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(moved > 0, difference / moved, 0.0)
            errors = difference / np.maximum(total, 1.0)
        d, m, t = (sum(int(v) for v in column) for column in zip(*sums, strict=True))
        return cls(length, d, m, t, flows, drawn, limited, noise, ratios, errors)

    @classmethod
    def flows_alone(cls, found: Sequence[tuple[Flows, tuple[float, float]]]) -> Collided:
        """Rates of a state that did not move."""
        drawn = (sum(d[0] for _, d in found), sum(d[1] for _, d in found))
        flows = _mean_flows([flows for flows, _ in found])
        return cls(1.0, 0, 0, 1, flows, drawn, 0.0, (0.0, 0.0))

    @classmethod
    def nothing(cls, sites: int, length: float) -> Collided:
        """No processes, no collisions."""
        return cls(length, 0, 0, 1, Flows(np.zeros(0), np.zeros(0), 0.0, 0.0), (0.0, 0.0), 0.0,
                   (0.0, 0.0), np.zeros(sites), np.zeros(sites))  # fmt: skip


def _mean_flows(flows: Sequence[Flows]) -> Flows:
    """The mean over sites, summed in their order."""
    forward, backward = np.zeros_like(flows[0].forward), np.zeros_like(flows[0].backward)
    signed = np.zeros_like(flows[0].signed)
    for one in flows:
        forward, backward = forward + one.forward, backward + one.backward
        signed = signed + one.signed
    n = len(flows)
    return Flows(forward / n, backward / n, 0.0, 0.0, signed / n)


class Engine(Protocol):
    """Where a state in space lives."""

    name: str
    grid: PhaseSpace
    model: Model
    interrupt: object

    def put(self, number: Integers, bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""

    def get(self) -> Integers:
        """The state (sites, species, nodes) in quanta."""

    def save(self) -> None:
        """Remember the state."""

    def restore(self) -> None:
        """Back to what was remembered."""

    def fit_sums(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums over the nodes for ``Fits``, at some sites."""

    def sweep(self, axis: int, length: float, squares: Array) -> Passage:
        """Stream along an axis for a length [fm]."""

    def masses(self, start: Array) -> Array:
        """Squared masses of all species and of the screenings, at all sites [GeV^2]."""

    def collide(self, step: int, length: float, squares: Array) -> Collided:
        """Collisions at all sites."""

    def look(self, step: int, squares: Array) -> Collided:
        """Flows of the state as it is."""

    def moments(self, squares: Array, shells: Shells, final: Array) -> SiteMoments:
        """Sums over the nodes of every site."""


# --- the flight ---------------------------------------------------------------------------------


def courant_limit(grid: PhaseSpace, mass_squared: Array) -> float:
    """Longest step [fm] whose halves empty no cell: |u| <= 1, |a| <= |d m / dx|."""
    fastest = 0.0
    mass = np.sqrt(grid.in_space(mass_squared))  # (species, x, y, z)
    for axis in grid.moving_axes:
        dx, dp, along = grid.space_spacing[axis], grid.spacing[axis], axis + 1
        change = np.abs(np.diff(mass, axis=along))
        if grid.boundary[axis] == "periodic":
            around = np.take(mass, [0], along) - np.take(mass, [-1], along)
            change = np.concatenate([change, np.abs(around)], axis=along)
        force = float(change.max(initial=0.0)) / dx
        fastest = max(fastest, 1.0 / dx + force / dp)
    return 2.0 * transport.COURANT / fastest if fastest > 0 else math.inf


@dataclass(frozen=True)
class _Substep:
    """One part of a step: which axis it streams along, None for collisions; its share of dt."""

    axis: int | None
    share: float


def substeps(grid: PhaseSpace) -> list[_Substep]:
    """H_x/2 H_y/2 H_z/2 C H_z/2 H_y/2 H_x/2, without the homogeneous axes."""
    halves = [_Substep(axis, 0.5) for axis in grid.moving_axes]
    return [*halves, _Substep(None, 1.0), *reversed(halves)]


def mean_during(
    now: Array, part: float, length: float, past: Sequence[tuple[Array, float]]
) -> Array:
    """Mean squared masses of a substep that lasts ``part`` [fm] of a step of this length.

    past : rates of change in the same substep of the last two steps, newest first, and the
        lengths of these steps; the rate is extrapolated to the middle of this one
    """
    if not past:
        return now
    rate, last = past[0]
    if len(past) > 1:
        before, earlier = past[1]
        rate = rate + (rate - before) * ((length + last) / (last + earlier))
    return np.clip(now + 0.5 * part * rate, 0.5 * now, 2.0 * now)


def take_over(engine: Engine, start: State, shells: Shells) -> tuple[State, SiteMoments]:
    """Hand a start to an engine: the state with its masses, without its numbers; its moments."""
    engine.put(start.number, start.bits)
    squares = engine.masses(np.column_stack([start.mass_squared, start.screening2]))
    species = len(engine.model.species)
    empty = np.zeros((species, engine.grid.size))
    state = replace(
        start,
        number=np.empty(0, np.int64),
        mass_squared=squares[:, :species].copy(),
        screening2=squares[:, species:].copy(),
    )
    return state, engine.moments(squares, shells, empty)


class SpaceFlight:
    """A state in space on its way: transport and collisions by turns."""

    def __init__(
        self,
        engine: Engine,
        start: State,
        control: StepControl,
        near: float,
        shells: Shells,
        final: Array,
    ):
        self.engine, self.control, self.near = engine, control, near
        self.grid, self.model = engine.grid, engine.model
        self.watch = Watch()
        self.ledger = Ledger(self.grid, self.model)
        self.squares = np.column_stack([start.mass_squared, start.screening2])
        self._shells, self._final = shells, final
        self._parts = substeps(self.grid)
        self._past: list[list[tuple[Array, float]]] = [[] for _ in self._parts]
        self._moving = self.model.thermal
        self._measured: tuple[int, SiteMoments] | None = None
        self.state = start

    def advance(self, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm]."""
        while self.state.time < stop:
            room = stop - self.state.time
            length = self.control.length(room, courant_limit(self.grid, self.state.mass_squared))
            report = self._step(length)
            if report is None:
                continue
            self.watch.see(report)
            time = self.state.time + length
            past = (self.state.mass_squared, self.state.screening2, length)
            self.state = replace(
                self.state,
                time=stop if abs(stop - time) <= self.near else time,
                step=self.state.step + 1,
                mass_squared=self.squares[:, : len(self.model.species)].copy(),
                screening2=self.squares[:, len(self.model.species) :].copy(),
                past=(past, *self.state.past[:1]),
            )
            yield Leg(length, report.flows, report.null_weight)

    def _step(self, length: float) -> StepReport | None:
        """One step; None if it has to be done again, shorter.

        The very first one is done twice: a trial tells how the masses change in its parts.
        """
        engine, past = self.engine, self._past
        engine.save()
        try:
            if self._moving and not past[0]:
                _, rates, _, _ = self._turns(length, past)
                past = [[(rate, length)] for rate in rates]
                engine.restore()
            now, rates, passages, report = self._turns(length, past, self.control)
        except BaseException:
            engine.restore()  # the last state that stands is what is kept
            raise
        if report is None:
            engine.restore()
            return None
        if not np.isfinite(now).all():
            engine.restore()
            raise RunError(f"the masses are not finite at t = {self.state.time:.6g} fm")
        for kept, rate in zip(self._past, rates, strict=True):
            kept[:] = [(rate, length), *kept[:1]]
        self.squares = now
        self.ledger.enter(passages)
        return report

    def _turns(
        self,
        length: float,
        past: list[list[tuple[Array, float]]],
        control: StepControl | None = None,
    ) -> tuple[Array, list[Array], list[Passage], Collided | None]:
        """All parts of a step: masses after it, their rates in its parts, what passed the walls.

        The report is None if the control wants the step to be done again.
        """
        engine, now = self.engine, self.squares
        passages: list[Passage] = []
        rates: list[Array] = []
        report: Collided | None = None
        for part, before in zip(self._parts, past, strict=True):
            lasts = part.share * length
            used = mean_during(now, lasts, length, before) if self._moving else now
            if part.axis is not None:
                passages.append(engine.sweep(part.axis, lasts, used))
            else:
                report = engine.collide(self.state.step, lasts, used)
                report = replace(report, tolerance=self.control.tolerance)
                check_finite(self.model, self.state.time, report.flows)
                if control is not None and not control.learn(report):
                    return now, rates, passages, None
            after = engine.masses(now) if self._moving else now
            rates.append((after - now) / lasts)
            now = after
        return now, rates, passages, report

    def evaluate(self) -> tuple[Flows, float]:
        """Flows of all processes in the state, and the part of collisions that is lost."""
        report = self.engine.look(self.state.step, self.squares)
        return report.flows, report.null_weight

    def moments(self) -> SiteMoments:
        """Sums over the nodes of every site."""
        if self._measured is None or self._measured[0] != self.state.step:
            found = self.engine.moments(self.squares, self._shells, self._final)
            self._measured = (self.state.step, found)
        return self._measured[1]

    def occupation(self) -> Array:
        """f (sites, species, nodes)."""
        return self.engine.get() * (self.state.unit / self.model.degeneracy[:, None])


def space_engine(
    grid: PhaseSpace, model: Model, sampling: Sampling, backend: str, precision: str, threads: int
) -> Engine:
    """Where a state in space will live."""
    if backend == "cuda":
        from ..backends.cuda.backend import CudaSpace

        return CudaSpace(grid, model, sampling, precision)
    from ..backends.cpu.backend import CpuSpace

    return CpuSpace(grid, model, sampling, threads)
