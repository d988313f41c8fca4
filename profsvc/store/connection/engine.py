"""The engine of a store and the settings of its connections."""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.exc import NoSuchModuleError

from profsvc.errors import ServiceError
from profsvc.store.connection import file_permissions, postgres
from profsvc.store.connection.errors import BUSY_SECONDS, translate_errors
from profsvc.store.connection.filesystem import journal_of
from profsvc.store.connection.sqlite_file import begin_reading, has_journal, prepare
from profsvc.store.connection.transactions import WRITE_OPTION, exclusive_writer
from profsvc.store.connection.urls import file_of

COMMIT_SECONDS = 60  # time that a writer waits at its commit for transactions that still read the old state
POOL = {"poolclass": QueuePool, "pool_size": 5, "max_overflow": 100, "pool_pre_ping": True, "pool_recycle": 1800}
MIN_SQLITE_VERSION = (3, 37, 0)  # the first version with strict tables


def make_engine(url: URL, *, pooled: bool = False) -> Engine:
    """Return the engine of a store, without accessing the database.

    With ``pooled`` connections to a server stay open between transactions, for a process that lives long: a new one
    has to learn every view again, which takes the server longer than most questions.
    """
    try:
        # Mostly no pool: opening a file takes 1 ms and a connection 3 ms, and without one no connection is inherited by
        # a forked worker.
        if url.get_backend_name() != "sqlite":
            kept: dict[str, Any] = POOL if pooled else {"poolclass": NullPool}
            engine = create_engine(url, connect_args=postgres.connect_args(url), **kept)
            event.listen(engine, "connect", postgres.on_connect)
            return engine
        engine = create_engine(url, poolclass=NullPool, connect_args={"timeout": BUSY_SECONDS})
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise ServiceError(f"the database driver is missing ({error}); run: pip install 'profsvc[postgres]'") from None
    if sqlite3.sqlite_version_info < MIN_SQLITE_VERSION:
        raise ServiceError(f"SQLite {sqlite3.sqlite_version} is too old; profsvc needs 3.37 or newer")
    event.listen(engine, "do_connect", file_permissions.before_connect)
    event.listen(engine, "connect", _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect(connection: Any, _record: Any) -> None:
    prepare(connection)


def _on_begin(connection: Connection) -> None:
    # A plain BEGIN that reads and then writes fails immediately if another writer committed in between, and the timeout
    # does not apply. So writers take the lock first, and readers never do.
    driver: Any = connection.connection.driver_connection
    if connection.get_execution_options().get(WRITE_OPTION):
        driver.execute(f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        driver.execute("BEGIN IMMEDIATE")
        driver.execute(f"PRAGMA busy_timeout = {COMMIT_SECONDS * 1000}")
    else:
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
