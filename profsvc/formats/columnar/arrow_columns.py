"""Columns of tidy tables: nullable integers, and Arrow's decimals as integers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from profsvc.formats.columnar.line_blocks import require_plain
from profsvc.formats.parsing.timestamps import Flags, Int64s
from profsvc.tables.column_tables import Integers
from profsvc.tables.on_demand import pa


class NullableInts(NamedTuple):
    """A column of integers, and which are known."""

    values: Int64s
    known: Flags

    def array(self) -> Integers:
        """Return the column of a tidy table."""
        return Integers(self.values, ~self.known)


def first_present(first: NullableInts, second: NullableInts) -> NullableInts:
    """Return the first known of two numbers, row by row."""
    return NullableInts(np.where(first.known, first.values, second.values), first.known | second.known)


def split_decimals(column: pa.Array) -> tuple[Int64s, Int64s]:
    """Return the lower and the upper 64 bits of decimals without nulls."""
    require_plain(column.null_count == 0)
    words = np.frombuffer(column.buffers()[1], np.int64)[2 * column.offset :][: 2 * len(column)]
    return words[::2], words[1::2]
