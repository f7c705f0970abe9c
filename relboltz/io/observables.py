"""Observables of a state: numbers, T^{mu nu}, entropy, spectra, temperature.

They are computed from sums over the nodes (``moments``) and stored in records (``quantities``).
Densities are in fm^-3, energies in GeV fm^-3; local quantities have the sites as first axis until
the record reshapes them to x, y, z.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..events.collisions import Flows
from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..stepping.expanding import ExpansionSchedule
from ..stepping.quanta import exact_sum
from ..stepping.state import State
from ..stepping.step import StepPlan
from ..thermodynamics.fits import Fits
from ..thermodynamics.landau import LandauFits, frames, shear_stress
from ..transport.moments import CURRENT, FLUX, MOMENTUM, Moments, Shells, momentum_words, whole
from ..util.arrays import Array, Integers
from .quantities import WEIGHTED, Quantities, marginal_name

if TYPE_CHECKING:
    from ..backends.contract import Backend

STRESS = [[0, 3, 4], [3, 1, 5], [4, 5, 2]]
"""Position of each component of the stress tensor among the moments."""


def coupling_integrals(grid: PhaseSpace, model: Model, moments: Moments) -> Array:
    """Return Y_a = N_a Int d^3p/(2 pi)^3 f_a / E_a of every site [GeV^2]."""
    return model.degeneracy * moments.sums[:, :, 1] * (grid.cell_volume / (2 * np.pi) ** 3)


def source(rate: Array, y: Array) -> Array:
    """Return S_ex^0 = (1/2) Sum_a (dm_a^2/dt) Y_a [GeV fm^-4], Eq. (check energy conservation)."""
    return 0.5 * (rate * y).sum(axis=-1) / HBARC**3


def energy_momentum(grid: PhaseSpace, model: Model, moments: Moments, unit: float) -> Array:
    """Return Sum_a N_a Int d^3p/(2 pi)^3 p^mu p^nu / E_a f_a of every site, T_kin [GeV fm^-3]."""
    weight = model.degeneracy * grid.measure
    tensor = np.zeros((len(moments.totals), 4, 4))
    tensor[:, 0, 0] = moments.sums[:, :, 0] @ weight
    high, low = moments.momentum_words
    half = 0.5 * np.array(grid.spacing) * (unit * grid.measure)
    tensor[:, 0, 1:] = tensor[:, 1:, 0] = (high * 2.0**32 + low).T * half  # 0 if exactly 0
    stress = weight @ moments.sums[:, :, 2:8]
    tensor[:, 1:, 1:] = stress[:, STRESS]
    return tensor


def tensors_by_species(grid: PhaseSpace, model: Model, moments: Moments) -> Array:
    """Return the kinetic tensor of every species [GeV fm^-3]: (sites, species, 4, 4)."""
    weight = (model.degeneracy * grid.measure)[:, None]
    tensor = np.zeros((*moments.sums.shape[:2], 4, 4))
    tensor[..., 0, 0] = moments.sums[:, :, 0] * weight[:, 0]
    tensor[..., 0, 1:] = tensor[..., 1:, 0] = moments.sums[:, :, MOMENTUM] * weight
    tensor[..., 1:, 1:] = (moments.sums[:, :, 2:8] * weight)[..., STRESS]
    return tensor


def pressure_ratio(tensor: Array, field: Array | float = 0.0) -> Array:
    """Return T^zz over the mean of T^xx and T^yy at every site; field : pressure added to each."""
    transverse = 0.5 * (tensor[:, 1, 1] + tensor[:, 2, 2]) + field
    along = tensor[:, 3, 3] + field
    return np.divide(along, transverse, out=np.full_like(along, np.nan), where=transverse > 0)


def collision_rates(grid: PhaseSpace, model: Model, flows: Flows) -> tuple[Array, Array]:
    """Return collisions per volume and time [fm^-4] of every process, as written and reversed.

    In an elastic process both directions are the same collisions: those that begin on nodes are
    counted twice, because near a sharp edge of f they are more accurate than those that end there.
    """
    elastic = np.array([process.elastic for process in model.processes], dtype=bool)
    both = 2 * flows.backward
    ahead, back = (np.where(elastic, both, one) for one in (flows.forward, flows.backward))
    return ahead * grid.measure, back * grid.measure


def charges(model: Model, moments: Moments, state: State) -> list[int]:
    """Return the exact conserved charges in the box plus the ledger, in quanta."""
    totals = [exact_sum(column) for column in moments.totals.T]
    for high, low in state.ledger.left.values():
        left = zip(high.sum(axis=(0, 2)), low.sum(axis=(0, 2)), strict=True)
        totals = [n + (int(a) << 32) + int(b) for n, (a, b) in zip(totals, left, strict=True)]
    vectors = model.conserved.values()
    return [sum(q * n for q, n in zip(vector, totals, strict=True)) for vector in vectors]


def momentum(grid: PhaseSpace, moments: Moments, state: State) -> list[int]:
    """Return the exact momentum in the box plus the ledger, in quanta times half a spacing."""
    result = whole(moments.momentum_words)
    for words in state.ledger.left.values():
        high, low = (whole(momentum_words(node_planes(grid, word))) for word in words)
        result = [a + (b << 32) + c for a, b, c in zip(result, high, low, strict=True)]
    return result


def node_planes(grid: PhaseSpace, number: Any) -> tuple[Any, Any, Any]:
    """Sum (sides, species, nodes) on the planes of each axis: (sides, nodes of the axis)."""
    cube = number.sum(axis=1).reshape(len(number), *grid.momentum_cells)
    return cube.sum(axis=(2, 3)), cube.sum(axis=(1, 3)), cube.sum(axis=(1, 2))


def integers(now: list[int], before: list[int]) -> NDArray[Any]:
    """Return changes in quanta, zero if conserved: 64-bit integers if they fit, else floats."""
    changes = [a - b for a, b in zip(now, before, strict=True)]
    fits = all(abs(v) < 2**63 for v in changes)
    return np.array(changes, dtype=np.int64 if fits else np.float64)


class StateSums(NamedTuple):
    """Sums over the particle numbers of a state."""

    moments: Moments
    marginals: list[tuple[Integers, Integers]]


class Observer:
    """Converter from the sums of a backend to records."""

    def __init__(
        self, backend: "Backend", final: Array, shown: Quantities, marginals: Sequence[str] = (),
        step_plan: StepPlan | None = None,
    ):  # fmt: skip
        """final : predicted final f (species, nodes); shown : quantities of a record; course :
        history of expanding matter"""
        self.backend, self.model = backend, backend.model
        self._schedule = None if step_plan is None else step_plan.schedule
        base = backend.grid if step_plan is None else step_plan.grid
        self.shells, self.shown, self.marginals = Shells.of(base), shown, tuple(marginals)
        self._asked = (*self.marginals, *(("px py",) if "dN_dy" in shown else ()))
        self._final, self._fits = final, Fits(self.grid, self.model, backend.fits)
        self._landau = LandauFits(self.model)

    @property
    def grid(self) -> PhaseSpace:
        """Grid at the current time."""
        return self.backend.grid

    def look(self, state: State) -> StateSums:
        """Return all sums over the particle numbers that a record needs."""
        moments = self.backend.moments(state.squares, self._final)
        return StateSums(moments, [self.backend.marginal(m.split()) for m in self._asked])

    def record(self, state: State, seen: StateSums | None = None) -> dict[str, Any]:
        """Return all quantities of the state itself; rates need the next step (``rates``)."""
        moments, marginals = seen or self.look(state)
        local, y = self._local(state, moments)
        record = {"time": state.time, "step_number": state.step, "coupling_integrals": y}
        record |= {name: self.grid.in_space(values) for name, values in local.items()}
        record |= self._global(state, moments)
        for kept, words in zip(self.marginals, marginals, strict=False):
            record[marginal_name(kept)] = self._marginal(words, state.unit)
        if self._schedule is not None:
            record |= self._expanding(state, self._schedule)
        if "dN_dy" in self.shown:
            record |= self._per_rapidity(state, moments, marginals[-1])
        if "total_number" in self.shown:
            record |= {f"total_{name}": mean for name, mean in _averages(local).items()}
        return record | (self._ledger(state) if "left_number" in self.shown else {})

    def _local(self, state: State, moments: Moments) -> tuple[dict[str, Array], Array]:
        """Return the local quantities, with a value at every site, and Y."""
        grid, model, m2 = self.grid, self.model, state.mass_squared
        weight = model.degeneracy * grid.measure
        numbers: Array = moments.totals * np.float64(state.unit * grid.measure)
        tensor = energy_momentum(grid, model, moments, state.unit)
        y = coupling_integrals(grid, model, moments)
        energy = tensor[:, 0, 0]
        if self._fits.grid is not grid:
            self._fits = Fits(grid, model, self.backend.fits)
        temperature, mu, velocity, state.fit = self._fits.match(
            numbers, tensor[:, 0, 1:], energy, state.squares, state.fit
        )
        flux = weight @ moments.sums[:, :, FLUX]
        field = field_energy(model, m2, y)
        by_species = tensors_by_species(grid, model, moments)
        current = weight[:, None] * moments.sums[:, :, CURRENT]
        local = {
            "number": numbers,
            "energy_kinetic": energy,
            "energy_by_species": weight * moments.sums[:, :, 0],
            "energy_total": energy + field,
            "energy_momentum": tensor,
            "energy_momentum_by_species": by_species,
            "number_current": current,
            "momentum_flux": flux.reshape(-1, 3, 3),
            "source": source(state.mass_rate(), y),
            "momentum": tensor[:, 0, 1:],
            "momentum_by_species": by_species[:, :, 0, 1:],
            "entropy": moments.sums[:, :, 8] @ weight,
            "mass_squared": m2,
            "screening_mass_squared": state.screening2[:, 0],
            "temperature": temperature,
            "chemical_potential": mu,
            "velocity": velocity,
            "pressure_ratio": pressure_ratio(tensor),
        }
        if self._schedule is not None:
            local["field_pressure"] = -field
            local["pressure_ratio"] = pressure_ratio(tensor, -field)
        guess = m2, temperature, mu
        return local | self._in_landau_frame(tensor, numbers, current, field, guess), y

    def _in_landau_frame(
        self, tensor: Array, numbers: Array, current: Array, field: Array, guess: tuple[Array, ...]
    ) -> dict[str, Array]:
        """Return T^{mu nu} in the Landau frame and the local equilibrium with equal densities.

        The field adds -g^{mu nu} B to the kinetic tensor, B = -field, which keeps the frame.
        """
        found = frames(tensor)
        energy, pressure = found.energy + field, found.pressure - field
        m2, temperature, mu = guess
        rest = found.density(numbers, current)
        equilibrium = self._landau.match(energy, rest, m2, (temperature, mu))
        return {
            "landau_energy": energy,
            "landau_velocity": found.velocity,
            "landau_temperature": equilibrium.temperature,
            "landau_chemical_potential": equilibrium.chemical_potential,
            "pressure": pressure,
            "bulk_pressure": pressure - equilibrium.pressure,
            "shear_stress": shear_stress(tensor, found),
        }

    def _expanding(self, state: State, schedule: ExpansionSchedule) -> dict[str, Any]:
        """Return scale factors of the expansion and the work done."""
        return {
            "scale": np.array(schedule.scales(state.time)),
            "doublings": np.array(state.doublings, float),
            "energy_work": state.work,
        }

    def _per_rapidity(
        self, state: State, moments: Moments, words: tuple[Integers, Integers]
    ) -> dict[str, Any]:
        """Return quantities per rapidity of boost-invariant matter: per area, or of the plane."""
        grid, number = self.grid, words[0] * 2.0**32 + words[1]
        for high, low in state.ledger.left.values():
            left = (high * 2.0**32 + low).sum(axis=0)
            number = number + grid.cube(left).sum(axis=-1)
        area = 1.0
        if grid.sites > 1:
            dx, dy, _ = grid.space_spacing
            area = dx * dy * grid.sites
        density = state.unit * grid.measure * state.time * area / grid.sites
        weight = moments.totals / np.maximum(moments.totals.sum(axis=0), 1)
        m2 = (weight * state.mass_squared).sum(axis=0)
        p2 = grid.axis(0)[:, None] ** 2 + grid.axis(1) ** 2
        transverse = np.sqrt(p2 + m2[:, None, None])
        hx, hy, _ = grid.spacing
        return {
            "dN_dy": number.sum(axis=(1, 2)) * density,
            "dET_dy": (number * transverse).sum() * density,
            "dN_d2pT": number * (density / (hx * hy)),
        }

    def _global(self, state: State, moments: Moments) -> dict[str, Any]:
        """Return the quantities of the whole box."""
        grid, model = self.grid, self.model
        now = charges(model, moments, state), momentum(grid, moments, state)
        state.origin = state.origin or now
        total = float(moments.totals.sum(dtype=float)) * state.unit
        apart = float((moments.sums[:, :, 9] @ model.degeneracy).sum())
        per_node = state.unit / (model.degeneracy[:, None] * self.shells.count * grid.sites)
        density = state.unit * grid.measure / grid.sites
        unknown = np.full(len(model.processes), np.nan)
        return {
            "charge_density": np.array([q * density for q in now[0]]),
            "charge_drift": integers(now[0], state.origin[0]),
            "momentum_drift": integers(now[1], state.origin[1]),
            "spectrum": moments.shells.sum(axis=0, dtype=float) * per_node,
            "equilibrium_distance": 0.5 * apart / total if total > 0 else np.nan,
            "rate": unknown,
            "rate_reverse": unknown,
            "null_weight": np.nan,
            "negative_weight": unknown,
        }

    def _marginal(self, words: tuple[Integers, Integers], unit: float) -> Array:
        """Return f averaged over all directions that are not kept: (species, ...)."""
        number = words[0] * 2.0**32 + words[1]
        cells = self.grid.sites * self.grid.size * len(self.model.species) / number.size
        scale = unit / (cells * self.model.degeneracy)
        return number * scale.reshape(-1, *(1,) * (number.ndim - 1))

    def _ledger(self, state: State) -> dict[str, Any]:
        """Return losses through walls and blocked flux, per volume of the box."""
        grid, ledger = self.grid, state.ledger
        density = state.unit * grid.measure / grid.sites
        species = len(self.model.species)
        number, schedule = np.zeros((3, 2, species)), np.zeros((3, 2, 3))
        for axis, (high, low) in ledger.left.items():
            left = high * 2.0**32 + low
            number[axis] = left.sum(axis=2)
            for i, planes in enumerate(node_planes(grid, left)):
                schedule[axis, :, i] = planes @ grid.axis(i)
        return {
            "left_number": number.reshape(6, species) * density,
            "left_momentum": schedule.reshape(6, 3) * density,
            "left_energy": ledger.energy.reshape(6) * density,
            "refused_number": ledger.refused.reshape(6, species) * density,
        }

    def sources(self, state: State, record: dict[str, Any]) -> dict[str, Any]:
        """Return S_ex^0 of an earlier record from the masses up to this state."""
        ago = state.step - record["step_number"]
        values = source(state.mass_rate(ago), record["coupling_integrals"])
        total = {"total_source": values.mean()} if "total_source" in self.shown else {}
        return {"source": self.grid.in_space(values), **total}

    def rates(self, flows: Flows, null_weight: float) -> dict[str, Any]:
        """Return box-averaged collision rates [fm^-4] of the state before a step."""
        rate, reverse = collision_rates(self.grid, self.model, flows)
        return {
            "rate": rate,
            "rate_reverse": reverse,
            "null_weight": null_weight,
            "negative_weight": flows.negative_weight,
        }


def _averages(local: dict[str, Array]) -> dict[str, Any]:
    """Return means over the sites; WEIGHTED ones are energy-weighted, over sites with a value.

    In vacuum densities count as 0; a value missing in matter makes the mean undefined.
    """
    sites = len(next(iter(local.values())))
    energy = local["energy_kinetic"]
    empty = np.isnan(local["landau_energy"])
    parts = []
    for name, values in local.items():
        flat = values.reshape(sites, -1)
        if name not in WEIGHTED:
            parts.append(np.where(empty[:, None], np.nan_to_num(flat), flat).mean(axis=0))
            continue
        share = np.isfinite(flat) * energy[:, None]
        total = share.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = (share * np.nan_to_num(flat)).sum(axis=0) / total
        parts.append(np.where(total > 0, mean, np.nan))
    result = {
        name: part.reshape(values.shape[1:])
        for (name, values), part in zip(local.items(), parts, strict=True)
    }
    if "energy_momentum" in local:
        field = result.get("field_pressure", 0.0)
        result["pressure_ratio"] = pressure_ratio(result["energy_momentum"][None], field)[0]
    return result
