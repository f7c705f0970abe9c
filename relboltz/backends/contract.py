"""What a backend is: where a state lives, and all that can be done to it.

A third backend is one folder with a class that has these methods; a cluster is a backend made of
backends. Sites are known by their number among all of the run (``site_ids``), wherever they lie in
memory: random numbers depend on it.
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
    """What tells C[f] of any f, without a state."""

    elements: Elements

    def squares(self, f: Array) -> Array:
        """Squared masses of all species, then screenings, that f (species, nodes) causes."""

    def estimates(self, f: Array, squares: Array, batches: range) -> Callable[[], Estimates]:
        """C[f] of f (species, nodes) with these squares, from independent draws of events.

        batches : numbers of the draws. Work may begin at once, and is done when it is asked for.
        """


class Backend(Estimator, Protocol):
    """A state of all sites, and what happens to it.

    squares : squared masses of all species and screenings at every site [GeV^2]
    """

    name: str
    grid: PhaseSpace
    model: Model
    sampling: Sampling
    site_ids: Integers
    """Of the sites it holds, among all sites of the run."""
    local_sites: slice
    """Of the sites that it is told of, those whose numbers it has."""
    interrupt: object
    """Once it is true, work in hand is dropped and Halted raised."""

    @property
    def description(self) -> str:
        """Where the work is done, in words."""

    @property
    def memory(self) -> int:
        """Bytes that the state and everything beside it take."""

    def load(self) -> dict[str, Any]:
        """Who did how much of the work, as attributes of a result; nothing of one process."""

    def close(self) -> None:
        """Let go of others that work for it."""

    # -- the state

    def put(self, number: Integers, bits: int) -> None:
        """Take over a state (sites, species, nodes) in quanta of 2^-bits."""

    def get(self) -> Integers:
        """The state (sites, species, nodes) in quanta."""

    def save(self) -> None:
        """Remember the state."""

    def restore(self) -> None:
        """Back to what was remembered."""

    def set_momentum_grid(self, grid: PhaseSpace) -> None:
        """The nodes are now those of this grid: as many, with other momenta."""

    # -- what happens to it

    def advance(self, state: State, course: StepPlan, stop: float) -> Iterator[Segment]:
        """Step until the stop [fm], telling now and then how far it is."""

    def launch_steps(self, state: State, course: StepPlan, stop: float) -> None:
        """Steps until the stop, which ``advance`` will ask for next, may begin at once.

        The state is as it was until then, or until ``synchronize`` or anything else that needs the
        numbers is asked for.
        """

    def synchronize(self) -> None:
        """Let steps that were set out on arrive: the state is theirs, their rates are not told."""

    def stream(self, axis: int, length: float, squares: Array, push: Array | None) -> WallFlux:
        """Stream and push along an axis for a length [fm]; push: see ``transport.forces``."""

    def collide(self, step: int, length: float, squares: Array) -> StepReport:
        """Collisions at all sites for a length [fm]; 0 tells their rates and moves nothing."""

    # -- what is asked about it

    def masses(self, start: Array) -> Array:
        """The squares of the state, solved from those of a similar one."""

    def gather_sites(self, rows: Array) -> Array:
        """Rows of all sites, from those of the sites that it holds."""

    def stresses(self, squares: Array) -> Array:
        """Pressures of all sites, and how full their box is: see ``stepping.expanding``."""

    def moments(self, squares: Array, final: Array) -> Moments:
        """Sums over the nodes of every site; final: f (species, nodes) to measure how far it is."""

    def marginal(self, kept: Sequence[str]) -> tuple[Integers, Integers]:
        """N f summed over all of x, y, z, px, py, pz but those kept, (species, ...), in quanta.

        Exactly, in two words: what is above and what is below 2^32.
        """

    def fits(self, theta: Array, squares: Array, which: Integers) -> Array:
        """Sums over the nodes of thermal states at some sites, see ``equilibrium.fits``."""
