"""Report of a collision step over all sites: particle transfer, rates and errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..events.collisions import Flows
from ..util.arrays import Array, Integers
from ..util.errors import RunError
from .control import STILL

WORD = 2**32
Counts = tuple[int, int, int]
"""L1 difference of Heun and Euler, half the Euler transfer, and the total number, in quanta."""


@dataclass(frozen=True)
class StepReport:
    """Report of a collision step; per-site entries are in the order of the sites."""

    length: float
    counts: Sequence[Counts]
    flows: Flows
    """Rates, averaged over the sites."""
    drawn: tuple[float, float] = (0.0, 0.0)
    """Weight of physical collisions, and the weight lost among them."""
    limited: Array = field(default_factory=lambda: np.zeros(1))
    """Fraction of the transfer that the limiter refused, by site."""
    noise: tuple[float, float] = (0.0, 0.0)
    """Sum over the cells of the squared standard error of C, and of C^2."""

    @property
    def error(self) -> float:
        """L1 difference of Heun and Euler steps, relative to the number of particles."""
        difference, total = (sum(c[k] for c in self.counts) for k in (0, 2))
        return float(difference) / max(float(total), 1.0)

    def change_ratio(self, tolerance: float, spread: float = np.inf) -> float:
        """Return the largest change of C within the step at any site, relative to C.

        Sites whose error is at rounding level are ignored, unless all are.

        spread : upper limit on the result, in units of the mean over all sites
        """
        difference, moved, total = np.array(self.counts, float).T
        ratios = np.divide(difference, moved, out=np.zeros(len(moved)), where=moved > 0)
        counts = difference > STILL * tolerance * np.maximum(total, 1.0)
        largest = float(ratios[counts].max() if counts.any() else ratios.max())
        if spread < np.inf and moved.sum() > 0:
            largest = min(largest, spread * float(difference.sum() / moved.sum()))
        return largest

    @property
    def noise_ratio(self) -> float:
        """Squared standard error of C over C^2, both summed over the cells."""
        error, size = self.noise
        return error / size if size > 0 else 0.0

    @property
    def null_weight(self) -> float:
        """Fraction of the collision weight that was lost."""
        total, lost = self.drawn
        return lost / total if total > 0 else 0.0

    @property
    def limited_weight(self) -> float:
        """Fraction of the particle transfer that the limiter refused."""
        moved = np.array([float(c[1]) for c in self.counts])
        return float(self.limited @ moved / moved.sum()) if moved.sum() > 0 else 0.0

    @classmethod
    def nothing(cls, sites: int, length: float) -> StepReport:
        """Return the report of a model without processes."""
        none = Flows(np.zeros(0), np.zeros(0), 0.0, 0.0)
        return cls(length, [(0, 0, 1)] * sites, none, limited=np.zeros(sites))

    @classmethod
    def of(cls, sites: Sequence[StepReport]) -> StepReport:
        """Combine the reports of single sites, given in order."""
        total, lost = (sum(r.drawn[i] for r in sites) for i in range(2))
        error, size = (sum(r.noise[i] for r in sites) for i in range(2))
        return cls(
            sites[0].length, [c for r in sites for c in r.counts],
            mean_flows([r.flows for r in sites]), (total, lost),
            np.concatenate([r.limited for r in sites]), (error, size),
        )  # fmt: skip


def to_rows(sites: Sequence[StepReport]) -> tuple[Integers, Array]:
    """Pack reports of single sites into integer and float arrays, one row per site."""
    counts = np.array([[divmod(n, WORD) for n in r.counts[0]] for r in sites], np.int64)
    rows = [
        np.concatenate(
            [r.flows.forward, r.flows.backward, r.flows.signed.ravel(), r.drawn, r.limited, r.noise]
        )
        for r in sites
    ]
    return counts.reshape(-1, 6), np.array(rows)


def from_rows(length: float, counts: Integers, rows: Array) -> list[StepReport]:
    """Unpack the reports packed by ``to_rows``."""
    n = (rows.shape[1] - 5) // 4
    return [
        StepReport(
            length, [(_joined(c[:2]), _joined(c[2:4]), _joined(c[4:]))],
            Flows(r[:n], r[n : 2 * n], 0.0, 0.0, r[2 * n : 4 * n].reshape(2, n)),
            (float(r[4 * n]), float(r[4 * n + 1])), r[4 * n + 2 : 4 * n + 3],
            (float(r[4 * n + 3]), float(r[4 * n + 4])),
        )
        for c, r in zip(counts, rows, strict=True)
    ]  # fmt: skip


def _joined(words: Integers) -> int:
    return int(words[0]) * WORD + int(words[1])


def mean_flows(flows: Sequence[Flows]) -> Flows:
    """Return the mean over sites, summed in their order."""
    if len(flows) == 1:
        return flows[0]
    forward, backward, signed = (
        sum(getattr(one, name) for one in flows) / len(flows)
        for name in ("forward", "backward", "signed")
    )
    return Flows(forward, backward, 0.0, 0.0, signed)


def too_long() -> RunError:
    """Return the error for a step whose sums do not fit 64 bits."""
    return RunError("the step is far too long: what it moves does not fit 64-bit numbers")


def no_limits() -> RunError:
    """Return the error for a step that no limits make legal."""
    return RunError("the limiter found no legal step; shorten time.step")
