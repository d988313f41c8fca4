"""Readings of meters as tidy tables: printed numbers of channels become samples of sensors."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from profsvc.errors import BrokenInputError
from profsvc.formats.parsing.numbers import NOT_NUMBERS, Numbers
from profsvc.formats.timeseries.channels import Readings, Sensors, SensorState
from profsvc.formats.timeseries.columns import Column
from profsvc.formats.timeseries.dates import ELAPSED, Stamp
from profsvc.formats.timeseries.labels import ABSOLUTE_ZERO, MAX_SHOWN_CHARS, Channel, letters_of_name
from profsvc.tables import Table

BATCH_READINGS = 120_000
# A power quality analyzer has 2,400 columns. The time to sort readings grows with the number of channels.
MAX_CHANNELS = 4_000
NUMBER_FORMAT_HINT = "export again with a decimal point and no thousands"
# SCPI instruments print 9.91E+37 for "not a number" and 9.9E+37 for "out of range"; Hioki prints E+99.
SENTINEL = 9.9e36
NO_DATA = 9.91e37
# The highest temperature of any thermocouple is that of type C (IEC 60584-1); above it the wire is broken.
MAX_TEMPERATURE_C = 2320.0
# Texts that loggers print for a broken wire, or for a value out of range.
_OPEN = {"open", "opentc", "opencircuit", "oc", "burnout", "tcopen", "sensoropen", "nosensor", "nc"}
_BEYOND = {"ol", "over", "overload", "overrange", "outofrange", "under", "underrange", "hi", "lo"}


def to_channel_units(
    read: NDArray[np.float64],
    factors: NDArray[np.float64],
    shifts: NDArray[np.float64],
    celsius: NDArray[np.bool_],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return printed numbers in the units of their channels, and which of them are impossible."""
    with np.errstate(over="ignore", invalid="ignore"):
        values = read + shifts if shifts.any() else read
        bad = ~(np.abs(read) < SENTINEL)
        if (factors != 1).any():
            # A power of ten below 1 is not an exact double, but its inverse is.
            values = np.where(factors < 1, values / np.where(factors < 1, 1 / factors, 1), values * factors)
            bad |= ~np.isfinite(values)
        if celsius.any():
            bad |= celsius & ((values < ABSOLUTE_ZERO - 1e-6) | (values > MAX_TEMPERATURE_C + 1e-6))
        return values, bad


def rejection_reason(value: float, printed: str) -> str:
    """Return the reason why a printed number is not a value.

    >>> rejection_reason(9.91e37, "9.91E+37"), rejection_reason(-300.0, "-300"), rejection_reason(float("inf"), "Inf")
    ('no data (9.91E+37)', 'below absolute zero', 'inf')
    """
    if value != value or abs(value) == math.inf:
        return "nan" if value != value else "inf"
    if abs(value) < SENTINEL:
        return "below absolute zero" if value < 0 else f"open sensor: {printed} is beyond any thermocouple"
    is_no_data = abs(abs(value) / NO_DATA - 1) < 1e-6
    return f"no data ({printed})" if is_no_data else f"beyond the range ({printed})"


def _reason(cell: str, value: float, numbers: Numbers) -> str:
    if value == value:
        return rejection_reason(value, cell.strip())
    reason = numbers.reason(cell)
    if reason in NOT_NUMBERS.values() or reason == "too large":
        return reason
    shown, word = repr(cell.strip()[:MAX_SHOWN_CHARS]), letters_of_name(cell)
    for words, what in ((_OPEN, "open sensor"), (_BEYOND, "beyond the range")):
        if word in words and not any(sign.isdigit() for sign in cell):
            return f"{what}: {shown}"
    return f"{'odd separators' if reason == 'odd separators' else 'not a number'}: {shown}"


@dataclass
class Rows:
    """Gathers rows of readings for a batch; a row has a cell for each of its sensors."""

    channels: Sequence[Channel]
    numbers: Numbers
    line: int | None = None
    missing: Mapping[str, str] = field(default_factory=dict)
    count: int = 0
    first: Stamp | None = None
    sensors: Sensors = field(default_factory=Sensors)
    _rows: list[tuple[int, int | None]] = field(default_factory=list)
    _cells: list[str] = field(default_factory=list)
    _owners: list[int] = field(default_factory=list)
    _sizes: list[int] = field(default_factory=list)
    _at_once: int = 0

    def __post_init__(self) -> None:
        """Refuse a table with too many columns."""
        if len(self.channels) > MAX_CHANNELS:
            raise BrokenInputError(
                f"line {self.line or 1} names {len(self.channels)} columns of readings, more than the maximum of "
                f"{MAX_CHANNELS}; keep those you need, such as: cut -f1-100 FILE | profsvc upload - (-d, for commas)"
            )

    def add(self, line: int, stamp: Stamp | None, cells: Sequence[str], owners: Sequence[int] | None = None) -> None:
        """Add the cells of one row; ``owners`` are the channels of the cells, if not all.

        A timestamp of another clock than the first one of the file is ignored.
        """
        if stamp is not None and self.first is None:
            self.first, self.sensors.first_ns = stamp, stamp.ns
        known = stamp is not None and self.first is not None and stamp.kind == self.first.kind
        self._rows.append((line, stamp.ns if stamp is not None and known else None))
        self._cells.extend(cells)
        self._owners.extend(range(len(self.channels)) if owners is None else owners)
        self._sizes.append(len(cells))
        self.count += 1

    def add_block(
        self,
        line: int,
        kind: str,
        ns: NDArray[np.int64],
        read: NDArray[np.float64],
        owners: Callable[[], NDArray[np.int64]] | None = None,
    ) -> bool:
        """Add rows of numbers from ``line`` on, with NaN for empty cells; return False if that is impossible.

        It is impossible if a number is not a value of its channel, or the times are of another clock than the first.
        ``owners`` returns the first channel of each row, if rows belong to different channels with the same units.
        """
        channels = self.channels[: read.shape[1]]
        if self.first is None or self.first.kind != kind or self.missing or len(channels) < read.shape[1]:
            return False
        factors, shifts = (np.array([getattr(one, name) for one in channels]) for name in ("factor", "shift"))
        values, bad = to_channel_units(read, factors, shifts, np.array([one.unit == "degC" for one in channels]))
        empty = np.isnan(read)
        if (bad & ~empty).any():
            return False
        self._gather()
        lines = np.arange(line, line + len(ns))
        if owners is None:
            self._add_rows(0, Readings(ns, values, None, lines))
        else:
            firsts = owners()
            for first in np.unique(firsts).tolist():
                self._add_rows(first, Readings(ns, values, None, lines).part(firsts == first))
        self.count += len(ns)
        self._at_once += read.size
        return True

    def _add_rows(self, first: int, rows: Readings) -> None:
        for n in range(rows.values.shape[1]):
            values = np.ascontiguousarray(rows.values[:, n])
            reasons = None
            if (empty := np.isnan(values)).any():
                reasons = np.full(len(values), None, object)
                reasons[empty] = NOT_NUMBERS[""]
            sensor = self._sensor(self.channels[first + n], first + n)
            self.sensors.add(sensor, Readings(rows.ns, values, reasons, rows.lines))

    @property
    def full(self) -> bool:
        """Whether there are enough readings for a batch."""
        return len(self._cells) + self._at_once >= BATCH_READINGS or len(self._rows) >= BATCH_READINGS

    def take(self) -> dict[str, Table]:
        """Return and remove the gathered samples."""
        self._gather()
        self._at_once = 0
        return self.sensors.take(self.first.kind if self.first and self.first.kind != ELAPSED else None)

    def _gather(self) -> None:
        if self._cells:
            values, reasons = self._values()
            rows = np.repeat(np.arange(len(self._rows)), self._sizes)
            lines = np.array([line for line, _ in self._rows], np.int64)[rows]
            ns = np.array([ns or 0 for _, ns in self._rows], np.int64)[rows]
            known = np.array([ns is not None for _, ns in self._rows], np.bool_)[rows]
            every = Readings(ns=ns, values=values, reasons=reasons, lines=lines)
            untimed = Readings(ns=None, values=values, reasons=reasons, lines=lines)
            owners = np.array(self._owners, np.int64)
            for n, one in enumerate(self.channels):
                mine = np.flatnonzero(owners == n)
                # Readings without a time keep their order among the others.
                for run in np.split(mine, np.flatnonzero(np.diff(known[mine])) + 1):
                    if len(run):
                        readings = every if known[run[0]] else untimed
                        self.sensors.add(self._sensor(one, n), readings.part(run))
        self._rows, self._cells, self._owners, self._sizes = [], [], [], []

    def last(self) -> dict[str, Table]:
        """Return the remaining samples, and the sensors, whose data-quality warnings are now complete."""
        tables = self.take()
        for n, one in enumerate(self.channels):
            self._sensor(one, n)
        return {**tables, **self.sensors.table()}

    def _sensor(self, one: Channel, n: int) -> SensorState:
        column = Column(one.name, quantity=one.quantity, unit=one.unit, note=one.note)
        return self.sensors.channel(column, one.gpu, None, self.line or 1, n)

    def _values(self) -> tuple[NDArray[np.float64], NDArray[np.object_]]:
        owners = np.array(self._owners, dtype=np.intp)
        factors = np.array([one.factor for one in self.channels])[owners]
        shifts = np.array([one.shift for one in self.channels])[owners]
        celsius = np.array([one.unit == "degC" for one in self.channels])[owners]
        read = self.numbers.many(self._cells)
        values, bad = to_channel_units(read, factors, shifts, celsius)
        reasons = np.full(len(self._cells), None, dtype=object)
        for place, cell in enumerate(self._cells) if self.missing else ():
            if cell in self.missing:
                reasons[place], bad[place] = self.missing[cell], True
        for place in np.flatnonzero(bad).tolist():
            reasons[place] = reasons[place] or _reason(self._cells[place], float(read[place]), self.numbers)
        values[bad] = np.nan
        return values, reasons


def clock_metadata(first: Stamp | None) -> dict[str, str]:
    """Return the fact that names the clock of the readings.

    >>> clock_metadata(None), clock_metadata(Stamp("UTC", 0))
    ({'clock': 'none'}, {'clock': 'UTC'})
    """
    return {"clock": first.kind if first else "none"}
