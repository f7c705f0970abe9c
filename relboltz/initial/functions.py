"""Initial conditions given by user-defined functions or arrays."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Species
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.user_code import load_function, users_code
from .shapes import Shape, describe, place

FUNCTION_POINTS = 3
"""Gauss-Legendre points per axis of a momentum cell."""
SPACE_POINT = 0.5 / math.sqrt(3)
"""Two Gauss-Legendre points along each direction of a space cell, in units of its edge."""


@dataclass(frozen=True)
class FromFunction(Shape):
    """A function f(px, py, pz) of arrays [GeV] that returns an array of the same shape.

    The function may also be f(x, y, z, px, py, pz) with the position in fm. ``function`` is the
    function or its location, "file.py:function".
    """

    function: Any
    label: str = field(init=False, default="", compare=False)
    arguments: int = field(init=False, default=3, repr=False, compare=False)

    def _check(self) -> None:
        function, label = self.function, getattr(self.function, "__name__", repr(self.function))
        if isinstance(function, str):
            function, label = load_function(function, "shape"), function
        elif not callable(function):
            raise InputError(f"function = {function!r}: use a function or 'file.py:function'")
        self._keep(function=function, label=label, arguments=_arguments(function, label))

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        return self.arguments == 6

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        places = [()] if self.arguments == 3 else self._places(grid, site)
        calls = [partial(self._call, where) for where in places]
        f = [self._sampled(call, grid.momenta, grid, FUNCTION_POINTS) for call in calls]
        return np.mean(f, axis=0)

    def _places(self, grid: PhaseSpace, site: int) -> list[tuple[float, ...]]:
        """Return the points of a space cell at which the function is called [fm]."""
        offsets = [
            (-SPACE_POINT * h, SPACE_POINT * h) if n > 1 and self.sampling == "cell" else (0.0,)
            for n, h in zip(grid.space_cells, grid.space_spacing, strict=True)
        ]
        return [tuple(grid.positions[:, site] + offset) for offset in product(*offsets)]

    def _call(self, where: tuple[float, ...], px: Array, py: Array, pz: Array) -> Array:
        """Return f at a position, which is empty for a function of momenta alone."""
        places = [np.full_like(px, x) for x in where]
        with users_code(f"shape = {self.label!r}: the function"):
            f = self.function(*places, px.copy(), py.copy(), pz.copy())
            f = np.asarray(f, dtype=np.float64)
        if f.shape not in ((), px.shape):
            raise InputError(
                f"shape = {self.label!r}: the function returned an array of shape {f.shape} for "
                f"momenta of shape {px.shape}; return one number for each momentum"
            )
        f = np.broadcast_to(f, px.shape)
        bad = ~np.isfinite(f)
        if bad.any():
            first = int(bad.argmax())
            raise InputError(
                f"shape = {self.label!r}: the function returned {f[first]} at "
                f"{place((px[first], py[first], pz[first]), where)}; return finite numbers"
            )
        return f

    def extent(self) -> float:
        return 2.0


@dataclass(frozen=True)
class NodeValues(Shape):
    """An array of f at all nodes of a grid, used unchanged."""

    array: Array = field(repr=False, compare=False)

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        return grid.sites > 1 and self.array.size == grid.sites * grid.size

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        homogeneous = ((grid.size,), grid.momentum_cells)
        in_space = ((grid.sites, grid.size), (*grid.space_cells, *grid.momentum_cells))
        if self.array.shape in in_space:
            return np.array(self.array.reshape(grid.sites, grid.size)[site], dtype=float)
        if self.array.shape not in homogeneous:
            also = f" or (x, y, z, px, py, pz) = {in_space[1]}" if grid.sites > 1 else ""
            raise InputError(
                f"array of shape {self.array.shape} does not fit {describe(grid)}: use (px, py, "
                f"pz) = {grid.momentum_cells}{also}"
            )
        return np.array(self.array, dtype=float).reshape(grid.size)

    def extent(self) -> float:
        raise InputError("array: needs a PhaseSpace, an automatic box does not know its nodes")


def _arguments(function: Callable[..., Any], label: str) -> int:
    """Return 3 for a function of momenta, 6 for a function of phase-space coordinates."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some built-in functions have no signature
        return 3
    fits = [count for count in (3, 6) if _takes(signature, count)]
    if len(fits) == 2:  # the other arguments have defaults: the first name decides
        fits = [6 if next(iter(signature.parameters)) == "x" else 3]
        if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
            fits = []
    if not fits:
        raise InputError(
            f"shape = {label!r}: write the function as f(px, py, pz) or "
            "f(x, y, z, px, py, pz); other arguments need defaults"
        )
    return fits[0]


def _takes(signature: inspect.Signature, count: int) -> bool:
    """Whether a function can be called with the given number of arguments."""
    try:
        signature.bind(*range(count))
    except TypeError:
        return False
    return True
