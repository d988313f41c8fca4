"""The physical lines of an Nsight Compute CSV export, sorted into records.

What a user uploads is rarely the table alone: `==PROF==` banners, the program's own output, blocks of topology text
between the rows, several reports in one file, a file cut by a full disk. `records` gives every physical line to
exactly one `Record`, so the lines add up, and joins the lines of a quoted cell that holds line ends.
"""

import csv
import re
import threading
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats.head import head_lines, head_text, once

SKIP, HEADER, UNITS, ROW, REJECT = "skip", "header", "units", "row", "reject"
TEXT_LIMIT = 2000
CELL_LIMIT = 1 << 20
RECORD_LIMIT = 4 << 20
PENDING_LIMIT = 1000
IDENTITY = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
# The columns of a details page that every row has; those of rules may be missing behind them.
_OF_A_METRIC = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
# The columns that a page must have once, and the option that prints it anew.
_NEEDED = {"details": _OF_A_METRIC[2:], "summary": ("Metric Name", "Metric Unit", "Minimum", "Maximum", "Average")}
_AGAIN = {"details": "--page details", "summary": "--print-summary per-kernel"}

_BANNER = re.compile(r"==[A-Z0-9]+== ?")
# A quoted header has quoted rows: a bare number at the start of a line is then the program's own output.
_QUOTED_ROW = re.compile(r'[ \t]*"[0-9]+",')
_PLAIN_ROW = re.compile(r"[0-9]+,")
_NEW_QUOTED_ROW = re.compile(r'[ \t]*"[0-9]+","[0-9]*",')
_NEW_PLAIN_ROW = re.compile(r"[0-9]+,[0-9]+,")
# A summary names no launch: its rows begin with a process, or with the domain of a range.
_NEW_QUOTED_SUMMARY = re.compile(r'[ \t]*"[0-9]+","')
_DOMAIN_ROW = re.compile(r'"?[^",]+"?,')
_UNITS = re.compile(r'[ \t]*(?:""|),(?:""|),')
_QUOTED_HEADERS = ('"ID","Process ID"', '"Process ID","', '"Domain","')
# Pages without launches, as CSV or as text: a table of attributes; a table of instructions or lines of source. Most
# files are neither, and a word that each must hold is found sooner.
_OTHER_PAGES = (
    ("session", " Attribute", r'^(?:"(?:Launch|Session|Device) Attribute",|(?:Launch|Session|Device) Attribute +\S)'),
    (
        "source",
        "Source",
        r'^(?:"?(?:Address|Line No)"?,"?(?:Source"?,"?Address"?,"?)?Source\b|(?:Address|Line No) +Source\b)',
    ),
)
_SUMMARY_BEGINS = ("Process ID", "Domain")
# --print-details all prints the links and the memory nodes of the machine as text between the rows of each kernel.
_TOPOLOGY = re.compile(r"NVLink|NUMA ID|\"GPU ID\"|Logical Link|Physical Link", re.IGNORECASE)
_CSV_LIMIT_LOCK = threading.Lock()


class Record(NamedTuple):
    """One record: what it is, where it begins, how many physical lines it spans, its cells and its text."""

    kind: str
    line: int
    lines: int
    text: str
    cells: list[str]
    reason: str = ""


def split_cells(text: str, separator: str = ",") -> list[str]:
    """Split the text of one CSV record into its cells.

    >>> split_cells('"0","f<int, 2>",')
    ['0', 'f<int, 2>', '']
    """
    text = text.rstrip("\r\n")
    if separator != ",":
        return _split_any(text, separator) if '"' in text else text.split(separator)
    if text.startswith('"'):
        # Most rows quote every cell and hold no other quote: then splitting on the quotes is exact, and 5 times faster.
        body, tail = (text[:-1], [""]) if text.endswith('",') else (text, [])
        cells = body[1:-1].split('","')
        if body.endswith('"') and body.count('"') == 2 * len(cells):
            return cells + tail
    return _split_any(text)


def _split_any(text: str, separator: str = ",") -> list[str]:
    # csv keeps its limit on the length of a cell for the whole process; kernel names can be longer than the default.
    with _CSV_LIMIT_LOCK:
        limit = csv.field_size_limit(CELL_LIMIT)
        try:
            return next(csv.reader([text], delimiter=separator), [])
        except csv.Error:
            return []
        finally:
            csv.field_size_limit(limit)


def header_of(line: str) -> list[str] | None:
    """Return the column names if ``line`` ends with the header of a raw, details or summary page, else None.

    Text before the header on its line is the last output of a program that printed no line end.
    """
    if "Kernel Name" not in line or ("Process ID" not in line and "Invocations" not in line):
        return None
    start = next((place for begin in _QUOTED_HEADERS if (place := line.find(begin)) >= 0), 0)
    cells = split_cells(line[start:].rstrip()) if line.count('"', start) % 2 == 0 else []
    if not cells or "Kernel Name" not in cells:
        return None
    of_launches = cells[0] == "ID" and "Process ID" in cells
    of_kernels = cells[0] in _SUMMARY_BEGINS and "Invocations" in cells and "Average" in cells
    return cells if of_launches or of_kernels else None


def page_of(header: list[str]) -> str:
    """Name the page of a header: ``raw`` (a row a launch), ``details`` (a row a metric), ``summary`` (of kernels)."""
    if header[0] in _SUMMARY_BEGINS:
        return "summary"
    return "details" if "Metric Name" in header else "raw"


@once
def page_in(head: bytes) -> str | None:
    """Name the page whose header comes first in a head, else whether it is of a session or a source; else None."""
    text = head_text(head)
    if "Kernel Name" in text:
        headers = (header_of(line) for line in head_lines(head))
        if page := next((page_of(header) for header in headers if header), None):
            return page
    return next((page for page, word, header in _OTHER_PAGES if word in text and re.search(header, text, re.M)), None)


class Scanner:
    """Sorts lines into records; ``page`` is the only kind of table that the file may hold."""

    def __init__(self, page: str) -> None:
        """Begin before the first line."""
        self.page = page
        self.header: list[str] | None = None
        self.least_cells = 0
        self.row, self.new_row = _QUOTED_ROW, _NEW_QUOTED_ROW
        self.block = False
        self.pending: list[Record] = []
        self.open: list[str] = []
        self.open_line = 0
        self.open_size = 0

    def feed(self, number: int, line: str) -> Iterator[Record]:
        """Yield the records that end with line ``number``."""
        if self.open:
            if not self._interrupts(line):
                yield from self._extend(line)
                return
            yield self._give_up(f"a quote is opened but not closed before the next row on line {number}")
        if self.header is not None and self.row.match(line):
            if line.count('"') % 2:
                self.open, self.open_line, self.open_size = [line], number, len(line)
            else:
                yield from self._row(number, 1, line)
            return
        if header := header_of(line):
            yield from self._settle(SKIP)
            self._enter(number, line, header)
            yield Record(HEADER, number, 1, line, header)
        elif self.header is None or not line.strip() or _BANNER.match(line):
            yield Record(SKIP, number, 1, line, [])
        else:
            yield from self._other(number, line)

    @property
    def in_quoted_table(self) -> bool:
        """Whether rows of cells in quotes may follow."""
        return self.header is not None and self.row is _QUOTED_ROW and not self.open

    def rows_follow(self) -> Iterator[Record]:
        """Yield the lines that wait, as rows of the table follow that this scanner may not see."""
        yield from self._settle(REJECT)
        self.block = False

    def _enter(self, number: int, line: str, header: list[str]) -> None:
        if page_of(header) != self.page:
            raise BrokenInputError(
                f"line {number} is the header of a {page_of(header)} page, but the file begins with a {self.page} "
                "page; a file may hold several tables of one page only: put each page into its own file"
            )
        if missing := [name for name in _NEEDED.get(self.page, ()) if header.count(name) != 1]:
            raise BrokenInputError(
                f"line {number}: the header needs {missing[0]!r} exactly once but has it {header.count(missing[0])} "
                f"times; export again with ncu --csv {_AGAIN[self.page]}"
            )
        self.header = header
        quoted = any(begin in line for begin in _QUOTED_HEADERS)
        self.row = _QUOTED_ROW if quoted else _PLAIN_ROW
        self.new_row = _NEW_QUOTED_ROW if quoted else _NEW_PLAIN_ROW
        if self.page == "summary":
            self.new_row = _NEW_QUOTED_SUMMARY if quoted else _PLAIN_ROW
        if header[0] == "Domain":
            self.row = self.new_row = _DOMAIN_ROW
        self.least_cells = len(header)
        if self.page == "details":
            self.least_cells = 1 + max(header.index(name) for name in (*IDENTITY, *_OF_A_METRIC) if name in header)
        self.block = False

    def _interrupts(self, line: str) -> bool:
        # Inside a quoted cell a quote is doubled, so a line that begins like a quoted row is a new row.
        return bool(self.new_row.match(line)) or header_of(line) is not None

    def _extend(self, line: str) -> Iterator[Record]:
        self.open.append(line)
        self.open_size += len(line)
        if line.count('"') % 2:
            text, count, self.open = "".join(self.open), len(self.open), []
            yield from self._row(self.open_line, count, text)
        elif self.open_size > RECORD_LIMIT:
            yield self._give_up(f"a quote is opened but not closed within {RECORD_LIMIT} characters")

    def _give_up(self, reason: str) -> Record:
        text, count, self.open = "".join(self.open), len(self.open), []
        return Record(REJECT, self.open_line, count, text[:TEXT_LIMIT], [], reason)

    def _row(self, line: int, lines: int, text: str) -> Iterator[Record]:
        assert self.header is not None
        # A table that was copied may be indented, and filled up with blanks.
        cells = split_cells(text.strip())
        if len(cells) == len(self.header) + 1 and not cells[-1]:
            cells.pop()
        if text.endswith(",") and cells and not cells[-1]:  # the file ends here: the next cell is not empty, but lost
            cells.pop()
        if self.least_cells <= len(cells) <= len(self.header):
            if self.pending or self.block:
                yield from self.rows_follow()
            yield Record(ROW, line, lines, text, cells)
        elif self.block and lines == 1 and text.endswith("\n"):
            yield Record(SKIP, line, lines, text, [])
        else:
            cut = "" if text.endswith("\n") else "the file ends inside this row: "
            most = len(self.header)
            needed = f"{most}" if self.least_cells == most else f"{self.least_cells} to {most}"
            reason = f"{cut}{unfit(len(cells), needed)}"
            yield Record(REJECT, line, lines, text[:TEXT_LIMIT], [], reason)

    def _other(self, number: int, line: str) -> Iterator[Record]:
        if self.page == "raw" and _UNITS.match(line):
            cells = split_cells(line.strip())
            fits = len(cells) == len(self.header or [])
            reason = "" if fits else f"the row of units has {len(cells)} cells but the header {len(self.header or [])}"
            yield Record(UNITS if fits else REJECT, number, 1, line if fits else line[:TEXT_LIMIT], cells, reason)
        elif self.page == "details" and line.endswith("\n") and _TOPOLOGY.search(line):
            self.block = True
            yield Record(SKIP, number, 1, line, [])
        else:
            reason = "not a row of the table" if line.endswith("\n") else "the file ends inside this line"
            self.pending.append(Record(REJECT, number, 1, line[:TEXT_LIMIT], [], reason))
            if len(self.pending) > PENDING_LIMIT:
                yield from self._settle(SKIP)

    def _settle(self, kind: str) -> Iterator[Record]:
        """Release the lines that are no rows: rejected inside a table; program output, skipped, after it."""
        pending, self.pending = self.pending, []
        for record in pending:
            table_like = record.text.startswith('"') or record.reason.startswith("the file ends")
            yield record if kind == REJECT or table_like else record._replace(kind=SKIP, reason="")

    def finish(self) -> Iterator[Record]:
        """Yield what waits at the end of the file."""
        yield from self._settle(SKIP)
        if self.open:
            yield self._give_up("the file ends inside a quoted cell")


def records(lines: Iterable[str], page: str) -> Iterator[Record]:
    """Sort the lines of a file that holds tables of ``page`` into records; every line is in exactly one."""
    scanner = Scanner(page)
    for number, line in enumerate(lines, 1):
        yield from scanner.feed(number, line)
    yield from scanner.finish()
