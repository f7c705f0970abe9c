"""Anisotropic initial conditions for expanding matter: p_z differs from transverse momenta."""

import math
from dataclasses import dataclass

import numpy as np

from ..backends.cpu.averages import bath_averages
from ..grid.phase_space import PhaseSpace
from ..model.model import Species
from ..util.arrays import Array
from ..util.errors import InputError
from .baths import THERMAL_POINTS, ThermalShape
from .shapes import MOST, RANGE, Shape, cell_rule, is_momentum, mirror_classes

GLASMA_POINTS = 4
"""Gauss-Legendre points per axis of a momentum cell."""
NEAR = 4.0
"""Distance from q = 0, in spacings, within which cells use the exact average of 1/q."""


@dataclass(frozen=True)
class RomatschkeStrickland(ThermalShape):
    """f = 1 / (exp((E_xi - mu) / T) - eta) with E_xi^2 = p_T^2 + (1 + xi) p_z^2 + m^2.

    A thermal state squeezed along z (xi > 0: smaller p_z) or stretched (-1 < xi < 0).
    """

    xi: float = 0.0

    def _check(self) -> None:
        super()._check()
        self._number("xi", lambda v: v > -1, f"use a number above -1{MOST}")

    def _energy(self, p: tuple[Array, Array, Array], m2: float) -> Array:
        px, py, pz = p
        return np.sqrt(px**2 + py**2 + (1 + self.xi) * pz**2 + m2)

    def _exchanged(self) -> int:
        return 2 if self.xi else 3

    def _averages(
        self, centres: Array, grid: PhaseSpace, species: Species, m2: float
    ) -> Array | None:
        if self.sampling == "node":
            return None
        offsets, weights = cell_rule(THERMAL_POINTS)
        offsets = offsets * np.array(grid.spacing)[:, None]
        found = np.empty(centres.shape[1])
        legal = bath_averages(
            centres, offsets, weights, 1 + self.xi, m2, self.chemical_potential, self.temperature,
            float(species.statistics), found,
        )  # fmt: skip
        return found if legal else None

    def extent(self) -> float:
        return super().extent() * max(1.0, 1 / math.sqrt(1 + self.xi))


@dataclass(frozen=True)
class Glasma(Shape):
    """f = A (Q/q) exp(-2 q^2 / (3 Q^2)) with q^2 = p_T^2 + xi^2 p_z^2: decayed strong fields.

    ``amplitude`` A, ``scale`` Q [GeV]; xi > 1 squeezes p_z.
    """

    amplitude: float
    scale: float
    xi: float = 1.0

    def _check(self) -> None:
        self._number("amplitude", lambda v: v >= 0, f"a glasma has an amplitude A >= 0{MOST}")
        self._number("scale", is_momentum, f"a glasma has a scale Q above 0 GeV{RANGE}")
        self._number("xi", is_momentum, f"use a number above 0{RANGE}")

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        centres, classes = mirror_classes(grid, 3 if self.xi == 1 else 2)
        stretched = np.array([1.0, 1.0, self.xi])[:, None]
        if self.sampling == "node" and (centres == 0).all(axis=0).any():
            raise InputError(
                "shape = 'glasma': is infinite at p = 0; use sampling = 'cell', or an even number "
                "of cells, which has no node at p = 0"
            )
        widths = np.array(grid.spacing)[:, None] * stretched
        near = np.zeros(centres.shape[1], bool)
        if self.sampling == "cell":
            near = (centres * stretched < NEAR * widths).all(axis=0)
        f = np.empty(centres.shape[1])
        f[~near] = self._sampled(self._f, centres[:, ~near], grid, GLASMA_POINTS)
        smooth = self._sampled(self._bounded, centres[:, near], grid, GLASMA_POINTS)
        pole = _mean_inverse(centres[:, near] * stretched, widths)
        f[near] = smooth + self.amplitude * self.scale * pole
        return f[classes]

    def _q(self, px: Array, py: Array, pz: Array) -> Array:
        return np.sqrt(px**2 + py**2 + (self.xi * pz) ** 2)

    def _f(self, px: Array, py: Array, pz: Array) -> Array:
        q = self._q(px, py, pz) / self.scale
        return np.asarray(self.amplitude / q * np.exp(-2 / 3 * q**2))

    def _bounded(self, px: Array, py: Array, pz: Array) -> Array:
        """Return f minus its pole A Q/q."""
        q = self._q(px, py, pz) / self.scale
        return np.asarray(self.amplitude / q * np.expm1(-2 / 3 * q**2))

    def extent(self) -> float:
        return 3.5 * self.scale * max(1.0, 1 / self.xi)


def _mean_inverse(centres: Array, widths: Array) -> Array:
    """Return averages of 1/|q| over boxes (3, n) with given centres and widths.

    Evaluates at the corners the indefinite integral of 1/r over x, y and z, which is
    x y artanh(z/r) - (z^2/2) atan(x y/(z r)) plus its two cyclic permutations.
    """
    total = np.zeros(centres.shape[1])
    for signs in np.ndindex(2, 2, 2):
        x, y, z = centres + (np.array(signs)[:, None] - 0.5) * widths
        r = np.sqrt(x * x + y * y + z * z)
        value = np.zeros_like(total)
        for a, b, c in ((x, y, z), (y, z, x), (z, x, y)):
            across = np.where(a * b == 0, 1.0, np.hypot(a, b))
            value += a * b * np.arcsinh(c / across)
            value -= 0.5 * c * c * np.arctan2(a * b, np.abs(c) * r) * np.sign(c)
        total += (-1) ** (3 - sum(signs)) * value
    return total / widths.prod()
