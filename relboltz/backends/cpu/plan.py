"""Division of the events of a step into chunks and groups of chunks, with scratch memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...events.collisions import SETS
from ...util.arrays import Array, Integers
from . import collision_events as k

Events = tuple[NDArray[np.int32], Array, Array]
"""Six cells, weight and split of every event."""
Kept = tuple[Integers, int, Events]
"""Number of events in each of several chunks, capacity of one chunk, and the events."""


def new_events(count: int) -> Events:
    """Allocate arrays for ``count`` events."""
    return np.empty((count, 6), np.int32), np.empty(count), np.empty(count)


@dataclass(frozen=True)
class ChunkGroup:
    """Consecutive chunks of one set and channel, with their first sample and sample count."""

    which: int
    """Number of the set."""
    channel: int
    first: int
    count: int
    span: slice

    @property
    def chunks(self) -> range:
        """Numbers of the chunks within all chunks of a step."""
        return range(self.span.start, self.span.stop)


class ThreadMemory:
    """Scratch memory of one thread for one chunk, and its accumulators."""

    def __init__(self, cells: int):
        self.w = np.zeros(k.ROWS * k.CHUNK)
        self.words = np.empty(4 * k.CHUNK, np.uint64)
        self.more = np.empty(4 * k.CHUNK, np.uint64)
        self.nodes = np.empty(4 * k.CHUNK, np.int64)
        self.total = np.zeros((SETS, cells), np.int64)
        self.gain = np.zeros(0, np.int64)
        self._own = new_events(0)

    def events(self, capacity: int) -> Events:
        """Return memory for the events of a group."""
        if len(self._own[1]) < capacity:
            self._own = new_events(capacity)
        legs, weights, ratios = self._own
        return legs[:capacity], weights[:capacity], ratios[:capacity]
