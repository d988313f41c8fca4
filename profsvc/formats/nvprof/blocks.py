"""Parses blocks of an nvprof trace: the compiled splitter or Arrow splits the rows, NumPy converts whole columns.

Most of a long trace is regular: every row has all cells, numbers are numbers, and nothing lies between the rows. Blocks
are a hundred times faster than lines and give the same values. `parse` returns None for any other block, which is then
read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from profsvc.formats.columnar.arrow_columns import NullableInts
from profsvc.formats.columnar.csv_columns import cells_at, coded_ints, used_codes
from profsvc.formats.columnar.line_blocks import Block, Columns, IrregularBlockError, require_plain
from profsvc.formats.nvprof.arrow_rows import ArrowRows
from profsvc.formats.nvprof.column_plan import AXES, SIZE_COLUMNS, ColumnPlan
from profsvc.formats.nvprof.lines import parse_device
from profsvc.formats.nvprof.split_rows import SplitRows
from profsvc.formats.parsing.timestamps import Int64s
from profsvc.formats.splitter import rows as splitter
from profsvc.tables import CodedTexts, nulls
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pa

_COPY = re.compile(r"\[CUDA (?:memcpy )?(.+)\]")


class ParsedRows(NamedTuple):
    """The rows of a block: the columns by tidy table; ``line`` counts from the start of the block."""

    rows: int
    tables: dict[str, Columns]
    devices: list[str]


def parse(block: Block, plan: ColumnPlan) -> ParsedRows | None:
    """Return the rows of a block of complete lines; None if a row is irregular."""
    ways: list[type[SplitRows | ArrowRows]] = [SplitRows, ArrowRows] if splitter.is_available() else [ArrowRows]
    for split in ways:
        try:
            return _parse_columns(split(block, plan), plan)
        except (pa.ArrowInvalid, IrregularBlockError):
            continue
    return None


@dataclass
class _Cells:
    """The rows of a block that belong to one tidy table: all, or those at ``where``."""

    split: SplitRows | ArrowRows
    plan: ColumnPlan
    where: Int64s | None

    def _array(self, column: NullableInts) -> Integers:
        values, known = (cells_at(part, self.where) for part in column)
        return Integers(values, ~known)

    def whole(self, column: str) -> Integers | None:
        """Return a column of integers; None if the table lacks it."""
        return self._array(self.split.whole(column)) if self.plan.has(column) else None

    def size(self, column: str) -> Integers | None:
        """Return a column of sizes in bytes; None if the table lacks it."""
        return self._array(self.split.size(column)) if self.plan.has(column) else None

    def texts(self, column: str, meaning: Callable[[str], str | None]) -> CodedTexts | None:
        """Return a column with ``meaning`` applied to its texts; None if the table lacks it."""
        if not self.plan.has(column):
            return None
        texts, codes = self.split.texts(column)
        return CodedTexts.from_meanings(cells_at(codes, self.where), [meaning(text) for text in texts])

    def _device_indexes(self) -> Integers | None:
        if not self.plan.has("Device"):
            return None
        texts, codes = self.split.texts("Device")
        return coded_ints([parse_device(text)[1] for text in texts], cells_at(codes, self.where))

    def kernels(self) -> tuple[list[str], Int64s]:
        """Return the distinct names without their numbers, and the code of each row."""
        names, codes = self.split.kernels()
        return names, cells_at(codes, self.where)

    def call_numbers(self) -> NullableInts:
        """Return the numbers in brackets at the ends of the names."""
        return NullableInts(*(cells_at(part, self.where) for part in self.split.call_numbers()))

    def common(self) -> Columns:
        """Return the columns that rows of all tables have."""
        durations, known = (cells_at(part, self.where) for part in self.split.durations_ns())
        return {
            "start_ns": self._array(self.split.starts_ns()),
            "duration_ns": durations if known.all() else np.where(known, durations, np.nan),
            "line": np.arange(self.split.rows) if self.where is None else self.where,
        }

    def place(self) -> Columns:
        """Return the columns that rows of a device have."""
        return {
            "context": self.whole("Context"),
            "stream": self.whole("Stream"),
            "device": self.texts("Device", lambda text: parse_device(text)[0]),
            "device_index": self._device_indexes(),
        }


def _parse_columns(split: SplitRows | ArrowRows, plan: ColumnPlan) -> ParsedRows:
    nothing = np.zeros(split.rows, np.bool_)
    is_copy = split.is_copy()
    is_launch = split.whole("Grid X").known & ~is_copy if plan.has("Grid X") else nothing
    is_call = ~is_copy & ~is_launch
    if plan.has("Device") and is_call.any():
        texts, codes = split.texts("Device")
        require_plain(not any(texts[code] for code in used_codes(codes[is_call])))
    tables = {}
    for name, flags in (("launches", is_launch), ("transfers", is_copy), ("api_calls", is_call)):
        if flags.any():
            cells = _Cells(split, plan, None if flags.all() else np.flatnonzero(flags))
            tables[name] = cells.common() | _ROWS[name](cells)
    devices = split.texts("Device")[0] if plan.has("Device") else []
    return ParsedRows(split.rows, tables, [device for device in devices if device])


def _correlations(cells: _Cells, strict: bool) -> Integers:
    """Return the call numbers: from their column, else from the ends of the names."""
    suffixes, flags = cells.call_numbers()
    own = cells.whole("Correlation_ID")
    if own is None:
        return Integers(suffixes, ~flags)
    values, unknown = own.values, own.missing
    # A name keeps a number in brackets that differs from the number of its launch.
    require_plain(not strict or bool((~flags | unknown | (values == suffixes)).all()))
    return Integers(np.where(unknown, suffixes, values), unknown & ~flags)


def _launches(cells: _Cells) -> Columns:
    require_plain(all(cells.plan.has(axis) for axis in AXES))
    sizes = {axis.replace(" ", "_").lower(): cells.whole(axis) for axis in AXES}
    require_plain(not any(column is None or nulls(column).any() for column in sizes.values()))
    kernels, codes = cells.kernels()
    # A name that looks like a call keeps its number, which is then not the number of the launch.
    require_plain(not any(kernels[code].endswith("])") for code in used_codes(codes)))
    return {
        **sizes,
        **cells.place(),
        "kernel": CodedTexts(codes, kernels),
        "correlation_id": _correlations(cells, strict=True),
        "registers_per_thread": cells.whole("Registers Per Thread"),
        **{SIZE_COLUMNS[column]: cells.size(column) for column in ("Static SMem", "Dynamic SMem")},
    }


def _transfers(cells: _Cells) -> Columns:
    names, codes = cells.kernels()
    kinds = [match[1] if (match := _COPY.fullmatch(name)) else None for name in names]
    require_plain(all(kinds[code] for code in used_codes(codes)))
    return {
        **cells.place(),
        "kind": CodedTexts.from_meanings(codes, kinds),
        "bytes": cells.size("Size"),
        "source_memory": cells.texts("SrcMemType", lambda text: text or None),
        "target_memory": cells.texts("DstMemType", lambda text: text or None),
    }


def _api_calls(cells: _Cells) -> Columns:
    return {"name": cells.split.whole_names(cells.where), "correlation_id": _correlations(cells, strict=False)}


_ROWS = {"launches": _launches, "transfers": _transfers, "api_calls": _api_calls}
