"""The time columns of a table, parsed row by row or in blocks."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.timestamps import DAY, EPOCH_UNITS, LOCAL, MAX_NS, SECOND, UTC, Int64s
from profsvc.formats.timeseries.dates import (
    ELAPSED,
    AmbiguousDateParser,
    Stamp,
    count_to_ns,
    epoch_unit,
    normalize_date,
    zone_ns,
)
from profsvc.formats.timeseries.labels import unit_of
from profsvc.formats.timeseries.tables.blocks import TableBlock

_NUMERIC = re.compile(r"\s*[-+]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009]*(?:[eE][-+]?[0-9]+)?\s*|\s*[-+]?[.,][0-9]+\s*")


SPREADSHEET_DAYS = (
    "if a spreadsheet turned a date into a count of days, give its cells the format yyyy-mm-dd hh:mm:ss.000 and save "
    "the file again; else "
)


def is_numeric(cell: str) -> bool:
    """Tell whether a cell may be a number in some locale."""
    return _NUMERIC.fullmatch(cell) is not None


def is_spreadsheet_day(text: str) -> bool:
    """Tell whether a text may be a date of this century as spreadsheets count it, in days since 1899-12-30.

    >>> is_spreadsheet_day("45413.5"), is_spreadsheet_day("45413"), is_spreadsheet_day("1.5")
    (True, True, False)
    """
    return re.fullmatch(r"(?:3[6-9]|[4-7][0-9])[0-9]{3}(?:[.,][0-9]+)?", text) is not None


@dataclass(frozen=True)
class TimeColumns:
    """The columns of the clock: their places, and the unit where they count; None where dates may stand.

    ``fraction`` is the place of the column with the fraction of the second, and its digits: 3 for milliseconds.
    ``zone_s`` is how far the dates are ahead of UTC, where the header says it, ``zone_name`` their time zone where the
    file only names it, ``order`` that of their fields, where the user says it.
    """

    places: tuple[int, ...]
    unit: str | None = None
    fraction: tuple[int, int] | None = None
    zone_s: int | None = None
    order: str | None = None
    zone_name: str = ""

    def text(self, cells: Sequence[str]) -> str:
        """Return the time of a row as one text."""
        text = " ".join(cells[place] for place in self.places)
        if self.fraction is not None:
            part, digits = cells[self.fraction[0]], self.fraction[1]
            text += f".{part.zfill(digits)}" if part.isdigit() and len(part) <= digits else ""
        return normalize_date(text)


class RowTimes:
    """Parses the time of each row: dates and times, or a count whose unit the header or the magnitude implies."""

    def __init__(self, times: TimeColumns, first: str, line: int, order: str, label: str = "NAME") -> None:
        """Choose the parser by the first time of the file; ``label`` is the name of its column."""
        self._times, self._clock, self.kind, self._unit_ns = times, AmbiguousDateParser(order), ELAPSED, 0
        if not is_numeric(first):
            return
        epoch = epoch_unit(first)
        unit = unit_of(times.unit) if times.unit else None
        if unit is None and epoch is None:
            raise BrokenInputError(
                f"line {line}: time {first!r} is a number without a unit, and does not count since 1970; "
                f"{SPREADSHEET_DAYS if is_spreadsheet_day(first) else ''}"
                f"name the unit in the header, such as Time (s), or with --column {shlex.quote(f'{label}=time:s')} "
                "(or ms, us, ns)"
            )
        self._unit_ns = round(unit.factor * 1e9) if unit else EPOCH_UNITS[epoch or "s"]
        is_epoch = epoch is not None and self._unit_ns == EPOCH_UNITS[epoch]
        self.kind = UTC if is_epoch else ELAPSED

    def read(self, cells: Sequence[str]) -> Stamp | None:
        """Return the time of a row; None if it is invalid."""
        text = self._times.text(cells)
        if not self._unit_ns:
            stamp = self._clock.read(text)
            if stamp is None or stamp.kind != LOCAL or self._times.zone_s is None:
                return stamp
            return Stamp(UTC, stamp.ns - self._times.zone_s * SECOND)
        ns = count_to_ns(text.strip(), self._unit_ns)
        return Stamp(self.kind, ns) if ns is not None else None

    @property
    def counts(self) -> bool:
        """Whether the times are numbers."""
        return bool(self._unit_ns)

    def block(self, part: TableBlock) -> tuple[str, Int64s] | None:
        """Return the clock and the times of the rows of a block; None if a row must be parsed on its own."""
        if part.counts is not None:
            # Times finer than a nanosecond are rounded one by one.
            scales = [self._unit_ns // 10**places for places in range(int(part.counts.decimals.max()) + 1)]
            if not self._unit_ns or self._unit_ns % 10 ** (len(scales) - 1):
                return None
            scale = np.array(scales, np.int64)[part.counts.decimals]
            return (self.kind, part.counts.digits * scale) if (part.counts.digits <= MAX_NS // scale).all() else None
        if self._unit_ns or part.dated is None:
            return None
        dated = part.dated
        if not dated.dates:
            return None if dated.zone else (ELAPSED, self._clock.turned(dated.times))
        stamps = [self._clock.read(date) for date in dated.dates]
        if None in stamps:
            return None
        days = np.array([stamp.ns for stamp in stamps if stamp], np.int64)
        ns = np.repeat(days, np.diff([*dated.rows, part.rows])) + dated.times
        if dated.zone:
            return UTC, ns - zone_ns(dated.zone)
        return (LOCAL, ns) if self._times.zone_s is None else (UTC, ns - self._times.zone_s * SECOND)

    def passed(self, part: TableBlock, ns: Int64s) -> None:
        """Continue after a block with the times ``ns``: the next time of day may be of the next day."""
        if part.dated is not None and not part.dated.dates:
            last = int(part.dated.times[-1])
            self._clock.go_on(last, (int(ns[-1]) - last) // DAY)
