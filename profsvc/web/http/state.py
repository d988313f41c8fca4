"""The state of one service that all routes share: store, limits and metrics."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread
from prometheus_client import Gauge
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import settings, store
from profsvc.errors import NotFoundError, OverloadedError, SlowClientError, TimeLimitError
from profsvc.web.http.bursts import Bursts
from profsvc.web.http.json_log import LOG
from profsvc.web.http.prometheus import Metrics
from profsvc.web.http.slots import SharedSlots

LOCAL_HOST_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
READING_METHODS = frozenset({"GET", "HEAD"})
MIN_WAIT_S = 0.05
"""Time in a queue after which it is worth a look whether the client is still there."""
NOTICE_HEADER = "profsvc-notice"
Found = TypeVar("Found")
_READ_FROM: ContextVar[Engine | None] = ContextVar("read_from", default=None)


class Limits(NamedTuple):
    """The limits of requests; see the settings of the same names."""

    upload_bytes: int = 4 << 30
    unpacked_bytes: int = 16 << 30
    uploads_at_once: int = 2
    sql_at_once: int = 2
    sql_rows: int = 10_000
    sql_seconds: float = 10.0
    sql_export_seconds: float = 600.0
    receiving_at_once: int = 64
    sql_waiting: int = 64
    pages_at_once: int = 4
    """Pages and answers computed at the same time. More would share the same processor, and each holds its rows."""
    pages_waiting: int = 256
    long_at_once: int = 2
    """Of pages that may take long, such as comparisons, beside the others and beside SQL."""
    long_waiting: int = 64
    queue_seconds: float = 20.0
    """Time that a page or a query waits for its turn at most."""
    body_bytes: int = 1 << 20
    """Size limit of a body that is not an upload."""
    header_seconds: float = 10.0
    """Deadline for the head of a request."""
    body_seconds: float = 30.0
    """Time allowed for a body, in addition to its size / `slowest_bytes_per_s`."""
    slowest_bytes_per_s: float = 16384.0
    grace_seconds: float = 30.0
    """Time allowed for running requests after the signal to stop."""
    full_seconds: float = 60.0
    """After all upload slots were taken for this long, the service is not ready."""
    send_seconds: float = 60.0
    """Time after which a client that does not read its response is disconnected."""

    @classmethod
    def from_settings(cls) -> "Limits":
        """Return the limits from the settings; defaults for the others."""
        known: Mapping[str, Any] = settings.load()
        return cls(**{name: known[name] for name in cls._fields if name in known})


class Shared(NamedTuple):
    """What the processes of one service share: a folder; and how many they are."""

    folder: Path
    workers: int


class ConcurrencyLimit:
    """Limits how many operations run and wait at once, in threads of their own; further ones are rejected."""

    def __init__(
        self,
        at_once: int,
        waiting: int,
        what: str,
        retry_s: int = 5,
        max_wait_s: float | None = None,
        *,
        gauge: Gauge | None = None,
        shared: Shared | None = None,
    ) -> None:
        """Allow ``at_once`` operations and ``waiting`` more; ``what`` names them in the error message.

        ``gauge`` counts those running and waiting. With ``shared`` all processes together run ``at_once``.
        """
        self.in_use = 0
        self.capacity = at_once + waiting
        self.retry_s = retry_s
        self._what = what
        self._at_once = at_once
        self._max_wait_s = max_wait_s
        self._gauge = gauge
        self._slots = SharedSlots(shared.folder, what, at_once) if shared else asyncio.Semaphore(at_once)
        self._threads = CapacityLimiter(at_once)
        self._started: list[float] = []

    def is_full(self, seconds: float) -> bool:
        """Tell whether all slots have been taken for this long."""
        began = self._slots.taken_at() if isinstance(self._slots, SharedSlots) else list(self._started)
        return len(began) == self._at_once and time.monotonic() - max(began) >= seconds

    @asynccontextmanager
    async def slot(self, asker: Request | None = None) -> AsyncIterator[None]:
        """Wait for a slot; raise `OverloadedError` if too many are waiting, or if it takes too long.

        Nothing is begun for an ``asker`` who hung up meanwhile, as a reader does who loads a slow page again.
        """
        if self.in_use >= self.capacity:
            raise self.overloaded(f"{self.in_use} {self._what} are running or waiting")
        self._count(1)
        try:
            came = time.monotonic()
            await self._acquire()
            self._started.append(began := time.monotonic())
            try:
                if asker is not None and began - came >= MIN_WAIT_S and await _has_hung_up(asker):
                    raise SlowClientError(f"the client hung up while {self._what} before its own were computed")
                yield
            finally:
                self._started.remove(began)
                self._slots.release()
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        self.in_use += change
        if self._gauge is not None:
            self._gauge.inc(change)

    async def _acquire(self) -> None:
        try:
            async with asyncio.timeout(self._max_wait_s):
                await self._slots.acquire()
        except TimeoutError:
            others = self.in_use - 1
            raise self.overloaded(f"no turn after {self._max_wait_s:g} s; {others} other {self._what} wait") from None

    def overloaded(self, why: str) -> OverloadedError:
        """Return the error that says when to come back."""
        error = OverloadedError(f"{why}; retry in {self.retry_s} s")
        error.retry_s = self.retry_s
        return error

    async def run(self, work: Callable[..., Found], *args: Any) -> Found:
        """Run a function in a thread of this limit when it is its turn."""
        async with self.slot():
            return await self.in_thread(work, *args)

    async def in_thread(self, work: Callable[..., Found], *args: Any) -> Found:
        """Run a function in a thread of this limit; the caller holds a slot."""
        return await to_thread.run_sync(partial(work, *args), limiter=self._threads)


class AppState:
    """One service: its store, host names, limits and metrics."""

    def __init__(
        self,
        engine: Engine,
        files: store.BlobStore,
        *,
        hosts: Collection[str] = LOCAL_HOST_NAMES,
        any_address: bool = False,
        is_public: bool = False,
        root_path: str = "",
        limits: Limits | None = None,
        shared: Shared | None = None,
        read_url: str = "",
    ) -> None:
        """Set up the service; ``hosts`` are its host names, ``any_address`` allows any IP address as well.

        With ``shared`` it is one process of several: slots are shared, places in queues are divided. What only reads
        goes to the replica at ``read_url``, if there is one.
        """
        self.main = engine
        self.read_url = read_url
        self.replica = store.Replica(engine, read_url, pooled=True) if read_url else None
        self.files = files
        self.hosts = frozenset(host.lower() for host in hosts)
        self.any_address = any_address
        self.is_public = is_public
        self.root_path = root_path
        self.limits = limits or Limits()
        self._said = ""
        self.bursts = Bursts()
        self.expecting: set[asyncio.Task[None]] = set()
        self.metrics = metrics = Metrics(shared.folder if shared else None)
        most, workers, longest = self.limits, shared.workers if shared else 1, self.limits.queue_seconds
        receiving = -(-most.receiving_at_once // workers)
        self.receiving_limit = ConcurrencyLimit(receiving, 0, "uploads", gauge=metrics.receiving)
        self.parsing_limit = ConcurrencyLimit(
            most.uploads_at_once, receiving, "uploads", gauge=metrics.queue_depth, shared=shared
        )
        self.query_limit = ConcurrencyLimit(
            most.sql_at_once, -(-most.sql_waiting // workers), "queries", 2, longest, shared=shared
        )
        self.long_limit = ConcurrencyLimit(
            most.long_at_once, -(-most.long_waiting // workers), "long pages", 2, longest
        )
        self.page_limit = ConcurrencyLimit(most.pages_at_once, -(-most.pages_waiting // workers), "pages", 2, longest)

    @property
    def engine(self) -> Engine:
        """The store of the current work: where it only reads, perhaps a replica."""
        return _READ_FROM.get() or self.main

    @contextmanager
    def reading(self) -> Iterator[store.Place]:
        """Let the block, which only reads, take the replica where that can answer; say in the log where it cannot."""
        place = store.Place(self.main) if self.replica is None else self.replica.place()
        if place.warning and place.warning.partition(":")[0] != self._said:
            LOG.warning("replica", extra={"fields": {"why": place.warning}})
        self._said = place.warning.partition(":")[0]
        token = _READ_FROM.set(place.engine)
        try:
            yield place
        finally:
            _READ_FROM.reset(token)

    def close(self) -> None:
        """Close the connections that are kept."""
        self.main.dispose()
        if self.replica is not None:
            self.replica.dispose()

    def ask(self, question: Callable[..., Found], *args: Any, **options: Any) -> Found:
        """Return the answer of a question to the store; call it in a thread."""
        with self.reading() as place:
            return question(place.engine, *args, **options)


def app_state(request: Request) -> AppState:
    """Return the state of the service of a request."""
    state: AppState = request.app.state.profsvc
    return state


async def _has_hung_up(request: Request) -> bool:
    """Tell whether the client of a request without a body is gone; the first message of it is the empty body."""
    return request.method in READING_METHODS and (await request.is_disconnected() or await request.is_disconnected())


async def in_worker_thread(
    work: Callable[[Request], Response], request: Request, limit: ConcurrencyLimit | None = None
) -> Response:
    """Run a handler in a thread of ``limit`` (default: of pages), with one connection to the store for all its queries.

    What it asks is chosen by the service, so a question that takes too long is a matter of load: 503 and not 400.
    """
    state = app_state(request)
    limit, longest = limit or state.page_limit, state.limits.sql_seconds
    async with limit.slot(request):
        try:
            return await limit.in_thread(_answer, state, work, request)
        except TimeLimitError:
            raise limit.overloaded(f"the page took longer than {longest:g} s, as the store is busy") from None


def _answer(state: AppState, work: Callable[[Request], Response], request: Request) -> Response:
    """Answer with the replica what only reads; a header says where it could not, or how old its answer may be."""
    if state.replica is None or request.method not in READING_METHODS:
        return _call_handler(state.main, work, request)
    with state.reading() as place:
        response = _call_handler(place.engine, work, request)
    if place.warning:
        response.headers[NOTICE_HEADER] = place.warning.encode("ascii", "backslashreplace").decode()
    return response


@store.keep_connections
def _call_handler(_engine: Engine, work: Callable[[Request], Response], request: Request) -> Response:
    return work(request)


def grant_of(request: Request) -> store.Grant:
    """Return what this request may do."""
    grant: store.Grant = request.scope["profsvc.grant"]
    return grant


def project_of(request: Request, requested: str) -> str | None:
    """Return the project that is ``requested`` (empty: all that the request may see), or else the one of its token."""
    own = grant_of(request).project
    if own is not None and requested not in ("", own):
        raise NotFoundError(f"no project named {requested!r}; your token is limited to the project {own!r}")
    return own or requested or None
