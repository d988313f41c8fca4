"""Reader of the log of Tweet-a-Watt: Kill A Watt meters that report by radio to one computer."""

import re
from collections.abc import Iterator
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_clock import Clock
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.readings import Channel, Rows, clock_fact
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "tweet-a-watt"
PAGE = """\
The log of Tweet-a-Watt (wattcher.py): Kill A Watt meters with a radio, one line a meter and five minutes.

It is the file powerdatalog.csv beside wattcher.py. The log of another Kill A Watt logger (date,time,watts) is read as a
timeseries.

Taken: the mean power of each meter as a sensor of its own. Dates are local time, to the minute.

Example:
    #Date, time, sensornum, avgWatts
    2009 03 12, 21:45, 1, 48.5
    2009 03 12, 21:45, 2, 12.25
"""

TOOL = "Tweet-a-Watt"
HEAD_LINES = 20
MOST_METERS = 256
_HEADER = re.compile(r"#?\s*date,\s*time,\s*sensornum,\s*avgwatts\s*", re.IGNORECASE)
_ROW = re.compile(r"([0-9]{4}) ([0-9]{1,2}) ([0-9]{1,2}),\s*([0-9]{1,2}:[0-9]{2}),\s*([0-9]{1,5}),\s*([^,\s]+)\s*")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is the header of the log."""
    return any(_HEADER.fullmatch(line) for line in head_lines(head, HEAD_LINES))


def _meters(text: Text) -> dict[str, int]:
    """Return the meters of a log in their order, as only a walk over it can tell."""
    found: dict[str, int] = {}
    for _, line in numbered(text):
        match = _ROW.fullmatch(line)
        if match and len(found) < MOST_METERS:
            found.setdefault(match[5], len(found))
    return found


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in two walks: only the first knows all meters."""
    with Text(stream) as text:
        meters, ledger, clock = _meters(text), Ledger(), Clock("ymd")
        channels = [Channel(f"sensor {meter}", "power", "W") for meter in meters]
        readings = Rows(channels, Numbers(NumberFormat()))
        for number, line in numbered(text):
            match, kind, reason = _ROW.fullmatch(line), SKIP, ""
            if match:
                stamp = clock.read(f"{match[1]}-{match[2]}-{match[3]} {match[4]}")
                if stamp is None:
                    reason = "its date and time are none"
                elif match[5] not in meters:
                    reason = f"it is of more than {MOST_METERS} meters"
                else:
                    readings.add(number, stamp, [match[6]], [meters[match[5]]])
                kind = REJECT if reason else ROW
            elif _HEADER.fullmatch(line):
                kind = HEADER
            elif line.strip() and not line.startswith("#"):
                kind, reason = REJECT, "it is no line of date, time, sensornum and avgWatts"
            ledger.take(Record(kind, number, 1, line[:TEXT_LIMIT], [], reason))
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {"tool": TOOL, "encoding": text.encoding, "meters": str(len(meters)), **clock_fact(readings.first)}
        message = "" if readings.count else "no samples: the log holds no whole reading; record again"
        yield ledger.batch(readings.last(), facts, message)
