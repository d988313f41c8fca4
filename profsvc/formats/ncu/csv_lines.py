"""Lines of an Nsight Compute CSV export to records.

Around the table a file may hold `==PROF==` banners, program output, topology text between the rows and further reports,
and it may end inside a row. `records` assigns every physical line to exactly one `Record`, so the line counts add up.
The lines of a quoted cell that holds line ends become one record.
"""

import re
from collections.abc import Iterable, Iterator

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.parsing.head import head_lines, head_text, memoize_on_head
from profsvc.formats.parsing.records import (
    HEADER,
    MAX_PENDING_LINES,
    MAX_RECORD_CHARS,
    MAX_TEXT_CHARS,
    REJECT,
    ROW,
    SKIP,
    UNITS,
    Record,
    split_cells,
)

IDENTITY_COLUMNS = (
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
# Every row of a details page has these columns; the columns of rules after them may be missing.
_METRIC_COLUMNS = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
_VALUE_COLUMNS = _METRIC_COLUMNS[2:]
# The columns that a page must have exactly once and what each tells, and the option that exports the page again.
_OF_METRICS = {"Metric Name": "names the metric of a row", "Metric Unit": "tells the unit of its value"}
_REQUIRED_COLUMNS = {
    "details": {
        "ID": "tells the launches of a kernel apart",
        "Kernel Name": "names the kernel of a launch",
        **_OF_METRICS,
        "Metric Value": "has the value of a row",
    },
    "summary": {
        **_OF_METRICS,
        **{name: f"has the {name.lower()} over the launches" for name in ("Minimum", "Maximum", "Average")},
    },
}
_EXPORT_OPTIONS = {"details": "--page details", "summary": "--print-summary per-kernel"}

MIN_REWRITTEN_CELLS = 4
# Columns of whole numbers. Of those that have no unit pandas makes floats: the launch 0 becomes 0.0.
_WHOLE_COLUMNS = ("ID", "Process ID", "Context", "Stream", "Device")
_WHOLE_FLOAT = re.compile(r"([0-9]+)\.0")
_REWRITTEN = "it has the cells of a row, but not as Nsight Compute writes them"

_BANNER = re.compile(r"==[A-Z0-9]+== ?")
# A quoted header has quoted rows; a bare number at the start of a line is then program output.
_QUOTED_ROW = re.compile(r'[ \t]*"[0-9]+",')
_PLAIN_ROW = re.compile(r"[0-9]+,")
_NEW_QUOTED_ROW = re.compile(r'[ \t]*"[0-9]+","[0-9]*",')
_NEW_PLAIN_ROW = re.compile(r"[0-9]+,[0-9]+,")
# A summary has no launches: its rows begin with a process, or with the domain of a range.
_NEW_QUOTED_SUMMARY = re.compile(r'[ \t]*"[0-9]+","')
_DOMAIN_ROW = re.compile(r'"?[^",]+"?,')
_UNITS = re.compile(r'[ \t]*(?:""|),(?:""|),')
_QUOTED_HEADERS = ('"ID","Process ID"', '"Process ID","', '"Domain","', '"ID","')
# Pages without launches, as CSV or as text: attributes; instructions or source lines. A plain word that each contains
# is searched first, because most files are neither and the regular expression is slower.
_OTHER_PAGES = (
    ("session", " Attribute", r'^(?:"(?:Launch|Session|Device) Attribute",|(?:Launch|Session|Device) Attribute +\S)'),
    (
        "source",
        "Source",
        r'^(?:"?(?:Address|Line No)"?,"?(?:Source"?,"?Address"?,"?)?Source\b|(?:Address|Line No) +Source\b'
        # Some pages number their rows.
        r'|"#(?: Address| Line)?","(?:Address",")?Source",.*(?:Sampling|Samples|Instructions Executed))',
    ),
)
NO_LINES = "==WARNING== No lineinfo available"
_SUMMARY_FIRST_COLUMNS = ("Process ID", "Domain")
# --print-details all prints NVLink and NUMA tables as text between the rows of each kernel.
_TOPOLOGY = re.compile(r"NVLink|NUMA ID|\"GPU ID\"|Logical Link|Physical Link", re.IGNORECASE)

# Columns of NVTX ranges. Quotes in the name of a range are not doubled, but those around it are: "7  ""domain:name"" ".
_RANGE_COLUMN = re.compile(r"(?:Push/Pop|Start/Stop)_Range:")
_RANGE_CELL = re.compile(r'(?:.*"" ?)?')
_RANGE_REASON = (
    "; this page does not escape quotes in names of NVTX ranges; upload the report itself (.ncu-rep), or rename the "
    "range and profile again"
)


def parse_header(line: str) -> list[str] | None:
    """Return the column names if ``line`` ends with the header of a raw, details or summary page, else None.

    Text before the header is the last output of a program, without a line end. Scripts keep only some columns of a
    details page; those of the values tell it.
    """
    of_launches = "Kernel Name" in line and ("Process ID" in line or "Invocations" in line)
    if not of_launches and not all(name in line for name in _VALUE_COLUMNS):
        return None
    start = next((place for begin in _QUOTED_HEADERS if (place := line.find(begin)) >= 0), 0)
    cells = split_cells(line[start:].rstrip()) if line.count('"', start) % 2 == 0 else []
    if cells and not cells[0]:  # row numbers of pandas, which are no launches
        return None
    if set(_VALUE_COLUMNS) <= set(cells):
        return cells
    if not cells or "Kernel Name" not in cells:
        return None
    of_launches = cells[0] == "ID" and "Process ID" in cells
    of_kernels = cells[0] in _SUMMARY_FIRST_COLUMNS and "Invocations" in cells and "Average" in cells
    return cells if of_launches or of_kernels else None


def page_kind(header: list[str]) -> str:
    """Return the page of a header: ``raw`` (one row per launch), ``details`` (per metric) or ``summary``."""
    if header[0] in _SUMMARY_FIRST_COLUMNS:
        return "summary"
    return "details" if "Metric Name" in header else "raw"


@memoize_on_head
def first_page_kind(head: bytes) -> str | None:
    """Return the page of the first header in the head of a file, else ``session``, ``source`` or None.

    Of a source page without any line information there are warnings alone.
    """
    text = head_text(head)
    if "Kernel Name" in text or "Metric Value" in text:
        headers = (parse_header(line) for line in head_lines(head))
        if page := next((page_kind(header) for header in headers if header), None):
            return page
    other = next((page for page, word, header in _OTHER_PAGES if word in text and re.search(header, text, re.M)), None)
    return other or ("source" if text.lstrip().startswith(NO_LINES) else None)


class Scanner:
    """Sorts lines into records; the file may hold tables of ``page`` only."""

    def __init__(self, page: str) -> None:
        """Start before the first line."""
        self.page = page
        self.header: list[str] | None = None
        self.units: list[str] = []
        self.least_cells = 0
        self.row, self.new_row = _QUOTED_ROW, _NEW_QUOTED_ROW
        self.ranges: list[int] = []
        self.block = self.has_rows = False
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
            yield self._give_up(f"a quote is not closed before the next row on line {number}")
        if self.header is not None and self.row.match(line) and not self._is_header_of_domains(line):
            if line.count('"') % 2 and not self._unescaped(line.strip()):
                self.open, self.open_line, self.open_size = [line], number, len(line)
            else:
                yield from self._row(number, 1, line)
            return
        if header := parse_header(line):
            yield from self._settle(SKIP)
            self._enter(number, line, header)
            yield Record(HEADER, number, 1, line, header)
        elif self.header is None or not line.strip() or _BANNER.match(line):
            yield Record(SKIP, number, 1, line, [])
        else:
            yield from self._other(number, line)

    @property
    def in_quoted_table(self) -> bool:
        """Whether rows of quoted cells may follow."""
        return self.header is not None and self.row is _QUOTED_ROW and not self.open

    def rows_follow(self) -> Iterator[Record]:
        """Yield the pending lines, because rows of the table follow; the rows may be read elsewhere."""
        yield from self._settle(REJECT)
        self.block, self.has_rows = False, True

    def _enter(self, number: int, line: str, header: list[str]) -> None:
        if page_kind(header) != self.page:
            raise BrokenInputError(
                f"line {number} is the header of a {page_kind(header)} page, but the file begins with a {self.page} "
                "page; put each page into its own file"
            )
        for name, purpose in _REQUIRED_COLUMNS.get(self.page, {}).items():
            if (count := header.count(name)) != 1:
                missing = f"the column {name!r} is missing, which {purpose}"
                fault = f"{count} columns are called {name!r}" if count else missing
                raise BrokenInputError(
                    f"line {number}: {fault}; export again with ncu --csv {_EXPORT_OPTIONS[self.page]}"
                )
        self.header = header
        quoted = any(begin in line for begin in _QUOTED_HEADERS)
        self.row = _QUOTED_ROW if quoted else _PLAIN_ROW
        self.new_row = _NEW_QUOTED_ROW if quoted else _NEW_PLAIN_ROW
        if self.page == "summary" or header[1:2] != ["Process ID"]:
            self.new_row = _NEW_QUOTED_SUMMARY if quoted else _PLAIN_ROW
        if header[0] == "Domain":
            self.row = self.new_row = _DOMAIN_ROW
        self.ranges = [place for place, name in enumerate(header) if quoted and _RANGE_COLUMN.search(name)]
        self.least_cells = len(header)
        if self.page == "details":
            self.least_cells = 1 + max(
                header.index(name) for name in (*IDENTITY_COLUMNS, *_METRIC_COLUMNS) if name in header
            )
        self.block = self.has_rows = False

    def _is_header_of_domains(self, line: str) -> bool:
        return self.row is _DOMAIN_ROW and parse_header(line) is not None

    def _interrupts(self, line: str) -> bool:
        # Inside a quoted cell a quote is doubled, so a line that begins like a quoted row is a new row.
        return bool(self.new_row.match(line)) or parse_header(line) is not None

    def _extend(self, line: str) -> Iterator[Record]:
        self.open.append(line)
        self.open_size += len(line)
        if line.count('"') % 2:
            text, count, self.open = "".join(self.open), len(self.open), []
            yield from self._row(self.open_line, count, text)
        elif self.open_size > MAX_RECORD_CHARS:
            yield self._give_up(f"a quote is not closed within {MAX_RECORD_CHARS} characters")

    def _unescaped(self, text: str) -> list[str]:
        """Return the cells of a row whose NVTX ranges may have quotes in their names; none if that is ambiguous."""
        text = text.removesuffix(",")
        if not self.ranges or not text.endswith('"'):
            return []
        assert self.header is not None
        cells = text[1:-1].split('","')
        fits = self.least_cells <= len(cells) <= len(self.header)
        if not fits or not all(_RANGE_CELL.fullmatch(cells[place]) for place in self.ranges if place < len(cells)):
            return []
        return [cell.replace('""', '"') for cell in cells]

    def _give_up(self, reason: str) -> Record:
        text, count, self.open = "".join(self.open), len(self.open), []
        return Record(REJECT, self.open_line, count, text[:MAX_TEXT_CHARS], [], reason)

    def _row(self, line: int, lines: int, text: str) -> Iterator[Record]:
        assert self.header is not None
        # A copied table may be indented and padded with blanks.
        cells = self._unescaped(text.strip()) or split_cells(text.strip())
        if len(cells) == len(self.header) + 1 and not cells[-1]:
            cells.pop()
        if text.endswith(",") and cells and not cells[-1]:  # the file ends here: the next cell is lost, not empty
            cells.pop()
        if self.least_cells <= len(cells) <= len(self.header):
            if self.pending or self.block or not self.has_rows:
                yield from self.rows_follow()
            yield Record(ROW, line, lines, text, cells)
        elif self.block and lines == 1 and text.endswith("\n"):
            yield Record(SKIP, line, lines, text, [])
        else:
            cut = "" if text.endswith("\n") else "the file ends inside this row: "
            most = len(self.header)
            needed = f"{most}" if self.least_cells == most else f"{self.least_cells} to {most}"
            reason = f"{cut}{wrong_cell_count(len(cells), needed)}{_RANGE_REASON if self.ranges and not cut else ''}"
            yield Record(REJECT, line, lines, text[:MAX_TEXT_CHARS], [], reason)

    def _other(self, number: int, line: str) -> Iterator[Record]:
        if self.page == "raw" and _UNITS.match(line):
            yield self._units(number, line)
        elif cells := self._rewritten_row(line):
            yield from self.rows_follow()
            yield Record(ROW, number, 1, line, cells)
        elif self.page == "details" and line.endswith("\n") and _TOPOLOGY.search(line):
            self.block = True
            yield Record(SKIP, number, 1, line, [])
        else:
            reason = self._no_row(line) if line.endswith("\n") else "the file ends inside this line"
            self.pending.append(Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], reason))
            if len(self.pending) > MAX_PENDING_LINES:
                yield from self._settle(SKIP)

    def _units(self, number: int, line: str) -> Record:
        """Return the record of a row without a launch: the row of units, or sums that a spreadsheet has below it."""
        cells, width = split_cells(line.strip()), len(self.header or [])
        reason = "" if len(cells) == width else f"the row of units has {len(cells)} cells but the header {width}"
        if not reason and self.has_rows and cells != self.units:
            reason = "it has no launch and stands below the launches, so it is neither a row of units nor a launch"
        if not reason and any(cell[:1].isdigit() for cell in cells):
            reason = "it has numbers but no launch, so it is neither a row of units nor a launch"
        if reason:
            return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], cells, reason)
        self.units = cells
        return Record(UNITS, number, 1, line, cells)

    def _rewritten_row(self, line: str) -> list[str]:
        """Return the cells of a row that a script wrote otherwise than its header, each of which it has; else none."""
        header = self.header or []
        if (
            self.page == "summary"
            or line.endswith(",")  # the file ends here: the next cell is lost
            or len(header) < MIN_REWRITTEN_CELLS
            or len(cells := split_cells(line)) != len(header)
        ):
            return []
        for place, name in enumerate(header):
            if name in _WHOLE_COLUMNS and (match := _WHOLE_FLOAT.fullmatch(cells[place])):
                cells[place] = match[1]
        numbers = [cells[place] for place, name in enumerate(header) if name in _WHOLE_COLUMNS[:2]]
        return cells if all(cell.isascii() and cell.isdigit() for cell in numbers) else []

    def _no_row(self, line: str) -> str:
        """Return why a line is not a row; before the first row, one with the cells of a row was rewritten."""
        cells = split_cells(line.strip())
        if self.has_rows or not self.header or not 0 <= len(cells) - len(self.header) <= 1:
            return "not a row of the table"
        return f"{_REWRITTEN} (it begins with {line.strip()[:20]!r}): upload the file as Nsight Compute wrote it"

    def _settle(self, kind: str) -> Iterator[Record]:
        """Yield the pending lines: rejected inside a table; skipped, as program output, after it."""
        pending, self.pending = self.pending, []
        for record in pending:
            table_like = record.text.startswith('"') or record.reason.startswith(("the file ends", _REWRITTEN))
            yield record if kind == REJECT or table_like else record._replace(kind=SKIP, reason="")

    def finish(self) -> Iterator[Record]:
        """Yield the pending lines at the end of the file."""
        yield from self._settle(SKIP)
        if self.open:
            yield self._give_up("the file ends inside a quoted cell")


def records(lines: Iterable[str], page: str) -> Iterator[Record]:
    """Yield the records of a file with tables of ``page``; every line is in exactly one record."""
    scanner = Scanner(page)
    for number, line in enumerate(lines, 1):
        yield from scanner.feed(number, line)
    yield from scanner.finish()
