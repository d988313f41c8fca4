"""Lines of nvprof output, CSV or text, to records.

A file holds tables of one or more processes. Around them are banners (`==PID== ...`), program output, warnings that
continue on a line without a banner, and footnotes. Every line is in exactly one `Record`. The cells of a row have the
column names of the CSV form.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.parsing.head import header_lines, memoize_on_head
from profsvc.formats.parsing.numbers import APOSTROPHES, SPACES
from profsvc.formats.parsing.records import (
    HEADER,
    MAX_PENDING_LINES,
    MAX_TEXT_CHARS,
    REJECT,
    ROW,
    SKIP,
    UNITS,
    Record,
    split_cells,
)
from profsvc.formats.parsing.text import ends_inside
from profsvc.specs import units

TRACE, LAUNCHES, SUMMARY, METRICS, EVENTS, MEMORY = "trace", "launches", "summary", "metrics", "events", "memory"
SYSTEM = "system"
"""Tables: by time, by launch with its metrics, by name, metrics and events by kernel, unified memory, and boards."""

SUMMARY_COLUMNS = ("Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")
# As printed, and as people shorten it: without the calls, and with the sums alone, as a CPU profile prints them too.
SUMS_COLUMNS = ("Time(%)", "Time", "Name")
SUMMARIES_COLUMNS = (SUMMARY_COLUMNS, tuple(name for name in SUMMARY_COLUMNS if name != "Calls"), SUMS_COLUMNS)
MEMORY_COLUMNS = ("Count", "Avg Size", "Min Size", "Max Size", "Total Size", "Total Time")
LAUNCH_COLUMNS = ("Device", "Context", "Stream", "Kernel")
SYSTEM_COLUMNS = ("", "Device", "Count", "Avg", "Min", "Max")

BANNER = re.compile(r"[ \t]*(?:={6,} |==[0-9]+== )")
IS_NVPROF = re.compile(
    r"^[ \t]*(?:={6,}|==[0-9]+==) (?:NVPROF is profiling process [0-9]|Profiling (?:application|result):"
    r"|CPU profiling result \()",
    re.MULTILINE,
)
_PROCESS = re.compile(r"==(?P<pid>[0-9]+)== (?:Profiling application: (?P<command>\S.*)|\S)")
_TYPE = re.compile(r"={6,} (?P<only>[^:]+):\s*|==[0-9]+== (?P<type>[^:]+):\s*")
_TOTAL = re.compile(r"(Total (?:CPU|GPU|[Rr]emote) [A-Za-z ]+): ([0-9]\S*)\s*")
_TEXT_ROW = re.compile(r"\s*(?:[A-Z][\w ()]*:\s+)?[0-9][0-9.,]*(?:[numKMG]?s|%)\s")
# A number followed by a plain space is more likely program output.
_CSV_ROW = re.compile(rf'"|[0-9][0-9.{SPACES[1:]}{APOSTROPHES}]*(?:e[-+][0-9]+)?%?,|,')
# A row with as many cells as columns may begin with a number in any form.
_NUMBER_FIRST = re.compile(r"[ \t]*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?[ \t]*,")
# Each header of a table has one of them.
_HEADER_WORDS = ("Duration", "Time(%)", "Invocations", "Total Size", "Stream", '"Count"')
_GAP = re.compile(r" {2,}|\t+")
_DEVICE = re.compile(r'\s*Device "(.+)"\s*')
_NAME_AND_ORDINAL = re.compile(r"(.+) \(([0-9]{1,9})\)")
_KERNEL = re.compile(r"\s+Kernel: (.*\S)\s*")
_TEXT_NAMES = {"Regs*": "Registers Per Thread", "SSMem*": "Static SMem", "DSMem*": "Dynamic SMem"}
SECTIONS = ("API calls", "OpenACC (excl)", "OpenACC (incl)", "NVTX result")
SYSTEM_SECTION = "System profiling result"
_UNIFIED_MEMORY = "Unified Memory profiling result"
_RESULT_SECTIONS = (
    "Profiling result",
    "Event result",
    "Metric result",
    _UNIFIED_MEMORY,
    "NVTX result",
)
# Other sections with such titles are unsupported tables, such as CPU samples or device links.
_OTHER_SECTION = re.compile(r"(?:.+ )?(?:results?|analysis|topology)(?: \([^()]*\))?", re.IGNORECASE)


@dataclass
class Layout:
    """A table: its kind, the names of its columns, their units ('' where the cells carry them), its process."""

    kind: str
    columns: list[str]
    units: list[str] = field(default_factory=list)
    process_id: int | None = None
    process_name: str | None = None
    within: str = ""

    def __post_init__(self) -> None:
        """Begin without units."""
        self.units = self.units or [""] * len(self.columns)


def record_kind(columns: list[str]) -> str | None:
    """Return the kind of the table with ``columns``; None if it is not a table of nvprof.

    >>> record_kind(["Start", "Duration", "Name"]), record_kind(["Start (ns)", "Duration (ns)", "Name"])
    ('trace', None)
    """
    if columns[:2] == ["Start", "Duration"] and "Name" in columns:
        return TRACE
    if tuple(columns[:4]) == LAUNCH_COLUMNS and len(columns) > 4:
        return LAUNCHES
    if tuple(columns[columns[:1] == ["Type"] :]) in SUMMARIES_COLUMNS:
        return SUMMARY
    if tuple(columns) == SYSTEM_COLUMNS:
        return SYSTEM
    if "Invocations" in columns and {"Min", "Max", "Avg"} <= set(columns):
        return METRICS if "Metric Name" in columns else EVENTS if "Event Name" in columns else None
    return MEMORY if set(MEMORY_COLUMNS) <= set(columns) else None


def program_name(command: str) -> str | None:
    """Return the program name of a command.

    >>> program_name("./bin/saxpy -n 5"), program_name(r'"C:\\My apps\\saxpy.exe" 5'), program_name("")
    ('saxpy', 'saxpy.exe', None)
    """
    path = command[1:].partition('"')[0] if command.startswith('"') else command.partition(" ")[0]
    return path.strip().replace("\\", "/").rsplit("/", 1)[-1] or None


def parse_device(text: str) -> tuple[str | None, int | None]:
    """Return the name and the ordinal of a device; a name without an ordinal was truncated and is dropped.

    >>> parse_device("Tesla K40c (0)"), parse_device("GeForce GTX 105")
    (('Tesla K40c', 0), (None, None))
    """
    match = _NAME_AND_ORDINAL.fullmatch(text)
    return (match[1], int(match[2])) if match else (None, None)


def parse_csv_header(line: str) -> list[str] | None:
    """Return the columns if ``line`` is the header of a CSV table."""
    if not any(name in line for name in _HEADER_WORDS):
        return None
    columns = [cell.strip() for cell in split_cells(line)] if line.count('"') % 2 == 0 else []
    return columns if len(columns) > 1 and record_kind(columns) else None


def parse_text_header(line: str) -> list[str] | None:
    """Return the columns, under their CSV names, if ``line`` is the header of a text table."""
    if "," in line or '"' in line or not any(name in line for name in _HEADER_WORDS):
        return None
    # Text copied from a web page has single blanks; a summary is recognized without the others.
    if record_kind(words := line.split()) == SUMMARY:
        return words
    columns = [_TEXT_NAMES.get(name, name) for name in _GAP.split(line.strip())]
    return columns if len(columns) > 1 and record_kind(columns) else None


@memoize_on_head
def first_table_form(head: bytes) -> str | None:
    """Return the form of the first table of nvprof in ``head``: ``csv``, ``text`` or None."""
    for line in header_lines(head, _HEADER_WORDS):
        if parse_csv_header(line):
            return "csv"
        if parse_text_header(line):
            return "text"
    return None


class Scanner(ABC):
    """Sorts lines into records; subclasses recognize headers and rows of one form."""

    def __init__(self) -> None:
        """Start outside a table."""
        self.layout: Layout | None = None
        self.process_id: int | None = None
        self.command: str | None = None
        self.within = ""
        self.type = ""
        self.section = ""
        self.unread: dict[str, None] = {}
        self.pending: list[Record] = []
        self.said = False

    def feed(self, number: int, line: str) -> Iterator[Record]:
        """Yield the records that end with ``line``, and pending records that it settles."""
        if BANNER.match(line):
            yield from self.settle(SKIP)
            self._banner(line.lstrip())
            yield Record(SKIP, number, 1, line, [])
        elif columns := self.header(number, line):
            yield from self.settle(SKIP)
            self._enter(number, columns)
            yield Record(HEADER, number, 1, line, columns)
        elif self.layout is None or not line.strip():
            yield Record(SKIP, number, 1, line, [])
        elif self.layout.kind == MEMORY and (match := _TOTAL.fullmatch(line)):
            yield from self._whole(Record(ROW, number, 1, line, [match[1], match[2]]))
        else:
            yield from self.other(number, line)

    def _banner(self, line: str) -> None:
        # A warning may continue on the next line, without a banner.
        self.said = True
        if match := _PROCESS.match(line):
            pid = int(match["pid"][:18])
            self.command = match["command"] or (self.command if pid == self.process_id else None)
            self.process_id = pid
        match = _TYPE.match(line)
        title = (match["only"] or match["type"]) if match else ""
        if title == "Profiling result":
            self.within, self.type = "", "GPU activities"
        elif title in SECTIONS:
            self.within = title
        if title == _UNIFIED_MEMORY:  # where nothing was moved, totals without a table follow
            process = self.process_id, program_name(self.command or "")
            self.layout = Layout(MEMORY, ["Device", *MEMORY_COLUMNS, "Name"], [], *process)
        if title in SECTIONS or title in _RESULT_SECTIONS:
            self.section = ""
        elif _OTHER_SECTION.fullmatch(title):
            self.layout, self.section = None, title
            self.unread[title] = None

    def _enter(self, number: int, columns: list[str]) -> None:
        if repeated := [name for name in dict.fromkeys(columns) if columns.count(name) > 1]:
            raise BrokenInputError(f"line {number}: the header has {repeated[0]!r} twice; export again with nvprof")
        kind = record_kind(columns)
        if kind == SYSTEM:
            self.unread.pop(SYSTEM_SECTION, None)
        self.layout = Layout(str(kind), columns, [], self.process_id, program_name(self.command or ""), self.within)
        self.type = self.within or "GPU activities"
        self.said = False

    def is_unread(self, columns: list[str]) -> bool:
        """Return whether these columns are those of a CPU profile, by the banner above them."""
        return bool(self.section) and tuple(columns) == SUMS_COLUMNS

    def row(self, record: Record) -> Iterator[Record]:
        """Yield the pending lines, which are inside the table, then ``record`` as a row."""
        yield from self.rows_follow()
        yield record

    def rows_follow(self) -> Iterator[Record]:
        """Yield the pending lines, because rows of the table follow; the rows may be read elsewhere."""
        yield from self.settle(REJECT)
        self.said = False

    def _whole(self, record: Record) -> Iterator[Record]:
        """Yield a row, rejected if the file ends inside it."""
        if not ends_inside(record.text, record.cells[-1]):
            yield from self.row(record)
        else:
            cut = "the file ends inside this row"
            yield from self.row(Record(REJECT, record.line, 1, record.text[:MAX_TEXT_CHARS], [], cut))

    def stray(self, number: int, line: str, reason: str, row_like: bool, cells: Sequence[str] = ()) -> Iterator[Record]:
        """Keep a line that is not a row until a later line shows whether it is inside the table."""
        reason = reason if line.endswith("\n") else f"the file ends inside this row: {reason}"
        record = Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], list(cells), reason)
        if row_like:
            yield from self.settle(SKIP)
            yield record
        elif self.said:
            yield record._replace(kind=SKIP, reason="")
        else:
            self.pending.append(record)
            if len(self.pending) > MAX_PENDING_LINES:
                yield from self.settle(SKIP)

    def settle(self, kind: str) -> Iterator[Record]:
        """Yield the pending lines: rejected inside a table; skipped, as program output, after it."""
        pending, self.pending = self.pending, []
        for record in pending:
            cut = record.reason.startswith("the file ends")
            yield record if kind == REJECT or cut else record._replace(kind=SKIP, reason="")

    @abstractmethod
    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header."""

    @abstractmethod
    def other(self, number: int, line: str) -> Iterator[Record]:
        """Yield the record of a line that is neither a banner nor a header."""


class CsvScanner(Scanner):
    """The CSV form: quoted names, plain numbers, a line of units below the header of most tables."""

    fresh = False

    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header; refuse a text table."""
        if (columns := parse_text_header(line)) and not self.is_unread(columns):
            raise BrokenInputError(
                f"line {number} is the header of a text table, but the file begins with a CSV table; "
                "put each form into its own file"
            )
        columns = parse_csv_header(line)
        if columns and self.is_unread(columns):
            return None
        self.fresh = self.fresh or bool(columns)
        return columns

    def other(self, number: int, line: str) -> Iterator[Record]:
        """Yield units or a row, or keep any other line."""
        assert self.layout is not None
        wanted, fresh, self.fresh = len(self.layout.columns), self.fresh, False
        row_like = bool(_CSV_ROW.match(line))
        # A table copied from a terminal may be padded with blanks.
        cells = split_cells(line.rstrip()) if line.count('"') % 2 == 0 else []
        if len(cells) > wanted and self.layout.kind == SUMMARY and cells[0].endswith("%"):
            # Text that somebody made a table of: each number has its unit, and commas of the name are not quoted.
            cells[wanted - 1 :] = [",".join(cells[wanted - 1 :])]
        whole = len(cells) == wanted and line.endswith("\n")
        if fresh and whole and any(cells) and all(cell in units("nvprof") for cell in cells):
            self.layout.units = cells
            yield Record(UNITS, number, 1, line, cells)
        elif len(cells) == wanted and (row_like or _NUMBER_FIRST.match(line)):
            if "Type" in self.layout.columns:
                cells[0] = cells[0] or self.type
            yield from self._whole(Record(ROW, number, 1, line, cells))
        else:
            reason = wrong_cell_count(len(cells), wanted) if cells else "a quote is not closed on its line"
            reason = reason if row_like else "not a row of the table"
            yield from self.stray(number, line, reason, row_like and (len(cells) > 1 or not cells), cells)


class TextScanner(Scanner):
    """The text form: columns separated by two or more spaces, a unit in each cell, headings for kernels."""

    def __init__(self) -> None:
        """Start outside a table."""
        super().__init__()
        self.device = ""
        self.kernel = ""

    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header; refuse CSV and tables read from CSV only."""
        if match := _DEVICE.fullmatch(line):
            self.device, self.kernel = match[1], ""
        if self.section == SYSTEM_SECTION and tuple(_GAP.split(line.strip())) == SYSTEM_COLUMNS[2:]:
            return list(SYSTEM_COLUMNS)
        if parse_csv_header(line):
            raise BrokenInputError(
                f"line {number} is the header of a CSV table, but the file begins with text; "
                "put each form into its own file"
            )
        columns = parse_text_header(line)
        if columns and self.is_unread(columns):
            return None
        if columns and record_kind(columns) == LAUNCHES:
            raise BrokenInputError(
                f"line {number}: metrics per launch are read from CSV only; export again with nvprof --csv"
            )
        if columns and record_kind(columns) in (METRICS, EVENTS):
            self.device = self.kernel = ""
            return ["Device", "Kernel", *columns]
        if columns and record_kind(columns) == MEMORY:
            return ["Device", *columns]
        return ["Type", *columns] if columns and columns[0] == "Time(%)" else columns

    def other(self, number: int, line: str) -> Iterator[Record]:
        """Yield a heading or a row, or keep a line that is neither."""
        assert self.layout is not None
        if _DEVICE.fullmatch(line):
            yield Record(SKIP, number, 1, line, [])
        elif match := _KERNEL.fullmatch(line):
            self.kernel = match[1]
            yield Record(SKIP, number, 1, line, [])
        elif cells := self._cells(line.strip()):
            yield from self._whole(Record(ROW, number, 1, line, cells))
        else:
            yield from self.stray(number, line, "not a row of the table", bool(_TEXT_ROW.match(line)))

    def _cells(self, text: str) -> list[str] | None:
        layout = self.layout
        assert layout is not None
        before, wanted = [], len(layout.columns)
        if layout.kind in (METRICS, EVENTS):
            before = [self.device, self.kernel]
        elif layout.kind == MEMORY:
            before = [self.device]
        elif layout.kind == SYSTEM:
            name, *numbers = _GAP.split(text)
            return [name, self.device, *numbers] if len(numbers) == 4 and numbers[0].isdigit() else None
        elif layout.kind == SUMMARY:
            kind, found, rest = text.partition(":")
            if found and rest.startswith(" ") and not kind[:1].isdigit():
                self.type, text = kind, rest.strip()
            before = [self.type]
        most = wanted - len(before) - 1
        cells = before + (text.split(None, most) if layout.kind == SUMMARY else _GAP.split(text, most))
        if len(cells) != wanted or not cells[len(before)][:1].isdigit():
            return None
        return ["" if cell == "-" else cell for cell in cells]
