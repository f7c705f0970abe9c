"""The Landau frame of matter at many sites, and the local equilibrium of that matter.

T^{mu nu} u_nu = e u^mu: in the frame of u the energy flux vanishes. With mean fields, T^{mu nu}
contains -g^{mu nu} B, which shifts e by -B and the pressure by B and leaves u and the shear stress
unchanged; so the kinetic tensor determines everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..backends.cpu.landau import local_states
from ..grid.units import HBARC
from ..model.model import Model
from ..util.arrays import Array, Flags
from .conserved import reachable
from .gas import Indices
from .radii import gauss, radii

METRIC = np.diag([1.0, -1.0, -1.0, -1.0])
POINTS = 96
"""Gauss points of a radial integral, accurate to 1e-9; for fermions with a Fermi surface, a third
of the points each below, across and beyond it.
"""
RARE = 1e-12
"""Fraction of all particles below which a species counts as absent."""
EMPTY = 1e-12
"""Energy density relative to the densest site below which a site counts as empty."""


@dataclass(frozen=True)
class RestFrames:
    """Landau rest frame of every site; NaN where there is none."""

    energy: Array
    """Kinetic energy density in the rest frame: (sites) [GeV fm^-3]."""
    u: Array
    """Four-velocity (sites, 4)."""
    pressure: Array
    """Kinetic pressure, averaged over directions in the rest frame [GeV fm^-3]."""

    @property
    def velocity(self) -> Array:
        """Velocity (sites, 3)."""
        return self.u[:, 1:] / self.u[:, :1]

    def density(self, number: Array, current: Array) -> Array:
        """Return rest-frame densities N^mu u_mu of (sites, species) and (sites, species, 3)."""
        flow = (current * self.u[:, None, 1:]).sum(axis=-1)
        return np.asarray(number * self.u[:, :1] - flow)


def frames(tensor: Array) -> RestFrames:
    """Return the Landau frames of kinetic tensors T^{mu nu} (sites, 4, 4) [GeV fm^-3].

    T is a sum over p^mu p^nu with non-negative weights, T = S S^T. The eigenvalues of T g equal
    those of S^T g S, which is symmetric and, like g, positive in one direction only: this
    eigenvalue is e, and S times its eigenvector is u.
    """
    values, vectors = np.linalg.eigh(tensor)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    inner = root.swapaxes(1, 2) @ (METRIC @ root)
    e, x = (part[..., -1] for part in np.linalg.eigh(inner))
    most = e.max(initial=0.0)
    there = e > EMPTY * most
    with np.errstate(invalid="ignore", divide="ignore"):
        u = (root @ x[:, :, None])[:, :, 0] / np.sqrt(e)[:, None]
        u = np.where(there[:, None], u * np.sign(u[:, :1]), np.nan)
    trace = tensor[:, 0, 0] - tensor[:, 1, 1] - tensor[:, 2, 2] - tensor[:, 3, 3]
    e = np.where(there, e, np.nan)
    return RestFrames(e, u, (e - trace) / 3)


def shear_stress(tensor: Array, found: RestFrames) -> Array:
    """Return pi^{mu nu} = T^{mu nu} - e u^mu u^nu + P (g^{mu nu} - u^mu u^nu) (sites, 4, 4)."""
    both = found.u[:, :, None] * found.u[:, None, :]
    e, p = found.energy[:, None, None], found.pressure[:, None, None]
    return np.asarray(tensor - (e + p) * both + p * METRIC)


@lru_cache(maxsize=1)
def radial_points() -> tuple[Array, Array, Array, Array]:
    """Return radii from 0 to infinity, densest at 0, and weights of d^3p/(2 pi)^3, in units of a
    scale; and nodes and weights between 0 and 1.
    """
    x, w = gauss(POINTS)
    radius, slope = radii(x)
    return radius, radius**2 * slope * w / (2 * np.pi**2), *gauss(POINTS // 3)


@dataclass(frozen=True)
class LocalEquilibrium:
    """Equilibrium with the charges and the total energy of every site, at rest in its frame.

    Masses are those of the equilibrium, and there is no momentum cut-off. NaN if there is none: no
    matter, or more particles than a state with mu < m can hold.
    """

    temperature: Array  # (sites) [GeV]
    chemical_potential: Array  # (sites, species) [GeV]; NaN for species that are absent
    pressure: Array  # (sites), with the field [GeV fm^-3]


class LandauFits:
    """Local equilibria of a model."""

    def __init__(self, model: Model):
        self._model = model
        self._known: dict[bytes, tuple[Indices, Array]] = {}

    def match(
        self, energy: Array, densities: Array, squares: Array, guess: tuple[Array, Array]
    ) -> LocalEquilibrium:
        """Return states with these energies [GeV fm^-3], with the field, and densities [fm^-3].

        densities (sites, species) : the equilibrium has the same conserved charges; squares : m^2
        of the sites [GeV^2]; guess : T (sites) and mu (sites, species) [GeV]
        """
        sites, kinds = densities.shape
        found = LocalEquilibrium(
            np.full(sites, np.nan), np.full((sites, kinds), np.nan), np.full(sites, np.nan)
        )
        total = densities.sum(axis=1)
        with np.errstate(invalid="ignore"):
            there = densities > RARE * total[:, None]
            filled = (energy > 0) & (total > 0)
        for pattern in _patterns(there[filled]):
            which = np.flatnonzero(filled & (there == pattern).all(axis=1))
            self._solve(which, pattern, energy, densities, squares, guess, found)
        return found

    def _charges(self, pattern: Flags) -> tuple[Indices, Array]:
        """Return species that are present or can be produced, and their conserved charges."""
        key = pattern.tobytes()
        if key not in self._known:
            self._known[key] = reachable(self._model, pattern.astype(float))
        return self._known[key]

    def _solve(
        self, which: Indices, pattern: Flags, energy: Array, densities: Array, squares: Array,
        guess: tuple[Array, Array], found: LocalEquilibrium,
    ) -> None:  # fmt: skip
        """Solve the sites that contain the same species."""
        model = self._model
        present, charges = self._charges(pattern)
        coupling = np.ascontiguousarray(model.mass_coupling[np.ix_(present, present)])
        numbers = densities[which][:, present]
        target = np.column_stack([energy[which], numbers @ charges.T]) * HBARC**3
        scales = energy[which] / numbers.sum(axis=1)
        thermal = bool(coupling.any())
        m2 = squares[which][:, present]
        description = (
            np.ascontiguousarray(charges), model.degeneracy[present],
            model.statistics[present].astype(float), coupling,
            model.constant_mass_squared[present],
        )  # fmt: skip
        answer = np.full((len(which), 2 + len(charges) + thermal * len(present)), np.nan)
        left = np.arange(len(which))
        for near in (True, False):
            if near:
                start = _near(guess[0][which], guess[1][which][:, present], numbers, charges)
            else:
                start = _cold(scales, charges)
            first = np.column_stack([start, m2] if thermal else [start])[left]
            room = np.full((len(left), answer.shape[1]), np.nan)
            local_states(
                target[left], np.ascontiguousarray(first), scales[left], description,
                radial_points(), room,
            )  # fmt: skip
            answer[left] = room
            left = left[np.isnan(room[:, 0])]
            if not len(left):
                break
        temperature = 1 / answer[:, 0]
        alpha = answer[:, 1 : 1 + len(charges)] @ charges
        found.temperature[which] = temperature
        found.chemical_potential[np.ix_(which, present)] = alpha * temperature[:, None]
        found.pressure[which] = answer[:, -1] / HBARC**3


def _patterns(there: Flags) -> Flags:
    """Return the distinct rows."""
    same = len(there) > 0 and (there == there[:1]).all()
    return there[:1] if same else np.unique(there, axis=0)


def _near(temperature: Array, mu: Array, numbers: Array, charges: Array) -> Array:
    """Return beta and the alpha of charges that best fit mu, weighted by number."""
    with np.errstate(invalid="ignore", divide="ignore"):
        beta, alpha = 1 / temperature, mu / temperature[:, None]
    weight = np.where(np.isfinite(alpha), numbers, 0.0)
    alpha = np.where(np.isfinite(alpha), alpha, 0.0)
    matrix = np.einsum("ca,na,da->ncd", charges, weight, charges)
    matrix += 1e-9 * weight.sum(axis=1)[:, None, None] * np.eye(len(charges))
    right = np.einsum("ca,na,na->nc", charges, weight, alpha)
    empty = ~(weight.sum(axis=1) > 0)
    matrix[empty] = np.eye(len(charges))
    solved = np.linalg.solve(matrix, right[..., None])[..., 0]
    return np.column_stack([np.where(empty, np.nan, beta), solved])


def _cold(scales: Array, charges: Array) -> Array:
    """Return beta and alpha of a dilute gas with mean energy 3 T, valid for any statistics."""
    alpha = np.linalg.lstsq(charges.T, -np.ones(charges.shape[1]), rcond=None)[0]
    return np.column_stack([3 / scales, np.tile(alpha, (len(scales), 1))])
