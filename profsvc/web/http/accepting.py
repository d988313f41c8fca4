"""Accepting connections in several processes of one socket, so that each gets as many.

A browser keeps its connections, so who accepts one answers all its requests. The system wakes every idle process for a
new connection, and the first may take all that wait: of 64, one process would have 45 and more.
"""

import asyncio
import mmap
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

DEFER_S = 0.01
"""Time that a process with more connections than another one leaves a new one to the others."""
RETRY_S = 1.0
"""Pause after the system had no room for another connection."""
_COUNT = struct.Struct("q")


class ConnectionCounts:
    """How many connections each process of a service has, in memory that they share: 0 is that of one not running."""

    def __init__(self, file: Path, processes: int, place: int) -> None:
        """Share ``file`` with the others; this process has the number ``place``."""
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.ftruncate(handle, processes * _COUNT.size)
            self._counts = mmap.mmap(handle, processes * _COUNT.size)
        finally:
            os.close(handle)
        self._place = place
        self.tell(0)

    def tell(self, connections: int) -> None:
        """Tell the others how many this process has."""
        _COUNT.pack_into(self._counts, self._place * _COUNT.size, connections + 1)

    def is_ahead(self) -> bool:
        """Tell whether another process that runs has fewer."""
        counts = [count for (count,) in _COUNT.iter_unpack(self._counts[:])]
        return any(0 < count < counts[self._place] for count in counts)


def forget(file: Path, place: int) -> None:
    """Let no process wait for one that ended."""
    with suppress(FileNotFoundError), file.open("r+b") as counts:
        counts.seek(place * _COUNT.size)
        counts.write(_COUNT.pack(0))


class Acceptor:
    """Accepts the connections of a socket, one at a time; like a server of asyncio, it is closed."""

    def __init__(self, line: socket.socket, protocol: Callable[[], asyncio.Protocol], counts: ConnectionCounts) -> None:
        """Begin; ``protocol`` makes one for a connection, and tells ``counts`` of it."""
        line.setblocking(False)
        self._line, self._protocol, self._counts = line, protocol, counts
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._opening = set[asyncio.Task[object]]()
        self._loop.add_reader(line, self._on_connection)

    def close(self) -> None:
        """Accept nothing more."""
        self._loop.remove_reader(self._line)
        if self._later is not None:
            self._later.cancel()

    async def wait_closed(self) -> None:
        """Wait for connections that were accepted and are not open yet."""
        if self._opening:
            await asyncio.wait(self._opening)

    def _on_connection(self) -> None:
        if self._counts.is_ahead():
            self._pause(DEFER_S)
        else:
            self._accept()

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._line)
        self._later = self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        """Go on, and take a connection that the others left."""
        self._loop.add_reader(self._line, self._on_connection)
        self._accept()

    def _accept(self) -> None:
        try:
            accepted, _ = self._line.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError:  # no more files or memory
            self._pause(RETRY_S)
            return
        accepted.setblocking(False)
        opening = self._loop.create_task(self._loop.connect_accepted_socket(self._protocol, accepted))
        self._opening.add(opening)
        opening.add_done_callback(self._opened)

    def _opened(self, opening: "asyncio.Task[object]") -> None:
        self._opening.discard(opening)
        if not opening.cancelled():
            opening.exception()  # a client may be gone already
