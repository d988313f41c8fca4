"""Reader of the raw page of Nsight Compute: one column a metric, a row of units, one row a launch."""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO

import numpy as np
import pandas as pd

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.blocks import SMALL_BLOCK, Letters, ahead, cut, lines_of
from profsvc.formats.ncu_lines import (
    HEADER,
    IDENTITY,
    REJECT,
    ROW,
    TEXT_LIMIT,
    UNITS,
    Record,
    Scanner,
    page_in,
    records,
)
from profsvc.formats.ncu_raw_blocks import Bounds, Floats, Part, Plan, parse
from profsvc.formats.numbers import NOT_NUMBERS, Evidence, Numbers
from profsvc.formats.stream import Text
from profsvc.tables import Batch, Wide, WideColumns

BATCH_CELLS = 1 << 17
# Smaller than those of traces: what is made of so many cells is several times as large, and new memory costs most.
# The first holds little more than the header.
BLOCK = 1 << 20
FIRST_BLOCK = 1 << 16

NAME = "ncu-raw"
PAGE = """\
The raw page of Nsight Compute: every metric of every launch, one row a launch.

Make it from a report, or directly while profiling:
    ncu --set full -o REPORT PROGRAM && LC_ALL=C ncu -i REPORT.ncu-rep --csv --page raw --print-units base > FILE
    LC_ALL=C ncu --csv --page raw --set full PROGRAM > FILE
Scaled units (without --print-units base) are read as well, but hold fewer digits.

Taken: every launch with its kernel, device, grid, block and gpu__time_duration.sum; every cell of every metric as it
came, with its unit, and as a number in SI units. An empty cell was not collected and gives no row. A cell that is not
a number (n/a, no data, text) gives a row without value and with the reason. Banners and the output of the program
around the table are skipped and counted.

Example:
    ==PROF== Connected to process 4711 (saxpy)
    "ID","Process ID","Process Name","Host Name","Kernel Name",...,"CC","dram__bytes_read.sum","gpu__time_duration.sum"
    "","","","","",...,"","byte","ns"
    "0","4711","saxpy","127.0.0.1","saxpy(const float *, float *)",...,"9.0","268,435,456","131,072"
    "1","4711","saxpy","127.0.0.1","saxpy(const float *, float *)",...,"9.0","268,435,456","130,848"
"""


def sniff(head: bytes) -> bool:
    """Tell whether the first table in ``head`` is a raw page."""
    return page_in(head) == "raw"


@dataclass
class _Layout:
    """Where the columns of one table stand; ``units`` is empty until the row of units came."""

    header: list[str]
    units: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = {name: place for place, name in reversed(list(enumerate(self.header)))}
        self.identity = {name: first[name] for name in IDENTITY if name in first}
        known = set(self.identity.values())
        self.places = [place for place in range(len(self.header)) if place not in known]
        self.device = first.get(ncu.DEVICE_NAMES[0])
        self.duration = first.get(ncu.DURATIONS[0])

    def set_units(self, cells: list[str], scales: ncu.Scales) -> None:
        """Take the row of units."""
        self.units = cells
        units = [cells[place] for place in self.places]
        scaled = [scales[unit] for unit in units]
        self.columns = WideColumns(
            tuple(self.header[place] for place in self.places),
            tuple(units),
            tuple(si_unit for _, si_unit in scaled),
            np.array([factor for factor, _ in scaled], np.float64),
        )
        self.lists = np.array([metric in ncu.LISTS for metric in self.columns.metrics], np.bool_)

    def after(self, record: Record, scales: ncu.Scales) -> "_Layout":
        """Return the layout that holds after a record."""
        if record.kind == HEADER:
            return _Layout(record.cells)
        if record.kind == UNITS and self.header:
            self.set_units(record.cells, scales)
        elif record.kind == ROW and not self.units:
            raise BrokenInputError(
                f"line {record.line}: a row of units must follow the header of a raw page, but a launch does, "
                f"so its values have no units; {ncu.EXPORT_AGAIN}"
            )
        return self


def _evidence(text: Text, scales: ncu.Scales) -> Evidence:
    """Walk the file until its cells tell how it marks decimals."""
    evidence, layout = Evidence(), _Layout([])
    for record in records(text.lines(), "raw"):
        layout = layout.after(record, scales)
        if record.kind == ROW:
            cells, header, units = record.cells, layout.header, layout.units
            proper = [place for place in layout.places if header[place] not in ncu.LISTS]
            evidence.add([cells[place] for place in proper], record.line)
            whole = [place for place in layout.places if ncu.holds_integers(header[place], units[place])]
            evidence.add_integers([cells[place] for place in whole], record.line)
        if evidence.settled:
            break
    return evidence


@dataclass
class _Cells:
    """The cells of metrics of launches that follow each other, with the numbers read of them, and the identities."""

    lines: Sequence[int]
    identity: dict[str, list[str]]
    letters: Letters
    bounds: Bounds
    values: Floats

    @cached_property
    def text(self) -> bytes:
        """All letters."""
        return self.letters.tobytes()

    def cell(self, launch: int, column: int) -> str:
        """Return a cell as it came."""
        begin, end = self.bounds[launch, column].tolist()
        return self.text[begin:end].decode()

    def missing(self) -> list[tuple[int, int]]:
        """Return the cells that are collected but no number."""
        found = np.isnan(self.values)
        if not found.any():
            return []
        found &= self.bounds[:, :, 1] > self.bounds[:, :, 0]
        return [(launch, column) for launch, column in np.argwhere(found).tolist()]


def _cells_of(rows: list[Record], layout: _Layout) -> _Cells:
    """Lay out the cells of rows that came one by one; their numbers are not read yet."""
    picked = [row.cells[place].encode() for row in rows for place in layout.places]
    sizes = np.fromiter(map(len, picked), np.int32, len(picked))
    ends = np.cumsum(sizes, dtype=np.int32)
    bounds = np.stack([ends - sizes, ends], axis=1).reshape(len(rows), len(layout.places), 2)
    identity = {name: [row.cells[place] for row in rows] for name, place in layout.identity.items()}
    letters = np.frombuffer(b"".join(picked), np.uint8)
    return _Cells([row.line for row in rows], identity, letters, bounds, np.full(bounds.shape[:2], np.nan))


class _Page:
    """Turns rows into tables."""

    def __init__(self, evidence: Evidence, scales: ncu.Scales) -> None:
        self.evidence = evidence
        self.numbers = Numbers(evidence.decide())
        self.scales = scales
        self.seen: set[tuple[str, str]] = set()
        self.rows: list[Record] = []
        self.count = 0

    def begin(self, layout: _Layout) -> None:
        """Begin a table."""
        self.layout = layout
        self.seen.clear()

    @property
    def full(self) -> bool:
        """Whether the rows gathered are worth a batch."""
        return len(self.rows) * len(self.layout.places) >= BATCH_CELLS if self.rows else False

    def add(self, record: Record) -> Record:
        """Take a launch; give back the record, rejected if its launch is already there."""
        identity = self.layout.identity
        process = record.cells[identity["Process ID"]] if "Process ID" in identity else ""
        key = (process, record.cells[identity["ID"]])
        if key in self.seen:
            reason = f"launch {key[1]} of process {key[0]} stands twice in this table"
            return record._replace(kind=REJECT, reason=reason, text=record.text[:TEXT_LIMIT])
        self.seen.add(key)
        self.rows.append(record)
        return record

    def take(self) -> tuple[dict[str, pd.DataFrame], Wide | None]:
        """Return the tables of the rows gathered, and begin anew."""
        if not self.rows:
            return {}, None
        rows, self.rows, layout = self.rows, [], self.layout
        cells = _cells_of(rows, layout)
        columns = list(zip(*([row.cells[place] for place in layout.places] for row in rows), strict=True))
        cells.values = self._numbers(columns, len(rows))
        while not self._settled(cells):
            cells.values = self._numbers(columns, len(rows))
        return self._tables(cells)

    def take_part(self, part: Part, line: int) -> tuple[dict[str, pd.DataFrame], Wide | None] | None:
        """Return the tables of rows that were read at once; None if they need a closer look."""
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
        """Tell whether the cells that are no numbers are so for good: they may show how the file marks thousands."""
        for launch, column in cells.missing():
            if not self.layout.lists[column]:
                self.evidence.add([cells.cell(launch, column)], cells.lines[launch])
        number_format = self.evidence.decide()
        if number_format == self.numbers.number_format:
            return True
        # Signs of thousands came up: no number before them had any.
        self.numbers = Numbers(number_format)
        return False

    def _numbers(self, columns: Sequence[Sequence[str]], rows: int) -> Floats:
        """Return the numbers of columns; a column is of one kind, so nearly every one is read in one go."""
        values = np.empty((rows, len(columns)))
        for place, column in enumerate(columns):
            values[:, place] = self.numbers.many(column)
        values[np.isinf(values)] = np.nan
        return values

    def _tables(self, cells: _Cells) -> tuple[dict[str, pd.DataFrame], Wide | None]:
        layout, first, rows = self.layout, self.count, len(cells.lines)
        self.count += rows
        launches = ncu.Launches()
        launches.extend(first, cells.lines, cells.identity)
        if layout.device is not None:
            column = layout.places.index(layout.device)
            launches.columns["device"] = [cells.cell(launch, column) or None for launch in range(rows)]
        if layout.duration is not None:
            durations = cells.values[:, layout.places.index(layout.duration)].tolist()
            unit = layout.units[layout.duration]
            launches.columns["duration_ns"] = [ncu.duration_ns(value, unit, self.scales) for value in durations]
        tables = {"launches": launches.take()}
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


class _Walk:
    """The second walk: plain blocks at once, all others line by line."""

    def __init__(self, text: Text, evidence: Evidence, scales: ncu.Scales) -> None:
        self.text, self.scales = text, scales
        self.ledger, self.page, self.scanner = ncu.Ledger(), _Page(evidence, scales), Scanner("raw")
        self.layout = _Layout([])
        self.widths: list[str] = []
        self.line = 1

    def batches(self) -> Iterator[Batch]:
        for block, plan, part in ahead(self.text.blocks(BLOCK, FIRST_BLOCK), self._plan, parse):
            tried = plan is not None and plan == self._plan()
            yield from self._closer(bytes(block), part if tried else None, tried)
        for record in self.scanner.finish():
            yield from self._record(record)
        yield from self._rest()
        layout = ", ".join(dict.fromkeys(self.widths))
        yield self.ledger.last(self.text, "raw", layout, self.page.numbers.number_format, self.page.count)

    def _plan(self) -> Plan | None:
        layout, number_format = self.layout, self.page.numbers.number_format
        if not (self.scanner.in_quoted_table and layout.units and layout.places and number_format.decimal == "."):
            return None
        return Plan(len(layout.header), list(layout.identity.values()), layout.places, number_format)

    def _closer(self, block: bytes, part: Part | None = None, tried: bool = False) -> Iterator[Batch]:
        """Read what is plain of a block at once, and the rest of it line by line; ``tried`` if ``part`` is its part."""
        while block:
            plan = self._plan()
            if plan and not tried:
                part = parse(block, plan)
            if part:
                yield from self._rest()
                if batch := self._take(part):
                    yield batch
                    return
            part, tried = None, False
            end = cut(block, halve=plan is not None, small=SMALL_BLOCK)
            if plan and end < len(block):
                yield from self._closer(block[:end])
            else:
                end = yield from self._lines(block[:end], until_plan=plan is None)
            block = block[end:]

    def _lines(self, block: bytes, until_plan: bool) -> Generator[Batch, None, int]:
        """Read line by line, perhaps only until what follows may be read at once; return where that is."""
        end = 0
        for line in lines_of(block):
            for record in self.scanner.feed(self.line, line):
                yield from self._record(record)
            self.line += 1
            end = block.find(b"\n", end) + 1 or len(block)
            if until_plan and self._plan():
                break
        return end

    def _take(self, part: Part) -> Batch | None:
        """Return the batch of a part; None if it needs a closer look."""
        taken = self.page.take_part(part, self.line)
        if taken is None:
            return None
        for record in self.scanner.rows_follow():
            self.ledger.take(record)
        self.ledger.stored += part.rows
        self.line += part.rows
        return self.ledger.batch(taken[0], wide=taken[1])

    def _record(self, record: Record) -> Iterator[Batch]:
        self.layout = self.layout.after(record, self.scales)
        if record.kind == HEADER:
            yield from self._rest()
            self.page.begin(self.layout)
            self.widths.append(f"{len(record.cells)} columns")
        self.ledger.take(self.page.add(record) if record.kind == ROW else record)
        if self.page.full or self.ledger.full:
            tables, wide = self.page.take()
            yield self.ledger.batch(tables, wide=wide)

    def _rest(self) -> Iterator[Batch]:
        """Yield the rows that were gathered one by one."""
        tables, wide = self.page.take()
        if tables:
            yield self.ledger.batch(tables, wide=wide)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a raw page; a first walk finds how the file marks decimals."""
    scales = ncu.Scales()
    with Text(stream) as text:
        yield from _Walk(text, _evidence(text, scales), scales).batches()
