"""Transverse profiles of initial conditions: Gaussians, round or deformed.

With the angle phi about the centre of the grid a profile is w = exp(-r^2 g(phi)/(2 R'^2)), where
g = 1 + c cos n(phi - angle). Moments of r are powers of g: c and R' follow from the given

    eccentricity = -<r^n cos n(phi - angle)>/<r^n>,      2 radius^2 = <r^2>

with averages weighted by w. For n = 2 the profile is an ellipse with c = eccentricity, and
``angle`` is its short axis, along which matter will flow. If w multiplies f and masses are
constant, the energy density is proportional to w.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..grid.units import LARGEST, SMALLEST
from ..util.arrays import Array
from ..util.errors import InputError
from ..util.text import shown, suggest

SCALED = ("f", "temperature")
STEEPEST = 0.95
"""Largest eccentricity: beyond it a profile has spikes."""
POINTS = 3
"""Gauss-Legendre points along each direction of a space cell."""
ANGLES = 2048
"""Points in phi: integrals are exact to rounding except for the steepest profiles."""


def real(key: str, value: Any, legal: Callable[[float], bool], remedy: str) -> float:
    """Return a number within bounds that passes the test, or raise InputError with the remedy."""
    plain = isinstance(value, int | float | np.integer | np.floating)
    plain = plain and not isinstance(value, bool)
    if not plain or not abs(value) <= LARGEST or not legal(value):  # NaN fails both tests
        raise InputError(f"{key} = {shown(value)}: {remedy}")
    return float(value)


@lru_cache(maxsize=32)
def _deformed(eccentricity: float, harmonic: int) -> tuple[float, float]:
    """Return c, found by bisection (the eccentricity rises with c), and (R'/radius)^2."""
    cosine = np.cos(2 * np.pi * (np.arange(ANGLES) + 0.5) / ANGLES)

    def moment(c: float, power: float, weight: Any = 1.0) -> float:
        return float((weight * (1 + c * cosine) ** -power).mean())

    low, high = 0.0, 1.0 - 1e-9
    for _ in range(100):
        c, power = 0.5 * (low + high), 0.5 * harmonic + 1
        found = -moment(c, power, cosine) / moment(c, power)
        low, high = (c, high) if found < eccentricity else (low, c)
    c = low if eccentricity else 0.0
    return c, moment(c, 1.0) / moment(c, 2.0)


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    return np.polynomial.legendre.leggauss(POINTS)


@dataclass(frozen=True)
class GaussianProfile:
    """Deformed exp(-r^2/2 radius^2): w is 1 at the centre and multiplies f or T^4.

    radius [fm] : defined by <r^2> = 2 radius^2
    eccentricity : epsilon_n, from 0 to 0.95
    angle [rad] : direction of the short axis, or of one of the n steepest slopes
    harmonic : n, from 2 to 8
    scales : "f": w multiplies f; "temperature": w^(1/4) multiplies T
    """

    radius: float
    eccentricity: float = 0.0
    angle: float = 0.0
    harmonic: int = 2
    scales: str = "f"

    def __post_init__(self) -> None:
        wide = f"use a radius above 0 fm, from {SMALLEST:g} to {LARGEST:g}"
        small = f"use a number from 0 to {STEEPEST:g}"
        self._keep("radius", lambda v: v >= SMALLEST, wide)
        self._keep("eccentricity", lambda v: 0 <= v <= STEEPEST, small)
        self._keep("angle", np.isfinite, "use a number of rad")
        n = self.harmonic
        if isinstance(n, bool) or not isinstance(n, int) or not 2 <= n <= 8:
            raise InputError(f"profile.harmonic = {shown(n)}: use a whole number from 2 to 8")
        if self.scales not in SCALED:
            raise InputError(f"profile.scales = {shown(self.scales)}: use 'f' or 'temperature'")

    def _keep(self, key: str, legal: Callable[[float], Any], remedy: str) -> None:
        value = real(f"profile.{key}", getattr(self, key), legal, remedy)
        object.__setattr__(self, key, value)

    def at(self, x: Array | float, y: Array | float) -> Array:
        """Return w at positions [fm]."""
        return self._gaussian(x, y, self.radius)

    def _gaussian(self, x: Array | float, y: Array | float, radius: float) -> Array:
        c, widened = _deformed(self.eccentricity, self.harmonic)
        phi = np.arctan2(y, x) - self.angle
        g = 1 + c * np.cos(self.harmonic * phi)
        r2 = np.square(x) + np.square(y)
        return np.asarray(np.exp(-0.5 * r2 * g / (widened * radius**2)))

    def of_cell(self, grid: PhaseSpace, site: int, sampling: str) -> float:
        """Return w of a space cell: its average, or its value at the centre."""
        x, y, _ = grid.positions[:, site]
        if sampling == "node":
            return float(self.at(x, y))
        nodes, weights = _rule()
        rules = [
            list(zip(0.5 * h * nodes, 0.5 * weights, strict=True)) if n > 1 else [(0.0, 1.0)]
            for n, h in zip(grid.space_cells[:2], grid.space_spacing[:2], strict=True)
        ]
        return float(sum(a * b * self.at(x + u, y + v) for (u, a), (v, b) in product(*rules)))


@dataclass(frozen=True)
class TwoComponents(GaussianProfile):
    """Sum of two concentric Gaussians with heights 1 - share and share.

    Both have the given eccentricity and angle, and so does their sum.
    """

    second_radius: float = 0.0
    share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        wide = f"a profile of two components needs it, above 0 fm, at most {LARGEST:g}"
        self._keep("second_radius", lambda v: v >= SMALLEST, wide)
        self._keep("share", lambda v: 0 <= v <= 1, "use a number from 0 to 1")

    def at(self, x: Array | float, y: Array | float) -> Array:
        first, second = (self._gaussian(x, y, r) for r in (self.radius, self.second_radius))
        return np.asarray((1 - self.share) * first + self.share * second)


PROFILES: dict[str, type[GaussianProfile]] = {
    "gaussian": GaussianProfile,
    "two-component": TwoComponents,
}
"""Profiles by their ``kind``."""


def profile_of(given: Any) -> GaussianProfile | None:
    """Return a profile from a table with ``kind`` and its keys; return a profile unchanged."""
    if given is None or isinstance(given, GaussianProfile):
        return given
    example = 'such as { kind = "gaussian", radius = 2.0 }'
    if not isinstance(given, Mapping):
        raise InputError(f"profile = {shown(given)}: use a table {example}")
    kind = given.get("kind", "gaussian")
    if not isinstance(kind, str) or kind not in PROFILES:
        advice = suggest(kind if isinstance(kind, str) else "", PROFILES)
        raise InputError(f"profile.kind = {shown(kind)}: {advice}")
    known = {field.name: field.default for field in fields(PROFILES[kind])}
    for key in given:
        if key not in ("kind", *known):
            raise InputError(f"profile.{key}: unknown key; {suggest(str(key), known)}")
    needed = [name for name, default in known.items() if default in (MISSING, 0.0)]
    needed = [name for name in needed if name.endswith("radius") and name not in given]
    if needed:
        raise InputError(f"profile.{needed[0]}: missing; {kind!r} needs it, in fm")
    return PROFILES[kind](**{key: value for key, value in given.items() if key != "kind"})
