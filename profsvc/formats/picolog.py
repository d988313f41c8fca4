"""Reader of PicoLog recordings: thermocouple and voltage loggers of Pico Technology, exported as CSV."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import SIGNS, Layout, Style, layout_of, split_row
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import channel, split_label
from profsvc.tables import Batch

NAME = "picolog"
PAGE = """\
A PicoLog recording (TC-08, ADC-20, ADC-24, PT-104, ...) saved as CSV, one line a reading.

Make it in PicoLog 6 with Export, CSV. The first column has no name and holds the time since the start or a date;
each other column is one statistic (Last, Ave., Min., Max.) of a channel, with its unit in brackets.

Say --format picolog where the first lines of a file do not tell.

Taken: every column as a sensor, under its whole name. A unit in V stays in V: what the logger converted is all we know.
A time since the start has no date.

Example:
    "","TC-08 Ch 1 Last (\u00b0C)","TC-08 Ch 1 Ave. (\u00b0C)","Differential 13 - 14 Last (V)"
    "00:00:00","21.34","21.33","-0.000016"
    "00:00:01","21.35","21.34","-0.000015"
"""

TOOL = "PicoLog"


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of PicoLog."""
    if len(cells) < 2 or cells[0] or not all(cells[1:]):
        return None
    labels = [split_label(cell) for cell in cells[1:]]
    if not all(unit for _, unit in labels):
        return None
    channels = tuple(channel(*label) for label in labels)
    return Layout(sign, tuple(cells), Times((0,)), tuple(range(1, len(cells))), channels)


_STYLE = Style(TOOL, layout)


def _begins_with_time(line: str, sign: str) -> bool:
    cells = split_row(line, sign)
    return bool(cells) and ":" in cells[0] and cells[0][:1].isdigit()


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` is a header with a nameless clock, and the next begins with a time."""
    lines = [line for line in head_lines(head, 4) if line.strip()]
    if not lines or lines[0].lstrip('"')[:1] not in SIGNS:
        return False
    found = layout_of(lines[0], _STYLE)
    return found is not None and (len(lines) < 2 or _begins_with_time(lines[1], found.sign))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a recording."""
    return read_table(stream, _STYLE)
