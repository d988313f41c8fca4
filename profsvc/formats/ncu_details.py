"""Reader of the details page of Nsight Compute: one row a metric or a rule, many rows a launch."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.formats import ncu
from profsvc.formats.ncu_lines import HEADER, IDENTITY, REJECT, ROW, TEXT_LIMIT, Record, page_in, records
from profsvc.formats.numbers import Evidence, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch, frame

NAME = "ncu-details"
PAGE = """\
The details page of Nsight Compute: the metrics and rules that its window shows, one row each.

Make it from a report, or directly while profiling:
    ncu --set full -o REPORT PROGRAM && LC_ALL=C ncu -i REPORT.ncu-rep --csv --page details > FILE
    LC_ALL=C ncu --csv PROGRAM > FILE

Taken: every launch; every metric under its label (with --print-metric-name under its name) and section, as it came,
with its unit, and as a number in SI units (for a value with instances such as "12 (5; 7)" the number before them); with
--print-details all the label of the body item stands behind the section ("Section > Body Item"); the NVTX ranges of a
launch under the name of their column; every rule with its estimated speedup: "global" is the share of the run time it
would save, "local" is no time. Banners, program output and the NVLink and NUMA tables between the rows are skipped and
counted. The raw page holds more metrics, under names that do not change: prefer it.

Example:
    "ID","Process ID",...,"CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type",...
    "0","4711",...,"9.0","GPU Speed Of Light Throughput","Duration","us","6.75",
    "0","4711",...,"9.0","GPU Speed Of Light Throughput","DRAM Throughput","%","13.4",
    "0","4711",...,"9.0","Occupancy","Theoretical Occupancy","%","16.67",
    "0","4711",...,"9.0","Occupancy","","","","TheoreticalOccupancy","OPT","... is limited by ...","global","80.34"
"""

BATCH_ROWS = 50_000
# An estimate is a percentage, too small for thousands: its one sign marks decimals in every locale.
_ESTIMATE = re.compile(r"[0-9]{1,3}(?:[.,][0-9]+)?")


def sniff(head: bytes) -> bool:
    """Tell whether the first table in ``head`` is a details page."""
    return page_in(head) == "details"


class _Layout:
    """Where the columns of one table stand; -1 where the layout has no such column."""

    def __init__(self, header: list[str]) -> None:
        self.width = len(header)
        place = {name: n for n, name in reversed(list(enumerate(header)))}
        self.identity = {name: place[name] for name in IDENTITY if name in place}
        self.ranges = {name: place[name] for name in header if name.endswith(ncu.RANGES)}
        self.process = place.get("Process ID", 0)
        self.metric, self.unit, self.value = (place[f"Metric {word}"] for word in ("Name", "Unit", "Value"))
        self.section, self.body = place.get("Section Name", -1), place.get("Body Item Label", -1)
        self.rule, self.rule_type = place.get("Rule Name", -1), place.get("Rule Type", -1)
        self.message = place.get("Rule Description", -1)
        self.kind, self.estimate = place.get("Estimated Speedup Type", -1), place.get("Estimated Speedup", -1)

    def section_of(self, cells: list[str]) -> str | None:
        section = cells[self.section] if self.section >= 0 else ""
        body = cells[self.body] if self.body >= 0 else ""
        return (f"{section} > {body}" if body else section) or None

    def wrong(self, cells: list[str]) -> str:
        """Say what is wrong with a row; nothing for a metric or a whole rule."""
        if cells[self.metric]:
            return ""
        if self.rule < 0 or len(cells) <= self.rule or not cells[self.rule]:
            return "the row names neither a metric nor a rule"
        if len(cells) < self.width:
            return f"the row of a rule has {len(cells)} cells but needs {self.width}"
        return ""


def _evidence(text: Text) -> Evidence:
    """Walk the file until its cells tell how it marks decimals."""
    evidence = Evidence()
    layout: _Layout | None = None
    for record in records(text.lines(), "details"):
        if record.kind == HEADER:
            layout = _Layout(record.cells)
        elif record.kind == ROW and layout is not None:
            metric, unit, value = (record.cells[place] for place in (layout.metric, layout.unit, layout.value))
            metric = ncu.metric_name(metric)
            if metric and metric not in ncu.LISTS:
                evidence.add([value], record.line)
                if ncu.holds_integers(metric, unit):
                    evidence.add_integers([value], record.line)
        if evidence.settled:
            break
    return evidence


@dataclass(frozen=True)
class _Estimate:
    """The estimated speedup of a rule."""

    kind: str | None
    saving_fraction: float | None
    speedup: float | None

    @classmethod
    def of(cls, kind: str, text: str) -> "_Estimate":
        percent = float(text.replace(",", ".")) if _ESTIMATE.fullmatch(text) else None
        saving = None if percent is None else percent / 100
        known = saving is not None and kind == "global" and saving < 1
        return cls(kind or None, saving, 1 / (1 - saving) if known and saving is not None else None)


class _Page:
    """Gathers rows until they are worth a batch."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.numbers = Numbers(evidence.decide())
        self.scales = ncu.Scales()
        self.indices: dict[tuple[str, str], int] = {}
        self.launches = ncu.Launches()
        self.count = 0
        self._clear()

    def _clear(self) -> None:
        self.metrics: list[tuple[int, str | None, str, int, str, str]] = []
        self.rules: dict[str, list[object]] = {}

    def begin(self, layout: _Layout) -> None:
        self.layout = layout
        self.indices.clear()

    @property
    def full(self) -> bool:
        return len(self.metrics) >= BATCH_ROWS or len(self.launches) >= ncu.BATCH_LAUNCHES

    def is_new(self, record: Record) -> bool:
        return (record.cells[self.layout.process], record.cells[0]) not in self.indices

    def _launch(self, record: Record) -> int:
        key = (record.cells[self.layout.process], record.cells[0])
        index = self.indices.get(key)
        if index is None:
            index = self.indices[key] = self.count
            identity = {name: record.cells[place] for name, place in self.layout.identity.items()}
            self.launches.add(index, record.line, identity)
            self.count += 1
            for name, place in self.layout.ranges.items():
                if record.cells[place]:
                    self.metrics.append((index, None, name, record.line, "", record.cells[place]))
        return index

    def add(self, record: Record) -> Record:
        """Take a row; give back its record, rejected if the row is neither a metric nor a whole rule."""
        layout, cells = self.layout, record.cells
        if reason := layout.wrong(cells):
            return record._replace(kind=REJECT, reason=reason, text=record.text[:TEXT_LIMIT])
        index = self._launch(record)
        if metric := cells[layout.metric]:
            self._add_metric(index, metric, record)
        else:
            self._add_rule(index, record)
        return record

    def _add_metric(self, index: int, metric: str, record: Record) -> None:
        layout, cells = self.layout, record.cells
        unit, value = cells[layout.unit], cells[layout.value]
        metric = ncu.metric_name(metric)
        self.metrics.append((index, layout.section_of(cells), metric, record.line, unit, value))
        if metric in ncu.DURATIONS:
            number = self._number(value, record.line)
            self.launches.complete(index, "duration_ns", ncu.duration_ns(number, unit, self.scales))
        elif metric in ncu.DEVICE_NAMES:
            self.launches.complete(index, "device", value or None)

    def _number(self, cell: str, line: int) -> float:
        """Read a cell; one that is no number may show how the file marks thousands, which none before it did."""
        if self.numbers[cell] != self.numbers[cell]:
            self.evidence.add([cell], line)
            if (number_format := self.evidence.decide()) != self.numbers.number_format:
                self.numbers = Numbers(number_format)
        return self.numbers[cell]

    def _values(self, metrics: Sequence[str], raw: Sequence[str], lines: Sequence[int]) -> NDArray[np.float64]:
        """Read the cells gathered."""
        values, numbers = self.numbers.many(raw), self.numbers
        for place in np.flatnonzero(np.isnan(values)).tolist():
            if not ncu.is_text(metrics[place]):
                self._number(raw[place], lines[place])
        return values if self.numbers is numbers else self._values(metrics, raw, lines)

    def _metric_table(self) -> pd.DataFrame:
        index, section, metric, line, unit, raw = zip(*self.metrics, strict=True)
        values = self._values(metric, raw, line)
        rows = {"launch_index": index, "section": section, "metric": metric, "line": line}
        return ncu.metric_table(rows, raw, unit, self.numbers, self.scales, values)

    def _add_rule(self, index: int, record: Record) -> None:
        layout, cells = self.layout, record.cells
        kind = cells[layout.kind] if layout.kind >= 0 else ""
        estimate = _Estimate.of(kind, cells[layout.estimate] if layout.estimate >= 0 else "")
        row: dict[str, object] = {
            "launch_index": index,
            "section": layout.section_of(cells),
            "rule": cells[layout.rule],
            "rule_type": cells[layout.rule_type] or None if layout.rule_type >= 0 else None,
            "kind": estimate.kind,
            "estimated_saving_fraction": estimate.saving_fraction,
            "estimated_speedup": estimate.speedup,
            "message": cells[layout.message] if layout.message >= 0 else "",
            "line": record.line,
        }
        for name, value in row.items():
            self.rules.setdefault(name, []).append(value)

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the rows gathered, and begin anew."""
        tables = {}
        if len(self.launches):
            tables["launches"] = self.launches.take()
        if self.metrics:
            tables["metrics"] = self._metric_table()
        if self.rules:
            tables["rules"] = frame("rules", self.rules)
        self._clear()
        return tables


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a details page; a first walk finds how the file marks decimals."""
    with Text(stream) as text:
        ledger, page, widths = ncu.Ledger(), _Page(_evidence(text)), []
        for record in records(text.lines(), "details"):
            if record.kind == HEADER:
                page.begin(_Layout(record.cells))
                widths.append(f"{len(record.cells)} columns")
            elif record.kind == ROW:
                # A launch stays in one batch: its duration may stand in its last row.
                if page.full and page.is_new(record):
                    yield ledger.batch(page.take())
                record = page.add(record)
            ledger.take(record)
            if ledger.full:
                yield ledger.batch({})
        if tables := page.take():
            yield ledger.batch(tables)
        layout = ", ".join(dict.fromkeys(widths))
        yield ledger.last(text, "details", layout, page.numbers.number_format, page.count)
