"""Reader of emissions.csv of CodeCarbon: the energy of each tracked run, one row per run."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import wrong_cell_count
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.records import split_cells
from profsvc.formats.parsing.timestamps import parse_timestamp
from profsvc.formats.telemetry.zeus import seconds_to_ns
from profsvc.formats.timeseries.columns import Column
from profsvc.formats.timeseries.sensor_log import LogReader
from profsvc.tables import Batch

NAME = "codecarbon"

TOOL = "CodeCarbon"
REQUIRED_COLUMNS = {"timestamp", "project_name", "duration", "emissions"}
RUN_ENERGY = ("run energy", "J", "kWh", "energy of a whole run, not a counter")
MEAN_POWER = ("mean power", "W", "W", "mean power of a whole run")
# Column -> quantity, unit, unit as written, note.
COLUMNS = {
    **dict.fromkeys(("cpu_energy", "gpu_energy", "ram_energy", "energy_consumed"), RUN_ENERGY),
    **dict.fromkeys(("cpu_power", "gpu_power", "ram_power"), MEAN_POWER),
}


def _header(line: str) -> list[str] | None:
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    return cells if set(cells) >= REQUIRED_COLUMNS and any(COLUMNS.get(cell) == RUN_ENERGY for cell in cells) else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the columns of CodeCarbon."""
    return _header(head_lines(head, 1)[0]) is not None


class _Reader(LogReader):
    """Sorts the lines of a log; each run is a range and a row."""

    def __init__(self) -> None:
        super().__init__(TOOL)
        self.header: list[str] = []
        self.values: list[int] = []
        self.clock: str | None = None

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                names = [name for name in COLUMNS if name in header]
                self.header, self.values = header, [header.index(name) for name in names]
                columns = [Column(name, "value", *COLUMNS[name][:3], note=COLUMNS[name][3]) for name in names]
                self.log.begin([Column("timestamp", "time"), *columns], number)
            self.log.skip()
        elif not line.strip() or not self.header:
            self.log.skip()
        elif line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
        else:
            self._add_run(number, line, split_cells(line))

    def _add_run(self, number: int, line: str, cells: list[str]) -> None:
        if len(cells) != len(self.header):
            self.log.reject(number, line, wrong_cell_count(len(cells), len(self.header)))
            return
        cell = dict(zip(self.header, cells, strict=True))
        end, duration = parse_timestamp(cell["timestamp"]), seconds_to_ns(cell["duration"])
        if end is None or duration is None or end[0] != (self.clock or end[0]):
            shown = f"timestamp {cell['timestamp']!r} or duration {cell['duration']!r}"
            self.log.reject(number, line, f"{shown} is not a time, or is of another clock than the rows above")
            return
        self.clock = end[0]
        values = [cells[place] for place in self.values]
        self.add_range(number, line, [cell["timestamp"], *values], cell["project_name"], end[1] - duration, duration)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the runs in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
