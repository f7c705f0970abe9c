"""Shapes of initial states: small frozen objects that put numbers on the nodes.

``relboltz.initial.step(height=0.5, edge=1.5)`` in Python and a table ``[initial.g]`` with
``shape = "step"`` in a configuration are the same object. With ``sampling = "cell"`` (default)
the value of a node is the average of the function over its cell, so that numbers and energies
converge fast; with ``"node"`` it is the function at the node.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..grid import PhaseSpace
from ..model import Species, suggest

Array = NDArray[np.float64]

SAMPLINGS = ("cell", "node")
STEP_POINTS = 64
"""Lines per axis in a cell that the edge of a step cuts."""
THERMAL_POINTS = 4
"""Gauss-Legendre points per axis; an even number, so that p = 0 is never one of them."""
FUNCTION_POINTS = 3
SPACE_POINT = 0.5 / math.sqrt(3)
"""Two Gauss-Legendre points along each direction of a space cell, in units of its edge."""


def _number(key: str, value: Any, legal: Callable[[float], bool], remedy: str) -> float:
    """A finite number that passes the test, or an error that begins with the key."""
    plain = isinstance(value, int | float | np.integer | np.floating)
    plain = plain and not isinstance(value, bool)
    if not plain or not math.isfinite(value) or not legal(value):
        raise InputError(f"{key} = {value!r}: {remedy}")
    return float(value)


def _three(key: str, value: Any, legal: Callable[[float], bool], remedy: str) -> tuple:
    values = tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,) * 3
    if len(values) != 3:
        raise InputError(f"{key} = {value!r}: {remedy}")
    return tuple(_number(key, v, legal, remedy) for v in values)


def _set(shape: Shape, **fields: Any) -> None:
    for key, value in fields.items():
        object.__setattr__(shape, key, value)


def place(p: Array) -> str:
    return "p = (" + ", ".join(f"{v:.6g}" for v in p) + ") GeV"


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with so many arguments."""
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True


# --- averages -----------------------------------------------------------------------------------


@lru_cache(maxsize=4)
def _mirror_classes(grid: PhaseSpace) -> tuple[Array, NDArray[np.int64]]:
    """Centres [GeV] of one cell of each set of mirror images, and the set of every node.

    Cells map to each other by reflections and, if the grid is cubic, by exchanging axes; an
    isotropic function computed once per set is symmetric to the last bit.
    """
    halves = [np.abs(2 * np.arange(n) - (n - 1)) for n in grid.momentum_cells]
    index = np.stack([m.ravel() for m in np.meshgrid(*halves, indexing="ij")])
    if len(set(zip(grid.momentum_cells, grid.momentum_max, strict=True))) == 1:
        index.sort(axis=0)
    base = max(grid.momentum_cells)
    code, inverse = np.unique((index[0] * base + index[1]) * base + index[2], return_inverse=True)
    index = np.stack([code // base**2, code // base % base, code % base])
    return 0.5 * index * np.array(grid.spacing)[:, None], inverse.reshape(-1)


def _average(
    function: Callable[[Array, Array, Array], Array], centres: Array, grid: PhaseSpace, points: int
) -> Array:
    """Average over cells with the given centres (3, n), by tensor Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    rule = list(zip(0.5 * nodes, 0.5 * weights, strict=True))
    hx, hy, hz = grid.spacing
    px, py, pz = centres
    total = np.zeros(centres.shape[1])
    for (x, wx), (y, wy), (z, wz) in product(rule, repeat=3):
        total += wx * wy * wz * function(px + x * hx, py + y * hy, pz + z * hz)
    return total


def _sphere_fraction(centres: Array, grid: PhaseSpace, radius: float) -> Array:
    """Fraction of each cell (centres >= 0) inside a sphere [GeV]: exact for uncut cells."""
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
    """Average of exp(-p^2 / (2 width^2)) over [low, high], accurate in the tails too."""
    a, b = (edge / (math.sqrt(2) * width) for edge in (low, high))
    if a > 0:
        difference = math.erfc(a) - math.erfc(b)
    elif b < 0:
        difference = math.erfc(-b) - math.erfc(-a)
    else:
        difference = math.erf(b) - math.erf(a)
    return math.sqrt(math.pi / 2) * width / (high - low) * difference


# --- shapes -------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What all initial states share: how they are sampled."""

    sampling: str = "cell"

    def __post_init__(self) -> None:
        if self.sampling not in SAMPLINGS:
            raise InputError(
                f"sampling = {self.sampling!r}: use 'cell' (average over the cell) or 'node'"
            )
        self._check()

    def _check(self) -> None:
        """Checks and normalises the fields."""

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        """f at all nodes, shape (size,); the mass is in GeV^2."""
        raise NotImplementedError

    def is_local(self, grid: PhaseSpace) -> bool:
        """Whether f depends on the place."""
        return False

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        """f at all nodes of a space cell."""
        return self.values(grid, species, mass_squared)

    def extent(self) -> float:
        """A half width [GeV] that contains most of the state."""
        raise NotImplementedError


@dataclass(frozen=True)
class Step(Shape):
    """f = height for |p| <= edge [GeV], 0 outside."""

    height: float
    edge: float

    def _check(self) -> None:
        height = _number("height", self.height, lambda v: v >= 0, "a step has a height f >= 0")
        edge = _number("edge", self.edge, lambda v: v > 0, "a step has an edge above 0 GeV")
        _set(self, height=height, edge=edge)

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        centres, classes = _mirror_classes(grid)
        if self.sampling == "node":
            fraction = ((centres**2).sum(axis=0) <= self.edge**2).astype(float)
        else:
            fraction = _sphere_fraction(centres, grid, self.edge)
        return self.height * fraction[classes]

    def extent(self) -> float:
        return self.edge


@dataclass(frozen=True)
class Thermal(Shape):
    """f = 1 / (exp((u . p - mu) / T) - eta): equilibrium with flow, u . p = gamma (E - v . p).

    ``temperature`` T and ``chemical_potential`` mu [GeV] are those of the rest frame of the fluid,
    which moves with ``velocity`` v.

    Only with ``sampling="node"`` is this an exact fixed point of the collisions on the grid. The
    cell average has the right densities, but differs from equilibrium on the nodes by O(h^2).
    """

    temperature: float
    chemical_potential: float = 0.0
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def _check(self) -> None:
        temperature = _number(
            "temperature", self.temperature, lambda v: v > 0, "a temperature is above 0 GeV"
        )
        potential = _number(
            "chemical_potential", self.chemical_potential, math.isfinite, "use a number of GeV"
        )
        remedy = "use three numbers, with a length below 1 (the speed of light)"
        if not isinstance(self.velocity, list | tuple | np.ndarray):
            raise InputError(f"velocity = {self.velocity!r}: {remedy}")
        velocity = _three("velocity", self.velocity, math.isfinite, remedy)
        if math.hypot(*velocity) >= 1:
            raise InputError(f"velocity = {list(velocity)}: {remedy}")
        _set(self, temperature=temperature, chemical_potential=potential, velocity=velocity)

    def floor(self, species: Species) -> float:
        """The m^2 [GeV^2] that a boson must exceed at this chemical potential."""
        if species.statistics != 1 or self.chemical_potential <= 0:
            return 0.0
        return self.chemical_potential**2

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        mass = math.sqrt(mass_squared)
        if species.statistics == 1 and self.chemical_potential > mass:
            raise InputError(
                f"chemical_potential = {self.chemical_potential:g}: must stay below the mass "
                f"{mass:.6g} GeV of the boson {species.name}; lower it or choose a larger mass"
            )

        def occupation(px: Array, py: Array, pz: Array) -> Array:
            vx, vy, vz = self.velocity
            gamma = 1 / math.sqrt(1 - vx**2 - vy**2 - vz**2)
            energy = np.sqrt(px**2 + py**2 + pz**2 + mass_squared)
            x = gamma * (energy - (vx * px + vy * py + vz * pz)) - self.chemical_potential
            if species.statistics == 1 and (x <= 0).any():
                self._diverges(species, np.array([px, py, pz])[:, x.argmin()])
            with np.errstate(over="ignore"):
                return 1 / (np.expm1(x / self.temperature) + (1 - species.statistics))

        centres, classes = grid.momenta, None
        if not any(self.velocity):
            centres, classes = _mirror_classes(grid)
        if self.sampling == "node":
            f = occupation(*centres)
        else:
            f = _average(occupation, centres, grid, THERMAL_POINTS)
        return f if classes is None else f[classes]

    def _diverges(self, species: Species, p: Array) -> None:
        raise InputError(
            f"chemical_potential = {self.chemical_potential:g}: the Bose distribution of "
            f"{species.name} is infinite at {place(p)}; lower it, use sampling = 'cell', or an "
            "even number of cells, which has no node at p = 0"
        )

    def extent(self) -> float:
        speed = math.hypot(*self.velocity)
        return (12 * self.temperature + max(self.chemical_potential, 0.0)) / (1 - speed)


@dataclass(frozen=True)
class Gaussian(Shape):
    """f = height exp(-Sum_i p_i^2 / (2 w_i^2)) with widths w [GeV], one or three."""

    height: float
    widths: float | Sequence[float]

    def _check(self) -> None:
        height = _number("height", self.height, lambda v: v >= 0, "a gaussian has a height f >= 0")
        remedy = "use one width or three, above 0 GeV"
        _set(self, height=height, widths=_three("widths", self.widths, lambda v: v > 0, remedy))

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        factors = []
        for i, width in enumerate(np.broadcast_to(self.widths, 3)):
            p, h = grid.axis(i), grid.spacing[i]
            if self.sampling == "node":
                factors.append(np.exp(-0.5 * (p / width) ** 2))
            else:
                factors.append(
                    np.array([_gauss_average(q - 0.5 * h, q + 0.5 * h, width) for q in p])
                )
        return self.height * np.einsum("i,j,k->ijk", *factors).ravel()

    def extent(self) -> float:
        return 4 * float(np.max(self.widths))


@dataclass(frozen=True)
class Random(Shape):
    """Each node uniform in [low, high), from the seed and the name of the species alone."""

    low: float
    high: float
    seed: int = 1

    def _check(self) -> None:
        low = _number("low", self.low, lambda v: v >= 0, "use a number f >= 0")
        remedy = f"use a number above low = {low:g}"
        high = _number("high", self.high, lambda v: v > low, remedy)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed = {self.seed!r}: use a whole number, 0 or more")
        _set(self, low=low, high=high)

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        return self.values_at(grid, species, mass_squared, 0)

    def is_local(self, grid: PhaseSpace) -> bool:
        return grid.sites > 1

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        place = [site] if grid.sites > 1 else []
        identity = np.random.SeedSequence([self.seed, zlib.crc32(species.name.encode()), *place])
        uniform = np.random.Generator(np.random.Philox(identity)).random(grid.size)
        return self.low + (self.high - self.low) * uniform

    def extent(self) -> float:
        raise InputError(
            "shape = 'random': fills any box, so grid.momentum_max = 'auto' cannot choose one; "
            "set grid.momentum_max in GeV"
        )


@dataclass(frozen=True)
class Gradient(Shape):
    """Linear in x and p_x: rises with x and falls with p_x by maximum - minimum over the box.

    The paper's start in space. In the middle of the box f is 2 minimum, so that f reaches from
    3 minimum - maximum to maximum + minimum.
    """

    minimum: float
    maximum: float

    def _check(self) -> None:
        low = _number("minimum", self.minimum, lambda v: v >= 0, "use a number f >= 0")
        remedy = f"use a number from minimum = {low:g} to 3 minimum, or f becomes negative"
        high = _number("maximum", self.maximum, lambda v: low <= v <= 3 * low, remedy)
        _set(self, minimum=low, maximum=high)

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        return self.values_at(grid, species, mass_squared, 0)

    def is_local(self, grid: PhaseSpace) -> bool:
        return True

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        rise = self.maximum - self.minimum
        along = 0.5 * rise * (1 + grid.positions[0, site] / grid.space_max[0])
        return along - 0.5 * rise * (1 + grid.momenta[0] / grid.momentum_max[0]) + 2 * self.minimum

    def extent(self) -> float:
        raise InputError(
            "shape = 'gradient': fills any box, so grid.momentum_max = 'auto' cannot choose one; "
            "set grid.momentum_max in GeV"
        )


@dataclass(frozen=True)
class FromFile(Shape):
    """The last snapshot f of a NetCDF file written by relboltz, on the same grid."""

    path: str | Path

    def _check(self) -> None:
        if not isinstance(self.path, str | Path) or not str(self.path):
            raise InputError(f"path = {self.path!r}: use the name of a NetCDF file")

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        return self.values_at(grid, species, mass_squared, 0)

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        theirs, names, f = _last_snapshot(self.path)
        if not _same(theirs, grid):
            raise InputError(
                f"path = {str(self.path)!r}: its grid is {_describe(theirs)}, this one is "
                f"{_describe(grid)}; use the same cells and widths"
            )
        if species.name not in names:
            raise InputError(
                f"path = {str(self.path)!r}: has no species {species.name!r}, only "
                f"{', '.join(names)}; give that species another shape"
            )
        return np.array(f[names.index(species.name)].reshape(-1, grid.size)[site])

    def is_local(self, grid: PhaseSpace) -> bool:
        return _last_snapshot(self.path)[0].sites > 1

    def extent(self) -> float:
        return max(file_grid(self.path).momentum_max)


@dataclass(frozen=True)
class FromFunction(Shape):
    """A function f(px, py, pz) of arrays [GeV] that returns an array of the same shape.

    Or f(x, y, z, px, py, pz) with the place in fm. ``function`` is the function or its place,
    "file.py:function".
    """

    function: Any
    label: str = field(init=False, default="", compare=False)
    arguments: int = field(init=False, default=3, repr=False, compare=False)

    def _check(self) -> None:
        if isinstance(self.function, str):
            _set(self, function=load_function(self.function, "shape"), label=self.function)
        elif callable(self.function):
            _set(self, label=getattr(self.function, "__name__", repr(self.function)))
        else:
            raise InputError(f"function = {self.function!r}: use a function or 'file.py:function'")
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):  # some built-in functions do not tell
            return
        fits = [count for count in (3, 6) if _takes(signature, count)]
        if len(fits) == 2:  # defaults for the rest: the first name tells
            fits = [6 if next(iter(signature.parameters)) == "x" else 3]
            starred = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
            fits = [] if starred else fits
        if not fits:
            raise InputError(
                f"shape = {self.label!r}: write the function as f(px, py, pz) or "
                "f(x, y, z, px, py, pz); other arguments need defaults"
            )
        count = fits[0]
        _set(self, arguments=6 if count == 6 else 3)

    def is_local(self, grid: PhaseSpace) -> bool:
        return self.arguments == 6

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        return self.values_at(grid, species, mass_squared, 0)

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        if self.arguments == 3:
            return self._in_momentum(grid, ())
        centre = grid.positions[:, site]
        if self.sampling == "node":
            return self._in_momentum(grid, tuple(centre))
        offsets = [
            (-SPACE_POINT * h, SPACE_POINT * h) if n > 1 else (0.0,)
            for n, h in zip(grid.space_cells, grid.space_spacing, strict=True)
        ]
        points = [tuple(centre + np.array(offset)) for offset in product(*offsets)]
        return np.mean([self._in_momentum(grid, point) for point in points], axis=0)

    def _in_momentum(self, grid: PhaseSpace, where: tuple[float, ...]) -> Array:
        """f of all nodes at a place, or anywhere if the function does not ask for one."""

        def call(px: Array, py: Array, pz: Array) -> Array:
            return self._call(where, px, py, pz)

        if self.sampling == "node":
            return call(*grid.momenta)
        return _average(call, grid.momenta, grid, FUNCTION_POINTS)

    def _call(self, where: tuple[float, ...], px: Array, py: Array, pz: Array) -> Array:
        places = [np.full_like(px, x) for x in where]
        try:
            f = self.function(*places, px.copy(), py.copy(), pz.copy())
            f = np.asarray(f, dtype=np.float64)
        except Exception as error:
            raise InputError(
                f"shape = {self.label!r}: the function failed with {type(error).__name__}: {error}"
            ) from error
        if f.shape not in ((), px.shape):
            raise InputError(
                f"shape = {self.label!r}: the function returned an array of shape {f.shape} for "
                f"momenta of shape {px.shape}; return one number for each momentum"
            )
        f = np.broadcast_to(f, px.shape)
        bad = ~np.isfinite(f)
        if bad.any():
            first = int(bad.argmax())
            there = " and (" + ", ".join(f"{x:.6g}" for x in where) + ") fm" if where else ""
            raise InputError(
                f"shape = {self.label!r}: the function returned {f[first]} at "
                f"{place(np.array([px, py, pz])[:, first])}{there}; return finite numbers"
            )
        return f

    def extent(self) -> float:
        return 2.0


@dataclass(frozen=True)
class NodeValues(Shape):
    """An array of f at all nodes of a grid, taken as it is."""

    array: Array = field(repr=False, compare=False)

    def values(self, grid: PhaseSpace, species: Species, mass_squared: float) -> Array:
        return self.values_at(grid, species, mass_squared, 0)

    def is_local(self, grid: PhaseSpace) -> bool:
        return grid.sites > 1 and self.array.size == grid.sites * grid.size

    def values_at(
        self, grid: PhaseSpace, species: Species, mass_squared: float, site: int
    ) -> Array:
        homogeneous = ((grid.size,), grid.momentum_cells)
        in_space = ((grid.sites, grid.size), (*grid.space_cells, *grid.momentum_cells))
        if self.array.shape in in_space:
            return np.array(self.array.reshape(grid.sites, grid.size)[site], dtype=float)
        if self.array.shape not in homogeneous:
            also = f" or (x, y, z, px, py, pz) = {in_space[1]}" if grid.sites > 1 else ""
            raise InputError(
                f"array of shape {self.array.shape} does not fit {_describe(grid)}: use (px, py, "
                f"pz) = {grid.momentum_cells}{also}"
            )
        return np.array(self.array, dtype=float).reshape(grid.size)

    def extent(self) -> float:
        raise InputError("array: needs a PhaseSpace, an automatic box does not know its nodes")


SHAPES: dict[str, type[Shape]] = {
    "step": Step,
    "thermal": Thermal,
    "gaussian": Gaussian,
    "random": Random,
    "gradient": Gradient,
    "file": FromFile,
}
"""Shapes by their name in a configuration; a function is named "file.py:function"."""


# --- files --------------------------------------------------------------------------------------


def load_function(text: str, key: str) -> Callable[..., Any]:
    """The function named by "file.py:function"; errors begin with the key."""
    where, _, name = text.rpartition(":")
    path = Path(where)
    if path.suffix != ".py" or not name.isidentifier():
        raise InputError(f"{key} = {text!r}: write file.py:function")
    if not path.is_file():
        raise InputError(f"{key} = {text!r}: there is no file {path}")
    path = path.resolve()
    module_name = f"relboltz_user_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)  # type: ignore[union-attr]
    except Exception as error:
        raise InputError(
            f"{key} = {text!r}: {path.name} failed with {type(error).__name__}: {error}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        known = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_")]
        raise InputError(
            f"{key} = {text!r}: {path.name} has no function {name!r}; {suggest(name, known)}"
        )
    return function


def _open(path: str | Path) -> Any:
    import xarray

    if not Path(path).is_file():
        raise InputError(f"path = {str(path)!r}: there is no such file")
    try:
        dataset = xarray.open_dataset(path, engine="h5netcdf")
    except Exception as error:
        raise InputError(f"path = {str(path)!r}: cannot be read as NetCDF: {error}") from error
    wanted = ("f", "species", "px", "py", "pz")
    missing = [name for name in wanted if name not in dataset.variables]
    if missing or not dataset.sizes.get("snapshot"):
        dataset.close()
        what = ", ".join(missing) or "snapshots"
        raise InputError(
            f"path = {str(path)!r}: has no {what}; use a file written by relboltz, with snapshots "
            "(a run in space keeps those that output.snapshots asks for)"
        )
    return dataset


def _grid_of(dataset: Any, path: str | Path) -> PhaseSpace:
    axes = [dataset[name].values for name in ("px", "py", "pz")]
    if any(len(axis) < 2 for axis in axes):
        widths = dataset.attrs.get("momentum_max")
        if widths is None:
            raise InputError(f"path = {str(path)!r}: an axis with one node does not tell its width")
    else:
        widths = [_half_width(axis) for axis in axes]
    places = [dataset[name].values if name in dataset["f"].dims else [0.0] for name in "xyz"]
    return PhaseSpace(
        [len(axis) for axis in axes], [float(w) for w in widths],
        [len(axis) for axis in places],
        [_half_width(axis) if len(axis) > 1 else 3.0 for axis in places],
    )  # fmt: skip


def _half_width(centres: Any) -> float:
    """Half width of an axis from the centres of its cells, at least two."""
    return float(f"{0.5 * np.ptp(centres) * len(centres) / (len(centres) - 1):.12g}")


def file_grid(path: str | Path) -> PhaseSpace:
    """The grid of the snapshots in a NetCDF file written by relboltz."""
    with _open(path) as dataset:
        return _grid_of(dataset, path)


def _last_snapshot(path: str | Path) -> tuple[PhaseSpace, list[str], Array]:
    """Grid, species and last f (species, ...) of a file."""
    changed = Path(path).stat().st_mtime_ns if Path(path).is_file() else 0
    return _read_snapshot(str(path), changed)


@lru_cache(maxsize=2)
def _read_snapshot(path: str, changed: int) -> tuple[PhaseSpace, list[str], Array]:
    with _open(path) as dataset:
        names = [str(name) for name in dataset["species"].values]
        place = [name for name in "xyz" if name in dataset["f"].dims]
        f = dataset["f"].isel(snapshot=-1).transpose("species", *place, "px", "py", "pz")
        return _grid_of(dataset, path), names, f.values.astype(np.float64)


def _same(a: PhaseSpace, b: PhaseSpace) -> bool:
    """Whether two grids have the same cells and widths; those of homogeneous axes do not matter."""
    moving = list(b.moving_axes)
    one, other = ([*g.momentum_max, *np.array(g.space_max)[moving]] for g in (a, b))
    same = (a.momentum_cells, a.space_cells) == (b.momentum_cells, b.space_cells)
    return same and np.allclose(one, other, rtol=1e-9, atol=0)


def _describe(grid: PhaseSpace) -> str:
    cells = " x ".join(str(n) for n in grid.momentum_cells)
    if grid.sites > 1:
        cells = " x ".join(str(n) for n in grid.space_cells) + " space cells with " + cells
    return f"{cells} cells to ({', '.join(f'{w:g}' for w in grid.momentum_max)}) GeV"
