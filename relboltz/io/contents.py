"""Validation of a checkpoint's content before a run continues from it.

Checksums show that the bytes are those that were written, but not who wrote them.
"""

import contextlib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..stepping.state import State
from ..util.errors import InputError, RunError
from ..util.text import is_number, shown
from .checkpoint import CheckpointContent, of_run
from .journal import PARTS


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_folder(value: Any) -> bool:
    """Whether a value is the name of a folder of parts, without a path."""
    return isinstance(value, str) and bool(re.fullmatch(rf"([^/\\\0]+{PARTS})?", value))


def _is_toml(value: Any) -> bool:
    try:
        tables = tomllib.loads(value)
    except (AttributeError, TypeError, ValueError, RecursionError):
        return False
    return all(isinstance(tables.get(name), dict) for name in ("time", "output"))


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


FACTS: dict[str, Callable[[Any], bool]] = {
    "time": _is_finite,
    "end": _is_finite,
    "wall_seconds": _is_finite,
    "settings": _is(dict),
    "settings.time": _is(dict),
    "settings.output": _is(dict),
    "settings.run": _is(dict),
    "grid": _is(dict),
    "versions": _is(dict),
    "known": _is(dict),
    "known.predicted": lambda value: isinstance(value, dict) and _are_numbers(value.values()),
    "known.lost": lambda value: isinstance(value, list) and _are_numbers(value),
    "known.negative": lambda value: _are_numbers([value]),
    "known.attributes": _is(dict),
    "known.attributes.run": _is(str),
    "about": _is(dict),
    "about.title": _is(str),
    "about.configuration": _is_toml,
    "about.recipe": _is(dict),
    "place": _is(dict),
    "place.parts": _is_folder,
    "place.records": _is_count,
    "place.snapshots": _is_count,
    "place.lost": lambda value: value is None or _is_count(value),
}
"""Facts needed to continue a run, and a test for each."""


def damaged(saved: CheckpointContent, what: str) -> InputError:
    """Return the error for a checkpoint whose content no run would write."""
    name = saved.path.name.rpartition(".checkpoint-")[0]
    others = [p for p in of_run(saved.path.with_name(name)) if p != saved.path]
    remedy = f"remove it to go on from {others[-1].name}" if others else "start the run again"
    return InputError(
        f"{saved.path} cannot be used: {what}; it was changed, or another version of relboltz "
        f"wrote it: {remedy}"
    )


@contextlib.contextmanager
def readable(saved: CheckpointContent) -> Iterator[None]:
    """Turn any error during the evaluation of a checkpoint into an InputError."""
    try:
        yield
    except (InputError, RunError):
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = (str(error).splitlines() or ["?"])[0]
        raise damaged(saved, f"{type(error).__name__}: {why}") from None


def check_facts(saved: CheckpointContent) -> None:
    """Refuse facts that are missing or of the wrong type."""
    for name, fits in FACTS.items():
        value: Any = saved.facts
        for key in name.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not fits(value):
            raise damaged(saved, f"{name} = {shown(value)}")


def check_arrays(saved: CheckpointContent, model: Model, grid: PhaseSpace) -> None:
    """Refuse arrays that are missing, of another shape, or hold NaN where a number is needed."""
    for name, found in saved.arrays.items():
        if found.dtype.kind not in "biuf":
            raise damaged(saved, f"the array {name!r} holds no numbers")
    masses = (grid.sites, len(model.species) + len(model.screenings))
    shapes = {"number": (grid.sites, len(model.species), grid.size), "squares": masses}
    shapes |= {name: masses for name in saved.arrays if name.startswith("rate ")}
    for name, shape in shapes.items():
        if name not in saved.arrays:
            raise damaged(saved, f"the array {name!r} is missing")
        found = saved.arrays[name]
        if found.shape != shape:
            raise damaged(saved, f"the array {name!r} has the shape {found.shape}, not {shape}")
        if found.dtype.kind != ("i" if name == "number" else "f"):
            raise damaged(saved, f"the array {name!r} is of type {found.dtype}")
        if name == "number" and (found < 0).any():
            raise damaged(saved, "the array 'number' holds negative particle numbers")
        if not np.isfinite(found).all():
            raise damaged(saved, f"the array {name!r} holds NaN or infinite numbers")


def _lists(state: State) -> Iterator[tuple[str, Any]]:
    """Yield name and value of every attribute that must be a list; a wrong list as text."""
    texts, numbers = _is(str), lambda value: _are_numbers([value])
    wanted = {"said": texts, "stuck": texts, "waits": numbers, "doublings": _is_count}
    for name, fits in wanted.items():
        value = getattr(state, name)
        right = isinstance(value, list) and all(map(fits, value))
        right &= name == "said" or (right and len(value) == 3)
        yield name, value if right else str(value)
    for value in state.origin or ():
        right = isinstance(value, list) and _are_numbers(value)
        yield "origin", value if right else str(value)


def check_state(saved: CheckpointContent, state: State, model: Model) -> None:
    """Refuse a state whose scalars cannot come from a run."""
    numbers = {"time": state.time, "work": state.work, "bits": state.bits}
    numbers |= {"recorded": state.recorded, "kept": state.kept}
    lengths = [length for history in (state.past, *state.by_part) for _, length in history]
    counts = {"step": state.step, "species": state.species}
    odd: list[tuple[str, Any]] = [(k, v) for k, v in numbers.items() if not _is_finite(v)]
    odd += [(name, value) for name, value in counts.items() if not _is_count(value)]
    odd += [("step length", value) for value in lengths if not _is_finite(value) or value <= 0]
    odd += [("time", state.time)] if state.time != saved.facts["time"] else []
    odd += [] if is_number(state.wanted) and state.wanted > 0 else [("wanted", state.wanted)]
    odd += [(name, value) for name, value in _lists(state) if not isinstance(value, list)]
    for key, value in asdict(state.watch).items():
        if not _are_numbers(value if key == "negative" and isinstance(value, list) else [value]):
            odd.append((f"watch {key}", value))
    if len(state.watch.negative) not in (0, len(model.processes)):
        odd.append(("watch negative", state.watch.negative))
    for name, value in odd:
        raise damaged(saved, f"{name} of its state = {shown(value)}")
