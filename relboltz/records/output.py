"""The result as a self-describing Dataset, and files that are never half-written."""

from __future__ import annotations

import contextlib
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .. import __version__
from ..equilibrium.states import Equilibrium
from ..errors import InputError
from ..grid import PhaseSpace
from ..model import Model
from .moments import Shells, entropy_of
from .quantities import QUANTITIES

AXES = ["x", "y", "z"]
WALLS = [axis + side for axis in AXES for side in "-+"]
"""Walls of the box: x- is at the low end of the x axis."""
CHUNK_BYTES = 2**20
"""Of a snapshot in space: what is read at once."""


def versions() -> dict[str, str]:
    """What computed a result."""
    return {
        "relboltz_version": __version__,
        "python_version": platform.python_version(),
        "numpy_version": np.__version__,
        "numba_version": numba.__version__,
    }


def dataset(
    grid: PhaseSpace,
    model: Model,
    p: NDArray[np.float64],
    records: Sequence[Mapping[str, Any]],
    snapshots: Sequence[tuple[float, NDArray[np.float64]]],
    predicted: Equilibrium,
    lost: tuple[float, float],
    attributes: Mapping[str, Any],
    quantities: Mapping[str, tuple[tuple[str, ...], str, str]] = QUANTITIES,
) -> xr.Dataset:
    """All records, snapshots and the predicted equilibrium, with units on everything.

    snapshots : times and f (species, nodes), or (sites, species, nodes)
    lost : parts of the rate and of the relaxation in that equilibrium that the box loses
    """
    in_space = grid.sites > 1
    ds: dict[str, Any] = {}
    ds["time"] = ("time", [r["time"] for r in records], _attrs("fm", "time"))
    ds["species"] = ("species", list(model.names))
    ds["process"] = ("process", [q.name for q in model.processes])
    ds["charge"] = ("charge", list(model.conserved))
    ds["axis"] = ("axis", AXES)
    ds["axis2"] = ("axis2", AXES)
    ds["mu"] = ("mu", ["t", *AXES])
    ds["nu"] = ("nu", ["t", *AXES])
    ds["p"] = ("p", p, _attrs("GeV", "mean momentum of a shell"))
    for i, name in enumerate(("px", "py", "pz")):
        ds[name] = (name, grid.axis(i), _attrs("GeV", f"momentum along {name[1]}"))
        if in_space:
            centres = grid.space_axis(i)
            ds[AXES[i]] = (AXES[i], centres, _attrs("fm", f"centre of a cell along {AXES[i]}"))
    if in_space:
        ds["wall"] = ("wall", list(WALLS))
    ds["snapshot"] = ("snapshot", [t for t, _ in snapshots], _attrs("fm", "time of a snapshot"))
    for name, (dims, unit, long_name) in quantities.items():
        values = np.stack([np.asarray(r[name]) for r in records])
        shape = [len(ds[dim][1]) for dim in dims]
        ds[name] = (("time", *dims), values.reshape(-1, *shape), _attrs(unit, long_name))
    ds["degeneracy"] = ("species", model.degeneracy, _attrs("1", "spin and colour states"))
    ds["statistics"] = ("species", model.statistics, _attrs("1", "+1 Bose, -1 Fermi, 0 classical"))
    cells = (*(grid.space_cells if in_space else ()), *grid.momentum_cells)
    f = np.empty((len(snapshots), len(model.species), *cells))
    for row, (_, values) in zip(f, snapshots, strict=True):
        row[:] = np.moveaxis(values, 1, 0).reshape(row.shape)
    place = AXES if in_space else []
    ds["f"] = (
        ("snapshot", "species", *place, "px", "py", "pz"), f,
        _attrs("1", "distribution function"),
    )  # fmt: skip
    _add_prediction(ds, predicted)
    density = model.degeneracy * predicted.f.sum(axis=1) * grid.measure
    shells = Shells.of(grid)
    spectrum = np.stack([shells.average(row) for row in predicted.f])
    rows = zip(model.species, predicted.f, strict=True)
    entropies = [s.degeneracy * entropy_of(row, s.statistics) for s, row in rows]
    total = sum(entropies) * grid.measure if predicted.found else np.nan
    final = "of the predicted final equilibrium"
    ds["equilibrium_number"] = ("species", density, _attrs("fm^-3", f"particle density {final}"))
    ds["equilibrium_entropy"] = ((), total, _attrs("fm^-3", f"entropy density {final}"))
    ds["equilibrium_spectrum"] = (("species", "p"), spectrum, _attrs("1", f"spectrum {final}"))
    rate, relaxation = lost
    words = "part of the equilibrium collision rate that needs momenta outside the box"
    ds["box_loss"] = ((), rate, _attrs("1", words))
    words += ", collisions weighted with the square of their change of E_a^2 + E_b^2"
    ds["box_loss_relaxation"] = ((), relaxation, _attrs("1", words))
    return xr.Dataset(ds, attrs={**versions(), **attributes})


def _add_prediction(ds: dict[str, Any], predicted: Equilibrium) -> None:
    """The final state that the conserved quantities alone prescribe."""
    final = "of the predicted final equilibrium"
    entries: dict[str, tuple[tuple[str, ...], Any, str, str]] = {
        "equilibrium_temperature": ((), predicted.temperature, "GeV", "temperature"),
        "equilibrium_chemical_potential": (
            ("species",), predicted.chemical_potential, "GeV", "chemical potential",
        ),
        "equilibrium_mass_squared": (("species",), predicted.mass_squared, "GeV^2", "mass squared"),
        "equilibrium_velocity": (("axis",), predicted.velocity, "1", "flow velocity"),
        "condensate_fraction": (
            (), predicted.condensate_fraction, "1", "part of the particles that condenses",
        ),
    }  # fmt: skip
    for name, (dims, value, unit, words) in entries.items():
        ds[name] = (dims, value, _attrs(unit, f"{words} {final}"))


def _attrs(unit: str, long_name: str) -> dict[str, str]:
    return {"units": unit, "long_name": long_name}


def check_writable(path: Path, key: str = "output.file") -> None:
    """Complain before the run if the file cannot be written."""
    advice = "choose another place (--out)" if key == "output.file" else "choose another place"
    if path.is_dir():
        raise InputError(f"{key} = {str(path)!r} is a folder; {advice}")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{key} = {str(path)!r}: the folder {str(folder)!r} does not exist; "
            f"create it or {advice}"
        )
    part = _part(path)
    try:
        with open(part, "wb"):
            pass
        part.unlink()
    except OSError as error:
        raise InputError(
            f"{key} = {str(path)!r} cannot be written ({error.strerror}); {advice}"
        ) from None
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{key} = {str(path)!r} is write-protected; {advice}")


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part-{os.getpid()}")


def write(ds: xr.Dataset, path: Path) -> None:
    """Write beside the file, then rename into place: a reader never sees half a file.

    The file is built in memory first: the HDF5 library does not survive a disk that fails.
    """
    encoding: dict[Any, dict[str, Any]] = {
        name: {"zlib": True, "complevel": 1, "shuffle": True}
        for name, variable in ds.variables.items()
        if variable.dtype.kind in "fi" and variable.size > 1000
    }
    if "f" in encoding and "x" in ds.f.dims:
        encoding["f"]["chunksizes"] = _chunks(ds.f.shape)
    data = ds.to_netcdf(engine="h5netcdf", encoding=encoding)
    part = _part(path)
    try:
        with open(part, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Whole sites of one species, as many along z, y, x as stay below CHUNK_BYTES."""
    chunks, size = [1] * (len(shape) - 3) + list(shape[-3:]), 8 * int(np.prod(shape[-3:]))
    for axis in (4, 3, 2):
        chunks[axis] = max(1, min(shape[axis], CHUNK_BYTES // size))
        size *= chunks[axis]
        if chunks[axis] < shape[axis]:
            break
    return tuple(chunks)


def load(path: str | Path) -> xr.Dataset:
    """Read a result into memory.

    Raises
    ------
    InputError : the file is missing or was not written by relboltz
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    try:
        with xr.open_dataset(path, engine="h5netcdf") as handle:
            ds = handle.load()
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is not a NetCDF file written by relboltz ({error})") from None
    if "relboltz_version" not in ds.attrs:
        raise InputError(f"{path} was not written by relboltz: it has no relboltz_version")
    if "time" not in ds or "status" not in ds.attrs:
        raise InputError(f"{path} is not the result of a run: it has no time")
    return ds


class Sink:
    """Keeps a file on disk up to date while a run goes on.

    Writing takes at most a few per cent of the time; a disk that fails does not end the run, it
    is tried again, and at the very end a second place is tried before giving up.
    """

    def __init__(self, path: Path | None, pause: float = 2.0):
        self.path = path
        self.trouble: str | None = None
        self._next = time.monotonic() + pause
        self._pause = pause

    def due(self) -> bool:
        """Whether it is time to write again."""
        return self.path is not None and time.monotonic() >= self._next

    def write(self, ds: xr.Dataset, final: bool = False) -> None:
        """Write now; troubles are kept in ``trouble``."""
        if self.path is None:
            return
        start = time.monotonic()
        try:
            write(ds, self.path)
            self.trouble = None
        except (OSError, RuntimeError) as error:
            self.trouble = f"{self.path} could not be written: {error}"
            if final:
                self._rescue(ds)
        taken = time.monotonic() - start
        self._next = time.monotonic() + max(self._pause, 20 * taken)

    def _rescue(self, ds: xr.Dataset) -> None:
        """A last try in the folders for temporary files."""
        assert self.path is not None
        name = f"{self.path.stem}-rescued-{os.getpid()}.nc"
        for folder in (tempfile.gettempdir(), "/dev/shm", str(Path.home())):
            with contextlib.suppress(OSError, RuntimeError):
                rescued = Path(folder) / name
                write(ds, rescued)
                self.trouble = f"{self.trouble}; the result was saved as {rescued} instead"
                return
