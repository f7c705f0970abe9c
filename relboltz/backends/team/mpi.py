"""An exchange among the processes that mpirun started; nothing here is imported without mpi4py."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .exchange import Anything, ExchangeBase

PIECE = 2**30
"""Bytes of a message: some libraries count in 31 bits."""


class MpiExchange(ExchangeBase):
    """Among the processes of a communicator."""

    def __init__(self, communicator: Any):
        super().__init__(communicator.Get_rank(), communicator.Get_size())
        self._comm = communicator.Dup()

    def close(self) -> None:
        """There will be no further swap; all do so together."""
        self._comm.Free()

    def _words(self, word: int) -> list[int]:
        description = np.empty(self.size, np.uint8)
        self._comm.Allgather(np.full(1, word, np.uint8), description)
        return [int(description[k]) for k in self.others]

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        from mpi4py import MPI

        waiting = []
        for k in self.others:
            waiting += [self._comm.Irecv([piece, MPI.BYTE], k) for piece in pieces(rooms[k])]
        for k in self.others:
            waiting += [self._comm.Isend([piece, MPI.BYTE], k) for piece in pieces(parts[k])]
        MPI.Request.Waitall(waiting)


def pieces(array: Anything) -> list[Any]:
    """The bytes of an array, in messages."""
    if not array.flags.c_contiguous:
        raise RuntimeError("only arrays without gaps can be swapped")
    flat = array.reshape(-1).view(np.uint8)
    return [flat[first : first + PIECE] for first in range(0, flat.size, PIECE)]
