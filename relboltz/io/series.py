"""Rows along a growing dimension: appended to a separate file, read back for merging."""

import copy
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .output import COMPRESSED
from .packed_arrays import HEAD, PackedArray, Row, append, entries, pack, stacked, unpack

BLOCK_BYTES = 2**20
"""Size of the block of records that is merged at once."""


class RecordSeries:
    """Rows along a growing dimension: on disk, or in memory while writing fails."""

    def __init__(self, name: str):
        self.name, self._path = name, Path(name)
        self.layout: dict[str, PackedArray] = {}
        self._waiting: deque[Row] = deque()
        self._saved = self._end = self._row_bytes = 0
        self._handle: int | None = None
        """File handle, readable even if the folder was removed or renamed."""

    def add(self, row: Row) -> None:
        """Append a row; the wider type of old and new values is used."""
        for name, c in row.items():
            known = self.layout.get(name)
            if known is None or known.dtype != c.dtype:
                kind = np.result_type(known.dtype if known else c.dtype, c.dtype).str
                self.layout[name] = PackedArray(kind, c.shape, c.chunks, ())
        self._row_bytes = sum(len(part) for c in row.values() for part in c.parts)
        self._waiting.append(row)

    def followed_by(self, rows: Iterable[Row]) -> "RecordSeries":
        """Return this series followed by provisional rows."""
        shown = copy.copy(self)
        shown.layout, shown._waiting = dict(self.layout), deque(self._waiting)
        for row in rows:
            shown.add(row)
        return shown

    def save(self, folder: Path) -> None:
        """Write rows that are not on disk yet."""
        self._path = folder / self.name
        while self._waiting:
            self._end = append(self._path, self._end, pack(self._waiting[0]))
            self._saved += 1
            self._waiting.popleft()
        self._hold()

    def _hold(self) -> None:
        if self._handle is None and self._saved:
            self._handle = os.open(self._path, os.O_RDONLY)

    def close(self) -> None:
        """Close the file."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def load(self, folder: Path, count: int, wanted: Callable[[Row], bool], least: int) -> None:
        """Continue after ``count`` rows on disk, without unwanted rows at the end.

        Later rows will be overwritten.

        Raises
        ------
        OSError : there are fewer than ``least`` rows
        """
        path, read, saved, good, end = folder / self.name, 0, 0, 0, 0
        for payload in itertools.islice(entries(path) if path.exists() else (), count):
            row = unpack(payload)
            self.add(row)
            self._waiting.clear()
            read, end = read + 1, end + HEAD.size + len(payload)
            if wanted(row):
                saved, good = read, end
        if saved < least:
            raise OSError(f"{folder.name}: {saved} of {least} {self.name}")
        self._path, self._saved, self._end = path, saved, good
        self._hold()

    def flush(self, count: int) -> None:
        """Flush ``count`` rows to disk; raise an error if they are not saved."""
        if self._saved < count:
            missing = count - self._saved
            raise OSError(f"{missing} {self.name} before it could not be saved")
        if self._handle is not None:
            os.fsync(self._handle)

    def __len__(self) -> int:
        return self._saved + len(self._waiting)

    def __iter__(self) -> Iterator[Row]:
        good = 0
        file = self._path if self._handle is None else self._handle
        for payload in itertools.islice(entries(file) if self._saved else (), self._saved):
            yield unpack(payload)
            good += 1
        if good < self._saved:
            raise OSError(f"{self._path.parent} is damaged")
        yield from self._waiting

    def _block(self) -> int:
        """Number of rows that are merged at once."""
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
        rows, start = iter(self), 0
        while block := list(itertools.islice(rows, self._block())):
            for name, c in self.layout.items():
                if c.chunks is None:
                    file[name][start : start + len(block)] = stacked([row[name] for row in block])
                else:
                    for i, row in enumerate(block, start):
                        row[name].store(file[name], i)
            start += len(block)
