"""Series in a flat array: which values are spikes."""

import numpy as np
import pytest

from profsvc.formulas.numerics.series import Series, without_spikes


def kept(*rows: list[float]) -> list[list[float]]:
    ends = np.cumsum([len(row) for row in rows])
    x = np.concatenate([np.array(row, dtype=np.float64) for row in rows])
    series = without_spikes(Series(x, x * 0, np.arange(x.size), ends - [len(row) for row in rows], ends))
    return [series.x[a:b].tolist() for a, b in zip(series.start, series.stop, strict=True)]


QUIET = [1.0, 1.1, 0.9, 1.0, 1.1, 1.0]


@pytest.mark.parametrize(
    ("returns", "gone"), [([9.0], 1), ([9.0, 12.0, 15.0], 3), ([9.0, 9.1], 2), ([9.0, 9.1, 9.05], 0)]
)
def test_a_level_that_returns_is_a_level_and_a_value_alone_is_a_spike(returns, gone):
    row = [value for one in returns for value in (*QUIET, one)] + QUIET
    (left,) = kept(row)
    assert len(row) - len(left) == gone


def test_another_series_says_nothing_of_a_level():
    with_level = [*QUIET, 9.0, *QUIET, 9.0, *QUIET, 9.0, *QUIET]
    assert kept(QUIET, with_level, [*QUIET, 9.0, *QUIET])[1:] == [with_level, QUIET + QUIET]


def test_a_rare_value_of_a_coarse_timer_that_also_gives_one_a_little_off_is_no_spike():
    """Half a nanosecond between two nights is no unit: the timer has a grid of 64."""
    row = [832.0, 768, 832, 832, 831.5, 832, 832, 768, 832, 768, 832, 832, 832, 768, 832, 831.5, 832]
    assert kept(row) == [row]
