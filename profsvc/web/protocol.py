"""The server's end of a connection, with the deadlines that uvicorn lacks.

A connection that has not sent the head of a request in time is cut, and so is one that was closed and whose client
does not take what is left. Where more connections stand than the process may hold, the one that has waited longest
for its head goes first: a thousand that say nothing do not keep out one that asks.
"""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD = 64 << 10
LINGER_SECONDS = 5.0
UNTAKEN_MS = 60_000
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Patient(HttpToolsProtocol):
    """A connection that is waited for, but not for ever."""

    header_seconds = 10.0
    most_connections = 800
    look_seconds = 1.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Begin to wait."""
        super().connection_made(transport)
        self.waiting_since: float | None = self.loop.time()
        self.closing_since: float | None = None
        self.head_bytes = 0
        self.is_over = False
        line = transport.get_extra_info("socket")
        if line is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNTAKEN_MS)
        self._make_room()
        self.loop.call_later(self.look_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """End to look."""
        self.is_over = True
        super().connection_lost(exc)

    def _make_room(self) -> None:
        """Cut the connection that has waited longest for a head, where there are too many."""
        if len(self.connections) <= self.most_connections:
            return
        waiting = [one for one in self.connections if isinstance(one, Patient) and one.waits()]
        if waiting:
            min(waiting, key=lambda one: one.waiting_since or 0.0).cut()

    def waits(self) -> bool:
        """Tell whether it is waited for the head of a request."""
        return self.waiting_since is not None and (self.cycle is None or self.cycle.response_complete)

    def cut(self) -> None:
        """End the connection, whatever is under way."""
        self.waiting_since = None
        self.connections.discard(self)
        line = self.transport.get_extra_info("socket")
        if line is not None:  # what it did not take is not kept for it by the system either
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _look(self) -> None:
        if self.is_over:
            return
        now = self.loop.time()
        if self.transport.is_closing():
            self.closing_since = self.closing_since or now
            if now - self.closing_since >= LINGER_SECONDS:
                self.cut()
                return
        elif self.waits() and now - (self.waiting_since or now) >= self.header_seconds:
            self.cut()
            return
        self.loop.call_later(self.look_seconds, self._look)

    def data_received(self, data: bytes) -> None:
        """Read on; the head of a request has an end."""
        super().data_received(data)
        if self.waits():
            self.head_bytes += len(data)
            if self.head_bytes > MOST_HEAD and not self.transport.is_closing():
                self.transport.write(TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Begin to wait for the head."""
        super().on_message_begin()
        self.waiting_since, self.head_bytes = self.loop.time(), 0

    def on_headers_complete(self) -> None:
        """End to wait for it."""
        self.waiting_since = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since, self.head_bytes = self.loop.time(), 0
        super().on_response_complete()


def patient(header_seconds: float, most_connections: int) -> type[Patient]:
    """Return the kind of connection with these limits."""
    limits: dict[str, Any] = {"header_seconds": header_seconds, "most_connections": most_connections}
    return type("PatientWithLimits", (Patient,), limits)
