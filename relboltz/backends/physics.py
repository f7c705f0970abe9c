"""The physics functions, and compiled for the CPU under their own names."""

from ..compiling import build, functions_of, scalar
from ..events import brackets, collisions, drawing, elementary, kinematics, philox, projection

FUNCTIONS = functions_of(philox, elementary, kinematics, projection, drawing, collisions, brackets)
"""Of events; what a backend does not call, it does not compile."""

compiled = build(FUNCTIONS, scalar)
