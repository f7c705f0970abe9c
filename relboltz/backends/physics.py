"""The physics functions shared by all backends, and their versions compiled for the CPU."""

from ..events import brackets, collisions, drawing, elementary, kinematics, philox, projection
from ..util.jit import build, functions_of, scalar

FUNCTIONS = functions_of(philox, elementary, kinematics, projection, drawing, collisions, brackets)
"""Functions of the event physics; a backend compiles only the functions that it calls."""

compiled = build(FUNCTIONS, scalar)
