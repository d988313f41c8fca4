"""Columns of a frame as what goes into the store."""

import numpy as np
import pandas as pd
import pytest

from profsvc.store.ingest.inserts.column_values import factorize
from profsvc.tables import frame_of_arrays


@pytest.mark.parametrize(("text", "expected"), [("n/a", ([0, 0, 0], ["n/a"])), (None, ([-1, -1, -1], []))])
def test_one_cell_for_all_rows_is_one_text(text, expected):
    column = frame_of_arrays("samples", 3, {"reason": text, "sensor_index": 0})["reason"]
    assert not any(column.to_numpy(dtype=object).strides)
    codes, texts = factorize(column)
    assert (codes.tolist(), texts) == expected
    plain = factorize(pd.Series(np.array([text] * 3, object), dtype=object))
    assert (plain[0].tolist(), plain[1]) == expected


def test_no_rows_have_no_text():
    codes, texts = factorize(pd.Series([], dtype=object))
    assert (codes.tolist(), texts) == ([], [])
