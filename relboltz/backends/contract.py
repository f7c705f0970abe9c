"""The backend interface: a backend stores the state and implements every operation on it.

To add a backend, write one folder with a class that has these methods; a cluster is a backend made
of backends. Every site carries its global number (``site_ids``), wherever it is stored: random
numbers depend on the global number.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ..config.settings import Sampling
from ..events.estimates import Estimates
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..stepping.state import State
from ..stepping.step import Segment, StepPlan
from ..stepping.step_report import StepReport
from ..transport.ledger import WallFlux
from ..transport.moments import Moments
from ..util.arrays import Array, Integers
from .elements import Elements


class Estimator(Protocol):
    """Computes C[f] for a given f without storing a state."""

    elements: Elements

    def squares(self, f: Array) -> Array:
        """Return the squared masses, then squared screening masses, of f (species, nodes)."""

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """Estimate C[f] of f (species, nodes) with these squares from independent event samples.

        batches : numbers of the samples. Work may start at once; calling the returned function
            waits for the result.
        """


class Backend(Estimator, Protocol):
    """The state of all sites and the operations on it.

    squares : squared masses of all species and squared screening masses at every site [GeV^2]
    """

    name: str
    grid: PhaseSpace
    model: Model
    sampling: Sampling
    site_ids: Integers
    """Global numbers of the sites stored here."""
    local_sites: slice
    """Sites stored here, as a slice of the sites in ``squares``."""
    interrupt: object
    """Once true, the work in progress is abandoned and Halted raised."""

    @property
    def description(self) -> str:
        """Device, threads and precision in words."""

    @property
    def memory(self) -> int:
        """Bytes taken by the state and all work arrays."""

    def load(self) -> dict[str, Any]:
        """Return busy and waiting time per worker; empty for a single process."""

    def close(self) -> None:
        """Release the workers of this backend."""

    # -- the state

    def put(self, number: Integers, bits: int) -> None:
        """Store a state (sites, species, nodes) in quanta of 2^-bits."""

    def get(self) -> Integers:
        """Return the state (sites, species, nodes) in quanta."""

    def save(self) -> None:
        """Save a copy of the state."""

    def restore(self) -> None:
        """Return to the saved copy of the state."""

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """Switch to a grid with equally many nodes but different momenta."""

    # -- evolution

    def advance(self, state: State, step_plan: StepPlan, stop: float) -> Iterator[Segment]:
        """Step to the time ``stop`` [fm], yielding segments of the way."""

    def launch_steps(self, state: State, step_plan: StepPlan, stop: float) -> None:
        """Optionally start the steps that the next ``advance`` will ask for.

        ``state`` stays unchanged until that call, or until ``synchronize`` or any other method
        that needs the particle numbers is called.
        """

    def synchronize(self) -> None:
        """Wait for launched steps and take over their state; their rates are not reported."""

    def stream(self, axis: int, length: float, squares: Array, push: Array | None) -> WallFlux:
        """Stream and push along an axis for ``length`` [fm]; push: see ``transport.forces``."""

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collide at all sites for ``length`` [fm]; 0 only measures rates and moves nothing."""

    # -- measurements

    def masses(self, start: Array) -> Array:
        """Solve for the squares of the state, starting from those of a similar state."""

    def gather_sites(self, rows: Array) -> Array:
        """Return the rows of all sites, given the rows of the sites stored here."""

    def stresses(self, squares: Array) -> Array:
        """Return pressures and outer momentum moments of all sites: see ``stepping.expanding``."""

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sum over the nodes of every site; distances are measured from f = ``final``."""

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """Sum N f over all of x, y, z, px, py, pz except ``kept``: (species, ...), in quanta.

        The sums are exact, returned as two words: the parts above and below 2^32.
        """

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sum thermal states over the nodes at the sites ``which``, see ``thermodynamics.fits``."""
