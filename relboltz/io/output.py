"""The result as a self-describing Dataset, and atomic writing of files."""

import contextlib
import io
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import h5netcdf
import h5py
import numba
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .. import __version__
from ..backends.cpu.moments import entropy_sum
from ..grid.phase_space import PhaseSpace
from ..model.model import Model
from ..thermodynamics.states import Equilibrium
from ..transport.moments import Shells
from ..util.arrays import Array, free_memory
from ..util.errors import InputError
from ..util.text import shown
from . import checkpoint, kinds
from .final import Values, of_nodes
from .quantities import Quantities

AXES = ["x", "y", "z"]
WALLS = [axis + side for axis in AXES for side in "-+"]
"""Walls of the box: x- is at the low end of the x axis."""
GROWING = ("time", "snapshot")
"""Dimensions along which a result grows."""
FILL = {"f": np.nan}
"""Fill value by the kind of numbers."""
COMPRESSED: dict[str, Any] = {"zlib": True, "complevel": 1, "shuffle": True}


def versions() -> dict[str, str]:
    """Return the versions of the software that computes a result."""
    return {
        "relboltz_version": __version__,
        "python_version": platform.python_version(),
        "numpy_version": np.__version__,
        "numba_version": numba.__version__,
    }


@dataclass(frozen=True)
class ResultFrame:
    """Constant part of a result: everything except records and snapshots.

    p : mean momentum of the shells [GeV]
    lost : fractions of rate and relaxation rate in the predicted equilibrium lost to the cut-off
    quantities : dimensions, units and names of the quantities of a record
    """

    grid: PhaseSpace
    model: Model
    p: Array
    predicted: Equilibrium
    lost: tuple[float, float]
    quantities: Quantities

    @property
    def of_snapshots(self) -> tuple[str, ...]:
        """Variables with the snapshot dimension."""
        moving = self.grid.expansion is not None
        return ("snapshot", "f", "momentum_scale") if moving else ("snapshot", "f")

    def dataset(
        self,
        records: Sequence[Mapping[str, Any]],
        snapshots: Sequence[tuple[float, Array, Array]],
        attributes: Mapping[str, Any],
    ) -> xr.Dataset:
        """Build a Dataset of records, snapshots (time, f by site, scale of p) and prediction."""
        times = np.array([r["time"] for r in records], dtype=float)
        taken = np.array([row[0] for row in snapshots], dtype=float)
        clock = "proper time" if "dN_dy" in self.quantities else "time"
        ds: dict[str, Any] = {"time": variable("time", times, "fm", clock)}
        ds |= self._coordinates()
        ds["snapshot"] = variable("snapshot", taken, "fm", "time of a snapshot")
        for name, (dims, unit, long_name) in self.quantities.items():
            values = np.empty((len(records), *(len(ds[dim][1]) for dim in dims)))
            if records:
                values = np.stack([self.squeezed(r, name) for r in records])
            ds[name] = variable(("time", *dims), values, unit, long_name)
        model, places = self.model, AXES if self.grid.sites > 1 else []
        states, description = "spin and colour states", "+1 Bose, -1 Fermi, 0 classical"
        ds["degeneracy"] = variable("species", model.degeneracy, "1", states)
        ds["statistics"] = variable("species", model.statistics, "1", description)
        description = (
            "d^3p/(2 pi)^3 of a shell: a density is degeneracy times the sum of this x spectrum"
        )
        if self.grid.expansion is not None:
            description += ", times 2^doublings/scale of all axes"
        shells = Shells.of(self.grid)
        ds["shell_weight"] = variable("p", shells.count * self.grid.measure, "fm^-3", description)
        dims = ("species", *places, "px", "py", "pz")
        f = np.empty((len(snapshots), *(len(ds[dim][1]) for dim in dims)))
        for row, (_, values, *_) in zip(f, snapshots, strict=True):
            row[:] = self.arranged(values)
        ds["f"] = variable(("snapshot", *dims), f, "1", "distribution function")
        if "momentum_scale" in self.of_snapshots:
            scales = np.array([row[2] for row in snapshots]).reshape(-1, 3)
            description = (
                "momenta of the nodes of f over px, py and pz, which are those of the start"
            )
            ds["momentum_scale"] = variable(("snapshot", "axis"), scales, "1", description)
        self._add_prediction(ds)
        told = {name: storable(value) for name, value in attributes.items()}
        return xr.Dataset(ds, attrs={"kind": kinds.RUN, **versions(), **told})

    def squeezed(self, record: Mapping[str, Any], name: str) -> NDArray[Any]:
        """Return a quantity of a record with its axes in the Dataset."""
        values = np.asarray(record[name])
        return values.reshape(values.shape[: len(self.quantities[name][0])])

    def arranged(self, f: Array) -> Array:
        """Return a view of f (sites, species, nodes) with its axes in the Dataset."""
        grid = self.grid
        f = np.moveaxis(f.reshape(*grid.space_cells, -1, *grid.momentum_cells), 3, 0)
        return f if grid.sites > 1 else f[:, 0, 0, 0]

    def _coordinates(self) -> dict[str, Any]:
        """Return the coordinates of all axes."""
        grid, model = self.grid, self.model
        description = {
            "species": model.names, "process": [q.name for q in model.processes],
            "charge": model.conserved, "axis": AXES, "axis2": AXES, "mu": ["t", *AXES],
            "nu": ["t", *AXES],
        }  # fmt: skip
        ds: dict[str, Any] = {name: (name, list(values)) for name, values in description.items()}
        told = "mean momentum of a shell"
        if grid.expansion is not None:
            ring = grid.expansion.law == "bjorken"
            told = "mean p_T of a ring" if ring else "mean comoving momentum of a shell"
        ds["p"] = variable("p", self.p, "GeV", told)
        for i, axis in enumerate(AXES):
            ds["p" + axis] = variable("p" + axis, grid.axis(i), "GeV", f"momentum along {axis}")
            if grid.sites > 1:
                place = f"centre of a cell along {axis}"
                ds[axis] = variable(axis, grid.space_axis(i), "fm", place)
        if grid.sites > 1:
            ds["wall"] = ("wall", WALLS)
        return ds

    @cached_property
    def _final_moments(self) -> Values:
        return of_nodes(self.grid.without_space, self.model, self.predicted)

    def _add_prediction(self, ds: dict[str, Any]) -> None:
        """Add the final state predicted from conserved quantities, and losses at the cut-off."""
        grid, model, predicted = self.grid, self.model, self.predicted
        density = model.degeneracy * predicted.f.sum(axis=1) * grid.measure
        shells = Shells.of(grid)
        spectrum = np.stack([shells.average(row) for row in predicted.f])
        rows = zip(model.species, predicted.f, strict=True)
        entropies = [s.degeneracy * entropy_sum(row, float(s.statistics)) for s, row in rows]
        total = sum(entropies) * grid.measure if predicted.found else np.nan
        for name, dims, value, unit, description in (
            ("equilibrium_temperature", (), predicted.temperature, "GeV", "temperature"),
            ("equilibrium_chemical_potential", "species", predicted.chemical_potential, "GeV",
             "chemical potential"),
            ("equilibrium_mass_squared", "species", predicted.mass_squared, "GeV^2",
             "mass squared"),
            ("equilibrium_velocity", "axis", predicted.velocity, "1", "flow velocity"),
            ("condensate_fraction", (), predicted.condensate_fraction, "1",
             "part of the particles that condenses"),
            ("equilibrium_number", "species", density, "fm^-3", "particle density"),
            ("equilibrium_entropy", (), total, "fm^-3", "entropy density"),
            ("equilibrium_spectrum", ("species", "p"), spectrum, "1", "spectrum"),
        ):  # fmt: skip
            ds[name] = variable(
                dims, value, unit, f"{description} of the predicted final equilibrium"
            )
        for name, (dims, value, unit, description) in self._final_moments.items():
            description = f"{description} of the predicted final equilibrium"
            ds[f"equilibrium_{name}"] = variable(dims, value, unit, description)
        rate, relaxation = self.lost
        description = "part of the equilibrium collision rate that needs momenta outside the box"
        ds["box_loss"] = variable((), rate, "1", description)
        description += ", collisions weighted with the square of their change of E_a^2 + E_b^2"
        ds["box_loss_relaxation"] = variable((), relaxation, "1", description)


def variable(
    dims: Any, values: Any, unit: str, description: str
) -> tuple[Any, Any, dict[str, str]]:
    """Return the arguments of an xarray variable with a unit and a long name."""
    return dims, values, {"units": unit, "long_name": description}


def storable(value: Any) -> Any:
    """Return an attribute in storable form: a string without NUL, or bytes that are not text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "?")
    return value


def check_writable(path: Path, key: str = "output.file") -> None:
    """Raise an error before the run if the file cannot be written."""
    advice = "choose another place (--out)" if key == "output.file" else "choose another place"
    try:
        wrong = _wrong_place(path)
    except (OSError, ValueError, RuntimeError) as error:  # too long, with NUL, circular links
        wrong = f" cannot be written ({getattr(error, 'strerror', None) or error});"
    if wrong is not None:
        raise InputError(f"{key} = {str(path)!r}{wrong} {advice}")


def check_free(path: Path | None, force: bool, remedy: str) -> None:
    """Refuse to replace a result or the remains of a killed run."""
    if path is None:
        return
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise InputError(f"output.file = {str(path)!r} is no file but a device; use another name")
    if force or os.path.isdir(path):  # see check_writable
        return
    there, unfinished = os.path.lexists(path), checkpoint.of_run(path)
    if there or unfinished:
        what = "exists already" if there else f"was not finished ({unfinished[-1].name})"
        raise InputError(
            f"output.file = {str(path)!r} {what}; {remedy} go on with it (relboltz resume {path})"
        )


def _wrong_place(path: Path) -> str | None:
    """Say why a file cannot be written; None if it can."""
    if path.is_dir():
        return " is a folder;"
    if not path.parent.is_dir():
        return f": the folder {str(path.parent)!r} does not exist; create it or"
    part = _part(path)
    part.unlink(missing_ok=True)
    with open(part, "xb"):
        pass
    part.unlink()
    if path.exists() and not os.access(path, os.W_OK):
        return " is write-protected;"
    return None


def same_file(one: str | Path, other: str | Path) -> bool:
    """Whether two names refer to one file; names that no file can have do not."""
    try:
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):
        return False


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part-{os.getpid()}")


class GrowingVariables(Protocol):
    """Rows to be added to a file along one dimension."""

    @property
    def layout(self) -> Mapping[str, Any]:
        """Variables to fill, by name."""

    def __len__(self) -> int:
        """Number of rows."""

    def encoding(self) -> dict[str, Any]:
        """Chunks and compression of the variables to fill."""

    def store(self, file: h5py.File) -> None:
        """Write all rows."""


def write(ds: xr.Dataset, path: Path, rows: Sequence[GrowingVariables] = ()) -> None:
    """Write to a temporary name, then rename: a reader never sees an incomplete file."""
    part = _part(path)
    try:
        part.unlink(missing_ok=True)  # left by a killed process with the same PID, or a link
        with open(part, "x+b") as handle:
            fill(ds, handle, rows)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(part, path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def fill(ds: xr.Dataset, handle: BinaryIO, rows: Sequence[GrowingVariables] = ()) -> None:
    """Write ds, built in memory, to an open file and add the rows there."""
    growing = [name for some in rows if len(some) for name in some.layout]
    fixed = ds.drop_vars(growing)
    encoding: dict[Any, dict[str, Any]] = {
        name: COMPRESSED
        for name, variable in fixed.variables.items()
        if variable.dtype.kind in "fi" and variable.size > 1000
    }
    empty = [dim for dim in GROWING if dim in fixed.dims] if rows else ()
    buffer = io.BytesIO(fixed.to_netcdf(engine="h5netcdf", encoding=encoding, unlimited_dims=empty))
    if growing:
        with h5netcdf.File(buffer, "a") as file:
            for some in rows:
                _make_room(ds, some, file)
    handle.write(buffer.getbuffer())
    if growing:
        disk = _FailSafeFile(handle)
        try:
            with h5py.File(disk, "r+") as file:
                for some in rows:
                    some.store(file)
        finally:
            if disk.error is not None:
                raise disk.error


def _make_room(ds: xr.Dataset, rows: GrowingVariables, file: h5netcdf.File) -> None:
    """Create the variables that rows fill, with their final length.

    Readers look up the length of an unlimited dimension in all its variables every time, which
    would make opening a result ten times slower.
    """
    known = rows.encoding()
    for name in rows.layout if len(rows) else ():
        old, encoding = ds.variables[name], known.get(name, {})
        for dim in old.dims:
            if dim not in file.dimensions:
                file.dimensions[dim] = len(rows) if dim in GROWING else ds.sizes[dim]
        packed = {"compression": "gzip", "compression_opts": 1} if "zlib" in encoding else {}
        made = file.create_variable(
            name, old.dims, old.dtype, chunks=encoding.get("chunksizes"),
            fillvalue=FILL.get(old.dtype.kind), shuffle="zlib" in encoding, **packed,
        )  # fmt: skip
        made.attrs.update(old.attrs)


class _FailSafeFile(io.RawIOBase):
    """File object that never raises, because the HDF5 library does not survive file errors.

    The first error is stored in ``error``; later operations are dropped.
    """

    def __init__(self, handle: BinaryIO):
        self._handle: Any = handle
        self.error: OSError | None = None

    def _try(self, name: str, arguments: tuple[Any, ...], otherwise: int) -> int:
        if self.error is None:
            try:
                return int(getattr(self._handle, name)(*arguments))
            except OSError as error:
                self.error = error
        return otherwise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._try("seek", (offset, whence), offset)

    def tell(self) -> int:
        return self._try("tell", (), 0)

    def write(self, data: Any) -> int:
        return self._try("write", (data,), len(data))

    def truncate(self, size: int | None = None) -> int:
        return self._try("truncate", (size,), 0)

    def readinto(self, buffer: Any) -> int:
        buffer[:] = bytes(len(buffer))  # dropped data read as zeros
        return self._try("readinto", (buffer,), len(buffer))


def attributes(path: str | Path) -> dict[str, Any]:
    """Return the attributes of a result without reading it.

    Raises
    ------
    InputError : there is no result
    """
    try:
        with h5py.File(path, "r") as file:
            return dict(file.attrs)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None


def load(path: str | Path) -> xr.Dataset:
    """Read a result into memory.

    Raises
    ------
    InputError : the file is missing or was not written by relboltz
    """
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"load({shown(path)}): give the name of a file")
    path = Path(path)
    if not os.path.isfile(path):
        raise InputError(kinds.missing(path))
    try:
        with xr.open_dataset(path, engine="h5netcdf") as handle:
            if handle.nbytes > free_memory():
                raise MemoryError(f"{handle.nbytes / 2**30:.1f} GiB do not fit into memory")
            ds = handle.load()
    except MemoryError as error:
        raise InputError(
            f"{path}: {error}; the file may be damaged; if not, use a machine with more memory"
        ) from None
    except Exception as error:  # reading a damaged file may raise any exception
        raise InputError(kinds.unreadable(path, error)) from None
    if "relboltz_version" not in ds.attrs:
        raise InputError(
            f"{path}: was not written by relboltz (it has no relboltz_version); name the result "
            "of a run, such as run.nc"
        )
    of_times = "time" in ds and "status" in ds.attrs
    if not of_times and kinds.kind_of(ds) != kinds.COEFFICIENTS:
        raise InputError(f"{path}: is not the result of a run: it has no times, or no status")
    return ds


def load_run(path: str | Path) -> xr.Dataset:
    """Read the result of a run; for other files, such as scans, the error names their kind."""
    return kinds.check_run(load(path), path)
