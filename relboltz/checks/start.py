"""Check how much the nodes change the pressures of the initial state.

Cell averages over momenta make a squeezed initial state rounder, and a box that is narrow along
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
"""Relative error of the initial P_z/P_T above which a warning is issued."""
FORMULAS = (Step, Gaussian, Thermal, RomatschkeStrickland, Glasma)
"""Shapes that can also be evaluated on other nodes."""
ISOTROPIC = 1e-9
"""Rounding of P_z/P_T - 1 on nodes that are identical along all axes."""
BEYOND, NODES = 1.5, 56
"""Half width of the reference box over the largest half width, and its nodes along an axis (even,
so that no node is at rest).
"""


def of_start(
    grid: PhaseSpace, model: Model, states: Mapping[str, Shape], f: Array
) -> Iterator[str]:
    """Warn if the nodes change the initial P_z/P_T; f (species, nodes) on a grid of one site."""
    known = all(isinstance(state, FORMULAS) for state in states.values())
    if grid.sites > 1 or 1 in grid.momentum_cells or not known:
        return
    massless = np.zeros(len(model.species))
    if abs(_ratio(grid, model, f, massless) - 1) < ISOTROPIC:  # isotropic without nodes too
        return
    fine = PhaseSpace(NODES, BEYOND * max(grid.momentum_max))
    exact = {name: replace(state, sampling="node") for name, state in states.items()}
    try:
        smooth = evaluate(exact, fine, model)
    except InputError:  # such as a distribution narrower than the spacing
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
    """Return P_z over the mean of P_x and P_y, for the particles alone."""
    squares, energies = grid.momenta**2, np.sqrt(grid.momentum_squared + m2[:, None])
    weight = model.degeneracy @ (f / np.where(energies > 0, energies, np.inf))
    x, y, z = squares @ (weight if inside is None else weight * inside)
    return float(2 * z / (x + y))
