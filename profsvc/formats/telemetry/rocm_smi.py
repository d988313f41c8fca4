"""Reader of the CSV output of rocm-smi and amd-smi, printed once or in a loop."""

import re
from collections.abc import Iterator, Sequence, Set
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines, may_be_header
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.records import split_cells
from profsvc.formats.timeseries.columns import UNKNOWN, Column, si_scale
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "rocm-smi"

UNKNOWN_UNIT = "amd-smi prints no unit, and the name does not imply one"
_UNIT = re.compile(r".*\(([A-Za-z%°/]+)\)")
_SPEED = re.compile(r"\(([0-9.]+ ?[MG]?[Hh]z)\)")
# Unit as printed -> quantity.
UNITS = {
    "W": "power",
    "C": "temperature",
    "%": "utilization",
    "MHz": "clock",
    "Mhz": "clock",
    "B": "memory",
    "mV": "voltage",
    "V": "voltage",
    "uJ": "energy",
    "J": "energy",
}
# Quantities printed without decimals: a separator in them groups thousands.
_WHOLE = {"clock", "memory"}
# Columns of amd-smi, which prints bare numbers: pattern of the whole name, quantity, unit.
COLUMNS = (
    (r"(max|default|min)?_?power_?(cap|limit)|max_power|power_(management_|cap).*", "limit", "W"),
    (r"(average_|current_)?(socket_)?power(_usage)?", "power", "W"),
    (r"(edge|hotspot|junction|memory)(_temperature)?|mem_temperature|gpu_t|mem_t", "temperature", "C"),
    (r"(gfx|mem|vclk|dclk|fclk|socclk)[_0-9]*_(min|max)_clk", "limit", "MHz"),
    (r"(gfx|soc|mem)_voltage", "voltage", "mV"),
    (r"(gfx|mem|sclk|mclk|fclk|socclk|enc|dec|vclk|dclk)[_0-9]*(clk|clock)[_0-9]*(_clk)?|[vd]clock", "clock", "MHz"),
    (r"gfx%?|mem%|enc%|dec%|encoder|decoder|(gfx|umc|mm)_activity", "utilization", "%"),
    (r"(total_)?energy_consumption", "energy", "J"),
    (r"vram_(used|total|free)", "memory", "MiB"),
)
# "mem" is a temperature next to the first names (amd-smi metric), and a load next to the second (amd-smi monitor).
_MEM = (({"edge", "hotspot", "junction"}, "temperature", "C"), ({"gfx", "gfx_clk", "mem_clock"}, "utilization", "%"))
# The row of the host below those of the boards, which has a driver version at most.
_SYSTEM = re.compile(r'"?system"?,')
# Names that any script may give its columns.
_COMMON_NAMES = {"power", "memory", "mem"}


def _header(line: str) -> list[str] | None:
    cells = [cell.strip() for cell in split_cells(line.lstrip("\ufeff"))]
    return cells if is_header(cells) else None


def is_header(cells: Sequence[str]) -> bool:
    """Tell whether ``cells`` are the header of a table of rocm-smi or amd-smi.

    >>> is_header(["timestamp", "gpu", "socket_power"]), is_header(["timestamp", "gpu", "power"])
    (True, False)
    """
    lower = [cell.lower() for cell in cells]
    if len(cells) < 2 or lower[0] not in ("device", "gpu", "timestamp") or any(_is_number(cell) for cell in cells):
        return False
    if lower[0] == "device":
        return any(_UNIT.fullmatch(cell) or cell.endswith(":") for cell in cells[1:])
    return "gpu" in lower[:2] and any(_known_column(cell) for cell in lower[1:] if cell not in _COMMON_NAMES)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9.]+", cell) is not None


def _known_column(name: str) -> tuple[str, str] | None:
    return next(((quantity, token) for pattern, quantity, token in COLUMNS if re.fullmatch(pattern, name)), None)


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a header of rocm-smi or amd-smi."""
    return any(_header(line) for line in head_lines(head, 10) if may_be_header(line))


def column_of(name: str, nearby: Set[str] = frozenset()) -> Column:
    """Return the column with this name; ``nearby`` are the names of all columns, in lower case.

    >>> column_of("Average Graphics Package Power (W)").quantity, column_of("max_power").quantity
    ('power', 'limit')
    >>> column_of("GPU Memory Allocated (VRAM%)").quantity
    'utilization'
    >>> column_of("mem", {"hotspot", "mem"}).quantity, column_of("mem", {"gfx", "mem"}).quantity
    ('temperature', 'utilization')
    """
    lower = name.lower()
    if lower in ("device", "gpu"):
        return Column(name, "gpu")
    if lower == "timestamp":
        return Column(name, "time")
    if match := _UNIT.fullmatch(name):
        token = "%" if match[1].endswith("%") else match[1]  # VRAM%
        found = si_scale(token)
        if found and token in UNITS:
            limit = lower.startswith(("max ", "min ", "default ")) and found[1] == "W"
            quantity = "limit" if limit else UNITS[token]
            return Column(name, "value", quantity, found[1], token, quantity in _WHOLE)
    if lower.endswith("clock speed:"):
        return Column(name, "value", "clock", "Hz", "MHz", whole=True)
    if rule := next((rule for names, *rule in _MEM if lower == "mem" and names & nearby), _known_column(lower)):
        return Column(name, "value", rule[0], str((si_scale(rule[1]) or (1, "1"))[1]), rule[1], rule[0] in _WHOLE)
    if " " in name or name[:1].isupper():
        return Column(name, "open")
    return Column(name, "open", UNKNOWN, UNKNOWN, note=UNKNOWN_UNIT)


def _cell(text: str) -> str:
    match = _SPEED.fullmatch(text.strip())
    return match[1] if match else text


class _Reader(LogReader):
    """Sorts the lines of the output into headers and rows."""

    def __init__(self) -> None:
        super().__init__("rocm-smi")
        self.header: list[str] = []

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if header := _header(line):
            if header != self.header:
                nearby = {name.lower() for name in header}
                self.log.begin([column_of(name, nearby) for name in header], number)
                self.log.facts["tool"] = "rocm-smi" if header[0].lower() == "device" else "amd-smi"
                self.log.facts["layout"] = f"{len(header)} columns"
            self.header = header
            self.log.skip()
        elif not line.strip() or not self.log.columns or _SYSTEM.match(line):
            self.log.skip()
        elif line.count('"') % 2:
            self.log.reject(number, line, "a quote is not closed on its line")
        else:
            self.log.row(number, list(map(_cell, split_cells(line))), line)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the output in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
