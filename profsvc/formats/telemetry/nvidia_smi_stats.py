"""Reader of nvidia-smi stats: one line per reading, with the GPU, the metric, the time and the value, without a header.

The times are those of the driver's own samples, so power is finer than polls of it.
"""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import TimestampParser
from profsvc.formats.timeseries.columns import UNKNOWN, Column, si_scale, unknown_column
from profsvc.formats.timeseries.sensor_logs.log import LogReader
from profsvc.tables import Batch

NAME = "nvidia-smi-stats"

TOOL = "nvidia-smi"
UNKNOWN_METRIC = "the tool names no unit of this metric: values are as printed"
# Metric -> quantity, unit; those without a unit are stored as printed.
METRICS = {
    "pwrDraw": ("power", "W"),
    "temp": ("temperature", "C"),
    **dict.fromkeys(("gpuUtil", "memUtil", "encUtil", "decUtil"), ("utilization", "%")),
    **dict.fromkeys(("procClk", "memClk"), ("clock", "MHz")),
    "pState": ("state", ""),
    **dict.fromkeys(("violPwr", "violThm", "clkChg"), ("", "")),
}
# The places of GPU, metric, time since 1970 in microseconds, and value.
COLUMNS = [Column("gpu", "gpu"), Column("metric", "field"), Column("time", "time"), Column("value", "long")]
_LINE = re.compile(r"\s*[0-9]{1,4}\s*,\s*(\w+)\s*,\s*[0-9]{15,17}\s*,\s*[^,\s][^,]*")


def metric_column(name: str) -> Column:
    """Return the column of the readings of a metric.

    >>> metric_column("pwrDraw").unit, metric_column("violPwr").unit
    ('W', 'unknown')
    """
    quantity, token = METRICS.get(name, ("", ""))
    if not quantity:
        return unknown_column(name, UNKNOWN_METRIC)
    found = si_scale(token)
    return Column(name, "value", quantity, found[1] if found else UNKNOWN, token)


def sniff(head: bytes) -> bool:
    """Tell whether the first line of ``head`` is a reading of a known metric."""
    first = next((line for line in head_lines(head, 5) if line.strip()), "")
    match = _LINE.fullmatch(first.lstrip("\ufeff").rstrip())
    return match is not None and match[1] in METRICS


class _Reader(LogReader):
    """Sorts the lines of a log."""

    def __init__(self) -> None:
        super().__init__(TOOL, TimestampParser(unit="us"))
        self.log.facts["layout"] = "one row per metric"
        self.log.field_of = metric_column
        self.log.begin(COLUMNS, 1)

    def add(self, number: int, line: str) -> None:
        """Account for a line."""
        if line.strip():
            self.log.row(number, [cell.strip() for cell in line.lstrip("\ufeff").split(",")], line)
        else:
            self.log.skip()


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in one pass over the file."""
    return read_lines(stream, lambda _: _Reader())
