"""A SQLite database that came as a stream from anywhere: opened for reading only, and distrusted.

The bytes go to a temporary file, which a process of its own opens and reads (`profsvc.formats.sqlite_worker`): the
system holds its memory and its time, for a crafted file can keep SQLite busy for ever inside one call. Every page is
checked before a query runs; a database with triggers, virtual tables or generated columns, which no tool writes, is
refused, and views are never used.
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
from profsvc.formats import copies

CHUNK = 1 << 20
VALUE_LIMIT = 16 << 20
WORKER = Path(__file__).with_name("sqlite_worker.py")
MEMORY = 512 << 20
"""Bytes that the process may take beside what a bare one has."""
LEAST_SECONDS = 20
"""Seconds of a processor that the process may take for the smallest file."""
SLOWEST_BYTES_PER_S = 5 << 20
"""And for a larger one: what is honest is read ten times faster."""
BUSY = 10
"""How many times longer it may be waited for, as the machine may do other things."""
NEAR, NEAR_BYTES = 2048, 1 << 20
"""Rows, and bytes of them, that are taken with one that is asked for by its number."""
NEAR_KEPT = 128
WORTH = 64
"""Answers that each such part must have given on average; where rows are asked for here and there, it has not."""
ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")


def quoted(name: str) -> str:
    """Write ``name`` as an identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


class _Process:
    """The process that reads a database: asked and answered by frames, and ended when its time is up."""

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
        with suppress(BrokenPipeError, ValueError):  # one that has ended says so by its silence
            self._in.write(len(body).to_bytes(8, "big") + body)
            self._in.flush()

    def ask(self, frame: dict[str, Any] | tuple[Any, ...]) -> tuple[Any, ...]:
        """Send a frame and return what answers it; raise `BrokenInputError` for what cannot be answered."""
        self.tell(frame)
        answer: tuple[Any, ...] = marshal.loads(self._read(int.from_bytes(self._read(8), "big")))
        if answer[0] == "refused":
            raise BrokenInputError(
                f"the database has {answer[1]}, which no export has and which could run anything; {self._again()}"
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
                    "the database needs more memory or time than any of its size and was given up; " + self._again()
                )
            found += piece
        return bytes(found)


class Database:
    """The plain tables of a database, and their rows."""

    def __init__(self, process: _Process, tables: dict[str, list[str]]) -> None:
        """Take the tables, with their columns."""
        self._process = process
        self._columns = tables
        self._asked = 0
        self.tables = list(tables)
        self._near: dict[tuple[str, tuple[str, ...]], _Near] = {}

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table; none if it is not there."""
        return self._columns.get(table, [])

    def count(self, table: str) -> int:
        """Count the rows of a table."""
        if table not in self._columns:
            return 0
        row = self.one(f"SELECT count(*) FROM {quoted(table)}")
        return int(str(row[0])) if row else 0

    def rows(self, table: str, wanted: Sequence[str], where: str = "") -> Iterator[tuple[object, ...]]:
        """Yield the rows of a table in their order: the columns ``wanted``, None for one that is not there."""
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

    def numbered(self, table: str, wanted: tuple[str, ...], number: int) -> tuple[object, ...] | None:
        """Return some columns of the row whose ``id`` is a number, None for one that is not there; others near it come
        with it, for the next question.
        """
        if "id" not in self.columns(table):
            return None
        near = self._near.setdefault((table, wanted), _Near())
        near.asked += 1
        part = number // NEAR
        if part not in near.parts and (near.loaded < NEAR_KEPT or near.asked > WORTH * near.loaded):
            near.keep(part, self._part(table, wanted, part))
        if (found := near.parts.get(part, {}).get(number)) is None:
            found = next(self.rows(table, wanted, f'WHERE "id" = {number:d}'), None)
        return found

    def _part(self, table: str, wanted: tuple[str, ...], part: int) -> "_Part":
        where = f'WHERE "id" BETWEEN {part * NEAR} AND {(part + 1) * NEAR - 1}'
        found: _Part = {}
        size = 0
        for key, *cells in self.rows(table, ("id", *wanted), where):
            found.setdefault(key, tuple(cells))
            size += sum(len(cell) for cell in cells if isinstance(cell, str | bytes))
            if size > NEAR_BYTES:
                break
        return found


_Part = dict[object, tuple[object, ...]]


class _Near:
    """Parts of a table that were taken, and how often they were of use."""

    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.asked = self.loaded = 0

    def keep(self, number: int, part: _Part) -> None:
        """Keep a part; the oldest one makes room for it."""
        if len(self.parts) == NEAR_KEPT:
            del self.parts[next(iter(self.parts))]
        self.parts[number] = part
        self.loaded += 1


def _check_length(file: IO[bytes], size: int, again: Callable[[], str]) -> None:
    """Refuse a file that ends inside a page: SQLite would take what is lost for zeros."""
    file.seek(16)
    page = int.from_bytes(file.read(2), "big")
    page = 65536 if page == 1 else page
    if not size or not page or size % page:
        raise BrokenInputError(f"the database ends inside a page of {page} bytes: the file is cut; {again()}")


@contextmanager
def opened(stream: BinaryIO, again: Callable[[], str]) -> Iterator[Database]:
    """Open the database in ``stream``; any damage raises `BrokenInputError`, which ends with the words of ``again``."""
    with tempfile.NamedTemporaryFile(prefix="profsvc-", suffix=".sqlite", dir=copies.folder()) as file:
        size = copies.copy(stream, cast("IO[bytes]", file))
        _check_length(file, size, again)
        seconds = LEAST_SECONDS + size // SLOWEST_BYTES_PER_S
        with _started() as process:
            asked = _Process(process, BUSY * seconds, again)
            limits = {"memory": MEMORY, "seconds": seconds, "value_limit": VALUE_LIMIT}
            yield Database(asked, asked.ask({"path": file.name, **limits})[1])


@contextmanager
def _started() -> Iterator["subprocess.Popen[bytes]"]:
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    # A group of its own: Ctrl-C is for who asks, who then ends this.
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
