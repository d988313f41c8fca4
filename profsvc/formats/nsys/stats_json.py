"""Reader of the JSON reports of ``nsys stats``: lists of one object per row, between lines of the tool."""

import re
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys.layouts import Layout, layout_of, report_named_by, unsupported_report
from profsvc.formats.nsys.report_rows import ReportReader
from profsvc.formats.parsing.embedded_tables import LineAccount
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.json_stream import Json, TruncatedJsonError, storable_text
from profsvc.formats.parsing.numbers import NumberFormat
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch

NAME = "nsys-json"

MAX_REPORT_NAMES = 1000
# A row of a known report has a key that contains one of these.
_WORDS = ('"Total', '"Start', "Proj", "QCount", "Migration Size", "CPU Page Faults", "NVTX Range")
_JSON_LINE = re.compile(r"\s*(?:\[(?![0-9])|[]{}\",])")


class _JsonText:
    """The text with the lines of the tool replaced by empty lines; keeps the announced reports."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.count = lines, 0
        self.names: deque[tuple[int, str]] = deque(maxlen=MAX_REPORT_NAMES)

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.count += 1
            if name := report_named_by(line):
                self.names.append((self.count, name))
            yield line if _JSON_LINE.match(line) and not name else "\n"

    def report_at(self, line: int) -> str:
        """Return the report that was last announced before ``line``."""
        return next((name for number, name in reversed(self.names) if number < line), "")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{str(value)[:40]!r} is neither a number nor text")


def _objects(json: Json) -> Iterator[tuple[int, object]]:
    """Yield (first line, row) of all lists."""
    while json.peek():
        for _ in json.items():
            line = json.line if json.peek() else 0
            yield line, json.value()


def sniff(head: bytes) -> bool:
    """Return whether the first list in ``head`` holds a row of a known report."""
    text = head_text(head)
    if not any(word in text for word in _WORDS):
        return False
    try:
        _, first = next(_objects(Json(iter(_JsonText(line + "\n" for line in head_lines(head))))), (0, None))
    except (TruncatedJsonError, BrokenInputError):
        return False
    return isinstance(first, dict) and bool(layout_of(list(first)) or unsupported_report(list(first)))


class _ObjectReader:
    """Converts the objects of a file."""

    def __init__(self) -> None:
        self.reports = ReportReader(NumberFormat())
        self.layouts: dict[tuple[str, ...], Layout | None] = {}
        self.unsupported: str | None = None

    def add(self, values: object, first: int, report: str) -> str:
        """Add an object; return whether it is stored or skipped. Raise `ValueError` if it is not a row."""
        if not isinstance(values, dict):
            raise ValueError("the row is not a JSON object")
        columns, cells = tuple(values), [_cell(value) for value in values.values()]
        if columns not in self.layouts:
            self.layouts = {columns: layout_of(list(columns))}
            if layout := self.layouts[columns]:
                self.reports.begin(layout, first)
        layout = self.layouts[columns]
        if layout is None:
            self.unsupported = self.unsupported or unsupported_report(list(columns))
            self.reports.others[report or ", ".join(columns)[:80]] = None
            return SKIP
        self.reports.take(Record(ROW, first, 1, "", cells), layout)
        return ROW


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file."""
    with Text(stream) as text:
        pieces, rows, said = _JsonText(text.lines()), _ObjectReader(), ""
        json, account = Json(iter(pieces)), LineAccount(rows.reports.rows)
        try:
            for first, values in _objects(json):
                try:
                    account.span(rows.add(values, first, pieces.report_at(first)), first, json.line)
                except ValueError as error:
                    record = Record(REJECT, first, 0, storable_text(str(values)[:MAX_TEXT_CHARS]), [], str(error))
                    account.span(REJECT, first, json.line, record)
                if rows.reports.rows.full:
                    yield rows.reports.rows.batch()
        except TruncatedJsonError:
            first = min(json.line, pieces.count)
            said = f"the file ends inside a list on line {pieces.count}; the rest is missing"
            record = Record(REJECT, first, 0, "", [], "the file ends inside a list")
            account.span(REJECT, first, pieces.count, record)
        account.finish(pieces.count)
        if rows.unsupported and not rows.reports.reports:
            raise BrokenInputError(rows.unsupported)
        yield rows.reports.last(text.encoding, "; ".join(filter(None, (account.message(), said))))
