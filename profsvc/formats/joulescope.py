"""Reader of Joulescope statistics: the CSV of its user interface and of its downsampling logger."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import Channel
from profsvc.tables import Batch

NAME = "joulescope"
PAGE = """\
Statistics of a Joulescope energy analyzer, one line a period (usually half a second).

Make it with the Joulescope user interface (record statistics to CSV) or with pyjoulescope's downsampling logger.

Taken: current in A, voltage in V, power in W, charge in C and energy in J, as the tool defines these columns.
The time is in seconds since the start of the recording.

Example:
    #time,current,voltage,power,charge,energy
    0.0,0.399422,4.74572,1.89553,0,0
    0.5,0.400691,4.74479,1.90114,0.200345,0.950568
"""

TOOL = "Joulescope"
UNITS = {"current": "A", "voltage": "V", "power": "W", "charge": "C", "energy": "J"}


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of Joulescope."""
    if cells[:1] != ["#time"] or len(cells) < 2 or not set(cells[1:]) <= set(UNITS):
        return None
    channels = tuple(Channel(cell, cell, UNITS[cell]) for cell in cells[1:])
    return Layout(sign, tuple(cells), Times((0,), "s"), tuple(range(1, len(cells))), channels)


_STYLE = Style(TOOL, layout)


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` has the columns of Joulescope."""
    return layout_of(head_lines(head)[0], _STYLE) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the statistics."""
    return read_table(stream, _STYLE)
