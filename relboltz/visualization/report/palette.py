"""Colours of a page in light and dark mode: those of the plots, with sufficient contrast."""

from collections.abc import Iterator
from functools import partial

from matplotlib import colormaps
from matplotlib.colors import to_hex, to_rgb

from ..plots.style import COLORS

LIGHT, DARK = "#ffffff", "#1a1e25"
"""Background colours of charts; page.css has the same values."""
CONTRAST = {LIGHT: 3.0, DARK: 4.5}
"""Smallest contrast: WCAG 1.4.11 requires 3; thin lines on a dark background need more."""
STEPS = 32
"""Number of colours of a scale; the page interpolates between them."""


def luminance(color: str) -> float:
    """Return the relative luminance of a colour, from 0 to 1."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def readable(color: str, background: str) -> str:
    """Return the colour, mixed with black or white until its contrast is sufficient."""
    end = 0.0 if luminance(background) > 0.5 else 1.0
    for part in (0.02 * k for k in range(51)):
        red, green, blue = ((1 - part) * c + part * end for c in to_rgb(color))
        mixed = to_hex((red, green, blue))
        if contrast(mixed, background) >= CONTRAST[background]:
            break
    return mixed


def variables(background: str) -> str:
    """Return CSS variables --c0, --c1, ... of the curve colours on a background."""
    found = map(partial(readable, background=background), COLORS)
    return "".join(f"--c{i}:{color};" for i, color in enumerate(found))


def scales() -> dict[str, list[str]]:
    """Return the colour scales of maps, from low to high."""
    return {"rising": list(_scale("viridis")), "signed": list(_scale("RdBu_r"))}


def _scale(name: str) -> Iterator[str]:
    for k in range(STEPS):
        yield to_hex(colormaps[name](k / (STEPS - 1)))[1:]
