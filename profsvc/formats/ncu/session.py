"""Reader of the session page of Nsight Compute: settings, host, processes and device attributes."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError, wrong_cell_count
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import first_page_kind
from profsvc.formats.ncu.values import MetricRows, Subject
from profsvc.formats.parsing.ledger import numbered_lines
from profsvc.formats.parsing.numbers import NumberFormat, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record, split_cells
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch

NAME = "ncu-session"

# The first column of each table, and the kind of its rows.
FACTS, PROCESSES, ATTRIBUTES = "facts", "processes", "attributes"
_TABLES = {
    "Launch Attribute": FACTS,
    "Session Attribute": FACTS,
    "Process Id": PROCESSES,
    "Device Attribute": ATTRIBUTES,
}
_TITLES = {"Launch Settings", "Session Info", "Processes", "Device Attributes"}
_DASHES = re.compile(r"-+(?: -+)+ *")
_VERSION = re.compile(r"[0-9]{4}\.[0-9.]*[0-9]")
_SHORT_FACT_NAMES = {"profiler_command_line": "command_line"}


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is of the session page."""
    return first_page_kind(head) == "session"


class _Scanner:
    """Sorts lines into records and keeps the header of the current table."""

    def __init__(self) -> None:
        self.header: list[str] = []
        self.spans: list[tuple[int, int]] = []

    def sort(self, number: int, line: str) -> Record:
        text = line.rstrip("\r\n")
        if match := _DASHES.fullmatch(text):
            self.spans = [found.span() for found in re.finditer("-+", match[0])]
            return Record(SKIP, number, 1, line, [])
        if not text.strip() or text.strip() in _TITLES:
            self.header, self.spans = [], []
            return Record(SKIP, number, 1, line, [])
        quoted = text.startswith('"')
        cells = split_cells(text) if quoted else self._cut(text)
        closed = text.endswith('"') and text.count('"') % 2 == 0
        # Without quotes, values end where their column ends.
        filled = bool(self.header and self.spans) and len(text) >= self.spans[-1][1]
        whole = line.endswith("\n") or (closed if quoted else filled)
        cut = "" if whole else "the file ends inside this line"
        if not self.header:
            if len(cells) > 1 and cells[0] in _TABLES and not cut:
                self.header = cells
                return Record(HEADER, number, 1, line, cells)
            return Record(REJECT if cut else SKIP, number, 1, line[:MAX_TEXT_CHARS], [], cut)
        needed = len(self.header)
        if len(cells) == needed and not cut:
            return Record(ROW, number, 1, line, cells)
        reason = cut if len(cells) == needed else f"{cut and cut + ': '}{wrong_cell_count(len(cells), needed)}"
        return Record(REJECT, number, 1, line[:MAX_TEXT_CHARS], [], reason)

    def _cut(self, text: str) -> list[str]:
        """Return the cells of a line of a text table; none if it does not fit the columns."""
        ends = [start for start, _ in self.spans[1:]] + [len(text)]
        if any(text[start - 1 : start].strip() for start, _ in self.spans[1:]):
            return []
        return [text[start:end].strip() for (start, _), end in zip(self.spans, ends, strict=bool(self.spans))]


class _Page:
    """Turns rows into facts and metrics."""

    def __init__(self) -> None:
        # Attributes are plain integers, so the decimal mark is NUL, which no text contains.
        self.values = MetricRows(Numbers(NumberFormat("\0")))
        self.facts: dict[str, str] = {}
        self.name = ""
        self.devices = 0

    def add(self, header: list[str], record: Record) -> None:
        kind, (name, *cells) = _TABLES[header[0]], record.cells
        if kind == ATTRIBUTES:
            self._attribute(header[1:], name, cells, record.line)
        elif kind == PROCESSES:
            self._put("processes", f"{name} {cells[0]}", ", ")
        else:
            slug = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
            # A text page wraps a long value and leaves its name empty.
            self.name = _SHORT_FACT_NAMES.get(slug, slug) or self.name
            self._put(self.name, cells[0], "")
            if self.name == "nsight_compute_target" and (match := _VERSION.search(cells[0])):
                self.facts["tool_version"] = match[0]

    def _put(self, name: str, value: str, glue: str) -> None:
        self.facts[name] = f"{self.facts[name]}{glue}{value}" if name in self.facts else value

    def _attribute(self, devices: list[str], name: str, cells: list[str], line: int) -> None:
        self.devices = max(self.devices, len(devices))
        for device, cell in zip(devices, cells, strict=True):
            if name:
                self.values.add(Subject(), device, f"device__attribute_{name}", line, "", [cell])


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a session page, as CSV or as text."""
    with Text(stream) as text:
        scanner, ledger, page = _Scanner(), ncu_launches.NcuLedger(), _Page()
        for number, line in numbered_lines(text):
            record = scanner.sort(number, line)
            if record.kind == ROW:
                page.add(scanner.header, record)
            ledger.add(record)
            if ledger.full:
                yield ledger.batch({})
        if not page.values.raw and not page.facts:
            raise BrokenInputError(
                "no table of the session page has a complete row; export again with: ncu -i REPORT --csv --page session"
            )
        facts = {"tool": ncu_launches.TOOL, "page": "session", "encoding": text.encoding, **page.facts, **ledger.facts}
        yield ledger.batch(page.values.take(), facts)
