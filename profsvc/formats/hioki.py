"""Reader of Hioki power meter recordings: the CSV of PW Communicator and of the meter's logger."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import labelled, split_label
from profsvc.tables import Batch

NAME = "hioki"
PAGE = """\
A recording of a Hioki power meter (PW3335, PW3336, PW3337, ...), one line a reading.

Make it with PW Communicator, or with the meter's own logging to CSV. Lines before the header (serial number, start)
and START and STOP lines are skipped and counted.

Say --format hioki where the first lines of a file do not tell.

Taken: every column with a unit, such as U(V), I(A), P(W), WP(Wh), as a sensor; energy in J. Date and Time are local.
Laptime and STATUS columns are left out. Values of E+99, the meter's marks for overrange and no data, are null with
that reason.

Example:
    SERIAL,,,,PW3335_00 LAN:192.0.2.8 ser0000000,,,,,,
    2024/12/17,8:40:37,START
    Date,Time,Laptime,Laptime(ms),STATUS,STATUS_MAXMIN,U(V),I(A),P(W),WP(Wh)
    2024/12/17,8:40:37,0:00:00,0,00000000,00000000,110.06E+00,1.5477E+00,0.0921E+03,0.015E+00
    2024/12/17,8:41:37,0:01:00,0,00000000,00000000,110.06E+00,1.5305E+00,0.0912E+03,1.552E+00
"""

TOOL = "Hioki PW"
HEAD_LINES = 60
MARKS = {"START", "STOP", "END"}


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of the meter."""
    if cells[:2] != ["Date", "Time"] or not any(cell.startswith(("Laptime", "STATUS")) for cell in cells):
        return None
    places = [place for place in range(2, len(cells)) if split_label(cells[place])[1] and "Laptime" not in cells[place]]
    channels = tuple(labelled(cells[place]) for place in places)
    return Layout(sign, tuple(cells), Times((0, 1)), tuple(places), channels) if places else None


_STYLE = Style(TOOL, layout, is_note=lambda cells: len(cells) < 6 and bool(MARKS & set(cells)))


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the header of a recording."""
    return any(layout_of(line, _STYLE) for line in head_lines(head, HEAD_LINES))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a recording."""
    return read_table(stream, _STYLE)
