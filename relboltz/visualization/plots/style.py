"""Style of all plots: colours, labels, axes, and groups of species that share a line."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import ArrayLike
from xarray import DataArray, Dataset

from ...io.result import box
from ...util.arrays import Array
from ...util.errors import InputError
from ...util.text import shown, suggest

Ax = Axes | None
Names = str | Sequence[str] | None
STYLE: Any = {
    "font.size": 10.5, "axes.titlesize": "medium", "legend.fontsize": 9.5, "pdf.fonttype": 42,
    "axes.spines.top": False, "axes.spines.right": False, "axes.formatter.useoffset": False,
    "legend.frameon": False, "legend.handlelength": 1.6, "lines.linewidth": 1.8,
}  # fmt: skip
COLORS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#7F7F7F")
"""Colour-blind-safe palette (Okabe and Ito, and two more); the first colour is for gluons."""
DASHES = ("-", "-.", (0, (1, 1)))
ABOVE: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "alignment": "left"}
QUARKS = frozenset("udscbt")
GREEK = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda",
    "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega", "Gamma", "Delta",
    "Theta", "Lambda", "Xi", "Pi", "Sigma", "Phi", "Psi", "Omega",
))  # fmt: skip
FLAT = 1e-9
"""Relative variation below which values are constant up to rounding."""
ALIKE = 0.1  # spectra that differ by less, relative to the peak, count as equal
styled = mpl.rc_context(STYLE)


def new_axes() -> Axes:
    """Return the axes of a new figure."""
    return Figure(figsize=(5.6, 4.2), layout="constrained").subplots()


def plain_ticks(ax: Axes, along: str = "y") -> None:
    """Label a logarithmic axis of few decades with 0.2, 0.5, ... in place of powers of ten."""
    (low, high), axis = (ax.get_ylim(), ax.yaxis) if along == "y" else (ax.get_xlim(), ax.xaxis)
    if high < 300 * low:
        subs = (1.0, 2.0, 5.0) if high < 30 * low else (1.0,)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(NullFormatter())


# --- species ------------------------------------------------------------------------------------


def groups(ds: Dataset) -> list[list[str]]:
    """Return groups of species with equal properties and spectra, the most abundant first."""
    ds, found = box(ds), list[list[str]]()
    for name in ds.species.values.tolist():
        home = next((group for group in found if _same_curves(ds, group[0], name)), None)
        if home is None:
            found.append(home := [])
        home.append(name)
    last = ds.number.isel(time=-1)
    return sorted(found, key=lambda group: -float(last.sel(species=group).sum()))


def _same_curves(ds: Dataset, a: str, b: str) -> bool:
    """Whether two species can share a line."""
    one, two = ds.sel(species=a), ds.sel(species=b)
    rough = {"statistics": 0, "degeneracy": 0, "equilibrium_chemical_potential": 1e-3}
    for name, rtol in {**rough, "mass_squared": 0.05}.items():
        if not np.allclose(one[name], two[name], rtol=rtol, atol=1e-9, equal_nan=True):
            return False
    weight = (ds.p.values + ds.p.values[-1] / ds.p.size) ** 2
    f, g = one.spectrum.values, two.spectrum.values
    return bool((abs(f - g) @ weight).max() <= 0.5 * ALIKE * ((f + g) @ weight).max())


def members(ds: Dataset, species: Names) -> list[str]:
    """Return the requested species; by default the most abundant group."""
    if species is None:
        return groups(ds)[0]
    names, known = [species] if isinstance(species, str) else species, ds.species.values.tolist()
    for name in set(names) - set(known):
        raise InputError(f"no species {name!r} in this result; {suggest(name, known)}")
    return list(names)


def mean(values: DataArray, group: Sequence[str]) -> Array:
    """Return the mean over the species of a group."""
    return values.sel(species=list(group)).mean("species").values


def particle(name: str) -> str:
    """Return the particle's name for an antiparticle, without "bar"."""
    return name[:-3] if name.endswith("bar") and len(name) > 3 else name


def look(ds: Dataset, name: str) -> dict[str, Any]:
    """Return colour and line style of a species, equal in all plots."""
    plain = list(dict.fromkeys(particle(n) for n in ds.species.values.tolist() if n != "g"))
    place = 0 if name == "g" else 1 + plain.index(particle(name))
    dashes = place // len(COLORS) + (particle(name) != name)
    return {"color": COLORS[place % len(COLORS)], "linestyle": DASHES[dashes % len(DASHES)]}


# --- words --------------------------------------------------------------------------------------


def _spelling(name: str) -> tuple[str, str, bool] | None:
    """Return base name, charge, and whether there is a bar; None if it is plain text."""
    plain, bar = particle(name), particle(name) != name
    word = re.fullmatch(r"([A-Za-z]+)([+\-0]*)", plain)
    if word:
        return word[1], word[2], bar
    return (plain, "", True) if bar and plain.isascii() and plain.isalnum() else None


def letter(name: str) -> str:
    """Return a species name as mathtext: Greek letters, raised charges, bars over antiparticles."""
    parts = _spelling(name)
    if parts is None:
        return name.replace("$", r"\$")
    base, charge, bar = parts
    greek = base in GREEK
    if not (greek or charge or bar):
        return name
    text = f"\\{base}" if greek else rf"\mathrm{{{base}}}"
    text = rf"\bar{{{text}}}" if bar else text
    return f"${text}^{{{charge}}}$" if charge else f"${text}$"


def spelt(name: str) -> str:
    """Return a species name in Unicode letters, for output without mathtext."""
    parts = _spelling(name)
    if parts is None:
        return name
    base, charge, bar = parts
    if base in GREEK:
        size, word = "CAPITAL" if base[0].isupper() else "SMALL", base.upper()
        base = unicodedata.lookup(f"GREEK {size} LETTER {word.replace('LAMBDA', 'LAMDA')}")
    if bar:
        over = "\u0304" if len(base) == 1 else "\u0305"  # a longer bar over several letters
        base = unicodedata.normalize("NFC", "".join(c + over for c in base))
    return base + charge.translate(str.maketrans("+-0", "⁺⁻⁰"))


def label(group: Sequence[str], letter: Callable[[str], str] = letter) -> str:
    """Return a short name such as 'u, d, s and antiquarks'; ``letter`` formats each name."""
    plain = [n for n in group if n == particle(n)]
    both = len(plain) > 1 and sorted(group) == sorted([*plain, *(n + "bar" for n in plain)])
    description = [letter(n) for n in (plain if both else group)]
    text = ", ".join(
        description if len(description) <= 6 else [*description[:4], "…", description[-1]]
    )
    return f"{text} and anti{'quarks' if set(plain) <= QUARKS else 'particles'}" if both else text


def labelled(values: DataArray, description: str = "") -> str:
    """Return a label with unit, such as 'particle density [fm^-3]'; none if dimensionless."""
    unit = re.sub(r"\^(-?\d+)", r"$^{\1}$", values.attrs.get("units", "1"))
    description = description or str(values.attrs.get("long_name", values.name))
    return description if unit == "1" else f"{description} [{unit}]"


# --- values -------------------------------------------------------------------------------------


def moves(values: ArrayLike, flat: float = FLAT) -> bool:
    """Whether the finite values vary."""
    known = np.asarray(values, float)
    known = known[np.isfinite(known)]
    return known.size > 1 and bool(np.ptp(known) > flat * np.abs(known).max())


def faces(ds: Dataset) -> tuple[float, float]:
    """Return the smallest and the largest half width of the momentum grid [GeV]."""
    widths = np.atleast_1d(ds.attrs.get("momentum_max", ds.p.values[-1:])).astype(float)
    if len(widths) == 3 and any(ds.sizes.get(f"p{axis}", 1) > 1 for axis in "xyz"):
        cells = [ds.sizes.get(f"p{axis}", 1) for axis in "xyz"]
        widths = widths[np.array(cells) > 1]  # the node of a single cell is at 0
    return float(widths.min()), float(widths.max())


# --- times --------------------------------------------------------------------------------------


def chosen_times(ds: Dataset, count: int = 6) -> Array:
    """Return first and last recorded time and some between, denser at early times [fm]."""
    times = ds.time.values
    if len(times) <= count:
        return times
    since = times - times[0]
    wanted = np.geomspace(since[1], since[-1], count - 1)
    return times[np.unique([0, *abs(since[:, None] - wanted).argmin(axis=0)])]


def recorded(ds: Dataset, times: ArrayLike | None) -> Array:
    """Return the recorded times nearest to ``times`` [fm]; None selects some of all."""
    try:
        wanted = np.unique(chosen_times(ds) if times is None else np.asarray(times, float))
    except (TypeError, ValueError):
        raise InputError(f"times = {shown(times)}: use times in fm, one or a list") from None
    for time in wanted:
        check_time(ds, float(time))
    return ds.time.sel(time=wanted, method="nearest").values


def check_time(ds: Dataset | DataArray, time: float) -> None:
    """Raise InputError if there is no record near a time [fm]."""
    first, last = float(ds.time.values[0]), float(ds.time.values[-1])
    near = 0.5 * (last - first) / max(ds.time.size - 1, 1)
    if not first - near <= time <= last + near:
        raise InputError(f"time = {time:g} fm: records are from {first:g} to {last:g} fm")


def shades(times: Array) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield each time and the style of its line: dark is early, light is late."""
    for place, time in zip(np.linspace(0, 0.88, len(times)), times, strict=True):
        color, description = mpl.colormaps["viridis"](place), f"{time:.3g} fm"
        yield time, {"marker": "o", "markersize": 3.5, "color": color, "label": description}
