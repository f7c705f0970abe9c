"""What others wrote, in messages and on a terminal: short, and without power over either."""

import difflib
import math
import unicodedata
from collections.abc import Iterable

LONGEST = 200
"""Characters of a value that a message shows."""


def shown(value: object) -> str:
    """A value as a message shows it: its repr, cut where it is long."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {round(value.bit_length() * 0.30103) + 1} digits"
    try:
        text = repr(value)
    except Exception as error:  # nested too deep, or numbers with thousands of digits within
        return f"a {type(value).__name__} that cannot be shown ({type(error).__name__})"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]} ... {text[-15:]}"


def suggest(word: str, known: Iterable[str]) -> str:
    """' Did you mean ...?' or the list of what is known."""
    known = list(known)
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"


def harmless(text: object) -> str:
    """A text without what a terminal would obey: control characters are spelt out."""
    return "".join(
        c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1]
        for c in str(text)
    )


def unmarked(text: object) -> str:
    """The same for rich, which would read square brackets as markup."""
    from rich.markup import escape

    return escape(harmless(text))


def with_error(value: float, error: float) -> str:
    """A value and its standard error, both to the first digit of the error."""
    if not (error > 0 and math.isfinite(error) and math.isfinite(value)):
        return f"{value:.4g}"
    size = math.floor(math.log10(max(abs(value), error)))
    scale, unit = (1.0, "") if -4 <= size <= 4 else (10.0**size, f"e{size:+03d}")
    places = max(0, -int(f"{error / scale:.0e}".partition("e")[2]))
    if places > 12:  # rounding of sums, not noise
        return f"{value:.4g} ± {error:.0e}"
    both = f"{value / scale:.{places}f} ± {error / scale:.{places}f}"
    return f"({both}){unit}" if unit else both


def is_number(value: object) -> bool:
    """Whether it is a number that somebody typed: True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
