"""The sites of one worker on the CPU: a slab of the state.

Step reports cover all sites, so every worker makes the decisions of a single process. Pencils
along a divided axis are swept whole: each worker sends away its parts of the pencils, sweeps the
pencils that it received, and returns them. This works for slabs of any thickness; ghost cells
would have to be as many as a sweep reaches: ten, and any number where fluxes are repaired.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ...config.settings import Sampling
from ...events.estimates import Estimates
from ...grid.phase_space import PhaseSpace
from ...model.model import Model
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan, advance
from ...stepping.step_report import StepReport, from_rows, to_rows
from ...transport.ledger import WallFlux
from ...transport.moments import Moments
from ...transport.pencils import Pencils
from ...util.arrays import Array, Integers
from ..team.division import Division
from ..team.exchange import Exchange, concatenated, gathered, total
from .backend import CpuBackend


class CpuSlab:
    """Backend of one worker: holds the sites of its slab (``own``) and reports on all sites."""

    name = "cpu"

    def __init__(
        self,
        division: Division,
        model: Model,
        sampling: Sampling,
        threads: int,
        exchange: Exchange,
    ):
        self.division, self.exchange = division, exchange
        self.grid, self.model, self.sampling = division.grid, model, sampling
        self.sites = division.sites(exchange.rank)
        site_ids = np.arange(self.sites.start, self.sites.stop)
        slab = division.slab(exchange.rank)
        self.own = CpuBackend(slab, model, sampling, threads, site_ids)
        self.elements = self.own.elements
        self._nodes: dict[int, list[Integers]] = {}
        self._turned = np.empty(0, np.int64)

    @property
    def local_sites(self) -> slice:
        """Sites stored here, as a slice of all sites."""
        return self.sites

    @property
    def interrupt(self) -> object:
        """Once true, the work in progress is abandoned and Halted raised."""
        return self.own.interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self.own.interrupt = value

    @property
    def description(self) -> str:
        """Device, threads and precision in words."""
        return self.own.description

    @property
    def memory(self) -> int:
        """Bytes of the slab, of pencils received along divided axes, and of events."""
        return self.own.memory + 2 * self._turned.nbytes

    # -- the slab --------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Store the sites of this slab in quanta of 2^-bits."""
        self.own.put(number, bits)

    def get(self) -> Integers:
        """Return the sites of this slab in quanta."""
        return self.own.get()

    def save(self) -> None:
        """Save a copy of the slab."""
        self.own.save()

    def restore(self) -> None:
        """Return to the saved copy of the slab."""
        self.own.restore()

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid, given for all sites, with different momenta."""
        self.grid = grid
        self.own.set_momentum_grid(replace(self.own.grid, momentum_max=grid.momentum_max))

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sum over the nodes of the slab's sites; squares : those of all sites."""
        return self.own.moments(squares[self.sites], final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Sum N f over the slab's sites and all directions except those in ``kept``."""
        return self.own.marginal(kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sum thermal states at some sites of the slab, given by their global numbers."""
        return self.own.fits(theta, squares[self.sites], which - self.sites.start)

    def squares(self, f: Array) -> Array:
        """Return the squared masses, then squared screening masses, of f (species, nodes)."""
        return self.own.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Estimate C[f] of f (species, nodes)."""
        return self.own.estimates(f, squares, batches)

    # -- all sites -------------------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step to the time ``stop`` [fm], yielding a segment after every step."""
        return advance(self, state, step_plan, stop)  # type: ignore[arg-type]

    def masses(self, start: Array) -> Array:
        """Solve for the squares of all sites."""
        mine = self.own.masses(start[self.sites])
        return concatenated(self.exchange, mine, self.division.counts)

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows of all sites to every worker."""
        return concatenated(self.exchange, rows, self.division.counts)

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites."""
        return self.gather_sites(self.own.stresses(squares[self.sites]))

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites; every worker gets the report on all sites."""
        if not self.model.processes:
            return StepReport.nothing(self.grid.sites, length)
        counts, rows = to_rows(self.own.collided(step, length, squares[self.sites]))
        together = concatenated(
            self.exchange, np.hstack([counts.view(np.float64), rows]), self.division.counts
        )
        counts = np.ascontiguousarray(together[:, :6]).view(np.int64)
        return StepReport.of(from_rows(length, counts, together[:, 6:]))

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream and push along an axis; every worker gets the wall fluxes of all sites."""
        whole = Pencils.of(self.grid, self.model, axis)
        if self.division.cuts(axis):
            return self._across(whole, length, squares, push)
        own = self.own.pencils(axis)
        mine, push = squares[self.sites], None if push is None else push[self.sites]
        left, energies, refused = self.own.swept(own, self.own.number, length, mine, push)
        lengths = [n * whole.groups // self.grid.sites for n in self.division.counts]
        found = concatenated(self.exchange, np.hstack([energies, refused]), lengths)
        left = total(self.exchange, left) if whole.open else left
        return whole.passage(left, found[:, :2].copy(), found[:, 2:].copy())

    def _across(
        self, whole: Pencils, length: float, squares: Array, push: Array | None
    ) -> WallFlux:
        """Sweep along a divided axis."""
        division, rank, number = self.division, self.exchange.rank, self.own.number
        nodes, shares = self._nodes_of(whole.axis), division.pencils(whole.axis)
        parts = [np.take(number, some, axis=2) for some in nodes]
        mine = self._room((self.grid.sites, number.shape[1], len(nodes[rank])))
        pieces = [mine[division.sites(k)] for k in range(division.size)]
        self.exchange.swap(parts, pieces)
        pieces[rank][...] = parts[rank]
        found = self.own.swept(whole.some(shares[rank]), mine, length, squares, push)
        self.exchange.swap(pieces, parts)
        parts[rank][...] = pieces[rank]
        for some, part in zip(nodes, parts, strict=True):
            number[:, :, some] = part
        return self._passage(whole, *found)

    def _passage(self, whole: Pencils, left: Integers, energies: Array, refused: Array) -> WallFlux:
        """Combine the wall fluxes of the pencils of all workers, in order."""
        shape, shares = (whole.across, whole.species), self.division.pencils(whole.axis)
        blocks = [whole.some(share).blocks for share in shares]
        rooms = [np.empty((*shape, count, 4)) for count in blocks]
        gathered(self.exchange, np.hstack([energies, refused]), rooms)
        found = np.concatenate(rooms, axis=2).reshape(-1, 4)
        every = np.zeros((len(left), whole.species, self.grid.size), np.int64)
        if whole.open:
            nodes = self._nodes_of(whole.axis)
            pieces = [np.empty((*left.shape[:2], len(some)), np.int64) for some in nodes]
            gathered(self.exchange, left, pieces)
            for some, piece in zip(nodes, pieces, strict=True):
                every[:, :, some] = piece
        return whole.passage(every, found[:, :2].copy(), found[:, 2:].copy())

    def _nodes_of(self, axis: int) -> list[Integers]:
        """Return the nodes that each worker sweeps along an axis."""
        if axis not in self._nodes:
            shares = self.division.pencils(axis)
            self._nodes[axis] = [self.division.nodes(axis, share) for share in shares]
        return self._nodes[axis]

    def _room(self, shape: tuple[int, int, int]) -> Integers:
        """Return memory for received pencils, reused from sweep to sweep."""

        size = shape[0] * shape[1] * shape[2]
        if self._turned.size < size:
            self._turned = np.empty(size, np.int64)
        return self._turned[:size].reshape(shape)
