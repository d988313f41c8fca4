"""Several processes that serve one socket, started, restarted and stopped by a parent.

The parent imports the service and then only waits: it has one thread and no connection, so processes may be forked
from it at any time, and share the memory of what it imported. One more process runs the schedules.

The processes share a folder that the parent made and the last of them removes: the slots of uploads and queries are
locked files in it, and each process keeps its metrics there, so that any of them can add all up. A process whose parent
died stops by itself.
"""

import asyncio
import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

from prometheus_client import values
from prometheus_client.multiprocess import mark_process_dead
from sqlalchemy import Engine

from profsvc import store
from profsvc.errors import ServiceError
from profsvc.web.http.accepting import Acceptor, ConnectionCounts, forget
from profsvc.web.http.json_log import LOG, log_to_stderr
from profsvc.web.http.state import AppState, Limits, Shared
from profsvc.web.server import (
    Endpoint,
    Server,
    app_state_for,
    listening_socket,
    max_connections,
    server_for,
    startup_lines,
)
from profsvc.web.shared_folder import held, shared_folder

CONNECTIONS_FILE = "connections"
SCHEDULER = -1
"""The place of the process that runs the schedules."""
METRICS_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
MAX_RESTARTS, RESTART_WINDOW_S = 20, 60.0
"""More restarts in so many seconds stop the service: a process that cannot start would be restarted forever."""
RESTART_DELAY_S = 0.5
POLL_S = 0.2
STOPPING = (signal.SIGINT, signal.SIGTERM)
Schedules = Callable[[], AbstractContextManager[Any]]
"""Runs the schedules of the store until the end of its block."""
KILL_AFTER_S = 5.0
"""Seconds after the grace period when a process that still runs is killed."""


class Work(NamedTuple):
    """What a process of the service needs to know."""

    store_url: str
    files: store.BlobStore
    options: Mapping[str, Any]
    """The options of `AppState`."""
    endpoint: Endpoint
    connections: int
    shared: Shared
    limits: Limits


class WorkerServer(Server):
    """A server that leaves Ctrl-C to its parent, which passes it on as SIGTERM, and shares connections with others."""

    counts: ConnectionCounts

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        await super().startup([])
        kind: Any = self.config.http_protocol_class
        kind.count_changed = staticmethod(self.counts.tell)
        made = partial(kind, config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        self.servers += [cast("asyncio.Server", Acceptor(one, made, self.counts)) for one in sockets or ()]

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to stop; a second signal stops at once."""
        if sig != signal.SIGINT:
            super().handle_exit(sig, frame)


def run_worker(work: Work, line: socket.socket, place: int, stop: threading.Event) -> None:
    """Serve until the parent sends SIGTERM or dies; ``place`` is the number of this process among its siblings."""
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]
    engine = store.connect(work.store_url, pooled=True)
    state = AppState(engine, work.files, limits=work.limits, shared=work.shared, **work.options)
    server = server_for(state, work.endpoint, work.connections, WorkerServer)
    cast("WorkerServer", server).counts = ConnectionCounts(
        work.shared.folder / CONNECTIONS_FILE, work.shared.workers, place
    )
    server.stop = stop
    try:
        server.run(sockets=[line])
    finally:
        server.cancel_forced_exit()
        state.close()


def run_schedules(schedules: Schedules, line: socket.socket, stop: threading.Event) -> None:
    """Run the schedules until the parent sends SIGTERM or dies; the running job is finished."""
    line.close()
    with schedules():
        while not stop.wait(POLL_S):
            pass
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second signal ends the process at once


def _in_child(alive: tuple[int, int], folder: Path, run: Callable[[threading.Event], None]) -> None:
    """Run what a forked process is for; SIGTERM or the end of its parent stops it."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which passes it on
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    parent, own = alive
    os.close(own)
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    with held(folder):
        run(stop)


def _end_with_parent(parent: int) -> None:
    """Stop this process at the end of a pipe that only the parent keeps open."""
    wait([parent])
    os.kill(os.getpid(), signal.SIGTERM)


class Workers:
    """The processes of a service."""

    def __init__(self, work: Work, line: socket.socket, count: int, schedules: Schedules | None = None) -> None:
        """Start nothing yet."""
        self._work, self._line, self._schedules = work, line, schedules
        self._places = [*range(count), *([SCHEDULER] if schedules else [])]
        self._processes: dict[int, ForkProcess] = {}
        self._alive = os.pipe()
        self._stop = threading.Event()
        self._restarts: deque[float] = deque(maxlen=MAX_RESTARTS)

    def run(self, stop: threading.Event | None = None) -> None:
        """Serve until a signal, also one that set ``stop`` before; a process that ended is replaced."""
        with self._signals(), _metrics_folder(self._work.shared.folder):
            if stop is not None and stop.is_set():
                return
            try:
                import profsvc.web.preloaded  # noqa: F401  # after the start message

                for place in self._places:
                    self._start(place)
                while not self._stop.is_set():
                    wait([one.sentinel for one in self._processes.values()], POLL_S)
                    self._replace_ended()
            finally:
                self._end_all()

    def _start(self, place: int) -> None:
        run: Callable[[threading.Event], None] = partial(run_worker, self._work, self._line, place)
        if place == SCHEDULER and self._schedules:
            run = partial(run_schedules, self._schedules, self._line)
        processes = multiprocessing.get_context("fork")
        process = processes.Process(target=_in_child, args=(self._alive, self._work.shared.folder, run))
        # A signal waits until the new process does not take it for its parent's.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        try:
            process.start()
            self._processes[place] = process
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def _replace_ended(self) -> None:
        for place, process in [one for one in self._processes.items() if one[1].exitcode is not None]:
            if self._stop.is_set():
                return
            ended = "scheduler ended" if place == SCHEDULER else "worker ended"
            LOG.error(ended, extra={"fields": {"pid": process.pid, "exit_code": process.exitcode}})
            del self._processes[place]
            if place != SCHEDULER:
                forget(self._work.shared.folder / CONNECTIONS_FILE, place)
            mark_process_dead(process.pid, str(self._work.shared.folder))  # type: ignore[no-untyped-call]
            now = time.monotonic()
            if len(self._restarts) == MAX_RESTARTS and now - self._restarts[0] < RESTART_WINDOW_S:
                raise ServiceError(
                    f"the processes of the service ended {MAX_RESTARTS} times within {RESTART_WINDOW_S:g} s; "
                    "see the log for the cause, and start it with --workers 1 to find it"
                )
            self._restarts.append(now)
            if not self._stop.wait(RESTART_DELAY_S):
                self._start(place)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Pass signals on: the first lets the processes finish, the second stops them at once."""

        def heard(_number: int, _frame: FrameType | None) -> None:
            self._stop.set()
            self._terminate()

        before = {number: signal.signal(number, heard) for number in STOPPING}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _terminate(self) -> None:
        for process in self._processes.values():
            with suppress(ProcessLookupError):
                process.terminate()

    def _end_all(self) -> None:
        """Stop all processes, and kill those that do not end in their time; a running job has any."""
        if not self._stop.is_set():
            self._terminate()
        deadline = time.monotonic() + self._work.limits.grace_seconds + KILL_AFTER_S
        for place, process in self._processes.items():
            process.join(None if place == SCHEDULER else max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()
        for end in self._alive:
            os.close(end)


@contextmanager
def _metrics_folder(folder: Path) -> Iterator[None]:
    """Name the folder of metrics to the processes, whose client of Prometheus reads it with the first value."""
    os.environ[METRICS_VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[METRICS_VARIABLE]


def serve(
    engine: Engine,
    files: store.BlobStore,
    endpoint: Endpoint,
    limits: Limits,
    say: Callable[[str], None] = print,
    workers: int = 2,
    read_url: str = "",
    stop: threading.Event | None = None,
    schedules: Schedules | None = None,
) -> None:
    """Serve with several processes until interrupted, or until ``stop`` is set before they start.

    Running uploads and the running job are finished first.
    """
    state = app_state_for(engine, files, endpoint, limits, read_url)
    options = {name: getattr(state, name) for name in ("hosts", "any_address", "is_public", "root_path", "read_url")}
    url, connections = engine.url.render_as_string(hide_password=False), max_connections() // workers
    with (
        listening_socket(endpoint.host, endpoint.port) as line,
        shared_folder() as folder,
    ):
        say("\n".join(startup_lines(state, endpoint, line.getsockname()[1])))
        log_to_stderr()
        work = Work(url, files, options, endpoint, connections, Shared(folder, workers), limits)
        Workers(work, line, workers, schedules).run(stop)
    say("stopped")
