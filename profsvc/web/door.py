"""The door of the service: every request comes in here, and every answer goes out.

It gives a request its number, looks at its host, origin and token before anything else does, lets its body come in no
larger and no slower than allowed, turns every error into the one shape, and writes one line of log.
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
from profsvc.errors import OF_DISKS, ProfsvcError, ServiceError, SlowClientError, TooLargeError, disk_error
from profsvc.web import access
from profsvc.web.log import LOG
from profsvc.web.pages.failed import refusal
from profsvc.web.site import Site

DRAIN_BYTES = 16 << 20
DRAIN_SECONDS = 5.0
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cache-control": "private, no-cache",
    "vary": "Authorization, Cookie, Accept, Accept-Encoding",
}
DEFECT = "this is a defect of profsvc; its log holds the traceback under this request_id"


def placeless(error: ProfsvcError, site: Site) -> ProfsvcError:
    """Return an error that names no folder and no server of the service: these are for its log alone."""
    if not isinstance(error, ServiceError):
        return error
    said = str(error)
    file = str(site.engine.url.database) if site.engine.dialect.name == "sqlite" else ""
    files = [str(Path(file).absolute()), file] if file else []
    for place in (store.address(site.engine), str(site.files.folder), *files):
        said = said.replace(place, "the store")
    return error if said == str(error) else type(error)(said)


class Door:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        """Stand before ``app``."""
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = _placed(scope, self.site.root_path)
        passage = Passage(self.site, scope, receive, send)
        error = None
        try:
            passage.enter(await self._admit(scope, passage))
            await self.app(scope, passage.receive, passage.send)
        except ProfsvcError as seen:
            error = seen
        except Exception as seen:
            if isinstance(seen, OSError) and seen.errno in OF_DISKS:
                LOG.warning("disk", extra={"fields": {"request_id": passage.request_id, "said": str(seen)}})
                error = disk_error(seen, "what is needed for the answer")
            else:
                LOG.exception("defect", extra={"fields": {"request_id": passage.request_id}})
                error = ProfsvcError(DEFECT)
        finally:
            if error is not None:
                await passage.refuse(error, scope)
            passage.note(scope, error)

    async def _admit(self, scope: Scope, passage: "Passage") -> str | None:
        """Refuse what may not come in; return the scope of its route."""
        headers = passage.headers
        access.check_host(self.site, headers)
        access.check_origin(scope["method"], headers)
        application: Starlette = scope["app"]
        route = access.route_of(application.router.routes, scope)
        passage.route, needed = getattr(route, "path", ""), access.scope_of(route)
        grant: store.Grant | None = store.EVERYTHING
        if needed != access.ANYONE:
            grant = await to_thread.run_sync(access.grant_for, self.site, headers)
        scope["profsvc.grant"] = access.check_scope(needed, grant)
        scope["profsvc.request_id"] = passage.request_id
        return needed


def _placed(scope: Scope, root_path: str) -> Scope:
    """Return the scope under the path that a proxy serves it at, whether the proxy cuts that path off or not.

    A HEAD is answered as a GET, whose body the server keeps back.
    """
    path = scope["path"]
    inside = path == root_path or path.startswith(f"{root_path}/")
    changed = {"root_path": root_path, "path": path if inside else root_path + path}
    return {**scope, **changed, "method": "GET" if scope["method"] == "HEAD" else scope["method"]}


class Passage:
    """One request on its way through: what has come in, and what has gone out."""

    def __init__(self, site: Site, scope: Scope, receive: Receive, send: Send) -> None:
        """Begin before anything was read."""
        self.site = site
        self.headers = Headers(scope=scope)
        self.request_id = secrets.token_hex(8)
        self.route = ""
        self.status = 0
        self.bytes_in = 0
        self._receive, self._send = receive, send
        self._began = time.monotonic()
        self._waited = 0.0
        self._most = site.limits.body_bytes
        self._body_done = "content-length" not in self.headers and "transfer-encoding" not in self.headers
        self._ended = False

    def enter(self, needed: str | None) -> None:
        """Set how much may come in; refuse at once what says itself that it is more."""
        if needed == "upload":
            self._most = self.site.limits.upload_bytes
        said = self.headers.get("content-length", "")
        if said.isascii() and said.isdigit() and int(said) > self._most:
            raise self._too_large()

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"the body has more than the {self._most} bytes that are taken; send less, or compress it")

    async def receive(self) -> Message:
        """Give the next piece of the body, unless it is too slow or too much."""
        if self._body_done:
            return await self._receive()
        limits = self.site.limits
        allowed = limits.body_seconds + self.bytes_in / limits.slowest_bytes_per_s
        began = time.monotonic()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.001, allowed - self._waited))
        except TimeoutError:
            raise SlowClientError(
                f"only {self.bytes_in} bytes of the body came in {self._waited + time.monotonic() - began:.0f} s; "
                "send it faster"
            ) from None
        self._waited += time.monotonic() - began
        self._take(message)
        if self.bytes_in > self._most:
            raise self._too_large()
        return message

    def _take(self, message: Message) -> None:
        self.bytes_in += len(message.get("body", b""))
        self._body_done = message["type"] == "http.disconnect" or not message.get("more_body", False)

    async def send(self, message: Message) -> None:
        """Send a piece of the answer, with what every answer says; one that nobody takes is given up."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers["x-request-id"] = self.request_id
            if not self._body_done:
                headers["connection"] = "close"
        else:
            self._ended = not message.get("more_body", False)
        try:
            await asyncio.wait_for(self._send(message), self.site.limits.send_seconds)
        except TimeoutError:
            raise SlowClientError("the client takes nothing of the answer") from None

    async def refuse(self, error: ProfsvcError, scope: Scope) -> None:
        """Answer with an error; an answer that has begun is broken off instead, which every client notices."""
        if self.status:
            return
        await self._drain()
        response = refusal(Request(scope), placeless(error, self.site), self.request_id)
        await self.send(
            {"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers}
        )
        await self.send({"type": "http.response.body", "body": response.body})

    async def _drain(self) -> None:
        """Take some more of a body that is not wanted: many clients read no answer before they have sent it."""
        if self.headers.get("expect", "").lower() == "100-continue" and not self.bytes_in:
            return
        most = self.bytes_in + DRAIN_BYTES
        try:
            async with asyncio.timeout(min(DRAIN_SECONDS, self.site.limits.body_seconds)):
                while not self._body_done and self.bytes_in < most:
                    self._take(await self._receive())
        except TimeoutError:
            return

    def note(self, scope: Scope, error: ProfsvcError | None) -> None:
        """Write the line of this request, and count it."""
        seconds = time.monotonic() - self._began
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
        if not self._ended:
            fields["broken_off"] = True
        LOG.info("request", extra={"fields": fields})
        route = self.route or "none"
        self.site.meters.requests.labels(route, scope["method"] if self.route else "any", str(self.status)).inc()
        self.site.meters.request_seconds.labels(route).observe(seconds)
