"""Copy staged rows into the store on a separate thread, the first of them while the last are read.

SQLite has one writer, and others wait while rows are copied. So the copy begins when the rest of the file takes no
longer to read than the rows that are there take to copy. Names that appear later belong to the same transaction.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from profsvc.store.connection.sql import Connection, Engine
from profsvc.store.connection.transactions import writing

ShareRead = Callable[[], float]
MIN_PART_BYTES = 8 << 20
"""A further file of rows costs more than the copy of fewer bytes."""
MAX_PARTS = 7
"""SQLite attaches ten files at most."""
COPIED_BYTES_PER_SECOND = 150e6
"""Only a guess: where the copy is slower, others wait as much longer as they would for a later copy."""


class StagedFile(NamedTuple):
    """A complete file of staged rows: the name to attach it by, where it is, and which tables have rows."""

    name: str
    path: Path
    tables: Sequence[str]


class ReadingPace:
    """Predicts how long the rest of a file takes to read."""

    def __init__(self, share_read: ShareRead | None) -> None:
        """Begin with the first rows; ``share_read`` returns how much of the file is read, from 0 to 1."""
        self._share_read = share_read if (os.cpu_count() or 1) > 1 else None
        self._first = share_read() if share_read else 1.0
        self._began = time.monotonic()

    def is_time_to_copy(self, staged_bytes: int) -> bool:
        """Return whether the rest takes no longer to read than so many bytes of rows take to copy.

        It is never time if the file was read before its rows came, because nothing tells then how many are left.
        """
        if self._share_read is None or staged_bytes < MIN_PART_BYTES:
            return False
        share = self._share_read()
        if not self._first < share < 1.0:
            return False
        rest_s = (time.monotonic() - self._began) * (1.0 - share) / (share - self._first)
        return rest_s <= staged_bytes / COPIED_BYTES_PER_SECOND


class StoreCopy:
    """A write transaction into which files of rows are copied on a separate thread.

    Call `wait` before the connection is used for anything else.
    """

    def __init__(self, connection: Connection, pool: ThreadPoolExecutor, attached: Sequence[StagedFile]) -> None:
        """Begin with ``attached`` files, of which nothing is copied yet."""
        self.connection = connection
        self._pool = pool
        self._attached = {file.name for file in attached}
        self._running: list[Future[None]] = []
        self._started = 0
        self._cancelled = threading.Event()

    def start(self, files: Sequence[StagedFile]) -> None:
        """Copy files after those before."""
        self._started += 1
        self._running.append(self._pool.submit(self._copy, files))

    def _copy(self, files: Sequence[StagedFile]) -> None:
        for file in files:
            if file.name not in self._attached:
                self.connection.exec_driver_sql(f"ATTACH ? AS {file.name}", (str(file.path),))
            for table in file.tables:
                if self._cancelled.is_set():
                    return
                self.connection.exec_driver_sql(f"INSERT INTO main.{table} SELECT * FROM {file.name}.{table}")

    def takes_more(self) -> bool:
        """Return whether all files so far are copied and another one may follow before the last."""
        if any(not running.done() for running in self._running):
            return False
        self.wait()
        return self._started < MAX_PARTS

    def wait(self) -> None:
        """Wait until all files are copied."""
        while self._running:
            self._running[0].result()
            del self._running[0]

    def cancel(self) -> None:
        """Stop the copy."""
        self._cancelled.set()
        driver = cast("Any", self.connection.connection).driver_connection
        while any(not running.done() for running in self._running):
            driver.interrupt()
            time.sleep(0.01)


@contextmanager
def copying(engine: Engine, files: Sequence[StagedFile]) -> Iterator[StoreCopy]:
    """Yield a write transaction for the copy of files, of which more may be named later; any error undoes it."""
    attached = {file.name: file.path for file in files}
    with writing(engine, attached) as connection, ThreadPoolExecutor(1, thread_name_prefix="copy") as pool:
        copy = StoreCopy(connection, pool, files)
        try:
            yield copy
            copy.wait()
        except BaseException:
            copy.cancel()
            raise
