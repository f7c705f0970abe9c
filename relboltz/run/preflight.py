"""Checks and predictions made before the first step of a run, fixed until its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ..backends.contract import Backend
from ..backends.cpu.masses import coupling_integrals
from ..checks import accuracy, box, duration, edges, matter, poles, spacing
from ..config.settings import TimeSettings
from ..model.model import Model
from ..stepping.state import State
from ..thermodynamics import states as equilibrium
from ..thermodynamics.conserved import running
from ..thermodynamics.states import Equilibrium
from ..transport.forces import courant_limit
from ..util.arrays import Array

ARRAYS = ("chemical_potential", "velocity", "mass_squared", "f")
"""Array attributes of an equilibrium; the other attributes are numbers."""


@dataclass
class Preflight:
    """Checks and predictions made before the first step.

    predicted : final state; lost : fractions of the rate and of the relaxation rate in the final
    state lost to the momentum cut-off; negative : largest negative weight of a matrix element;
    attributes : attributes of the result
    """

    predicted: Equilibrium
    lost: tuple[float, float]
    negative: float
    attributes: dict[str, Any] = field(default_factory=dict)

    def packed(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return JSON values and arrays for a checkpoint."""
        numbers = [f.name for f in fields(Equilibrium) if f.name not in ARRAYS]
        facts = {
            "predicted": {name: getattr(self.predicted, name) for name in numbers},
            "lost": self.lost, "negative": self.negative,
            "attributes": dict(self.attributes),
        }  # fmt: skip
        return facts, {f"predicted {name}": getattr(self.predicted, name) for name in ARRAYS}

    @classmethod
    def unpacked(cls, facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> "Preflight":
        """Restore the values of ``packed``."""
        found: dict[str, Any] = {name: arrays[f"predicted {name}"] for name in ARRAYS}
        rate, relaxation = facts["lost"]
        return cls(
            Equilibrium(**facts["predicted"], **found), (rate, relaxation), facts["negative"],
            dict(facts["attributes"]),
        )  # fmt: skip


def described(model: Model) -> dict[str, Any]:
    """Return the description of a model; a run can only be continued with an equal description."""
    return {
        **model.describe(),
        "charges": {k: list(map(float, v)) for k, v in model.conserved.items()},
    }


def run_checks(backend: Backend, state: State, time: TimeSettings, f: Array) -> Preflight:
    """Predict the final state, and check matrix elements and accuracy before the first step.

    f : (sites, species, nodes)
    """
    whole, model, elements = backend.grid, backend.model, backend.elements
    grid, leaks = whole.without_space, matter.leaks(whole)
    moments = backend.moments(state.squares, np.zeros((len(model.species), grid.size)))
    conserved = matter.totals_of_sites(whole, model, moments, state.squares, state.unit)
    squares = matter.typical_masses(model, moments, state.squares)
    longest = courant_limit(whole, state.mass_squared)
    duration.check_step(time, longest)
    accuracy.warn(duration.of_steps(time, longest, backend, state), state.said)
    accuracy.warn(accuracy.of_parity(whole), state.said)
    predicted = equilibrium.nowhere(grid, model)
    if not leaks:
        predicted = equilibrium.predict(grid, model, *conserved)
    happens = running(model, conserved[0])
    for extreme in matter.extreme_masses(model, state.squares):
        poles.check_model(elements, grid, *extreme, happens)
    negative = poles.check_state(
        elements, grid, f.mean(axis=0), squares, state.said, happens=happens
    )
    if predicted.found and model.thermal:  # masses change: also check their final values
        final, m2 = predicted.f, predicted.mass_squared
        last = (m2, model.screening_squared(coupling_integrals(grid, model, final, m2)))
        negative = poles.check_state(elements, grid, final, last, state.said, negative, happens)
    accuracy.warn(accuracy.of_setup(grid, model, squares[0], predicted, leaks), state.said)
    energies = moments.sums[:, :, 0] @ model.degeneracy
    densest = float(energies.max() / energies.mean())
    reach = None if leaks else box.reach_of(elements, conserved)
    if whole.expansion is not None:  # the temperature is highest now
        numbers, momentum, total = conserved
        reach = box.reach_of(elements, (densest * numbers, densest * momentum, densest * total))
    lost = (np.nan, np.nan) if reach is None else reach.loss(grid.momentum_max)
    scales = list(spacing.scales_of(grid, elements, f.mean(axis=0), squares, predicted))
    peak = equilibrium.temperature_without_number(model, conserved[2] * densest)
    problems = [
        spacing.of_spacing(grid, scales), edges.of_edges(grid, model, f),
        *accuracy.of_expansion(whole, time, peak),
    ]  # fmt: skip
    small = accuracy.of_box(grid, model, predicted, reach)
    massless = bool((squares[0] == 0).any())
    accuracy.warn(accuracy.of_grid(grid, problems, small, massless), state.said)
    without = equilibrium.temperature_without_number(model, conserved[2])
    return Preflight(predicted, lost, negative, {"temperature_at_zero_chemical_potential": without})
