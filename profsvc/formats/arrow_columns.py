"""Columns of Arrow as columns of tidy tables: whole numbers that may be missing, texts and what they mean, decimals."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from profsvc.formats.block_columns import Objects, objects
from profsvc.formats.blocks import must
from profsvc.formats.clock import Flags, Int64s

LARGEST = 2**63 - 1


class Wholes(NamedTuple):
    """A column of whole numbers, and which of them there are."""

    values: Int64s
    known: Flags

    def array(self) -> pd.arrays.IntegerArray:
        """Return the column of a tidy table."""
        return pd.arrays.IntegerArray(self.values, ~self.known)


def first_of(first: Wholes, second: Wholes) -> Wholes:
    """Return the first of two numbers that there is, row by row."""
    return Wholes(np.where(first.known, first.values, second.values), first.known | second.known)


def known_of(column: pa.Array) -> Flags:
    """Return which values of a column there are."""
    if column.null_count in (0, len(column)):
        return np.full(len(column), column.null_count == 0)
    return np.asarray(column.is_valid().to_numpy(zero_copy_only=False))


def wholes(column: pa.Array) -> Wholes:
    """Return a column of whole numbers; not plain is one that has no opposite in 64 bits."""
    if column.null_count == len(column):
        return Wholes(np.zeros(len(column), np.int64), known_of(column))
    values = (column.fill_null(0) if column.null_count else column).to_numpy()
    must(bool(values.min() >= -LARGEST))
    return Wholes(values, known_of(column))


def meanings(column: pa.Array, meaning: Callable[[str], object] = str) -> Objects:
    """Return what each value of a column means; None where there is none."""
    encoded = column.dictionary_encode(null_encoding="encode")
    distinct = [None if value is None else meaning(value) for value in encoded.dictionary.to_pylist()]
    codes: npt.NDArray[np.int32] = encoded.indices.to_numpy()
    return objects(distinct, codes)


def halves(column: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the lower and the upper 64 bits of decimals, none of which is missing."""
    must(column.null_count == 0)
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :][: 2 * len(column)]
    return words[::2], words[1::2]
