"""The two walks over a file of nvprof: the first finds its signs and prefixes, the second reads its rows.

The first walk ends where nothing that follows can change what is found: a file that marks decimals one way reads the
same to its end, or contradicts itself, which the second walk sees. In the second, plain blocks are read at once
(`nvprof_blocks`) on two threads, and all others line by line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.blocks import SMALL_BLOCK, apart, lines_of
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, Record
from profsvc.formats.numbers import DOT_MARKS_DECIMALS, Evidence, NumberFormat
from profsvc.formats.nvprof_blocks import Part, Plan, parse, plan_of
from profsvc.formats.nvprof_lines import EVENTS, SUMMARY, TRACE, Layout, Scanner
from profsvc.formats.nvprof_tables import NO_NUMBERS, TOOL, WHOLE, Ledger, Page
from profsvc.formats.nvprof_values import OLD_BANNER, Copies, Values, split_unit
from profsvc.formats.stream import Text
from profsvc.tables import Batch, frame_of_arrays

BATCH_ROWS = 10_000
# Several blocks are on their way into the store at once, each with several copies of its columns.
BLOCK = 9 << 18
SAID = 5
FIRST_BLOCK = 1 << 16
EXPORT_AGAIN = "print it again with: LC_ALL=C nvprof --csv --log-file FILE ..."
_TIMES = {"Start", "Duration", "Time", "Avg", "Min", "Max"}
# What tells of prefixes, each with a rare letter: where that is absent, the rest has not to be looked for.
_OF_OLD = ((b"=", OLD_BANNER.encode()), (b"-", b"e-"), (b"+", b"e+"))
_OF_COPIES = ((b"[", b"[CUDA mem"), (b"u", b"Duration"))


@dataclass
class Signs:
    """What the rows say of the signs of numbers and of prefixes."""

    evidence: Evidence = field(default_factory=Evidence)
    copies: Copies = field(default_factory=Copies)
    wide: str = ""

    def take(self, record: Record, layout: Layout | None) -> None:
        """Take what a record says."""
        if record.kind == REJECT and layout is not None and len(record.cells) > len(layout.columns):
            self.wide = self.wide or f"line {record.line}: {record.reason}"
        if record.kind == SKIP and OLD_BANNER in record.text:
            self.copies.old = f"warn of replay ({OLD_BANNER.partition(': ')[2]!r})"
        if record.kind != ROW or layout is None or len(record.cells) != len(layout.columns):
            return
        cells = zip(layout.columns, record.cells, layout.units, strict=True)
        found = [(column, *split_unit(cell, unit)) for column, cell, unit in cells if column not in NO_NUMBERS and cell]
        self.evidence.add([number for _, number, _ in found], record.line)
        whole = WHOLE | {"Min", "Max", "Total"} if layout.kind == EVENTS else WHOLE
        self.evidence.add_integers([number for column, number, _ in found if column in whole], record.line)
        if layout.kind == TRACE:
            named = {column: (number, unit) for column, number, unit in found}
            self.copies.add(record.line, [named.get(name, ("", "")) for name in ("Size", "Duration", "Throughput")])
            if not self.copies.old and any("e-" in number or "e+" in number for number, _ in named.values()):
                self.copies.old = "write small times with exponents"

    @property
    def count(self) -> tuple[int, int, bool]:
        """Return what changes whenever the number format may."""
        return len(self.evidence.found), len(self.evidence.integers), bool(self.wide)

    def decide(self) -> NumberFormat:
        """Return the number format, or refuse the file."""
        if self.wide and not DOT_MARKS_DECIMALS & set(self.evidence.found):
            raise BrokenInputError(
                f"{self.wide}, and no number of the file has a decimal point, as if commas marked decimals; "
                f"{EXPORT_AGAIN}"
            )
        return self.evidence.decide()


def _telling_lines(block: bytes, number: int, copies: Copies) -> Iterator[tuple[int, str]]:
    """Yield the lines of a block, which begins at line ``number``, that tell of prefixes or that begin a table."""
    places: set[int] = set()
    for letter, words in (() if copies.old else _OF_OLD) + (() if copies.full else _OF_COPIES):
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


def signs_of(text: Text, scanner: Scanner) -> Signs:
    """Walk the file until its signs and its prefixes are known."""
    signs, number = Signs(), 1
    for view in text.blocks(FIRST_BLOCK):
        block = bytes(view)
        if signs.evidence.settled and signs.copies.settled:
            break
        every = not signs.evidence.settled
        for at, line in enumerate(lines_of(block), number) if every else _telling_lines(block, number, signs.copies):
            for record in scanner.feed(at, line):
                signs.take(record, scanner.layout)
        number += block.count(b"\n")
    for record in scanner.settle(SKIP):
        signs.take(record, scanner.layout)
    return signs


def _check_units(line: int, layout: Layout) -> None:
    """Refuse a table in CSV without the row of units that its times need."""
    for column, unit in zip(layout.columns, layout.units, strict=True):
        if column in _TIMES and unit not in ("s", "ms", "us", "ns"):
            raise BrokenInputError(
                f"line {line}: a row of units must follow the header of a {layout.kind}, but {column} has the unit "
                f"{unit!r} and not s, ms, us or ns; {EXPORT_AGAIN}"
            )


class _Walk:
    """The second walk."""

    def __init__(self, text: Text, scanner: Scanner, signs: Signs, base: int, is_csv: bool) -> None:
        self.text, self.scanner, self.signs, self.base, self.is_csv = text, scanner, signs, base, is_csv
        self.ledger, self.page = Ledger(), Page(Values(signs.decide(), base))
        self.count = signs.count
        self.line = 1
        self.checked: Layout | None = None

    def batches(self) -> Iterator[Batch]:
        for found in apart(self.text.blocks(BLOCK), self._plan, parse, SMALL_BLOCK):
            if isinstance(found, Part):
                yield from self._take(found)
                del found  # it would stay until the next is there
                continue
            for line in found:
                for record in self.scanner.feed(self.line, line):
                    self._record(record)
                self.line += 1
                if self.page.size >= BATCH_ROWS or self.ledger.full:
                    yield self.ledger.batch(self.page.take())
        for record in self.scanner.settle(SKIP):
            self._record(record)

    def _plan(self) -> Plan | None:
        return plan_of(self.scanner.layout, self.page.values) if self.is_csv and self.signs.evidence.settled else None

    def _record(self, record: Record) -> None:
        layout = self.scanner.layout
        self.signs.take(record, layout)
        if self.signs.count != self.count:
            self.count = self.signs.count
            if (number_format := self.signs.decide()) != self.page.values.number_format:
                self.page.values = Values(number_format, self.base)
        if record.kind == ROW and layout is not None:
            if self.is_csv and layout.kind in (TRACE, SUMMARY) and layout is not self.checked:
                _check_units(record.line, layout)
                self.checked = layout
            record = self.page.add(record, layout)
        elif record.kind == REJECT:
            self.page.first_reason = self.page.first_reason or f"line {record.line}: {record.reason}"
        self.ledger.take(record)

    def _take(self, part: Part) -> Iterator[Batch]:
        """Take a part as the rows that its lines are."""
        layout = self.scanner.layout
        assert layout is not None
        for record in self.scanner.rows_follow():
            self._record(record)
        if self.page.size:
            yield self.ledger.batch(self.page.take())
        tables = {}
        for name, columns in part.tables.items():
            rows = len(columns["line"])
            columns["line"] = columns["line"] + self.line
            columns["process_id"] = layout.process_id
            if name == "launches":
                columns["launch_index"] = np.arange(rows) + self.page.launches
                columns["process_name"] = layout.process_name
                self.page.launches += rows
            tables[name] = frame_of_arrays(name, rows, columns)
        self.page.note(layout, part.devices, part.rows)
        self.ledger.stored += part.rows
        self.line += part.rows
        yield self.ledger.batch(tables)

    def last(self, facts: dict[str, str]) -> Batch:
        """Hand on the end of the file; refuse it if no row of its tables could be read."""
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
        for name, found in (("devices", page.devices), ("processes", page.processes)):
            if found:
                facts[name] = ", ".join(list(found)[:SAID])
        message = "; ".join(self.ledger.errors)
        if sections := ", ".join(self.scanner.unread):
            message = "; ".join([*self.ledger.errors, f"these sections are not read and were skipped: {sections}"])
        elif not page.stored:
            message = f"nothing was profiled: {message or 'the file holds no row of a table'}; profile again"
        return self.ledger.batch(page.take(), facts, message)


def read(stream: BinaryIO, scanner: Callable[[], Scanner], page_name: str) -> Iterator[Batch]:
    """Read a file whose lines ``scanner`` sorts."""
    with Text(stream) as text:
        signs = signs_of(text, scanner())
        base, prefixes = signs.copies.decide()
        walk = _Walk(text, scanner(), signs, base, page_name == "csv")
        yield from walk.batches()
        yield walk.last({"layout": page_name, "prefixes": prefixes})
