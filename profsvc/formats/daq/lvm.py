"""Reader of LabVIEW measurement files (.lvm): thermocouples and other channels of NI hardware."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.daq.lvm_blocks import LvmBlock, parse
from profsvc.formats.daq.lvm_lines import COLUMNS, Segment, records
from profsvc.formats.parsing.head import head_lines
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.numbers import Evidence, NumberFormat, Numbers
from profsvc.formats.parsing.records import MAX_TEXT_CHARS, REJECT, ROW, Record
from profsvc.formats.parsing.text import Text
from profsvc.formats.parsing.timestamps import LOCAL, MAX_NS, SECOND, UTC, Int64s
from profsvc.formats.timeseries.dates import ELAPSED, AmbiguousDateParser, DateOrderEvidence, Stamp, count_to_ns
from profsvc.formats.timeseries.labels import Channel, channel, channel_from_label, split_label
from profsvc.formats.timeseries.readings import NUMBER_FORMAT_HINT, Rows, clock_metadata
from profsvc.tables import Batch

NAME = "lvm"

TOOL = "LabVIEW"
MAX_HEAD_LINES = 60
# The first line of a file, and the second, where the first was cut off.
BEGINS = ("LabVIEW Measurement", "Writer_Version\t", "Writer_Version,", "Writer_Version;")
MAX_COMMENTS = 10
# Seconds from 1904, where the clock of LabVIEW begins, to 1970; the year 1904 means that no date was set.
EPOCH_1904_S = 2_082_844_800
UNSET_YEAR = "1904"
_SHOWN = {"decimal_dot": ".", "decimal_comma": ","}


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins as a measurement file, or with the line of columns of a file without a header."""
    lines = [line for line in head_lines(head, MAX_HEAD_LINES) if line.strip()]
    first = lines[0] if lines else ""
    return first.startswith(BEGINS) or first.split("\t")[0].rstrip("\r") == COLUMNS != first.strip()


def _channels(segment: Segment) -> list[Channel]:
    units = segment.values("Y_Unit_Label")
    found = []
    for n, place in enumerate(segment.y_places):
        name, unit = segment.columns[place], units[n] if n < len(units) else ""
        stem = name.removesuffix(f"({unit})").strip() or name
        found.append(channel(split_label(stem)[0], unit) if unit else channel_from_label(name))
    return found


@dataclass
class _Survey:
    """The results of the first pass over a file."""

    evidence: Evidence = field(default_factory=lambda: Evidence(advice=NUMBER_FORMAT_HINT))
    dates: DateOrderEvidence = field(default_factory=DateOrderEvidence)
    first: Segment | None = None
    channels: list[Channel] = field(default_factory=list)
    decimal: str = ""
    segments: int = 0

    def enter(self, segment: Segment) -> None:
        """Add the header of a segment."""
        self.segments += 1
        self.decimal = self.decimal or segment.decimal
        channels = _channels(segment)
        if self.first is None:
            self.first, self.channels = segment, channels
        elif channels != self.channels:
            here, there = (", ".join(one.name for one in found)[:200] for found in (channels, self.channels))
            raise BrokenInputError(
                f"line {segment.line}: the segment has the channels {here}, but that on line {self.first.line} "
                f"has {there}; "
                "all segments of a file must have the same channels; put the others into another file"
            )
        for date in segment.values("Date"):
            self.dates.add(date, segment.line)

    def proved_decimal(self) -> str:
        """Return the decimal separator that a cell has proved; cells with it, or with none, add no evidence."""
        found = [decimal for name, decimal in _SHOWN.items() if name in self.evidence.found]
        return found[0] if len(found) == 1 else ""

    def number_format(self) -> NumberFormat:
        """Return the number format of the header, else of the numbers; refuse a file if they contradict each other."""
        if not self.decimal:
            return self.evidence.decide()
        other = "decimal_dot" if self.decimal == "," else "decimal_comma"
        if (
            other in self.evidence.found
            and f"decimal_{'comma' if self.decimal == ',' else 'dot'}" not in self.evidence.found
        ):
            cell, line = self.evidence.found[other]
            raise BrokenInputError(
                f"line {line}: the decimal separator of the header is {self.decimal!r}, but not that of {cell!r}; "
                "correct the line Decimal_Separator"
            )
        return NumberFormat(self.decimal)


class _Origins:
    """The start and the step of X for each channel of a segment."""

    def __init__(self, segment: Segment, order: str, numbers: Numbers) -> None:
        clock = AmbiguousDateParser(order)
        dates, times = segment.values("Date"), segment.values("Time")
        self.starts = [self._start(clock, pair) for pair in zip(dates, times, strict=False)]
        self.numbers = numbers
        self.x0 = [self._ns(text) or 0 for text in segment.values("X0")]
        self.step = [self._ns(text) for text in segment.values("Delta_X")]
        self.rows = 0

    @staticmethod
    def _start(clock: AmbiguousDateParser, pair: Sequence[str]) -> int | None:
        if UNSET_YEAR in pair[0]:
            return None
        stamp = clock.read(f"{pair[0]} {pair[1].rstrip(',.')}")
        return stamp.ns if stamp else None

    @staticmethod
    def _ns(text: str) -> int | None:
        return count_to_ns(text.strip(), SECOND)

    def stamp(self, cell: str | None, n: int) -> Stamp | None:
        """Return the time of channel ``n`` in this row; ``cell`` is its X, or None if the step gives it."""
        start = self.starts[n] if n < len(self.starts) else (self.starts[0] if len(self.starts) == 1 else None)
        if cell is None or not cell.strip():
            step = self.step[n] if n < len(self.step) else None
            x = None if step is None else (self.x0[n] if n < len(self.x0) else 0) + self.rows * step
        else:
            x = self._ns(cell) if self.numbers[cell] == self.numbers[cell] else None
        if x is None or (start is not None and abs(start + x) > MAX_NS):
            return None
        if x >= EPOCH_1904_S * SECOND:
            return Stamp(UTC, x - EPOCH_1904_S * SECOND)
        return Stamp(ELAPSED, x) if start is None else Stamp(LOCAL, start + x)

    def stamps(self, x: Int64s | None, rows: int) -> tuple[str, Int64s] | None:
        """Return the clock and the times of the first channel in the next rows; None if they are not plain."""
        start = self.starts[0] if self.starts else None
        if x is None:
            step, x0 = (self.step[0] if self.step else None), (self.x0[0] if self.x0 else 0)
            if step is None or abs(x0) + abs(step) * (self.rows + rows) > MAX_NS:
                return None
            x = x0 + step * np.arange(self.rows, self.rows + rows)
        if start is not None and max(abs(start + int(x.min())), abs(start + int(x.max()))) > MAX_NS:
            return None
        if (absolute := x >= EPOCH_1904_S * SECOND).any():
            return (UTC, x - EPOCH_1904_S * SECOND) if absolute.all() else None
        return (ELAPSED, x) if start is None else (LOCAL, start + x)


def _add(readings: Rows, segment: Segment, origins: _Origins, record: Record) -> str:
    """Add a row; return the reason if it is invalid."""
    cells = record.cells
    if not segment.x_places:
        readings.add(record.line, origins.stamp(None, 0), [cells[place] for place in segment.y_places])
    elif len(segment.x_places) == 1:
        text = cells[segment.x_places[0]]
        stamp = origins.stamp(text, 0)
        if stamp is None and (text.strip() or not origins.step):
            return f"X_Value {text[:40]!r} is not a number"
        readings.add(record.line, stamp, [cells[place] for place in segment.y_places])
    else:
        stamps = [origins.stamp(cells[place], n) for n, place in enumerate(segment.x_places)]
        values = [cells[place] for place in segment.y_places]
        if len(set(stamps)) == 1:
            readings.add(record.line, stamps[0], values)
        else:
            for n, (stamp, value) in enumerate(zip(stamps, values, strict=True)):
                if value.strip() or cells[segment.x_places[n]].strip():
                    readings.add(record.line, stamp, [value], [n])
    origins.rows += 1
    return ""


def _survey(text: Text) -> _Survey:
    survey = _Survey()
    last: Segment | None = None
    for record, segment in records(text, survey.proved_decimal, parse, lambda part, _: part.rows):
        if isinstance(record, int):
            continue
        if segment is not None and segment is not last:
            survey.enter(segment)
            last = segment
        if record.kind == ROW and segment is not None:
            survey.evidence.add([record.cells[place] for place in segment.y_places + segment.x_places], record.line)
    return survey


@dataclass
class _SecondPass:
    """The second pass over a file: its readings and the current segment."""

    readings: Rows
    ledger: Ledger
    numbers: Numbers
    order: str
    origins: _Origins | None = None
    segment: Segment | None = None
    comments: Counter[str] = field(default_factory=Counter)

    def enter(self, segment: Segment) -> None:
        """Start a segment, unless it is the current one."""
        if segment is not self.segment:
            self.origins, self.segment = _Origins(segment, self.order, self.numbers), segment

    def record(self, record: Record) -> None:
        """Add a record of the segment."""
        if record.kind == ROW and self.segment is not None and self.origins is not None:
            if reason := _add(self.readings, self.segment, self.origins, record):
                record = record._replace(kind=REJECT, reason=reason)
            comment = self.segment.comment(record.cells)
            if comment and (comment in self.comments or len(self.comments) < MAX_COMMENTS):
                self.comments[comment] += 1
        self.ledger.add(record)

    def take(self, part: LvmBlock, line: int) -> int:
        """Add the rows of a plain block; return their number, or 0."""
        stamps = self.origins.stamps(part.x_ns, part.rows) if self.origins else None
        if stamps is None or not self.readings.add_block(line, *stamps, part.values):
            return 0
        assert self.origins is not None
        self.origins.rows += part.rows
        self.ledger.stored += part.rows
        return part.rows


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read a measurement file in two passes, because its number format and date order are known only at its end."""
    with Text(stream) as text:
        survey = _survey(text)
        numbers, order = Numbers(survey.number_format()), survey.dates.decide()
        readings, ledger = Rows(survey.channels, numbers, survey.first.line if survey.first else None), Ledger()
        second = _SecondPass(readings, ledger, numbers, order)
        for record, segment in records(text, lambda: numbers.number_format.decimal, parse, second.take):
            if segment is not None:
                second.enter(segment)
            if not isinstance(record, int):
                second.record(record)
            if readings.full or ledger.full:
                yield ledger.batch(readings.take())
        facts = {
            "tool": TOOL,
            "encoding": text.encoding,
            "number_format": str(survey.number_format()),
            **clock_metadata(readings.first),
            "segments": str(survey.segments),
            **(
                {"comments": ", ".join(f"{c} ({n})" for c, n in second.comments.items())[:MAX_TEXT_CHARS]}
                if second.comments
                else {}
            ),
        }
        message = "" if readings.count else "no samples: the file has no complete row of values; record it again"
        yield ledger.batch(readings.last(), facts, message)
