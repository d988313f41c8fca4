"""Columns of Arrow become columns of tidy tables, also where they are parts of others."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from profsvc.formats.arrow_columns import LARGEST, first_of, halves, meanings, wholes
from profsvc.formats.blocks import NotPlainError


def test_whole_numbers_that_may_be_missing():
    column = wholes(pa.array([9, 1, None, -LARGEST])[1:])
    assert column.known.tolist() == [True, False, True]
    assert column.array().tolist() == [1, pd.NA, -LARGEST]
    second = wholes(pa.array([7, 7, None]))
    assert first_of(second, column).array().tolist() == [7, 7, -LARGEST]


def test_a_number_without_an_opposite_is_not_plain():
    with pytest.raises(NotPlainError):
        wholes(pa.array([-LARGEST - 1]))


def test_texts_mean_what_they_mean_once_each():
    asked = []
    column = pa.array(["skipped", "a", None, "a", "b"])[1:]
    assert meanings(column, lambda text: asked.append(text) or text.upper()).tolist() == ["A", None, "A", "B"]
    assert sorted(asked) == ["a", "b"]


def test_decimals_are_two_words_each():
    column = pa.array(["9", "1.5", "-0.5"]).cast(pa.decimal128(38, 1))[1:]
    lower, upper = halves(column)
    assert (lower.tolist(), upper.tolist()) == ([15, -5], [0, -1])
    assert halves(pa.array([str(2**64)]).cast(pa.decimal128(38, 0)))[1] == np.array([1])
    with pytest.raises(NotPlainError):
        halves(pa.array(["1", None]).cast(pa.decimal128(38, 1)))
