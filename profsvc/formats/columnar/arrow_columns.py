"""Arrow columns to columns of tidy tables: nullable integers, categories and decimals."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats.columnar.csv_columns import Objects, object_column
from profsvc.formats.columnar.line_blocks import require_plain
from profsvc.formats.parsing.numbers import MAX_INT64
from profsvc.formats.parsing.timestamps import Flags, Int64s


class NullableInts(NamedTuple):
    """A column of integers, and which are known."""

    values: Int64s
    known: Flags

    def array(self) -> pd.arrays.IntegerArray:
        """Return the column of a tidy table."""
        return pd.arrays.IntegerArray(self.values, ~self.known)


def first_present(first: NullableInts, second: NullableInts) -> NullableInts:
    """Return the first known of two numbers, row by row."""
    return NullableInts(np.where(first.known, first.values, second.values), first.known | second.known)


def present_values(column: pa.Array) -> Flags:
    """Return which values of a column are not null."""
    if column.null_count in (0, len(column)):
        return np.full(len(column), column.null_count == 0)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def nullable_ints(column: pa.Array) -> NullableInts:
    """Return a column of integers; the smallest 64-bit integer is irregular."""
    if column.null_count == len(column):
        return NullableInts(np.zeros(len(column), np.int64), present_values(column))
    values = (column.fill_null(0) if column.null_count else column).to_numpy()
    require_plain(bool(values.min() >= -MAX_INT64))
    return NullableInts(values, present_values(column))


def decode_categories(column: pa.Array, meaning: Callable[[str], object] = str) -> Objects:
    """Return a column with ``meaning`` applied to its values; None for null."""
    encoded = column.dictionary_encode(null_encoding="encode")
    distinct = [None if value is None else meaning(value) for value in encoded.dictionary.to_pylist()]
    codes: npt.NDArray[np.int32] = encoded.indices.to_numpy()
    return object_column(distinct, codes)


def split_decimals(column: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the lower and the upper 64 bits of decimals without nulls."""
    require_plain(column.null_count == 0)
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :][: 2 * len(column)]
    return words[::2], words[1::2]
