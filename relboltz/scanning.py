"""Scans: the same set-up with other values of some keys, every combination of them, as one Dataset.

Each point is a run of its own in the folder F.scan beside F.nc, done once: whoever is interrupted
starts the same scan again and does what is left. A point that fails is told of, and the rest go on.
"""

from __future__ import annotations

import inspect
import itertools
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from . import config, distributed
from .cases import Case, finished, folder_of
from .errors import InputError, Interrupted, RelboltzError, RunError
from .progress import Report, bar
from .records import kinds, output
from .records.reserved import Reservation
from .settings import Run as RunSettings
from .simulation import named_file
from .words import shown

MOST = 100_000
"""Points of a scan."""
OF_A_POINT = ("steps", "wall_seconds", "warnings", "run")
"""Attributes that differ from point to point; all but the last become variables."""
NODES = ("p", "px", "py", "pz")
"""Coordinates that differ where points have boxes of their own."""
Setup = str | Path | Callable[..., Mapping[str, Any]]
Between = Callable[[int, int, str], None]
"""Told of number, of how many, and which point in words."""


@dataclass(frozen=True)
class Point:
    """One combination of values, by key."""

    setup: Setup
    values: tuple[tuple[str, Any], ...]
    changes: tuple[str, ...] = field(default=())
    """Further overrides, key=value, of all points."""

    @property
    def words(self) -> str:
        """Which one it is."""
        return ", ".join(f"{key} = {value}" for key, value in self.values)

    def case(self) -> Case:
        """Its set-up, with nothing left to choose."""
        try:
            if callable(self.setup):
                given = self._asked(self.setup)
                model, grid, initial = (given.pop(key) for key in ("model", "grid", "initial"))
                return Case.of_options(model, grid, initial, given)
            return Case.of_config(config.load(self.setup, self.changes, values=dict(self.values)))
        except KeyError as error:
            raise InputError(
                f"the function of a scan must give model, grid, initial and what else solve takes; "
                f"{error.args[0]!r} is missing"
            ) from None
        except InputError as error:
            raise InputError(f"at {self.words}: {error}") from None

    def _asked(self, setup: Callable[..., Mapping[str, Any]]) -> dict[str, Any]:
        """What the user's function gives for these values."""
        values = dict(self.values)
        try:
            inspect.signature(setup).bind(**values)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the function of a scan is called with {', '.join(values)} by name: {error}"
            ) from None
        given = setup(**values)
        if not isinstance(given, Mapping):
            raise InputError(
                f"the function of a scan returned {shown(given)}; return a dictionary with model, "
                "grid, initial, end, ..."
            )
        return dict(given)


def points_of(
    setup: Setup, over: Mapping[str, Sequence[Any]], changes: Sequence[str] = ()
) -> list[Point]:
    """All combinations, the last key fastest."""
    if not callable(setup) and not isinstance(setup, str | Path):
        raise InputError(
            f"setup = {shown(setup)}: use the name of a configuration, or a function that returns "
            "what solve is given"
        )
    if not isinstance(over, Mapping):
        raise InputError(f'over = {shown(over)}: use lists by key: {{"model.alpha_s": [0.1, 0.2]}}')
    if not over:
        raise InputError("a scan needs keys to go over, such as model.alpha_s=0.1,0.2,0.3")
    for key, values in over.items():
        if not isinstance(key, str):
            raise InputError(f'over: {shown(key)} is no key; write it as in "model.alpha_s"')
        if key == "output.file":
            raise InputError(f"{key}: a scan names the files of its points; choose its own by file")
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
            raise InputError(f"{key} = {shown(values)}: a scan needs a list of values")
        if len(values) == 0:
            raise InputError(f"{key}: the list of values is empty")
        if len({repr(value) for value in values}) < len(values):
            raise InputError(f"{key} = {shown(list(values))}: a value is there twice")
    count = math.prod(len(values) for values in over.values())
    if count > MOST:
        raise InputError(f"{count} points: a scan has at most {MOST}; use fewer values")
    plain = [[v.item() if isinstance(v, np.generic) else v for v in over[key]] for key in over]
    return [
        Point(setup, tuple(zip(over, values, strict=True)), tuple(changes))
        for values in itertools.product(*plain)
    ]


def scan(
    setup: Setup,
    over: Mapping[str, Sequence[Any]],
    *,
    file: str | Path | None = None,
    workers: int = 0,
    address: str = "",
    force: bool = False,
    progress: bool | Report = True,
) -> xr.Dataset:
    """Run a set-up with every combination of values, into one Dataset with the scanned dimensions.

    Parameters
    ----------
    setup : the name of a configuration; or a function that takes the scanned values by name and
        returns what ``solve`` is given: a dictionary with model, grid, initial, end, ...
    over : values by key: {"model.alpha_s": [0.1, 0.2]}, or of a function {"alpha_s": [0.1, 0.2]}
    file : NetCDF file of the result; the runs are kept in F.scan beside it, and the same scan
        again does only what is missing. Without it they are kept nowhere
    workers : points at once, each in a process of Ray; 0 : one after the other, in this process
    address : of a Ray cluster, as in [run]
    force : replace a result that the file holds
    progress : as in ``solve``

    Returns
    -------
    xarray.Dataset: what ``solve`` returns, with a dimension for each key; NaN at points that
    failed, whose ``status`` says why

    Raises
    ------
    InputError : a point is not legal; before any of them runs
    RunError : some points failed; all others are in its ``dataset``, and in ``file``
    """
    path = None if file is None else named_file(file)
    check_spread(workers, address)
    check_free(path, force, "force=True")
    context = bar() if progress is True else None
    try:
        report = context.__enter__() if context is not None else (progress or None)
        return scanned(points_of(setup, over), path, report, (workers, address))
    finally:
        if context is not None:
            context.__exit__(None, None, None)


def check_spread(workers: Any, address: str) -> None:
    """Refuse numbers of workers that cannot be, and a cluster that nobody is sent to."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 4096:
        raise InputError(
            f"workers = {shown(workers)}: use a whole number from 0 to 4096; 0 = in turn"
        )
    if address and not workers:
        raise InputError(f"address = {shown(address)}: is for workers; give their number, workers")


def check_free(path: Path | None, force: bool, remedy: str) -> None:
    """Refuse to replace a file; remedy : what allows it."""
    if path is not None and path.exists() and not force:
        raise InputError(
            f"{path} exists already; choose another name, or replace it ({remedy}): runs that are "
            "done are not done again"
        )


def scanned(
    points: Sequence[Point],
    file: Path | None,
    progress: Any = None,
    spread: tuple[int, str] = (0, ""),
    between: Between | None = None,
) -> xr.Dataset:
    """All points done, and put together; spread : workers of Ray, 0 for none, and its address."""
    if file is not None:
        output.check_writable(file)
    cases = [point.case() for point in points]  # all are legal before one runs
    with tempfile.TemporaryDirectory() as nowhere:
        folder = Path(nowhere) if file is None else folder_of(file, "scan")
        reserved = None if file is None else Reservation(file)
        if reserved is not None:
            reserved.take()
        try:
            paths = [folder / f"point-{i + 1}-{case.digest()}.nc" for i, case in enumerate(cases)]
            tell = between or (lambda *_: None)
            if spread[0]:
                told = _spread(points, paths, spread, tell)
            else:
                told = _in_turn(points, cases, paths, progress, tell)
            status = dict(told)
            found = [finished(path) for path in paths]
            ds = combined(points, found, [status.get(i, "done") for i in range(len(points))])
            if file is not None:
                output.write(ds, file)
        finally:
            if reserved is not None:
                reserved.free()
    failed = [i for i, one in enumerate(found) if one is None]
    if failed:
        first = failed[0]
        raise RunError(
            f"{len(failed)} of {len(points)} points failed, the first at {points[first].words}: "
            f"{status.get(first, 'no result')}", ds,
        )  # fmt: skip
    return ds


def _in_turn(
    points: Sequence[Point], cases: Sequence[Case], paths: Sequence[Path], progress: Any,
    tell: Between,
) -> Iterator[tuple[int, str]]:  # fmt: skip
    """One point after the other, with the threads of this process; what became of each."""
    for i, (point, case, path) in enumerate(zip(points, cases, paths, strict=True)):
        tell(i + 1, len(points), point.words)
        try:
            case.done(path, progress)
            yield i, "done"
        except Interrupted as error:
            where = f"at point {i + 1} of {len(points)}, {point.words}"
            raise Interrupted(f"{error} {where}", error.dataset, error.signal) from None
        except RelboltzError as error:
            yield i, f"failed: {error}"


def _spread(
    points: Sequence[Point], paths: Sequence[Path], spread: tuple[int, str], tell: Between
) -> Iterator[tuple[int, str]]:
    """Several at once, in processes of Ray."""
    tasks = [(point, str(path.resolve())) for point, path in zip(points, paths, strict=True)]
    run = RunSettings(workers=spread[0], address=spread[1])
    for i, status in distributed.spread(done_elsewhere, tasks, run):
        tell(i + 1, len(points), f"{points[i].words}: {status}")
        yield i, status


def done_elsewhere(task: tuple[Point, str], threads: int) -> str:
    """Do a point in another process; what became of it."""
    point, path = task
    try:
        point.case().with_keys("run", threads=threads).done(Path(path))
    except RelboltzError as error:
        return f"failed: {error}"
    return "done"


# --- one Dataset of all -------------------------------------------------------------------------


def combined(
    points: Sequence[Point], found: Sequence[xr.Dataset | None], status: Sequence[str]
) -> xr.Dataset:
    """Results of all points with a dimension for each key; NaN where there is none."""
    there = [ds for ds in found if ds is not None]
    if not there:
        raise RunError(f"no point of the scan succeeded, the first: {status[0]}")
    there = _with_common_nodes(there)
    parts, empty = iter(there), (there[0] * np.nan).drop_attrs(deep=False)
    rows = []
    for words, one in zip(status, found, strict=True):
        part = empty if one is None else next(parts)
        own = {
            "status": words, "steps": int(part.attrs.get("steps", 0)),
            "wall_seconds": float(part.attrs.get("wall_seconds", np.nan)),
            "warnings": str(part.attrs.get("warnings", "")),
        }  # fmt: skip
        rows.append(part.drop_attrs(deep=False).assign(own))
    ds = xr.concat(
        rows, "point", data_vars="all", coords="minimal", compat="override", join="outer",
        combine_attrs="override",
    )  # fmt: skip
    keys = [key for key, _ in points[0].values]
    names = _names(keys, there[0])
    axes = [list(dict.fromkeys(_label(dict(p.values)[key]) for p in points)) for key in keys]
    places = pd.MultiIndex.from_product(axes, names=[names[key] for key in keys])
    index = xr.Coordinates.from_pandas_multiindex(places, "point")
    ds = ds.assign_coords(index).unstack("point")
    first = [names[key] for key in keys]
    ds = ds.transpose(*first, ...).sel(dict(zip(first, axes, strict=True)))
    for key in keys:
        ds[names[key]].attrs["long_name"] = key
    own = {k: v for k, v in there[0].attrs.items() if k not in OF_A_POINT}
    title = f"{own.get('title', '')}, scan over {', '.join(keys)}"
    own |= {"kind": kinds.SCAN, "title": title, "status": "done"}
    return ds.drop_encoding().assign_attrs(own)  # whole numbers of one point may be NaN of another


def _names(keys: Sequence[str], ds: xr.Dataset) -> dict[str, str]:
    """A short name for each key: its last word, unless that is taken."""
    last = [key.split(".")[-1] for key in keys]
    taken = {*map(str, ds.variables), *map(str, ds.dims)}
    short = [word for word in last if last.count(word) == 1 and word not in taken]
    pairs = zip(keys, last, strict=True)
    return {key: word if word in short else key.replace(".", "_") for key, word in pairs}


def _label(value: Any) -> Any:
    """A value as a coordinate: numbers and words as they are, lists and tables as words."""
    return value if isinstance(value, int | float | str) else str(value)


def _with_common_nodes(found: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Results whose shells or nodes differ count them: p and px are values of their own then.

    Full f on different nodes is left to the files of the points.
    """
    differ = [
        name for name in NODES
        if any(not np.array_equal(ds[name].values, found[0][name].values) for ds in found)
    ]  # fmt: skip
    if not differ:
        return list(found)
    kept = []
    for ds in found:
        moments = ds.drop_vars([n for n in ds.data_vars if {"px", "py", "pz"} & set(ds[n].dims)])
        moments = moments.drop_vars([n for n in ("px", "py", "pz", "snapshot") if n in moments])
        if "p" in differ:
            p = moments.p
            moments = moments.rename_dims(p="shell").drop_vars("p")
            moments["p"] = ("shell", p.values, p.attrs)
        kept.append(moments)
    most = max(ds.sizes.get("shell", 0) for ds in kept)
    return [ds.pad(shell=(0, most - ds.sizes["shell"])) if most else ds for ds in kept]
