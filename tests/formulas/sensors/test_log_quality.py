"""What a log tells of its sensor, on logs whose sensor is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.sensors.log_quality import clean, gaps, stuck, update_period


def polled(period: float, poll: float, repeats: float, jitter: float, n: int, seed: int = 0):
    """Stamps, values, and which readings are the first of an update."""
    rng = np.random.default_rng(seed)
    t = np.cumsum(poll * rng.uniform(1 - jitter, 1 + jitter, n))
    update = np.floor((t - rng.uniform(0, period)) / period).astype(np.int64)
    update -= update[0]
    values = np.cumsum(rng.random(update[-1] + 1) >= repeats)
    return t, values[update], np.concatenate(([True], np.diff(update) > 0))


def test_clean_counts_what_it_drops() -> None:
    t = [0.0, 1.0, np.nan, 1.0, 2.0, 1.5, 3.0, 4.0]
    v = [1.0, 2.0, 3.0, 9.0, np.inf, 4.0, 5.0, 6.0]
    log = clean(t, v)
    assert log.time_s.tolist() == [0.0, 1.0, 1.5, 3.0, 4.0]
    assert log.value.tolist() == [1.0, 2.0, 4.0, 5.0, 6.0]
    assert (log.missing, log.duplicate, log.disordered, log.glitches) == (2, 1, 0, 0)
    assert np.flatnonzero(log.kept).tolist() == [0, 1, 5, 6, 7]


@pytest.mark.parametrize("wrong", [1e9, -1e9])
def test_one_wild_stamp_costs_one_reading(wrong: float) -> None:
    t = np.arange(100.0)
    t[40] = wrong
    log = clean(t, t)
    assert log.disordered == 1
    assert log.time_s.size == 99


def test_the_median_takes_a_glitch_and_leaves_a_step() -> None:
    power = np.concatenate((np.full(10, 80.0), np.full(10, 500.0)))
    power[4] = 9999.0
    smooth = clean(np.arange(20.0), power, median=True)
    np.testing.assert_array_equal(smooth.value, np.concatenate((np.full(10, 80.0), np.full(10, 500.0))))
    assert smooth.glitches == 1


@given(st.lists(st.tuples(st.floats(allow_nan=True), st.floats(allow_nan=True)), max_size=30))
def test_every_reading_is_accounted_for(pairs: list[tuple[float, float]]) -> None:
    t, v = (np.array([pair[k] for pair in pairs]) for k in (0, 1))
    log = clean(t, v)
    assert log.missing + log.duplicate + log.disordered + log.time_s.size == t.size
    assert (np.diff(log.time_s) > 0).all()
    assert log.kept.sum() == log.time_s.size


def test_gaps_of_a_slow_log_are_longer() -> None:
    assert gaps([0.0, 1.0, 2.0, 5.5, 6.5]).begin_s.tolist() == [2.0]
    assert gaps(np.array([0.0, 60.0, 120.0, 210.0, 270.0])).begin_s.size == 0
    assert gaps(np.array([0.0, 60.0, 120.0, 310.0, 370.0])).end_s.tolist() == [310.0]
    assert gaps([0.0, 1.0, 2.0, 3.0], gap_s=0.5).begin_s.tolist() == [0.0, 1.0, 2.0]
    assert gaps([]).begin_s.size == 0


@pytest.mark.parametrize("period", [0.02, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("polls", [1.7, 2.0, 3.3, 10.0])
@pytest.mark.parametrize("repeats", [0.0, 0.3, 0.6])
def test_the_period_of_a_sensor_is_found(period: float, polls: float, repeats: float) -> None:
    t, v, first = polled(period, period / polls, repeats, 0.2, 3000)
    found = update_period(t, v)
    assert found.resolved
    assert found.period_s == pytest.approx(period, rel=0.02)
    if polls >= 3:
        assert np.mean(found.first_reading == first) > 0.9
        assert found.polls_per_update == pytest.approx(polls, rel=0.05)


def test_polling_slower_than_the_sensor_tells_no_period() -> None:
    t, v, _ = polled(0.05, 0.2, 0.3, 0.1, 2000)
    found = update_period(t, v)
    assert not found.resolved
    assert found.period_s <= 0.25
    assert found.first_reading.mean() > 0.98  # a value that came twice was read twice


def test_a_sensor_that_never_moves_has_no_period() -> None:
    found = update_period(np.arange(50.0), np.full(50, 3.0))
    assert np.isnan(found.period_s)
    assert not found.resolved
    assert found.first_reading.all()
    assert update_period([], []).first_reading.size == 0


def test_readings_that_cannot_stand_are_no_first_readings() -> None:
    t, v, _ = polled(0.3, 0.1, 0.0, 0.1, 300)
    t[100] = np.nan
    v = v.astype(float)
    v[200] = np.nan
    found = update_period(t, v)
    assert not found.first_reading[[100, 200]].any()
    assert found.period_s == pytest.approx(0.3, rel=0.02)


def test_a_sensor_that_stands_still_for_once() -> None:
    rng = np.random.default_rng(1)
    t, v = np.arange(2000) * 0.1, rng.normal(500, 5, 2000)
    v[700:900] = v[700]
    found = stuck(t, v)
    assert found.begin_s == pytest.approx([t[700]])
    assert found.end_s == pytest.approx([t[899]])
    assert not found.constant


def test_whole_degrees_in_equilibrium_are_not_stuck() -> None:
    t = np.arange(6000) * 0.1
    temperature = np.round(31 + 16 * (1 - np.exp(-np.maximum(t - 100, 0) / 40)))
    assert stuck(t, temperature).begin_s.size == 0


def test_a_constant_log_is_stuck_from_end_to_end() -> None:
    found = stuck(np.arange(100.0), np.full(100, 100.0))
    assert found.constant
    assert (found.begin_s[0], found.end_s[0]) == (0.0, 99.0)
    assert not stuck(np.arange(5.0), np.full(5, 100.0)).constant
    assert stuck([], []).begin_s.size == 0
