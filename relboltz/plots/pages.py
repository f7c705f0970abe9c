"""Pages of panels: the overview of a run, and all of its pictures as files."""

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import Dataset

from ..arrays import Array
from ..records.result import box, is_in_space
from . import histories
from .momenta import spectra, thermalisation
from .space import directions, edges, field_map, marginals, phase_space, profile
from .style import Names, groups, styled

Panel = Callable[..., Axes]
Panels = list[list[Panel]]
Choice = list[tuple[str, Names]]


def page(ds: Dataset, rows: Panels, title: str = "") -> Figure:
    """A figure of panels; in space every row is spaced by itself, for colour bars take room."""
    heights, width = [_height(ds, row[0]) for row in rows], len(rows[0])
    figure = Figure((0.2 + 4.7 * width, 0.1 + sum(heights)), layout="constrained")
    if is_in_space(ds):
        parts = figure.subfigures(len(rows), squeeze=False, height_ratios=heights)[:, 0]
        axes: Any = [part.subplots(1, width, squeeze=False)[0] for part in parts]
    else:
        axes = figure.subplots(len(rows), width, squeeze=False)
    for draw, ax in zip(chain(*rows), chain(*axes), strict=True):
        draw(ds, ax=ax)
    if title:
        figure.suptitle(textwrap.fill(title, 100), fontsize=14, parse_math=False)
    return figure


def _height(ds: Dataset, draw: Panel) -> float:
    """Inches of a row; maps take the shape of the box."""
    if getattr(draw, "func", draw) is not field_map:
        return 3.9
    a, b = (np.ptp(edges(ds[axis])) for axis in directions(ds)[:2])
    return 0.9 + 3.0 * float(np.clip(b / a, 0.3, 1.0))


def _rows(panels: Sequence[Panel], width: int) -> Panels:
    """Panels in rows; the last one is filled up."""
    full = [*panels, *[_blank] * (-len(panels) % width)]
    return [full[i : i + width] for i in range(0, len(full), width)]


def _blank(ds: Dataset, ax: Axes) -> Axes:
    ax.set_axis_off()
    return ax


# --- what is drawn ------------------------------------------------------------------------------


def _some_times(ds: Dataset, count: int) -> Array:
    """First, last and some between, evenly [fm]."""
    return ds.time.values[np.unique(np.linspace(0, ds.time.size - 1, count).round().astype(int))]


def _fields(ds: Dataset) -> Choice:
    """Quantities of all species together that have values."""
    names = ("energy_total", "temperature", "velocity", "entropy", "pressure_ratio")
    return [(name, None) for name in names if np.isfinite(ds[name]).any()]


def _densities(ds: Dataset, most: int = 4) -> Choice:
    return [("number", group) for group in groups(ds)[:most]]


def _masses(ds: Dataset, most: int = 4) -> Choice:
    """Groups of species with a mass of their own that moves in time or space."""
    found, m2 = dict[str, list[str]](), ds.mass_squared
    for group in groups(ds):
        one = m2.sel(species=group[0])
        same = any(np.allclose(one, m2.sel(species=name), rtol=0.01) for name in found)
        if np.ptp(one.values) > 1e-12 and not same:
            found[group[0]] = group
    return [("mass_squared", group) for group in list(found.values())[:most]]


def _profiles(choice: Choice, axes: Sequence[str]) -> list[Panel]:
    return [partial(profile, quantity=n, species=g, axis=a) for n, g in choice for a in axes]


def _maps(choice: Choice, times: Array, count: int) -> Panels:
    """A row for each choice: maps at several times."""
    maps = ([partial(field_map, quantity=n, time=t, species=g) for t in times] for n, g in choice)
    return [row for one in maps for row in _rows(one, count)]


# --- the overview -------------------------------------------------------------------------------


def _matter_overview(ds: Dataset) -> Panels:
    """Homogeneous: spectra, densities, energies, temperature, entropy."""
    found = groups(ds)
    rows: Panels = [
        [spectra, thermalisation, histories.numbers],
        [histories.energies, histories.temperature, histories.entropy],
    ]
    if len(found) > 1:
        rows[0][1] = partial(spectra, species=found[1])
    elif np.ptp(ds.mass_squared.values) > 0:
        rows[0][2] = histories.masses
    return rows


def _line_overview(ds: Dataset) -> Panels:
    """One direction: profiles, and phase space where it was kept, in full rows of three."""
    panels = _profiles(_densities(ds, 2) + _masses(ds, 2) + _fields(ds), directions(ds))
    for name in marginals(ds)[:1]:
        some = _some_times(ds, -len(panels) % 3 or 3)
        panels += [partial(phase_space, name=name, time=time) for time in some]
    return _rows(panels[: max(3, len(panels) - len(panels) % 3)], 3)


def _plane_overview(ds: Dataset) -> Panels:
    """Two or three directions: profiles along each, and maps at several times."""
    axes, densities, fields = directions(ds), _densities(ds, 2), _fields(ds)
    width = 4 if len(axes) == 2 else 3
    lines = _profiles(densities + (_masses(ds, 2) or fields[: len(densities)]), axes)
    maps = _maps(densities[:1] + fields[:2], _some_times(ds, width), width)
    return _rows(lines, width) + maps


@styled
def overview(ds: Dataset) -> Figure:
    """The run on a page: spectra and histories; in space profiles, and maps if there is a plane."""
    kinds = (_matter_overview, _line_overview, _plane_overview, _plane_overview)
    return page(ds, kinds[len(directions(ds))](ds), str(ds.attrs.get("title", "")))


# --- all pictures -------------------------------------------------------------------------------


def _of_matter(ds: Dataset) -> dict[str, Panels]:
    """Pages, by name, of what does not depend on space."""
    found, pages, both = groups(ds), dict[str, Panels](), (spectra, thermalisation)
    for i in range(0, len(found), 3):
        name = f"spectra_{1 + i // 3}" if i else "spectra"
        pages[name] = [[partial(draw, species=g) for draw in both] for g in found[i : i + 3]]
    h = histories
    rows: Panels = [[h.numbers, h.energies], [h.temperature, h.entropy], [h.masses, h.rates]]
    rows.append([h.conservation])
    if (abs(ds.pressure_ratio - 1) > 0.01).any():
        rows.append([h.anisotropy])
    return pages | {"_".join(draw.__name__ for draw in row): [row] for row in rows}


def _of_space(ds: Dataset) -> dict[str, Panels]:
    """Pages of profiles, maps, phase space and walls, by name."""
    axes, masses, densities = directions(ds), _masses(ds), _densities(ds)
    drawn, times = densities + _fields(ds), _some_times(ds, 3)
    pages = {f"profiles_{axis}": _rows(_profiles(drawn, [axis]), 3) for axis in axes}
    if masses:
        pages["masses"] = _rows(_profiles(masses, axes), len(axes))
    if len(axes) > 1:
        pages["maps"] = _maps(drawn + masses, times, 3)
    for name in marginals(ds):
        f = partial(phase_space, name=name)
        pages[f"phase_space_{name[2:]}"] = [
            [partial(f, species=group, time=time) for time in times] for _, group in densities
        ]
    if ds.left_number.any() or ds.refused_number.any():
        kinds = ("number", "energy") if ds.left_energy.any() else ("number",)
        pages["ledger"] = [[partial(histories.ledger, what=kind) for kind in kinds]]
    return pages


@styled
def save_all(ds: Dataset, folder: str | Path, kinds: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write every picture into a folder; in space, box_... are those of averages over the box."""
    folder, paths = Path(folder), list[Path]()
    folder.mkdir(parents=True, exist_ok=True)
    for part in (ds,) if (mean := box(ds, left=True)) is ds else (mean, ds):
        rows = _of_space(ds) if is_in_space(part) else _of_matter(part)
        figures = {"overview": overview(part), **{n: page(part, r) for n, r in rows.items()}}
        for name, kind in product(figures, kinds):
            paths.append(folder / f"{'box_' * (part is not ds)}{name}.{kind}")
            figures[name].savefig(paths[-1], dpi=150)
            figures[name].set_layout_engine("none")  # the PDF keeps the layout of the PNG
    return paths
