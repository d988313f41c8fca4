"""Reader of Zeus logs: the energies of ZeusMonitor windows, and the log of the power monitor."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import wrong_cell_count
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.records import split_cells
from profsvc.formats.parsing.timestamps import SECOND
from profsvc.formats.timeseries.columns import Column
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "zeus"

TOOL = "Zeus"
POWER_HEADER = ["Time", "Power"]
WINDOW_HEADER = ["start_time", "window_name", "elapsed_time"]
WINDOW_ENERGY = "the energy of each window, not a counter: add them up"
MILLIWATTS = "printed without a unit: Zeus writes milliwatts"
NS_DIGITS = 9
_ENERGY = re.compile(r"(?:gpu|cpu)[0-9]+_energy|dram_energy|soc_energy|cpu[0-9]+_dram_energy")
_GPU = re.compile(r"gpu([0-9]{1,4})_energy")
_SECONDS = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,30}))?(?:[eE]-?[0-9]{1,2})?")


def _header(line: str) -> list[str] | None:
    if line[:1].isdigit():
        return None
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    if cells == POWER_HEADER:
        return cells
    windows = cells[:3] == WINDOW_HEADER and len(cells) > 3 and all(map(_ENERGY.fullmatch, cells[3:]))
    return cells if windows else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with a header of Zeus, and its times are those that Zeus writes."""
    lines = head_lines(head, 2)
    header = _header(lines[0])
    # Any log may have the header Time,Power, and contain watts.
    return header is not None and (header != POWER_HEADER or len(lines) < 2 or is_timestamp(lines[1].split(",")[0]))


def is_timestamp(text: str) -> bool:
    """Tell whether ``text`` is a date and a time with nine decimals, as Zeus writes them."""
    return re.fullmatch(r"[0-9-]{10} [0-9:]{8}\.[0-9]{9}", text.strip()) is not None


def seconds_to_ns(text: str) -> int | None:
    """Return a decimal count of seconds in ns, rounded to the nearest; None if it is not one.

    >>> seconds_to_ns("13586624.12895549"), seconds_to_ns("1e-3"), seconds_to_ns("-1")
    (13586624128955490, 1000000, None)
    """
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        return None
    if "e" in text.lower():
        return round(float(text) * 1e9)
    digits = (match[2] or "").ljust(NS_DIGITS + 1, "0")
    return int(match[1]) * SECOND + int(digits[:NS_DIGITS]) + (digits[NS_DIGITS] >= "5")


class _Reader(LogReader):
    """Sorts the lines of a log; the windows of ZeusMonitor become rows whose time is their end."""

    def __init__(self) -> None:
        super().__init__(TOOL)
        self.header: list[str] = []

    def gpu_of(self, name: str) -> int | None:
        """Return the GPU that the name of a column contains."""
        match = _GPU.fullmatch(name)
        return int(match[1]) if match else None

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                self.header = header
                self.log.begin(self._columns(), number)
                self.log.facts["layout"] = "power over time" if header == POWER_HEADER else "energies of windows"
            self.log.skip()
        elif not line.strip() or not self.header:
            self.log.skip()
        elif self.header == POWER_HEADER:
            self.log.row(number, line.rstrip("\r\n").split(","), line)
        else:
            self._add_window(number, line)

    def _columns(self) -> list[Column]:
        if self.header == POWER_HEADER:
            return [Column("Time", "time"), Column("Power", "value", "power", "W", "mW", whole=True, note=MILLIWATTS)]
        return [
            Column("end", "elapsed"),
            *(Column(name, "value", "energy", "J", "J", note=WINDOW_ENERGY) for name in self.header[3:]),
        ]

    def _add_window(self, number: int, line: str) -> None:
        if line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
            return
        cells = split_cells(line)
        if len(cells) != len(self.header):
            self.log.reject(number, line, wrong_cell_count(len(cells), len(self.header)))
            return
        start, duration = seconds_to_ns(cells[0]), seconds_to_ns(cells[2])
        if start is None or duration is None:
            self.log.reject(number, line, f"start_time {cells[0]!r} or elapsed_time {cells[2]!r} is not a time")
            return
        self.add_range(number, line, [str(start + duration), *cells[3:]], cells[1], start, duration)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
