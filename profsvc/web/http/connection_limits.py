"""Connections with the deadlines that uvicorn lacks.

A connection is aborted if the head of a request does not arrive in time, or if its client does not read the rest after
a close. With too many connections, the one that has waited longest for a head is aborted first, so that idle
connections cannot block the service.
"""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 << 10
LINGER_SECONDS = 5.0
UNREAD_TIMEOUT_MS = 60_000
HEAD_TOO_LARGE_RESPONSE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)


class DeadlineProtocol(HttpToolsProtocol):
    """A connection with deadlines for the head of a request and for the close."""

    header_seconds = 10.0
    max_connections = 800
    check_interval_s = 1.0

    @staticmethod
    def count_changed(_connections: int, /) -> None:
        """Hear how many connections there are now; who wants to know replaces it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        """Start the deadlines."""
        super().connection_made(transport)
        self.waiting_since: float | None = self.loop.time()
        self.closing_since: float | None = None
        self.head_bytes = 0
        self.is_over = False
        line = transport.get_extra_info("socket")
        if line is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_TIMEOUT_MS)
        self._drop_longest_waiting()
        self.count_changed(len(self.connections))
        self.loop.call_later(self.check_interval_s, self._check_deadlines)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop checking the deadlines."""
        self.is_over = True
        super().connection_lost(exc)
        self.count_changed(len(self.connections))

    def _drop_longest_waiting(self) -> None:
        """Abort the connection that has waited longest for a head, if there are too many."""
        if len(self.connections) <= self.max_connections:
            return
        waiting = [one for one in self.connections if isinstance(one, DeadlineProtocol) and one.awaits_head()]
        if waiting:
            min(waiting, key=lambda one: one.waiting_since or 0.0).abort()

    def awaits_head(self) -> bool:
        """Tell whether the connection waits for the head of a request."""
        return self.waiting_since is not None and (self.cycle is None or self.cycle.response_complete)

    def abort(self) -> None:
        """Abort the connection."""
        self.waiting_since = None
        self.connections.discard(self)
        line = self.transport.get_extra_info("socket")
        if line is not None:  # discard unsent data
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _check_deadlines(self) -> None:
        if self.is_over:
            return
        now = self.loop.time()
        if self.transport.is_closing():
            self.closing_since = self.closing_since or now
            if now - self.closing_since >= LINGER_SECONDS:
                self.abort()
                return
        elif self.awaits_head() and now - (self.waiting_since or now) >= self.header_seconds:
            self.abort()
            return
        self.loop.call_later(self.check_interval_s, self._check_deadlines)

    def data_received(self, data: bytes) -> None:
        """Read data; limit the size of the head of a request."""
        super().data_received(data)
        if self.awaits_head():
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self.transport.write(HEAD_TOO_LARGE_RESPONSE)
                self.transport.close()

    def on_message_begin(self) -> None:
        """Start the deadline of the head."""
        super().on_message_begin()
        self.waiting_since, self.head_bytes = self.loop.time(), 0

    def on_headers_complete(self) -> None:
        """Stop the deadline of the head."""
        self.waiting_since = None
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self.waiting_since, self.head_bytes = self.loop.time(), 0
        super().on_response_complete()


def protocol_with_limits(header_seconds: float, max_connections: int) -> type[DeadlineProtocol]:
    """Return a connection class with these limits."""
    limits: dict[str, Any] = {"header_seconds": header_seconds, "max_connections": max_connections}
    return type("DeadlineProtocolWithLimits", (DeadlineProtocol,), limits)
