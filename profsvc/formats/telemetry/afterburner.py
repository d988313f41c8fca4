"""Reader of MSI Afterburner hardware monitoring logs (HardwareMonitoring.hml)."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.timeseries.columns import Column, si_scale, unknown_column
from profsvc.formats.timeseries.labels import unit_of
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "afterburner"

TOOL = "MSI Afterburner"
VERSION, DEVICES, NAMES, UNIT, ROW = "00", "01", "02", "03", "80"
_FIRST = re.compile(r"00, ?[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9:]{8}, ?Hardware monitoring log v(?P<version>[0-9.]{1,9})")
_SECOND = re.compile(r"01, ?[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9:]{8}, ?[^,]+")
_STAMP = re.compile(r"([0-9]{2})-([0-9]{2})-([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2})")
_GPU = re.compile(r"GPU([1-9][0-9]?) ")
# Unit as printed -> quantity, unit in units.csv.
UNITS = {
    "W": ("power", "W"),
    "MHz": ("clock", "MHz"),
    "%": ("fraction", "%"),
    "MB": ("memory", "MiB"),
    "RPM": ("rotation", "RPM"),
    "V": ("voltage", "V"),
    "mV": ("voltage", "mV"),
    "A": ("current", "A"),
    "ms": ("time", "ms"),
    "degC": ("temperature", "C"),
}


def _column(name: str, printed: str) -> Column:
    known = unit_of(printed)
    quantity, token = UNITS.get(known.token if known else printed, ("", ""))
    found = si_scale(token) if token else None
    if found is None:
        return unknown_column(name, f"the log names the unit {printed}" if printed else "the log names no unit")
    return Column(name, "value", quantity, found[1], token)


class _Reader(LogReader):
    """Sorts the lines of a log by the number at their start."""

    def __init__(self) -> None:
        super().__init__(TOOL)
        self.names: list[str] = []
        self.units: dict[int, str] = {}
        self.begun = False

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        kind, *cells = [cell.strip() for cell in line.rstrip("\r\n").split(",")]
        if kind == ROW and self.names:
            self._add_row(number, cells, line)
            return
        if kind == VERSION and (match := _FIRST.match(line)):
            self.log.facts["tool_version"] = match["version"]
        elif kind == DEVICES:
            self.log.facts["devices"] = ", ".join(filter(None, cells[1:]))
        elif kind == NAMES:
            self.names, self.units, self.begun = cells[1:], {}, False
        elif kind == UNIT and len(cells) > 2 and cells[1].isdigit():
            self.units[int(cells[1])] = cells[2]
        elif kind:
            self.log.reject(number, line, "unknown line type: lines begin with 00, 01, 02, 03 or 80")
            return
        self.log.skip()

    def _add_row(self, number: int, cells: list[str], line: str) -> None:
        if not self.begun:
            self.begun = True
            columns = [_column(name, self.units.get(place, "")) for place, name in enumerate(self.names)]
            self.log.begin([Column("time", "time"), *columns], number)
        stamps = [_STAMP.fullmatch(cell) for cell in cells[:1]]
        times = [f"{match[3]}-{match[2]}-{match[1]} {match[4]}" if match else "" for match in stamps]
        self.log.row(number, [*times, *cells[1:]], line)

    def gpu_of(self, name: str) -> int | None:
        """Return the GPU of a source, which its name tells where there are several."""
        match = _GPU.match(name)
        return int(match[1]) - 1 if match else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the line of the program, or with that of the devices and names below it."""
    first, *others = (line.lstrip("\ufeff") for line in head_lines(head, 2))
    return bool(_FIRST.match(first) or (_SECOND.match(first) and any(line.startswith(f"{NAMES},") for line in others)))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
