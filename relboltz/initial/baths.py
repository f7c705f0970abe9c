"""Thermal initial conditions, and the base class of all states with a temperature."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import SMALLEST
from ..model.model import Species
from ..thermodynamics.gas import fluid_energy, occupation
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import shown
from .shapes import MOST, RANGE, Shape, is_momentum, mirror_classes, place

THERMAL_POINTS = 4
"""Gauss-Legendre points per axis; an even number, so that p = 0 is never a point."""


@dataclass(frozen=True)
class ThermalShape(Shape):
    """Base class of states f = 1 / (exp((E - mu) / T) - eta) with some energy E(p)."""

    temperature: float
    chemical_potential: float = 0.0

    def _check(self) -> None:
        self._number("temperature", is_momentum, f"a temperature is above 0 GeV{RANGE}")
        self._number("chemical_potential", math.isfinite, f"use a number of GeV{MOST}")

    def _energy(self, p: tuple[Array, Array, Array], m2: float) -> Array:
        """Return E at the momenta [GeV]."""
        raise NotImplementedError

    def _exchanged(self) -> int:
        """Return how many of the first axes can be exchanged in E; 0 if E has no symmetry."""
        return 3

    def scaled(self, factor: float) -> "ThermalShape":
        """Return a copy without a profile and with T multiplied by the factor."""
        lowest = max(factor * self.temperature, SMALLEST)
        return replace(self, temperature=lowest, profile=None)

    def floor(self, species: Species) -> float:
        """Return the m^2 [GeV^2] that a boson must exceed at this chemical potential."""
        if species.statistics != 1 or self.chemical_potential <= 0:
            return 0.0
        return self.chemical_potential**2

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        mass = math.sqrt(m2)
        if species.statistics == 1 and self.chemical_potential > mass:
            raise InputError(
                f"chemical_potential = {self.chemical_potential:g}: must stay below the mass "
                f"{mass:.6g} GeV of the boson {species.name}; lower it or choose a larger mass"
            )

        def f(px: Array, py: Array, pz: Array) -> Array:
            x = self._energy((px, py, pz), m2) - self.chemical_potential
            if species.statistics == 1 and (x <= 0).any():
                p = np.array([px, py, pz])[:, x.argmin()]
                raise InputError(
                    f"chemical_potential = {self.chemical_potential:g}: the Bose distribution of "
                    f"{species.name} is infinite at {place(p)}; lower it, use sampling = 'cell', "
                    "or an even number of cells, which has no node at p = 0"
                )
            return occupation(x / self.temperature, species.statistics)

        if not self._exchanged():
            return self._sampled(f, grid.momenta, grid, THERMAL_POINTS)
        centres, classes = mirror_classes(grid, self._exchanged())
        found = self._averages(centres, grid, species, m2)
        if found is None:
            found = self._sampled(f, centres, grid, THERMAL_POINTS)
        return found[classes]

    def _averages(
        self, centres: Array, grid: PhaseSpace, species: Species, m2: float
    ) -> Array | None:
        """Return averages over cells from compiled code; None if there is none or f is infinite."""
        return None

    def extent(self) -> float:
        return 12 * self.temperature + max(self.chemical_potential, 0.0)


@dataclass(frozen=True)
class Thermal(ThermalShape):
    """f = 1 / (exp((u . p - mu) / T) - eta): equilibrium with flow, u . p = gamma (E - v . p).

    ``temperature`` T and ``chemical_potential`` mu [GeV] refer to the fluid rest frame;
    ``velocity`` v is the velocity of the fluid.

    Only with ``sampling="node"`` is this an exact fixed point of the collisions on the grid. The
    cell average has the right densities, but differs from equilibrium on the nodes by O(h^2).
    """

    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def _check(self) -> None:
        super()._check()
        remedy = "use three numbers, with a length below 1 (the speed of light)"
        if not isinstance(self.velocity, list | tuple | np.ndarray):
            raise InputError(f"velocity = {shown(self.velocity)}: {remedy}")
        self._number("velocity", math.isfinite, remedy, three=True)
        if math.hypot(*self.velocity) >= 1:
            raise InputError(f"velocity = {list(self.velocity)}: {remedy}")

    def _energy(self, p: tuple[Array, Array, Array], m2: float) -> Array:
        return fluid_energy(p, m2, self.velocity)

    def _exchanged(self) -> int:
        return 0 if any(self.velocity) else 3

    def extent(self) -> float:
        return super().extent() / (1 - math.hypot(*self.velocity))
