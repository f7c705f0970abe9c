"""Conserved quantities of a final state, and its self-consistent masses."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..grid.units import HBARC
from ..model.model import Model
from ..util.arrays import Array, Flags
from .gas import Gas, Indices, cold_start

Solved = tuple[Array, Array]
"""theta and Y."""
Image = Callable[[Array], tuple[Array, Any] | None]
NO_FLOW = 1e-13
"""|P_i| / E below which a component of the momentum counts as exactly 0."""
MODE_WEIGHT = 1e-8
"""Weight of a condensate's mode relative to the number of particles: keeps mu this close to m."""


def _there(model: Model, numbers: Array) -> Flags:
    """Return the species that are present or can be produced.

    A process runs once all species on one side of it are present.
    """
    there = np.asarray(numbers) > 0
    sides = [[[model.index(leg) for leg in side] for side in p.sides] for p in model.processes]
    for _ in model.species:
        for incoming, outgoing in sides:
            if there[incoming].all() or there[outgoing].all():
                there[incoming + outgoing] = True
    return there


def running(model: Model, numbers: Array) -> Flags:
    """Return the processes that can ever run: all their species are present or can be produced."""
    there = _there(model, numbers)
    legs = [[model.index(leg) for leg in process.legs] for process in model.processes]
    return np.array([there[some].all() for some in legs], dtype=bool)


def reachable(model: Model, numbers: Array) -> tuple[Indices, Array]:
    """Return the species present or produced, and a basis of the charges they conserve.

    If some processes never run, more than the model's charges is conserved; the null space of the
    remaining processes completes the basis.
    """
    there = _there(model, numbers)
    present = np.flatnonzero(there)
    table = model.stoichiometry[running(model, numbers)][:, present].astype(float)
    _, values, rows = np.linalg.svd(np.vstack([table, np.zeros((1, len(present)))]))
    rank = int((values > 1e-9 * max(1.0, values.max(initial=0))).sum())
    named = np.array(list(model.conserved.values()), dtype=float).reshape(-1, len(there))
    basis = np.zeros((0, len(present)))
    for vector in np.vstack([named[:, present], rows[rank:]]):
        if np.linalg.matrix_rank(np.vstack([basis, vector]), tol=1e-6) > len(basis):
            basis = np.vstack([basis, vector])
    return present, basis


@dataclass(frozen=True)
class ConservedTotals:
    """Conserved totals of the final state, for the species present."""

    present: Indices
    charges: Array  # (charges, present)
    densities: Array  # (charges) [fm^-3]
    momentum: Array  # (3) [GeV fm^-3]
    energy: float  # total [GeV fm^-3]
    number: float  # initial [fm^-3]: an estimate unless it is among the charges

    @classmethod
    def of(cls, model: Model, numbers: Array, momentum: Array, energy: float) -> "ConservedTotals":
        """Return the totals for given numbers of all species, momentum and energy."""
        present, charges = reachable(model, numbers)
        densities = charges @ numbers[present]
        return cls(present, charges, densities, momentum, float(energy), numbers.sum())

    def first_y(self, model: Model) -> Array:
        """Return an initial guess of Y (species) [GeV^2]: equal f, twice the mean energy."""
        y = np.zeros(len(model.species))
        share = model.degeneracy[self.present] / model.degeneracy[self.present].sum()
        y[self.present] = 0.5 * share * self.number**2 / self.energy * HBARC**3
        return y

    @property
    def flowing(self) -> Flags:
        return abs(self.momentum) > NO_FLOW * abs(self.energy)

    def solve(
        self, at_rest: float, model: Model, gas: Gas, y: Array, drift: Array, start: Array | None
    ) -> Solved | None:
        """Return theta and Y (species) of the gas with the masses from y [GeV^2], or None.

        Total energy at fixed f is stationary in the masses, so E_total + y.K.y/4 is the energy
        of the particles even if y is slightly off.
        """
        m2 = model.mass_squared(y)[self.present]
        if (m2 < 0).any():
            return None
        energy = self.energy + 0.25 * y @ model.mass_coupling @ y / HBARC**3
        energy -= drift @ self.momentum
        sought = self.flowing if len(gas.momenta) else np.zeros(3, dtype=bool)
        target = np.array([energy, *-self.momentum[sought], *-self.densities])
        theta = None if start is None else gas.newton(m2, target, start)
        if theta is None:  # the initial guess failed
            theta = gas.newton(m2, target, cold_start(gas, self.number, self.energy))
        if theta is None:
            return None
        new = np.zeros_like(y)
        if model.mass_coupling.any():
            new[self.present] = gas.coupling_integrals(m2, theta, at_rest)
        return theta, new


def fixed_point(image: Image, z: Array, positive: int, tolerance: float) -> Any:
    """Return result of image(z) -> (z', result) at z' = z, or None, by Anderson acceleration.

    If image(z) is None (masses too heavy for the energy), z moves back towards the last good z.
    The first ``positive`` entries of z stay positive. If rounding or the mesh prevents reaching the
    tolerance, the best of several iterations without improvement is returned.
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


def self_consistent(
    at_rest: float,
    model: Model,
    given: ConservedTotals,
    gas: Gas,
    y: Array,
    tolerance: float = 1e-13,
) -> Solved | None:
    """Return theta and Y of the state whose masses follow from its own Y, or None."""
    theta = None

    def image(y: Array) -> tuple[Array, Solved] | None:
        nonlocal theta
        solved = given.solve(at_rest, model, gas, y, np.zeros(3), theta)
        if solved is None:
            return None
        theta = solved[0]
        return solved[1], solved

    first = y if model.mass_coupling.any() else 0 * y
    found: Solved | None = fixed_point(image, first, len(y), tolerance)
    return found


def _anderson(tried: list[Array], missed: list[Array]) -> Array:
    """Return the next point of a fixed-point iteration from its last points and residuals."""
    x, r = np.array(tried), np.array(missed)
    dx, dr = np.diff(x, axis=0).T, np.diff(r, axis=0).T
    if dr.shape[1] == 0:
        return x[-1] + 0.5 * r[-1]
    mix = np.linalg.lstsq(dr, r[-1], rcond=1e-10)[0]
    return x[-1] + r[-1] - (dx + dr) @ mix
