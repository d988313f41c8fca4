"""The outermost layer of the service, which handles every request and response.

It assigns the request id, checks host, origin and token, limits the size and duration of the body, turns every error
into the error schema, and writes one log line per request.
"""

import asyncio
import secrets
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from profsvc import store
from profsvc.errors import DISK_ERROR_CODES, ProfsvcError, ServiceError, SlowClientError, TooLargeError, disk_error
from profsvc.web.http import authorization
from profsvc.web.http.json_log import LOG
from profsvc.web.http.route_index import RouteIndex
from profsvc.web.http.state import AppState
from profsvc.web.pages.errors import error_answer

MAX_DRAIN_BYTES = 16 << 20
MAX_DRAIN_SECONDS = 5.0
DEFAULT_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cache-control": "private, no-cache",
    "vary": "Authorization, Cookie, Accept, Accept-Encoding",
}
DEFECT_MESSAGE = (
    "Internal error (nothing was partially stored). Please report it with the traceback that the "
    "log of the service has under this request_id"
)


def without_locations(error: ProfsvcError, state: AppState) -> ProfsvcError:
    """Return an error without paths and server names of the service; only its log may contain them."""
    if not isinstance(error, ServiceError):
        return error
    message = str(error)
    file = str(state.engine.url.database) if state.engine.dialect.name == "sqlite" else ""
    files = [str(Path(file).absolute()), file] if file else []
    for place in (store.address(state.engine), str(state.files.folder), *files):
        message = message.replace(place, "the store")
    return error if message == str(error) else type(error)(message)


class RequestGuard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        """Wrap ``app``."""
        self.app = app
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or return an error."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = _under_root_path(scope, self.state.root_path)
        exchange = Exchange(self.state, scope, receive, send)
        error = None
        try:
            exchange.limit_body(await self._admit(scope, exchange))
            await self.app(scope, exchange.receive, exchange.send)
        except ProfsvcError as seen:
            error = seen
        except Exception as seen:
            if isinstance(seen, OSError) and seen.errno in DISK_ERROR_CODES:
                LOG.warning("disk", extra={"fields": {"request_id": exchange.request_id, "error": str(seen)}})
                error = disk_error(seen, "the response")
            else:
                LOG.exception("defect", extra={"fields": {"request_id": exchange.request_id}})
                error = ProfsvcError(DEFECT_MESSAGE)
        finally:
            if error is not None:
                await exchange.send_error(error, scope)
            exchange.log(scope, error)

    async def _admit(self, scope: Scope, exchange: "Exchange") -> str | None:
        """Check a request; return the scope of its route."""
        headers = exchange.headers
        authorization.check_host(self.state, headers)
        authorization.check_origin(scope["method"], headers)
        application: Starlette = scope["app"]
        (index,) = application.router.routes
        assert isinstance(index, RouteIndex)
        route = authorization.route_of(index.possible(scope), scope)
        exchange.route, needed = getattr(route, "path", ""), authorization.scope_of(route)
        grant: store.Grant | None = store.FULL_ACCESS
        if needed != authorization.PUBLIC_SCOPE:
            grant = await to_thread.run_sync(authorization.grant_for, self.state, headers)
        scope["profsvc.grant"] = authorization.check_scope(needed, grant)
        scope["profsvc.request_id"] = exchange.request_id
        return needed


def _under_root_path(scope: Scope, root_path: str) -> Scope:
    """Return the scope with the root path of the proxy, whether the proxy strips it or not.

    A HEAD request is handled as GET; the server drops the body.
    """
    path = scope["path"]
    inside = path == root_path or path.startswith(f"{root_path}/")
    changed = {"root_path": root_path, "path": path if inside else root_path + path}
    return {**scope, **changed, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}


class Exchange:
    """One request and its response: bytes received, status sent, time spent."""

    def __init__(self, state: AppState, scope: Scope, receive: Receive, send: Send) -> None:
        """Start before anything is read."""
        self.state = state
        self.headers = Headers(scope=scope)
        self.request_id = secrets.token_hex(8)
        self.route = ""
        self.status = 0
        self.bytes_in = 0
        self._receive, self._send = receive, send
        self._started = time.monotonic()
        self._waited_s = 0.0
        self._max_body_bytes = state.limits.body_bytes
        self._body_is_read = "content-length" not in self.headers and "transfer-encoding" not in self.headers
        self._is_complete = False

    def limit_body(self, needed: str | None) -> None:
        """Set the size limit of the body; reject a larger Content-Length at once."""
        if needed == "upload":
            self._max_body_bytes = self.state.limits.upload_bytes
        length = self.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length) > self._max_body_bytes:
            raise self._too_large()

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"the body exceeds the limit of {self._max_body_bytes} bytes; send less or compress it")

    async def receive(self) -> Message:
        """Return the next part of the body; raise if it is too slow or too large."""
        if self._body_is_read:
            return await self._receive()
        limits = self.state.limits
        allowed = limits.body_seconds + self.bytes_in / limits.slowest_bytes_per_s
        began = time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.001, allowed - self._waited_s))
        except TimeoutError:
            raise SlowClientError(
                f"received only {self.bytes_in} bytes of the body in "
                f"{self._waited_s + time.monotonic() - began:.0f} s; "
                "send it faster"
            ) from None
        self._waited_s += time.monotonic() - began
        self._count_body(message)
        if self.bytes_in > self._max_body_bytes:
            raise self._too_large()
        return message

    def _count_body(self, message: Message) -> None:
        self.bytes_in += len(message.get("body", b""))
        self._body_is_read = message["type"] == "http.disconnect" or not message.get("more_body", False)

    async def send(self, message: Message) -> None:
        """Send a part of the response with the default headers; give up if the client does not read."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in DEFAULT_HEADERS.items():
                headers.setdefault(name, value)
            headers["x-request-id"] = self.request_id
            if not self._body_is_read:
                headers["connection"] = "close"
        else:
            self._is_complete = not message.get("more_body", False)
        try:
            await asyncio.wait_for(self._send(message), self.state.limits.send_seconds)
        except TimeoutError:
            raise SlowClientError("the client does not read the response") from None

    async def send_error(self, error: ProfsvcError, scope: Scope) -> None:
        """Send an error; if the response has started, the connection is closed instead."""
        if self.status:
            return
        await self._drain()
        response = error_answer(Request(scope), without_locations(error, self.state), self.request_id)
        await self.send(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )
        await self.send({"type": "http.response.body", "body": response.body})

    async def _drain(self) -> None:
        """Read more of an unneeded body, because many clients read the response only after sending it."""
        if self.headers.get("expect", "").lower() == "100-continue" and not self.bytes_in:
            return
        most = self.bytes_in + MAX_DRAIN_BYTES
        try:
            async with asyncio.timeout(min(MAX_DRAIN_SECONDS, self.state.limits.body_seconds)):
                while not self._body_is_read and self.bytes_in < most:
                    self._count_body(await self._receive())
        except TimeoutError:
            return

    def log(self, scope: Scope, error: ProfsvcError | None) -> None:
        """Log this request and count it."""
        seconds = time.monotonic() - self._started
        grant: store.Grant | None = scope.get("profsvc.grant")
        fields: MutableMapping[str, Any] = {
            "request_id": self.request_id,
            "method": scope["method"],
            "path": scope["path"],
            "status": self.status,
            "ms": round(1e3 * seconds, 1),
            "bytes_in": self.bytes_in,
            "client": (scope.get("client") or ("",))[0],
            "token": grant.token_id if grant else None,
        }
        if error is not None:
            fields["error"] = f"{error.code()}: {error}"
        if not self._is_complete:
            fields["broken_off"] = True
        LOG.info("request", extra={"fields": fields})
        route = self.route or "none"
        self.state.metrics.requests.labels(route, scope["method"] if self.route else "any", str(self.status)).inc()
        self.state.metrics.request_seconds.labels(route).observe(seconds)
