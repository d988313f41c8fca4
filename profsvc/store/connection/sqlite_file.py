"""Connections to the file of a SQLite store: their settings, how they begin to read, and readers without SQLAlchemy."""

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from profsvc.store.connection import locks
from profsvc.store.connection.errors import BUSY_SECONDS
from profsvc.store.connection.filesystem import journal_of
from profsvc.store.connection.locks import lock_file_of
from profsvc.store.connection.sql import Connection, Engine, FileReader


def prepare(driver: sqlite3.Connection) -> None:
    """Set what holds for every connection."""
    driver.isolation_level = None  # disables the BEGIN of the driver, because transactions issue their own
    for pragma in ("foreign_keys = ON", "synchronous = FULL", "cache_size = -32768"):
        driver.execute(f"PRAGMA {pragma}")


def begin_reading(driver: sqlite3.Connection, file: Path) -> None:
    """Begin to read. Without a write-ahead log a committing writer blocks readers, so wait for it in the queue."""
    until = time.monotonic() + locks.MAX_WAIT_SECONDS
    while True:
        driver.execute("BEGIN")
        try:
            driver.execute("SELECT 1 FROM sqlite_schema LIMIT 1")
            return
        except sqlite3.OperationalError as error:
            driver.rollback()
            left = until - time.monotonic()
            if "locked" not in str(error) or left <= 0:
                raise
            with locks.hold_lock(lock_file_of(file), "it writes to the store", shared=True, seconds=left):
                continue


def has_journal(connection: Connection) -> bool:
    """Return whether a SQLite file has the journal that `set_journal` would set."""
    driver: Any = connection.connection.driver_connection
    file = Path(str(connection.engine.url.database))
    return bool(driver.execute("PRAGMA journal_mode").fetchone()[0] == journal_of(file))


def reader_of(file: Path, full: Callable[[], Engine]) -> Engine:
    """Return what stands for the engine of a store that is only asked; ``full`` makes that of SQLAlchemy.

    The file must be there.
    """

    def opened(path: Path) -> sqlite3.Connection:
        driver = sqlite3.connect(path, timeout=BUSY_SECONDS)
        prepare(driver)
        return driver

    return cast("Engine", FileReader(file, opened, lambda driver: begin_reading(driver, file), full))
