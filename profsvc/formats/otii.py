"""Reader of Otii Arc and Ace exports: the CSV of Qoitech's Otii."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import labelled
from profsvc.tables import Batch

NAME = "otii"
PAGE = """\
A recording of an Otii Arc or Ace, exported from Otii as CSV, one line a sample.

Make it in Otii with Export of a recording or of a channel. A file with the columns Timestamp and Value alone does not
say what it measures; say it: --column Timestamp=time:s --column Value=current:A

Taken: current, voltage, power and energy of the main channel, in A, V, W and J. Timestamp counts the seconds since the
start of the recording, which has no date; wall-clock times are in UTC.

Example:
    Timestamp,Main current (A)
    0,0.0125
    0.00025,0.0126
"""

TOOL = "Otii"
CLOCKS = {"Timestamp": Times((0,), "s"), "Timestamp (s)": Times((0,), "s"), "Relative time (s)": Times((0,), "s")}
CLOCKS |= {"Wall-clock time (UTC)": Times((0,), None, zone_s=0)}
_CHANNEL = re.compile(r"(?:.{1,60} )?main (?:current|voltage|power|energy) ?\((?:A|V|W|J)\)", re.IGNORECASE)


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of Otii."""
    if len(cells) < 2 or cells[0] not in CLOCKS or not all(_CHANNEL.fullmatch(cell) for cell in cells[1:]):
        return None
    channels = tuple(labelled(cell) for cell in cells[1:])
    return Layout(sign, tuple(cells), CLOCKS[cells[0]], tuple(range(1, len(cells))), channels)


_STYLE = Style(TOOL, layout)


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` has the columns of Otii."""
    return layout_of(head_lines(head)[0], _STYLE) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a recording."""
    return read_table(stream, _STYLE)
