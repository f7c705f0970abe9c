"""The physics functions, and compiled for the CPU under their own names."""

from ..events import brackets, collisions, drawing, elementary, kinematics, philox, projection
from ..util.jit import build, functions_of, scalar

FUNCTIONS = functions_of(philox, elementary, kinematics, projection, drawing, collisions, brackets)
"""Of events; what a backend does not call, it does not compile."""

compiled = build(FUNCTIONS, scalar)
