"""Blocks of the events of a PyTorch trace at once: msgspec parses them, and whole columns are made of what it finds.

A block is read so only if each value that is asked for is of a kind that it may have; any other is left to the events.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from itertools import compress
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute
from msgspec import UNSET, Raw, UnsetType

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.arrow_columns import NullableInts, first_present, split_decimals
from profsvc.formats.columnar.json_objects import parse_objects
from profsvc.formats.columnar.line_blocks import Columns, Floats, IrregularBlockError, require_plain
from profsvc.formats.parsing.copy_kinds import parse_transfer
from profsvc.formats.parsing.json_stream import loads, storable_text
from profsvc.formats.parsing.numbers import MAX_EXACT_INT, MAX_INT64
from profsvc.formats.parsing.timestamps import MAX_NS, Flags, Int64s
from profsvc.formats.pytorch.events import COUNTERS, KINDS, METRICS, integer, is_ignored, metric_number
from profsvc.formats.pytorch.xla import gpu_index
from profsvc.formats.rocm.rocprof_v1_tables import SECTIONS

Devices = Mapping[int, tuple[str | None, str | None]]
Whole = int | str | None
"""An integer; some events have a text in its place, which stands for none."""
T = TypeVar("T", bound=Hashable)

# Decimals of parsed microseconds.
MICROSECOND_DECIMALS = 6
_TABLES = {"kernel": "launches", "copy": "transfers", "set": "transfers", "call": "api_calls", "range": "ranges"}
_DECIMAL_SIGNS = b"-.0123456789\n"
_ABSENT = Raw()


class _Arguments(msgspec.Struct, gc=False):
    """The arguments that are asked for; events with one of those of `UnsetType` are read one by one."""

    device: Whole = None
    context: Whole = None
    stream: Whole = None
    correlation: Whole = None
    bytes: Whole = None
    Bytes: Whole = None
    external_id: Whole = msgspec.field(default=None, name="external id")
    External_id: Whole = msgspec.field(default=None, name="External id")
    registers: Raw = msgspec.field(default=_ABSENT, name="registers per thread")
    shared_memory: Raw = msgspec.field(default=_ABSENT, name="shared memory")
    blocks_per_sm: Raw = msgspec.field(default=_ABSENT, name="blocks per SM")
    warps_per_sm: Raw = msgspec.field(default=_ABSENT, name="warps per SM")
    occupancy: Raw = msgspec.field(default=_ABSENT, name="est. achieved occupancy %")
    grid: Raw = _ABSENT
    block: Raw = _ABSENT
    name: object = None
    # Of XLA and the first rocprof.
    kernel_details: UnsetType = UNSET
    memcpy_details: UnsetType = UNSET
    Memset_details: UnsetType = UNSET
    memset_details: UnsetType = UNSET
    static_shared: UnsetType = UNSET
    dynamic_shared: UnsetType = UNSET
    group_mem: UnsetType = UNSET
    occ_pct: UnsetType = UNSET
    BeginNs: UnsetType = UNSET


class _Event(msgspec.Struct, gc=False):
    """The members of an event that are asked for; times are kept as they are printed."""

    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    pid: Whole = None
    tid: Whole = None
    ts: Raw = _ABSENT
    dur: Raw = _ABSENT
    args: _Arguments | None = None


_DECODER = msgspec.json.Decoder(list[_Event])
_NO_ARGUMENTS = _Arguments()
_MEMBERS = {field.encode_name: attrgetter(field.name) for field in msgspec.structs.fields(_Event)}
_ARGUMENTS = {field.encode_name: attrgetter(field.name) for field in msgspec.structs.fields(_Arguments)}


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
        return _parse(text.encode(), base, devices)
    except (pa.ArrowInvalid, IrregularBlockError, RecursionError):
        return None


def _parse(text: bytes, base: int, devices: Devices) -> ParsedEvents:
    require_plain(abs(base) < MAX_NS)
    events, end, first_lines, last_lines = parse_objects(text, _DECODER)
    require_plain(not any(map(_names_process_of_others, [event for event in events if event.ph == "M"])))
    categories = [event.cat if event.ph == "X" else None for event in events]
    counts = Counter(categories)
    numbers = {category: _table_number(category) for category in counts}
    found = np.array([numbers[category] for category in categories])
    tables: dict[str, Columns] = {}
    for number, columns_of in enumerate(_TABLE_READERS.values()):
        where = found == number
        if where.any():
            some = events if where.all() else list(compress(events, where.tolist()))
            tables |= columns_of(_Rows(some, first_lines[where], base), devices)
    skipped = [name for name, number in numbers.items() if name is not None and number < 0 and not is_ignored(name)]
    size = end if text.isascii() else len(text[:end].decode())
    passed = Counter({name: counts[name] for name in skipped if name is not None})
    return ParsedEvents(size, first_lines, last_lines, found >= 0, tables, passed)


def _names_process_of_others(event: _Event) -> bool:
    """Return whether an event names a process of XLA or the first rocprof, whose events are read one by one."""
    name = event.args.name if event.args is not None else None
    return (
        event.name == "process_name"
        and isinstance(name, str)
        and (name.endswith(tuple(SECTIONS)) or gpu_index({"name": event.name, "args": {"name": name}}) is not None)
    )


def _table_number(category: str | None) -> int:
    """Return the number of the table of the events of a category; -1 if they are skipped."""
    name = (category or "").lower()
    require_plain(name != COUNTERS)
    return list(_TABLE_READERS).index(_TABLES[KINDS[name]]) if name in KINDS else -1


def _decimals(values: Sequence[Raw]) -> pa.Array:
    """Return printed numbers with at most `MICROSECOND_DECIMALS` decimals."""
    text = b"\n".join(values) + b"\n"
    require_plain(not text.translate(None, _DECIMAL_SIGNS))
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    bounds = np.append(0, ends - np.arange(len(ends))).astype(np.int32)
    data = pa.py_buffer(text.replace(b"\n", b""))
    texts = pa.Array.from_buffers(pa.string(), len(ends), [None, pa.py_buffer(bounds), data])
    return texts.cast(pa.decimal128(38, MICROSECOND_DECIMALS))


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


def _integers(values: Sequence[Whole]) -> NullableInts:
    """Return a column of integers; those of more than 64 bits and texts are unknown.

    >>> _integers([7, None, 2**63, "0"])
    NullableInts(values=array([7, 0, 0, 0]), known=array([ True, False, False, False]))
    """
    if values.count(None) == len(values):
        return NullableInts(np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_))
    column = np.array(values)
    if column.dtype == np.int64:
        return NullableInts(column, column >= -MAX_INT64)
    numbers = [integer(value) for value in values]
    known = np.array([number is not None for number in numbers], np.bool_)
    return NullableInts(np.array([number or 0 for number in numbers], np.int64), known)


def _converted(values: Sequence[T], meaning: Callable[[T], object]) -> csv_columns.Objects:
    """Return a column of values with ``meaning`` applied once to each distinct one."""
    meanings = {value: meaning(value) for value in set(values)}
    column = np.empty(len(values), object)
    column[:] = [meanings[value] for value in values]
    return column


def _sizes(value: object) -> Sequence[int | None]:
    """Return the sizes in x, y and z that are not negative, if there are three."""
    sizes = value if isinstance(value, list) and len(value) == 3 else (None,) * 3
    return [number if (number := integer(size)) is not None and number >= 0 else None for size in sizes]


@dataclass(eq=False)
class _Rows:
    """Events for one tidy table, with their first lines; ``base`` is added to the starts, in ns."""

    events: list[_Event]
    lines: Int64s
    base: int

    @cached_property
    def _arguments(self) -> list[_Arguments]:
        return [event.args or _NO_ARGUMENTS for event in self.events]

    def member(self, name: str) -> list[Any]:
        """Return a member of each event."""
        return list(map(_MEMBERS[name], self.events))

    def argument(self, name: str) -> list[Any]:
        """Return an argument of each event."""
        return list(map(_ARGUMENTS[name], self._arguments))

    def parsed(self, name: str) -> tuple[list[object], csv_columns.Codes]:
        """Return the distinct values of an argument that is kept as it is printed, and the code of each event."""
        texts = b"\0".join(self.argument(name)).split(b"\0")
        codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        return [loads(text.decode()) if text else None for text in codes], np.array([codes[text] for text in texts])

    def own(self, name: str) -> NullableInts:
        """Return an integer member of each event."""
        return _integers(self.member(name))

    def whole(self, *names: str) -> NullableInts:
        """Return the first known of some integer arguments of each event."""
        return reduce(first_present, [_integers(self.argument(name)) for name in names])

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        return {
            "start_ns": _ns(_decimals(self.member("ts"))) + self.base,
            "duration_ns": _durations(_decimals(self.member("dur"))),
            "line": self.lines,
        }

    def names(self, meaning: Callable[[str], object] = str) -> csv_columns.Objects:
        """Return the names with ``meaning`` applied; every event must have one."""

        def cleaned(name: str | None) -> object:
            require_plain(bool(name))
            return meaning(storable_text(name or ""))

        return _converted(self.member("name"), cleaned)

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
        if not known.any():
            return np.full(len(known), None, object)
        found: csv_columns.Objects = pa.array(values, mask=~known).cast(pa.string()).to_numpy(zero_copy_only=False)
        return found

    def shape(self) -> Columns:
        """Return the sizes of grid and block."""
        columns = {}
        for part in ("grid", "block"):
            values, codes = self.parsed(part)
            for axis, distinct in zip("xyz", zip(*map(_sizes, values), strict=True), strict=True):
                columns[f"{part}_{axis}"] = csv_columns.coded_ints(distinct, codes)
        return columns

    def metrics(self) -> Columns:
        """Return the table of the metric arguments, grouped by launch."""
        found = {name: measured for name in METRICS if (measured := self._measured(name)) is not None}
        names = list(found)
        if not names:
            return {}
        texts = np.column_stack([each[0] for each in found.values()])
        values = np.column_stack([each[1] for each in found.values()])
        launches, places = np.nonzero(~np.isnan(values))
        units, divisors = zip(*(METRICS[name] for name in names), strict=True)
        return {
            "launch_index": launches,
            "metric": csv_columns.object_column([f"args:'{name}'" for name in names], places),
            "raw_text": texts[launches, places],
            "value": (values / np.array(divisors))[launches, places],
            "si_unit": csv_columns.object_column(units, places),
            "line": self.lines[launches],
        }

    def _measured(self, name: str) -> tuple[csv_columns.Objects, Floats] | None:
        """Return an argument that is a metric as text and number, NaN where it is unknown; None if all are."""
        found, codes = self.parsed(name)
        numbers = list(map(metric_number, found))
        if numbers == [None]:
            return None
        texts = csv_columns.object_column([None if number is None else str(number) for number in numbers], codes)
        return texts, np.array([math.nan if number is None else float(number) for number in numbers])[codes]


def _launches(rows: _Rows, devices: Devices) -> dict[str, Columns]:
    place, capability = rows.place(devices)
    registers, codes = rows.parsed("registers per thread")
    launches = (
        rows.common()
        | place
        | rows.shape()
        | {
            "launch_index": np.arange(len(rows.lines)),
            "kernel": rows.names(),
            "compute_capability": capability,
            "correlation_id": rows.whole("correlation").array(),
            "registers_per_thread": csv_columns.coded_ints(list(map(integer, registers)), codes),
            "source_id": rows.outside(),
        }
    )
    metrics = rows.metrics()
    return {"launches": launches} | ({"metrics": metrics} if metrics else {})


def _transfers(rows: _Rows, devices: Devices) -> dict[str, Columns]:
    is_set = np.array([KINDS[event.cat.lower()] == "set" for event in rows.events if event.cat is not None], np.bool_)
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
    return {"ranges": _host(rows) | {"domain": _converted(rows.member("cat"), str)}}


_TABLE_READERS: dict[str, Callable[[_Rows, Devices], dict[str, Columns]]] = {
    "launches": _launches,
    "transfers": _transfers,
    "api_calls": _api_calls,
    "ranges": _ranges,
}
