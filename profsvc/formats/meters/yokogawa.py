"""Reader of Yokogawa WT power meter logs, of WTViewer and of SCPI loggers."""

import re

from profsvc.formats.timeseries.labels import channel, split_label
from profsvc.formats.timeseries.table import delimited_reader
from profsvc.formats.timeseries.table_lines import Layout
from profsvc.formats.timeseries.time_columns import TimeColumns

NAME = "yokogawa"
PAGE = """\
Readings of a Yokogawa WT power meter (WT210, WT300, WT500, WT1800, ...), one line per reading.

Create it with WTViewer (store to CSV), with the memory of the meter, or with a logger that queries
:NUMERIC:NORMAL:VALUE? over GPIB, USB or Ethernet and writes a header of
    voltage, current, power, energy, time           in upper or lower case, with or without units
The header of WTViewer has Store No., Date, Time, optionally Millisecond, and functions such as U-1, I-1, P-1, WP-1.
If the header is far down in the file, use --format yokogawa.

Stored: every column as a sensor; energy in J.

Notes:
    The meter prints base units (V, A, W, Wh, s), also if the header names none.
    The meter prints 9.91E+37 for no data and 9.9E+37 for overflow; they are stored as null with that reason.
    Elapsed seconds have no date. Dates of WTViewer are in local time.

Example:
    Voltage (V), Current (A), Active Power (Watt), Accumulated Energy (Watt-Hour), Elapsed Time (Seconds)
    9.91e+037,  9.91e+037,  9.91e+037,  0,  0
    11.8332,    0.0119862,  0.141836,   3.93988e-005,  1
    11.8332,    0.0119863,  0.141836,   7.87977e-005,  2
"""

TOOL = "Yokogawa WT"
HEAD_LINES = 60
# The columns of the SCPI logger in order, and the units that the meter prints.
LOGGER_COLUMNS = (("voltage", "V"), ("current", "A"), ("power", "W"), ("energy", "Wh"), ("time", "s"))
_FUNCTION = re.compile(
    r"(U|I|P|S|Q|LAMBDA|FREQU|FREQI|FU|FI|WP|WH|AH)(?:RMS|MN|DC|AC|RMN|PK|PPK|MPK)?[+-]?[-_ ]?(?:[1-6]|SIGMA|SUM)?"
)
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
    if not any("store" in cell.lower() for cell in cells):
        return None
    words = [_letters(cell) for cell in cells]
    if not {"date", "time"} <= set(words) or not {"storeno", "store"} & set(words):
        return None
    places, channels = [], []
    for place, cell in enumerate(cells):
        name, unit = split_label(cell)
        match = _FUNCTION.fullmatch(name.upper().replace("\u03bb", "LAMBDA").replace("\u03a3", "SUM"))
        if match:
            places.append(place)
            channels.append(channel(name, unit or COLUMNS[match[1]]))
    millisecond = words.index("millisecond") if "millisecond" in words else None
    times = TimeColumns((words.index("date"), words.index("time")), None, millisecond)
    return Layout(sign, tuple(cells), times, tuple(places), tuple(channels)) if places else None


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of the meter."""
    return _logger_layout(sign, cells) or _viewer_layout(sign, cells)


sniff, read = delimited_reader(TOOL, layout, HEAD_LINES)
