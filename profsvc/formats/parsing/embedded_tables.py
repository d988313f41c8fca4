"""CSV tables between other lines of a file: sorts the lines into records, each line into exactly one.

A format recognizes headers, by returning a layout, and lines that end a table. Rows have the width of their header and
may contain line ends inside quotes. A row that is cut by the end of the file is rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np

from profsvc.errors import BrokenInputError, counted, wrong_cell_count
from profsvc.formats.parsing.head import header_lines
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.numbers import Evidence, Numbers
from profsvc.formats.parsing.records import (
    HEADER,
    MAX_RECORD_CHARS,
    MAX_TEXT_CHARS,
    REJECT,
    ROW,
    SKIP,
    Record,
    split_cells,
)
from profsvc.formats.parsing.text import ends_inside
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.formats.parsing.trailing_cells import TrailingCells, named_width
from profsvc.tables import Batch, ColumnTable

BATCH_ROWS = 10_000
MAX_INTEGER = 2**63 - 1
MAX_SHOWN_CHARS = 40


class Layout(Protocol):
    """What a header says about its rows."""

    header: list[str]


L = TypeVar("L", bound=Layout)
TableStart = Callable[[str], L | None]
TableEnd = Callable[[str], object]


class Scanner(Generic[L]):
    """Sorts lines into records; ``layout`` is that of the current table, None outside of a table."""

    def __init__(self, begins: TableStart[L], ends: TableEnd, separator: str = ",") -> None:
        """Start before the first line; `records` describes the parameters."""
        self.begins, self.ends, self.separator = begins, ends, separator
        self.split = partial(split_cells, separator=separator)
        self.layout: L | None = None
        self.spare = TrailingCells(0)
        self.gap = False
        self.open: list[str] = []
        self.open_line = self.open_size = 0

    @property
    def in_cell(self) -> bool:
        """Whether a quoted cell is not closed yet."""
        return bool(self.open)

    @property
    def spare_as_header(self) -> bool:
        """Whether valid rows have exactly as many cells as their header."""
        spare = len(self.layout.header) - self.spare.columns if self.layout is not None else 0
        return self.spare.count == spare or (self.spare.count is None and not spare)

    def passed(self) -> None:
        """Note that rows with exactly the cells of their header were read elsewhere."""
        assert self.layout is not None
        self.spare.settle(len(self.layout.header) - self.spare.columns)

    def feed(self, number: int, line: str) -> Iterator[Record]:
        """Yield the records that end on line ``number``."""
        if self.open:
            if not self._interrupts(line):
                yield from self._extend(line)
                return
            yield self._give_up(f"a quote is opened but not closed before line {number}")
        if self.layout is not None and line[:1].isdigit() and '"' not in line:
            yield self._row(number, 1, line)
        elif self.ends(line):
            self.layout = None
            yield Record(SKIP, number, 1, line, [])
        elif not line.strip():
            self.gap = True
            yield Record(SKIP, number, 1, line, [])
        elif (layout := self.begins(line)) is not None:
            self.layout, self.gap = layout, False
            self.spare = TrailingCells(named_width(layout.header), self.separator)
            yield Record(HEADER, number, 1, line, layout.header)
        elif self.layout is None or (self.gap and len(self.split(line)) < 2):
            yield Record(SKIP, number, 1, line, [])
        elif line.count('"') % 2:
            self.open, self.open_line, self.open_size = [line], number, len(line)
        else:
            yield self._row(number, 1, line)

    def _interrupts(self, line: str) -> bool:
        if self.ends(line) or self.begins(line) is not None:
            return True
        if self.layout is None or line.count('"') % 2:
            return False
        return len(self.split(line)) == len(self.layout.header)

    def _extend(self, line: str) -> Iterator[Record]:
        self.open.append(line)
        self.open_size += len(line)
        if line.count('"') % 2:
            text, count, self.open = "".join(self.open), len(self.open), []
            yield self._row(self.open_line, count, text)
        elif self.open_size > MAX_RECORD_CHARS:
            yield self._give_up(f"a quote is opened but not closed within {MAX_RECORD_CHARS} characters")

    def _give_up(self, reason: str) -> Record:
        text, count, self.open = "".join(self.open), len(self.open), []
        return Record(REJECT, self.open_line, count, text[:MAX_TEXT_CHARS], [], reason)

    def _row(self, line: int, lines: int, text: str) -> Record:
        assert self.layout is not None
        cells, ended, needed = self.split(text), text.endswith("\n"), self.spare.columns
        if not needed <= len(cells) <= len(self.layout.header) + 1 or any(cells[len(self.layout.header) :]):
            reason = f"{'' if ended else 'the file ends inside this row: '}{wrong_cell_count(len(cells), needed)}"
        elif ends_inside(text, cells[min(len(cells), len(self.layout.header)) - 1]):
            reason = "the file ends inside this row"
        elif not (reason := self.spare.reason(cells, line)):
            filled = cells[:needed] + [""] * (len(self.layout.header) - needed)
            return Record(ROW, line, lines, text, filled)
        return Record(REJECT, line, lines, text[:MAX_TEXT_CHARS], [], reason)

    def finish(self) -> Iterator[Record]:
        """Yield the last record at the end of the file."""
        if self.open:
            yield self._give_up("the file ends inside a quoted cell")


def records(
    lines: Iterable[str], begins: TableStart[L], ends: TableEnd, separator: str = ","
) -> Iterator[tuple[Record, L | None]]:
    """Sort ``lines`` into records, each with the layout of its table.

    ``begins`` returns the layout of a header, else None; ``ends`` tells whether a line ends a table; ``separator``
    separates the cells of a line.
    """
    scanner = Scanner(begins, ends, separator)
    for number, line in enumerate(lines, 1):
        for record in scanner.feed(number, line):
            yield record, scanner.layout
    for record in scanner.finish():
        yield record, scanner.layout


def header_in(head: bytes, begins: TableStart[L], words: Sequence[str] = ()) -> L | None:
    """Return the layout of the first header in the head of a file; each header has one of the ``words``, if any."""
    return next((layout for line in header_lines(head, words) if (layout := begins(line + "\n")) is not None), None)


def collect_number_evidence(evidence: Evidence, cells: Sequence[str], integers: Sequence[str], line: int) -> None:
    """Add the number cells of a row to ``evidence``, except plain digits, which carry no evidence."""
    evidence.add([cell for cell in cells if not cell.isdigit()], line)
    evidence.add_integers([cell for cell in integers if not cell.isdigit()], line)


def quote_cell(cell: str) -> str:
    """Quote a cell for a message."""
    return repr(cell if len(cell) <= MAX_SHOWN_CHARS else cell[:MAX_SHOWN_CHARS] + "...")


def parse_integer(cell: str, numbers: Numbers, name: str, line: int = 0) -> int | None:
    """Return the whole number in a cell with all its digits; None if the cell is empty.

    Raise `ValueError` if it is not a whole number, `BrokenInputError` if a spreadsheet has rounded it.
    """
    if cell.isascii() and cell.isdigit() and len(cell) < 19:
        return int(cell)
    if not cell.strip():
        return None
    value = numbers.exact(cell)
    if value is None:
        raise ValueError(f"{name} is {quote_cell(cell)}, not a number")
    if "e" in cell.lower():
        raise BrokenInputError(
            f"line {line}: {name} is {cell.strip()}, but must be a whole number; a spreadsheet has cut its digits: "
            "upload the original file of the profiler"
        )
    if abs(value) > MAX_INTEGER or value != int(value):
        raise ValueError(f"{name} is {quote_cell(cell)}, not a whole number of at most 19 digits")
    return int(value)


def parse_scaled(cell: str, factor: Decimal, numbers: Numbers, name: str) -> Decimal | None:
    """Return a number times ``factor``, exactly; None if the cell is empty; raise `ValueError` for other text."""
    if not cell.strip():
        return None
    value = numbers.exact(cell)
    if value is None or abs(product := value * factor) > MAX_INTEGER:
        raise ValueError(f"{name} is {quote_cell(cell)}, not a number in range")
    return product


@dataclass
class Rows:
    """Gathers the rows of several tidy tables for a batch."""

    ledger: Ledger = field(default_factory=Ledger)
    gathered: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)
    count: int = 0
    launches: int = 0

    def add(self, table: str, row: Mapping[str, object]) -> None:
        """Add a row to ``table``."""
        self.gathered.setdefault(table, []).append(row)
        self.count += 1

    def add_launch(self, row: Mapping[str, object], metrics: Iterable[Mapping[str, object]] = ()) -> None:
        """Add a launch with the next index, and its metrics."""
        self.add("launches", {**row, "launch_index": self.launches})
        for metric in metrics:
            self.add("metrics", {**metric, "launch_index": self.launches, "line": row["line"]})
        self.launches += 1

    @property
    def full(self) -> bool:
        """Whether there are enough rows for a batch."""
        return self.count >= BATCH_ROWS or self.ledger.full

    def batch(self, facts: Mapping[str, str] | None = None, message: str = "") -> Batch:
        """Return the rows and the line counts since the last batch."""
        gathered, self.gathered, self.count = self.gathered, {}, 0
        return self.ledger.batch({name: _table(name, rows) for name, rows in gathered.items()}, facts, message)


class LineAccount:
    """Assigns every physical line to one kind; if records share a line, stored wins over rejected over skipped.

    A reject spans the lines assigned to it: none if a stored record, or a later reject, has its line.
    """

    _ORDER = (SKIP, REJECT, ROW)

    def __init__(self, rows: Rows) -> None:
        """Start before the first line, with the ledger of ``rows``."""
        self.ledger = rows.ledger
        self.last, self.kind = 0, SKIP
        self.reject: Record | None = None
        self._without_lines = 0

    def message(self) -> str:
        """Return how many rejects have no line of their own, which the counts of lines do not show; empty if none."""
        count = self._without_lines
        return (
            f"rejected without a line of their own, so not among the lines: {counted(count, 'record')}" if count else ""
        )

    def _append(self, reject: Record) -> None:
        self.ledger.rejects.append(reject)
        self._without_lines += reject.lines == 0

    def _count(self, kind: str, lines: int) -> None:
        self.ledger.stored += lines * (kind == ROW)
        self.ledger.rejected += lines * (kind == REJECT)
        self.ledger.skipped += lines * (kind == SKIP)

    def _close(self) -> None:
        self._count(self.kind, self.last > 0)
        if self.reject is not None:
            own = self.reject.lines + (self.kind == REJECT)
            self._append(self.reject._replace(lines=own))
        self.reject = None

    def span(self, kind: str, first: int, last: int, reject: Record | None = None) -> None:
        """Count the lines from ``first`` to ``last``; the next span may share the last line.

        ``reject`` is the record of a rejected span.
        """
        if first > self.last:
            self._close()
            self._count(SKIP, first - self.last - 1)
            self.last, self.kind = first, kind
        self.kind = max(self.kind, kind, key=self._ORDER.index)
        shared = self.reject is not None or self.kind != REJECT
        if last > first:
            self._close()
            self._count(kind, last - first - 1)
            self.last, self.kind = last, kind
        if reject is None:
            return
        if self.reject is not None:
            self._append(self.reject)
        before = last - first - 1 + (not shared) if last > first else 0
        self.reject = reject._replace(lines=before)

    def spans(self, firsts: Int64s, lasts: Int64s, stored: Flags) -> None:
        """Count consecutive spans, stored or skipped; the next span may share the last line."""
        begins, ends, line, last = firsts[stored], lasts[stored], self.last, int(lasts[-1])
        if (begins <= line).any():
            self.kind = ROW
        if last > line:
            self._close()
            begins = np.maximum(begins, np.concatenate(([line], ends))[:-1] + 1)
            between = int(np.maximum(np.minimum(ends, last - 1) - begins + 1, 0).sum())
            self._count(ROW, between)
            self._count(SKIP, last - line - 1 - between)
            self.last, self.kind = last, ROW if len(ends) and ends[-1] == last else SKIP

    def finish(self, lines: int) -> None:
        """Count the remaining lines of the file."""
        if lines > self.last:
            self.span(SKIP, lines, lines)
        self._close()


def _table(name: str, rows: Sequence[Mapping[str, object]]) -> ColumnTable:
    columns = dict.fromkeys(column for row in rows for column in row)
    return ColumnTable.of_values(name, {column: [row.get(column) for row in rows] for column in columns})
