"""Reader of the logs of nvidia-smi dmon: a row a second and GPU under a pair of header lines that comes again."""

import itertools
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError, counted
from profsvc.formats.clock import DAY, day_time_ns
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.sensor_log import Log
from profsvc.formats.sensors import UNKNOWN, Column, scale
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "nvidia-smi-dmon"
PAGE = """\
A log of nvidia-smi dmon: power, temperatures, utilizations, clocks, a row a poll and GPU.

Make it with (-o DT adds the date and the time to every row; without it nobody knows when a reading was)
    nvidia-smi dmon -s pucvmet -o DT > FILE

Taken: every column as a sensor of its GPU, in W, degC, Hz, byte, or as a share. A - gives a sample without value and
with the reason. MB of memory are 2^20 bytes, as nvidia-smi counts them. The time has no zone: it goes to local_ns, and
a time without a date to elapsed_ns alone. The header pair, which comes again every 10 or so rows, is skipped and
counted. The power is a whole number of watts and an average over a second on most GPUs.

Example:
    #Date        Time         gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk
    #YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %    MHz    MHz
     20261120    13:16:16       0     79     31     32      0      0   3201    345
     20261120    13:16:17       0     79     31      -      0      0   3201    345
"""

TOOL = "nvidia-smi dmon"
UNIT_ROW = "Idx"
PROCESS = "pid"
# By the unit: quantity, and the token of units.csv if the tool means another than it prints.
_BY_UNIT = {
    "W": ("power", "W"),
    "C": ("temperature", "C"),
    "%": ("utilization", "%"),
    "MHz": ("clock", "MHz"),
    "MB": ("memory", "MiB"),
    "bool": ("state", "bool"),
    "errs": ("state", "errs"),
    "MB/s": ("throughput", "MB/s"),
    "GB/s": ("throughput", "GB/s"),
}


def split(line: str) -> list[str]:
    """Split a line at its blanks and commas, without the # of a header.

    >>> split("# gpu    pwr")
    ['gpu', 'pwr']
    """
    return line.replace(",", " ").removeprefix("#").split()


def is_header(line: str) -> bool:
    """Tell whether a line is the first of a header pair."""
    return line.startswith("#") and "gpu" in split(line)[:3]


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the header pair of dmon, perhaps after other words."""
    lines = head_lines(head, 50)
    return any(
        is_header(one) and two.startswith("#") and UNIT_ROW in split(two)[:3] for one, two in itertools.pairwise(lines)
    )


def column_of(name: str, unit: str) -> Column:
    """Return what a column holds, by its name and its unit in the header pair."""
    if name in ("Date", "Time", "gpu"):
        return Column(name, "gpu" if name == "gpu" else name.lower())
    quantity, token = _BY_UNIT.get(unit, (UNKNOWN, unit))
    if name in ("pviol", "tviol"):
        quantity = "state"
    found = scale(token)
    whole = quantity in ("clock", "memory")  # these reach four digits: a dot in them groups thousands
    return Column(name, "value", quantity, found[1] if found else UNKNOWN, token if found else "", whole)


class _File:
    """Sorts the lines of a log into header pairs and rows."""

    def __init__(self) -> None:
        self.log = Log(TOOL)
        self.names: list[str] = []
        self.names_line = 0
        self.pair: tuple[list[str], list[str]] | None = None
        self.date = self.time = -1
        self.day = 0
        self.last_time = 0

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if is_header(line):
            self.names, self.names_line = split(line), number
            self.log.skip()
        elif line.startswith("#"):
            self._units(number, line)
        elif not line.strip() or self.pair is None:
            self.log.skip()
        else:
            self._row(number, line)

    def _units(self, number: int, line: str) -> None:
        units = split(line)
        if UNIT_ROW not in units[:3] or len(units) != len(self.names):
            named = f"a header names {counted(len(self.names), 'column')}"
            self.log.reject(number, line, f"{named}, but this line {counted(len(units), 'unit')}")
            return
        if PROCESS in self.names:
            raise BrokenInputError(
                f"line {self.names_line} is the header of nvidia-smi pmon, whose rows are the shares of single "
                "processes: they tell nothing of a board; record nvidia-smi dmon -s pucvmet -o DT"
            )
        self.log.skip()
        if self.pair == (self.names, units):
            return
        self.pair = self.names, units
        columns = [column_of(name, unit) for name, unit in zip(self.names, units, strict=True)]
        roles = [column.role for column in columns]
        self.date, self.time = (roles.index(role) if role in roles else -1 for role in ("date", "time"))
        if self.date >= 0 and self.time >= 0:
            columns[self.date] = Column("Date and Time", "time")
        if self.date < 0 <= self.time:
            columns[self.time] = Column("Time", "elapsed")
        elif self.time >= 0:
            del columns[self.time]
        elif self.date >= 0:
            columns[self.date] = Column("Date", "day")
        self.log.begin(columns, self.names_line)

    def _row(self, number: int, line: str) -> None:
        cells = split(line)
        whole = max(self.date, self.time) < len(cells)
        if whole and self.date >= 0 and self.time >= 0:
            day, time = cells[self.date], cells[self.time]
            # Stamps of this layout are read a column at a time.
            cells[self.date] = f"{day[:4]}/{day[4:6]}/{day[6:]} {time}" if len(day) == 8 else f"{day} {time}"
            del cells[self.time]
        elif whole and self.time >= 0:
            cells[self.time] = self._elapsed(cells[self.time])
        self.log.row(number, cells, line)

    def _elapsed(self, cell: str) -> str:
        """Return the ns since the midnight before the first reading; a time that jumps back is of the next day."""
        ns = day_time_ns(cell)
        if ns is None:
            return cell
        if ns < self.last_time - DAY // 2:
            self.day += 1
        self.last_time = ns
        return str(self.day * DAY + ns)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for number, line in numbered(text):
            file.add(number, line)
            if file.log.full:
                yield file.log.batch()
        yield from file.log.last(text.encoding, {"layout": f"{len(file.names)} columns"})
