"""CSV tables that stand between other lines: the lines of a file sorted into records, each line in exactly one.

A format says which line is a header, by making a layout of it, and which line ends a table. Everything else follows:
rows have the width of their header, may hold line ends inside quotes, and a row that the file ends in is rejected,
unless it lacks its line end alone.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
import pandas as pd

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats.clock import Flags, Int64s
from profsvc.formats.head import header_lines
from profsvc.formats.ncu import Ledger
from profsvc.formats.ncu_lines import HEADER, RECORD_LIMIT, REJECT, ROW, SKIP, TEXT_LIMIT, Record, split_cells
from profsvc.formats.numbers import Evidence, Numbers
from profsvc.formats.spare_cells import Spare, width_of
from profsvc.formats.stream import ends_inside
from profsvc.tables import Batch, frame

BATCH_ROWS = 10_000
LARGEST = 2**63 - 1
LONGEST = 40


class Layout(Protocol):
    """What a header says about its rows."""

    header: list[str]


L = TypeVar("L", bound=Layout)
Begins = Callable[[str], L | None]
Ends = Callable[[str], object]


class Scanner(Generic[L]):
    """Sorts lines into records; ``layout`` is that of the table in which it is, None outside of one."""

    def __init__(self, begins: Begins[L], ends: Ends, separator: str = ",") -> None:
        """Begin before the first line; `records` says what the functions do."""
        self.begins, self.ends, self.separator = begins, ends, separator
        self.split = partial(split_cells, separator=separator)
        self.layout: L | None = None
        self.spare = Spare(0)
        self.gap = False
        self.open: list[str] = []
        self.open_line = self.open_size = 0

    @property
    def in_cell(self) -> bool:
        """Whether a cell in quotes was opened and not closed yet."""
        return bool(self.open)

    @property
    def spare_as_header(self) -> bool:
        """Whether rows are whole that have neither more nor fewer cells than their header."""
        spare = len(self.layout.header) - self.spare.columns if self.layout is not None else 0
        return self.spare.count == spare or (self.spare.count is None and not spare)

    def passed(self) -> None:
        """Take note of rows that were read elsewhere, as they have the cells of their header."""
        assert self.layout is not None
        self.spare.settle(len(self.layout.header) - self.spare.columns)

    def feed(self, number: int, line: str) -> Iterator[Record]:
        """Yield the records that end with line ``number``."""
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
            self.spare = Spare(width_of(layout.header), self.separator)
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
        elif self.open_size > RECORD_LIMIT:
            yield self._give_up(f"a quote is opened but not closed within {RECORD_LIMIT} characters")

    def _give_up(self, reason: str) -> Record:
        text, count, self.open = "".join(self.open), len(self.open), []
        return Record(REJECT, self.open_line, count, text[:TEXT_LIMIT], [], reason)

    def _row(self, line: int, lines: int, text: str) -> Record:
        assert self.layout is not None
        cells, ended, needed = self.split(text), text.endswith("\n"), self.spare.columns
        if not needed <= len(cells) <= len(self.layout.header) + 1 or any(cells[len(self.layout.header) :]):
            reason = f"{'' if ended else 'the file ends inside this row: '}{unfit(len(cells), needed)}"
        elif ends_inside(text, cells[min(len(cells), len(self.layout.header)) - 1]):
            reason = "the file ends inside this row"
        elif not (reason := self.spare.reason(cells, line)):
            filled = cells[:needed] + [""] * (len(self.layout.header) - needed)
            return Record(ROW, line, lines, text, filled)
        return Record(REJECT, line, lines, text[:TEXT_LIMIT], [], reason)

    def finish(self) -> Iterator[Record]:
        """Yield what waits at the end of the file."""
        if self.open:
            yield self._give_up("the file ends inside a quoted cell")


def records(
    lines: Iterable[str], begins: Begins[L], ends: Ends, separator: str = ","
) -> Iterator[tuple[Record, L | None]]:
    """Sort ``lines`` into records, each with the layout of its table.

    ``begins`` gives the layout of a line that is a header, else None; ``ends`` tells a line that ends a table;
    ``separator`` stands between the cells of a line.
    """
    scanner = Scanner(begins, ends, separator)
    for number, line in enumerate(lines, 1):
        for record in scanner.feed(number, line):
            yield record, scanner.layout
    for record in scanner.finish():
        yield record, scanner.layout


def header_in(head: bytes, begins: Begins[L]) -> L | None:
    """Return the layout of the first header in the head of a file."""
    return next((layout for line in header_lines(head) if (layout := begins(line + "\n")) is not None), None)


def weigh(evidence: Evidence, cells: Sequence[str], integers: Sequence[str], line: int) -> None:
    """Show the number cells of a row to ``evidence``; plain digits say nothing."""
    evidence.add([cell for cell in cells if not cell.isdigit()], line)
    evidence.add_integers([cell for cell in integers if not cell.isdigit()], line)


def shown(cell: str) -> str:
    """Quote a cell for a message."""
    return repr(cell if len(cell) <= LONGEST else cell[:LONGEST] + "...")


def whole(cell: str, numbers: Numbers, name: str, line: int = 0) -> int | None:
    """Return a cell that must hold a whole number, with every digit; None if it is empty.

    Raise `ValueError` with the reason if it is no such number, `BrokenInputError` if a spreadsheet has rewritten it.
    """
    if cell.isascii() and cell.isdigit() and len(cell) < 19:
        return int(cell)
    if not cell.strip():
        return None
    value = numbers.exact(cell)
    if value is None:
        raise ValueError(f"{name} is {shown(cell)}, not a number")
    if "e" in cell.lower():
        raise BrokenInputError(
            f"line {line}: {name} is {cell.strip()}, but must be a whole number; a spreadsheet has cut its digits: "
            "take the file as the profiler wrote it"
        )
    if abs(value) > LARGEST or value != int(value):
        raise ValueError(f"{name} is {shown(cell)}, not a whole number of at most 19 digits")
    return int(value)


def scaled(cell: str, factor: Decimal, numbers: Numbers, name: str) -> Decimal | None:
    """Return a number times ``factor``, exactly; None if the cell is empty; `ValueError` if it is no number."""
    if not cell.strip():
        return None
    value = numbers.exact(cell)
    if value is None or abs(product := value * factor) > LARGEST:
        raise ValueError(f"{name} is {shown(cell)}, not a number in range")
    return product


@dataclass
class Rows:
    """Gathers the rows of several tidy tables until they are worth a batch."""

    ledger: Ledger = field(default_factory=Ledger)
    gathered: dict[str, list[Mapping[str, object]]] = field(default_factory=dict)
    count: int = 0
    launches: int = 0

    def add(self, table: str, row: Mapping[str, object]) -> None:
        """Add a row to ``table``."""
        self.gathered.setdefault(table, []).append(row)
        self.count += 1

    def add_launch(self, row: Mapping[str, object], metrics: Iterable[Mapping[str, object]] = ()) -> None:
        """Add a launch, which gets the next index, and its metrics."""
        self.add("launches", {**row, "launch_index": self.launches})
        for metric in metrics:
            self.add("metrics", {**metric, "launch_index": self.launches, "line": row["line"]})
        self.launches += 1

    @property
    def full(self) -> bool:
        """Whether the rows should be handed on."""
        return self.count >= BATCH_ROWS or self.ledger.full

    def batch(self, facts: Mapping[str, str] | None = None, message: str = "") -> Batch:
        """Hand on what was gathered, and the counts of lines."""
        gathered, self.gathered, self.count = self.gathered, {}, 0
        return self.ledger.batch({name: _table(name, rows) for name, rows in gathered.items()}, facts, message)


class Account:
    """Gives every physical line to one kind: stored before rejected before skipped, where records share a line.

    A reject spans the lines that are given to it: none where a stored record, or the last reject of its line, has it.
    """

    _ORDER = (SKIP, REJECT, ROW)

    def __init__(self, rows: Rows) -> None:
        """Begin before the first line, in the ledger of ``rows``."""
        self.ledger = rows.ledger
        self.last, self.kind = 0, SKIP
        self.reject: Record | None = None

    def _count(self, kind: str, lines: int) -> None:
        self.ledger.stored += lines * (kind == ROW)
        self.ledger.rejected += lines * (kind == REJECT)
        self.ledger.skipped += lines * (kind == SKIP)

    def _close(self) -> None:
        self._count(self.kind, self.last > 0)
        if self.reject is not None:
            own = self.reject.lines + (self.kind == REJECT)
            self.ledger.rejects.append(self.reject._replace(lines=own))
        self.reject = None

    def span(self, kind: str, first: int, last: int, reject: Record | None = None) -> None:
        """Account for the lines from ``first`` to ``last``; the last one may be shared with what follows.

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
            self.ledger.rejects.append(self.reject)
        before = last - first - 1 + (not shared) if last > first else 0
        self.reject = reject._replace(lines=before)

    def spans(self, firsts: Int64s, lasts: Int64s, stored: Flags) -> None:
        """Account for spans that follow each other, stored or skipped; the last line may be shared as well."""
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
        """Account for the rest of the file."""
        if lines > self.last:
            self.span(SKIP, lines, lines)
        self._close()


def _table(name: str, rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    columns = dict.fromkeys(column for row in rows for column in row)
    return frame(name, {column: [row.get(column) for row in rows] for column in columns})
