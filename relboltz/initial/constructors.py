"""Public functions of ``relboltz.initial``: a constructor for each kind of initial condition."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .anisotropic import Glasma, RomatschkeStrickland
from .baths import Thermal
from .files import FromFile
from .functions import FromFunction
from .profiles import GaussianProfile, TwoComponents
from .shapes import Gaussian, Gradient, Random, Step


def step(height: float, edge: float, *, sampling: str = "cell", profile: Any = None) -> Step:
    """f = height for |p| <= edge [GeV], 0 outside: a sphere filled uniformly.

    sampling : "cell" averages f over each cell, "node" takes its value at the centre
    profile : dependence on transverse position, such as ``gaussian_profile``
    """
    return Step(height, edge, sampling=sampling, profile=profile)


def thermal(
    temperature: float,
    chemical_potential: float = 0.0,
    velocity: Sequence[float] = (0.0, 0.0, 0.0),
    *,
    sampling: str = "cell",
    profile: Any = None,
) -> Thermal:
    """f = 1/(exp((u . p - mu)/T) - eta): equilibrium, with flow if a velocity is given.

    Statistics eta and mass are those of the species; thermal masses are solved for together with
    f. ``temperature`` T and ``chemical_potential`` mu [GeV] refer to the fluid rest frame;
    ``velocity`` is that of the fluid (three numbers, of length below 1).

    sampling : "cell" has the right densities; only "node" is an exact equilibrium on the grid
    profile : dependence on transverse position, such as ``gaussian_profile``
    """
    return Thermal(
        temperature,
        chemical_potential,
        velocity,  # type: ignore[arg-type]  # checked by Thermal
        sampling=sampling,
        profile=profile,
    )


def gaussian(
    height: float, widths: float | Sequence[float], *, sampling: str = "cell", profile: Any = None
) -> Gaussian:
    """f = height exp(-Sum_i p_i^2/(2 w_i^2)) with widths w [GeV], one number or three.

    sampling : "cell" averages f over each cell, "node" takes its value at the centre
    profile : dependence on transverse position, such as ``gaussian_profile``
    """
    return Gaussian(height, widths, sampling=sampling, profile=profile)


def random(
    low: float, high: float, seed: int = 1, *, sampling: str = "cell", profile: Any = None
) -> Random:
    """f at each node uniform in [low, high), determined by the seed and the species name.

    profile : factor that depends on transverse position, such as ``gaussian_profile``
    """
    return Random(low, high, seed, sampling=sampling, profile=profile)


def gradient(minimum: float, maximum: float, *, sampling: str = "cell") -> Gradient:
    """f linear in x and p_x: rises with x and falls with p_x by maximum - minimum over the grid.

    The paper's initial condition in space. At the centre of the grid f is 2 minimum, and f ranges
    from 3 minimum - maximum to maximum + minimum.
    """
    return Gradient(minimum, maximum, sampling=sampling)


def from_file(path: str | Path, *, sampling: str = "cell") -> FromFile:
    """The last snapshot of f in a NetCDF file of relboltz, as the initial condition of a new run.

    The grid must be the one of the file. To continue the original run, at its own time, use
    ``relboltz.resume``. A run in space keeps f only at the times of ``snapshots``.
    """
    return FromFile(path, sampling=sampling)


def from_function(
    function: Callable[..., Any] | str, *, sampling: str = "cell", profile: Any = None
) -> FromFunction:
    """A function f(px, py, pz) of arrays [GeV], or f(x, y, z, px, py, pz) with the position in fm.

    It returns an array of the same shape. ``function`` is the function or its location,
    "file.py:function". The function can also be given directly: {"g": function}.

    sampling : "cell" averages f over each cell, "node" takes its value at the centre
    profile : factor that depends on transverse position, such as ``gaussian_profile``
    """
    return FromFunction(function, sampling=sampling, profile=profile)


def romatschke_strickland(
    temperature: float,
    chemical_potential: float = 0.0,
    xi: float = 0.0,
    *,
    sampling: str = "cell",
    profile: Any = None,
) -> RomatschkeStrickland:
    """f = 1/(exp((E - mu)/T) - eta) with E^2 = p_T^2 + (1 + xi) p_z^2 + m^2: anisotropic thermal.

    xi > 0 squeezes f along p_z, -1 < xi < 0 stretches it.

    sampling : "cell" averages f over each cell, "node" takes its value at the centre
    profile : dependence on transverse position, such as ``gaussian_profile``
    """
    return RomatschkeStrickland(
        temperature, chemical_potential, xi=xi, sampling=sampling, profile=profile
    )


def glasma(
    amplitude: float, scale: float, xi: float = 1.0, *, sampling: str = "cell", profile: Any = None
) -> Glasma:
    """f = A (Q/q) exp(-2 q^2/(3 Q^2)) with q^2 = p_T^2 + xi^2 p_z^2: decayed strong fields.

    amplitude : A; scale : Q [GeV]

    sampling : "cell" averages f over each cell, "node" takes its value at the centre
    profile : dependence on transverse position, such as ``gaussian_profile``
    """
    return Glasma(amplitude, scale, xi, sampling=sampling, profile=profile)


gaussian_profile, two_components = GaussianProfile, TwoComponents
