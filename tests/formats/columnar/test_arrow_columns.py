"""Columns of Arrow become columns of tidy tables, also where they are parts of others."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from profsvc.formats.columnar.arrow_columns import (
    MAX_INT64,
    decode_categories,
    first_present,
    nullable_ints,
    split_decimals,
)
from profsvc.formats.columnar.line_blocks import IrregularBlockError


def test_whole_numbers_that_may_be_missing():
    column = nullable_ints(pa.array([9, 1, None, -MAX_INT64])[1:])
    assert column.known.tolist() == [True, False, True]
    assert column.array().tolist() == [1, pd.NA, -MAX_INT64]
    second = nullable_ints(pa.array([7, 7, None]))
    assert first_present(second, column).array().tolist() == [7, 7, -MAX_INT64]


def test_a_number_without_an_opposite_is_not_plain():
    with pytest.raises(IrregularBlockError):
        nullable_ints(pa.array([-MAX_INT64 - 1]))


def test_texts_mean_what_they_mean_once_each():
    asked = []
    column = pa.array(["skipped", "a", None, "a", "b"])[1:]
    assert decode_categories(column, lambda text: asked.append(text) or text.upper()).tolist() == ["A", None, "A", "B"]
    assert sorted(asked) == ["a", "b"]


def test_decimals_are_two_words_each():
    column = pa.array(["9", "1.5", "-0.5"]).cast(pa.decimal128(38, 1))[1:]
    lower, upper = split_decimals(column)
    assert (lower.tolist(), upper.tolist()) == ([15, -5], [0, -1])
    assert split_decimals(pa.array([str(2**64)]).cast(pa.decimal128(38, 0)))[1] == np.array([1])
    with pytest.raises(IrregularBlockError):
        split_decimals(pa.array(["1", None]).cast(pa.decimal128(38, 1)))
