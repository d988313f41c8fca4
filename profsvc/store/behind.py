"""Rows go into a sink on a thread of their own: while a server, or numpy, works on some, the next are read.

One thread, in the order given, so that a connection stays with one transaction and rows find what they refer to.
Few may wait, so that the memory does not grow where the sink is the slower.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection

from profsvc.store.staging import Columns, Sink

MOST_WAITING = 1
GRACE_SECONDS = 1.0


class Behind:
    """Takes rows for a sink; what goes wrong there is raised by a later call here, at the latest by `close`."""

    def __init__(self, sink: Sink, pool: ThreadPoolExecutor) -> None:
        """Begin with nothing that waits."""
        self.sink = sink
        self.pool = pool
        self.waiting: deque[Future[None]] = deque()

    def write(self, table: str, columns: Columns) -> None:
        """Take rows of a table; nobody may change them later."""
        self.waiting.append(self.pool.submit(self.sink.write, table, columns))
        self._settle(MOST_WAITING)

    def close(self) -> None:
        """Wait until the sink has taken all rows, and close it."""
        self._settle(0)
        self.sink.close()

    def _settle(self, most: int) -> None:
        while len(self.waiting) > most:
            self.waiting.popleft().result()


@contextmanager
def behind(sink: Sink, cancel: Callable[[], Any] = lambda: None) -> Iterator[Behind]:
    """Give a sink that works behind; nothing of it runs any more at the end, whatever happens.

    ``cancel`` ends what the sink does for long where the upload has failed.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="sink")
    ours = Behind(sink, pool)
    try:
        yield ours
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        if wait(ours.waiting, GRACE_SECONDS).not_done:
            cancel()
        raise
    finally:
        pool.shutdown()


def cancelling(connection: Connection) -> Callable[[], Any]:
    """Return what makes the server drop the statement that it works on."""
    driver: Any = connection.connection.driver_connection
    return lambda: driver.cancel_safe(timeout=GRACE_SECONDS)
