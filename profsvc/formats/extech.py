"""Reader of Extech 380801 and 380803 power analyzers: what the public tools for their RS-232 port print."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from profsvc.formats.clock import DAY, SECOND, UTC
from profsvc.formats.head import head_lines
from profsvc.formats.meter_clock import ELAPSED, Clock, Stamp, count_ns, in_epoch
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import HEADER, REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.readings import Channel, Rows, clock_fact
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "extech"
PAGE = """\
Readings of an Extech 380801 or 380803 power analyzer from its RS-232 port, one line a reading.

Make it with the tools of extech-reader:
    extech_rdr --storefile=FILE.dat /dev/ttyUSB0 60 && readings-dat2ascii --raw FILE.dat > FILE.txt
    extech-powermeter --scroll /dev/ttyUSB0 > FILE.txt
A log of Extech's own program, or of your own script, is read as a timeseries; say what its columns are with --column.

Taken: watts, power factor, volts and amperes, each as a sensor. The times of --raw are UTC. Without it the tool prints
2017 whatever the year is, so only the time since the first reading is taken. The lines of extech-powermeter have no
time: their samples are in order but have no clock. The meter's four displays are power, current, voltage and power
factor; the tools cannot tell when the last one is switched to Hz: leave it at PF.

Example:
         timestamp   watts      pf   volts    amps
    1489060800.120  12.345   0.980 120.100   0.105
    1489060800.520  12.390   0.980 120.100   0.105
"""

TOOL = "Extech 380801/380803"
HEAD_LINES = 50
CHANNELS = (
    Channel("watts", "power", "W"),
    Channel("pf", "power_factor", "1"),
    Channel("volts", "voltage", "V"),
    Channel("amps", "current", "A"),
)
_COLUMNS = ["timestamp", *(one.name for one in CHANNELS)]
_DISPLAY = re.compile(r"watts: (\S+) pf: (\S+) volts: (\S+) amps: (\S+)\s*")
_RAW = re.compile(r"([0-9]{1,12}\.[0-9]{3})((?:\s+\S+){4})\s*")
_DATED = re.compile(
    r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ 0-9][0-9] ([0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}) [0-9]{4}"
    r"((?:\s+\S+){4})\s*"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_NUMBER = re.compile(r"[-+]?[0-9]+\.[0-9]*")


def _form(lines: Sequence[str]) -> str | None:
    """Name the form of a file by the first line that tells."""
    for n, line in enumerate(lines):
        if _DISPLAY.fullmatch(line):
            return "display"
        if line.split() == _COLUMNS:
            below = [row for row in lines[n + 1 :] if row.strip()][:2]
            for form, pattern in (("raw", _RAW), ("dated", _DATED)):
                if any(pattern.fullmatch(row) for row in below):
                    return form
    return None


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a reading of one of the tools."""
    return _form(head_lines(head, HEAD_LINES)) is not None


class _File:
    """Sorts the lines of one file."""

    def __init__(self, form: str) -> None:
        self.form = form
        self.readings = Rows(CHANNELS, Numbers(NumberFormat()))
        self.clock = Clock()
        self.day = ""
        self.days = 0

    def add(self, number: int, line: str) -> Record:
        """Take a line, as what it is."""
        kind, reason = SKIP, ""
        if line.split() == _COLUMNS:
            kind = HEADER
        elif line.strip():
            cells, stamp, reason = self._cells(line)
            wrong = [cell for cell in cells if not _NUMBER.fullmatch(cell)]
            if not reason and wrong:
                reason = f"{wrong[0][:40]!r} is no number: the tool did not understand the meter"
            kind = REJECT if reason else ROW
            if kind == ROW:
                self.readings.add(number, stamp, cells)
        return Record(kind, number, 1, line[:TEXT_LIMIT], [], reason)

    def _cells(self, line: str) -> tuple[Sequence[str], Stamp | None, str]:
        """Return the four values of a line and its time, or the reason why it is no reading."""
        if self.form == "display":
            found = _DISPLAY.fullmatch(line)
            return (found.groups(), None, "") if found else ((), None, "it is no line of watts, pf, volts and amps")
        if self.form == "raw" and (match := _RAW.fullmatch(line)):
            ns = count_ns(match[1], SECOND)
            stamp = Stamp(UTC, ns) if ns is not None and in_epoch(ns) else None
            return match[2].split(), stamp, "" if stamp else f"its time {match[1]!r} is no epoch in seconds"
        if self.form == "dated" and (match := _DATED.fullmatch(line)):
            stamp = self._elapsed(match[1], match[2])
            return match[3].split(), stamp, "" if stamp else f"its time {match[2]!r} is none"
        return (), None, "it is no line of a timestamp, watts, pf, volts and amps"

    def _elapsed(self, day: str, time: str) -> Stamp | None:
        """Return the time since the midnight before the first reading."""
        found = self.clock.read(f"2017-01-01 {time}")
        if found is None:
            return None
        # The weekday is right in any year, and the tool records for an hour at most.
        self.days += (_DAYS.index(day) - _DAYS.index(self.day or day)) % len(_DAYS)
        self.day = day
        return Stamp(ELAPSED, self.days * DAY + found.ns % DAY)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the output of one of the tools."""
    with Text(stream) as text:
        ledger, file = Ledger(), _File(_form(list(islice(text.lines(), HEAD_LINES))) or "raw")
        readings = file.readings
        for number, line in numbered(text):
            ledger.take(file.add(number, line))
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {"tool": TOOL, "layout": file.form, "encoding": text.encoding, **clock_fact(readings.first)}
        message = "" if readings.count else "no samples: the file holds no whole reading; record again"
        yield ledger.batch(readings.last(), facts, message)
