"""Write rows to a sink on a separate thread, so that the next rows are read at the same time.

A single thread keeps the order, so that a connection has one transaction and references are valid. The queue is short,
so that memory does not grow with a slow sink.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from profsvc.store.connection.sql import Connection
from profsvc.store.ingest.staging import Columns, PreparingSink

MAX_WAITING_WRITES = 1
GRACE_SECONDS = 1.0


class WriterThread:
    """Queues rows for a sink; an error of the sink is raised by a later call, at the latest by `close`."""

    def __init__(self, sink: PreparingSink, pool: ThreadPoolExecutor) -> None:
        """Begin with an empty queue."""
        self.sink = sink
        self.pool = pool
        self.waiting: deque[Future[None]] = deque()

    def write(self, table: str, columns: Columns) -> None:
        """Prepare rows of a table here and queue them; the caller must not change them later."""
        if (write := self.sink.prepare(table, columns)) is not None:
            self.waiting.append(self.pool.submit(write))
            self.settle(MAX_WAITING_WRITES)

    def close(self) -> None:
        """Wait until the sink has written all rows, and close it."""
        self.settle()
        self.sink.close()

    def settle(self, most: int = 0) -> None:
        """Wait until the sink has written all rows but those of ``most`` calls."""
        while len(self.waiting) > most:
            self.waiting.popleft().result()


@contextmanager
def in_writer_thread(sink: PreparingSink, cancel: Callable[[], Any] = lambda: None) -> Iterator[WriterThread]:
    """Yield a sink that writes on a separate thread, which has always ended at the end of the block.

    ``cancel`` stops a long operation of the sink if the upload has failed.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="sink")
    ours = WriterThread(sink, pool)
    try:
        yield ours
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        # Those that were cancelled in the queue never end: to wait for them would take all the grace.
        if wait([write for write in ours.waiting if not write.cancelled()], GRACE_SECONDS).not_done:
            cancel()
        raise
    finally:
        pool.shutdown()


def statement_canceller(connection: Connection) -> Callable[[], Any]:
    """Return a function that cancels the current statement of the server."""
    driver: Any = connection.connection.driver_connection
    return lambda: driver.cancel_safe(timeout=GRACE_SECONDS)
