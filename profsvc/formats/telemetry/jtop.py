"""Reader of jtop logs, the monitor of jetson-stats for Jetson boards."""

import re

from profsvc.formats.timeseries.labels import UNKNOWN, Channel
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "jtop"

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
