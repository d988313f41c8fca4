"""Which state a SQLite file is in, for a process that lives long: another one after each commit of anybody."""

import sqlite3
import threading
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from profsvc.store.connection.sql import Engine

Version = tuple[object, ...]


class _Watch:
    """A connection that is asked for nothing but whether others have committed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._of_file: tuple[int, int] | None = None
        self._opened = 0

    def version(self) -> Version | None:
        with self._lock:
            try:
                found = self._file.stat()
                if self._connection is None or self._of_file != (found.st_dev, found.st_ino):
                    self._close()
                    # Who commits to a file without a write-ahead log locks it: that is not waited for here.
                    self._connection = sqlite3.connect(
                        self._file, timeout=0, isolation_level=None, check_same_thread=False
                    )
                    self._of_file = found.st_dev, found.st_ino
                    self._opened += 1
                ((number,),) = self._connection.execute("PRAGMA data_version").fetchall()
            except (OSError, sqlite3.Error):
                return None
            return self._opened, number

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


_WATCHES: "WeakKeyDictionary[Any, _Watch]" = WeakKeyDictionary()


def watch(engine: Engine, file: Path) -> None:
    """Let `file_version` tell the versions of the file of this engine, until the engine is disposed of."""
    from sqlalchemy import event

    made = _WATCHES[engine.dialect] = _Watch(file)  # engines with other options have the same dialect

    def close(_engine: Engine) -> None:
        made.close()

    event.listen(engine, "engine_disposed", close)


def file_version(engine: Engine) -> Version | None:
    """Return the version of a watched file; None without one, and while somebody commits to it.

    What is read after this is of this version or a later one.
    """
    if not _WATCHES:  # a command, whose reader of a file has no dialect of SQLAlchemy either
        return None
    try:
        found = _WATCHES.get(engine.dialect)
    except TypeError:
        return None
    return None if found is None else found.version()
