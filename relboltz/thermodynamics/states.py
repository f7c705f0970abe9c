"""Equilibrium on the nodes: local and final states, condensates, the edge of the box.

Every state solved for maximises the entropy of the nodes at given conserved quantities. Its
dual is a convex function of (1/T, v/T, mu/T), so one damped Newton iteration serves them all.
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
"""Condensate fractions below this are set to 0: it is what MODE_WEIGHT leaves undecided."""


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium state: f = 1/(exp((u.p - mu)/T) - eta) with u.p = gamma (E - v.p).

    Everything is NaN if there is no such state with T > 0; chemical_potential is NaN for empty
    species.
    """

    temperature: float  # [GeV]
    chemical_potential: Array  # (species) [GeV]
    velocity: Array  # (3)
    mass_squared: Array  # (species) [GeV^2]
    condensate_fraction: float  # of all particles; NaN if it could not be decided
    f: Array  # (species, size), without the condensate
    found: bool

    @property
    def theta(self) -> Array:
        """(gamma/T, gamma v/T, mu/T), as fits have it."""
        beta = 1 / (self.temperature * np.sqrt(1 - self.velocity @ self.velocity))
        return np.array([beta, *beta * self.velocity, *self.chemical_potential / self.temperature])


def nowhere(grid: PhaseSpace, model: Model) -> Equilibrium:
    """The answer if no state exists."""
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
    """f = 1/(exp((u.p - mu)/T) - eta) at the nodes, shape (species, size).

    u.p = gamma (E - v.p) is the energy in the fluid, so T and mu [GeV] are those of its rest frame.
    A species whose mu is NaN is empty. Bosons need mu <= the least u.p of the nodes; a node where
    they are equal, so that f diverges, gets the average over its cell.
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
    """The cells around a singular momentum and the averages of f over them."""
    cell, points, share = soft
    cells, group = np.unique(cell, return_inverse=True)
    f = occupation((fluid_energy(points, m2, velocity) - mu) / temperature, eta)
    return cells, np.bincount(group, share * f).astype(float)


def _state(
    grid: PhaseSpace, model: Model, temperature: float, mu: Array, velocity: Array, m2: Array
) -> Equilibrium:
    """The state with these parameters."""
    f = thermal(grid, model, temperature, mu, velocity, m2)
    return Equilibrium(float(temperature), mu, velocity, np.array(m2), 0.0, f, True)


def _state_of(
    grid: PhaseSpace, model: Model, present: Indices, gas: Gas, theta: Array, velocity: Array,
    m2: Array,
) -> Equilibrium:  # fmt: skip
    """The state that the gas of the species present has."""
    if not theta[0] * max(grid.momentum_max) > FLAT or not velocity @ velocity < 1:
        return nowhere(grid, model)  # hotter than any T, as only a box allows: not a gas
    temperature = 1 / (theta[0] * np.sqrt(1 - velocity @ velocity))
    mu = np.full(len(model.species), np.nan)
    mu[present] = temperature * gas.potentials(theta)
    return _state(grid, model, temperature, mu, velocity, m2)


# --- states -------------------------------------------------------------------------------------


def local(
    grid: PhaseSpace, model: Model, f: Array, mass_squared: Array, start: Equilibrium | None = None
) -> Equilibrium:
    """The thermal state with the same number of each species, momentum and kinetic energy as f.

    Masses are frozen and no condensate is split off. ``start``: the state of a similar f.
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
    """The final state of a run: equilibrium with the same charges, momentum and total energy.

    Parameters
    ----------
    numbers : density of each species at the start [fm^-3]; only their charges survive
    momentum : total momentum density (3) [GeV fm^-3]
    energy_total : with the mean field, see ``total_energy`` [GeV fm^-3]
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
    """The boson whose mu is closest to m, the least energy in the fluid.

    One that carries no charge has mu = 0 and never too many particles: it cannot condense.
    """
    if not state.found:
        return None
    gap = np.sqrt(state.mass_squared) - state.chemical_potential
    gap[(model.statistics != 1) | np.isnan(gap)] = np.inf
    gap[given.present[~given.charges.any(axis=0)]] = np.inf
    return int(gap.argmin()) if np.isfinite(gap.min()) else None


def _crowded(grid: PhaseSpace, model: Model, state: Equilibrium, boson: int, number: float) -> bool:
    """Whether mu is past m, or below it only because one node holds a good part of all."""
    if state.chemical_potential[boson] >= np.sqrt(state.mass_squared[boson]):
        return True
    most = model.degeneracy[boson] * state.f[boson].max() * grid.measure
    return bool(most > 1e-3 * number)


def _with_condensate(
    grid: PhaseSpace, model: Model, given: ConservedTotals, state: Equilibrium, boson: int, y: Array
) -> Equilibrium | None:
    """The state with mu = m and a condensate; None if it needs none, NaN if undecided.

    Soft cells count with their averages, so that what they can hold does not depend on where
    the nodes lie; the surplus goes into one state per boson at rest in the fluid. The velocity
    is iterated with the masses: the singular momentum stays put while the rest is solved.
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
    """gamma m v: the momentum of a particle at rest in the fluid [GeV]."""
    return np.sqrt(m2 / (1 - velocity @ velocity)) * velocity


@remembered
def temperature_without_number(model: Model, energy_total: float) -> float:
    """T [GeV] of the same total energy [GeV fm^-3] at rest if all mu were 0; NaN if none.

    In unlimited momentum space: on a lattice that reaches 14 T and more.
    """
    present, none = np.arange(len(model.species)), np.zeros(0)
    if not energy_total > 0:
        return np.nan
    temperature = (30 * energy_total * HBARC**3 / (np.pi**2 * model.degeneracy.sum())) ** 0.25
    charges = np.zeros((0, len(present)))
    massless = (model.statistics == 1) & (model.mass_squared(np.ones(len(present))) == 0)
    for _ in range(2):  # the first only finds how far the lattice must reach
        heaviest = np.sqrt(model.constant_mass_squared.max())
        grid = PhaseSpace(48, 14 * temperature + np.sqrt(28 * temperature * heaviest))
        number = energy_total / (3 * temperature)
        given = ConservedTotals(present, charges, none, np.zeros(3), float(energy_total), number)
        # a massless boson at mu = 0 has a singular f at p = 0
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
    """Share of the state that would lie outside the box: the larger of number and energy.

    Sums over a lattice of 48^3 nodes that holds the box and the tail; NaN if there is no state. A
    condensate is left out.
    """
    state = equilibrium
    if not state.found:
        return np.nan
    v2 = state.velocity @ state.velocity
    heaviest = np.sqrt(state.mass_squared.max())
    reach = 14 * state.temperature + np.sqrt(28 * state.temperature * heaviest)
    reach *= np.sqrt((1 + np.sqrt(v2)) / (1 - np.sqrt(v2)))
    ratios = np.array([2, 3, 4, 6, 8, 12, 24])  # faces of the box stay faces of the lattice
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
