"""Reader of the kernel tables of AMD's profilers: rocprof, rocprofv2, rocprofv3 and rocprof-compute."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.csv_tables import Rows, header_in, records, shown, weigh, whole
from profsvc.formats.ncu_lines import REJECT, ROW, TEXT_LIMIT, Record, split_cells
from profsvc.formats.nsys import copy_kind
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.stream import Text, head_text
from profsvc.tables import Batch

NAME = "rocprof"
PAGE = """\
CSV tables of kernel dispatches and memory copies by AMD's profilers.

Make it with one of
    rocprof --timestamp on -o FILE.csv PROGRAM
    rocprofv3 --kernel-trace --memory-copy-trace --output-format csv -- PROGRAM     (*_kernel_trace.csv, ...)
    rocprof-compute profile -n NAME -- PROGRAM                                       (timestamps.csv, pmc_perf.csv)

Taken: every dispatch as a launch, with its start and duration to the nanosecond; its registers, LDS, scratch and
counters as metrics without a unit, under the names of their columns; every copy of *_memory_copy_trace.csv as a
transfer. Grids are printed in work items; stored in work groups, rounded up. Only rocprofv3 prints them in three
dimensions: the others give the product, which stands in x, and y and z are missing.
*_counter_collection.csv, which has a row a counter, is not read.

A file whose timestamps went through a spreadsheet (1.72E+18) has lost its nanoseconds and is refused.

Example:
    "Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp","End_Timestamp",...
    "KERNEL_DISPATCH","Agent 2",1,33,"saxpy(int, float)",7,172352210005122,172352210008687,...
"""

TOOL = "rocprof"
KEPT_DIGITS, ROUNDED_FROM, ENOUGH = 15, 17, 8
# Names of a column in the versions of the tools, compared without case and signs.
_COLUMNS = {
    "kernel": ("kernelname",),
    "start": ("starttimestamp", "beginns"),
    "end": ("endtimestamp", "endns"),
    "id": ("dispatchid", "index"),
    "correlation": ("correlationid",),
    "device": ("gpuid", "agentid"),
    "process": ("pid", "processid"),
    "stream": ("queueid",),
    "grid": ("grd", "gridsize"),
    "block": ("wgr", "workgroupsize"),
    "kind": ("kind",),
    "direction": ("direction",),
    "source": ("sourceagentid",),
    "target": ("destinationagentid",),
    **{f"grid_{axis}": (f"gridsize{axis}",) for axis in "xyz"},
    **{f"block_{axis}": (f"workgroupsize{axis}",) for axis in "xyz"},
}
# Identities and places in memory, which are no metrics.
_NO_METRICS = frozenset(
    ("queueindex", "tid", "threadid", "sig", "obj", "kernelid", "streamid", "guid", "dispatchns", "completens")
)
_KERNELS = ({"kernel", "id", "grid", "block"}, {"kernel", "id", "start", "end"}, {"kernel", "kind", "start", "end"})
_COPIES = {"kind", "direction", "start", "end", "correlation"}
_AGENT = re.compile(r"(?:Agent )?([0-9]{1,9})", re.IGNORECASE)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass
class _Layout:
    """The columns of one table."""

    header: list[str]
    places: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        meaning = {spelled: name for name, spellings in _COLUMNS.items() for spelled in spellings}
        for place, cell in enumerate(self.header):
            plain = _plain(cell)
            if plain in meaning:
                self.places.setdefault(meaning[plain], place)
            elif plain and plain not in _NO_METRICS:
                self.metrics.setdefault(cell.strip(), place)
        found = set(self.places)
        # counter_collection.csv has a row a counter, which is not a row a dispatch.
        self.kernels = any(needs <= found for needs in _KERNELS) and "countername" not in map(_plain, self.header)
        self.copies = not self.kernels and found >= _COPIES
        exact = ("start", "end", "id", "correlation", "process", "grid", "block", *(f"grid_{axis}" for axis in "xyz"))
        self.integers = [self.places[name] for name in exact if name in self.places]
        self.numeric = [*self.integers, *self.metrics.values()]
        self.times = [self.places[name] for name in ("start", "end") if name in self.places]


def _begins(line: str) -> _Layout | None:
    if "Kernel" not in line and "Direction" not in line:
        return None
    layout = _Layout(split_cells(line))
    return layout if layout.kernels or layout.copies else None


def _ends(line: str) -> None:
    """No line ends a table but another header."""


def sniff(head: bytes) -> bool:
    """Tell whether the first lines of ``head`` hold a table of dispatches or copies."""
    return header_in(head_text(head), _begins) is not None


class _Row:
    """One row; its cells by what they mean."""

    def __init__(self, layout: _Layout, record: Record, numbers: Numbers) -> None:
        self.layout, self.cells, self.line, self.numbers = layout, record.cells, record.line, numbers

    def text(self, name: str) -> str:
        place = self.layout.places.get(name)
        return "" if place is None else self.cells[place].strip()

    def whole(self, name: str) -> int | None:
        place = self.layout.places.get(name)
        return None if place is None else whole(self.cells[place], self.numbers, self.layout.header[place], self.line)

    def moment(self, name: str) -> int | None:
        value = self.whole(name)
        if value is None and name in self.layout.places:
            raise ValueError(f"{self.layout.header[self.layout.places[name]]} is empty")
        return value

    def agent(self, name: str) -> int | None:
        match = _AGENT.fullmatch(self.text(name))
        return int(match[1]) if match else None

    def span(self) -> dict[str, object]:
        """Return start and duration, to the nanosecond."""
        start, end = self.moment("start"), self.moment("end")
        if start is None or end is None:
            return {"start_ns": start, "duration_ns": None, "line": self.line}
        if end < start:
            raise ValueError(f"it ends at {end}, before it starts at {start}")
        return {"start_ns": start, "duration_ns": float(end - start), "line": self.line}

    def shape(self) -> dict[str, object]:
        """Return the grid in work groups, and the work group."""
        sizes: dict[str, object] = {}
        for axis in "xyz":
            single = axis == "x" and "grid" in self.layout.places
            items, group = self.whole("grid" if single else f"grid_{axis}"), self.whole(f"block_{axis}")
            group = self.whole("block") if single and group is None else group
            sizes[f"block_{axis}"] = group
            sizes[f"grid_{axis}"] = None if items is None or not group else -(-items // group)
        return sizes


def _metrics(row: _Row) -> Iterator[dict[str, object]]:
    for name, place in row.layout.metrics.items():
        cell = row.cells[place]
        if cell.strip():
            number = row.numbers[cell]
            known = number == number
            yield {
                "metric": name,
                "raw_text": cell,
                "value": number if known else None,
                "reason": None if known else row.numbers.reason(cell),
            }


def _take(row: _Row, rows: Rows) -> None:
    common = {**row.span(), "process_id": row.whole("process"), "stream": row.whole("stream")}
    if row.layout.copies:
        memory = {"source_memory": row.text("source") or None, "target_memory": row.text("target") or None}
        words = row.text("direction").upper().removeprefix("MEMORY_COPY_").replace("_TO_", "-to-").lower()
        rows.add("transfers", {**common, **memory, "kind": copy_kind(words)})
        return
    if (kind := row.text("kind")) and kind.upper() != "KERNEL_DISPATCH":
        raise ValueError(f"Kind is {shown(kind)}, not KERNEL_DISPATCH")
    kernel = row.text("kernel")
    if not kernel:
        raise ValueError("the kernel has no name")
    launch = {
        **common,
        **row.shape(),
        "kernel": kernel,
        "source_id": row.text("id") or row.text("correlation") or None,
        "device_index": row.agent("device"),
    }
    rows.add_launch(launch, list(_metrics(row)))


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


def _number_format(text: Text) -> NumberFormat:
    evidence, digits = Evidence(), _Digits()
    for record, layout in records(text.lines(), _begins, _ends):
        if record.kind == ROW and layout is not None:
            cells = record.cells
            weigh(evidence, [cells[n] for n in layout.numeric], [cells[n] for n in layout.integers], record.line)
            for place in layout.times:
                digits.add(cells[place])
    digits.check()
    return evidence.decide()


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the tables of a file; two walks over it, because its number format is known only at its end."""
    with Text(stream) as text:
        number_format = _number_format(text)
        rows, numbers, taken = Rows(), Numbers(number_format), 0
        for record, layout in records(text.lines(), _begins, _ends):
            if record.kind == ROW and layout is not None:
                try:
                    _take(_Row(layout, record, numbers), rows)
                    taken += 1
                except ValueError as error:
                    record = record._replace(kind=REJECT, reason=str(error), text=record.text[:TEXT_LIMIT])
            rows.ledger.take(record)
            if rows.full:
                yield rows.batch()
        facts = {"tool": TOOL, "number_format": str(number_format), "encoding": text.encoding}
        yield rows.batch(facts, "" if taken else "no dispatches: the file holds a header without a whole row below")
