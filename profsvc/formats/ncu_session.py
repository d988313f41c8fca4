"""Reader of the session page of Nsight Compute: how a report was made, where, and what its devices are."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError, unfit
from profsvc.formats import ncu
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record, page_in, split_cells
from profsvc.formats.ncu_values import Subject, Values
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "ncu-session"
PAGE = """\
The session page of Nsight Compute: how a report was made, where, and what its devices are.

Make it from a report, as CSV or as text:
    ncu -i REPORT.ncu-rep --csv --page session > FILE

Taken: the settings of the launch and of the session, and the processes, as facts of the upload (command_line, created,
host_name, cuda_version, processes, ...); every attribute of every device as a metric of the file, in the section
"Device N" and under the name that the raw page gives it: device__attribute_multiprocessor_count. In the run of another
page of the report it says what that page leaves open: the name of the device, and what the counters need of it.

Example:
    Session Info
    "Session Attribute","Value"
    "Created","2026-Nov-20 13:10:16"
    "CUDA Version","13.0"

    Device Attributes
    "Device Attribute","Device 0"
    "multiprocessor_count","132"
    "display_name","NVIDIA H200"
"""

# The first column of each table, and what its rows become.
_FACTS, _PROCESSES, _ATTRIBUTES = "facts", "processes", "attributes"
_TABLES = {
    "Launch Attribute": _FACTS,
    "Session Attribute": _FACTS,
    "Process Id": _PROCESSES,
    "Device Attribute": _ATTRIBUTES,
}
_TITLES = {"Launch Settings", "Session Info", "Processes", "Device Attributes"}
_DASHES = re.compile(r"-+(?: -+)+ *")
_VERSION = re.compile(r"[0-9]{4}\.[0-9.]*[0-9]")
_SHORT = {"profiler_command_line": "command_line"}


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` holds a table of the session page, and no page of launches."""
    return page_in(head) == "session"


class _Scanner:
    """Sorts lines into records; a row knows the header of its table."""

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
        # Beside quotes, values end where their column does.
        filled = bool(self.header and self.spans) and len(text) >= self.spans[-1][1]
        whole = line.endswith("\n") or (closed if quoted else filled)
        cut = "" if whole else "the file ends inside this line"
        if not self.header:
            if len(cells) > 1 and cells[0] in _TABLES and not cut:
                self.header = cells
                return Record(HEADER, number, 1, line, cells)
            return Record(REJECT if cut else SKIP, number, 1, line[:TEXT_LIMIT], [], cut)
        needed = len(self.header)
        if len(cells) == needed and not cut:
            return Record(ROW, number, 1, line, cells)
        reason = cut if len(cells) == needed else f"{cut and cut + ': '}{unfit(len(cells), needed)}"
        return Record(REJECT, number, 1, line[:TEXT_LIMIT], [], reason)

    def _cut(self, text: str) -> list[str]:
        """Cut a line of a table for people at its columns; one that has none, or that does not fit, has no cells."""
        ends = [start for start, _ in self.spans[1:]] + [len(text)]
        if any(text[start - 1 : start].strip() for start, _ in self.spans[1:]):
            return []
        return [text[start:end].strip() for (start, _), end in zip(self.spans, ends, strict=bool(self.spans))]


class _Page:
    """Turns rows into facts and metrics."""

    def __init__(self) -> None:
        # Attributes are whole numbers without any sign in them: NUL, which no text holds, marks their decimals.
        self.values = Values(Numbers(NumberFormat("\0")))
        self.facts: dict[str, str] = {}
        self.name = ""
        self.devices = 0

    def add(self, header: list[str], record: Record) -> None:
        kind, (name, *cells) = _TABLES[header[0]], record.cells
        if kind == _ATTRIBUTES:
            self._attribute(header[1:], name, cells, record.line)
        elif kind == _PROCESSES:
            self._put("processes", f"{name} {cells[0]}", ", ")
        else:
            slug = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
            # A text page breaks a long value and leaves its name empty.
            self.name = _SHORT.get(slug, slug) or self.name
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
        scanner, ledger, page = _Scanner(), ncu.Ledger(), _Page()
        for number, line in ncu.numbered(text):
            record = scanner.sort(number, line)
            if record.kind == ROW:
                page.add(scanner.header, record)
            ledger.take(record)
            if ledger.full:
                yield ledger.batch({})
        if not page.values.raw and not page.facts:
            raise BrokenInputError(
                "no table of the session page holds a whole row; export again with: ncu -i REPORT --csv --page session"
            )
        facts = {"tool": ncu.TOOL, "page": "session", "encoding": text.encoding, **page.facts, **ledger.facts}
        yield ledger.batch(page.values.take(), facts)
