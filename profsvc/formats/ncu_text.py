"""Reader of what Nsight Compute prints for people, and of the output of runs that profiled nothing.

A file with banners alone is a failed run: it holds no launch, and the reader hands on what the tool said.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

import pandas as pd

from profsvc.formats import ncu
from profsvc.formats.ncu_lines import REJECT, SKIP, TEXT_LIMIT, Record, page_in
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.stream import Text, head_text
from profsvc.tables import Batch

NAME = "ncu-text"
WHOLE_FILE = True
PAGE = """\
The text that Nsight Compute prints for people, and the output of a run that profiled nothing.

Taken: every launch or range with the "Metric Name, Metric Unit, Metric Value" tables of its sections. Rules are not
taken, because this page does not print their names: prefer a CSV page, which holds all of it:
    LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-units base > FILE
A file that holds only banners and the output of the program gives no launch; its ==ERROR== lines are the message.

Example:
    [4711] saxpy@127.0.0.1
      saxpy(const float *, float *) (1056, 1, 1)x(256, 1, 1), Context 1, Stream 7, Device 0, CC 9.0
        Section: GPU Speed Of Light Throughput
        Metric Name        Metric Unit Metric Value
        Duration                    us       131.07
"""

# Where a line of a table may stand: a line of dashes above and below the names of the columns, then the rows.
OUTSIDE, NAMES, ROWS = "outside", "names", "rows"
LAUNCH, METRIC, RULE = "launch", "metric", "rule"

_BANNERS = re.compile(r"^==(?:PROF|WARNING|ERROR)==", re.MULTILINE)
_COLUMNS = re.compile(r"^ +Metric Name +Metric Unit +Metric Value *\r?$", re.MULTILINE)
_PROCESS = re.compile(r"\[(?P<pid>[0-9]+)\] (?P<name>.+)@(?P<host>\S+)")
_SIZES = r"\([0-9]+, [0-9]+, [0-9]+\)"
_KERNEL = re.compile(
    rf"  (?P<kernel>\S.*?)(?: (?P<grid>{_SIZES})x(?P<block>{_SIZES}))?(?:, [0-9]{{4}}-\S+ [0-9:]+)?"
    r", Context (?P<context>[0-9]+)(?:, Stream (?P<stream>[0-9]+))?(?:, Device (?P<device>[0-9]+))?"
    r"(?:, CC (?P<cc>[0-9.]+))?"
)
_SECTION = re.compile(r" {4}Section: (?P<section>.+)")
_WIDTHS = re.compile(r" {4}(-+) (-+) (-+)")
_RULE = re.compile(r" {4}(?:OPT|INF|WRN|ERR) ")
_RULE_REST = re.compile(r" {10}|(?: {4}-[- ]*$)")


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` holds banners or text tables of Nsight Compute, and no CSV table of it."""
    text = head_text(head)
    return page_in(text) is None and bool(_BANNERS.search(text) or _COLUMNS.search(text))


class _Scanner:
    """Sorts the lines of a text page into records; the cells of a record depend on its kind."""

    def __init__(self) -> None:
        self.process = ["", "", ""]
        self.section = ""
        self.widths = (0, 0)
        self.state = OUTSIDE
        self.launches = 0

    def sort(self, number: int, line: str) -> Record:
        text = line.rstrip("\r\n")
        kind, cells = self._kind(text)
        cut = "" if line.endswith("\n") or kind == SKIP else "the file ends inside this line"
        reason = cut or ("not a line of a text page" if kind == REJECT else "")
        return Record(REJECT if reason else kind, number, 1, line[:TEXT_LIMIT], cells, reason)

    def _kind(self, text: str) -> tuple[str, list[str]]:
        if match := _PROCESS.fullmatch(text):
            self.process = list(match.groups())
        elif match := _KERNEL.fullmatch(text):
            self.section, self.state = "", OUTSIDE
            self.launches += 1
            return LAUNCH, [*self.process, *(cell or "" for cell in match.groups())]
        elif not self.launches or not text.startswith(" ") or not text.strip():
            self.state = self.state if text.strip() else OUTSIDE
        elif match := _SECTION.fullmatch(text):
            self.section, self.state = match["section"], OUTSIDE
        elif match := _WIDTHS.fullmatch(text):
            self.widths = (len(match[1]), len(match[2]))
            self.state = ROWS if self.state == NAMES else OUTSIDE
        elif _COLUMNS.fullmatch(text):
            self.state = NAMES
        elif self.state == ROWS:
            return self._metric(text, *self.widths)
        elif _RULE.match(text):
            return RULE, []
        elif not _RULE_REST.match(text):
            return REJECT, []
        return SKIP, []

    def _metric(self, text: str, name: int, unit: int) -> tuple[str, list[str]]:
        cells = [text[4 : 4 + name], text[5 + name : 5 + name + unit], text[6 + name + unit :]]
        gaps = text[:4] + text[4 + name : 5 + name] + text[5 + name + unit : 6 + name + unit]
        whole = not gaps.strip() and cells[0].strip()
        return (METRIC, [self.section, *(cell.strip() for cell in cells)]) if whole else (REJECT, [])


def _records(text: Text) -> Iterator[Record]:
    scanner = _Scanner()
    for number, line in ncu.numbered(text):
        yield scanner.sort(number, line)


def _number_format(text: Text) -> NumberFormat:
    evidence = Evidence()
    for record in _records(text):
        if record.kind == METRIC and record.cells[1] not in ncu.LISTS:
            _, metric, unit, value = record.cells
            evidence.add([value], record.line)
            if ncu.holds_integers(metric, unit):
                evidence.add_integers([value], record.line)
    return evidence.decide()


class _Page:
    """Gathers the launches and their metrics until they are worth a batch."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.scales = ncu.Scales()
        self.launches = ncu.Launches()
        self.metrics: list[list[object]] = []
        self.count = 0
        self.rules = 0

    def add(self, record: Record) -> None:
        if record.kind == LAUNCH:
            names = ("Process ID", "Process Name", "Host Name", "Kernel Name", "Grid Size", "Block Size")
            cells = dict(zip((*names, "Context", "Stream", "Device", "CC"), record.cells, strict=True))
            self.launches.add(self.count, record.line, cells)
            self.count += 1
        elif record.kind == METRIC:
            section, metric, unit, value = record.cells
            self.metrics.append([self.count - 1, section or None, metric, record.line, value, unit])
            if metric in ncu.DURATIONS:
                duration = ncu.duration_ns(self.numbers[value], unit, self.scales)
                self.launches.complete(self.count - 1, "duration_ns", duration)
        elif record.kind == RULE:
            self.rules += 1

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the tables of what was gathered, and begin anew."""
        tables = {"launches": self.launches.take()} if len(self.launches) else {}
        if self.metrics:
            columns = [list(column) for column in zip(*self.metrics, strict=True)]
            rows = dict(zip(("launch_index", "section", "metric", "line"), columns, strict=False))
            raw, unit = ([str(cell) for cell in column] for column in columns[4:])
            tables["metrics"] = ncu.metric_table(rows, raw, unit, self.numbers, self.scales)
            self.metrics = []
        return tables

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
            if record.kind == LAUNCH and len(page.launches) >= ncu.BATCH_LAUNCHES:
                yield ledger.batch(page.take())
            page.add(record)
            ledger.take(record._replace(kind=SKIP) if record.kind == RULE else record)
            if ledger.full:
                yield ledger.batch({})
        if tables := page.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "text", "text", number_format, page.count, page.said())
