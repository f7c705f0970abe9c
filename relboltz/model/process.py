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
"""What a matrix element gets, in this order, if it does not ask by name."""
OPTIONAL = (
    "screening2", "exchange2", "q2", "qu2", "t_screened", "u_screened", "t_exchanged",
    "u_exchanged", "t_regulated", "u_regulated",
)  # fmt: skip
"""What it may also ask for by name: the squared screening mass, and that for the exchange of its
first leg's species; |k1 - k3|^2 and |k1 - p|^2 in the rest frame of the grid (less the part along
the total four-momentum, which only unequal masses make); t and u with the model's screening
applied, with one or the other mass; and t and u minus the squared screening mass."""


ASKED = (*KINEMATIC, *OPTIONAL)
FINGERPRINTS = 16
"""Points at which matrix elements are compared."""
OWN = ("relboltz.model.qcd", "relboltz.model.process")
"""Modules whose matrix elements are this package's own."""
PER_FM2 = 1 / HBARC**2
"""GeV^-2 of 1 fm^2."""


def isotropic(
    s: float, ma2: float, mb2: float, mc2: float, md2: float, sigma: float, states: float
) -> float:
    """|M|^2 of a b -> c d with the same cross section sigma [fm^2] at all energies and angles.

    sigma = (1/states) Phi2 |M|^2 / (4 k sqrt s) with Phi2 = k'/(4 pi sqrt s), k and k' the momenta
    before and after in the centre-of-mass frame. states : g_a g_b, times 2 if c = d, because then
    half of all directions are all final states. |M|^2 ~ k/k' diverges at the threshold of c d;
    Phi2 |M|^2 ~ k, what an event from the side of a b has, does not.
    """
    before, after = s - ma2 - mb2, s - mc2 - md2
    before = before * before - 4.0 * ma2 * mb2
    after = after * after - 4.0 * mc2 * md2
    ratio = sqrt(before / after) if before > 0.0 and after > 0.0 else 0.0
    return 16.0 * pi * PER_FM2 * states * sigma * s * ratio


class Process:
    """One reaction a(k1) b(k2) <-> c(k3) d(p) and its matrix element.

    Parameters
    ----------
    reaction : such as ``"u g -> u g"``; the reverse reaction is included
    matrix_element : a plain Python function ``f(s, t, u, ma2, mb2, mc2, md2)`` or one that asks
        by name for any of these, for ``screening2, exchange2, q2, qu2, t_screened, u_screened,
        t_exchanged, u_exchanged, t_regulated, u_regulated`` and for its own parameters; |M|^2
        summed over all spins and colours, invariants in GeV^2. ``screening2`` is the squared
        screening mass of the model [GeV^2], ``t_regulated`` = t - screening2; ``t_screened`` is t
        with the model's screening applied (the same, or with ekt t (q2 + screening2)/q2), q2 =
        |k1 - k3|^2 in the frame of the grid; ``exchange2`` and ``t_exchanged`` are the same for the
        exchange of the first leg's species; u_... and qu2, |k1 - p|^2, likewise
    sigma : in place of a matrix element, the cross section of the reaction as written [fm^2], for
        all energies and angles the same; the masses and degeneracies are those of the model. (Where
        there is a matrix element, ``sigma`` is a parameter of its own like any other.)
    peak : ``"t"`` draws scattering angles with the weight 1/(screening2 - t)^2; flat otherwise
    **parameters : numbers that the function asks for by name
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
            vast = isinstance(value, int) and value.bit_length() > 1000  # more than a float holds
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
        """The name of the matrix element."""
        return getattr(self.matrix_element, "__name__", "?")

    def fingerprint(self) -> str:
        """Values of |M|^2 at fixed points, in digits: what they depend on besides the source, such
        as globals and helpers of other files, shows in them."""
        values = []
        for i in range(FINGERPRINTS):
            at = {name: (0.37 + 0.59 * ((7 * i + 3 * j) % 11)) for j, name in enumerate(ASKED)}
            at |= {"t": -0.5 * at["s"] * (0.1 + 0.08 * (i % 10)), **self.parameters}
            at["u"] = sum(at[m] for m in MASSES) - at["s"] - at["t"]
            try:
                value = self.matrix_element(*(at[name] for name in self.arguments))
                values.append(f"{float(value):.9e}")
            except Exception as error:  # a division by 0, or what is no number
                values.append(type(error).__name__)
        return hashlib.sha256(" ".join(values).encode()).hexdigest()[:16]

    @property
    def legs(self) -> tuple[str, ...]:
        """Species of the incoming, then of the outgoing side."""
        return tuple(leg for side in self.sides for leg in side)

    @property
    def built_in(self) -> bool:
        """Whether |M|^2 is a row of this package's table.

        Where screening makes such a row negative it counts as 0, and the weight of that is
        measured; a user's own |M|^2 must not be negative.
        """
        return getattr(self.matrix_element, "__module__", None) in OWN

    def among(self, degeneracies: Mapping[str, float]) -> "Process":
        """The same in a model with these degeneracies: a cross section is an average over them."""
        if not self.constant:
            return self
        a, b, c, d = self.legs
        bound = copy.copy(self)
        states = float(degeneracies[a] * degeneracies[b] * (2 if c == d else 1))
        bound.parameters = {**self.parameters, "states": states}
        return bound

    @property
    def elastic(self) -> bool:
        """Whether the same species go in and come out."""
        incoming, outgoing = self.sides
        return sorted(incoming) == sorted(outgoing)

    @property
    def constant(self) -> bool:
        """Whether it has a constant cross section, in the direction written."""
        return self.matrix_element is isotropic

    @property
    def multiplicity(self) -> float:
        """w: every pair of particles, every pair of products and every reaction counts once.

        Reproduces the paper's factors in front of N_q C_q and N_g C_g.
        """
        equal = sum(a == b for a, b in self.sides)
        return 0.5 ** (equal + self.elastic)

    @property
    def identical(self) -> bool:
        """Whether exchanging two equal legs maps t to u."""
        return any(a == b for a, b in self.sides)


def _cross_section(name: str, given: Mapping[str, float]) -> dict[str, float]:
    """The parameters of a constant cross section."""
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
    """Species of the incoming and of the outgoing side."""
    if not isinstance(reaction, str):
        raise InputError(f"process {shown(reaction)}: write a text such as 'u g -> u g'")
    sides = [tuple(side.split()) for side in reaction.replace("<->", "->").split("->")]
    if len(sides) != 2 or any(len(side) != 2 for side in sides):
        raise InputError(
            f"process {reaction!r}: write two species, '->', two species: 'u g -> u g'"
        )
    return sides[0], sides[1]


def _arguments(process: Process) -> tuple[str, ...]:
    """Which quantity each argument of the matrix element stands for."""
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
    """A list of species or processes, and nothing else."""
    what = kind.__name__.lower()
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{what} = {shown(given)}: use a list, such as [{example}]")
    found = tuple(given)
    for one in found:
        if not isinstance(one, kind):
            raise InputError(f"{what} = {shown(one)}: is no {kind.__name__}; write {example}")
    return found
