"""The averaging window and the lag of a sensor, on logs where both are known."""

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.averaging import averaging_window


def logs(window: float, lag: float, seed: int, poll: float = 0.1, steps: bool = True):
    """An instant and an averaged log of one power, both with noise."""
    rng = np.random.default_rng(seed)
    fine = np.arange(-20, 160, 0.01)
    power = (
        np.where(steps & (np.sin(fine / 7 + seed) > 0), 500.0, 80.0)
        + np.where(np.sin(fine / 3) > 0.5, 60.0, 0.0) * steps
    )
    energy = np.concatenate(([0.0], np.cumsum(power)[:-1])) * 0.01
    t = np.cumsum(rng.uniform(0.8 * poll, 1.2 * poll, int(140 / poll)))
    averaged = (np.interp(t - lag, fine, energy) - np.interp(t - lag - window, fine, energy)) / window
    return t, np.interp(t, fine, power) + rng.normal(0, 3, t.size), averaged + rng.normal(0, 1, t.size)


@pytest.mark.parametrize(("window", "lag"), [(1.0, 0.0), (0.5, 0.1), (2.0, 0.3), (5.0, -0.2)])
def test_window_and_lag_are_found(window: float, lag: float) -> None:
    for seed in range(3):
        t, instant, averaged = logs(window, lag, seed)
        found = averaging_window(t, instant, t, averaged)
        assert abs(found.window_s - window) < 3 * found.window_se_s < 0.15
        assert abs(found.lag_s - lag) < 3 * found.lag_se_s < 0.15
        assert found.late_s == pytest.approx(window / 2 + lag, abs=0.03)
        assert found.explained > 0.99
        assert found.flags == 0


def test_logs_polled_at_different_times() -> None:
    t, instant, averaged = logs(1.0, 0.0, 0)
    found = averaging_window(t[::2], instant[::2], t[1::3], averaged[1::3])
    assert found.window_s == pytest.approx(1.0, abs=0.1)


def test_two_instant_sensors_have_no_window() -> None:
    t, instant, _ = logs(1.0, 0.0, 0)
    found = averaging_window(t, instant, t, instant)
    assert found.window_s < 0.05
    assert abs(found.late_s) < 0.01


@pytest.mark.parametrize("constant", [True, False])
def test_a_power_that_never_moves_tells_nothing(constant: bool) -> None:
    t, instant, averaged = logs(1.0, 0.0, 0, steps=False)
    found = averaging_window(t, np.full(t.size, 80.0) if constant else instant, t, averaged)
    assert np.isnan(found.window_s)
    assert np.isnan(found.late_s)
    assert found.explained < 0.9
    assert found.flags & Flag.INPUT_SUSPECT


def test_no_logs() -> None:
    assert np.isnan(averaging_window([], [], [1.0], [2.0]).window_s)
    assert averaging_window([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [2.0], [2.0]).readings == 0
