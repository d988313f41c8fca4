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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute
import pyarrow.json

from profsvc.formats import block_columns
from profsvc.formats.arrow_columns import Wholes, first_of, halves, known_of, meanings, wholes
from profsvc.formats.blocks import WORD, NotPlainError, must
from profsvc.formats.clock import Flags, Int64s
from profsvc.formats.json_blocks import Objects
from profsvc.formats.json_stream import clean
from profsvc.formats.kineto_events import COUNTERS, DEVICE, KINDS, LARGEST, METRICS, is_passed, transfer
from profsvc.formats.rocprof_v1 import SECTIONS

Columns = dict[str, Any]
Floats = npt.NDArray[np.float64]
Devices = Mapping[int, tuple[str | None, str | None]]

# Microseconds are parsed to so many decimals; a double holds whole numbers below the limit.
DECIMALS = 6
MOST_WHOLE = 2**53
MOST_NS = 2**62
_WHOLE = ("device", "context", "stream", "correlation", "bytes", "Bytes", "external id", "External id")
_COUNTED = ("registers per thread", "shared memory")
_MEASURED = tuple(name for name in METRICS if name not in _COUNTED)
_SHAPE = ("grid", "block")
_TABLES = {"kernel": "launches", "copy": "transfers", "set": "transfers", "call": "api_calls", "range": "ranges"}
# What XLA and rocprof write, and counters of CUPTI, whose names are the arguments.
_BY_ITSELF = (b"/device:GPU:", b'_details"', b'"BeginNs"', *(f'{n}"'.encode() for n in (*SECTIONS, COUNTERS)))
# At most as long as Arrow's decimals.
_NUMBER = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(-?[0-9][-+.0-9Ee]{0,37})[ \t\r\n,}]")


def _schema(arguments: Mapping[str, pa.DataType]) -> pa.Schema:
    texts, wholes = dict.fromkeys(("ph", "cat", "name"), pa.string()), dict.fromkeys(("pid", "tid"), pa.int64())
    times = dict.fromkeys(("ts", "dur"), pa.decimal128(38, DECIMALS))
    return pa.schema({**texts, **wholes, **times, "args": pa.struct(list(arguments.items()))})


_SCHEMAS = {
    "host": _schema({"correlation": pa.int64()}),
    "device": _schema(
        {
            **dict.fromkeys((*_WHOLE, *_COUNTED), pa.int64()),
            **dict.fromkeys(_MEASURED, pa.float64()),
            **dict.fromkeys(_SHAPE, pa.list_(pa.int64())),
        }
    ),
}


class Part(NamedTuple):
    """What a block holds: where its events begin and end, which of them are rows, and by tidy table the columns.

    ``size`` is in characters of the text; lines count from that of the first event, the column ``line`` too, and
    launches from the first of the block. ``passed`` counts the events that are skipped by category.
    """

    size: int
    first_lines: Int64s
    last_lines: Int64s
    taken: Flags
    tables: dict[str, Columns]
    passed: Counter[str]


def parse(text: str, base: int, devices: Devices) -> Part | None:
    """Read the whole events at the beginning of ``text``; None if any of them is not plain.

    ``base`` is added to the starts, in ns; ``devices`` are the names and compute capabilities by index.
    """
    try:
        return _part(Objects(text.encode()), base, devices)
    except (pa.ArrowInvalid, NotPlainError):
        return None


def _part(objects: Objects, base: int, devices: Devices) -> Part:
    must(abs(base) < MOST_NS)
    must(not any(mark in objects.text for mark in _BY_ITSELF))
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
        events = _parsed(text, _SCHEMAS[side])
        must(events.num_rows == np.count_nonzero(group))
        names, categories = _tables_of(events), meanings(events.column("cat"))
        spans = pd.isna(names) & (meanings(events.column("ph")) == "X")
        passed.update(name for name in categories[spans].tolist() if not is_passed(name))
        must(not (set(names.tolist()) - {None, *_MADE[side]}))
        taken[group] = pd.notna(names)
        lines, block = objects.first_lines[group], _Block(events, text, base)
        for table, made in _MADE[side].items():
            if (where := names == table).any():
                tables |= made(_rows(block, lines, where), devices)
    end = int(objects.ends[-1])
    size = end if objects.text.isascii() else len(objects.text[:end].decode())
    return Part(size, objects.first_lines, objects.last_lines, taken, tables, passed)


def _on_device(objects: Objects) -> Flags:
    """Guess which events are of a device, by the first letters of their category; the parser will see."""
    owners, places = objects.values("cat")
    letters, codes = np.unique(objects.words(places + 1), return_inverse=True)
    begins = {name[:WORD] for name in DEVICE}
    found = [word.tobytes().decode("latin-1").partition('"')[0].lower() in begins for word in letters]
    flags = np.zeros(len(objects), np.bool_)
    flags[owners] = np.array(found, np.bool_)[codes]
    return flags


def _parsed(text: bytes, schema: pa.Schema) -> pa.RecordBatch:
    table = pyarrow.json.read_json(
        pa.BufferReader(text),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1),
        pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        pa.system_memory_pool(),
    )
    return table.to_batches()[0]


def _tables_of(events: pa.RecordBatch) -> block_columns.Objects:
    """Return the table of each event; None for those of no table."""
    found = meanings(events.column("cat"), lambda cat: _TABLES.get(KINDS.get(cat.lower(), "")))
    found[meanings(events.column("ph")) != "X"] = None
    return found


def _argument(events: pa.RecordBatch, name: str) -> pa.Array:
    # Where an event has no arguments, each of them is null as well.
    return events.column("args").field(name)


def _ns(column: pa.Array) -> Int64s:
    """Return microseconds as whole nanoseconds, half of one to the even."""
    rounded = pyarrow.compute.round(column, 3, "half_to_even").cast(pa.decimal128(38, 3))
    values, upper = halves(rounded)
    must(bool((upper == values >> 63).all() and values.min() > -MOST_NS and values.max() < MOST_NS))
    return values


def _durations(column: pa.Array) -> Floats:
    """Return microseconds as nanoseconds: quotients of whole numbers that doubles hold, so they are rounded once."""
    values, upper = halves(column)
    must(bool((upper == 0).all() and values.min() >= 0 and values.max() < MOST_WHOLE))
    return values / 10.0 ** (DECIMALS - 3)


class _Block(NamedTuple):
    """All events of one side of a block, their text, and what is added to their starts."""

    events: pa.RecordBatch
    text: bytes
    base: int

    def measured(self, name: str) -> tuple[block_columns.Objects, Floats, Flags]:
        """Return an argument of all events: as it came, its value, and whether there is one. Arrow keeps no digits."""
        known = known_of(_argument(self.events, name))
        raw, values = np.full(len(known), None, object), np.full(len(known), np.nan)
        if not known.any():
            return raw, values, known
        matches = list(map(_NUMBER.match, self.text.split(f'"{name}"'.encode())[1:]))
        must(len(matches) == np.count_nonzero(known))
        cells = [match[1] for match in matches if match]
        must(len(cells) == len(matches))
        printed = {cell: _number(cell.decode()) for cell in set(cells)}
        raw[known] = [printed[cell][0] for cell in cells]
        values[known] = [printed[cell][1] for cell in cells]
        return raw, values, known


@dataclass
class _Rows:
    """Events that are rows of one tidy table, or may be, with the lines they begin on; they stand in ``block``."""

    events: pa.RecordBatch
    lines: Int64s
    block: _Block
    where: Flags

    def own(self, name: str) -> Wholes:
        """Return a whole number of each event."""
        return wholes(self.events.column(name))

    def argument(self, name: str) -> pa.Array:
        """Return an argument of each event."""
        return _argument(self.events, name)

    def whole(self, *names: str) -> Wholes:
        """Return the first of some whole arguments of each event."""
        return reduce(first_of, [wholes(self.argument(name)) for name in names])

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        starts = _ns(self.events.column("ts")) + self.block.base
        return {
            "start_ns": starts,
            "duration_ns": _durations(self.events.column("dur")),
            "line": self.lines,
        }

    def names(self, meaning: Callable[[str], object] = str) -> block_columns.Objects:
        """Return what the names mean; there must be one for each event."""
        names = self.events.column("name")
        must(names.null_count == 0)

        def cleaned(name: str) -> object:
            must(bool(name))
            return meaning(clean(name))

        return meanings(names, cleaned)

    def kinds(self) -> block_columns.Objects:
        """Return the kinds of the events."""
        return meanings(self.events.column("cat"), lambda cat: KINDS[cat.lower()])

    def place(self, devices: Devices) -> tuple[Columns, block_columns.Objects]:
        """Return the columns that rows of a device have, and its compute capability."""
        process = self.own("pid")
        on_device = process.known & np.isin(process.values, np.array(list(devices), np.int64))
        index = first_of(self.whole("device"), Wholes(process.values, on_device))
        found, codes = np.unique(index.values, return_inverse=True)
        known = [devices.get(number, (None, None)) for number in found.tolist()]
        name, capability = (block_columns.objects(each, codes) for each in zip(*known, strict=True))
        name[~index.known], capability[~index.known] = None, None
        columns = {
            "device_index": index.array(),
            "device": name,
            "context": self.whole("context").array(),
            "stream": first_of(self.whole("stream"), self.own("tid")).array(),
        }
        return columns, capability

    def outside(self) -> block_columns.Objects:
        """Return the number of the call of the host, as a text."""
        values, known = self.whole("external id", "External id")
        found: block_columns.Objects = pa.array(values, mask=~known).cast(pa.string()).to_numpy(zero_copy_only=False)
        return found

    def shape(self) -> Columns:
        """Return the sizes of grid and block, where there are three; none is negative."""
        columns = {}
        for part in _SHAPE:
            sizes = self.argument(part)
            lists = sizes.filter(pyarrow.compute.equal(sizes.value_lengths(), 3)).flatten()
            full = pyarrow.compute.equal(sizes.value_lengths(), 3).fill_null(False).to_numpy(zero_copy_only=False)
            for place, axis in enumerate("xyz"):
                values, known = np.zeros(len(full), np.int64), np.zeros(len(full), np.bool_)
                if len(lists):
                    values[full], known[full] = wholes(lists[place::3])
                columns[f"{part}_{axis}"] = Wholes(values, known & (values >= 0)).array()
        return columns

    def metrics(self) -> Columns:
        """Return the table of the arguments that are metrics, those of a launch after each other."""
        found = [self._measured(name) if name in _MEASURED else self._counted(name) for name in METRICS]
        known = np.column_stack([each[2] for each in found])
        launches, places = np.nonzero(known)
        names = [f"args:'{name}'" for name in METRICS]
        units, divisors = zip(*METRICS.values(), strict=True)
        return {
            "launch_index": launches,
            "metric": block_columns.objects(names, places),
            "raw_text": np.column_stack([each[0] for each in found])[known],
            "value": np.column_stack([each[1] / divisor for each, divisor in zip(found, divisors, strict=True)])[known],
            "si_unit": block_columns.objects(units, places),
            "line": self.lines[launches],
        }

    def _counted(self, name: str) -> tuple[block_columns.Objects, Floats, Flags]:
        column = self.argument(name)
        values, known = wholes(column)
        return meanings(column), values.astype(np.float64), known

    def _measured(self, name: str) -> tuple[block_columns.Objects, Floats, Flags]:
        raw, values, known = self.block.measured(name)
        return raw[self.where], values[self.where], known[self.where]


def _number(cell: str) -> tuple[str, float]:
    number: int | Decimal = int(cell) if cell.lstrip("-").isdigit() else Decimal(cell)
    must(-LARGEST <= number <= LARGEST)
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
    moved = [rows.names(partial(transfer, is_set=flag)) for flag in (False, True)]
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
    return {"ranges": _host(rows) | {"domain": meanings(rows.events.column("cat"))}}


_MADE: dict[str, dict[str, Callable[[_Rows, Devices], dict[str, Columns]]]] = {
    "device": {"launches": _launches, "transfers": _transfers},
    "host": {"api_calls": _api_calls, "ranges": _ranges},
}
