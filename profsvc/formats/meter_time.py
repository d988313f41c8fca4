"""The time of the rows of a meter: which columns it stands in, and how it is read, row by row or a block at once."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.clock import DAY, EPOCH_UNITS, LOCAL, SECOND, UTC, Int64s
from profsvc.formats.meter_blocks import Part
from profsvc.formats.meter_clock import ELAPSED, LARGEST, Clock, Stamp, count_ns, epoch_unit, numeric_date, zone_ns
from profsvc.formats.readings import unit_of

_NUMERIC = re.compile(r"\s*[-+]?[0-9][0-9.,'\u2019\u00a0\u202f\u2009]*(?:[eE][-+]?[0-9]+)?\s*|\s*[-+]?[.,][0-9]+\s*")


def is_numeric(cell: str) -> bool:
    """Tell whether a cell may be a number in some locale."""
    return _NUMERIC.fullmatch(cell) is not None


@dataclass(frozen=True)
class Times:
    """The columns of the clock: their places, and the unit where they count; None where dates may stand.

    ``zone_s`` is how far the dates are ahead of UTC, where the header says it, ``order`` that of their fields, where
    the user says it.
    """

    places: tuple[int, ...]
    unit: str | None = None
    millisecond: int | None = None
    zone_s: int | None = None
    order: str | None = None

    def text(self, cells: Sequence[str]) -> str:
        """Return the time of a row as one text."""
        text = " ".join(cells[place] for place in self.places)
        if self.millisecond is not None and (ms := cells[self.millisecond]).isdigit() and len(ms) < 4:
            text += f".{ms.zfill(3)}"
        return numeric_date(text)


class Time:
    """Reads the time of each row: dates and times, or a count whose unit the header or its size tells."""

    def __init__(self, times: Times, first: str, line: int, order: str, label: str = "NAME") -> None:
        """Decide by the first time of the file how all are read; ``label`` is the name of its column."""
        self._times, self._clock, self.kind, self._unit_ns = times, Clock(order), ELAPSED, 0
        if not is_numeric(first):
            return
        epoch = epoch_unit(first)
        unit = unit_of(times.unit) if times.unit else None
        if unit is None and epoch is None:
            raise BrokenInputError(
                f"line {line}: the time {first!r} is a number without a unit, and no epoch; "
                f"name the unit in the header, such as Time (s), or with --column {shlex.quote(f'{label}=time:s')} "
                "(or ms, us, ns)"
            )
        self._unit_ns = round(unit.factor * 1e9) if unit else EPOCH_UNITS[epoch or "s"]
        is_epoch = epoch is not None and self._unit_ns == EPOCH_UNITS[epoch]
        self.kind = UTC if is_epoch else ELAPSED

    def read(self, cells: Sequence[str]) -> Stamp | None:
        """Return the time of a row; None if it cannot be read."""
        text = self._times.text(cells)
        if not self._unit_ns:
            stamp = self._clock.read(text)
            if stamp is None or stamp.kind != LOCAL or self._times.zone_s is None:
                return stamp
            return Stamp(UTC, stamp.ns - self._times.zone_s * SECOND)
        ns = count_ns(text.strip(), self._unit_ns)
        return Stamp(self.kind, ns) if ns is not None else None

    @property
    def counts(self) -> bool:
        """Whether the times are numbers."""
        return bool(self._unit_ns)

    def block(self, part: Part) -> tuple[str, Int64s] | None:
        """Return the clock and the times of the rows of a block; None if one of them needs a closer look."""
        if part.counts is not None:
            # Digits that are finer than a nanosecond are rounded one by one.
            scales = [self._unit_ns // 10**places for places in range(int(part.counts.decimals.max()) + 1)]
            if not self._unit_ns or self._unit_ns % 10 ** (len(scales) - 1):
                return None
            scale = np.array(scales, np.int64)[part.counts.decimals]
            return (self.kind, part.counts.digits * scale) if (part.counts.digits <= LARGEST // scale).all() else None
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

    def passed(self, part: Part, ns: Int64s) -> None:
        """Go on behind a block, whose times are ``ns``: the next time of day may be of the next day."""
        if part.dated is not None and not part.dated.dates:
            last = int(part.dated.times[-1])
            self._clock.go_on(last, (int(ns[-1]) - last) // DAY)
