"""Reader of Tweet-a-Watt logs: Kill A Watt meters that send their readings by radio to one computer."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.line_reader import read_lines
from profsvc.formats.parsing.text import Text
from profsvc.formats.timeseries.dates import AmbiguousDateParser
from profsvc.formats.timeseries.labels import Channel
from profsvc.formats.timeseries.meter_log import MeterReader, Reading
from profsvc.tables import Batch

NAME = "tweet-a-watt"

TOOL = "Tweet-a-Watt"
HEAD_LINES = 20
MAX_METERS = 256
_HEADER = re.compile(r"#?\s*date,\s*time,\s*sensornum,\s*avgwatts\s*", re.IGNORECASE)
_ROW = re.compile(r"([0-9]{4}) ([0-9]{1,2}) ([0-9]{1,2}),\s*([0-9]{1,2}:[0-9]{2}),\s*([0-9]{1,5}),\s*([^,\s]+)\s*")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the header of the log."""
    return any(_HEADER.fullmatch(line) for line in head_lines(head, HEAD_LINES))


class _Reader(MeterReader):
    """Parses the lines of a log, of which a first pass has found the meters."""

    def __init__(self, text: Text) -> None:
        self.meters: dict[str, int] = {}
        for match in map(_ROW.fullmatch, text.lines()):
            if match and len(self.meters) < MAX_METERS:
                self.meters.setdefault(match[5], len(self.meters))
        channels = [Channel(f"sensor {meter}", "power", "W") for meter in self.meters]
        super().__init__(TOOL, channels, facts={"meters": str(len(self.meters))})
        self.clock = AmbiguousDateParser("ymd")

    def parse(self, line: str) -> Reading | None:
        """Return the reading on a line."""
        match = _ROW.fullmatch(line)
        if match is None:
            if line.strip() and not line.startswith("#") and not _HEADER.fullmatch(line):
                raise ValueError("not a line of date, time, sensornum and avgWatts")
            return None
        stamp = self.clock.read(f"{match[1]}-{match[2]}-{match[3]} {match[4]}")
        if stamp is None:
            raise ValueError("date and time are invalid")
        if match[5] not in self.meters:
            raise ValueError(f"the log has more than {MAX_METERS} meters, and this is another one")
        return Reading(stamp, [match[6]], [self.meters[match[5]]])


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in two passes: the first finds the meters."""
    return read_lines(stream, _Reader)
