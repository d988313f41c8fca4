"""Reader of nvidia-smi dmon logs: one row per second and GPU, under a pair of header lines that is repeated."""

import itertools
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError, counted
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import DAY, time_of_day_ns
from profsvc.formats.timeseries.columns import UNKNOWN, Column, si_scale
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "nvidia-smi-dmon"

TOOL = "nvidia-smi dmon"
UNIT_ROW = "Idx"
PROCESS = "pid"
# Unit as printed -> quantity, unit in units.csv (which differs where the tool prints another unit than it means).
UNITS = {
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


def split_words(line: str) -> list[str]:
    """Split a line at its blanks and commas, without the # of a header, which a script may have indented.

    >>> split_words("# gpu    pwr")
    ['gpu', 'pwr']
    """
    return line.replace(",", " ").lstrip().removeprefix("#").split()


def is_comment(line: str) -> bool:
    """Tell whether a line is one of a header pair."""
    return line.lstrip().startswith("#")


def is_header(line: str) -> bool:
    """Tell whether a line is the first of a header pair."""
    return is_comment(line) and "gpu" in split_words(line)[:3]


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with the header pair of dmon, perhaps after other text."""
    lines = head_lines(head, 50)
    return any(
        is_header(one) and is_comment(two) and UNIT_ROW in split_words(two)[:3]
        for one, two in itertools.pairwise(lines)
    )


def column_of(name: str, unit: str) -> Column:
    """Return the column with this name and unit in the header pair."""
    if name in ("Date", "Time", "gpu"):
        return Column(name, "gpu" if name == "gpu" else name.lower())
    quantity, token = UNITS.get(unit, (UNKNOWN, unit))
    if name in ("pviol", "tviol"):
        quantity = "state"
    found = si_scale(token)
    whole = quantity in ("clock", "memory")  # of four digits: a dot in them groups thousands
    return Column(name, "value", quantity, found[1] if found else UNKNOWN, token if found else "", whole)


class _Reader(LogReader):
    """Sorts the lines of a log into header pairs and rows."""

    def __init__(self) -> None:
        super().__init__(TOOL)
        self.names: list[str] = []
        self.names_line = 0
        self.header: tuple[list[str], list[str]] | None = None
        self.date = self.time = -1
        self.day = 0
        self.last_time = 0

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if is_header(line):
            self.names, self.names_line = split_words(line), number
            self.log.skip()
        elif is_comment(line) and not (self.header is None and not self.names):
            self._add_units(number, line)
        elif not line.strip() or self.header is None:
            self.log.skip()
        else:
            self._add_row(number, line)

    def _add_units(self, number: int, line: str) -> None:
        units = split_words(line)
        if UNIT_ROW not in units[:3] or len(units) != len(self.names):
            named = f"a header names {counted(len(self.names), 'column')}"
            self.log.reject(number, line, f"{named}, but this line {counted(len(units), 'unit')}")
            return
        if PROCESS in self.names:
            raise BrokenInputError(
                f"line {self.names_line} is the header of nvidia-smi pmon, whose rows are shares of single processes, "
                "not readings of a GPU; record with: nvidia-smi dmon -s pucvmet -o DT"
            )
        self.log.skip()
        if self.header == (self.names, units):
            return
        self.header = self.names, units
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
        self.log.facts["layout"] = f"{len(self.names)} columns"

    def _add_row(self, number: int, line: str) -> None:
        cells = split_words(line)
        whole = max(self.date, self.time) < len(cells)
        if whole and self.date >= 0 and self.time >= 0:
            day, time = cells[self.date], cells[self.time]
            # Timestamps of this layout are parsed column-wise.
            cells[self.date] = f"{day[:4]}/{day[4:6]}/{day[6:]} {time}" if len(day) == 8 else f"{day} {time}"
            del cells[self.time]
        elif whole and self.time >= 0:
            cells[self.time] = self._elapsed_ns(cells[self.time])
        self.log.row(number, cells, line)

    def _elapsed_ns(self, cell: str) -> str:
        """Return the ns since the midnight before the first reading; a time that jumps back is of the next day."""
        ns = time_of_day_ns(cell)
        if ns is None:
            return cell
        if ns < self.last_time - DAY // 2:
            self.day += 1
        self.last_time = ns
        return str(self.day * DAY + ns)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
