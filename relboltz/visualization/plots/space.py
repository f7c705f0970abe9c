"""Plots in space: profiles along an axis, maps of a plane, phase space.

Profiles and maps are cuts through the centre of the grid; dark lines are early, light lines late;
limits and colour scales of maps are the same at all times. Quantities that are undefined in empty
cells, such as temperature or velocity, are shown only where there is matter.
"""

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from xarray import DataArray, Dataset

from ...io.quantities import WEIGHTED
from ...util.errors import InputError
from ...util.text import suggest
from . import style
from .style import Ax, Names, label, labelled, members, new_axes, recorded, shades, styled

AXES = ("x", "y", "z")
DIRECTIONS = (*AXES, "px", "py", "pz")
COMPONENTS = ("axis", "axis2", "mu", "nu")
SLOW = 0.01  # flow below this fraction of the speed of light gets no arrows
ARROWS = 16  # largest number of arrows along an axis
MATTER = 1e-3
"""Fraction of the largest energy at the same time below which a cell counts as empty."""
DECADES = 3
"""Largest number of decades of a logarithmic colour scale."""
DILUTED = 4.0
"""Decrease of the largest value above which the colour scale is logarithmic."""
SHORT = {
    "number": "density", "temperature": "temperature", "energy_kinetic": "kinetic energy density",
    "energy_total": "total energy density", "energy_by_species": "kinetic energy density",
    "source": "energy source", "velocity": "velocity of the thermal state",
    "mass_squared": "$m^2$", "screening_mass_squared": "screening mass squared",
    "chemical_potential": r"$\mu$", "pressure_ratio": r"$P_z / P_\perp$",
    "entropy": "entropy density", "momentum": "momentum", "landau_velocity": "Landau velocity",
    "landau_temperature": "Landau temperature", "landau_energy": "Landau energy density",
    "landau_chemical_potential": r"Landau $\mu$", "bulk_pressure": "bulk pressure",
    "shear_stress": r"$\pi$", "energy_momentum": "$T$", "momentum_flux": "momentum flux",
    "momentum_by_species": "momentum", "energy_momentum_by_species": "$T$",
    "number_current": "particle flux", "pressure": "pressure",
}  # fmt: skip
"""Short axis labels, used in place of long names."""
KINDS = {"pressure_ratio": "ratio", "velocity": "plain", "landau_velocity": "plain"}
"""Kinds of quantities that are not densities: ratios are close to 1."""


# --- what is in a result ------------------------------------------------------------------------


def directions(ds: Dataset) -> list[str]:
    """Return the axes with more than one space cell."""
    return [axis for axis in AXES if ds.sizes.get(axis, 1) > 1]


def marginals(ds: Dataset) -> list[str]:
    """Return the names of marginals of f that keep two directions."""
    names = (str(name) for name in ds if str(name).startswith("f_") and "time" in ds[name].dims)
    plain = (name for name in names if not name.endswith("_error"))  # errors of replicas
    return [name for name in plain if len(set(ds[name].dims) & set(DIRECTIONS)) == 2]


def field(ds: Dataset, quantity: str, species: Names, axes: Sequence[str]) -> DataArray:
    """Return a quantity (time, *axes): mean over species, cut through the centre of the grid.

    quantity : a name; for a vector or tensor with its component, "velocity x", "shear_stress xy".
    A vector without a component gives the component along the axis of a profile, or in a plane its
    magnitude.

    The attributes ``description``, ``title`` and ``kind`` give the quantity, its species, and
    whether it is a density, a signed number or a ratio; ``component`` and ``where`` give the
    component and the position of the cut.
    """
    name, component = _asked(ds, quantity)
    if not np.isfinite(ds[name]).any():
        raise InputError(f"quantity {name!r} has no value anywhere in this result")
    for axis in set(axes) - set(ds[name].dims):
        raise InputError(f"quantity {name!r} does not depend on {axis}")
    values, title, group = ds[name], "", members(ds, species)
    description = "mean $f$" if name.startswith("f_") else SHORT.get(name, "")
    description = description or str(values.attrs["long_name"])
    if "species" in values.dims:
        title = label(group) + " (each)" * (len(group) > 1)
        values = values.sel(species=group).mean("species")
    if name in WEIGHTED:
        values = values.where(_matter(ds))
    values, where = _cut(values, [d for d in AXES if d in values.dims and d not in axes])
    values = values.mean([d for d in values.dims if d in DIRECTIONS and d not in axes])
    signed = bool(component)
    if component:
        values = values.sel(dict(zip(_components(values), component, strict=True)))
        description = (
            f"{description}, {component}"
            if len(component) == 1
            else f"{description}$^{{{component}}}$"
        )
    elif "axis" in values.dims and len(axes) == 1:
        along = _component(ds[name], axes[0])
        values, description, signed = values.sel(axis=along), f"{description} along {along}", True
        component = along
    elif "axis" in values.dims:
        values, description = (values**2).sum("axis", skipna=False) ** 0.5, f"|{description}|"
    kind = "signed" if signed else KINDS.get(name) or _kind(values, signed)
    about = {"title": title, "kind": kind, "component": component, "where": where.lstrip(", ")}
    description = labelled(ds[name], description + where)
    return values.transpose("time", *axes).assign_attrs(about, description=description)


def _asked(ds: Dataset, quantity: str) -> tuple[str, str]:
    """Return name and component of a quantity in space cells."""
    allowed = {"time", "species", *COMPONENTS, *DIRECTIONS}
    known = [str(name) for name in ds if "time" in ds[name].dims]
    known = [n for n in known if set(ds[n].dims) <= allowed and set(ds[n].dims) & set(DIRECTIONS)]
    name, _, component = quantity.strip().partition(" ")
    if name not in known:
        raise InputError(f"no quantity {quantity!r} in space cells; {suggest(name, known)}")
    dims, component = _components(ds[name]), component.strip()
    if not component and len(dims) < 2:
        return name, ""
    if not dims:
        raise InputError(f"quantity {quantity!r}: {name} has no components")
    fits = len(component) == len(dims) and all(
        letter in ds[d].values for letter, d in zip(component, dims, strict=True)
    )
    if not fits:
        letters = "".join(ds[dims[0]].values.tolist())
        example = f"{name} {'xy'[: len(dims)]}"
        raise InputError(
            f"quantity {quantity!r}: give its component, {len(dims)} of the letters {letters}, "
            f"such as {example!r}"
        )
    return name, component


def _components(values: DataArray) -> list[str]:
    return [str(d) for d in values.dims if d in COMPONENTS]


def _matter(ds: Dataset) -> DataArray:
    """Return which cells contain matter: those with more than ``MATTER`` of the largest energy."""
    energy = ds.energy_kinetic
    return energy > MATTER * energy.max([d for d in AXES if d in energy.dims])


def _cut(values: DataArray, dims: Sequence[str]) -> tuple[DataArray, str]:
    """Return values at the centre of these directions, and text such as ', y = 0'."""
    places = []
    for d in dims:
        n = values.sizes[d]
        if n > 1:
            middle = values[d].values[(n - 1) // 2 : n // 2 + 1].mean()
            places.append(f"{d} = {middle + 0.0:.2g}")
        values = values.isel({d: slice((n - 1) // 2, n // 2 + 1)}).mean(d)
    return values, f", {', '.join(places)}" * bool(places)


def _kind(values: DataArray, signed: bool) -> str:
    """Return the kind of scale: "signed", "plain", or "diluted" for densities that fall a lot."""
    known = values.values[np.isfinite(values.values)]
    if signed or (known.size and known.min() < -1e-9 * abs(known).max()):
        return "signed"
    first, last = (np.nanmax(values.isel(time=i), initial=0.0) for i in (0, -1))
    top = max(first, last)
    return "diluted" if min(first, last) > 0 and top > DILUTED * min(first, last) else "plain"


def _component(vector: DataArray, axis: str) -> str:
    """Return the component to plot along an axis: its own, unless another is 10 times larger."""
    size: Any = abs(vector).max([d for d in vector.dims if d != "axis"]).fillna(0.0)
    largest = str(size.axis.values[int(size.values.argmax())])
    return largest if float(size.max()) > 10 * float(size.sel(axis=axis)) else axis


def _check_axis(ds: Dataset, axis: str) -> None:
    """Raise InputError if an axis is unknown or has a single cell."""
    if axis not in AXES:
        raise InputError(f"axis = {axis!r}: use x, y or z")
    if axis not in directions(ds):
        found = ", ".join(directions(ds)) or "none"
        raise InputError(f"there is one space cell along {axis}; axes with more: {found}")


# --- axes ---------------------------------------------------------------------------------------


def edges(coordinate: DataArray) -> tuple[float, float]:
    """Return the outer edges of the cells of a coordinate."""
    x = coordinate.values
    half = 0.5 * (x[-1] - x[0]) / max(len(x) - 1, 1)
    return float(x[0] - half), float(x[-1] + half)


def limits(values: DataArray, margin: float = 0.05) -> tuple[float, float]:
    """Return limits for all times, wide enough that rounding errors do not fill the plot."""
    known = values.values[np.isfinite(values.values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    span = max(high - low, 0.02 * max(abs(low), abs(high)), 1e-6)
    middle = 0.5 * (low + high)
    return middle - (0.5 + margin) * span, middle + (0.5 + margin) * span


def _place(coordinate: DataArray) -> str:
    """Return an axis label such as 'x [fm]' or 'p_x [GeV]'."""
    axis = str(coordinate.name)
    return labelled(coordinate, f"${axis}$" if axis in AXES else f"$p_{axis[1]}$")


def _frame(ax: Axes, values: DataArray) -> None:
    """Set labels and limits of a profile (time, axis) for all its times."""
    x = values[values.dims[1]]
    ax.set(xlabel=_place(x), ylabel=values.attrs["description"], xlim=edges(x), ylim=limits(values))


def _say_when(ax: Axes, values: DataArray, time: float, note: bool = False) -> None:
    """Set a title with species and time, above the note if there is one."""
    of = values.attrs["title"]
    ax.set_title(f"{of}{', ' * bool(of)}$t$ = {time:.3g} fm", loc="left", pad=6 + 10 * note)


# --- pictures -----------------------------------------------------------------------------------


@styled
def profile(
    ds: Dataset,
    quantity: str = "number",
    species: Names = None,
    axis: str = "x",
    times: Any = None,
    ax: Ax = None,
) -> Axes:
    """Plot a quantity along an axis at several times; for vectors see ``field``."""
    _check_axis(ds, axis)
    values = field(ds, quantity, species, [axis])
    ax, values = ax or new_axes(), values.sel(time=recorded(ds, times))
    for now, (_, look) in zip(values, shades(values.time.values), strict=True):
        ax.plot(ds[axis].values, now.values, **look)
    _frame(ax, values)
    ax.legend(title=values.attrs["title"] or None, ncols=4, columnspacing=1.0, **style.ABOVE)
    return ax


@styled
def field_map(
    ds: Dataset,
    quantity: str = "number",
    time: float | None = None,
    species: Names = None,
    plane: str = "",
    ax: Ax = None,
) -> Axes:
    """Plot a quantity (magnitude for vectors) in a plane such as "xy", with flow arrows.

    time : the nearest record is shown; None means the last
    plane : "" means the first two directions with more than one cell
    """
    ax, axes = ax or new_axes(), _plane(ds, plane)
    draw_map(ax, field(ds, quantity, species, axes), time, flow_in(ds, axes))
    return ax


@styled
def phase_space(
    ds: Dataset,
    name: str = "f_x_px",
    species: Names = None,
    time: float | None = None,
    ax: Ax = None,
) -> Axes:
    """Plot a marginal of f that keeps two directions, such as x and p_x; default: last time."""
    known = marginals(ds)
    if not known:
        raise InputError("this result keeps no f of two directions; set marginals = ['x px']")
    if name not in known:
        raise InputError(f"no marginal {name!r} in this result; {suggest(name, known)}")
    ax, axes = ax or new_axes(), [str(d) for d in ds[name].dims if d in DIRECTIONS]
    draw_map(ax, field(ds, name, species, axes), time)
    return ax


def _plane(ds: Dataset, plane: str) -> list[str]:
    axes = list(plane) or directions(ds)[:2]
    if len(axes) != 2 or axes[0] == axes[1]:
        if plane:
            raise InputError(f"plane = {plane!r}: use two axes, such as 'xy'")
        raise InputError("a map needs two directions with more than one space cell; use a profile")
    for axis in axes:
        _check_axis(ds, axis)
    return axes


# --- one moment ---------------------------------------------------------------------------------


def draw_line(ax: Axes, values: DataArray, time: float) -> None:
    """Plot values (time, axis) at a time, with limits for all times; the first time is grey."""
    x = values[values.dims[1]].values
    ax.plot(x, values[0].values, color="0.75")
    ax.plot(x, values.sel(time=time).values, "o-", markersize=3.5, color=style.COLORS[1])
    _frame(ax, values)
    _say_when(ax, values, time)


def draw_map(
    ax: Axes, values: DataArray, time: float | None, flow: Any = None, bar: bool = True
) -> Any:
    """Plot values (time, a, b) at a time, with colours for all times, and flow arrows."""
    style.check_time(values, float(values.time[-1]) if time is None else time)
    now = values.sel(time=values.time[-1] if time is None else time, method="nearest")
    a, b = (values[d] for d in values.dims[1:])
    norm, colors = _colors(values)
    mesh = ax.pcolormesh(
        a.values, b.values, now.values.T, shading="nearest", norm=norm, cmap=colors,
        rasterized=True,
    )  # fmt: skip
    ax.set_facecolor("0.88")  # empty cells
    ax.set(xlabel=_place(a), ylabel=_place(b), xlim=edges(a), ylim=edges(b))
    if bar:
        beside = ax.inset_axes((1.03, 0, 0.05, 1))
        ax.figure.colorbar(mesh, cax=beside, label=values.attrs["description"])
    if a.name in AXES and b.name in AXES:
        ax.set_aspect("equal")
    note = flow is not None and _arrows(ax, flow, float(now.time))
    _say_when(ax, values, float(now.time), note)
    return mesh


def scale(values: DataArray) -> tuple[float, float]:
    """Return the ends of a colour scale for all times; ratios centre on 1, signed values on 0."""
    low, high = limits(values, 0.0)
    kind = values.attrs["kind"]
    if kind == "diluted":
        return max(float(np.nanmin(values.where(values > 0))), high / 10**DECADES), high
    if kind == "ratio":
        reach = max(abs(high - 1), abs(low - 1), 1e-3)
        return 1 - reach, 1 + reach
    if kind == "signed":
        reach = max(abs(low), abs(high))
        return -reach, reach
    return low, high


def _colors(values: DataArray) -> tuple[Normalize, Any]:
    """Return norm and colour map for all times; white is 1 for ratios, 0 for signed values."""
    low, high = scale(values)
    kind = values.attrs["kind"]
    colors = mpl.colormaps["RdBu_r" if kind in ("ratio", "signed") else "viridis"]
    if kind == "diluted":
        return LogNorm(low, high, clip=True), colors
    return Normalize(low, high), colors


def flow_in(ds: Dataset, axes: Sequence[str]) -> DataArray:
    """Return Landau velocity (time, axis, b, a) of the arrows; NaN if slow or without matter."""
    name = "landau_velocity" if "landau_velocity" in ds else "velocity"
    a, b = axes
    there = ds[name].sel(axis=[a, b]).where(_matter(ds))
    flow = _cut(there, [d for d in AXES if d not in axes])[0].transpose("time", "axis", b, a)
    steps = {d: slice((s := -(-ds.sizes[d] // ARROWS)) // 2, None, s) for d in axes}
    flow = flow.where((flow**2).sum("axis") > SLOW**2).isel(steps)
    return flow.assign_attrs(description=SHORT[name])


def _arrows(ax: Axes, flow: DataArray, time: float) -> bool:
    """Draw flow arrows, if any; the fastest of all times is about one cell long."""
    fastest = float(np.sqrt((flow**2).sum("axis")).max())
    if fastest == 0:
        return False
    b, a = (flow[d].values for d in flow.dims[2:])
    cell = min(float(abs(x[-1] - x[0])) / max(len(x) - 1, 1) for x in (a, b))
    ax.quiver(
        a, b, *flow.sel(time=time).values, angles="xy", pivot="middle", scale_units="xy",
        scale=fastest / (0.95 * cell), color="white", width=0.008, edgecolor="0.15", linewidth=0.4,
    )  # fmt: skip
    ax.text(
        0.0, 1.01, f"arrows: {flow.attrs['description']}, longest {fastest:.2g}",
        transform=ax.transAxes, va="bottom", fontsize=8, color="0.3",
    )  # fmt: skip
    return True
