"""Exchange between processes on one or more machines, with a socket for every pair."""

import contextlib
import hmac
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .exchange import Anything, ExchangeBase, WorkerLost

PIECE = 2**20
"""Bytes passed to the operating system at once."""
KNOCK_SECONDS = 60.0
"""Seconds that workers wait for each other when they connect."""
TOKEN_BYTES = 16
Address = tuple[str, int]


def listen(host: str = "") -> socket.socket:
    """Open a listening socket; ``getsockname()`` gives its address."""
    try:
        return socket.create_server((host, 0), backlog=256)
    except OSError:  # the machine itself does not know this address
        return socket.create_server(("", 0), backlog=256)


class SocketExchange(ExchangeBase):
    """Exchange between processes over sockets."""

    def __init__(
        self, rank: int, addresses: Sequence[Address], listener: socket.socket, token: bytes
    ):
        """addresses : listening address of each worker; token : secret shared by the workers"""
        super().__init__(rank, len(addresses))
        self._to: dict[int, socket.socket] = {}
        until = time.monotonic() + KNOCK_SECONDS
        try:
            for k in range(rank):
                self._to[k] = _knock(addresses[k], token, rank, until)
            while len(self._to) < self.size - 1:
                self._welcome(listener, token, until)
        except OSError as error:
            self.close()
            raise WorkerLost(f"the workers cannot connect to each other: {error}") from None
        finally:
            listener.close()
        for connection in self._to.values():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.setblocking(False)

    def _welcome(self, listener: socket.socket, token: bytes, until: float) -> None:
        """Accept a connection if the peer knows the token."""
        listener.settimeout(max(until - time.monotonic(), 0.01))
        connection, _ = listener.accept()
        connection.settimeout(5.0)
        with contextlib.suppress(OSError):
            said = _exactly(connection, TOKEN_BYTES + 4)
            if hmac.compare_digest(said[:TOKEN_BYTES], token):
                self._to[int.from_bytes(said[TOKEN_BYTES:], "big")] = connection
                return
        connection.close()

    def leave(self) -> None:
        """Shut down all connections, which ends pending swaps here and in the other workers.

        The sockets are closed only later: closing a socket would not wake a thread waiting on it.
        """
        for connection in self._to.values():
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close all connections; no further swaps are possible."""
        self.leave()
        for connection in self._to.values():
            connection.close()

    def _words(self, word: int) -> list[int]:
        mine = np.full(1, word, np.uint8)
        theirs = {k: np.zeros(1, np.uint8) for k in self.others}
        self._move({k: mine for k in self.others}, theirs)
        return [int(theirs[k][0]) for k in self.others]

    def _bodies(self, parts: Sequence[Anything], rooms: Sequence[Anything]) -> None:
        self._move({k: parts[k] for k in self.others}, {k: rooms[k] for k in self.others})

    def _move(self, parts: Mapping[int, Anything], rooms: Mapping[int, Anything]) -> None:
        """Send and receive simultaneously on all connections that are ready."""
        out, into = (
            {k: _bytes(a) for k, a in parts.items()},
            {k: _bytes(a) for k, a in rooms.items()},
        )
        try:
            with selectors.DefaultSelector() as ready:
                for k in self.others:
                    wants = _wants(out[k], into[k])
                    if wants:
                        ready.register(self._to[k], wants, k)
                while ready.get_map():
                    for key, events in ready.select():
                        self._some(key.data, events, out, into)
                        wants = _wants(out[key.data], into[key.data])
                        if not wants:
                            ready.unregister(key.fileobj)
                        elif wants != key.events:
                            ready.modify(key.fileobj, wants, key.data)
        except (OSError, ValueError, KeyError) as error:  # last two: closed by another thread
            self.close()
            raise WorkerLost(f"a worker no longer answers: {error}") from None

    def _some(self, k: int, events: int, out: dict[int, Any], into: dict[int, Any]) -> None:
        """Send and receive as much as one connection allows now."""
        connection = self._to[k]
        with contextlib.suppress(BlockingIOError):
            if events & selectors.EVENT_WRITE and out[k]:
                out[k] = out[k][connection.send(out[k][:PIECE]) :]
        with contextlib.suppress(BlockingIOError):
            if events & selectors.EVENT_READ and into[k]:
                count = connection.recv_into(into[k][:PIECE])
                if count == 0:
                    raise ConnectionError("the connection was closed")
                into[k] = into[k][count:]


def _bytes(array: Anything) -> memoryview:
    """Return the memory of an array as bytes."""
    if not array.flags.c_contiguous:
        raise RuntimeError("only contiguous arrays can be swapped")
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _wants(out: memoryview, into: memoryview) -> int:
    write = selectors.EVENT_WRITE if len(out) else 0
    return write | (selectors.EVENT_READ if len(into) else 0)


def _exactly(connection: socket.socket, count: int) -> bytes:
    """Receive exactly ``count`` bytes."""
    said = b""
    while len(said) < count:
        more = connection.recv(count - len(said))
        if not more:
            raise ConnectionError("it was closed")
        said += more
    return said


def _knock(address: Address, token: bytes, rank: int, until: float) -> socket.socket:
    """Connect to a listening worker and identify with the token."""
    connection = socket.create_connection(address, max(until - time.monotonic(), 0.01))
    connection.sendall(token + rank.to_bytes(4, "big"))
    return connection
