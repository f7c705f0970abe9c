"""Records and snapshots of a run as they come: appended to parts on disk, merged into F.nc.

A file of NetCDF cannot grow and be whole at every moment, so a run with a file F.nc appends to a
folder F.parts-PID-*: records to one file, snapshots to another. Each entry carries its length and a
checksum; an entry that was cut short is ignored. Now and then, and at the end, F.nc is built
anew from the parts beside the old one and renamed into place. A run that is killed leaves F.nc as
it was merged last, and its parts, which nothing reads yet.

Building anew is cheap as long as nothing large is compressed twice: large arrays are compressed
when they are recorded, into the very chunks that HDF5 keeps, and merging copies bytes (measured:
1.4 s per GB). What is small is read and compressed at every merge, 0.1 ms per record. Appending to
a copy of F.nc would copy the same bytes, and would trust a file that others may change. The pause
between merges is twenty times what the last one took; neither memory nor time per record grows.
"""

import contextlib
import copy
import io
import itertools
import math
import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
import xarray as xr

from ..arrays import Array
from . import output
from .entries import Column, Row, append, entries, pack, stacked, unpack
from .output import COMPRESSED, Frame

BLOCK_BYTES = 2**20
"""Of records: what is merged at once."""


def in_memory_bytes() -> int:
    """Variables of a result beyond that, the largest first, stay in their file until asked for."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4
    except (AttributeError, ValueError, OSError):  # not on every system
        return 2**32


class Series:
    """Rows along a dimension that grows: on disk, and in memory while the disk refuses them."""

    def __init__(self, name: str):
        self.name, self._path = name, Path(name)
        self.layout: dict[str, Column] = {}
        self._waiting: deque[Row] = deque()
        self._saved = self._end = self._row_bytes = 0

    def add(self, row: Row) -> None:
        """Append a row; wider types win."""
        for name, c in row.items():
            known = self.layout.get(name)
            if known is None or known.dtype != c.dtype:
                kind = np.result_type(known.dtype if known else c.dtype, c.dtype).str
                self.layout[name] = Column(kind, c.shape, c.chunks, ())
        self._row_bytes = sum(len(part) for c in row.values() for part in c.parts)
        self._waiting.append(row)

    def followed_by(self, rows: Iterable[Row]) -> "Series":
        """This series and rows that are only shown."""
        shown = copy.copy(self)
        shown.layout, shown._waiting = dict(self.layout), deque(self._waiting)
        for row in rows:
            shown.add(row)
        return shown

    def save(self, folder: Path) -> None:
        """Bring to disk what is not there yet."""
        self._path = folder / self.name
        while self._waiting:
            self._end = append(self._path, self._end, pack(self._waiting[0]))
            self._saved += 1
            self._waiting.popleft()

    def __len__(self) -> int:
        return self._saved + len(self._waiting)

    def __iter__(self) -> Iterator[Row]:
        good = 0
        for payload in itertools.islice(entries(self._path) if self._saved else (), self._saved):
            yield unpack(payload)
            good += 1
        if good < self._saved:
            raise OSError(f"{self._path.parent} is damaged")
        yield from self._waiting

    def _block(self) -> int:
        """Rows that are merged at once."""
        return max(1, min(len(self), BLOCK_BYTES // max(1, self._row_bytes)))

    def encoding(self) -> dict[str, Any]:
        """Chunks and compression of each variable in the file."""
        result: dict[str, Any] = {}
        for name, c in self.layout.items():
            size = math.prod(c.shape)
            if c.chunks:
                result[name] = {**COMPRESSED, "chunksizes": (1, *c.chunks)}
            elif size:
                packed = COMPRESSED if len(self) * size > 1000 else {}
                result[name] = {**packed, "chunksizes": (self._block(), *c.shape)}
        return result

    def store(self, file: h5py.File) -> None:
        """Write all rows, a block at a time."""
        for name in self.layout:
            file[name].resize(len(self), axis=0)
        rows, start = iter(self), 0
        while block := list(itertools.islice(rows, self._block())):
            for name, c in self.layout.items():
                if c.chunks is None:
                    file[name][start : start + len(block)] = stacked([row[name] for row in block])
                else:
                    for i, row in enumerate(block, start):
                        row[name].store(file[name], i)
            start += len(block)


# --- the journal --------------------------------------------------------------------------------


class Journal:
    """Records and snapshots of a run, on disk if it has a file, and F.nc kept up to date from them.

    Merging takes at most a few per cent of the time; a disk that fails does not end the run, it
    is tried again, and at the very end a second place is tried before giving up. Without a file
    everything stays in memory.
    """

    def __init__(self, path: Path | None, frame: Frame, pause: float = 2.0):
        self.path, self.frame = path, frame
        self.trouble: str | None = None
        self.first: Mapping[str, Any] = {}
        self.last: Mapping[str, Any] = {}
        self._folder: Path | None = None
        self._kept: tuple[list[Mapping[str, Any]], list[tuple[float, Array]]] = ([], [])
        self._records, self._snapshots = Series("records"), Series("snapshots")
        self._pause, self._next = pause, time.monotonic() + pause

    def record(self, values: Mapping[str, Any]) -> None:
        """Append a record that is complete."""
        self.first, self.last = self.first or values, values
        if self.path is None:
            self._kept[0].append(values)
        else:
            self._records.add(self._row(values))
            self._save()

    def snapshot(self, time: float, f: Array) -> None:
        """Append f (sites, species, nodes)."""
        if self.path is None:
            self._kept[1].append((time, f))
        else:
            f = self.frame.arranged(f)
            self._snapshots.add({"snapshot": Column.of(time), "f": Column.of(f, apart=1)})
            self._save()

    def _row(self, values: Mapping[str, Any]) -> Row:
        row = {name: self.frame.squeezed(values, name) for name in self.frame.quantities}
        return {name: Column.of(v) for name, v in {"time": values["time"], **row}.items()}

    def _save(self) -> None:
        """What the disk refuses is kept, and offered again with the next record."""
        assert self.path is not None
        with contextlib.suppress(Exception):
            if self._folder is None:
                prefix = f"{self.path.stem}.parts-{os.getpid()}-"
                self._folder = Path(tempfile.mkdtemp(prefix=prefix, dir=self.path.parent))
            self._records.save(self._folder)
            self._snapshots.save(self._folder)

    def due(self) -> bool:
        """Whether it is time to merge again."""
        return self.path is not None and time.monotonic() >= self._next

    def update(self, attributes: Mapping[str, Any], tail: Sequence[Mapping[str, Any]] = ()) -> None:
        """Merge into F.nc if it is time to.

        tail : records that are not complete yet: a reader sees them, but they are not kept
        """
        if not self.due():
            return
        start = time.monotonic()
        self._merge(attributes, tail)
        now = time.monotonic()
        self._next = now + max(self._pause, 20 * (now - start))

    def finish(self, attributes: Mapping[str, Any]) -> xr.Dataset:
        """Merge everything, remove the parts, and return the result.

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
        if place is not None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif self._folder is not None:
            self.trouble = f"{self.trouble}; what was recorded is left in {self._folder}"
        return ds

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
    ) -> tuple[xr.Dataset, tuple[Series, Series]]:
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
