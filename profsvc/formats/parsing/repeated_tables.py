"""Tables that a file holds twice, because a report was appended to it again: they are stored once.

Reports of several runs may stand in one file; their processes, times or values differ. A table whose rows are byte for
byte those of an earlier one is the same report, as a file with the same bytes is the same upload.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from profsvc.formats.parsing.records import HEADER, ROW, SKIP, Record
from profsvc.formats.parsing.text import RepeatedLines, Text

BLOCK_BYTES, FIRST_BYTES = 1 << 20, 1 << 12
"""Tables that begin alike mostly differ soon, so the first block of each is small."""
MAX_ALIKE = 64
"""Earlier tables with the same header and first row that a table is compared with: the latest ones."""


@dataclass(eq=False)
class _Table:
    """The lines of a header, and of the first and the last row below it; ``place`` is where its next line begins."""

    line: int
    first: int = 0
    last: int = 0
    place: int = -1


class _Alike:
    """The tables with one header and one context, by the digest of their first row; only that of the first is late."""

    def __init__(self) -> None:
        self.by_row: dict[bytes, list[_Table]] = {}
        self.late: _Table | None = None


class RepeatedTables:
    """Finds the rows that repeat those of an earlier table, as the records of a file pass.

    Only a table with the header, the first row and the context of an earlier one is compared with it, so a file is read
    again only where a repetition is likely. Memory holds a few numbers for each table.
    """

    def __init__(self, text: Text) -> None:
        """Start before the first line of ``text``."""
        self._text, self._places = text, _Places(text)
        self._known: dict[bytes, _Alike] = {}
        self._alike = _Alike()
        self._table = _Table(0)
        self._undecided = False
        self._repeated_to = self._seen = 0

    @property
    def by_lines(self) -> bool:
        """Whether the next rows must be read line by line: the first below a known header, and repeated ones."""
        return self._undecided or self._seen < self._repeated_to

    def covers(self, line: int) -> bool:
        """Return whether the next line to read is part of a repetition, so that it is skipped."""
        self._seen = max(self._seen, min(line, self._repeated_to))
        return line <= self._repeated_to

    def settle(self, record: Record, context: object = "") -> Record:
        """Return a record; a row that is repeated becomes a skipped line.

        ``context`` says whose table it is beyond its rows, such as the process that a banner names: tables with
        different contexts are different reports.
        """
        self._seen = record.line + record.lines - 1
        if record.kind == HEADER:
            self._begin(record, context)
        elif record.kind == ROW:
            if self._undecided:
                self._compare(_digest(record.text.partition("\n")[0]))
            if self._seen <= self._repeated_to:
                return record._replace(kind=SKIP, text="", cells=[])
            self.passed(record.line, self._seen)
        return record

    def passed(self, first: int, last: int) -> None:
        """Note that the rows in these lines are stored."""
        self._seen = last
        self._table.first = self._table.first or first
        self._table.last = last

    def _begin(self, header: Record, context: object) -> None:
        key = _digest("\0".join((repr(context), *header.cells)))
        self._undecided = key in self._known
        self._alike = self._known.setdefault(key, _Alike())
        self._table = _Table(header.line)
        self._places.add(self._table)
        if not self._undecided:
            self._alike.late = self._table

    def _compare(self, row: bytes) -> None:
        """Find out whether the table whose first row has this digest repeats an earlier one."""
        self._undecided = False
        self._places.locate()
        late, self._alike.late = self._alike.late, None
        if late is not None and late.first:
            self._alike.by_row[_digest(self._first_row(late))] = [late]
        earlier = self._alike.by_row.setdefault(row, [])
        earlier[:] = [table for table in earlier if table.last][-MAX_ALIKE:]
        found = [(self._common_lines(table, self._table), table.line) for table in earlier]
        lines, line = max(found, default=(0, 0))
        if lines:
            self._repeated_to = self._table.line + lines
            self._text.note_repeated(RepeatedLines(self._table.line, self._repeated_to, line))
        earlier.append(self._table)

    def _first_row(self, table: _Table) -> str:
        """Return the line with which the first row of a table begins."""
        before = table.first - table.line - 1
        for block in self._text.blocks_at(table.place, BLOCK_BYTES):
            if before < (lines := block.count(b"\n")):
                return block.split(b"\n", before + 1)[before].decode("utf-8", "replace")
            before -= lines
        return ""

    def _common_lines(self, earlier: _Table, later: _Table) -> int:
        """Return for how many lines below its header the later table repeats all rows of the earlier one.

        A file that ends inside the repetition has only the first of them. Return 0 if the tables differ.
        """
        wanted, found = earlier.last - earlier.line, 0
        first, second = (
            _Bytes(self._text.blocks_at(table.place, BLOCK_BYTES, FIRST_BYTES)) for table in (earlier, later)
        )
        while found < wanted:
            mine, other = first.ahead(), second.ahead()
            if not other:
                return found + second.inside_line
            size = _common_size(mine, other)
            found += mine.count(b"\n", 0, size)
            if size < min(len(mine), len(other)):
                return wanted if found >= wanted else 0
            first.take(size)
            second.take(size)
        return wanted


def _common_size(first: bytes, second: bytes) -> int:
    size = min(len(first), len(second))
    if first[:size] == second[:size]:
        return size
    differs = np.frombuffer(first, np.uint8, size) != np.frombuffer(second, np.uint8, size)
    return int(differs.argmax())


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).digest()


class _Bytes:
    """Blocks of bytes, taken in pieces of any size."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""
        self.inside_line = False

    def ahead(self) -> bytes:
        """Return the next bytes without taking them; empty at the end."""
        self._rest = self._rest or next(self._blocks, b"")
        return self._rest

    def take(self, size: int) -> None:
        """Pass some of the bytes ahead."""
        self.inside_line = self._rest[size - 1 : size] != b"\n"
        self._rest = self._rest[size:]


class _Places:
    """Where in a text the lines below each header begin, found in one pass that goes only as far as it must."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._waiting: list[_Table] = []
        self._blocks: Iterator[bytes] | None = None
        self._block, self._at = b"", 0
        self._line, self._place = 1, 0

    def add(self, table: _Table) -> None:
        """Add a table below all others."""
        self._waiting.append(table)

    def locate(self) -> None:
        """Set the places of the added tables."""
        for table in self._waiting:
            table.place = self._start_of(table.line + 1)
        self._waiting.clear()

    def _start_of(self, line: int) -> int:
        while self._line < line:
            if self._at == len(self._block):
                self._blocks = self._blocks or self._text.blocks_at(0, BLOCK_BYTES)
                self._block, self._at = next(self._blocks), 0
            ahead = line - self._line
            lines = self._block.count(b"\n", self._at)
            end = len(self._block) if lines <= ahead else _after_lines(self._block, self._at, ahead)
            self._line += min(lines, ahead)
            self._place += end - self._at
            self._at = end
        return self._place


def _after_lines(block: bytes, place: int, lines: int) -> int:
    ends = np.flatnonzero(np.frombuffer(block, np.uint8, offset=place) == ord("\n"))
    return place + int(ends[lines - 1]) + 1
