"""Colours of a page in light and in dark: those of the pictures, with contrast enough in both."""

from collections.abc import Iterator
from functools import partial

from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from ..plots.style import COLORS

LIGHT, DARK = "#ffffff", "#1a1e25"
"""What curves are drawn on; page.css has the same."""
CONTRAST = {LIGHT: 3.0, DARK: 4.5}
"""3 is the least that a curve needs (WCAG 1.4.11); thin lines on dark paper look dim with it."""
STEPS = 32
"""Colours that a scale is made of; a page puts others between them."""


def luminance(color: str) -> float:
    """Relative luminance of a colour, from 0 to 1."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: str, other: str) -> float:
    """How far two colours are apart, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(color: str, background: str) -> str:
    """The colour, mixed with black or white as far as its contrast asks for."""
    end = 0.0 if luminance(background) > 0.5 else 1.0
    for part in (0.02 * k for k in range(51)):
        red, green, blue = ((1 - part) * c + part * end for c in to_rgb(color))
        mixed = to_hex((red, green, blue))
        if contrast(mixed, background) >= CONTRAST[background]:
            break
    return mixed


def variables(background: str) -> str:
    """CSS variables --c0, --c1, ... of the curves on a background."""
    found = map(partial(readable, background=background), COLORS)
    return "".join(f"--c{i}:{color};" for i, color in enumerate(found))


def scales() -> dict[str, list[str]]:
    """Colours of maps, from low to high."""
    return {"rising": list(_scale("viridis")), "signed": list(_scale("RdBu_r"))}


def _scale(name: str) -> Iterator[str]:
    for k in range(STEPS):
        yield to_hex(colormaps[name](k / (STEPS - 1)))[1:]
