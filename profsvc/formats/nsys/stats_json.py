"""Reader of the JSON reports of ``nsys stats``: lists of one object per row, between lines of the tool."""

import re
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from hashlib import sha256
from itertools import count
from typing import BinaryIO, NamedTuple

from profsvc.errors import BrokenInputError
from profsvc.formats.nsys.layouts import Layout, file_named_by, layout_of, report_named_by, unsupported_report
from profsvc.formats.nsys.report_rows import ReportReader
from profsvc.formats.parsing.embedded_tables import MAX_INTEGER, LineAccount
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.json_stream import MAX_VALUE_CHARS, Json, TruncatedJsonError, storable_text
from profsvc.formats.parsing.numbers import NumberFormat
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.text import RepeatedLines, Text
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
        self.files: deque[tuple[int, str]] = deque(maxlen=MAX_REPORT_NAMES)

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.count += 1
            if name := report_named_by(line):
                self.names.append((self.count, name))
                self.files.append((self.count, file_named_by(line) or self.file_at(self.count)))
            yield line if _JSON_LINE.match(line) and not name else "\n"

    def report_at(self, line: int) -> str:
        """Return the report that was last announced before ``line``."""
        return next((name for number, name in reversed(self.names) if number < line), "")

    def file_at(self, line: int) -> str:
        """Return the report file that was last named before ``line``."""
        return next((name for number, name in reversed(self.files) if number < line), "")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{str(value)[:40]!r} is neither a number nor text")


def _objects(json: Json) -> Iterator[tuple[int, int, object]]:
    """Yield (number of the list, first line, row) of all lists."""
    for number in count():
        if not json.peek():
            return
        for _ in json.items():
            line = json.line if json.peek() else 0
            yield number, line, json.value()


class _List(NamedTuple):
    """A list: its number, lines and report file, how many objects it has, their digest, and whether it is cut."""

    number: int
    first: int
    last: int
    file: str
    objects: int = 0
    digest: bytes = b""
    cut: bool = False


def _lists(text: Text, most: int = MAX_INTEGER) -> Iterator[_List]:
    """Yield the lists of a text; the digest is that of the first ``most`` objects of each."""
    pieces = _JsonText(text.lines())
    json, digest, found = Json(iter(pieces)), sha256(), _List(-1, 0, 0, "")
    try:
        for number, line, _ in _objects(json):
            if number != found.number:
                if found.objects:
                    yield found
                digest, found = sha256(), _List(number, line, line, pieces.file_at(line))
            if found.objects < most:
                digest.update(_digest(json))
                found = found._replace(objects=found.objects + 1, digest=digest.digest())
            found = found._replace(last=json.line)
    except TruncatedJsonError:
        found = found._replace(cut=True, last=pieces.count)
    if found.objects:
        yield found


def _digest(json: Json) -> bytes:
    return sha256(json.text(MAX_VALUE_CHARS).encode("utf-8", "backslashreplace")).digest()


class _Copies:
    """Finds lists that repeat an earlier one of the same report file; a cut one repeats the begin of one.

    The text is read again only if a list begins like an earlier one. Memory holds two digests for each list.
    """

    def __init__(self, text: Text) -> None:
        self.text, self.begins = text, set[tuple[str, bytes]]()
        self.found: dict[int, RepeatedLines] | None = None
        self.number, self.is_copy = -1, False

    def covers(self, number: int, file: str, json: Json) -> bool:
        """Return whether the object that was read last is of a list, with this number, that repeats another."""
        if number != self.number:
            begin = file, _digest(json)
            if begin in self.begins and self.found is None:
                self.found = self._all()
            self.begins.add(begin)
            copy = (self.found or {}).get(number)
            self.number, self.is_copy = number, copy is not None
            if copy is not None:
                self.text.note_repeated(copy)
        return self.is_copy

    def _all(self) -> dict[int, RepeatedLines]:
        copies, known = dict[int, RepeatedLines](), dict[tuple[str, bytes], _List]()
        cut: _List | None = None
        for one in _lists(self.text):
            earlier = known.setdefault((one.file, one.digest), one)
            if earlier is not one:
                copies[one.number] = RepeatedLines(one.first, one.last, earlier.first)
            elif one.cut:
                cut = one
        if cut is not None:
            for one in _lists(self.text, cut.objects):
                if one.number < cut.number and (one.file, one.digest) == (cut.file, cut.digest):
                    copies[cut.number] = RepeatedLines(cut.first, cut.last, one.first)
                    break
        return copies


def sniff(head: bytes) -> bool:
    """Return whether the first list in ``head`` holds a row of a known report."""
    text = head_text(head)
    if not any(word in text for word in _WORDS):
        return False
    try:
        *_, first = next(_objects(Json(iter(_JsonText(line + "\n" for line in head_lines(head))))), (0, 0, None))
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
        json, account, copies = Json(iter(pieces)), LineAccount(rows.reports.rows), _Copies(text)
        try:
            for number, first, values in _objects(json):
                if copies.covers(number, pieces.file_at(first), json):
                    account.span(SKIP, first, json.line)
                    continue
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
