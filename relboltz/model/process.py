"""Process: one reaction and its matrix element."""

import copy
import hashlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from math import pi, sqrt
from typing import Any

import numpy as np

from ..grid.units import HBARC
from ..util.errors import InputError
from ..util.text import is_number, shown, suggest

MASSES = ("ma2", "mb2", "mc2", "md2")
KINEMATIC = ("s", "t", "u", *MASSES)
"""Arguments of a matrix element, in this order, if it does not use them by name."""
OPTIONAL = (
    "screening2", "exchange2", "q2", "qu2", "t_screened", "u_screened", "t_exchanged",
    "u_exchanged", "t_regulated", "u_regulated",
)  # fmt: skip
"""Further arguments available by name: the squared screening mass, and that for the exchange of the
first leg's species; |k1 - k3|^2 and |k1 - p|^2 in the rest frame of the grid (without the component
along the total four-momentum, which only unequal masses produce); t and u with the model's
screening applied, for either screening mass; and t and u minus the squared screening mass."""


ASKED = (*KINEMATIC, *OPTIONAL)
FINGERPRINTS = 16
"""Number of points at which matrix elements are compared."""
OWN = ("relboltz.model.qcd", "relboltz.model.process")
"""Modules of this package that contain matrix elements."""
PER_FM2 = 1 / HBARC**2
"""1 fm^2 in GeV^-2."""


def isotropic(
    s: float, ma2: float, mb2: float, mc2: float, md2: float, sigma: float, states: float
) -> float:
    """Return |M|^2 of a b -> c d for a constant, isotropic cross section sigma [fm^2].

    sigma = (1/states) Phi2 |M|^2 / (4 k sqrt s) with Phi2 = k'/(4 pi sqrt s), k and k' the momenta
    before and after in the centre-of-mass frame. states : g_a g_b, times 2 if c = d, because then
    half of the directions cover all final states. |M|^2 ~ k/k' diverges at the threshold of c d;
    the weight Phi2 |M|^2 ~ k of an event drawn from the side of a b does not.
    """
    before, after = s - ma2 - mb2, s - mc2 - md2
    before = before * before - 4.0 * ma2 * mb2
    after = after * after - 4.0 * mc2 * md2
    ratio = sqrt(before / after) if before > 0.0 and after > 0.0 else 0.0
    return 16.0 * pi * PER_FM2 * states * sigma * s * ratio


class Process:
    """Reaction a(k1) b(k2) <-> c(k3) d(p) and its matrix element.

    Parameters
    ----------
    reaction : such as ``"u g -> u g"``; the reverse reaction is included
    matrix_element : plain Python function ``f(s, t, u, ma2, mb2, mc2, md2)``, or a function with
        any of these as named arguments, and of ``screening2, exchange2, q2, qu2, t_screened,
        u_screened, t_exchanged, u_exchanged, t_regulated, u_regulated`` and its own parameters; it
        returns |M|^2 summed over all spins and colours, with invariants in GeV^2. ``screening2`` is
        the squared screening mass of the model [GeV^2] and ``t_regulated`` = t - screening2.
        ``t_screened`` is t with the model's screening applied: t_regulated, or t (q2 +
        screening2)/q2 with ekt, where q2 = |k1 - k3|^2 in the frame of the grid. ``exchange2`` and
        ``t_exchanged`` are the analogues for the exchange of the first leg's species; u_... and
        qu2 = |k1 - p|^2 are the analogues for u
    sigma : instead of a matrix element, the cross section of the reaction as written [fm^2],
        constant and isotropic; masses and degeneracies are those of the model. (With a matrix
        element, ``sigma`` is an ordinary parameter of the function.)
    peak : ``"t"`` draws scattering angles with the weight 1/(screening2 - t)^2; default: uniform
    **parameters : numbers for further named arguments of the function
    """

    def __init__(
        self,
        reaction: str,
        matrix_element: Callable[..., float] | None = None,
        *,
        peak: str | None = None,
        **parameters: float,
    ):
        self.sides = _parse(reaction)
        self.name = " -> ".join(" ".join(side) for side in self.sides)
        if matrix_element is None:
            matrix_element = isotropic
            parameters = {**_cross_section(self.name, parameters), "states": 1.0}
        if not callable(matrix_element):
            raise InputError(f"process {self.name}: the matrix element must be a function")
        if peak not in (None, "t"):
            raise InputError(f'process {self.name}: peak = {peak!r}: use "t" or leave it out')
        self.matrix_element = matrix_element
        self.peak = peak
        for key, value in parameters.items():
            if key in (*KINEMATIC, *OPTIONAL):
                raise InputError(
                    f"process {self.name}: {key!r} is the name of a kinematic quantity; give the "
                    "parameter another name"
                )
            # an integer beyond the range of a float
            vast = isinstance(value, int) and value.bit_length() > 1000
            if vast or not (is_number(value) or isinstance(value, np.number)):
                raise InputError(f"process {self.name}: {key} = {shown(value)} must be a number")
        self.parameters = {key: float(value) for key, value in parameters.items()}
        self.arguments = _arguments(self)

    def __repr__(self) -> str:
        if self.matrix_element is isotropic:
            return f"Process({self.name!r}, sigma={self.parameters['sigma']:g})"
        peak = f", peak={self.peak!r}" if self.peak else ""
        return f"Process({self.name!r}, {self.row}{peak})"

    @property
    def row(self) -> str:
        """Name of the matrix element."""
        return getattr(self.matrix_element, "__name__", "?")

    def fingerprint(self) -> str:
        """Return values of |M|^2 at fixed points as text.

        They reveal dependences beyond the function's source, such as globals and helper functions
        from other files.
        """
        values = []
        for i in range(FINGERPRINTS):
            at = {name: (0.37 + 0.59 * ((7 * i + 3 * j) % 11)) for j, name in enumerate(ASKED)}
            at |= {"t": -0.5 * at["s"] * (0.1 + 0.08 * (i % 10)), **self.parameters}
            at["u"] = sum(at[m] for m in MASSES) - at["s"] - at["t"]
            try:
                value = self.matrix_element(*(at[name] for name in self.arguments))
                values.append(f"{float(value):.9e}")
            except Exception as error:  # division by 0, or a result that is not a number
                values.append(type(error).__name__)
        return hashlib.sha256(" ".join(values).encode()).hexdigest()[:16]

    @property
    def legs(self) -> tuple[str, ...]:
        """Species of the incoming side, then of the outgoing side."""
        return tuple(leg for side in self.sides for leg in side)

    @property
    def built_in(self) -> bool:
        """Whether |M|^2 is a row of this package's table.

        If screening makes such a row negative, the row counts as 0 and the discarded weight is
        measured; a user-defined |M|^2 must not be negative.
        """
        return getattr(self.matrix_element, "__module__", None) in OWN

    def among(self, degeneracies: Mapping[str, float]) -> "Process":
        """Return the process for a model's degeneracies, over which a cross section averages."""
        if not self.constant:
            return self
        a, b, c, d = self.legs
        bound = copy.copy(self)
        states = float(degeneracies[a] * degeneracies[b] * (2 if c == d else 1))
        bound.parameters = {**self.parameters, "states": states}
        return bound

    @property
    def elastic(self) -> bool:
        """Whether incoming and outgoing species are the same."""
        incoming, outgoing = self.sides
        return sorted(incoming) == sorted(outgoing)

    @property
    def constant(self) -> bool:
        """Whether the cross section is constant, in the direction written."""
        return self.matrix_element is isotropic

    @property
    def multiplicity(self) -> float:
        """Multiplicity w: every incoming pair, outgoing pair and reaction counts once.

        It reproduces the paper's factors in front of N_q C_q and N_g C_g.
        """
        equal = sum(a == b for a, b in self.sides)
        return 0.5 ** (equal + self.elastic)

    @property
    def identical(self) -> bool:
        """Whether exchanging two equal legs maps t to u."""
        return any(a == b for a, b in self.sides)


def _cross_section(name: str, given: Mapping[str, float]) -> dict[str, float]:
    """Return the parameters of a constant cross section."""
    if "sigma" not in given:
        raise InputError(
            f"process {name}: give a matrix element, or sigma = its cross section in fm^2"
        )
    unknown = [key for key in given if key != "sigma"]
    if unknown:
        raise InputError(
            f"process {name}: {unknown[0]!r} says nothing about a constant cross section; leave it "
            "out, or give a matrix element"
        )
    sigma = given["sigma"]
    if not (is_number(sigma) or isinstance(sigma, np.number)) or not 0 < sigma < np.inf:
        raise InputError(
            f"process {name}: sigma = {shown(sigma)}: a cross section in fm^2 is a positive number;"
            " one that depends on energy or angle is a matrix element"
        )
    return {"sigma": float(sigma)}


def _parse(reaction: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the species of the incoming and of the outgoing side."""
    if not isinstance(reaction, str):
        raise InputError(f"process {shown(reaction)}: write a text such as 'u g -> u g'")
    sides = [tuple(side.split()) for side in reaction.replace("<->", "->").split("->")]
    if len(sides) != 2 or any(len(side) != 2 for side in sides):
        raise InputError(
            f"process {reaction!r}: write two species, '->', two species: 'u g -> u g'"
        )
    return sides[0], sides[1]


def _arguments(process: Process) -> tuple[str, ...]:
    """Return the quantity that each argument of the matrix element denotes."""
    try:
        names = list(inspect.signature(process.matrix_element).parameters.values())
    except (TypeError, ValueError) as error:
        raise InputError(
            f"process {process.name}: cannot read the arguments of the matrix element; "
            "use a plain Python function"
        ) from error
    known = (*KINEMATIC, *OPTIONAL, *process.parameters)
    usual = list(zip(names, KINEMATIC, strict=False))
    by_position = (  # other names for the usual seven
        len(names) >= 7
        and any(p.name not in known and p.default is p.empty for p, _ in usual)
        and all(p.name not in known or p.name == meant for p, meant in usual)
    )
    resolved = list(KINEMATIC) if by_position else []
    for parameter in names[len(resolved) :]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InputError(
                f"process {process.name}: the matrix element's argument {parameter.name!r} must "
                "be an ordinary one (no *args, **kwargs or keyword-only arguments)"
            )
        if parameter.name in known:
            resolved.append(parameter.name)
        elif isinstance(parameter.default, int | float):
            process.parameters[parameter.name] = float(parameter.default)
            resolved.append(parameter.name)
        else:
            raise InputError(
                f"process {process.name}: the matrix element asks for {parameter.name!r}, which "
                f"is not a parameter of this Process; {suggest(parameter.name, known)}"
            )
    unused = set(process.parameters) - set(resolved)
    if unused:
        raise InputError(
            f"process {process.name}: parameter {sorted(unused)[0]!r} is not an argument of the "
            "matrix element"
        )
    return tuple(resolved)


def listed(given: Any, kind: type[Any], example: str) -> tuple[Any, ...]:
    """Return the list as a tuple; raise InputError unless all entries are of the given kind."""
    what = kind.__name__.lower()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what} = {shown(given)}: use a list, such as [{example}]")
    found = tuple(given)
    for one in found:
        if not isinstance(one, kind):
            raise InputError(f"{what} = {shown(one)}: is no {kind.__name__}; write {example}")
    return found
