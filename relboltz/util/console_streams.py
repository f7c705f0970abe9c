"""Standard output and standard error that may be full, closed, or a pipe that nobody reads."""

import contextlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class FailSafeStream:
    """A stream whose failure stops nothing: it is kept in ``error``, and what follows is dropped.

    stream : None for one that was closed before we started
    """

    def __init__(self, stream: Any):
        self._stream = stream
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def isatty(self) -> bool:
        """Whether somebody watches."""
        return bool(self._try("isatty"))

    def write(self, text: str) -> int:
        """Write text; characters that the stream does not know as \\x.. and the like."""
        if not isinstance(text, str):  # some find out so what a stream takes
            raise TypeError(f"text is wanted, not {type(text).__name__}")
        try:
            self._try("write", text)
        except UnicodeError:
            known = self._stream.encoding or "ascii"
            self._try("write", text.encode(known, "backslashreplace").decode(known))
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write several."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Bring out what waits."""
        self._try("flush")

    def _try(self, name: str, *arguments: Any) -> Any:
        if self._stream is None or self.error is not None:
            return None
        try:
            return getattr(self._stream, name)(*arguments)
        except UnicodeError:
            raise
        except (OSError, ValueError) as error:  # ValueError: it was closed
            self.error = error
            return None

    def give_up(self) -> None:
        """What still waits in a stream that failed goes nowhere; Python would complain of it."""
        if self.error is not None:
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self._stream.fileno())


@contextmanager
def steady() -> Iterator[None]:
    """Within it, nothing that is printed can fail."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        pass  # a file that we write must not become standard error because that was closed
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
