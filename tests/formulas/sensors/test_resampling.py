"""The reading of one log at the stamps of another."""

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.resampling import interpolate_at


def test_between_readings_a_line() -> None:
    t = np.array([0.0, 1.0, 2.5, 4.0])
    v = np.array([30.0, 32.0, 31.0, 40.0])
    at = np.linspace(0, 4, 81)
    found = interpolate_at(at, t, v)
    np.testing.assert_allclose(found.value, np.interp(at, t, v), rtol=0, atol=1e-12)
    assert not found.flags.any()


def test_the_ends_hold_for_two_seconds_and_say_so() -> None:
    found = interpolate_at([-2.0, -2.1, 3.0, 5.0, 5.1], [0.0, 3.0], [30.0, 33.0])
    np.testing.assert_array_equal(found.value, [30.0, np.nan, 33.0, 33.0, np.nan])
    assert (found.flags == np.where([1, 1, 0, 1, 1], int(Flag.EXTRAPOLATED), 0)).all()
    assert np.isnan(interpolate_at(3.5, [0.0, 3.0], [30.0, 33.0], hold_s=0).value)


def test_nothing_over_a_gap_but_the_readings_at_its_ends() -> None:
    found = interpolate_at([1.0, 1.01, 3.0, 4.99, 5.0], [0.0, 1.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(found.value, [2.0, np.nan, np.nan, np.nan, 3.0])
    assert found.flags[1:4].tolist() == [int(Flag.EXTRAPOLATED)] * 3
    assert interpolate_at(3.0, [0.0, 1.0, 5.0, 6.0], [1.0, 2.0, 3.0, 4.0], gap_s=4.0).value == 2.5


def test_a_missing_reading_is_a_gap_only_if_it_makes_one() -> None:
    t, v = np.arange(6.0), np.array([1.0, np.nan, 3.0, np.nan, np.nan, 6.0])
    assert interpolate_at(1.0, t, v).value == 2.0
    assert interpolate_at(3.5, t, v).value == pytest.approx(4.5)
    assert np.isnan(interpolate_at(3.5, t, v, gap_s=2.5).value)


def test_logs_of_one_reading_a_minute_join() -> None:
    t = np.arange(0, 3600, 60.0)
    assert interpolate_at(90.0, t, t).value == 90.0


def test_nothing_to_read() -> None:
    found = interpolate_at([1.0, np.nan], [], [])
    assert np.isnan(found.value).all()
    assert found.flags.tolist() == [int(Flag.EXTRAPOLATED), int(Flag.INPUT_SUSPECT)]
    assert interpolate_at([], [0.0], [1.0]).value.size == 0
    with pytest.raises(TypeError, match="at_s has dtype"):
        interpolate_at(["1"], [0.0], [1.0])
    with pytest.raises(ValueError, match="do not broadcast"):
        interpolate_at(1.0, [0.0, 1.0], [1.0, 2.0, 3.0])
