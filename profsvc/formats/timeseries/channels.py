"""Sensors of a log, their samples, and data-quality warnings.

A sensor is a name of a GPU. Samples are passed on in chunks; the table of sensors follows at the end of the file,
because only then is it known whether a value was stuck, or was polled faster than it updates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from profsvc.errors import counted
from profsvc.formats.parsing.timestamps import UTC, Flags, Int64s
from profsvc.formats.timeseries.columns import Column, Floats, Objects
from profsvc.tables import ColumnTable, Table
from profsvc.tables.column_tables import Integers

MEASURED = {"power", "energy", "temperature", "clock", "utilization", "voltage", "current"}
# Quantities printed with so many digits that a repeated value means that the sensor has not updated.
FINE_QUANTITIES = {"power", "energy", "voltage", "current"}
# With fewer readings a constant value may be correct.
MIN_STUCK_READINGS = 10
MAX_INTERVALS = 1 << 16
_BACKWARDS = "the time goes back"


@dataclass
class Readings:
    """Readings of one sensor: timestamps, values, reasons and line numbers."""

    ns: Int64s | None
    values: Floats
    reasons: Objects | None
    lines: Int64s

    def part(self, rows: Int64s | Flags) -> Readings:
        """Return the readings at ``rows``."""
        ns = None if self.ns is None else self.ns[rows]
        reasons = None if self.reasons is None else self.reasons[rows]
        return Readings(ns, self.values[rows], reasons, self.lines[rows])


class Intervals(NamedTuple):
    """Timestamps of readings, their intervals, and how often time goes back; all sensors of a block share them."""

    ns: Int64s
    steps: Int64s
    backwards: int


def intervals_of(ns: Int64s) -> Intervals:
    """Return the intervals between timestamps.

    >>> intervals_of(np.array([0, 20, 10]))[1:]
    (array([ 20, -10]), 1)
    """
    steps = np.diff(ns)
    return Intervals(ns, steps, int(np.count_nonzero(steps < 0)))


@dataclass
class SensorState:
    """A sensor and statistics of its readings so far, in constant memory."""

    index: int
    column: Column
    gpu: int | None
    device: str | None
    line: int
    count: int = 0
    valued: int = 0
    changes: int = 0
    backwards: int = 0
    value: float = np.nan
    fine: bool = False
    polls: list[Int64s] = field(default_factory=list)
    updates: list[Int64s] = field(default_factory=list)
    _kept: list[int] = field(default_factory=lambda: [0, 0])
    _last_ns: int | None = None
    _last_change: int | None = None

    def see(self, readings: Readings, clock: Intervals | None = None) -> None:
        """Add readings; ``clock`` has the intervals of their timestamps if they were computed before."""
        self.count += len(readings.values)
        if readings.ns is not None and len(readings.ns):
            self._poll(clock or intervals_of(readings.ns))
        absent = np.isnan(readings.values)
        if not absent.any():
            self._change(readings.values, readings.ns)
        elif not absent.all():
            self._change(readings.values[~absent], None if readings.ns is None else readings.ns[~absent])

    def _poll(self, clock: Intervals) -> None:
        if self._last_ns is not None:
            between = intervals_of(np.array([self._last_ns, clock.ns[0]], np.int64))
            self.backwards += between.backwards
            self._keep(self.polls, 0, between.steps)
        self.backwards += clock.backwards
        self._keep(self.polls, 0, clock.steps)
        self._last_ns = int(clock.ns[-1])

    def _change(self, values: Floats, ns: Int64s | None) -> None:
        changed = np.empty(len(values), np.bool_)
        changed[0] = self.valued > 0 and values[0] != self.value
        np.not_equal(values[1:], values[:-1], out=changed[1:])
        changes = int(np.count_nonzero(changed))
        self.changes += changes
        if self.column.quantity in FINE_QUANTITIES:
            self.fine = self.fine or bool((values != np.rint(values)).any())
            if ns is not None and changes and self._kept[1] < MAX_INTERVALS:
                at = ns[changed]
                if self._last_change is not None:
                    self._keep(self.updates, 1, intervals_of(np.array([self._last_change, at[0]], np.int64)).steps)
                self._keep(self.updates, 1, intervals_of(at).steps)
                self._last_change = int(at[-1])
        self.valued += len(values)
        self.value = float(values[-1])

    def _keep(self, kept: list[Int64s], which: int, steps: Int64s) -> None:
        room = MAX_INTERVALS - self._kept[which]
        # Intervals are used only for quantities with a fine resolution.
        if room and self.column.quantity in FINE_QUANTITIES and len(steps := steps[steps >= 0][:room]):
            kept.append(steps)
            self._kept[which] += len(steps)

    def quality(self) -> str | None:
        """Return the data-quality warnings of the sensor."""
        said = [self.column.note] if self.column.note else []
        if self.valued < self.count:
            said.append(f"{self.count - self.valued} of {self.count} readings have no value")
        if self.column.quantity in MEASURED:
            said += self._repeats()
        if self.backwards:
            said.append(_backwards_text(self.backwards))
        return "; ".join(said) or None

    def _repeats(self) -> list[str]:
        if not self.changes:
            value = f"{self.value:.10g} {self.column.unit}".removesuffix(" 1")
            return [f"stuck at {value} in all {self.valued} readings"] * (self.valued >= MIN_STUCK_READINGS)
        repeats = self.valued - 1 - self.changes
        # Whole numbers repeat because they are coarse, not because of the polling.
        if self.column.quantity not in FINE_QUANTITIES or not self.fine:
            return []
        if not self.updates or not self.polls or repeats * 10 < self.valued:
            return []
        kept = np.concatenate(self.polls) / 1e6, np.concatenate(self.updates) / 1e6
        kind, (poll, update) = "medians", (float(np.median(steps)) for steps in kept)
        if update < 1.5 * poll:
            kind, (poll, update) = "means", (float(np.mean(steps)) for steps in kept)
        if update <= poll:  # a value that returns by chance, as in a short log
            return []
        return [
            f"updates every {update:.4g} ms but was polled every {poll:.4g} ms ({kind}): "
            f"{repeats} of {self.valued} readings are duplicates"
        ]


def _backwards_text(times: int) -> str:
    return f"{_BACKWARDS} {counted(times, 'time')}"


def recount_backwards(quality: str, times: int) -> str | None:
    """Return the data-quality warnings of a sensor with another count of how often its time goes back.

    >>> recount_backwards("stuck at 5 W in all 10 readings; the time goes back 1 time", 0)
    'stuck at 5 W in all 10 readings'
    """
    others = [part for part in quality.split("; ") if not part.startswith(_BACKWARDS)]
    return "; ".join([*others, *([_backwards_text(times)] if times else [])]) or None


class Sensors:
    """The sensors of a file, and the samples gathered since the last batch."""

    def __init__(self) -> None:
        """Start a file."""
        self.channels: dict[tuple[str, str, object], SensorState] = {}
        self.first_ns: int | None = None
        self.readings = 0
        self._parts: list[tuple[int, int, Readings]] = []
        self._clocks: dict[int, Intervals] = {}

    def channel(
        self, column: Column, gpu: int | None, device: str | None, line: int, key: object = None
    ) -> SensorState:
        """Return the sensor of a ``column`` and a GPU; ``key`` identifies the GPU if it has no index."""
        # A board may use one name for a temperature and a power.
        place = (column.name, column.quantity, gpu if key is None else key)
        found = self.channels.get(place)
        if found is None:
            found = self.channels[place] = SensorState(len(self.channels), column, gpu, device, line)
        return found

    def add(self, channel: SensorState, readings: Readings) -> None:
        """Add readings of a sensor."""
        self._parts.append((channel.index, channel.count, readings))
        clock = None if readings.ns is None else self._clocks.get(id(readings.ns)) or intervals_of(readings.ns)
        if clock is not None:
            # The timestamps are kept, so that no other array gets their id in the meantime.
            self._clocks[id(clock.ns)] = clock
        channel.see(readings, clock)
        self.readings += len(readings.values)

    def take(self, clock: str | None) -> dict[str, Table]:
        """Return and remove the gathered samples; ``clock`` is the clock of their timestamps."""
        parts, self._parts = self._parts, []
        self._clocks = {}
        if not parts:
            return {}
        every = [readings for *_, readings in parts]
        sizes = [len(readings.values) for readings in every]
        stamped = _stamped(every, sizes)
        reasons: Any = None
        if any(readings.reasons is not None for readings in every):
            reasons = np.concatenate([_or(r.reasons, size, None) for size, r in zip(sizes, every, strict=True)])
        columns = {
            "sensor_index": np.repeat(np.array([index for index, *_ in parts], np.int64), sizes),
            "sample_index": np.concatenate(
                [np.arange(count, count + size) for size, (_, count, _) in zip(sizes, parts, strict=True)]
            ),
            "time_ns": stamped if clock == UTC else None,
            "local_ns": None if clock in (UTC, None) else stamped,
            "elapsed_ns": None if stamped is None else Integers(stamped.values - (self.first_ns or 0), stamped.missing),
            "value": np.concatenate([readings.values for readings in every]),
            "reason": reasons,
            "line": np.concatenate([readings.lines for readings in every]),
        }
        return {"samples": ColumnTable("samples", sum(sizes), columns)}

    def table(self) -> dict[str, Table]:
        """Return the table of sensors, after the last sample."""
        channels = list(self.channels.values())
        if not channels:
            return {}
        names = Counter((channel.column.name, channel.gpu, channel.device) for channel in channels)
        for (name, _, key), channel in self.channels.items():
            # Boards of equal name without an index are identified by UUID or bus address.
            if isinstance(key, str) and (channel.device is None or names[name, channel.gpu, channel.device] > 1):
                channel.device = key
        rows: dict[str, Sequence[object]] = {
            "sensor_index": [channel.index for channel in channels],
            "quantity": [channel.column.quantity for channel in channels],
            "name": [channel.column.name for channel in channels],
            "unit": [channel.column.unit for channel in channels],
            "gpu_index": [channel.gpu for channel in channels],
            "device": [channel.device for channel in channels],
            "quality": [channel.quality() for channel in channels],
            "line": [channel.line for channel in channels],
        }
        return {"sensors": ColumnTable.of_values("sensors", rows)}


def _stamped(parts: Sequence[Readings], sizes: Sequence[int]) -> Integers | None:
    """Return the timestamps of readings, with null for missing ones; None if all are missing."""
    timed = [readings.ns is not None for readings in parts]
    if not any(timed):
        return None
    ns = np.concatenate([_or(r.ns, size, 0) for size, r in zip(sizes, parts, strict=True)])
    return Integers(ns, ~np.repeat(timed, sizes))


def _or(values: Any, size: int, filler: int | None) -> Any:
    """Return ``values``, or an array of the ``filler`` if there are none."""
    return np.full(size, filler, np.int64 if filler == 0 else object) if values is None else values
