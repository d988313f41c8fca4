"""Reader of the raw page of Nsight Compute: one column a metric, a row of units, one row a launch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
from typing import BinaryIO

import numpy as np
import pandas as pd

from profsvc.errors import BrokenInputError
from profsvc.formats import ncu
from profsvc.formats.ncu_lines import HEADER, IDENTITY, REJECT, ROW, TEXT_LIMIT, UNITS, Record, page_in, records
from profsvc.formats.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.stream import Text, head_text
from profsvc.tables import Batch

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


def _number_format(text: Text) -> NumberFormat:
    evidence = Evidence()
    for record, layout in _layouts(text):
        if record.kind == ROW and layout is not None:
            cells = record.cells
            evidence.add([cells[place] for place in layout.proper], record.line)
            evidence.add_integers([cells[place] for place in layout.integers], record.line)
    return evidence.decide()


class _Page:
    """Gathers the rows of one table until they are worth a batch."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.scales = ncu.Scales()
        self.seen: set[tuple[str, str]] = set()
        self.rows: list[Record] = []
        self.launches = ncu.Launches()
        self.count = 0

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
        if layout.duration is not None:
            value, unit = self.numbers[cells[layout.duration]], layout.units[layout.duration]
            self.launches.complete(self.count, "duration_ns", ncu.duration_ns(value, unit, self.scales))
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
        first = self.count - len(rows)
        width = len(layout.places)
        pick = itemgetter(*layout.places) if width > 1 else lambda cells: tuple(cells[place] for place in layout.places)
        picked = [pick(row.cells) for row in rows]
        raw = list(chain.from_iterable(picked))
        # A column is of one kind, so nearly every column is read in one go; the table goes by rows.
        values = np.column_stack([self.numbers.many(column) for column in zip(*picked, strict=True)]).ravel()
        columns: dict[str, Sequence[object]] = {
            "launch_index": list(chain.from_iterable(repeat(first + n, width) for n in range(len(rows)))),
            "metric": layout.metrics * len(rows),
            "line": list(chain.from_iterable(repeat(row.line, width) for row in rows)),
        }
        units = layout.metric_units * len(rows)
        collected = [place for place, cell in enumerate(raw) if cell]
        if len(collected) < len(raw):
            columns = {name: [column[place] for place in collected] for name, column in columns.items()}
            raw, units = [raw[place] for place in collected], [units[place] for place in collected]
            values = values[collected]
        metrics = ncu.metric_table(columns, raw, units, self.numbers, self.scales, values)
        return {"launches": self.launches.take(), "metrics": metrics}


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a raw page; two walks over the file, because its number format is known only at its end."""
    with Text(stream) as text:
        number_format = _number_format(text)
        ledger, page, widths = ncu.Ledger(), _Page(Numbers(number_format)), []
        for record, layout in _layouts(text):
            if record.kind == HEADER and layout is not None:
                if tables := page.take():
                    yield ledger.batch(tables)
                page.begin(layout)
                widths.append(f"{len(record.cells)} columns")
            ledger.take(page.add(record) if record.kind == ROW else record)
            if len(page.rows) >= ncu.BATCH_LAUNCHES or ledger.full:
                yield ledger.batch(page.take())
        if tables := page.take():
            yield ledger.batch(tables)
        yield ledger.last(text, "raw", ", ".join(dict.fromkeys(widths)), number_format, page.count)
