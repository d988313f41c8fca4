"""Reader of Joulescope statistics, as CSV of the user interface or of the downsampling logger."""

from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.table import delimited_reader
from profsvc.formats.timeseries.table_lines import Layout
from profsvc.formats.timeseries.time_columns import TimeColumns

NAME = "joulescope"
PAGE = """\
Statistics of a Joulescope energy analyzer, one line per period (usually half a second).

Create it with the Joulescope user interface (record statistics to CSV) or with the downsampling logger of pyjoulescope.

Stored: current in A, voltage in V, power in W, charge in C and energy in J, as the tool defines these columns.

Notes:
    The time counts seconds since the start of the recording, which has no date.

Example:
    #time,current,voltage,power,charge,energy
    0.0,0.399422,4.74572,1.89553,0,0
    0.5,0.400691,4.74479,1.90114,0.200345,0.950568
"""

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
