"""The physical lines of what nvprof prints, sorted into records; the CSV and the text form share the rules.

A file holds tables and, around them, banners (`==PID== ...`), the program's own output, warnings that run on to a
second line without a banner, and footnotes. Several tables of several processes may follow each other. Every line is
in exactly one `Record`; the cells of a row stand under the names that the CSV form gives its columns.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats.head import header_lines, once
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, UNITS, Record, split_cells
from profsvc.formats.numbers import APOSTROPHES, SPACES
from profsvc.formats.stream import ends_inside
from profsvc.specs import units

TRACE, LAUNCHES, SUMMARY, METRICS, EVENTS, MEMORY = "trace", "launches", "summary", "metrics", "events", "memory"
SYSTEM = "system"
"""Tables: by time, by launch with its metrics, by name, metrics and events by kernel, unified memory, and boards."""

PENDING_LIMIT = 1000
SUMMARY_COLUMNS = ("Time(%)", "Time", "Calls", "Avg", "Min", "Max", "Name")
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
# A plain space behind a number is rather the program's own output.
_CSV_ROW = re.compile(rf'"|[0-9][0-9.{SPACES[1:]}{APOSTROPHES}]*(?:e[-+][0-9]+)?,|,')
# With as many cells as columns, a row may begin with a number in any form.
_NUMBER_FIRST = re.compile(r"[ \t]*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?[ \t]*,")
_GAP = re.compile(r" {2,}|\t+")
_DEVICE = re.compile(r'\s*Device "(.+)"\s*')
_NUMBERED = re.compile(r"(.+) \(([0-9]{1,9})\)")
_KERNEL = re.compile(r"\s+Kernel: (.*\S)\s*")
_TEXT_NAMES = {"Regs*": "Registers Per Thread", "SSMem*": "Static SMem", "DSMem*": "Dynamic SMem"}
SECTIONS = ("API calls", "OpenACC (excl)", "OpenACC (incl)", "NVTX result")
SYSTEM_SECTION = "System profiling result"
_RESULTS = ("Profiling result", "Event result", "Metric result", "Unified Memory profiling result", "NVTX result")
# Whatever else calls itself so is another kind of table, such as the samples of a CPU or the links between devices.
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


def kind_of(columns: list[str]) -> str | None:
    """Tell which table has ``columns``; None if no table of nvprof has.

    >>> kind_of(["Start", "Duration", "Name"]), kind_of(["Start (ns)", "Duration (ns)", "Name"])
    ('trace', None)
    """
    if columns[:2] == ["Start", "Duration"] and "Name" in columns:
        return TRACE
    if tuple(columns[:4]) == LAUNCH_COLUMNS and len(columns) > 4:
        return LAUNCHES
    if tuple(columns[-7:]) == SUMMARY_COLUMNS and columns[:-7] in ([], ["Type"]):
        return SUMMARY
    if tuple(columns) == SYSTEM_COLUMNS:
        return SYSTEM
    if "Invocations" in columns and {"Min", "Max", "Avg"} <= set(columns):
        return METRICS if "Metric Name" in columns else EVENTS if "Event Name" in columns else None
    return MEMORY if set(MEMORY_COLUMNS) <= set(columns) else None


def program_of(command: str) -> str | None:
    """Return the name of the program that a command runs.

    >>> program_of("./bin/saxpy -n 5"), program_of(r'"C:\\My apps\\saxpy.exe" 5'), program_of("")
    ('saxpy', 'saxpy.exe', None)
    """
    path = command[1:].partition('"')[0] if command.startswith('"') else command.partition(" ")[0]
    return path.strip().replace("\\", "/").rsplit("/", 1)[-1] or None


def device_of(text: str) -> tuple[str | None, int | None]:
    """Split a device into name and ordinal; a name without its ordinal was cut by the tool, so it is no name.

    >>> device_of("Tesla K40c (0)"), device_of("GeForce GTX 105")
    (('Tesla K40c', 0), (None, None))
    """
    match = _NUMBERED.fullmatch(text)
    return (match[1], int(match[2])) if match else (None, None)


def csv_columns(line: str) -> list[str] | None:
    """Return the columns if ``line`` is the header of a table in CSV."""
    if not any(name in line for name in ("Duration", "Time(%)", "Invocations", "Total Size", "Stream", '"Count"')):
        return None
    columns = [cell.strip() for cell in split_cells(line)] if line.count('"') % 2 == 0 else []
    return columns if len(columns) > 1 and kind_of(columns) else None


def text_columns(line: str) -> list[str] | None:
    """Return the columns if ``line`` is the header of a table in text, under the names that the CSV form uses."""
    if not any(name in line for name in ("Duration", "Time(%)", "Invocations", "Total Size", "Stream")):
        return None
    if "," in line or '"' in line:
        return None
    # Pages of the web print one blank where there were many; a summary can do without.
    if kind_of(words := line.split()) == SUMMARY:
        return words
    columns = [_TEXT_NAMES.get(name, name) for name in _GAP.split(line.strip())]
    return columns if len(columns) > 1 and kind_of(columns) else None


@once
def first_table(head: bytes) -> str | None:
    """Tell whether the first table of nvprof in a head is in ``csv`` or in ``text``; None if there is none."""
    for line in header_lines(head):
        if csv_columns(line):
            return "csv"
        if text_columns(line):
            return "text"
    return None


class Scanner(ABC):
    """Sorts lines into records; each form of the file says what a header and what a row is."""

    def __init__(self) -> None:
        """Begin outside a table."""
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
        """Yield the records that end with ``line``, and those that it decides."""
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
        # What a warning has to say may go on in a next line that has no banner.
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
        if title in SECTIONS or title in _RESULTS:
            self.section = ""
        elif _OTHER_SECTION.fullmatch(title):
            self.layout, self.section = None, title
            self.unread[title] = None

    def _enter(self, number: int, columns: list[str]) -> None:
        if repeated := [name for name in dict.fromkeys(columns) if columns.count(name) > 1]:
            raise BrokenInputError(f"line {number}: the header has {repeated[0]!r} twice; print it again with nvprof")
        kind = kind_of(columns)
        if kind == SYSTEM:
            self.unread.pop(SYSTEM_SECTION, None)
        self.layout = Layout(str(kind), columns, [], self.process_id, program_of(self.command or ""), self.within)
        self.type = self.within or "GPU activities"
        self.said = False

    def row(self, record: Record) -> Iterator[Record]:
        """Yield ``record`` as a row, after the lines before it that are none: they stand inside the table."""
        yield from self.rows_follow()
        yield record

    def rows_follow(self) -> Iterator[Record]:
        """Yield the lines that wait, as rows of the table follow that this scanner may not see."""
        yield from self.settle(REJECT)
        self.said = False

    def _whole(self, record: Record) -> Iterator[Record]:
        """Yield a row, or reject it where the file ends inside it."""
        if not ends_inside(record.text, record.cells[-1]):
            yield from self.row(record)
        else:
            cut = "the file ends inside this row"
            yield from self.row(Record(REJECT, record.line, 1, record.text[:TEXT_LIMIT], [], cut))

    def stray(self, number: int, line: str, reason: str, row_like: bool, cells: Sequence[str] = ()) -> Iterator[Record]:
        """Keep a line that is no row until what follows decides: inside the table it is rejected."""
        reason = reason if line.endswith("\n") else f"the file ends inside this row: {reason}"
        record = Record(REJECT, number, 1, line[:TEXT_LIMIT], list(cells), reason)
        if row_like:
            yield from self.settle(SKIP)
            yield record
        elif self.said:
            yield record._replace(kind=SKIP, reason="")
        else:
            self.pending.append(record)
            if len(self.pending) > PENDING_LIMIT:
                yield from self.settle(SKIP)

    def settle(self, kind: str) -> Iterator[Record]:
        """Release the lines that are no rows: rejected inside a table; program output, skipped, after it."""
        pending, self.pending = self.pending, []
        for record in pending:
            cut = record.reason.startswith("the file ends")
            yield record if kind == REJECT or cut else record._replace(kind=SKIP, reason="")

    @abstractmethod
    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header."""

    @abstractmethod
    def other(self, number: int, line: str) -> Iterator[Record]:
        """Yield what a line is that is neither banner nor header."""


class CsvScanner(Scanner):
    """The CSV form: quoted names, plain numbers, a line of units below the header of most tables."""

    fresh = False

    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header; refuse a table in text."""
        if text_columns(line):
            raise BrokenInputError(
                f"line {number} is the header of a table in text, but the file begins with a table in CSV; "
                "put each form into its own file"
            )
        columns = csv_columns(line)
        self.fresh = self.fresh or bool(columns)
        return columns

    def other(self, number: int, line: str) -> Iterator[Record]:
        """Yield units or a row, or keep a line that is neither."""
        assert self.layout is not None
        wanted, fresh, self.fresh = len(self.layout.columns), self.fresh, False
        row_like = bool(_CSV_ROW.match(line))
        # A table that was copied out of a terminal may be filled up with blanks.
        cells = split_cells(line.rstrip()) if line.count('"') % 2 == 0 else []
        whole = len(cells) == wanted and line.endswith("\n")
        if fresh and whole and any(cells) and all(cell in units("nvprof") for cell in cells):
            self.layout.units = cells
            yield Record(UNITS, number, 1, line, cells)
        elif len(cells) == wanted and (row_like or _NUMBER_FIRST.match(line)):
            if "Type" in self.layout.columns:
                cells[0] = cells[0] or self.type
            yield from self._whole(Record(ROW, number, 1, line, cells))
        else:
            reason = unfit(len(cells), wanted) if cells else "a quote is not closed on its line"
            reason = reason if row_like else "not a row of the table"
            yield from self.stray(number, line, reason, row_like and (len(cells) > 1 or not cells), cells)


class TextScanner(Scanner):
    """The form for people: columns apart by two spaces or more, a unit in each cell, headings for kernels."""

    def __init__(self) -> None:
        """Begin outside a table."""
        super().__init__()
        self.device = ""
        self.kernel = ""

    def header(self, number: int, line: str) -> list[str] | None:
        """Return the columns if ``line`` is a header; refuse a table in CSV, and one that only CSV holds whole."""
        if match := _DEVICE.fullmatch(line):
            self.device, self.kernel = match[1], ""
        if self.section == SYSTEM_SECTION and tuple(_GAP.split(line.strip())) == SYSTEM_COLUMNS[2:]:
            return list(SYSTEM_COLUMNS)
        if csv_columns(line):
            raise BrokenInputError(
                f"line {number} is the header of a table in CSV, but the file begins with text; "
                "put each form into its own file"
            )
        columns = text_columns(line)
        if columns and kind_of(columns) == LAUNCHES:
            raise BrokenInputError(
                f"line {number}: metrics by launch are read from CSV only; print them again with nvprof --csv"
            )
        if columns and kind_of(columns) in (METRICS, EVENTS):
            self.device = self.kernel = ""
            return ["Device", "Kernel", *columns]
        if columns and kind_of(columns) == MEMORY:
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
