"""Transport coefficients as a Dataset: names, units, descriptions.

Powers of GeV are converted to powers of fm here: viscosities are in GeV^3, kappa in GeV^2, the
conductivity in GeV, lengths and times in GeV^-1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from .. import __version__
from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..io.kinds import COEFFICIENTS
from ..model.model import Model
from ..util.arrays import Array
from .basis import Basis
from .inverse_operator import InverseEstimate
from .reference_state import COMPONENTS, ReferenceState

E2 = 4 * np.pi / 137.036
"""e^2 of the electric charge."""


@dataclass(frozen=True)
class ResponseRows:
    """(s, C^-1 s') with one, two, ... powers, and (s, s) of every source, of one component."""

    rows: list[InverseEstimate]
    norms: Array
    matrices: Array | None = None
    basis: Basis | None = None

    @property
    def best(self) -> InverseEstimate:
        """Estimate with all powers."""
        return self.rows[-1]


Pairs = Sequence[tuple[Any, Any]]
"""Pairs of values and errors."""


class DatasetBuilder:
    """Variables of a Dataset, collected one by one."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {}

    def add(
        self, name: str, value: Any, unit: str, description: str, dims: Sequence[str] = ()
    ) -> None:
        """Add a variable."""
        self.variables[name] = (
            tuple(dims), np.asarray(value, dtype=float), {"units": unit, "long_name": description}
        )  # fmt: skip

    def measured(
        self, name: str, rows: Pairs, unit: str, description: str, basis: str = ""
    ) -> None:
        """Add values and errors with one, two, ... powers; the last is the result.

        basis : dimension of the powers, to show how the value changes with their number
        """
        dims = ("charge", "charge2") if np.ndim(rows[-1][0]) else ()
        self.add(name, rows[-1][0], unit, description, dims)
        self.add(f"{name}_error", rows[-1][1], unit, f"standard error of the {description}", dims)
        if basis:
            values = np.array([row[0] for row in rows])
            description = f"{description} with the first powers of E alone"
            self.add(f"{name}_by_basis", values, unit, description, (basis, *dims))


def pairs(rows: ResponseRows, factor: float, pick: Any = (0, 0)) -> list[tuple[Any, Any]]:
    """Return values and errors of one or several sources, times a factor."""
    return [(factor * row.value[pick], abs(factor) * row.error[pick]) for row in rows.rows]


def dataset(
    found: dict[str, ResponseRows], state: ReferenceState, tagged: str | None
) -> xr.Dataset:
    """Return the coefficients around one state."""
    table, model = DatasetBuilder(), state.model
    _thermodynamics(table, state)
    entropy = state.entropy / HBARC**3
    _shear(table, found, state, entropy)
    _bulk(table, found["scalar"], state, entropy)
    _diffusion(table, found["vector"], state)
    if tagged is not None:
        _tagged(table, found["tagged"], state, model.index(tagged))
    charges = list(model.conserved)
    shear = found["shear" if "shear" in found else "axes"]
    coordinates = {
        "species": list(model.names), "charge": charges, "charge2": charges,
        "basis": _numbers(shear), "basis_vector": _numbers(found["vector"]),
        "basis_scalar": _numbers(found["scalar"]),
    }  # fmt: skip
    return xr.Dataset(table.variables, coordinates)


def _numbers(rows: ResponseRows) -> list[int]:
    """Return the number of powers in every row."""
    return list(range(1, len(rows.rows) + 1))


def _thermodynamics(table: DatasetBuilder, state: ReferenceState) -> None:
    """Add the thermodynamic quantities of the state."""
    fm3 = HBARC**-3
    table.add("temperature", state.temperature, "GeV", "temperature")
    mu, mass = state.chemical_potential, np.sqrt(state.mass_squared)
    table.add("chemical_potential", mu, "GeV", "chemical potential", ("species",))
    table.add("mass", mass, "GeV", "mass", ("species",))
    screening = np.sqrt(state.screening2[0])
    table.add("screening_mass", screening, "GeV", "screening mass of t and u")
    table.add("number", state.numbers * fm3, "fm^-3", "particle density", ("species",))
    table.add("energy_total", state.energy_density * fm3, "GeV fm^-3", "energy density")
    table.add("pressure", state.pressure * fm3, "GeV fm^-3", "pressure")
    table.add("entropy", state.entropy * fm3, "fm^-3", "entropy density")


def _shear(
    table: DatasetBuilder, found: dict[str, ResponseRows], state: ReferenceState, entropy: float
) -> None:
    """Add eta = (s, C^-1 s)/T; on nodes from five components, two along and three between axes."""
    over_t = HBARC**-2 / state.temperature
    if "shear" in found:
        rows, norm = pairs(found["shear"], over_t), found["shear"].norms[0]
    else:
        axes, planes = found["axes"], found["planes"]
        table.measured(
            "shear_viscosity_axes", pairs(axes, over_t), "GeV fm^-2",
            "shear viscosity of flow along the axes (E_g)",
        )  # fmt: skip
        table.measured(
            "shear_viscosity_planes", pairs(planes, over_t), "GeV fm^-2",
            "shear viscosity of flow between the axes (T_2g)",
        )  # fmt: skip
        rows = [
            (0.4 * a + 0.6 * b, 0.4 * da + 0.6 * db)  # correlated: from the same events
            for (a, da), (b, db) in zip(pairs(axes, over_t), pairs(planes, over_t), strict=True)
        ]
        norm = 0.4 * axes.norms[0] + 0.6 * planes.norms[0]
    table.measured("shear_viscosity", rows, "GeV fm^-2", "shear viscosity", "basis")
    ratio = [(v / (entropy * HBARC), e / (entropy * HBARC)) for v, e in rows]
    table.measured("shear_viscosity_over_entropy", ratio, "1", "shear viscosity over entropy")
    _time(table, "shear", rows[-1], norm * over_t, "shear stress")


def _time(
    table: DatasetBuilder, name: str, value: tuple[Any, Any], norm: float, description: str
) -> None:
    """Add (s, C^-1 s)/(s, s), the area under a decay from 1 [fm]."""
    unit = HBARC / norm if norm > 0 else np.nan
    row = [(value[0] * unit, value[1] * unit)]
    table.measured(
        f"{name}_relaxation_time", row, "fm", f"mean relaxation time of the {description}"
    )


def _bulk(
    table: DatasetBuilder, found: ResponseRows, state: ReferenceState, entropy: float
) -> None:
    """Add zeta = (s, C^-1 s)/T."""
    over_t = HBARC**-2 / state.temperature
    rows = pairs(found, over_t)
    table.measured("bulk_viscosity", rows, "GeV fm^-2", "bulk viscosity", "basis_scalar")
    ratio = [(v / (entropy * HBARC), e / (entropy * HBARC)) for v, e in rows]
    table.measured("bulk_viscosity_over_entropy", ratio, "1", "bulk viscosity over entropy")
    _time(table, "bulk", rows[-1], found.norms[0] * over_t, "bulk pressure")


def _diffusion(table: DatasetBuilder, found: ResponseRows, state: ReferenceState) -> None:
    """Add kappa of the conserved charges, and e^2/T times that of the electric charge."""
    count = len(state.model.conserved)
    kappa = pairs(found, HBARC**-2, (slice(count), slice(count)))
    description = "diffusion of conserved charges, kappa of nu = kappa grad(mu/T)"
    table.measured("diffusion", kappa, "fm^-2", description, "basis_vector")
    unit = E2 / state.temperature / HBARC
    rows = pairs(found, unit, (count, count))
    electric = np.array([s.charges.get("electric", 0.0) for s in state.model.species])
    if not electric.any() or np.abs(state.model.stoichiometry @ electric).max() > 1e-9:
        rows = [(np.nan, np.nan) for _ in rows]  # no charged species, or charge not conserved
    table.measured("conductivity", rows, "fm^-1", "electric conductivity", "basis_vector")
    t = unit * HBARC / state.temperature
    ratio = [(v * t / unit, e * t / unit) for v, e in rows]
    table.measured("conductivity_over_temperature", ratio, "1", "electric conductivity over T")


def _tagged(
    table: DatasetBuilder, found: ResponseRows, state: ReferenceState, species: int
) -> None:
    """Add D = (v, C^-1 v)/n of a tagged particle, its relaxation times and its drag."""
    name = state.model.names[species]
    n = state.numbers[species]
    table.measured(
        "tagged_diffusion", pairs(found, HBARC / n), "fm",
        f"diffusion coefficient of a tagged {name}", "basis_vector",
    )  # fmt: skip
    for i, what in enumerate(("velocity", "momentum")):
        value = (found.best.value[i, i], found.best.error[i, i])
        _time(table, f"tagged_{what}", value, found.norms[i], f"{what} of a tagged {name}")
    drag = _drag(found)
    description = f"drag of a tagged {name}: rate at which momentum is lost at first"
    table.measured("tagged_drag", [drag], "fm^-1", description)


def _drag(found: ResponseRows) -> tuple[float, float]:
    """Return (p, C p)/(p, p) [fm^-1] and its error."""
    assert found.matrices is not None and found.basis is not None
    if 0.0 not in found.basis.powers:
        return np.nan, np.nan
    i = found.basis.powers.index(0.0)
    each = found.matrices[:, i, i] / COMPONENTS["vector"] / found.norms[1] / HBARC
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def joined(found: Sequence[xr.Dataset], temperatures: Array) -> xr.Dataset:
    """Combine datasets of several temperatures."""
    rows = [one.drop_vars("temperature") for one in found]
    result = xr.concat(rows, dim="temperature", combine_attrs="override")
    description = {"units": "GeV", "long_name": "temperature"}
    return result.assign_coords(temperature=("temperature", temperatures, description))


def described(
    result: xr.Dataset, model: Model, grid: PhaseSpace | None, events: int, seed: int,
    sizes: dict[str, tuple[float, ...]],
) -> xr.Dataset:  # fmt: skip
    """Add labels and a description of the calculation."""
    labels = {
        "species": "species", "charge": "conserved charge", "charge2": "conserved charge",
        "basis": "number of powers: shear", "basis_vector": "number of powers: vector",
        "basis_scalar": "number of powers: scalar",
    }  # fmt: skip
    for name, description in labels.items():
        result[name].attrs.update(long_name=description)
    result.attrs.update(
        kind=COEFFICIENTS, title=f"transport coefficients of {model.name}",
        relboltz_version=__version__,
        events=events, seed=seed, momenta="unlimited" if grid is None else "nodes",
        **{f"powers_{rank}": list(map(float, row)) for rank, row in sizes.items()},
    )  # fmt: skip
    if grid is not None:
        result.attrs.update(
            momentum_cells=list(grid.momentum_cells), momentum_max=list(grid.momentum_max)
        )
    return result
