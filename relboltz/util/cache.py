"""Compiled code on disk: in a folder that is the user's alone, in files that are whole or ignored.

Compiled code is read and run, so whoever can write it decides what we do. Folders that others own
or can write are refused, and so are such files. A file has the digest of what follows it; one that
was cut short or altered is made anew. There is one file for each function and each kind of
arguments, written beside its place and renamed: processes share the folder without a lock.
Whatever goes wrong with the disk, a run goes on; it only compiles again next time.
"""

import hashlib
import os
import pickle
import stat
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from .errors import CacheWarning, say

DIGEST = hashlib.sha256().digest_size
Function = Callable[..., Any]


def home() -> Path:
    """Of the user; an empty or relative HOME is ignored."""
    if os.name == "posix" and not os.path.isabs(os.environ.get("HOME", "/")):
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path.home()


def found(name: str) -> tuple[Path, str | None]:
    """The folder for compiled code of this name, and why it cannot be used.

    XDG_CACHE_HOME says where, unless it is relative: its specification wants it so.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path("~", ".cache")
    try:
        folder = Path(given) if os.path.isabs(given) else home() / ".cache"
        folder = (folder / "relboltz" / name).resolve()
        _make(folder)
        reason = _trouble(folder)
        if reason is None:
            tempfile.TemporaryFile(dir=folder).close()
        return folder, reason
    except (OSError, RuntimeError, KeyError) as error:  # no home, or one that cannot be written
        return folder, f"{folder}: {_words(error)}; make room, or set XDG_CACHE_HOME to a folder"


def _make(folder: Path) -> None:
    """A folder and those above it, for the user alone."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(0o700, exist_ok=True)


def _trouble(folder: Path) -> str | None:
    """Who else could put files into a folder, or another one in its place, and the remedy."""
    if not hasattr(os, "geteuid"):  # Windows: a profile is private
        return None
    for place in (folder, *folder.parents):
        status = place.stat()
        if status.st_uid not in _trusted():
            return f"{place} belongs to another user; set XDG_CACHE_HOME to a folder of your own"
        kept = place != folder and status.st_mode & stat.S_ISVTX  # only owners rename within it
        if status.st_mode & 0o022 and not kept:
            return (
                f"others can write {place}; delete {folder.parent} and chmod go-w {place}, or set "
                "XDG_CACHE_HOME to a folder of your own"
            )
    return None


def _trusted() -> set[int]:
    """Users who may own our files: we, root, and whoever stands for root in a container."""
    return {os.geteuid(), 0, os.stat("/").st_uid}


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


# --- files --------------------------------------------------------------------------------------


def read(path: Path) -> bytes | None:
    """A file that nobody else could have written; None if there is no such file."""
    try:
        with open(path, "rb") as handle:
            status = os.fstat(handle.fileno())
            safe = not hasattr(os, "geteuid") or (
                status.st_uid in _trusted() and not status.st_mode & 0o022
            )
            return handle.read() if safe else None
    except OSError:
        return None


def write(path: Path, data: bytes) -> None:
    """A whole file or none, readable by the user alone."""
    handle, name = tempfile.mkstemp(".part", path.name, path.parent)
    try:
        with open(handle, "wb") as part:
            part.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def sealed(data: bytes) -> bytes:
    """With its digest in front."""
    return hashlib.sha256(data).digest() + data


def opened(data: bytes | None) -> bytes | None:
    """What was sealed; None if it was altered since."""
    if data is None or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
        return None
    return data[DIGEST:]


def _plain(key: Any) -> Any:
    """A key whose named tuples are plain ones: they are equal, and so must their names be."""
    return tuple(map(_plain, key)) if isinstance(key, tuple) else key


class CachedFunction:
    """The compiled code of one function, by key; Numba asks it to ``load`` and to ``save``."""

    def __init__(self, function: Function, folder: Callable[[], Path | None], pack: Any):
        self._folder, self._pack = folder, pack
        self._identity = (
            function.__module__,
            function.__qualname__,
            function.__code__.co_firstlineno,
        )
        self.name = f"{function.__module__.split('.')[-1]}.{function.__name__}"

    def _path(self, folder: Path, key: Any) -> Path:
        digest = hashlib.sha256(repr((self._identity, _plain(key))).encode()).hexdigest()
        return folder / f"{self.name}-{digest[:32]}.nbc"

    def load(self, key: Any) -> Any:
        """What was saved with this key; None if nothing was, or nothing whole."""
        folder = self._folder()
        data = None if folder is None else opened(read(self._path(folder, key)))
        if data is None:
            return None
        known, payload = pickle.loads(data)
        return payload if known == key else None

    def save(self, key: Any, payload: Any) -> None:
        """Keep it if the disk lets us."""
        folder = self._folder()
        if folder is None:
            return
        try:
            write(self._path(folder, key), sealed(self._pack((key, payload))))
        except OSError as error:
            tell(f"{folder}: {_words(error)}; make room, or set XDG_CACHE_HOME to another folder")


@cache
def kept(kind: Any, folder: Callable[[], Path | None]) -> Any:
    """One of Numba's caches, of CPU or of CUDA code, that keeps it in our files.

    kind : class of the cache
    folder : where files are; asked when the first is wanted
    """

    class CodePacking(kind._impl_class):  # type: ignore[misc]
        """How code is packed, as Numba does it; where, is not for Numba to choose."""

        def __init__(self, function: Function):
            self._lineno, self._py_file = function.__code__.co_firstlineno, __file__
            self._filename_base = f"{function.__module__}.{function.__qualname__}"
            self._locator = self

        def get_cache_path(self) -> str:
            return os.devnull  # nothing can be written beneath it

        def get_source_stamp(self) -> None:
            """Sources are in the name of the folder."""

        def ensure_cache_path(self) -> None:
            """It is there, or nothing is kept."""

    class FailSafeCache(kind):  # type: ignore[misc]
        """A function's cache that never stops a run."""

        _impl_class = CodePacking

        def __init__(self, function: Function):
            super().__init__(function)
            numbas: Any = vars(self)["_cache_file"]
            self._cache_file = CachedFunction(function, folder, numbas._dump)

        def load_overload(self, signature: Any, context: Any) -> Any:
            """Compiled code; None if it must be compiled."""
            try:
                return super().load_overload(signature, context)
            except Exception:  # it is compiled instead
                return None

        def save_overload(self, signature: Any, code: Any) -> None:
            """Keep compiled code."""
            try:
                super().save_overload(signature, code)
            except Exception as error:
                tell(f"{_words(error)} ({self._cache_file.name})")

    return FailSafeCache


_told: list[str] = []


def tell(reason: str) -> None:
    """That compiled code is not kept, and what to do; once in a process."""
    if not _told:
        _told.append(reason)
        text = f"compiled code is not kept, and every start compiles anew: {reason}"
        say(text, CacheWarning)


def state(folder: Path | None) -> str:
    """Where compiled code is, in words."""
    if folder is None:
        return f"not kept: {_told[0]}" if _told else "not kept"
    files = [entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(".nbc")]
    return f"{folder} ({len(files)} files, {sum(files) / 2**20:.0f} MiB)"
