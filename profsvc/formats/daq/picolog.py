"""Reader of PicoLog recordings of Pico Technology thermocouple and voltage loggers, exported as CSV."""

from functools import partial

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.timeseries.labels import channel, split_label
from profsvc.formats.timeseries.tables.lines import SEPARATORS, Layout, TableFormat, layout_of, split_row
from profsvc.formats.timeseries.tables.table import read_table
from profsvc.formats.timeseries.tables.time_columns import TimeColumns

NAME = "picolog"

TOOL = "PicoLog"


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of PicoLog."""
    if len(cells) < 2 or cells[0] or not all(cells[1:]):
        return None
    labels = [split_label(cell) for cell in cells[1:]]
    if not all(unit for _, unit in labels):
        return None
    channels = tuple(channel(*label) for label in labels)
    return Layout(sign, tuple(cells), TimeColumns((0,)), tuple(range(1, len(cells))), channels)


_STYLE = TableFormat(TOOL, layout)


def _starts_with_time(line: str, sign: str) -> bool:
    cells = split_row(line, sign)
    return bool(cells) and ":" in cells[0] and cells[0][:1].isdigit()


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins with a header without a name for the time, above a row that begins with a time."""
    lines = [line for line in head_lines(head, 4) if line.strip()]
    if not lines or lines[0].lstrip('"')[:1] not in SEPARATORS:
        return False
    found = layout_of(lines[0], _STYLE)
    return found is not None and (len(lines) < 2 or _starts_with_time(lines[1], found.sign))


read = partial(read_table, style=_STYLE)
