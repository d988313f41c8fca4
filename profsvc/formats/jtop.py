"""Reader of the logs of jtop, the monitor of Jetson boards of jetson-stats."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import UNKNOWN, Channel
from profsvc.tables import Batch

NAME = "jtop"
PAGE = """\
A log of jtop on a Jetson board: power of the rails, temperatures and loads, a row a poll.

Make it with the example jtop_logger.py of jetson-stats, or any script that writes jetson.stats row by row:
    csv.DictWriter(FILE, fieldnames=jetson.stats.keys())

Taken: power in W (jtop writes mW without saying so: Power TOT, Power VDD_IN, power cur), temperatures in degC, loads of
CPU, GPU and fan as fractions. RAM, SWAP and EMC are kept as they are printed: versions differ. An engine that is OFF,
and a sensor without power, for which the board says -256, have no value. Times are local.

Example:
    time,uptime,jetson_clocks,nvp model,CPU1,GPU,RAM,Temp CPU,Power VDD_SOC,Power TOT
    2024-05-02 12:00:01.123456,1:02:03.450000,OFF,MODE_30W,12,55,0.21,48.5,999,5400
    2024-05-02 12:00:02.123456,1:02:04.450000,OFF,MODE_30W,3,97,0.21,49.0,1012,7200
"""

TOOL = "jtop"
MILLIWATTS = "printed without a unit: jtop writes milliwatts"
AVERAGE = "running average of the tool"
NO_UNIT = "jtop prints no unit, and its versions differ"
MISSING = {"-256": "off", "-256.0": "off", "OFF": "off"}
_KINDS = {
    r"[Tt]emp .+": ("temperature", "degC", 1.0, ""),
    r"power avg": ("power", "W", 0.001, f"{AVERAGE}; {MILLIWATTS}"),
    r"[Pp]ower .+": ("power", "W", 0.001, MILLIWATTS),
    r"(?:CPU|GPU)[0-9]*": ("utilization", "1", 0.01, ""),
    r"[Ff]an(?: .+)?": ("fraction", "1", 0.01, ""),
}
_WORDS = ("time", "uptime", "jetson_clocks", "nvp model")


def _channel(name: str) -> Channel:
    kind = next((kind for pattern, kind in _KINDS.items() if re.fullmatch(pattern, name)), None)
    if kind is None:
        return Channel(name, UNKNOWN, UNKNOWN, note=NO_UNIT)
    return Channel(name, kind[0], kind[1], kind[2], note=kind[3])


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of jtop."""
    if cells[:2] != ["time", "uptime"] or "GPU" not in {cell.rstrip("0123456789") for cell in cells}:
        return None
    places = tuple(place for place, cell in enumerate(cells) if cell not in _WORDS)
    return Layout(sign, tuple(cells), Times((0,)), places, tuple(_channel(cells[place]) for place in places))


_STYLE = Style(TOOL, layout, missing=MISSING)


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` has the columns of jtop."""
    return layout_of(head_lines(head)[0], _STYLE) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log."""
    return read_table(stream, _STYLE)
