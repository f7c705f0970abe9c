"""Equilibrium on the nodes: thermal masses, local and final states, condensates.

Every state solved for maximises the entropy of the nodes at given conserved quantities. Its
dual is a convex function of (1/T, v/T, mu/T), so one damped Newton iteration serves them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numba
import numpy as np
from numpy.typing import NDArray

from .errors import RunError
from .grid import PhaseSpace
from .model import Model
from .units import HBARC

Array = NDArray[np.float64]

NO_FLOW = 1e-13
"""|P_i| / E below which a component of the momentum counts as exactly 0."""
MODE_WEIGHT = 1e-8
"""States of a condensate's mode, in units of the number of particles: mu stays that close to m."""
SOFT_CELLS = 3.6
"""Cells this near to a singular momentum, in spacings per axis, count with their averages."""
LEAST_CONDENSATE = 1e-4
"""Condensate fractions below this are set to 0: it is what MODE_WEIGHT leaves undecided."""


def _compile(function):
    """Compile a kernel: the one place to choose how."""
    return numba.njit(cache=False, error_model="numpy")(function)


@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium state: f = 1/(exp((E - v.p - mu)/T) - eta).

    Everything is NaN if there is no such state; chemical_potential is NaN for empty species.
    T < 0 and v > 1 are possible: the nodes of a box have a largest energy.
    """

    temperature: float  # [GeV]
    chemical_potential: Array  # (species) [GeV]
    velocity: Array  # (3)
    mass_squared: Array  # (species) [GeV^2]
    condensate_fraction: float  # of all particles; NaN if it could not be decided
    f: Array  # (species, size), without the condensate
    found: bool


def _nowhere(grid: PhaseSpace, model: Model) -> Equilibrium:
    """The answer if no state exists."""
    n = len(model.species)
    nan = np.full(n, np.nan)
    f = np.full((n, grid.size), np.nan)
    return Equilibrium(np.nan, nan, np.full(3, np.nan), nan.copy(), np.nan, f, False)


# --- occupation of the nodes --------------------------------------------------------------------


def _occupation(x: Array, eta: int) -> Array:
    """1/(e^x - eta) without overflow, accurate for bosons at small x."""
    x = np.clip(x, -700.0, 700.0)
    if eta == 1:
        with np.errstate(divide="ignore"):
            return 1 / np.expm1(x)
    z = np.exp(-x)
    return z / (1 - eta * z)


def thermal(
    grid: PhaseSpace,
    model: Model,
    temperature: float,
    chemical_potential: Array,
    velocity: Array,
    mass_squared: Array,
) -> Array:
    """f (species, size) of a thermal state; T and mu in GeV, masses in GeV^2.

    A species whose mu is NaN is empty. Bosons need mu <= the least E - v.p of the nodes; a node
    where they are equal, so that f diverges, gets the average over its cell.
    """
    mu = np.broadcast_to(np.asarray(chemical_potential, float), (len(model.species),))
    velocity = np.asarray(velocity, float)
    f = np.zeros((len(model.species), grid.size))
    drift = velocity @ grid.momenta
    for a, (m2, eta) in enumerate(zip(mass_squared, model.statistics, strict=True)):
        if np.isnan(mu[a]):
            continue
        f[a] = _occupation((grid.energies(m2) - drift - mu[a]) / temperature, eta)
        for i in np.flatnonzero(np.isinf(f[a])):
            centre = grid.momenta[:, i]
            cells, average = _soft_cells(grid, centre, temperature, mu[a], velocity, m2, eta)
            f[a, i] = average[cells == i][0]
    return f


def _soft_cells(
    grid: PhaseSpace,
    centre: Array,
    temperature: float,
    mu: float,
    velocity: Array,
    m2: float,
    eta: int,
) -> tuple[NDArray[np.int64], Array]:
    """The cells around a singular momentum [GeV] and the averages of f over them."""
    cell, points, share = _refine(grid, centre)
    energy = np.sqrt((points**2).sum(axis=0) + m2) - velocity @ points
    cells, group = np.unique(cell, return_inverse=True)
    f = _occupation((energy - mu) / temperature, eta)
    return cells, np.bincount(group, share * f).astype(float)


def _refine(
    grid: PhaseSpace, centre: Array, levels: int = 7
) -> tuple[NDArray[np.int64], Array, Array]:
    """Points that resolve an integrable singularity at a momentum ``centre`` [GeV].

    Cells near it are halved again and again towards it; the pieces carry 2^3 Gauss points.
    Returns each point's cell, its momentum (3, n) and its share of that cell.
    """
    spacing = np.array(grid.spacing)[:, None]
    centre = np.asarray(centre, float)[:, None]
    cells = np.flatnonzero((abs(grid.momenta - centre) < SOFT_CELLS * spacing).all(axis=0))
    middle, size = grid.momenta[:, cells], 1.0
    octant = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, 1, 8)
    found: list[tuple[NDArray[np.int64], Array, Array]] = []
    for level in range(levels + 1):
        near = (abs(middle - centre) < 1.01 * size * spacing).all(axis=0) & (level < levels)
        gauss = middle[:, ~near, None] + octant * (size * spacing / np.sqrt(3))[:, None]
        share = np.full(gauss[0].size, size**3 / 8)
        found.append((np.repeat(cells[~near], 8), gauss.reshape(3, -1), share))
        pieces = middle[:, near, None] + octant * (0.5 * size * spacing)[:, None]
        cells, middle, size = np.repeat(cells[near], 8), pieces.reshape(3, -1), 0.5 * size
    cell, points, parts = zip(*found, strict=True)
    return np.concatenate(cell), np.concatenate(points, axis=1), np.concatenate(parts)


# --- masses and energies of a given f -----------------------------------------------------------


@_compile
def _inverse_energy_sums(f, p2, m2, at_rest):
    """Sum f/E and Sum f/E^3 in eight lanes: a fixed order that still vectorises."""
    first, third = np.zeros(8), np.zeros(8)
    n = f.size
    for i in range(0, n - n % 8, 8):
        for j in range(8):
            r = 1 / np.sqrt(p2[i + j] + m2)
            first[j] += f[i + j] * r
            third[j] += f[i + j] * r * r * r
    for i in range(n - n % 8, n):
        r = 1 / np.sqrt(p2[i] + m2)
        first[i % 8] += f[i] * r
        third[i % 8] += f[i] * r * r * r
    if m2 == 0 and not np.isfinite(first.sum()):  # a massless node at rest
        first[:], third[:] = 0.0, 0.0
        for i in range(n):
            r = 1 / np.sqrt(p2[i]) if p2[i] > 0 else at_rest
            first[i % 8] += f[i] * r
            third[i % 8] += f[i] * r * r * r
    return first.sum(), third.sum()


def _at_rest(grid: PhaseSpace, m2: float) -> float:
    """What 1/E of a massless node at rest is replaced by [GeV^-1]."""
    return grid.rest_inverse_energy if m2 == 0 else 0.0


def coupling_integrals(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> Array:
    """Y_a = N_a Int d^3p/(2 pi)^3 f_a / E_a [GeV^2]."""
    sums = [
        _inverse_energy_sums(row, grid.momentum_squared, m2, _at_rest(grid, m2))[0]
        for row, m2 in zip(f, np.asarray(mass_squared, float), strict=True)
    ]
    return model.degeneracy * sums * (grid.cell_volume / (2 * np.pi) ** 3)


def masses(grid: PhaseSpace, model: Model, f: Array, start: Array | None = None) -> Array:
    """Self-consistent m_a^2 = m_a,0^2 + Sum_b K_ab Y_b(m_b^2) of a given f [GeV^2].

    Newton's iteration to rounding. ``start`` is the m^2 of a similar state.
    """
    coupling, m2 = model.mass_coupling, model.constant_mass_squared.copy()
    if not coupling.any():
        return m2
    groups = _equal_masses(model, f)
    unit = grid.cell_volume / (2 * np.pi) ** 3
    if start is not None and (np.asarray(start) >= 0).all():
        m2 = np.array(start, dtype=float)
    for _ in range(100):
        y, slope = np.zeros(len(m2)), np.zeros(len(m2))
        for a, total in groups:
            first, third = _inverse_energy_sums(
                total, grid.momentum_squared, m2[a], _at_rest(grid, m2[a])
            )
            y[a], slope[a] = unit * first, -0.5 * unit * third
        wanted = model.mass_squared(y)
        step = np.linalg.solve(np.eye(len(m2)) - coupling * slope, wanted - m2)
        new = np.maximum(m2 + step, 0.1 * m2)  # m^2 stays positive on the way
        moved = abs(new - m2).max()
        m2 = new
        if moved <= 1e-9 * m2.max():  # Newton: the error left is the square of this
            return m2
    raise RunError("the thermal masses of this state do not converge: check model.mass_coupling")


def _equal_masses(model: Model, f: Array) -> list[tuple[int, Array]]:
    """N f summed over species that always share one mass, under the index of the first."""
    groups: dict[tuple, tuple[int, Array]] = {}
    for a, row in enumerate(f):
        if model.mass_coupling[a].any() and row.any():
            key = (*model.mass_coupling[a], model.constant_mass_squared[a])
            if key in groups:
                groups[key][1][:] += model.degeneracy[a] * row
            else:
                groups[key] = (a, model.degeneracy[a] * row)
    return list(groups.values())


def kinetic_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Sum over species and nodes of N_a E_a f_a [GeV fm^-3]."""
    sums = [(grid.energies(m2) * row).sum() for row, m2 in zip(f, mass_squared, strict=True)]
    return float(model.degeneracy @ sums) * grid.measure


def total_energy(grid: PhaseSpace, model: Model, f: Array, mass_squared: Array) -> float:
    """Kinetic energy - (1/4) Sum_a (m_a^2 - m_a,0^2) Y_a, the conserved one [GeV fm^-3]."""
    y = coupling_integrals(grid, model, f, mass_squared)
    field = 0.25 * (mass_squared - model.constant_mass_squared) @ y / HBARC**3
    return kinetic_energy(grid, model, f, mass_squared) - float(field)


# --- the dual problem ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Gas:
    """What is summed over: points in momentum space, and the species present on them.

    The unknowns are theta = (beta, beta v_i of the flowing axes, alpha_k of the charges), and
    x_a = theta . (E - drift, -p, -q_a). A velocity that is given, not sought, is in the drift.
    """

    momenta: Array  # (flowing axes, points) [GeV]
    momentum_squared: Array  # (points) [GeV^2]
    drift: Array  # (points) v.p [GeV]
    weight: Array  # (points) [fm^-3]
    degeneracy: Array  # (species present)
    statistics: NDArray[np.int64]
    charges: Array  # (charges, species present)
    gamma: float = 1.0
    mode: float = 0.0
    """Weight [fm^-3] of one more state of each boson, at rest in the fluid: the condensate."""

    def vectors(self, m2: float) -> Array:
        """(E - drift, -p, -1) at the points."""
        energy = np.sqrt(self.momentum_squared + m2) - self.drift
        return np.concatenate([energy[None], -self.momenta, -np.ones((1, len(energy)))])

    def potentials(self, theta: Array) -> Array:
        """alpha_a = mu_a/T of the species present."""
        return theta[1 + len(self.momenta) :] @ self.charges

    def condensed(self, m2: Array, theta: Array) -> Array:
        """Particles in the modes of the species present [fm^-3]; NaN where mu >= m/gamma."""
        x = theta[0] * np.sqrt(m2) / self.gamma - self.potentials(theta)
        x = np.where(x > 0, np.minimum(x, 700.0), np.nan)
        return np.where(self.statistics == 1, self.mode / np.expm1(x), 0.0)

    def densities(self, vectors: dict[float, Array], m2: Array, theta: Array):
        """Conserved densities (E, -P, -Q) and minus their derivative; None if x <= 0 somewhere."""
        d = 1 + len(self.momenta)
        sums, matrix = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        blocks: dict[tuple, tuple[Array, Array]] = {}  # equal species are summed once
        for a, (alpha, eta) in enumerate(zip(self.potentials(theta), self.statistics, strict=True)):
            key = (m2[a], eta, alpha)
            if key not in blocks:
                phi = vectors[m2[a]]
                x = theta[:d] @ phi[:d] - alpha
                if eta == 1 and x.min() <= 0:
                    return None
                f = _occupation(x, eta)
                fluctuation = self.weight * f * (1 + eta * f)
                blocks[key] = phi @ (self.weight * f), (phi * fluctuation) @ phi.T
            spread = self._spread(d, a)
            sums += self.degeneracy[a] * (spread @ blocks[key][0])
            matrix += self.degeneracy[a] * (spread @ blocks[key][1] @ spread.T)
        if self.mode:
            for a, number in enumerate(self.condensed(m2, theta)):
                phi = np.concatenate([[np.sqrt(m2[a]) / self.gamma], -self.charges[:, a]])
                sums += number * phi
                matrix += number * (1 + number / self.mode) * np.outer(phi, phi)
        return (sums, matrix) if np.isfinite(sums).all() else None

    def _spread(self, d: int, a: int) -> Array:
        """Takes (E, -p, -1) of species a to the derivatives by theta."""
        spread = np.zeros((d + len(self.charges), d + 1))
        spread[:d, :d] = np.eye(d)
        spread[d:, d] = self.charges[:, a]
        return spread

    def occupations(self, m2: Array, theta: Array) -> Array:
        """f (species present, points)."""
        d = 1 + len(self.momenta)
        rows = zip(m2, self.potentials(theta), self.statistics, strict=True)
        return np.array(
            [_occupation(theta[:d] @ self.vectors(m)[:d] - alpha, eta) for m, alpha, eta in rows]
        )

    def coupling_integrals(self, m2: Array, theta: Array, at_rest: float) -> Array:
        """Y_a of the species present, with the condensate [GeV^2]."""
        energy = np.sqrt(self.momentum_squared + m2[:, None])
        f = self.occupations(m2, theta) / np.where(energy > 0, energy, 1 / at_rest)
        y = self.degeneracy * (f @ self.weight)
        if self.mode:
            massive = np.sqrt(np.where(m2 > 0, m2, np.inf))  # massless: nothing couples to it
            y += self.condensed(m2, theta) / (self.gamma * massive)
        return y * HBARC**3

    def newton(self, m2: Array, target: Array, theta: Array) -> Array | None:
        """The theta with the densities ``target`` = (E, -P, -Q); None if there is none."""
        with np.errstate(all="ignore"):  # a state that does not exist runs away
            return self._newton(m2, target, theta)

    def _newton(self, m2: Array, target: Array, theta: Array) -> Array | None:
        vectors = {m: self.vectors(m) for m in m2}
        state = self.densities(vectors, m2, theta)
        for _ in range(100):
            if state is None:
                return None
            excess = state[0] - target
            try:
                step = np.linalg.solve(state[1], excess)
            except np.linalg.LinAlgError:
                return None
            descent = excess @ step  # Newton decrement squared, in particles per fm^3
            if not np.isfinite(descent) or descent < -1e-20 * abs(target).max():
                return None
            if descent <= 1e-20 * abs(target).max():
                frozen = np.diag(state[1]) <= 1e-11 * abs(target)  # a full Fermi sea: any low T
                return None if frozen.any() else theta + step
            theta, state = self._line_search(vectors, m2, target, theta, step, descent)
        return None

    def _line_search(self, vectors, m2, target, theta, step, descent):
        """As far along a step as the convex dual keeps falling, or nearly."""
        length = 1.0
        for _ in range(60):
            trial = theta + length * step
            state = self.densities(vectors, m2, trial)
            if state is None:
                length *= 0.5
                continue
            slope = (state[0] - target) @ step
            if slope >= -0.5 * descent:
                return trial, state
            length *= min(0.8, max(0.1, descent / (descent - slope)))
        return theta, None


def _gas(
    points: tuple[Array, Array],
    model: Model,
    charges: tuple[NDArray[np.intp], Array],
    flowing: NDArray[np.bool_] | None = None,
    velocity: Array | None = None,
    mode: float = 0.0,
) -> _Gas:
    """The gas on points, of unknown velocity along the flowing axes or of a given one.

    points: momenta (3, n) [GeV] and weights [fm^-3]; charges: species present and their charges.
    """
    (p, weight), (present, q) = points, charges
    v = np.zeros(3) if velocity is None else velocity
    axes = np.zeros(3, dtype=bool) if flowing is None else flowing
    p2 = (p**2).sum(axis=0)
    if not axes.any() and not v.any():  # only |p| matters: one point for all nodes with the same
        unit = 1e-12 * max(p2.max(), 1e-300)
        _, first, group = np.unique(np.round(p2 / unit), return_index=True, return_inverse=True)
        p, p2, weight = p[:, first], p2[first], np.bincount(group, weight).astype(float)
    n, eta = model.degeneracy[present], model.statistics[present]
    return _Gas(p[axes], p2, v @ p, weight, n, eta, q, float(1 / np.sqrt(1 - v @ v)), mode)


def _nodes(grid: PhaseSpace) -> tuple[Array, Array]:
    """Momenta (3, n) [GeV] and weights [fm^-3] of the nodes."""
    return grid.momenta, np.full(grid.size, grid.measure)


def _resolved(grid: PhaseSpace, centre: Array) -> tuple[Array, Array]:
    """The same with the cells near ``centre`` resolved."""
    cell, points, share = _refine(grid, centre)
    others = np.setdiff1d(np.arange(grid.size), cell)
    share = np.concatenate([np.ones(len(others)), share])
    return np.concatenate([grid.momenta[:, others], points], axis=1), grid.measure * share


def _cold_start(gas: _Gas, number: float, energy: float) -> Array:
    """A dilute gas at rest: inside the domain of every statistics."""
    beta = 3 * number / energy
    alpha = np.linalg.lstsq(gas.charges.T, -np.ones(gas.charges.shape[1]), rcond=None)[0]
    return np.array([beta, *np.zeros(len(gas.momenta)), *alpha])


def _state(
    grid: PhaseSpace,
    model: Model,
    temperature: float,
    potentials: tuple[NDArray[np.intp], Array],
    velocity: Array,
    mass_squared: Array,
) -> Equilibrium:
    """The state with these parameters; potentials: species present and their mu/T."""
    mu = np.full(len(model.species), np.nan)
    mu[potentials[0]] = temperature * potentials[1]
    f = thermal(grid, model, temperature, mu, velocity, mass_squared)
    return Equilibrium(float(temperature), mu, velocity, np.array(mass_squared), 0.0, f, True)


def _velocity(theta: Array, flowing: NDArray[np.bool_]) -> Array:
    """v (3) from beta v of the flowing axes."""
    velocity = np.zeros(3)
    velocity[flowing] = theta[1 : 1 + flowing.sum()] / theta[0]
    return velocity


# --- states -------------------------------------------------------------------------------------


def local(
    grid: PhaseSpace,
    model: Model,
    f: Array,
    mass_squared: Array,
    start: Equilibrium | None = None,
) -> Equilibrium:
    """The thermal state with the same number of each species, momentum and kinetic energy.

    Masses are frozen and no condensate is split off. ``start``: the state of a similar f.
    """
    sums = model.degeneracy * f.sum(axis=1) * grid.measure
    present = np.flatnonzero(sums > 0)
    if len(present) == 0 or not np.isfinite(sums).all():
        return _nowhere(grid, model)
    energy = kinetic_energy(grid, model, f, mass_squared)
    momentum = grid.momenta @ (model.degeneracy @ f) * grid.measure
    flowing = abs(momentum) > NO_FLOW * energy
    gas = _gas(_nodes(grid), model, (present, np.eye(len(present))), flowing)
    m2 = np.asarray(mass_squared, float)[present]
    target = np.array([energy, *-momentum[flowing], *-sums[present]])
    theta = None
    if start is not None and np.isfinite(start.chemical_potential[present]).all():
        beta = 1 / start.temperature
        guess = [1.0, *start.velocity[flowing], *start.chemical_potential[present]]
        theta = gas.newton(m2, target, beta * np.array(guess))
    if theta is None:
        theta = gas.newton(m2, target, _cold_start(gas, sums.sum(), energy))
    if theta is None:
        return _nowhere(grid, model)
    velocity, potentials = _velocity(theta, flowing), (present, gas.potentials(theta))
    return _state(grid, model, 1 / theta[0], potentials, velocity, mass_squared)


def _reachable(model: Model, numbers: Array) -> tuple[NDArray[np.intp], Array]:
    """Species that are there or can be produced, and a basis of the charges they conserve.

    A process runs once both species of one side are there; processes that never run conserve
    more than the model's charges, so the null space of the others completes the basis.
    """
    there = np.asarray(numbers) > 0
    sides = [[model.index(leg) for leg in p.legs] for p in model.processes]
    for _ in model.species:
        for a, b, c, d in sides:
            if (there[a] and there[b]) or (there[c] and there[d]):
                there[[a, b, c, d]] = True
    present = np.flatnonzero(there)
    running = np.array([there[legs].all() for legs in sides], dtype=bool)
    table = model.stoichiometry[running][:, present].astype(float)
    _, values, rows = np.linalg.svd(np.vstack([table, np.zeros((1, len(present)))]))
    rank = int((values > 1e-9 * max(1.0, values.max(initial=0))).sum())
    named = np.array(list(model.conserved.values()), dtype=float)[:, present]
    basis = np.zeros((0, len(present)))
    for vector in np.vstack([named, rows[rank:]]):
        if np.linalg.matrix_rank(np.vstack([basis, vector]), tol=1e-6) > len(basis):
            basis = np.vstack([basis, vector])
    return present, basis


@dataclass(frozen=True)
class _Conserved:
    """What the final state must have, for the species present."""

    present: NDArray[np.intp]
    charges: Array  # (charges, present)
    densities: Array  # (charges) [fm^-3]
    momentum: Array  # (3) [GeV fm^-3]
    energy: float  # total [GeV fm^-3]
    number: float  # [fm^-3], an estimate if not conserved

    @property
    def flowing(self) -> NDArray[np.bool_]:
        return abs(self.momentum) > NO_FLOW * abs(self.energy)

    def solve(self, grid: PhaseSpace, model: Model, gas: _Gas, y: Array, drift: Array, start):
        """theta and Y (species) of the gas with the masses that y [GeV^2] gives, or None.

        Total energy at fixed f is stationary in the masses, so E_total + y.K.y/4 is the energy
        of the particles also while y is a little off.
        """
        m2 = model.mass_squared(y)[self.present]
        if (m2 < 0).any():
            return None
        energy = self.energy + 0.25 * y @ model.mass_coupling @ y / HBARC**3
        energy -= drift @ self.momentum
        sought = self.flowing if len(gas.momenta) else np.zeros(3, dtype=bool)
        target = np.array([energy, *-self.momentum[sought], *-self.densities])
        theta = None if start is None else gas.newton(m2, target, start)
        if theta is None:
            theta = gas.newton(m2, target, _cold_start(gas, self.number, self.energy))
        if theta is None:
            return None
        new = np.zeros_like(y)
        if model.mass_coupling.any():
            new[self.present] = gas.coupling_integrals(m2, theta, grid.rest_inverse_energy)
        return theta, new


def _fixed_point(image: Callable, z: Array, positive: int, tolerance: float):
    """What image(z) -> (z', result) gives where z' = z, or None; Anderson's acceleration.

    image(z) may be None (masses too heavy for the energy): then back towards the last good z.
    The first ``positive`` entries of z stay positive. Where rounding or the mesh hides the
    tolerance, the best of several tries that do not improve is taken.
    """
    good, failures, best, stale = np.zeros_like(z), 0, (np.inf, None), 0
    tried: list[Array] = []
    missed: list[Array] = []
    while failures <= 12 and stale <= 12:
        answer = image(z)
        if answer is None:
            if (z == good).all():
                break
            z, tried, missed, failures = 0.5 * (z + good), [], [], failures + 1
            continue
        new, result = answer
        miss = abs(new - z).max() / max(abs(new).max(), 1e-300)
        if miss <= tolerance:
            return result
        best, stale = ((miss, result), 0) if miss < 0.5 * best[0] else (best, stale + 1)
        good, tried, missed = z, [*tried[-5:], z], [*missed[-5:], new - z]
        z = _anderson(tried, missed)
        z[:positive] = np.maximum(z[:positive], 0.1 * good[:positive])
    return best[1] if best[0] <= 1e-5 else None


def _on_nodes(grid: PhaseSpace, model: Model, given: _Conserved, gas: _Gas, y: Array):
    """theta and Y of the state whose masses are those of its own Y, or None."""
    theta = None

    def image(y):
        nonlocal theta
        solved = given.solve(grid, model, gas, y, np.zeros(3), theta)
        if solved is None:
            return None
        theta = solved[0]
        return solved[1], solved

    return _fixed_point(image, y if model.mass_coupling.any() else 0 * y, len(y), 1e-13)


def _anderson(tried: list[Array], missed: list[Array]) -> Array:
    """The next point of a fixed-point iteration from its last points and residuals."""
    x, r = np.array(tried), np.array(missed)
    dx, dr = np.diff(x, axis=0).T, np.diff(r, axis=0).T
    if dr.shape[1] == 0:
        return x[-1] + 0.5 * r[-1]
    mix = np.linalg.lstsq(dr, r[-1], rcond=1e-10)[0]
    return x[-1] + r[-1] - (dx + dr) @ mix


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
    number = numbers.sum()
    if not (number > 0 and energy_total > 0):
        return _nowhere(grid, model)
    present, charges = _reachable(model, numbers)
    densities = charges @ numbers[present]
    given = _Conserved(present, charges, densities, momentum, float(energy_total), number)
    gas = _gas(_nodes(grid), model, (present, charges), given.flowing)
    y = np.zeros(len(model.species))
    share = model.degeneracy[present] / model.degeneracy[present].sum()
    y[present] = 0.5 * share * number**2 / energy_total * HBARC**3
    solved = _on_nodes(grid, model, given, gas, y)
    if solved is None:
        return _nowhere(grid, model)
    theta, y = solved
    velocity, potentials = _velocity(theta, given.flowing), (present, gas.potentials(theta))
    state = _state(grid, model, 1 / theta[0], potentials, velocity, model.mass_squared(y))
    boson = _softest_boson(model, state)
    if boson is None or not _crowded(grid, model, state, boson, number):
        return state
    return _with_condensate(grid, model, given, state, boson, y) or state


def _softest_boson(model: Model, state: Equilibrium) -> int | None:
    """The boson whose mu is closest to m/gamma, the least E - v.p in unlimited space."""
    v2 = state.velocity @ state.velocity
    if state.temperature <= 0 or v2 >= 1:
        return None
    gap = np.sqrt(state.mass_squared * (1 - v2)) - state.chemical_potential
    gap[(model.statistics != 1) | np.isnan(gap)] = np.inf
    return int(gap.argmin()) if np.isfinite(gap.min()) else None


def _crowded(grid: PhaseSpace, model: Model, state: Equilibrium, boson: int, number: float) -> bool:
    """Whether mu is past m/gamma, or below it only because one node holds a good part of all."""
    v2 = state.velocity @ state.velocity
    if state.chemical_potential[boson] >= np.sqrt(state.mass_squared[boson] * (1 - v2)):
        return True
    most = model.degeneracy[boson] * state.f[boson].max() * grid.measure
    return bool(most > 1e-3 * number)


def _with_condensate(
    grid: PhaseSpace, model: Model, given: _Conserved, state: Equilibrium, boson: int, y: Array
) -> Equilibrium | None:
    """The state with mu = m/gamma and a condensate; None if it needs none, NaN if undecided.

    Soft cells count with their averages, so that what they can hold does not depend on where
    the nodes lie; the surplus goes into one state per boson at rest in the fluid. The velocity
    is iterated with the masses: the singular momentum stays put while the rest is solved.
    """
    n, present, flowing = len(y), given.present, given.flowing
    start = None

    def image(z):
        nonlocal start
        y, velocity = z[:n], np.zeros(3)
        velocity[flowing] = z[n:]
        m2 = model.mass_squared(y)
        if velocity @ velocity >= 1 or m2[boson] < 0:
            return None
        points = _resolved(grid, _soft_point(velocity, m2[boson]))
        mode = MODE_WEIGHT * given.number
        gas = _gas(points, model, (present, given.charges), velocity=velocity, mode=mode)
        solved = given.solve(grid, model, gas, y, velocity, start)
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
    found = _fixed_point(image, z, n, 1e-6 if flowing.any() else 1e-9)
    if found is None:
        return replace(state, condensate_fraction=np.nan)
    gas, theta, m2, velocity, condensed = found
    fraction = condensed.sum() / given.number
    if fraction < LEAST_CONDENSATE:
        return None
    potentials = (present, gas.potentials(theta))
    state = _state(grid, model, 1 / theta[0], potentials, velocity, m2)
    centre, mu = _soft_point(velocity, m2[boson]), state.chemical_potential
    for a in present:
        cells, average = _soft_cells(
            grid, centre, state.temperature, mu[a], velocity, m2[a], model.statistics[a]
        )
        state.f[a, cells] = average
    return replace(state, condensate_fraction=float(fraction))


def _soft_point(velocity: Array, m2: float) -> Array:
    """gamma m v: the momentum of a particle at rest in the fluid [GeV]."""
    return np.sqrt(m2 / (1 - velocity @ velocity)) * velocity


def temperature_without_number(grid: PhaseSpace, model: Model, energy_total: float) -> float:
    """T [GeV] of the same total energy [GeV fm^-3] at rest if all mu were 0; NaN if none."""
    present, none = np.arange(len(model.species)), np.zeros(0)
    if not energy_total > 0:
        return np.nan
    scale = (30 * energy_total * HBARC**3 / (np.pi**2 * model.degeneracy.sum())) ** 0.25
    charges = np.zeros((0, len(present)))
    number = energy_total / (3 * scale)
    given = _Conserved(present, charges, none, np.zeros(3), float(energy_total), number)
    points = _nodes(grid)
    if ((model.statistics == 1) & (model.mass_squared(np.ones(len(present))) == 0)).any():
        # A massless boson at mu = 0 has no finite f at p = 0.
        points = _resolved(grid, np.zeros(3))
    gas = _gas(points, model, (present, charges))
    y = model.degeneracy * scale**2 / 24
    solved = _on_nodes(grid, model, given, gas, y)
    return np.nan if solved is None else float(1 / solved[0][0])


def edge_loss(grid: PhaseSpace, model: Model, equilibrium: Equilibrium) -> float:
    """Share of the state that would lie outside the box: the larger of number and energy.

    Sums over a lattice of 48^3 nodes that holds the box and the tail; 1 if the state has no
    continuation outside (T < 0), NaN if there is no state. A condensate is left out.
    """
    state = equilibrium
    if not state.found:
        return np.nan
    v2 = state.velocity @ state.velocity
    if state.temperature <= 0 or v2 >= 1:
        return 1.0
    heaviest = np.sqrt(state.mass_squared.max())
    reach = 14 * state.temperature + np.sqrt(28 * state.temperature * heaviest)
    reach *= np.sqrt((1 + np.sqrt(v2)) / (1 - np.sqrt(v2)))
    ratios = np.array([2, 3, 4, 6, 8, 12, 24])  # faces of the box stay faces of the lattice
    widths = np.array(grid.momentum_max)
    ratio = ratios[np.minimum(np.searchsorted(ratios, reach / widths), len(ratios) - 1)]
    lattice = PhaseSpace(48, widths * ratio)
    limit = np.where(model.statistics == 1, np.sqrt(state.mass_squared * (1 - v2)), np.inf)
    mu = np.minimum(state.chemical_potential, limit)
    f = thermal(lattice, model, state.temperature, mu, state.velocity, state.mass_squared)
    outside = (abs(lattice.momenta) > widths[:, None]).any(axis=0)
    density = model.degeneracy[:, None] * f
    energy = density * np.array([lattice.energies(m2) for m2 in state.mass_squared])
    return float(max(q[:, outside].sum() / q.sum() for q in (density, energy)))
