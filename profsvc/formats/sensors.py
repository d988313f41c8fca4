"""What the readers of sensor logs share: cells to values, channels, their samples and what to beware of in them.

A cell becomes a number in SI units, a state (Active is 1, 0x4 is 4), or nothing with the reason. Every channel (a
name, of a GPU) is a sensor; its samples are handed on chunk by chunk, and the table of sensors at the end of the file,
because only then is it known whether a value was stuck, or was polled faster than it updates.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.errors import BrokenInputError, counted
from profsvc.formats.clock import UTC, Flags, Int64s
from profsvc.formats.coded import Coded
from profsvc.specs import units
from profsvc.tables import frame, frame_of_arrays

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
Parsed = tuple[float, str | None]

UNKNOWN = "unknown"
TEXT = "text"
ODD = "odd separators"
MEASURED = {"power", "energy", "temperature", "clock", "utilization", "voltage", "current"}
# Their tools print so many digits that a value seldom repeats unless the sensor has not updated.
FINE = {"power", "energy", "voltage", "current"}
# With fewer readings nobody can tell a stuck value from a calm one.
FEWEST_FOR_STUCK = 10
INTERVALS_KEPT = 1 << 16
MEMO_SIZE = 1 << 16
# A longer cell is no number; to look for its signs would take the square of its length.
LONGEST = 100
# From so many distinct cells on it pays to try all of them at once.
FEW_TEXTS = 256
STATES = {
    "active": 1.0,
    "not active": 0.0,
    "enabled": 1.0,
    "disabled": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "on": 1.0,
    "off": 0.0,
    "true": 1.0,
    "false": 0.0,
}
NO_VALUES = {"": "empty", "-": "not supported", "n/a": "n/a", "nan": "nan", "inf": "inf", "err!": "error", "na": "n/a"}

_PLAIN = re.compile(r"([-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?) ?([A-Za-z%°/]+(?:\(s\))?)?")
_MANY_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:\n[0-9]{1,15}(?:\.[0-9]{1,15})?)*")
_MANY_WHOLE = re.compile(r"[0-9]{1,18}(?:\n[0-9]{1,18})*")
_HEX = re.compile(r"0[xX][0-9a-fA-F]{1,16}")
_PSTATE = re.compile(r"P([0-9]{1,2})")
_BRACKETS = re.compile(r"\[(.{1,60})\]")
_ODD_NUMBER = re.compile(r"[-+]?[0-9][0-9.,'\u2019\s]*[.,'\u2019\s][0-9.,'\u2019\s]*[0-9] ?[A-Za-z%°/]*")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)? ?[A-Za-z%°/]*")


class OddNumberError(ValueError):
    """A cell looks like a number, but its signs are not those that the tool prints."""


@cache
def scale(token: str) -> tuple[float, str] | None:
    """Return the factor and the SI unit of a unit as printed; None if nobody knows it.

    >>> scale("MHz"), scale("furlong")
    ((1000000.0, 'Hz'), None)
    """
    unit = units("sensor").get(token)
    return (unit.factor, unit.si_unit) if unit else None


def scaled(value: float, factor: float) -> float:
    """Multiply exactly where the factor is a small power of ten, as 1/1000 has no exact double but 1000 has.

    >>> scaled(79467.0, 0.001)
    79.467
    """
    return value / round(1 / factor) if factor < 1 else value * factor


@dataclass(frozen=True)
class Column:
    """A column of a log: what it measures, the SI unit of its sensor, and the unit that its header names.

    ``role`` is ``value`` for a sensor; ``open`` for one whose cells tell (states become sensors, words metrics);
    ``text`` for words; ``time``, ``elapsed``, ``gpu`` and ``device`` for what the others are of.
    """

    name: str
    role: str = "value"
    quantity: str = "state"
    unit: str = "1"
    token: str = ""
    whole: bool = False
    note: str = ""


def number(cell: str, column: Column) -> Parsed:
    """Return the value of a cell in the unit of its column, or NaN and the reason.

    Raise `OddNumberError` for a number with signs that the tool never prints, which another locale must have put there.

    >>> number(" 38.74 W", Column("power.draw", quantity="power", unit="W"))
    (38.74, None)
    >>> number("[Not Supported]", Column("fan.speed", unit="1")), number("0x10", Column("reasons"))
    ((nan, 'not supported'), (16.0, None))
    """
    text = cell.strip()
    if match := _PLAIN.fullmatch(text):
        return _with_unit(text, match[1], match[2] or column.token, column)
    lower = text.lower()
    if brackets := _BRACKETS.fullmatch(lower):
        return np.nan, NO_VALUES.get(brackets[1], brackets[1])
    if lower in NO_VALUES:
        return np.nan, NO_VALUES[lower]
    if column.unit == "1":
        if lower in STATES:
            return STATES[lower], None
        if match := _PSTATE.fullmatch(text):
            return float(match[1]), None
        if _HEX.fullmatch(text):
            value = float(int(text, 16))
            return (value, None) if int(value) == int(text, 16) else (np.nan, "too large")
    if column.role == "value" and len(text) <= LONGEST and (_ODD_NUMBER.fullmatch(text) or _GROUPED.fullmatch(text)):
        raise OddNumberError(text)
    return np.nan, TEXT


def _with_unit(text: str, digits: str, token: str, column: Column) -> Parsed:
    if column.whole and not digits.lstrip("+-").isdigit():
        raise OddNumberError(text)
    if column.unit == UNKNOWN:
        found: tuple[float, str] | None = (1.0, UNKNOWN)
    else:
        found = scale(token) if token else (1.0, column.unit)
    if found is None or found[1] != column.unit:
        return np.nan, TEXT if column.role == "open" else f"unit {token}, not {column.unit}"[:80]
    value = scaled(float(digits), found[0])
    return (value, None) if np.isfinite(value) else (np.nan, "too large")


def plain_numbers(texts: Sequence[str], column: Column) -> Floats | None:
    """Read many cells at once, if all are bare numbers or all numbers with the unit of the column; None otherwise.

    >>> plain_numbers([" 79.46 W", " 80 W"], Column("power.draw", quantity="power", unit="W", token="W"))
    array([79.46, 80.  ])
    """
    found = scale(column.token) if column.token else (1.0, column.unit)
    if found is None or found[1] != column.unit:
        return None
    bare = [text.strip() for text in texts]
    if column.token and bare[0].endswith(f" {column.token}"):
        ended = len(column.token) + 1
        if not all(text.endswith(f" {column.token}") for text in bare):
            return None
        bare = [text[:-ended] for text in bare]
    if not (_MANY_WHOLE if column.whole else _MANY_PLAIN).fullmatch("\n".join(bare)):
        return None
    values = np.array([float(text) for text in bare])
    return values / round(1 / found[0]) if found[0] < 1 else values * found[0]


class Cells:
    """Reads the cells of a column, each distinct text once."""

    def __init__(self, tool: str) -> None:
        """``tool`` stands in the refusal of odd numbers."""
        self._tool = tool
        self._memo: dict[Column, dict[str, Parsed]] = {}

    def read(self, cells: Coded, column: Column, lines: Int64s) -> tuple[Floats, Objects | None]:
        """Return the values, and the reasons unless every cell has a value."""
        if cells.numbers is not None:
            return cells.numbers, None
        codes, texts = cells.codes, cells.texts
        if len(texts) > FEW_TEXTS and (plain := plain_numbers(texts, column)) is not None:
            return plain[codes], None
        memo = self._memo.setdefault(column, {})
        if len(memo) > MEMO_SIZE:
            memo.clear()
        read = [memo.get(text) or self._one(text, column, memo) for text in texts]
        values = np.array([value for value, _ in read], np.float64)[codes]
        if all(reason is None for _, reason in read):
            return values, None
        reasons = np.array([reason for _, reason in read], dtype=object)[codes]
        for place in np.flatnonzero(reasons == ODD)[:1].tolist():
            raise BrokenInputError(
                f"line {lines[place]}: {column.name} is {cells[place].strip()[:60]!r}, but {self._tool} prints "
                f"{'whole numbers' if column.whole else 'a decimal point'} and no thousands signs there: the number "
                "cannot be decided; record the log again with LC_ALL=C"
            )
        return values, reasons

    @staticmethod
    def _one(text: str, column: Column, memo: dict[str, Parsed]) -> Parsed:
        try:
            found = number(text, column)
        except OddNumberError:
            found = np.nan, ODD
        memo[text] = found
        return found


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

    def see(self, readings: Readings) -> None:
        """Take note of readings."""
        self.count += len(readings.values)
        valid = ~np.isnan(readings.values)
        every = bool(valid.all())
        values = readings.values if every else readings.values[valid]
        if readings.ns is not None and len(readings.ns):
            stamps = readings.ns if self._last_ns is None else np.concatenate(([self._last_ns], readings.ns))
            steps = np.diff(stamps)
            self.backwards += int(np.count_nonzero(steps < 0))
            self._keep(self.polls, 0, steps)
            self._last_ns = int(stamps[-1])
        if not len(values):
            return
        before = np.concatenate(([self.value if self.valued else values[0]], values[:-1]))
        changed = values != before
        self.changes += int(changed.sum())
        self.fine = self.fine or bool((values != np.rint(values)).any())
        if readings.ns is not None and changed.any():
            at = (readings.ns if every else readings.ns[valid])[changed]
            steps = np.diff(at if self._last_change is None else np.concatenate(([self._last_change], at)))
            self._keep(self.updates, 1, steps)
            self._last_change = int(at[-1])
        self.valued += len(values)
        self.value = float(values[-1])

    def _keep(self, kept: list[Int64s], which: int, steps: Int64s) -> None:
        room = INTERVALS_KEPT - self._kept[which]
        if room and len(steps := steps[steps >= 0][:room]):
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
            return [f"stuck at {self.value:.10g} in all {self.valued} readings"] * (self.valued >= FEWEST_FOR_STUCK)
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
        self.channels: dict[tuple[str, object], Channel] = {}
        self.first_ns: int | None = None
        self.readings = 0
        self._parts: list[tuple[int, int, Readings]] = []

    def channel(self, column: Column, gpu: int | None, device: str | None, line: int, key: object = None) -> Channel:
        """Return the channel of ``column`` of a GPU, which ``key`` tells from the others where its index does not."""
        place = (column.name, gpu if key is None else key)
        found = self.channels.get(place)
        if found is None:
            found = self.channels[place] = Channel(len(self.channels), column, gpu, device, line)
        return found

    def add(self, channel: Channel, readings: Readings) -> None:
        """Gather readings of a channel."""
        self._parts.append((channel.index, channel.count, readings))
        channel.see(readings)
        self.readings += len(readings.values)

    def take(self, clock: str | None) -> dict[str, pd.DataFrame]:
        """Return the samples gathered, and begin anew; ``clock`` is what their stamps stand on."""
        parts, self._parts = self._parts, []
        if not parts:
            return {}
        sizes = [len(readings.values) for *_, readings in parts]
        ns = np.concatenate([_or(r.ns, size, 0) for size, (*_, r) in zip(sizes, parts, strict=True)])
        stamped: Any = None
        if any(readings.ns is not None for *_, readings in parts):
            known = np.repeat([readings.ns is not None for *_, readings in parts], sizes)
            stamped = ns if known.all() else integers(ns, known)
        reasons: Any = None
        if any(readings.reasons is not None for *_, readings in parts):
            reasons = np.concatenate([_or(r.reasons, size, None) for size, (*_, r) in zip(sizes, parts, strict=True)])
        columns = {
            "sensor_index": np.repeat(np.array([index for index, *_ in parts], np.int64), sizes),
            "sample_index": np.concatenate(
                [np.arange(count, count + size) for size, (_, count, _) in zip(sizes, parts, strict=True)]
            ),
            "time_ns": stamped if clock == UTC else None,
            "local_ns": None if clock in (UTC, None) else stamped,
            "elapsed_ns": None if stamped is None else stamped - (self.first_ns or 0),
            "value": np.concatenate([readings.values for *_, readings in parts]),
            "reason": reasons,
            "line": np.concatenate([readings.lines for *_, readings in parts]),
        }
        return {"samples": frame_of_arrays("samples", len(ns), columns)}

    def table(self) -> dict[str, pd.DataFrame]:
        """Return the table of sensors, at the end of the file."""
        channels = list(self.channels.values())
        if not channels:
            return {}
        names = Counter((channel.column.name, channel.gpu, channel.device) for channel in channels)
        for (name, key), channel in self.channels.items():
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


def _or(values: Any, size: int, filler: int | None) -> Any:
    """Return the values of a part, or as many times what stands for them."""
    return np.full(size, filler, np.int64 if filler == 0 else object) if values is None else values


def integers(values: Int64s, known: Flags) -> pd.arrays.IntegerArray:
    """Return a nullable column of whole numbers without a detour over Python objects or floats."""
    return pd.arrays.IntegerArray(np.where(known, values, 0), ~known)
