"""Initial conditions: f at the start of a run.

>>> import relboltz as rb
>>> start = {"g": rb.initial.step(height=0.5, edge=1.5)}
>>> result = rb.solve(rb.gluons(0.3), 41, start, end=1.0)

Initial conditions are a dictionary by species ("g", "u", "ubar", ...) or group ("quarks",
"antiquarks"); a species overrides its group, and species not named are empty. Each entry is one of
the functions below, a function of your own, f(px, py, pz) of arrays in GeV or f(x, y, z, px, py,
pz) with the position in fm, or an array of f at the nodes, (px, py, pz), in space (x, y, z, px,
py, pz):

>>> import numpy as np
>>> start = {
...     "quarks": rb.initial.thermal(temperature=0.4, chemical_potential=0.1),
...     "g": lambda px, py, pz: np.exp(-np.sqrt(px**2 + py**2 + pz**2) / 0.5),
... }

In space, the ``profile`` of a shape gives its dependence on the transverse position:

>>> almond = rb.initial.gaussian_profile(radius=2.0, eccentricity=0.3)
>>> start = {"g": rb.initial.romatschke_strickland(0.5, xi=10.0, profile=almond)}

For fermions f is at most 1; masses, momenta and temperatures are in GeV.
"""

from ..util.user_code import load_function as load_function
from .constructors import (  # fmt: skip
    from_file,
    from_function,
    gaussian,
    gaussian_profile,
    glasma,
    gradient,
    random,
    romatschke_strickland,
    step,
    thermal,
    two_components,
)
from .files import FromFile as FromFile
from .files import file_grid as file_grid
from .functions import FromFunction as FromFunction
from .functions import NodeValues as NodeValues
from .occupation import SHAPES as SHAPES
from .occupation import Start as Start
from .occupation import evaluate as evaluate
from .occupation import extent as extent
from .occupation import starting_states as starting_states
from .shapes import Shape as Shape

__all__ = [
    "from_file", "from_function", "gaussian", "gaussian_profile", "glasma", "gradient", "random",
    "romatschke_strickland", "step", "thermal", "two_components",
]  # fmt: skip
