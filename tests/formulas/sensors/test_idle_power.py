"""Idle power is that of a cold board: windows late enough after the loads, readings near the idle temperature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.idle_power import fit_idle, idle_windows


def test_windows_begin_five_time_constants_after_a_load() -> None:
    found = idle_windows([400.0, 25.0], [407.0, 175.0], 0.0, 900.0, rc_s=40.0)
    assert found.begin_s.tolist() == [0.0, 375.0, 607.0]
    assert found.end_s.tolist() == [25.0, 400.0, 900.0]


def test_a_long_load_hides_the_short_ones_within_it() -> None:
    found = idle_windows([0.0, 10.0], [500.0, 20.0], 0.0, 1000.0, rc_s=10.0)
    assert found.begin_s.tolist() == [550.0]


@given(st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 1000)), max_size=8))
def test_no_window_holds_a_load_or_follows_one_closely(loads: list[tuple[float, float]]) -> None:
    b, e = (np.array([one[k] for one in loads]) for k in (0, 1))
    b, e = np.minimum(b, e), np.maximum(b, e)
    found = idle_windows(b, e, 0.0, 1000.0, rc_s=10.0, guard_s=1.0)
    for begin, end in zip(found.begin_s, found.end_s, strict=True):
        assert 0 <= begin < end <= 1000
        assert not ((b < end) & (e + 50 > begin) & (e > 0)).any()


def cooling(seed: int = 0, noise: float = 0.3):
    """A board that cools from 45 to 31 degC and then idles at 80 W; 0.5 W/degC while it is warm."""
    t = np.arange(0, 600, 0.5)
    temperature = 31 + 14 * np.exp(-t / 40)
    rng = np.random.default_rng(seed)
    wander = np.convolve(rng.normal(0, noise, t.size + 9), np.ones(10) / np.sqrt(10), "valid")
    return t, 80 + 0.5 * (temperature - 31) + wander, np.round(temperature)


def test_readings_of_a_warm_board_are_left_out() -> None:
    t, p, T = cooling()
    found = fit_idle(t, p, [0.0], [600.0], t, T)
    assert found.temperature_c == 31.0
    assert found.power_w == pytest.approx(80.0, abs=0.15)
    assert found.readings < t.size
    assert found.flags == 0
    warm = fit_idle(t, p, [0.0], [60.0])
    assert warm.power_w > 83
    assert warm.flags == Flag.UPPER_BOUND
    assert np.isnan(warm.temperature_c)


def test_the_interval_holds_the_truth_although_adjacent_readings_agree() -> None:
    held = []
    for seed in range(100):
        t, p, T = cooling(seed)
        found = fit_idle(t, p - 0.5 * 14 * np.exp(-t / 40), [300.0], [600.0], t, T)
        held.append(found.low_w <= 80 <= found.high_w)
    assert 0.88 <= np.mean(held) <= 0.99


def test_windows_may_overlap_and_lie_outside() -> None:
    t = np.arange(100.0)
    found = fit_idle(t, t, [10.0, 15.0, 500.0, np.nan, 30.0], [20.0, 25.0, 600.0, 5.0, 20.0])
    assert found.readings == 16
    assert found.power_w == 17.5


def test_nothing_to_fit() -> None:
    for found in (
        fit_idle([0.0, 1.0], [80.0, 80.0], [5.0], [9.0]),
        fit_idle([], [], [], []),
        fit_idle([0.0, 1.0], [80.0, 80.0], [0.0], [1.0], [100.0], [30.0]),
    ):
        assert np.isnan(found.power_w)
        assert found.readings == 0
        assert found.flags == Flag.INPUT_SUSPECT
    few = fit_idle([0.0, 1.0, 2.0], [80.0, 81.0, 82.0], [0.0], [2.0])
    assert few.power_w == 81.0
    assert np.isnan(few.low_w)
