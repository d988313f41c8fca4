"""Reader of logs of PTDaemon, the power and temperature daemon of SPEC and MLPerf."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.records import MAX_TEXT_CHARS
from profsvc.formats.parsing.text import Text
from profsvc.formats.timeseries.dates import AmbiguousDateParser
from profsvc.formats.timeseries.labels import channel
from profsvc.formats.timeseries.meter_log import MeterReader, Reading
from profsvc.formats.timeseries.tables.time_columns import is_numeric
from profsvc.tables import Batch

NAME = "ptdaemon"

TOOL = "PTDaemon"
HEAD_LINES = 200
MAX_CHANNELS = 200
MAX_MARKS = 20
# Key of a value -> unit.
COLUMNS = {"Watts": "W", "Volts": "V", "Amps": "A", "PF": "pf", "Temp": "degC", "Humidity": "%RH"}
NOT_MEASURED = {"-1.000000": "not measured (-1)"}
_SAMPLE = re.compile(r"(?:Time,)?([0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}),((?:Watts|Temp),.*)")
_MESSAGE = re.compile(r"(?:Time,)?[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}: ")
_CHANNEL = re.compile(r"Ch[0-9]{1,3}")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a sample."""
    return any(_SAMPLE.match(line) for line in head_lines(head, HEAD_LINES))


def _values(text: str) -> tuple[dict[str, str], str]:
    """Return the values of a sample by key, and its mark."""
    cells, prefix, mark = [cell.strip() for cell in text.rstrip("\r\n").split(",")], "", ""
    values: dict[str, str] = {}
    place = 0
    while place < len(cells):
        key = cells[place]
        if _CHANNEL.fullmatch(key):
            prefix, place = f"{key}.", place + 1
            continue
        value = cells[place + 1] if place + 1 < len(cells) else None
        if value is None or (key not in COLUMNS and key != "Mark"):
            raise ValueError(
                f"{key[:40]!r} is an unknown key or lacks a value; the keys are {', '.join(COLUMNS)}, Mark and Ch1, ..."
            )
        if key == "Mark":
            mark = value
        elif prefix + key in values:
            raise ValueError(f"it has two values of {prefix + key}")
        else:
            values[prefix + key] = value
        place += 2
    return values, mark


@dataclass
class _Marks:
    """The marks of a file with their lines."""

    runs: list[tuple[str, int, int]] = field(default_factory=list)
    dropped: int = 0

    def add(self, mark: str, line: int) -> None:
        if self.runs and self.runs[-1][0] == mark:
            self.runs[-1] = (mark, self.runs[-1][1], line)
        elif len(self.runs) < MAX_MARKS:
            self.runs.append((mark, line, line))
        else:
            self.dropped += 1

    def fact(self) -> dict[str, str]:
        shown = [f"{mark} (lines {first}-{last})" for mark, first, last in self.runs if mark]
        more = [f"and {self.dropped} lines with other marks"] if self.dropped else []
        return {"marks": ", ".join([*shown, *more])[:MAX_TEXT_CHARS]} if shown else {}


def _channels(text: Text) -> dict[str, int]:
    """Return the keys of all values in a file, numbered."""
    keys: dict[str, int] = {}
    for match in map(_SAMPLE.match, text.lines()):
        with suppress(ValueError):
            for key in _values(match[2])[0] if match and len(keys) < MAX_CHANNELS else ():
                keys.setdefault(key, len(keys))
    return keys


class _Reader(MeterReader):
    """Parses the lines of a log, of which a first pass has found the channels."""

    def __init__(self, text: Text) -> None:
        self.channels = _channels(text)
        channels = [channel(key, COLUMNS[key.rpartition(".")[2]]) for key in self.channels]
        super().__init__(TOOL, channels, NOT_MEASURED)
        self.clock, self.marks, self.mark = AmbiguousDateParser("mdy"), _Marks(), ""

    def add(self, number: int, line: str) -> None:
        """Account for a line, and remember the mark of its sample."""
        readings = self.readings.count
        super().add(number, line)
        if self.readings.count > readings:
            self.marks.add(self.mark, number)

    def parse(self, line: str) -> Reading | None:
        """Return the reading on a line."""
        match = _SAMPLE.match(line)
        if match is None:
            if line.strip() and not _MESSAGE.match(line):
                raise ValueError("neither a sample nor a message of the daemon")
            return None
        values, self.mark = _values(match[2])
        if not line.endswith("\n") and len(values) < len(self.channels):
            raise ValueError("the file ends inside this line")
        stamp = self.clock.read(match[1])
        if stamp is None:
            raise ValueError(f"time {match[1]!r} is not a date MM-DD-YYYY and a time")
        if not values.keys() <= self.channels.keys() or not any(map(is_numeric, values.values())):
            raise ValueError("it has no number, or too many channels")
        # A temperature of -1 is a value; with a space it is not found among those that are not measured.
        cells = [f"{cell} " if key.endswith("Temp") and cell in NOT_MEASURED else cell for key, cell in values.items()]
        return Reading(stamp, cells, [self.channels[key] for key in values])

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest and the facts of the file."""
        self.facts |= self.marks.fact()
        yield from super().last(encoding)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in two passes: the first finds the channels."""
    return read_lines(stream, _Reader)
