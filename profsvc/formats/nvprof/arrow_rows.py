"""Columns of a block of an nvprof trace, split by Arrow, where the compiled splitter is absent or stops."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profsvc.formats.columnar import csv_columns
from profsvc.formats.columnar.arrow_columns import NullableInts
from profsvc.formats.columnar.csv_columns import (
    Codes,
    NumberColumn,
    category_texts,
    number_column,
    object_column,
    require_closed_quotes,
    split_columns,
)
from profsvc.formats.columnar.line_blocks import (
    WORD_BYTES,
    Block,
    Floats,
    erase_digits,
    letters_of,
    require_plain,
    trailing_numbers,
    words_before,
)
from profsvc.formats.nvprof.column_plan import (
    INTEGER_COLUMNS,
    SIZE_COLUMNS,
    TEXT_COLUMNS,
    TIME_COLUMNS,
    UNUSED_COLUMNS,
    ColumnPlan,
)
from profsvc.formats.nvprof.values import MAX_BYTES, MAX_TIME_S
from profsvc.formats.parsing.numbers import MAX_EXACT_INT
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.tables.on_demand import pa

# Below this, a product of a time in ns has rounding errors after the sixth decimal; no tool prints such digits.
IMPRECISE_BEYOND_NS = 2.0**33
_BLANKED = re.compile(r" \[\0+\]$")


class ArrowRows:
    """The columns of a block; raises `IrregularBlockError` or `pa.ArrowInvalid` if a row is irregular."""

    def __init__(self, block: Block, plan: ColumnPlan) -> None:
        """Split the block."""
        kinds = (
            (csv_columns.INTEGER, INTEGER_COLUMNS),
            (csv_columns.REAL, [*SIZE_COLUMNS, *TIME_COLUMNS]),
            (csv_columns.CATEGORY, TEXT_COLUMNS),
        )
        types = {name: kind for kind, names in kinds for name in names if plan.has(name)}
        types |= {name: csv_columns.TEXT for name in ("Name", *UNUSED_COLUMNS) if plan.has(name)}
        self.plan, self.batch = plan, split_columns(block, plan.layout.columns, types, plan.decimal)
        self.rows = self.batch.num_rows
        self.names = _Names(self.batch.column("Name"))
        for name in filter(plan.has, UNUSED_COLUMNS):
            require_closed_quotes(self.batch.column(name))

    def _numbers(self, column: str) -> NumberColumn:
        found = number_column(self.batch.column(column))
        if found.values.dtype == np.int64:
            require_plain(bool(found.values.min() >= 0 and found.values.max() < MAX_EXACT_INT))
        else:
            require_plain(bool(found.values.min() >= 0 and np.isfinite(found.values).all()))
        return found

    def whole(self, column: str) -> NullableInts:
        """Return a column of integers."""
        return NullableInts(*self._numbers(column))

    def size(self, column: str) -> NullableInts:
        """Return a column of sizes in bytes."""
        values, known = self._numbers(column)
        factor = self.plan.sizes[column]
        require_plain(factor is not None or not known.any())
        sizes = np.rint(values * (factor or 0.0))
        require_plain(bool(sizes.min() >= 0 and sizes.max() < MAX_BYTES))
        return NullableInts(sizes.astype(np.int64), known)

    def _time_ns(self, column: str) -> tuple[Floats, Flags]:
        values, known = self._numbers(column)
        factor, scale = self.plan.times[column]
        require_plain(bool(values.min() >= 0 and values.max() * factor < MAX_TIME_S))
        ns = values * scale
        rounded = np.rint(ns * 1e6) / 1e6
        return np.where(ns < IMPRECISE_BEYOND_NS, rounded, ns), known

    def starts_ns(self) -> NullableInts:
        """Return when each row began."""
        starts, known = self._time_ns("Start")
        return NullableInts(np.rint(starts).astype(np.int64), known)

    def durations_ns(self) -> tuple[Floats, Flags]:
        """Return how long each row took, and where that is known."""
        return self._time_ns("Duration")

    def texts(self, column: str) -> tuple[list[str], Codes]:
        """Return the distinct texts of a column, and the code of each row."""
        encoded = self.batch.column(column)
        return category_texts(encoded.dictionary), encoded.indices.to_numpy()

    def is_copy(self) -> Flags:
        """Return which rows have a name that begins with a bracket."""
        flags: Flags = self.names.letters[self.names.starts] == ord("[")
        return flags

    def call_numbers(self) -> NullableInts:
        """Return the numbers in brackets at the ends of the names."""
        numbers, digits = self.names.numbers
        return NullableInts(numbers, digits > 0)

    def kernels(self) -> tuple[list[str], Codes]:
        """Return the distinct names without their numbers, except those of calls, and the code of each row."""
        return self.names.encoded

    def whole_names(self, where: Int64s | None) -> npt.NDArray[np.object_]:
        """Return the whole names of some rows."""
        return self.names.called(where)


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
