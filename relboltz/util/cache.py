"""Disk cache for compiled code, in a folder that only the user can write.

Compiled code is loaded and executed, so anybody who can write it controls the program. Folders and
files that others own or can write are refused. A file begins with a digest of its content;
truncated or altered files are replaced. There is one file for each function and each argument
signature, written to a temporary name and renamed: processes share the folder without a lock.
Disk errors never stop a run; the code is only compiled again next time.
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
    """Return the user's home folder; an empty or relative HOME is ignored."""
    if os.name == "posix" and not os.path.isabs(os.environ.get("HOME", "/")):
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path.home()


def found(name: str) -> tuple[Path, str | None]:
    """Return the folder for compiled code of this name, and why it cannot be used, if so.

    It lies in XDG_CACHE_HOME, unless that is relative: the specification ignores relative paths.
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
    except (OSError, RuntimeError, KeyError) as error:  # no home, or no write permission
        return folder, f"{folder}: {_words(error)}; free space or set XDG_CACHE_HOME to a folder"


def _make(folder: Path) -> None:
    """Create a folder and its parents, accessible to the user alone."""
    for place in (*reversed(folder.parents), folder):
        if not place.is_dir():
            place.mkdir(0o700, exist_ok=True)


def _trouble(folder: Path) -> str | None:
    """Say who else could write to or replace a folder, and the remedy; None if nobody."""
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
    """Return the users who may own our files: this user, root, and the owner of / in containers."""
    return {os.geteuid(), 0, os.stat("/").st_uid}


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


# --- files --------------------------------------------------------------------------------------


def read(path: Path) -> bytes | None:
    """Read a file that nobody else could have written; None if there is no such file."""
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
    """Write a file atomically, readable by the user alone."""
    handle, name = tempfile.mkstemp(".part", path.name, path.parent)
    try:
        with open(handle, "wb") as part:
            part.write(data)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def sealed(data: bytes) -> bytes:
    """Return data with its digest prepended."""
    return hashlib.sha256(data).digest() + data


def opened(data: bytes | None) -> bytes | None:
    """Return the data that was sealed; None if altered."""
    if data is None or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
        return None
    return data[DIGEST:]


def _plain(key: Any) -> Any:
    """Convert named tuples in a key to plain tuples: equal keys must have equal file names."""
    return tuple(map(_plain, key)) if isinstance(key, tuple) else key


class CachedFunction:
    """Compiled code of one function, by key; Numba calls ``load`` and ``save``."""

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
        """Return the data saved under this key; None if there is none or it is damaged."""
        folder = self._folder()
        data = None if folder is None else opened(read(self._path(folder, key)))
        if data is None:
            return None
        known, payload = pickle.loads(data)
        return payload if known == key else None

    def save(self, key: Any, payload: Any) -> None:
        """Save the data if the disk permits."""
        folder = self._folder()
        if folder is None:
            return
        try:
            write(self._path(folder, key), sealed(self._pack((key, payload))))
        except OSError as error:
            tell(f"{folder}: {_words(error)}; free space or set XDG_CACHE_HOME to another folder")


@cache
def kept(kind: Any, folder: Callable[[], Path | None]) -> Any:
    """Return a subclass of one of Numba's caches (CPU or CUDA) that uses our files.

    kind : class of the cache
    folder : returns the folder of the files; called when the first file is needed
    """

    class CodePacking(kind._impl_class):  # type: ignore[misc]
        """Numba's serialisation of code; the location is not chosen by Numba."""

        def __init__(self, function: Function):
            self._lineno, self._py_file = function.__code__.co_firstlineno, __file__
            self._filename_base = f"{function.__module__}.{function.__qualname__}"
            self._locator = self

        def get_cache_path(self) -> str:
            return os.devnull  # nothing can be written below it

        def get_source_stamp(self) -> None:
            """Return None: the folder's name already contains a hash of the sources."""

        def ensure_cache_path(self) -> None:
            """Do nothing: the folder exists, or nothing is cached."""

    class FailSafeCache(kind):  # type: ignore[misc]
        """Cache of a function that never stops a run."""

        _impl_class = CodePacking

        def __init__(self, function: Function):
            super().__init__(function)
            numbas: Any = vars(self)["_cache_file"]
            self._cache_file = CachedFunction(function, folder, numbas._dump)

        def load_overload(self, signature: Any, context: Any) -> Any:
            """Return compiled code; None if it must be compiled."""
            try:
                return super().load_overload(signature, context)
            except Exception:  # compile instead
                return None

        def save_overload(self, signature: Any, code: Any) -> None:
            """Save compiled code."""
            try:
                super().save_overload(signature, code)
            except Exception as error:
                tell(f"{_words(error)} ({self._cache_file.name})")

    return FailSafeCache


_told: list[str] = []


def tell(reason: str) -> None:
    """Warn once per process that compiled code is not kept, and say what to do."""
    if not _told:
        _told.append(reason)
        text = f"compiled code is not kept and is compiled again at every start: {reason}"
        say(text, CacheWarning)


def state(folder: Path | None) -> str:
    """Describe where compiled code is kept."""
    if folder is None:
        return f"not kept: {_told[0]}" if _told else "not kept"
    files = [entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(".nbc")]
    return f"{folder} ({len(files)} files, {sum(files) / 2**20:.0f} MiB)"
