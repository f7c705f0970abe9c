"""Compilation of matrix elements into loops over a chunk of events.

Each distinct function gets one small generated module. Modules for built-in matrix elements are
named by a hash of their contents, so that the next run finds the compiled code; users' functions
are compiled anew for every solve() and collision_term(), in half a second.
"""

import contextlib
import hashlib
import inspect
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from ..events.collisions import Channel, inner_weights
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..model.process import Process
from ..util import cache
from ..util.arrays import Array
from ..util.errors import InputError, raising_element
from ..util.jit import FASTMATH, Function, cache_folder
from .cpu import collision_events as k

Masses = tuple[float, ...]
TEMPLATE = '''"""Generated: {name} for every event of a chunk."""

import numba

from relboltz.backends.cpu.collision_events import ELEMENT, M2, Q2, QU2, S, T
from relboltz.backends.physics import compiled as physics
from relboltz.util.jit import FASTMATH, FunctionCache, compiled_for, keep
{imports}
element = numba.njit(error_model="numpy", fastmath=FASTMATH, forceinline=True)(function)


def evaluate(count, m2, screening, parameters, w):
    """|M|^2 of every drawn pair."""
    ma2, mb2, mc2, md2 = m2
    screening2, exchange2, ekt = screening
{hoisted}
    for i in range(count):
        s = w[S + i]
        t = w[T + i]
        q2 = w[Q2 + i]
        qu2 = w[QU2 + i]
{preamble}
        w[M2 + i] = element({arguments})
'''
DERIVED = {
    "u": "ma2 + mb2 + mc2 + md2 - s - t",
    "t_part": "physics.energy_part(s, ma2, mb2, mc2, md2)",
    "u_part": "physics.energy_part(s, ma2, mb2, md2, mc2)",
    "t_regulated": "t - screening2",
    "u_regulated": "u - screening2",
    "t_screened": "physics.screened(t, q2, screening2, ekt, s, t_part)",
    "u_screened": "physics.screened(u, qu2, screening2, ekt, s, u_part)",
    "t_exchanged": "physics.screened(t, q2, exchange2, ekt, s, t_part)",
    "u_exchanged": "physics.screened(u, qu2, exchange2, ekt, s, u_part)",
}
"""Quantities derived from s, t, the masses of the legs and q2, qu2; a matrix element may request
any of them by name except t_part and u_part."""


FIXED = """

evaluate = numba.njit(nogil=True, error_model="numpy", fastmath=FASTMATH)(evaluate)
evaluate = compiled_for(keep(evaluate, FunctionCache), ELEMENT)
"""


NEGLIGIBLE = 1e-3
"""Ratio of the contribution of a node at rest to its neighbours' below which it is neglected."""


class Elements:
    """The matrix elements of a model, compiled for the CPU, for events and for inspection.

    compiled : the loop of every process and its parameters
    folds : whether |M|^2 of a process is symmetric in t and u, as for identical particles
    """

    def __init__(self, model: Model):
        self.model = model
        self.ekt = 1.0 if model.screening.ekt else 0.0
        memory: dict[Any, Function] = {}
        self.compiled = [evaluator(process, memory) for process in model.processes]
        self.folds = [self._foldable(index) for index in range(len(model.processes))]
        self._known: dict[tuple[Any, ...], float] = {}

    def _foldable(self, index: int) -> bool:
        process = self.model.processes[index]
        if not (process.identical and process.peak == "t"):
            return False
        kinds = sorted(set(process.legs))  # equal legs, and only they, have equal masses
        m2 = tuple(0.04 + 0.05 * kinds.index(leg) for leg in process.legs)
        s = np.repeat([0.8, 2.0, 7.0], 5)
        t = (sum(m2) - s) * np.tile([0.1, 0.25, 0.4, 0.6, 0.8], 3)
        u = sum(m2) - s - t
        mass = np.full(len(self.model.screenings), 0.3)
        at_t = self.evaluate(index, s, t, m2, mass, -t, -u)
        at_u = self.evaluate(index, s, u, m2, mass, -u, -t)
        return bool(np.allclose(at_t, at_u, rtol=1e-9, atol=0))

    def screening(self, index: int, screening2: Any) -> tuple[float, float, float]:
        """Return the two squared screening masses of a process, and 1 for screening as in EKT."""
        rows = np.atleast_1d(screening2)
        row = self.model.exchange_row(self.model.processes[index].legs[0])
        return float(rows[0]), float(rows[row]), self.ekt

    def inner_weights(
        self, grid: PhaseSpace, channels: Sequence[Channel]
    ) -> list[tuple[float, float, float]]:
        """Return weights of the nodes next to p = 0 for ``kinematics.scatter``, by channel.

        Without symmetric sampling, 1/E of the leg p is a factor of C[f], not part of a sum: it
        gets no extra weight; only a massless node at p = 0 needs a finite value in its place.

        """
        more, reach2 = inner_weights(grid, self.model).tolist(), grid.inner_momentum_squared
        spacing = grid.cell_volume ** (1 / 3)
        at_rest = reach2 < 0.1 * spacing**2

        def weight(channel: Channel, leg: int, other: int) -> float:
            if more[leg] == 0.0 or at_rest:
                return float(more[leg])
            near = float(f"{spacing:.1e}"), float(f"{reach2:.1e}")  # two digits: few cache entries
            return float(more[leg]) * self._near_rest(channel, leg, other, *near)

        def of_p(channel: Channel) -> float:
            other, leg = channel.nodes
            if not channel.only_p:
                return weight(channel, leg, other)
            massless = more[leg] != 0.0 and self.model.constant_mass_squared[leg] == 0
            return grid.rest_inverse_energy if at_rest and massless else 0.0

        return [(weight(one, *one.nodes), of_p(one), reach2) for one in channels]

    def _near_rest(
        self, channel: Channel, leg: int, other: int, spacing: float, reach2: float
    ) -> float:
        """Return |M|^2 Phi_2 of a leg at rest relative to the next nodes, at 90 degrees; 0 to 1.

        Sums over nodes miss the integrand at p = 0. If |M|^2 vanishes with s, as for a constant
        cross section, the missing contribution is zero.
        """
        index = channel.process
        key = index, channel.pair, leg, other, spacing, reach2
        if key not in self._known:
            process, all_m2 = self.model.processes[index], self.model.constant_mass_squared
            m2 = tuple(float(all_m2[self.model.index(name)]) for name in process.legs)
            size2 = np.array([0.0, reach2])
            hard = np.sqrt(9 * spacing**2 + all_m2[other])
            s = all_m2[leg] + all_m2[other] + 2 * hard * np.sqrt(size2 + all_m2[leg])
            a, b, c, d = (x**0.5 for x in m2)
            s = np.maximum(s, max(a + b, c + d, 1e-3 * spacing) ** 2)
            t = m2[0] + m2[2] - 0.5 * (s + m2[0] - m2[1]) * (s + m2[2] - m2[3]) / s
            u, soft = sum(m2) - s - t, np.full(len(self.model.screenings), spacing**2)
            try:
                values = self.evaluate(index, s, t, m2, soft, -t, -u)
            except InputError:  # reported where matrix elements are checked
                values = np.zeros(2)
            x, y = (float(all_m2[kind]) ** 0.5 for kind in channel.pair)
            opening = np.maximum((s - (x - y) ** 2) * (s - (x + y) ** 2), 0.0)  # (2 k* sqrt(s))^2
            rest, near = (values * np.sqrt(opening) / s).tolist()
            found = rest / near if near > 0 else 0.0
            self._known[key] = min(found, 1.0) if found > NEGLIGIBLE else 0.0
        return self._known[key]

    def evaluate(
        self, index: int, s: Array, t: Array, m2: Masses, screening2: Array, q2: Array, qu2: Array
    ) -> Array:
        """Return |M|^2 of a process at given s and t [GeV^2]."""
        function, parameters = self.compiled[index]
        screening = self.screening(index, screening2)
        out = np.empty(len(s))
        w = np.zeros(k.ROWS * k.CHUNK)
        for first in range(0, len(s), k.CHUNK):
            part = slice(first, min(first + k.CHUNK, len(s)))
            count = part.stop - part.start
            for row, values in ((k.S, s), (k.T, t), (k.Q2, q2), (k.QU2, qu2)):
                w[row : row + count] = values[part]
            try:
                function(count, m2, screening, parameters, w)
            except Exception as error:
                raise raising_element(self.model.processes[index].name, error) from error
            out[part] = w[k.M2 : k.M2 + count]
        return out


def arguments_of(process: Process) -> tuple[str, list[float]]:
    """Return the argument list for generated source, and the parameters own_0, own_1, ..."""
    own = [name for name in process.arguments if name in process.parameters]
    arguments = ", ".join(
        f"own_{own.index(name)}" if name in own else name for name in process.arguments
    )
    return arguments, [process.parameters[name] for name in own]


def evaluator(process: Process, memory: dict[Any, Function]) -> tuple[Function, Array]:
    """Return the compiled loop of a process and the parameters to call it with.

    ``memory`` holds the loops of one model, so that processes share them. It must not outlive the
    model: the user may change objects that a function refers to and solve again.
    """
    arguments, own = arguments_of(process)
    parameters = np.array(own or [0.0])
    function = process.matrix_element
    key = (function, arguments)
    ours = process.built_in
    store = _package if ours else memory
    if key not in store:
        try:
            store[key] = _cached(function, arguments) if ours else _fresh(function, arguments)
        except (NumbaError, AttributeError, TypeError) as error:
            raise compile_error(process, error) from None
    return store[key], parameters


_package: dict[Any, Function] = {}
"""Loops of the built-in matrix elements, whose sources do not change during a process."""


def preamble(arguments: str, indent: int) -> str:
    """Return assignments of the derived arguments, beyond s, t, masses, q2 and qu2."""
    wanted = [*arguments.split(", "), "u", "t_part", "u_part"]
    lines = [f"{name} = {text}" for name, text in DERIVED.items() if name in wanted]
    return "\n".join(" " * indent + line for line in lines)


def _hoisted(arguments: str) -> str:
    """Return assignments of parameters to local variables, read once before the loop."""
    count = arguments.count("own_")
    return "\n".join(f"    own_{i} = parameters[{i}]" for i in range(count)) or "    pass"


def _text(name: str, imports: str, arguments: str) -> str:
    """Return the source of the generated module."""
    return TEMPLATE.format(
        name=name, imports=imports, arguments=arguments, hoisted=_hoisted(arguments),
        preamble=preamble(arguments, 8),
    )  # fmt: skip


def _cached(function: Function, arguments: str) -> Any:
    """Return the loop of a built-in matrix element, cached on disk between runs."""
    imports = f"from {function.__module__} import {function.__name__} as function"
    return load(_text(function.__name__, imports, arguments) + FIXED, "element").evaluate


def _fresh(function: Function, arguments: str) -> Any:
    """Compile the loop of a user's function, uncached: its dependencies cannot be tracked."""
    name = getattr(function, "__name__", "matrix element")
    plain = inspect.unwrap(getattr(function, "py_func", function))
    space: dict[str, Any] = {"function": plain}
    exec(_text(name, "", arguments), space)
    flags: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": FASTMATH}
    return numba.njit(space["ELEMENT"], **flags)(space["evaluate"])


def load(text: str, kind: str) -> types.ModuleType:
    """Import generated source as a module named by its hash; a copy goes to the shared cache."""
    name = f"{kind}_" + hashlib.sha256(text.encode()).hexdigest()[:16]
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_folder()
    path = f"<{name}>" if folder is None else str(folder / f"{name}.py")
    if folder is not None and cache.read(Path(path)) != text.encode():
        with contextlib.suppress(OSError):
            cache.write(Path(path), text.encode())
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module  # Numba looks here when it loads compiled code
    exec(compile(text, path, "exec"), vars(module))
    return module


def compile_error(process: Process, error: Exception) -> InputError:
    """Return a compiler error as one readable line."""
    name = getattr(process.matrix_element, "__name__", "?")
    which = f"process {process.name}: the matrix element {name} does not"
    if "setitem" in str(error):
        return InputError(f"{which} return a number")
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    skip = ("Failed in", "During:", "File ", "-", ">>>", "There are", "raised from", "<source")
    reason = next((line for line in lines if not line.startswith(skip)), lines[0])
    return InputError(
        f"{which} compile: {reason}. Use plain arithmetic and functions of the math module on the "
        "numbers it is given; helper functions must be decorated with numba.njit"
    )
