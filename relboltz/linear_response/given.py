"""Checks of user input: temperatures, chemical potentials, powers, sizes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..checks.accuracy import HOTTEST, IN_MEV
from ..grid.units import LARGEST, SMALLEST
from ..model.model import Model
from ..util.arrays import Array
from ..util.errors import AccuracyWarning, InputError, say
from ..util.text import is_number, shown, suggest

Potentials = float | Mapping[str, float]
Powers = Mapping[str, Sequence[float]]
POWERS: dict[str, tuple[float, ...]] = {
    "shear": (-1, 0, 1, 2, 3),
    "vector": (-1, 0, 1, 2, 3),
    "scalar": (-1, 0, 1, 2, 0.5, -0.5, 1.5),
}
"""Powers k of the trial functions tensor x E^k of every species, the most useful first."""
LEAST_POWER, MOST_POWER = -2.0, 6.0


def temperatures(value: Any) -> Array:
    """Return the temperatures [GeV] as an array."""
    found = np.atleast_1d(np.asarray(value, dtype=object))
    if found.ndim != 1 or not len(found):
        raise InputError(f"temperature = {shown(value)}: give a number in GeV, or a list of them")
    for one in found:
        if not (is_number(one) or isinstance(one, np.number)) or not SMALLEST <= one <= LARGEST:
            raise InputError(
                f"temperature = {shown(one)}: a temperature in GeV is a positive number, from "
                f"{SMALLEST:g} to {LARGEST:g}"
            )
    if max(found) > HOTTEST:
        say(f"temperature = {max(found):g} GeV: {IN_MEV}", AccuracyWarning)
    return found.astype(float)


def potentials(model: Model, value: Potentials) -> Array:
    """Return mu of every species [GeV], from a number or numbers by species, group or charge."""
    mu = np.zeros(len(model.species))
    if not isinstance(value, Mapping):
        mu[:] = _potential("chemical_potential", value)
    else:
        charges = charges_of(model)
        own: dict[int, float] = {}
        for key, number in value.items():
            each = _potential(f"chemical_potential.{key}", number)
            if key in model.names or key in model.groups:
                for a in model.indices(key, "chemical_potential"):
                    own[a] = each if key in model.names or a not in own else own[a]
            elif key in charges:
                mu += each * charges[key]
            else:
                known = (*model.names, *model.groups, *charges)
                raise InputError(f"unknown key chemical_potential.{key}: {suggest(key, known)}")
        for a, each in own.items():
            mu[a] += each
    _check_processes(model, mu)
    return mu


def charges_of(model: Model) -> dict[str, Array]:
    """Return charges by name: conserved by the processes, or assigned to the species."""
    found = {name: np.array(row, float) for name, row in model.conserved.items()}
    for key in dict.fromkeys(k for s in model.species for k in s.charges):
        found.setdefault(key, np.array([s.charges.get(key, 0.0) for s in model.species], float))
    return found


def _potential(key: str, value: Any) -> float:
    if not (is_number(value) or isinstance(value, np.number)) or not abs(value) <= LARGEST:
        raise InputError(f"{key} = {shown(value)}: a chemical potential is a number in GeV")
    return float(value)


def _check_processes(model: Model, mu: Array) -> None:
    """Raise InputError if a process changes the total potential, which excludes equilibrium."""
    for process, row in zip(model.processes, model.stoichiometry, strict=True):
        if abs(row @ mu) > 1e-9 * max(abs(mu).max(), 1e-300):
            before, after = (
                " + ".join(f"{mu[model.index(leg)]:.6g}" for leg in side) for side in process.sides
            )
            raise InputError(
                f"chemical_potential: {process.name} changes {before} GeV into {after} GeV: no "
                "equilibrium; give potentials of conserved charges "
                f"({', '.join(model.conserved) or 'there are none'})"
            )


def powers(value: Powers | None) -> dict[str, tuple[float, ...]]:
    """Return the powers of the trial functions by rank; defaults where none are given."""
    found = dict(POWERS)
    for key, row in (value or {}).items():
        if key not in POWERS:
            raise InputError(f"unknown key powers.{key}: {suggest(key, POWERS)}")
        numbers = tuple(float(v) for v in row)
        legal = all(LEAST_POWER <= v <= MOST_POWER and 2 * v % 1 == 0 for v in numbers)
        if not numbers or not legal or len(set(numbers)) < len(numbers):
            raise InputError(
                f"powers.{key} = {shown(list(row))}: give different multiples of 1/2 from "
                f"{LEAST_POWER:g} to {MOST_POWER:g}"
            )
        found[key] = numbers
    return found


def whole(key: str, value: Any, least: int, most: int = 2**62) -> int:
    """Return the value as an integer; raise InputError if it is not one or out of range."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{key} = {shown(value)}: use a whole number")
    if not least <= value <= most:
        limits = f"{least} or more" if most > 10**9 else f"from {least} to {most}"
        raise InputError(f"{key} = {shown(value)}: use a whole number, {limits}")
    return int(value)


def check_connected(model: Model) -> None:
    """Raise InputError if some species never interact with the rest, so that they never relax."""
    joined = {name: name for name in model.names}
    for process in model.processes:
        roots = {joined[leg] for leg in process.legs}
        for name, root in joined.items():
            if root in roots:
                joined[name] = min(roots)
    alone = [name for name in model.names if joined[name] != joined[model.names[0]]]
    free = [name for name in model.names if all(name not in p.legs for p in model.processes)]
    if free:
        raise InputError(
            f"species {', '.join(free)} takes part in no process: transport coefficients are "
            "infinite; leave it out of the model or give it one"
        )
    if alone:
        raise InputError(
            f"species {', '.join(alone)} never collide with {model.names[0]}: their momentum is "
            "conserved apart, and diffusion is infinite; give each part a model of its own"
        )
