"""Reader of the CSV and TSV reports of ``nsys stats``: traces and summaries, several in one file."""

from collections.abc import Generator, Iterator
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.line_blocks import BLOCK_BYTES, read_blocks
from profsvc.formats.nsys.layouts import Layout, file_named_by, layout_of, report_named_by, unsupported_report
from profsvc.formats.nsys.report_rows import ReportReader, add_evidence
from profsvc.formats.nsys.stats_blocks import ColumnPlan, ParsedRows, column_plan, parse
from profsvc.formats.parsing.embedded_tables import Scanner, header_in
from profsvc.formats.parsing.head import header_lines
from profsvc.formats.parsing.numbers import Evidence
from profsvc.formats.parsing.records import SKIP, Record, split_cells
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch, ColumnTable, Table, Wide

NAME = "nsys-stats"

FIRST_BLOCK_BYTES = 1 << 16
# Few lines contain one of these words, and most of those are headers.
_HEADER_WORDS = ("Total", "Start")
_UNSUPPORTED_HEADER_WORDS = ("NVTX Range", "Proj", "QCount", "Migration Size", "CPU Page Faults")


def _parse_header(line: str) -> Layout | None:
    if not any(word in line for word in _HEADER_WORDS):
        return None
    return layout_of(split_cells(line, _separator(line)))


def _separator(header: str) -> str:
    return "\t" if "\t" in header else ","


def sniff(head: bytes) -> bool:
    """Return whether ``head`` holds the header of a known report."""
    unsupported = map(_unsupported_report, header_lines(head, _UNSUPPORTED_HEADER_WORDS))
    return header_in(head, _parse_header, _HEADER_WORDS) is not None or any(unsupported)


def _unsupported_report(line: str) -> str | None:
    """Return why the report with the header ``line`` is unsupported; None for other lines."""
    if not any(word in line for word in _UNSUPPORTED_HEADER_WORDS):
        return None
    return unsupported_report(split_cells(line, _separator(line)))


class _Reader:
    """The second pass over a file, which stores its rows; the first pass collects evidence of the number format."""

    def __init__(self, text: Text, separator: str, evidence: Evidence) -> None:
        self.text, self.separator, self.evidence = text, separator, evidence
        self.scanner = _scanner(separator)
        self.reports = ReportReader(evidence.decide())
        self.seen = _evidence_version(evidence)
        self.line = 1
        self.banner, self.file = "", ""
        self.repeated = RepeatedTables(text)

    def batches(self) -> Iterator[Batch]:
        blocks = self.text.blocks(BLOCK_BYTES)
        yield from read_blocks(blocks, self._plan, parse, self._take_part, self._take_lines)
        for record in self.scanner.finish():
            self._record(record)
        yield self.reports.last(self.text.encoding)

    def _plan(self) -> ColumnPlan | None:
        return None if self.repeated.by_lines else _plan(self.scanner, self.separator, self.evidence)

    def _take_lines(self, lines: list[str]) -> Iterator[Batch]:
        for line in lines:
            covered = self.repeated.covers(self.line)
            self.reports.rows.ledger.skipped += covered
            for record in () if covered else self.scanner.feed(self.line, line):
                self._record(record)
            self.line += 1
            if self.reports.rows.full:
                yield self.reports.rows.batch()

    def _record(self, record: Record) -> None:
        layout = self.scanner.layout
        add_evidence(self.evidence, record, layout)
        if _evidence_version(self.evidence) != self.seen:
            self.seen = _evidence_version(self.evidence)
            self.reports.read_as(self.evidence.decide())
        if record.kind == SKIP and (name := report_named_by(record.text)):
            self.banner, self.file = name, file_named_by(record.text) or self.file
        elif record.kind == SKIP and layout is None and self.banner and len(self.scanner.split(record.text)) > 2:
            self.reports.others[self.banner] = None
        self.reports.add(self.repeated.settle(record, self.file), layout)

    def _take_part(self, part: ParsedRows) -> Generator[Batch, None, bool]:
        rows, plan = self.reports.rows, self._plan()
        assert plan is not None
        if rows.count:
            yield rows.batch()
        tables: dict[str, Table] = {}
        wide = None
        for name, columns in part.tables.items():
            columns["line"] = columns["line"] + self.line
            if name == "launches":
                columns["launch_index"] = np.arange(len(columns["line"])) + rows.launches
                if part.metrics:
                    letters, bounds, values = part.metrics
                    wide = Wide(plan.wide, rows.launches, columns["line"], letters, bounds, values)
                rows.launches += len(columns["line"])
            tables[name] = ColumnTable(name, len(columns["line"]), columns)
        self.scanner.passed()
        self.repeated.passed(self.line, self.line + part.rows - 1)
        self.line += part.rows
        self.reports.stored += part.rows
        rows.ledger.stored += part.rows
        yield rows.ledger.batch(tables, wide=wide)
        return True


def _scanner(separator: str) -> Scanner[Layout]:
    return Scanner(_parse_header, report_named_by, separator)


def _plan(scanner: Scanner[Layout], separator: str, evidence: Evidence) -> ColumnPlan | None:
    if scanner.layout is None or scanner.in_cell or not scanner.spare_as_header:
        return None
    return column_plan(scanner.layout, separator, evidence.decide().decimal if evidence.settled else "")


def _evidence_version(evidence: Evidence) -> tuple[int, int]:
    """Return a value that changes whenever the number format may change."""
    return len(evidence.found), len(evidence.integers)


def _number_evidence(text: Text, separator: str) -> Evidence:
    """Return the evidence of the number format, read until it is settled."""
    evidence, scanner, number = Evidence(), _scanner(separator), 1

    def take_part(part: ParsedRows) -> Generator[bool, None, bool]:
        nonlocal number
        scanner.passed()
        number += part.rows
        yield False
        return True

    def take_lines(lines: list[str]) -> Iterator[bool]:
        nonlocal number
        for line in lines:
            for record in scanner.feed(number, line):
                add_evidence(evidence, record, scanner.layout)
            number += 1
        yield evidence.settled

    blocks = text.blocks(BLOCK_BYTES, FIRST_BLOCK_BYTES)
    any(read_blocks(blocks, lambda: _plan(scanner, separator, evidence), parse, take_part, take_lines))
    return evidence


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file in two passes, because the number format may be known only at its end."""
    with Text(stream) as text:
        header = next((line for line in text.lines() if _parse_header(line)), "")
        if not header and (why := next(filter(None, map(_unsupported_report, text.lines())), None)):
            raise BrokenInputError(why)
        separator = _separator(header)
        yield from _Reader(text, separator, _number_evidence(text, separator)).batches()
