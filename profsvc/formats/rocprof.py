"""Reader of the CSV tables of AMD's profilers: rocprof, rocprofv2, rocprofv3 and rocprof-compute."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows, header_in, records, weigh
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, TEXT_LIMIT, Record
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.rocprof_tables import TAKE, Layout, Row, begins, category_of
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "rocprof"
PAGE = """\
CSV tables of AMD's profilers: dispatches, counters, copies, calls, sums and agents.

Make it with one of
    rocprof --timestamp on -o FILE.csv PROGRAM
    rocprofv2 --plugin file -i COUNTERS.txt -d FOLDER PROGRAM
    rocprofv3 --sys-trace --stats --output-format csv -- PROGRAM      (*_kernel_trace.csv, *_hip_api_trace.csv, ...)
    rocprofv3 --pmc SQ_WAVES GRBM_COUNT --output-format csv -- PROGRAM               (*_counter_collection.csv)
    rocprof-compute profile -n NAME -- PROGRAM                                       (timestamps.csv, pmc_perf.csv)
    rocprof-compute analyze -p FOLDER --output-format csv                            (one table a panel)

Taken: every dispatch as a launch, with its start and duration to the nanosecond; its registers, LDS, scratch and
counters as metrics without a unit, under the names of their columns or, in *_counter_collection.csv, which has a row a
counter, of the counters. Grids are printed in work items; stored in work groups, rounded up. Only rocprofv3's traces
print them in three dimensions: the others give the product, which stands in x, and y and z are missing.
Copies as transfers, without their bytes, which are not printed; calls; markers as ranges; the rows of *_stats.csv and
of the top kernels as sums, *_domain_stats.csv in category domain. What *_agent_info.csv says of each agent and the
figures of a panel are metrics of the whole file.

A file whose timestamps went through a spreadsheet (1.72E+18) has lost its nanoseconds and is refused.

Example:
    "Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",...
    "KERNEL_DISPATCH","Agent 2",1,33,"saxpy(int, float)",7,172352210005122,172352210008687,...
"""

TOOL = "rocprof"
KEPT_DIGITS, ROUNDED_FROM, ENOUGH = 15, 17, 8
ASSUMED = (
    "sums without a word on what they are of are taken for sums of kernels; those of markers (*_marker_api_stats.csv) "
    "look the same"
)


def _ends(line: str) -> None:
    """No line ends a table but another header."""


def sniff(head: bytes) -> bool:
    """Tell whether the first lines of ``head`` hold a table that is taken."""
    return header_in(head, begins) is not None


class _Digits:
    """Watches whether every long timestamp ends in zeros after its 15th digit, as a spreadsheet leaves them."""

    def __init__(self) -> None:
        self.long = self.rounded = 0

    def add(self, cell: str) -> None:
        if len(cell) >= ROUNDED_FROM and cell.isascii() and cell.isdigit():
            self.long += 1
            self.rounded += not cell[KEPT_DIGITS:].strip("0")

    def check(self) -> None:
        if self.long == self.rounded >= ENOUGH:
            raise BrokenInputError(
                f"every timestamp of {ROUNDED_FROM} or more digits ends in zeros after its {KEPT_DIGITS}th digit: a "
                "spreadsheet has rounded them; take the file as the profiler wrote it"
            )


@dataclass
class _Table:
    """What must be known of a whole table before its first row is taken."""

    categories: dict[str, None] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    key: tuple[str, str] = ("", "")
    scattered: bool = False

    def add(self, record: Record, layout: Layout) -> None:
        """Take in a row: the category of a sum, and whether the counters of a dispatch stand apart."""
        if layout.kind == "sums":
            named = "name" in layout.places
            self.categories[category_of(record.cells[layout.places["name"]]) if named else "kernel"] = None
        elif layout.kind == "counters":
            process = record.cells[layout.places["process"]] if "process" in layout.places else ""
            key = (process, record.cells[layout.places["id"]])
            if key != self.key:
                number = int(key[1][:18]) if key[1].isdecimal() else -1
                self.scattered = self.scattered or number <= self.last.get(process, -1)
                self.key, self.last[process] = key, number

    @property
    def category(self) -> str:
        """What the sums are about: all of them, or else kernels, whose names can be anything."""
        only = next(iter(self.categories), "kernel") if len(self.categories) == 1 else "kernel"
        return "kernel" if only == "kernel or range" else only

    @property
    def assumed(self) -> bool:
        """Whether nothing says that the sums are of kernels."""
        return "kernel or range" in self.categories and "kernel" not in self.categories


def _look(text: Text) -> tuple[NumberFormat, dict[int, _Table]]:
    """Walk the file once for what is known only at its end; the tables by the line of their header."""
    evidence, digits, tables, table = Evidence(), _Digits(), dict[int, _Table](), _Table()
    for record, layout in records(text.lines(), begins, _ends):
        if record.kind == HEADER:
            table = tables.setdefault(record.line, _Table())
        if record.kind == ROW and layout is not None:
            cells = record.cells
            weigh(evidence, [cells[n] for n in layout.numeric], [cells[n] for n in layout.integers], record.line)
            for place in layout.times:
                digits.add(cells[place])
            table.add(record, layout)
    digits.check()
    return evidence.decide(), tables


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a file; two walks over it, because its number format is known only at its end."""
    with Text(stream) as text:
        number_format, tables = _look(text)
        rows, numbers, taken = Rows(), Numbers(number_format), 0
        for record, layout in records(text.lines(), begins, _ends):
            if record.kind == HEADER and layout is not None:
                layout.category, layout.scattered = tables[record.line].category, tables[record.line].scattered
            elif record.kind == ROW and layout is not None:
                try:
                    TAKE[layout.kind](Row(layout, record, numbers), rows)
                    taken += 1
                except ValueError as error:
                    record = record._replace(kind=REJECT, reason=str(error), text=record.text[:TEXT_LIMIT])
            rows.ledger.take(record)
            if rows.full:
                yield rows.batch()
        facts = {"tool": TOOL, "number_format": str(number_format), "encoding": text.encoding}
        said = [] if taken else ["no dispatches: the file holds a header without a whole row below"]
        said += [ASSUMED] if any(table.assumed for table in tables.values()) else []
        yield rows.batch(facts, "; ".join(said))
