"""Reader of Monsoon power monitors: the CSV of PowerTool and of PyMonsoon."""

from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_lines import Layout, Style, layout_of
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times
from profsvc.formats.readings import channel, labelled
from profsvc.tables import Batch

NAME = "monsoon"
PAGE = """\
Samples of a Monsoon power monitor, one line a sample.

Make it with PowerTool (Export CSV of a .pt4 or .pt5 recording), or with PyMonsoon (enableCSVOutput).

Taken: every column as a sensor, in A, V and W; mAh in C. PyMonsoon heads its clock Time(ms), but writes seconds since
the start (time.time() - startTime), or with legacy_timestamp an epoch in seconds: it is read as seconds. A time since
the start has no date.

Example:
    Time (s),Main Avg Current (mA),Main Avg Power (mW),Main Avg Voltage (V)
    0.0002,152.31,639.70,4.2
    0.0004,152.40,640.08,4.2
"""

TOOL = "Monsoon"
PYTHON_TIME = "Time(ms)"
PYTHON = {"Main(mA)": "mA", "USB(mA)": "mA", "Aux(mA)": "mA", "Main Voltage(V)": "V", "USB Voltage(V)": "V"}
INPUTS = ("Main ", "USB ", "Aux ")


def layout(sign: str, cells: list[str]) -> Layout | None:
    """Return the layout of a header of one of the two programs."""
    named = cells[:-1] if cells[-1:] == [""] else cells
    if named[:1] == [PYTHON_TIME] and len(named) > 1 and set(named[1:]) <= set(PYTHON):
        # Every line ends in a comma, the header too.
        channels = tuple(channel(label.split("(")[0], PYTHON[label]) for label in named[1:])
        return Layout(sign, tuple(cells), Times((0,), "s"), tuple(range(1, len(named))), channels)
    if named[:1] != ["Time (s)"] or not any(label.startswith("Main Avg ") for label in named[1:]):
        return None
    if not all(label.startswith(INPUTS) and labelled(label).unit not in ("unknown", "other") for label in named[1:]):
        return None
    channels = tuple(labelled(label) for label in named[1:])
    return Layout(sign, tuple(named), Times((0,), "s"), tuple(range(1, len(named))), channels)


_STYLE = Style(TOOL, layout)


def sniff(head: bytes) -> bool:
    """Tell whether the first line in ``head`` has the columns of a Monsoon."""
    return layout_of(head_lines(head)[0], _STYLE) is not None


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the samples."""
    return read_table(stream, _STYLE)
