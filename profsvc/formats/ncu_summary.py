"""Reader of the summaries of Nsight Compute: the minimum, maximum and average of a metric over launches of a kernel."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record, page_in, records
from profsvc.formats.ncu_values import Subject, Values
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "ncu-summary"
PAGE = """\
The summaries of Nsight Compute: each metric over all launches of a kernel of one grid and block.

Make it from a report, or directly while profiling; per-gpu and per-nvtx are read as well:
    LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-summary per-kernel > FILE
    LC_ALL=C ncu --csv --print-summary per-kernel PROGRAM > FILE

Taken: every metric with its section, as values of the kernel over its invocations: minimum, maximum and average as they
came and in SI units; a value without minimum and maximum, such as an attribute of the device, as the only one. What
else tells the rows of a kernel apart (grid, block, device, process, range) is stored under the name of its column, on
the first line of those rows. The duration gives a row of v1_kernel_summaries, whose sum is calls * mean_ns: the tool
prints none. Single launches are lost in a summary: without --print-summary the same page holds more.

Example:
    "Process ID",...,"Kernel Name",...,"Invocations","Section Name","Metric Name","Metric Unit","Minimum",...,"Average"
    "4711",...,"saxpy(const float *, float *)",...,"3","Occupancy","Achieved Occupancy","%","73.56","79.38","74.92"
    "4711",...,"saxpy(const float *, float *)",...,"3","Launch Statistics","Grid Size","","1,056.00",...,"1,056.00"
"""

BATCH_ROWS = 50_000
_VALUES = ("Minimum", "Maximum", "Average")
_OF_A_ROW = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", *_VALUES)
# These say nothing that tells two rows of a kernel apart.
_NOT_STORED = ("Kernel Name", "Invocations", "Process Name", "Host Name")


def sniff(head: bytes) -> bool:
    """Tell whether the first table in ``head`` is a summary."""
    return page_in(head) == "summary"


class _Layout:
    """Where the columns of one table stand; -1 where the layout has no such column."""

    def __init__(self, header: list[str]) -> None:
        self.header = header
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.group = [n for n, name in enumerate(header) if name not in _OF_A_ROW]
        self.kernel, self.invocations, self.device = (
            place.get(name, -1) for name in ("Kernel Name", "Invocations", "Device")
        )
        self.metric, self.unit = place["Metric Name"], place["Metric Unit"]
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.values = [place[name] for name in _VALUES]
        # The attributes of a device stand before its kernels on this page, and its rows are broken at wrong places.
        self.broken = self.section < 0 <= self.device < self.kernel

    def section_of(self, cells: list[str]) -> str | None:
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Say what is wrong with a row; the tool breaks rows of the body of a section, so one may begin in another."""
        if not cells[self.metric]:
            return "the row names no metric"
        begins_anew = [cells[self.metric], cells[self.unit]] == cells[:2]
        return "the row begins anew before its metric" if begins_anew else ""


class _Page:
    """Turns rows into values."""

    def __init__(self, numbers: Numbers) -> None:
        self.values = Values(numbers)
        self.known: dict[tuple[str, ...], Subject] = {}
        self.timed: set[tuple[str, ...]] = set()
        self.groups = 0

    def begin(self, layout: _Layout) -> None:
        self.layout = layout
        self.known.clear()
        self.timed.clear()

    def add(self, record: Record) -> Record:
        """Take a row; give back its record, rejected if it has no count of launches, skipped if it has no value."""
        layout, cells = self.layout, record.cells
        invocations, metric = ncu.whole_number(cells[layout.invocations]), ncu.metric_name(cells[layout.metric])
        if invocations is None or (reason := layout.wrong(cells)):
            reason = "the row names no count of invocations" if invocations is None else reason
            if layout.broken:
                raise BrokenInputError(
                    f"line {record.line}: {reason}: Nsight Compute breaks the rows of the raw page at the wrong places "
                    "with --print-summary per-gpu; export again with --print-summary per-kernel"
                )
            return record._replace(kind=REJECT, reason=reason, text=record.text[:TEXT_LIMIT])
        values = [cells[place] for place in layout.values]
        if not any(values):
            return record._replace(kind=SKIP)
        key = tuple(cells[place] for place in layout.group)
        subject = self.known.get(key) or self._begin_group(key, invocations, record)
        unit = cells[layout.unit]
        self.values.add(subject, layout.section_of(cells), metric, record.line, unit, values)
        if metric in ncu.DURATIONS and key not in self.timed:
            self.timed.add(key)
            self.values.add_duration(subject, record.line, unit, values)
        return record

    def _begin_group(self, key: tuple[str, ...], invocations: int, record: Record) -> Subject:
        layout, cells = self.layout, record.cells
        device = ncu.whole_number(cells[layout.device]) if layout.device >= 0 else None
        subject = self.known[key] = Subject(None, cells[layout.kernel], invocations, device)
        for place in layout.group:
            if cells[place] and layout.header[place] not in _NOT_STORED:
                self.values.add(subject, None, layout.header[place], record.line, "", [cells[place]])
        self.groups += 1
        return subject


def _number_format(text: Text) -> NumberFormat:
    evidence, layout = Evidence(), None
    for record in records(text.lines(), "summary"):
        if record.kind == HEADER:
            layout = _Layout(record.cells)
        elif record.kind == ROW and layout is not None and record.cells[layout.metric] not in ncu.LISTS:
            evidence.add([record.cells[place] for place in layout.values], record.line)
    return evidence.decide()


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a summary; two walks over the file, because its number format is known only at its end."""
    with Text(stream) as text:
        number_format = _number_format(text)
        ledger, page, widths = ncu.Ledger(), _Page(Numbers(number_format)), []
        for record in records(text.lines(), "summary"):
            if record.kind == HEADER:
                page.begin(_Layout(record.cells))
                widths.append(f"{len(record.cells)} columns")
            ledger.take(page.add(record) if record.kind == ROW else record)
            if len(page.values) >= BATCH_ROWS or ledger.full:
                yield ledger.batch(page.values.take())
        if tables := page.values.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "summary", ", ".join(dict.fromkeys(widths)), number_format, page.groups)
