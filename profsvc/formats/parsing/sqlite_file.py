"""Untrusted SQLite databases, opened read-only in a separate process.

A temporary file is opened and read by a separate process (`profsvc.formats.workers.sqlite_job`) with limited memory
and time, because a crafted file can keep SQLite busy without end inside one call. Every page is checked before a query
runs. A database with triggers, virtual tables or generated columns, which no tool writes, is refused. Views are not
used.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

from profsvc.errors import BrokenInputError
from profsvc.formats import workers
from profsvc.formats.parsing import unpacked_copies
from profsvc.workers.process import Limits, Subject, Worker, first_request, open_worker

MAX_VALUE_BYTES = 16 << 20
JOB = Path(workers.__file__).with_name("sqlite_job.py")
MAX_WORKER_BYTES = 512 << 20
"""Memory of the process in addition to that of an idle one."""
MIN_WORKER_SECONDS = 20
"""CPU time of the process for the smallest file."""
MIN_BYTES_PER_S = 5 << 20
"""Additional CPU time for a larger file; valid files are read ten times faster."""
CACHED_PART_ROWS, MAX_CACHED_PART_BYTES = 2048, 1 << 20
"""Rows, and their bytes, that are read together with a row requested by its id."""
MAX_CACHED_PARTS = 128
MIN_ANSWERS_PER_PART = 64
"""Requests per part on average for further parts to be read; scattered requests are below it."""


def quoted(name: str) -> str:
    """Write ``name`` as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class Database:
    """The plain tables of a database, and their rows."""

    def __init__(self, process: Worker, tables: dict[str, list[str]]) -> None:
        """Use ``tables``, which maps names to columns."""
        self._process = process
        self._columns = tables
        self._asked = 0
        self.tables = list(tables)
        self._near: dict[tuple[str, tuple[str, ...]], _Near] = {}

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; an empty list if it does not exist."""
        return self._columns.get(table, [])

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        if table not in self._columns:
            return 0
        row = self.one(f"SELECT count(*) FROM {quoted(table)}")
        return int(str(row[0])) if row else 0

    def rows(self, table: str, wanted: Sequence[str], where: str = "") -> Iterator[tuple[object, ...]]:
        """Yield the rows of a table in order with the columns ``wanted``; None for a missing column."""
        there = set(self.columns(table))
        if not there:
            return
        names = ", ".join(quoted(name) if name in there else "NULL" for name in wanted)
        self._asked += 1
        number = self._asked
        _, rows, are_all = self._process.ask(("rows", number, f"SELECT {names} FROM {quoted(table)} {where}"))
        try:
            yield from rows
            while not are_all:
                _, rows, are_all = self._process.ask(("more", number))
                yield from rows
        finally:
            if not are_all:
                self._process.tell(("drop", number))

    def one(self, sql: str, *values: object) -> tuple[object, ...] | None:
        """Return the first row of a query."""
        row: tuple[object, ...] | None = self._process.ask(("one", sql, values))[1]
        return row

    def row_by_id(self, table: str, wanted: tuple[str, ...], number: int) -> tuple[object, ...] | None:
        """Return some columns of the row whose ``id`` is a number, None for one that is not there; others near it come
        with it, for the next question.
        """
        if "id" not in self.columns(table):
            return None
        near = self._near.setdefault((table, wanted), _Near())
        near.asked += 1
        part = number // CACHED_PART_ROWS
        if part not in near.parts and (
            near.loaded < MAX_CACHED_PARTS or near.asked > MIN_ANSWERS_PER_PART * near.loaded
        ):
            near.keep(part, self._part(table, wanted, part))
        if (found := near.parts.get(part, {}).get(number)) is None:
            found = next(self.rows(table, wanted, f'WHERE "id" = {number:d}'), None)
        return found

    def _part(self, table: str, wanted: tuple[str, ...], part: int) -> "_Part":
        where = f'WHERE "id" BETWEEN {part * CACHED_PART_ROWS} AND {(part + 1) * CACHED_PART_ROWS - 1}'
        found: _Part = {}
        size = 0
        for key, *cells in self.rows(table, ("id", *wanted), where):
            found.setdefault(key, tuple(cells))
            size += sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
            if size > MAX_CACHED_PART_BYTES:
                break
        return found


class Row:
    """One row: its values by column; a value of a wrong kind raises `ValueError`."""

    def __init__(self, columns: Sequence[str], values: Sequence[object]) -> None:
        """Take the values of a row."""
        self.values = dict(zip(columns, values, strict=True))

    def whole(self, name: str) -> int | None:
        """Return a whole number."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, int):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number")
        return value

    def must(self, name: str) -> int:
        """Return a whole number that may not be missing."""
        value = self.whole(name)
        if value is None:
            raise ValueError(f"{name} is NULL")
        return value

    def text(self, name: str) -> str | None:
        """Return a text."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} is {str(value)[:40]!r}, not text")
        return value

    def span(self) -> dict[str, object]:
        """Return start and duration."""
        start, end = self.must("start"), self.whole("end")
        if end is not None and end < start:
            raise ValueError(f"it ends at {end}, before it starts at {start}")
        return {"start_ns": start, "duration_ns": None if end is None else float(end - start)}

    def process(self) -> int | None:
        """Return the process of a serialized identifier, which stands above the 24 bits of the thread."""
        found = self.whole("globalPid")
        found = self.whole("globalTid") if found is None else found
        return None if found is None else (found >> 24) & 0xFFFFFF

    def thread(self) -> int | None:
        """Return the thread of a serialized identifier."""
        found = self.whole("globalTid")
        return None if found is None else found & 0xFFFFFF


_Part = dict[object, tuple[object, ...]]


class _Near:
    """Cached parts of a table, with the number of requests."""

    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.asked = self.loaded = 0

    def keep(self, number: int, part: _Part) -> None:
        """Keep a part, and drop the oldest one if there are too many."""
        if len(self.parts) == MAX_CACHED_PARTS:
            del self.parts[next(iter(self.parts))]
        self.parts[number] = part
        self.loaded += 1


def _check_length(file: IO[bytes], size: int, again: Callable[[], str]) -> None:
    """Refuse a file that ends inside a page, because SQLite would read zeros instead of the lost bytes."""
    file.seek(16)
    page = int.from_bytes(file.read(2), "big")
    page = 65536 if page == 1 else page
    if not size or not page or size % page:
        raise BrokenInputError(f"the database ends inside a page of {page} bytes: the file is cut; {again()}")


@contextmanager
def open_database(stream: BinaryIO, again: Callable[[], str]) -> Iterator[Database]:
    """Open the database in ``stream``; damage raises `BrokenInputError`, whose message ends with that of ``again``."""
    with tempfile.NamedTemporaryFile(prefix="profsvc-", suffix=".sqlite", dir=unpacked_copies.folder()) as file:
        size = unpacked_copies.copy(stream, cast("IO[bytes]", file))
        _check_length(file, size, again)
        seconds = MIN_WORKER_SECONDS + size // MIN_BYTES_PER_S
        limits = Limits(MAX_WORKER_BYTES, seconds)
        with open_worker(JOB, limits, Subject("database", again)) as worker:
            asked = first_request(limits, path=file.name, value_limit=MAX_VALUE_BYTES)
            yield Database(worker, worker.ask(asked)[1])
