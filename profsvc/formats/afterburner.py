"""Reader of the hardware monitoring log of MSI Afterburner, with the readings of RivaTuner's server in it."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.readings import unit_of
from profsvc.formats.sensor_log import Log, unknown
from profsvc.formats.sensors import Column, scale
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "afterburner"
PAGE = """\
A log of MSI Afterburner: power, temperatures, clocks, loads and frame rates, a line a poll.

Make it with Settings, Monitoring, Log history to file: HardwareMonitoring.hml, which is text.

Taken: every source as a sensor, in the unit that a line beginning with 03 names for it: W, degC, MHz, V, %, RPM and MB
(of 1024 * 1024 bytes); other units are kept as they are printed, and so is a source without one. GPU2 power is of the
GPU with index 1. Times are local, the day first, and have whole seconds. Programs started again write further tables
into the same file; all of them are read.

Example:
    00, 14-01-2024 23:49:46, Hardware monitoring log v1.6
    01, 14-01-2024 23:49:46, NVIDIA GeForce RTX 3080
    02, 14-01-2024 23:49:46, GPU temperature     ,Power
    03, 14-01-2024 23:49:46, 0                   ,\u00b0C                  ,0.000               ,100.000
    03, 14-01-2024 23:49:46, 1                   ,W                   ,0.000               ,300.000
    80, 14-01-2024 23:49:46, 46.000              ,211.031
"""

TOOL = "MSI Afterburner"
VERSION, DEVICES, NAMES, UNIT, ROW = "00", "01", "02", "03", "80"
_FIRST = re.compile(r"00, ?[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9:]{8}, ?Hardware monitoring log v(?P<version>[0-9.]{1,9})")
_STAMP = re.compile(r"([0-9]{2})-([0-9]{2})-([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2})")
_GPU = re.compile(r"GPU([1-9][0-9]?) ")
# Units as the program prints them -> quantity, and the token for the factor.
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
    found = scale(token) if token else None
    if found is None:
        return unknown(name, f"the log names the unit {printed}" if printed else "the log names no unit")
    return Column(name, "value", quantity, found[1], token)


class _File:
    """Sorts the lines of a log by the number they begin with."""

    def __init__(self) -> None:
        self.log = Log(TOOL)
        self.names: list[str] = []
        self.units: dict[int, str] = {}
        self.begun = False

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        kind, *cells = [cell.strip() for cell in line.rstrip("\r\n").split(",")]
        if kind == ROW and self.names:
            self._row(number, cells, line)
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
            self.log.reject(number, line, "it is none of the lines that the program is known to write")
            return
        self.log.skip()

    def _row(self, number: int, cells: list[str], line: str) -> None:
        if not self.begun:
            self.begun = True
            columns = [_column(name, self.units.get(place, "")) for place, name in enumerate(self.names)]
            self.log.begin([Column("time", "time"), *columns], number)
        stamps = [_STAMP.fullmatch(cell) for cell in cells[:1]]
        day = [f"{match[3]}-{match[2]}-{match[1]} {match[4]}" if match else "" for match in stamps]
        self.log.row(number, [*day, *cells[1:]], line)

    def last(self, encoding: str) -> Iterator[Batch]:
        """Hand on the rest; where there are several GPUs, the name of a source says of which it is."""
        yield self.log.batch()
        for channel in self.log.sensors.channels.values():
            if match := _GPU.match(channel.column.name):
                channel.gpu = int(match[1]) - 1
        yield from self.log.last(encoding, {})


def sniff(head: bytes) -> bool:
    """Tell whether the first line of ``head`` is that of the program."""
    return _FIRST.match(head_lines(head, 1)[0].lstrip("\ufeff")) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for number, line in numbered(text):
            file.add(number, line)
            if file.log.full:
                yield file.log.batch()
        yield from file.last(text.encoding)
