"""Blocks of the events of a PyTorch trace at once: Arrow parses them, and whole columns are made of what it finds.

Events of devices are parsed apart from the others, whose arguments may have the same names and be of other kinds. A
block is read so only if each value that is asked for is of the kind that it should be; any other is left to the events.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.json

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.arrow_columns import (
    NullableInts,
    decode_categories,
    first_present,
    nullable_ints,
    present_values,
    split_decimals,
)
from profsvc.formats.columnar.json_objects import JsonObjects
from profsvc.formats.columnar.line_blocks import WORD_BYTES, Columns, Floats, IrregularBlockError, require_plain
from profsvc.formats.parsing.copy_kinds import parse_transfer
from profsvc.formats.parsing.json_stream import storable_text
from profsvc.formats.parsing.numbers import MAX_EXACT_INT, MAX_INT64
from profsvc.formats.parsing.timestamps import MAX_NS, Flags, Int64s
from profsvc.formats.pytorch.events import COUNTERS, DEVICE, KINDS, METRICS, is_ignored
from profsvc.formats.rocm.rocprof_v1_tables import SECTIONS

Devices = Mapping[int, tuple[str | None, str | None]]

# Decimals of parsed microseconds.
MICROSECOND_DECIMALS = 6
_INTEGER_ARGUMENTS = ("device", "context", "stream", "correlation", "bytes", "Bytes", "external id", "External id")
_INTEGER_METRICS = ("registers per thread", "shared memory")
_REAL_METRICS = tuple(name for name in METRICS if name not in _INTEGER_METRICS)
_SHAPE = ("grid", "block")
_TABLES = {"kernel": "launches", "copy": "transfers", "set": "transfers", "call": "api_calls", "range": "ranges"}
# Events of XLA and rocprof, and CUPTI counters, whose argument names are the counters, are read one by one.
_SINGLE_EVENT_MARK = b"/device:GPU:"
_SINGLE_EVENT_ENDINGS = (b"_details", b'"BeginNs', *(name.encode() for name in (*SECTIONS, COUNTERS)))
# At most as long as Arrow's decimals.
_NUMBER = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(-?[0-9][-+.0-9Ee]{0,37})[ \t\r\n,}]")


def _schema(arguments: Mapping[str, pa.DataType]) -> pa.Schema:
    texts, wholes = dict.fromkeys(("ph", "cat", "name"), pa.string()), dict.fromkeys(("pid", "tid"), pa.int64())
    times = dict.fromkeys(("ts", "dur"), pa.decimal128(38, MICROSECOND_DECIMALS))
    return pa.schema({**texts, **wholes, **times, "args": pa.struct(list(arguments.items()))})


_SCHEMAS = {
    "host": _schema({"correlation": pa.int64()}),
    "device": _schema(
        {
            **dict.fromkeys((*_INTEGER_ARGUMENTS, *_INTEGER_METRICS), pa.int64()),
            **dict.fromkeys(_REAL_METRICS, pa.float64()),
            **dict.fromkeys(_SHAPE, pa.list_(pa.int64())),
        }
    ),
}


class ParsedEvents(NamedTuple):
    """The events of a block: their first and last lines, which are stored, and the columns by tidy table.

    ``size`` is in characters. Lines, also the column ``line``, count from the first event; launches from the first
    launch of the block. ``passed`` counts the skipped events by category.
    """

    size: int
    first_lines: Int64s
    last_lines: Int64s
    taken: Flags
    tables: dict[str, Columns]
    passed: Counter[str]


def parse(text: str, base: int, devices: Devices) -> ParsedEvents | None:
    """Return the complete events at the beginning of ``text``; None if an event is irregular.

    ``base`` is added to the starts, in ns; ``devices`` are the names and compute capabilities by index.
    """
    try:
        return _parse_objects(JsonObjects(text.encode()), base, devices)
    except (pa.ArrowInvalid, IrregularBlockError):
        return None


def _parse_objects(objects: JsonObjects, base: int, devices: Devices) -> ParsedEvents:
    require_plain(abs(base) < MAX_NS)
    require_plain(_SINGLE_EVENT_MARK not in objects.text and not objects.has_text_ending(*_SINGLE_EVENT_ENDINGS))
    for name in ("ts", "dur"):
        objects.must_be_decimals(name)
    taken = np.zeros(len(objects), np.bool_)
    tables: dict[str, Columns] = {}
    passed = Counter[str]()
    on_device = _on_device(objects)
    for side, group in (("device", on_device), ("host", ~on_device)):
        if not group.any():
            continue
        text = objects.joined(group)
        events = _parse_json(text, _SCHEMAS[side])
        require_plain(events.num_rows == np.count_nonzero(group))
        names, categories = _tables_of(events), decode_categories(events.column("cat"))
        known = names.astype(np.bool_)
        spans = ~known & (decode_categories(events.column("ph")) == "X")
        passed.update(name for name in categories[spans].tolist() if not is_ignored(name))
        require_plain(not (set(names.tolist()) - {None, *_TABLE_READERS[side]}))
        taken[group] = known
        lines, block = objects.first_lines[group], _Block(events, text, base)
        for table, made in _TABLE_READERS[side].items():
            if (where := names == table).any():
                tables |= made(_rows(block, lines, where), devices)
    end = int(objects.ends[-1])
    size = end if objects.text.isascii() else len(objects.text[:end].decode())
    return ParsedEvents(size, objects.first_lines, objects.last_lines, taken, tables, passed)


def _on_device(objects: JsonObjects) -> Flags:
    """Guess device events from the first letters of their category; the parser verifies it."""
    owners, places = objects.values("cat")
    letters, codes = np.unique(objects.words(places + 1), return_inverse=True)
    begins = {name[:WORD_BYTES] for name in DEVICE}
    found = [word.tobytes().decode("latin-1").partition('"')[0].lower() in begins for word in letters]
    flags = np.zeros(len(objects), np.bool_)
    flags[owners] = np.array(found, np.bool_)[codes]
    return flags


def _parse_json(text: bytes, schema: pa.Schema) -> pa.RecordBatch:
    table = pyarrow.json.read_json(
        pa.BufferReader(text),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        pa.system_memory_pool(),
    )
    return table.to_batches()[0]


def _tables_of(events: pa.RecordBatch) -> csv_columns.Objects:
    """Return the table of each event; None for skipped events."""
    found = decode_categories(events.column("cat"), lambda cat: _TABLES.get(KINDS.get(cat.lower(), "")))
    found[decode_categories(events.column("ph")) != "X"] = None
    return found


def _argument(events: pa.RecordBatch, name: str) -> pa.Array:
    # Without arguments, each argument is null.
    return events.column("args").field(name)


def _ns(column: pa.Array) -> Int64s:
    """Return microseconds as whole nanoseconds, half of one to the even."""
    rounded = pyarrow.compute.round(column, 3, "half_to_even").cast(pa.decimal128(38, 3))
    values, upper = split_decimals(rounded)
    require_plain(bool((upper == values >> 63).all() and values.min() > -MAX_NS and values.max() < MAX_NS))
    return values


def _durations(column: pa.Array) -> Floats:
    """Return microseconds as nanoseconds, rounded once (quotients of exact integers)."""
    values, upper = split_decimals(column)
    require_plain(bool((upper == 0).all() and values.min() >= 0 and values.max() < MAX_EXACT_INT))
    return values / 10.0 ** (MICROSECOND_DECIMALS - 3)


class _Block(NamedTuple):
    """All device or all host events of a block, their text, and the clock base."""

    events: pa.RecordBatch
    text: bytes
    base: int

    def measured(self, name: str) -> tuple[csv_columns.Objects, Floats, Flags]:
        """Return an argument of all events: raw text, value, and which are known (Arrow drops the raw text)."""
        known = present_values(_argument(self.events, name))
        raw, values = np.full(len(known), None, object), np.full(len(known), np.nan)
        if not known.any():
            return raw, values, known
        matches = list(map(_NUMBER.match, self.text.split(f'"{name}"'.encode())[1:]))
        require_plain(len(matches) == np.count_nonzero(known))
        cells = [match[1] for match in matches if match]
        require_plain(len(cells) == len(matches))
        printed = {cell: _number(cell.decode()) for cell in set(cells)}
        raw[known] = [printed[cell][0] for cell in cells]
        values[known] = [printed[cell][1] for cell in cells]
        return raw, values, known


@dataclass
class _Rows:
    """Events of ``block`` for one tidy table, with their first lines."""

    events: pa.RecordBatch
    lines: Int64s
    block: _Block
    where: Flags

    def own(self, name: str) -> NullableInts:
        """Return an integer member of each event."""
        return nullable_ints(self.events.column(name))

    def argument(self, name: str) -> pa.Array:
        """Return an argument of each event."""
        return _argument(self.events, name)

    def whole(self, *names: str) -> NullableInts:
        """Return the first known of some integer arguments of each event."""
        return reduce(first_present, [nullable_ints(self.argument(name)) for name in names])

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        starts = _ns(self.events.column("ts")) + self.block.base
        return {
            "start_ns": starts,
            "duration_ns": _durations(self.events.column("dur")),
            "line": self.lines,
        }

    def names(self, meaning: Callable[[str], object] = str) -> csv_columns.Objects:
        """Return the names with ``meaning`` applied; every event must have one."""
        names = self.events.column("name")
        require_plain(names.null_count == 0)

        def cleaned(name: str) -> object:
            require_plain(bool(name))
            return meaning(storable_text(name))

        return decode_categories(names, cleaned)

    def kinds(self) -> csv_columns.Objects:
        """Return the kinds of the events."""
        return decode_categories(self.events.column("cat"), lambda cat: KINDS[cat.lower()])

    def place(self, devices: Devices) -> tuple[Columns, csv_columns.Objects]:
        """Return the columns that rows of a device have, and its compute capability."""
        process = self.own("pid")
        on_device = process.known & np.isin(process.values, np.array(list(devices), np.int64))
        index = first_present(self.whole("device"), NullableInts(process.values, on_device))
        found, codes = np.unique(index.values, return_inverse=True)
        known = [devices.get(number, (None, None)) for number in found.tolist()]
        name, capability = (csv_columns.object_column(each, codes) for each in zip(*known, strict=True))
        name[~index.known], capability[~index.known] = None, None
        columns = {
            "device_index": index.array(),
            "device": name,
            "context": self.whole("context").array(),
            "stream": first_present(self.whole("stream"), self.own("tid")).array(),
        }
        return columns, capability

    def outside(self) -> csv_columns.Objects:
        """Return the external id of each event as text."""
        values, known = self.whole("external id", "External id")
        found: csv_columns.Objects = pa.array(values, mask=~known).cast(pa.string()).to_numpy(zero_copy_only=False)
        return found

    def shape(self) -> Columns:
        """Return the nonnegative sizes of grid and block, if there are three each."""
        columns = {}
        for part in _SHAPE:
            sizes = self.argument(part)
            lists = sizes.filter(pyarrow.compute.equal(sizes.value_lengths(), 3)).flatten()
            full = pyarrow.compute.equal(sizes.value_lengths(), 3).fill_null(False).to_numpy(zero_copy_only=False)
            for place, axis in enumerate("xyz"):
                values, known = np.zeros(len(full), np.int64), np.zeros(len(full), np.bool_)
                if len(lists):
                    values[full], known[full] = nullable_ints(lists[place::3])
                columns[f"{part}_{axis}"] = NullableInts(values, known & (values >= 0)).array()
        return columns

    def metrics(self) -> Columns:
        """Return the table of the metric arguments, grouped by launch."""
        found = [self._measured(name) if name in _REAL_METRICS else self._counted(name) for name in METRICS]
        known = np.column_stack([each[2] for each in found])
        launches, places = np.nonzero(known)
        names = [f"args:'{name}'" for name in METRICS]
        units, divisors = zip(*METRICS.values(), strict=True)
        return {
            "launch_index": launches,
            "metric": csv_columns.object_column(names, places),
            "raw_text": np.column_stack([each[0] for each in found])[known],
            "value": np.column_stack([each[1] / divisor for each, divisor in zip(found, divisors, strict=True)])[known],
            "si_unit": csv_columns.object_column(units, places),
            "line": self.lines[launches],
        }

    def _counted(self, name: str) -> tuple[csv_columns.Objects, Floats, Flags]:
        column = self.argument(name)
        values, known = nullable_ints(column)
        return decode_categories(column), values.astype(np.float64), known

    def _measured(self, name: str) -> tuple[csv_columns.Objects, Floats, Flags]:
        raw, values, known = self.block.measured(name)
        return raw[self.where], values[self.where], known[self.where]


def _number(cell: str) -> tuple[str, float]:
    number: int | Decimal = int(cell) if cell.lstrip("-").isdigit() else Decimal(cell)
    require_plain(-MAX_INT64 <= number <= MAX_INT64)
    return str(number), float(number)


def _rows(block: _Block, lines: Int64s, where: Flags) -> _Rows:
    some = block.events if where.all() else block.events.filter(pa.array(where))
    return _Rows(some, lines[where], block, where)


def _launches(rows: _Rows, devices: Devices) -> dict[str, Columns]:
    place, capability = rows.place(devices)
    launches = (
        rows.common()
        | place
        | rows.shape()
        | {
            "launch_index": np.arange(len(rows.lines)),
            "kernel": rows.names(),
            "compute_capability": capability,
            "correlation_id": rows.whole("correlation").array(),
            "registers_per_thread": rows.whole("registers per thread").array(),
            "source_id": rows.outside(),
        }
    )
    metrics = rows.metrics()
    return {"launches": launches} | ({"metrics": metrics} if len(metrics["line"]) else {})


def _transfers(rows: _Rows, devices: Devices) -> dict[str, Columns]:
    is_set = rows.kinds() == "set"
    moved = [rows.names(partial(parse_transfer, is_set=flag)) for flag in (False, True)]
    found = np.where(is_set, moved[1], moved[0])
    columns = {
        name: np.array([one.get(name) for one in found.tolist()], object)
        for name in ("kind", "source_memory", "target_memory")
    }
    place, _ = rows.place(devices)
    return {"transfers": rows.common() | place | columns | {"bytes": rows.whole("bytes", "Bytes").array()}}


def _host(rows: _Rows) -> Columns:
    return rows.common() | {
        "name": rows.names(),
        "process_id": rows.own("pid").array(),
        "thread_id": rows.own("tid").array(),
    }


def _api_calls(rows: _Rows, _: Devices) -> dict[str, Columns]:
    return {"api_calls": _host(rows) | {"correlation_id": rows.whole("correlation").array()}}


def _ranges(rows: _Rows, _: Devices) -> dict[str, Columns]:
    return {"ranges": _host(rows) | {"domain": decode_categories(rows.events.column("cat"))}}


_TABLE_READERS: dict[str, dict[str, Callable[[_Rows, Devices], dict[str, Columns]]]] = {
    "device": {"launches": _launches, "transfers": _transfers},
    "host": {"api_calls": _api_calls, "ranges": _ranges},
}
