"""Several results in the same axes: one colour per result, one line style per species group."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from xarray import Dataset

from ...io.result import box
from ...util.errors import InputError
from . import style
from .style import COLORS, groups, label, labelled, mean, moves, styled

SHOWN = {
    "number": "particle density", "equilibrium_distance": "part not yet in equilibrium",
    "entropy": "entropy density", "temperature": "temperature",
    "chemical_potential": "chemical potential", "energy_kinetic": "kinetic energy density",
    "mass_squared": "squared mass", "pressure_ratio": r"$P_z / P_\perp$",
}  # fmt: skip
LINES = ("-", "--", ":", "-.")
WIDTH = 3


@styled
def comparison(results: Mapping[str, Dataset]) -> Figure:
    """Plot spectra at the last common time, and histories, of several named results.

    In space, averages over the grid are shown. Groups of species are those of the first result;
    constant quantities are left out.
    """
    boxes = {name: box(ds) for name, ds in results.items()}
    found, names = shared_groups(boxes), moving(boxes)
    count = len(found[:2]) + len(names)
    rows = -(-count // WIDTH)
    figure = Figure((4.7 * WIDTH, 0.6 + 3.5 * rows), layout="constrained")
    axes = figure.subplots(rows, WIDTH, squeeze=False).ravel()
    for ax, group in zip(axes, found[:2], strict=False):
        _spectra(boxes, ax, group)
    for ax, name in zip(axes[len(found[:2]) :], names, strict=False):
        _histories(boxes, ax, name, found)
    for ax in axes[count:]:
        ax.set_axis_off()
    runs = [axes[0].plot([], [], color=_color(i))[0] for i in range(len(boxes))]
    figure.legend(
        runs, [style.letter(name) for name in boxes], loc="outside upper center",
        ncols=min(len(boxes), 4), fontsize=11,
    )  # fmt: skip
    return figure


def shared_groups(boxes: Mapping[str, Dataset]) -> list[list[str]]:
    """Return the groups of species of the first result, restricted to common species."""
    first = next(iter(boxes.values()))
    shared = [
        n for n in first.species.values if all(n in ds.species.values for ds in boxes.values())
    ]
    if not shared:
        raise InputError(f"{', '.join(boxes)}: no species in common, nothing to compare")
    found = [[n for n in group if n in shared] for group in groups(first)]
    return [group for group in found if group][: len(LINES)]


def moving(boxes: Mapping[str, Dataset]) -> list[str]:
    """Return the quantities that change in at least one result."""
    return [n for n in SHOWN if any(n in ds and moves(ds[n]) for ds in boxes.values())]


def _color(i: int) -> str:
    return COLORS[(i + 1) % len(COLORS)]


def _spectra(boxes: Mapping[str, Dataset], ax: Axes, group: list[str]) -> None:
    """Plot f against |p| at the last common time."""
    last = min(float(ds.time.values[-1]) for ds in boxes.values())
    for i, ds in enumerate(boxes.values()):
        inside = ds.p.values <= style.faces(ds)[1]
        now = ds.sel(time=last, method="nearest")
        f = mean(now.spectrum, group)[inside]
        ax.plot(ds.p.values[inside], np.where(f > 0, f, np.nan), "o-", ms=3.5, color=_color(i))
    ax.set(yscale="log", xlabel="momentum $|p|$ [GeV]", ylabel="occupation $f$")
    ax.set_title(f"{label(group)}, $t$ = {last:.3g} fm", loc="left")


def _histories(boxes: Mapping[str, Dataset], ax: Axes, name: str, found: list[list[str]]) -> None:
    """Plot one quantity against time, for each group of species if it depends on species."""
    unit = ""
    for i, ds in enumerate(boxes.values()):
        if name not in ds:
            continue
        unit = labelled(ds[name], SHOWN[name])
        of = found if "species" in ds[name].dims else [[]]
        for line, group in zip(LINES, of, strict=False):
            values = mean(ds[name], group) if group else ds[name].values
            width = 1.4 + 1.2 * (len(boxes) - 1 - i)  # coinciding curves all stay visible
            ax.plot(ds.time.values, values, color=_color(i), linestyle=line, linewidth=width)
    ax.set(xlabel="time [fm]", ylabel=unit)
    if any("species" in ds[name].dims for ds in boxes.values() if name in ds):
        looks = [ax.plot([], [], color="0.3", linestyle=line)[0] for line in LINES[: len(found)]]
        ax.legend(looks, [label(group) for group in found], fontsize=9)
    if name == "equilibrium_distance":
        ax.set_yscale("log")
        style.plain_ticks(ax)
    if name == "pressure_ratio":
        ax.axhline(1.0, color="0.6", linewidth=0.9, zorder=0)
