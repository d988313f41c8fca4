"""Blocks of a trace of nvprof at once: Arrow splits plain rows, numpy turns whole columns into tidy ones.

Most of a long trace is plain: every row has its cells, every number is one, nothing stands between the rows. Such a
block is read here a hundred times faster than line by line, and to the same values. For a block that holds anything
else `parse` returns None, and the lines go the way that every file can go.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats import block_columns
from profsvc.formats.block_columns import Codes, Numbers, at, closed, numbers, objects, plain_texts, split
from profsvc.formats.blocks import WORD, Block, NotPlainError, blank, letters_of, must, trailing_numbers, words_before
from profsvc.formats.clock import Flags, Int64s
from profsvc.formats.nvprof_lines import TRACE, Layout, device_of
from profsvc.formats.nvprof_values import LONGEST_S, Values
from profsvc.specs import units

Floats = npt.NDArray[np.float64]
Columns = dict[str, Any]

AXES = [f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"]
WHOLE = ["Context", "Stream", "Correlation_ID", "Registers Per Thread", *AXES]
SIZES = {"Size": "bytes", "Static SMem": "shared_mem_static_bytes", "Dynamic SMem": "shared_mem_dynamic_bytes"}
TIMES = ["Start", "Duration"]
TEXTS = ["Device", "SrcMemType", "DstMemType", "Name"]
UNREAD = ["Throughput", "Unified Memory", "Virtual Address"]
MOST_WHOLE = 2**53
MOST_BYTES = 2.0**62
# Below it a time in ns may have digits behind the sixth decimal, which no tool prints: the dust of a product.
DUSTY_NS = 2.0**33
_COPY = re.compile(r"\[CUDA (?:memcpy )?(.+)\]")
_BLANKED = re.compile(r" \[\0+\]$")


@dataclass(frozen=True)
class Plan:
    """How the columns of a layout are split and scaled."""

    layout: Layout
    times: Mapping[str, tuple[float, int]]
    sizes: Mapping[str, float | None]
    decimal: str

    def has(self, column: str) -> bool:
        """Tell whether the layout has a column."""
        return column in self.layout.columns


class Part(NamedTuple):
    """What a block holds: its rows, and by tidy table the columns; ``line`` counts from the start of the block."""

    rows: int
    tables: dict[str, Columns]
    devices: list[str]


def plan_of(layout: Layout | None, values: Values) -> Plan | None:
    """Return how to read blocks of rows under ``layout``; None if its rows go one by one."""
    if layout is None or layout.kind != TRACE or not {*TIMES, "Name"} <= set(layout.columns):
        return None
    if not set(layout.columns) <= {*WHOLE, *SIZES, *TIMES, *TEXTS, *UNREAD}:
        return None
    unit = dict(zip(layout.columns, layout.units, strict=True))
    if any(unit[name] not in ("s", "ms", "us", "ns") for name in TIMES) or any(unit.get(name) for name in WHOLE):
        return None
    factors = {name: units("nvprof")[unit[name]].factor for name in TIMES}
    times = {name: (factor, round(factor * 1e9)) for name, factor in factors.items()}
    sizes: dict[str, float | None] = {}
    for name in SIZES:
        scale = values.scales[unit[name]] if unit.get(name) else (None, "byte")
        if scale is None or scale[1] != "byte":
            return None
        sizes[name] = scale[0]
    return Plan(layout, times, sizes, values.number_format.decimal)


def parse(block: Block, plan: Plan) -> Part | None:
    """Read a block of whole lines; None if any of them is not a plain row."""
    try:
        return _part(_split(block, plan), plan)
    except (pa.ArrowInvalid, NotPlainError):
        return None


def _split(block: Block, plan: Plan) -> pa.RecordBatch:
    kinds = ((block_columns.WHOLE, WHOLE), (block_columns.REAL, [*SIZES, *TIMES]), (block_columns.CODED, TEXTS))
    types = {name: kind for kind, names in kinds for name in names if plan.has(name)}
    types |= {name: block_columns.TEXT for name in ("Name", *UNREAD) if plan.has(name)}
    return split(block, plan.layout.columns, types, plan.decimal)


def _numbers(column: pa.Array) -> Numbers:
    found = numbers(column)
    if found.values.dtype == np.int64:
        must(bool(found.values.min() >= 0 and found.values.max() < MOST_WHOLE))
    else:
        must(bool(found.values.min() >= 0 and np.isfinite(found.values).all()))
    return found


@dataclass
class _Cells:
    """The rows of a block that belong to one tidy table: all, or those at ``where``."""

    batch: pa.RecordBatch
    plan: Plan
    names: "_Names"
    where: Int64s | None

    def numbers(self, column: str) -> Numbers:
        """Return the numbers of a column."""
        return _numbers(self.batch.column(column)).at(self.where)

    def whole(self, column: str) -> pd.arrays.IntegerArray | None:
        """Return a column of whole numbers; None if the table does not have it."""
        if not self.plan.has(column):
            return None
        values, known = self.numbers(column)
        return pd.arrays.IntegerArray(values, ~known)

    def size(self, column: str) -> pd.arrays.IntegerArray | None:
        """Return a column of sizes in bytes; None if the table does not have it."""
        if not self.plan.has(column):
            return None
        values, known = self.numbers(column)
        factor = self.plan.sizes[column]
        must(factor is not None or not known.any())
        sizes = np.rint(values * (factor or 0.0))
        must(bool(sizes.min() >= 0 and sizes.max() < MOST_BYTES))
        return pd.arrays.IntegerArray(sizes.astype(np.int64), ~known)

    def time_ns(self, column: str) -> tuple[Floats, Flags]:
        """Return times in ns, and which are known."""
        values, known = self.numbers(column)
        factor, scale = self.plan.times[column]
        must(bool(values.min() >= 0 and values.max() * factor < LONGEST_S))
        ns = values * scale
        dust_free = np.rint(ns * 1e6)
        dust_free /= 1e6
        return np.where(ns < DUSTY_NS, dust_free, ns) if ns.max() >= DUSTY_NS else dust_free, known

    def texts(self, column: str, meaning: Callable[[str], object]) -> npt.NDArray[np.object_] | None:
        """Return what each text of a column means; None if the table does not have it."""
        if not self.plan.has(column):
            return None
        encoded = self.batch.column(column)
        codes = encoded.indices.to_numpy()
        return objects([meaning(text) for text in plain_texts(encoded.dictionary)], at(codes, self.where))

    def _device_indexes(self) -> pd.arrays.IntegerArray | None:
        if not self.plan.has("Device"):
            return None
        encoded = self.batch.column("Device")
        distinct = pd.array([device_of(text)[1] for text in plain_texts(encoded.dictionary)], dtype="Int64")
        return distinct.take(at(encoded.indices.to_numpy(), self.where))

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        rows = self.batch.num_rows
        starts, begun = self.time_ns("Start")
        durations, lasted = self.time_ns("Duration")
        return {
            "start_ns": pd.arrays.IntegerArray(np.rint(starts).astype(np.int64), ~begun),
            "duration_ns": durations if lasted.all() else np.where(lasted, durations, np.nan),
            "line": np.arange(rows) if self.where is None else self.where,
        }

    def place(self) -> Columns:
        """Return the columns that rows of a device have."""
        return {
            "context": self.whole("Context"),
            "stream": self.whole("Stream"),
            "device": self.texts("Device", lambda text: device_of(text)[0]),
            "device_index": self._device_indexes(),
        }


class _Names:
    """The names of a block, with the number of a launch or a call behind some: ``saxpy(int) [123]``."""

    def __init__(self, names: pa.StringArray) -> None:
        self.names = names
        self.letters, self.starts, self.ends = letters_of(names)
        must(bool((self.ends > self.starts).all()) and not bool((self.letters == ord('"')).any()))

    @cached_property
    def numbers(self) -> tuple[Int64s, Int64s]:
        """The number in brackets at the end of each name, and how many digits it has: none is no number."""
        ends = self.ends - 1
        in_call = (self.letters[ends] == ord(")")) & (self.letters[ends - (ends > self.starts)] == ord("]"))
        ends = ends - in_call
        some = np.flatnonzero((self.letters[ends] == ord("]")) & (self.letters[self.starts] != ord("[")))
        numbers, digits = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.int64)
        if not len(some):
            return numbers, digits
        found, count = trailing_numbers(words_before(self.letters, ends[some]))
        opened, first = ends[some] - 1 - count, self.starts[some]
        opens = (opened > first + 1) & (self.letters[opened] == ord("["))
        # A number that fills its word may go on before it.
        must(not bool(((count == WORD) & ~opens).any()))
        whole = (count > 0) & opens & (self.letters[opened - 1] == ord(" "))
        numbers[some], digits[some] = np.where(whole, found, 0), np.where(whole, count, 0)
        return numbers, digits

    @cached_property
    def encoded(self) -> tuple[list[str], Codes]:
        """The distinct names without the numbers behind them, and which of them each row has."""
        names, (_, digits) = self.names, self.numbers
        some = np.flatnonzero((digits > 0) & (self.letters[self.ends - 1] == ord("]")))
        if len(some):
            # NUL, which no name holds, over the digits: so few distinct names are left.
            letters = self.letters.copy()
            blank(letters, self.starts[some], self.ends[some] - 1, digits[some])
            names = pa.StringArray.from_buffers(len(names), names.buffers()[1], pa.py_buffer(letters))
        encoded = names.dictionary_encode()
        return [_BLANKED.sub("", name) for name in plain_texts(encoded.dictionary)], encoded.indices.to_numpy()

    def called(self, where: Int64s | None) -> npt.NDArray[np.object_]:
        """Return the whole names of some rows."""
        names = self.names if where is None else self.names.take(pa.array(where))
        if self.numbers[1].any():
            whole: npt.NDArray[np.object_] = names.to_numpy(zero_copy_only=False)
            return whole
        encoded = names.dictionary_encode()
        return objects(plain_texts(encoded.dictionary), encoded.indices.to_numpy())


def _part(batch: pa.RecordBatch, plan: Plan) -> Part:
    rows, names = batch.num_rows, _Names(batch.column("Name"))
    nothing = np.zeros(rows, np.bool_)
    is_copy = names.letters[names.starts] == ord("[")
    is_launch = _numbers(batch.column("Grid X")).known & ~is_copy if plan.has("Grid X") else nothing
    for name in filter(plan.has, UNREAD):
        closed(batch.column(name))
    every = _Cells(batch, plan, names, None)
    has_device = every.texts("Device", bool)
    is_call = ~is_copy & ~is_launch
    must(has_device is None or not bool(has_device[is_call].any()))
    tables = {}
    for name, flags in (("launches", is_launch), ("transfers", is_copy), ("api_calls", is_call)):
        if flags.any():
            cells = _Cells(batch, plan, names, None if flags.all() else np.flatnonzero(flags))
            tables[name] = cells.common() | _ROWS[name](cells)
    devices = plain_texts(batch.column("Device").dictionary) if plan.has("Device") else []
    return Part(rows, tables, [device for device in devices if device])


def _correlations(cells: _Cells, strict: bool) -> pd.arrays.IntegerArray:
    """Return the numbers of calls: from their own column, else from behind the names."""
    suffixes, digits = (at(column, cells.where) for column in cells.names.numbers)
    flags = digits > 0
    own = cells.whole("Correlation_ID")
    if own is None:
        return pd.arrays.IntegerArray(suffixes, ~flags)
    values, unknown = own.to_numpy("int64", na_value=0), own.isna()
    # A name keeps a number in brackets that is not that of its launch.
    must(not strict or bool((~flags | unknown | (values == suffixes)).all()))
    return pd.arrays.IntegerArray(np.where(unknown, suffixes, values), unknown & ~flags)


def _launches(cells: _Cells) -> Columns:
    must(all(cells.plan.has(axis) for axis in AXES))
    sizes = {axis.replace(" ", "_").lower(): cells.whole(axis) for axis in AXES}
    must(not any(column is None or column.isna().any() for column in sizes.values()))
    kernels, codes = cells.names.encoded
    codes = at(codes, cells.where)
    # What looks like a call keeps its number, and is no reason to take that for its own.
    must(not any(kernels[code].endswith("])") for code in np.unique(codes).tolist()))
    return {
        **sizes,
        **cells.place(),
        "kernel": objects(kernels, codes),
        "correlation_id": _correlations(cells, strict=True),
        "registers_per_thread": cells.whole("Registers Per Thread"),
        **{SIZES[column]: cells.size(column) for column in ("Static SMem", "Dynamic SMem")},
    }


def _transfers(cells: _Cells) -> Columns:
    names, codes = cells.names.encoded
    codes = at(codes, cells.where)
    kinds = [match[1] if (match := _COPY.fullmatch(name)) else None for name in names]
    must(all(kinds[code] for code in np.unique(codes).tolist()))
    return {
        **cells.place(),
        "kind": objects(kinds, codes),
        "bytes": cells.size("Size"),
        "source_memory": cells.texts("SrcMemType", lambda text: text or None),
        "target_memory": cells.texts("DstMemType", lambda text: text or None),
    }


def _api_calls(cells: _Cells) -> Columns:
    return {"name": cells.names.called(cells.where), "correlation_id": _correlations(cells, strict=False)}


_ROWS = {"launches": _launches, "transfers": _transfers, "api_calls": _api_calls}
