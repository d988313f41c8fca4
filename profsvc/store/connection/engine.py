"""The engine of a store and the settings of its connections."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.exc import DisconnectionError, NoSuchModuleError

from profsvc.errors import ServiceError
from profsvc.store.connection import file_permissions, postgres
from profsvc.store.connection.errors import BUSY_SECONDS, translate_errors
from profsvc.store.connection.filesystem import journal_of
from profsvc.store.connection.kept_answers import keep_answers
from profsvc.store.connection.sqlite_file import begin_reading, has_journal, prepare
from profsvc.store.connection.transactions import WRITE_OPTION, exclusive_writer
from profsvc.store.connection.urls import file_of

COMMIT_SECONDS = 60  # time that a writer waits at its commit for transactions that still read the old state
POOL = {"poolclass": QueuePool, "pool_size": 5, "max_overflow": 100, "pool_pre_ping": True, "pool_recycle": 1800}
# As many connections stay as pages and queries are answered at once, those used last first.
SQLITE_POOL = {"poolclass": QueuePool, "pool_size": 6, "max_overflow": 100, "pool_use_lifo": True}
POOLED_STATEMENTS = 256
"""Statements that each of these connections keeps prepared, as many as the pages of the service have among them."""
POOLED_CACHE_KIB = 8192
"""Pages of the file that each of these connections keeps while it reads; more made no page of the service faster."""
MIN_SQLITE_VERSION = (3, 37, 0)  # the first version with strict tables


def make_engine(url: URL, *, pooled: bool = False) -> Engine:
    """Return the engine of a store, without accessing the database.

    With ``pooled`` connections stay open between transactions, for a process that lives long: a new one has to learn
    every view again, which takes longer than most questions. Those of a SQLite file hold no lock meanwhile.
    """
    try:
        # Mostly no pool: without one no connection is inherited by a forked worker.
        if url.get_backend_name() != "sqlite":
            kept: dict[str, Any] = POOL if pooled else {"poolclass": NullPool}
            engine = create_engine(url, connect_args=postgres.connect_args(url), **kept)
            event.listen(engine, "connect", postgres.on_connect)
            if pooled:
                keep_answers(engine)
            return engine
        kept = SQLITE_POOL if pooled else {"poolclass": NullPool}
        options = {"timeout": BUSY_SECONDS} | ({"cached_statements": POOLED_STATEMENTS} if pooled else {})
        engine = create_engine(url, connect_args=options, **kept)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise ServiceError(f"the database driver is missing ({error}); run: pip install 'profsvc[postgres]'") from None
    if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
        raise ServiceError(f"SQLite {sqlite3.sqlite_version} is too old; profsvc needs 3.37 or newer")
    event.listen(engine, "do_connect", file_permissions.before_connect)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    if pooled:
        event.listen(engine, "connect", _on_pooled_connect)
        event.listen(engine, "checkout", _on_checkout)
        event.listen(engine, "checkin", _on_checkin)
        keep_answers(engine)
    return engine


def _on_connect(connection: Any, record: Any) -> None:
    prepare(connection)
    record.info["file"] = _file_behind(connection)


def _on_pooled_connect(connection: Any, _record: Any) -> None:
    connection.execute(f"PRAGMA cache_size = -{POOLED_CACHE_KIB}")


def _on_checkout(connection: Any, record: Any, _proxy: Any) -> None:
    """Open the file again if another one has its name now, such as a backup that was put in its place."""
    if record.info["file"] != _file_behind(connection):
        raise DisconnectionError


def _on_checkin(connection: Any, record: Any) -> None:
    """Close what has other files beside it or was used for a migration; others free memory."""
    if connection is None:
        return
    (keys,) = connection.execute("PRAGMA foreign_keys").fetchone()
    if keys and len(connection.execute("PRAGMA database_list").fetchall()) == 1:
        connection.execute("PRAGMA shrink_memory")
    else:
        record.invalidate()


def _file_behind(connection: Any) -> tuple[int, int] | None:
    """Return the device and number of the file that has the name of an open one now; None if there is none."""
    (_, _, name) = connection.execute("PRAGMA database_list").fetchone()
    try:
        found = Path(name).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _on_begin(connection: Connection) -> None:
    # A plain BEGIN that reads and then writes fails immediately if another writer committed in between, and the timeout
    # does not apply. So writers take the lock first, and readers never do.
    driver: Any = connection.connection.driver_connection
    if connection.get_execution_options().get(WRITE_OPTION):
        connection.connection.info["writes"] = True
        driver.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        driver.execute("BEGIN IMMEDIATE")
        driver.execute(f"PRAGMA busy_timeout = {COMMIT_SECONDS * 1000}")
    else:
        if connection.connection.info.get("writes"):
            driver.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        begin_reading(driver, Path(str(connection.engine.url.database)))


def set_journal(engine: Engine) -> None:
    """Set the journal that is safe for this SQLite and file system: a write-ahead log, else a rollback journal."""
    file = file_of(engine)
    if file is None:
        return
    with translate_errors(engine), engine.connect() as connection:
        if not has_journal(connection):
            driver: Any = connection.connection.driver_connection
            with exclusive_writer(engine):
                driver.execute(f"PRAGMA journal_mode = {journal_of(file)}")
