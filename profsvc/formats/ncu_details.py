"""Reader of the details page of Nsight Compute: one row a metric or a rule, many rows a launch."""

import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.formats import ncu
from profsvc.formats.blocks import SMALL_BLOCK, ahead, cut
from profsvc.formats.ncu_details_blocks import Ints, Part, Plan, next_launch, parse, taken, whole_launches
from profsvc.formats.ncu_details_layout import Layout
from profsvc.formats.ncu_details_wide import Columns, empty, rows_of, wide_of
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, TEXT_LIMIT, Record, Scanner, page_in, records
from profsvc.formats.numbers import Evidence, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch, Wide, WideColumns, frame

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
BLOCK = 1 << 20
# So many launches, or rules, of rows that were read at once make a table.
AT_ONCE = 2000
# An estimate is a percentage, too small for thousands: its one sign marks decimals in every locale.
_ESTIMATE = re.compile(r"[0-9]{1,3}(?:[.,][0-9]+)?")
# Metrics that say something of the launch itself.
_COMPLETING = {*ncu.DURATIONS, *ncu.DEVICE_NAMES}


def sniff(head: bytes) -> bool:
    """Tell whether the first table in ``head`` is a details page."""
    return page_in(head) == "details"


def _evidence(text: Text) -> Evidence:
    """Walk the file until its cells tell how it marks decimals."""
    evidence = Evidence()
    layout: Layout | None = None
    for record in records(text.lines(), "details"):
        if record.kind == HEADER:
            layout = Layout(record.cells)
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
    """Gathers rows until they are worth a batch; rows that were read at once are one."""

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

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        self.indices.clear()
        self.columns = Columns(self.scales)

    @property
    def full(self) -> bool:
        return len(self.metrics) >= BATCH_ROWS or len(self.launches) >= ncu.BATCH_LAUNCHES

    def is_new(self, record: Record) -> bool:
        return (record.cells[self.layout.process], record.cells[0]) not in self.indices

    def begins_with(self, part: Part) -> bool:
        """Tell whether all launches of a part are new, so that none is in two batches."""
        keys = _keys(part)
        return len(set(keys)) == len(keys) and self.indices.keys().isdisjoint(keys)

    def take_part(self, part: Part, line: int) -> tuple[dict[str, pd.DataFrame], Wide | None] | None:
        """Return the tables of rows that were read at once, whose launches are new; None if they need a closer look."""
        if any(map(self.layout.wrong, part.rules.values())) or not (found := self.columns.of(part, self.layout.named)):
            return None
        columns, place = found
        rows = rows_of(part, columns, place, self._printed(part, columns, place, line))
        if not np.bincount(rows.launch, minlength=len(part.firsts)).all():
            return None
        # Not those of this part: its last launch may go on behind it.
        worth = self.metrics or max(len(self.launches), len(self.rules.get("rule", ()))) >= AT_ONCE
        first, tables = self.count, self.take() if worth else {}
        self._new_launches(part, line)
        completing = np.array([metric in _COMPLETING for metric in columns.metrics], np.bool_)
        for at in np.flatnonzero(completing[rows.place]).tolist():
            row, name = int(rows.row[at]), int(rows.place[at])
            value = part.texts[row].as_py()
            self._complete(first + int(rows.launch[at]), columns.metrics[name], columns.units[name], value, line + row)
        for row, cells in part.rules.items():
            self._add_rule(first + int(part.launch[row]), Record(ROW, line + row, 1, "", cells))
        for row, name in empty(part, rows):
            index, section = first + int(part.launch[row]), columns.sections[name] or None
            self.metrics.append((index, section, columns.metrics[name], line + row, columns.units[name], ""))
        return tables, wide_of(part, rows, self.numbers, first, line)

    def _new_launches(self, part: Part, line: int) -> None:
        """Take the launches of a part."""
        first, keys = self.count, _keys(part)
        self.count += len(keys)
        self.indices.update(zip(keys, range(first, self.count), strict=True))
        lines, layout = (line + part.firsts).tolist(), self.layout
        self.launches.extend(first, lines, dict(zip(layout.identity, part.identity, strict=False)))
        for name, cells in zip(layout.ranges, part.identity[len(layout.identity) :], strict=True):
            launches = zip(range(first, self.count), lines, cells, strict=True)
            self.metrics += [(index, None, name, at, "", cell) for index, at, cell in launches if cell]

    def _printed(self, part: Part, columns: WideColumns, place: Ints, line: int) -> NDArray[np.float64]:
        """Return the numbers of all rows as they are printed."""
        odd = np.flatnonzero(np.isnan(part.values) & (place >= 0))
        metrics = [columns.metrics[name] for name in place[odd].tolist()]
        raw = taken(part.texts, odd).to_pylist()
        values = part.values.copy()
        values[odd] = self._values(metrics, raw, (line + odd).tolist())
        return values

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
        self._complete(index, metric, unit, value, record.line)

    def _complete(self, index: int, metric: str, unit: str, value: str, line: int) -> None:
        """Keep with the launch what a metric says of it."""
        if metric in ncu.DURATIONS:
            number = self._number(value, line)
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


class _Walk:
    """The second walk: plain blocks at once, all others line by line."""

    def __init__(self, text: Text) -> None:
        self.text, self.ledger, self.page = text, ncu.Ledger(), _Page(_evidence(text))
        self.scanner = Scanner("details")
        self.layout: Layout | None = None
        self.widths: list[str] = []
        self.line = 1

    def batches(self) -> Iterator[Batch]:
        blocks = whole_launches(self.text.blocks(BLOCK), BLOCK)
        for block, plan, part in ahead(blocks, self._plan, parse):
            tried = plan is not None and plan == self._plan()
            if not (part and tried and (batch := self._take(part))):
                yield from self._closer(bytes(block), tried)
            else:
                yield batch
        for record in self.scanner.finish():
            yield from self._record(record)
        if tables := self.page.take():
            yield self.ledger.batch(tables)
        layout = ", ".join(dict.fromkeys(self.widths))
        yield self.ledger.last(self.text, "details", layout, self.page.numbers.number_format, self.page.count)

    def _plan(self) -> Plan | None:
        known = self.layout is not None and self.scanner.in_quoted_table
        return self.layout.plan if self.layout and known and self.page.numbers.number_format.decimal == "." else None

    def _closer(self, block: bytes, tried: bool = False) -> Iterator[Batch]:
        """Read what is plain of a block at once, and the rest line by line; not all of it if that was ``tried``."""
        while block:
            plan = self._plan()
            part = parse(block, plan) if plan and not tried else None
            if part and (batch := self._take(part)):
                yield batch
                return
            tried = False
            end = cut(block, halve=plan is not None, small=SMALL_BLOCK)
            end = next_launch(block, end) if plan else end
            if plan and end < len(block):
                yield from self._closer(block[:end])
            else:
                end = yield from self._lines(block[:end], plan)
            block = block[end:]

    def _lines(self, block: bytes, plan: Plan | None) -> Generator[Batch, None, int]:
        """Read lines one by one, where there is no ``plan`` until there is one; return where the next begins."""
        end = 0
        while end < len(block) and (plan or not self._plan()):
            begin, end = end, block.find(b"\n", end) + 1 or len(block)
            for record in self.scanner.feed(self.line, str(block[begin:end], "utf-8", "replace")):
                yield from self._record(record)
            self.line += 1
        return end

    def _take(self, part: Part) -> Batch | None:
        """Return the batch of a part; None if it needs a closer look."""
        taken = self.page.take_part(part, self.line) if self.page.begins_with(part) else None
        if taken is None:
            return None
        for record in self.scanner.rows_follow():
            self.ledger.take(record)
        self.ledger.stored += part.rows
        self.line += part.rows
        return self.ledger.batch(taken[0], wide=taken[1])

    def _record(self, record: Record) -> Iterator[Batch]:
        if record.kind == HEADER:
            self.layout = Layout(record.cells)
            self.page.begin(self.layout)
            self.widths.append(f"{len(record.cells)} columns")
        elif record.kind == ROW:
            # A launch stays in one batch: its duration may stand in its last row.
            if self.page.full and self.page.is_new(record):
                yield self.ledger.batch(self.page.take())
            record = self.page.add(record)
        self.ledger.take(record)
        if self.ledger.full:
            yield self.ledger.batch({})


def _keys(part: Part) -> list[tuple[str, str]]:
    """Return process and ID of each launch, the second and the first cell of its rows."""
    return list(zip(part.identity[1], part.identity[0], strict=True))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a details page; a first walk finds how the file marks decimals."""
    with Text(stream) as text:
        yield from _Walk(text).batches()
