"""Reader of the details page of Nsight Compute: one row per metric or rule, many rows per launch."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.line_blocks import read_blocks
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import first_page_kind, records
from profsvc.formats.ncu.details_blocks import next_launch, parse, whole_launches
from profsvc.formats.ncu.details_rows import ColumnPlan, Layout, ParsedRows
from profsvc.formats.ncu.details_wide import PageColumns, empty_cells, metric_rows, wide_metrics
from profsvc.formats.parsing.numbers import Evidence, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.tables import Batch, ColumnTable, Table, Wide, WideColumns

NAME = "ncu-details"

BATCH_ROWS = 50_000
BLOCK_BYTES = 2 << 20
# Launches or rules gathered from blocks become a table at this number.
MIN_TABLE_ROWS = 2000
# An estimate is a percentage below 1000, so its only separator marks decimals in every locale.
_ESTIMATE = re.compile(r"[0-9]{1,3}(?:[.,][0-9]+)?")
# Metrics that are also columns of the launch.
_LAUNCH_METRICS = {*ncu_launches.DURATION_METRICS, *ncu_launches.DEVICE_NAME_METRICS}


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is a details page."""
    return first_page_kind(head) == "details"


def _number_evidence(text: Text) -> Evidence:
    """Return the evidence of the number format, read until it is settled."""
    evidence = Evidence()
    layout: Layout | None = None
    for record in records(text.lines(), "details"):
        if record.kind == HEADER:
            layout = Layout(record.cells)
        elif record.kind == ROW and layout is not None:
            metric, unit, value = (record.cells[place] for place in (layout.metric, layout.unit, layout.value))
            metric = ncu_launches.metric_name(metric)
            if metric and metric not in ncu_launches.LIST_METRICS:
                evidence.add([value], record.line)
                if ncu_launches.holds_integers(metric, unit):
                    evidence.add_integers([value], record.line)
        if evidence.settled:
            break
    return evidence


def _percent(text: str) -> float | None:
    """Return the estimate of a rule."""
    return float(text.replace(",", ".")) if _ESTIMATE.fullmatch(text) else None


class _Page:
    """Gathers rows until they fill a batch; a parsed block is a batch of its own."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.numbers = Numbers(evidence.decide())
        self.scales = ncu_launches.UnitScales()
        self.indices: dict[tuple[str, str], int] = {}
        self.launches = ncu_launches.LaunchTable()
        self.count = 0
        self._clear()

    def _clear(self) -> None:
        self.metrics: list[tuple[int, str | None, str, int, str, str]] = []
        self.rules: dict[str, list[object]] = {}

    def begin(self, layout: Layout) -> None:
        self.layout = layout
        self.indices.clear()
        self.columns = PageColumns(self.scales)

    @property
    def full(self) -> bool:
        return len(self.metrics) >= BATCH_ROWS or len(self.launches) >= ncu_launches.MAX_BATCH_LAUNCHES

    def is_new(self, record: Record) -> bool:
        return (record.cells[self.layout.process], record.cells[0]) not in self.indices

    def begins_with(self, part: ParsedRows) -> bool:
        """Return whether all launches of a part are new, so that no launch is in two batches."""
        keys = _launch_keys(part)
        return len(set(keys)) == len(keys) and self.indices.keys().isdisjoint(keys)

    def take_part(self, part: ParsedRows, line: int) -> tuple[dict[str, Table], Wide | None] | None:
        """Return the tables of a parsed block of new launches; None if it must be read line by line."""
        if any(map(self.layout.wrong, part.rules.values())) or not (found := self.columns.of(part, self.layout.named)):
            return None
        columns, place = found
        rows = metric_rows(part, columns, place, self._printed(part, columns, place, line))
        if not np.bincount(rows.launch, minlength=len(part.firsts)).all():
            return None
        # Launches of this part stay, because the last one may continue after the block.
        worth = self.metrics or max(len(self.launches), len(self.rules.get("rule", ()))) >= MIN_TABLE_ROWS
        first, tables = self.count, self.take() if worth else {}
        self._new_launches(part, line)
        completing = np.array([metric in _LAUNCH_METRICS for metric in columns.metrics], np.bool_)
        for at in np.flatnonzero(completing[rows.place]).tolist():
            row, name = int(rows.row[at]), int(rows.place[at])
            value = part.cells.text(row)
            self._complete(first + int(rows.launch[at]), columns.metrics[name], columns.units[name], value, line + row)
        for row, cells in part.rules.items():
            self._add_rule(first + int(part.launch[row]), Record(ROW, line + row, 1, "", cells))
        for row, name in empty_cells(part, rows):
            index, section = first + int(part.launch[row]), columns.sections[name] or None
            self.metrics.append((index, section, columns.metrics[name], line + row, columns.units[name], ""))
        return tables, wide_metrics(part, rows, self.numbers, first, line)

    def _new_launches(self, part: ParsedRows, line: int) -> None:
        """Add the launches of a part."""
        first, keys = self.count, _launch_keys(part)
        self.count += len(keys)
        self.indices.update(zip(keys, range(first, self.count), strict=True))
        lines, layout = (line + part.firsts).tolist(), self.layout
        self.launches.extend(first, lines, dict(zip(layout.identity, part.identity, strict=False)))
        for name, cells in zip(layout.ranges, part.identity[len(layout.identity) :], strict=True):
            launches = zip(range(first, self.count), lines, cells, strict=True)
            self.metrics += [(index, None, name, at, "", cell) for index, at, cell in launches if cell]

    def _printed(self, part: ParsedRows, columns: WideColumns, place: Int64s, line: int) -> NDArray[np.float64]:
        """Return the numbers of all rows in the printed units."""
        odd = np.flatnonzero(np.isnan(part.values) & (place >= 0))
        metrics = [columns.metrics[name] for name in place[odd].tolist()]
        raw = part.cells.texts(odd)
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
        """Add a row; return its record, rejected if the row is neither a metric nor a complete rule."""
        layout, cells = self.layout, record.cells
        if reason := layout.wrong(cells):
            return record._replace(kind=REJECT, reason=reason, text=record.text[:MAX_TEXT_CHARS])
        index = self._launch(record)
        if metric := cells[layout.metric]:
            self._add_metric(index, metric, record)
        else:
            self._add_rule(index, record)
        return record

    def _add_metric(self, index: int, metric: str, record: Record) -> None:
        layout, cells = self.layout, record.cells
        unit, value = cells[layout.unit], cells[layout.value]
        metric = ncu_launches.metric_name(metric)
        self.metrics.append((index, layout.section_of(cells), metric, record.line, unit, value))
        number = self.numbers[value]
        if number != number and not ncu_launches.is_text(metric):
            self._number(value, record.line)  # in the order of lines, so that a refusal names the first
        self._complete(index, metric, unit, value, record.line)

    def _complete(self, index: int, metric: str, unit: str, value: str, line: int) -> None:
        """Fill in the column of the launch that a metric gives."""
        found: object
        if metric in ncu_launches.DURATION_METRICS:
            number = self._number(value, line)
            column, found = "duration_ns", ncu_launches.duration_ns(number, unit, self.scales)
        elif metric in ncu_launches.DEVICE_NAME_METRICS:
            column, found = "device", value or None
        else:
            return
        if not self.launches.complete(index, column, found):
            raise BrokenInputError(
                f"line {line}: {metric!r} of a launch that stands far above: the rows of the launches are mixed, and"
                " its other rows were read already; sort the rows by process and ID"
            )

    def _number(self, cell: str, line: int) -> float:
        """Return the number of a cell; a cell that fails may be the first to show the thousands separator."""
        if self.numbers[cell] != self.numbers[cell]:
            self.evidence.add([cell], line)
            if (number_format := self.evidence.decide()) != self.numbers.number_format:
                self.numbers = Numbers(number_format)
        return self.numbers[cell]

    def _values(self, metrics: Sequence[str], raw: Sequence[str], lines: Sequence[int]) -> NDArray[np.float64]:
        """Return the numbers of the gathered cells."""
        values, numbers = self.numbers.many(raw), self.numbers
        for place in np.flatnonzero(np.isnan(values)).tolist():
            if not ncu_launches.is_text(metrics[place]):
                self._number(raw[place], lines[place])
        return values if self.numbers is numbers else self._values(metrics, raw, lines)

    def _metric_table(self) -> ColumnTable:
        index, section, metric, line, unit, raw = zip(*self.metrics, strict=True)
        values = self._values(metric, raw, line)
        rows = {"launch_index": index, "section": section, "metric": metric, "line": line}
        return ncu_launches.metric_table(rows, raw, unit, self.numbers, self.scales, values)

    def _add_rule(self, index: int, record: Record) -> None:
        layout, cells = self.layout, record.cells
        kind = cells[layout.kind] if layout.kind >= 0 else ""
        percent = _percent(cells[layout.estimate]) if layout.estimate >= 0 else None
        row: dict[str, object] = {
            "launch_index": index,
            "section": layout.section_of(cells),
            "rule": cells[layout.rule],
            "rule_type": cells[layout.rule_type] or None if layout.rule_type >= 0 else None,
            **ncu_launches.estimate_columns(kind, percent),
            "message": cells[layout.message] if layout.message >= 0 else "",
            "line": record.line,
        }
        for name, value in row.items():
            self.rules.setdefault(name, []).append(value)

    def take(self) -> dict[str, Table]:
        """Return the tables of the gathered rows and clear them."""
        tables: dict[str, Table] = {}
        if len(self.launches):
            tables["launches"] = self.launches.take()
        if self.metrics:
            tables["metrics"] = self._metric_table()
        if self.rules:
            tables["rules"] = ColumnTable.of_values("rules", self.rules)
        self._clear()
        return tables


class _Reader(ncu_launches.PageReader):
    """The reader of one file."""

    def __init__(self, text: Text) -> None:
        super().__init__(text, "details")
        self.page = _Page(_number_evidence(text))
        self.layout: Layout | None = None

    def batches(self) -> Iterator[Batch]:
        blocks = whole_launches(self.text.blocks(BLOCK_BYTES), BLOCK_BYTES)
        yield from read_blocks(
            blocks, self._plan, parse, self._take_part, self.take_lines, next_launch, check_each_line=True
        )
        for record in self.scanner.finish():
            yield from self.take_record(record)
        if tables := self.page.take():
            yield self.ledger.batch(tables)
        layout = ", ".join(dict.fromkeys(self.widths))
        yield self.ledger.last(self.text, "details", layout, self.page.numbers.number_format, self.page.count)

    def _plan(self) -> ColumnPlan | None:
        known = self.layout is not None and self.scanner.in_quoted_table and not self.repeated.by_lines
        return self.layout.plan if self.layout and known and self.page.numbers.number_format.decimal == "." else None

    def _take_part(self, part: ParsedRows) -> Generator[Batch, None, bool]:
        taken = self.page.take_part(part, self.line) if self.page.begins_with(part) else None
        if taken is None:
            return False
        self.pass_block(part.rows)
        yield self.ledger.batch(taken[0], wide=taken[1])
        return True

    def take_record(self, record: Record) -> Iterator[Batch]:
        """Take a header, a row or a line beside the table."""
        record = self.repeated.settle(record)
        if record.kind == HEADER:
            self.layout = Layout(record.cells)
            self.page.begin(self.layout)
            self.widths.append(f"{len(record.cells)} columns")
        elif record.kind == ROW:
            # A launch stays in one batch, because its last row may hold the duration.
            if self.page.full and self.page.is_new(record):
                yield self.ledger.batch(self.page.take())
            record = self.page.add(record)
        self.ledger.add(record)
        if self.ledger.full:
            yield self.ledger.batch({})


def _launch_keys(part: ParsedRows) -> list[tuple[str, str]]:
    """Return (process, ID) of each launch: the second and the first cell of its rows."""
    return list(zip(part.identity[1], part.identity[0], strict=True))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a details page in two passes; the first finds the number format."""
    with Text(stream) as text:
        yield from _Reader(text).batches()
