"""Rows of arrays as entries of a file that only grows, each with its length and checksum."""

import itertools
import json
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from .output import COMPRESSED

CHUNK_BYTES = 2**20
"""Of a large array: what is read at once."""
LARGE_BYTES = 2**16
"""Arrays from here on are compressed once, when they are recorded."""
HEAD, COUNT = struct.Struct("<QI"), struct.Struct("<Q")
"""Before an entry its length and checksum; before the head of a row its length."""


class PackedArray(NamedTuple):
    """One array of a row: its bytes, or the compressed chunks that HDF5 will hold."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    parts: Sequence[bytes]

    @classmethod
    def of(cls, values: Any, apart: int = 0) -> "PackedArray":
        """apart : leading axes that share no chunk"""
        values = np.asarray(values)
        if values.nbytes < LARGE_BYTES:
            return cls(values.dtype.str, values.shape, None, [values.tobytes()])
        chunks = (*[1] * apart, *_chunks(values.shape[apart:]))
        parts = [_compressed(values, chunks, at) for at in _corners(values.shape, chunks)]
        return cls(values.dtype.str, values.shape, chunks, parts)

    @property
    def values(self) -> NDArray[Any]:
        """The array, if it was not compressed."""
        return np.frombuffer(self.parts[0], self.dtype).reshape(self.shape)

    def store(self, dataset: h5py.Dataset, row: int) -> None:
        """Hand the chunks over as they are."""
        assert self.chunks is not None
        for at, part in zip(_corners(self.shape, self.chunks), self.parts, strict=True):
            dataset.id.write_direct_chunk((row, *at), part)


Row = dict[str, PackedArray]


def stacked(columns: Sequence[PackedArray]) -> NDArray[Any]:
    """np.stack of arrays that were not compressed, as fast as most of them allow."""
    first = columns[0]
    if any(column.dtype != first.dtype for column in columns):
        return np.stack([column.values for column in columns])
    joined = b"".join(column.parts[0] for column in columns)
    return np.frombuffer(joined, first.dtype).reshape(len(columns), *first.shape)


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """As many of the last axes as stay below CHUNK_BYTES."""
    chunks, size = [1] * len(shape), 8
    for axis in reversed(range(len(shape))):
        chunks[axis] = max(1, min(shape[axis], CHUNK_BYTES // size))
        size *= chunks[axis]
        if chunks[axis] < shape[axis]:
            break
    return tuple(chunks)


def _corners(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Where the chunks begin."""
    return itertools.product(*(range(0, n, c) for n, c in zip(shape, chunks, strict=True)))


def _compressed(values: NDArray[Any], chunks: tuple[int, ...], at: tuple[int, ...]) -> bytes:
    """One chunk, full to its edges, as HDF5 shuffles and deflates it."""
    inside = values[tuple(slice(i, i + c) for i, c in zip(at, chunks, strict=True))]
    whole = np.zeros(chunks, values.dtype)
    whole[tuple(slice(n) for n in inside.shape)] = inside
    shuffled = whole.reshape(-1).view(np.uint8).reshape(-1, whole.itemsize).T
    return zlib.compress(shuffled.tobytes(), COMPRESSED["complevel"])


# --- entries on disk ----------------------------------------------------------------------------


def pack(row: Row) -> bytes:
    """A row as bytes: what its columns are as JSON, and their parts one after the other."""
    table = [
        [name, c.dtype, c.shape, c.chunks, [len(part) for part in c.parts]]
        for name, c in row.items()
    ]
    head = json.dumps(table).encode()
    parts = (part for c in row.values() for part in c.parts)
    return b"".join([COUNT.pack(len(head)), head, *parts])


def unpack(payload: bytes) -> Row:
    """The row that was packed."""
    end = COUNT.size + COUNT.unpack_from(payload)[0]
    row: Row = {}
    for name, dtype, shape, chunks, lengths in json.loads(payload[COUNT.size : end]):
        parts = []
        for length in lengths:
            parts.append(payload[end : end + length])
            end += length
        row[name] = PackedArray(dtype, tuple(shape), chunks and tuple(chunks), parts)
    return row


def append(path: Path, end: int, payload: bytes) -> int:
    """Write an entry at the end of the good ones, over what a failure left; the new end."""
    entry = memoryview(HEAD.pack(len(payload), zlib.crc32(payload)) + payload)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.lseek(handle, end, os.SEEK_SET)
        while entry:
            written = os.write(handle, entry)
            entry, end = entry[written:], end + written
    finally:
        os.close(handle)
    return end


def entries(file: Path | int) -> Iterator[bytes]:
    """Entries of a file, or of a handle of one, up to the first that is torn."""
    with open(os.dup(file) if isinstance(file, int) else file, "rb") as handle:
        handle.seek(0)
        left = os.fstat(handle.fileno()).st_size - HEAD.size
        while left >= 0:
            length, checksum = HEAD.unpack(handle.read(HEAD.size))
            if length > left:
                return
            payload = handle.read(length)
            if zlib.crc32(payload) != checksum:
                return
            yield payload
            left -= length + HEAD.size
