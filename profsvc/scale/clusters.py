"""The workers: none but this process, processes of this machine, or a Dask cluster elsewhere."""

import ipaddress
import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from profsvc import store
from profsvc.errors import ServiceError, UsageError
from profsvc.scale.bulk import Mapped
from profsvc.scale.work import Opened, Target, on_worker, target_of

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
CONNECT_SECONDS = 15
QUEUED_PER_THREAD = 8
WAIT_SECONDS = 0.1
REVIVE_SECONDS = 20
# What Dask measures of its workers all the time is for its pages: 100 looks a second at the stack of every thread, and
# 50 at how late a loop is. It takes 2 to 4 % of a processor in each process.
QUIET = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.gil.enabled": False,
}
PAGES = "127.0.0.1:0"  # Dask has pages of its own; nobody else shall see them
WHY_TLS = (
    "{} is not encrypted, and who reaches a Dask scheduler runs any code on its workers; use tls://host:port, with the "
    "certificates in the Dask settings distributed.comm.tls (docs: profsvc help howto/cluster)"
)


def one_process(opened: Opened) -> Mapped:
    """Return what works on one item after the other in this process."""

    def mapped(function: Callable[[Opened, Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for item in items:
            yield item, function(opened, item)

    return mapped


@contextmanager
def workers(
    address: str, opened: Opened, count: int | None = None, tell: Callable[[str], None] = print
) -> Iterator[Mapped]:
    """Start the workers of ``local``, or reach those of a scheduler; yield what works on items with them.

    Raise `UsageError` for a scheduler beyond this machine without TLS, `ServiceError` where there is none.
    """
    try:
        import distributed  # noqa: F401  # it takes a second, which only a cluster is worth
    except ModuleNotFoundError:
        raise ServiceError("Dask is missing; run: pip install 'profsvc[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters of it is told here
    if address == LOCAL:
        with _local(opened, count, tell) as client:
            yield _mapped(client, target_of(opened))
        return
    _check_address(address)
    if count is not None:
        raise UsageError("--workers is for --cluster local; the workers of a cluster are started where they run")
    if not store.is_server_of(opened.engine):
        raise UsageError(
            "a SQLite store is a file of this machine, which workers elsewhere cannot share safely; use --cluster "
            "local, or a Postgres store"
        )
    with _remote(address) as client:
        yield _mapped(client, target_of(opened))


def _check_address(address: str) -> None:
    """Raise `UsageError` for what is no address of a scheduler, and for one beyond this machine without TLS."""
    parts = urlsplit(address)
    try:
        is_address = parts.scheme in ("tls", "tcp") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        is_address = False
    if not is_address:
        raise UsageError(
            f"--cluster {address!r} must be {LOCAL} or the address of a scheduler, such as tls://dask.lab:8786"
        )
    if parts.scheme != "tls" and not _is_loopback(str(parts.hostname)):
        raise UsageError(WHY_TLS.format(address))


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@contextmanager
def _local(opened: Opened, count: int | None, tell: Callable[[str], None]) -> Iterator["Client"]:
    """Start worker processes; only they and this process have the certificate of their scheduler."""
    import dask
    from distributed import Client, LocalCluster, Status
    from distributed.diagnostics.plugin import SchedulerPlugin
    from distributed.security import Security

    class TellsDeaths(SchedulerPlugin):
        """Says when a worker died before it was told to stop."""

        def remove_worker(self, scheduler: Any, worker: str, *, stimulus_id: str, **_: Any) -> None:
            """Say it, and look later whether it came back."""
            if not closing:
                tell("warning: a worker died; what it worked on is done again")
                scheduler.loop.call_later(REVIVE_SECONDS, revive)

    async def revive() -> None:
        """Start workers again whose start after a death failed: Dask tries it once, too little on a busy machine."""
        for nanny in [] if closing else list(cluster.workers.values()):
            if nanny.process is None or nanny.process.status not in (Status.running, Status.starting):
                try:
                    await nanny.instantiate()
                except Exception as error:
                    tell(f"warning: a worker did not start again ({error}); another try in {REVIVE_SECONDS} s")
                    scheduler.loop.call_later(REVIVE_SECONDS, revive)

    closing: list[bool] = []
    with _deaf_to_ctrl_c(), dask.config.set(QUIET):
        cluster = LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            host="127.0.0.1",
            memory_limit=0,  # files are read in parts, and a limit would end a worker half way
            dashboard_address=PAGES,
            worker_dashboard_address=PAGES,
            silence_logs=logging.CRITICAL,
            security=Security.temporary(),
            env=_settings_of(opened),
        )
    with cluster, Client(cluster) as client:
        scheduler: Any = cluster.scheduler
        scheduler.add_plugin(TellsDeaths())
        try:
            yield client
        finally:
            closing.append(True)


def _settings_of(opened: Opened) -> dict[str, str]:
    """Return the settings by which a worker opens the same store and keeps bytes in the same folder."""
    files = opened.files
    return {
        "PROFSVC_STORE": opened.engine.url.render_as_string(hide_password=False),
        "PROFSVC_FILES": str(files.folder.parent),
        "PROFSVC_FREE_BYTES": str(files.free_bytes),
        "PROFSVC_KEEP": str(int(files.keep)),
        "PROFSVC_URL": "",
    }


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Let threads and processes that start meanwhile never get Ctrl-C, which is for this process to answer."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # else multiprocessing starts it with the next process, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _remembered_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield what tells whether Ctrl-C was pressed meanwhile; the first raises nothing, and the next is an exception.

    Python prints and drops an exception that is raised in a finalizer, and Dask's futures have one: a Ctrl-C that
    arrives there would go unanswered.
    """
    pressed = list[bool]()
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield lambda: False  # somebody else answers it
        return

    def remember(number: int, frame: FrameType | None) -> None:
        if pressed:
            signal.default_int_handler(number, frame)
        pressed.append(True)

    signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _remote(address: str) -> Iterator["Client"]:
    from distributed import Client

    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TypeError, ValueError) as error:  # a wrong certificate is an OSError, and none is a TypeError
        raise ServiceError(f"no Dask scheduler answers at {address}: {' '.join(str(error).split())}") from None
    with client:
        if not client.scheduler_info()["workers"]:
            raise ServiceError(f"the scheduler at {address} has no workers; start some with: dask worker {address}")
        yield client


def _mapped(client: "Client", target: Target) -> Mapped:
    """Return what works on items with the workers; of very many items only some are sent ahead."""
    from distributed import KilledWorker, as_completed

    def mapped(function: Callable[[Opened, Any], Any], items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        waiting, item_of = iter(items), dict[Any, Any]()
        done = as_completed(loop=client.loop)

        def send(most: int) -> None:
            for item in islice(waiting, most):
                future = client.submit(on_worker, function, target, item, pure=False)
                item_of[future.key] = item
                done.add(future)

        threads = sum(client.nthreads().values())
        send(QUEUED_PER_THREAD * max(threads, 1))
        with _remembered_ctrl_c() as was_pressed:
            try:
                while not done.is_empty():
                    if was_pressed():
                        raise KeyboardInterrupt
                    if not done.has_ready():
                        with done.thread_condition:
                            done.thread_condition.wait(WAIT_SECONDS)
                        continue
                    future = next(done)
                    send(1)
                    item = item_of.pop(future.key)
                    if isinstance(future.exception(), KilledWorker):
                        yield item, None
                    else:
                        yield item, future.result()
            finally:
                if client.status == "running":  # who leaves an iteration open may come here after the workers ended
                    client.cancel(list(done.futures), force=True)

    return mapped
