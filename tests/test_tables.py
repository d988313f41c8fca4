"""Tidy tables as whole columns, and the labels of frames."""

from contextlib import ExitStack

import numpy as np
import pandas as pd
import pytest

from profsvc.errors import DomainError
from profsvc.store.ingest.inserts.column_values import factorize
from profsvc.tables import Batch, CodedTexts, ColumnTable, as_frames, check, frame, frame_of_arrays
from profsvc.tables.column_tables import full_column
from profsvc.tables.labels import python_labels

ROWS = {"sensor_index": [0, 0, 1], "sample_index": [0, 1, 0], "value": [1.5, None, 2.5],
        "reason": [None, "n/a", None], "line": [2, 3, 4]}  # fmt: skip


def columns() -> dict[str, object]:
    return {
        "sensor_index": np.array([0, 0, 1]),
        "sample_index": pd.arrays.IntegerArray(np.array([0, 1, 0]), np.zeros(3, np.bool_)),
        "value": np.array([1.5, np.nan, 2.5]),
        "reason": CodedTexts(np.array([-1, 0, -1]), ["n/a"]),
        "line": np.arange(2, 5),
    }


def test_columns_are_the_frame_of_the_same_rows():
    table = ColumnTable("samples", 3, columns())
    pd.testing.assert_frame_equal(table.frame, frame("samples", ROWS))
    pd.testing.assert_frame_equal(table.frame, frame_of_arrays("samples", 3, columns()))
    assert check("samples", table) is table
    again = ColumnTable.of_frame("samples", table.frame)
    pd.testing.assert_frame_equal(check("samples", again).frame, table.frame)


def test_a_batch_makes_frames_only_when_asked():
    table = ColumnTable("samples", 3, columns())
    batch = Batch(as_frames({"samples": table}))
    assert batch.given["samples"] is table
    assert "frame" not in vars(table)
    assert batch.tables["samples"] is table.frame
    assert Batch({"samples": table.frame}).given["samples"] is table.frame


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"line": pd.arrays.IntegerArray(np.arange(3), np.array([False, True, False]))},
            "line must not be null; row 1",
        ),
        ({"line": None}, "line must not be null; row 0"),
        ({"value": np.array([1, 2, 3])}, "value must be 3 values of the kind float"),
        ({"value": np.zeros(2)}, "value must be 3 values of the kind float"),
        ({"line": pd.array([1, 2, 3], dtype="Int32")}, "line must be 3 values of the kind int"),
        ({"reason": np.zeros(3)}, "reason must be 3 values of the kind text"),
    ],
)
def test_a_column_of_another_kind_is_an_error(change, said):
    with pytest.raises(DomainError, match=said):
        check("samples", ColumnTable("samples", 3, {**columns(), **change}))


def test_a_text_that_must_not_be_null_is_an_error():
    given = {"launch_index": np.arange(2), "line": np.arange(2)}
    with pytest.raises(DomainError, match=r"launches\.kernel must not be null; row 1"):
        check("launches", ColumnTable("launches", 2, {**given, "kernel": CodedTexts(np.array([0, -1]), ["k"])}))


def test_a_table_is_not_another():
    with pytest.raises(DomainError, match="'samples' is given as 'launches'"):
        check("launches", ColumnTable("samples", 3, columns()))


@pytest.mark.parametrize(
    ("codes", "texts", "expected"),
    [
        ([0, 1, -1, 0], ["a", "b"], ([0, 1, -1, 0], ["a", "b"])),
        ([1, 2, 1], ["a", "b", "b"], ([0, 0, 0], ["b"])),
        ([-1, -1], [], ([-1, -1], [])),
        ([], ["a"], ([], [])),
    ],
)
def test_codes_of_texts_that_occur_are_distinct(codes, texts, expected):
    found, distinct = factorize(CodedTexts(np.array(codes, np.int32), texts))
    assert (found.tolist(), distinct) == expected


@pytest.mark.parametrize("numbers", [[], [None], [7, None]])
def test_integers_of_a_frame_stay_integers_however_many_they_are(numbers):
    for given in (pd.array(numbers, dtype="Int64"), pd.Series(numbers, dtype="Int64")):
        column = full_column("int", len(numbers), given)
        assert (column.values.dtype, column.tolist()) == (np.int64, numbers)


def storage_of_labels() -> str:
    return pd.DataFrame({"value": [1.0]}).columns.dtype.storage


def test_labels_are_strings_of_python_until_the_last_of_several_works_ends():
    before = storage_of_labels()
    assert before != "python"
    with ExitStack() as first:
        first.enter_context(python_labels())
        with python_labels():
            first.close()
            assert storage_of_labels() == "python"
        assert storage_of_labels() == before
    with pytest.raises(DomainError), python_labels():
        raise DomainError("stopped half way")
    assert storage_of_labels() == before
