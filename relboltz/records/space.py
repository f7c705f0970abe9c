"""What is measured of a state in space: the same quantities in every space cell, and a ledger.

Local quantities carry x, y, z; ``total_*`` are their averages over the box. What left through
open walls counts as conserved: charges inside and in the ledger together do not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..equilibrium.fits import Fits
from ..events.collisions import Flows
from ..grid import PhaseSpace
from ..stepping.space import SpaceFlight
from ..stepping.stepper import State, exact_sum, mass_rate
from ..units import HBARC
from .moments import Shells, SiteMoments, momentum_total
from .observables import QUANTITIES, collision_rates, differences, integers, source

Array = NDArray[np.float64]

LOCAL = (
    "number", "energy_kinetic", "energy_by_species", "energy_total", "energy_momentum",
    "momentum_flux", "source", "momentum", "entropy", "mass_squared", "screening_mass_squared",
    "temperature", "chemical_potential", "velocity", "pressure_ratio",
)  # fmt: skip
"""What has a value in every space cell; ``total_*`` is its average over the box."""
WEIGHTED = {
    "temperature": "energy", "chemical_potential": "energy", "velocity": "energy",
    "pressure_ratio": "pressure",
}  # fmt: skip
"""What has no meaning where there is nothing is averaged with a weight."""
OF_THE_BOX = {
    "charge_density": "density of a conserved charge, what left included, average over the box",
    "charge_drift": "change of a conserved charge, what left included, in quanta: exact",
    "momentum_drift": "change of momentum, what left included, in quanta: forces and walls make it",
    "spectrum": "f averaged over the box and over shells of |p|",
    "rate": "collisions per volume and time, as written, average over the box",
    "rate_reverse": "collisions per volume and time, in reverse, average over the box",
}
LEDGER: dict[str, tuple[tuple[str, ...], str, str]] = {
    "left_number": (("wall", "species"), "fm^-3", "particles that left, per volume of the box"),
    "left_momentum": (("wall", "axis"), "GeV fm^-3", "momentum that left, per volume of the box"),
    "left_energy": (("wall",), "GeV fm^-3", "energy that left, per volume of the box"),
    "refused_number": (
        ("wall", "species"),
        "fm^-3",
        "particles that a force would have pushed beyond the closed edges of momentum space",
    ),
}
"""What passed the walls since the start; x- is the low side of the x axis."""


def space_quantities() -> dict[str, tuple[tuple[str, ...], str, str]]:
    """QUANTITIES of a state in space: local ones by cell, their averages, and the ledger."""
    result: dict[str, tuple[tuple[str, ...], str, str]] = {}
    for name, (dims, unit, words) in QUANTITIES.items():
        if name in LOCAL:
            result[name] = ((*dims, "x", "y", "z"), unit, words)
            how = f", weighted with {WEIGHTED[name]}" if name in WEIGHTED else ""
            result[f"total_{name}"] = (dims, unit, f"{words}, average over the box{how}")
        else:
            result[name] = (dims, unit, OF_THE_BOX.get(name, words))
    return {**result, **LEDGER}


class SpaceObserver:
    """Turns the moments of all sites into records."""

    def __init__(self, flight: SpaceFlight, marginals: Sequence[str] = ()):
        self.grid, self.model, self._flight = flight.grid, flight.model, flight
        self.shells = Shells.of(self.grid)
        self.marginals = tuple(marginals)
        self._fits = Fits(self.grid, self.model, flight.engine.fit_sums)
        moments = flight.moments()
        self._charges = self._all_charges(moments)
        self._momentum = self._all_momentum(moments)
        self._early: list[tuple[int, Array]] = []

    def _coupling(self, moments: SiteMoments) -> Array:
        """Y of every site and species [GeV^2]."""
        return (
            self.model.degeneracy
            * moments.sums[:, :, 1]
            * (self.grid.cell_volume / (2 * np.pi) ** 3)
        )

    def _all_charges(self, moments: SiteMoments) -> list[int]:
        """Conserved charges inside and in the ledger, in quanta, exactly."""
        totals = [exact_sum(moments.totals[:, a]) for a in range(moments.totals.shape[1])]
        for high, low in self._flight.ledger.left.values():
            totals = [
                n + (int(high[:, a].sum()) << 32) + int(low[:, a].sum())
                for a, n in enumerate(totals)
            ]
        return [
            sum(q * n for q, n in zip(vector, totals, strict=True))
            for vector in self.model.conserved.values()
        ]

    def _all_momentum(self, moments: SiteMoments) -> list[int]:
        """Momentum inside and in the ledger, in quanta times half a spacing, exactly."""
        result = momentum_total(moments.planes)
        for words in self._flight.ledger.left.values():
            high, low = (momentum_total(node_planes(self.grid, word)) for word in words)
            result = [a + (b << 32) + c for a, b, c in zip(result, high, low, strict=True)]
        return result

    def record(self, state: State, moments: SiteMoments) -> dict[str, Any]:
        """Everything that the state itself tells; rates follow from the next step."""
        grid, model = self.grid, self.model
        m2 = state.mass_squared
        weight = model.degeneracy * grid.measure
        numbers: Any = moments.totals * (state.unit * grid.measure)
        tensor: Any = self._tensor(moments, state.unit)
        y = self._coupling(moments)
        field = 0.25 * ((m2 - model.constant_mass_squared) * y).sum(axis=1) / HBARC**3
        if state.step < 2:
            self._early.append((state.step, y))
        squares = np.column_stack([m2, state.screening2])
        energy = tensor[:, 0, 0]
        temperature, mu, velocity = self._fits.match(numbers, tensor[:, 0, 1:], energy, squares)
        local = {
            "number": numbers,
            "energy_kinetic": energy,
            "energy_by_species": weight * moments.sums[:, :, 0],
            "energy_total": energy - field,
            "energy_momentum": tensor,
            "momentum_flux": np.einsum("sak,a->sk", moments.sums[:, :, 10:], weight).reshape(
                -1, 3, 3
            ),
            "source": source(mass_rate(state), y),
            "momentum": tensor[:, 0, 1:],
            "entropy": moments.sums[:, :, 8] @ weight,
            "mass_squared": m2,
            "screening_mass_squared": state.screening2[:, 0],
            "temperature": temperature,
            "chemical_potential": mu,
            "velocity": velocity,
            "pressure_ratio": _pressure_ratio(tensor),
        }
        record: dict[str, Any] = {"time": state.time}
        for name, values in local.items():
            record[name] = grid.in_space(values)
            by = energy if WEIGHTED.get(name) == "energy" else None
            record[f"total_{name}"] = _average(values, by)
        record["total_pressure_ratio"] = _pressure_ratio(tensor.mean(axis=0)[None])[0]
        return {**record, **self._global(state, moments), **self._ledger(state.unit)}

    def _tensor(self, moments: SiteMoments, unit: float) -> Array:
        """T_kin^{mu nu} of every site [GeV fm^-3]."""
        grid = self.grid
        weight = self.model.degeneracy * grid.measure
        tensor = np.zeros((grid.sites, 4, 4))
        tensor[:, 0, 0] = moments.sums[:, :, 0] @ weight
        for i, planes in enumerate(moments.planes):
            tensor[:, 0, 1 + i] = (planes @ grid.axis(i)) * (unit * grid.measure)
        stress = np.einsum("sak,a->sk", moments.sums[:, :, 2:8], weight)
        for k, (i, j) in enumerate(((1, 1), (2, 2), (3, 3), (1, 2), (1, 3), (2, 3))):
            tensor[:, i, j] = tensor[:, j, i] = stress[:, k]
        tensor[:, 1:, 0] = tensor[:, 0, 1:]
        return tensor

    def _global(self, state: State, moments: SiteMoments) -> dict[str, Any]:
        """What is told of the box as a whole."""
        grid, model = self.grid, self.model
        charge = self._all_charges(moments)
        momentum = self._all_momentum(moments)
        density = state.unit * grid.measure / grid.sites
        total = float(moments.totals.sum(dtype=float))
        apart = float((moments.sums[:, :, 9] @ model.degeneracy).sum())
        shells = moments.shells.sum(axis=0, dtype=float)
        per_node = state.unit / (model.degeneracy[:, None] * self.shells.count * grid.sites)
        return {
            "charge_density": np.array([q * density for q in charge]),
            "charge_drift": integers(differences(charge, self._charges)),
            "momentum_drift": integers(differences(momentum, self._momentum)),
            "spectrum": shells * per_node,
            "equilibrium_distance": 0.5 * apart / (total * state.unit) if total > 0 else np.nan,
            "rate": np.full(len(model.processes), np.nan),
            "rate_reverse": np.full(len(model.processes), np.nan),
            "null_weight": np.nan,
            "negative_weight": np.full(len(model.processes), np.nan),
            "limited_weight": 0.0,
            "noise": np.nan,
            "step": np.nan,
            **self._kept_marginals(state.unit),
        }

    def _ledger(self, unit: float) -> dict[str, Any]:
        """What left the box and what was refused, per volume of the box."""
        grid, ledger = self.grid, self._flight.ledger
        density = unit * grid.measure / grid.sites
        species = len(self.model.species)
        number, momentum = np.zeros((3, 2, species)), np.zeros((3, 2, 3))
        for axis, (high, low) in ledger.left.items():
            left = high * 2.0**32 + low
            number[axis] = left.sum(axis=2)
            for i, planes in enumerate(node_planes(grid, left)):
                momentum[axis, :, i] = planes @ grid.axis(i)
        return {
            "left_number": number.reshape(6, species) * density,
            "left_momentum": momentum.reshape(6, 3) * density,
            "left_energy": ledger.energy.reshape(6) * density,
            "refused_number": ledger.refused.reshape(6, species) * density,
        }

    def _kept_marginals(self, unit: float) -> dict[str, Any]:
        """The marginals asked for; the state is fetched once for all of them."""
        if not self.marginals:
            return {}
        number = self._flight.engine.get()
        return {_marginal_name(m): self._marginal(m, number, unit) for m in self.marginals}

    def _marginal(self, text: str, number: NDArray[np.int64], unit: float) -> Array:
        """f averaged over all directions but those named: (species, ...)."""
        shape = (*self.grid.space_cells, number.shape[1], *self.grid.momentum_cells)
        order = ("x", "y", "z", "species", "px", "py", "pz")
        kept = text.split()
        over = tuple(i for i, name in enumerate(order) if name not in kept and name != "species")
        mean = number.reshape(shape).mean(axis=over)
        left = [name for name in order if name in kept or name == "species"]
        mean = np.moveaxis(mean, left.index("species"), 0)
        scale = (unit / self.model.degeneracy).reshape(-1, *(1,) * (mean.ndim - 1))
        return mean * scale

    def quantities(self) -> dict[str, tuple[tuple[str, ...], str, str]]:
        """Dimensions, units and names of all that a record holds."""
        extra = {
            _marginal_name(m): (("species", *m.split()), "1", f"f averaged over all but {m}")
            for m in self.marginals
        }
        return {**space_quantities(), **extra}

    def early_sources(self, state: State) -> list[dict[str, Any]]:
        """S_ex^0 of the records before the second step, from masses up to that step."""
        values = [source(mass_rate(state, state.step - n), y) for n, y in self._early]
        return [{"source": self.grid.in_space(v), "total_source": _average(v)} for v in values]

    def rates(self, flows: Flows, null_weight: float) -> dict[str, Any]:
        """Collision rates [fm^-4], averages over the box."""
        rate, reverse = collision_rates(self.grid, self.model, flows)
        return {
            "rate": rate,
            "rate_reverse": reverse,
            "null_weight": null_weight,
            "negative_weight": flows.negative_weight,
        }


def _marginal_name(text: str) -> str:
    return "f_" + "_".join(text.split())


def _average(values: Array, weight: Array | None = None) -> Any:
    """Mean over the sites that have a value."""
    one = np.ones(len(values)) if weight is None else weight
    share = np.isfinite(values) * one.reshape(-1, *(1,) * (values.ndim - 1))
    total = share.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (share * np.nan_to_num(values)).sum(axis=0) / total, np.nan)


def _pressure_ratio(tensor: Array) -> Array:
    """T^zz over the mean of T^xx and T^yy, of every site."""
    transverse = 0.5 * (tensor[:, 1, 1] + tensor[:, 2, 2])
    return np.divide(
        tensor[:, 3, 3], transverse, out=np.full(len(tensor), np.nan), where=transverse > 0
    )


def node_planes(grid: PhaseSpace, number: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """(sides, species, nodes) summed on the planes of each axis: (sides, nodes of the axis)."""
    cube = number.sum(axis=1).reshape(len(number), *grid.momentum_cells)
    return cube.sum(axis=(2, 3)), cube.sum(axis=(1, 3)), cube.sum(axis=(1, 2))
