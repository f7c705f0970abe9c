"""Checkpoints F.checkpoint-000001, ... beside the file F.nc of a run; the last two are kept.

A checkpoint consists of a JSON header and uncompressed arrays in blocks; the header and every block
are followed by a checksum. It is written to a temporary name, flushed to disk and renamed: a crash
leaves the previous checkpoint intact. Compression would take longer than writing.
"""

import contextlib
import json
import os
import re
import struct
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..util.errors import CheckpointWarning, InputError, say
from .reservation import base

MAGIC = b"relboltz checkpoint 1\n"
LENGTH, CHECK = struct.Struct("<Q"), struct.Struct("<I")
BLOCK = 2**22
"""Number of bytes of an array that share a checksum."""
KEPT = 2
WAITED_FOR = 2**28
"""Largest first checkpoint, in bytes, that a run writes at once, to be resumable from the start."""

Arrays = Mapping[str, NDArray[Any]]
Facts = Mapping[str, Any]


@dataclass(frozen=True)
class CheckpointContent:
    """Content of a checkpoint: facts as JSON values, and arrays by name."""

    path: Path
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


# --- one file -----------------------------------------------------------------------------------


def write(path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
    """Write a checkpoint atomically."""
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    try:
        part.unlink(missing_ok=True)
        with open(part, "xb", buffering=0) as handle:
            for piece in _pieces(facts, arrays):
                left = memoryview(piece)
                while left:
                    left = left[handle.write(left) :]
            os.fsync(handle.fileno())
        os.replace(part, path)
        _settle_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _pieces(facts: Mapping[str, Any], arrays: Arrays) -> Iterator[Any]:
    """Yield the bytes of a checkpoint in order."""
    table = [(name, a.dtype.str, a.shape) for name, a in arrays.items()]
    head = json.dumps({"facts": facts, "arrays": table}).encode()
    yield MAGIC + LENGTH.pack(len(head))
    yield head
    yield CHECK.pack(zlib.crc32(head))
    for array in arrays.values():
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        for start in range(0, len(flat), BLOCK):
            block = flat[start : start + BLOCK]
            yield block
            yield CHECK.pack(zlib.crc32(block))


def _settle_folder(folder: Path) -> None:
    """Flush a renamed file's folder entry to disk, where the system supports it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read(path: Path) -> CheckpointContent:
    """Read a checkpoint and verify all its checksums.

    Raises
    ------
    InputError : the checkpoint is damaged
    """
    with _damage(path), open(path, "rb") as handle:
        bytes_ = _ChecksummedFile(handle)
        head = bytes_.head()
        arrays = {name: bytes_.array(kind, shape) for name, kind, shape in head["arrays"]}
        bytes_.end()
    return CheckpointContent(path, head["facts"], arrays)


def in_words(path: Path) -> str:
    """Describe a checkpoint and its time from the header; the arrays are not read."""
    try:
        with _damage(path), open(path, "rb") as handle:
            return f"{path.name}, t = {_ChecksummedFile(handle).head()['facts']['time']:g} fm"
    except InputError:
        return f"{path.name}, damaged"


@contextlib.contextmanager
def _damage(path: Path) -> Iterator[None]:
    """Turn any error of a damaged file into an InputError."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, MemoryError) as error:
        raise InputError(f"{path} is damaged: {error}") from None


class _ChecksummedFile:
    """Reader of a checkpoint that verifies all checksums."""

    def __init__(self, handle: BinaryIO):
        self._handle, self._size = handle, os.fstat(handle.fileno()).st_size

    def _take(self, count: int) -> bytes:
        if count > self._size - self._handle.tell():
            raise ValueError("it is cut short")
        return self._handle.read(count)

    def _check(self, piece: Any) -> None:
        if CHECK.unpack(self._take(CHECK.size)) != (zlib.crc32(piece),):
            raise ValueError("a checksum is wrong")

    def head(self) -> dict[str, Any]:
        """Read the header."""
        if self._take(len(MAGIC)) != MAGIC:
            raise ValueError("it does not begin like a checkpoint")
        text = self._take(LENGTH.unpack(self._take(LENGTH.size))[0])
        self._check(text)
        head: dict[str, Any] = json.loads(text)
        return head

    def array(self, kind: str, shape: list[int]) -> NDArray[Any]:
        """Read the next array."""
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if count > self._size:
            raise ValueError("it is cut short")
        room = np.empty(count, np.uint8)
        for start in range(0, count, BLOCK):
            block = room.data[start : start + BLOCK]
            if self._handle.readinto(block) != len(block):  # type: ignore[attr-defined]
                raise ValueError("it is cut short")
            self._check(block)
        return room.view(dtype).reshape(shape)

    def end(self) -> None:
        """Check that the file ends here."""
        if self._handle.tell() != self._size:
            raise ValueError("something follows its end")


# --- those of a run -----------------------------------------------------------------------------


def of_run(file: Path) -> list[Path]:
    """Return the checkpoints beside the output F.nc, the newest last."""
    pattern = re.compile(re.escape(base(file)) + r"\.checkpoint-(\d+)")
    found = []
    with contextlib.suppress(OSError, ValueError):
        for path in file.parent.iterdir():
            if match := pattern.fullmatch(path.name):
                found.append((int(match[1]), path))
    return [path for _, path in sorted(found)]


def torn(file: Path) -> list[Path]:
    """Return incomplete pieces of F.nc and its checkpoints left by a killed process."""
    names = f"({re.escape(file.name)}|{re.escape(base(file))}\\.checkpoint-\\d+)"
    pattern, own = re.compile(names + r"\.part-(\d+)"), str(os.getpid())
    with contextlib.suppress(OSError, ValueError):
        found = [(path, pattern.fullmatch(path.name)) for path in file.parent.iterdir()]
        return [path for path, match in found if match and match[2] != own]
    return []


def latest(file: Path) -> CheckpointContent:
    """Return the newest intact checkpoint of F.nc; warn about damaged ones.

    Raises
    ------
    InputError : there is no intact checkpoint
    """
    damaged = []
    for path in reversed(of_run(file)):
        try:
            found = read(path)
        except InputError as error:
            damaged.append(str(error))
            continue
        for text in damaged:
            say(f"{text}; {path.name} is used instead", CheckpointWarning)
        return found
    if damaged:
        raise InputError("\n".join([*damaged, "no other checkpoint is left: start the run again"]))
    raise InputError(_nothing(file))


def _nothing(file: Path) -> str:
    """Say why there is no checkpoint, and what to do."""
    if file.is_dir():
        return f"{file}: is a folder; name the result of a run, such as run.nc"
    if file.suffix == ".toml":
        return f"{file}: is a configuration; name the result, or use relboltz run"
    if of := re.fullmatch(r"(.*)\.checkpoint-\d+", file.name):
        return f"{file}: is a checkpoint; name the result that it belongs to, {of[1]}.nc"
    what = "" if file.exists() else "there is no such file, and "
    beside = f"no checkpoint {base(file)}.checkpoint-* beside it"
    return f"{file}: {what or 'there is '}{beside}; start the run again, or name another result"


class CheckpointWriter:
    """Writer of the checkpoints of a run, in the background; it keeps the last two.

    An error is stored in ``trouble`` and reported once until a checkpoint succeeds; earlier
    checkpoints stay, and the next one is attempted again.
    """

    def __init__(self, file: Path, before: Callable[[Facts], None], origin: Path | None = None):
        """before : flushes the data to which a checkpoint of these facts refers; origin : the
        checkpoint from which the run continues. Other checkpoints beside the file, damaged or of
        another run, and pieces left by a killed process are deleted with the first one written"""
        self._file, self._before = file, before
        there = of_run(file)
        self._number = int(there[-1].name.rpartition("-")[2]) if there else 0
        self._obsolete = there[there.index(origin) + 1 :] if origin in there else there
        self._obsolete += torn(file)
        self._thread: threading.Thread | None = None
        self.trouble: str | None = None
        self._told = False

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def keep(self, facts: Mapping[str, Any], arrays: Arrays, wait: bool) -> None:
        """Write a checkpoint; wait : return only once it is on disk."""
        self.wait()
        self._number += 1
        path = self._file.with_name(f"{base(self._file)}.checkpoint-{self._number:06d}")
        self._thread = threading.Thread(target=self._write, args=(path, facts, arrays), daemon=True)
        self._thread.start()
        if wait:
            self.wait()

    def _write(self, path: Path, facts: Mapping[str, Any], arrays: Arrays) -> None:
        try:
            self._before(facts)
            write(path, facts, arrays)
            self.trouble = None
            while self._obsolete:
                self._obsolete.pop().unlink(missing_ok=True)
            for old in of_run(self._file)[:-KEPT]:
                old.unlink(missing_ok=True)
        except Exception as error:  # the run continues after any error
            self.trouble = f"{path.name} could not be written: {error}"

    def wait(self) -> None:
        """Wait until nothing is being written; report an error once."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            if self.trouble is not None and not self._told:
                say(f"{self.trouble}; the checkpoints before it are kept", CheckpointWarning)
            self._told = self.trouble is not None
