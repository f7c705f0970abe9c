"""From one stop to the next: what the time loop sees of a backend.

A flight holds the state and advances it. On the CPU that is a loop over steps; a GPU does the
same loop by itself (``backends/cuda.py``) and tells about it when it arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.collider import CpuBackend
from ..backends.cpu.moments import measure
from ..errors import RunError
from ..events.collisions import Flows
from ..model import Model
from ..records.moments import Moments, Shells
from .stepper import State, StepControl, Stepper
from .watch import Watch


@dataclass(frozen=True)
class Leg:
    """Steps that were just done: the last length, and rates of the state they started from.

    The first two steps of a run are legs of their own. ``flows`` is None where rates are not known:
    a GPU looks at them after records only.
    """

    length: float
    flows: Flows | None
    null_weight: float


class Flight(Protocol):
    """A state on its way."""

    watch: Watch

    @property
    def state(self) -> State:
        """The last state that stands."""

    def advance(self, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm], telling now and then how far it is."""

    def evaluate(self) -> tuple[Flows, float]:
        """Flows of all processes in the state, and the part of collisions that is lost."""

    def moments(self) -> Moments:
        """Sums over the state."""

    def occupation(self) -> NDArray[np.float64]:
        """f of every species at every node."""


def check_finite(model: Model, time: float, flows: Flows) -> None:
    """Rates that are not numbers end a run before they spoil the state."""
    for process, flow in zip(model.processes, flows.forward, strict=True):
        if not np.isfinite(flow):
            raise RunError(
                f"process {process.name}: its rate is {flow}, not a number, at t = {time:.6g} fm"
            )


class HostFlight:
    """Steps on the CPU, one at a time."""

    def __init__(
        self,
        backend: CpuBackend,
        start: State,
        control: StepControl,
        near: float,
        shells: Shells,
        final: NDArray[np.float64],
    ):
        self.backend, self.state, self.control, self.near = backend, start, control, near
        self.watch = Watch()
        self._shells, self._final = shells, final
        self._stepper = Stepper(backend, start.bits)

    def advance(self, stop: float) -> Iterator[Leg]:
        """Step until the stop [fm]; a state a rounding error away from it is at the stop."""
        while self.state.time < stop:
            length = self.control.length(stop - self.state.time)
            new, report = self._stepper.step(self.state, length)
            if not self.control.learn(report):
                continue
            check_finite(self.backend.model, self.state.time, report.flows)
            self.watch.see(report)
            self.state = replace(new, time=stop) if abs(stop - new.time) <= self.near else new
            yield Leg(report.length, report.flows, report.null_weight)

    def evaluate(self) -> tuple[Flows, float]:
        """Flows of all processes in the state, and the part of collisions that is lost."""
        return self._stepper.evaluate(self.state)

    def moments(self) -> Moments:
        """Sums over the state."""
        return measure(self.backend.grid, self.backend.model, self.state, self._shells, self._final)

    def occupation(self) -> NDArray[np.float64]:
        """f of every species at every node."""
        return self.state.occupation(self.backend.model)


def launch(
    backend: Any,
    start: State,
    control: StepControl,
    near: float,
    shells: Shells,
    final: NDArray[np.float64],
) -> Flight:
    """A flight of a backend; stops closer than ``near`` [fm] are met, final: f it should end at."""
    if backend.grid.sites > 1:
        from .space import SpaceFlight

        return SpaceFlight(backend, start, control, near, shells, final)  # type: ignore[return-value]
    if backend.name == "cuda":
        from ..backends.cuda.flight import CudaFlight

        return CudaFlight(backend, start, control, near, shells, final)
    return HostFlight(backend, start, control, near, shells, final)
