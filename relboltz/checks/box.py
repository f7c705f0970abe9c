"""Automatic box: half widths in momentum space for a model and its initial state."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import initial
from ..backends.elements import Elements
from ..grid.phase_space import PhaseSpace
from ..initial import FromFile, Shape
from ..initial.occupation import named
from ..model.model import Model, Species
from ..thermodynamics import states as equilibrium
from ..thermodynamics import unlimited
from ..util.arrays import Array, remembered
from ..util.errors import InputError
from . import equilibrium_collisions
from .accuracy import ACCEPTED_LOSS, WANTED_RELAXATION, rounded_up
from .equilibrium_collisions import EquilibriumCollisions
from .matter import Totals, predict_from, totals

States = Mapping[str, Shape]
AUTOMATIC_LOSS = 0.8 * ACCEPTED_LOSS
"""Target without collisions: stays below the warning also on nodes other than the scratch nodes."""
DEFAULT_CELLS, MASSLESS_CELLS = 41, 42
"""Nodes per axis, and nodes per axis with a massless species, for which a node at p = 0 is
unsuitable.
"""
ROOM = 1.5
"""Initial width of p_z in Bjorken flow over the transverse widths: its range shrinks, and its
spacing doubles when the range becomes tight.
"""
SCRATCH_CELLS = 24
"""Nodes per axis of the coarse grids on which boxes are tried."""


def reach_of(elements: Elements, conserved: Totals) -> EquilibriumCollisions | None:
    """Return the collisions of the equilibrium with these totals; None if there is none."""
    if not elements.model.processes:
        return None
    built_in = all(process.built_in for process in elements.model.processes)
    find = remembered_reach if built_in else _reach  # a user's function may have changed
    try:
        return find(elements.model, *conserved)
    except InputError:  # the matrix element raises an error: it is checked elsewhere
        return None


def _reach(model: Model, *conserved: Any) -> EquilibriumCollisions | None:
    state = unlimited.predict(model, *conserved)
    return None if state is None else equilibrium_collisions.of(Elements(model), state)


remembered_reach = remembered(_reach)


def default_cells(model: Model) -> int:
    """Return the default number of nodes per axis."""
    thermal = model.mass_coupling.any(axis=1)
    massless = bool(((model.constant_mass_squared == 0) & ~thermal).any())
    return MASSLESS_CELLS if massless else DEFAULT_CELLS


def automatic_grid(
    cells: int | Sequence[int] | None, model: Model, states: States, space: PhaseSpace | None = None
) -> PhaseSpace:
    """Return a cubic box for the initial state and for the collisions of the predicted final state.

    The box contains all but 1 % of the initial energy, and loses less than 2 % of the relaxation
    rate. Without collisions, it must contain all but 1 % of the final state.

    space : a grid with the space of the state; up to four positions along each axis are sampled
    """
    for name, shape in states.items():
        if isinstance(shape, FromFile):
            with named(name):
                grid = initial.file_grid(shape.path)
            if cells is not None and PhaseSpace(cells, 1.0).momentum_cells != grid.momentum_cells:
                raise InputError(
                    f"grid.momentum_cells = {cells!r}: the start from {str(shape.path)!r} lives on "
                    f"{list(grid.momentum_cells)} nodes; use these, or leave it out"
                )
            return grid
    if space is not None and space.sites > 1:
        states = _sampled_in_space(states, space)
    cells = default_cells(model) if cells is None else cells
    extent = _grown_extent(model, states)
    scratch, energy = _scratch(extent, model, states)
    elements = Elements(model)
    found = reach_of(elements, totals(scratch, model, initial.evaluate(states, scratch, model)))
    if found is None:
        return _grid_of_states(cells, model, states, extent)
    held = _bisected(extent / 4, extent, lambda w: _outside(scratch, energy, w) <= ACCEPTED_LOSS)
    width = rounded_up(max(held, found.half_width(WANTED_RELAXATION)))
    for _ in range(20):  # confirm the result of the scratch nodes on the real nodes
        grid = PhaseSpace(cells, width)
        found = reach_of(elements, totals(grid, model, initial.evaluate(states, grid, model)))
        if found is not None and max(found.loss(grid.momentum_max)) < WANTED_RELAXATION:
            return grid
        wanted = 0.0 if found is None else rounded_up(found.half_width(WANTED_RELAXATION))
        width = max(round(width + 0.05, 2), wanted)
    raise InputError(
        "grid.momentum_max = 'auto': no box was found that holds the collisions of the predicted "
        "final state; give momentum_max in GeV"
    )


def with_room(grid: PhaseSpace, model: Model, cells_given: bool) -> PhaseSpace:
    """Return the grid for Bjorken flow: longer along p_z, with an odd number of nodes there."""
    x, y, z = grid.momentum_cells
    wide, high, long = grid.momentum_max
    along = z if cells_given else 2 * default_cells(model) - 1
    return PhaseSpace((x, y, along), (wide, high, round(ROOM * long, 2)))


def _bisected(low: float, high: float, fits: Callable[[float], bool]) -> float:
    """Return the smallest half width [GeV] between two that fits, to 2 %; ``high`` must fit."""
    for _ in range(6):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _grid_of_states(
    cells: int | Sequence[int], model: Model, states: States, extent: float
) -> PhaseSpace:
    """Return a box that contains all but 1 % of the initial and of the predicted final state."""
    low, high = extent / 4, extent
    while _loss(high, extent, model, states) > AUTOMATIC_LOSS:
        low, high = high, 1.5 * high
        if high > 100 * extent:
            raise InputError(
                "grid.momentum_max = 'auto': no box holds the predicted final state of this start; "
                "give momentum_max in GeV"
            )
    high = _bisected(low, high, lambda w: _loss(w, extent, model, states) <= AUTOMATIC_LOSS)
    grid = PhaseSpace(cells, rounded_up(high))
    for _ in range(20):  # confirm the result of the scratch nodes on the real nodes
        if _cut(grid, model, states) < ACCEPTED_LOSS:
            break
        grid = PhaseSpace(cells, round(grid.momentum_max[0] + 0.05, 2))
    return grid


def _grown_extent(model: Model, states: States) -> float:
    """Return the extent of the shapes, enlarged until the outer tenth of the box is empty."""
    extent = initial.extent(states, model)
    for _ in range(8):
        scratch, energy = _scratch(extent, model, states)
        if _outside(scratch, energy, 0.9 * extent) < ACCEPTED_LOSS:
            break
        extent *= 1.5
    return extent


def _scratch(half_width: float, model: Model, states: States) -> tuple[PhaseSpace, Array]:
    """Return a coarse grid and the energy of the initial state at its nodes."""
    scratch = PhaseSpace(SCRATCH_CELLS, half_width)
    f = initial.evaluate(states, scratch, model)
    return scratch, (model.degeneracy[:, None] * f).sum(axis=0) * scratch.energies(0.0)


def _outside(grid: PhaseSpace, energy: Array, half_width: float) -> float:
    """Return the share of the energy that lies outside a smaller box."""
    beyond = (np.abs(grid.momenta) > half_width).any(axis=0)
    return float(energy[beyond].sum() / energy.sum())


def _loss(half_width: float, extent: float, model: Model, states: States) -> float:
    """Return the larger of the shares lost of the initial and of the predicted final state."""
    scratch, energy = _scratch(extent, model, states)
    lost = _outside(scratch, energy, half_width)
    if lost > ACCEPTED_LOSS:
        return lost
    return _cut(PhaseSpace(SCRATCH_CELLS, half_width), model, states)


def _cut(grid: PhaseSpace, model: Model, states: States) -> float:
    """Return the share of the predicted final state beyond the box; 1 without such a state."""
    predicted = predict_from(grid, model, initial.evaluate(states, grid, model))
    return equilibrium.edge_loss(grid, model, predicted) if predicted.found else 1.0


def _sampled_in_space(states: States, space: PhaseSpace) -> States:
    """Replace states that depend on position by their mean over a few positions."""
    cells = tuple(min(n, 4) for n in space.space_cells)
    return {
        name: _MeanOverPlaces(state, cells, space) if state.is_local(space) else state
        for name, state in states.items()
    }


@dataclass(frozen=True)
class _MeanOverPlaces(Shape):
    """A state averaged over positions, for choosing a momentum box."""

    state: Shape
    cells: tuple[int, ...]
    space: PhaseSpace

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        local = PhaseSpace(grid.momentum_cells, grid.momentum_max, self.cells, self.space.space_max)
        if not self.state.is_local(local):
            return self.state.values(grid, species, m2)
        values = [self.state.values(local, species, m2, site) for site in range(local.sites)]
        return np.mean(values, axis=0)

    def extent(self) -> float:
        return self.state.extent()
