"""Columns of Arrow become columns of tidy tables, also where they are parts of others."""

import numpy as np
import pyarrow as pa
import pytest

from profsvc.formats.columnar.arrow_columns import NullableInts, first_present, split_decimals
from profsvc.formats.columnar.line_blocks import IrregularBlockError
from profsvc.formats.parsing.numbers import MAX_INT64


def test_whole_numbers_that_may_be_missing():
    known = np.array([True, False, True])
    column = NullableInts(np.array([1, 0, -MAX_INT64]), known)
    assert column.array().tolist() == [1, None, -MAX_INT64]
    second = NullableInts(np.array([7, 7, 0]), ~known)
    assert first_present(second, column).array().tolist() == [1, 7, -MAX_INT64]
    assert first_present(column, column).array().tolist() == [1, None, -MAX_INT64]


def test_decimals_are_two_words_each():
    column = pa.array(["9", "1.5", "-0.5"]).cast(pa.decimal128(38, 1))[1:]
    lower, upper = split_decimals(column)
    assert (lower.tolist(), upper.tolist()) == ([15, -5], [0, -1])
    assert split_decimals(pa.array([str(2**64)]).cast(pa.decimal128(38, 0)))[1] == np.array([1])
    with pytest.raises(IrregularBlockError):
        split_decimals(pa.array(["1", None]).cast(pa.decimal128(38, 1)))
