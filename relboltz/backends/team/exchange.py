"""How workers give each other parts of arrays: one small interface, and its version for threads.

All workers do the same swaps in the same order. Each swap begins with a word from everybody, so
that a worker who cannot go on is heard by all others at their next swap and nobody waits for ever.
"""

import itertools
import queue
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...util.errors import RelboltzError

GO, GIVEN_UP = 1, 2
Anything = NDArray[Any]


class ExchangeAborted(RelboltzError):
    """Another worker gave up."""


class WorkerLost(RelboltzError):
    """Another worker is gone."""


class Exchange(Protocol):
    """What a worker has of the others."""

    rank: int
    size: int
    waited: float
    """Seconds spent in it."""

    def swap(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Give part k to worker k, and fill room k with what it gives; nothing to oneself."""

    def agree(self) -> None:
        """Wait until all are here; raises Broken if one of them gave up."""

    def give_up(self) -> None:
        """Tell all others that this worker cannot go on."""

    def close(self) -> None:
        """There will be no further swap."""


class ExchangeBase:
    """What all versions share: words first, then arrays, and a clock."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size, self.waited = rank, size, 0.0
        self.others = [k for k in range(size) if k != rank]

    def swap(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Give part k to worker k, and fill room k with what it gives."""
        self._timed(GO)
        began = time.perf_counter()
        self._bodies(parts, rooms)
        self.waited += time.perf_counter() - began

    def agree(self) -> None:
        """Wait until all are here."""
        self._timed(GO)

    def give_up(self) -> None:
        """Tell all others."""
        self._words(GIVEN_UP)

    def close(self) -> None:
        """Nothing is held."""

    def _timed(self, word: int) -> None:
        began = time.perf_counter()
        description = self._words(word)
        self.waited += time.perf_counter() - began
        if GIVEN_UP in description:
            raise ExchangeAborted("another worker gave up")

    def _words(self, word: int) -> list[int]:
        """Say a word to all others, and hear theirs."""
        raise NotImplementedError

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Arrays for all others, and theirs."""
        raise NotImplementedError


class ThreadExchange(ExchangeBase):
    """Among threads of one process; made by ``among``."""

    def __init__(self, rank: int, ways: list[list["queue.SimpleQueue[Any]"]]):
        super().__init__(rank, len(ways))
        self._ways = ways

    @classmethod
    def among(cls, size: int) -> list["ThreadExchange"]:
        """One for each of so many threads."""
        ways: Any = [[queue.SimpleQueue() for _ in range(size)] for _ in range(size)]
        return [cls(rank, ways) for rank in range(size)]

    def _words(self, word: int) -> list[int]:
        for k in self.others:
            self._ways[self.rank][k].put(word)
        return [self._ways[k][self.rank].get() for k in self.others]

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        for k in self.others:
            self._ways[self.rank][k].put(parts[k].copy())  # its owner may go on with it
        for k in self.others:
            rooms[k][...] = self._ways[k][self.rank].get().reshape(rooms[k].shape)


# --- what is made of swaps ----------------------------------------------------------------------


def gathered(exchange: Exchange, mine: Anything, rooms: Sequence[Anything]) -> None:
    """Give one array to all, and fill the rooms with theirs; one's own is copied."""
    mine = np.ascontiguousarray(mine)
    exchange.swap([mine] * exchange.size, rooms)
    rooms[exchange.rank][...] = mine.reshape(rooms[exchange.rank].shape)


def concatenated(exchange: Exchange, mine: Anything, lengths: Sequence[int]) -> Anything:
    """Rows of all workers, one after the other; lengths : how many rows each of them has."""
    rooms = [np.empty((n, *mine.shape[1:]), mine.dtype) for n in lengths]
    gathered(exchange, mine, rooms)
    return np.concatenate(rooms)


def bounds(count: int, size: int) -> list[int]:
    """Where the parts of range(count) begin that so many workers get, and the end."""
    return [count * k // size for k in range(size + 1)]


def total(exchange: Exchange, mine: Anything) -> Anything:
    """The sum of whole numbers of all workers: everybody adds up one part, and gives it to all."""
    flat = np.ascontiguousarray(mine).reshape(-1)
    edge = bounds(flat.size, exchange.size)
    own = slice(edge[exchange.rank], edge[exchange.rank + 1])
    rooms = [np.empty(own.stop - own.start, flat.dtype) for _ in range(exchange.size)]
    exchange.swap([flat[a:b] for a, b in itertools.pairwise(edge)], rooms)
    result = np.empty_like(flat)
    np.add(flat[own], 0, out=result[own])
    for k, room in enumerate(rooms):
        if k != exchange.rank:
            result[own] += room
    parts = [result[a:b] for a, b in itertools.pairwise(edge)]
    exchange.swap([parts[exchange.rank]] * exchange.size, parts)
    return result.reshape(mine.shape)
