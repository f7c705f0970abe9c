"""Brackets of trial functions on the CPU and through the CUDA backend: part of cuda_agreement."""

from dataclasses import replace

import numpy as np
from cuda_agreement import massless_quarks, two_species

import relboltz as rb
from relboltz.backends import bracket_measure
from relboltz.backends.bracket_requests import BracketRequest, TrialFunctions
from relboltz.backends.elements import Elements
from relboltz.linear_response import given
from relboltz.linear_response.brackets import plan
from relboltz.linear_response.reference_state import MomentumPoints, ReferenceState

BRACKETS = {
    "brackets": (None, {}),
    "brackets on nodes": (rb.PhaseSpace([5, 4, 4], 2.0), {}),
    "brackets of a user's model": (None, dict(chemical_potential={"a": 0.1, "b": -0.2})),
}
"""name: grid, options of transport_coefficients()."""


def brackets(name: str) -> dict:
    """Sums over the same events of all channels on both, relative to the largest of each rank."""
    grid, options = BRACKETS[name]
    model = two_species() if "user" in name else massless_quarks()
    mu = given.potentials(model, options.get("chemical_potential", 0.0))
    points = MomentumPoints.free(1.2) if grid is None else MomentumPoints.nodes(grid)
    state, elements = ReferenceState.of(model, points, 0.4, mu), Elements(model)
    tasks, _ = plan(elements, state)
    powers = {rank: (-1.0, 0.5) for rank in points.ranks}
    tasks = tuple(replace(task, samples=10) for task in tasks)
    request = BracketRequest(tasks, TrialFunctions.of(powers), 2, 3, 2**40 + 7, grid)
    cpu = bracket_measure("cpu", 1, model)(elements, request)
    gpu, again = (bracket_measure("cuda", 1, model)(elements, request) for _ in range(2))
    largest = np.abs(cpu).max(axis=(0, 1, 3, 4, 5), keepdims=True)
    return {
        "apart": float((np.abs(cpu - gpu) / largest).max()),
        "same bits": bool((gpu == again).all()),
        "reached": int((cpu != 0).any(axis=(2, 3, 4, 5)).sum()), "batches": 2 * len(tasks),
    }  # fmt: skip
