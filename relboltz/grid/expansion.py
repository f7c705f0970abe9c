"""Expansion laws: scale factors a_i(t), with p_i = k_i / a_i(t) for comoving momenta k.

Homogeneous directions may expand. Free particles keep their comoving momenta, so that f at a node
does not change: nodes are fixed in k, and their physical momenta shrink as 1/a.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..util.errors import InputError
from ..util.text import is_number, shown, suggest
from ..util.trust import as_kept, path_of, text_of
from ..util.user_code import load_function, users_code
from .units import LARGEST

KINDS = ("none", "bjorken", "hubble")
Scales = tuple[float, float, float]
APART = 1e-4
"""Relative time step for the numerical derivative of a user-defined scale factor."""
WIDEST = 1e6
"""Largest scale factor, and inverse of the smallest."""
LOOKS = 33
"""Number of times at which a law is tested before a run."""
FUNCTION = "function "
"""Prefix of the name of a Python function in the description of a law."""


@dataclass(frozen=True)
class Expansion:
    """A law of expansion.

    law : "bjorken": along z, in proper time; "hubble": along all axes, with ``rate`` H [1/fm],
        a = exp(H t), or ``power`` n, a = t^n; "file.py:function" or a function of t [fm] that
        returns one a or three
    source : source code of the law's file, once read; other processes and resume run this code
    """

    law: Any
    rate: float | None = None
    power: float | None = None
    source: str | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        law, key = self.law, f"grid.expansion = {shown(self.law)}"
        if isinstance(law, str) and law not in KINDS and ".py:" not in law:
            raise InputError(f"{key}: {suggest(law, (*KINDS, 'file.py:function'))}")
        if not isinstance(law, str) and not callable(law):
            raise InputError(f"{key}: use 'bjorken', 'hubble' or a function of time in fm")
        if isinstance(law, str) and ".py:" in law:  # other hosts and resume need it
            where, _, name = law.rpartition(":")
            object.__setattr__(self, "law", f"{Path(where).absolute()}:{name}")
        given = [name for name in ("rate", "power") if getattr(self, name) is not None]
        for name in given:
            value = getattr(self, name)
            if not is_number(value) or not abs(value) <= LARGEST:
                raise InputError(
                    f"grid.hubble_{name} = {shown(value)}: use a number"
                    + (" of 1/fm" if name == "rate" else "")
                )
        if law != "hubble" and given:
            raise InputError(
                f"grid.hubble_{given[0]} = {getattr(self, given[0])!r}: is for expansion = 'hubble'"
            )
        if law == "hubble" and len(given) != 1:
            raise InputError(
                f"{key}: give hubble_rate (H in 1/fm, a = exp(H t)) or hubble_power (n, a = t^n), "
                "one of them"
            )

    def __str__(self) -> str:
        """Return the law as in a configuration; for a Python function its name."""
        if isinstance(self.law, str):
            return self.law
        return FUNCTION + getattr(self.law, "__name__", type(self.law).__name__)

    def __getstate__(self) -> dict[str, Any]:
        """Return the data that another process needs; it loads a function from its file itself."""
        return {"law": self.law, "rate": self.rate, "power": self.power, "source": self.source}

    @cached_property
    def _function(self) -> Callable[[float], Any]:
        law = self.law
        if not isinstance(law, str):
            function: Callable[[float], Any] = law
            return function
        if self.source is None:
            object.__setattr__(self, "source", text_of(path_of(law)))
        return load_function(as_kept(law, self.source), "grid.expansion")

    def needs_start(self) -> bool:
        """Whether the start time must be above 0."""
        return self.law == "bjorken" or self.power is not None

    def scales(self, time: float, start: float) -> Scales:
        """Return a_i at a time [fm]; a_i = 1 at the start."""
        if time == start:
            return 1.0, 1.0, 1.0
        if self.law == "bjorken":
            return 1.0, 1.0, time / start
        if self.law == "hubble":
            if self.rate is not None:
                a = math.exp(self.rate * (time - start))
            else:
                a = (time / start) ** float(self.power or 0.0)
            return a, a, a
        now, first = self._called(time), self._called(start)
        x, y, z = (b / a for a, b in zip(first, now, strict=True))
        return x, y, z

    def rates(self, time: float, start: float = 0.0) -> Scales:
        """Return H_i = d ln a_i / dt at a time [1/fm].

        For a function it is a backward difference, at the start a forward difference, so that the
        function is never evaluated before the start.
        """
        if self.law == "bjorken":
            return 0.0, 0.0, 1 / time
        if self.rate is not None or self.power is not None:
            h = self.rate if self.rate is not None else float(self.power or 0.0) / time
            return h, h, h
        apart = APART * max(abs(time), 1.0)
        first, last = (time - apart, time) if time - apart >= start else (time, time + apart)
        early, late = self._called(first), self._called(last)
        x, y, z = (math.log(b / a) / (last - first) for a, b in zip(early, late, strict=True))
        return x, y, z

    def problems(self, start: float, end: float) -> Iterator[str]:
        """Yield problems of the law, found by evaluating it at times from start to end [fm]."""
        remedy = {"bjorken": "time.start nearer to it", "hubble": "a smaller rate or power"}
        for i in range(LOOKS):
            t = start + (end - start) * i / (LOOKS - 1)
            try:
                worst = max(max(a, 1 / a) for a in self.scales(t, start))
            except (OverflowError, ZeroDivisionError):
                worst = math.inf
            if not worst <= WIDEST:
                yield (
                    f"grid.expansion = {str(self)!r}: its scale factors change by a factor "
                    f"{worst:.3g} until t = {t:g} fm, more than {WIDEST:g}; use an earlier "
                    f"time.end, or {remedy.get(self.law, 'a slower expansion')}"
                )
                return

    def _called(self, time: float) -> Scales:
        """Return the scale factors from the user's function."""
        with users_code(f"grid.expansion = {str(self)!r}: the function at t = {time:g} fm"):
            found = self._function(time)
        try:
            values = np.asarray(found, float).ravel()
        except (TypeError, ValueError):
            values = np.zeros(0)
        if values.size not in (1, 3) or not (np.isfinite(values) & (values > 0)).all():
            raise InputError(
                f"grid.expansion = {str(self)!r}: its scale factors at t = {time:g} fm are "
                f"{shown(found)}; return one number above 0, or three"
            )
        x, y, z = (float(v) for v in np.broadcast_to(values, 3))
        return x, y, z

    def fingerprint(self, start: float, end: float) -> list[list[float]]:
        """Return the scale factors at some times; they identify a function."""
        return [[t, *self.scales(t, start)] for t in np.linspace(start, end, 9).tolist()]

    def grows(self, start: float, end: float) -> tuple[bool, bool, bool]:
        """Return for each axis whether it expands or shrinks between two times."""
        times = [start + (end - start) * i / (LOOKS - 1) for i in range(1, LOOKS)]
        found = [self.scales(t, start) for t in times]
        x, y, z = (any(a[i] != 1.0 for a in found) for i in range(3))
        return x, y, z


def expansion_of(law: Any, rate: float | None, power: float | None) -> Expansion | None:
    """Return the expansion given by the keys of [grid]; None if there is none."""
    if isinstance(law, Expansion):
        return law
    found = Expansion("none" if law is None else law, rate, power)
    return None if found.law == "none" else found
