"""Standard output and error that tolerate a full disk, a closed stream or a broken pipe."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class FailSafeStream:
    """Stream whose failure never raises: the error is kept in ``error``, later output is dropped.

    stream : None if it was closed before the program started
    """

    def __init__(self, stream: Any):
        self._stream = stream
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return bool(self._try("isatty"))

    def write(self, text: str) -> int:
        """Write text; characters that the stream cannot encode are escaped as \\x.. etc."""
        if not isinstance(text, str):  # some callers test with bytes what a stream accepts
            raise TypeError(f"text is wanted, not {type(text).__name__}")
        try:
            self._try("write", text)
        except UnicodeError:
            known = self._stream.encoding or "ascii"
            self._try("write", text.encode(known, "backslashreplace").decode(known))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush buffered output."""
        self._try("flush")

    def _try(self, name: str, *arguments: Any) -> Any:
        if self._stream is None or self.error is not None:
            return None
        try:
            return getattr(self._stream, name)(*arguments)
        except UnicodeError:
            raise
        except (OSError, ValueError) as error:  # ValueError: closed stream
            self.error = error
            return None

    def give_up(self) -> None:
        """Discard the buffer of a failed stream; otherwise Python reports an error at exit."""
        if self.error is not None:
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())


@contextmanager
def steady() -> Iterator[None]:
    """Context manager in which printing cannot fail."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # a new file must not take the descriptor of a closed standard error
    os.close(number)
    before = sys.stdout, sys.stderr
    ours = FailSafeStream(before[0]), FailSafeStream(before[1])
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in ours:
            stream.flush()
            stream.give_up()
