"""Exchange between the processes started by mpirun; only imported if mpi4py is installed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .exchange import Anything, ExchangeBase

PIECE = 2**30
"""Largest message in bytes: some libraries count in 31 bits."""


class MpiExchange(ExchangeBase):
    """Exchange between the processes of a communicator."""

    def __init__(self, communicator: Any):
        super().__init__(communicator.Get_rank(), communicator.Get_size())
        self._comm = communicator.Dup()

    def close(self) -> None:
        """Close the exchange; a collective call of all processes."""
        self._comm.Free()

    def _words(self, word: int) -> list[int]:
        statuses = np.empty(self.size, np.uint8)
        self._comm.Allgather(np.full(1, word, np.uint8), statuses)
        return [int(statuses[k]) for k in self.others]

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        from mpi4py import MPI

        waiting = []
        for k in self.others:
            waiting += [self._comm.Irecv([piece, MPI.BYTE], k) for piece in pieces(rooms[k])]
        for k in self.others:
            waiting += [self._comm.Isend([piece, MPI.BYTE], k) for piece in pieces(parts[k])]
        MPI.Request.Waitall(waiting)


def pieces(array: Anything) -> list[Any]:
    """Split the bytes of an array into messages."""
    if not array.flags.c_contiguous:
        raise RuntimeError("only contiguous arrays can be swapped")

    flat = array.reshape(-1).view(np.uint8)
    return [flat[first : first + PIECE] for first in range(0, flat.size, PIECE)]
