"""Formatting of text and numbers for the HTML page: escaped, short, in Unicode."""

import html
import json
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...util.text import harmless

DIGITS = 4
"""Significant digits of plotted numbers; more if they hardly differ."""
FINE = 6
"""Significant digits of times and positions."""
RAISED = str.maketrans("-+0123456789", "⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹")
LONGEST = 300
"""Largest number of characters of a name or a title."""


def text(description: object) -> str:
    """Return text escaped for HTML, with control characters spelt out."""
    return html.escape(harmless(description))


def cut(description: object) -> str:
    """Return text with control characters spelt out, truncated if long; not escaped for HTML."""
    plain = " ".join(harmless(description).split())
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 1]}…"


def unit(description: str) -> str:
    """Return a unit with raised exponents: fm⁻³ for fm^-3."""
    return re.sub(r"\^(-?\d+)", lambda found: found[1].translate(RAISED), description)


def with_unit(description: str, of: str) -> str:
    """Return a label with unit, such as 'particle density [fm⁻³]'; none if dimensionless."""
    return description if of == "1" else f"{description} [{unit(of)}]"


def number(description: str) -> str:
    """Typeset all numbers in a text: −5.8 × 10⁻⁴ for -5.8e-04."""

    def power(found: re.Match[str]) -> str:
        exponent = int(found[2])
        return found[1] + (f" × 10{str(exponent).translate(RAISED)}" if exponent else "")

    plain = re.sub(r"(\d(?:\.\d+)?)e([+-]\d+)", power, description)
    return re.sub(r"(?<![\w.])-(?=\d)", "−", plain)


def percent(part: float) -> str:
    """Return a relative difference with its sign, such as '+0.37 %' or '−160 %'."""
    return number(f"{100 * part:+.2g} %" if abs(part) < 0.995 else f"{100 * part:+.0f} %")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words: 'a, b and c'."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]


def duration(seconds: float) -> str:
    """Return a duration such as '7.2 s', '3 min 20 s' or '2 h 5 min'."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60} s"
    return f"{minutes // 60} h {minutes % 60} min"


def enough(values: Any) -> int:
    """Return the digits that resolve a thousandth of the range of values, from 4 to 8."""
    some = values[np.isfinite(values)]
    span = float(np.ptp(some)) if some.size else 0.0
    if span == 0:
        return DIGITS
    return int(np.clip(DIGITS + math.log10(float(np.abs(some).max()) / span), DIGITS, 8))


def numbers(values: Any, digits: int = DIGITS) -> Any:
    """Return nested lists of rounded values; values that are not finite become None."""
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
    """Return JSON that is safe inside a script element."""
    plain = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        plain = plain.replace(letter, f"\\u{ord(letter):04x}")
    return plain
