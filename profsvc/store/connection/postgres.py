"""Postgres: supported servers, connection settings, error translation, retries."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from profsvc.errors import (
    InputError,
    NoSpaceError,
    ProfsvcError,
    ServiceError,
    StoreBusyError,
    StoreLostError,
    StoreRightsError,
    StoreVersionError,
)
from profsvc.store.connection.sql import Connection, Engine

if TYPE_CHECKING:
    from sqlalchemy import URL

MIN_SERVER_VERSION = 15
LOCK_TIMEOUT_SECONDS = 3
T = TypeVar("T")
# Seconds between attempts; their sum exceeds the time that a server needs to recover from a crash.
RETRY_DELAYS_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0)
# Connection options unless the URL sets them. They detect a lost server instead of waiting for it.
CONNECT_DEFAULTS: dict[str, str | int] = {
    "application_name": "profsvc",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
CONNECTION_LOST = "connection lost or server unreachable; uncommitted changes were rolled back; retry"
# What a server says that refuses connections now and takes them soon.
COMING = ("starting up", "shutting down", "in recovery", "not yet accepting connections")
# SQLSTATE or its prefix -> the error and its message.
ERRORS_BY_SQLSTATE: dict[str, tuple[type[ProfsvcError], str]] = {
    "08": (StoreLostError, CONNECTION_LOST),
    "57P": (StoreLostError, CONNECTION_LOST),
    "40": (StoreBusyError, "another process wrote the same rows at the same time; nothing was changed; retry"),
    "55P03": (StoreBusyError, "another process holds a lock on these rows; nothing was changed; retry later"),
    "53300": (StoreBusyError, "the server has no free connection; retry later, or raise its max_connections"),
    "53100": (NoSpaceError, "the disk of the server is full; nothing was changed; free some space and retry"),
    "53200": (ServiceError, "the server is out of memory; nothing was changed"),
    "57014": (ServiceError, "the statement was cancelled or took longer than the server allows; nothing was changed"),
    "25006": (ServiceError, "the server is a read-only standby; nothing was changed; use the primary server"),
    "42501": (
        StoreRightsError,
        "the user of this URL lacks a privilege; nothing was changed; to read needs SELECT, and to write INSERT, "
        "UPDATE and DELETE too, on every table of the store: grant them, use its owner, or for loading files the "
        "role of: profsvc db create-loader",
    ),
    "54000": (InputError, "a name in the file is longer than the server can index; nothing was changed"),
    "22021": (InputError, "a text in the file contains a character that the server cannot store; nothing was changed"),
}


def connect_args(url: "URL") -> dict[str, Any]:
    """Return the connection options that the URL does not set."""
    return {name: value for name, value in CONNECT_DEFAULTS.items() if name not in url.query}


def on_connect(connection: Any, _record: Any) -> None:
    """Tell the planner that random page reads are cheap, because the rows of an upload are adjacent.

    With the default of 4 it prefers a scan of all metrics of all runs to the range of one upload.
    """
    # Its warnings are of errors that it ignores while another of the same cause is raised, as when a server goes.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    connection.autocommit = True
    connection.execute("SET random_page_cost = 1.1")
    # Compiling a plan takes longer than answering a page of a list.
    connection.execute("SET jit = off")
    connection.autocommit = False


def user_error(error: BaseException, where: str) -> ProfsvcError:
    """Return the error for an exception of the driver: `StoreBusyError` or `StoreLostError` if a retry may help.

    >>> str(user_error(ValueError("what?"), "postgresql://db.lab/profsvc"))
    'postgresql://db.lab/profsvc: unexpected database error: what?'
    """
    state, said = getattr(error, "sqlstate", None) or "", " ".join(str(error).split())
    for sign, (kind, words) in ERRORS_BY_SQLSTATE.items():
        if state.startswith(sign):
            return kind(f"{where}: {words}" if kind is StoreLostError else f"{where}: {words} ({said})")
    if "NUL (0x00)" in said:
        return InputError(f"{where}: a text in the file contains a NUL character; nothing was changed")
    if not state and type(error).__name__ == "OperationalError":
        # Errors have no code before the connection is open and after it is lost.
        coming = "FATAL" not in said or any(words in said for words in COMING)
        if coming:
            return StoreLostError(f"{where}: {CONNECTION_LOST} ({said})")
        return ServiceError(f"{where}: the server refused the connection: {said}; check user, password and database")
    return ServiceError(f"{where}: unexpected database error: {said}")


def require_supported_server(connection: Connection, where: str) -> None:
    """Raise an error for a server that is too old and for a database without UTF-8."""
    driver: Any = connection.connection.driver_connection
    if driver.info.server_version < MIN_SERVER_VERSION * 10_000:
        raise StoreVersionError(
            f"{where} runs Postgres {driver.info.server_version // 10_000}; profsvc needs {MIN_SERVER_VERSION} or newer"
        )
    encoding = driver.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ServiceError(
            f"{where} stores texts as {encoding}, which lacks characters; create a new database with: "
            "CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8'"
        )


def lock_tables(connection: Connection, *tables: str) -> None:
    """Lock these tables against other writers until the end of the transaction, as the role that owns them.

    A waiting lock request blocks all later requests, so it times out soon and is retried.
    """
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'")
    for table in tables:
        query = f"SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass('{table}')"
        if owner := connection.exec_driver_sql(query).scalar():
            role = connection.dialect.identifier_preparer.quote_identifier(owner)
            connection.exec_driver_sql(f"SET LOCAL ROLE {role}")
            connection.exec_driver_sql(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")


@contextmanager
def joined_as_written(connection: Connection) -> Iterator[None]:
    """Let a server join the tables of a query in the order in which it names them.

    To try all orders of eight tables takes some 10 ms, which is longer than most of these queries.
    """
    if connection.dialect.name == "sqlite":
        yield
        return
    connection.exec_driver_sql("SET LOCAL join_collapse_limit = 1")
    yield
    connection.exec_driver_sql("SET LOCAL join_collapse_limit TO DEFAULT")


def retry(engine: Engine, action: Callable[[], T]) -> T:
    """Run ``action``; on a server retry it after a temporary failure.

    ``action`` must be idempotent, because it runs twice if the answer of a commit was lost.
    """
    if engine.dialect.name == "sqlite":
        return action()
    for wait in RETRY_DELAYS_SECONDS:
        try:
            return action()
        except (StoreBusyError, StoreLostError):
            import random

            time.sleep(wait * random.uniform(0.5, 1.5))
    return action()
