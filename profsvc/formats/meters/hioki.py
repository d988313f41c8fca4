"""Reader of Hioki power meter recordings, as CSV of PW Communicator or of the logger in the meter."""

from profsvc.formats.timeseries.labels import channel_from_label, split_label
from profsvc.formats.timeseries.table import delimited_reader
from profsvc.formats.timeseries.table_lines import Layout
from profsvc.formats.timeseries.time_columns import TimeColumns

NAME = "hioki"
PAGE = """\
A recording of a Hioki power meter (PW3335, PW3336, PW3337, ...), one line per reading.

Create it with PW Communicator, or with the CSV logging of the meter. Lines before the header (serial number, start)
and START and STOP lines are skipped and counted. If the format is not detected, use --format hioki.

Stored: every column with a unit, such as U(V), I(A), P(W), WP(Wh), as a sensor; energy in J. Laptime and STATUS columns
are not stored. Date and Time are local.

Notes:
    The meter prints values of E+99 for overrange and for no data; they are stored as null with that reason.

Example:
    SERIAL,,,,PW3335_00 LAN:192.0.2.8 ser0000000,,,,,,
    2024/12/17,8:40:37,START
    Date,Time,Laptime,Laptime(ms),STATUS,STATUS_MAXMIN,U(V),I(A),P(W),WP(Wh)
    2024/12/17,8:40:37,0:00:00,0,00000000,00000000,110.06E+00,1.5477E+00,0.0921E+03,0.015E+00
    2024/12/17,8:41:37,0:01:00,0,00000000,00000000,110.06E+00,1.5305E+00,0.0912E+03,1.552E+00
"""

TOOL = "Hioki PW"
HEAD_LINES = 60
START_STOP = {"START", "STOP", "END"}


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of the meter."""
    if cells[:2] != ["Date", "Time"] or not any(cell.startswith(("Laptime", "STATUS")) for cell in cells):
        return None
    places = [place for place in range(2, len(cells)) if split_label(cells[place])[1] and "Laptime" not in cells[place]]
    channels = tuple(channel_from_label(cells[place]) for place in places)
    return Layout(sign, tuple(cells), TimeColumns((0, 1)), tuple(places), channels) if places else None


def _is_note(cells: list[str]) -> bool:
    return len(cells) < 6 and bool(START_STOP & set(cells))


sniff, read = delimited_reader(TOOL, layout, HEAD_LINES, _is_note)
