"""Transactions for reading and writing, reused connections, and the queue of writers."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar, cast

from profsvc.errors import NotFoundError
from profsvc.store.connection import locks
from profsvc.store.connection.errors import translate_errors
from profsvc.store.connection.locks import lock_file_of
from profsvc.store.connection.sql import Connection, Engine, FileReader, text
from profsvc.store.connection.urls import file_of
from profsvc.store.connection.versions import Version, file_version

WRITE_OPTION = "profsvc_write"
SCAN_KIB = 4096


Params = ParamSpec("Params")


Returned = TypeVar("Returned")


_SNAPSHOT: ContextVar[Connection | None] = ContextVar("shared", default=None)
"""The connection of the current `snapshot`."""
_VERSION: ContextVar[Version | None] = ContextVar("version", default=None)
"""The version of the file just before the current `snapshot` began."""


_TRANSACTION: ContextVar[tuple[Engine, Connection, Callable[[], None]] | None] = ContextVar("within", default=None)
"""The current transaction of `in_transaction`, and what waits until its connection is free."""


class _IdleConnections(NamedTuple):
    """The unused connections of `keep_connections`."""

    engine: Engine
    idle: list[Connection]

    def close(self) -> None:
        """Close them."""
        while self.idle:
            self.idle.pop().close()


_IDLE: ContextVar[_IdleConnections | None] = ContextVar("kept", default=None)


@contextmanager
def exclusive_writer(engine: Engine) -> Iterator[None]:
    """Wait for the turn of this process to write to a SQLite store; a server does not need it."""
    file = file_of(engine)
    if file is None:
        yield
        return
    with locks.hold_lock(lock_file_of(file), "it writes to the store"):
        yield


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a read transaction, or the connection of the current `in_transaction`."""
    if (own := _current_transaction(engine)) is not None:
        with translate_errors(engine):
            yield own
        return
    shared = _SNAPSHOT.get()
    if shared is not None and shared.engine is engine:
        with translate_errors(engine):
            yield shared
        return
    with translate_errors(engine), _connection(engine, writes=False) as connection, connection.begin():
        yield connection


@contextmanager
def scanning(engine: Engine) -> Iterator[Connection]:
    """Yield a connection as `reading` does, for long tables that are read once: SQLite keeps and sorts few pages."""
    with reading(engine) as connection:
        if connection.dialect.name != "sqlite":
            yield connection
            return
        driver = cast("Any", connection.connection).driver_connection
        (kept,) = driver.execute("PRAGMA cache_size").fetchone()
        if kept == -SCAN_KIB:  # another scan of this connection ends later
            yield connection
            return
        driver.execute(f"PRAGMA cache_size = -{SCAN_KIB}")
        try:
            yield connection
        finally:
            driver.execute(f"PRAGMA cache_size = {kept}")


@contextmanager
def _connection(engine: Engine, writes: bool) -> Iterator[Connection]:
    """Yield a connection, reused if `keep_connections` has one. After an error all of them are closed."""
    kept = _IDLE.get()
    # Engines with other options are other objects; all share the pool.
    if kept is None or kept.engine.pool is not engine.pool or isinstance(cast("object", engine), FileReader):
        with _open(engine, writes) as connection:
            yield connection
        return
    connection = kept.idle.pop() if kept.idle else engine.connect()
    connection.execution_options(**{WRITE_OPTION: writes})
    try:
        yield connection
    except BaseException:
        connection.close()
        kept.close()
        raise
    kept.idle.append(connection)


def _open(engine: Engine, writes: bool) -> Connection:
    return (engine.execution_options(**{WRITE_OPTION: True}) if writes else engine).connect()


@contextmanager
def kept_connections(engine: Engine) -> Iterator[None]:
    """Reuse the connections between the transactions of the block, and close them at its end."""
    kept = _IDLE.get()
    if kept is not None and kept.engine is engine:
        yield
        return
    token = _IDLE.set(kept := _IdleConnections(engine, []))
    try:
        yield
    finally:
        _IDLE.reset(token)
        kept.close()


def keep_connections(
    work: Callable[Concatenate[Engine, Params], Returned],
) -> Callable[Concatenate[Engine, Params], Returned]:
    """Reuse the connections between the transactions of ``work``, and close them at its end.

    Each step still has its own transaction. Opening a connection takes longer than most steps.
    """

    @wraps(work)
    def worked(engine: Engine, /, *args: Params.args, **options: Params.kwargs) -> Returned:
        with kept_connections(engine):
            return work(engine, *args, **options)

    return worked


def snapshot(
    question: Callable[Concatenate[Engine, Params], Returned],
) -> Callable[Concatenate[Engine, Params], Returned]:
    """Run all reads of ``question`` on one state of the store, with one connection; it must not write.

    Opening a connection takes longer than most queries, because SQLite then reads the statement of every view.
    """

    @wraps(question)
    def answered(engine: Engine, /, *args: Params.args, **options: Params.kwargs) -> Returned:
        shared = _SNAPSHOT.get()
        if _current_transaction(engine) is not None or (shared is not None and shared.engine is engine):
            return question(engine, *args, **options)
        server_keeps = engine.dialect.name == "postgresql"
        with translate_errors(engine), ExitStack() as opened:
            # Settings of a server connection would also apply to the next query.
            connection = opened.enter_context(engine.connect() if server_keeps else _connection(engine, writes=False))
            if server_keeps:
                connection.execution_options(isolation_level="REPEATABLE READ")
            version = file_version(engine)
            with connection.begin():
                token, before = _SNAPSHOT.set(connection), _VERSION.set(version)
                try:
                    return question(engine, *args, **options)
                finally:
                    _SNAPSHOT.reset(token)
                    _VERSION.reset(before)

    return answered


def snapshot_version(engine: Engine) -> Version | None:
    """Return the version of the file before the current `snapshot` began, else its newest; None if it has none.

    What is read from now on is of this version or a later one; of a snapshot that ends without a change, of this one.
    """
    shared = _SNAPSHOT.get()
    return _VERSION.get() if shared is not None and shared.engine is engine else file_version(engine)


@contextmanager
def writing(engine: Engine, attached: Mapping[str, Path] | None = None) -> Iterator[Connection]:
    """Yield a connection in a write transaction.

    ``attached`` maps schema names to further SQLite files to read from.
    """
    if (own := _current_transaction(engine)) is not None and not attached:
        with translate_errors(engine):
            yield own
        return
    with exclusive_writer(engine), translate_errors(engine), _connection(engine, writes=True) as connection:
        if not attached:
            with connection.begin():
                yield connection
            return
        driver: Any = connection.connection.driver_connection
        (cached,) = driver.execute("PRAGMA main.cache_size").fetchone()
        for name, path in attached.items():
            driver.execute(f"ATTACH ? AS {name}", (str(path),))
            driver.execute(f"PRAGMA {name}.synchronous = OFF")  # otherwise the commit would also wait for these files
        driver.execute("PRAGMA main.cache_size = -4096")  # rows are only appended
        with connection.begin():
            yield connection
        driver.execute(f"PRAGMA main.cache_size = {cached}")
        # To open another connection takes longer than this. Where a file is still in use, its connection is closed; the
        # rows are stored by now.
        try:
            for _, name, _ in driver.execute("PRAGMA database_list").fetchall():
                if name not in {"main", "temp"}:
                    driver.execute(f"DETACH {name}")
        except sqlite3.OperationalError:
            connection.invalidate()


def _current_transaction(engine: Engine) -> Connection | None:
    if (current := _TRANSACTION.get()) is None or current[0] is not engine:
        return None
    _, connection, wait_until_free = current
    wait_until_free()
    return connection


def is_in_transaction(engine: Engine) -> bool:
    """Return whether this runs inside of `in_transaction`."""
    return _current_transaction(engine) is not None


@contextmanager
def in_transaction(
    engine: Engine, connection: Connection, wait_until_free: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Use this open transaction for all reads and writes of the block.

    So rows and the results computed from them change together for all readers, even after a kill. If another thread
    uses the connection as well, ``wait_until_free`` waits for it.
    """
    token = _TRANSACTION.set((engine, connection, wait_until_free))
    try:
        yield
    finally:
        _TRANSACTION.reset(token)


def lock_existing_row(connection: Connection, table: str, key: str, number: int) -> None:
    """Raise `NotFoundError` if a table lacks the row with this number; a second writer of the row waits."""
    waits = " FOR NO KEY UPDATE" if connection.dialect.name == "postgresql" else ""
    query = text(f"SELECT 1 FROM {table} WHERE {key} = :number{waits}")
    if connection.execute(query, {"number": number}).first() is None:
        raise NotFoundError(f"no {table.removesuffix('s')} has the number {number}")
