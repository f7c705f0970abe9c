"""The CPU backend: threads distribute pencils for streaming and sites for collisions.

If there are fewer sites than threads, all threads share the events of one site instead. Results do
not depend on which thread does which piece of work: deposits are integers, and floating-point sums
are taken in the order of chunks, pencils and sites.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...config.settings import Sampling
from ...events.collisions import DrawInput
from ...events.estimates import Estimates
from ...grid.phase_space import PhaseSpace
from ...model.gap_equation import MassModel, unsolved
from ...model.model import Model
from ...stepping.expanding import stresses
from ...stepping.quanta import capacities
from ...stepping.state import State
from ...stepping.step import Segment, StepPlan, advance
from ...stepping.step_report import StepReport
from ...transport.ledger import WallFlux
from ...transport.moments import FIT_SUMS, Moments, Shells
from ...transport.pencils import Pencils
from ...util.arrays import Array, Integers
from ..elements import Elements
from ..team.exchange import Exchange
from .collider import ALONE, Collider
from .masses import coupling_integrals, masses, site_masses
from .moments import fit_sums, marginal, measure_sites, tables
from .stages import SiteStages
from .threads import Threads
from .transport import sweep


class CpuBackend(Threads):
    """Backend that keeps all sites on the cores of one process: see ``contract.Backend``.

    Parameters
    ----------
    grid, model, sampling : the problem to solve
    threads : number of threads, 0 for all cores
    site_ids : global numbers of the sites, if the run has further sites
    exchange : connection to workers that share the samples of homogeneous matter
    """

    name = "cpu"
    local_sites = slice(None)

    def __init__(
        self,
        grid: PhaseSpace,
        model: Model,
        sampling: Sampling,
        threads: int = 0,
        site_ids: Integers | None = None,
        exchange: Exchange | None = None,
    ):
        super().__init__(threads)
        self.grid, self.model, self.sampling = grid, model, sampling
        self._exchange = exchange
        self.elements = Elements(model)
        self.site_ids = np.arange(grid.sites) if site_ids is None else site_ids
        self.shape = (grid.sites, len(model.species), grid.size)
        alone = self.count > grid.sites  # one site at a time, with all threads
        threads_of_one = self if alone or self.count == 1 else ALONE
        self.colliders = [
            Collider(grid.without_space, self.elements, sampling, threads_of_one, exchange)
            for _ in range(1 if alone else self.count)
        ]
        self._gap = MassModel.of(grid, model)
        self._species = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self._pencils: dict[int, Pencils] = {}
        self._shells = Shells.of(grid)
        self._warm = False

    @property
    def description(self) -> str:
        """Device, threads and precision in words."""
        return f"cpu, {self.count} thread{'s' if self.count > 1 else ''}, float64"

    @property
    def memory(self) -> int:
        """Bytes of the state and of the events of all threads."""
        return 2 * self.number.nbytes + sum(collider.memory for collider in self.colliders)

    def load(self) -> dict[str, Any]:
        """Return an empty dict: there is only one process."""
        return {}

    def close(self) -> None:
        """Do nothing: there are no workers to release."""

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: Integers, bits: int) -> None:
        """Store a state (sites, species, nodes) in quanta of 2^-bits."""
        self.number = np.array(number, np.int64).reshape(self.shape)
        self._saved = np.empty_like(self.number)
        self._unit = 2.0**-bits
        self._capacity = capacities(self.model, bits).astype(float)
        self._stages = [SiteStages(collider, bits) for collider in self.colliders]

    def get(self) -> Integers:
        """Return the state (sites, species, nodes) in quanta."""
        return self.number.copy()

    def save(self) -> None:
        """Save a copy of the state."""
        self._saved[:] = self.number

    def restore(self) -> None:
        """Return to the saved copy of the state."""
        self.number[:] = self._saved

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid with equally many nodes but different momenta."""
        if grid.momentum_max == self.grid.momentum_max:
            return
        self.grid = grid
        for collider in self.colliders:
            collider.set_momentum_grid(grid.without_space)
        self._gap = MassModel.of(grid, self.model)
        self._pencils.clear()

    # -- evolution -------------------------------------------------------------------------------

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step to the time ``stop`` [fm], yielding a segment after every step."""
        return advance(self, state, step_plan, stop)

    def launch_steps(self, state: State, step_plan: StepPlan, stop: float) -> None:
        """Do nothing: all cores are busy with the work of the host."""

    def synchronize(self) -> None:
        """Do nothing: no steps are ever in progress."""

    def stream(
        self, axis: int, length: float, squares: Array, push: Array | None = None
    ) -> WallFlux:
        """Stream and push along an axis for ``length`` [fm]; squares : those at every site."""
        pencils = self.pencils(axis)
        return pencils.passage(*self.swept(pencils, self.number, length, squares, push))

    def pencils(self, axis: int) -> Pencils:
        """Return the pencils of an axis."""
        if axis not in self._pencils:
            self._pencils[axis] = Pencils.of(self.grid, self.model, axis)
        return self._pencils[axis]

    def swept(
        self, pencils: Pencils, number: Integers, length: float, squares: Array, push: Array | None
    ) -> tuple[Integers, Array, Array]:
        """Sweep a state (sites, species, nodes) in place.

        Returns the quanta that left, and for every group the energy that left and the quanta that
        closed momentum faces refused.
        """
        push = np.zeros((*number.shape[:2], 2)) if push is None else push
        groups = pencils.groups
        rows = 2 if pencils.open else 0
        ledgers = [np.zeros((rows, *number.shape[1:]), np.int64) for _ in range(self.count)]
        energies, refused = np.zeros((groups, 2)), np.zeros((groups, 2))
        scratch = [np.empty(pencils.scratch) for _ in range(self.count)]
        parts = self.parts(groups)

        def work(thread: int, part: int) -> None:
            sweep(
                number, squares, push, parts[part], pencils.lines, pencils.walls,
                (length, *pencils.widths), pencils.p, pencils.transverse_p2, self._capacity,
                scratch[thread], (ledgers[thread], energies, refused),
            )  # fmt: skip

        self.share(work, len(parts))
        return sum(ledgers[1:], ledgers[0]), energies, refused

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites for ``length`` [fm]; 0 only measures rates and moves nothing."""
        if not self.model.processes:
            return StepReport.nothing(self.grid.sites, length)
        report = StepReport.of(self.collided(step, length, squares))
        self._agree()
        return report

    def _agree(self) -> None:
        """Make sure that all workers sharing the samples finish the step, or none of them."""
        if self._exchange is not None:
            self._exchange.agree()

    def collided(self, step: int, length: float, squares: Array) -> list[StepReport]:
        """Collide at all sites; return one report per site."""
        sites, kinds, _ = self.shape
        reports: list[Any] = [None] * sites

        def work(thread: int, site: int) -> None:
            draw = DrawInput.of(step, squares[site], kinds, int(self.site_ids[site]))
            number = self.number[site].ravel()
            new, reports[site] = self._stages[thread].collide(number, draw, length)
            self.number[site] = new.reshape(self.shape[1:])

        if len(self.colliders) < self.count:
            for site in range(sites):
                work(0, site)
        else:
            first = 0 if self._warm else 1
            if first:  # compile in one thread
                work(0, 0)
            self._warm = True
            self.share(lambda thread, item: work(thread, item + first), sites - first)
        return reports

    # -- measurements ----------------------------------------------------------------------------

    def masses(self, start: Array) -> Array:
        """Solve for the squared masses of all species and screenings at all sites [GeV^2]."""
        squares = np.array(start)
        failed: list[int] = []

        def work(first: int, last: int) -> None:
            site = site_masses(self.number, self._unit, first, last, self._gap.numbers, squares)
            if site >= 0:
                failed.append(site)

        self.each(work, len(squares))
        if failed:
            where = f" in space cell {self.site_ids[min(failed)]}" if len(squares) > 1 else ""
            raise unsolved(where)
        self._agree()
        return squares

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sum over the nodes of every site."""
        found = Moments.empty(self.grid, self.shape[1], self._shells)
        nodes, room = tables(self.grid, self._shells), (*found.planes, found.shells, found.sums)

        def work(first: int, last: int) -> None:
            measure_sites(
                self.number, self._unit, self._species, squares, nodes, final, (first, last), room
            )

        self.each(work, self.grid.sites)
        return found

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows unchanged: all sites are stored here."""
        return rows

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites."""
        nothing = np.zeros(self.shape[1:])
        return stresses(self.grid, self.model, self.moments(squares, nothing), squares)

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sum thermal states over the nodes for ``Fits``, at the sites ``which``."""
        sums = np.zeros((len(which), self.shape[1], FIT_SUMS))
        momenta, weights = self.grid.momenta, np.ones(self.grid.size)
        statistics = self._species[:, 1].copy()

        def work(first: int, last: int) -> None:
            fit_sums(theta, squares, which, momenta, weights, statistics, first, last, sums)

        self.each(work, len(which))
        return sums

    def squares(self, f: Array) -> Array:
        """Return the squared masses, then squared screening masses, of f (species, nodes)."""
        m2 = masses(self.grid, self.model, f)
        y = coupling_integrals(self.grid, self.model, f, m2)
        return np.append(m2, self.model.screening_squared(y))

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Estimate C[f] of f (species, nodes) from independent event samples."""
        per_state = np.repeat(1.0 / self.model.degeneracy, self.grid.size)

        def found() -> Estimates:
            draws = [DrawInput.of(batch, squares, self.shape[1]) for batch in batches]
            return Estimates.of([self.colliders[0].estimate(f, d) for d in draws], per_state)

        return found

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Sum N f over all directions except those in ``kept``, in quanta."""
        return marginal(self.grid, self.number, kept)
