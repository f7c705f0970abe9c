"""Safe display of external text in messages and on a terminal: shortened and escaped."""

import difflib
import math
import unicodedata
from collections.abc import Iterable

LONGEST = 200
"""Maximum number of characters of a value in a message."""


def shown(value: object) -> str:
    """Return the repr of a value for a message, truncated if long."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {round(value.bit_length() * 0.30103) + 1} digits"
    try:
        text = repr(value)
    except Exception as error:  # nested too deep, or numbers with thousands of digits
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... {text[-15:]}"


def suggest(word: str, known: Iterable[str]) -> str:
    """Return 'did you mean ...?' or the list of known words."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def harmless(text: object) -> str:
    """Return text with control characters escaped, which a terminal would obey."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1]
        for c in str(text)
    )


def unmarked(text: object) -> str:
    """Return ``harmless`` text for rich, with square brackets escaped, which are its markup."""
    from rich.markup import escape

    return escape(harmless(text))


def with_error(value: float, error: float) -> str:
    """Return a value and its standard error, both to the first digit of the error."""
    if not (error > 0 and math.isfinite(error) and math.isfinite(value)):
        return f"{value:.4g}"
    size = math.floor(math.log10(max(abs(value), error)))
    scale, unit = (1.0, "") if -4 <= size <= 4 else (10.0**size, f"e{size:+03d}")
    places = max(0, -int(f"{error / scale:.0e}".partition("e")[2]))
    if places > 12:  # rounding error of sums, not noise
        return f"{value:.4g} ± {error:.0e}"
    both = f"{value / scale:.{places}f} ± {error / scale:.{places}f}"
    return f"({both}){unit}" if unit else both


def is_number(value: object) -> bool:
    """Whether a value is a number; True and False are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
