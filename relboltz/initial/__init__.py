"""Initial states: shapes of f, one for each species or group, and f on the nodes."""

from .anisotropic import Glasma, RomatschkeStrickland
from .baths import Thermal
from .files import FromFile, file_grid
from .functions import FromFunction, NodeValues, load_function
from .profiles import GaussianProfile, TwoComponents
from .shapes import Gaussian, Gradient, Random, Shape, Step
from .start import SHAPES, Start, evaluate, extent, starting_states

step, thermal, gaussian, random, gradient = Step, Thermal, Gaussian, Random, Gradient
romatschke_strickland, glasma = RomatschkeStrickland, Glasma
from_file, from_function = FromFile, FromFunction
gaussian_profile, two_components = GaussianProfile, TwoComponents

__all__ = [
    "SHAPES", "FromFile", "FromFunction", "NodeValues", "Shape", "Start", "evaluate", "extent",
    "file_grid", "from_file", "from_function", "gaussian", "gaussian_profile", "glasma",
    "gradient", "load_function", "random", "romatschke_strickland", "starting_states", "step",
    "thermal", "two_components",
]  # fmt: skip
