"""What kernels of brackets need to know: the events of a channel, and the trial functions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..util.arrays import Array, Integers

Four = tuple[float, float, float, float]
Table = tuple[Array, Array]
"""Edges of |p| [GeV] (none on nodes) and the cumulative density to draw it."""


@dataclass(frozen=True)
class TrialFunctions:
    """Trial functions: half powers of E/T of each rank, in the order of ``ranks``."""

    ranks: tuple[str, ...]
    exponents: Integers
    """Twice the powers (rank, function); only the first ``counts`` of a rank count."""
    counts: Integers

    @classmethod
    def of(cls, powers: dict[str, tuple[float, ...]]) -> TrialFunctions:
        """From powers by rank."""
        counts = np.array([len(row) for row in powers.values()], np.int64)
        exponents = np.zeros((len(powers), counts.max()), np.int64)
        for row, given in zip(exponents, powers.values(), strict=True):
            row[: len(given)] = [round(2 * k) for k in given]
        return cls(tuple(powers), exponents, counts)

    @property
    def lowest(self) -> int:
        """The lowest half power that is needed; not above 0."""
        return min(0, int(self.exponents.min()))

    @property
    def span(self) -> int:
        """How many half powers there are from the lowest to the highest."""
        return max(0, int(self.exponents.max())) - self.lowest + 1

    def shape(self, legs: int) -> tuple[int, int, int, int]:
        """Of sums over events: rank, pair of legs, function, function."""
        many = int(self.counts.max())
        return len(self.ranks), legs * (legs + 1) // 2, many, many


@dataclass(frozen=True)
class ChannelEvents:
    """The events of one channel: (k1, k2, k3, p) are its legs."""

    process: int
    m2: Four  # [GeV^2]
    named: Four
    """The same as the matrix element names them."""
    screening: tuple[float, float, float]
    alpha: Four  # mu/T
    eta: Four
    poles: tuple[float, float, float]
    """Squared masses of the poles in t and u at which events are drawn, 0 where there is none; and
    the part of the events that is drawn for t where both are there."""
    span: float
    mirror: float
    """1 where the mirror images of events are drawn as well, see ``events.brackets.mirrored``."""
    clamps: float
    factor: float
    """Of all weights, without the multiplicity of the process."""
    tables: tuple[Table, Table, Table, Table]
    """Of p and k3, which are drawn, and of k2 and k1, which are where events go the other way."""
    temperature: float
    fields: Array = field(default_factory=lambda: np.zeros((4, 0)), compare=False)
    """On nodes: ln F of k1 and k2, f of k3 and p."""
    coarse: Four = (0.0, 0.0, -1.0, 0.0)
    """On nodes: what ``kinematics.scatter`` is to know of the inner ones, and the squared spacing
    for ``projection.compensation``."""
    samples: int = 0
    """Events of one batch."""

    @property
    def legs(self) -> Array:
        """mu/T and statistics of the legs, as kernels take them."""
        return np.ascontiguousarray(np.array([self.alpha, self.eta]).T)


@dataclass(frozen=True)
class BracketRequest:
    """Everything that is to be measured in one go."""

    tasks: tuple[ChannelEvents, ...]
    trial: TrialFunctions
    batches: int
    first_batch: int
    seed: int
    grid: PhaseSpace | None = None

    @property
    def cells(self) -> int:
        """Legs of an event: on nodes the pair (k1, k2) lands on two pairs."""
        return 4 if self.grid is None else 6

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the answer: task, batch, then as ``TrialFunctions.shape``."""
        return (len(self.tasks), self.batches, *self.trial.shape(self.cells))
