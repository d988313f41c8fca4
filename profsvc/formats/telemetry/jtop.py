"""Reader of jtop logs, the monitor of jetson-stats for Jetson boards."""

import re

from profsvc.formats.timeseries.labels import UNKNOWN, Channel
from profsvc.formats.timeseries.table import delimited_reader
from profsvc.formats.timeseries.table_lines import Layout
from profsvc.formats.timeseries.time_columns import TimeColumns

NAME = "jtop"
PAGE = """\
A log of jtop on a Jetson board: power of the rails, temperatures and loads, one row per poll.

Create it with the example jtop_logger.py of jetson-stats, or any script that writes jetson.stats row by row:
    csv.DictWriter(FILE, fieldnames=jetson.stats.keys())

Stored: power in W (Power TOT, Power VDD_IN, power cur), temperatures in degC, loads of CPU, GPU and fan as fractions.
RAM, SWAP and EMC are stored as printed. Times are local.

Notes:
    jtop writes power in mW without naming the unit. The units of RAM, SWAP and EMC differ between its versions.
    An engine that is OFF, and an unpowered sensor, which reads -256, have no value.
References:
    jetson-stats documentation, jtop

Example:
    time,uptime,jetson_clocks,nvp model,CPU1,GPU,RAM,Temp CPU,Power VDD_SOC,Power TOT
    2024-05-02 12:00:01.123456,1:02:03.450000,OFF,MODE_30W,12,55,0.21,48.5,999,5400
    2024-05-02 12:00:02.123456,1:02:04.450000,OFF,MODE_30W,3,97,0.21,49.0,1012,7200
"""

TOOL = "jtop"
MILLIWATTS = "printed without a unit: jtop writes milliwatts"
AVERAGE = "running average of jtop"
NO_UNIT = "jtop prints no unit, and its versions differ"
MISSING = {"-256": "off", "-256.0": "off", "OFF": "off"}
# Pattern of a column name -> quantity, unit, factor, note.
COLUMNS = {
    r"[Tt]emp .+": ("temperature", "degC", 1.0, ""),
    r"power avg": ("power", "W", 0.001, f"{AVERAGE}; {MILLIWATTS}"),
    r"[Pp]ower .+": ("power", "W", 0.001, MILLIWATTS),
    r"(?:CPU|GPU)[0-9]*": ("utilization", "1", 0.01, ""),
    r"[Ff]an(?: .+)?": ("fraction", "1", 0.01, ""),
}
_NO_SENSORS = ("time", "uptime", "jetson_clocks", "nvp model")


def _channel(name: str) -> Channel:
    column = next((column for pattern, column in COLUMNS.items() if re.fullmatch(pattern, name)), None)
    if column is None:
        return Channel(name, UNKNOWN, UNKNOWN, note=NO_UNIT)
    return Channel(name, *column[:3], note=column[3])


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of jtop."""
    if cells[:2] != ["time", "uptime"] or "GPU" not in {cell.rstrip("0123456789") for cell in cells}:
        return None
    places = tuple(place for place, cell in enumerate(cells) if cell not in _NO_SENSORS)
    return Layout(sign, tuple(cells), TimeColumns((0,)), places, tuple(_channel(cells[place]) for place in places))


sniff, read = delimited_reader(TOOL, layout, missing=MISSING)
