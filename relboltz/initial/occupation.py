"""Initial conditions: evaluate the shapes of species and groups to f on the nodes."""

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.cpu.masses import coupling_integrals
from ..backends.cpu.threads import available_cores
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..util.arrays import Array
from ..util.errors import InputError
from .anisotropic import Glasma, RomatschkeStrickland
from .baths import Thermal, ThermalShape
from .files import FromFile
from .functions import FromFunction, NodeValues
from .shapes import Gaussian, Gradient, Random, Shape, Step, place

SHAPES: dict[str, type[Shape]] = {
    "step": Step,
    "thermal": Thermal,
    "gaussian": Gaussian,
    "random": Random,
    "gradient": Gradient,
    "romatschke-strickland": RomatschkeStrickland,
    "glasma": Glasma,
    "file": FromFile,
}
"""Shapes by their name in a configuration; a function is named "file.py:function"."""
ALIKE = (Step, Gaussian, Gradient, Glasma)
"""Shapes whose f does not depend on the species."""
MARGIN = 1e-10
"""Smallest relative distance between the iterated mass of a boson and its chemical potential."""


@contextmanager
def named(name: str) -> Iterator[None]:
    """Prefix error messages of a shape with its key in the configuration."""
    try:
        yield
    except InputError as error:
        raise InputError(f"initial.{name}.{error}") from error


def _assign(initial: Mapping[str, Shape], model: Model) -> dict[int, tuple[str, Shape]]:
    """Return key and shape of each species that has a shape; a species overrides its group."""
    result: dict[int, tuple[str, Shape]] = {}
    for name in sorted(initial, key=lambda name: name in model.names):
        shape = initial[name]
        if not isinstance(shape, Shape):
            raise InputError(
                f"initial.{name} = {shape!r}: use a shape such as "
                "relboltz.initial.step(height=0.5, edge=1.5)"
            )
        for index in model.indices(name, "initial"):
            result[index] = (name, shape)
    if not result:
        raise InputError("the system is empty: give at least one species an initial state")
    return result


@dataclass(frozen=True)
class _OccupationOfMasses:
    """f of all species as a function of their masses; identical f are computed once."""

    shapes: Mapping[int, tuple[str, Shape]]
    grid: PhaseSpace
    model: Model
    site: int

    def f(self, mass_squared: Array) -> Array:
        """Return f (species, size) for these m^2 [GeV^2]."""
        result = np.zeros((len(self.model.species), self.grid.size))
        known: dict[Any, Array] = {}
        for index, (name, shape) in self.shapes.items():
            species, m2 = self.model.species[index], float(mass_squared[index])
            identity: Any = shape if isinstance(shape, ALIKE) else index
            if isinstance(shape, ThermalShape):
                identity = (shape, species.statistics, m2)
            if identity not in known:
                with named(name):
                    known[identity] = shape.values(self.grid, species, m2, self.site)
            result[index] = known[identity]
        return result

    def y(self, mass_squared: Array) -> Array:
        """Return Y_b = N_b Int d^3p/(2 pi)^3 f_b / E_b [GeV^2]."""
        return coupling_integrals(self.grid, self.model, self.f(mass_squared), mass_squared)


def _thermal_masses(state: _OccupationOfMasses) -> Array:
    """Return self-consistent m^2 [GeV^2]: f of the thermal shapes reproduces these masses.

    f depends on the masses and the masses on f, near mu = m so strongly that plain iteration
    diverges. Newton's method solves m_a^2 = M_a(Y(m^2)), where Y_b depends on m_b^2 alone.
    """
    model, shapes = state.model, state.shapes
    m2 = model.constant_mass_squared.copy()
    active = np.asarray(model.mass_coupling.any(axis=1))
    temperatures = [s.temperature for _, s in shapes.values() if isinstance(s, ThermalShape)]
    if not active.any() or not temperatures:
        return m2
    floor = np.zeros(len(m2))
    for index, (_, shape) in shapes.items():
        if isinstance(shape, ThermalShape) and active[index]:
            floor[index] = shape.floor(model.species[index])
    m2[active] = np.maximum(m2, floor)[active] + 0.1 * max(temperatures) ** 2
    low = floor * (1 + MARGIN)
    for _ in range(100):
        probe = np.where(active, 1e-5 * (m2 - floor), 0.0)
        y = state.y(m2)
        slope = (state.y(m2 + probe) - y) / np.where(active, probe, 1.0)
        residual = m2 - model.mass_squared(y)
        change = np.linalg.solve(np.eye(len(m2)) - model.mass_coupling * slope, -residual)
        new = np.where(active, m2 + change, m2)
        new = np.where(active & (new <= floor), 0.5 * (m2 + floor), new)
        if (active & (floor > 0) & (new < low)).any():
            index = int(((new < low) & (floor > 0)).argmax())
            (name, shape), own = shapes[index], math.sqrt(model.mass_squared(state.y(m2))[index])
            raise InputError(
                f"initial.{name}.chemical_potential = {shape.chemical_potential:g}: must stay "  # type: ignore[attr-defined]
                f"below m, but the thermal mass of {model.names[index]} in this state is at "
                f"most {own:.6g} GeV; lower it or raise the temperature"
            )
        moved, m2 = np.abs(new - m2), new
        if (moved <= 1e-15 * m2).all():
            break
    if np.abs(m2 - model.mass_squared(state.y(m2))).max() > 1e-11 * m2.max():
        raise InputError(
            "initial: no self-consistent masses were found for the thermal states; choose lower "
            "chemical potentials or constant masses"
        )
    return m2


def _make_legal(f: Array, state: _OccupationOfMasses) -> None:
    """Set f of fermions that exceeds 1 by rounding to 1, and raise InputError if f is invalid."""
    f[(state.model.statistics == -1)[:, None] & (f > 1) & (f < 1 + 1e-12)] = 1.0
    for index, (name, _) in state.shapes.items():
        species, row = state.model.species[index], f[index]
        lowest, highest = int(row.argmin()), int(row.argmax())  # NaN counts as both
        rules = [
            (highest, row[highest] < np.inf, "not a finite number"),
            (lowest, row[lowest] >= 0, "negative: f must be 0 or positive"),
        ]
        if species.statistics == -1:
            remedy = "above 1: Pauli allows 0 <= f <= 1, choose a lower state"
            rules.append((highest, row[highest] <= 1, remedy))
        for node, legal, problem in rules:
            if not legal:
                where = state.grid.positions[:, state.site] if state.grid.sites > 1 else ()
                raise InputError(
                    f"initial.{name}: f = {row[node]:.6g} of {species.name} at "
                    f"{place(state.grid.momenta[:, node], where)} is {problem}"
                )


def evaluate(initial: Mapping[str, Shape], grid: PhaseSpace, model: Model) -> Array:
    """Return f of every species at every node, shape (species, size), after checks.

    With more than one space cell the shape is (sites, species, size). Names are species or groups
    of the model; a species overrides its group, absent species are empty. Masses of thermal states
    are self-consistent.
    """
    shapes = _assign(initial, model)
    local = []
    for name, shape in shapes.values():
        with named(name):
            local += [name] if shape.is_local(grid) else []
    if grid.sites == 1 and local:
        raise InputError(
            f"initial.{local[0]}: depends on the place, and the grid has one space cell; give "
            "grid.space_cells, or a state that depends on momenta alone"
        )
    f = np.empty((grid.sites if local else 1, len(model.species), grid.size))

    def fill(site: int) -> None:
        state = _OccupationOfMasses(shapes, grid, model, site)
        f[site] = state.f(_thermal_masses(state))
        _make_legal(f[site], state)

    own = any(isinstance(shape, FromFunction) for _, shape in shapes.values())
    with ThreadPoolExecutor(1 if own else available_cores()) as pool:  # user code: one thread
        for _ in pool.map(fill, range(len(f))):
            pass
    if not f.any():
        raise InputError(
            "the system is empty: f = 0 at every node for every species; raise a height, or check "
            "that the state is not narrower than a cell (sampling = 'cell' sees it)"
        )
    if grid.sites == 1:
        return f[0]
    return f if local else np.broadcast_to(f, (grid.sites, *f.shape[1:]))


def extent(initial: Mapping[str, Shape], model: Model) -> float:
    """Return a rough half width [GeV] that contains most of f, a first guess for the grid."""
    widths = []
    for name, shape in _assign(initial, model).values():
        with named(name):
            widths.append(shape.extent())
    return max(widths)


Start = Mapping[str, Any] | Array
"""f by species or group: shapes, tables, functions or node values; or one array (species, ...)."""


def starting_states(start: Start, model: Model) -> dict[str, Shape]:
    """Return shapes by species or group, from any input that the user may give."""
    if hasattr(start, "dims") and not isinstance(start, Mapping):  # an xarray.DataArray
        start = np.asarray(start)
    if isinstance(start, np.ndarray):
        if start.size % len(model.species):
            raise InputError(
                f"initial: an array of shape {start.shape} does not fit the {len(model.species)} "
                "species"
            )
        first = start.ndim > 1 and len(start) == len(model.species)
        rows = start if first else start.reshape(len(model.species), -1)
        return {name: NodeValues(row) for name, row in zip(model.names, rows, strict=True)}
    if not isinstance(start, Mapping):
        raise InputError(
            f"initial: a {type(start).__name__} is not a start; use a dictionary such as "
            "{'g': relboltz.initial.step(0.5, 1.5)}, or an array"
        )
    return {name: _state(name, value) for name, value in start.items()}


def _state(name: str, value: Any) -> Shape:
    """Return a shape from a shape, a table, a function or node values."""
    if isinstance(value, Shape):
        return value
    if isinstance(value, Mapping):
        from ..run.input_file import build_shape

        return build_shape(name, value, Path())
    if callable(value):
        return FromFunction(value)
    if isinstance(value, list | tuple | np.ndarray) or hasattr(value, "dims"):
        return NodeValues(np.asarray(value, dtype=float))
    raise InputError(
        f"initial.{name}: a {type(value).__name__} is not a state; use a shape such as "
        "relboltz.initial.step(height=0.5, edge=1.5), a function of (px, py, pz) or "
        "(x, y, z, px, py, pz), or an array of node values"
    )
