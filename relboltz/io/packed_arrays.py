"""Rows of arrays as entries of an append-only file, each with its length and checksum."""

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
"""Maximum size of a chunk of a large array, which is read at once."""
LARGE_BYTES = 2**16
"""Arrays of at least this size are compressed once, when they are recorded."""
HEAD, COUNT = struct.Struct("<QI"), struct.Struct("<Q")
"""Length and checksum before an entry, and length before the header of a row."""


class PackedArray(NamedTuple):
    """One array of a row: its bytes, or its compressed HDF5 chunks."""

    dtype: str
    shape: tuple[int, ...]
    chunks: tuple[int, ...] | None
    parts: Sequence[bytes]

    @classmethod
    def of(cls, values: Any, apart: int = 0) -> "PackedArray":
        """Pack an array; apart : number of leading axes along which chunks have length 1."""
        values = np.asarray(values)
        if values.nbytes < LARGE_BYTES:
            return cls(values.dtype.str, values.shape, None, [values.tobytes()])
        chunks = (*[1] * apart, *_chunks(values.shape[apart:]))
        parts = [_compressed(values, chunks, at) for at in _corners(values.shape, chunks)]
        return cls(values.dtype.str, values.shape, chunks, parts)

    @property
    def values(self) -> NDArray[Any]:
        """Return the array, if it was not compressed."""
        return np.frombuffer(self.parts[0], self.dtype).reshape(self.shape)

    def store(self, dataset: h5py.Dataset, row: int) -> None:
        """Write the compressed chunks directly to a dataset."""
        assert self.chunks is not None
        for at, part in zip(_corners(self.shape, self.chunks), self.parts, strict=True):
            dataset.id.write_direct_chunk((row, *at), part)


Row = dict[str, PackedArray]


def stacked(columns: Sequence[PackedArray]) -> NDArray[Any]:
    """Return np.stack of uncompressed arrays; fast if they have the same type."""
    first = columns[0]
    if any(column.dtype != first.dtype for column in columns):
        return np.stack([column.values for column in columns])
    joined = b"".join(column.parts[0] for column in columns)
    return np.frombuffer(joined, first.dtype).reshape(len(columns), *first.shape)


def _chunks(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the chunk shape: as many of the last axes as stay below CHUNK_BYTES."""
    chunks, size = [1] * len(shape), 8
    for axis in reversed(range(len(shape))):
        chunks[axis] = max(1, min(shape[axis], CHUNK_BYTES // size))
        size *= chunks[axis]
        if chunks[axis] < shape[axis]:
            break
    return tuple(chunks)


def _corners(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the start indices of the chunks."""
    return itertools.product(*(range(0, n, c) for n, c in zip(shape, chunks, strict=True)))


def _compressed(values: NDArray[Any], chunks: tuple[int, ...], at: tuple[int, ...]) -> bytes:
    """Return one chunk, padded to its full shape, shuffled and deflated as by HDF5."""
    inside = values[tuple(slice(i, i + c) for i, c in zip(at, chunks, strict=True))]
    whole = np.zeros(chunks, values.dtype)
    whole[tuple(slice(n) for n in inside.shape)] = inside
    shuffled = whole.reshape(-1).view(np.uint8).reshape(-1, whole.itemsize).T
    return zlib.compress(shuffled.tobytes(), COMPRESSED["complevel"])


# --- entries on disk ----------------------------------------------------------------------------


def pack(row: Row) -> bytes:
    """Return a row as bytes: a JSON description of its columns, then their data in order."""
    table = [
        [name, c.dtype, c.shape, c.chunks, [len(part) for part in c.parts]]
        for name, c in row.items()
    ]
    head = json.dumps(table).encode()
    parts = (part for c in row.values() for part in c.parts)
    return b"".join([COUNT.pack(len(head)), head, *parts])


def unpack(payload: bytes) -> Row:
    """Return the row packed by ``pack``."""
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
    """Write an entry after the valid ones, over remains of a failure; return the new end."""
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
    """Yield the entries of a file or file handle up to the first truncated one."""
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
