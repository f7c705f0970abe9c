"""Communication between workers: a small interface and its implementation for threads.

All workers do the same swaps in the same order. Each swap begins with a status word from every
worker, so that a failing worker is noticed by all others at their next swap and no worker waits
for ever.
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
    """Another worker failed and ended the exchange."""


class WorkerLost(RelboltzError):
    """Another worker died or cannot be reached."""


class Exchange(Protocol):
    """A worker's connection to the other workers."""

    rank: int
    size: int
    waited: float
    """Seconds spent communicating."""

    def swap(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Send part k to worker k and receive its part into room k; skip the own rank."""

    def agree(self) -> None:
        """Wait for all workers; raise ExchangeAborted if one of them gave up."""

    def give_up(self) -> None:
        """Notify all other workers that this worker cannot continue."""

    def close(self) -> None:
        """Close the exchange; no further swaps are possible."""


class ExchangeBase:
    """Base class of all exchanges: status words first, then arrays, with timing."""

    def __init__(self, rank: int, size: int):
        self.rank, self.size, self.waited = rank, size, 0.0
        self.others = [k for k in range(size) if k != rank]

    def swap(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Send part k to worker k and receive its part into room k."""
        self._timed(GO)
        began = time.perf_counter()
        self._bodies(parts, rooms)
        self.waited += time.perf_counter() - began

    def agree(self) -> None:
        """Wait for all workers; raise ExchangeAborted if one of them gave up."""
        self._timed(GO)

    def give_up(self) -> None:
        """Notify all other workers that this worker cannot continue."""
        self._words(GIVEN_UP)

    def close(self) -> None:
        """Do nothing: there are no connections to close."""

    def _timed(self, word: int) -> None:
        began = time.perf_counter()
        statuses = self._words(word)
        self.waited += time.perf_counter() - began
        if GIVEN_UP in statuses:
            raise ExchangeAborted("another worker gave up")

    def _words(self, word: int) -> list[int]:
        """Send a status word to all other workers and return theirs."""
        raise NotImplementedError

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        """Send arrays to all other workers and receive theirs."""
        raise NotImplementedError


class ThreadExchange(ExchangeBase):
    """Exchange between threads of one process, created by ``among``."""

    def __init__(self, rank: int, ways: list[list["queue.SimpleQueue[Any]"]]):
        super().__init__(rank, len(ways))
        self._ways = ways

    @classmethod
    def among(cls, size: int) -> list["ThreadExchange"]:
        """Create the exchanges of ``size`` threads."""
        ways: Any = [[queue.SimpleQueue() for _ in range(size)] for _ in range(size)]
        return [cls(rank, ways) for rank in range(size)]

    def _words(self, word: int) -> list[int]:
        for k in self.others:
            self._ways[self.rank][k].put(word)
        return [self._ways[k][self.rank].get() for k in self.others]

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        for k in self.others:
            self._ways[self.rank][k].put(parts[k].copy())  # the owner may change the original
        for k in self.others:
            rooms[k][...] = self._ways[k][self.rank].get().reshape(rooms[k].shape)


# --- operations built from swaps ----------------------------------------------------------------


def gathered(exchange: Exchange, mine: Anything, rooms: Sequence[Anything]) -> None:
    """Gather one array of every worker into ``rooms`` on all workers."""
    mine = np.ascontiguousarray(mine)
    exchange.swap([mine] * exchange.size, rooms)
    rooms[exchange.rank][...] = mine.reshape(rooms[exchange.rank].shape)


def concatenated(exchange: Exchange, mine: Anything, lengths: Sequence[int]) -> Anything:
    """Return the rows of all workers, concatenated; lengths : number of rows of each worker."""
    rooms = [np.empty((n, *mine.shape[1:]), mine.dtype) for n in lengths]
    gathered(exchange, mine, rooms)
    return np.concatenate(rooms)


def bounds(count: int, size: int) -> list[int]:
    """Return the bounds that split range(count) evenly among ``size`` workers."""
    return [count * k // size for k in range(size + 1)]


def total(exchange: Exchange, mine: Anything) -> Anything:
    """Return the sum of integers of all workers: each adds up one part and sends it to all."""
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
