"""Fill new columns and tables for existing rows, some files at a time, while other processes work.

A migration declares this work in its ``FILL``, and calls `complete` where it needs all of it. On a server, `fill_ahead`
runs before the migration: it fills one part after another, commits each part, and records which version of each file
it has filled. An interrupted run resumes there. The migration then only fills files that were added or changed
meanwhile. On SQLite, whose file was copied before, the migration does everything.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from typing import NamedTuple

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import inspect

from profsvc.store.connection import postgres
from profsvc.store.connection.sql import Connection, Engine, text
from profsvc.store.connection.transactions import writing
from profsvc.store.schema.column_types import IDS_PER_UPLOAD

ROWS_AT_ONCE = 200_000
FILES_AT_ONCE = 1000
PROGRESS_SECONDS = 1.0
Progress = Callable[[str], None]
_PROGRESS: ContextVar[Progress | None] = ContextVar("tell", default=None)

# A file that was read again, or deleted and restored, has a new row version; so has a run with new results.
_SEEN = {
    "postgresql": "concat(u.xmin, ' ', (SELECT r.xmin FROM runs r WHERE r.run_id = u.run_id))",
    "sqlite": "''",
}
_DONE = "EXISTS (SELECT 1 FROM filled f WHERE f.upload_id = u.upload_id AND f.seen = {seen})"
_WAITING = f"SELECT min(u.upload_id), sum(u.launches + u.samples) FROM uploads u WHERE NOT {_DONE}"
_NEXT = f"""
    SELECT u.upload_id, u.launches + u.samples AS size, CASE WHEN {_DONE} THEN 1 ELSE 0 END AS done
    FROM uploads u WHERE u.upload_id >= :low ORDER BY u.upload_id LIMIT {FILES_AT_ONCE}
"""
_FORGET = "DELETE FROM filled WHERE upload_id BETWEEN :low AND :high"
_NOTE = "INSERT INTO filled SELECT u.upload_id, {seen} FROM uploads u WHERE u.upload_id BETWEEN :low AND :high"
_GONE = "SELECT f.upload_id FROM filled f WHERE f.upload_id NOT IN (SELECT u.upload_id FROM uploads u)"


class Fill(NamedTuple):
    """The data that a migration computes from the rows of files and their runs, outside of ``uploads`` itself.

    ``expand`` creates the tables and columns to be filled. They are still unused and must not refer to tables in use,
    because that would wait for writers. The statements cover the uploads from ``:low`` to ``:high``, whose rows have
    numbers from ``:first`` to below ``:end``. ``clear`` removes the computed data, and ``make`` creates it.
    """

    revision: str
    expand: Callable[[], None]
    clear: tuple[str, ...]
    make: tuple[str, ...]


class Part(NamedTuple):
    """A group of unfinished uploads that are filled together, and their number of rows."""

    low: int
    high: int
    rows: int


@contextmanager
def reporting_progress(tell: Progress | None) -> Iterator[None]:
    """Reports progress every `PROGRESS_SECONDS`."""
    token = _PROGRESS.set(tell)
    try:
        yield
    finally:
        _PROGRESS.reset(token)


def fill_ahead(engine: Engine, fill: Fill) -> None:
    """Fill the existing rows of a server, part by part, until all are done."""
    postgres.retry(engine, lambda: _begin_fill(engine, fill))
    total = postgres.retry(engine, lambda: _waiting(engine))
    _fill_all(fill, total, lambda: postgres.retry(engine, lambda: _fill_next(engine, fill)))


def _begin_fill(engine: Engine, fill: Fill) -> None:
    with writing(engine) as connection:
        postgres.lock_tables(connection, "facts")
        if not inspect(connection).has_table("filled"):
            with Operations.context(MigrationContext.configure(connection)):
                _expand(connection, fill)


def _waiting(engine: Engine) -> int:
    with writing(engine) as connection:
        return _remaining(connection)[1]


def _fill_next(engine: Engine, fill: Fill) -> Part | None:
    with writing(engine) as connection:
        postgres.lock_tables(connection, "facts")  # two processes that do this at the same time alternate
        return _fill_part(connection, fill)


def complete(connection: Connection, fill: Fill) -> None:
    """Fill the remaining rows in a migration, while no process writes."""
    if not inspect(connection).has_table("filled"):
        _expand(connection, fill)
    for upload_id in connection.execute(text(_GONE)).scalars().all():
        _run(connection, fill.clear, upload_id, upload_id)
    _fill_all(fill, _remaining(connection)[1], lambda: _fill_part(connection, fill))
    connection.execute(text("DROP TABLE filled"))


def _expand(connection: Connection, fill: Fill) -> None:
    connection.execute(text("CREATE TABLE filled (upload_id BIGINT PRIMARY KEY, seen TEXT NOT NULL)"))
    fill.expand()


def _fill_all(fill: Fill, total: int, next_part: Callable[[], Part | None]) -> None:
    """Fill all parts, and report the progress."""
    done, told = 0, time.monotonic()
    while part := next_part():
        done += part.rows
        if (tell := _PROGRESS.get()) and time.monotonic() - told >= PROGRESS_SECONDS:
            tell(f"schema {fill.revision}: {done:,} of {max(done, total):,} rows")
            told = time.monotonic()


def _in_dialect(connection: Connection, query: str) -> str:
    return query.replace("{seen}", _SEEN[connection.dialect.name])


def _remaining(connection: Connection) -> tuple[int | None, int]:
    """Return the first unfinished upload, and the total number of rows of the unfinished ones."""
    first, rows = connection.execute(text(_in_dialect(connection, _WAITING))).one()
    return first, int(rows or 0)


def _fill_part(connection: Connection, fill: Fill) -> Part | None:
    """Fill the next part and return it; return None if there is none.

    The row versions of the uploads and runs are recorded before their rows are read. So what changes meanwhile has
    another version and is filled again.
    """
    low, _ = _remaining(connection)
    if low is None:
        return None
    high = rows = 0
    following = connection.execute(text(_in_dialect(connection, _NEXT)), {"low": low}).all()
    for upload_id, size, _ in takewhile(lambda row: not row.done, following):
        if high and rows + size > ROWS_AT_ONCE:
            break
        high, rows = upload_id, rows + size
    _run(connection, (_FORGET, _in_dialect(connection, _NOTE), *fill.clear, *fill.make), low, high)
    return Part(low, high, rows)


def _run(connection: Connection, statements: tuple[str, ...], low: int, high: int) -> None:
    bounds = {"low": low, "high": high, "first": low * IDS_PER_UPLOAD, "end": (high + 1) * IDS_PER_UPLOAD}
    for statement in statements:
        query = text(statement)
        connection.execute(query, {name: bound for name, bound in bounds.items() if f":{name}" in query.text})
