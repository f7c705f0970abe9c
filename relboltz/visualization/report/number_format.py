"""Text and numbers as a page may hold them: escaped, short, in letters alone."""

import html
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...util.text import harmless

DIGITS = 4
"""Significant ones of numbers that a page draws; more where they hardly differ."""
FINE = 6
"""Of times and places."""
RAISED = str.maketrans("-+0123456789", "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹")
LONGEST = 300
"""Letters of a name or a title that a page shows."""


def text(description: object) -> str:
    """What others wrote, without power over the page or the order of its letters."""
    return html.escape(harmless(description))


def cut(description: object) -> str:
    """The same, cut where it is long; not escaped yet."""
    plain = " ".join(harmless(description).split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def unit(description: str) -> str:
    """fm⁻³ of fm^-3."""
    return re.sub(r"\^(-?\d+)", lambda found: found[1].translate(RAISED), description)


def with_unit(description: str, of: str) -> str:
    """particle density [fm⁻³]; plain numbers have no unit."""
    return description if of == "1" else f"{description} [{unit(of)}]"


def number(description: str) -> str:
    """−5.8 × 10⁻⁴ of -5.8e-04, wherever it stands; a minus in place of a hyphen."""

    def power(found: re.Match[str]) -> str:
        exponent = int(found[2])
        return found[1] + (f" × 10{str(exponent).translate(RAISED)}" if exponent else "")

    plain = re.sub(r"(\d(?:\.\d+)?)e([+-]\d+)", power, description)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", plain)


def percent(part: float) -> str:
    """A relative difference with its sign: +0.37 %, −160 %."""
    return number(f"{100 * part:+.2g} %" if abs(part) < 0.995 else f"{100 * part:+.0f} %")


def listed(names: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]


def duration(seconds: float) -> str:
    """7.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60} s"
    return f"{minutes // 60} h {minutes % 60} min"


def enough(values: Any) -> int:
    """Digits that tell values apart by a thousandth of their range, from 4 to 8."""
    some = values[np.isfinite(values)]
    span = float(np.ptp(some)) if some.size else 0.0
    if span == 0:
        return DIGITS
    return int(np.clip(DIGITS + math.log10(float(np.abs(some).max()) / span), DIGITS, 8))


def numbers(values: Any, digits: int = DIGITS) -> Any:
    """Nested lists of few digits; what is not finite is None."""
    if (isinstance(values, np.ndarray) and values.ndim > 1) or isinstance(values, list):
        return [numbers(part, digits) for part in values]
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return [_short(v, digits) for v in values.tolist()]
    return _short(float(values), digits)


def _short(value: float, digits: int) -> float | int | None:
    if not math.isfinite(value):
        return None
    few = float(f"{value:.{digits}g}")
    return int(few) if few == int(few) and abs(few) < 10**9 else few


def embedded(data: Any) -> str:
    """JSON that can stand within a script element."""
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        plain = plain.replace(letter, f"\\u{ord(letter):04x}")
    return plain
