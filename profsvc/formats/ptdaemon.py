"""Reader of PTDaemon logs: the power and temperature daemon of SPEC and MLPerf."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from profsvc.formats.head import head_lines
from profsvc.formats.meter_clock import Clock
from profsvc.formats.meter_time import is_numeric
from profsvc.formats.ncu import Ledger, numbered
from profsvc.formats.ncu_lines import REJECT, ROW, SKIP, TEXT_LIMIT, Record
from profsvc.formats.numbers import NumberFormat, Numbers
from profsvc.formats.readings import Channel, Rows, channel, clock_fact
from profsvc.formats.stream import Text
from profsvc.tables import Batch

NAME = "ptdaemon"
PAGE = """\
A log of PTDaemon, with which SPEC and MLPerf read power analyzers: keys and values, one line a sample.

It is what ptd writes to its log, and what an MLPerf power submission holds as spl.txt. Lines of the daemon's own
messages are skipped and counted.

Say --format ptdaemon where the first lines of a file do not tell.

Taken: Watts, Volts, Amps, PF of the analyzer and of each of its channels (Ch1.Watts, ...), Temp and Humidity, each as
a sensor. PTDaemon prints dates as MM-DD-YYYY, in local time, and -1.000000 for a quantity that is not measured, which
is null with that reason. The marks, which name what ran, are listed with their lines among the facts of the file.

Example:
    Time,12-23-2020 10:21:51.496,Watts,23.430000,Volts,228.370000,Amps,0.204280,PF,0.502300,Mark,testing-workload
    Time,12-23-2020 10:21:52.505,Watts,33.520000,Volts,228.400000,Amps,0.281990,PF,0.520500,Mark,testing-workload
"""

TOOL = "PTDaemon"
HEAD_LINES = 200
MOST_CHANNELS = 200
MOST_MARKS = 20
UNITS = {"Watts": "W", "Volts": "V", "Amps": "A", "PF": "pf", "Temp": "degC", "Humidity": "%RH"}
NOT_MEASURED = {"-1.000000": "not measured (-1)"}
_SAMPLE = re.compile(r"(?:Time,)?([0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}),((?:Watts|Temp),.*)")
_MESSAGE = re.compile(r"(?:Time,)?[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}: ")
_CHANNEL = re.compile(r"Ch[0-9]{1,3}")


def sniff(head: bytes) -> bool:
    """Tell whether one of the first lines in ``head`` is a sample."""
    return any(_SAMPLE.match(line) for line in head_lines(head, HEAD_LINES))


def _pairs(text: str) -> tuple[dict[str, str], str]:
    """Return the values of a sample by key, and its mark; raise `ValueError` with the reason if it is none."""
    cells, prefix, mark = [cell.strip() for cell in text.rstrip("\r\n").split(",")], "", ""
    values: dict[str, str] = {}
    place = 0
    while place < len(cells):
        key = cells[place]
        if _CHANNEL.fullmatch(key):
            prefix, place = f"{key}.", place + 1
            continue
        value = cells[place + 1] if place + 1 < len(cells) else None
        if value is None or (key not in UNITS and key != "Mark"):
            raise ValueError(f"{key[:40]!r} is no key, or has no value; keys are {', '.join(UNITS)}, Mark and Ch1, ...")
        if key == "Mark":
            mark = value
        elif prefix + key in values:
            raise ValueError(f"{prefix + key} stands twice in it")
        else:
            values[prefix + key] = value
        place += 2
    return values, mark


def _channel(key: str) -> Channel:
    name = key.rpartition(".")[2]
    return channel(key, UNITS[name])


@dataclass
class _Marks:
    """Which marks stand on which lines."""

    runs: list[tuple[str, int, int]] = field(default_factory=list)
    dropped: int = 0

    def add(self, mark: str, line: int) -> None:
        if self.runs and self.runs[-1][0] == mark:
            self.runs[-1] = (mark, self.runs[-1][1], line)
        elif len(self.runs) < MOST_MARKS:
            self.runs.append((mark, line, line))
        else:
            self.dropped += 1

    def fact(self) -> dict[str, str]:
        shown = [f"{mark} (lines {first}-{last})" for mark, first, last in self.runs if mark]
        more = [f"and {self.dropped} lines with other marks"] if self.dropped else []
        return {"marks": ", ".join([*shown, *more])[:TEXT_LIMIT]} if shown else {}


def _sort(number: int, line: str) -> tuple[Record, Mapping[str, str], str, str]:
    """Return the record of a line with the values, mark and time of a sample."""
    match = _SAMPLE.match(line)
    kind, reason, mark, time = SKIP, "", "", ""
    values: dict[str, str] = {}
    if match:
        kind, time = ROW, match[1]
        try:
            values, mark = _pairs(match[2])
        except ValueError as error:
            kind, reason = REJECT, str(error)
    elif line.strip() and not _MESSAGE.match(line):
        kind, reason = REJECT, "it is no sample and no message of the daemon"
    return Record(kind, number, 1, line[:TEXT_LIMIT], [], reason), values, mark, time


def _keys(text: Text) -> dict[str, int]:
    keys: dict[str, int] = {}
    for number, line in numbered(text):
        record, values, _, _ = _sort(number, line)
        for key in values if record.kind == ROW and len(keys) < MOST_CHANNELS else ():
            keys.setdefault(key, len(keys))
    return keys


def _blank(values: Mapping[str, str]) -> list[str]:
    # A temperature may well be -1.
    return [f"{value} " if key.endswith("Temp") and value in NOT_MEASURED else value for key, value in values.items()]


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a log in two walks: only the first knows all channels."""
    with Text(stream) as text:
        keys, ledger, marks, clock = _keys(text), Ledger(), _Marks(), Clock("mdy")
        readings = Rows([_channel(key) for key in keys], Numbers(NumberFormat()), None, NOT_MEASURED)
        for number, line in numbered(text):
            record, values, mark, time = _sort(number, line)
            if record.kind == ROW and not line.endswith("\n") and len(values) < len(keys):
                record = record._replace(kind=REJECT, reason="the file ends inside this line")
            if record.kind == ROW:
                stamp = clock.read(time)
                if stamp is None:
                    record = record._replace(kind=REJECT, reason=f"its time {time!r} is none, as MM-DD-YYYY")
                elif not all(key in keys for key in values) or not any(map(is_numeric, values.values())):
                    record = record._replace(kind=REJECT, reason="it holds no number, or too many channels")
                else:
                    readings.add(number, stamp, _blank(values), [keys[key] for key in values])
                    marks.add(mark, number)
            ledger.take(record)
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {"tool": TOOL, "encoding": text.encoding, **clock_fact(readings.first), **marks.fact()}
        message = "" if readings.count else "no samples: the log holds no whole sample; record again"
        yield ledger.batch(readings.last(), facts, message)
