"""Initial states: shapes of f, one for each species or group, and f on the nodes."""

from ..loading import load_function
from .files import FromFile, file_grid
from .functions import FromFunction, NodeValues
from .shapes import Gaussian, Gradient, Random, Shape, Step, Thermal
from .start import SHAPES, Start, evaluate, extent, starting_states

step, thermal, gaussian, random, gradient = Step, Thermal, Gaussian, Random, Gradient
from_file, from_function = FromFile, FromFunction

__all__ = [
    "SHAPES", "FromFile", "FromFunction", "NodeValues", "Shape", "Start", "evaluate", "extent",
    "file_grid", "from_file", "from_function", "gaussian", "gradient", "load_function", "random",
    "starting_states", "step", "thermal",
]  # fmt: skip
