"""Shapes of initial conditions: small frozen objects that evaluate f at the nodes.

``relboltz.initial.step(height=0.5, edge=1.5)`` in Python and a table ``[initial.g]`` with
``shape = "step"`` in a configuration give the same object. With ``sampling = "cell"`` (default)
the value at a node is the average of the function over its cell, so that densities are right and
cells cut by an edge count in part; with ``"node"`` it is the function at the node.
"""

import math
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import LARGEST, SMALLEST
from ..model.model import Species
from ..util.arrays import Array, Integers
from ..util.errors import InputError
from ..util.text import shown
from .profiles import GaussianProfile, profile_of, real

AT_ONCE = 2**19
"""Largest number of momenta at which a function is evaluated in one call."""

SAMPLINGS = ("cell", "node")
STEP_POINTS = 64
"""Lines per axis in a cell that the edge of a step cuts."""
MOST, RANGE = f", at most {LARGEST:g}", f", from {SMALLEST:g} to {LARGEST:g}"


def place(p: Iterable[float], where: Iterable[float] = ()) -> str:
    """Return text for a momentum [GeV] and, if given, a position [fm]."""
    momentum, position = (", ".join(f"{v:.6g}" for v in point) for point in (p, where))
    return f"p = ({momentum}) GeV" + (f" and ({position}) fm" if position else "")


def is_momentum(value: float) -> bool:
    """Whether a value in GeV is large enough for a momentum, a width or a temperature."""
    return value >= SMALLEST


def describe(grid: PhaseSpace) -> str:
    """Return a short description of a grid."""
    cells = " x ".join(str(n) for n in grid.momentum_cells)
    if grid.sites > 1:
        cells = " x ".join(str(n) for n in grid.space_cells) + " space cells with " + cells
    return f"{cells} cells to ({', '.join(f'{w:g}' for w in grid.momentum_max)}) GeV"


# --- averages -----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def mirror_classes(grid: PhaseSpace, exchanged: int = 3) -> tuple[Array, Integers]:
    """Return the centre [GeV] of one cell per set of mirror images, and the set of every node.

    Cells map to each other by reflections and, if the first axes have the same nodes, by exchanging
    these axes; an isotropic function computed once per set is symmetric to the last bit.

    exchanged : number of first axes under whose exchange the function is symmetric: 3, or 2
    """
    halves = [np.abs(2 * np.arange(n) - (n - 1)) for n in grid.momentum_cells]
    index = np.stack([m.ravel() for m in np.meshgrid(*halves, indexing="ij")])
    axes = list(zip(grid.momentum_cells, grid.momentum_max, strict=True))
    if len(set(axes[:exchanged])) == 1:
        index[:exchanged].sort(axis=0)
    base = max(grid.momentum_cells)
    code, inverse = np.unique((index[0] * base + index[1]) * base + index[2], return_inverse=True)
    index = np.stack([code // base**2, code // base % base, code % base])
    return 0.5 * index * np.array(grid.spacing)[:, None], inverse.reshape(-1)


def _sphere_fraction(centres: Array, grid: PhaseSpace, radius: float) -> Array:
    """Return the fraction of each cell (centres >= 0) inside a sphere; exact for uncut cells."""
    half = 0.5 * np.array(grid.spacing)[:, None]
    inner, outer = np.maximum(centres - half, 0), centres + half
    inside = (outer**2).sum(axis=0) <= radius**2
    cut = np.flatnonzero(~inside & ((inner**2).sum(axis=0) < radius**2))
    fraction = inside.astype(float)
    offsets = (np.arange(STEP_POINTS) + 0.5) / STEP_POINTS * 2 - 1
    for part in np.array_split(cut, max(1, len(cut) // 1000)):
        x = centres[0, part, None, None] + half[0] * offsets[:, None]
        y = centres[1, part, None, None] + half[1] * offsets
        chord = np.sqrt(np.maximum(radius**2 - x**2 - y**2, 0))
        low, high = (centres[2, part] + s * half[2] for s in (-1, 1))
        low, high = low[:, None, None], high[:, None, None]
        length = np.minimum(high, chord) - np.maximum(low, -chord)
        fraction[part] = np.maximum(length, 0).mean(axis=(1, 2)) / (2 * half[2])
    return np.minimum(fraction, 1.0)


def _gauss_average(low: float, high: float, width: float) -> float:
    """Return the average of exp(-p^2 / (2 width^2)) over [low, high], accurate in the tails."""
    a, b = (edge / (math.sqrt(2) * width) for edge in (low, high))
    a, b = (-b, -a) if b < 0 else (a, b)
    difference = math.erfc(a) - math.erfc(b) if a > 0 else math.erf(b) - math.erf(a)
    return math.sqrt(math.pi / 2) * width / (high - low) * difference


# --- shapes -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Base class of all initial conditions: sampling of cells and transverse profile.

    profile : such as ``gaussian_profile(radius=2.0)``, or a table
    """

    sampling: str = "cell"
    profile: GaussianProfile | None = None

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLINGS:
            raise InputError(
                f"sampling = {shown(self.sampling)}: use 'cell' (average over the cell) or 'node'"
            )
        self._keep(profile=profile_of(self.profile))
        names = [field.name for field in fields(self)]
        if self.profile is not None and self.profile.scales not in {"f", *names}:
            name = type(self).__name__.lower()
            raise InputError(
                f"profile.scales = {self.profile.scales!r}: {name!r} has none; use 'f'"
            )
        self._check()

    def _check(self) -> None:
        """Validate the fields and convert them to their stored form."""

    def _keep(self, **fields: Any) -> None:
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    def _number(
        self, key: str, legal: Callable[[float], bool], remedy: str, three: bool = False
    ) -> None:
        """Store a field as one number, or three, after checking bounds and the test."""
        given = getattr(self, key)
        several = three and isinstance(given, list | tuple | np.ndarray)
        values = tuple(given) if several else (given,) * (3 if three else 1)
        if three and len(values) != 3:
            raise InputError(f"{key} = {shown(given)}: {remedy}")
        kept = tuple(real(key, value, legal, remedy) for value in values)
        self._keep(**{key: kept if three else kept[0]})

    def values(self, grid: PhaseSpace, species: Species, m2: float, site: int = 0) -> Array:
        """Return f at all nodes of a space cell, shape (size,); m2 is the squared mass [GeV^2]."""
        if self.profile is None:
            return self._values(grid, species, m2, site)
        weight = self.profile.of_cell(grid, site, self.sampling)
        if self.profile.scales == "f":
            if self._depends_on_place(grid):
                return weight * self._values(grid, species, m2, site)
            return weight * _anywhere(_IdentityKey(self), grid, species, m2)
        return self.scaled(weight**0.25)._values(grid, species, m2, site)

    def scaled(self, factor: float) -> "Shape":
        """Return a copy without a profile and with T multiplied by the factor."""
        raise NotImplementedError

    def is_local(self, grid: PhaseSpace) -> bool:
        """Whether f depends on position."""
        return self.profile is not None or self._depends_on_place(grid)

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        """Return f at all nodes without the profile."""
        raise NotImplementedError

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        """Whether f depends on position apart from its profile."""
        return False

    def extent(self) -> float:
        """Return a half width [GeV] that contains most of f."""
        raise InputError(
            f"shape = {type(self).__name__.lower()!r}: fills any box, so grid.momentum_max = "
            "'auto' cannot choose one; set grid.momentum_max in GeV"
        )

    def _sampled(
        self,
        function: Callable[[Array, Array, Array], Array],
        centres: Array,
        grid: PhaseSpace,
        points: int,
    ) -> Array:
        """Return a function at the centres (3, n) of cells, or averaged over these cells.

        points : points per axis of the tensor Gauss-Legendre quadrature
        """
        if self.sampling == "node" or not centres.size:
            return function(*centres)
        offsets, weights = cell_rule(points)
        offsets = offsets * np.array(grid.spacing)[:, None]
        total = np.zeros(centres.shape[1])
        together = max(1, AT_ONCE // max(1, centres.shape[1]))
        for first in range(0, len(weights), together):
            part = slice(first, first + together)
            at = centres[:, None, :] + offsets[:, part, None]
            found = function(*at.reshape(3, -1))
            for weight, values in zip(
                weights[part], np.reshape(found, (-1, centres.shape[1])), strict=True
            ):  # in a loop: the last bits of a matrix product depend on the machine
                total += weight * values
        return total


@lru_cache(maxsize=8)
def gauss(points: int) -> tuple[Array, Array]:
    """Return Gauss-Legendre nodes and weights for the interval from -1/2 to 1/2."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return 0.5 * nodes, 0.5 * weights


@lru_cache(maxsize=8)
def cell_rule(points: int) -> tuple[Array, Array]:
    """Return points (3, n) in a cell, in units of its edges, and their weights."""
    nodes, weights = gauss(points)
    places = np.stack(np.meshgrid(nodes, nodes, nodes, indexing="ij")).reshape(3, -1)
    return places, np.einsum("i,j,k->ijk", weights, weights, weights).ravel()


class _IdentityKey:
    """A shape as a cache key, compared by identity."""

    def __init__(self, shape: Shape):
        self.shape = shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and self.shape is other.shape

    def __hash__(self) -> int:
        return id(self.shape)


@lru_cache(maxsize=8)
def _anywhere(same: _IdentityKey, grid: PhaseSpace, species: Species, m2: float) -> Array:
    """Return f at all nodes of a shape that depends on position only through its profile."""
    return same.shape._values(grid, species, m2, 0)


@dataclass(frozen=True)
class Step(Shape):
    """f = height for |p| <= edge [GeV], 0 outside."""

    height: float
    edge: float

    def _check(self) -> None:
        self._number("height", lambda v: v >= 0, f"a step has a height f >= 0{MOST}")
        self._number("edge", is_momentum, f"a step has an edge above 0 GeV{RANGE}")

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        centres, classes = mirror_classes(grid)
        if self.sampling == "node":
            fraction = ((centres**2).sum(axis=0) <= self.edge**2).astype(float)
        else:
            fraction = _sphere_fraction(centres, grid, self.edge)
        return self.height * fraction[classes]

    def extent(self) -> float:
        return self.edge


@dataclass(frozen=True)
class Gaussian(Shape):
    """f = height exp(-Sum_i p_i^2 / (2 w_i^2)) with widths w [GeV], one or three."""

    height: float
    widths: float | Sequence[float]

    def _check(self) -> None:
        self._number("height", lambda v: v >= 0, f"a gaussian has a height f >= 0{MOST}")
        self._number(
            "widths", is_momentum, f"use one width or three, above 0 GeV{RANGE}", three=True
        )

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        factors = []
        for i, width in enumerate(np.broadcast_to(self.widths, 3)):
            p, h = grid.axis(i), grid.spacing[i]
            if self.sampling == "node":
                factor = np.exp(-0.5 * (p / width) ** 2)
            else:
                factor = np.array([_gauss_average(q - 0.5 * h, q + 0.5 * h, width) for q in p])
            factors.append(factor)
        return self.height * np.einsum("i,j,k->ijk", *factors).ravel()

    def extent(self) -> float:
        return 4 * float(np.max(self.widths))


@dataclass(frozen=True)
class Random(Shape):
    """f at each node uniform in [low, high), determined by the seed and the species name."""

    low: float
    high: float
    seed: int = 1

    def _check(self) -> None:
        self._number("low", lambda v: v >= 0, f"use a number f >= 0{MOST}")
        self._number("high", lambda v: v > self.low, f"use a number above low = {self.low:g}{MOST}")
        whole = isinstance(self.seed, int) and not isinstance(self.seed, bool)
        if not whole or not 0 <= self.seed < 2**63:
            raise InputError(f"seed = {shown(self.seed)}: use a whole number from 0 to 2^63 - 1")

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        return grid.sites > 1

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        place = [site] if grid.sites > 1 else []
        identity = np.random.SeedSequence([self.seed, zlib.crc32(species.name.encode()), *place])
        uniform = np.random.Generator(np.random.Philox(identity)).random(grid.size)
        return self.low + (self.high - self.low) * uniform


@dataclass(frozen=True)
class Gradient(Shape):
    """f linear in x and p_x: rises with x and falls with p_x by maximum - minimum over the grid.

    The paper's initial condition in space. At the centre of the grid f is 2 minimum, and f ranges
    from 3 minimum - maximum to maximum + minimum.
    """

    minimum: float
    maximum: float

    def _check(self) -> None:
        self._number("minimum", lambda v: v >= 0, f"use a number f >= 0{MOST}")
        low = self.minimum
        remedy = f"use a number from minimum = {low:g} to 3 minimum, or f becomes negative"
        self._number("maximum", lambda v: low <= v <= 3 * low, remedy)

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        return True

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        rise = self.maximum - self.minimum
        along = 0.5 * rise * (1 + grid.positions[0, site] / grid.space_max[0])
        return along - 0.5 * rise * (1 + grid.momenta[0] / grid.momentum_max[0]) + 2 * self.minimum
