"""Job of a worker process (`profsvc.workers.worker`) in which SQLite runs one query of a user.

A separate process is needed because only killing it stops some operations: a function that creates a huge text, or a
sort that fills the disk.

A response is a tuple: ``("columns", names, is_repeatable)``, repeated ``("rows", rows)``, ``("end",)``; or one of the
failures ``("refused", action, name, views)``, ``("late",)``, ``("memory",)`` and ``("error", class, words, views)``.

Queries are restricted by the authorizer of SQLite with a list of allowed actions, on a read-only connection. Read-only
access alone is not enough, because such a connection can still attach and copy files.

Base tables may only be read by views. SQLite passes the name of the reading view to the authorizer, but also that of a
common table expression, and ``WITH v1_runs AS (SELECT * FROM secrets)`` would look like a view. So every query gets
its own copies of the views under names that cannot be guessed, and only these may read.
"""

from __future__ import annotations

import marshal
import os
import sqlite3
import time

TYPE_CHECKING = False  # as `typing` has it: every query waits for what is imported here
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

FORBIDDEN_FUNCTIONS = {
    *("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "eval", "sqlite_compileoption_get"),
    *("sqlite_compileoption_used", "sqlite_log", "sqlite_offset", "zipfile", "fsdir", "lsmode"),
}
CHANGING_FUNCTIONS = {
    *("random", "randomblob", "date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"),
    *("current_date", "current_time", "current_timestamp", "changes", "total_changes", "last_insert_rowid"),
}
"""Functions that may give something else the next time, although the store is the same."""
FUNCTION_TABLES = {"json_each", "json_tree"}
OPS_PER_CLOCK_CHECK = 1000
_PREFIX, _CREATE, _AS = "v1_", "CREATE VIEW ", " AS\n"


class Guard:
    """The permissions of a query, and its first violation."""

    def __init__(self, seconds: float) -> None:
        """Begin without permissions and violations."""
        self.seconds = seconds
        self.nonce = f"n{os.urandom(16).hex()}_"
        self.views: list[str] = []
        self.closed: set[str] = set()
        self.read_by_views: set[str] = set()
        self.caught: tuple[str, str] | None = None
        self.is_repeatable = True
        self.deadline = 0.0

    def authorize(self, action: int, first: str | None, second: str | None, _base: str | None, by: str | None) -> int:
        """Authorize an action; SQLite calls this for every action while it prepares a statement."""
        if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in FORBIDDEN_FUNCTIONS:
            self.is_repeatable &= (second or "").lower() not in CHANGING_FUNCTIONS
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and self._may_read(first or "", second or "", by or ""):
            return sqlite3.SQLITE_OK
        if self.caught is None:
            kinds = {sqlite3.SQLITE_READ: ("read", first or ""), sqlite3.SQLITE_FUNCTION: ("call", second or "")}
            self.caught = kinds.get(action, ("act", ""))
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str, by: str) -> bool:
        if table in self.views or table in FUNCTION_TABLES or table.startswith(self.nonce):
            return True
        if by.startswith(self.nonce):
            self.read_by_views.add(table)
            return True
        # Without a column the rows are counted, and SQLite does not name the view. It is a view that has read the table
        # before, or a common table expression, whose name is unique.
        return column == "" and (table in self.read_by_views or not self._is_closed(table.lower()))

    def _is_closed(self, table: str) -> bool:
        return table in self.closed or table.startswith(("sqlite_", "pragma_"))

    def late(self) -> bool:
        """Return whether the time limit has passed; a true value makes SQLite stop."""
        return time.perf_counter() > self.deadline


def restrict_connection(connection: sqlite3.Connection, guard: Guard, limits: dict[int, int], query: str) -> None:
    """Copy the views under the secret names of the guard, then deny all other access."""
    # A table-valued function declares its table at the first use, which must happen before the guard is active.
    for table in FUNCTION_TABLES:
        connection.execute(f"SELECT 1 FROM {table}('[]')")
    named = "SELECT name FROM sqlite_master WHERE type = 'table' UNION SELECT name FROM pragma_module_list"
    guard.closed = {name.lower() for (name,) in connection.execute(named)} - FUNCTION_TABLES
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid").fetchall()
    statements = [sql.removeprefix(_CREATE).partition(_AS) for (sql,) in rows if sql.startswith(_CREATE + _PREFIX)]
    views = {name: body for name, ends, body in statements if ends and name.isidentifier()}
    guard.views += views
    for view in _named_views(query, views):
        connection.execute(f"CREATE TEMP VIEW {guard.nonce}{view} AS\n{views[view]}")
        connection.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {guard.nonce}{view}")
    for limit, value in limits.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(guard.authorize)
    guard.deadline = time.perf_counter() + guard.seconds
    connection.set_progress_handler(guard.late, OPS_PER_CLOCK_CHECK)


def _named_views(query: str, views: dict[str, str]) -> list[str]:
    """Return the views that a query names, and those that they name: copies of all take longer than most queries.

    ``views`` has what each selects.

    SQLite takes a name in any case, but knows no other way of writing it.
    """
    found, new = set[str](), {query.lower()}
    while new:
        named = {name for text in new for name in _names(text)} & views.keys() - found
        found |= named
        new = {views[name].lower() for name in named}
    return [view for view in views if view in found]


def _names(text: str) -> Iterator[str]:
    """Yield the names in a text that begin as those of views do; `re` would take longer to import than to search."""
    for rest in text.split(_PREFIX)[1:]:
        length = next((at for at, sign in enumerate(rest) if not (sign.isalnum() or sign == "_")), len(rest))
        yield _PREFIX + rest[:length]


def answer(connection: sqlite3.Connection, request: dict[str, Any], guard: Guard) -> Iterator[tuple[Any, ...]]:
    """Yield the requested number of rows of the query as frames."""
    cursor = connection.execute(request["sql"], request["params"])
    rows = cursor.fetchmany(1)  # immediate errors are raised before anything is sent
    if cursor.description is None:
        yield ("empty",)
        return
    yield "columns", [column[0] for column in cursor.description], guard.is_repeatable
    left = request["most"]
    while rows and left > 0:
        yield "rows", rows[:left]
        left -= len(rows)
        rows = cursor.fetchmany(request["chunk"])
    yield ("end",)


def failure(error: Exception, guard: Guard) -> tuple[Any, ...]:
    """Return the frame for an error."""
    words = str(error).replace(guard.nonce, "")
    if guard.caught:
        return ("refused", *guard.caught, guard.views)
    if words == "interrupted":
        return ("late",)
    if isinstance(error, MemoryError):
        return ("memory",)
    return ("error", "store" if isinstance(error, sqlite3.DatabaseError) else "question", words, guard.views)


def run(asked: dict[str, Any], _: object, send: Callable[[bytes], None]) -> None:
    """Answer the request."""
    guard = Guard(asked["seconds"])
    try:
        patience = min(10.0, asked["seconds"])
        opened = sqlite3.connect(asked["address"], uri=True, isolation_level=None, timeout=patience)
        try:
            restrict_connection(opened, guard, asked["sqlite_limits"], asked["sql"])
            for frame in answer(opened, asked, guard):
                send(marshal.dumps(frame))
        finally:
            opened.close()
    except BrokenPipeError:
        os._exit(0)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        send(marshal.dumps(failure(error, guard)))
