"""Reader of the text output of Nsight Compute, and of the output of runs that profiled nothing.

A file with banners only is a failed run: it has no launch, and the errors of the tool become the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import first_page_kind
from profsvc.formats.ncu.text_lines import (
    COLUMN_HEADER,
    CONTINUATION,
    DEVICE,
    KERNEL,
    LAUNCH,
    METRIC,
    PROCESS,
    RULE,
    Scanner,
)
from profsvc.formats.ncu.values import MetricRows, Subject
from profsvc.formats.parsing.head import head_lines, head_text
from profsvc.formats.parsing.ledger import numbered_lines, whole_number
from profsvc.formats.parsing.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, SKIP, Record
from profsvc.formats.parsing.repeated_tables import RepeatedTables
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch, Table

NAME = "ncu-text"
WHOLE_FILE = True

BATCH_ROWS = 50_000
_BANNERS = re.compile(r"^==(?:PROF|WARNING|ERROR)==", re.MULTILINE)
_SECTION = re.compile(r"^ {4,6}Section: \S", re.MULTILINE)
_LAUNCH = re.compile(r", Context [0-9]+, Stream [0-9]+(?:, Device [0-9]+, CC [0-9.]+)?\r?$", re.MULTILINE)
_LAUNCH_CELLS = ("Kernel Name", "Grid Size", "Block Size", "Context", "Stream", "Device", "CC")
_PROCESS_CELLS = ("Process ID", "Process Name", "Host Name")


def sniff(head: bytes) -> bool:
    """Return whether ``head`` holds banners or text tables of Nsight Compute, and no CSV table."""
    if first_page_kind(head) is not None:
        return False
    text = head_text(head)
    if ("==" in text and _BANNERS.search(text)) or ("Section: " in text and _SECTION.search(text)):
        return True
    if "Context " in text and _LAUNCH.search(text):
        return True
    return "Metric Name" in text and any(map(COLUMN_HEADER.fullmatch, head_lines(head)))


def _records(text: Text) -> Iterator[Record]:
    scanner = Scanner()
    for number, line in numbered_lines(text):
        yield scanner.sort(number, line)


# The launches of a process are a table that its line heads: a page prints that line once.
_AS_TABLE = {PROCESS: HEADER, LAUNCH: ROW, KERNEL: ROW, DEVICE: ROW, METRIC: ROW, CONTINUATION: ROW}


def _new_records(text: Text) -> Iterator[Record]:
    """Yield the records of a text; the launches of a page that is appended to itself are skipped lines."""
    scanner, repeated = Scanner(), RepeatedTables(text)
    for number, line in numbered_lines(text):
        record = scanner.sort(number, line)
        if repeated.covers(number):
            yield record._replace(kind=SKIP, text="", cells=[], reason="")
            continue
        seen = repeated.settle(record._replace(kind=_AS_TABLE.get(record.kind, SKIP), text=line))
        is_copy = record.kind in _AS_TABLE and seen.kind == SKIP
        yield record._replace(kind=SKIP if is_copy or record.kind == PROCESS else record.kind)


def _number_format(text: Text) -> NumberFormat:
    evidence = Evidence()
    for record in _records(text):
        if (
            record.kind == METRIC
            and (metric := ncu_launches.metric_name(record.cells[1])) not in ncu_launches.LIST_METRICS
        ):
            unit, *values = record.cells[2:]
            evidence.add(values, record.line)
            if ncu_launches.holds_integers(metric, unit):
                evidence.add_integers(values, record.line)
    return evidence.decide()


class _Page:
    """Gathers launches and their metrics until they fill a batch."""

    def __init__(self, numbers: Numbers) -> None:
        self.values = MetricRows(numbers)
        self.launches = ncu_launches.LaunchTable()
        self.subject = Subject()
        self.place = ""
        self.timed = False
        self.count = self.kernels = self.rules = 0

    def add(self, record: Record) -> Record:
        """Add a record; return it, rejected if it continues a missing value."""
        if record.kind in (LAUNCH, KERNEL, DEVICE):
            self._begin(record)
        elif record.kind == METRIC:
            self._metric(record)
        elif record.kind == CONTINUATION and not self.values.extend(record.cells):
            reason = "it continues values that the previous line does not have"
            return record._replace(kind=REJECT, reason=reason, text=record.text[:MAX_TEXT_CHARS])
        elif record.kind == RULE:
            self.rules += 1
        return record

    def _begin(self, record: Record) -> None:
        process, cells = record.cells[:3], record.cells[3:]
        self.place, self.timed = "", False
        if record.kind == LAUNCH:
            known = dict(zip((*_PROCESS_CELLS, *_LAUNCH_CELLS), [*process, *cells], strict=True))
            self.launches.add(self.count, record.line, known)
            self.subject = Subject(self.count)
            self.count += 1
        elif record.kind == KERNEL:
            kernel, grid, block, device, capability, invocations = cells
            self.subject = Subject(None, kernel, whole_number(invocations), whole_number(device))
            known = {"Grid Size": grid, "Block Size": block, "Device": device, "CC": capability}
            for name, cell in {"Process ID": process[0], **known}.items():
                if cell:
                    self.values.add(self.subject, None, name, record.line, "", [cell])
            self.kernels += 1
        else:
            self.subject, self.place = Subject(), cells[0]

    def _metric(self, record: Record) -> None:
        section, cell, unit, *values = record.cells
        metric = ncu_launches.metric_name(cell)
        self.values.add(self.subject, section or self.place or None, metric, record.line, unit, values)
        if metric not in ncu_launches.DURATION_METRICS or self.timed:
            return
        if self.subject.launch_index is not None:
            duration = ncu_launches.duration_ns(self.values.numbers[values[-1]], unit, self.values.scales)
            self.launches.complete(self.subject.launch_index, "duration_ns", duration)
        elif self.subject.kernel is not None and len(values) > 1:
            self.timed = True
            self.values.add_duration(self.subject, record.line, unit, values)

    @property
    def full(self) -> bool:
        return len(self.launches) >= ncu_launches.MAX_BATCH_LAUNCHES or len(self.values) >= BATCH_ROWS

    def take(self) -> dict[str, Table]:
        """Return the tables of the gathered rows and clear them."""
        tables: dict[str, Table] = {"launches": self.launches.take()} if len(self.launches) else {}
        return {**tables, **self.values.take()}

    def message(self) -> str:
        """Return the message about skipped rules."""
        if not self.rules:
            return ""
        return (
            f"{self.rules} rules were skipped, because a text page does not print their names; "
            "export again with: ncu -i REPORT --csv --page details"
        )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a text page, or the banners of a run that profiled nothing."""
    with Text(stream) as text:
        number_format = _number_format(text)
        ledger, page = ncu_launches.NcuLedger(), _Page(Numbers(number_format))
        for record in _new_records(text):
            if record.kind in (LAUNCH, KERNEL) and page.full:
                yield ledger.batch(page.take())
            taken = page.add(record)
            ledger.add(taken._replace(kind=SKIP) if taken.kind == RULE else taken)
            if ledger.full:
                yield ledger.batch({})
        if tables := page.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "text", "text", number_format, page.count + page.kernels, page.message())
