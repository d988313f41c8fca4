"""Reader of Libre Hardware Monitor and Open Hardware Monitor logs."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.timeseries.labels import OTHER, UNKNOWN, Channel
from profsvc.formats.timeseries.tables.lines import Layout, TableFormat, split_row
from profsvc.formats.timeseries.tables.table import read_table
from profsvc.formats.timeseries.tables.time_columns import TimeColumns
from profsvc.tables import Batch

NAME = "hardware-monitor"

TOOL = "Hardware Monitor"
_PATH = re.compile(r"/[^,\s]{1,200}/(?P<kind>[a-z]+)/[0-9]{1,4}")
_GPU = re.compile(r"/(?:(?P<nvidia>nvidiagpu|gpu-nvidia)|atigpu|gpu-amd)/(?P<index>[0-9]{1,4})/")
# The second last part of a path -> quantity, unit, factor.
COLUMNS = {
    "power": ("power", "W", 1.0),
    "temperature": ("temperature", "degC", 1.0),
    "clock": ("clock", "Hz", 1e6),
    "load": ("utilization", "1", 0.01),
    "voltage": ("voltage", "V", 1.0),
    "current": ("current", "A", 1.0),
    "energy": ("energy", "J", 3.6),
    "fan": ("rotation", "1/min", 1.0),
    "control": ("fraction", "1", 0.01),
    "level": ("fraction", "1", 0.01),
    "frequency": ("frequency", "Hz", 1.0),
    "timespan": ("time", "s", 1.0),
    "factor": (OTHER, "1", 1.0),
    "data": (OTHER, "GB", 1.0),
    "smalldata": (OTHER, "MB", 1.0),
    "throughput": (OTHER, "byte/s", 1.0),
    "flow": (OTHER, "L/h", 1.0),
    "noise": (OTHER, "dBA", 1.0),
}


def _are_paths(cells: list[str]) -> bool:
    return len(cells) > 1 and not cells[0] and all(map(_PATH.fullmatch, cells[1:]))


def _channels(paths: list[str], names: list[str]) -> tuple[Channel, ...]:
    gpus = [_GPU.match(path) for path in paths]
    # The GPUs of each vendor are numbered from 0, so only those of one vendor can have their number.
    nvidia = any(gpu and gpu["nvidia"] for gpu in gpus)
    found = []
    for path, name, gpu in zip(paths, names, gpus, strict=True):
        kind = path.split("/")[-2]
        quantity, unit, factor = COLUMNS.get(kind, (UNKNOWN, UNKNOWN, 1.0))
        note = "" if kind in COLUMNS else f"the unit in which the program prints a {kind} is unknown"
        index = int(gpu["index"]) if gpu and (gpu["nvidia"] or not nvidia) else None
        found.append(Channel(f"{name} {path}".strip(), quantity, unit, factor, note=note, gpu=index))
    return tuple(found)


class _PathsAndNames:
    """Combines the line of paths and the line of names below it."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def layout(self, sign: str, cells: list[str]) -> Layout | None:
        """Return the layout of the line of names below the paths."""
        if _are_paths(cells):
            self.paths = cells[1:]
        if cells[:1] != ["Time"] or len(cells) < 2 or len(cells) != len(self.paths) + 1:
            return None
        channels = _channels(self.paths, cells[1:])
        return Layout(sign, tuple(cells), TimeColumns((0,), order="mdy"), tuple(range(1, len(cells))), channels)

    def is_paths(self, cells: list[str]) -> bool:
        """Tell whether a line repeats the paths; refuse other paths."""
        if not _are_paths(cells):
            return False
        if cells[1:] != self.paths:
            raise BrokenInputError(
                "the file contains two logs, because it has two different lines of sensor paths; "
                "put each log into its own file"
            )
        return True


def sniff(head: bytes) -> bool:
    """Tell whether the first line of ``head`` has the paths of sensors, and the second begins with Time."""
    lines = [line.lstrip("\ufeff") for line in head_lines(head, 2)]
    return len(lines) > 1 and lines[1].startswith("Time,") and _are_paths(split_row(lines[0], ","))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log."""
    header = _PathsAndNames()
    return read_table(stream, TableFormat(TOOL, header.layout, is_note=header.is_paths))
