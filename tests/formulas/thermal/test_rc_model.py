"""The thermal model and its fits: limits, a second method, the truth of synthetic boards, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal import rc_model
from profsvc.formulas.thermal.time_constants.rc_fit_under_load import fit_load
from profsvc.formulas.thermal.time_constants.rc_fits import at_rest, fit_decay, fit_max_rise, fit_rise, is_known_within
from tests.formulas.thermal import synthetic_logs

degrees, seconds = st.floats(-50, 150), st.floats(0.1, 1e4)


@given(degrees, degrees, seconds, seconds, st.integers(1, 9))
def test_many_steps_are_one(start: float, target: float, rc: float, time: float, steps: int) -> None:
    scan = rc_model.temperature_scan(np.full(steps, target), time / steps, start, rc, rc)
    whole = rc_model.temperature(time, start, target - start, rc)
    np.testing.assert_allclose(scan[-1], whole, rtol=1e-9, atol=1e-9)


def test_warming_and_cooling_have_their_own_constant_and_logs_run_beside_each_other() -> None:
    targets = np.array([[70.0, 30.0], [30.0, 70.0]])
    scan = rc_model.temperature_scan(targets, 10.0, 30.0, 20.0, [40.0, 80.0])
    for k, decay in enumerate((40.0, 80.0)):
        np.testing.assert_array_equal(scan[k], rc_model.temperature_scan(targets[k], 10.0, 30.0, 20.0, decay))
    assert scan[0, 1] - 30 == pytest.approx((scan[0, 0] - 30) * np.exp(-10 / 40))


def test_the_fixed_point_is_one() -> None:
    """A second method: the warmed power put back until nothing changes."""
    mu, lam, rho, sigma, power, intensity = 0.12, 5.5, 21.505, 10 / 22, 100.0, 0.05
    rise = 0.0
    for _ in range(60):
        rise = float(rc_model.max_rise(power + sigma * rise, intensity, mu, lam, rho))
    fixed = rc_model.max_rise(power, intensity, mu, lam, rho, sigma, form="fixed_point")
    assert float(fixed) == pytest.approx(rise)
    assert np.isnan(rc_model.max_rise(power, intensity, 3.0, lam, rho, sigma, form="fixed_point"))


def test_a_peak_is_reached_in_time_and_a_hot_board_is_hottest_at_once() -> None:
    peak = rc_model.peak_temperature(57.0, 21.0, 0.5, [0.0, 35.0, np.inf], 35.0)
    np.testing.assert_allclose(peak.temperature_c, [57, 57 + 21 * (1 - np.exp(-1)), 78])
    hot = rc_model.peak_temperature(57.0, 21.0, 0.5, 100.0, 35.0, start_c=90.0)
    assert (float(hot.temperature_c), float(hot.added_power_w)) == (90.0, 16.5)
    bad = rc_model.peak_temperature([57.0, np.nan, 57.0], 21.0, 0.5, [1.0, 1.0, -1.0])
    assert [bool(f & Flag.INPUT_SUSPECT) for f in bad.flags] == [False, True, True]


@pytest.mark.parametrize("wrong", [np.nan, -1.0, np.inf])
def test_a_wrong_number_makes_nan_and_leaves_the_next_one_unchanged(wrong: float) -> None:
    for found in (
        rc_model.temperature(10.0, 30.0, 20.0, [wrong, 35.0]),
        rc_model.memory_intensity([wrong, 1.0], 2.0),
        rc_model.max_rise([wrong, 50.0], 0.1, 0.12, 5.5, 21.5),
        rc_model.temperature_scan(np.full((2, 3), 70.0), 1.0, 30.0, [wrong, 20.0], 20.0)[:, -1],
    ):
        assert [bool(x) for x in np.isnan(found)] == [True, False]
    assert np.isnan(rc_model.sigma(10.0, 0.0))


def test_unknown_words() -> None:
    with pytest.raises(ValueError, match="no form 'cool'"):
        rc_model.temperature(1.0, 1.0, 1.0, 1.0, kind="cool")
    with pytest.raises(ValueError, match="no form 'hot'"):
        rc_model.max_rise(1.0, 1.0, 1.0, 1.0, 1.0, form="hot")


def test_the_intervals_of_one_constant_hold_it_through_rounding() -> None:
    rng, held, near = np.random.default_rng(1), 0, 0
    for _ in range(20):
        rc, rise, start = rng.uniform(15, 45), rng.uniform(12, 30), rng.uniform(30, 60)
        t = np.sort(rng.uniform(0, 6 * rc, 400))
        T = np.floor(start + rise * (1 - np.exp(-t / rc)) + rng.uniform(0, 0.4) * rng.standard_normal(t.size))
        up, down = fit_rise(t, T), fit_decay(t, 150 - T)
        assert up.rc_s == pytest.approx(down.rc_s, rel=1e-6)
        held += up.low_s <= rc <= up.high_s
        near += abs(up.rc_s / rc - 1) < 0.05
    assert held >= 16
    assert near >= 17


def test_fits_of_nothing_say_so() -> None:
    t = np.arange(0.0, 100.0)
    warm = 40 + 20 * (1 - np.exp(-t / 30))
    assert (
        fit_rise(t, np.full(100, 50.0)).refusal
        == "the temperature changes by 0.0 \u00b0C; a time constant needs 3 \u00b0C"
    )
    assert fit_rise(t[:9], warm[:9]).refusal == "readings: 9; a time constant needs 20"
    assert fit_decay(t, warm).refusal.endswith("the wrong way")
    rng = np.random.default_rng(2)
    assert fit_rise(t, 50 + 3 * rng.standard_normal(100)).refusal
    straight = fit_rise(t, 40 + 0.1 * t + 0.3 * rng.standard_normal(100))
    assert straight.refusal
    assert straight.flags & Flag.INPUT_SUSPECT


def test_constants_of_synthetic_boards() -> None:
    """Boards of one constant, any load, every defect: both constants within 5 % in at least 4 of 5."""
    logs = [x for x in synthetic_logs.simulate(15, 16) if x.truth.resistance_c_per_w[1] == 0][:5]
    near = []
    for log in logs:
        stamps = log.temperature_time_s - log.truth.shift_s
        found = fit_load(log.power_time_s, log.power_w - log.fan_w, stamps, log.temperature_c)
        truth = np.array([log.truth.rc_rise_s[0], log.truth.rc_decay_s[0], log.truth.resistance_c_per_w[0]])
        assert not found.refusal
        main = int(np.argmax(found.resistance_c_per_w))
        got = np.array([x[main] for x in (found.rc_rise_s, found.rc_decay_s, found.resistance_c_per_w)])
        near.append(bool((np.abs(got / truth - 1) < 0.05).all()))
    assert np.mean(near) >= 0.8


def test_of_a_long_log_the_hours_of_most_load_tell_the_constant() -> None:
    rng = np.random.default_rng(4)
    t = np.arange(0.0, 30000.0)
    power = 80 + rng.choice([0.0, 150, 300, 420], 200)[np.searchsorted(np.cumsum(rng.uniform(60, 600, 199)), t)]
    T = rc_model.temperature_scan(30 + 0.05 * power, 1.0, 34.0, 30.0, 36.0) + 0.2 * rng.standard_normal(t.size)
    found = fit_load(t, power, t + 1, np.floor(T), offset_error_s=0.05)
    assert found.refusal == ""
    assert found.rc_rise_low_s[0] < 30 < found.rc_rise_high_s[0]
    assert found.rc_decay_low_s[0] < 36 < found.rc_decay_high_s[0]
    assert is_known_within(found.rc_rise_s, found.rc_rise_low_s, found.rc_rise_high_s, 0.02).all()


def test_an_offset_estimated_from_these_logs_is_not_used_twice() -> None:
    log = next(x for x in synthetic_logs.simulate(15, 16) if x.truth.resistance_c_per_w[1] == 0)
    stamps = log.temperature_time_s - log.truth.shift_s
    logs = (log.power_time_s, log.power_w - log.fan_w, stamps, log.temperature_c)
    known, estimated = (fit_load(*logs, offset_error_s=0.05, offset_estimated=told) for told in (False, True))
    assert (estimated.rc_rise_high_s / estimated.rc_rise_low_s > known.rc_rise_high_s / known.rc_rise_low_s).all()


@pytest.mark.parametrize(
    ("power", "temperature", "why"),
    [
        (60 + 0 * np.arange(200), 30 + 20 * np.tanh(np.arange(200) / 50), "nothing drives the temperature"),
        (60 + 200 * (np.arange(200) > 80), 30 + 0 * np.arange(200), "the temperature changes by 0.0 \u00b0C"),
    ],
)
def test_a_load_without_information_is_refused(power: np.ndarray, temperature: np.ndarray, why: str) -> None:
    t = np.arange(200.0)
    found = fit_load(t, power, t, temperature)
    assert why in found.refusal
    assert found.rc_rise_s.size == 0
    assert ": 5; a time constant needs" in fit_load(t[:5], power[:5], t, temperature).refusal
    assert "do not ascend" in fit_load(t[::-1], power, t, 30 + t / 10).refusal


def test_rest() -> None:
    t = np.arange(0.0, 300.0)
    warm = rc_model.temperature(t, 57.0, 21.0, 35.0)
    early, late = at_rest(t[:100], warm[:100]), at_rest(t, warm)
    assert (early.saturated, late.saturated) == (False, True)
    assert at_rest(t[:200], warm[:200], rc_s=35.0).saturated
    unsure = at_rest(t, 50 + t * 0.2 / 60 + 0.3 * np.random.default_rng(3).standard_normal(300))
    assert unsure.flags & Flag.INPUT_SUSPECT


def test_the_parameters_of_the_rise_beside_least_squares_of_numpy() -> None:
    rng = np.random.default_rng(4)
    P, I = rng.uniform(30, 130, 14), rng.uniform(0, 0.3, 14)
    z = []
    for _ in range(100):
        found = fit_max_rise(rc_model.max_rise(P, I, 0.12, 5.5, 21.505) + rng.standard_normal(14), P, I)
        z.append(((found.low < [0.12, 5.5, 21.505]) & (found.high > [0.12, 5.5, 21.505])).mean())
    assert 0.9 < np.mean(z) < 0.99
    assert np.isnan(fit_max_rise([10, 12, 14, 16], [40, 50, 60, 70], [0.1, 0.1, 0.2, 0.2]).mu)
    together = np.linspace(40, 100, 6)
    assert np.isnan(fit_max_rise(together, together, together / 400).mu)
