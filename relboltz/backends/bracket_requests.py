"""Input of the bracket kernels: the events of a channel and the trial functions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..util.arrays import Array, Integers

Four = tuple[float, float, float, float]
Table = tuple[Array, Array]
"""Edges of |p| [GeV] (none on nodes) and the cumulative density from which |p| is drawn."""


@dataclass(frozen=True)
class TrialFunctions:
    """Trial functions: half-integer powers of E/T for each rank, in the order of ``ranks``."""

    ranks: tuple[str, ...]
    exponents: Integers
    """Twice the powers (rank, function); only the first ``counts`` entries of a rank are used."""
    counts: Integers

    @classmethod
    def of(cls, powers: dict[str, tuple[float, ...]]) -> TrialFunctions:
        """Build trial functions from the powers of each rank."""
        counts = np.array([len(row) for row in powers.values()], np.int64)
        exponents = np.zeros((len(powers), counts.max()), np.int64)
        for row, given in zip(exponents, powers.values(), strict=True):
            row[: len(given)] = [round(2 * k) for k in given]
        return cls(tuple(powers), exponents, counts)

    @property
    def lowest(self) -> int:
        """The lowest half power needed; never above 0."""
        return min(0, int(self.exponents.min()))

    @property
    def span(self) -> int:
        """Number of half powers from the lowest to the highest."""
        return max(0, int(self.exponents.max())) - self.lowest + 1

    def shape(self, legs: int) -> tuple[int, int, int, int]:
        """Return the shape of sums over events: rank, pair of legs, function, function."""
        many = int(self.counts.max())
        return len(self.ranks), legs * (legs + 1) // 2, many, many


@dataclass(frozen=True)
class ChannelEvents:
    """The events of one channel with the legs (k1, k2, k3, p)."""

    process: int
    m2: Four  # [GeV^2]
    named: Four
    """Squared masses in the order of the matrix element's arguments."""
    screening: tuple[float, float, float]
    alpha: Four  # mu/T
    eta: Four
    poles: tuple[float, float, float]
    """Squared masses of the poles in t and u for drawing events, 0 for no pole; and the fraction of
    events drawn for the t pole if both exist."""
    span: float
    mirror: float
    """1 if the mirror images of events are drawn as well, see ``events.brackets.mirrored``."""
    clamps: float
    factor: float
    """Common factor of all weights, without the multiplicity of the process."""
    tables: tuple[Table, Table, Table, Table]
    """Tables of p and k3, which are drawn, and of k2 and k1, which are drawn for reverse events."""
    temperature: float
    fields: Array = field(default_factory=lambda: np.zeros((4, 0)), compare=False)
    """On nodes: ln F of k1 and k2, f of k3 and p."""
    coarse: Four = (0.0, 0.0, -1.0, 0.0)
    """On nodes: data on the inner nodes for ``kinematics.scatter``, and the squared spacing for
    ``projection.compensation``."""
    samples: int = 0
    """Events of one batch."""

    @property
    def legs(self) -> Array:
        """mu/T and statistics of the legs as one array for the kernels."""
        return np.ascontiguousarray(np.array([self.alpha, self.eta]).T)


@dataclass(frozen=True)
class BracketRequest:
    """All brackets to be measured in one call."""

    tasks: tuple[ChannelEvents, ...]
    trial: TrialFunctions
    batches: int
    first_batch: int
    seed: int
    grid: PhaseSpace | None = None

    @property
    def cells(self) -> int:
        """Legs of an event: on nodes, the pair (k1, k2) is distributed over two pairs."""
        return 4 if self.grid is None else 6

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result: task, batch, then as ``TrialFunctions.shape``."""
        return (len(self.tasks), self.batches, *self.trial.shape(self.cells))
