"""Reader of Joulescope statistics, as CSV of the user interface or of the downsampling logger."""

from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "joulescope"

TOOL = "Joulescope"
# Column, which is also its quantity -> unit.
COLUMNS = {"current": "A", "voltage": "V", "power": "W", "charge": "C", "energy": "J"}


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of Joulescope."""
    if cells[:1] != ["#time"] or len(cells) < 2 or not set(cells[1:]) <= set(COLUMNS):
        return None
    channels = tuple(Channel(cell, cell, COLUMNS[cell]) for cell in cells[1:])
    return Layout(sign, tuple(cells), TimeColumns((0,), "s"), tuple(range(1, len(cells))), channels)


sniff, read = delimited_reader(TOOL, layout)
