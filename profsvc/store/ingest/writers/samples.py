"""Write the sensors of an upload and their samples, which are the longest table of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from profsvc import specs
from profsvc.errors import DomainError, InputError, counted
from profsvc.store.connection.sql import Connection, text
from profsvc.store.ingest.inserts.column_values import values
from profsvc.store.ingest.inserts.row_insert import reject_nul
from profsvc.store.ingest.staging import MIN_ROWS_FOR_PAGES, Sink
from profsvc.store.ingest.writers.packed_samples import MAX_READINGS, MIN_READINGS, Packed, kinds_of, pack
from profsvc.store.schema.column_types import IDS_PER_UPLOAD
from profsvc.tables import ColumnTable
from profsvc.tables.column_tables import Integers, integers_of

SENSOR_COLUMNS = ("quantity", "name", "unit", "gpu_index", "device", "x_mm", "y_mm", "quality", "line")
SENSOR_TEXTS = ("quantity", "name", "unit", "device", "quality")
MAX_NS = float(2**63)
_OUTSIDE = text("SELECT count(*) FROM v1_samples WHERE sensor_id = :sensor AND (as_read < :low OR as_read > :high)")
_FLAG = text(
    "UPDATE sensors SET implausible = :count, quality = CASE WHEN quality IS NULL THEN :words"
    " ELSE quality || '; ' || :words END WHERE sensor_id = :sensor"
)
# So many sensors are named in the message of a file.
MAX_NAMED_SENSORS = 3
Ints = npt.NDArray[np.int64]
Columns = dict[str, Any]


class Sensors:
    """The sensors of one upload: a reader may name them before their samples or after.

    A sample keeps ``elapsed_ns`` and by how much each clock differs from its origin plus ``elapsed_ns``. The origin is
    chosen so that the first reading with that clock differs by 0, and so do all others of a file whose times agree.
    """

    def __init__(self, sink: Sink, first: int) -> None:
        """Begin an upload whose sensors and samples are numbered from ``first`` + 1."""
        self.sink = sink
        self.first = first
        self.known: set[int] = set()
        self.samples: Counter[int] = Counter()
        self.last_index: dict[int, int] = {}
        self.limits: dict[int, tuple[str, specs.PlausibleRange]] = {}
        self.extremes: dict[int, tuple[float, float]] = {}
        self.origins: dict[str, int] = {}
        self.divisors: dict[int, float] = {}

    def write_sensors(self, table: ColumnTable) -> None:
        """Write a tidy table of sensors."""
        indexes = values(table["sensor_index"])
        if max(indexes) > IDS_PER_UPLOAD - 2:
            raise InputError(f"sensor {max(indexes)}: a file may have {IDS_PER_UPLOAD - 1:,} sensors; split it")
        reject_nul(text for name in SENSOR_TEXTS for text in values(table[name]) if text is not None)
        self.known.update(indexes)
        columns: dict[str, Any] = {"sensor_id": [self.first + index + 1 for index in indexes]}
        columns |= {name: table[name] for name in SENSOR_COLUMNS}
        columns["samples"] = [0] * len(table)
        named = {name: values(table[name]) for name in ("name", "quantity", "gpu_index", "device", "unit")}
        limits = [_plausible_range(dict(zip(named, row, strict=True))) for row in zip(*named.values(), strict=True)]
        known = zip(indexes, named["name"], limits, strict=True)
        self.limits.update({index: (name, one) for index, name, one in known if one is not None})
        columns["plausible_low"] = [None if one is None else one.low for one in limits]
        columns["plausible_high"] = [None if one is None else one.high for one in limits]
        self.sink.write("sensors", columns)

    def write_samples(self, table: ColumnTable, reasons: Integers) -> None:
        """Write a tidy table of samples, sensor by sensor, with the number of each reason."""
        begin = self.first + self.samples.total() + 1
        if begin + len(table) > self.first + IDS_PER_UPLOAD:
            raise InputError(f"a file may have {IDS_PER_UPLOAD - 1:,} samples; split it")
        plain: dict[str, Any] = {
            "elapsed_ns": table["elapsed_ns"],
            "value": table["value"],
            "reason_id": reasons,
            **{f"{clock}_shift_ns": self._shift(table, clock) for clock in ("time", "local")},
        }
        sensors = integers_of(table["sensor_index"]).values
        counting = {name: integers_of(table[name]).values for name in ("sample_index", "line")}
        if (sensors[1:] < sensors[:-1]).any():
            order = np.argsort(sensors, kind="stable")
            sensors, plain = sensors[order], {name: column[order] for name, column in plain.items()}
            counting = {name: column[order] for name, column in counting.items()}
        heads = np.concatenate(([0], np.flatnonzero(sensors[1:] != sensors[:-1]) + 1))
        sizes = np.diff(heads, append=len(sensors))
        self._count(sensors, heads, sizes, counting["sample_index"])
        low, high = (ufunc.reduceat(plain["value"], heads) for ufunc in (np.fmin, np.fmax))
        for sensor, *ends in zip(sensors[heads].tolist(), low.tolist(), high.tolist(), strict=True):
            least, most = self.extremes.get(sensor, (np.inf, -np.inf))
            self.extremes[sensor] = float(np.fmin(least, ends[0])), float(np.fmax(most, ends[1]))
        ids = np.arange(begin, begin + len(sensors))
        plain = {"sample_id": ids, **plain}
        packed = list(self._packed(sensors, heads, sizes, plain, counting))
        self._write_rows(sensors, heads, ids, plain, counting, [(one[0], one[1]) for one in packed])
        self._write_packed(sensors, ids, plain, counting, packed)

    def _packed(
        self, sensors: Ints, heads: Ints, sizes: Ints, plain: Columns, counting: Mapping[str, Ints]
    ) -> Iterator[tuple[int, int, Packed]]:
        """Yield the blocks of readings that can be packed: the first row, the row behind the last, and the columns."""
        if sizes.max() < MIN_READINGS:
            return
        kinds = kinds_of(plain["value"])
        differs = kinds[1:] != kinds[:-1]
        differs |= np.diff(counting["sample_index"]) != 1
        for name in ("reason_id", "time_shift_ns", "local_shift_ns"):
            column = integers_of(plain[name])
            values, missing = column.values, column.missing
            differs |= (missing[1:] != missing[:-1]) | ((values[1:] != values[:-1]) & ~missing[1:])
        elapsed = integers_of(plain["elapsed_ns"])
        differs |= elapsed.missing[1:] != elapsed.missing[:-1]
        for head, size in zip(heads.tolist(), sizes.tolist(), strict=True):
            if size < MIN_READINGS:
                continue
            sensor = int(sensors[head])
            steps = np.diff(counting["line"][head : head + size])
            line_step = int(np.partition(steps, size // 2)[size // 2]) if size > 2 else int(steps[0])
            breaks = np.flatnonzero(differs[head : head + size - 1] | (steps != line_step)) + head + 1
            for first, end in _parts(np.concatenate(([head], breaks, [head + size]))):
                if kinds[first] > 1:
                    continue
                times = None if elapsed.missing[first] else elapsed.values[first:end]
                found = pack(times, plain["value"][first:end], self.divisors.get(sensor, 1.0))
                if found is not None:
                    self.divisors[sensor] = found["divisor"] or self.divisors.get(sensor, 1.0)
                    yield first, end, {**found, "line_step": line_step}

    def _write_packed(
        self,
        sensors: Ints,
        ids: Ints,
        plain: Columns,
        counting: Mapping[str, Ints],
        packed: Sequence[tuple[int, int, Packed]],
    ) -> None:
        """Write the blocks that hold their readings themselves."""
        if not packed:
            return
        firsts = np.array([first for first, _, _ in packed])
        ends = np.array([end for _, end, _ in packed])
        block: Columns = {
            "sensor_id": sensors[firsts] + (self.first + 1),
            "first_id": ids[firsts],
            "last_id": ids[ends - 1],
            "first_index": counting["sample_index"][firsts],
            "first_line": counting["line"][firsts],
            **{name: plain[name][firsts] for name in ("reason_id", "time_shift_ns", "local_shift_ns")},
        }
        block |= {name: [columns[name] for _, _, columns in packed] for name in packed[0][2]}
        self.sink.write("sample_blocks", block)

    def _write_rows(
        self,
        sensors: Ints,
        heads: Ints,
        ids: Ints,
        plain: Columns,
        counting: Mapping[str, Ints],
        packed: Sequence[tuple[int, int]],
    ) -> None:
        """Write the readings that are in no packed block as rows, and the blocks that name their sensors."""
        kept = np.ones(len(ids), np.bool_)
        for first, end in packed:
            kept[first:end] = False
        if not kept.any():
            return
        if packed:
            begins = np.zeros(len(ids), np.bool_)
            begins[heads] = True
            begins[1:] |= ~kept[:-1]  # a row behind a packed block
            begins = begins[kept]
            ids, sensors = ids[kept], sensors[kept]
            plain = {name: column[kept] for name, column in plain.items()}
            counting = {name: column[kept] for name, column in counting.items()}
            heads = np.flatnonzero(begins)
        sizes = np.diff(heads, append=len(ids))
        block = {"sensor_id": sensors[heads] + (self.first + 1), "first_id": ids[heads]}
        block["last_id"] = block["first_id"] + sizes - 1
        columns = dict(plain)
        for name, short in (("sample_index", "index"), ("line", "line")):
            block[f"first_{short}"] = counting[name][heads]
            # From an id that is one more in each row to what would be its ordinal if none were left out.
            before = counting[name][heads] - ids[heads]
            shift = counting[name] - ids
            shift -= np.repeat(before, sizes)
            columns[f"{short}_shift"] = shift
        for rows in _close_together(ids):
            self.sink.write("samples", {name: column[rows] for name, column in columns.items()})
        self.sink.write("sample_blocks", block)

    def _count(self, sensors: Ints, heads: Ints, sizes: Ints, indexes: Ints) -> None:
        """Count the samples of each sensor; refuse a reading that comes twice, or before one that it follows."""
        falls = indexes[1:] <= indexes[:-1]
        falls[heads[1:] - 1] = False
        if falls.any():
            row = int(falls.argmax()) + 1
            raise DomainError(f"the reader gives sample {indexes[row]} of sensor {sensors[row]} after a later one")
        for head, size in zip(heads.tolist(), sizes.tolist(), strict=True):
            sensor = int(sensors[head])
            if indexes[head] <= self.last_index.get(sensor, -1):
                raise DomainError(f"the reader gives sample {indexes[head]} of sensor {sensor} after a later one")
            self.last_index[sensor] = int(indexes[head + size - 1])
            self.samples[sensor] += size

    def _shift(self, table: ColumnTable, clock: str) -> Integers:
        """Return what a clock shows beyond its origin and ``elapsed_ns``, where it shows anything."""
        shown, elapsed = integers_of(table[f"{clock}_ns"]), integers_of(table["elapsed_ns"])
        if shown.missing.all():
            return Integers(shown.values, shown.missing)
        at = np.where(elapsed.missing, 0, elapsed.values) if elapsed.missing.any() else elapsed.values
        first = int(shown.missing.argmin())
        origin = self.origins.setdefault(clock, int(shown.values[first]) - int(at[first]))
        if (far := _overflows(shown, at, origin)).any():
            line = integers_of(table["line"]).values[int(far.argmax())]
            raise InputError(f"line {line}: its time lies more than 292 years from that of other lines; correct it")
        shift = shown.values - at
        shift -= origin
        return Integers(shift, shown.missing)

    def finish(self, connection: Connection) -> list[str]:
        """Write what is known only at the end, and refuse samples of sensors that the file does not have.

        Return what to say of readings that cannot be.
        """
        if lost := self.samples.keys() - self.known:
            raise DomainError(f"the reader gives samples of sensor {min(lost)}, but no such sensor")
        if not self.known:
            return []
        query = text(
            "UPDATE sensors SET samples = :samples, time_origin_ns = :time, local_origin_ns = :local"
            " WHERE sensor_id = :sensor"
        )
        origins = {clock: self.origins.get(clock) for clock in ("time", "local")}
        rows = [
            {"sensor": self.first + index + 1, "samples": self.samples[index], **origins}
            for index in sorted(self.known)
        ]
        connection.execute(query, rows)
        said = [words for index, (name, limits) in sorted(self.limits.items())
                if (words := self._outside(connection, index, name, limits))]  # fmt: skip
        more = len(said) - MAX_NAMED_SENSORS
        return said[:MAX_NAMED_SENSORS] + ([f"and of {counted(more, 'sensor')} more"] if more > 0 else [])

    def _outside(self, connection: Connection, index: int, name: str, limits: specs.PlausibleRange) -> str:
        """Flag a sensor with readings outside its range, and say so."""
        least, most = self.extremes.get(index, (limits.low, limits.high))
        if not (least < limits.low or most > limits.high):
            return ""
        sensor = {"sensor": self.first + index + 1}
        count = connection.execute(_OUTSIDE, {**sensor, "low": limits.low, "high": limits.high}).scalar_one()
        worst = most if most > limits.high else least
        words = f"{counted(count, 'reading')} kept out of results: {limits.reason(worst)}"
        connection.execute(_FLAG, {**sensor, "count": count, "words": words})
        return f"{name}: {words}"


def _parts(bounds: Ints) -> Iterator[tuple[int, int]]:
    """Yield the parts between bounds that are long enough to pack, in pieces that are short enough.

    >>> list(_parts(np.array([0, 10, 200, 8392])))
    [(10, 200), (200, 4296), (4296, 8392)]
    """
    for place in np.flatnonzero(np.diff(bounds) >= MIN_READINGS).tolist():
        begin, end = int(bounds[place]), int(bounds[place + 1])
        pieces = -(-(end - begin) // MAX_READINGS)
        cuts = [begin + (end - begin) * piece // pieces for piece in range(pieces + 1)]
        yield from pairwise(cuts)


def _close_together(ids: Ints) -> Iterator[Any]:
    """Yield where to find rows that follow each other without a gap, so many that they are written as pages.

    All others come together at the end.
    """
    heads = np.concatenate(([0], np.flatnonzero(np.diff(ids) != 1) + 1))
    sizes = np.diff(heads, append=len(ids))
    long = sizes >= MIN_ROWS_FOR_PAGES
    yield from (slice(head, head + size) for head, size in zip(heads[long].tolist(), sizes[long].tolist(), strict=True))
    if not long.all():
        yield np.flatnonzero(np.repeat(~long, sizes))


def _plausible_range(sensor: Mapping[Any, Any]) -> specs.PlausibleRange | None:
    """The range in which readings of a sensor are plausible."""
    of_gpu = sensor["gpu_index"] is not None or sensor["device"] is not None
    name = f"{sensor['name']}{' of a GPU' if of_gpu else ''}"
    return specs.range_of(sensor["quantity"], sensor["unit"], name)


def _overflows(shown: Integers, at: Ints, origin: int) -> npt.NDArray[np.bool_]:
    """Tell where 64 bits run over, which happens only where a file holds times that lie three centuries apart."""
    least, most = int(at.min()) + origin, int(at.max()) + origin
    apart = max(int(shown.values.max()) - least, most - int(shown.values.min()))
    if max(abs(least), abs(most), apart) < MAX_NS and abs(origin) < MAX_NS:
        return np.zeros(1, np.bool_)
    rough = float(origin) + at.astype(np.float64)
    far = ~shown.missing & (np.abs(shown.values - rough) >= MAX_NS)
    return np.full(len(at), abs(origin) >= MAX_NS) | (np.abs(rough) >= MAX_NS) | far
