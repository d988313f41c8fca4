"""SQL of a user: it can neither write, nor read anything but the views, nor pass its limits of time, rows and memory.

How that is held differs with the database: `profsvc.store.sandbox_sqlite` and `profsvc.store.sandbox_postgres`. What
both give is the same: the names of the columns, and the rows as they come.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from sqlalchemy import Engine

from profsvc.errors import UsageError
from profsvc.store import sandbox_sqlite
from profsvc.store.engine import file_of
from profsvc.store.sandbox_rules import Rows, place_of

MAX_BYTES = 64 << 20


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
    """Answer one SELECT over the ``v1_`` views; ``params`` are the values of ``:name`` in it.

    The answer is cut at ``max_rows`` rows and at 64 MiB, and says so. A query that is refused, wrong or stopped after
    ``seconds`` raises `UsageError`.
    """
    with _placed(sql), _opened(engine, sql, params, seconds, max_rows + 1) as found:
        rows: list[tuple[Any, ...]] = []
        size = 0
        for chunk in found.chunks:
            for row in chunk:
                size += sum(len(cell) if isinstance(cell, str | bytes) else 8 for cell in row)
                if len(rows) == max_rows or size > MAX_BYTES:
                    return Answer(found.columns, rows, True)
                rows.append(row)
    return Answer(found.columns, rows, False)


@contextmanager
def export(
    engine: Engine, sql: str, params: Mapping[str, Any] | None = None, *, seconds: float = 600.0
) -> Iterator[Rows]:
    """Give all rows of one SELECT as they come, in chunks of a few; neither side holds more than some of them.

    A query that is refused or wrong raises `UsageError` at once, one that passes its ``seconds`` at any chunk.
    """
    with _placed(sql), _opened(engine, sql, params, seconds, sys.maxsize) as found:
        yield found


@contextmanager
def _placed(sql: str) -> Iterator[None]:
    """Say in an error where in the query it is, as far as that can be told."""
    try:
        yield
    except UsageError as error:
        if (place := place_of(sql, str(error))) is None:
            raise
        raise UsageError(f"{error} (line {place[0]}, column {place[1]})") from None


def _opened(
    engine: Engine, sql: str, params: Mapping[str, Any] | None, seconds: float, most: int
) -> AbstractContextManager[Rows]:
    file = file_of(engine)
    if file is not None:
        return sandbox_sqlite.opened(file, sql, params or {}, seconds, most)
    from profsvc.store import sandbox_postgres  # its driver need not be installed for a file

    return sandbox_postgres.opened(engine, sql, params or {}, seconds, most)
