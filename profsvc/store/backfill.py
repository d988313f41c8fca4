"""Fill in what a newer schema wants of rows that are there already: some files at a time, while others work.

A migration that has this to do says so in its ``FILL``, and calls `complete` where it needs all of it. On a server the
program comes before the migration: `ahead` fills in part after part, each committed by itself and in nobody's way, and
notes which files are done and as what they were seen. What is killed goes on there. The migration finds only what
came, changed or went meanwhile. On SQLite, whose file was copied before, the migration does everything.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import takewhile
from typing import NamedTuple

from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection, Engine, inspect, text

from profsvc.store import server
from profsvc.store.engine import writing
from profsvc.store.schema import STEP

ROWS_AT_ONCE = 200_000
FILES_AT_ONCE = 1000
TELL_SECONDS = 1.0
Tell = Callable[[str], None]
_TELL: ContextVar[Tell | None] = ContextVar("tell", default=None)

# A file that was read again, or deleted and had back, is another row than the one that was seen.
_SEEN = {"postgresql": "CAST(u.xmin AS text)", "sqlite": "''"}
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
    """What a migration makes of the rows of files, but not in ``uploads`` itself.

    ``expand`` makes the tables and columns to be filled, which nobody reads as yet and which refer to none in use, for
    that would wait for who writes. The statements are about the uploads from ``:low`` to ``:high``, whose rows have
    numbers from ``:first`` to below ``:end``: ``clear`` removes what was made of them, ``make`` makes it.
    """

    revision: str
    expand: Callable[[], None]
    clear: tuple[str, ...]
    make: tuple[str, ...]


class Part(NamedTuple):
    """Uploads that are filled in together, none done among them, and how many rows they have."""

    low: int
    high: int
    rows: int


@contextmanager
def telling(tell: Tell | None) -> Iterator[None]:
    """Say meanwhile how far it is, every `TELL_SECONDS`."""
    token = _TELL.set(tell)
    try:
        yield
    finally:
        _TELL.reset(token)


def ahead(engine: Engine, fill: Fill) -> None:
    """Fill in on a server what is there, part by part, until nothing waits."""
    server.repeated(engine, lambda: _begun(engine, fill))
    total = server.repeated(engine, lambda: _waiting(engine))
    _work(fill, total, lambda: server.repeated(engine, lambda: _ahead(engine, fill)))


def _begun(engine: Engine, fill: Fill) -> None:
    with writing(engine) as connection:
        server.alone(connection, "facts")
        if not inspect(connection).has_table("filled"):
            with Operations.context(MigrationContext.configure(connection)):
                _expand(connection, fill)


def _waiting(engine: Engine) -> int:
    with writing(engine) as connection:
        return _left(connection)[1]


def _ahead(engine: Engine, fill: Fill) -> Part | None:
    with writing(engine) as connection:
        server.alone(connection, "facts")  # of two who do this at once each does a part in turn
        return _fill_part(connection, fill)


def complete(connection: Connection, fill: Fill) -> None:
    """Fill in what is left, in a migration: while nobody writes."""
    if not inspect(connection).has_table("filled"):
        _expand(connection, fill)
    for upload_id in connection.execute(text(_GONE)).scalars().all():
        _run(connection, fill.clear, upload_id, upload_id)
    _work(fill, _left(connection)[1], lambda: _fill_part(connection, fill))
    connection.execute(text("DROP TABLE filled"))


def _expand(connection: Connection, fill: Fill) -> None:
    connection.execute(text("CREATE TABLE filled (upload_id BIGINT PRIMARY KEY, seen TEXT NOT NULL)"))
    fill.expand()


def _work(fill: Fill, total: int, next_part: Callable[[], Part | None]) -> None:
    """Do all parts, and tell of them."""
    done, told = 0, time.monotonic()
    while part := next_part():
        done += part.rows
        if (tell := _TELL.get()) and time.monotonic() - told >= TELL_SECONDS:
            tell(f"schema {fill.revision}: {done:,} of {max(done, total):,} rows")
            told = time.monotonic()


def _spelled(connection: Connection, query: str) -> str:
    return query.replace("{seen}", _SEEN[connection.dialect.name])


def _left(connection: Connection) -> tuple[int | None, int]:
    """Return the first upload that is not done, and how many rows all of these have."""
    first, rows = connection.execute(text(_spelled(connection, _WAITING))).one()
    return first, int(rows or 0)


def _fill_part(connection: Connection, fill: Fill) -> Part | None:
    """Fill in the next part; return None if there is none.

    First it is noted as what the uploads are seen: what is read after is that or newer, and what changed meanwhile is
    seen to be another and done again.
    """
    low, _ = _left(connection)
    if low is None:
        return None
    high = rows = 0
    following = connection.execute(text(_spelled(connection, _NEXT)), {"low": low}).all()
    for upload_id, size, _ in takewhile(lambda row: not row.done, following):
        if high and rows + size > ROWS_AT_ONCE:
            break
        high, rows = upload_id, rows + size
    _run(connection, (_FORGET, _spelled(connection, _NOTE), *fill.clear, *fill.make), low, high)
    return Part(low, high, rows)


def _run(connection: Connection, statements: tuple[str, ...], low: int, high: int) -> None:
    bounds = {"low": low, "high": high, "first": low * STEP, "end": (high + 1) * STEP}
    for statement in statements:
        query = text(statement)
        connection.execute(query, {name: bounds[name] for name in query._bindparams})
