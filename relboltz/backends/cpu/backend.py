"""A state in space on the CPU: threads share out pencils while streaming, sites while colliding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...equilibrium.fits import FIT_SUMS
from ...errors import RunError
from ...events.collisions import Draw, Sampling
from ...grid import PhaseSpace
from ...masses import MassModel
from ...model import Model
from ...records.moments import Shells, SiteMoments
from ...stepping.space import Collided, Passage, Pencils
from ...stepping.stepper import Stepper, StepReport, capacities
from .collider import CpuBackend
from .fits import fit_sums
from .masses import site_masses
from .moments import measure_sites, tables
from .threads import Threads
from .transport import sweep


class CpuSpace(Threads):
    """All sites of a state, on all cores.

    Parameters
    ----------
    grid, model, sampling : what to solve
    threads : 0 for all cores
    """

    name = "cpu"

    def __init__(self, grid: PhaseSpace, model: Model, sampling: Sampling, threads: int = 0):
        self.grid, self.model, self.sampling = grid, model, sampling
        super().__init__(threads)
        one = grid.at_a_site
        self._backends = [CpuBackend(one, model, sampling, 1) for _ in range(self.count)]
        self.elements = self._backends[0].elements
        self.shape = (grid.sites, len(model.species), grid.size)
        self.number = np.zeros(self.shape, np.int64)
        self._saved = np.zeros(0, np.int64)
        self._masses = MassModel.of(one, model)
        self._species = np.stack([model.degeneracy, model.statistics.astype(float)], axis=1)
        self._pencils = {axis: Pencils.of(grid, model, axis) for axis in grid.moving_axes}
        self._steppers: list[Stepper] = []
        self._unit = 0.0
        self._warm = False

    @property
    def words(self) -> str:
        """Where the work is done, in words."""
        return f"cpu, {self.count} thread{'s' if self.count > 1 else ''}, float64"

    # -- the state -------------------------------------------------------------------------------

    def put(self, number: NDArray[np.int64], bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""
        self.number = np.array(number, np.int64).reshape(self.shape)
        self._saved = np.empty_like(self.number)
        self._unit = 2.0**-bits
        self._capacity = capacities(self.model, bits).astype(float)
        self._steppers = [Stepper(backend, bits) for backend in self._backends]

    def get(self) -> NDArray[np.int64]:
        """The state (sites, species, nodes) in quanta."""
        return self.number

    def save(self) -> None:
        """Remember the state."""
        self._saved[:] = self.number

    def restore(self) -> None:
        """Back to what was remembered."""
        self.number[:] = self._saved

    # -- what happens to the state ---------------------------------------------------------------

    def sweep(self, axis: int, length: float, squares: NDArray[np.float64]) -> Passage:
        """Stream along an axis for a length [fm], with these squared masses at the sites."""
        pencils = self._pencils[axis]
        groups = pencils.groups
        rows = 2 if pencils.open else 0
        ledgers = [np.zeros((rows, *self.shape[1:]), np.int64) for _ in range(self.count)]
        energies, refused = np.zeros((groups, 2)), np.zeros((groups, 2))
        scratch = [np.empty(pencils.scratch) for _ in range(self.count)]
        parts = self.parts(groups)

        def work(thread: int, part: int) -> None:
            sweep(
                self.number, squares, *parts[part], pencils.lines, pencils.walls,
                (length, *pencils.widths), pencils.p, pencils.transverse_p2, self._capacity,
                scratch[thread], (ledgers[thread], energies, refused),
            )  # fmt: skip

        self.share(work, len(parts))
        return pencils.passage(sum(ledgers[1:], ledgers[0]), energies, refused)

    def masses(self, start: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squared masses of all species and of the screenings, at all sites [GeV^2]."""
        squares = np.array(start)
        failed: list[int] = []

        def work(first: int, last: int) -> None:
            site = site_masses(self.number, self._unit, first, last, self._masses.numbers, squares)
            if site >= 0:
                failed.append(site)

        self.each(work, len(squares))
        if failed:
            raise RunError(f"the thermal masses of space cell {min(failed)} do not converge")
        return squares

    def collide(self, step: int, length: float, squares: NDArray[np.float64]) -> Collided:
        """Collisions at all sites for a length [fm]."""
        reports: list[StepReport | None] = [None] * self.grid.sites
        if not self.model.processes:
            return Collided.nothing(self.grid.sites, length)

        def work(thread: int, site: int) -> None:
            draw = Draw.of(step, squares[site], self.shape[1], site)
            number = self.number[site].ravel()
            new, report = self._steppers[thread].collide(number, self._unit, draw, length)
            self.number[site] = new.reshape(self.shape[1:])
            reports[site] = report

        first = 0
        if not self._warm:  # compile in one thread
            work(0, 0)
            self._warm, first = True, 1
        self.share(lambda thread, item: work(thread, item + first), self.grid.sites - first)
        return Collided.of([r for r in reports if r is not None])

    def look(self, step: int, squares: NDArray[np.float64]) -> Collided:
        """Flows of the state as it is; nothing moves."""
        found: list = [None] * self.grid.sites
        if not self.model.processes:
            return Collided.nothing(self.grid.sites, 1.0)

        def work(thread: int, site: int) -> None:
            draw = Draw.of(step, squares[site], self.shape[1], site)
            found[site] = self._steppers[thread].look(self.number[site].ravel(), self._unit, draw)

        self.share(work, self.grid.sites)
        return Collided.flows_alone(found)

    def fit_sums(
        self,
        theta: NDArray[np.float64],
        squares: NDArray[np.float64],
        which: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Sums over the nodes for ``Fits``, at some sites."""
        sums = np.zeros((len(which), self.shape[1], FIT_SUMS))
        momenta, statistics = self.grid.momenta, self._species[:, 1].copy()

        def work(first: int, last: int) -> None:
            fit_sums(theta, squares, which, momenta, statistics, first, last, sums)

        self.each(work, len(which))
        return sums

    def moments(
        self, squares: NDArray[np.float64], shells: Shells, final: NDArray[np.float64]
    ) -> SiteMoments:
        """Sums over the nodes of every site."""
        found = SiteMoments.empty(self.grid, self.shape[1], shells)
        nodes, room = tables(self.grid, shells), (*found.planes, found.shells, found.sums)

        def work(first: int, last: int) -> None:
            measure_sites(
                self.number, self._unit, self._species, squares, nodes, final, (first, last), room
            )

        self.each(work, self.grid.sites)
        return found
