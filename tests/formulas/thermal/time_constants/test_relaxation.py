"""Boards of several constants: each has its interval, a fast one a bound, and value and interval agree."""

import numpy as np
import pytest

from profsvc.formulas.thermal.noise import autocorrelated_fit
from profsvc.formulas.thermal.rc_model import temperature_scan
from profsvc.formulas.thermal.time_constants import relaxation
from profsvc.formulas.thermal.time_constants.rc_fit_under_load import LoadFit, fit_load
from profsvc.formulas.thermal.time_constants.rc_fits import fit_decay, fit_rise

POLL_S = 0.1
LEVELS_W = ((80, 25), (520, 150), (80, 130), (230, 40), (470, 60), (80, 60))


def coherent(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    told = np.isfinite(value)
    return bool((low[told] < value[told]).all() and (value[told] < high[told]).all() and (low[told] > 0).all())


@pytest.fixture(scope="module")
def boards() -> list[tuple[np.ndarray, LoadFit]]:
    """Boards of three constants, polled every 0.1 s in whole degrees; the fastest is faster than that."""
    rng, count = np.random.default_rng(7), 8
    power = np.concatenate([np.full(round(s / POLL_S), float(w)) for w, s in LEVELS_W])
    time = POLL_S * np.arange(1, power.size + 1)
    rc = np.stack([rng.uniform(0.01, 0.06, count), rng.uniform(0.7, 2.0, count), rng.uniform(20, 60, count)], axis=1)
    above = np.tile(np.array([0.017, 0.013, 0.012]), count)[:, np.newaxis] * (power - 80)
    parts = temperature_scan(above, POLL_S, 0.0, rc.ravel(), rc.ravel()).reshape(count, 3, -1)
    T = np.floor(31.3 + parts.sum(axis=1) + 0.2 * rng.standard_normal((count, time.size)))
    return [(r, fit_load(time - POLL_S / 2, power, time, x, offset_error_s=0.03)) for r, x in zip(rc, T, strict=True)]


def test_each_constant_has_an_interval_that_holds_it(boards: list[tuple[np.ndarray, LoadFit]]) -> None:
    held = np.array([[low <= r <= high for r, low, high in zip(rc, f.rc_rise_low_s, f.rc_rise_high_s, strict=True)]
                     for rc, f in boards if f.rc_rise_s.size == 3])  # fmt: skip
    assert len(held) >= 7
    assert (held.sum(axis=0) >= len(held) - 1).all()
    assert all(coherent(f.rc_rise_s, f.rc_rise_low_s, f.rc_rise_high_s) for _, f in boards)
    assert all(coherent(f.rc_decay_s, f.rc_decay_low_s, f.rc_decay_high_s) for _, f in boards)


def test_a_constant_faster_than_the_readings_is_a_bound(boards: list[tuple[np.ndarray, LoadFit]]) -> None:
    bounds = [f.rc_rise_high_s[0] for _, f in boards if np.isnan(f.rc_rise_s[0]) and f.rc_rise_low_s[0] == 0]
    assert len(bounds) >= 7
    assert np.median(bounds) < 0.2


def test_a_temperature_that_jumps_with_the_power_is_below_a_reading() -> None:
    """Nothing overflows, and the log is not refused for it."""
    t = np.arange(0.0, 120.0, 0.25)
    power = 80 + 60.0 * ((t // 15) % 4)
    found = fit_load(t, power, t, 31 + np.floor((power - 80) / 12))
    assert (found.refusal, float(found.rc_rise_low_s[0])) == ("", 0.0)
    assert 0.25 <= found.rc_rise_high_s[0] < 0.6


def test_one_window_of_two_constants() -> None:
    rng, held, t = np.random.default_rng(8), [], np.arange(0.1, 130.0, 0.1)
    for _ in range(10):
        rc, noise = (rng.uniform(0.8, 2.5), rng.uniform(15, 40)), 0.3 * rng.standard_normal(t.size)
        warm = 30 + rng.uniform() + 6 * (1 - np.exp(-t / rc[0])) + 9 * (1 - np.exp(-t / rc[1])) + noise
        for found in (fit_rise(t, np.floor(warm)), fit_decay(t, np.floor(80 - warm))):
            assert (found.refusal, found.rc_s.size) == ("", 2)
            assert coherent(found.rc_s, found.low_s, found.high_s)
            held.append((found.low_s < rc) & (rc < found.high_s))
    assert (np.mean(held, axis=0) >= 0.8).all()


def test_a_power_that_does_not_explain_is_refused() -> None:
    t = np.arange(0.0, 300.0, 0.5)
    power = 80 + 300.0 * ((t // 50) % 2)
    other = 60 + 12 * np.sin(t / 17) + 0.02 * power
    assert fit_load(t, power, t, other).refusal.startswith("the power explains ")


def test_a_value_that_creeps_is_not_known() -> None:
    time = np.linspace(0, 100, 101)
    rows = relaxation.block_means(time, np.where(time < 50, 33.0, 32.0), np.zeros(1))
    first, second = relaxation.rounding_drift_errors(rows, 1.0)
    assert first.max() == pytest.approx(0.5 / np.sqrt(3))
    assert (first[rows.time > 50] == 0).all()
    assert (second[rows.time < 50] == 0).all()
    assert relaxation.rounding_drift_errors(rows, 0.0) == []


def test_blocks_grow_after_each_step_and_keep_every_reading() -> None:
    time = np.arange(0.0, 300.0, 0.1)
    rows = relaxation.block_means(time, time, np.array([100.0, 200.0]))
    assert rows.size.sum() == time.size
    np.testing.assert_allclose(rows.temperature, rows.time)
    np.testing.assert_allclose(rows.mean(rows.point), rows.time, atol=0.2)
    early = (rows.time > 100) & (rows.time < 100.4)
    assert (rows.size[early] == 1).all()
    many = relaxation.block_means(time, time, np.arange(0.0, 300.0, 0.7))
    assert many.time.size <= 3 * relaxation.MAX_BLOCKS


def test_columns_that_say_the_same_leave_their_estimates_open() -> None:
    """Neither a negative variance nor a division by the scale of an exact fit."""
    x = np.linspace(0, 1, 40)
    found = autocorrelated_fit.fit(
        autocorrelated_fit.noise_models(x, np.ones(40), 0.03), np.sin(9 * x), np.column_stack([x, x, np.ones(40)])
    )
    assert (found.covariance[:, 0, 0] > 1e3 * found.covariance[:, 2, 2]).all()
    exact = autocorrelated_fit.fit(autocorrelated_fit.noise_models(x, np.ones(40), 0.03), 2 * x, x[:, np.newaxis])
    assert autocorrelated_fit.quantiles(exact, 0) == pytest.approx((2, 2, 2))
    errors = np.column_stack([x, np.ones(40)])
    moved = autocorrelated_fit.influence(autocorrelated_fit.noise_models(x, np.ones(40), 0.03), errors, errors)
    np.testing.assert_allclose(moved, np.broadcast_to(np.eye(2), moved.shape), atol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_any_log_gives_a_fit_or_a_refusal(seed: int) -> None:
    """Stamps that repeat, spikes, steps at the end: no warning, and values within their intervals."""
    rng, n = np.random.default_rng(seed), (24, 90)[seed % 2]
    t = np.sort(np.round(rng.uniform(0, n / 5, n), 1))
    power = (80 + 300 * (t // 5 % 2), np.where(np.arange(n) == n // 2, 1e6, 50.0))[seed % 2]
    T = (30 + 0.05 * power, np.where(t > n / 10, 1e5, 0.0), np.floor(30 + np.cumsum(rng.standard_normal(n))))[seed % 3]
    whole = fit_load(t, power, t, T, offset_error_s=0.1)
    assert whole.refusal or coherent(whole.rc_rise_s, whole.rc_rise_low_s, whole.rc_rise_high_s)
    for alone in (fit_rise(t, T), fit_decay(t, T)):
        assert alone.refusal or coherent(alone.rc_s, alone.low_s, alone.high_s)
