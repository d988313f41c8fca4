"""The range of what mended kernels achieve of their potential."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.performance.mended_range import mended_range


@given(st.floats(1, 1e3), st.floats(0, 1), st.floats(1, 10))
def test_a_range_contains_the_potential_and_no_slowdown(potential: float, exponent: float, factor: float) -> None:
    low, high = mended_range(potential, exponent, factor)
    assert 1 <= low <= potential * (1 + 1e-12)
    assert potential <= high <= 1e4


def test_a_range_of_what_cannot_be_is_not_known() -> None:
    low, high = mended_range([np.nan, 0.9, 2.0, 2.0, 2.0, 1.0], [0.5, 0.5, 1.1, 0.5, np.nan, 0.5], [2, 2, 2, 0.9, 2, 2])
    np.testing.assert_array_equal(low, [np.nan] * 5 + [1.0])
    np.testing.assert_array_equal(high, [np.nan] * 5 + [2.0])
