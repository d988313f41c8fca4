"""Reader of the CSV tables of the AMD profilers: rocprof, rocprofv2, rocprofv3 and rocprof-compute."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.embedded_tables import Rows, collect_number_evidence, header_in, records
from profsvc.formats.parsing.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.formats.rocm.tables import HEADER_WORDS, ROW_READERS, Layout, Row, parse_header, summary_category
from profsvc.tables import Batch

NAME = "rocprof"

TOOL = "rocprof"
SPREADSHEET_DIGITS, MIN_ROUNDED_DIGITS, MIN_ROUNDED_TIMESTAMPS = 15, 17, 8
ASSUMED_KERNELS = (
    "summaries that do not name their subject are assumed to be of kernels; those of markers "
    "(*_marker_api_stats.csv) look the same"
)


def _never_ends(line: str) -> None:
    """Return None: only another header ends a table."""


def sniff(head: bytes) -> bool:
    """Return whether ``head`` holds the header of a supported table."""
    return header_in(head, parse_header, HEADER_WORDS) is not None


class _TimestampDigits:
    """Detects timestamps rounded by a spreadsheet: all end in zeros after the 15th digit."""

    def __init__(self) -> None:
        self.long = self.rounded = 0

    def add(self, cell: str) -> None:
        if len(cell) >= MIN_ROUNDED_DIGITS and cell.isascii() and cell.isdigit():
            self.long += 1
            self.rounded += not cell[SPREADSHEET_DIGITS:].strip("0")

    def check(self) -> None:
        if self.long == self.rounded >= MIN_ROUNDED_TIMESTAMPS:
            raise BrokenInputError(
                f"every timestamp of {MIN_ROUNDED_DIGITS} or more digits ends in zeros after its "
                f"{SPREADSHEET_DIGITS}th digit: a spreadsheet rounded them; upload the file as the profiler wrote it"
            )


@dataclass
class _TableSurvey:
    """Properties of a whole table that are needed before its first row is stored."""

    categories: dict[str, None] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    key: tuple[str, str] = ("", "")
    scattered: bool = False

    def add(self, record: Record, layout: Layout) -> None:
        """Add a row: note the category of a summary, and whether the counters of a dispatch are scattered."""
        if layout.kind == "sums":
            named = "name" in layout.places
            self.categories[summary_category(record.cells[layout.places["name"]]) if named else "kernel"] = None
        elif layout.kind == "counters":
            process = record.cells[layout.places["process"]] if "process" in layout.places else ""
            key = (process, record.cells[layout.places["id"]])
            if key != self.key:
                number = int(key[1][:18]) if key[1].isdecimal() else -1
                self.scattered = self.scattered or number <= self.last.get(process, -1)
                self.key, self.last[process] = key, number

    @property
    def category(self) -> str:
        """The category that all summaries share, else kernel, because kernels may have any name."""
        only = next(iter(self.categories), "kernel") if len(self.categories) == 1 else "kernel"
        return "kernel" if only == "kernel or range" else only

    @property
    def assumed(self) -> bool:
        """Whether it is an assumption that the summaries are of kernels."""
        return "kernel or range" in self.categories and "kernel" not in self.categories


def _survey(text: Text) -> tuple[NumberFormat, dict[int, _TableSurvey]]:
    """Return the number format, and the properties of the tables by header line."""
    evidence, digits, tables, table = Evidence(), _TimestampDigits(), dict[int, _TableSurvey](), _TableSurvey()
    for record, layout in records(text.lines(), parse_header, _never_ends):
        if record.kind == HEADER:
            table = tables.setdefault(record.line, _TableSurvey())
        if record.kind == ROW and layout is not None:
            cells = record.cells
            collect_number_evidence(
                evidence, [cells[n] for n in layout.numeric], [cells[n] for n in layout.integers], record.line
            )
            for place in layout.times:
                digits.add(cells[place])
            table.add(record, layout)
    digits.check()
    return evidence.decide(), tables


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a file in two passes, because the number format is known only at the end."""
    with Text(stream) as text:
        number_format, tables = _survey(text)
        rows, numbers, taken, repeated = Rows(), Numbers(number_format), 0, RepeatedTables(text)
        for found, layout in records(text.lines(), parse_header, _never_ends):
            record = repeated.settle(found)
            if record.kind == HEADER and layout is not None:
                layout.category, layout.scattered = tables[record.line].category, tables[record.line].scattered
            elif record.kind == ROW and layout is not None:
                try:
                    ROW_READERS[layout.kind](Row(layout, record, numbers), rows)
                    taken += 1
                except ValueError as error:
                    record = record._replace(kind=REJECT, reason=str(error), text=record.text[:MAX_TEXT_CHARS])
            rows.ledger.add(record)
            if rows.full:
                yield rows.batch()
        facts = {"tool": TOOL, "number_format": str(number_format), "encoding": text.encoding}
        said = [] if taken else ["no dispatches: the file holds a header without a complete row"]
        said += [ASSUMED_KERNELS] if any(table.assumed for table in tables.values()) else []
        yield rows.batch(facts, "; ".join(said))
