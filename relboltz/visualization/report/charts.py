"""What a page draws: curves, maps, and the times that a slider runs through, as plain data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xarray import Dataset

from ...util.arrays import Array
from ..plots.style import COLORS, DASHES, chosen_times, look
from .number_format import FINE, enough, numbers, text

INK, GREY = -1, -2
"""Colours that follow the text of the page."""
FRAMES = 60
"""Times that a slider has at most."""
RECORDS = 400
"""Times that a history has at most."""


@dataclass(frozen=True)
class Curve:
    """One line, or one line for each time of a slider.

    y : values (x), or (time, x) with a slider; x : None is that of the chart
    kind : "line", "points" (with its points), "predicted", "start" (where a slider begins)
    color : a place in style.COLORS, INK or GREY; dash : a place in style.DASHES
    of : whom a prediction is for, where there are several
    """

    description: str
    y: Array
    x: Array | None = None
    color: int = INK
    dash: int = 0
    kind: str = "line"
    error: Array | None = None
    of: str = ""

    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        y = np.asarray(self.y, float)
        found = {"words": self.description, "y": numbers(y, enough(y)), "kind": self.kind,
                 "color": self.color, "dash": self.dash, "of": self.of}  # fmt: skip
        if self.x is not None:
            found["x"] = numbers(np.asarray(self.x, float), FINE)
        if self.error is not None and np.nanmax(self.error, initial=0.0) > 0:
            found["error"] = numbers(np.asarray(self.error, float))
        return found


@dataclass(frozen=True)
class Chart:
    """Curves in the same axes.

    limits : of y, or None to hold what is shown; note : a line below; more : for the script
    """

    title: str
    xlabel: str
    ylabel: str
    x: Array
    curves: Sequence[Curve]
    log: bool = False
    limits: tuple[float, float] | None = None
    slider: str = ""
    note: str = ""
    more: dict[str, Any] = field(default_factory=dict)

    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {
            "kind": "lines", "title": self.title, "xlabel": self.xlabel, "ylabel": self.ylabel,
            "x": numbers(np.asarray(self.x, float), FINE), "log": self.log, "slider": self.slider,
            "limits": None if self.limits is None else numbers(list(self.limits), FINE),
            "curves": [curve.data() for curve in self.curves], **self.more,
        }  # fmt: skip


class Figures:
    """All charts of a page, by their keys, and the times of its sliders [fm]."""

    def __init__(self) -> None:
        self.charts: dict[str, dict[str, Any]] = {}
        self.sliders: dict[str, list[Any]] = {}

    def add(self, chart: Any, level: int) -> str:
        """Keep a chart or map; its place on the page, with a heading of this level."""
        key = f"chart{len(self.charts)}"
        self.charts[key] = chart.data()
        note = f'<p class="note">{text(chart.note)}</p>' if chart.note else ""
        return (
            f'<figure class="chart" data-chart="{key}"><figcaption><h{level}>{text(chart.title)}'
            f"</h{level}></figcaption>{note}</figure>"
        )

    def add_slider(self, key: str, times: Array) -> str:
        """Keep the times of a slider; the slider, which begins at the last one."""
        self.sliders[key] = numbers(times, FINE)
        last = len(times) - 1
        if last < 1:
            return ""
        description = f"t = {times[-1]:.4g} fm"
        return (
            f'<div class="slider" data-slider="{key}">'
            '<button type="button" class="play" aria-label="Play">'
            '<span aria-hidden="true">▶</span></button>'
            f'<label for="{key}">time</label>'
            f'<input type="range" id="{key}" min="0" max="{last}" step="1" value="{last}" '
            f'aria-valuetext="{description}"><output for="{key}">{description}</output></div>'
        )


# --- colours and times --------------------------------------------------------------------------


def style_of(ds: Dataset, name: str) -> tuple[int, int]:
    """Colour and dashes of a species, as in the pictures."""
    known = look(ds, name)
    return COLORS.index(known["color"]), DASHES.index(known["linestyle"])


def frames(ds: Dataset, most: int = FRAMES) -> Any:
    """Places of the records that a slider runs through, closer together early on."""
    return np.searchsorted(ds.time.values, chosen_times(ds, max(most, 2)))


def thinned(ds: Dataset) -> Dataset:
    """The result with few enough records for a history: even ones, and more of them early on."""
    count = ds.time.size
    if count <= RECORDS:
        return ds
    even = np.linspace(0, count - 1, RECORDS // 2).round().astype(int)
    return ds.isel(time=np.union1d(even, frames(ds, RECORDS // 2)))
