"""C[f] of a state from independent draws of events: means and standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..util.arrays import Array
from .collisions import Estimate, Flows


@dataclass(frozen=True)
class Estimates:
    """Estimates of C[f], df/dt of every cell by collisions [fm^-1], from independent draws.

    net, gain, loss : means over the draws. gain and loss count every collision once; net is their
        difference plus the contribution of ``projection.compensation``. error : standard error of
        net
    """

    net: Array
    gain: Array
    loss: Array
    error: Array
    flows: Flows
    """Flows of all draws; the axis of the draws precedes that of the processes."""
    null_weight: Array
    """Null weight of every draw."""

    @classmethod
    def of(cls, found: Sequence[Estimate], per_state: Array) -> Estimates:
        """Combine estimates of the rate of change of N f; per_state : 1/N of every cell."""
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
    """Return the standard error of the mean of independent estimates; unknown for a single one."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / math.sqrt(len(values)))
