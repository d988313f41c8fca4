"""Reader of CSV exports of Qoitech Otii, for the Arc and Ace power analyzers."""

import re

from profsvc.formats.timeseries.labels import channel_from_label
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "otii"

TOOL = "Otii"
TIME_COLUMNS = {
    "Timestamp": TimeColumns((0,), "s"),
    "Timestamp (s)": TimeColumns((0,), "s"),
    "Relative time (s)": TimeColumns((0,), "s"),
}
TIME_COLUMNS |= {"Wall-clock time (UTC)": TimeColumns((0,), None, zone_s=0)}
_CHANNEL = re.compile(r"(?:.{1,60} )?main (?:current|voltage|power|energy) ?\((?:A|V|W|J)\)", re.IGNORECASE)


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of Otii."""
    if len(cells) < 2 or cells[0] not in TIME_COLUMNS or not all(_CHANNEL.fullmatch(cell) for cell in cells[1:]):
        return None
    channels = tuple(channel_from_label(cell) for cell in cells[1:])
    return Layout(sign, tuple(cells), TIME_COLUMNS[cells[0]], tuple(range(1, len(cells))), channels)


sniff, read = delimited_reader(TOOL, layout)
