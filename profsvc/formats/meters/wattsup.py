"""Reader of Watts Up meter logs: records of the serial port, and the log of the wattsup script."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from profsvc.formats.parsing.head import head_text
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.text import Text, replace_nuls
from profsvc.formats.timeseries.dates import AmbiguousDateParser
from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.meter_log import MeterReader, Reading
from profsvc.tables import Batch

NAME = "wattsup"

TOOL = "Watts Up"
HEAD_LINES = 50
# Place of a field in a record -> channel, scaled by the resolution of the meter.
COLUMNS = {
    0: Channel("watts", "power", "W", 0.1),
    1: Channel("volts", "voltage", "V", 0.1),
    2: Channel("amps", "current", "A", 0.001),
    3: Channel("watt hours", "energy", "J", 360.0),
    13: Channel("power factor", "power_factor", "1", 0.01),
    16: Channel("hertz", "frequency", "Hz", 0.1),
    17: Channel("volt amps", "apparent_power", "VA", 0.1),
}
LOG_COLUMNS = (Channel("watts", "power", "W"), Channel("volts", "voltage", "V"), Channel("amps", "current", "A"))
FIELDS = 18
_RECORD = re.compile(r"#d,-,([0-9]{1,3}),([^;]*);?\s*")
_OTHER_RECORD = re.compile(r"#(?!d)")
_LOG = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]+)?) ([0-9]+) (\S+) (\S+) (\S+)\s*")


def _form(text: str) -> str | None:
    """Return the form of the first line that is a reading."""
    for line in text.split("\n")[:HEAD_LINES]:
        if _RECORD.match(line.strip()):
            return "record"
        if _LOG.fullmatch(line):
            return "log"
    return None


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a reading in one of the two forms."""
    return _form(head_text(head).replace("\0", " ")) is not None


def _record_cells(line: str) -> Sequence[str]:
    """Return the cells of a record that are sensors."""
    match = _RECORD.fullmatch(line.strip())
    if match is None:
        raise ValueError("not a complete record")
    cells = [cell.strip() for cell in match[2].split(",")]
    if int(match[1]) != FIELDS or len(cells) != FIELDS or ";" not in line:
        raise ValueError(f"the record has {len(cells)} fields and announces {match[1]}, but needs {FIELDS}")
    values = [cells[place] for place in COLUMNS]
    if fraction := next((cell for cell in values if "." in cell), None):
        raise ValueError(f"{fraction!r} is not a whole number, but records contain only whole numbers")
    return values


class _Reader(MeterReader):
    """Parses the lines of one form."""

    def __init__(self, form: str, count_nuls: Callable[[], int]) -> None:
        super().__init__(TOOL, list(COLUMNS.values()) if form == "record" else LOG_COLUMNS, facts={"layout": form})
        self.form, self.clock, self.count_nuls = form, AmbiguousDateParser(), count_nuls

    def parse(self, line: str) -> Reading | None:
        """Return the reading on a line."""
        is_other = self.form == "record" and line.endswith("\n") and _OTHER_RECORD.match(line.strip())
        if is_other or not line.strip():
            return None
        if self.form == "record":
            return Reading(None, _record_cells(line))
        match = _LOG.fullmatch(line)
        if match is None:
            raise ValueError("not a line of date, time, number, watts, volts and amperes")
        stamp = self.clock.read(match[1])
        if stamp is None:
            raise ValueError(f"time {match[1]!r} cannot be read")
        return Reading(stamp, [match[3], match[4], match[5]])

    def last(self, encoding: str) -> Iterator[Batch]:
        """Yield the rest and the facts of the file."""
        if nuls := self.count_nuls():
            self.facts["nul_bytes"] = str(nuls)
        yield from super().last(encoding)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a file of records or of log lines."""
    stream, count_nuls = replace_nuls(stream)

    def reader_of(text: Text) -> _Reader:
        return _Reader(_form("".join(islice(text.lines(), HEAD_LINES))) or "log", count_nuls)

    return read_lines(stream, reader_of)
