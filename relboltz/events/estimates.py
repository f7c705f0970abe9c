"""C[f] of a state from independent draws of events: means and their standard error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..util.arrays import Array
from .collisions import Estimate, Flows


@dataclass(frozen=True)
class Estimates:
    """What independent draws of events tell of C[f]: df/dt of every cell by collisions [fm^-1].

    net, gain, loss : means over the draws. gain and loss count every collision once: net is their
        difference and what ``projection.compensation`` adds. error : standard error of net
    """

    net: Array
    gain: Array
    loss: Array
    error: Array
    flows: Flows
    """With an axis for the draws before that of the processes."""
    null_weight: Array
    """Of every draw."""

    @classmethod
    def of(cls, found: Sequence[Estimate], per_state: Array) -> Estimates:
        """From estimates of the change of N f; per_state : 1/N of every cell."""
        net, gain, loss = (
            np.stack([getattr(estimate, name) * per_state for estimate in found])
            for name in ("net", "gain", "loss")
        )
        flows = [estimate.flows for estimate in found]
        together = Flows(
            np.stack([one.forward for one in flows]), np.stack([one.backward for one in flows]),
            0.0, 0.0, np.stack([one.signed for one in flows], axis=1),
        )  # fmt: skip
        return cls(
            net.mean(axis=0), gain.mean(axis=0), loss.mean(axis=0), standard_error(net), together,
            np.array([estimate.null_weight for estimate in found]),
        )  # fmt: skip


def standard_error(values: Array) -> Array:
    """The standard error of the mean of independent estimates; of a single one it is not known."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))
