"""Reader of emissions.csv of CodeCarbon: the energy of each tracked run, one row per run.

Each flush(), and each further stop(), adds a row with the totals since the start of the same run. Only the last of
these rows is the energy of the run; the rows before become sensors of another quantity, so that no sum counts twice.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from profsvc.errors import wrong_cell_count
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.records import split_cells
from profsvc.formats.parsing.timestamps import SECOND, parse_timestamp
from profsvc.formats.telemetry.zeus import seconds_to_ns
from profsvc.formats.timeseries.columns import Column
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "codecarbon"

TOOL = "CodeCarbon"
REQUIRED_COLUMNS = {"timestamp", "project_name", "duration", "emissions"}
RUN_ENERGY = ("run energy", "J", "kWh", "energy of a whole run, not a counter")
MEAN_POWER = ("mean power", "W", "W", "mean power of a whole run")
SO_FAR = "a later row of the same run includes this one: do not add them up"
# Column -> quantity, unit, unit as written, note.
COLUMNS = {
    **dict.fromkeys(("cpu_energy", "gpu_energy", "ram_energy", "energy_consumed"), RUN_ENERGY),
    **dict.fromkeys(("cpu_power", "gpu_power", "ram_power"), MEAN_POWER),
}
PARTS = ("cpu_energy", "gpu_energy", "ram_energy")
# Rows that wait for a later row of their run.
MAX_WAITING = 20_000
STORED_BEFORE = (
    "it includes line {} of the same run, more than {} rows before, whose energy is stored as that of the whole run"
)
# Timestamps are whole seconds, taken a moment after the duration.
START_TOLERANCE_NS = 2 * SECOND


def _header(line: str) -> list[str] | None:
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    return cells if set(cells) >= REQUIRED_COLUMNS and any(COLUMNS.get(cell) == RUN_ENERGY for cell in cells) else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the columns of CodeCarbon."""
    return _header(head_lines(head, 1)[0]) is not None


@dataclass
class _Row:
    """A row of the file; ``so_far`` if a later row of its run includes it."""

    number: int
    line: str
    cells: Sequence[str]
    name: str
    start_ns: int
    duration_ns: int
    energies: Sequence[float]
    so_far: bool = False
    is_stored: bool = False

    def is_included_in(self, later: "_Row") -> bool:
        """Tell whether a later row of the run counts from the same start, not from the end of this row."""
        grown = zip((*self.energies, self.duration_ns), (*later.energies, later.duration_ns), strict=True)
        late = later.start_ns - self.start_ns
        return all(new >= old for old, new in grown) and late < max(self.duration_ns, START_TOLERANCE_NS)


class _Reader(LogReader):
    """Sorts the lines of a log; each run is a range and a row."""

    def __init__(self) -> None:
        super().__init__(TOOL)
        self.header: list[str] = []
        self.header_line = 0
        self.values: list[int] = []
        self.clock: str | None = None
        self._waiting: deque[_Row] = deque()
        self._last_of_run: dict[str, _Row] = {}
        self._is_so_far: bool | None = None

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                self._store_all()
                self._last_of_run.clear()
                self.header, self.header_line, self._is_so_far = header, number, None
                self.values = [header.index(name) for name in COLUMNS if name in header]
                self._begin(so_far=False)
            self.log.skip()
        elif not line.strip() or not self.header:
            self.log.skip()
        elif line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
        else:
            self._add_run(number, line, split_cells(line))

    def _begin(self, so_far: bool) -> None:
        """Begin rows that are whole runs, or ``so_far`` rows."""
        if so_far == self._is_so_far:
            return
        self._is_so_far = so_far
        # Rows that are equal but for their duration are different rows.
        columns = [Column("line", "field"), Column("timestamp", "time")]
        for place in self.values:
            quantity, unit, token, note = COLUMNS[self.header[place]]
            quantity, note = (f"{quantity} so far", SO_FAR) if so_far else (quantity, note)
            columns.append(Column(self.header[place], "value", quantity, unit, token, note=note))
        self.log.begin(columns, self.header_line)

    def _add_run(self, number: int, line: str, cells: list[str]) -> None:
        if len(cells) != len(self.header) and not self._is_shortened(line, cells):
            self.log.reject(number, line, wrong_cell_count(len(cells), len(self.header)))
            return
        cell = dict(zip(self.header, cells, strict=False))
        end, duration = parse_timestamp(cell["timestamp"]), seconds_to_ns(cell["duration"])
        if end is None or duration is None or end[0] != (self.clock or end[0]):
            shown = f"timestamp {cell['timestamp']!r} or duration {cell['duration']!r}"
            self.log.reject(number, line, f"{shown} is not a time, or is of another clock than the rows above")
            return
        self.clock = end[0]
        values = [cells[place] for place in self.values]
        energies = [_number(cell.get(name, "")) for name in (*PARTS, "energy_consumed")]
        name = cell.get("task_name") or cell["project_name"]
        row = _Row(number, line, [str(number), cell["timestamp"], *values], name, end[1] - duration, duration, energies)
        # The rows of tasks are separate; before run_id, each run had an experiment_id of its own.
        run = "" if "task_name" in cell else cell.get("run_id") or cell.get("experiment_id", "")
        before = self._last_of_run.get(run) if run else None
        if before and before.is_included_in(row):
            if before.is_stored:
                self.log.reject(number, line, STORED_BEFORE.format(before.number, MAX_WAITING))
                return
            before.so_far = True
        self._last_of_run[run] = row
        self._waiting.append(row)
        if len(self._waiting) > MAX_WAITING:
            self._store_first()

    def _is_shortened(self, line: str, cells: list[str]) -> bool:
        """Tell whether a row lacks empty cells behind its energies: CodeCarbon leaves them out of rows that it appends.

        The total shows that the energies are in their places.
        """
        places = [self.header.index(name) for name in (*PARTS, "energy_consumed") if name in self.header]
        used = [*places, *self.values, *(self.header.index(name) for name in REQUIRED_COLUMNS)]
        if len(places) <= len(PARTS) or not max(used) < len(cells) < len(self.header) or not line.endswith("\n"):
            return False
        *parts, total = (_number(cells[place]) for place in places)
        return math.isclose(sum(parts), total, rel_tol=1e-9)

    def _store_first(self) -> None:
        row = self._waiting.popleft()
        row.is_stored = True
        self._begin(row.so_far)
        if row.so_far:
            self.log.row(row.number, row.cells, row.line)
        else:
            self.add_range(row.number, row.line, row.cells, row.name, row.start_ns, row.duration_ns)

    def _store_all(self) -> None:
        while self._waiting:
            self._store_first()

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest, the sensors and the facts of the file."""
        self._store_all()
        yield from super().last(encoding)


def _number(cell: str) -> float:
    """Return the number in a cell; 0 if it has none."""
    try:
        return float(cell)
    except ValueError:
        return 0.0


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the runs in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
