"""The process in which SQLite answers one query of a user; a script of the standard library alone.

It is a process of its own because some things end only with it: one function that makes a huge text, a sort that
fills the disk. It is a bare Python rather than a fork, so that it starts in 20 ms, inherits neither the memory nor the
files of who asks, and no lock that another thread held.

A request comes in on stdin, frames go out on stdout, both as `marshal` writes them, which holds values and no objects.
A frame is a tuple: ``("columns", names)``, ``("rows", rows)`` again and again, ``("end",)``; or one of the failures
``("refused", action, name, views)``, ``("late",)``, ``("memory",)`` and ``("error", class, words, views)``.

Inside, the defence is SQLite's authorizer with a list of what is allowed, on a connection that is open for reading
only. Reading alone would not do: such a connection may still attach and copy files.

A base table may only be read by a view. SQLite tells the authorizer which view reads, but it also tells the name of a
common table expression, and ``WITH v1_runs AS (SELECT * FROM secrets)`` would pass for a view. So every query gets
its own copies of the views under names that nobody can guess, and only these may read.
"""

import marshal
import os
import re
import resource
import sqlite3
import sys
import time
from contextlib import closing
from typing import Any, BinaryIO

FORBIDDEN_FUNCTIONS = {
    *("load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "eval", "sqlite_compileoption_get"),
    *("sqlite_compileoption_used", "sqlite_log", "sqlite_offset", "zipfile", "fsdir", "lsmode"),
}
FUNCTION_TABLES = {"json_each", "json_tree"}
OPS_BETWEEN_LOOKS = 1000
MEMORY = 512 << 20
"""Bytes of memory that a query may take, beside what the bare process has."""
SPILL = 256 << 20
"""Bytes of one temporary file, where a sort that is too large for memory goes."""
FILES = 12
"""Files that may be open at once: the store, its log, what the process has, and four or so that are temporary."""
_VIEW = re.compile(r"CREATE VIEW (v1_\w+) AS\n")


class Guard:
    """What one query may do, and what it was caught at."""

    def __init__(self, seconds: float) -> None:
        """Begin with nothing allowed and nothing caught."""
        self.seconds = seconds
        self.nonce = f"n{os.urandom(16).hex()}_"
        self.views: list[str] = []
        self.closed: set[str] = set()
        self.read_by_views: set[str] = set()
        self.caught: tuple[str, str] | None = None
        self.deadline = 0.0

    def authorize(self, action: int, first: str | None, second: str | None, _base: str | None, by: str | None) -> int:
        """Say whether SQLite may do this; called for every step while a statement is prepared."""
        if action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() not in FORBIDDEN_FUNCTIONS:
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
        # Without a column the rows are counted, and SQLite does not say for whom: for a view that has read the table
        # before, or of a common table expression, which has a name that nothing else has.
        return column == "" and (table in self.read_by_views or not self._is_closed(table.lower()))

    def _is_closed(self, table: str) -> bool:
        return table in self.closed or table.startswith(("sqlite_", "pragma_"))

    def late(self) -> bool:
        """Tell whether the time is up; true makes SQLite stop."""
        return time.perf_counter() > self.deadline


def taken() -> int:
    """Return the bytes of address space that this process has; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123  # the worker imports as little as it can
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def cap(seconds: float) -> None:
    """Take from this process what it will not need; what it asks beyond that is refused by the system."""
    limits = {
        resource.RLIMIT_AS: taken() + MEMORY,
        resource.RLIMIT_FSIZE: SPILL,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: int(seconds) + 2,  # ends it even if who asked has died
    }
    for limit, most in limits.items():
        hard = resource.getrlimit(limit)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (most, most))


def seal(connection: sqlite3.Connection, guard: Guard, limits: dict[int, int]) -> None:
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
    for limit, value in limits.items():
        connection.setlimit(limit, value)
    connection.set_authorizer(guard.authorize)
    guard.deadline = time.perf_counter() + guard.seconds
    connection.set_progress_handler(guard.late, OPS_BETWEEN_LOOKS)


def send(out: BinaryIO, frame: tuple[Any, ...]) -> None:
    """Write a frame: its length in eight bytes, then itself."""
    body = marshal.dumps(frame)
    out.write(len(body).to_bytes(8, "big"))
    out.write(body)
    out.flush()


def answer(connection: sqlite3.Connection, request: dict[str, Any], out: BinaryIO) -> None:
    """Send the rows of the query, as many as were asked for."""
    cursor = connection.execute(request["sql"], request["params"])
    rows = cursor.fetchmany(1)  # what fails at once fails before anything is sent
    if cursor.description is None:
        send(out, ("empty",))
        return
    send(out, ("columns", [column[0] for column in cursor.description]))
    left = request["most"]
    while rows and left > 0:
        send(out, ("rows", rows[:left]))
        left -= len(rows)
        rows = cursor.fetchmany(request["chunk"])
    send(out, ("end",))


def failure(error: Exception, guard: Guard) -> tuple[Any, ...]:
    """Return the frame for what went wrong."""
    words = str(error).replace(guard.nonce, "")
    if guard.caught:
        return ("refused", *guard.caught, guard.views)
    if words == "interrupted":
        return ("late",)
    if isinstance(error, MemoryError):
        return ("memory",)
    return ("error", "store" if isinstance(error, sqlite3.DatabaseError) else "question", words, guard.views)


def main() -> None:
    """Answer the request on stdin."""
    request = marshal.load(sys.stdin.buffer)
    guard = Guard(request["seconds"])
    cap(request["seconds"])
    with os.fdopen(os.dup(1), "wb") as out:
        try:
            patience = min(10.0, request["seconds"])
            opened = sqlite3.connect(request["address"], uri=True, isolation_level=None, timeout=patience)
            with closing(opened) as connection:
                seal(connection, guard, request["limits"])
                answer(connection, request, out)
        except BrokenPipeError:
            os._exit(0)
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
            send(out, failure(error, guard))


if __name__ == "__main__":
    main()
