"""Reads an nvprof file in two passes: number format and prefixes first, then rows.

The first pass ends as soon as no later line can change its result. A file that contradicts itself is refused by the
second pass, which reads regular blocks on two threads (`blocks`) and all other lines one by one.
"""

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.line_blocks import lines_of, read_blocks
from profsvc.formats.nvprof.blocks import ParsedRows, parse
from profsvc.formats.nvprof.column_plan import ColumnPlan, column_plan
from profsvc.formats.nvprof.lines import EVENTS, SUMMARY, TRACE, Layout, Scanner
from profsvc.formats.nvprof.tables import INTEGER_COLUMNS, TEXT_COLUMNS, TOOL, NvprofLedger, TableRows
from profsvc.formats.nvprof.values import REPLAY_WARNING, MemcpyUnits, Values, split_unit
from profsvc.formats.parsing.numbers import DOT_MARKS_DECIMALS, Evidence, NumberFormat
from profsvc.formats.parsing.records import REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch, ColumnTable, Table

BATCH_ROWS = 10_000
# A few blocks are in memory at once, each with several copies of its columns; more rows a block cost less each:
# with half of it the program takes 4 to 10 % more of the processor, and 10 MB less memory.
BLOCK_BYTES = 6 << 20
MAX_REPORTED = 5
FIRST_BLOCK_BYTES = 1 << 16
EXPORT_AGAIN = "export again with: LC_ALL=C nvprof --csv --log-file FILE ..."
_TIME_COLUMNS = {"Start", "Duration", "Time", "Avg", "Min", "Max"}
# Evidence of prefixes, each with a rare letter: if the letter is absent, the search is skipped.
_OLD_VERSION_MARKS = ((b"=", REPLAY_WARNING.encode()), (b"-", b"e-"), (b"+", b"e+"))
_COPY_MARKS = ((b"[", b"[CUDA mem"), (b"u", b"Duration"))


@dataclass
class FileConventions:
    """The evidence of number format and unit prefixes in the rows."""

    evidence: Evidence = field(default_factory=Evidence)
    copies: MemcpyUnits = field(default_factory=MemcpyUnits)
    wide: str = ""

    def take(self, record: Record, layout: Layout | None) -> None:
        """Add the evidence of a record."""
        if record.kind == REJECT and layout is not None and len(record.cells) > len(layout.columns):
            self.wide = self.wide or f"line {record.line}: {record.reason}"
        if record.kind == SKIP and REPLAY_WARNING in record.text:
            self.copies.old = f"warn of replay ({REPLAY_WARNING.partition(': ')[2]!r})"
        if record.kind != ROW or layout is None or len(record.cells) != len(layout.columns):
            return
        cells = zip(layout.columns, record.cells, layout.units, strict=True)
        found = [
            (column, *split_unit(cell, unit)) for column, cell, unit in cells if column not in TEXT_COLUMNS and cell
        ]
        self.evidence.add([number for _, number, _ in found], record.line)
        whole = INTEGER_COLUMNS | {"Min", "Max", "Total"} if layout.kind == EVENTS else INTEGER_COLUMNS
        self.evidence.add_integers([number for column, number, _ in found if column in whole], record.line)
        if layout.kind == TRACE:
            named = {column: (number, unit) for column, number, unit in found}
            self.copies.add(record.line, [named.get(name, ("", "")) for name in ("Size", "Duration", "Throughput")])
            # Newer versions, too, print seconds beyond the width of their column with an exponent.
            told = any("e-" in number or ("e+" in number and unit != "s") for number, unit in named.values())
            if not self.copies.old and told:
                self.copies.old = "write small times with exponents"

    @property
    def count(self) -> tuple[int, int, bool]:
        """Return a value that changes whenever the number format may change."""
        return len(self.evidence.found), len(self.evidence.integers), bool(self.wide)

    def decide(self) -> NumberFormat:
        """Return the number format; raise `BrokenInputError` if commas are ambiguous."""
        if self.wide and not DOT_MARKS_DECIMALS & set(self.evidence.found):
            raise BrokenInputError(
                f"{self.wide}, and no number of the file has a decimal point, as if commas marked decimals; "
                f"{EXPORT_AGAIN}"
            )
        return self.evidence.decide()


def _lines_with_evidence(
    block: bytes, number: int, copies: MemcpyUnits, below_header: bool
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block at line ``number`` that show prefixes or start a table.

    ``below_header`` means that the block above ends with a header, whose units are the first line of this one.
    """
    places = {0} if below_header else set()
    for letter, words in (() if copies.old else _OLD_VERSION_MARKS) + (() if copies.full else _COPY_MARKS):
        at = block.find(words) if letter in block else -1
        while at >= 0:
            places.add(block.rfind(b"\n", 0, at) + 1)
            end = block.find(b"\n", at) + 1 or len(block)
            if words == b"Duration":  # its units follow
                places.add(end)
            at = block.find(words, end)
    done = 0
    for place in sorted(places - {len(block)}):
        number += block.count(b"\n", done, place)
        done = place
        yield number, lines_of(block[place : block.find(b"\n", place) + 1 or len(block)])[0]


def detect_conventions(text: Text, scanner: Scanner) -> FileConventions:
    """Return the conventions of a file, read until they are settled."""
    signs, number, below_header = FileConventions(), 1, False
    for view in text.blocks(FIRST_BLOCK_BYTES):
        block = bytes(view)
        if signs.evidence.settled and signs.copies.settled:
            break
        every = not signs.evidence.settled
        for at, line in (
            enumerate(lines_of(block), number)
            if every
            else _lines_with_evidence(block, number, signs.copies, below_header)
        ):
            for record in scanner.feed(at, line):
                signs.take(record, scanner.layout)
        number += block.count(b"\n")
        below_header = block.find(b"Duration", block.rfind(b"\n", 0, len(block) - 1) + 1) >= 0
    for record in scanner.settle(SKIP):
        signs.take(record, scanner.layout)
    return signs


def _check_units(record: Record, layout: Layout) -> None:
    """Raise `BrokenInputError` for a CSV table without the row of units that times need, if cells have none either."""
    for column, unit, cell in zip(layout.columns, layout.units, record.cells, strict=True):
        if column in _TIME_COLUMNS and (unit or split_unit(cell)[1]) not in ("s", "ms", "us", "ns"):
            raise BrokenInputError(
                f"line {record.line}: the row of units after the header of a {layout.kind} is missing: {column} has "
                f"the unit {unit!r}, not s, ms, us or ns; {EXPORT_AGAIN}"
            )


class _Reader:
    """The second pass."""

    def __init__(self, text: Text, scanner: Scanner, signs: FileConventions, base: int, is_csv: bool) -> None:
        self.text, self.scanner, self.signs, self.base, self.is_csv = text, scanner, signs, base, is_csv
        self.ledger, self.page = NvprofLedger(), TableRows(Values(signs.decide(), base))
        self.count, self.repeated = signs.count, RepeatedTables(text)
        self.line = 1
        self.checked: Layout | None = None

    def batches(self) -> Iterator[Batch]:
        blocks = self.text.blocks(BLOCK_BYTES)
        yield from read_blocks(blocks, self._plan, parse, self._take_part, self._take_lines, check_each_line=True)
        for record in self.scanner.settle(SKIP):
            self._record(record)

    def _plan(self) -> ColumnPlan | None:
        is_plain = self.is_csv and self.signs.evidence.settled and not self.repeated.by_lines
        return column_plan(self.scanner.layout, self.page.values) if is_plain else None

    def _take_lines(self, lines: list[str]) -> Iterator[Batch]:
        for line in lines:
            covered = self.repeated.covers(self.line)
            self.ledger.skipped += covered
            for record in () if covered else self.scanner.feed(self.line, line):
                self._record(record)
            self.line += 1
            if self.page.size >= BATCH_ROWS or self.ledger.full:
                yield self.ledger.batch(self.page.take())

    def _record(self, record: Record) -> None:
        layout = self.scanner.layout
        self.signs.take(record, layout)
        if self.signs.count != self.count:
            self.count = self.signs.count
            if (number_format := self.signs.decide()) != self.page.values.number_format:
                self.page.values = Values(number_format, self.base)
        record = self.repeated.settle(record, layout and (layout.process_id, layout.process_name, layout.within))
        if record.kind == ROW and layout is not None:
            if self.is_csv and layout.kind in (TRACE, SUMMARY) and layout is not self.checked:
                _check_units(record, layout)
                self.checked = layout
            record = self.page.add(record, layout)
        elif record.kind == REJECT:
            self.page.first_reason = self.page.first_reason or f"line {record.line}: {record.reason}"
        self.ledger.add(record)

    def _take_part(self, part: ParsedRows) -> Generator[Batch, None, bool]:
        layout = self.scanner.layout
        assert layout is not None
        for record in self.scanner.rows_follow():
            self._record(record)
        if self.page.size:
            yield self.ledger.batch(self.page.take())
        tables: dict[str, Table] = {}
        for name, columns in part.tables.items():
            rows = len(columns["line"])
            columns["line"] = columns["line"] + self.line
            columns["process_id"] = layout.process_id
            if name == "launches":
                columns["launch_index"] = np.arange(rows) + self.page.launches
                columns["process_name"] = layout.process_name
                self.page.launches += rows
            tables[name] = ColumnTable(name, rows, columns)
        self.page.note(layout, part.devices, part.rows)
        self.ledger.stored += part.rows
        self.repeated.passed(self.line, self.line + part.rows - 1)
        self.line += part.rows
        yield self.ledger.batch(tables)
        return True

    def last(self, facts: dict[str, str]) -> Batch:
        """Return the last batch; raise `BrokenInputError` if no row could be read."""
        page = self.page
        if page.first_reason and not page.stored:
            raise BrokenInputError(f"no row of the file can be read: {page.first_reason}; {EXPORT_AGAIN}")
        facts = {
            "tool": TOOL,
            "page": ", ".join(page.kinds) or "nothing",
            "number_format": str(page.values.number_format),
            **facts,
            "encoding": self.text.encoding,
        }
        for name, found in (("devices", page.devices | page.boards), ("processes", page.processes)):
            if found:
                facts[name] = ", ".join(list(found)[:MAX_REPORTED])
        message = "; ".join(self.ledger.errors)
        if sections := ", ".join(self.scanner.unread):
            message = "; ".join([*self.ledger.errors, f"these sections are not supported and were skipped: {sections}"])
        elif not page.stored:
            message = f"nothing was profiled: {message or 'the file holds no table rows'}; profile again"
        return replace(self.ledger.batch(page.take(), facts, message), devices=page.device_names())


def read(stream: BinaryIO, scanner: Callable[[], Scanner], page_name: str) -> Iterator[Batch]:
    """Read a file with the scanner of its form."""
    with Text(stream) as text:
        signs = detect_conventions(text, scanner())
        base, prefixes = signs.copies.decide()
        walk = _Reader(text, scanner(), signs, base, page_name == "csv")
        yield from walk.batches()
        yield walk.last({"layout": page_name, "prefixes": prefixes})
