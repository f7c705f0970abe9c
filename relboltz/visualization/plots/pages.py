"""Pages of panels: the overview of a run, and all its plots as files."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import Dataset

from ...analysis.spectra import is_bjorken, tells_directions
from ...io.quantities import WEIGHTED
from ...io.result import average, is_in_space
from ...util.arrays import Array
from . import flow, histories
from .momenta import spectra, thermalisation
from .space import (
    MATTER,
    directions,
    draw_map,
    edges,
    field,
    flow_in,
    marginals,
    phase_space,
    profile,
)
from .style import Names, groups, moves, styled

VISIBLE = 1e-5
"""Smallest relative change that is visible in a plot."""

Panel = Callable[..., Axes]
Choice = list[tuple[str, Names]]


@dataclass(frozen=True)
class MapRow:
    """A row of maps of one quantity at several times, with a common colour scale."""

    quantity: str
    species: Names
    times: Array
    arrows: bool = False


Row = list[Panel] | MapRow
Panels = list[Row]


def page(ds: Dataset, rows: Panels, title: str = "") -> Figure:
    """Return a figure of rows with separate layouts, as colour bars take room; maps share one."""
    blocks = [list(part) for _, part in groupby(rows, key=_alone(rows))]
    heights = [sum(_height(ds, row) for row in block) + 0.4 * _maps_in(block) for block in blocks]
    figure = Figure((_width(rows), 0.1 + sum(heights)), layout="constrained")
    parts = figure.subfigures(len(blocks), squeeze=False, height_ratios=heights)[:, 0]
    for part, block in zip(parts, blocks, strict=True):
        first = block[0]
        if isinstance(first, MapRow):
            _draw_maps(part, ds, block)  # type: ignore[arg-type]
            continue
        for draw, ax in zip(first, part.subplots(1, len(first), squeeze=False)[0], strict=True):
            draw(ds, ax=ax)
    if title:
        figure.suptitle(textwrap.fill(title, 100), fontsize=14, parse_math=False)
    return figure


def _alone(rows: Panels) -> Callable[[Row], int]:
    """Return a grouping key: every row of panels is a block, all rows of maps are one block."""
    places = {id(row): i for i, row in enumerate(rows)}
    return lambda row: -1 if isinstance(row, MapRow) else places[id(row)]


def _maps_in(block: Panels) -> bool:
    return isinstance(block[0], MapRow)


def _width(rows: Panels) -> float:
    """Return the width in inches of the rows of panels, or of maps if there are no panels."""
    maps = [1.2 + 2.7 * len(row.times) for row in rows if isinstance(row, MapRow)]
    return 0.2 + max([4.7 * len(row) for row in rows if not isinstance(row, MapRow)] or maps)


def _height(ds: Dataset, row: Row) -> float:
    """Return the height of a row in inches; maps have the aspect ratio of the grid."""
    if not isinstance(row, MapRow):
        return 3.9
    a, b = (np.ptp(edges(ds[axis])) for axis in directions(ds)[:2])
    return 0.15 + 2.5 * float(np.clip(b / a, 0.3, 1.0))


def _draw_maps(part: Any, ds: Dataset, rows: list[MapRow]) -> None:
    """Draw rows of maps with shared axes, times above and a colour bar beside each row."""
    plane = directions(ds)[:2]
    grid = part.subplots(len(rows), len(rows[0].times), squeeze=False, sharex=True, sharey=True)
    empty = False
    for i, (row, axes) in enumerate(zip(rows, grid, strict=True)):
        values = field(ds, row.quantity, row.species, plane)
        flow = flow_in(ds, plane) if row.arrows else None
        of, values.attrs["title"] = values.attrs["title"], ""
        for j, (ax, time) in enumerate(zip(axes, row.times, strict=True)):
            mesh = draw_map(ax, values, time, flow, bar=False)
            ax.label_outer()
            if i:
                ax.set_title("", loc="left")
            for text in ax.texts if i + j else ():  # shown only once
                text.set_visible(False)
        description, _, unit = values.attrs["description"].partition(" [")
        description = textwrap.fill(description + f" of {of}" * bool(of), 28) + f"\n[{unit}" * bool(
            unit
        )
        part.colorbar(mesh, ax=list(axes), label=description, pad=0.01, aspect=15)
        empty |= row.quantity in WEIGHTED and bool(np.isnan(values).any())
    if empty:
        note = f"grey: cells with less than {100 * MATTER:g} % of the energy of the fullest one"
        part.supxlabel(note, fontsize=9, color="0.3", ha="left", x=0.02)


def _rows(panels: Sequence[Panel], width: int) -> Panels:
    """Return panels in rows; the last row is filled with blanks."""
    full = [*panels, *[_blank] * (-len(panels) % width)]
    return [full[i : i + width] for i in range(0, len(full), width)]


def _blank(ds: Dataset, ax: Axes) -> Axes:
    ax.set_axis_off()
    return ax


# --- what is drawn ------------------------------------------------------------------------------


def _some_times(ds: Dataset, count: int) -> Array:
    """Return ``count`` recorded times, evenly spaced, first and last included [fm]."""
    return ds.time.values[np.unique(np.linspace(0, ds.time.size - 1, count).round().astype(int))]


def _fields(ds: Dataset) -> Choice:
    """Return the quantities of all species together that are not constant."""
    names = ("energy_total", "landau_temperature", "landau_velocity", "entropy", "pressure_ratio")
    return [(name, None) for name in names if name in ds and moves(ds[name])]


def _densities(ds: Dataset, most: int = 4) -> Choice:
    return [("number", group) for group in groups(ds)[:most]]


def _masses(ds: Dataset, most: int = 4) -> Choice:
    """Return groups of species with distinct masses that vary in time or space."""
    found, m2 = dict[str, list[str]](), ds.mass_squared
    for group in groups(ds):
        one = m2.sel(species=group[0])
        same = any(np.allclose(one, m2.sel(species=name), rtol=0.01) for name in found)
        if np.ptp(one.values) > 1e-12 and not same:
            found[group[0]] = group
    return [("mass_squared", group) for group in list(found.values())[:most]]


def in_space(ds: Dataset) -> Choice:
    """Return the quantities in space cells that are worth a plot, each with its species."""
    return _densities(ds) + _fields(ds) + _masses(ds)


def _profiles(choice: Choice, axes: Sequence[str]) -> list[Panel]:
    return [partial(profile, quantity=n, species=g, axis=a) for n, g in choice for a in axes]


def _maps(choice: Choice, times: Array) -> Panels:
    """Return a row of maps for each choice; the first row has arrows of the flow."""
    return [MapRow(name, group, times, i == 0) for i, (name, group) in enumerate(choice)]


def telling(ds: Dataset) -> list[Panel]:
    """Return plots against time whose quantity changes, the most informative first."""
    h, far = histories, ds.equilibrium_distance
    kinetic = ds.energy_kinetic.values
    panels: list[tuple[Panel, bool]] = [
        (h.numbers, moves(ds.number)),
        (h.distance, moves(far)),
        (h.entropy, moves(ds.entropy)),
        (h.temperature, moves(ds.temperature)),
        (h.chemical_potentials, moves(ds.chemical_potential)),
        (h.energies, moves(kinetic, VISIBLE)),
        (h.masses, moves(ds.mass_squared, VISIBLE)),
        (h.anisotropy, bool((abs(ds.pressure_ratio - 1) > 0.01).any())),
    ]
    return [draw for draw, worth in panels if worth]


# --- the overview -------------------------------------------------------------------------------


def _matter_overview(ds: Dataset) -> Panels:
    """Return the overview of a homogeneous run: spectra, and histories that change."""
    found = groups(ds)
    shown = [found[0], *sorted(found[1:], key=partial(_moved, ds), reverse=True)[:1]]
    panels: list[Panel] = [partial(spectra, species=group) for group in shown]
    if len(found) == 1:
        panels.append(thermalisation)
    panels += telling(ds)
    others = [draw for draw in (histories.rates, histories.conservation) if draw not in panels]
    return _rows(panels + others[: -len(panels) % 3], 3)


def _moved(ds: Dataset, group: list[str]) -> float:
    """Return the change of a group's density relative to its largest value."""
    number = ds.number.sel(species=group).sum("species").values
    return float(np.ptp(number) / (number.max() or 1.0))


def _line_overview(ds: Dataset) -> Panels:
    """Return the overview in one direction: profiles and phase space, in full rows of three."""
    panels = _profiles(_densities(ds, 2) + _masses(ds, 2) + _fields(ds), directions(ds))
    for name in marginals(ds)[:1]:
        some = _some_times(ds, -len(panels) % 3 or 3)
        panels += [partial(phase_space, name=name, time=time) for time in some]
    return _rows(panels[: max(3, len(panels) - len(panels) % 3)], 3)


def _plane_overview(ds: Dataset) -> Panels:
    """Return the overview in two or three directions: profiles along each, and maps."""
    axes, densities, fields = directions(ds), _densities(ds, 2), _fields(ds)
    width = 4 if len(axes) == 2 else 3
    lines = _profiles(densities + (_masses(ds, 2) or fields[: len(densities)]), axes)
    return _rows(lines, width) + _maps(densities + fields[:3], _some_times(ds, 6))


@styled
def overview(ds: Dataset) -> Figure:
    """Plot a run on one page: spectra and histories; in space profiles, and maps in a plane."""
    kinds = (_matter_overview, _line_overview, _plane_overview, _plane_overview)
    return page(ds, kinds[len(directions(ds))](ds), str(ds.attrs.get("title", "")))


# --- all pictures -------------------------------------------------------------------------------


def _of_matter(ds: Dataset) -> dict[str, Panels]:
    """Return pages, by name, of quantities that do not depend on position."""
    found, pages, both = groups(ds), dict[str, Panels](), (spectra, thermalisation)
    for i in range(0, len(found), 3):
        name = f"spectra_{1 + i // 3}" if i else "spectra"
        pages[name] = [[partial(draw, species=g) for draw in both] for g in found[i : i + 3]]
    h, worth = histories, telling(ds)
    pairs: list[list[Any]] = [
        [h.numbers, h.energies], [h.temperature, h.chemical_potentials], [h.entropy, h.distance],
        [h.masses, h.rates], [h.anisotropy, h.isotropisation], [h.conservation],
    ]  # fmt: skip
    always = (h.rates, h.conservation, *(h.isotropisation,) * (h.anisotropy in worth))
    rows = [[draw for draw in pair if draw in always or draw in worth] for pair in pairs]
    if is_bjorken(ds):
        rows.append([flow.rapidity])
    return pages | {"_".join(draw.__name__ for draw in row): [row] for row in rows if row}


def _of_space(ds: Dataset) -> dict[str, Panels]:
    """Return pages, by name, of profiles, maps, phase space and walls."""
    axes, masses, densities = directions(ds), _masses(ds), _densities(ds)
    drawn, times = densities + _fields(ds), _some_times(ds, 3)
    pages = {f"profiles_{axis}": _rows(_profiles(drawn, [axis]), 3) for axis in axes}
    if masses:
        pages["masses"] = _rows(_profiles(masses, axes), len(axes))
    if len(axes) > 1:
        pages["maps"] = _maps(drawn + masses, _some_times(ds, 5))
    if is_bjorken(ds) and min(ds.sizes["x"], ds.sizes["y"]) > 1 and tells_directions(ds):
        pages["flow"] = [[flow.eccentricities, flow.flows, flow.flow_spectra]]
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
    """Write all plots into a folder; in space, box_... show averages over the grid."""
    paths = list[Path]()
    for part in (average(ds, left=True), ds) if is_in_space(ds) else (ds,):
        rows = _of_space(ds) if is_in_space(part) else _of_matter(part)
        figures = {"overview": overview(part), **{n: page(part, r) for n, r in rows.items()}}
        for name, figure in figures.items():
            paths += save(figure, folder, f"{'box_' * (part is not ds)}{name}", kinds)
    return paths


def save(figure: Figure, folder: str | Path, name: str, kinds: Sequence[str]) -> list[Path]:
    """Write a figure in several formats."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = [Path(folder) / f"{name}.{kind}" for kind in kinds]
    for path in paths:
        figure.savefig(path, dpi=150)
        figure.set_layout_engine("none")  # the PDF keeps the layout of the PNG
    return paths
