"""PhaseSpace: the grid of nodes on which distribution functions are defined."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ..util import html
from ..util.arrays import Array, Integers
from ..util.errors import InputError
from ..util.text import shown
from .expansion import Expansion, Scales, expansion_of
from .units import HBARC, LARGEST, SMALLEST

MAX_CELLS = 1024
"""Maximum number of nodes per axis: an index has ten bits in a packed node."""
HEAVY = 1.5
"""Mass in units of the spacing above which the error of sums of 1/E over nodes is below 1e-4."""
Boundary = Literal["periodic", "reflecting", "open"]
MomentumBoundary = Literal["closed", "periodic"]
Triple = tuple[float, float, float]


def choices(kind: Any) -> str:
    """Return the values of a Literal as text."""
    *others, last = (repr(value) for value in get_args(kind))
    return f"{', '.join(others)} or {last}"


BOUNDARY_ADVICE = f"use {choices(Boundary)}, or one of them for each axis"


def _triple(value: object, key: str) -> tuple[Any, ...]:
    """Return one number for all axes, or three numbers, as a tuple of three."""
    if isinstance(value, str) and value == "auto":
        raise InputError(
            f"grid.{key} = 'auto': is for configurations; in Python give the half widths, or call "
            "solve() with a number of cells instead of a PhaseSpace"
        )
    values: tuple[Any, ...] = (value,) * 3 if np.ndim(value) == 0 else tuple(value)  # type: ignore
    if len(values) != 3 or not all(isinstance(v, int | float | np.number) for v in values):
        raise InputError(
            f"grid.{key} = {shown(value)}: give one number or three, one for each axis"
        )
    return values


def numbers_of_cells(value: object, key: str = "momentum_cells") -> tuple[int, int, int]:
    """Return one number of cells for all axes, or three, as a tuple of three."""
    cells = _triple(value, key)
    if not all(n % 1 == 0 for n in cells):
        raise InputError(f"grid.{key} = {shown(value)}: numbers of cells are whole numbers")
    if not all(1 <= n <= MAX_CELLS for n in cells):
        raise InputError(
            f"grid.{key} = {shown(list(cells))}: each must lie between 1 and {MAX_CELLS}"
        )
    x, y, z = (int(n) for n in cells)
    return x, y, z


def half_widths(value: object, key: str = "momentum_max", unit: str = "GeV") -> Triple:
    """Return one half width for all axes, or three, as a tuple of three."""
    widths = _triple(value, key)
    if not all(SMALLEST <= w <= LARGEST for w in widths):
        raise InputError(
            f"grid.{key} = {shown(list(widths))}: half widths in {unit} must be positive, from "
            f"{SMALLEST:g} to {LARGEST:g}"
        )
    x, y, z = (float(w) for w in widths)
    return x, y, z


def _boundaries(value: object) -> tuple[str, str, str]:
    """Return one boundary for all axes, or three, as a tuple of three."""
    values = (value,) * 3 if isinstance(value, str) else tuple(value)  # type: ignore
    if len(values) != 3 or not all(v in get_args(Boundary) for v in values):
        raise InputError(f"grid.boundary = {shown(value)}: {BOUNDARY_ADVICE}")
    return values


def _spacing(widths: Triple, cells: tuple[int, int, int]) -> Triple:
    """Return the edge lengths of a cell."""
    x, y, z = (2 * w / n for w, n in zip(widths, cells, strict=True))
    return x, y, z


def _centres(n: int, h: float) -> Array:
    """Return the centres of n cells of width h, exactly antisymmetric about 0."""
    return (np.arange(n, dtype=np.float64) - 0.5 * (n - 1)) * h


def _mesh(axes: list[Array]) -> Array:
    """Return all points of three axes, shape (3, points); the last axis varies fastest."""
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")])


def _lattice_sum(u: Array, halves: bool) -> Array:
    """Return the sum of exp(-u^2 n^2) over integers (or half-integers) n, over its integral."""
    n = np.arange(1, 8)[:, None]
    few = np.exp(-((u * (n - 0.5)) ** 2)).sum(axis=0) if halves else None
    direct = 2 * few if few is not None else 1 + 2 * np.exp(-((u * n) ** 2)).sum(axis=0)
    signs = (-1.0) ** n if halves else 1.0
    poisson = 1 + 2 * (signs * np.exp(-((np.pi * n / u) ** 2))).sum(axis=0)
    return np.where(u > np.sqrt(np.pi), direct * u / np.sqrt(np.pi), poisson)


@dataclass(frozen=True)
class PhaseSpace:
    """A momentum box [-L, L] per axis, cut into cells with a node at the centre of each.

    Nodes are p_i = -L + (i + 1/2) h with h = 2 L / n, so an odd number of cells has a node
    at p = 0, and node n - 1 - i is exactly the mirror image of node i. The sum of two nodes minus
    a third is again a node; the conserving projection relies on this.

    Space is divided in the same way; a direction with one cell is homogeneous. All momentum nodes
    of a space cell, a *site*, are contiguous; z varies fastest among sites, p_z among nodes.

    Parameters
    ----------
    momentum_cells : cells per axis, one number or three
    momentum_max : half widths of the box [GeV], one number or three
    space_cells : space cells per axis, one number or three
    space_max : half widths of the box in space [fm], one number or three
    boundary : "periodic", "reflecting" or "open", or one for each axis
    momentum_boundary : "closed", or "periodic" as in the paper: a particle that a force pushes
        beyond p_max reappears at -p_max
    expansion : "none", "bjorken", "hubble" or a function, see ``relboltz.grid.expansion``: the box
        then refers to comoving momenta k, equal to physical momenta at the start of a run
    hubble_rate, hubble_power : parameters of "hubble"
    """

    momentum_cells: tuple[int, int, int]
    momentum_max: Triple
    space_cells: tuple[int, int, int] = (1, 1, 1)
    space_max: Triple = (3.0, 3.0, 3.0)
    boundary: tuple[str, str, str] = ("periodic", "periodic", "periodic")
    momentum_boundary: MomentumBoundary = "closed"
    expansion: Expansion | None = None

    def __init__(
        self,
        momentum_cells: int | Sequence[int],
        momentum_max: float | Sequence[float],
        space_cells: int | Sequence[int] = space_cells,
        space_max: float | Sequence[float] = space_max,
        boundary: str | Sequence[str] = boundary,
        momentum_boundary: str = momentum_boundary,
        expansion: Any = "none",
        hubble_rate: float | None = None,
        hubble_power: float | None = None,
    ):
        if momentum_boundary not in get_args(MomentumBoundary):
            advice = f"use {choices(MomentumBoundary)}"
            raise InputError(f"grid.momentum_boundary = {shown(momentum_boundary)}: {advice}")
        values = {
            "momentum_cells": numbers_of_cells(momentum_cells),
            "momentum_max": half_widths(momentum_max),
            "space_cells": numbers_of_cells(space_cells, "space_cells"),
            "space_max": half_widths(space_max, "space_max", "fm"),
            "boundary": _boundaries(boundary),
            "momentum_boundary": momentum_boundary,
            "expansion": expansion_of(expansion, hubble_rate, hubble_power),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Return the parameters by name; those of the expansion only if the grid expands."""
        told = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.expansion is None:
            del told["expansion"]
        else:
            given = {"hubble_rate": self.hubble_rate, "hubble_power": self.hubble_power}
            told |= {"expansion": str(self.expansion)}
            told |= {key: value for key, value in given.items() if value is not None}
        return f"PhaseSpace({', '.join(f'{key}={value!r}' for key, value in told.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the arguments that recreate the grid, without cached properties."""
        return PhaseSpace, tuple(getattr(self, one.name) for one in fields(self))

    @property
    def hubble_rate(self) -> float | None:
        """Rate H of a Hubble flow [1/fm]."""
        return None if self.expansion is None else self.expansion.rate

    @property
    def hubble_power(self) -> float | None:
        """Power n of a Hubble flow, a = t^n."""
        return None if self.expansion is None else self.expansion.power

    def scaled(self, factors: Scales) -> "PhaseSpace":
        """Return the grid with all momenta multiplied by a factor for each axis."""
        x, y, z = (w * s for w, s in zip(self.momentum_max, factors, strict=True))
        return replace(self, momentum_max=(x, y, z))

    @property
    def size(self) -> int:
        """Number of momentum nodes."""
        nx, ny, nz = self.momentum_cells
        return nx * ny * nz

    @property
    def sites(self) -> int:
        """Number of space cells."""
        nx, ny, nz = self.space_cells
        return nx * ny * nz

    @property
    def moving_axes(self) -> tuple[int, ...]:
        """Axes along which particles stream: those with more than one space cell."""
        return tuple(i for i, n in enumerate(self.space_cells) if n > 1)

    @property
    def space_spacing(self) -> Triple:
        """Edge lengths of a space cell [fm]."""
        return _spacing(self.space_max, self.space_cells)

    def space_axis(self, i: int) -> Array:
        """Return the space cell centres along axis i [fm], exactly antisymmetric about 0."""
        return _centres(self.space_cells[i], self.space_spacing[i])

    def _repr_html_(self) -> str:
        """Return a table of the cells and widths of every axis, for notebooks."""
        rows = []
        for i, axis in enumerate("xyz"):
            p = f"{self.momentum_cells[i]} nodes to {self.momentum_max[i]:g} GeV"
            x = "homogeneous"
            if self.space_cells[i] > 1:
                x = f"{self.space_cells[i]} cells to {self.space_max[i]:g} fm, {self.boundary[i]}"
            rows.append((axis, p, f"{self.spacing[i]:.4g} GeV", x))
        nodes = f"{self.sites * self.size:,} nodes of phase space".replace(",", " ")
        if self.expansion is not None:
            nodes += f", expansion {self.expansion}"
        return html.line(f"PhaseSpace, {nodes}", "b") + html.table(
            ("axis", "momentum", "spacing", "space"), rows
        )

    @cached_property
    def positions(self) -> Array:
        """Centres of all sites, shape (3, sites) [fm]; the last axis varies fastest."""
        return _mesh([self.space_axis(i) for i in range(3)])

    @property
    def without_space(self) -> "PhaseSpace":
        """The momentum grid without space."""
        if self.sites == 1:
            return self
        return PhaseSpace(self.momentum_cells, self.momentum_max, expansion=self.expansion)

    @property
    def spacing(self) -> Triple:
        """Distance between nodes per axis [GeV]."""
        return _spacing(self.momentum_max, self.momentum_cells)

    @property
    def cell_volume(self) -> float:
        """d^3p of one cell [GeV^3]."""
        hx, hy, hz = self.spacing
        return hx * hy * hz

    @property
    def measure(self) -> float:
        """d^3p / (2 pi hbar)^3 of one cell [fm^-3]: N_a f times this is a density."""
        return self.cell_volume / (2 * np.pi * HBARC) ** 3

    def axis(self, i: int) -> Array:
        """Return the nodes along axis i [GeV], exactly antisymmetric about 0."""
        return _centres(self.momentum_cells[i], self.spacing[i])

    @cached_property
    def momenta(self) -> Array:
        """Momenta of all nodes, shape (3, size) [GeV]; the last axis varies fastest."""
        return _mesh([self.axis(i) for i in range(3)])

    @cached_property
    def momentum_squared(self) -> Array:
        """|p|^2 of all nodes [GeV^2]."""
        px, py, pz = self.momenta
        return px**2 + py**2 + pz**2

    @cached_property
    def packed(self) -> Integers:
        """The three indices of every node in one integer: ix | iy << 10 | iz << 20."""
        ix, iy, iz = np.unravel_index(np.arange(self.size), self.momentum_cells)
        return (ix | (iy << 10) | (iz << 20)).astype(np.int64)

    def energies(self, mass_squared: float) -> Array:
        """Return E = sqrt(p^2 + m^2) at all nodes [GeV]."""
        return np.sqrt(self.momentum_squared + mass_squared)

    def inverse_energies(self, mass_squared: float) -> Array:
        """Return 1/E at all nodes [GeV^-1]; at p = 0 without mass, the cell average of 1/|p|."""
        energy = self.energies(mass_squared)
        at_rest = energy == 0
        if not at_rest.any():
            return 1 / energy
        return np.where(at_rest, self.rest_inverse_energy, 1 / np.where(at_rest, 1, energy))

    @cached_property
    def rest_inverse_energy(self) -> float:
        """Average of 1/|p| over the cell centred at p = 0 [GeV^-1].

        The integral of 1/r over a box with half edges (a, b, c) is a sum over its three pairs
        of faces; each face at distance a contributes a/2 times the integral of 1/r over it.
        """
        edges = [0.5 * h for h in self.spacing]
        total = 0.0
        for i in range(3):
            a, b, c = edges[i], edges[(i + 1) % 3], edges[(i + 2) % 3]
            r = np.sqrt(a * a + b * b + c * c)
            face = 4 * (
                b * np.arcsinh(c / np.hypot(a, b))
                + c * np.arcsinh(b / np.hypot(a, c))
                - a * np.arctan2(b * c, a * r)
            )
            total += 2 * 0.5 * a * face
        return total / self.cell_volume

    @cached_property
    def inner_momentum_squared(self) -> float:
        """p^2 of the nodes nearest to, or at, p = 0, plus a margin for rounding [GeV^2]."""
        halves = [
            0.5 * h for n, h in zip(self.momentum_cells, self.spacing, strict=True) if n % 2 == 0
        ]
        return (1 + 1e-9) * sum(h * h for h in halves) + 1e-9 * min(self.spacing) ** 2

    @property
    def largest_spacing(self) -> float:
        """The largest spacing of an axis with more than one node [GeV]; 0 if all have one."""
        axes = zip(self.spacing, self.momentum_cells, strict=True)
        return max((h for h, n in axes if n > 1), default=0.0)

    def missing_inverse_energy(self, mass_squared: float) -> float:
        """Return the correction of 1/E at the nodes nearest to p = 0 for sums of g/E [GeV^-1].

        For smooth g the sum over all nodes times the cell volume misses d g(0) of Int d^3p g/E.
        With 1/E = (2/sqrt pi) Int du exp(-u^2 (p^2 + m^2)), Poisson's formula gives d as an
        integral of theta functions; the correction falls as exp(-2 pi m/h). For a massless node at
        p = 0, where 1/E is undefined, it replaces 1/E. If spacings differ so much that 1/E would be
        negative, there is no correction, and a massless node at p = 0 has the mean of its cell.
        """
        odd = all(n % 2 for n in self.momentum_cells)
        nothing = self.rest_inverse_energy if odd and mass_squared == 0 else 0.0
        light = mass_squared < (HEAVY * max(self.spacing)) ** 2
        if not light or 1 in self.momentum_cells:
            return nothing
        h = float(self.cell_volume ** (1 / 3))
        step = 0.05
        u = np.exp(np.arange(-15.0, 25.0, step))  # in units of 1/h
        nodes = np.ones_like(u)  # sums over nodes of exp(-u^2 p^2) over their integrals
        for n, spacing in zip(self.momentum_cells, self.spacing, strict=True):
            nodes *= _lattice_sum(u * spacing / h, n % 2 == 0)
        at_rest = float(odd)
        beyond = (nodes - 1) * (np.pi / u**2) ** 1.5 - at_rest
        beyond *= np.exp(-(u * u) * mass_squared / (h * h))
        missing = -2 / np.sqrt(np.pi) * float((beyond * u).sum()) * step
        inner = 2 ** sum(n % 2 == 0 for n in self.momentum_cells)
        inner_squared = mass_squared + (0.0 if odd else self.inner_momentum_squared)
        own = 1 / np.sqrt(inner_squared) if inner_squared > 0 else 0.0
        more = float(missing / (inner * h)) - at_rest * own
        return more if more + own > 0 else nothing

    def in_space(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reshape values of the sites (sites, ...) to (..., nx, ny, nz)."""
        return values.reshape(len(values), -1).T.reshape(*values.shape[1:], *self.space_cells)

    def cube(self, values: NDArray[Any]) -> NDArray[Any]:
        """Reshape node values (..., size) to (..., nx, ny, nz)."""
        return values.reshape(*values.shape[:-1], *self.momentum_cells)
