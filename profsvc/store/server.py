"""What is a Postgres server's own: which servers will do, what their failures mean, and which are worth another try."""

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import URL, Connection, Engine

from profsvc.errors import (
    InputError,
    NoSpaceError,
    ProfsvcError,
    ServiceError,
    StoreBusyError,
    StoreLostError,
    StoreVersionError,
)

OLDEST = 15
LOCK_SECONDS = 3
T = TypeVar("T")
# Seconds between one try and the next; together longer than a server takes to come back from a crash.
WAITS = (0.2, 0.5, 1.0, 2.0, 4.0)
# How a connection is made where its URL does not say: a server that has gone is noticed, not waited for.
CONNECT: dict[str, str | int] = {
    "application_name": "profsvc",
    "client_encoding": "utf8",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
LOST = "the connection broke or the server is not there; what was not committed is undone; repeat it"
# Code of an error, or how it begins -> what it is and what it means here.
MEANS: dict[str, tuple[type[ProfsvcError], str]] = {
    "08": (StoreLostError, LOST),
    "57P": (StoreLostError, LOST),
    "40": (StoreBusyError, "another process wrote the same rows at the same time; nothing was changed; repeat it"),
    "55P03": (StoreBusyError, "another process holds what this needs; nothing was changed; repeat it later"),
    "53300": (StoreBusyError, "the server has no free connection; raise its max_connections, or repeat it later"),
    "53100": (NoSpaceError, "no space is left on the server's disk; nothing was changed; free some space and repeat"),
    "53200": (ServiceError, "the server has no memory left; nothing was changed"),
    "57014": (ServiceError, "the statement was cancelled or took longer than the server allows; nothing was changed"),
    "25006": (ServiceError, "the server only reads, as a standby does; use the primary one; nothing was changed"),
    "42501": (ServiceError, "the user of this URL may not do that; nothing was changed"),
    "54000": (InputError, "a name in the file is longer than the server can index; nothing was changed"),
    "22021": (InputError, "a text in the file holds a character that the server does not store; nothing was changed"),
}


def connect_args(url: URL) -> dict[str, Any]:
    """Return how to connect, as far as the URL does not say it itself."""
    return {name: value for name, value in CONNECT.items() if name not in url.query}


def on_connect(connection: Any, _record: Any) -> None:
    """Tell the planner that pages which keys lead to are near each other, as the rows of an upload are.

    By the default of 4 it takes a scan of all metrics of all runs to be cheaper than the range of one upload.
    """
    connection.autocommit = True
    connection.execute("SET random_page_cost = 1.1")
    # Compiling a plan takes longer than any page of a list.
    connection.execute("SET jit = off")
    connection.autocommit = False


def explained(error: BaseException, where: str) -> ProfsvcError:
    """Return the error for what the driver raised; one that is worth another try is a `StoreBusyError` or lost.

    >>> str(explained(ValueError("what?"), "postgresql://db.lab/profsvc"))
    'postgresql://db.lab/profsvc: the database answered: what?'
    """
    state, said = getattr(error, "sqlstate", None) or "", " ".join(str(error).split())
    for sign, (kind, words) in MEANS.items():
        if state.startswith(sign):
            return kind(f"{where}: {words}" if kind is StoreLostError else f"{where}: {words} ({said})")
    if "NUL (0x00)" in said:
        return InputError(f"{where}: a text in the file holds a NUL character, which no text has; nothing was changed")
    if not state and type(error).__name__ == "OperationalError":
        # Before a connection stands, and after it is cut, errors have no code.
        coming = ("FATAL" not in said) or "starting up" in said or "shutting down" in said or "in recovery" in said
        if coming:
            return StoreLostError(f"{where}: {LOST} ({said})")
        return ServiceError(f"{where}: the server refused the connection: {said}; check user, password and database")
    return ServiceError(f"{where}: the database answered: {said}")


def check(connection: Connection, where: str) -> None:
    """Refuse a server that is too old, and a database that cannot hold every text."""
    driver: Any = connection.connection.driver_connection
    if driver.info.server_version < OLDEST * 10_000:
        raise StoreVersionError(
            f"{where} runs Postgres {driver.info.server_version // 10_000}; profsvc needs {OLDEST} or newer"
        )
    encoding = driver.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ServiceError(
            f"{where} keeps texts as {encoding}, which lacks characters; make the database anew with: "
            "CREATE DATABASE name TEMPLATE template0 ENCODING 'UTF8'"
        )


def alone(connection: Connection, *tables: str) -> None:
    """Let nobody else write to these tables until the end of the transaction, as the role that owns them.

    What waits for a table holds up everybody who comes after; so it gives up soon, and is tried again.
    """
    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
    for table in tables:
        query = f"SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass('{table}')"
        if owner := connection.exec_driver_sql(query).scalar():
            role = connection.dialect.identifier_preparer.quote_identifier(owner)
            connection.exec_driver_sql(f"SET LOCAL ROLE {role}")
            connection.exec_driver_sql(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")


def repeated(engine: Engine, action: Callable[[], T]) -> T:
    """Do what may be done again, and on a server try again after a failure that passes by itself.

    ``action`` must change the same whether it runs once or, where an answer was lost, twice.
    """
    if engine.dialect.name == "sqlite":
        return action()
    for wait in WAITS:
        try:
            return action()
        except (StoreBusyError, StoreLostError):
            time.sleep(wait * random.uniform(0.5, 1.5))
    return action()
