"""Reader of the logs of Zeus: windows of ZeusMonitor with their energies, and the power log of its monitor."""

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

from profsvc.errors import unfit
from profsvc.formats.channels import beside
from profsvc.formats.clock import SECOND
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.ncu_lines import split_cells
from profsvc.formats.sensor_log import Log
from profsvc.formats.sensors import Column
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "zeus"
PAGE = """\
A log of Zeus: the energy of each window of ZeusMonitor, or the power over time of its power monitor.

Make it with ZeusMonitor(gpu_indices=[0, 1], log_file="FILE"), or with the power monitor of Zeus's first versions, which
writes Time,Power: the power in milliwatts, the time without a zone.

Taken: of Time,Power every row as a sample in W; the time goes to local_ns. Of ZeusMonitor every window as a range with
its name, and the energy of each GPU as a sample in J that stands at the end of the window. The clock of the windows
begins anywhere, so only the time since the first window's end is known.

Example:
    start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy
    13586624.128955,step 1,33.277511,3991.397,4170.070
or
    Time,Power
    2022-07-13 02:07:36.708783111,32402
"""

TOOL = "Zeus"
POWER_HEADER = ["Time", "Power"]
WINDOW_HEADER = ["start_time", "window_name", "elapsed_time"]
OF_WINDOW = "the energy of each window, not a counter: add them up"
MILLIWATTS = "printed without a unit: Zeus writes milliwatts"
NANOSECONDS = 9
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
    # Anybody heads a log Time,Power, and means watts.
    return header is not None and (header != POWER_HEADER or len(lines) < 2 or is_time(lines[1].split(",")[0]))


def is_time(text: str) -> bool:
    """Tell whether ``text`` is a date and a time with nine decimals, as Zeus writes them."""
    return re.fullmatch(r"[0-9-]{10} [0-9:]{8}\.[0-9]{9}", text.strip()) is not None


def nanoseconds(text: str) -> int | None:
    """Return a decimal count of seconds in ns, rounded to the nearest; None if it is none.

    >>> nanoseconds("13586624.12895549"), nanoseconds("1e-3"), nanoseconds("-1")
    (13586624128955490, 1000000, None)
    """
    match = _SECONDS.fullmatch(text.strip())
    if match is None:
        return None
    if "e" in text.lower():
        return round(float(text) * 1e9)
    digits = (match[2] or "").ljust(NANOSECONDS + 1, "0")
    return int(match[1]) * SECOND + int(digits[:NANOSECONDS]) + (digits[NANOSECONDS] >= "5")


class _File:
    """Sorts the lines of a log; the windows of ZeusMonitor become rows whose time is their end."""

    def __init__(self) -> None:
        self.log = Log(TOOL)
        self.header: list[str] = []
        self.windows: list[Mapping[str, object]] = []

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                self.header = header
                self.log.begin(self._columns(), number)
            self.log.skip()
        elif not line.strip() or not self.header:
            self.log.skip()
        elif self.header == POWER_HEADER:
            self.log.row(number, line.rstrip("\r\n").split(","), line)
        else:
            self._window(number, line)

    def _columns(self) -> list[Column]:
        if self.header == POWER_HEADER:
            return [Column("Time", "time"), Column("Power", "value", "power", "W", "mW", whole=True, note=MILLIWATTS)]
        return [
            Column("end", "elapsed"),
            *(Column(name, "value", "energy", "J", "J", note=OF_WINDOW) for name in self.header[3:]),
        ]

    def _window(self, number: int, line: str) -> None:
        if line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
            return
        cells = split_cells(line)
        if len(cells) != len(self.header):
            self.log.reject(number, line, unfit(len(cells), len(self.header)))
            return
        start, duration = nanoseconds(cells[0]), nanoseconds(cells[2])
        if start is None or duration is None:
            self.log.reject(number, line, f"start_time or elapsed_time, {cells[0]!r} or {cells[2]!r}, is no time")
            return
        before = self.log.rejected
        self.log.row(number, [str(start + duration), *cells[3:]], line)
        if self.log.rejected == before:
            window = {"name": cells[1], "start_ns": start, "duration_ns": float(duration), "line": number}
            self.windows.append(window)

    def batch(self) -> Batch:
        """Hand on what was gathered."""
        rows, self.windows = self.windows, []
        return beside(self.log.batch(), "ranges", rows)

    def last(self, encoding: str) -> Iterator[Batch]:
        """Hand on the rest; a sensor of a GPU says which in its name."""
        yield self.batch()
        for channel in self.log.sensors.channels.values():
            if match := _GPU.fullmatch(channel.column.name):
                channel.gpu = int(match[1])
        layout = "power over time" if self.header == POWER_HEADER else "energies of windows"
        yield from self.log.last(encoding, {"layout": layout})


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one walk over the file."""
    with Text(stream) as text:
        file = _File()
        for number, line in numbered(text):
            file.add(number, line)
            if file.log.full:
                yield file.batch()
        yield from file.last(text.encoding)
