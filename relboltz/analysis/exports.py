"""Export of results: VTK for ParaView and similar programs, MUSIC, CSV for everything else."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ..io.result import box, is_in_space
from ..util.arrays import Array
from ..util.errors import InputError
from . import spectra
from .music import surface

SPACE = ("x", "y", "z")
FORMATS = ("vtk", "csv", "music")


def export(
    ds: xr.Dataset, folder: str | Path, format: str, stem: str = "run", **options: Any
) -> list[Path]:
    """Write a result into a folder as "vtk", "csv" or "music", and return the files written.

    options : for "music" only: time [fm], eta_max, eta_cells
    """
    if format not in FORMATS:
        raise InputError(f"format {format!r}: use vtk, csv or music")
    if options and format != "music":
        raise InputError(f"{next(iter(options))}: is for format 'music'; leave it out")
    if format == "vtk" and not is_in_space(ds):
        raise InputError("format 'vtk' is for results in space cells; use 'csv' for this one")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        if format == "music":
            return list(surface(ds, place, stem, **options))
        return list(_vtk(ds, place, stem) if format == "vtk" else _csv(ds, place))
    except OSError as error:
        raise InputError(
            f"{place} cannot be written: {error.strerror or error}; name another folder"
        ) from None


# --- VTK ----------------------------------------------------------------------------------------


def _vtk(ds: xr.Dataset, folder: Path, stem: str) -> Iterator[Path]:
    """Write one file per record, and a time series file that ParaView opens."""
    files = []
    for i, time in enumerate(ds.time.values.tolist()):
        path = folder / f"{stem}_{i:05d}.vtk"
        path.write_bytes(_record(ds.isel(time=i), time))
        files.append({"name": path.name, "time": time})
        yield path
    series = folder / f"{stem}.vtk.series"
    series.write_text(json.dumps({"file-series-version": "1.0", "files": files}, indent=1) + "\n")
    yield series


def _record(now: xr.Dataset, time: float) -> bytes:
    """Return a legacy VTK file: a uniform grid with cell data."""
    axes = [now[axis].values for axis in SPACE]
    widths = [_width(now, axis, values) for axis, values in zip(SPACE, axes, strict=True)]
    corner = [x[0] - 0.5 * w for x, w in zip(axes, widths, strict=True)]
    title = f"relboltz, t = {time:.6g} fm; lengths in fm".encode()
    parts = [
        b"# vtk DataFile Version 3.0", title, b"BINARY", b"DATASET STRUCTURED_POINTS",
        _words("DIMENSIONS", [len(x) + 1 for x in axes]), _words("ORIGIN", corner),
        _words("SPACING", widths), _words("CELL_DATA", [int(np.prod([len(x) for x in axes]))]),
    ]  # fmt: skip
    for name, values in _fields(now):
        kind = {1: "SCALARS", 3: "VECTORS", 9: "TENSORS"}[values.shape[-1]]
        head = f"{kind} {name} double" + " 1\nLOOKUP_TABLE default" * (kind == "SCALARS")
        parts += [head.encode(), values.astype(">f8").tobytes()]
    return b"\n".join(parts) + b"\n"


def _words(key: str, values: list[Any]) -> bytes:
    return f"{key} {' '.join(f'{v:.17g}' for v in values)}".encode()


def _width(now: xr.Dataset, axis: str, centres: Array) -> float:
    """Return the width of a cell [fm]; a single cell extends space_max to either side."""
    if len(centres) > 1:
        return float(centres[1] - centres[0])
    return float(now.attrs.get("space_max", [0.5] * 3)[SPACE.index(axis)]) * 2


def _fields(now: xr.Dataset) -> Iterator[tuple[str, Array]]:
    """Yield quantities (cells with x fastest, components): scalars, vectors and tensors."""
    for name in now.data_vars:
        values = now[name]
        if not set(SPACE) <= set(values.dims) or "px" in values.dims:
            continue
        others = [d for d in values.dims if d not in SPACE]
        species = values.species.values.tolist() if "species" in others else [None]
        for one in species:
            of = values if one is None else values.sel(species=one)
            label = str(name) if one is None else f"{name}_{one}"
            yield from _components(label, of, [d for d in others if d != "species"])


def _components(label: str, values: xr.DataArray, dims: list[Any]) -> Iterator[tuple[str, Array]]:
    """Yield a quantity as VTK arrays; a four-tensor gives a scalar tt, a vector t and a tensor."""
    flat = values.transpose("z", "y", "x", *dims).values
    flat = flat.reshape(-1, *flat.shape[3:])
    plain = re.sub(r"\s+", "_", label)
    if not dims:
        yield plain, flat[:, None]
    elif dims == ["axis"]:
        yield plain, flat
    elif dims == ["axis", "axis2"]:
        yield plain, flat.reshape(len(flat), 9)
    elif dims == ["mu", "nu"]:
        yield f"{plain}_tt", flat[:, 0, :1]
        yield f"{plain}_t", flat[:, 0, 1:]
        yield plain, flat[:, 1:, 1:].reshape(len(flat), 9)


# --- CSV ----------------------------------------------------------------------------------------


def _csv(ds: xr.Dataset, folder: Path) -> Iterator[Path]:
    """Write tables of histories, spectra and, in space, all cells, with units in the headers."""
    whole = box(ds)
    rows: dict[str, Array] = {"time [fm]": whole.time.values}
    for name in whole.data_vars:
        values = whole[name]
        if values.dims[:1] == ("time",) and "p" not in values.dims:
            rows |= dict(_columns(str(name), values, "time"))
    yield _written(pd.DataFrame(rows), folder / "histories.csv")
    yield _written(_spectra(whole), folder / "spectra.csv")
    if is_in_space(ds):
        yield _written(_cells(ds), folder / "cells.csv")


def _columns(name: str, values: xr.DataArray, *rows: str) -> Iterator[tuple[str, Array]]:
    """Yield a column for every component, with names such as "number g [fm^-3]"."""
    unit = values.attrs.get("units", "1")
    end = "" if unit == "1" else f" [{unit}]"
    others = [d for d in values.dims if d not in rows]
    flat = values.transpose(*rows, *others)
    shape = flat.shape[: len(rows)]
    table = flat.values.reshape(int(np.prod(shape)), -1)
    labels = [""]
    for dim in others:
        labels = [f"{a} {b}" for a in labels for b in values[dim].values.tolist()]
    for label, column in zip(labels, table.T, strict=True):
        yield f"{name}{label}{end}", column


def _spectra(ds: xr.Dataset) -> pd.DataFrame:
    """Return a table with one row for each time, species and shell."""
    density = spectra.dN_dp(ds)
    density = density.drop_vars("width")
    table = xr.Dataset({"f": ds.spectrum, "dN/dp [fm^-3 GeV^-1]": density}).to_dataframe()
    names = {"time": "time [fm]", "p": "p [GeV]"}
    columns = ["time [fm]", "species", "p [GeV]", "f", "dN/dp [fm^-3 GeV^-1]"]
    return table.reset_index().rename(columns=names)[columns]


def _cells(ds: xr.Dataset) -> pd.DataFrame:
    """Return a table with one row for each time and space cell."""
    rows = ("time", *SPACE)
    mesh = np.meshgrid(*(ds[axis].values for axis in rows), indexing="ij")
    table = {f"{axis} [fm]": m.ravel() for axis, m in zip(rows, mesh, strict=True)}
    for name in ds.data_vars:
        if set(rows) <= set(ds[name].dims) and "px" not in ds[name].dims:
            table |= dict(_columns(str(name), ds[name], *rows))
    return pd.DataFrame(table)


def _written(table: pd.DataFrame, path: Path) -> Path:
    table.to_csv(path, index=False, float_format="%.10g")
    return path
