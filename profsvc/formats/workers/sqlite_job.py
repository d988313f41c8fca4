"""Job of a worker process (`profsvc.workers.worker`) that opens and reads an untrusted SQLite database.

The first request has the path and the limit of a value. Its response is ``("tables", {table: columns})``, or an error.
The response to ``("one", sql, values)`` is ``("row", row)``, to ``("rows", number, sql)`` and ``("more", number)`` it
is ``("rows", rows, are_all)``. ``("drop", number)`` has none. The response to a request that SQLite refuses is
``("error", words)``.
"""

from __future__ import annotations

import marshal
import sqlite3

TYPE_CHECKING = False  # as `typing` has it: every file waits for what is imported here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

FIRST_ROWS, MAX_ROWS = 8, 8192
"""Rows of the first response to a query, and at most."""
LARGE_BYTES = 2 << 20
"""Bytes of a response after which the next one has fewer rows."""
ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
GENERATED_COLUMN_KINDS = {2, 3}
"""Values by which `table_xinfo` marks generated columns, virtual or stored."""


class RefusedError(Exception):
    """The schema contains something that could execute code."""


def authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Return whether SQLite may perform an action; called for every action while a statement is prepared."""
    counts = action == sqlite3.SQLITE_FUNCTION and second == "count"
    return sqlite3.SQLITE_OK if action in ALLOWED or counts else sqlite3.SQLITE_DENY


def opened(path: str, value_limit: int) -> sqlite3.Connection:
    """Open a file read-only, with all settings for an untrusted schema."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, value_limit)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    wanted = ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "ignore_check_constraints=ON")
    for pragma in (*wanted, "temp_store=MEMORY", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def quoted(name: str) -> str:
    """Write ``name`` as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the plain tables with their columns; refuse schemas that could execute code."""
    found: dict[str, list[str]] = {}
    rows = connection.execute("SELECT type, name, rootpage FROM sqlite_master").fetchall()
    for kind, name, page in rows:
        if kind == "trigger":
            raise RefusedError(f"a trigger, {name!r}")
        if kind == "table" and not page:
            raise RefusedError(f"a virtual table, {name!r}")
    for kind, name, _ in rows:
        if kind != "table":
            continue
        columns = connection.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
        if computed := next((column[1] for column in columns if column[6] in GENERATED_COLUMN_KINDS), None):
            raise RefusedError(f"a generated column, {computed!r} of {name!r}")
        found[name] = [column[1] for column in columns]
    return found


class Cursor:
    """The rows of a query, in frames of limited size."""

    def __init__(self, rows: sqlite3.Cursor) -> None:
        """Start with few rows, which show the size of a row."""
        self.rows, self.count = rows, FIRST_ROWS

    def frame(self) -> bytes:
        """Return the next frame."""
        rows = self.rows.fetchmany(self.count)
        body = marshal.dumps(("rows", rows, len(rows) < self.count))
        self.count = min(2 * self.count, MAX_ROWS) if len(body) < LARGE_BYTES else max(self.count // 2, 1)
        return body


def answer(connection: sqlite3.Connection, cursors: dict[int, Cursor], request: tuple[Any, ...]) -> bytes:
    """Return the response to a request; empty for a request without a response."""
    kind, *rest = request
    if kind == "one":
        return marshal.dumps(("row", connection.execute(*rest).fetchone()))
    number = rest[0]
    if kind == "drop":
        cursors.pop(number, None)
        return b""
    if kind == "rows":
        cursors[number] = Cursor(connection.execute(rest[1]))
    return cursors[number].frame()


def failure(error: Exception) -> bytes:
    """Return the frame for what went wrong."""
    return marshal.dumps(("error", str(error) or "no memory is left"))


def run(asked: dict[str, Any], received: Callable[[], Any], send: Callable[[bytes], None]) -> None:
    """Respond to requests until there are no more."""
    try:
        connection = opened(asked["path"], asked["value_limit"])
        found = tables(connection)
        (said,) = connection.execute("PRAGMA quick_check(1)").fetchone() or ("nothing",)
        if said != "ok":
            send(marshal.dumps(("damaged", str(said))))
            return
        connection.set_authorizer(authorize)
        send(marshal.dumps(("tables", found)))
    except RefusedError as error:
        send(marshal.dumps(("refused", str(error))))
        return
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        send(failure(error))
        return
    cursors: dict[int, Cursor] = {}
    while (request := received()) is not None:
        try:
            body = answer(connection, cursors, request)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            body = failure(error)
        if body:
            send(body)
