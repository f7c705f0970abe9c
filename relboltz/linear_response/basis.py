"""Trial functions of all species, sources of gradients, and conserved functions.

A function of one rank is a table of coefficients: power of E/T -> one number for each species.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..util.arrays import Array
from .reference_state import ORDERS, ReferenceState

Function = dict[float, Array]
"""Coefficients (species) by power of E/T."""
NOTHING = 1e-9
"""Relative size below which a source is rounding and is set exactly to zero."""


@dataclass(frozen=True)
class Basis:
    """Functions tensor x (E/T)^k of every species of a state, ordered by species."""

    state: ReferenceState
    rank: str
    powers: tuple[float, ...]
    species: tuple[int, ...]
    weight: Array | None = None
    """Weight (species, points) that replaces N f F, for tagged particles."""

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.powers) * len(self.species)

    def _moments(self, power: float) -> Array:
        return self.state.moment(self.rank, power, self.weight)[list(self.species)]

    def bounded(self) -> Array:
        """Return which functions have a norm; some diverge for massless bosons at mu = 0."""
        state, powers = self.state, np.array(self.powers)
        soft = (state.model.statistics == 1) & (state.mass_squared == 0)
        soft &= state.chemical_potential == 0
        diverges = 2 * (powers + ORDERS[self.rank]) <= -1
        return ~np.outer(soft[list(self.species)], diverges).ravel()

    def gram(self) -> Array:
        """Return (phi_i, phi_j); 0 for functions without a norm."""
        many = len(self.powers)
        result = np.zeros((self.size, self.size))
        for i, k in enumerate(self.powers):
            for j, m in enumerate(self.powers):
                for a, value in enumerate(self._moments(k + m)):
                    result[a * many + i, a * many + j] = value
        normed = self.bounded()
        return result * normed * normed[:, None]

    def products(self, function: Function) -> Array:
        """Return (phi_i, function)."""
        many = len(self.powers)
        result = np.zeros(self.size)
        for power, coefficients in function.items():
            for i, k in enumerate(self.powers):
                result[i::many] += coefficients[list(self.species)] * self._moments(k + power)
        return result

    def coefficients(self, function: Function) -> Array | None:
        """Return the coefficients of a function in this basis; None if it is not in its span."""
        many = len(self.powers)
        result = np.zeros(self.size)
        for power, coefficients in function.items():
            if power not in self.powers:
                return None
            result[self.powers.index(power) :: many] += coefficients[list(self.species)]
        return result

    def first(self, count: int) -> tuple[Basis, Array]:
        """Return the basis with the first ``count`` powers, and its positions in this basis."""
        where = [a * len(self.powers) + i for a in range(len(self.species)) for i in range(count)]
        smaller = Basis(self.state, self.rank, self.powers[:count], self.species, self.weight)
        return smaller, np.array(where)


def product(state: ReferenceState, rank: str, one: Function, other: Function) -> float:
    """Return (one, other) of two functions of a rank [GeV^3 times their units]."""
    return float(
        sum(
            (c * d * state.moment(rank, k + m)).sum()
            for k, c in one.items()
            for m, d in other.items()
        )
    )


def conserved(state: ReferenceState, rank: str, charges: Array) -> list[Function]:
    """Return the functions conserved by every collision: momentum; energy and charges."""
    ones = np.ones(len(state.model.species))
    if rank == "vector":
        return [{0.0: ones}]
    if rank == "scalar":
        return [{1.0: ones}, *({0.0: row} for row in charges)]
    return []


def _norms(state: ReferenceState, rank: str, functions: list[Function]) -> Array:
    norms = np.sqrt([product(state, rank, f, f) for f in functions])
    return np.where(norms > 0, norms, 1.0)


def orthogonal(
    state: ReferenceState, rank: str, function: Function, to: list[Function], by: list[Function]
) -> Function:
    """Subtract a combination of ``by`` that makes the function orthogonal to all of ``to``."""
    matrix = np.array([[product(state, rank, z, b) for b in by] for z in to])
    right = np.array([product(state, rank, z, function) for z in to])
    rows, columns = (_norms(state, rank, some) for some in (to, by))  # charges may be very dilute
    parts = np.linalg.lstsq(matrix / np.outer(rows, columns), right / rows, rcond=None)[0] / columns
    result = dict(function)
    for part, b in zip(parts, by, strict=True):
        for power, row in b.items():
            result[power] = result.get(power, np.zeros_like(row)) - part * row
    left, before = product(state, rank, result, result), product(state, rank, function, function)
    if left <= NOTHING**2 * before:
        return {power: np.zeros_like(row) for power, row in result.items()}
    return result


def shear_source(state: ReferenceState) -> Function:
    """Return the source p_x p_y/E [GeV]."""
    return {-1.0: np.full(len(state.model.species), state.temperature)}


def charge_source(state: ReferenceState, charge: Array) -> Function:
    """Return p_x [q/E - n/(e + P)], orthogonal to the momentum, which fixes n/(e + P)."""
    momentum = conserved(state, "vector", charge[None])
    return orthogonal(state, "vector", {-1.0: charge}, momentum, momentum)


def bulk_source(state: ReferenceState, charges: Array) -> Function:
    """Return p^2/(3 E) - P_e [E - (T/2E) dm^2/dT] - Sum_c P_c [q_c - dm^2/d(mu_c/T)/(2 T E)] [GeV].

    The source is orthogonal to energy and charges, which fixes P_e = dP/de and P_c = dP/dn_c.
    """
    t, m2 = state.temperature, state.mass_squared
    ones = np.ones(len(m2))
    by_t, by_alpha = state.mass_slopes(charges)
    pressure = {1.0: t * ones / 3, -1.0: -m2 / (3 * t)}
    change = [{1.0: t * ones, -1.0: -by_t / 2}]
    change += [
        {0.0: q, -1.0: -slope / (2 * t**2)} for q, slope in zip(charges, by_alpha, strict=True)
    ]
    return orthogonal(state, "scalar", pressure, conserved(state, "scalar", charges), change)
