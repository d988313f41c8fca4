"""Reader of the text output of ``nsys stats`` and ``nsys profile --stats=true``: columns or boxes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys.layouts import Layout, file_named_by, layout_of, report_named_by, unsupported_report
from profsvc.formats.nsys.report_rows import Records, ReportReader, number_format_of
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text, ends_inside
from profsvc.tables import Batch

NAME = "nsys-text"

_DASHES = re.compile(r" *-{2,}(?: +-{2,})+ *\r?\n?")
_BORDER = re.compile(r" *\+(?:-{2,}\+){2,} *\r?\n?")
_DASH_RUN = re.compile(r"-+")
_TITLE = re.compile(
    r"(?P<old>[A-Z][A-Za-z /-]+ (?:Statistics|Summary|Trace))(?: \((?:by size in )?(?P<unit>[^()]*)\))?:?\s*$"
    r"|Generating |SKIPPED: |Processing "
)
_ROW_BEGINS = "0123456789-+|"
_UNITS = {"nanoseconds": "ns", "bytes": "B", "KiB": "KiB"}
# The end of a truncated name; the last is the ellipsis of Windows code pages.
_TRUNCATION_MARKS = ("\u2026", "...", "\x85")


@dataclass
class _Table:
    """A table: the spans of its columns, whether borders separate them, and the layout if it is supported."""

    spans: list[tuple[int, int]]
    bordered: bool
    layout: Layout | None = None
    rows: int = 0

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a line; None if they do not fit the columns."""
        line = line.rstrip("\r\n")
        if self.bordered:
            ends = [start - 1 for start, _ in self.spans] + [self.spans[-1][1]]
            apart = all(line[end : end + 1] == "|" for end in ends)
            spans = self.spans
        else:
            ends = [0, *(end for _, end in self.spans[:-1])]
            starts = [start for start, _ in self.spans]
            apart = all(not line[end:start].strip(" ") for end, start in zip(ends, starts, strict=True))
            spans = [*self.spans[:-1], (starts[-1], len(line))]
        return [line[start:end].strip(" ") for start, end in spans] if apart else None

    def record(self, number: int, line: str) -> Record:
        """Return the record of a row."""
        self.rows += 1
        cells = self.cells(line)
        cut = cells is None or ends_inside(line, cells[-1])
        if cells is not None and not cut:
            return Record(ROW, number, 1, line, cells)
        cut = cut and not line.endswith("\n")
        reason = "the file ends inside this row" if cut else "its cells are not aligned with the header"
        return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], reason)


def _table_above(rule: str) -> _Table | None:
    """Return the table whose header is above ``rule``; None if the line is not a rule."""
    bordered = bool(_BORDER.fullmatch(rule))
    if not bordered and not _DASHES.fullmatch(rule):
        return None
    return _Table([match.span() for match in _DASH_RUN.finditer(rule)], bordered)


class _LineScanner:
    """Sorts lines into records and keeps the title above a table, with its report and unit."""

    def __init__(self) -> None:
        self.table: _Table | None = None
        self.title = self.unit = self.file = ""
        self.others: dict[str, None] = {}

    def feed(self, number: int, line: str, after: str) -> Record:
        """Return the record of a line; ``after`` is the next line."""
        if self.table is not None and self.table.bordered and _BORDER.fullmatch(line):
            self.table = None if self.table.rows else self.table
        elif self._titled(line) or not line.strip():
            self.table = None
        elif self.table is None:
            return self._maybe_header(number, line, after)
        elif self.table.layout is not None and not (_DASHES.fullmatch(line) and not self.table.rows):
            return self.table.record(number, line)
        return Record(SKIP, number, 1, line, [])

    def _titled(self, line: str) -> bool:
        line = line.lstrip(" ")  # titles of indented tables, as texts quote them
        if line[:1] in _ROW_BEGINS:
            return False
        name, match = report_named_by(line), _TITLE.match(line)
        if name or match:
            self.title = name or (match["old"] if match else None) or ""
            self.file = file_named_by(line) or self.file
            self.unit = _UNITS.get((match["unit"] if match else None) or "", "")
        return bool(name or match)

    def _maybe_header(self, number: int, line: str, after: str) -> Record:
        self.table = _table_above(after) if not _table_above(line) else None
        header = self.table.cells(line) if self.table else None
        if self.table is None or header is None:
            if self.table is not None and self.title:
                self.others[f"{self.title} (line {number}: names and dashes are not aligned)"] = None
            self.table = None
            return Record(SKIP, number, 1, line, [])
        self.table.layout = layout_of(header, self.unit)
        if self.table.layout is None and self.title:
            self.others[self.title] = None
        return Record(HEADER, number, 1, line, header)


def _records(lines: Iterable[str], scanner: _LineScanner) -> Records:
    held: str | None = None
    for number, after in enumerate(chain(lines, [None])):
        if held is not None:
            record = scanner.feed(number, held, after or "")
            yield record, scanner.table.layout if scanner.table else None
        held = after


def sniff(head: bytes) -> bool:
    """Return whether ``head`` holds the header of a known report."""
    if "--" not in head_text(head):
        return False
    lines = (line + "\n" for line in head_lines(head))
    return any(
        record.kind == HEADER and (layout or unsupported_report(record.cells))
        for record, layout in _records(lines, _LineScanner())
    )


def _why_nothing_is_read(records: Records) -> str | None:
    """Return why no report of a file is supported; None if it has a supported or no known report."""
    why = None
    for record, layout in records:
        if layout is not None:
            return None
        why = why or (unsupported_report(record.cells) if record.kind == HEADER else None)
    return why


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file in two passes, because the number format is known only at the end."""
    with Text(stream) as text:
        if why := _why_nothing_is_read(_records(text.lines(), _LineScanner())):
            raise BrokenInputError(why)
        reports = ReportReader(number_format_of(_records(text.lines(), _LineScanner())))
        scanner, repeated, cut = _LineScanner(), RepeatedTables(text), 0
        for found, layout in _records(text.lines(), scanner):
            record = repeated.settle(found, scanner.file)
            cut += record.kind == ROW and record.cells[-1].endswith(_TRUNCATION_MARKS)
            reports.add(record, layout)
            if reports.rows.full:
                yield reports.rows.batch()
        reports.others = scanner.others
        said = (
            f"{cut} names are truncated, so different kernels may share a name; export as CSV for whole names"
            if cut
            else ""
        )
        yield reports.last(text.encoding, said)
