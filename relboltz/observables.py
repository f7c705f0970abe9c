"""What is measured of a state: numbers, T^{mu nu}, entropy, spectra, temperature.

Densities are in fm^-3, energies in GeV fm^-3. ``QUANTITIES`` names everything that a record
holds, with dimensions, units and long names; it is the one place where they are spelt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import equilibrium
from .collisions import Flows
from .equilibrium import Equilibrium
from .grid import PhaseSpace
from .model import Model
from .stepping import State, StepReport, exact_sum
from .units import HBARC

Array = NDArray[np.float64]

QUANTITIES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "number": (("species",), "fm^-3", "particle density"),
    "charge_density": (("charge",), "fm^-3", "density of a conserved charge"),
    "charge_drift": (("charge",), "1", "change of a conserved charge, in quanta: an exact integer"),
    "momentum_drift": (("axis",), "1", "change of momentum, in quanta: an exact integer"),
    "energy_kinetic": ((), "GeV fm^-3", "kinetic energy density"),
    "energy_by_species": (("species",), "GeV fm^-3", "kinetic energy density of a species"),
    "energy_total": ((), "GeV fm^-3", "kinetic plus field energy density, conserved"),
    "energy_momentum": (("mu", "nu"), "GeV fm^-3", "kinetic energy-momentum tensor"),
    "source": ((), "GeV fm^-4", "energy source by changing masses, S_ex^0"),
    "momentum": (("axis",), "GeV fm^-3", "momentum density"),
    "entropy": ((), "fm^-3", "entropy density"),
    "mass_squared": (("species",), "GeV^2", "squared mass"),
    "screening_mass_squared": ((), "GeV^2", "squared screening mass of t and u"),
    "temperature": ((), "GeV", "temperature of the equilibrium state with these N_a, P and E_kin"),
    "chemical_potential": (("species",), "GeV", "chemical potential of that state"),
    "velocity": (("axis",), "1", "flow velocity of that state"),
    "spectrum": (
        ("species", "p"),
        "1",
        "f averaged over shells of |p|; beyond momentum_max only corners of the box",
    ),
    "pressure_ratio": ((), "1", "T^zz over the mean of T^xx and T^yy, in the frame of the grid"),
    "equilibrium_distance": ((), "1", "part of the particles not yet where equilibrium has them"),
    "rate": (("process",), "fm^-4", "collisions per volume and time, in the direction written"),
    "rate_reverse": (("process",), "fm^-4", "collisions per volume and time, in the reverse one"),
    "null_weight": ((), "1", "part of the collisions that is lost at the edge of the box"),
    "limited_weight": ((), "1", "part of the moved number that a limiter refused"),
    "noise": ((), "1", "scatter of C[f] from step to step, relative to |C[f]|"),
    "step": ((), "fm", "time step"),
}
"""name: (dimensions besides time, unit, long name)."""


@dataclass(frozen=True)
class Shells:
    """Nodes sorted into shells of |p|, one spacing wide."""

    index: NDArray[np.int64]
    count: Array
    p: Array
    """Mean |p| of the nodes of a shell [GeV]."""

    @classmethod
    def of(cls, grid: PhaseSpace) -> Shells:
        """The shells of a grid; empty ones are left out."""
        p = np.sqrt(grid.momentum_squared)
        _, index = np.unique(np.floor(p / min(grid.spacing) + 1e-9), return_inverse=True)
        count = np.bincount(index).astype(float)
        return cls(index, count, np.bincount(index, weights=p) / count)

    def average(self, values: Array) -> Array:
        """Mean over each shell."""
        return np.bincount(self.index, weights=values) / self.count


def charges(model: Model, state: State) -> list[int]:
    """Conserved charges in quanta, exactly."""
    rows = state.number.reshape(len(model.species), -1)
    totals = [exact_sum(row) for row in rows]
    return [
        sum(q * n for q, n in zip(vector, totals, strict=True))
        for vector in model.conserved.values()
    ]


def momentum_quanta(grid: PhaseSpace, state: State) -> list[int]:
    """Momentum in quanta times half a spacing per axis, exactly."""
    rows = state.number.reshape(-1, *grid.momentum_cells)
    result = []
    for i, n in enumerate(grid.momentum_cells):
        others = tuple(axis for axis in range(4) if axis != i + 1)
        high = (rows >> 32).sum(axis=others, dtype=np.int64)
        low = (rows & 0xFFFFFFFF).sum(axis=others, dtype=np.int64)
        result.append(
            sum((2 * j - (n - 1)) * ((int(high[j]) << 32) + int(low[j])) for j in range(n))
        )
    return result


def energy_momentum(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> Array:
    """T_kin^{mu nu} = Sum_a N_a Int d^3p/(2 pi)^3 p^mu p^nu / E_a f_a [GeV fm^-3]."""
    tensor = np.zeros((4, 4))
    px, py, pz = grid.momenta
    for a, species in enumerate(model.species):
        if not f[a].any():
            continue
        density = species.degeneracy * grid.measure * f[a]
        over_e = density * grid.inverse_energies(float(mass_squared[a]))
        tensor[0, 0] += np.sum(density * grid.energies(float(mass_squared[a])))
        for i, p in enumerate((px, py, pz)):
            tensor[0, i + 1] += np.sum(density * p)
            for j, q in enumerate((px, py, pz)[: i + 1]):
                tensor[i + 1, j + 1] += np.sum(over_e * p * q)
    lower = np.tril(tensor[1:, 1:])
    tensor[1:, 1:] = lower + lower.T - np.diag(np.diag(lower))
    tensor[1:, 0] = tensor[0, 1:]
    return tensor


def entropy(grid: PhaseSpace, model: Model, f: Array) -> float:
    """S = Sum_a N_a Int [eta F ln F - f ln f] [fm^-3]; classical: f - f ln f."""
    total = 0.0
    for a, species in enumerate(model.species):
        full = f[a][f[a] > 0]
        value = -np.sum(full * np.log(full))
        eta = species.statistics
        if eta == 0:
            value += np.sum(full)
        else:
            blocked = np.maximum(1.0 + eta * full, 1e-300)
            value += eta * np.sum(blocked * np.log(blocked))
        total += species.degeneracy * float(value)
    return total * grid.measure


def source(grid: PhaseSpace, model: Model, f: Array, state: State) -> float:
    """S_ex^0 = (1/2) Sum_a (d m_a^2 / dt) Y_a [GeV fm^-4], Eq. (check energy conservation)."""
    if not state.past:
        return np.nan
    before, _, length = state.past[0]
    y = equilibrium.coupling_integrals(grid, model, f, state.mass_squared)
    return float(0.5 * ((state.mass_squared - before) / length) @ y) / HBARC**3


def collision_rates(grid: PhaseSpace, model: Model, flows: Flows) -> tuple[Array, Array]:
    """Collisions per volume and time [fm^-4] of every process, as written and reversed.

    In an elastic process both directions are the same collisions.
    """
    elastic = np.array([process.elastic for process in model.processes], dtype=bool)
    both = flows.forward + flows.backward
    ahead, back = (np.where(elastic, both, one) for one in (flows.forward, flows.backward))
    return ahead * grid.measure, back * grid.measure


def _integers(values: list[int]) -> NDArray:
    """64-bit integers where they fit; floats beyond."""
    fits = all(abs(v) < 2**63 for v in values)
    return np.array(values, dtype=np.int64 if fits else np.float64)


class Observer:
    """Measures states of one run and keeps what the next measurement needs."""

    def __init__(self, grid: PhaseSpace, model: Model, start: State, final: Equilibrium):
        self.grid, self.model, self.final = grid, model, final
        self.shells = Shells.of(grid)
        self._charges = charges(model, start)
        self._momentum = momentum_quanta(grid, start)
        self._fit: Equilibrium | None = None

    def drifts(self, state: State) -> tuple[list[int], list[int]]:
        """Changes of charges and momentum since the start, in quanta: all zero if conserved."""
        now = charges(self.model, state), momentum_quanta(self.grid, state)
        before = self._charges, self._momentum
        charge, momentum = (
            [a - b for a, b in zip(x, y, strict=True)] for x, y in zip(now, before, strict=True)
        )
        return charge, momentum

    def record(self, state: State) -> dict[str, Any]:
        """Everything that the state itself tells; rates follow from the next step (``rates``)."""
        grid, model, m2 = self.grid, self.model, state.mass_squared
        f = state.occupation(model)
        charge_drift, momentum_drift = self.drifts(state)
        tensor = energy_momentum(grid, model, f, m2)
        self._fit = equilibrium.local(grid, model, f, m2, start=self._fit)
        transverse = 0.5 * (tensor[1, 1] + tensor[2, 2])
        return {
            "time": state.time,
            "number": np.array([exact_sum(n) for n in state.number.reshape(len(m2), -1)])
            * (state.unit * grid.measure),
            "charge_density": np.array(charges(model, state), dtype=float)
            * (state.unit * grid.measure),
            "charge_drift": _integers(charge_drift),
            "momentum_drift": _integers(momentum_drift),
            "energy_kinetic": tensor[0, 0],
            "energy_by_species": np.array(
                [
                    species.degeneracy * grid.measure * np.sum(row * grid.energies(float(m)))
                    for species, row, m in zip(model.species, f, m2, strict=True)
                ]
            ),
            "energy_total": equilibrium.total_energy(grid, model, f, m2),
            "energy_momentum": tensor,
            "source": source(grid, model, f, state),
            "momentum": tensor[0, 1:],
            "entropy": entropy(grid, model, f),
            "mass_squared": m2,
            "screening_mass_squared": state.screening2,
            "temperature": self._fit.temperature,
            "chemical_potential": self._fit.chemical_potential,
            "velocity": self._fit.velocity,
            "spectrum": np.stack([self.shells.average(row) for row in f]),
            "pressure_ratio": tensor[3, 3] / transverse if transverse > 0 else np.nan,
            "equilibrium_distance": self._distance(f),
            "rate": np.full(len(model.processes), np.nan),
            "rate_reverse": np.full(len(model.processes), np.nan),
            "null_weight": np.nan,
            "limited_weight": 0.0,
            "noise": np.nan,
            "step": np.nan,
        }

    def _distance(self, f: Array) -> float:
        """Sum N |f - f_eq| / (2 Sum N f), with f_eq the predicted final state; 0 once there."""
        number = np.sum(self.model.degeneracy[:, None] * f)
        apart = np.sum(self.model.degeneracy[:, None] * np.abs(f - self.final.f))
        return float(0.5 * apart / number)

    def source(self, state: State) -> float:
        """S_ex^0 of the last step [GeV fm^-4]."""
        return source(self.grid, self.model, state.occupation(self.model), state)

    def rates(self, report: StepReport) -> dict[str, Any]:
        """Collision rates [fm^-4] of the state that a step started from."""
        rate, reverse = collision_rates(self.grid, self.model, report.flows)
        return {
            "rate": rate,
            "rate_reverse": reverse,
            "null_weight": report.null_weight,
        }
