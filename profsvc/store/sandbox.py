"""SQL of a user: it can neither write, nor read anything but the views, nor run longer than its limit.

The defence is SQLite's authorizer with a list of what is allowed, on a connection of its own that is open for
reading only. Reading alone would not do: such a connection may still attach and copy files.

A base table may only be read by a view. SQLite tells the authorizer which view reads, but it also tells the name of a
common table expression, and ``WITH v1_runs AS (SELECT * FROM secrets)`` would pass for a view. So every query gets
its own copies of the views under names that nobody can guess, and only these may read.
"""

import difflib
import re
import secrets
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Engine

from profsvc.errors import ServiceError, UsageError
from profsvc.store.engine import BUSY_SECONDS, explained, file_of

FORBIDDEN_FUNCTIONS = {
    *("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "eval", "sqlite_compileoption_get"),
    *("sqlite_compileoption_used", "sqlite_log", "sqlite_offset", "zipfile", "fsdir", "lsmode"),
}
FUNCTION_TABLES = {"json_each", "json_tree"}
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1_000_000,  # a time limit does not interrupt one function that makes a huge text
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 50,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 1_000_000,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
OPS_BETWEEN_LOOKS = 1000
MAX_BYTES = 64 << 20
_VIEW = re.compile(r"CREATE VIEW (v1_\w+) AS\n")


class Answer(NamedTuple):
    """The rows of a query; ``truncated`` if there were more than the limit."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    truncated: bool


def query(
    engine: Engine,
    sql: str,
    params: Mapping[str, Any] | None = None,
    *,
    max_rows: int = 10_000,
    seconds: float = 10.0,
) -> Answer:
    """Answer one SELECT over the ``v1_`` views; ``params`` are the values of ``:name`` in it."""
    file = file_of(engine)
    if file is None:
        raise ServiceError("SQL of users is answered by a SQLite store only, so far")
    address = f"{file.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)) as connection:
            guard = _Guard(seconds)
            _seal(connection, guard)
            return _answer(connection, guard, sql, dict(params or {}), max_rows)
    except sqlite3.Error as error:
        raise explained(str(error), str(file)) from error


@dataclass
class _Guard:
    """What one query may do, and what it was caught at."""

    seconds: float
    nonce: str = field(default_factory=lambda: f"n{secrets.token_hex(16)}_")
    views: list[str] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    read_by_views: set[str] = field(default_factory=set)
    caught: str = ""
    deadline: float = 0.0

    def authorize(self, action: int, first: str | None, second: str | None, _base: str | None, by: str | None) -> int:
        """Say whether SQLite may do this; called for every step while a statement is prepared."""
        if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in FORBIDDEN_FUNCTIONS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ and self._may_read(first or "", second or "", by or ""):
            return sqlite3.SQLITE_OK
        if not self.caught:
            tables = sqlite3.SQLITE_READ
            self.caught = self._refuse_table(first or "") if action == tables else self._refuse(action, second or "")
        return sqlite3.SQLITE_DENY

    def _may_read(self, table: str, column: str, by: str) -> bool:
        if table in self.views or table in FUNCTION_TABLES or table.startswith(self.nonce):
            return True
        if by.startswith(self.nonce):
            self.read_by_views.add(table)
            return True
        # Without a column the rows are counted, and SQLite does not say for whom: for a view that has read the table
        # before, or of a common table expression, which has a name that nothing else has.
        return column == "" and (table in self.read_by_views or not self._is_closed(table.lower()))

    def _is_closed(self, table: str) -> bool:
        return table in self.closed or table.startswith(("sqlite_", "pragma_"))

    def _refuse_table(self, table: str) -> str:
        near = difflib.get_close_matches(f"v1_{table.removeprefix('v1_')}", self.views, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        return f"{table!r} cannot be read, only the views can: {', '.join(self.views)}{hint}"

    def _refuse(self, action: int, name: str) -> str:
        if action == sqlite3.SQLITE_FUNCTION:
            return f"the function {name!r} is not allowed"
        return "only a SELECT is answered: nothing can be written, attached, copied or set"

    def late(self) -> bool:
        """Tell whether the time is up; true makes SQLite stop."""
        return time.perf_counter() > self.deadline


def _seal(connection: sqlite3.Connection, guard: _Guard) -> None:
    """Copy the views under the guard's secret names, then close every other door."""
    # A table-valued function declares its table at its first use, which the guard would have to allow.
    for table in FUNCTION_TABLES:
        connection.execute(f"SELECT 1 FROM {table}('[]')")
    named = "SELECT name FROM sqlite_master WHERE type = 'table' UNION SELECT name FROM pragma_module_list"
    guard.closed = {name.lower() for (name,) in connection.execute(named)} - FUNCTION_TABLES
    rows = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid").fetchall()
    for (sql,) in rows:
        if found := _VIEW.match(sql):
            view = found[1]
            guard.views.append(view)
            connection.execute(_VIEW.sub(f"CREATE TEMP VIEW {guard.nonce}{view} AS\n", sql, count=1))
            connection.execute(f"CREATE TEMP VIEW {view} AS SELECT * FROM {guard.nonce}{view}")
    for limit, value in LIMITS.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(guard.authorize)
    guard.deadline = time.perf_counter() + guard.seconds
    connection.set_progress_handler(guard.late, OPS_BETWEEN_LOOKS)


def _answer(connection: sqlite3.Connection, guard: _Guard, sql: str, params: dict[str, Any], max_rows: int) -> Answer:
    try:
        cursor = connection.execute(sql, params)
        rows, truncated = _fetch(cursor, max_rows)
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        raise _explained(error, guard) from None
    if cursor.description is None:
        raise UsageError("there is no SELECT in the query")
    return Answer([column[0] for column in cursor.description], rows, truncated)


def _fetch(cursor: sqlite3.Cursor, max_rows: int) -> tuple[list[tuple[Any, ...]], bool]:
    """Return rows up to the limit of rows and of bytes, and whether there were more."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for row in cursor:
        size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
        if len(rows) == max_rows or size > MAX_BYTES:
            return rows, True
        rows.append(row)
    return rows, False


def _explained(error: Exception, guard: _Guard) -> UsageError | ServiceError:
    """Return the error to show for what SQLite said."""
    words = str(error).replace(guard.nonce, "")
    if guard.caught:
        return UsageError(guard.caught)
    if words == "interrupted":
        return UsageError(
            f"the query took longer than {guard.seconds:g} s and was stopped; ask for less, such as one run"
        )
    if isinstance(error, sqlite3.DatabaseError) and re.search("locked|disk|malformed|unable to open", words):
        return explained(words, "the store")
    if found := re.match(r"no such table: (?:main\.|temp\.)?(\S+)", words):
        return UsageError(guard._refuse_table(found[1]))
    if words.startswith("no such column"):
        return UsageError(f"the query is wrong: {words}; `select * from VIEW limit 1` shows the columns of a view")
    if "too big" in words or "too large" in words:
        return UsageError(f"a value or the query is larger than allowed ({words})")
    return UsageError(f"the query is wrong: {words}")
