"""Error of collisions across edges of the initial f, due to the finite spacing of the nodes.

Collisions carry particles across an edge, where f drops to nothing within a cell. Landing finds
the nodes that contain particles there (``events.projection.at_front``); the remaining error is of
first order in the spacing.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..initial.occupation import evaluate
from ..initial.shapes import Shape, Step
from ..model.model import Model
from ..util.arrays import Array

DROP = 1e-3
"""Definition of an edge: two nodes away, f is less than this fraction of a smooth continuation."""
ERROR = 0.035
"""Error of rates over (1 + f) times the share of particles at an edge: 0.02 to 0.05 for steps with
f = 0.05, 0.5 and 2 on nodes spaced by 0.13 to 0.35 of the edge (``validation.step_start``).
"""
ACCEPTED, WANTED = 0.03, 0.02
"""Relative error of the rates before a warning, and with the recommended nodes."""
ACCEPTED_NUMBER = 0.005
"""Relative error of a number of particles before a warning."""


def near_edges(grid: PhaseSpace, f: Array) -> Array:
    """Return which nodes are within two nodes of an edge; f of a species at the nodes of a site.

    f drops by more than DROP, and by more than a Gaussian of the same width does over this
    distance.
    """
    mean2 = (grid.momenta**2 * f).sum(axis=1) / max(float(f.sum()), 1e-300)
    f = f.reshape(grid.momentum_cells)
    near = np.zeros(f.shape, bool)
    for axis, (h, width2) in enumerate(zip(grid.spacing, mean2.tolist(), strict=True)):
        along = np.moveaxis(f, axis, 0)
        padded = np.pad(along, [(2, 2), (0, 0), (0, 0)], constant_values=np.inf)
        lowest = np.min([padded[4:], padded[:-4], padded[3:-1], padded[1:-3]], axis=0)
        smooth = np.exp(-2 * h * (abs(grid.axis(axis)) + h) / max(width2, 1e-300))
        np.moveaxis(near, axis, 0)[lowest < DROP * smooth[:, None, None] * along] = True
    return near


def share_at_edges(grid: PhaseSpace, f: Array) -> float:
    """Return the share of particles within two nodes of an edge; f of a species at one site."""
    total = float(f.sum())
    return float(f[near_edges(grid, f).ravel()].sum()) / total if total > 0 else 0.0


def coarseness(grid: PhaseSpace, f: Array) -> float:
    """Return the growth of the error if the spacing exceeds the width of f; f as above."""
    width2 = float((grid.momentum_squared * f).sum()) / max(float(f.sum()), 1e-300) / 3
    return max(1.0, 2 * grid.largest_spacing**2 / max(width2, 1e-300))


def of_edges(grid: PhaseSpace, model: Model, f: Array) -> tuple[float, str]:
    """Return a sufficient spacing for an initial edge [GeV], and a warning about the grid.

    f : (sites, species, nodes); the site with most particles is used
    """
    site = f[np.argmax(np.tensordot(f.sum(axis=2), model.degeneracy, axes=1))]
    error, at_edge, name = 0.0, 0.0, ""
    for species, one in zip(model.species, site, strict=True):
        if not any(species.name in process.legs for process in model.processes):
            continue
        share = share_at_edges(grid, one)
        stimulated = 1 + float(one.max()) if species.statistics > 0 else 1.0
        found = ERROR * stimulated * share * coarseness(grid, one)
        if found > error:
            error, at_edge, name = found, share, species.name
    if error <= ACCEPTED or 1 in grid.momentum_cells:
        return math.inf, ""
    return grid.largest_spacing * WANTED / error, (
        f"f of {name} ends at an edge, and {100 * at_edge:.0f} % of its particles are within "
        f"two nodes of it: the rates of collisions at the start, and what they change, are off "
        f"by about {100 * error:.0f} %"
    )


def of_node_values(
    grid: PhaseSpace, model: Model, states: Mapping[str, Shape], f: Array
) -> Iterator[str]:
    """Warn that node values do not resolve the edge of a step; f as in ``of_edges``."""
    steps = {
        name: replace(state, sampling="cell")
        for name, state in states.items()
        if isinstance(state, Step) and state.sampling == "node"
    }
    if not steps or grid.sites > 1:
        return
    averaged = evaluate({**states, **steps}, grid, model).reshape(f.shape)
    numbers, wanted = (model.degeneracy @ one[0].sum(axis=1) for one in (f, averaged))
    off = numbers / wanted - 1
    if abs(off) > ACCEPTED_NUMBER:
        yield (
            f"initial.{next(iter(steps))}.sampling = 'node': nodes do not know where the edge of a "
            f"step is. The number of particles is off by {100 * off:+.1f} %, and rates by more; "
            "use 'cell'"
        )
