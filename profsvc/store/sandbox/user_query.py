"""SQL of users, which can only read the views, with limits of time, rows and memory.

Each database enforces this differently: `profsvc.store.sandbox.sqlite` and `profsvc.store.sandbox.postgres`. Both yield
the column names and a stream of rows.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from operator import itemgetter
from typing import Any, NamedTuple

from profsvc.errors import UsageError
from profsvc.store.connection.kept_answers import kept_answer
from profsvc.store.connection.sql import Engine
from profsvc.store.connection.urls import file_of
from profsvc.store.sandbox import sqlite as sandbox_sqlite
from profsvc.store.sandbox.rules import Rows, error_position

MAX_ANSWER_BYTES = 64 << 20
MAX_KEPT_BYTES = 1 << 16
"""Size limit of a query and of an answer that a service keeps until its store changes."""


class Answer(NamedTuple):
    """The rows of a query; ``truncated`` if the limit cut off more rows."""

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
    """Answer one SELECT over the ``v1_`` views; ``params`` are the values of ``:name`` in it.

    The answer is cut at ``max_rows`` rows and at 64 MiB, and says so. A query that is refused, wrong or stopped after
    ``seconds`` raises `UsageError`.
    """

    def ask() -> tuple[Answer, bool]:
        return _query(engine, sql, params, max_rows, seconds)

    key = ("query", sql, repr(sorted((params or {}).items())), max_rows)
    if len(sql) + len(key[2]) > MAX_KEPT_BYTES:
        return ask()[0]
    return kept_answer(engine, key, ask, is_worth=itemgetter(1))[0]


def _query(
    engine: Engine, sql: str, params: Mapping[str, Any] | None, max_rows: int, seconds: float
) -> tuple[Answer, bool]:
    """Return the answer, and whether it may be given again: it is small, and the query gives no other one."""
    with _with_position(sql), _stream_rows(engine, sql, params, seconds, max_rows + 1) as found:
        rows: list[tuple[Any, ...]] = []
        size = 0
        for chunk in found.chunks:
            for row in chunk:
                size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
                if len(rows) == max_rows or size > MAX_ANSWER_BYTES:
                    return Answer(found.columns, rows, True), found.is_repeatable and size < MAX_KEPT_BYTES
                rows.append(row)
    return Answer(found.columns, rows, False), found.is_repeatable and size < MAX_KEPT_BYTES


@contextmanager
def export(
    engine: Engine, sql: str, params: Mapping[str, Any] | None = None, *, seconds: float = 600.0
) -> Iterator[Rows]:
    """Give all rows of one SELECT as they come, in chunks of a few; neither side holds more than some of them.

    A query that is refused or wrong raises `UsageError` at once, one that passes its ``seconds`` at any chunk.
    """
    with _with_position(sql), _stream_rows(engine, sql, params, seconds, sys.maxsize) as found:
        yield found


@contextmanager
def _with_position(sql: str) -> Iterator[None]:
    """Add the position in the query to an error, if it is known."""
    try:
        yield
    except UsageError as error:
        if (place := error_position(sql, str(error))) is None:
            raise
        raise UsageError(f"{error} (line {place[0]}, column {place[1]})") from None


def _stream_rows(
    engine: Engine, sql: str, params: Mapping[str, Any] | None, seconds: float, most: int
) -> AbstractContextManager[Rows]:
    file = file_of(engine)
    if file is not None:
        return sandbox_sqlite.stream_rows(file, sql, params or {}, seconds, most)
    from profsvc.store.sandbox import postgres as sandbox_postgres  # a SQLite store does not need the Postgres driver

    return sandbox_postgres.stream_rows(engine, sql, params or {}, seconds, most)
