"""Repeats of one load: the slope between them within its interval, and figures pooled only where they agree."""

import numpy as np
import pytest

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.coefficient.repeated_loads import pool, repeat_slope


def test_the_interval_of_the_slope_holds_the_truth_as_often_as_it_says() -> None:
    rng, held = np.random.default_rng(3), []
    for _ in range(400):
        load = rng.integers(0, 3, 8)
        T = rng.uniform(40, 60, 8)
        power = 200 + 100 * load + 0.5 * T + rng.standard_normal(8)
        found = repeat_slope(power, np.floor(T) + 0.5, load, temperature_error_c=12**-0.5)
        if np.isfinite(found.slope_w_per_c):
            held.append(found.low_w_per_c <= 0.5 <= found.high_w_per_c)
    assert len(held) > 350
    assert 0.92 < np.mean(held) < 0.98


def test_loads_that_come_once_and_temperatures_that_do_not_differ_tell_nothing() -> None:
    for power, warmth, load in (
        ([300.0, 400.0, 500.0], [40.0, 50.0, 60.0], [1, 2, 3]),
        ([300.0, 305.0], [40.0, 50.0], [1, 1]),
        ([300.0, 301.0, 302.0], [40.0, 40.3, 40.1], [1, 1, 1]),
        ([], [], []),
    ):
        found = repeat_slope(power, warmth, load, temperature_error_c=12**-0.5)
        assert np.isnan(found.slope_w_per_c)
        assert found.flags & Flag.INPUT_SUSPECT


def test_what_the_readings_do_not_know_is_in_the_interval() -> None:
    """Three powers on a line by chance are known no better than each of them is."""
    line = [300.0, 305.0, 310.0], [40.0, 50.0, 60.0], [1, 1, 1]
    sure, unsure = repeat_slope(*line), repeat_slope(*line, power_error_w=2.0)
    assert sure.high_w_per_c - sure.low_w_per_c < 1e-9
    assert unsure.high_w_per_c - unsure.low_w_per_c == pytest.approx(2 * 12.706 * 2 / np.sqrt(200), rel=1e-3)


def test_contradicting_figures_are_reported_and_those_without_an_interval_left_out() -> None:
    apart = pool([0.2, 0.8, np.nan], [0.1, 0.7, 0.0], [0.3, 0.9, 1.0])
    assert apart.probability < 1e-6
    assert apart.value == pytest.approx(0.5)
    alone = pool([0.4], [0.3], [0.5])
    assert (alone.value, alone.probability) == (0.4, 1.0)
    assert (alone.low, alone.high) == pytest.approx((0.3, 0.5))
    assert pool([], [], []).flags & Flag.INPUT_SUSPECT
    assert pool([1.0], [-np.inf], [np.inf]).flags & Flag.INPUT_SUSPECT
