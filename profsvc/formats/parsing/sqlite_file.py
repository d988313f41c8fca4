"""Untrusted SQLite databases, opened read-only in a separate process.

A temporary file is opened and read by a separate process (`profsvc.formats.parsing.sqlite_worker`) with limited memory
and time, because a crafted file can keep SQLite busy without end inside one call. Every page is checked before a query
runs. A database with triggers, virtual tables or generated columns, which no tool writes, is refused. Views are not
used.
"""

import marshal
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing import unpacked_copies

CHUNK = 1 << 20
MAX_VALUE_BYTES = 16 << 20
WORKER = Path(__file__).with_name("sqlite_worker.py")
MAX_WORKER_BYTES = 512 << 20
"""Memory of the process in addition to that of an idle one."""
MIN_WORKER_SECONDS = 20
"""CPU time of the process for the smallest file."""
MIN_BYTES_PER_S = 5 << 20
"""Additional CPU time for a larger file; valid files are read ten times faster."""
WAIT_FACTOR = 10
"""Elapsed time limit as a multiple of the CPU time, as the machine may be busy."""
CACHED_PART_ROWS, MAX_CACHED_PART_BYTES = 2048, 1 << 20
"""Rows, and their bytes, that are read together with a row requested by its id."""
MAX_CACHED_PARTS = 128
MIN_ANSWERS_PER_PART = 64
"""Requests per part on average for further parts to be read; scattered requests are below it."""
ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def quoted(name: str) -> str:
    """Write ``name`` as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class _Process:
    """The worker process of a database, which gets requests as frames, and is killed at its time limit."""

    def __init__(self, process: "subprocess.Popen[bytes]", seconds: float, again: Callable[[], str]) -> None:
        self._process, self._left, self._again = process, seconds, again
        assert process.stdin
        assert process.stdout
        self._in, self._out = process.stdin, process.stdout.fileno()
        self._answers = select.poll()
        self._answers.register(self._out, select.POLLIN)

    def tell(self, frame: dict[str, Any] | tuple[Any, ...]) -> None:
        """Send a frame."""
        body = marshal.dumps(frame)
        with suppress(BrokenPipeError, ValueError):  # a worker that has ended does not respond
            self._in.write(len(body).to_bytes(8, "big") + body)
            self._in.flush()

    def ask(self, frame: dict[str, Any] | tuple[Any, ...]) -> tuple[Any, ...]:
        """Send a request and return the response; raise `BrokenInputError` for an error."""
        self.tell(frame)
        answer: tuple[Any, ...] = marshal.loads(self._read(int.from_bytes(self._read(8), "big")))
        if answer[0] == "refused":
            raise BrokenInputError(
                f"the database has {answer[1]}, which is not part of any export and could execute code; {self._again()}"
            )
        if answer[0] == "damaged":
            words = " ".join(answer[1].split())[:200]
            raise BrokenInputError(f"the database is damaged ({words}); {self._again()}")
        if answer[0] == "error":
            raise BrokenInputError(f"the database cannot be read ({answer[1]}); {self._again()}")
        return answer

    def _read(self, length: int) -> bytes:
        found = bytearray()
        while len(found) < length:
            began = time.monotonic()
            ready = self._answers.poll(max(self._left, 0.0) * 1000)
            self._left -= time.monotonic() - began
            piece = os.read(self._out, min(length - len(found), CHUNK)) if ready else b""
            if not piece:
                raise BrokenInputError(
                    "the database needs more memory or time than a valid one of its size; " + self._again()
                )
            found += piece
        return bytes(found)


class Database:
    """The plain tables of a database, and their rows."""

    def __init__(self, process: _Process, tables: dict[str, list[str]]) -> None:
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
        with _started() as process:
            asked = _Process(process, WAIT_FACTOR * seconds, again)
            limits = {"memory": MAX_WORKER_BYTES, "seconds": seconds, "value_limit": MAX_VALUE_BYTES}
            yield Database(asked, asked.ask({"path": file.name, **limits})[1])


@contextmanager
def _started() -> Iterator["subprocess.Popen[bytes]"]:
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    # In a separate process group, so that Ctrl-C reaches only the parent, which then ends the worker.
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            with suppress(BrokenPipeError):
                process.communicate()
