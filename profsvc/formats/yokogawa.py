"""Reader of Yokogawa WT power meter logs: what WTViewer stores, and what SCPI loggers print."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import channel, split_label
from profsvc.tables import Batch

NAME = "yokogawa"
PAGE = """\
Readings of a Yokogawa WT power meter (WT210, WT300, WT500, WT1800, ...), one line a reading.

Make it with WTViewer (store to CSV), with the memory of the meter, or with a logger that asks
:NUMERIC:NORMAL:VALUE? over GPIB, USB or Ethernet and writes a header of
    voltage, current, power, energy, time           in any case, with or without units
WTViewer's header has Store No., Date, Time, perhaps Millisecond, and functions such as U-1, I-1, P-1, WP-1.
The meter prints base units (V, A, W, Wh, s), also where the header names none.

Say --format yokogawa where the header stands far down in the file.

Taken: every column as a sensor; energy in J. 9.91E+37, which the meter prints for no data, and 9.9E+37, its overflow,
are null with that reason. Elapsed seconds have no date; WTViewer's dates are in local time.

Example:
    Voltage (V), Current (A), Active Power (Watt), Accumulated Energy (Watt-Hour), Elapsed Time (Seconds)
    9.91e+037,  9.91e+037,  9.91e+037,  0,  0
    11.8332,    0.0119862,  0.141836,   3.93988e-005,  1
    11.8332,    0.0119863,  0.141836,   7.87977e-005,  2
"""

TOOL = "Yokogawa WT"
HEAD_LINES = 60
# The columns of the SCPI logger, in its order, and the units the meter prints.
_LOGGER = (("voltage", "V"), ("current", "A"), ("power", "W"), ("energy", "Wh"), ("time", "s"))
_FUNCTION = re.compile(
    r"(U|I|P|S|Q|LAMBDA|FREQU|FREQI|FU|FI|WP|WH|AH)(?:RMS|MN|DC|AC|RMN|PK|PPK|MPK)?[+-]?[-_ ]?(?:[1-6]|SIGMA|SUM)?"
)
_UNITS = {"U": "V", "I": "A", "P": "W", "S": "VA", "Q": "var", "LAMBDA": "pf", "WP": "Wh", "WH": "Wh", "AH": "Ah"}
_UNITS |= {"FU": "Hz", "FI": "Hz", "FREQU": "Hz", "FREQI": "Hz"}


def _word(label: str) -> str:
    return re.sub(r"[^a-z]", "", split_label(label)[0].lower())


def _logger(sign: str, cells: list[str]) -> Layout | None:
    # The header may say active power, accumulated energy, elapsed time.
    if len(cells) != len(_LOGGER) or not all(_word(c).endswith(w) for c, (w, _) in zip(cells, _LOGGER, strict=True)):
        return None
    labels = [split_label(cell) for cell in cells]
    channels = [channel(name, unit or _LOGGER[n][1]) for n, (name, unit) in enumerate(labels[:-1])]
    return Layout(sign, tuple(cells), Times((4,), labels[-1][1] or "s"), (0, 1, 2, 3), tuple(channels))


def _viewer(sign: str, cells: list[str]) -> Layout | None:
    if not any("store" in cell.lower() for cell in cells):
        return None
    words = [_word(cell) for cell in cells]
    if not {"date", "time"} <= set(words) or not {"storeno", "store"} & set(words):
        return None
    places, channels = [], []
    for place, cell in enumerate(cells):
        name, unit = split_label(cell)
        match = _FUNCTION.fullmatch(name.upper().replace("\u03bb", "LAMBDA").replace("\u03a3", "SUM"))
        if match:
            places.append(place)
            channels.append(channel(name, unit or _UNITS[match[1]]))
    millisecond = words.index("millisecond") if "millisecond" in words else None
    times = Times((words.index("date"), words.index("time")), None, millisecond)
    return Layout(sign, tuple(cells), times, tuple(places), tuple(channels)) if places else None


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of the meter."""
    return _logger(sign, cells) or _viewer(sign, cells)


_STYLE = Style(TOOL, layout)


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the header of a WT log."""
    return any(layout_of(line, _STYLE) for line in head_lines(head, HEAD_LINES))


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log."""
    return read_table(stream, _STYLE)
