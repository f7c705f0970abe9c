"""relboltz info: describe this installation, or a result and its contents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..util.errors import InputError
from .console import console, delivered, plain_warnings, tell

if TYPE_CHECKING:
    import xarray as xr


def info(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="F.nc", help="Result; without a file, the installation."),
    ] = None,
) -> None:
    """Describe a result (final state, warnings, set-up), or this installation."""
    from ..analysis import tables
    from ..io import checkpoint, kinds, output
    from ..io.result import undamaged

    if file is None:
        with plain_warnings():
            console.print(tables.installation())
        delivered()
        return
    last = checkpoint.of_run(file)[-1:]
    if last and not file.exists():
        description = checkpoint.in_words(last[0])
        raise InputError(f"{file} is not there yet; {description} (relboltz resume {file})")
    ds = output.load(file)
    kind = kinds.kind_of(ds)
    with undamaged(file):
        if kind == kinds.COEFFICIENTS:
            for table in tables.coefficients(ds):
                console.print(table)
        elif kind == kinds.CONVERGENCE:
            _convergence(ds)
        elif kind == kinds.SCAN:
            _scan(ds)
        else:
            _run(ds, file)
        for path in last:
            tell(f"last checkpoint: {checkpoint.in_words(path)}")
        if kind in (kinds.RUN, kinds.REPLICAS):
            _texts(ds, "warnings")
        if kind != kinds.COEFFICIENTS:
            _texts(ds, "configuration")
    delivered()


def _run(ds: xr.Dataset, file: Path) -> None:
    """Print a run, or the mean over replicas."""
    from ..analysis import tables
    from ..io.reservation import is_taken

    status = ds.attrs["status"]
    if status == "running" and not is_taken(file):
        status = f"stopped; go on with it: relboltz resume {file}"
    tell(f"{ds.attrs['title']}   ({status})")
    tell(f"backend: {ds.attrs.get('device', ds.attrs['backend'])}")
    for line in tables.load(ds.attrs):
        tell(line)
    console.print(tables.summary(ds))
    names = sorted(ds.sizes, key=lambda name: name != "time")  # time first
    sizes = ", ".join(f"{name} {ds.sizes[name]}" for name in names)
    tell(f"dimensions: {sizes}")


def _scan(ds: xr.Dataset) -> None:
    """Print the scanned values and the points that failed."""
    tell(ds.attrs["title"])
    dims = list(ds["status"].dims)
    for name in dims:
        values = ", ".join(f"{value}" for value in ds[name].values.tolist())
        tell(f"{name} ({ds[name].attrs.get('long_name', name)}): {values}")
    points = ds["status"].stack(point=dims)
    failed = points[points != "done"]
    tell(f"{points.size} points, {failed.size} failed")
    for place, description in zip(
        failed["point"].values.tolist(), failed.values.tolist(), strict=True
    ):
        at = ", ".join(f"{name} = {value}" for name, value in zip(dims, place, strict=True))
        tell(f"  {at}: {description}")
    done = points[points == "done"]["point"].values.tolist()
    for place in done[:1]:
        at = ", ".join(f"{name}={value!r}" for name, value in zip(dims, place, strict=True))
        tell(f"one of its runs in Python: relboltz.load(...).sel({at})")


def _convergence(ds: xr.Dataset) -> None:
    """Print the values of a convergence study with their error bars."""
    from .convergence_table import remarks, tables

    tell(ds.attrs["title"])
    for table in tables(ds, (), console.width):
        console.print(table)
    for line in remarks(ds):
        tell(line)


def _texts(ds: xr.Dataset, name: str) -> None:
    if ds.attrs[name]:
        tell(f"{name}:\n{ds.attrs[name]}")
