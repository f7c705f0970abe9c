"""Thermal states to linearise around, on radii of unlimited momentum space or on nodes.

All quantities are in powers of GeV: sums over d^3p/(2 pi)^3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import HBARC
from ..model.gap_equation import field_energy
from ..model.model import Model
from ..thermodynamics.conserved import fixed_point
from ..thermodynamics.gas import occupation
from ..thermodynamics.radii import gauss, radii
from ..thermodynamics.states import thermal
from ..util.arrays import Array
from ..util.errors import InputError

GAUSS = 400
"""Points of a radial integral, or of one of its parts."""
SHARP = 30.0
"""Momentum scale, in units of T, resolved by one part: Fermi surfaces are T wide."""
ORDERS = {"shear": 2, "axes": 2, "planes": 2, "vector": 1, "scalar": 0}
"""Number of momenta in the tensor of a trial function."""
EXTREME, SHARPEST = 300.0, 1000.0
"""Largest |mu - m|/T: in general, so that f f is representable; and for dense fermions, so that
their Fermi surface is resolved.
"""
COMPONENTS = {"shear": 10.0, "axes": 4.0, "planes": 6.0, "vector": 3.0, "scalar": 1.0}
"""Sum over components, in units of the single component p_x p_y, p_x or 1 of the source."""


@dataclass(frozen=True)
class MomentumPoints:
    """Momenta at which a state is summed, with weights and squares of tensors."""

    p2: Array  # [GeV^2]
    weight: Array  # d^3p/(2 pi)^3 [GeV^3]
    squares: dict[str, Array]
    """Square of the tensor of each rank, summed over its components, in GeV^2, GeV^4."""
    grid: PhaseSpace | None = None

    @classmethod
    def free(cls, scale: float, parts: int = 1) -> MomentumPoints:
        """Return radii of unlimited momentum space, dense at 0; scale [GeV] of the momenta."""
        x, w = gauss(GAUSS)
        x, w = ((x + np.arange(parts)[:, None]) / parts).ravel(), np.tile(w / parts, parts)
        p, slope = radii(x, scale)
        p2 = p * p
        squares = {"shear": 2 / 3 * p2 * p2, "vector": p2, "scalar": np.ones_like(p)}
        return cls(p2, p2 * slope * w / (2 * np.pi**2), squares)

    @classmethod
    def around(cls, temperature: float, mu: Array, constant_mass_squared: Array) -> MomentumPoints:
        """Return radii that resolve a state."""
        scale = scale_of(temperature, mu, constant_mass_squared)
        return cls.free(scale, int(np.ceil(scale / (SHARP * temperature))))

    @classmethod
    def nodes(cls, grid: PhaseSpace) -> MomentumPoints:
        """Return the nodes of a grid."""
        p2, fourth = grid.momentum_squared, (grid.momenta**4).sum(axis=0)
        squares = {  # as in events.brackets for two legs
            "axes": fourth - p2 * p2 / 3, "planes": p2 * p2 - fourth,
            "vector": p2, "scalar": np.ones_like(p2),
        }  # fmt: skip
        weight = np.full(grid.size, grid.cell_volume / (2 * np.pi) ** 3)
        return cls(p2, weight, squares, grid)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Ranks of the trial functions, in the order of the kernels."""
        return tuple(self.squares)

    def energies(self, m2: float) -> Array:
        """Return E at the points; for a massless particle at rest, the average over its cell."""
        e = np.sqrt(self.p2 + m2)
        return e if self.grid is None else np.where(e > 0, e, 1 / self.grid.rest_inverse_energy)


@dataclass(frozen=True)
class ReferenceState:
    """f = 1/(exp((E - mu)/T) - eta) of every species, with self-consistent masses."""

    model: Model
    points: MomentumPoints
    temperature: float  # [GeV]
    chemical_potential: Array  # (species) [GeV]
    mass_squared: Array  # (species) [GeV^2]
    screening2: Array  # of ``Model.screenings`` [GeV^2]
    y: Array  # N Int f/E (species) [GeV^2]
    f: Array  # (species, points)

    @classmethod
    def of(
        cls, model: Model, points: MomentumPoints, temperature: float, mu: Array
    ) -> ReferenceState:
        """Return the state at this temperature and these potentials, with its own masses."""
        _check_density(model, temperature, mu, model.constant_mass_squared)

        def occupations(m2: Array) -> Array | None:
            bosons = model.statistics == 1
            if (mu[bosons] > np.sqrt(m2[bosons])).any():
                return None
            if points.grid is not None:
                return thermal(points.grid, model, temperature, mu, np.zeros(3), m2)
            energy = np.sqrt(points.p2 + m2[:, None])
            rows = zip((energy - mu[:, None]) / temperature, model.statistics, strict=True)
            return np.array([occupation(x, int(eta)) for x, eta in rows])

        def image(y: Array) -> tuple[Array, tuple[Array, Array, Array]] | None:
            m2 = model.mass_squared(y)
            f = None if (m2 < 0).any() else occupations(m2)
            if f is None:
                return None
            inverse = np.array([1 / points.energies(float(m)) for m in m2])
            new = model.degeneracy * ((f * inverse) @ points.weight)
            used = new if model.mass_coupling.any() else 0 * new
            return used, (m2, new, f)

        first = model.degeneracy * temperature**2 / 24
        for _ in range(40):  # heavy enough for bosons with these potentials
            if not model.mass_coupling.any() or image(first) is not None:
                break
            first *= 1.5
        found = fixed_point(
            image, first if model.mass_coupling.any() else 0 * first, len(mu), 1e-13
        )
        if found is None:
            raise InputError(_no_state(model, temperature, mu))
        m2, y, f = found
        bosons = (model.statistics == 1) & (mu >= np.sqrt(m2)) & (mu != 0)
        if bosons.any():
            raise InputError(_no_state(model, temperature, mu))
        _check_density(model, temperature, mu, m2, rare=True)
        return cls(model, points, temperature, mu, m2, model.screening_squared(y), y, f)

    @cached_property
    def energy(self) -> Array:
        """E (species, points) [GeV]."""
        return np.array([self.points.energies(float(m2)) for m2 in self.mass_squared])

    @cached_property
    def fluctuation(self) -> Array:
        """N f F times the weight of the points (species, points) [GeV^3]."""
        model = self.model
        full = 1 + model.statistics[:, None] * self.f
        return np.asarray(model.degeneracy[:, None] * self.points.weight * self.f * full)

    @cached_property
    def density(self) -> Array:
        """N f times the weight of the points (species, points) [GeV^3]."""
        return np.asarray(self.model.degeneracy[:, None] * self.points.weight * self.f)

    def moment(self, rank: str, power: float, weight: Array | None = None) -> Array:
        """Return Int N f F tensor^2 (E/T)^power (species), momenta in units of T [GeV^3].

        weight : replaces N f F times the weight of the points
        """
        t = self.temperature
        tensor2 = self.points.squares[rank] / t ** (2 * ORDERS[rank])
        weight = self.fluctuation if weight is None else weight
        return np.asarray((weight * tensor2 * (self.energy / t) ** power).sum(axis=1))

    # -- thermodynamics --------------------------------------------------------------------------

    @property
    def numbers(self) -> Array:
        """Density by species [GeV^3]."""
        return np.asarray(self.density.sum(axis=1))

    @property
    def energy_density(self) -> float:
        """Energy density including the mean field [GeV^4]."""
        return float((self.density * self.energy).sum()) + self._field

    @property
    def pressure(self) -> float:
        """Pressure including the mean field [GeV^4]."""
        return float((self.density * self.points.p2 / self.energy).sum()) / 3 - self._field

    @property
    def _field(self) -> float:
        return float(field_energy(self.model, self.mass_squared, self.y)) * HBARC**3

    @property
    def entropy(self) -> float:
        """Entropy density of the particles, -f ln f + eta F ln F (+ f if classical) [GeV^3]."""
        eta = self.model.statistics[:, None]
        full = 1 + eta * self.f
        with np.errstate(divide="ignore", invalid="ignore"):
            lost = np.where(self.f > 0, self.f * np.log(self.f), 0.0)
            kept = np.where((eta != 0) & (full > 0), eta * full * np.log(full), 0.0)
        each = kept - lost + np.where(eta == 0, self.f, 0.0)
        return float((self.model.degeneracy[:, None] * self.points.weight * each).sum())

    def mass_slopes(self, charges: Array) -> tuple[Array, Array]:
        """Return d m^2/dT at fixed mu/T [GeV] and d m^2/d(mu/T) (charges, species)."""
        n, t = len(self.model.species), self.temperature
        if not self.model.mass_coupling.any():
            return np.zeros(n), np.zeros((len(charges), n))
        couples = self.model.mass_coupling.any(axis=1)
        by_t = self.fluctuation.sum(axis=1) / t**2
        by_alpha = (self.fluctuation / self.energy).sum(axis=1)
        by_mass = -0.5 * (
            self.fluctuation / (t * self.energy**2) + self.density / self.energy**3
        ).sum(axis=1)
        by_mass = np.where(couples, by_mass, 0.0)
        coupling = self.model.mass_coupling
        sources = np.vstack([by_t, charges * by_alpha])
        slopes = np.linalg.solve(np.eye(n) - coupling * by_mass, coupling @ sources.T).T
        return slopes[0], slopes[1:]


def scale_of(temperature: float, mu: Array, constant_mass_squared: Array) -> float:
    """Return a typical momentum [GeV] of a state."""
    return 3 * temperature + max(float((mu - np.sqrt(constant_mass_squared)).max()), 0.0)


def _check_density(
    model: Model, temperature: float, mu: Array, m2: Array, *, rare: bool = False
) -> None:
    """Raise InputError if f is not representable or is a step function."""
    for name, eta, x in zip(
        model.names, model.statistics, (mu - np.sqrt(m2)) / temperature, strict=True
    ):
        if x > (SHARPEST if eta == -1 else EXTREME) or (rare and x < -EXTREME):
            raise InputError(
                f"chemical_potential of {name}: (mu - m)/T = {x:.6g}: use one from {-EXTREME:g} to "
                f"{EXTREME:g} ({SHARPEST:g} for fermions)"
            )


def _no_state(model: Model, temperature: float, mu: Array) -> str:
    values = ", ".join(f"{n} {v:.6g}" for n, v in zip(model.names, mu, strict=True))
    return (
        f"chemical_potential = {values} GeV at T = {temperature:.6g} GeV: there is no equilibrium "
        "(bosons need mu below their mass); lower it"
    )
