"""Several runs in one report: their histories in the same axes, and their differences."""

from collections.abc import Iterator, Mapping

import numpy as np
from xarray import Dataset

from ...analysis import verdict
from ...analysis.comparison import compare, telling
from ...io.result import box
from ...util.errors import InputError
from ..plots import several, style
from ..plots.style import mean
from . import number_format
from .charts import Chart, Curve, frames, thinned
from .histories import TIME, label

WORDS = several.SHOWN | {"pressure_ratio": "longitudinal over transverse pressure"}
LOGARITHMIC = ("equilibrium_distance",)

Rows = list[list[str]]


def charts(results: Mapping[str, Dataset]) -> Iterator[Chart]:
    """Yield charts of quantities against time, per common group of species; one colour per run."""
    boxes = {name: thinned(box(ds)) for name, ds in results.items()}
    found = several.shared_groups(boxes)
    for name in several.moving(boxes):
        of = next(ds[name] for ds in boxes.values() if name in ds)
        description = number_format.with_unit(WORDS[name], of.attrs.get("units", "1"))
        title = WORDS[name][0].upper() + WORDS[name][1:]
        for group in found if "species" in of.dims else [[]]:
            curves = list(_curves(boxes, name, group))
            if not curves:
                continue
            told = title + (f" of {label(group)}" + " (each)" * (len(group) > 1)) * bool(group)
            x = next(iter(boxes.values())).time.values
            yield Chart(told, TIME, description, x, curves, name in LOGARITHMIC)


def _curves(boxes: Mapping[str, Dataset], name: str, group: list[str]) -> Iterator[Curve]:
    for i, (run, ds) in enumerate(boxes.items()):
        if name not in ds:
            continue
        y = mean(ds[name], group) if group else ds[name].values
        if name in LOGARITHMIC:
            y = np.where(y > 0, y, np.nan)
        error, errors = None, ds.get(f"{name}_error")
        if errors is not None:
            error = mean(errors, group) if group else errors.values
        if np.isfinite(y).any():
            yield Curve(run, y, ds.time.values, *_look(i), error=error)


def _look(i: int) -> tuple[int, int]:
    """Return colour and dashes of a run."""
    return (i + 1) % len(style.COLORS), i % len(style.DASHES)


def times(results: Mapping[str, Dataset]) -> np.ndarray:
    """Return the slider times: those of the first run within the common time range [fm]."""
    begin = max(float(ds.time.values[0]) for ds in results.values())
    end = min(float(ds.time.values[-1]) for ds in results.values())
    first = next(iter(results.values()))
    time, near = first.time.values, 1e-9 * abs(end)
    inside = first.isel(time=(time >= begin - near) & (time <= end + near))
    return inside.time.values[frames(inside)] if inside.time.size else inside.time.values


def spectra(results: Mapping[str, Dataset], slider: str) -> Iterator[Chart]:
    """Yield charts of f against |p| at the records nearest to the slider times."""
    boxes = {name: box(ds) for name, ds in results.items()}
    wanted = times(results)
    for group in several.shared_groups(boxes):
        curves, tops, ends = [], [], []
        for i, (run, ds) in enumerate(boxes.items()):
            inside = ds.p.values <= style.faces(ds)[1]
            f = mean(ds.spectrum.sel(time=wanted, method="nearest"), group)[:, inside]
            color, dash = _look(i)
            shown = np.where(f > 0, f, np.nan)
            p = ds.p.values[inside]
            curves.append(Curve(run, shown, p, color, dash, "points"))
            ends.append(f[-1][f[-1] > 0])
            tops.append(f.max())
        high = 2 * max(tops) or 1.0
        low = max(0.5 * np.concatenate(ends).min(initial=high), 1e-7 * high)
        title = label(group) + ", mean of them" * (len(group) > 1)
        p = boxes[curves[0].description].p.values
        yield Chart(title, "momentum |p| [GeV]", "occupation f", p, curves, True, (low, high),
                    slider)  # fmt: skip


# --- tables -------------------------------------------------------------------------------------


def side_by_side(results: Mapping[str, Dataset]) -> Rows:
    """Return the rows of the verdicts with one column per run."""
    found: dict[str, list[str]] = {}
    for i, ds in enumerate(results.values()):
        for row in verdict.rows(ds):
            cells = found.setdefault(row.description, ["–"] * len(results))
            cells[i] = row.value or row.predicted
    return [[description, *cells] for description, cells in found.items()]


def differences(results: Mapping[str, Dataset]) -> Iterator[tuple[str, Rows, str]]:
    """Yield title, rows (quantity, largest, time, at the end) and a remark for each comparison."""
    (first, one), *others = results.items()
    for name, other in others:
        title = f"{name} against {first}"
        try:
            table = telling(compare(box(one), box(other)))
        except InputError as error:
            yield title, [], f"Not compared: {error}."
            continue
        rows = [
            [
                str(quantity),
                number_format.percent(largest),
                f"{at:.3g}",
                number_format.percent(last),
            ]
            for quantity, largest, at, last, _ in table.itertuples()
        ]
        yield title, rows, "" if rows else "No difference but rounding."
