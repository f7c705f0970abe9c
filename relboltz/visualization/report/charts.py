"""Charts of a page as plain data: curves, and the times of sliders."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xarray import Dataset

from ...util.arrays import Array
from ..plots.style import COLORS, DASHES, chosen_times, look
from .number_format import FINE, enough, numbers, text

INK, GREY = -1, -2
"""Colours that follow the text colour of the page."""
FRAMES = 60
"""Largest number of times of a slider."""
RECORDS = 400
"""Largest number of times of a history."""


@dataclass(frozen=True)
class Curve:
    """One line, or one line for each time of a slider.

    y : values (x), or (time, x) with a slider; x : None means that of the chart
    kind : "line", "points" (line with points), "predicted", "start" (initial values)
    color : an index of style.COLORS, INK or GREY; dash : an index of style.DASHES
    of : the curve to which a prediction belongs, if there are several
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
        """Return the data for the page's script."""
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

    limits : of y, or None to fit the data; note : a line of text; more : data for the script
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
        """Return the data for the page's script."""
        return {
            "kind": "lines", "title": self.title, "xlabel": self.xlabel, "ylabel": self.ylabel,
            "x": numbers(np.asarray(self.x, float), FINE), "log": self.log, "slider": self.slider,
            "limits": None if self.limits is None else numbers(list(self.limits), FINE),
            "curves": [curve.data() for curve in self.curves], **self.more,
        }  # fmt: skip


class Figures:
    """All charts of a page by key, and the times of its sliders [fm]."""

    def __init__(self) -> None:
        self.charts: dict[str, dict[str, Any]] = {}
        self.sliders: dict[str, list[Any]] = {}

    def add(self, chart: Any, level: int) -> str:
        """Add a chart or map and return its HTML element, with a heading of this level."""
        key = f"chart{len(self.charts)}"
        self.charts[key] = chart.data()
        note = f'<p class="note">{text(chart.note)}</p>' if chart.note else ""
        return (
            f'<figure class="chart" data-chart="{key}"><figcaption><h{level}>{text(chart.title)}'
            f"</h{level}></figcaption>{note}</figure>"
        )

    def add_slider(self, key: str, times: Array) -> str:
        """Add the times of a slider and return its HTML element, set to the last time."""
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
    """Return colour and dashes of a species, as in the plots."""
    known = look(ds, name)
    return COLORS.index(known["color"]), DASHES.index(known["linestyle"])


def frames(ds: Dataset, most: int = FRAMES) -> Any:
    """Return indices of the records of a slider, denser at early times."""
    return np.searchsorted(ds.time.values, chosen_times(ds, max(most, 2)))


def thinned(ds: Dataset) -> Dataset:
    """Return the result with at most about ``RECORDS`` records, denser at early times."""
    count = ds.time.size
    if count <= RECORDS:
        return ds
    even = np.linspace(0, count - 1, RECORDS // 2).round().astype(int)
    return ds.isel(time=np.union1d(even, frames(ds, RECORDS // 2)))
