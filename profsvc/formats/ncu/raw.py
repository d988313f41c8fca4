"""Reader of the raw page of Nsight Compute: one column per metric, a row of units, one row per launch."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.columnar.line_blocks import Floats, Letters, read_blocks
from profsvc.formats.ncu import launches as ncu_launches
from profsvc.formats.ncu.csv_lines import IDENTITY_COLUMNS, first_page_kind, records
from profsvc.formats.ncu.raw_blocks import Bounds, ColumnPlan, ParsedRows, parse
from profsvc.formats.parsing.numbers import NOT_NUMBERS, Evidence, Numbers
from profsvc.formats.parsing.records import HEADER, MAX_TEXT_CHARS, REJECT, ROW, UNITS, Record
from profsvc.formats.parsing.text import Text
from profsvc.tables import Batch, Table, Wide, WideColumns

MAX_BATCH_CELLS = 1 << 17
# Smaller than the blocks of traces, because the arrays of so many cells are several times as large. The first block
# holds little more than the header.
BLOCK_BYTES = 1 << 20
FIRST_BLOCK_BYTES = 1 << 16

_NO_UNITS = "the row of units after the header of the raw page is missing, so the values have no units"

NAME = "ncu-raw"


def sniff(head: bytes) -> bool:
    """Return whether the first table in ``head`` is a raw page."""
    return first_page_kind(head) == "raw"


@dataclass
class RawLayout:
    """The places of the columns of one table; ``units`` is empty until the row of units is read."""

    header: list[str]
    units: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Find the columns."""
        first = {name: place for place, name in reversed(list(enumerate(self.header)))}
        self.identity = {name: first[name] for name in IDENTITY_COLUMNS if name in first}
        known = set(self.identity.values())
        self.places = [place for place in range(len(self.header)) if place not in known]
        self.device = first.get(ncu_launches.DEVICE_NAME_METRICS[0])
        self.duration = first.get(ncu_launches.DURATION_METRICS[0])

    def set_units(self, cells: list[str], scales: ncu_launches.UnitScales) -> None:
        """Set the units of the columns."""
        self.units = cells
        units = [cells[place] for place in self.places]
        scaled = [scales[unit] for unit in units]
        self.columns = WideColumns(
            tuple(self.header[place] for place in self.places),
            tuple(units),
            tuple(si_unit for _, si_unit in scaled),
            np.array([factor for factor, _ in scaled], np.float64),
        )
        self.lists = np.array([metric in ncu_launches.LIST_METRICS for metric in self.columns.metrics], np.bool_)

    def after(self, record: Record, scales: ncu_launches.UnitScales) -> RawLayout:
        """Return the layout after ``record``."""
        if record.kind == HEADER:
            return RawLayout(record.cells)
        if record.kind == UNITS and self.header:
            self.set_units(record.cells, scales)
        elif record.kind == ROW and not self.units:
            raise BrokenInputError(f"line {record.line}: {_NO_UNITS}; {ncu_launches.EXPORT_HINT}")
        return self


def _number_evidence(text: Text, scales: ncu_launches.UnitScales) -> Evidence:
    """Return the evidence of the number format, read until it is settled."""
    evidence, layout = Evidence(), RawLayout([])
    for record in records(text.lines(), "raw"):
        layout = layout.after(record, scales)
        if record.kind == ROW:
            cells, header, units = record.cells, layout.header, layout.units
            proper = [place for place in layout.places if header[place] not in ncu_launches.LIST_METRICS]
            evidence.add([cells[place] for place in proper], record.line)
            whole = [place for place in layout.places if ncu_launches.holds_integers(header[place], units[place])]
            evidence.add_integers([cells[place] for place in whole], record.line)
        if evidence.settled:
            break
    return evidence


@dataclass
class _Cells:
    """The metric cells of consecutive launches with their numbers, and the identities of the launches."""

    lines: Sequence[int]
    identity: dict[str, list[str]]
    letters: Letters
    bounds: Bounds
    values: Floats

    @cached_property
    def text(self) -> bytes:
        """The bytes of all cells."""
        return self.letters.tobytes()

    def cell(self, launch: int, column: int) -> str:
        """Return the raw text of a cell."""
        begin, end = self.bounds[launch, column].tolist()
        return self.text[begin:end].decode()

    def missing(self) -> list[tuple[int, int]]:
        """Return (launch, column) of the nonempty cells without a number."""
        found = np.isnan(self.values)
        if not found.any():
            return []
        found &= self.bounds[:, :, 1] > self.bounds[:, :, 0]
        return [(launch, column) for launch, column in np.argwhere(found).tolist()]


def _gather_cells(rows: list[Record], layout: RawLayout) -> _Cells:
    """Return the cells of rows read line by line; their numbers are still NaN."""
    picked = [row.cells[place].encode() for row in rows for place in layout.places]
    sizes = np.fromiter(map(len, picked), np.int32, len(picked))
    ends = np.cumsum(sizes, dtype=np.int32)
    bounds = np.stack([ends - sizes, ends], axis=1).reshape(len(rows), len(layout.places), 2)
    identity = {name: [row.cells[place] for row in rows] for name, place in layout.identity.items()}
    letters = np.frombuffer(b"".join(picked), np.uint8)
    return _Cells([row.line for row in rows], identity, letters, bounds, np.full(bounds.shape[:2], np.nan))


class RawPage:
    """Turns rows into tables."""

    def __init__(self, evidence: Evidence, scales: ncu_launches.UnitScales) -> None:
        """Start a page whose number format ``evidence`` decides."""
        self.evidence = evidence
        self.numbers = Numbers(evidence.decide())
        self.scales = scales
        self.seen: set[tuple[str, str]] = set()
        self.rows: list[Record] = []
        self.count = 0

    def begin(self, layout: RawLayout) -> None:
        """Start a table."""
        self.layout = layout
        self.seen.clear()

    @property
    def full(self) -> bool:
        """Whether the gathered rows fill a batch."""
        return len(self.rows) * len(self.layout.places) >= MAX_BATCH_CELLS if self.rows else False

    def add(self, record: Record) -> Record:
        """Add a launch; return its record, rejected if the table already has this launch."""
        identity = self.layout.identity
        process = record.cells[identity["Process ID"]] if "Process ID" in identity else ""
        key = (process, record.cells[identity["ID"]])
        if key in self.seen:
            reason = f"launch {key[1]} of process {key[0]} occurs twice in this table"
            return record._replace(kind=REJECT, reason=reason, text=record.text[:MAX_TEXT_CHARS])
        self.seen.add(key)
        self.rows.append(record)
        return record

    def take(self) -> tuple[dict[str, Table], Wide | None]:
        """Return the tables of the gathered rows and clear them."""
        if not self.rows:
            return {}, None
        rows, self.rows, layout = self.rows, [], self.layout
        cells = _gather_cells(rows, layout)
        columns = list(zip(*([row.cells[place] for place in layout.places] for row in rows), strict=True))
        cells.values = self._numbers(columns, len(rows))
        while not self._settled(cells):
            cells.values = self._numbers(columns, len(rows))
        return self._tables(cells)

    def take_part(self, part: ParsedRows, line: int) -> tuple[dict[str, Table], Wide | None] | None:
        """Return the tables of a parsed block; None if it must be read line by line."""
        identity = dict(zip(self.layout.identity, part.identity, strict=True))
        keys = set(zip(identity.get("Process ID", [""] * part.rows), identity["ID"], strict=True))
        if len(keys) < part.rows or not self.seen.isdisjoint(keys):
            return None
        cells = _Cells(range(line, line + part.rows), identity, part.letters, part.bounds, part.values)
        for launch, column in np.argwhere(part.odd).tolist() if part.odd.any() else ():
            cells.values[launch, column] = self.numbers[cells.cell(launch, column)]
        if not self._settled(cells):
            return None
        self.seen |= keys
        return self._tables(cells)

    def _settled(self, cells: _Cells) -> bool:
        """Return whether the number format stays; cells without a number may show the thousands separator."""
        for launch, missing in groupby(cells.missing(), itemgetter(0)):
            columns = [column for _, column in missing if not self.layout.lists[column]]
            # Decided launch by launch, so that a refusal names the first line that contradicts.
            if self.evidence.add([cells.cell(launch, column) for column in columns], cells.lines[launch]):
                self.evidence.decide()
        number_format = self.evidence.decide()
        if number_format == self.numbers.number_format:
            return True
        # The first thousands separators of the file; no earlier number has any.
        self.numbers = Numbers(number_format)
        return False

    def _numbers(self, columns: Sequence[Sequence[str]], rows: int) -> Floats:
        """Return the numbers of columns, read column by column because a column has one kind of cells."""
        values = np.empty((rows, len(columns)))
        for place, column in enumerate(columns):
            values[:, place] = self.numbers.many(column)
        values[np.isinf(values)] = np.nan
        return values

    def _tables(self, cells: _Cells) -> tuple[dict[str, Table], Wide | None]:
        layout, first, rows = self.layout, self.count, len(cells.lines)
        self.count += rows
        launches = ncu_launches.LaunchTable()
        launches.extend(first, cells.lines, cells.identity)
        if layout.device is not None:
            column = layout.places.index(layout.device)
            launches.columns["device"] = [cells.cell(launch, column) or None for launch in range(rows)]
        if layout.duration is not None:
            durations = cells.values[:, layout.places.index(layout.duration)].tolist()
            unit = layout.units[layout.duration]
            launches.columns["duration_ns"] = [
                ncu_launches.duration_ns(value, unit, self.scales) for value in durations
            ]
        tables: dict[str, Table] = {"launches": launches.take()}
        return tables, self._wide(cells, first) if layout.places else None

    def _wide(self, cells: _Cells, first: int) -> Wide:
        columns, lists = self.layout.columns, self.layout.lists
        values = cells.values
        if lists.any():
            values[:, lists] = np.nan
        with np.errstate(over="ignore"):
            values *= columns.factors
        too_large = np.isinf(values)
        if too_large.any():
            values[too_large] = np.nan
        reasons = {}
        for launch, column in cells.missing():
            reason = self.numbers.reason(cells.cell(launch, column))
            told = not lists[column] or reason in NOT_NUMBERS.values()
            reasons[launch, column] = reason if told else "text"
        lines = np.asarray(cells.lines, np.int64)
        return Wide(columns, first, lines, cells.letters, cells.bounds, values, reasons)


class _Reader(ncu_launches.PageReader):
    """The reader of one file."""

    def __init__(self, text: Text, evidence: Evidence, scales: ncu_launches.UnitScales) -> None:
        super().__init__(text, "raw")
        self.scales, self.page, self.layout = scales, RawPage(evidence, scales), RawLayout([])

    def batches(self) -> Iterator[Batch]:
        blocks = self.text.blocks(BLOCK_BYTES, FIRST_BLOCK_BYTES)
        yield from read_blocks(blocks, self._plan, parse, self._take_part, self.take_lines, check_each_line=True)
        for record in self.scanner.finish():
            yield from self.take_record(record)
        yield from self._rest()
        layout = ", ".join(dict.fromkeys(self.widths))
        missing = "" if self.page.count or self.layout.units else f"{_NO_UNITS}; {ncu_launches.EXPORT_HINT}"
        yield self.ledger.last(self.text, "raw", layout, self.page.numbers.number_format, self.page.count, missing)

    def _plan(self) -> ColumnPlan | None:
        layout, number_format = self.layout, self.page.numbers.number_format
        known = self.scanner.in_quoted_table and layout.units and layout.places and not self.repeated.by_lines
        if not (known and number_format.decimal == "."):
            return None
        return ColumnPlan(len(layout.header), list(layout.identity.values()), layout.places, number_format)

    def _take_part(self, part: ParsedRows) -> Generator[Batch, None, bool]:
        yield from self._rest()
        taken = self.page.take_part(part, self.line)
        if taken is None:
            return False
        self.pass_block(part.rows)
        yield self.ledger.batch(taken[0], wide=taken[1])
        return True

    def take_record(self, record: Record) -> Iterator[Batch]:
        """Take a header, a row or a line beside the table."""
        self.layout = self.layout.after(record, self.scales)
        record = self.repeated.settle(record)
        if record.kind == HEADER:
            yield from self._rest()
            self.page.begin(self.layout)
            self.widths.append(f"{len(record.cells)} columns")
        self.ledger.add(self.page.add(record) if record.kind == ROW else record)
        if self.page.full or self.ledger.full:
            tables, wide = self.page.take()
            yield self.ledger.batch(tables, wide=wide)

    def _rest(self) -> Iterator[Batch]:
        """Yield the rows gathered line by line."""
        tables, wide = self.page.take()
        if tables:
            yield self.ledger.batch(tables, wide=wide)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a raw page in two passes; the first finds the number format."""
    scales = ncu_launches.UnitScales()
    with Text(stream) as text:
        yield from _Reader(text, _number_evidence(text, scales), scales).batches()
