"""Equilibrium on the nodes: local and final states, condensates, momentum cut-off.

All states maximise the entropy of the nodes at given conserved quantities. The dual problem is
convex in (1/T, v/T, mu/T), so one damped Newton iteration serves them all.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..model.gap_equation import kinetic_energy
from ..model.model import Model
from ..util.arrays import Array, Integers, remembered
from .conserved import MODE_WEIGHT, ConservedTotals, fixed_point, self_consistent
from .fits import FLAT, Fits
from .gas import Gas, Indices, Refined, fluid_energy, gas_on, nodes, occupation, refine, resolved

LEAST_CONDENSATE = 1e-4
"""Condensate fractions below this, which MODE_WEIGHT leaves undetermined, are set to 0."""


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium state: f = 1/(exp((u.p - mu)/T) - eta) with u.p = gamma (E - v.p).

    All values are NaN if there is no such state with T > 0; chemical_potential is NaN for empty
    species.
    """

    temperature: float  # [GeV]
    chemical_potential: Array  # (species) [GeV]
    velocity: Array  # (3)
    mass_squared: Array  # (species) [GeV^2]
    condensate_fraction: float  # fraction of all particles; NaN if undetermined
    f: Array  # (species, size), without the condensate
    found: bool

    @property
    def theta(self) -> Array:
        """(gamma/T, gamma v/T, mu/T), the parameters used by fits."""
        beta = 1 / (self.temperature * np.sqrt(1 - self.velocity @ self.velocity))
        return np.array([beta, *beta * self.velocity, *self.chemical_potential / self.temperature])


def nowhere(grid: PhaseSpace, model: Model) -> Equilibrium:
    """Return the equilibrium with all values NaN, for cases without a state."""
    nan, f = np.full(len(model.species), np.nan), np.full((len(model.species), grid.size), np.nan)
    return Equilibrium(np.nan, nan, np.full(3, np.nan), nan.copy(), np.nan, f, False)


def thermal(
    grid: PhaseSpace,
    model: Model,
    temperature: float,
    chemical_potential: Array,
    velocity: Array,
    mass_squared: Array,
) -> Array:
    """Return f = 1/(exp((u.p - mu)/T) - eta) at the nodes, shape (species, size).

    u.p = gamma (E - v.p) is the energy in the fluid, so T and mu [GeV] are those of its rest frame.
    Species with mu = NaN are empty. Bosons require mu <= the smallest u.p of the nodes; a node
    where the two are equal, so that f diverges, gets the average over its cell.
    """
    mu = np.broadcast_to(np.asarray(chemical_potential, float), (len(model.species),))
    f = np.zeros((len(model.species), grid.size))
    for a, (m2, eta) in enumerate(zip(mass_squared, model.statistics, strict=True)):
        if np.isnan(mu[a]):
            continue
        f[a] = occupation((fluid_energy(grid.momenta, m2, velocity) - mu[a]) / temperature, eta)
        for i in np.flatnonzero(np.isinf(f[a])):
            soft = refine(grid, grid.momenta[:, i])
            cells, average = _averages(soft, temperature, mu[a], velocity, m2, eta)
            f[a, i] = average[cells == i][0]
    return f


def _averages(
    soft: Refined, temperature: float, mu: float, velocity: Array, m2: float, eta: int
) -> tuple[Integers, Array]:
    """Return the cells around a singular momentum and the averages of f over them."""
    cell, points, share = soft
    cells, group = np.unique(cell, return_inverse=True)
    f = occupation((fluid_energy(points, m2, velocity) - mu) / temperature, eta)
    return cells, np.bincount(group, share * f).astype(float)


def _state(
    grid: PhaseSpace, model: Model, temperature: float, mu: Array, velocity: Array, m2: Array
) -> Equilibrium:
    """Return the state with these parameters."""
    f = thermal(grid, model, temperature, mu, velocity, m2)
    return Equilibrium(float(temperature), mu, velocity, np.array(m2), 0.0, f, True)


def _state_of(
    grid: PhaseSpace, model: Model, present: Indices, gas: Gas, theta: Array, velocity: Array,
    m2: Array,
) -> Equilibrium:  # fmt: skip
    """Return the state of the gas of the species present."""
    if not theta[0] * max(grid.momentum_max) > FLAT or not velocity @ velocity < 1:
        return nowhere(grid, model)  # f is flat, as only a finite box allows: there is no T
    temperature = 1 / (theta[0] * np.sqrt(1 - velocity @ velocity))
    mu = np.full(len(model.species), np.nan)
    mu[present] = temperature * gas.potentials(theta)
    return _state(grid, model, temperature, mu, velocity, m2)


# --- states -------------------------------------------------------------------------------------


def local(
    grid: PhaseSpace, model: Model, f: Array, mass_squared: Array, start: Equilibrium | None = None
) -> Equilibrium:
    """Return the thermal state with the same species numbers, momentum and kinetic energy as f.

    Masses are frozen and no condensate is separated. ``start``: the state of a similar f.
    """
    numbers = model.degeneracy * f.sum(axis=1) * grid.measure
    momentum = grid.momenta @ (model.degeneracy @ f) * grid.measure
    energy = np.array([kinetic_energy(grid, model, f, mass_squared)])
    m2 = np.asarray(mass_squared, float)[None]
    fits = Fits(grid, model)
    theta = None if start is None else start.theta[None]
    found = fits.match(numbers[None], momentum[None], energy, m2, theta)
    temperature, mu, velocity, _ = (row[0] for row in found)
    if not np.isfinite(temperature):
        return nowhere(grid, model)
    return _state(grid, model, temperature, mu, velocity, m2[0])


@remembered
def predict(
    grid: PhaseSpace, model: Model, numbers: Array, momentum: Array, energy_total: float
) -> Equilibrium:
    """Return the final state of a run: equilibrium with its charges, momentum and total energy.

    Parameters
    ----------
    numbers : initial density of each species [fm^-3]; only their charges are conserved
    momentum : total momentum density (3) [GeV fm^-3]
    energy_total : including the mean field, see ``total_energy`` [GeV fm^-3]
    """
    numbers, momentum = np.asarray(numbers, float), np.asarray(momentum, float)
    if not (numbers.sum() > 0 and energy_total > 0):
        return nowhere(grid, model)
    given = ConservedTotals.of(model, numbers, momentum, energy_total)
    gas = gas_on(nodes(grid), model, (given.present, given.charges), given.flowing)
    solved = self_consistent(grid.rest_inverse_energy, model, given, gas, given.first_y(model))
    if solved is None:
        return nowhere(grid, model)
    theta, y = solved
    velocity, m2 = np.zeros(3), model.mass_squared(y)
    velocity[given.flowing] = theta[1 : 1 + len(gas.momenta)] / theta[0]
    state = _state_of(grid, model, given.present, gas, theta, velocity, m2)
    boson = _softest_boson(model, given, state)
    if boson is None or not _crowded(grid, model, state, boson, given.number):
        return state
    return _with_condensate(grid, model, given, state, boson, y) or state


def _softest_boson(model: Model, given: ConservedTotals, state: Equilibrium) -> int | None:
    """Return the boson whose mu is closest to m, its lowest energy in the fluid.

    A boson without charge has mu = 0 and is never over-populated: it cannot condense.
    """
    if not state.found:
        return None
    gap = np.sqrt(state.mass_squared) - state.chemical_potential
    gap[(model.statistics != 1) | np.isnan(gap)] = np.inf
    gap[given.present[~given.charges.any(axis=0)]] = np.inf
    return int(gap.argmin()) if np.isfinite(gap.min()) else None


def _crowded(grid: PhaseSpace, model: Model, state: Equilibrium, boson: int, number: float) -> bool:
    """Return whether mu exceeds m, or is below m only because one node is so full."""
    if state.chemical_potential[boson] >= np.sqrt(state.mass_squared[boson]):
        return True
    most = model.degeneracy[boson] * state.f[boson].max() * grid.measure
    return bool(most > 1e-3 * number)


def _with_condensate(
    grid: PhaseSpace, model: Model, given: ConservedTotals, state: Equilibrium, boson: int, y: Array
) -> Equilibrium | None:
    """Return the state with mu = m and a condensate; None if not needed.

    The condensate fraction is NaN if undetermined. Soft cells count with their averages, so that
    their capacity does not depend on the positions of the nodes; the surplus goes into one state
    per boson at rest in the fluid. The velocity is iterated with the masses: the singular momentum
    is fixed while the rest is solved.
    """
    n, present, flowing = len(y), given.present, given.flowing
    start = None

    def image(z: Array) -> tuple[Array, Any] | None:
        nonlocal start
        y, velocity = z[:n], np.zeros(3)
        velocity[flowing] = z[n:]
        m2 = model.mass_squared(y)
        if velocity @ velocity >= 1 or m2[boson] < 0:
            return None
        points = resolved(grid, _soft_point(velocity, m2[boson]))
        mode = MODE_WEIGHT * given.number
        gas = gas_on(points, model, (present, given.charges), velocity=velocity, mode=mode)
        solved = given.solve(grid.rest_inverse_energy, model, gas, y, velocity, start)
        if solved is None:
            return None
        start, new = solved
        condensed = gas.condensed(m2[present], start)
        missing = np.zeros(0)
        if flowing.any():
            density = (gas.degeneracy @ gas.occupations(m2[present], start)) * gas.weight
            rest = np.sqrt(m2[present]) @ condensed * gas.gamma * velocity
            missing = (given.momentum - points[0] @ density - rest)[flowing] / given.energy
        return np.concatenate([new, z[n:] + 0.75 * missing]), (gas, start, m2, velocity, condensed)

    z = np.concatenate([y if model.mass_coupling.any() else 0 * y, state.velocity[flowing]])
    found = fixed_point(image, z, n, 1e-6 if flowing.any() else 1e-9)
    if found is None:
        return replace(state, condensate_fraction=np.nan)
    gas, theta, m2, velocity, condensed = found
    others = gas.degeneracy @ gas.occupations(m2[present], theta) @ gas.weight
    fraction = condensed.sum() / (condensed.sum() + others)
    if fraction < LEAST_CONDENSATE:
        return None
    state = _state_of(grid, model, present, gas, theta, velocity, m2)
    soft = refine(grid, _soft_point(velocity, m2[boson]))
    for a in present:
        mu, eta = state.chemical_potential[a], int(model.statistics[a])
        cells, average = _averages(soft, state.temperature, mu, velocity, m2[a], eta)
        state.f[a, cells] = average
    return replace(state, condensate_fraction=float(fraction))


def _soft_point(velocity: Array, m2: float) -> Array:
    """Return gamma m v, the momentum of a particle at rest in the fluid [GeV]."""
    return np.sqrt(m2 / (1 - velocity @ velocity)) * velocity


@remembered
def temperature_without_number(model: Model, energy_total: float) -> float:
    """Return T [GeV] with this total energy [GeV fm^-3] at rest and all mu = 0; NaN if none.

    The result is for unlimited momentum space: the lattice reaches at least 14 T.
    """
    present, none = np.arange(len(model.species)), np.zeros(0)
    if not energy_total > 0:
        return np.nan
    temperature = (30 * energy_total * HBARC**3 / (np.pi**2 * model.degeneracy.sum())) ** 0.25
    charges = np.zeros((0, len(present)))
    massless = (model.statistics == 1) & (model.mass_squared(np.ones(len(present))) == 0)
    for _ in range(2):  # the first pass only determines the extent of the lattice
        heaviest = np.sqrt(model.constant_mass_squared.max())
        grid = PhaseSpace(48, 14 * temperature + np.sqrt(28 * temperature * heaviest))
        number = energy_total / (3 * temperature)
        given = ConservedTotals(present, charges, none, np.zeros(3), float(energy_total), number)
        # A massless boson at mu = 0 has a singular f at p = 0.
        points = resolved(grid, np.zeros(3)) if massless.any() else nodes(grid)
        gas = gas_on(points, model, (present, charges))
        solved = self_consistent(
            grid.rest_inverse_energy, model, given, gas, model.degeneracy * temperature**2 / 24
        )
        if solved is None:
            return np.nan
        temperature = float(1 / solved[0][0])
    return temperature


def edge_loss(grid: PhaseSpace, model: Model, equilibrium: Equilibrium) -> float:
    """Return the share of the state beyond the momentum cut-off: the larger of number and energy.

    Sums over a lattice of 48^3 nodes that covers the box and the tail; NaN if there is no state. A
    condensate is not counted.
    """
    state = equilibrium
    if not state.found:
        return np.nan
    v2 = state.velocity @ state.velocity
    heaviest = np.sqrt(state.mass_squared.max())
    reach = 14 * state.temperature + np.sqrt(28 * state.temperature * heaviest)
    reach *= np.sqrt((1 + np.sqrt(v2)) / (1 - np.sqrt(v2)))
    ratios = np.array([2, 3, 4, 6, 8, 12, 24])  # faces of the box are lattice faces
    widths = np.array(grid.momentum_max)
    ratio = ratios[np.minimum(np.searchsorted(ratios, reach / widths), len(ratios) - 1)]
    lattice = PhaseSpace(48, widths * ratio)
    limit = np.where(model.statistics == 1, np.sqrt(state.mass_squared), np.inf)
    mu = np.minimum(state.chemical_potential, limit)
    f = thermal(lattice, model, state.temperature, mu, state.velocity, state.mass_squared)
    outside = (abs(lattice.momenta) > widths[:, None]).any(axis=0)
    density = model.degeneracy[:, None] * f
    energy = density * np.array([lattice.energies(m2) for m2 in state.mass_squared])
    return float(max(q[:, outside].sum() / q.sum() for q in (density, energy)))
