"""CUDA backend for one worker that holds a slab of the sites: the counterpart of ``cpu/slab``.

Step reports cover all sites. Steps are bit-for-bit identical to those of a single GPU with all
sites, for any number of workers and however many workers share a GPU.
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
    """Slab of a state: holds its own sites in ``own``, and steps all sites with other workers.

    part : fraction of the free GPU memory that this slab may use
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
        """Range of the sites that this slab holds."""
        return self.sites

    @property
    def interrupt(self) -> object:
        """If true, abandon current work and raise Halted."""
        return self.own.interrupt

    @interrupt.setter
    def interrupt(self, value: object) -> None:
        self.own.interrupt = value

    @property
    def description(self) -> str:
        """GPU name and precision, for display."""
        return self.own.description

    @property
    def memory(self) -> int:
        """Total size of all arrays on the GPU in bytes."""
        return self.own.memory

    # -- the slab --------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Upload the state of this slab."""
        self.own.put(number, bits)

    def get(self) -> Integers:
        """Return the state of this slab in quanta."""
        return self.own.get()

    def save(self) -> None:
        """Save a copy of the state for ``restore``."""
        self.own.save()

    def restore(self) -> None:
        """Return to the state saved by ``save``."""
        self.own.restore()

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to the momentum nodes of another grid (of all sites)."""
        self.grid = grid
        self.own.set_momentum_grid(replace(self.own.grid, momentum_max=grid.momentum_max))
        stepper = self.own.stepper
        assert isinstance(stepper, MultiGpuStepper)
        stepper.across.set_momentum_grid(grid)

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows of all sites on every worker."""
        return concatenated(self.exchange, rows, self.division.counts)

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites."""
        return self.gather_sites(self.own.stresses(squares[self.sites]))

    def moments(self, squares: Array, final: Array) -> Moments:
        """Return sums over the nodes of local sites; squares : of all sites."""
        return self.own.moments(squares[self.sites], final)

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Return marginal sums of N f over the local sites, in quanta."""
        return self.own.marginal(kept)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Return sums of thermal states at local sites ``which``, numbered as in the run."""
        return self.own.fits(theta, squares[self.sites], which - self.sites.start)

    def squares(self, f: Array) -> Array:
        """Return the squared masses for a given f (species, nodes) at any site."""
        return self.own.squares(f)

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Start estimating C[f] for f (species, nodes) at any site."""
        return self.own.estimates(f, squares, batches)

    # -- all sites -------------------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until ``stop`` [fm]."""
        if self.own.led(step_plan):
            return advance(self, state, step_plan, stop)  # type: ignore[arg-type]
        return self.own.stepper.advance(state, step_plan, stop)

    def masses(self, start: Array) -> Array:
        """Return the squared masses of all sites [GeV^2]."""
        mine = self.own.masses(start[self.sites])
        return concatenated(self.exchange, mine, self.division.counts)

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites; return the report of all sites on every worker."""
        if not self.model.processes:
            return StepReport.nothing(self.grid.sites, length)
        mine = self.own.collided(step, length, squares[self.sites])
        every = [concatenated(self.exchange, one, self.division.counts) for one in mine]
        return self.own.report(length, *every)

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream and push along an axis; return the wall flux of all sites on every worker."""
        own, stepper = self.own, self.own.stepper
        assert isinstance(stepper, MultiGpuStepper)
        if self.division.cuts(axis):
            own.let_last(length)
            there, pushed = own.buffers.upload(squares, np.float64), own.no_push
            if push is not None:
                pushed = own.buffers.upload(push, np.float64)
            cut = stepper.across.sweep(self.exchange, axis, there, pushed)
            sums = (
                np.zeros(4 + 4 * len(self.model.species)) if cut.sweep is None else cut.sweep.sums()
            )
        else:
            mine = None if push is None else push[self.sites]
            sums = own.swept(axis, length, squares[self.sites], mine).sums()
        left = np.zeros((0, *own.shape[1:]), np.int64)
        if axis in stepper.ledger.words:  # its walls are open
            left = stepper.left(self.exchange, axis).reshape(2, *own.shape[1:])
        return passage(axis, left, total(self.exchange, sums))
