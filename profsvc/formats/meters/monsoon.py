"""Reader of Monsoon power monitor samples, as CSV of PowerTool or of PyMonsoon."""

from profsvc.formats.timeseries.labels import channel, channel_from_label
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "monsoon"

TOOL = "Monsoon"
PYMONSOON_TIME = "Time(ms)"
# Column of PyMonsoon -> unit.
COLUMNS = {"Main(mA)": "mA", "USB(mA)": "mA", "Aux(mA)": "mA", "Main Voltage(V)": "V", "USB Voltage(V)": "V"}
INPUTS = ("Main ", "USB ", "Aux ")


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of one of the two programs."""
    named = cells[:-1] if cells[-1:] == [""] else cells
    if named[:1] == [PYMONSOON_TIME] and len(named) > 1 and set(named[1:]) <= set(COLUMNS):
        # Every line of PyMonsoon ends with a comma, the header too.
        channels = tuple(channel(label.split("(")[0], COLUMNS[label]) for label in named[1:])
        return Layout(sign, tuple(cells), TimeColumns((0,), "s"), tuple(range(1, len(named))), channels)
    if named[:1] != ["Time (s)"] or not any(label.startswith("Main Avg ") for label in named[1:]):
        return None
    if not all(
        label.startswith(INPUTS) and channel_from_label(label).unit not in ("unknown", "other") for label in named[1:]
    ):
        return None
    channels = tuple(channel_from_label(label) for label in named[1:])
    return Layout(sign, tuple(named), TimeColumns((0,), "s"), tuple(range(1, len(named))), channels)


sniff, read = delimited_reader(TOOL, layout)
