"""Reader of the CSV output of rocm-smi and amd-smi, once or in a loop."""

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from profsvc.formats.head import head_lines, may_be_header
from profsvc.formats.ncu import numbered
from profsvc.formats.ncu_lines import split_cells
from profsvc.formats.sensor_log import Log
from profsvc.formats.sensors import UNKNOWN, Column, scale
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "rocm-smi"
PAGE = """\
CSV output of rocm-smi or amd-smi: power, temperatures, clocks and loads of AMD GPUs.

Make it with
    rocm-smi --showpower --showtemp --showuse --csv
    amd-smi monitor --power-usage --temperature --csv -w 1
once, or again and again into one file: a header that comes again is skipped and counted. rocm-smi prints no time, so
its samples have their order alone; amd-smi -w prints a timestamp, in seconds since 1970.

Taken: of each card (device or gpu) every number as a sensor, in W, degC, Hz, byte, or as a share. Units stand in the
header of rocm-smi and in the cells of some versions; amd-smi often prints none, then a name that is known tells, and
another column is kept as it came, with quantity and unit unknown. Words become metrics where they change. N/A gives a
sample without value and with the reason.

Example:
    device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%),sclk clock speed:
    card0,35.0,34.0,0,(300Mhz)
    card1,36.0,N/A,0,(300Mhz)
"""

UNKNOWN_UNIT = "amd-smi prints no unit, and the name does not tell it"
_UNIT = re.compile(r".*\(([A-Za-z%°/]+)\)")
_SPEED = re.compile(r"\(([0-9.]+ ?[MG]?[Hh]z)\)")
_BY_UNIT = {
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
# Printed without decimals: a sign in them groups thousands.
_WHOLE = {"clock", "memory"}
# Names of amd-smi, which prints bare numbers: pattern of the whole name, quantity, unit.
_RULES = (
    (r"(max|default|min)?_?power_?(cap|limit)|max_power|power_(management|cap).*", "limit", "W"),
    (r"(average_|current_)?(socket_)?power(_usage)?", "power", "W"),
    (r"(edge|hotspot|junction|memory)(_temperature)?|mem_temperature|gpu_t|mem_t", "temperature", "C"),
    (r"(gfx|mem|vclk|dclk|fclk|socclk)[_0-9]*_(min|max)_clk", "limit", "MHz"),
    (r"(gfx|soc|mem)_voltage", "voltage", "mV"),
    (r"(gfx|mem|sclk|mclk|fclk|socclk|enc|dec|vclk|dclk)[_0-9]*(clk|clock)[_0-9]*(_clk)?|[vd]clock", "clock", "MHz"),
    (r"gfx%?|mem%|enc%|dec%|encoder|decoder|(gfx|umc|mm)_activity", "utilization", "%"),
    (r"(total_)?energy_consumption", "energy", "J"),
    (r"vram_(used|total|free)", "memory", "MiB"),
)
# A temperature beside these in amd-smi metric, a load beside those in amd-smi monitor.
_MEM = (({"edge", "hotspot", "junction"}, "temperature", "C"), ({"gfx", "gfx_clk", "mem_clock"}, "utilization", "%"))
# Names that any script gives its columns.
_ANYBODYS = {"power", "memory", "mem"}


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
    return "gpu" in lower[:2] and any(_rule(cell) for cell in lower[1:] if cell not in _ANYBODYS)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+]?[0-9.]+", cell) is not None


def _rule(name: str) -> tuple[str, str] | None:
    return next(((quantity, token) for pattern, quantity, token in _RULES if re.fullmatch(pattern, name)), None)


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a header of rocm-smi or amd-smi."""
    return any(_header(line) for line in head_lines(head, 10) if may_be_header(line))


def column_of(name: str, others: Sequence[str] = ()) -> Column:
    """Return what a column holds that stands beside ``others``.

    >>> column_of("Average Graphics Package Power (W)").quantity, column_of("max_power").quantity
    ('power', 'limit')
    >>> column_of("mem", ["hotspot", "mem"]).quantity, column_of("mem", ["gfx", "mem"]).quantity
    ('temperature', 'utilization')
    """
    lower = name.lower()
    if lower in ("device", "gpu"):
        return Column(name, "gpu")
    if lower == "timestamp":
        return Column(name, "time")
    if match := _UNIT.fullmatch(name):
        found = scale(match[1])
        if found and match[1] in _BY_UNIT:
            limit = lower.startswith(("max ", "min ", "default ")) and found[1] == "W"
            quantity = "limit" if limit else _BY_UNIT[match[1]]
            return Column(name, "value", quantity, found[1], match[1], quantity in _WHOLE)
    if lower.endswith("clock speed:"):
        return Column(name, "value", "clock", "Hz", "MHz", whole=True)
    beside = {other.lower() for other in others}
    if rule := next((rule for names, *rule in _MEM if lower == "mem" and names & beside), _rule(lower)):
        return Column(name, "value", rule[0], str((scale(rule[1]) or (1, "1"))[1]), rule[1], rule[0] in _WHOLE)
    if " " in name or name[:1].isupper():
        return Column(name, "open")
    return Column(name, "open", UNKNOWN, UNKNOWN, note=UNKNOWN_UNIT)


def _cell(text: str) -> str:
    match = _SPEED.fullmatch(text.strip())
    return match[1] if match else text


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the output in one walk over the file."""
    with Text(stream) as text:
        log, header, tool = Log("rocm-smi"), [""], "rocm-smi"
        for number, line in numbered(text):
            if found := _header(line):
                if found != header:
                    tool = "rocm-smi" if found[0].lower() == "device" else "amd-smi"
                    log.begin([column_of(name, found) for name in found], number)
                header = found
                log.skip()
            elif not line.strip() or not log.columns:
                log.skip()
            elif line.count('"') % 2:
                log.reject(number, line, "a quote is not closed on its line")
            else:
                log.row(number, list(map(_cell, split_cells(line))), line)
            if log.full:
                yield log.batch()
        yield from log.last(text.encoding, {"tool": tool, "layout": f"{len(log.columns)} columns"})
