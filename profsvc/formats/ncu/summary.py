"""Reader of Nsight Compute summaries: minimum, maximum and average of a metric over launches of a kernel."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import first_page_kind, records
from profsvc.formats.ncu.values import MetricRows, Subject
from profsvc.formats.parsing.ledger import whole_number
from profsvc.formats.parsing.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch

NAME = "ncu-summary"

BATCH_ROWS = 50_000
_VALUES = ("Minimum", "Maximum", "Average")
_METRIC_COLUMNS = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", *_VALUES)
# These columns do not distinguish rows of a kernel.
_UNSTORED_COLUMNS = ("Kernel Name", "Invocations", "Process Name", "Host Name")


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is a summary."""
    return first_page_kind(head) == "summary"


class _Layout:
    """The places of the columns of one table; -1 for a missing column."""

    def __init__(self, header: list[str]) -> None:
        self.header = header
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.group = [n for n, name in enumerate(header) if name not in _METRIC_COLUMNS]
        self.kernel, self.invocations, self.device = (
            place.get(name, -1) for name in ("Kernel Name", "Invocations", "Device")
        )
        self.metric, self.unit = place["Metric Name"], place["Metric Unit"]
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.values = [place[name] for name in _VALUES]
        # On this page device attributes precede the kernels, and its rows are broken at wrong places.
        self.broken = self.section < 0 <= self.device < self.kernel

    def section_of(self, cells: list[str]) -> str | None:
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Return the reason to reject a row; the tool breaks rows, so one may start inside another."""
        if not cells[self.metric]:
            return "the row names no metric"
        restarts = [cells[self.metric], cells[self.unit]] == cells[:2]
        return "another row starts before the metric of this row" if restarts else ""


class _Page:
    """Turns rows into values."""

    def __init__(self, numbers: Numbers) -> None:
        self.values = MetricRows(numbers)
        self.known: dict[tuple[str, ...], Subject] = {}
        self.timed: set[tuple[str, ...]] = set()
        self.groups = 0

    def begin(self, layout: _Layout) -> None:
        self.layout = layout
        self.known.clear()
        self.timed.clear()

    def add(self, record: Record) -> Record:
        """Add a row; return its record, rejected without an invocation count, skipped without a value."""
        layout, cells = self.layout, record.cells
        invocations, metric = (
            whole_number(cells[layout.invocations]),
            ncu_launches.metric_name(cells[layout.metric]),
        )
        if invocations is None or (reason := layout.wrong(cells)):
            reason = "the row has no number of invocations" if invocations is None else reason
            if layout.broken:
                raise BrokenInputError(
                    f"line {record.line}: {reason}: Nsight Compute breaks the rows of the raw page at the wrong places "
                    "with --print-summary per-gpu; export again with --print-summary per-kernel"
                )
            return record._replace(kind=REJECT, reason=reason, text=record.text[:MAX_TEXT_CHARS])
        values = [cells[place] for place in layout.values]
        if not any(values):
            return record._replace(kind=SKIP)
        key = tuple(cells[place] for place in layout.group)
        subject = self.known.get(key) or self._begin_group(key, invocations, record)
        unit = cells[layout.unit]
        self.values.add(subject, layout.section_of(cells), metric, record.line, unit, values)
        if metric in ncu_launches.DURATION_METRICS and key not in self.timed:
            self.timed.add(key)
            self.values.add_duration(subject, record.line, unit, values)
        return record

    def _begin_group(self, key: tuple[str, ...], invocations: int, record: Record) -> Subject:
        layout, cells = self.layout, record.cells
        device = whole_number(cells[layout.device]) if layout.device >= 0 else None
        subject = self.known[key] = Subject(None, cells[layout.kernel], invocations, device)
        for place in layout.group:
            if cells[place] and layout.header[place] not in _UNSTORED_COLUMNS:
                self.values.add(subject, None, layout.header[place], record.line, "", [cells[place]])
        self.groups += 1
        return subject


def _number_format(text: Text) -> NumberFormat:
    evidence, layout = Evidence(), None
    for record in records(text.lines(), "summary"):
        if record.kind == HEADER:
            layout = _Layout(record.cells)
        elif record.kind == ROW and layout is not None and record.cells[layout.metric] not in ncu_launches.LIST_METRICS:
            evidence.add([record.cells[place] for place in layout.values], record.line)
    return evidence.decide()


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a summary in two passes, because the number format is known only at the end."""
    with Text(stream) as text:
        number_format = _number_format(text)
        ledger, page, widths = ncu_launches.NcuLedger(), _Page(Numbers(number_format)), []
        for record in map(RepeatedTables(text).settle, records(text.lines(), "summary")):
            if record.kind == HEADER:
                page.begin(_Layout(record.cells))
                widths.append(f"{len(record.cells)} columns")
            ledger.add(page.add(record) if record.kind == ROW else record)
            if len(page.values) >= BATCH_ROWS or ledger.full:
                yield ledger.batch(page.values.take())
        if tables := page.values.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "summary", ", ".join(dict.fromkeys(widths)), number_format, page.groups)
