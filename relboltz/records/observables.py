"""What is measured of a state: numbers, T^{mu nu}, entropy, spectra, temperature.

Densities are in fm^-3, energies in GeV fm^-3. ``QUANTITIES`` names everything that a record
holds, with dimensions, units and long names; it is the one place where they are spelt.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.moments import entropy_sum
from ..equilibrium import states as equilibrium
from ..equilibrium.states import Equilibrium
from ..events.collisions import Flows
from ..grid import PhaseSpace
from ..model import Model
from ..stepping.stepper import State, mass_rate
from ..units import HBARC
from .moments import Moments, Shells

Array = NDArray[np.float64]

QUANTITIES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "number": (("species",), "fm^-3", "particle density"),
    "charge_density": (("charge",), "fm^-3", "density of a conserved charge"),
    "charge_drift": (("charge",), "1", "change of a conserved charge, in quanta: an exact integer"),
    "momentum_drift": (("axis",), "1", "change of momentum, in quanta: an exact integer"),
    "energy_kinetic": ((), "GeV fm^-3", "kinetic energy density"),
    "energy_by_species": (("species",), "GeV fm^-3", "kinetic energy density of a species"),
    "energy_total": ((), "GeV fm^-3", "kinetic plus field energy density, conserved"),
    "energy_momentum": (
        ("mu", "nu"),
        "GeV fm^-3",
        "kinetic energy-momentum tensor, symmetric, velocities p/E",
    ),
    "momentum_flux": (
        ("axis", "axis2"),
        "GeV fm^-3",
        "flux of momentum p_axis along axis2, with the velocities of the transport on the grid",
    ),
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
    "null_weight": (
        (),
        "1",
        "part of the collisions between particles in the box that finds no place in it, without "
        "final-state factors",
    ),
    "negative_weight": (
        ("process",),
        "1",
        "weight of collisions where screening makes |M|^2 negative and that count as 0, relative "
        "to all others of the process",
    ),
    "limited_weight": ((), "1", "part of the moved number that a limiter refused"),
    "noise": (
        (),
        "1",
        "root of the squared standard error of C[f] in the last step over C[f]^2, both summed over "
        "the cells; C[f] as measured, so that it stays below about 1",
    ),
    "step": ((), "fm", "time step"),
}
"""name: (dimensions besides time, unit, long name)."""


def charges(model: Model, moments: Moments) -> list[int]:
    """Conserved charges in quanta, exactly."""
    totals = moments.totals
    return [
        sum(q * n for q, n in zip(vector, totals, strict=True))
        for vector in model.conserved.values()
    ]


def energy_momentum(grid: PhaseSpace, model: Model, moments: Moments, unit: float) -> Array:
    """T_kin^{mu nu} = Sum_a N_a Int d^3p/(2 pi)^3 p^mu p^nu / E_a f_a [GeV fm^-3]."""
    tensor = np.zeros((4, 4))
    weight = model.degeneracy * grid.measure
    tensor[0, 0] = np.sum(weight * moments.energy)
    half = [0.5 * h * unit * grid.measure for h in grid.spacing]
    tensor[0, 1:] = [h * quanta for h, quanta in zip(half, moments.momentum_quanta, strict=True)]
    xx, yy, zz, xy, xz, yz = (weight[:, None] * moments.stress).sum(axis=0)
    tensor[1:, 1:] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    tensor[1:, 0] = tensor[0, 1:]
    return tensor


def momentum_flux(grid: PhaseSpace, model: Model, moments: Moments) -> Array:
    """Sum_a N_a Int d^3p/(2 pi)^3 p_i u_j f_a [GeV fm^-3], u_j the velocity of the transport.

    u_j = [E(p + dp_j/2) - E(p - dp_j/2)]/dp_j instead of p_j/E: not symmetric, but what d_t T^{0i}
    is the divergence of on the grid.
    """
    return (model.degeneracy * grid.measure @ moments.flux).reshape(3, 3)


def entropy(grid: PhaseSpace, model: Model, f: Array) -> float:
    """S = Sum_a N_a Int [eta F ln F - f ln f] [fm^-3]; classical: f - f ln f."""
    rows = zip(model.species, f, strict=True)
    return sum(s.degeneracy * entropy_sum(row, s.statistics) for s, row in rows) * grid.measure


def coupling_integrals(grid: PhaseSpace, model: Model, moments: Moments) -> Array:
    """Y_a = N_a Int d^3p/(2 pi)^3 f_a / E_a [GeV^2]."""
    return model.degeneracy * moments.inverse_energy * (grid.cell_volume / (2 * np.pi) ** 3)


def source(rate: Array, y: Array) -> Array:
    """S_ex^0 = (1/2) Sum_a (d m_a^2 / dt) Y_a [GeV fm^-4], Eq. (check energy conservation)."""
    return 0.5 * (rate * y).sum(axis=-1) / HBARC**3


def collision_rates(grid: PhaseSpace, model: Model, flows: Flows) -> tuple[Array, Array]:
    """Collisions per volume and time [fm^-4] of every process, as written and reversed.

    In an elastic process both directions are the same collisions.
    """
    elastic = np.array([process.elastic for process in model.processes], dtype=bool)
    both = flows.forward + flows.backward
    ahead, back = (np.where(elastic, both, one) for one in (flows.forward, flows.backward))
    return ahead * grid.measure, back * grid.measure


def integers(values: list[int]) -> NDArray:
    """64-bit integers where they fit; floats beyond."""
    fits = all(abs(v) < 2**63 for v in values)
    return np.array(values, dtype=np.int64 if fits else np.float64)


class Observer:
    """Turns moments into records and keeps what the next record needs."""

    def __init__(self, grid: PhaseSpace, model: Model, moments: Moments):
        self.grid, self.model = grid, model
        self.shells = Shells.of(grid)
        self._charges = charges(model, moments)
        self._momentum = moments.momentum_quanta
        self._early: list[tuple[int, Array]] = []
        self._fit: Equilibrium | None = None

    def record(self, state: State, moments: Moments) -> dict[str, Any]:
        """Everything that the state itself tells; rates follow from the next step (``rates``)."""
        grid, model, m2 = self.grid, self.model, state.mass_squared
        density = state.unit * grid.measure
        totals, charge = moments.totals, charges(model, moments)
        tensor = energy_momentum(grid, model, moments, state.unit)
        y = coupling_integrals(grid, model, moments)
        if state.step < 2:
            self._early.append((state.step, y))
        numbers = np.array([n * density for n in totals])
        self._fit = equilibrium.matching(
            grid, model, numbers, tensor[0, 1:], tensor[0, 0], m2, self._fit
        )
        transverse = 0.5 * (tensor[1, 1] + tensor[2, 2])
        field = 0.25 * float((m2 - model.constant_mass_squared) @ y) / HBARC**3
        per_node = state.unit / (model.degeneracy[:, None] * self.shells.count)
        apart = model.degeneracy @ moments.distance
        return {
            "time": state.time,
            "number": numbers,
            "charge_density": np.array([q * density for q in charge]),
            "charge_drift": integers(differences(charge, self._charges)),
            "momentum_drift": integers(differences(moments.momentum_quanta, self._momentum)),
            "energy_kinetic": tensor[0, 0],
            "energy_by_species": model.degeneracy * grid.measure * moments.energy,
            "energy_total": tensor[0, 0] - field,
            "energy_momentum": tensor,
            "momentum_flux": momentum_flux(grid, model, moments),
            "source": source(mass_rate(state), y),
            "momentum": tensor[0, 1:],
            "entropy": float(model.degeneracy @ moments.entropy) * grid.measure,
            "mass_squared": m2,
            "screening_mass_squared": float(state.screening2[0]),
            "temperature": self._fit.temperature,
            "chemical_potential": self._fit.chemical_potential,
            "velocity": self._fit.velocity,
            "spectrum": moments.shells * per_node,
            "pressure_ratio": tensor[3, 3] / transverse if transverse > 0 else np.nan,
            "equilibrium_distance": float(0.5 * apart / (sum(totals) * state.unit)),
            "rate": np.full(len(model.processes), np.nan),
            "rate_reverse": np.full(len(model.processes), np.nan),
            "null_weight": np.nan,
            "negative_weight": np.full(len(model.processes), np.nan),
            "limited_weight": 0.0,
            "noise": np.nan,
            "step": np.nan,
        }

    def early_sources(self, state: State) -> list[dict[str, Any]]:
        """S_ex^0 of the records before the second step, from masses up to that step."""
        return [{"source": source(mass_rate(state, state.step - n), y)} for n, y in self._early]

    def quantities(self) -> dict[str, tuple[tuple[str, ...], str, str]]:
        """Dimensions, units and names of all that a record holds."""
        return QUANTITIES

    def rates(self, flows: Flows, null_weight: float) -> dict[str, Any]:
        """Collision rates [fm^-4] of the state that a step started from."""
        rate, reverse = collision_rates(self.grid, self.model, flows)
        return {
            "rate": rate,
            "rate_reverse": reverse,
            "null_weight": null_weight,
            "negative_weight": flows.negative_weight,
        }


def differences(now: list[int], before: list[int]) -> list[int]:
    """Changes in quanta: all zero if conserved."""
    return [a - b for a, b in zip(now, before, strict=True)]
