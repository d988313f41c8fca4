"""What the routes share: the store, the limits, the gates and the meters of one service."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from anyio import to_thread
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import settings, store
from profsvc.errors import NotFoundError, OverloadedError
from profsvc.web.meters import Meters

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Limits(NamedTuple):
    """What a request may cost; the settings of the same names say more."""

    upload_bytes: int = 4 << 30
    unpacked_bytes: int = 16 << 30
    uploads_at_once: int = 2
    sql_at_once: int = 2
    sql_rows: int = 10_000
    sql_seconds: float = 10.0
    sql_export_seconds: float = 600.0
    receiving_at_once: int = 64
    sql_waiting: int = 32
    body_bytes: int = 1 << 20
    """Bytes of a body that is no upload."""
    header_seconds: float = 10.0
    """Until a connection has sent the head of a request."""
    body_seconds: float = 30.0
    """That a body may be waited for, besides what `slowest_bytes_per_s` allows for its bytes."""
    slowest_bytes_per_s: float = 16384.0
    grace_seconds: float = 30.0
    """That what is under way may take when the service is told to end; then it is broken off."""
    full_seconds: float = 60.0
    """After which a service whose every turn to read an upload is taken, and none came free, is not ready."""
    send_seconds: float = 60.0
    """That a client may take nothing of an answer."""

    @classmethod
    def as_set(cls) -> "Limits":
        """Return the limits that the user set, and the others as they are."""
        known: Mapping[str, Any] = settings.load()
        return cls(**{name: known[name] for name in cls._fields if name in known})


class Gate:
    """Lets so many in at once, and lets some more wait; who comes beyond that is sent away."""

    def __init__(self, at_once: int, waiting: int, what: str, retry_s: int = 5) -> None:
        """Open the gate; ``what`` is done behind it, for the words to who is sent away."""
        self.inside = 0
        self.most = at_once + waiting
        self.retry_s = retry_s
        self._what = what
        self._at_once = at_once
        self._turns = asyncio.Semaphore(at_once)
        self._began: list[float] = []

    def is_full(self, seconds: float) -> bool:
        """Tell whether every turn is taken, and has been for so long."""
        began = list(self._began)
        return len(began) == self._at_once and time.monotonic() - max(began) >= seconds

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn; raise `OverloadedError` where too many wait already."""
        if self.inside >= self.most:
            raise OverloadedError(f"{self.inside} {self._what} are under way; repeat in {self.retry_s} s")
        self.inside += 1
        try:
            async with self._turns:
                self._began.append(began := time.monotonic())
                try:
                    yield
                finally:
                    self._began.remove(began)
        finally:
            self.inside -= 1


class Site:
    """One service: its store, where it is reached, what it allows, and what it counts."""

    def __init__(
        self,
        engine: Engine,
        files: store.Files,
        *,
        hosts: Collection[str] = LOCAL_NAMES,
        any_address: bool = False,
        is_public: bool = False,
        root_path: str = "",
        limits: Limits | None = None,
    ) -> None:
        """Keep it all together; ``hosts`` are the names it answers to, ``any_address`` besides to any IP address."""
        self.engine = engine
        self.files = files
        self.hosts = frozenset(host.lower() for host in hosts)
        self.any_address = any_address
        self.is_public = is_public
        self.root_path = root_path
        self.limits = limits or Limits()
        self.receiving = Gate(self.limits.receiving_at_once, 0, "uploads")
        self.reading = Gate(self.limits.uploads_at_once, self.limits.receiving_at_once, "uploads")
        self.asking = Gate(self.limits.sql_at_once, self.limits.sql_waiting, "queries", retry_s=2)
        self.meters = Meters()


def site_of(request: Request) -> Site:
    """Return the service that a request came to."""
    site: Site = request.app.state.site
    return site


async def answered(work: Callable[[Request], Response], request: Request) -> Response:
    """Answer in a thread, and let all that is read for it go over one connection to the store."""
    return await to_thread.run_sync(_answered, site_of(request).engine, work, request)


@store.on_kept_connections
def _answered(_engine: Engine, work: Callable[[Request], Response], request: Request) -> Response:
    return work(request)


def grant_of(request: Request) -> store.Grant:
    """Return what this request may do, as the door found it."""
    grant: store.Grant = request.scope["profsvc.grant"]
    return grant


def project_of(request: Request, asked: str) -> str | None:
    """Return the project that is ``asked`` for (empty: all that the request may see), or else the one of its token."""
    own = grant_of(request).project
    if own is not None and asked not in ("", own):
        raise NotFoundError(f"no project named {asked!r}; the token is for the project {own!r}")
    return own or asked or None
