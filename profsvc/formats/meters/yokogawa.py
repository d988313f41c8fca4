"""Reader of Yokogawa WT power meter logs, of WTViewer and of SCPI loggers."""

import re

from profsvc.formats.timeseries.labels import channel, split_label
from profsvc.formats.timeseries.tables.lines import Layout
from profsvc.formats.timeseries.tables.table import delimited_reader
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "yokogawa"

TOOL = "Yokogawa WT"
HEAD_LINES = 60
# The columns of the SCPI logger in order, and the units that the meter prints.
LOGGER_COLUMNS = (("voltage", "V"), ("current", "A"), ("power", "W"), ("energy", "Wh"), ("time", "s"))
_FUNCTION = re.compile(
    r"(U|I|P|S|Q|LAMBDA|FREQU|FREQI|FU|FI|WP|WH|AH)(?:RMS|MN|DC|AC|RMN|PK|PPK|MPK)?[+-]?[-_ ]?(?:[1-6]|SIGMA|SUM)?"
)
_PLACE_OR_TIME = re.compile("store|date|time", re.IGNORECASE)
# Function of the meter -> unit.
COLUMNS = {"U": "V", "I": "A", "P": "W", "S": "VA", "Q": "var", "LAMBDA": "pf", "WP": "Wh", "WH": "Wh", "AH": "Ah"}
COLUMNS |= {"FU": "Hz", "FI": "Hz", "FREQU": "Hz", "FREQI": "Hz"}


def _letters(label: str) -> str:
    return re.sub(r"[^a-z]", "", split_label(label)[0].lower())


def _logger_layout(sign: str, cells: list[str]) -> Layout | None:
    # The header may contain active power, accumulated energy, elapsed time.
    if len(cells) != len(LOGGER_COLUMNS):
        return None
    if not all(_letters(cell).endswith(name) for cell, (name, _) in zip(cells, LOGGER_COLUMNS, strict=True)):
        return None
    labels = [split_label(cell) for cell in cells]
    channels = [channel(name, unit or LOGGER_COLUMNS[n][1]) for n, (name, unit) in enumerate(labels[:-1])]
    return Layout(sign, tuple(cells), TimeColumns((4,), labels[-1][1] or "s"), (0, 1, 2, 3), tuple(channels))


def _viewer_layout(sign: str, cells: list[str]) -> Layout | None:
    # Some headers of other tools have a thousand cells, and a label takes a while to split.
    named = {_letters(cell) for cell in cells if _PLACE_OR_TIME.search(cell)}
    if not {"date", "time"} <= named or not {"storeno", "store"} & named:
        return None
    words = [_letters(cell) for cell in cells]
    places, channels = [], []
    for place, cell in enumerate(cells):
        name, unit = split_label(cell)
        match = _FUNCTION.fullmatch(name.upper().replace("\u03bb", "LAMBDA").replace("\u03a3", "SUM"))
        if match:
            places.append(place)
            channels.append(channel(name, unit or COLUMNS[match[1]]))
    fraction = (words.index("millisecond"), 3) if "millisecond" in words else None
    times = TimeColumns((words.index("date"), words.index("time")), None, fraction)
    return Layout(sign, tuple(cells), times, tuple(places), tuple(channels)) if places else None


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of the meter."""
    return _logger_layout(sign, cells) or _viewer_layout(sign, cells)


sniff, read = delimited_reader(TOOL, layout, HEAD_LINES)
