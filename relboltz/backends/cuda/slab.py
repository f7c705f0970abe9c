"""Some sites of a state on a GPU, in the hands of one worker of several: twin of ``cpu/slab``.

What it tells of a step it tells of all sites. Steps have the bits of a single GPU that has all
sites, whatever their number and however many workers share a GPU.
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
from ...stepping.step_report import StepReport
from ...transport.ledger import WallFlux
from ...transport.moments import Moments
from ...util.arrays import Array, Integers
from ..team.division import Division
from ..team.exchange import Exchange, concatenated, total
from .backend import CudaBackend
from .multi_gpu import MultiGpuStepper
from .sweeps import passage


class CudaSlab:
    """A slab of a state: sites of its own (``own``), and what happens to all sites.

    part : of the free memory of the GPU that is for this slab
    """

    name = "cuda"

    def __init__(
        self,
        division: Division,
        model: Model,
        sampling: Sampling,
        precision: str,
        exchange: Exchange,
        part: float = 1.0,
    ):
        self.division, self.exchange = division, exchange
        self.grid, self.model, self.sampling = division.grid, model, sampling
        self.sites = division.sites(exchange.rank)
        site_ids = np.arange(self.sites.start, self.sites.stop)
        slab = division.slab(exchange.rank)
        self.own = CudaBackend(slab, model, sampling, precision, site_ids, exchange, part, division)
        self.elements = self.own.elements

    @property
    def local_sites(self) -> slice:
        """The sites whose numbers it has."""
        return self.sites

    @property
    def interrupt(self) -> object:
        """Once it is true, work in hand is dropped and Halted raised."""
        return self.own.interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self.own.interrupt = value

    @property
    def description(self) -> str:
        """Where the work is done, in words."""
        return self.own.description

    @property
    def memory(self) -> int:
        """Bytes of all arrays on the GPU."""
        return self.own.memory

    # -- the slab --------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Take over the sites of this slab."""
        self.own.put(number, bits)

    def get(self) -> Integers:
        """The sites of this slab in quanta."""
        return self.own.get()

    def save(self) -> None:
        """Remember them."""
        self.own.save()

    def restore(self) -> None:
        """Back to what was remembered."""
        self.own.restore()

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid, of all sites."""
        self.grid = grid
        self.own.set_momentum_grid(replace(self.own.grid, momentum_max=grid.momentum_max))
        ahead = self.own.ahead
        assert isinstance(ahead, MultiGpuStepper)
        ahead.across.set_momentum_grid(grid)

    def gather_sites(self, rows: Array) -> Array:
        """Everybody is told of all sites."""
        return concatenated(self.exchange, rows, self.division.counts)

    def stresses(self, squares: Array) -> Array:
        """Pressures of all sites, and how full their box is."""
        return self.gather_sites(self.own.stresses(squares[self.sites]))

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sums over the nodes of its own sites; squares : of all."""
        return self.own.moments(squares[self.sites], final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Sums of its own sites."""
        return self.own.marginal(kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums of thermal states at some of its own sites, by their number in the run."""
        return self.own.fits(theta, squares[self.sites], which - self.sites.start)

    def squares(self, f: Array) -> Array:
        """The squares that f (species, nodes) of any site causes."""
        return self.own.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """C[f] of f (species, nodes) of any site."""
        return self.own.estimates(f, squares, batches)

    # -- all sites -------------------------------------------------------------------------------

    def advance(self, state: State, course: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until the stop [fm]."""
        if self.own.led(course):
            return advance(self, state, course, stop)  # type: ignore[arg-type]
        return self.own.ahead.advance(state, course, stop)

    def masses(self, start: Array) -> Array:
        """The squares of all sites."""
        mine = self.own.masses(start[self.sites])
        return concatenated(self.exchange, mine, self.division.counts)

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collisions at all sites; everybody is told of all."""
        if not self.model.processes:
            return StepReport.nothing(self.grid.sites, length)
        mine = self.own.collided(step, length, squares[self.sites])
        every = [concatenated(self.exchange, one, self.division.counts) for one in mine]
        return self.own.report(length, *every)

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream and push along an axis; everybody is told what left anywhere."""
        own, ahead = self.own, self.own.ahead
        assert isinstance(ahead, MultiGpuStepper)
        if self.division.cuts(axis):
            own.let_last(length)
            there, pushed = own.machine.upload(squares, np.float64), own.no_push
            if push is not None:
                pushed = own.machine.upload(push, np.float64)
            cut = ahead.across.sweep(self.exchange, axis, there, pushed)
            sums = (
                np.zeros(4 + 4 * len(self.model.species)) if cut.sweep is None else cut.sweep.sums()
            )
        else:
            mine = None if push is None else push[self.sites]
            sums = own.swept(axis, length, squares[self.sites], mine).sums()
        left = np.zeros((0, *own.shape[1:]), np.int64)
        if axis in ahead.ledger.words:  # its walls are open
            left = ahead.left(self.exchange, axis).reshape(2, *own.shape[1:])
        return passage(axis, left, total(self.exchange, sums))
