"""Reader of Watts Up meters: the records of their serial port, and the log of the wattsup script."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import BinaryIO

from profsvc.formats.head import head_text
from profsvc.formats.meter_clock import Clock, Stamp
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.readings import Channel, Rows, clock_fact
from profsvc.formats.stream import Text, nuls_as_spaces
from profsvc.tables import Batch

NAME = "wattsup"
PAGE = """\
Rows of a Watts Up PRO, ES or .Net power meter, one line a reading (usually a second).

Two forms are read: the meter's own records as they came from its serial port (#d,-,18,...), and the log of the wattsup
script: date, time, number of the sample, watts, volts, amperes.

Taken: watts, volts and amperes, and of a record also watt-hours (as J), power factor, hertz, volt-amperes; each as a
sensor, scaled as the meter defines (0.1 W, 0.1 V, 0.001 A, 0.1 Wh, 0.01, 0.1 Hz, 0.1 VA). A record has no time of its
own: its samples are in order but have no clock. Costs, minima and maxima are left out. NUL bytes around the records
are ignored and counted among the facts.

Example:
    #d,-,18,924,1183,477,6820,54,1467,117,924,1199,780,560,1197,474,99,0,0,601,564;
    #d,-,18,624,1183,477,6821,54,1467,117,924,1199,780,560,1197,474,99,0,0,601,564;
"""

TOOL = "Watts Up"
HEAD_LINES = 50
# Places after the count of fields, and what one step of the meter is worth.
RECORD = {
    0: Channel("watts", "power", "W", 0.1),
    1: Channel("volts", "voltage", "V", 0.1),
    2: Channel("amps", "current", "A", 0.001),
    3: Channel("watt hours", "energy", "J", 360.0),
    13: Channel("power factor", "power_factor", "1", 0.01),
    16: Channel("hertz", "frequency", "Hz", 0.1),
    17: Channel("volt amps", "apparent_power", "VA", 0.1),
}
LOG = (Channel("watts", "power", "W"), Channel("volts", "voltage", "V"), Channel("amps", "current", "A"))
FIELDS = 18
_RECORD = re.compile(r"#d,-,([0-9]{1,3}),([^;]*);?\s*")
_OTHER_RECORD = re.compile(r"#(?!d)")
_LOG = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}(?:\.[0-9]+)?) ([0-9]+) (\S+) (\S+) (\S+)\s*")


def _form(text: str) -> str | None:
    """Name the form of the first line that is a reading."""
    for line in text.split("\n")[:HEAD_LINES]:
        if _RECORD.match(line.strip()):
            return "record"
        if _LOG.fullmatch(line):
            return "log"
    return None


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a reading in one of the two forms."""
    return _form(head_text(head).replace("\0", " ")) is not None


def _record(line: str) -> tuple[Sequence[str], str]:
    """Return the cells of a record that are sensors, or the reason why it is none."""
    match = _RECORD.fullmatch(line.strip())
    if match is None:
        return [], "it is no whole record"
    cells = [cell.strip() for cell in match[2].split(",")]
    if int(match[1]) != FIELDS or len(cells) != FIELDS or ";" not in line:
        return [], f"it has {len(cells)} fields and announces {match[1]}, but needs {FIELDS}"
    chosen = [cells[place] for place in RECORD]
    if odd := next((cell for cell in chosen if "." in cell), None):
        return [], f"it has {odd!r}, but a record holds whole numbers"
    return chosen, ""


class _File:
    """Sorts the lines of one file."""

    def __init__(self, form: str) -> None:
        self.form, self.clock = form, Clock()
        channels = list(RECORD.values()) if form == "record" else LOG
        self.readings = Rows(channels, Numbers(NumberFormat()))

    def add(self, number: int, line: str) -> Record:
        kind, reason = SKIP, ""
        other = self.form == "record" and line.endswith("\n") and _OTHER_RECORD.match(line.strip())
        if line.strip() and not other:
            cells, stamp, reason = self._cells(line)
            kind = REJECT if reason else ROW
            if kind == ROW:
                self.readings.add(number, stamp, cells)
        return Record(kind, number, 1, line[:TEXT_LIMIT], [], reason)

    def _cells(self, line: str) -> tuple[Sequence[str], Stamp | None, str]:
        if self.form == "record":
            cells, reason = _record(line)
            return cells, None, reason
        match = _LOG.fullmatch(line)
        if match is None:
            return [], None, "it is no line of date, time, number, watts, volts, amperes"
        stamp = self.clock.read(match[1])
        return [match[3], match[4], match[5]], stamp, "" if stamp else f"its time {match[1]!r} cannot be read"


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a file of records or of log lines."""
    stream, nuls = nuls_as_spaces(stream)
    with Text(stream) as text:
        head = "".join(islice(text.lines(), HEAD_LINES))
        ledger, file = Ledger(), _File(_form(head) or "log")
        readings = file.readings
        for number, line in numbered(text):
            ledger.take(file.add(number, line))
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {
            "tool": TOOL,
            "layout": file.form,
            "encoding": text.encoding,
            **clock_fact(readings.first),
            **({"nul_bytes": str(nuls())} if nuls() else {}),
        }
        message = "" if readings.count else "no samples: the file holds no whole reading; record again"
        yield ledger.batch(readings.last(), facts, message)
