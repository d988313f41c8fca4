"""Reader of what Nsight Compute prints for people, and of the output of runs that profiled nothing.

A file with banners alone is a failed run: it holds no launch, and the reader hands on what the tool said.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

import pandas as pd

from profsvc.formats import ncu
from profsvc.formats.head import head_lines, head_text
from profsvc.formats.ncu_lines import REJECT, SKIP, TEXT_LIMIT, Record, page_in
from profsvc.formats.ncu_text_lines import COLUMNS, DEVICE, KERNEL, LAUNCH, METRIC, MORE, RULE, Scanner
from profsvc.formats.ncu_values import Subject, Values
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "ncu-text"
WHOLE_FILE = True
PAGE = """\
The text that Nsight Compute prints for people, and the output of a run that profiled nothing.

Read are the details page and the raw page of every version, and their summaries (--print-summary). Taken: every launch
or range with the metrics of its sections; in a summary every kernel with the minimum, maximum and average of its
metrics over its invocations. Rules are not taken, because this page does not print their names, nor the labels of
tables inside a section, nor NVTX ranges: prefer a CSV page, which holds all of it:
    LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-units base > FILE
A file that holds only banners and the output of the program gives no launch; its ==ERROR== lines are the message.

Example:
    [4711] saxpy@127.0.0.1
      saxpy(const float *, float *) (1056, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
        Section: GPU Speed Of Light Throughput
        Metric Name        Metric Unit Metric Value
        Duration                    us       131.07
"""

BATCH_ROWS = 50_000
_BANNERS = re.compile(r"^==(?:PROF|WARNING|ERROR)==", re.MULTILINE)
_SECTION = re.compile(r"^ {4,6}Section: \S", re.MULTILINE)
_LAUNCH = re.compile(r", Context [0-9]+, Stream [0-9]+(?:, Device [0-9]+, CC [0-9.]+)?\r?$", re.MULTILINE)
_LAUNCH_CELLS = ("Kernel Name", "Grid Size", "Block Size", "Context", "Stream", "Device", "CC")
_PROCESS_CELLS = ("Process ID", "Process Name", "Host Name")


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` holds banners or text tables of Nsight Compute, and no CSV table of it."""
    if page_in(head) is not None:
        return False
    text = head_text(head)
    if ("==" in text and _BANNERS.search(text)) or ("Section: " in text and _SECTION.search(text)):
        return True
    if "Context " in text and _LAUNCH.search(text):
        return True
    return "Metric Name" in text and any(map(COLUMNS.fullmatch, head_lines(head)))


def _records(text: Text) -> Iterator[Record]:
    scanner = Scanner()
    for number, line in ncu.numbered(text):
        yield scanner.sort(number, line)


def _number_format(text: Text) -> NumberFormat:
    evidence = Evidence()
    for record in _records(text):
        if record.kind == METRIC and (metric := ncu.metric_name(record.cells[1])) not in ncu.LISTS:
            unit, *values = record.cells[2:]
            evidence.add(values, record.line)
            if ncu.holds_integers(metric, unit):
                evidence.add_integers(values, record.line)
    return evidence.decide()


class _Page:
    """Gathers the launches and their metrics until they are worth a batch."""

    def __init__(self, numbers: Numbers) -> None:
        self.values = Values(numbers)
        self.launches = ncu.Launches()
        self.subject = Subject()
        self.place = ""
        self.timed = False
        self.count = self.kernels = self.rules = 0

    def add(self, record: Record) -> Record:
        """Take a record; give it back, rejected if it goes on with a value that is not there."""
        if record.kind in (LAUNCH, KERNEL, DEVICE):
            self._begin(record)
        elif record.kind == METRIC:
            self._metric(record)
        elif record.kind == MORE and not self.values.extend(record.cells):
            reason = "it goes on with values that the line before does not have"
            return record._replace(kind=REJECT, reason=reason, text=record.text[:TEXT_LIMIT])
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
            self.subject = Subject(None, kernel, ncu.whole_number(invocations), ncu.whole_number(device))
            known = {"Grid Size": grid, "Block Size": block, "Device": device, "CC": capability}
            for name, cell in {"Process ID": process[0], **known}.items():
                if cell:
                    self.values.add(self.subject, None, name, record.line, "", [cell])
            self.kernels += 1
        else:
            self.subject, self.place = Subject(), cells[0]

    def _metric(self, record: Record) -> None:
        section, cell, unit, *values = record.cells
        metric = ncu.metric_name(cell)
        self.values.add(self.subject, section or self.place or None, metric, record.line, unit, values)
        if metric not in ncu.DURATIONS or self.timed:
            return
        if self.subject.launch_index is not None:
            duration = ncu.duration_ns(self.values.numbers[values[-1]], unit, self.values.scales)
            self.launches.complete(self.subject.launch_index, "duration_ns", duration)
        elif self.subject.kernel is not None and len(values) > 1:
            self.timed = True
            self.values.add_duration(self.subject, record.line, unit, values)

    @property
    def full(self) -> bool:
        return len(self.launches) >= ncu.BATCH_LAUNCHES or len(self.values) >= BATCH_ROWS

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the tables of what was gathered, and begin anew."""
        tables = {"launches": self.launches.take()} if len(self.launches) else {}
        return {**tables, **self.values.take()}

    def said(self) -> str:
        """Say what of the page was left."""
        if not self.rules:
            return ""
        return (
            f"the {self.rules} rules of this text page are not read, because it does not print their names; "
            "export again with: ncu -i REPORT --csv --page details"
        )


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a text page, or the banners of a run that profiled nothing."""
    with Text(stream) as text:
        number_format = _number_format(text)
        ledger, page = ncu.Ledger(), _Page(Numbers(number_format))
        for record in _records(text):
            if record.kind in (LAUNCH, KERNEL) and page.full:
                yield ledger.batch(page.take())
            taken = page.add(record)
            ledger.take(taken._replace(kind=SKIP) if taken.kind == RULE else taken)
            if ledger.full:
                yield ledger.batch({})
        if tables := page.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "text", "text", number_format, page.count + page.kernels, page.said())
