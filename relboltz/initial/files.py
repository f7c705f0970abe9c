"""Initial conditions from a file: the last snapshot of a run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..grid.phase_space import PhaseSpace
from ..model.model import Species
from ..util.arrays import Array, free_memory
from ..util.errors import AccuracyWarning, InputError, say
from ..util.text import shown
from .shapes import Shape, describe


@dataclass(frozen=True)
class FromFile(Shape):
    """The last snapshot f of a NetCDF file written by relboltz, on the same grid."""

    path: str | Path

    def _check(self) -> None:
        if not isinstance(self.path, str | Path) or not str(self.path):
            raise InputError(f"path = {shown(self.path)}: use the name of a NetCDF file")

    def _values(self, grid: PhaseSpace, species: Species, m2: float, site: int) -> Array:
        theirs, names, f = _last_snapshot(self.path)
        if not _same(theirs, grid):
            raise InputError(
                f"path = {str(self.path)!r}: its grid is {describe(theirs)}, this one is "
                f"{describe(grid)}; use the same cells and widths"
            )
        if species.name not in names:
            raise InputError(
                f"path = {str(self.path)!r}: has no species {species.name!r}, only "
                f"{', '.join(names)}; give that species another shape"
            )
        return np.array(f[names.index(species.name)].reshape(-1, grid.size)[site])

    def _depends_on_place(self, grid: PhaseSpace) -> bool:
        return _last_snapshot(self.path)[0].sites > 1

    def extent(self) -> float:
        return max(file_grid(self.path).momentum_max)


@contextmanager
def _open(path: str | Path) -> Iterator[Any]:
    """Open a file with snapshots as a Dataset; raise InputError for any defect of the file."""
    import xarray

    if not os.path.isfile(path):  # does not raise for invalid file names
        kind = "this is a folder; use" if os.path.isdir(path) else "there is no such file; use"
        raise InputError(f"path = {str(path)!r}: {kind} a NetCDF file written by relboltz")
    try:
        with xarray.open_dataset(path, engine="h5netcdf") as dataset:
            _check(dataset, path)
            yield dataset
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"path = {str(path)!r}: cannot be read as NetCDF: {error}") from error


def _check(dataset: Any, path: str | Path) -> None:
    """Raise InputError if a file has no snapshots, or if a snapshot does not fit in memory."""
    wanted = ("f", "species", "px", "py", "pz")
    missing = [name for name in wanted if name not in dataset.variables]
    if missing or not dataset.sizes.get("snapshot"):
        what = ", ".join(missing) or "snapshots"
        raise InputError(
            f"path = {str(path)!r}: has no {what}; use a file written by relboltz, with snapshots "
            "(a run in space keeps those that output.snapshots asks for)"
        )
    needed, there = 2 * 8 * dataset["f"].size / dataset.sizes["snapshot"], free_memory()
    if needed > there:
        raise InputError(
            f"path = {str(path)!r}: a snapshot takes {needed / 2**30:.1f} GiB, and this machine "
            f"has {there / 2**30:.1f} GiB free; is the file damaged?"
        )


def _grid_of(dataset: Any, path: str | Path) -> PhaseSpace:
    axes = [dataset[name].values for name in ("px", "py", "pz")]
    if any(len(axis) < 2 for axis in axes):
        widths = dataset.attrs.get("momentum_max")
        if widths is None:
            raise InputError(f"path = {str(path)!r}: an axis with one node does not tell its width")
    else:
        widths = [_half_width(axis) for axis in axes]
    if "momentum_scale" in dataset:  # expanding matter
        scale = dataset["momentum_scale"].values[-1]
        widths = [float(f"{w * s:.12g}") for w, s in zip(widths, scale, strict=True)]
    places = [dataset[name].values if name in dataset["f"].dims else [0.0] for name in "xyz"]
    return PhaseSpace(
        [len(axis) for axis in axes], [float(w) for w in widths],
        [len(axis) for axis in places],
        [_half_width(axis) if len(axis) > 1 else 3.0 for axis in places],
    )  # fmt: skip


def _half_width(centres: Any) -> float:
    """Return the half width of an axis from the centres of its cells, at least two."""
    return float(f"{0.5 * np.ptp(centres) * len(centres) / (len(centres) - 1):.12g}")


def file_grid(path: str | Path) -> PhaseSpace:
    """Return the grid of the snapshots in a NetCDF file written by relboltz."""
    with _open(path) as dataset:
        return _grid_of(dataset, path)


def _last_snapshot(path: str | Path) -> tuple[PhaseSpace, list[str], Array]:
    """Return grid, species and last snapshot of f (species, ...) of a file."""
    changed = os.stat(path).st_mtime_ns if os.path.isfile(path) else 0
    return _read_snapshot(str(path), changed)


@lru_cache(maxsize=2)
def _read_snapshot(path: str, changed: int) -> tuple[PhaseSpace, list[str], Array]:
    with _open(path) as dataset:
        names = [str(name) for name in dataset["species"].values]
        _tell_age(dataset, path)
        place = [name for name in "xyz" if name in dataset["f"].dims]
        f = dataset["f"].isel(snapshot=-1).transpose("species", *place, "px", "py", "pz")
        return _grid_of(dataset, path), names, f.values.astype(np.float64)


def _tell_age(dataset: Any, path: str) -> None:
    """Warn if the run continued after its last snapshot."""
    if "time" not in dataset.variables or not dataset.sizes.get("time"):
        return
    kept, last = float(dataset["snapshot"][-1]), float(dataset["time"][-1])
    if kept < last - 1e-9 * abs(last):
        say(
            f"path = {path!r}: its last f is of t = {kept:g} fm, its last record of {last:g} fm: "
            f"the start is the older state; finish that run (relboltz resume {path}), or name the "
            "time in its output.snapshots",
            AccuracyWarning,
        )


def _same(a: PhaseSpace, b: PhaseSpace) -> bool:
    """Whether two grids have the same cells and widths; widths of homogeneous axes are ignored."""
    moving = list(b.moving_axes)
    one, other = ([*g.momentum_max, *np.array(g.space_max)[moving]] for g in (a, b))
    same = (a.momentum_cells, a.space_cells) == (b.momentum_cells, b.space_cells)
    return same and np.allclose(one, other, rtol=1e-9, atol=0)
