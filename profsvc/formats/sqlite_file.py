"""A SQLite database that came as a stream from anywhere: opened for reading only, and distrusted.

The bytes go to a temporary file. Every page is checked before a query runs, so a damaged or crafted tree of pages
cannot make a query endless; views, virtual tables, triggers and functions of the database are never used.
"""

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, BinaryIO

from profsvc.errors import BrokenInputError

CHUNK = 1 << 20
STEPS_PER_LOOK = 1_000_000
# About a minute for every 2 GB; looking at an honest row takes less than 100 steps.
LOOKS_PER_MEGABYTE, LEAST_LOOKS = 10, 1_000
VALUE_LIMIT = 16 << 20
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA}


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    counts = action == sqlite3.SQLITE_FUNCTION and second == "count"
    if action == sqlite3.SQLITE_PRAGMA and first != "table_info":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED or counts else sqlite3.SQLITE_DENY


def quoted(name: str) -> str:
    """Write ``name`` as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class Database:
    """The plain tables of a database, and their rows."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Look at the schema."""
        self._connection = connection
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        self.tables = [str(name) for (name,) in rows]

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none if it is not there."""
        if table not in self.tables:
            return []
        return [str(row[1]) for row in self._connection.execute(f"PRAGMA table_info({quoted(table)})")]

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        if table not in self.tables:
            return 0
        return int(self._connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchone()[0])

    def rows(self, table: str, wanted: Sequence[str], where: str = "") -> Iterator[tuple[object, ...]]:
        """Yield the rows of a table in their order: the columns ``wanted``, None for one that is not there."""
        there = set(self.columns(table))
        if not there:
            return
        names = ", ".join(quoted(name) if name in there else "NULL" for name in wanted)
        yield from self._connection.execute(f"SELECT {names} FROM {quoted(table)} {where}")

    def one(self, sql: str, *values: object) -> tuple[object, ...] | None:
        """Return the first row of a query."""
        row: tuple[object, ...] | None = self._connection.execute(sql, values).fetchone()
        return row


def _open(path: str, size: int) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, isolation_level=None)
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, VALUE_LIMIT)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for pragma in ("trusted_schema=OFF", "query_only=ON", "cell_size_check=ON", "ignore_check_constraints=ON"):
        connection.execute(f"PRAGMA {pragma}")
    looks = iter(range(LEAST_LOOKS + LOOKS_PER_MEGABYTE * (size >> 20)))
    connection.set_progress_handler(lambda: next(looks, -1) < 0, STEPS_PER_LOOK)
    return connection


def _check_length(file: IO[bytes], size: int, again: Callable[[], str]) -> None:
    """Refuse a file that ends inside a page: SQLite would take what is lost for zeros."""
    file.seek(16)
    page = int.from_bytes(file.read(2), "big")
    page = 65536 if page == 1 else page
    if not size or not page or size % page:
        raise BrokenInputError(f"the database ends inside a page of {page} bytes: the file is cut; {again()}")


def _spool(stream: BinaryIO, file: IO[bytes]) -> int:
    size = 0
    while chunk := stream.read(CHUNK):
        file.write(chunk)
        size += len(chunk)
    file.flush()
    return size


@contextmanager
def opened(stream: BinaryIO, again: Callable[[], str]) -> Iterator[Database]:
    """Open the database in ``stream``; any damage raises `BrokenInputError`, which ends with the words of ``again``."""
    with tempfile.NamedTemporaryFile(prefix="profsvc-", suffix=".sqlite") as file:
        size = _spool(stream, file)
        _check_length(file, size, again)
        connection: sqlite3.Connection | None = None
        try:
            connection = _open(file.name, size)
            found = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found is None or found[0] != "ok":
                words = " ".join(str(found and found[0]).split())[:200]
                raise BrokenInputError(f"the database is damaged ({words}); {again()}")
            connection.set_authorizer(_authorize)
            yield Database(connection)
        except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeDecodeError) as error:
            raise BrokenInputError(f"the database cannot be read ({error}); {again()}") from None
        finally:
            if connection is not None:
                connection.close()
