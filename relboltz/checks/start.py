"""How far the pressures of a start on its nodes are from those of the start itself.

Cells average over momenta, so that a squeezed start becomes rounder, and a box that is narrow along
one axis cuts off more of P_L or more of P_T.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..initial.anisotropic import Glasma, RomatschkeStrickland
from ..initial.baths import Thermal
from ..initial.occupation import evaluate
from ..initial.shapes import Gaussian, Shape, Step
from ..model.model import Model
from ..thermodynamics import masses
from ..util.arrays import Array, Flags
from ..util.errors import InputError

ACCEPTED = 0.01
"""Relative error of P_z/P_T of a start before a warning."""
FORMULAS = (Step, Gaussian, Thermal, RomatschkeStrickland, Glasma)
"""Shapes that can be evaluated on other nodes as well."""
ISOTROPIC = 1e-9
"""What P_z/P_T of nodes that are alike along all axes may differ from 1 by rounding."""
BEYOND, NODES = 1.5, 56
"""Half width of the reference box over the largest one, and its nodes along an axis: none is at
rest."""


def of_start(
    grid: PhaseSpace, model: Model, states: Mapping[str, Shape], f: Array
) -> Iterator[str]:
    """Say if the nodes change P_z/P_T of the start; f (species, nodes) on a grid of one site."""
    known = all(isinstance(state, FORMULAS) for state in states.values())
    if grid.sites > 1 or 1 in grid.momentum_cells or not known:
        return
    massless = np.zeros(len(model.species))
    if abs(_ratio(grid, model, f, massless) - 1) < ISOTROPIC:  # and so it is without nodes
        return
    fine = PhaseSpace(NODES, BEYOND * max(grid.momentum_max))
    exact = {name: replace(state, sampling="node") for name, state in states.items()}
    try:
        smooth = evaluate(exact, fine, model)
    except InputError:  # such as a start that is narrower than the spacing
        return
    m2 = masses(fine, model, smooth)
    found, wanted = _ratio(grid, model, f, m2), _ratio(fine, model, smooth, m2)
    if not abs(found / wanted - 1) > ACCEPTED:
        return
    widths = np.array(grid.momentum_max)[:, None]
    cut = _ratio(fine, model, smooth, m2, np.all(abs(fine.momenta) <= widths, axis=0))
    if abs(cut / wanted - 1) > abs(found / cut - 1):
        most = max(grid.momentum_max)
        remedy = "the box cuts off more along one axis than along another: use momentum_max = "
        remedy += f"{most:g} or more along all of them, with the same spacing"
    else:
        remedy = "cells are wide: use more momentum_cells"
        if any(getattr(state, "sampling", "node") == "cell" for state in states.values()):
            remedy += ", or sampling = 'node' for a smooth start"
    yield (
        f"P_z/P_T of the particles of the start is {found:.3f} on this grid, and {wanted:.3f} "
        f"without it; {remedy}"
    )


def _ratio(
    grid: PhaseSpace, model: Model, f: Array, m2: Array, inside: Flags | None = None
) -> float:
    """P_z over the mean of P_x and P_y, of particles alone."""
    squares, energies = grid.momenta**2, np.sqrt(grid.momentum_squared + m2[:, None])
    weight = model.degeneracy @ (f / np.where(energies > 0, energies, np.inf))
    x, y, z = squares @ (weight if inside is None else weight * inside)
    return float(2 * z / (x + y))
