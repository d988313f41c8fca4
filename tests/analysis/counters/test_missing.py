"""Rows that are alike are found, however many columns they have."""

import numpy as np
import pytest

from profsvc.analysis.counters.missing import BITS_PER_CODE, group_identical_rows


@pytest.mark.parametrize("columns", [0, 1, 5, BITS_PER_CODE, BITS_PER_CODE + 1, 2 * BITS_PER_CODE + 3])
def test_every_row_is_the_one_it_is_said_to_be(columns: int) -> None:
    rng = np.random.default_rng(columns)
    few = rng.random((6, columns)) < 0.5
    lacks = few[rng.integers(6, size=400)]
    kinds, place = group_identical_rows(lacks)
    np.testing.assert_array_equal(kinds[place], lacks)
    assert len(kinds) == len(np.unique(lacks, axis=0))
    assert place[0] == 0


def test_no_row() -> None:
    kinds, place = group_identical_rows(np.zeros((0, 3), np.bool_))
    assert (len(kinds), len(place)) == (0, 0)
