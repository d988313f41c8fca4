"""Reader of the JSON reports of ``nsys stats``: lists of objects, a row each, between the tool's lines."""

import re
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Account
from profsvc.formats.head import head_lines, head_text
from profsvc.formats.json_stream import CutError, Json, clean
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.nsys_layouts import Layout, begun, layout_of
from profsvc.formats.nsys_reports import Reports
from profsvc.formats.numbers import NumberFormat
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "nsys-json"
PAGE = """\
JSON reports of Nsight Systems: a list of rows each, several in one file.

Make it from a report:
    nsys stats --format json -r cuda_gpu_trace,cuda_gpu_kern_sum REPORT.nsys-rep > FILE

Taken: what the CSV form gives (see profsvc formats nsys-stats). Numbers are plain, names are whole; null is an empty
cell. Other reports in the file are skipped, counted and named.

Example:
    Processing [report.sqlite] with [.../reports/cuda_gpu_kern_sum.py]...
    [
    {"Time (%)": 75.0, "Total Time (ns)": 300000, "Instances": 3, "Avg (ns)": 100000.0, ..., "Name": "saxpy(int)"}
    ]
"""

NAMES_KEPT = 1000
_OURS = re.compile(r"\s*(?:\[(?![0-9])|[]{}\",])")


class _Pieces:
    """The text without the lines of the tool, which stay as empty lines; knows which reports they began."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines, self.count = lines, 0
        self.names: deque[tuple[int, str]] = deque(maxlen=NAMES_KEPT)

    def __iter__(self) -> Iterator[str]:
        for line in self.lines:
            self.count += 1
            if name := begun(line):
                self.names.append((self.count, name))
            yield line if _OURS.match(line) and not name else "\n"

    def report_at(self, line: int) -> str:
        """Return the report that was last begun before ``line``."""
        return next((name for number, name in reversed(self.names) if number < line), "")


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{str(value)[:40]!r} is neither a number nor a text")


def _objects(json: Json) -> Iterator[tuple[int, object]]:
    """Yield the rows of all lists and their first lines."""
    while json.peek():
        for _ in json.items():
            line = json.line if json.peek() else 0
            yield line, json.value()


def sniff(head: bytes) -> bool:
    """Tell whether the first list of ``head`` holds a row of a report that is taken."""
    text = head_text(head)
    if '"Total' not in text and '"Start' not in text:
        return False
    try:
        _, first = next(_objects(Json(iter(_Pieces(line + "\n" for line in head_lines(head))))), (0, None))
    except (CutError, BrokenInputError):
        return False
    return isinstance(first, dict) and layout_of(list(first)) is not None


class _Rows:
    """Takes in the objects of a file."""

    def __init__(self) -> None:
        self.reports = Reports(NumberFormat())
        self.layouts: dict[tuple[str, ...], Layout | None] = {}

    def add(self, values: object, first: int, report: str) -> str:
        """Take in an object; tell whether it is stored or skipped. Raise `ValueError` if it is no row."""
        if not isinstance(values, dict):
            raise ValueError("not an object, as each row is")
        columns, cells = tuple(values), [_cell(value) for value in values.values()]
        if columns not in self.layouts:
            self.layouts = {columns: layout_of(list(columns))}
            if layout := self.layouts[columns]:
                self.reports.begin(layout, first)
        layout = self.layouts[columns]
        if layout is None:
            self.reports.others[report or ", ".join(columns)[:80]] = None
            return SKIP
        self.reports.take(Record(ROW, first, 1, "", cells), layout)
        return ROW


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the reports of a file."""
    with Text(stream) as text:
        pieces, rows, said = _Pieces(text.lines()), _Rows(), ""
        json, account = Json(iter(pieces)), Account(rows.reports.rows)
        try:
            for first, values in _objects(json):
                try:
                    account.span(rows.add(values, first, pieces.report_at(first)), first, json.line)
                except ValueError as error:
                    record = Record(REJECT, first, 0, clean(str(values)[:TEXT_LIMIT]), [], str(error))
                    account.span(REJECT, first, json.line, record)
                if rows.reports.rows.full:
                    yield rows.reports.rows.batch()
        except CutError:
            first = min(json.line, pieces.count)
            said = f"the file ends inside a list, on line {pieces.count}: what follows is lost"
            record = Record(REJECT, first, 0, "", [], "the file ends inside a list")
            account.span(REJECT, first, pieces.count, record)
        account.finish(pieces.count)
        yield rows.reports.last(text.encoding, said)
