"""Python's garbage collector rests while much is made that stays: imports, compiled code.

It would look through all of it again and again and find nothing, for a quarter of the time.
"""

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class GarbageCollectorPause:
    """The garbage collector, as several threads put it to rest."""

    def __init__(self) -> None:
        self._resting, self._works, self._lock = 0, False, threading.Lock()

    @property
    def resting(self) -> bool:
        """Whether it rests: code is being compiled or imported."""
        return self._resting > 0

    def rest(self) -> None:
        """Stop, if it works, until as many times it was told to go on."""
        with self._lock:
            if self._resting == 0:
                self._works = gc.isenabled()
                gc.disable()
            self._resting += 1

    def go_on(self) -> None:
        """Work again, if it did before it was told to rest for the first time."""
        with self._lock:
            self._resting -= 1
            if self._resting == 0 and self._works:
                gc.enable()


collector = GarbageCollectorPause()


@contextmanager
def resting() -> Iterator[None]:
    """Within it, the garbage collector rests."""
    collector.rest()
    try:
        yield
    finally:
        collector.go_on()
