"""How matter expands: scale factors a_i(t), with p_i = k_i / a_i(t) of comoving momenta k.

Homogeneous directions may expand. Free particles keep their comoving momenta, so that f of a node
does not change: nodes are fixed in k, and the momenta they stand for shrink as 1/a.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .errors import InputError
from .loading import load_function, users_code
from .words import shown, suggest

KINDS = ("none", "bjorken", "hubble")
Scales = tuple[float, float, float]
APART = 1e-4
"""Part of a time over which a scale factor that is a function is differentiated."""


@dataclass(frozen=True)
class Expansion:
    """A law of expansion.

    law : "bjorken": along z, with proper time; "hubble": along all axes, with ``rate`` H [1/fm],
        a = exp(H t), or ``power`` n, a = t^n; "file.py:function" or a function of t [fm] that
        returns one a or three
    """

    law: Any
    rate: float | None = None
    power: float | None = None

    def __post_init__(self) -> None:
        law, key = self.law, f"grid.expansion = {shown(self.law)}"
        if isinstance(law, str) and law not in KINDS and ".py:" not in law:
            raise InputError(f"{key}: {suggest(law, (*KINDS, 'file.py:function'))}")
        if not isinstance(law, str) and not callable(law):
            raise InputError(f"{key}: use 'bjorken', 'hubble' or a function of time in fm")
        given = [name for name in ("rate", "power") if getattr(self, name) is not None]
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
        """As the key of a configuration."""
        return self.law if isinstance(self.law, str) else getattr(self.law, "__name__", "function")

    @cached_property
    def _function(self) -> Callable[[float], Any]:
        law = self.law
        return load_function(law, "grid.expansion") if isinstance(law, str) else law

    def needs_start(self) -> bool:
        """Whether the time of the start must be above 0."""
        return self.law == "bjorken" or self.power is not None

    def scales(self, time: float, start: float) -> Scales:
        """a_i at a time [fm], 1 at the start."""
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

    def rates(self, time: float) -> Scales:
        """H_i = d ln a_i / dt at a time [1/fm]."""
        if self.law == "bjorken":
            return 0.0, 0.0, 1 / time
        if self.rate is not None or self.power is not None:
            h = self.rate if self.rate is not None else float(self.power or 0.0) / time
            return h, h, h
        apart = APART * max(abs(time), 1.0)
        late, early = self._called(time + apart), self._called(max(time - apart, 0.0))
        length = apart + min(apart, time)
        x, y, z = (math.log(b / a) / length for a, b in zip(early, late, strict=True))
        return x, y, z

    def _called(self, time: float) -> Scales:
        """What the user's function says."""
        with users_code(f"grid.expansion = {str(self)!r}: the function at t = {time:g} fm"):
            found = self._function(time)
            values = tuple(float(v) for v in found) if hasattr(found, "__len__") else None
            x, y, z = values if values is not None else (float(found),) * 3
        if not all(0.0 < v < math.inf for v in (x, y, z)):
            raise InputError(
                f"grid.expansion = {str(self)!r}: its scale factors at t = {time:g} fm are "
                f"{(x, y, z)}; return one number above 0, or three"
            )
        return x, y, z

    def grows(self, start: float, end: float) -> tuple[bool, bool, bool]:
        """Which axes expand or shrink between two times."""
        times = [start + (end - start) * i / 16 for i in range(1, 17)]
        found = [self.scales(t, start) for t in times]
        x, y, z = (any(a[i] != 1.0 for a in found) for i in range(3))
        return x, y, z


def expansion_of(law: Any, rate: float | None, power: float | None) -> Expansion | None:
    """What is told by the keys of [grid]."""
    if isinstance(law, Expansion):
        return law
    found = Expansion("none" if law is None else law, rate, power)
    return None if found.law == "none" else found
