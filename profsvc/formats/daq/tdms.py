"""Reader of TDMS files of LabVIEW, FlexLogger, DAQExpress and SignalExpress: channels of NI hardware."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import IO, Any, BinaryIO, cast

import numpy as np

from profsvc.errors import BrokenInputError
from profsvc.formats.daq.tdms_file import (
    apply_scaling,
    count_unread_values,
    nptdms_errors_refused,
    open_reader,
    raw_values,
    scaling_of,
    scan_segments,
)
from profsvc.formats.parsing import unpacked_copies
from profsvc.formats.parsing.ledger import Ledger
from profsvc.formats.parsing.records import REJECT, Record
from profsvc.formats.parsing.timestamps import MAX_NS, UTC, Int64s
from profsvc.formats.timeseries.channels import Readings, Sensors
from profsvc.formats.timeseries.columns import Column
from profsvc.formats.timeseries.dates import ELAPSED
from profsvc.formats.timeseries.labels import Channel, channel, channel_from_label, unit_of
from profsvc.formats.timeseries.readings import rejection_reason, to_channel_units
from profsvc.tables import Batch

NAME = "tdms"

TOOL = "TDMS"
BATCH_READINGS = 60_000
EPOCH_1904_S = 2_082_844_800
SECOND = 10**9
NO_CLOCK, NO_START = (
    "no clock: it has no wf_increment of time, and its group no timestamps",
    "no clock: it has no start time",
)
RECORD_AGAIN_HINT = "record or copy it again"


def sniff(head: bytes) -> bool:
    """Tell whether ``head`` begins a TDMS file, or its index."""
    return head[:4] in (b"TDSm", b"TDSh")


def labview_time_ns(seconds: int, fraction: int) -> int | None:
    """Return a LabVIEW timestamp (seconds since 1904 and 2^-64 parts) as ns since 1970, rounded; None if it is unset.

    >>> labview_time_ns(3_787_009_445, 1 << 63)
    1704164645500000000
    """
    ns = (int(seconds) - EPOCH_1904_S) * SECOND + ((int(fraction) * SECOND + (1 << 63)) >> 64)
    return ns if seconds and abs(ns) <= MAX_NS else None


@dataclass
class _Source:
    """A channel of the file: its quantity, and the times of its values."""

    one: Channel
    index: int
    scaling: Any = None
    start: int | None = None
    offset: Fraction = Fraction(0)
    step: Fraction | None = None
    times: str | None = None
    count: int = 0

    def stamps(self, size: int, block: Mapping[str, Any], kind: str) -> Int64s | None:
        """Return the times of the next ``size`` values, on the clock ``kind``; None without a time."""
        if self.step is not None:
            if (self.start is None) != (kind == ELAPSED):
                return None
            begin = (self.start or 0) + self.offset + self.step * self.count
            if abs(begin + self.step * size) > MAX_NS:
                return None
            if begin.denominator == self.step.denominator == 1:
                return int(begin) + np.arange(size, dtype=np.int64) * int(self.step)
            return np.array([round(begin + self.step * n) for n in range(size)], np.int64)
        found = block.get(self.times) if self.times and kind == UTC else None
        if found is None or len(found) != size:
            return None
        stamps = [
            labview_time_ns(*pair)
            for pair in zip(found["seconds"].tolist(), found["second_fractions"].tolist(), strict=True)
        ]
        return np.array(stamps, np.int64) if None not in stamps else None


def _fraction(value: object, factor: int) -> Fraction | None:
    """Return a number as printed, times ``factor``; None if it is not a number."""
    try:
        # The double 0.1 is not exactly a tenth, but means a tenth.
        return Fraction(repr(float(cast("float", value)))) * factor
    except (TypeError, ValueError, OverflowError):
        return None


def _text(properties: Mapping[str, Any], name: str) -> str:
    value = properties.get(name, "")
    return value.strip() if isinstance(value, str) else ""


@dataclass
class _Sources:
    """The channels of a file by path, and the names of those that are not stored."""

    by_path: dict[str, _Source] = field(default_factory=dict)
    times: dict[str, str | None] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)
    kind: str | None = None


def _is_time(data_type: Any) -> bool:
    return getattr(data_type, "__name__", "") == "TimeStamp"


def _is_number(about: Any) -> bool:
    """Tell whether the values of an object are real numbers."""
    kind = getattr(about.data_type, "nptype", None)
    return about.scaler_data_types is not None or (kind is not None and kind.kind in "iufb")


def _groups(path: str) -> tuple[str, str] | None:
    """Return group and channel of a path; None if it is the file or a group."""
    from nptdms.common import ObjectPath

    found = ObjectPath.from_string(path)
    return None if found.is_root or found.is_group else (found.group, found.channel)


def _sources(reader: Any) -> _Sources:
    """Describe the channels of a file."""
    objects = reader.object_metadata
    found, names = _Sources(), {path: names for path in objects if (names := _groups(path))}
    for path, (group, _) in names.items():
        if _is_time(objects[path].data_type):
            # With two timestamp channels the channels to which they belong are unknown.
            found.times[group] = None if group in found.times else path
    titles = {path: _text(objects[path].properties, "NI_ChannelName") or pair[1] for path, pair in names.items()}
    doubled = Counter(title for path, title in titles.items() if _is_number(objects[path]))
    for path, (group, name) in names.items():
        about = objects[path]
        if _is_number(about):
            title = titles[path] if doubled[titles[path]] == 1 else f"{group}/{name}"
            source = _Source(_channel(title, about.properties), len(found.by_path))
            source.scaling = scaling_of(about.properties, *(_properties(objects, at) for at in (f"/'{group}'", "/")))
            _set_clock(source, about.properties, found.times.get(group))
            found.by_path[path] = source
        elif about.data_type is not None and not _is_time(about.data_type):
            found.left.append(f"{group}/{name}")
    every = found.by_path.values()
    if any(one.times or (one.step is not None and one.start is not None) for one in every):
        found.kind = UTC
    elif any(one.step is not None for one in every):
        found.kind = ELAPSED
    return found


def _properties(objects: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    return objects[path].properties if path in objects else {}


def _channel(name: str, properties: Mapping[str, Any]) -> Channel:
    unit = _text(properties, "unit_string") or _text(properties, "NI_UnitDescription")
    return channel(name, unit) if unit else channel_from_label(name)


def _set_clock(source: _Source, properties: Mapping[str, Any], times: str | None) -> None:
    axis = unit_of(_text(properties, "wf_xunit_string") or "s")
    step = _fraction(properties.get("wf_increment"), SECOND)
    is_time = axis is not None and axis.dimension == "time"
    start = properties.get("wf_start_time")
    if start is not None and hasattr(start, "second_fractions"):
        source.start = labview_time_ns(start.seconds, start.second_fractions)
    # If LabVIEW has no times, it writes an increment of 1 and no start.
    if step is None or step <= 0 or not is_time or (times and source.start is None):
        source.times = times
        return
    factor = Fraction(repr(axis.factor)) if axis else Fraction(1)
    source.step = step * factor
    source.offset = (_fraction(properties.get("wf_start_offset", 0.0), SECOND) or Fraction(0)) * factor


class _File:
    """Converts blocks of raw values to samples."""

    def __init__(self, sources: _Sources) -> None:
        self.sources, self.sensors, self.ledger = sources, Sensors(), Ledger()
        self.waiting = 0

    def add(self, block: Mapping[str, Any]) -> None:
        """Add the values of a block; timestamps are skipped, as they are the times of the values."""
        for path, raw in block.items():
            source = self.sources.by_path.get(path)
            if source is None:
                self.ledger.skipped += len(raw)
                continue
            values = apply_scaling(source.scaling, raw).astype(np.float64)
            if len(values):
                stamps = source.stamps(len(values), block, self.sources.kind or "")
                self._store(source, values, stamps)

    def _store(self, source: _Source, printed: Any, stamps: Int64s | None) -> None:
        size, one = len(printed), source.one
        factors, shifts = np.full(size, one.factor), np.full(size, one.shift)
        values, bad = to_channel_units(printed, factors, shifts, np.full(size, one.unit == "degC"))
        reasons = None
        if bad.any():
            reasons = np.full(size, None, dtype=object)
            for place in np.flatnonzero(bad).tolist():
                reasons[place] = rejection_reason(float(printed[place]), f"{printed[place]:g}")
            values[bad] = np.nan
        if stamps is not None and self.sensors.first_ns is None:
            self.sensors.first_ns = int(stamps[0])
        lines = np.arange(source.count + 1, source.count + size + 1, dtype=np.int64)
        sensor = self._sensor(source)
        for begin in range(0, size, BATCH_READINGS):
            part = slice(begin, begin + BATCH_READINGS)
            readings = Readings(
                None if stamps is None else stamps[part],
                values[part],
                None if reasons is None else reasons[part],
                lines[part],
            )
            self.sensors.add(sensor, readings)
        source.count += size
        self.ledger.stored += size
        self.waiting += size

    def _sensor(self, source: _Source) -> Any:
        one, note = source.one, source.one.note
        if source.step is None and not source.times:
            note = "; ".join(part for part in (note, NO_CLOCK) if part)
        elif source.step is not None and source.start is None and self.sources.kind == UTC:
            note = "; ".join(part for part in (note, NO_START) if part)
        column = Column(one.name, quantity=one.quantity, unit=one.unit, note=note)
        return self.sensors.channel(column, None, None, source.index + 1, source.index)

    def batch(self) -> Batch:
        """Return the samples since the last batch."""
        self.waiting = 0
        kind = self.sources.kind
        return self.ledger.batch(self.sensors.take(kind if kind != ELAPSED else None))

    def last(self, facts: Mapping[str, str], message: str) -> Iterator[Batch]:
        """Yield the rest, and the sensors."""
        yield self.batch()
        for source in self.sources.by_path.values():
            self._sensor(source)
        yield self.ledger.batch(self.sensors.table(), facts, message)


def read(stream: BinaryIO) -> Iterator[Batch]:
    """Read the values of all channels, segment by segment."""
    with unpacked_copies.spooled_file() as spool:
        file = cast("IO[bytes]", spool)
        size = unpacked_copies.copy(stream, file)
        file.seek(0)
        if file.read(4) == b"TDSh":
            raise BrokenInputError("this is the index of a TDMS file, which has no values; upload the .tdms file")
        walked = scan_segments(file, size)
        if not walked.segments:
            raise BrokenInputError(f"{walked.cut or 'the file has no segment'}: it has no values; {RECORD_AGAIN_HINT}")
        reader = open_reader(file)
        with nptdms_errors_refused():
            log = _File(_sources(reader))
        found = raw_values(file, reader._segments)
        while True:
            with nptdms_errors_refused():
                block = next(found, None)
                if block is None:
                    break
                log.add(block)
            if log.waiting >= BATCH_READINGS:
                yield log.batch()
        with nptdms_errors_refused():
            log.ledger.skipped += sum(map(count_unread_values, reader._segments))
        if walked.cut:
            line = log.ledger.stored + log.ledger.skipped + 1
            log.ledger.add(Record(REJECT, line, 1, "", [], walked.cut))
        sources = log.sources
        facts = {
            "tool": TOOL,
            "segments": str(walked.segments),
            "clock": sources.kind or "none",
            **({"columns_left_out": ", ".join(sources.left)[:2000]} if sources.left else {}),
        }
        yield from log.last(facts, _message(log, walked.cut, walked.unfinished))


def _message(log: _File, cut: str, unfinished: bool) -> str:
    if cut:
        return f"{cut}; the rest is lost; {RECORD_AGAIN_HINT}"
    if unfinished:
        return (
            "the last segment is unfinished, because the program ended while writing it; its complete values are stored"
        )
    return (
        ""
        if log.sensors.readings
        else f"no samples: the file has no channel of numbers with values; {RECORD_AGAIN_HINT}"
    )
