"""Exclusive access to an output F.nc: a process locks F.lock beside it until it ends."""

import contextlib
import errno
import os
from pathlib import Path

from ..util.errors import CheckpointWarning, InputError, say

REFUSED = {
    errno.EACCES: "belongs to another user, or its folder may not be written",
    errno.EPERM: "belongs to another user",
    errno.ELOOP: "is a symbolic link",
    errno.EISDIR: "is a folder",
}
"""Reasons why a lock file cannot be opened although another run may be writing the output."""
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
"""Errors of file systems that do not support locks."""


def base(file: Path) -> str:
    """Return the common prefix of all files of an output: F for F.nc, else the whole name."""
    return file.stem if file.suffix == ".nc" else file.name


def is_taken(file: Path) -> bool:
    """Whether a process has locked an output; True if the system cannot tell."""
    try:
        import fcntl

        handle = os.open(file.with_name(f"{base(file)}.lock"), os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except (ImportError, OSError):
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


class Reservation:
    """Exclusive right to write an output and the files beside it."""

    def __init__(self, file: Path):
        self._file, self._path = file, file.with_name(f"{base(file)}.lock")
        self._handle: int | None = None

    def take(self) -> None:
        """Lock the output; warn where the system or the disk does not support locks.

        Raises
        ------
        InputError : another process holds the lock, or the lock file cannot be opened
        """
        if self._handle is not None:
            return
        try:
            import fcntl
        except ImportError:  # not available on every system
            return
        try:
            while self._handle is None:
                handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    if os.path.samestat(os.fstat(handle), os.stat(self._path)):
                        self._handle = handle
                except BlockingIOError:
                    raise InputError(
                        f"{self._file}: another process is at this run ({self._path.name}); wait "
                        "for it to end, or use another file"
                    ) from None
                except FileNotFoundError:  # the previous owner has just ended
                    pass
                finally:
                    if self._handle is None:
                        os.close(handle)
        except OSError as error:
            self._explain(error)

    def _explain(self, error: OSError) -> None:
        """Refuse the output, or only warn, depending on why it could not be locked."""
        if error.errno in REFUSED:
            raise InputError(
                f"{self._path} {REFUSED[error.errno]} ({error.strerror}), so that it is unknown "
                "whether another run is writing this output; use another file, or, if there is no "
                f"such run, remove {self._path.name}"
            ) from None
        why = "cannot be locked" if error.errno in NO_LOCKS else "could not be made"
        say(
            f"{self._path} {why} ({error.strerror or error}): a second run is not prevented from "
            f"writing {self._file.name} too; start only one, or use another disk",
            CheckpointWarning,
        )

    def free(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._handle)
            self._handle = None
