"""Scans: run a set-up with every combination of values of some keys, into one Dataset.

Each point is a separate run in the folder F.scan beside F.nc and runs once: after an interruption,
starting the same scan again completes the missing points. Points that are invalid or fail are
reported, and the others continue.
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
import xarray as xr

from ..config.settings import RunSettings as RunSettings
from ..io import output
from ..io.reservation import Reservation
from ..parallel import ray as distributed
from ..run import input_file as config
from ..run.progress import Report, bar
from ..run.setup import Case, finished, folder_of
from ..run.solve import named_file
from ..util.errors import InputError, Interrupted, RelboltzError, RunError, say
from ..util.text import shown
from .gathering import combined

MOST = 100_000
"""Largest number of points of a scan."""
Setup = str | Path | Callable[..., Mapping[str, Any]]
Between = Callable[[int, int, str], None]
"""Called with the point number, the number of points, and a description of the point."""


@dataclass(frozen=True)
class ScanPoint:
    """One combination of values, by key."""

    setup: Setup
    values: tuple[tuple[str, Any], ...]
    changes: tuple[str, ...] = field(default=())
    """Further overrides, key=value, of all points."""

    @property
    def description(self) -> str:
        """Keys and values of the point."""
        return ", ".join(f"{key} = {value}" for key, value in self.values)

    def case(self) -> Case:
        """Return the complete set-up of the point."""
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
            raise InputError(f"at {self.description}: {error}") from None

    def _asked(self, setup: Callable[..., Mapping[str, Any]]) -> dict[str, Any]:
        """Return what the user's function returns for these values."""
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
) -> list[ScanPoint]:
    """Return all combinations, the last key varying fastest."""
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
        ScanPoint(setup, tuple(zip(over, values, strict=True)), tuple(changes))
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
    setup : name of a configuration; or a function that takes the scanned values by name and
        returns the arguments of ``solve``: a dictionary with model, grid, initial, end, ...
    over : values by key: {"model.alpha_s": [0.1, 0.2]}, or for a function {"alpha_s": [0.1, 0.2]}
    file : NetCDF file of the result; the runs are kept in F.scan beside it, and repeating the same
        scan runs only the missing points. Without it no runs are kept
    workers : number of concurrent points, each in a Ray process; 0 : one by one, in this process
    address : address of a Ray cluster, as in [run]
    force : replace an existing result in the file
    progress : as in ``solve``

    Returns
    -------
    xarray.Dataset: as returned by ``solve``, with a dimension for each key; NaN at points that
    failed or are invalid, whose ``status`` gives the reason. Attributes equal at all points remain
    attributes; others become variables such as ``point_momentum_max``, and ``configuration`` has
    the keys with equal values

    Raises
    ------
    InputError : no point is valid; raised before any point runs
    RunError : some points failed or are invalid; all others are in its ``dataset`` and in
        ``file``
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
    """Raise InputError for an invalid number of workers or a cluster address without workers."""
    if isinstance(workers, bool) or not isinstance(workers, int) or not 0 <= workers <= 4096:
        raise InputError(
            f"workers = {shown(workers)}: use a whole number from 0 to 4096; 0 = in turn"
        )
    if address and not workers:
        raise InputError(f"address = {shown(address)}: is for workers; give their number, workers")


def check_free(path: Path | None, force: bool, remedy: str) -> None:
    """Raise InputError if the file exists, unless forced; remedy : how to allow replacing it."""
    if path is not None and path.exists() and not force:
        raise InputError(
            f"{path} exists already; choose another name, or replace it ({remedy}): runs that are "
            "done are not done again"
        )


def scanned(
    points: Sequence[ScanPoint],
    file: Path | None,
    progress: Any = None,
    spread: tuple[int, str] = (0, ""),
    between: Between | None = None,
) -> xr.Dataset:
    """Run and combine all points; spread : number of Ray workers, 0 for none, and their address."""
    if file is not None:
        output.check_writable(file)
    cases, status = _legal(points)  # reported before any point runs
    with tempfile.TemporaryDirectory() as nowhere:
        folder = Path(nowhere) if file is None else folder_of(file, "scan")
        reserved = None if file is None else Reservation(file)
        if reserved is not None:
            reserved.take()
        try:
            paths = {i: folder / f"point-{i + 1}-{case.digest()}.nc" for i, case in cases.items()}
            tell = between or (lambda *_: None)
            if spread[0]:
                told = _spread(points, paths, spread, tell)
            else:
                told = _in_turn(points, cases, paths, progress, tell)
            status |= dict(told)
            found = [finished(paths[i]) if i in paths else None for i in range(len(points))]
            ds = combined(points, found, [status[i] for i in range(len(points))])
            if file is not None:
                output.write(ds, file)
        finally:
            if reserved is not None:
                reserved.free()
    failed = [i for i, one in enumerate(found) if one is None]
    if failed:
        first = failed[0]
        raise RunError(
            f"{len(failed)} of {len(points)} points have no result, the first at "
            f"{points[first].description}: {status[first]}", ds,
        )  # fmt: skip
    return ds


def _legal(points: Sequence[ScanPoint]) -> tuple[dict[int, Case], dict[int, str]]:
    """Return the cases of all valid points and the errors of the others, by number."""
    cases, wrong = {}, {}
    for i, point in enumerate(points):
        try:
            cases[i] = point.case()
        except InputError as error:
            wrong[i] = error
    if not cases:
        raise wrong[0]
    for why in wrong.values():
        say(f"left out, not legal: {why}", UserWarning)
    return cases, {i: f"not legal: {why}" for i, why in wrong.items()}


def _in_turn(
    points: Sequence[ScanPoint],
    cases: Mapping[int, Case],
    paths: Mapping[int, Path],
    progress: Any,
    tell: Between,
) -> Iterator[tuple[int, str]]:
    """Run one point after the other with the threads of this process; yield the status of each."""
    for i, case in cases.items():
        point = points[i]
        tell(i + 1, len(points), point.description)
        try:
            case.done(paths[i], progress)
            yield i, "done"
        except Interrupted as error:
            where = f"at point {i + 1} of {len(points)}, {point.description}"
            raise Interrupted(f"{error} {where}", error.dataset, error.signal) from None
        except RelboltzError as error:
            yield i, f"failed: {error}"


def _spread(
    points: Sequence[ScanPoint], paths: Mapping[int, Path], spread: tuple[int, str], tell: Between
) -> Iterator[tuple[int, str]]:
    """Run several points at once in Ray processes."""
    tasks = [(points[i], str(path.resolve())) for i, path in paths.items()]
    run, numbers = RunSettings(workers=spread[0], address=spread[1]), list(paths)
    for task, status in distributed.spread(done_elsewhere, tasks, run):
        i = numbers[task]
        tell(i + 1, len(points), f"{points[i].description}: {status}")
        yield i, status


def done_elsewhere(task: tuple[ScanPoint, str], threads: int) -> str:
    """Run a point in another process; return its status."""
    point, path = task
    try:
        point.case().with_keys("run", threads=threads).done(Path(path))
    except RelboltzError as error:
        return f"failed: {error}"
    return "done"
