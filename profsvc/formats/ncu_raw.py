"""Reader of the raw page of Nsight Compute: one column a metric, a row of units, one row a launch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.blocks import NotPlainError, look_plain, must, plain_floats
from profsvc.formats.ncu_lines import HEADER, IDENTITY, REJECT, ROW, TEXT_LIMIT, UNITS, Record, page_in, records
from profsvc.formats.numbers import NOT_NUMBERS, Evidence, Numbers
from profsvc.formats.stream import Text, head_text
from profsvc.tables import Batch, frame_of_arrays

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]

BATCH_CELLS = 1 << 17

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
    return page_in(head_text(head)) == "raw"


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
        self.metrics = [self.header[place] for place in self.places]
        self.duration = first.get(ncu.DURATIONS[0])
        self.device = first.get(ncu.DEVICE_NAMES[0])
        self.integers: list[int] = []
        self.proper: list[int] = []

    def set_units(self, cells: list[str]) -> None:
        self.units = cells
        self.metric_units = [cells[place] for place in self.places]
        self.proper = [place for place in self.places if self.header[place] not in ncu.LISTS]
        self.integers = [place for place in self.places if ncu.holds_integers(self.header[place], cells[place])]


def _layouts(text: Text) -> Iterator[tuple[Record, _Layout | None]]:
    """Yield the records of the file, each with the layout of its table."""
    layout: _Layout | None = None
    for record in records(text.lines(), "raw"):
        if record.kind == HEADER:
            layout = _Layout(record.cells)
        elif record.kind == UNITS and layout is not None:
            layout.set_units(record.cells)
        elif record.kind == ROW and layout is not None and not layout.units:
            raise BrokenInputError(
                f"line {record.line}: a row of units must follow the header of a raw page, but a launch does, "
                f"so its values have no units; {ncu.EXPORT_AGAIN}"
            )
        yield record, layout


def _evidence(text: Text) -> Evidence:
    """Walk the file until its cells tell how it marks decimals."""
    evidence = Evidence()
    for record, layout in _layouts(text):
        if record.kind == ROW and layout is not None:
            cells = record.cells
            evidence.add([cells[place] for place in layout.proper], record.line)
            evidence.add_integers([cells[place] for place in layout.integers], record.line)
        if evidence.settled:
            break
    return evidence


class _Page:
    """Gathers the rows of one table until they are worth a batch."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.numbers = Numbers(evidence.decide())
        self.scales = ncu.Scales()
        self.seen: set[tuple[str, str]] = set()
        self.rows: list[Record] = []
        self.launches = ncu.Launches()
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether the rows gathered are worth a batch."""
        return len(self.rows) * len(self.layout.places) >= BATCH_CELLS if self.rows else False

    def begin(self, layout: _Layout) -> None:
        self.layout = layout
        self.seen.clear()

    def add(self, record: Record) -> Record:
        """Take a launch; give back the record, rejected if its launch is already there."""
        layout, cells = self.layout, record.cells
        identity = {name: cells[place] for name, place in layout.identity.items()}
        key = (identity.get("Process ID", ""), identity["ID"])
        if key in self.seen:
            reason = f"launch {key[1]} of process {key[0]} stands twice in this table"
            return record._replace(kind=REJECT, reason=reason, text=record.text[:TEXT_LIMIT])
        self.seen.add(key)
        self.launches.add(self.count, record.line, identity)
        if layout.device is not None:
            self.launches.complete(self.count, "device", cells[layout.device] or None)
        self.rows.append(record)
        self.count += 1
        return record

    def take(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the rows gathered, and begin anew."""
        if not self.rows:
            return {}
        rows, self.rows, layout = self.rows, [], self.layout
        count, width = len(rows), len(layout.places)
        if not width:
            return {"launches": self.launches.take()}
        pick = itemgetter(*layout.places) if width > 1 else lambda cells: (cells[layout.places[0]],)
        picked = [pick(row.cells) for row in rows]
        values, reasons = self._read(rows, layout, list(zip(*picked, strict=True)))
        first = self.count - count
        self._durations(first, layout, values)
        raw = np.empty(count * width, object)
        raw[:] = list(chain.from_iterable(picked))
        scaled = [self.scales[unit] for unit in layout.metric_units]
        known = ~np.isnan(values)
        with np.errstate(over="ignore"):
            values *= np.array([factor for factor, _ in scaled])
        values[~np.isfinite(values)] = np.nan
        for row, place in np.argwhere(known & np.isnan(values)).tolist():
            reasons[row * width + place] = self.numbers.reason(picked[row][place])
        si_units = np.tile(np.array([si_unit for _, si_unit in scaled], object), count)
        si_units[pd.notna(reasons)] = None
        columns = {
            "launch_index": np.repeat(np.arange(first, first + count), width),
            "metric": np.tile(np.array(layout.metrics, object), count),
            "raw_text": raw,
            "unit": np.tile(np.array(layout.metric_units, object), count),
            "value": values.ravel(),
            "si_unit": si_units,
            "reason": reasons,
            "line": np.repeat(np.array([row.line for row in rows], np.int64), width),
        }
        collected = raw != ""
        if not collected.all():
            columns = {name: column[collected] for name, column in columns.items()}
        metrics = frame_of_arrays("metrics", len(columns["line"]), columns)
        return {"launches": self.launches.take(), "metrics": metrics}

    def _read(self, rows: list[Record], layout: _Layout, columns: list[Sequence[str]]) -> tuple[Floats, Objects]:
        """Return the numbers, a row a launch, and in the order of the cells why some have none."""
        while True:
            values = self._numbers(columns)
            missing = np.argwhere(np.isnan(values)).tolist()
            proper = set(layout.proper)
            for row, place in missing:
                if layout.places[place] in proper:
                    self.evidence.add([columns[place][row]], rows[row].line)
            number_format = self.evidence.decide()
            if number_format == self.numbers.number_format:
                break
            # Signs of thousands came up: no number before them had any.
            self.numbers = Numbers(number_format)
        reasons = np.full(values.size, None, object)
        for row, place in missing:
            reasons[row * len(columns) + place] = self.numbers.reason(columns[place][row])
        for place in [place for place, metric in enumerate(layout.metrics) if metric in ncu.LISTS]:
            values[:, place] = np.nan
            told = reasons[place :: len(columns)]
            told[:] = [reason if reason in NOT_NUMBERS.values() else "text" for reason in told]
        return values, reasons

    def _numbers(self, columns: list[Sequence[str]]) -> Floats:
        """Return the numbers of columns; a column is of one kind, so nearly every one is read in one go."""
        values = np.empty((len(columns[0]), len(columns)))
        points = self.numbers.number_format.decimal == "."
        plain = [place for place, column in enumerate(columns) if points and look_plain(column)]
        others = list(range(len(columns)))
        try:
            must(bool(plain))
            read = plain_floats(list(chain.from_iterable(columns[place] for place in plain)))
            values[:, plain] = read.reshape(len(plain), -1).T
            others = sorted(set(others) - set(plain))
        except NotPlainError:
            pass
        for place in others:
            values[:, place] = self.numbers.many(columns[place])
        return values

    def _durations(self, first: int, layout: _Layout, values: Floats) -> None:
        if layout.duration is not None:
            unit = layout.units[layout.duration]
            for index, value in enumerate(values[:, layout.places.index(layout.duration)].tolist(), first):
                self.launches.complete(index, "duration_ns", ncu.duration_ns(value, unit, self.scales))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a raw page; a first walk finds how the file marks decimals."""
    with Text(stream) as text:
        ledger, page, widths = ncu.Ledger(), _Page(_evidence(text)), []
        for record, layout in _layouts(text):
            if record.kind == HEADER and layout is not None:
                if tables := page.take():
                    yield ledger.batch(tables)
                page.begin(layout)
                widths.append(f"{len(record.cells)} columns")
            ledger.take(page.add(record) if record.kind == ROW else record)
            if page.full or ledger.full:
                yield ledger.batch(page.take())
        if tables := page.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "raw", ", ".join(dict.fromkeys(widths)), page.numbers.number_format, page.count)
