"""The channels of a log of sensors, their samples, and what to beware of in them.

Every channel (a name, of a GPU) is a sensor; its samples are handed on chunk by chunk, and the table of sensors at the
end of the file, because only then is it known whether a value was stuck, or was polled faster than it updates.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.errors import counted
from profsvc.formats.clock import UTC, Flags, Int64s
from profsvc.formats.sensors import Column, Floats, Objects
from profsvc.tables import Batch, frame, frame_of_arrays

MEASURED = {"power", "energy", "temperature", "clock", "utilization", "voltage", "current"}
# Their tools print so many digits that a value seldom repeats unless the sensor has not updated.
FINE = {"power", "energy", "voltage", "current"}
# With fewer readings nobody can tell a stuck value from a calm one.
FEWEST_FOR_STUCK = 10
INTERVALS_KEPT = 1 << 16


@dataclass
class Readings:
    """Some readings of one channel: their stamps, values and places, row by row."""

    ns: Int64s | None
    values: Floats
    reasons: Objects | None
    lines: Int64s

    def part(self, rows: Int64s | Flags) -> "Readings":
        """Return the readings at ``rows``."""
        ns = None if self.ns is None else self.ns[rows]
        reasons = None if self.reasons is None else self.reasons[rows]
        return Readings(ns, self.values[rows], reasons, self.lines[rows])


class Steps(NamedTuple):
    """The stamps of readings, what lies between them, and how often they go back; all sensors of a block share it."""

    ns: Int64s
    steps: Int64s
    backwards: int


def steps_of(ns: Int64s) -> Steps:
    """Return what lies between stamps.

    >>> steps_of(np.array([0, 20, 10]))[1:]
    (array([ 20, -10]), 1)
    """
    steps = np.diff(ns)
    return Steps(ns, steps, int(np.count_nonzero(steps < 0)))


@dataclass
class Channel:
    """A sensor, and what was seen of it so far; memory does not grow with its readings."""

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

    def see(self, readings: Readings, clock: Steps | None = None) -> None:
        """Take note of readings; ``clock`` are their stamps, where somebody has looked at these already."""
        self.count += len(readings.values)
        if readings.ns is not None and len(readings.ns):
            self._poll(clock or steps_of(readings.ns))
        absent = np.isnan(readings.values)
        if not absent.any():
            self._change(readings.values, readings.ns)
        elif not absent.all():
            self._change(readings.values[~absent], None if readings.ns is None else readings.ns[~absent])

    def _poll(self, clock: Steps) -> None:
        if self._last_ns is not None:
            between = steps_of(np.array([self._last_ns, clock.ns[0]], np.int64))
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
        if self.column.quantity in FINE:
            self.fine = self.fine or bool((values != np.rint(values)).any())
            if ns is not None and changes and self._kept[1] < INTERVALS_KEPT:
                at = ns[changed]
                if self._last_change is not None:
                    self._keep(self.updates, 1, steps_of(np.array([self._last_change, at[0]], np.int64)).steps)
                self._keep(self.updates, 1, steps_of(at).steps)
                self._last_change = int(at[-1])
        self.valued += len(values)
        self.value = float(values[-1])

    def _keep(self, kept: list[Int64s], which: int, steps: Int64s) -> None:
        room = INTERVALS_KEPT - self._kept[which]
        # Only of fine values does somebody ask how often they were polled and updated.
        if room and self.column.quantity in FINE and len(steps := steps[steps >= 0][:room]):
            kept.append(steps)
            self._kept[which] += len(steps)

    def quality(self) -> str | None:
        """Say what to beware of, with the figures."""
        said = [self.column.note] if self.column.note else []
        if self.valued < self.count:
            said.append(f"{self.count - self.valued} of {self.count} readings have no value")
        if self.column.quantity in MEASURED:
            said += self._repeats()
        if self.backwards:
            said.append(f"the time goes back {counted(self.backwards, 'time')}")
        return "; ".join(said) or None

    def _repeats(self) -> list[str]:
        if not self.changes:
            value = f"{self.value:.10g} {self.column.unit}".removesuffix(" 1")
            return [f"stuck at {value} in all {self.valued} readings"] * (self.valued >= FEWEST_FOR_STUCK)
        repeats = self.valued - 1 - self.changes
        # Whole numbers repeat because they are coarse, whatever the polling.
        if self.column.quantity not in FINE or not self.fine:
            return []
        if not self.updates or not self.polls or repeats * 10 < self.valued:
            return []
        kept = np.concatenate(self.polls) / 1e6, np.concatenate(self.updates) / 1e6
        kind, (poll, update) = "medians", (float(np.median(steps)) for steps in kept)
        if update < 1.5 * poll:
            kind, (poll, update) = "means", (float(np.mean(steps)) for steps in kept)
        return [
            f"polled every {poll:.4g} ms but updated every {update:.4g} ms ({kind}): "
            f"{repeats} of {self.valued} readings repeat the one before"
        ]


class Sensors:
    """The channels of a file and the samples gathered since the last batch."""

    def __init__(self) -> None:
        """Begin a file."""
        self.channels: dict[tuple[str, str, object], Channel] = {}
        self.first_ns: int | None = None
        self.readings = 0
        self._parts: list[tuple[int, int, Readings]] = []
        self._clocks: dict[int, Steps] = {}

    def channel(self, column: Column, gpu: int | None, device: str | None, line: int, key: object = None) -> Channel:
        """Return the channel of ``column`` of a GPU, which ``key`` tells from the others where its index does not."""
        # A board may call a temperature and a power by one name.
        place = (column.name, column.quantity, gpu if key is None else key)
        found = self.channels.get(place)
        if found is None:
            found = self.channels[place] = Channel(len(self.channels), column, gpu, device, line)
        return found

    def add(self, channel: Channel, readings: Readings) -> None:
        """Gather readings of a channel."""
        self._parts.append((channel.index, channel.count, readings))
        clock = None if readings.ns is None else self._clocks.get(id(readings.ns)) or steps_of(readings.ns)
        if clock is not None:
            # The stamps are held with what was found of them, so that no others get their id meanwhile.
            self._clocks[id(clock.ns)] = clock
        channel.see(readings, clock)
        self.readings += len(readings.values)

    def take(self, clock: str | None) -> dict[str, pd.DataFrame]:
        """Return the samples gathered, and begin anew; ``clock`` is what their stamps stand on."""
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
            "elapsed_ns": None if stamped is None else stamped - (self.first_ns or 0),
            "value": np.concatenate([readings.values for readings in every]),
            "reason": reasons,
            "line": np.concatenate([readings.lines for readings in every]),
        }
        return {"samples": frame_of_arrays("samples", sum(sizes), columns)}

    def table(self) -> dict[str, pd.DataFrame]:
        """Return the table of sensors, at the end of the file."""
        channels = list(self.channels.values())
        if not channels:
            return {}
        names = Counter((channel.column.name, channel.gpu, channel.device) for channel in channels)
        for (name, _, key), channel in self.channels.items():
            # Boards of one name and no index are told apart by what the log does tell: UUID or bus address.
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
        return {"sensors": frame("sensors", rows)}


def _stamped(parts: Sequence[Readings], sizes: Sequence[int]) -> Any:
    """Return the stamps of readings, null where there is none; None if there is none at all."""
    timed = [readings.ns is not None for readings in parts]
    if not any(timed):
        return None
    ns = np.concatenate([_or(r.ns, size, 0) for size, r in zip(sizes, parts, strict=True)])
    return ns if all(timed) else integers(ns, np.repeat(timed, sizes))


def _or(values: Any, size: int, filler: int | None) -> Any:
    """Return the values of a part, or as many times what stands for them."""
    return np.full(size, filler, np.int64 if filler == 0 else object) if values is None else values


def integers(values: Int64s, known: Flags) -> pd.arrays.IntegerArray:
    """Return a nullable column of whole numbers without a detour over Python objects or floats."""
    return pd.arrays.IntegerArray(np.where(known, values, 0), ~known)


def beside(batch: Batch, name: str, rows: Sequence[Mapping[str, object]]) -> Batch:
    """Return a batch with one more table of these rows, which all have the same columns; itself without any."""
    if not rows:
        return batch
    added = frame(name, {column: [row[column] for row in rows] for column in rows[0]})
    return replace(batch, tables={**batch.tables, name: added})
