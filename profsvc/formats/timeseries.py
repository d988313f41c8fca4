"""Reader of any log with a time column: power meters, thermocouples and loggers that have no format of their own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import BinaryIO

from profsvc.formats import (
    hardware_monitor,
    hioki,
    joulescope,
    jtop,
    marks,
    monsoon,
    otii,
    picolog,
    rocm_smi,
    yokogawa,
    zeus,
)
from profsvc.formats.head import head_lines
from profsvc.formats.meter_clock import ORDERS, Clock
from profsvc.formats.meter_lines import PREAMBLE_LINES, Layout, Style, layout_of, split_row
from profsvc.formats.meter_table import read_table
from profsvc.formats.meter_time import Times, is_numeric
from profsvc.formats.named_columns import SKIP, TIME, Named, places_of, refusal
from profsvc.formats.readings import Channel, channel, labelled, split_label, unit_of
from profsvc.formats.turns import candidates
from profsvc.tables import Batch

NAME = "timeseries"
PAGE = """\
A log of any meter or sensor as a timeseries: a CSV with a header, a time column, and columns of numbers.

Make it with what your meter or logger comes with (the programs of Extech and of Kill A Watt loggers, CSV of NI
FieldPoint and cDAQ, of LabVIEW and FlexLogger, of Omega and other thermocouple loggers, your own script). Cells are
separated by comma, semicolon or tab; lines before the header are skipped and counted, a row of units below it is read.

time     a column Timestamp, Time, Date/Time, or Date and Time beside each other; a date and time (YYYY-MM-DD hh:mm:ss,
         DD.MM.YYYY, DD/MM/YYYY or MM/DD/YYYY), an epoch, or a count with its unit in the header, such as Time (ms)
unit     in the column's name: Power (W), power_mw, Temp [\u00b0F], Watts, in a row of units, or in each cell: 52.1 W

Where the file does not say it, say it: --column Main=power:mW --column T1=temperature:degC --column t=time:ms. Columns
that are not named are read as always, --column Note=skip leaves one out, #2 is the second column; where all columns
are named by numbers, the file needs no header, and other columns are left out.

Where rows take turns, a row a GPU or a sensor, a column that tells it (gpu_index, Sensor, Channel) makes a sensor of
each; where it is called otherwise, say it: --column card=gpu, --column what=name.

Taken: every column of numbers as a sensor, in SI units where its name has a unit; a column without one is kept as it
is printed, with quantity and unit "unknown". Dates without a zone are local time. 01/02/2024 is decided by the other
dates of the file (a field above 12), or said: --column Date=time:dmy (mdy, ymd); else the file is refused. A row with
fewer cells than the header is rejected: its values have moved to other columns.

Example:
    Time (s),Main Avg Current (mA),Main Avg Power (mW),Board temperature (\u00b0C)
    0.0002,152.31,639.70,41.2
    0.0004,152.40,640.08,41.2
"""

TOOL = "log"
_TABLES = (hioki, joulescope, jtop, marks, monsoon, otii, picolog, yokogawa)
DATES = {"date", "datum"}
CLOCKS = {"time", "zeit", "uhrzeit", "timeofday"}
STAMPS = {"timestamp", "timestamps", "datetime", "dateandtime", "zeitstempel", "datumzeit", "datumuhrzeit"}
STAMPS |= {"datetimeutc", "timeutc", "utc", "utctime", "utcdatetime", "localtime", "timestamputc", "datetimestamp"}
STAMPS |= {"epoch", "unixtime", "unixtimestamp", "epochtime", "logtime", "sampletime", "elapsed", "elapsedtime"}
STAMPS |= {"systemtime", "timerelative", "relativetime", "runtime", "wallclocktime", "wallclocktimeutc"}
COUNTS = {
    "t",
    "seconds",
    "elapsedseconds",
    "timeseconds",
    "timeofdayseconds",
    "millis",
    "ms",
    "milliseconds",
    "elapsedmilliseconds",
}
ORDINALS = {"no", "nr", "index", "record", "recordno", "sample", "sampleno", "row", "scan", "scanno", "n", "id"}
ORDINALS |= {"count"}
# Logs that have a reader of their own, or will not be guessed at.
_OTHERS = re.compile(
    r"(?:power|temperature|clocks?|utilization|memory|fan|pcie|enforced|encoder|ecc|clocks_[a-z_]+|gpu|driver_version"
    r"|display_[a-z]+|vbios_version|accounting|persistence_mode|mig)\.[\w.]+(?: \[.*\])?"
    r"|GPUId|TimeStampUs|gpuIndex|Entity|Field(?:Id)?|pstate|gpu_?uuid|uuid|X_Value|Laptime.*|Kernel ?Name"
    r"|correlation_?id|(?:gpu|cpu)[0-9]+_energy|Start \(ns\)|Duration.*|Calls|Instances|Time ?\(%\)"
    r"|quantity|Store No\.?",
    re.IGNORECASE,
)
# What a program prints while a profiler runs is no log.
_BANNER = re.compile(r"=+[0-9A-Z]+=+ ")
_ZONE = re.compile(
    r"(?<![A-Za-z])(?:UTC|GMT) ?(?:([-+]) ?([0-9]{1,2})(?::?([0-9]{2}))?)?(?![A-Za-z0-9])", re.IGNORECASE
)


def _word(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _time_unit(label: str) -> str | None:
    """Return the unit of a label that names a count of time."""
    name, token = split_label(label)
    unit = unit_of(token) if token else None
    if unit and unit.dimension == "time":
        # The total, mean or duration of something is a time, but no clock.
        stem = _word(name.rpartition("_")[0]) if name == label.strip() and "_" in name else _word(name)
        known = stem in COUNTS | STAMPS | CLOCKS or stem.startswith(("elapsed", "timestamp", "epoch", "unix"))
        return token if known else None
    if _word(label) in COUNTS and _word(label) != "t":
        return "ms" if _word(label) == "ms" or "milli" in label.lower() else "s"
    return None


def _zone_s(*labels: str) -> int | None:
    """Return how many seconds the times under a label are ahead of UTC; None if it does not say it.

    >>> _zone_s("Date", "Time (UTC)"), _zone_s("Date Time, GMT-05:00"), _zone_s("Time")
    (0, -18000, None)
    """
    match = next((found for label in labels if (found := _ZONE.search(label))), None)
    if match is None:
        return None
    ahead = int(match[2] or 0) * 3600 + int(match[3] or 0) * 60
    return -ahead if match[1] == "-" else ahead


def _times(cells: list[str]) -> tuple[Times, set[int]] | None:
    """Return the clock of a header, and the places of all columns that are clocks."""
    # A share of the time is no time.
    words = [_word(_ZONE.sub("", split_label(cell)[0])) if "%" not in cell else "" for cell in cells]
    units = [_time_unit(cell) for cell in cells]
    dates = [place for place, word in enumerate(words) if word in DATES]
    clocks = [place for place, word in enumerate(words) if word in CLOCKS and not units[place]]
    stamps = [place for place, word in enumerate(words) if word in STAMPS and not units[place]]
    counts = [place for place, unit in enumerate(units) if unit]
    every = {*dates, *clocks, *stamps, *counts}
    if dates and clocks:
        millisecond = next((place for place, word in enumerate(words) if word in ("millisecond", "milliseconds")), None)
        return Times((dates[0], clocks[0]), None, millisecond, _zone_s(cells[dates[0]], cells[clocks[0]])), every
    # Where other columns stand first, a column of times is a result, and no clock.
    for place in [place for found in (stamps, counts, clocks, dates) for place in found if place < 2]:
        return Times((place,), units[place], zone_s=_zone_s(cells[place])), every
    return None


def _layout(sign: str, cells: list[str]) -> Layout | None:
    while cells and not cells[-1]:
        cells = cells[:-1]
    named = [cells[0].lstrip("# ") or cells[0], *cells[1:]] if cells else []
    # Most tables of other tools have hundreds of columns and no clock among the first two, as is asked below.
    if len(cells) < 2 or _times(named[:2]) is None:
        return None
    if any(_OTHERS.fullmatch(cell) for cell in cells):
        return None
    if not all(named) or any(is_numeric(cell) for cell in cells) or (found := _times(named)) is None:
        return None
    times, clocks = found
    if min(times.places) > 1:
        return None
    places = _values(named, clocks)
    if not places or rocm_smi.is_header(cells) or any(other.layout(sign, cells) for other in _TABLES):
        return None
    return Layout(sign, tuple(cells), times, tuple(places), _channels(named, places), turns=candidates(named, clocks))


def is_clock(cell: str) -> bool:
    """Tell whether the name of a column is that of a date or a time."""
    return _word(_ZONE.sub("", split_label(cell)[0])) in DATES | CLOCKS | STAMPS


def is_ordinal(cell: str) -> bool:
    """Tell whether the name of a column is that of a number that counts the rows."""
    return cell == "#" or _word(cell) in ORDINALS


def _values(named: list[str], clocks: set[int]) -> list[int]:
    """Return the places of the columns that are neither clocks nor ordinals."""
    return [
        place for place, cell in enumerate(named) if place not in clocks and _word(cell) not in ORDINALS and cell != "#"
    ]


def _channels(named: list[str], places: list[int]) -> tuple[Channel, ...]:
    volts = any(cell in ("V", "W") for cell in named)
    return tuple(channel("A", "A") if named[n] == "A" and volts else labelled(named[n]) for n in places)


def _reads(times: Times, cells: list[str]) -> bool:
    text = times.text(cells)
    return is_numeric(text) or any(Clock(order).read(text) for order in ORDERS)


class _Asked:
    """Makes the layout of a log whose columns the user names, and remembers the line that comes nearest."""

    def __init__(self, columns: Sequence[Named]) -> None:
        self.columns = columns
        self.nearest: list[str] = []
        self._most = 0
        # Columns named by their numbers alone need no header: the lines before the first row are skipped.
        self._headless = all(one.place is not None for one in columns)

    def layout(self, sign: str, cells: list[str]) -> Layout | None:
        """Return the layout of a line that has all the columns."""
        found = places_of(self.columns, cells)
        known = sum(place is not None for place in found)
        if known > self._most:
            self.nearest, self._most = cells, known
        meant = {place: one for place, one in zip(found, self.columns, strict=True) if place is not None}
        if known < len(self.columns) or not known:
            return None
        labels = [f"#{n}" for n in range(1, len(cells) + 1)] if self._headless else cells
        times, clocks = self._times(meant, labels)
        if times is None or (self._headless and not _reads(times, cells)):
            return None
        others = set() if self._headless else set(_values(labels, clocks))
        places = [n for n in sorted({*meant, *others} - set(times.places)) if n not in meant or meant[n].is_value]
        plain = dict(zip(places, _channels(labels, places), strict=True))
        channels = tuple(meant[n].channel(labels[n]) if n in meant else plain[n] for n in places)
        fixed = frozenset(meant)
        skipped = frozenset(place for place, one in meant.items() if one.quantity == SKIP)
        told = {place: one.quantity for place, one in meant.items() if one.tells}
        turns = candidates(["" if n in meant else label for n, label in enumerate(labels)], clocks)
        return Layout(
            *(sign, tuple(labels), times, tuple(places), channels),
            headless=self._headless,
            fixed=fixed,
            turns=turns,
            told=told,
            skipped=skipped,
        )

    @staticmethod
    def _times(meant: Mapping[int, Named], labels: list[str]) -> tuple[Times | None, set[int]]:
        own = _times([label if n not in meant else "" for n, label in enumerate(labels)])
        asked = sorted(place for place, one in meant.items() if one.quantity == TIME)
        clocks = own[1] if own else set()
        if not asked:
            return (own[0] if own else None), clocks
        first, unit = labels[asked[0]], meant[asked[0]].unit
        order = unit if unit in ORDERS else None
        whole = _times(labels) if order else None
        if whole and {*asked} <= {*whole[0].places}:
            return replace(whole[0], order=order), clocks
        return Times(
            tuple(asked), None if order else unit or _time_unit(first), zone_s=_zone_s(first), order=order
        ), clocks

    def refusal(self) -> str:
        """Say why no line is the header."""
        if self.nearest and None not in places_of(self.columns, self.nearest):
            return "no column is a clock; say which: --column NAME=time, or NAME=time:UNIT for a count such as time:ms"
        return refusal(self.columns, self.nearest)


_STYLE = Style(TOOL, _layout)


def _is_row(layout: Layout, line: str) -> bool:
    cells = split_row(line, layout.sign)
    if len(cells) < 2 or max(layout.times.places) >= len(cells):
        return False
    return _reads(layout.times, [*cells, *[""] * (len(layout.header) - len(cells))])


def sniff(head: bytes) -> bool:
    """Tell whether a line in ``head`` names a clock and other columns, and one of the next two begins a row."""
    lines = [line for line in head_lines(head, PREAMBLE_LINES) if line.strip()]
    if any(_BANNER.match(line) for line in lines) or zeus.sniff(head) or hardware_monitor.sniff(head):
        return False
    for place, line in enumerate(lines):
        layout = layout_of(line, _STYLE)
        if layout is not None:
            return any(_is_row(layout, row) for row in lines[place + 1 : place + 3])
    return False


def read(stream: BinaryIO, columns: Sequence[Named] = ()) -> Iterator[Batch]:
    """Read a log; ``columns`` are those that the user names, for one that does not say it itself."""
    if not columns:
        return read_table(stream, _STYLE)
    asked = _Asked(columns)
    return read_table(stream, Style(TOOL, asked.layout, refusal=asked.refusal, any_header=True))
