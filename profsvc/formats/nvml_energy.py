"""Reader of logs of NVML's energy counter: a CSV with a column of time and columns whose names carry their units."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.clock import Clock
from profsvc.formats.head import head_lines
from profsvc.formats.ncu import numbered
from profsvc.formats.sensor_log import Log
from profsvc.formats.sensors import Column, scale
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "nvml-energy"
PAGE = """\
A log of NVML's energy counter, with the power and the temperature beside it: the reference for an energy.

Make it with a loop that writes nvmlDeviceGetTotalEnergyConsumption (mJ since the driver was loaded),
nvmlDeviceGetPowerUsage (mW) and nvmlDeviceGetTemperature (C), under a header whose names carry the units:
    unix_s (or unix_ms, unix_us, unix_ns), and any of energy_mj, energy_j, power_mw, power_w, temp_c, gpu
in any order; gpu is the index where there are several. The time counts since 1970, UTC.

Taken: every row. The counter is kept as it is, in J: its difference over a window is the energy of the window. It is
updated less often than it is usually polled, which is said at the sensor with the figures.

Example:
    unix_s,energy_mj,power_mw,temp_c
    1795180576.3281,53296225,79467,31
    1795180576.3782,53304163,79449,31
"""

TOOL = "NVML"
_CLOCKS = {"unix_s": "s", "unix_ms": "ms", "unix_us": "us", "unix_ns": "ns"}
_COLUMNS = {
    "energy_mj": ("energy", "mJ", True),
    "energy_j": ("energy", "J", False),
    "power_mw": ("power", "mW", True),
    "power_w": ("power", "W", False),
    "temp_c": ("temperature", "C", True),
}
_NOTES = {"energy": "a counter since the driver was loaded: take differences"}


def _column(name: str) -> Column:
    if name in _CLOCKS:
        return Column(name, "time")
    if name == "gpu":
        return Column(name, "gpu")
    quantity, token, whole = _COLUMNS[name]
    found = scale(token)
    return Column(name, "value", quantity, found[1] if found else "1", token, whole, _NOTES.get(quantity, ""))


def _header(line: str) -> list[str] | None:
    if line[:1].isdigit():
        return None
    cells = [cell.strip() for cell in line.lstrip("\ufeff").strip().split(",")]
    times, values = [cell for cell in cells if cell in _CLOCKS], [cell for cell in cells if cell in _COLUMNS]
    known = len(times) + len(values) + cells.count("gpu") == len(cells) == len(set(cells))
    return cells if len(times) == 1 and values and known else None


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with a header of a time since 1970 and of NVML's readings."""
    return _header(head_lines(head)[0]) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one walk over the file."""
    with Text(stream) as text:
        log = Log(TOOL)
        for number, line in numbered(text):
            if header := _header(line):
                if [column.name for column in log.columns] != header:
                    log.flush()
                    log.clock = Clock(
                        unit=next(_CLOCKS[cell] for cell in header if cell in _CLOCKS), kind=log.clock.kind
                    )
                    log.begin([_column(name) for name in header], number)
                log.skip()
            elif not line.strip() or not log.columns:
                log.skip()
            else:
                log.row(number, line.rstrip("\r\n").split(","), line)
            if log.full:
                yield log.batch()
        yield from log.last(text.encoding, {"layout": f"{len(log.columns)} columns"})
