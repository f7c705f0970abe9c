"""Pictures of a result in space: profiles, maps, animation. Dataset in, Axes or Figure out.

>>> space_plots.overview(relboltz.load("run.nc")).savefig("run.png")

Directions that are not shown are averaged over; dark lines are early, light ones late; limits and
colours of maps are the same at all times. ``box`` is what the pictures of ``plots`` take.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import animation as films
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver
from xarray import DataArray, Dataset

from ..errors import InputError
from ..model import suggest
from ..records.space import box
from . import homogeneous as plots
from .homogeneous import (
    ABOVE,
    COLORS,
    Array,
    Ax,
    Names,
    _axes,
    _finish,
    _history,
    _labelled,
    _members,
    chosen_times,
    groups,
    label,
    styled,
)

AXES = ("x", "y", "z")
DIRECTIONS = (*AXES, "px", "py", "pz")
SLOW = 0.01  # flow below this part of the speed of light gets no arrows
ARROWS = 16  # at most so many arrows along an axis
SHORT = {
    "number": "density", "temperature": "temperature", "energy_kinetic": "kinetic energy density",
    "energy_total": "total energy density", "energy_by_species": "kinetic energy density",
    "source": "energy source", "velocity": "flow velocity", "mass_squared": "$m^2$",
    "screening_mass_squared": "screening mass squared", "chemical_potential": r"$\mu$",
    "pressure_ratio": r"$P_z / P_\perp$", "entropy": "entropy density", "momentum": "momentum",
}  # fmt: skip
"""Words for axes, where the long names are too long."""
Panel = Callable[..., Axes]
Choice = list[tuple[str, Names]]


# --- what is in a result ------------------------------------------------------------------------


def directions(ds: Dataset) -> list[str]:
    """Axes with more than one space cell."""
    return [axis for axis in AXES if ds.sizes.get(axis, 1) > 1]


def marginals(ds: Dataset, count: int = 2) -> list[str]:
    """Names of the marginals of f that keep so many directions."""
    return [n for n in _of_f(ds) if len(set(ds[n].dims) & set(DIRECTIONS)) == count]


def _of_f(ds: Dataset) -> list[str]:
    return [str(name) for name in ds if str(name).startswith("f_") and "time" in ds[name].dims]


def _quantities(ds: Dataset) -> list[str]:
    """What can be drawn in space."""
    allowed = {"time", "species", "axis", *DIRECTIONS}
    names = (str(name) for name in ds if "time" in ds[name].dims)
    return [n for n in names if set(ds[n].dims) <= allowed and set(ds[n].dims) & set(AXES)]


def _values(ds: Dataset, quantity: str, species: Names, axes: Sequence[str]) -> DataArray:
    """A quantity (time, *axes): mean over species and directions; along the axis, or a length."""
    known = _quantities(ds)
    if quantity not in known:
        raise InputError(f"no quantity {quantity!r} in space cells; {suggest(quantity, known)}")
    values = ds[quantity]
    if not np.isfinite(values).any():
        raise InputError(f"quantity {quantity!r} has no value anywhere in this result")
    if "species" in values.dims:
        values = values.sel(species=_members(box(ds), species)).mean("species")
    for axis in set(axes) - set(values.dims):
        raise InputError(f"quantity {quantity!r} does not depend on {axis}")
    values = values.mean([d for d in values.dims if d in DIRECTIONS and d not in axes])
    if "axis" in values.dims and len(axes) == 1:
        values = values.sel(axis=_component(ds, quantity, axes[0]))
    elif "axis" in values.dims:
        values = (values**2).sum("axis", skipna=False) ** 0.5
    return values.transpose("time", *axes).assign_attrs(ds[quantity].attrs)


def _words(ds: Dataset, quantity: str, axes: Sequence[str]) -> str:
    """Words and unit for an axis or a colour bar."""
    short = "mean $f$" if quantity in _of_f(ds) else SHORT.get(quantity, "")
    if "axis" in ds[quantity].dims and len(axes) == 1:
        short += f" along {_component(ds, quantity, axes[0])}"
    others = [d for d in directions(ds) if d not in axes and d in ds[quantity].dims]
    short = short or str(ds[quantity].attrs["long_name"])
    return _labelled(ds[quantity], short + f", mean over {', '.join(others)}" * bool(others))


def _component(ds: Dataset, quantity: str, axis: str) -> str:
    """The component of a vector to show along an axis: that one, or another that is far larger."""
    over = [str(d) for d in ds[quantity].dims if d != "axis"]
    size: Any = abs(ds[quantity]).max(over).fillna(0.0)
    largest = str(size.axis.values[int(size.values.argmax())])
    return largest if float(size.max()) > 10 * float(size.sel(axis=axis)) else axis


def _title(ds: Dataset, quantity: str, species: Names) -> str:
    """Of which species; empty for a quantity of all."""
    if "species" not in ds[quantity].dims:
        return ""
    group = _members(box(ds), species)
    return label(group) + " (each)" * (len(group) > 1)


def _check_axis(ds: Dataset, axis: str) -> None:
    """Complain about an axis without cells."""
    if axis not in AXES:
        raise InputError(f"axis = {axis!r}: use x, y or z")
    if axis not in directions(ds):
        found = ", ".join(directions(ds)) or "none"
        raise InputError(f"there is one space cell along {axis}; axes with more: {found}")


def _edges(values: DataArray) -> tuple[float, float]:
    """Where the cells of a coordinate begin and end."""
    x = values.values
    half = 0.5 * (x[-1] - x[0]) / max(len(x) - 1, 1)
    return float(x[0] - half), float(x[-1] + half)


def _limits(values: DataArray, margin: float = 0.05) -> tuple[float, float]:
    """Limits that hold all times; rounding errors do not fill the picture."""
    known = values.values[np.isfinite(values.values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    span = max(high - low, 0.02 * max(abs(low), abs(high)), 1e-6)
    middle = 0.5 * (low + high)
    return middle - (0.5 + margin) * span, middle + (0.5 + margin) * span


def _some_times(ds: Dataset, count: int) -> Array:
    """First, last and some between, evenly [fm]."""
    return ds.time.values[np.unique(np.linspace(0, ds.time.size - 1, count).round().astype(int))]


# --- profiles -----------------------------------------------------------------------------------


@styled
def profile(
    ds: Dataset,
    quantity: str = "number",
    species: Names = None,
    axis: str = "x",
    times: Any = None,
    ax: Ax = None,
) -> Axes:
    """A quantity along an axis at several times; of a vector that component or a far larger one."""
    _check_axis(ds, axis)
    values = _values(ds, quantity, species, [axis])
    ax, wanted = _axes(ax), np.atleast_1d(chosen_times(ds) if times is None else times)
    now = values.sel(time=np.unique(wanted), method="nearest")
    for place, line in zip(np.linspace(0, 0.88, len(now)), now, strict=True):
        color, words = mpl.colormaps["viridis"](place), f"{float(line.time):.3g} fm"
        ax.plot(ds[axis].values, line.values, "o-", markersize=3.5, color=color, label=words)
    ax.set(xlabel=_place(ds, axis), ylabel=_words(ds, quantity, [axis]))
    ax.set(xlim=_edges(ds[axis]), ylim=_limits(now))
    title = _title(ds, quantity, species)
    ax.legend(title=title or None, ncols=4, columnspacing=1.0, **ABOVE)
    return ax


def _place(ds: Dataset, axis: str) -> str:
    """x [fm], or p_x [GeV]."""
    letter = axis if axis in AXES else f"p_{axis[1]}"
    return _labelled(ds[axis], f"${letter}$")


# --- maps ---------------------------------------------------------------------------------------


@styled
def field_map(
    ds: Dataset,
    quantity: str = "number",
    time: float | None = None,
    species: Names = None,
    plane: str = "",
    ax: Ax = None,
) -> Axes:
    """A quantity (of a vector its length) in a plane such as "xy", and arrows of the flow.

    time : the nearest record is shown; None is the last
    plane : "" is the first two directions with more than one cell
    """
    ax, axes = _axes(ax), _plane(ds, plane)
    values = _values(ds, quantity, species, axes)
    now = float(ds.time[-1] if time is None else values.time.sel(time=time, method="nearest"))
    _mesh(ds, ax, values, now, _words(ds, quantity, axes))
    _arrows(ds, ax, axes, now)
    ax.set_aspect("equal")
    ax.set_title(_at(_title(ds, quantity, species), now), loc="left")
    return ax


def _at(words: str, time: float) -> str:
    return f"{words}, $t$ = {time:.3g} fm" if words else f"$t$ = {time:.3g} fm"


def _plane(ds: Dataset, plane: str) -> list[str]:
    axes = list(plane) or directions(ds)[:2]
    if len(axes) != 2 or axes[0] == axes[1]:
        if plane:
            raise InputError(f"plane = {plane!r}: use two axes, such as 'xy'")
        raise InputError("a map needs two directions with more than one space cell; use a profile")
    for axis in axes:
        _check_axis(ds, axis)
    return axes


def _mesh(ds: Dataset, ax: Axes, values: DataArray, time: float, words: str) -> Any:
    """Colours of values (time, a, b) at a time, on the scale of all times."""
    a, b = (str(d) for d in values.dims[1:])
    low, high = _limits(values, 0.0)
    mesh = ax.pcolormesh(
        ds[a].values, ds[b].values, values.sel(time=time).values.T, shading="nearest",
        vmin=low, vmax=high, cmap="viridis", rasterized=True,
    )  # fmt: skip
    ax.set(xlabel=_place(ds, a), ylabel=_place(ds, b), xlim=_edges(ds[a]), ylim=_edges(ds[b]))
    ax.figure.colorbar(mesh, cax=ax.inset_axes((1.03, 0, 0.05, 1)), label=words)
    return mesh


def _flow(ds: Dataset, axes: Sequence[str]) -> DataArray:
    """Components of the velocity (time, axis, *axes) where arrows stand; NaN if slow."""
    over = [d for d in AXES if d not in axes]
    mean = ds.velocity.sel(axis=list(axes)).mean(over).transpose("time", "axis", *axes)
    steps = {a: slice((s := -(-ds.sizes[a] // ARROWS)) // 2, None, s) for a in axes}
    return mean.where((mean**2).sum("axis") > SLOW**2).isel(steps)


def _arrows(ds: Dataset, ax: Axes, axes: Sequence[str], time: float) -> Quiver | None:
    """The flow; the fastest arrow of all times is about a cell long. None: there is no flow."""
    flow = _flow(ds, axes)
    fastest = float(np.sqrt((flow**2).sum("axis")).max())
    if fastest == 0:
        return None
    a, b = axes
    cell = min(float(abs(flow[d][-1] - flow[d][0])) / max(flow.sizes[d] - 1, 1) for d in axes)
    arrows = ax.quiver(
        flow[a].values, flow[b].values, *_components(flow, time), angles="xy", pivot="middle",
        scale_units="xy", scale=fastest / (0.95 * cell), color="white", width=0.008,
        edgecolor="0.15", linewidth=0.4,
    )  # fmt: skip
    ax.text(
        1.0, 1.02, f"longest arrow: $v$ = {fastest:.2g}", transform=ax.transAxes,
        ha="right", va="bottom", fontsize=8.5, color="0.3",
    )  # fmt: skip
    return arrows


def _components(flow: DataArray, time: float) -> Array:
    """Both components (axis, b, a) at a time."""
    return np.swapaxes(flow.sel(time=time).values, 1, 2)


@styled
def phase_space(
    ds: Dataset,
    name: str = "f_x_px",
    species: Names = None,
    time: float | None = None,
    ax: Ax = None,
) -> Axes:
    """A marginal of f that keeps two directions, such as x and p_x; time: None is the last."""
    known = marginals(ds)
    if not known:
        raise InputError("this result keeps no f of two directions; set marginals = ['x px']")
    if name not in known:
        raise InputError(f"no marginal {name!r} in this result; {suggest(name, known)}")
    ax, group = _axes(ax), _members(box(ds), species)
    values = ds[name].sel(species=group).mean("species")
    now = float(ds.time[-1] if time is None else values.time.sel(time=time, method="nearest"))
    _mesh(ds, ax, values, now, "mean $f$ [1]")
    ax.set_title(_at(_title(ds, name, group), now), loc="left")
    return ax


# --- the walls ----------------------------------------------------------------------------------


@styled
def ledger(ds: Dataset, what: str = "number", ax: Ax = None) -> Axes:
    """What left through each wall and what was refused, if not zero; number or energy."""
    if what not in ("number", "energy"):
        raise InputError(f"what = {what!r}: use 'number' or 'energy'")
    ax, left = _axes(ax), ds[f"left_{what}"]
    for i, wall in enumerate(ds.wall.values.tolist()):
        gone, look = left.sel(wall=wall), {"color": COLORS[i // 2], "linestyle": ("-", "-.")[i % 2]}
        if gone.any():
            gone = gone.sum("species") if "species" in gone.dims else gone
            _history(ds, ax, gone, label=f"left through {wall}", **look)
    for color, axis in zip(COLORS, AXES if what == "number" else (), strict=False):
        refused = ds.refused_number.sel(wall=[f"{axis}-", f"{axis}+"]).sum(["wall", "species"])
        if refused.any():
            words = rf"refused at $\pm p_{axis}$"
            _history(ds, ax, refused, label=words, color=color, linestyle=":")
    noun = "particles" if what == "number" else "energy"
    return _finish(ds, ax, _labelled(left, f"{noun} per volume"), "nothing left")


# --- films --------------------------------------------------------------------------------------


@styled
def animation(
    ds: Dataset,
    path: str | Path,
    quantity: str = "number",
    species: Names = None,
    fps: float = 8.0,
) -> Path:
    """A film, one frame a record: a profile of one direction, a map of more; GIF or MP4."""
    path, axes = Path(path), directions(ds)[:2]
    if not axes:
        raise InputError("a film needs a result with more than one space cell")
    writer, figure = _writer(path, fps), Figure(figsize=(5.6, 4.2), layout="constrained")
    ax, values = figure.subplots(), _values(ds, quantity, species, axes)
    words, title = _words(ds, quantity, axes), _title(ds, quantity, species)
    show = (_moving_line if len(axes) == 1 else _moving_map)(ds, ax, values, words)
    try:
        with writer.saving(figure, str(path), 120):
            for time in ds.time.values:
                show(time)
                ax.set_title(_at(title, time), loc="left")
                if figure.get_layout_engine() is not None:
                    figure.draw_without_rendering()
                    figure.set_layout_engine("none")  # nothing moves but the data
                writer.grab_frame()
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def _writer(path: Path, fps: float) -> films.AbstractMovieWriter:
    """For a GIF or an MP4, by the suffix."""
    if path.suffix == ".gif":
        return films.PillowWriter(fps=fps)  # type: ignore[arg-type]
    if path.suffix != ".mp4":
        raise InputError(f"{path}: films end in .gif or .mp4")
    if not films.FFMpegWriter.isAvailable():
        raise InputError(f"{path}: .mp4 needs ffmpeg, which is not installed; use .gif")
    return films.FFMpegWriter(fps=fps)  # type: ignore[arg-type]


def _moving_line(ds: Dataset, ax: Axes, values: DataArray, words: str) -> Callable[[float], None]:
    """A profile that can be set to a time; grey is the first."""
    axis = str(values.dims[1])
    x = ds[axis].values
    ax.plot(x, values[0].values, color="0.75")
    (line,) = ax.plot(x, values[0].values, "o-", markersize=3.5, color=COLORS[1])
    ax.set(xlabel=_place(ds, axis), ylabel=words, xlim=_edges(ds[axis]), ylim=_limits(values))

    def show(time: float) -> None:
        line.set_ydata(values.sel(time=time).values)

    return show


def _moving_map(ds: Dataset, ax: Axes, values: DataArray, words: str) -> Callable[[float], None]:
    """A map that can be set to a time."""
    axes, first = [str(d) for d in values.dims[1:]], float(ds.time[0])
    mesh, arrows = _mesh(ds, ax, values, first, words), _arrows(ds, ax, axes, first)
    flow = _flow(ds, axes)
    ax.set_aspect("equal")

    def show(time: float) -> None:
        mesh.set_array(values.sel(time=time).values.T)
        if arrows is not None:
            arrows.set_UVC(*_components(flow, time))

    return show


# --- pages --------------------------------------------------------------------------------------


def _blank(ax: Axes) -> Axes:
    ax.set_axis_off()
    return ax


def _rows(panels: Sequence[Panel], width: int) -> plots.Panels:
    """Panels in rows; the last one is filled up."""
    full = [*panels, *[_blank] * (-len(panels) % width)]
    return [full[i : i + width] for i in range(0, len(full), width)]


def _height(draw: Panel) -> float:
    """Inches of a row; maps take the shape of the box."""
    if not (isinstance(draw, partial) and draw.func is field_map):
        return 3.9
    a, b = (np.ptp(_edges(draw.args[0][axis])) for axis in directions(draw.args[0])[:2])
    return 0.9 + 3.0 * float(np.clip(b / a, 0.3, 1.0))


def _page(rows: plots.Panels, title: str = "") -> Figure:
    """A figure of panels; every row has its own spacing, for colour bars take room."""
    heights = [_height(row[0]) for row in rows]
    figure = Figure((0.2 + 4.7 * len(rows[0]), 0.1 + sum(heights)), layout="constrained")
    parts = figure.subfigures(len(rows), squeeze=False, height_ratios=heights)[:, 0]
    for part, row in zip(parts, rows, strict=True):
        for draw, ax in zip(row, part.subplots(1, len(row), squeeze=False)[0], strict=True):
            draw(ax=ax)
    if title:
        figure.suptitle(textwrap.fill(title, 100), fontsize=14, parse_math=False)
    return figure


def _fields(ds: Dataset) -> Choice:
    """Quantities of all species together that have values."""
    names = ("energy_total", "temperature", "velocity", "entropy", "pressure_ratio")
    return [(name, None) for name in names if np.isfinite(ds[name]).any()]


def _densities(ds: Dataset, most: int = 4) -> Choice:
    return [("number", group) for group in groups(box(ds))[:most]]


def _masses(ds: Dataset, most: int = 4) -> Choice:
    """Groups of species with a mass of their own that moves in time or space."""
    found: dict[str, list[str]] = {}
    m2 = ds.mass_squared
    for group in groups(box(ds)):
        one = m2.sel(species=group[0])
        if np.ptp(one.values) > 1e-12 and not any(
            np.allclose(one, m2.sel(species=name), rtol=0.01) for name in found
        ):
            found[group[0]] = group
    return [("mass_squared", group) for group in list(found.values())[:most]]


def _profiles(ds: Dataset, choice: Choice, axes: Sequence[str]) -> list[Panel]:
    return [partial(profile, ds, name, group, axis) for name, group in choice for axis in axes]


def _maps(ds: Dataset, choice: Choice, count: int) -> plots.Panels:
    """A row for each choice: maps at several times."""
    times = _some_times(ds, count)
    panels = [[partial(field_map, ds, name, t, group) for t in times] for name, group in choice]
    return [row for one in panels for row in _rows(one, count)]


def _line_page(ds: Dataset) -> plots.Panels:
    """One direction: profiles, and phase space where it was kept, in full rows of three."""
    panels = _profiles(ds, _densities(ds, 2) + _masses(ds, 2) + _fields(ds), directions(ds))
    for name in marginals(ds)[:1]:
        some = _some_times(ds, -len(panels) % 3 or 3)
        panels += [partial(phase_space, ds, name, None, time) for time in some]
    return _rows(panels[: max(3, len(panels) - len(panels) % 3)], 3)


def _plane_page(ds: Dataset) -> plots.Panels:
    """Two or three directions: profiles along each, and maps at several times."""
    axes, densities, fields = directions(ds), _densities(ds, 2), _fields(ds)
    width = 4 if len(axes) == 2 else 3
    lines = densities + (_masses(ds, 2) or fields[: len(densities)])
    return _rows(_profiles(ds, lines, axes), width) + _maps(ds, densities[:1] + fields[:2], width)


@styled
def overview(ds: Dataset) -> Figure:
    """The run on a page: profiles at several times, and maps if there is a plane."""
    page = _line_page(ds) if len(directions(ds)) == 1 else _plane_page(ds)
    return _page(page, str(ds.attrs.get("title", "")))


def _figures(ds: Dataset) -> dict[str, Figure]:
    """All pictures of space, by name."""
    axes, masses, drawn = directions(ds), _masses(ds), _densities(ds) + _fields(ds)
    figures = {"overview": overview(ds)}
    for axis in axes:
        figures[f"profiles_{axis}"] = _page(_rows(_profiles(ds, drawn, [axis]), 3))
    if masses:
        figures["masses"] = _page(_rows(_profiles(ds, masses, axes), len(axes)))
    if len(axes) > 1:
        figures["maps"] = _page(_maps(ds, drawn + masses, 3))
    for name in marginals(ds):
        times, found = _some_times(ds, 3), [group for _, group in _densities(ds)]
        page: Any = [[partial(phase_space, ds, name, g, t) for t in times] for g in found]
        figures[f"phase_space_{name[2:]}"] = _page(page)
    if ds.left_number.any() or ds.refused_number.any():
        kinds = ("number", "energy") if ds.left_energy.any() else ("number",)
        figures["ledger"] = _page([[partial(ledger, ds, kind) for kind in kinds]])
    return figures


@styled
def save_all(ds: Dataset, folder: str | Path, kinds: Sequence[str] = ("png", "pdf")) -> list[Path]:
    """Write every picture into a folder; box_... are those of ``plots`` of the box averages."""
    folder = Path(folder)
    paths = []
    for path in plots.save_all(box(ds, left=True), folder, kinds):
        paths.append(path.replace(path.with_name(f"box_{path.name}")))
    for name, figure in _figures(ds).items():
        for kind in kinds:
            paths.append(folder / f"{name}.{kind}")
            figure.savefig(paths[-1], dpi=150)
            figure.set_layout_engine("none")  # the PDF keeps the layout of the PNG
    return paths
