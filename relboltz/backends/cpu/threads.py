"""Host threads that share pieces of work."""

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np

from ...util.errors import Halted

PARTS_PER_THREAD = 8


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Threads:
    """Threads that take the next piece of work when they are free.

    Callers must ensure that the result does not depend on which thread does which piece.
    """

    def __init__(self, count: int = 0):
        self.count = count or available_cores()
        self.interrupt: object = False
        """Once true, the work in progress is abandoned and Halted raised."""
        self.pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def parts(self, count: int) -> list[tuple[int, int]]:
        """Split range(count) into consecutive parts, several for each thread."""
        parts = max(1, min(count, PARTS_PER_THREAD * self.count))
        bounds = np.linspace(0, count, parts + 1).astype(int).tolist()
        return list(itertools.pairwise(bounds))

    def each(self, work: Callable[[int, int], None], count: int) -> None:
        """Call work(first, last) for parts of range(count)."""
        parts = self.parts(count)
        self.share(lambda thread, part: work(*parts[part]), len(parts))

    def share(self, work: Callable[[int, int], None], count: int) -> None:
        """Call work(thread, item) for all items of range(count)."""
        counter = itertools.count()
        failed = threading.Event()

        def worker(thread: int) -> None:
            try:
                for item in iter(counter.__next__, None):
                    if item >= count or failed.is_set():
                        return
                    if self.interrupt:
                        raise Halted
                    work(thread, item)
            except BaseException:
                failed.set()  # the other threads can stop
                raise

        if self.pool is None or count == 1:
            worker(0)
            return
        futures = [self.pool.submit(worker, thread) for thread in range(min(count, self.count))]
        try:
            for done in futures:
                done.result()
        finally:
            failed.set()
            wait(futures)
