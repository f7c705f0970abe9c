"""Journal of records and snapshots of a run: appended to parts on disk, merged into F.nc.

A NetCDF file cannot grow and stay valid at every moment, so a run with a file F.nc appends to a
folder F.parts-PID-*: records to one file, snapshots to another. Each entry has its length and a
checksum; a truncated entry is ignored. From time to time, and at the end, F.nc is rebuilt from the
parts under a temporary name and renamed. A killed run leaves the F.nc of the last merge and its
parts; a resumed run continues with the parts counted in its checkpoint, or with the rows of F.nc
if it was finished and its parts are gone.

Rebuilding is cheap as long as nothing large is compressed twice: large arrays are compressed when
they are recorded, into the chunks that HDF5 stores, and merging copies bytes (measured: 1.4 s per
GB). Small arrays are read and compressed at every merge, 0.1 ms per record. Appending to a copy of
F.nc would copy the same bytes, and would trust a file that others may change. The pause between
merges is twenty times the duration of the last merge; neither memory nor time per record grows.
"""

import contextlib
import io
import itertools
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
import xarray as xr

from ..util.arrays import Array
from ..util.errors import InputError
from . import output
from .output import ResultFrame
from .packed_arrays import PackedArray, Row
from .reservation import Reservation, base
from .series import RecordSeries

SERIES = ("records", "snapshots")
MARKER = "relboltz-parts"
"""File that marks a folder of parts, as opposed to a user's folder."""
PARTS = r"\.parts-\d+-[a-z0-9_]{8}"
"""Pattern of the end of the name of a folder of parts, see ``Journal.open``."""


def stale_parts(file: Path) -> list[Path]:
    """Return the folders of parts beside F.nc created by runs of this package."""
    name = re.compile(re.escape(base(file)) + PARTS)
    found = [path for path in file.parent.iterdir() if name.fullmatch(path.name)]
    return [path for path in found if (path / MARKER).is_file() and not path.is_symlink()]


def remove_parts(folder: Path) -> None:
    """Remove the files of a journal, and the folder unless it contains other files."""
    with contextlib.suppress(OSError):
        for name in (*SERIES, MARKER):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def in_memory_bytes() -> int:
    """Return the memory for a result; beyond it, the largest variables are read when accessed."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not available on every system
        return 2**32


class Journal:
    """Records and snapshots of a run, on disk if the run has a file, and merged into F.nc.

    Merging takes at most a few per cent of the time. A disk error does not end the run; writing is
    attempted again, and at the end a second location is tried. Without a file everything stays in
    memory.
    """

    def __init__(self, path: Path | None, frame: ResultFrame, pause: float = 2.0):
        self.path, self.frame = path, frame
        self.trouble: str | None = None
        self.first: Mapping[str, Any] = {}
        self.last: Mapping[str, Any] = {}
        self._folder: Path | None = None
        self._reserved = None if path is None else Reservation(path)
        self._kept: tuple[list[Mapping[str, Any]], list[tuple[float, Array, Array]]] = ([], [])
        self._records, self._snapshots = RecordSeries("records"), RecordSeries("snapshots")
        self._pause, self._next = pause, time.monotonic() + pause
        self._lost = 0
        """Number of requested snapshots that were lost with a damaged F.nc."""
        self._merged = (0, 0, 0)
        """Numbers of records, snapshots and provisional records in the last merge."""

    def open(self) -> None:
        """Create the folder of parts, if there is a file and the disk permits."""
        if self.path is not None and self._folder is None:
            with contextlib.suppress(Exception):
                prefix = f"{base(self.path)}.parts-{os.getpid()}-"
                self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.path.parent))
                (self._folder / MARKER).write_text("written by relboltz; removed with the run\n")

    def place(self) -> dict[str, Any]:
        """Position from which to continue: a folder beside F.nc and numbers of complete rows."""
        name = "" if self._folder is None else self._folder.name
        rows = {series.name: len(series) for series in (self._records, self._snapshots)}
        return {"parts": name, **rows, "lost": self._lost}

    def flush(self, place: Mapping[str, Any]) -> None:
        """Flush all rows up to a position to disk, even if rows are added meanwhile."""
        for series in (self._records, self._snapshots):
            series.flush(place[series.name])

    def reserve(self) -> None:
        """Reserve the output for this process.

        Raises
        ------
        InputError : another process has reserved it
        """
        if self._reserved is not None:
            self._reserved.take()

    def go_on(
        self, place: Mapping[str, Any], run: str, kept: Callable[[float], bool], needed: int
    ) -> str:
        """Continue from a position: with its parts, or with a finished F.nc if these are gone.

        Returns a description of lost data if F.nc is damaged; F.nc is then renamed.

        kept : whether a snapshot at a time [fm] is requested; needed : required number of snapshots
        """
        assert self.path is not None

        def wanted(row: Row) -> bool:
            return "snapshot" not in row or kept(float(row["snapshot"].values))

        self.reserve()
        self._lost = place.get("lost", 0)
        needed -= self._lost
        folder = self.path.with_name(place["parts"] or "?")
        if folder.is_symlink() or (folder.is_dir() and not (folder / MARKER).is_file()):
            self._free()
            raise InputError(f"{folder} is not a folder of parts that a run made; move it away")
        if not folder.is_dir() and not place["records"] and not place["snapshots"]:
            return ""
        try:
            for series, count, least in self._emptied(place, needed):
                series.load(folder, count, wanted, least)
            self._folder = folder
        except OSError as gone:
            try:
                lost = self._from_file(place, run, wanted, needed)
                if lost and folder.is_dir():  # remaining parts are not thrown away
                    raise OSError("it is damaged")
                if lost:
                    lost, self._lost = f"{self._set_aside()} ({lost})", self._lost + needed
            except OSError as error:
                self._free()  # the user may repair it and try again
                raise InputError(self._unreadable(f"{error}; {gone}", place)) from None
            self._save()
            return lost
        return ""

    def _emptied(
        self, place: Mapping[str, Any], needed: int
    ) -> tuple[tuple[RecordSeries, int, int], ...]:
        """Start with empty series; return each with its earlier and its required number of rows."""
        self._records, self._snapshots = RecordSeries("records"), RecordSeries("snapshots")
        records, snapshots = place["records"], place["snapshots"]
        return (self._records, records, records), (self._snapshots, snapshots, needed)

    def _from_file(
        self, place: Mapping[str, Any], run: str, wanted: Callable[[Row], bool], needed: int
    ) -> str:
        """Read the rows of F.nc; return a description of its damage, if any.

        Raises
        ------
        OSError : F.nc is absent, unreadable, of another run, or has too few rows
        """
        assert self.path is not None
        if not os.path.exists(self.path):
            raise OSError("it is not there")
        with open(self.path, "rb"):
            pass  # a file without read permission is not damaged
        told, rows = None, list[tuple[list[Row], RecordSeries, int]]()
        try:
            with h5py.File(self.path, "r") as file:
                told = file.attrs.get("run", "")
                for series, count, least in self._emptied(place, needed):
                    rows.append((self._rows_of(file, series, count, wanted), series, least))
        except (OSError, KeyError, ValueError, RuntimeError) as error:
            if told is None or told == run:
                self._emptied(place, needed)
                return (str(error).splitlines() or [type(error).__name__])[0]
        if told != run:
            raise OSError("it belongs to another run")
        for found, series, least in rows:
            if len(found) < least:
                raise OSError(f"it has {len(found)} of {least} {series.name}")
            for row in found:
                series.add(row)
        return ""

    def _set_aside(self) -> str:
        """Rename a damaged F.nc; return a description."""
        assert self.path is not None
        ending = ".nc" if self.path.suffix == ".nc" else ""
        names = (f"{base(self.path)}.damaged-{k}{ending}" for k in itertools.count(1))
        place = next(p for p in map(self.path.with_name, names) if not os.path.lexists(p))
        os.rename(self.path, place)
        return f"{self.path.name} is damaged and kept as {place.name}"

    def _unreadable(self, why: str, place: Mapping[str, Any]) -> str:
        """Say that records are missing, and how to continue with or without them."""
        assert self.path is not None
        return (
            f"{self.path}: the records to go on from cannot be read ({why}); bring back the file, "
            f"or, to go on without its {place['records']} records so far, move away what is left "
            f"of it (also {place['parts'] or 'its parts'}) and put an empty file in its place "
            f"(touch {self.path.name})"
        )

    def _rows_of(
        self, file: h5py.File, series: RecordSeries, count: int, wanted: Callable[[Row], bool]
    ) -> list[Row]:
        """Read the first rows of a series from F.nc, without unwanted rows at the end."""
        names = ("time", *self.frame.quantities)
        if series is self._snapshots:
            names = self.frame.of_snapshots
        rows = self._rows(file, names, count, int(series is self._snapshots))
        while rows and not wanted(rows[-1]):
            rows.pop()
        return rows

    @staticmethod
    def _rows(file: h5py.File, names: Sequence[str], count: int, apart: int) -> list[Row]:
        """Return the first rows of some variables."""
        count = min(count, len(file[names[0]]))
        return [
            {name: PackedArray.of(file[name][i], apart) for name in names} for i in range(count)
        ]

    def record(self, values: Mapping[str, Any]) -> None:
        """Append a complete record."""
        self.first, self.last = self.first or values, values
        if self.path is None:
            self._kept[0].append(values)
        else:
            self._records.add(self._row(values))
            self._save()

    def snapshot(self, time: float, f: Array, scale: Array | None = None) -> None:
        """Append f (sites, species, nodes); scale : scale of node momenta by axis, if not 1."""
        scale = np.ones(3) if scale is None else scale
        if self.path is None:
            self._kept[1].append((time, f, scale))
        else:
            f = self.frame.arranged(f)
            row = {"snapshot": PackedArray.of(time), "f": PackedArray.of(f, apart=1)}
            row |= (
                {"momentum_scale": PackedArray.of(scale)}
                if len(self.frame.of_snapshots) > 2
                else {}
            )
            self._snapshots.add(row)
            self._save()

    def _row(self, values: Mapping[str, Any]) -> Row:
        row = {name: self.frame.squeezed(values, name) for name in self.frame.quantities}
        return {name: PackedArray.of(v) for name, v in {"time": values["time"], **row}.items()}

    def _save(self) -> None:
        """Save rows; rows that the disk refuses are kept and saved with the next record."""
        assert self.path is not None
        self.open()
        with contextlib.suppress(Exception):
            if self._folder is not None:
                self._records.save(self._folder)
                self._snapshots.save(self._folder)

    def due(self) -> bool:
        """Whether a merge is due."""
        return self.path is not None and time.monotonic() >= self._next

    def update(self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()) -> None:
        """Merge into F.nc if a merge is due.

        tail : incomplete records, visible in F.nc but not stored in the parts
        """
        held = len(self._records), len(self._snapshots), len(tail)
        if not self.due() or held == self._merged:
            return
        start = time.monotonic()
        self._merge(attributes, tail)
        self._merged = held if self.trouble is None else (0, 0, 0)
        now = time.monotonic()
        self._next = now + max(self._pause, 20 * (now - start))

    def finish(self, attributes: Mapping[str, Any]) -> xr.Dataset:
        """Merge everything and return the result; ``close`` removes the parts.

        The result is in memory, except for the largest variables beyond ``in_memory_bytes``. These
        are read from F.nc, which may be deleted or replaced, but should not be changed in place.
        """
        if self.path is None:
            return self.frame.dataset(*self._kept, attributes)
        self._save()
        self._merge(attributes)
        place = self._rescue(attributes) if self.trouble else self.path
        try:
            ds = self._result(place, attributes)
        except Exception:  # the parts are unreadable as well
            ds = self.frame.dataset([self.first, self.last], (), attributes)
        if self.trouble and place is None and self._folder is not None and self._folder.exists():
            self.trouble = f"{self.trouble}; the recorded data are in {self._folder}"
        return ds

    def close(self) -> None:
        """Remove the parts if F.nc contains all their data, and release the output."""
        for series in (self._records, self._snapshots):
            series.close()
        if self._folder is not None and self.trouble is None and self.path is not None:
            with contextlib.suppress(OSError):
                # also the parts of killed runs
                for folder in (self._folder, *stale_parts(self.path)):
                    remove_parts(folder)
        self._free()

    def _free(self) -> None:
        """Release the output."""
        if self._reserved is not None:
            self._reserved.free()

    def _merge(self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()) -> None:
        """Rebuild F.nc; an error is stored in ``trouble``."""
        assert self.path is not None
        try:
            self._write(self.path, attributes, tail)
            self.trouble = None
        except Exception as error:  # the run continues after any error
            self.trouble = f"{self.path} could not be written: {error}"

    def _write(self, path: Path, attributes: Mapping[str, Any], tail: Sequence[Any] = ()) -> None:
        ds, rows = self._grown(attributes, tail)
        output.write(ds, path, rows)

    def _grown(
        self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[xr.Dataset, tuple[RecordSeries, RecordSeries]]:
        """Return the Dataset without rows, and the rows to be added."""
        records = self._records.followed_by(map(self._row, tail))
        ds = self.frame.dataset((), (), attributes)
        for name, column in (records.layout | self._snapshots.layout).items():
            if ds[name].dtype != column.dtype:
                ds[name] = ds[name].astype(column.dtype)
        return ds, (records, self._snapshots)

    def _rescue(self, attributes: Mapping[str, Any]) -> Path | None:
        """Try the folders for temporary files as a last resort, under an unpredictable name."""
        assert self.path is not None
        for place in (tempfile.gettempdir, lambda: "/dev/shm", Path.home):
            with contextlib.suppress(Exception), contextlib.ExitStack() as failed:
                handle, name = tempfile.mkstemp(".nc", f"{self.path.stem}-rescued-", place())
                failed.callback(os.unlink, name)
                os.close(handle)
                self._write(Path(name), attributes)
                failed.pop_all()
                self.trouble = f"{self.trouble}; the result was saved as {name} instead"
                return Path(name)
        return None

    def _result(self, place: Path | None, attributes: Mapping[str, Any]) -> xr.Dataset:
        """Read the whole result from the merged file or from the parts."""
        ds, rows = self._grown(attributes)
        with contextlib.ExitStack() as opened:
            if place is not None:
                handle: BinaryIO = opened.enter_context(open(place, "rb"))
            else:
                handle = io.BytesIO()
                output.fill(ds, handle, rows)
            variables, huge, room = dict(ds.variables), [], in_memory_bytes()
            with h5py.File(handle, "r") as file:
                names = rows[0].layout | rows[1].layout
                for name in sorted(names, key=lambda name: file[name].nbytes):
                    old, dataset = ds.variables[name], file[name]
                    room -= dataset.nbytes
                    if room >= 0:
                        variables[name] = xr.Variable(old.dims, dataset[...], old.attrs)
                    else:
                        huge.append(name)
            if huge:  # the open file stays readable if F.nc is deleted or replaced
                opened.pop_all()
                lazy = xr.open_dataset(handle, engine="h5netcdf")[huge].drop_encoding()
                variables |= {name: lazy.variables[name] for name in huge}
        return xr.Dataset(variables, attrs=ds.attrs)
