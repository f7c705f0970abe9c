"""Pause Python's garbage collector while many permanent objects are created (imports, compilation).

Otherwise it scans all of them repeatedly without finding garbage, for a quarter of the time.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class GarbageCollectorPause:
    """Pause of the garbage collector shared by several threads."""

    def __init__(self) -> None:
        self._resting, self._works, self._lock = 0, False, threading.Lock()

    @property
    def resting(self) -> bool:
        """Whether the collector is paused: code is being compiled or imported."""
        return self._resting > 0

    def rest(self) -> None:
        """Pause the collector; every call needs a matching ``go_on``."""
        with self._lock:
            if self._resting == 0:
                self._works = gc.isenabled()
                gc.disable()
            self._resting += 1

    def go_on(self) -> None:
        """End one pause; after the last one restore the collector's earlier state."""
        with self._lock:
            self._resting -= 1
            if self._resting == 0 and self._works:
                gc.enable()


collector = GarbageCollectorPause()


@contextmanager
def resting() -> Iterator[None]:
    """Context manager in which the garbage collector is paused."""
    collector.rest()
    try:
        yield
    finally:
        collector.go_on()
