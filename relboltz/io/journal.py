"""Records and snapshots of a run as they come: appended to parts on disk, merged into F.nc.

A file of NetCDF cannot grow and be whole at every moment, so a run with a file F.nc appends to a
folder F.parts-PID-*: records to one file, snapshots to another. Each entry carries its length and a
checksum; an entry that was cut short is ignored. Now and then, and at the end, F.nc is built
anew from the parts beside the old one and renamed into place. A run that is killed leaves F.nc as
it was merged last, and its parts; one that is continued goes on with the parts that its checkpoint
counts, or with the rows of F.nc if it was done and its parts are gone.

Building anew is cheap as long as nothing large is compressed twice: large arrays are compressed
when they are recorded, into the very chunks that HDF5 keeps, and merging copies bytes (measured:
1.4 s per GB). What is small is read and compressed at every merge, 0.1 ms per record. Appending to
a copy of F.nc would copy the same bytes, and would trust a file that others may change. The pause
between merges is twenty times what the last one took; neither memory nor time per record grows.
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
"""File that tells a folder of parts from a folder of the user's."""
PARTS = r"\.parts-\d+-[a-z0-9_]{8}"
"""End of the name of a folder of parts, as ``Journal.open`` makes it."""


def stale_parts(file: Path) -> list[Path]:
    """Return the folders of parts beside F.nc that runs of this package made."""
    name = re.compile(re.escape(base(file)) + PARTS)
    found = [path for path in file.parent.iterdir() if name.fullmatch(path.name)]
    return [path for path in found if (path / MARKER).is_file() and not path.is_symlink()]


def remove_parts(folder: Path) -> None:
    """Remove the files of a journal and their folder; files of others stay, with the folder."""
    with contextlib.suppress(OSError):
        for name in (*SERIES, MARKER):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def in_memory_bytes() -> int:
    """Variables of a result beyond that, the largest first, stay in their file until asked for."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not on every system
        return 2**32


class Journal:
    """Records and snapshots of a run, on disk if it has a file, and F.nc kept up to date from them.

    Merging takes at most a few per cent of the time; a disk that fails does not end the run, it
    is tried again, and at the very end a second place is tried before giving up. Without a file
    everything stays in memory.
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
        """Snapshots that were asked for and went with a damaged F.nc."""
        self._merged = (0, 0, 0)
        """Records, snapshots and records that were only shown in the last merge."""

    def open(self) -> None:
        """Make the folder of parts, if there is a file and the disk allows it."""
        if self.path is not None and self._folder is None:
            with contextlib.suppress(Exception):
                prefix = f"{base(self.path)}.parts-{os.getpid()}-"
                self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.path.parent))
                (self._folder / MARKER).write_text("written by relboltz; removed with the run\n")

    def place(self) -> dict[str, Any]:
        """Where this is to go on from: a folder beside F.nc, rows that are complete."""
        name = "" if self._folder is None else self._folder.name
        rows = {series.name: len(series) for series in (self._records, self._snapshots)}
        return {"parts": name, **rows, "lost": self._lost}

    def flush(self, place: Mapping[str, Any]) -> None:
        """See to it that all rows of a place are on the disk, whatever is added meanwhile."""
        for series in (self._records, self._snapshots):
            series.flush(place[series.name])

    def reserve(self) -> None:
        """See to it that no other process is at this output.

        Raises
        ------
        InputError : one is
        """
        if self._reserved is not None:
            self._reserved.take()

    def go_on(
        self, place: Mapping[str, Any], run: str, kept: Callable[[float], bool], needed: int
    ) -> str:
        """Go on from a place: with its parts, or with F.nc if it was finished and they are gone.

        Returns what is lost, in words, if F.nc is damaged; it is kept under another name.

        kept : whether a snapshot of a time [fm] is asked for; needed : how many must be there
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
                if lost and folder.is_dir():  # what is left of the parts is not thrown away
                    raise OSError("it is damaged")
                if lost:
                    lost, self._lost = f"{self._set_aside()} ({lost})", self._lost + needed
            except OSError as error:
                self._free()  # who mends it may try again
                raise InputError(self._unreadable(f"{error}; {gone}", place)) from None
            self._save()
            return lost
        return ""

    def _emptied(
        self, place: Mapping[str, Any], needed: int
    ) -> tuple[tuple[RecordSeries, int, int], ...]:
        """Begin with no rows; return each series, how many rows it had, and how many it needs."""
        self._records, self._snapshots = RecordSeries("records"), RecordSeries("snapshots")
        records, snapshots = place["records"], place["snapshots"]
        return (self._records, records, records), (self._snapshots, snapshots, needed)

    def _from_file(
        self, place: Mapping[str, Any], run: str, wanted: Callable[[Row], bool], needed: int
    ) -> str:
        """Take the rows of F.nc; return how it is damaged, if it is.

        Raises
        ------
        OSError : it is not there, may not be read, is of another run or has too few rows
        """
        assert self.path is not None
        if not os.path.exists(self.path):
            raise OSError("it is not there")
        with open(self.path, "rb"):
            pass  # a file that may not be read is not damaged
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
            raise OSError("it is of another run")
        for found, series, least in rows:
            if len(found) < least:
                raise OSError(f"it has {len(found)} of {least} {series.name}")
            for row in found:
                series.add(row)
        return ""

    def _set_aside(self) -> str:
        """Give a damaged F.nc another name; return what happened to it."""
        assert self.path is not None
        ending = ".nc" if self.path.suffix == ".nc" else ""
        names = (f"{base(self.path)}.damaged-{k}{ending}" for k in itertools.count(1))
        place = next(p for p in map(self.path.with_name, names) if not os.path.lexists(p))
        os.rename(self.path, place)
        return f"{self.path.name} is damaged and kept as {place.name}"

    def _unreadable(self, why: str, place: Mapping[str, Any]) -> str:
        """Say that records are missing, and how to go on with them or without."""
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
        """Read the first rows of a series from F.nc, less the last ones that are not wanted."""
        names = ("time", *self.frame.quantities)
        if series is self._snapshots:
            names = self.frame.of_snapshots
        rows = self._rows(file, names, count, int(series is self._snapshots))
        while rows and not wanted(rows[-1]):
            rows.pop()
        return rows

    @staticmethod
    def _rows(file: h5py.File, names: Sequence[str], count: int, apart: int) -> list[Row]:
        """The first rows of some variables."""
        count = min(count, len(file[names[0]]))
        return [
            {name: PackedArray.of(file[name][i], apart) for name in names} for i in range(count)
        ]

    def record(self, values: Mapping[str, Any]) -> None:
        """Append a record that is complete."""
        self.first, self.last = self.first or values, values
        if self.path is None:
            self._kept[0].append(values)
        else:
            self._records.add(self._row(values))
            self._save()

    def snapshot(self, time: float, f: Array, scale: Array | None = None) -> None:
        """Append f (sites, species, nodes); scale : of the momenta of nodes, by axis, if not 1."""
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
        """What the disk refuses is kept, and offered again with the next record."""
        assert self.path is not None
        self.open()
        with contextlib.suppress(Exception):
            if self._folder is not None:
                self._records.save(self._folder)
                self._snapshots.save(self._folder)

    def due(self) -> bool:
        """Whether it is time to merge again."""
        return self.path is not None and time.monotonic() >= self._next

    def update(self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()) -> None:
        """Merge into F.nc if it is time to.

        tail : records that are not complete yet: a reader sees them, but they are not kept
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

        It is in memory, but for the largest variables beyond ``in_memory_bytes``. These are read
        from F.nc, which may be deleted or replaced meanwhile, but should not be changed in place.
        """
        if self.path is None:
            return self.frame.dataset(*self._kept, attributes)
        self._save()
        self._merge(attributes)
        place = self._rescue(attributes) if self.trouble else self.path
        try:
            ds = self._result(place, attributes)
        except Exception:  # the parts cannot be read either
            ds = self.frame.dataset([self.first, self.last], (), attributes)
        if self.trouble and place is None and self._folder is not None and self._folder.exists():
            self.trouble = f"{self.trouble}; what was recorded is left in {self._folder}"
        return ds

    def close(self) -> None:
        """Remove the parts if F.nc has all that is in them, and leave the output to others."""
        for series in (self._records, self._snapshots):
            series.close()
        if self._folder is not None and self.trouble is None and self.path is not None:
            with contextlib.suppress(OSError):
                for folder in (self._folder, *stale_parts(self.path)):  # also of killed runs
                    remove_parts(folder)
        self._free()

    def _free(self) -> None:
        """Leave the output to others."""
        if self._reserved is not None:
            self._reserved.free()

    def _merge(self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()) -> None:
        """Build F.nc anew; troubles are kept in ``trouble``."""
        assert self.path is not None
        try:
            self._write(self.path, attributes, tail)
            self.trouble = None
        except Exception as error:  # whatever it is, the run goes on
            self.trouble = f"{self.path} could not be written: {error}"

    def _write(self, path: Path, attributes: Mapping[str, Any], tail: Sequence[Any] = ()) -> None:
        ds, rows = self._grown(attributes, tail)
        output.write(ds, path, rows)

    def _grown(
        self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()
    ) -> tuple[xr.Dataset, tuple[RecordSeries, RecordSeries]]:
        """What a file is before it grows, and the rows that it grows by."""
        records = self._records.followed_by(map(self._row, tail))
        ds = self.frame.dataset((), (), attributes)
        for name, column in (records.layout | self._snapshots.layout).items():
            if ds[name].dtype != column.dtype:
                ds[name] = ds[name].astype(column.dtype)
        return ds, (records, self._snapshots)

    def _rescue(self, attributes: Mapping[str, Any]) -> Path | None:
        """A last try in the folders for temporary files, under a name that nobody can foresee."""
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
        """The whole result, read from the file that it was merged into, or from the parts."""
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
            if huge:  # the open file stays readable when F.nc is deleted or replaced
                opened.pop_all()
                lazy = xr.open_dataset(handle, engine="h5netcdf")[huge].drop_encoding()
                variables |= {name: lazy.variables[name] for name in huge}
        return xr.Dataset(variables, attrs=ds.attrs)
