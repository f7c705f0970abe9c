"""Pages of panels: the overview of a run, and all of its pictures as files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import Dataset

from ..records.result import box, is_in_space
from . import histories
from .momenta import spectra, thermalisation
from .space import directions, edges, field_map, marginals, phase_space, profile
from .style import Array, Names, groups, styled

Panel = Callable[..., Axes]
Panels = list[list[Panel]]
Choice = list[tuple[str, Names]]


def page(rows: Panels, title: str = "", aligned: bool = False) -> Figure:
    """A figure of panels, aligned or with rows spaced one by one, for colour bars take room."""
    heights = [_height(row[0]) for row in rows]
    figure = Figure((0.2 + 4.7 * len(rows[0]), 0.1 + sum(heights)), layout="constrained")
    if aligned:
        axes: Any = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    else:
        parts = figure.subfigures(len(rows), squeeze=False, height_ratios=heights)[:, 0]
        axes = [part.subplots(1, len(rows[0]), squeeze=False)[0] for part in parts]
    for draw, ax in zip(chain(*rows), chain(*axes), strict=True):
        draw(ax=ax)
    if title:
        figure.suptitle(textwrap.fill(title, 100), fontsize=14, parse_math=False)
    return figure


def _height(draw: Panel) -> float:
    """Inches of a row; maps take the shape of the box."""
    if not (isinstance(draw, partial) and draw.func is field_map):
        return 3.9
    a, b = (np.ptp(edges(draw.args[0][axis])) for axis in directions(draw.args[0])[:2])
    return 0.9 + 3.0 * float(np.clip(b / a, 0.3, 1.0))


def _rows(panels: Sequence[Panel], width: int) -> Panels:
    """Panels in rows; the last one is filled up."""
    full = [*panels, *[_blank] * (-len(panels) % width)]
    return [full[i : i + width] for i in range(0, len(full), width)]


def _blank(ax: Axes) -> Axes:
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


def _profiles(ds: Dataset, choice: Choice, axes: Sequence[str]) -> list[Panel]:
    return [partial(profile, ds, name, group, axis) for name, group in choice for axis in axes]


def _maps(ds: Dataset, choice: Choice, count: int) -> Panels:
    """A row for each choice: maps at several times."""
    times = _some_times(ds, count)
    rows = (_rows([partial(field_map, ds, n, t, g) for t in times], count) for n, g in choice)
    return [*chain(*rows)]


# --- the overview -------------------------------------------------------------------------------


def _of_matter(ds: Dataset) -> Panels:
    """Homogeneous: spectra, densities, energies, temperature, entropy."""
    found, h = groups(ds), histories
    second = partial(spectra, species=found[1]) if len(found) > 1 else thermalisation
    third = h.masses if len(found) == 1 and np.ptp(ds.mass_squared.values) > 0 else h.numbers
    rows: Any = [[spectra, second, third], [h.energies, h.temperature, h.entropy]]
    return [[partial(draw, ds) for draw in row] for row in rows]


def _of_line(ds: Dataset) -> Panels:
    """One direction: profiles, and phase space where it was kept, in full rows of three."""
    panels = _profiles(ds, _densities(ds, 2) + _masses(ds, 2) + _fields(ds), directions(ds))
    for name in marginals(ds)[:1]:
        some = _some_times(ds, -len(panels) % 3 or 3)
        panels += [partial(phase_space, ds, name, None, time) for time in some]
    return _rows(panels[: max(3, len(panels) - len(panels) % 3)], 3)


def _of_plane(ds: Dataset) -> Panels:
    """Two or three directions: profiles along each, and maps at several times."""
    axes, densities, fields = directions(ds), _densities(ds, 2), _fields(ds)
    width = 4 if len(axes) == 2 else 3
    lines = densities + (_masses(ds, 2) or fields[: len(densities)])
    return _rows(_profiles(ds, lines, axes), width) + _maps(ds, densities[:1] + fields[:2], width)


@styled
def overview(ds: Dataset) -> Figure:
    """The run on a page: spectra and histories; in space profiles, and maps if there is a plane."""
    axes = len(directions(ds))
    rows = (_of_matter if axes == 0 else _of_line if axes == 1 else _of_plane)(ds)
    return page(rows, str(ds.attrs.get("title", "")), aligned=axes == 0)


# --- all pictures -------------------------------------------------------------------------------


def _homogeneous(ds: Dataset) -> Iterator[tuple[str, Figure]]:
    """Pictures, by name, of what does not depend on space."""
    yield "overview", overview(ds)
    found, h = groups(ds), histories
    for i in range(0, len(found), 3):
        some, draws = found[i : i + 3], (spectra, thermalisation)
        rows: Any = [[partial(draw, ds, group) for draw in draws] for group in some]
        yield f"spectra_{1 + i // 3}" if i else "spectra", page(rows, aligned=True)
    rows = [[h.numbers, h.energies], [h.temperature, h.entropy], [h.masses, h.rates]]
    rows += [[h.conservation], *[[h.anisotropy]] * bool((abs(ds.pressure_ratio - 1) > 0.01).any())]
    for row in rows:
        panels: list[Panel] = [partial(draw, ds) for draw in row]
        yield "_".join(draw.__name__ for draw in row), page([panels], aligned=True)


def _in_space(ds: Dataset) -> Iterator[tuple[str, Figure]]:
    """Pictures of space, by name."""
    yield "overview", overview(ds)
    axes, masses, densities = directions(ds), _masses(ds), _densities(ds)
    drawn = densities + _fields(ds)
    for axis in axes:
        yield f"profiles_{axis}", page(_rows(_profiles(ds, drawn, [axis]), 3))
    if masses:
        yield "masses", page(_rows(_profiles(ds, masses, axes), len(axes)))
    if len(axes) > 1:
        yield "maps", page(_maps(ds, drawn + masses, 3))
    for name in marginals(ds):
        panels: Any = partial(phase_space, ds, name)
        times = _some_times(ds, 3)
        yield (
            f"phase_space_{name[2:]}",
            page([[partial(panels, g, t) for t in times] for _, g in densities]),
        )
    if ds.left_number.any() or ds.refused_number.any():
        kinds = ("number", "energy") if ds.left_energy.any() else ("number",)
        yield "ledger", page([[partial(histories.ledger, ds, kind) for kind in kinds]])


@styled
def save_all(ds: Dataset, folder: str | Path, kinds: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write every picture into a folder; in space, box_... are those of averages over the box."""
    folder, mean, paths = Path(folder), box(ds, left=True), list[Path]()
    folder.mkdir(parents=True, exist_ok=True)
    pages = _homogeneous(mean)
    if is_in_space(ds):
        pages = chain(
            ((f"box_{name}", figure) for name, figure in _homogeneous(mean)), _in_space(ds)
        )
    for name, figure in pages:
        for kind in kinds:
            paths.append(folder / f"{name}.{kind}")
            figure.savefig(paths[-1], dpi=150)
            figure.set_layout_engine("none")  # the PDF keeps the layout of the PNG
    return paths
