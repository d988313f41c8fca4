"""Reader of Extech 380801 and 380803 power analyzer logs, as the public tools for their RS-232 port print them."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.timestamps import DAY, SECOND, UTC
from profsvc.formats.timeseries.dates import ELAPSED, AmbiguousDateParser, Stamp, count_to_ns, is_plausible_epoch
from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.meter_log import MeterReader, Reading
from profsvc.tables import Batch

NAME = "extech"

TOOL = "Extech 380801/380803"
HEAD_LINES = 50
COLUMNS = (
    Channel("watts", "power", "W"),
    Channel("pf", "power_factor", "1"),
    Channel("volts", "voltage", "V"),
    Channel("amps", "current", "A"),
)
_HEADER = ["timestamp", *(channel.name for channel in COLUMNS)]
_DISPLAY = re.compile(r"watts: (\S+) pf: (\S+) volts: (\S+) amps: (\S+)\s*")
_RAW = re.compile(r"([0-9]{1,12}\.[0-9]{3})((?:\s+\S+){4})\s*")
_DATED = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ 0-9][0-9] ([0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}) [0-9]{4}"
    r"((?:\s+\S+){4})\s*"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NUMBER = re.compile(r"[-+]?[0-9]+\.[0-9]*")


def _form(lines: Sequence[str]) -> str | None:
    """Return the form of a file, by the first line that shows it."""
    for n, line in enumerate(lines):
        if _DISPLAY.fullmatch(line):
            return "display"
        if line.split() == _HEADER:
            below = [row for row in lines[n + 1 :] if row.strip()][:2]
            for form, pattern in (("raw", _RAW), ("dated", _DATED)):
                if any(pattern.fullmatch(row) for row in below):
                    return form
    return None


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a reading of one of the tools."""
    return _form(head_lines(head, HEAD_LINES)) is not None


class _Reader(MeterReader):
    """Parses the lines of one form."""

    def __init__(self, form: str) -> None:
        super().__init__(TOOL, COLUMNS, facts={"layout": form})
        self.form = form
        self.clock = AmbiguousDateParser()
        self.weekday = ""
        self.days = 0

    def parse(self, line: str) -> Reading | None:
        """Return the reading on a line."""
        if not line.strip() or line.split() == _HEADER:
            return None
        reading = self._reading(line)
        if wrong := next((cell for cell in reading.cells if not _NUMBER.fullmatch(cell)), None):
            raise ValueError(f"{wrong[:40]!r} is not a number, so the tool did not understand the meter")
        return reading

    def _reading(self, line: str) -> Reading:
        if self.form == "display":
            if found := _DISPLAY.fullmatch(line):
                return Reading(None, found.groups())
            raise ValueError("not a line of watts, pf, volts and amps")
        if self.form == "raw" and (match := _RAW.fullmatch(line)):
            ns = count_to_ns(match[1], SECOND)
            if ns is None or not is_plausible_epoch(ns):
                raise ValueError(f"time {match[1]!r} is not in seconds since 1970")
            return Reading(Stamp(UTC, ns), match[2].split())
        if self.form == "dated" and (match := _DATED.fullmatch(line)):
            return Reading(self._elapsed(match[1], match[2]), match[3].split())
        raise ValueError("not a line of a timestamp, watts, pf, volts and amps")

    def _elapsed(self, weekday: str, time: str) -> Stamp:
        """Return the time since the midnight before the first reading."""
        found = self.clock.read(f"2017-01-01 {time}")
        if found is None:
            raise ValueError(f"{time!r} is not a time of day")
        # The weekday is right in any year, and the tool records for an hour at most.
        self.days += (_DAYS.index(weekday) - _DAYS.index(self.weekday or weekday)) % len(_DAYS)
        self.weekday = weekday
        return Stamp(ELAPSED, self.days * DAY + found.ns % DAY)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the output of one of the tools."""
    return read_lines(stream, lambda text: _Reader(_form(list(islice(text.lines(), HEAD_LINES))) or "raw"))
