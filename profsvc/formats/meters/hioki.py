"""Reader of Hioki power meter recordings, as CSV of PW Communicator or of the logger in the meter."""

from profsvc.formats.timeseries.labels import channel_from_label, split_label
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "hioki"

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
