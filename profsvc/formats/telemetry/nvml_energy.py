"""Reader of logs of the NVML energy counter: a CSV with a time column and columns whose names carry their units."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import TimestampParser
from profsvc.formats.timeseries.columns import Column, si_scale
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "nvml-energy"

TOOL = "NVML"
TIME_UNITS = {"unix_s": "s", "unix_ms": "ms", "unix_us": "us", "unix_ns": "ns"}
# Column -> quantity, unit, whether its values are whole numbers.
COLUMNS = {
    "energy_mj": ("energy", "mJ", True),
    "energy_j": ("energy", "J", False),
    "power_mw": ("power", "mW", True),
    "power_w": ("power", "W", False),
    "temp_c": ("temperature", "C", True),
}
NOTES = {"energy": "a counter since the driver was loaded: take differences"}


def _column(name: str) -> Column:
    if name in TIME_UNITS:
        return Column(name, "time")
    if name == "gpu":
        return Column(name, "gpu")
    quantity, token, whole = COLUMNS[name]
    found = si_scale(token)
    return Column(name, "value", quantity, found[1] if found else "1", token, whole, NOTES.get(quantity, ""))


def _header(line: str) -> list[str] | None:
    if line[:1].isdigit():
        return None
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    times, values = [cell for cell in cells if cell in TIME_UNITS], [cell for cell in cells if cell in COLUMNS]
    known = len(times) + len(values) + cells.count("gpu") == len(cells) == len(set(cells))
    return cells if len(times) == 1 and values and known else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with a header of a time since 1970 and of NVML readings."""
    return _header(head_lines(head)[0]) is not None


class _Reader(LogReader):
    """Sorts the lines of a log into headers and rows."""

    def __init__(self) -> None:
        super().__init__(TOOL)

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if [column.name for column in self.log.columns] != header:
                self.log.flush()
                unit = next(TIME_UNITS[cell] for cell in header if cell in TIME_UNITS)
                self.log.clock = TimestampParser(unit=unit, kind=self.log.clock.kind)
                self.log.begin([_column(name) for name in header], number)
                self.log.facts["layout"] = f"{len(header)} columns"
            self.log.skip()
        elif not line.strip() or not self.log.columns:
            self.log.skip()
        else:
            self.log.row(number, line.rstrip("\r\n").split(","), line)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
