"""Parses blocks of an nvprof trace: Arrow splits the rows, NumPy converts whole columns.

Most of a long trace is regular: every row has all cells, numbers are numbers, and nothing lies between the rows. Blocks
are a hundred times faster than lines and give the same values. `parse` returns None for any other block, which is then
read line by line.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.csv_columns import (
    Codes,
    NumberColumn,
    category_texts,
    cells_at,
    number_column,
    object_column,
    require_closed_quotes,
    split_columns,
)
from profsvc.formats.columnar.line_blocks import (
    WORD_BYTES,
    Block,
    Columns,
    Floats,
    IrregularBlockError,
    erase_digits,
    letters_of,
    require_plain,
    trailing_numbers,
    words_before,
)
from profsvc.formats.nvprof.lines import TRACE, Layout, parse_device
from profsvc.formats.nvprof.values import MAX_BYTES, MAX_TIME_S, Values
from profsvc.formats.parsing.numbers import MAX_EXACT_INT
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.specs import units

AXES = [f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"]
INTEGER_COLUMNS = ["Context", "Stream", "Correlation_ID", "Registers Per Thread", *AXES]
SIZE_COLUMNS = {"Size": "bytes", "Static SMem": "shared_mem_static_bytes", "Dynamic SMem": "shared_mem_dynamic_bytes"}
TIME_COLUMNS = ["Start", "Duration"]
TEXT_COLUMNS = ["Device", "SrcMemType", "DstMemType", "Name"]
UNUSED_COLUMNS = ["Throughput", "Unified Memory", "Virtual Address"]
# Below this, a product of a time in ns has rounding errors after the sixth decimal; no tool prints such digits.
IMPRECISE_BEYOND_NS = 2.0**33
_COPY = re.compile(r"\[CUDA (?:memcpy )?(.+)\]")
_BLANKED = re.compile(r" \[\0+\]$")


@dataclass(frozen=True)
class ColumnPlan:
    """How to split and scale the columns of a layout."""

    layout: Layout
    times: Mapping[str, tuple[float, int]]
    sizes: Mapping[str, float | None]
    decimal: str

    def has(self, column: str) -> bool:
        """Return whether the layout has a column."""
        return column in self.layout.columns


class ParsedRows(NamedTuple):
    """The rows of a block: the columns by tidy table; ``line`` counts from the start of the block."""

    rows: int
    tables: dict[str, Columns]
    devices: list[str]


def column_plan(layout: Layout | None, values: Values) -> ColumnPlan | None:
    """Return how to read blocks of rows of ``layout``; None if only line by line is possible."""
    if layout is None or layout.kind != TRACE or not {*TIME_COLUMNS, "Name"} <= set(layout.columns):
        return None
    if not set(layout.columns) <= {*INTEGER_COLUMNS, *SIZE_COLUMNS, *TIME_COLUMNS, *TEXT_COLUMNS, *UNUSED_COLUMNS}:
        return None
    unit = dict(zip(layout.columns, layout.units, strict=True))
    if any(unit[name] not in ("s", "ms", "us", "ns") for name in TIME_COLUMNS) or any(
        unit.get(name) for name in INTEGER_COLUMNS
    ):
        return None
    factors = {name: units("nvprof")[unit[name]].factor for name in TIME_COLUMNS}
    times = {name: (factor, round(factor * 1e9)) for name, factor in factors.items()}
    sizes: dict[str, float | None] = {}
    for name in SIZE_COLUMNS:
        scale = values.scales[unit[name]] if unit.get(name) else (None, "byte")
        if scale is None or scale[1] != "byte":
            return None
        sizes[name] = scale[0]
    return ColumnPlan(layout, times, sizes, values.number_format.decimal)


def parse(block: Block, plan: ColumnPlan) -> ParsedRows | None:
    """Return the rows of a block of complete lines; None if a row is irregular."""
    try:
        return _parse_columns(_split(block, plan), plan)
    except (pa.ArrowInvalid, IrregularBlockError):
        return None


def _split(block: Block, plan: ColumnPlan) -> pa.RecordBatch:
    kinds = (
        (csv_columns.INTEGER, INTEGER_COLUMNS),
        (csv_columns.REAL, [*SIZE_COLUMNS, *TIME_COLUMNS]),
        (csv_columns.CATEGORY, TEXT_COLUMNS),
    )
    types = {name: kind for kind, names in kinds for name in names if plan.has(name)}
    types |= {name: csv_columns.TEXT for name in ("Name", *UNUSED_COLUMNS) if plan.has(name)}
    return split_columns(block, plan.layout.columns, types, plan.decimal)


def _numbers(column: pa.Array) -> NumberColumn:
    found = number_column(column)
    if found.values.dtype == np.int64:
        require_plain(bool(found.values.min() >= 0 and found.values.max() < MAX_EXACT_INT))
    else:
        require_plain(bool(found.values.min() >= 0 and np.isfinite(found.values).all()))
    return found


@dataclass
class _Cells:
    """The rows of a block that belong to one tidy table: all, or those at ``where``."""

    batch: pa.RecordBatch
    plan: ColumnPlan
    names: "_Names"
    where: Int64s | None

    def numbers(self, column: str) -> NumberColumn:
        """Return the numbers of a column."""
        return _numbers(self.batch.column(column)).at(self.where)

    def whole(self, column: str) -> pd.arrays.IntegerArray | None:
        """Return a column of integers; None if the table lacks it."""
        if not self.plan.has(column):
            return None
        values, known = self.numbers(column)
        return pd.arrays.IntegerArray(values, ~known)

    def size(self, column: str) -> pd.arrays.IntegerArray | None:
        """Return a column of sizes in bytes; None if the table lacks it."""
        if not self.plan.has(column):
            return None
        values, known = self.numbers(column)
        factor = self.plan.sizes[column]
        require_plain(factor is not None or not known.any())
        sizes = np.rint(values * (factor or 0.0))
        require_plain(bool(sizes.min() >= 0 and sizes.max() < MAX_BYTES))
        return pd.arrays.IntegerArray(sizes.astype(np.int64), ~known)

    def time_ns(self, column: str) -> tuple[Floats, Flags]:
        """Return times in ns, and which are known."""
        values, known = self.numbers(column)
        factor, scale = self.plan.times[column]
        require_plain(bool(values.min() >= 0 and values.max() * factor < MAX_TIME_S))
        ns = values * scale
        rounded = np.rint(ns * 1e6) / 1e6
        return np.where(ns < IMPRECISE_BEYOND_NS, rounded, ns), known

    def texts(self, column: str, meaning: Callable[[str], object]) -> npt.NDArray[np.object_] | None:
        """Return a column with ``meaning`` applied to its texts; None if the table lacks it."""
        if not self.plan.has(column):
            return None
        encoded = self.batch.column(column)
        codes = encoded.indices.to_numpy()
        return object_column(
            [meaning(text) for text in category_texts(encoded.dictionary)], cells_at(codes, self.where)
        )

    def _device_indexes(self) -> pd.arrays.IntegerArray | None:
        if not self.plan.has("Device"):
            return None
        encoded = self.batch.column("Device")
        distinct = pd.array([parse_device(text)[1] for text in category_texts(encoded.dictionary)], dtype="Int64")
        return distinct.take(cells_at(encoded.indices.to_numpy(), self.where))

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
            "device": self.texts("Device", lambda text: parse_device(text)[0]),
            "device_index": self._device_indexes(),
        }


class _Names:
    """The names of a block, with the number of a launch or a call behind some: ``saxpy(int) [123]``."""

    def __init__(self, names: pa.StringArray) -> None:
        self.names = names
        self.letters, self.starts, self.ends = letters_of(names)
        require_plain(bool((self.ends > self.starts).all()) and not bool((self.letters == ord('"')).any()))

    @cached_property
    def numbers(self) -> tuple[Int64s, Int64s]:
        """The number in brackets at the end of each name, and its digits; 0 digits mean no number."""
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
        # A number that fills its word may have more digits before it.
        require_plain(not bool(((count == WORD_BYTES) & ~opens).any()))
        whole = (count > 0) & opens & (self.letters[opened - 1] == ord(" "))
        numbers[some], digits[some] = np.where(whole, found, 0), np.where(whole, count, 0)
        return numbers, digits

    @cached_property
    def encoded(self) -> tuple[list[str], Codes]:
        """The distinct names without their numbers, and the code of each row."""
        names, (_, digits) = self.names, self.numbers
        some = np.flatnonzero((digits > 0) & (self.letters[self.ends - 1] == ord("]")))
        if len(some):
            # Overwriting the digits with NUL, which no name contains, leaves few distinct names.
            letters = self.letters.copy()
            erase_digits(letters, self.starts[some], self.ends[some] - 1, digits[some])
            names = pa.StringArray.from_buffers(len(names), names.buffers()[1], pa.py_buffer(letters))
        encoded = names.dictionary_encode()
        return [_BLANKED.sub("", name) for name in category_texts(encoded.dictionary)], encoded.indices.to_numpy()

    def called(self, where: Int64s | None) -> npt.NDArray[np.object_]:
        """Return the whole names of some rows."""
        names = self.names if where is None else self.names.take(pa.array(where))
        if self.numbers[1].any():
            whole: npt.NDArray[np.object_] = names.to_numpy(zero_copy_only=False)
            return whole
        encoded = names.dictionary_encode()
        return object_column(category_texts(encoded.dictionary), encoded.indices.to_numpy())


def _parse_columns(batch: pa.RecordBatch, plan: ColumnPlan) -> ParsedRows:
    rows, names = batch.num_rows, _Names(batch.column("Name"))
    nothing = np.zeros(rows, np.bool_)
    is_copy = names.letters[names.starts] == ord("[")
    is_launch = _numbers(batch.column("Grid X")).known & ~is_copy if plan.has("Grid X") else nothing
    for name in filter(plan.has, UNUSED_COLUMNS):
        require_closed_quotes(batch.column(name))
    every = _Cells(batch, plan, names, None)
    has_device = every.texts("Device", bool)
    is_call = ~is_copy & ~is_launch
    require_plain(has_device is None or not bool(has_device[is_call].any()))
    tables = {}
    for name, flags in (("launches", is_launch), ("transfers", is_copy), ("api_calls", is_call)):
        if flags.any():
            cells = _Cells(batch, plan, names, None if flags.all() else np.flatnonzero(flags))
            tables[name] = cells.common() | _ROWS[name](cells)
    devices = category_texts(batch.column("Device").dictionary) if plan.has("Device") else []
    return ParsedRows(rows, tables, [device for device in devices if device])


def _correlations(cells: _Cells, strict: bool) -> pd.arrays.IntegerArray:
    """Return the call numbers: from their column, else from the ends of the names."""
    suffixes, digits = (cells_at(column, cells.where) for column in cells.names.numbers)
    flags = digits > 0
    own = cells.whole("Correlation_ID")
    if own is None:
        return pd.arrays.IntegerArray(suffixes, ~flags)
    values, unknown = own.to_numpy("int64", na_value=0), own.isna()
    # A name keeps a number in brackets that differs from the number of its launch.
    require_plain(not strict or bool((~flags | unknown | (values == suffixes)).all()))
    return pd.arrays.IntegerArray(np.where(unknown, suffixes, values), unknown & ~flags)


def _launches(cells: _Cells) -> Columns:
    require_plain(all(cells.plan.has(axis) for axis in AXES))
    sizes = {axis.replace(" ", "_").lower(): cells.whole(axis) for axis in AXES}
    require_plain(not any(column is None or column.isna().any() for column in sizes.values()))
    kernels, codes = cells.names.encoded
    codes = cells_at(codes, cells.where)
    # A name that looks like a call keeps its number, which is then not the number of the launch.
    require_plain(not any(kernels[code].endswith("])") for code in np.unique(codes).tolist()))
    return {
        **sizes,
        **cells.place(),
        "kernel": object_column(kernels, codes),
        "correlation_id": _correlations(cells, strict=True),
        "registers_per_thread": cells.whole("Registers Per Thread"),
        **{SIZE_COLUMNS[column]: cells.size(column) for column in ("Static SMem", "Dynamic SMem")},
    }


def _transfers(cells: _Cells) -> Columns:
    names, codes = cells.names.encoded
    codes = cells_at(codes, cells.where)
    kinds = [match[1] if (match := _COPY.fullmatch(name)) else None for name in names]
    require_plain(all(kinds[code] for code in np.unique(codes).tolist()))
    return {
        **cells.place(),
        "kind": object_column(kinds, codes),
        "bytes": cells.size("Size"),
        "source_memory": cells.texts("SrcMemType", lambda text: text or None),
        "target_memory": cells.texts("DstMemType", lambda text: text or None),
    }


def _api_calls(cells: _Cells) -> Columns:
    return {"name": cells.names.called(cells.where), "correlation_id": _correlations(cells, strict=False)}


_ROWS = {"launches": _launches, "transfers": _transfers, "api_calls": _api_calls}
