"""Tables of ``relboltz converge``: values with error bars, and the change from each knob."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr
from rich.markup import escape
from rich.table import Table

from ..studies.convergence.extrapolation import LEAST, MOST
from ..util.arrays import listed
from ..util.errors import InputError
from ..util.text import unmarked

MAIN = (
    "number", "energy_kinetic", "energy_total", "entropy", "temperature", "chemical_potential",
    "mass_squared", "pressure_ratio", "equilibrium_distance", "rate", "equilibrium_temperature",
    "equilibrium_chemical_potential",
)  # fmt: skip
"""Quantities in the table; the file and the JSON hold all quantities."""
WIDE = 150
"""Columns of a terminal that is wide enough for the whole table."""
MOST_ROWS = 8
"""Largest number of rows per quantity, such as rates of many processes; the largest are shown."""


# --- the table ----------------------------------------------------------------------------------


def tables(ds: xr.Dataset, times: Sequence[float] = (), width: int = WIDE) -> Iterator[Table]:
    """Yield one table per time, the end last; the last includes the predicted final state.

    width : of the terminal; on a narrow one values and changes are in separate tables
    """
    recorded = ds.time.values
    for time in times:
        if not recorded[0] <= time <= recorded[-1]:
            raise InputError(f"--at {time:g}: records are from 0 to {recorded[-1]:g} fm")
    middle = recorded[np.unique([len(recorded) // 10, len(recorded) // 3])]
    wanted = ds.time.sel(time=list(times) or middle, method="nearest").values
    for time in [*dict.fromkeys(float(t) for t in wanted if t < recorded[-1]), recorded[-1]]:
        values, changes = ["run", "noise"], list(_columns(ds))
        ends, last = ["extrapolated", "error"], bool(time == recorded[-1])
        if width >= WIDE:
            yield _table(ds, float(time), [*values, *changes, *ends], last)
        else:
            yield _table(ds, float(time), values + ends, last)
            yield _table(ds, float(time), changes, last)


def _table(ds: xr.Dataset, time: float, columns: Sequence[str], last: bool) -> Table:
    """Return a table of the main quantities at a time."""
    led = "the run, and where finer ones lead"
    title = led if "run" in columns else "what each change does to the run"
    table = Table(title=f"t = {time:g} fm: {title}", collapse_padding=True, pad_edge=False)
    table.add_column("quantity", overflow="fold", min_width=15)
    for name in columns:
        table.add_column(name.rpartition(" ")[2], justify="right", no_wrap=True)
    now = ds.sel(time=time)
    for name in MAIN:
        name = name if name in ds else f"total_{name}"
        if name not in ds or ("time" not in ds[name].dims and not last):
            continue
        for description, at in _places(now, name):
            cells = _cells(now, name, at)
            table.add_row(description, *(cells[column] for column in columns))
    return table


def _places(now: xr.Dataset, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield row labels and selections of a quantity; species that agree share a row."""
    values, error = now[name], now[f"{name}_error"]
    unit = values.attrs.get("units", "1")
    description = name if unit == "1" else f"{name} {escape(f'[{unit}]')}"
    if not values.dims:
        yield description, {}
        return
    dim = str(values.dims[0])
    groups: list[list[Any]] = []
    for key in values[dim].values.tolist():
        value, bar = (float(v.sel({dim: key})) for v in (values, error))
        for group in groups:
            first = values.sel({dim: group[0]}), error.sel({dim: group[0]})
            if abs(float(first[0]) - value) <= bar + float(first[1]):
                group.append(key)
                break
        else:
            groups.append([key])
    size = {group[0]: abs(float(values.sel({dim: group[0]}))) for group in groups}
    groups = [g for g in groups if math.isfinite(size[g[0]])]
    for group in sorted(groups, key=lambda g: -size[g[0]])[:MOST_ROWS]:
        shown = group if len(group) < 4 else [group[0], "...", group[-1]]
        yield f"{description}, {unmarked(', '.join(str(k) for k in shown))}", {dim: group[0]}


def _cells(now: xr.Dataset, name: str, at: dict[str, Any]) -> dict[str, str]:
    """Return the numbers of a row, rounded according to the error bar, and measured orders."""

    def number(kind: str, **more: Any) -> float:
        return float(now[f"{name}{kind}"].sel({**at, **more}))

    value, error, run = (number(kind) for kind in ("", "_error", "_run"))
    digits = _decimals(error, max(abs(value), abs(run)))
    cells = {
        "run": f"{run:.{digits}f}",
        "noise": f"{number('_noise'):.{digits + 1}f}",
        "extrapolated": "none" if math.isnan(value) else f"{value:.{digits}f}",
        "error": "unknown" if math.isnan(error) else f"{error:.{digits}f}",
    }
    for knob in now.knob.values.tolist():
        change = number("_change", knob=knob)
        signed = f"{change:+.{digits + 1}f}"
        cells[knob] = "-" if math.isnan(change) else signed if float(signed) else "0"
        order, measured = number("_order", knob=knob), bool(number("_shown", knob=knob))
        known = change != 0 and not math.isnan(change)
        cells[f"{knob} order"] = order_text(order, measured) if known else "-"
    return cells


def _columns(ds: xr.Dataset) -> Iterator[str]:
    """Yield the columns of the knobs, each followed by its order column if it has one."""
    for knob in ds.knob.values.tolist():
        yield knob
        if knob in ("spacing", "step", "cells"):
            yield f"{knob} order"


def order_text(order: float, measured: bool) -> str:
    """Return the measured order, "1-2" if it may be either, "none" without a power law."""
    if math.isnan(order):
        return "none"
    if not measured:
        return "1-2"
    beyond = {round(LEAST, 1): "<", round(MOST, 1): ">"}.get(round(order, 1), "")
    return f"{beyond}{order:.1f}"


def _decimals(error: float, value: float) -> int:
    """Return the decimals that give an error two digits and a value at most nine."""
    if not math.isfinite(error) or not math.isfinite(value) or value == 0:
        return 4
    most = 8 - math.floor(math.log10(value))
    wanted = 1 - math.floor(math.log10(error)) if error > 0 else most
    return max(0, min(wanted, most, 15))


def remarks(ds: xr.Dataset) -> Iterator[str]:
    """Yield lines on the parameters that were varied, and on how to read the table."""
    yield "; ".join(np.atleast_1d(ds.attrs["knobs"]).tolist())
    for line in str(ds.attrs["not_varied"]).splitlines():
        yield f"not varied, and not in the error bars: {line}"
    yield (
        f"noise: of one run, from {len(ds.attrs['seeds'])} seeds; error: what the changes leave "
        f"open, added up, and the noise of all with {100 * ds.attrs['level']:.0f} % (Student); "
        "order: of the error in the spacing or step, measured with three of them and used; 1-2 : "
        "either, and the bar covers both; none : no power law, and the bar covers the finest run"
    )


# --- JSON ---------------------------------------------------------------------------------------


def as_json(ds: xr.Dataset) -> dict[str, Any]:
    """Return all quantities in a form that JSON can represent."""
    kinds = (
        "", "_error", "_run", "_noise", "_change", "_bar", "_shown", "_order", "_order_uncertainty",
    )  # fmt: skip
    names = [str(n) for n in ds if f"{n}_error" in ds]
    description = np.atleast_1d(ds.attrs["knobs"]).tolist()
    return {
        "title": ds.attrs["title"],
        "level": ds.attrs["level"],
        "seeds": [int(s) for s in np.atleast_1d(ds.attrs["seeds"])],
        "knobs": dict(zip(ds.knob.values.tolist(), description, strict=True)),
        "not_varied": str(ds.attrs["not_varied"]).splitlines(),
        "coordinates": {str(k): listed(v.values) for k, v in ds.coords.items()},
        "quantities": {
            name: {
                "units": ds[name].attrs["units"],
                "dimensions": list(ds[name].dims),
                **{kind[1:] or "value": listed(ds[f"{name}{kind}"].values) for kind in kinds},
            }
            for name in names
        },
    }  # fmt: skip
