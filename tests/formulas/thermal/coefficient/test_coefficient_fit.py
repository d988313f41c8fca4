"""The temperature coefficient: within its interval, the same in other units, refused when blind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.coefficient.coefficient_fit import fit_coefficient
from tests.benchmarks.power_recovery import coefficient_of
from tests.formulas.thermal import synthetic_logs

TIME = np.arange(0.0, 240.0, 0.5)
ONE = np.zeros(TIME.size, dtype=int)
WARMING = 40 + 20 * (1 - np.exp(-TIME / 30))
NOISE = np.random.default_rng(1).standard_normal(TIME.size)


def test_the_interval_is_as_wide_as_the_errors_are() -> None:
    """48 logs through every defect. Half or double the width would leave the band, chance would not."""
    z = []
    for log in synthetic_logs.simulate(11, 48):
        found = coefficient_of(log, log.truth.shift_s)
        if not found.refusal:
            z.append((found.coefficient_w_per_c - log.truth.sigma_w_per_c) / found.standard_error_w_per_c)
    assert len(z) >= 45
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.4
    assert abs(np.mean(z)) < 0.5


@pytest.mark.parametrize("kind", synthetic_logs.WITHOUT_INFORMATION)
def test_a_log_without_information_is_refused_with_the_figure(kind: str) -> None:
    for log in synthetic_logs.simulate(12, 4, kind):
        found = coefficient_of(log, log.truth.shift_s)
        assert any(letter.isdigit() for letter in found.refusal) or kind == "short"
        assert found.flags & Flag.INPUT_SUSPECT


def test_a_degree_or_two_tells_as_much_as_the_interval_says() -> None:
    """No range is too small as such: what is answered holds the truth, and much of it is."""
    answered, z = 0, []
    for kind in synthetic_logs.LITTLE_INFORMATION:
        for log in synthetic_logs.simulate(14, 16, kind):
            found = coefficient_of(log, log.truth.shift_s)
            answered += not found.refusal
            if np.isfinite(found.low_w_per_c):
                assert found.range_c < 4
                z.append((found.coefficient_w_per_c - log.truth.sigma_w_per_c) / found.standard_error_w_per_c)
    assert answered >= 12
    assert len(z) >= 28
    assert np.sqrt(np.mean(np.square(z))) < 1.4


def test_work_that_gets_lighter_is_no_coefficient() -> None:
    """Power that falls while the board warms up, and power that rises as no leakage does, are refused."""
    fading = fit_coefficient(TIME, 300 + 0.44 * WARMING - 0.7 * (WARMING - 40) + 0.1 * NOISE, WARMING, ONE)
    assert fading.high_w_per_c < 0
    assert fading.refusal.endswith("a warmer chip does not consume less, so the work got lighter within the loads")
    growing = fit_coefficient(TIME, 100 + 3 * (WARMING - 40) + 0.1 * NOISE, 40 + (WARMING - 40) / 7, ONE, law="linear")
    assert growing.refusal.endswith("so the work got heavier within the loads")
    assert growing.flags & Flag.INPUT_SUSPECT


def test_without_noise_the_slope_is_exact() -> None:
    found = fit_coefficient(TIME, 300 + 0.5 * WARMING + 1e-9 * NOISE, WARMING, ONE, law="linear")
    assert found.coefficient_w_per_c == pytest.approx(0.5, rel=1e-6)
    assert found.published_w_per_c == pytest.approx(0.5, rel=1e-6)
    assert (found.law, found.readings, found.segments) == ("linear", TIME.size - 10, 1)


def test_a_regression_on_readings_is_too_flat_and_ours_is_not() -> None:
    """Noise of 4 degC on the temperature flattens the line by a third."""
    noisy = WARMING + 4 * np.random.default_rng(2).standard_normal(TIME.size)
    power = 300 + 0.5 * WARMING + 0.1 * NOISE
    late = TIME >= 5
    assert np.polyfit(noisy[late], power[late], 1)[0] < 0.4
    found = fit_coefficient(TIME, power, noisy, ONE)
    assert found.low_w_per_c < 0.5 < found.high_w_per_c


@settings(max_examples=10, deadline=None)
@given(st.floats(0.01, 100), st.floats(-30, 300), st.floats(-1e4, 1e4))
def test_units_and_origins_do_not_matter(watt: float, degree: float, second: float) -> None:
    power = 300 + 0.5 * WARMING + NOISE
    base = fit_coefficient(TIME, power, WARMING, ONE, law="linear")
    moved = fit_coefficient(TIME + second, watt * power, WARMING + degree, ONE, law="linear")
    for name in ("coefficient_w_per_c", "low_w_per_c", "high_w_per_c"):
        assert getattr(moved, name) == pytest.approx(watt * getattr(base, name), rel=1e-3)


def test_spikes_and_lost_readings_change_little() -> None:
    power = 300 + 0.5 * WARMING + NOISE
    base = fit_coefficient(TIME, power, WARMING, ONE)
    power[::37], missing = 900.0, WARMING.copy()
    missing[100:140] = np.nan
    hurt = fit_coefficient(TIME, power, missing, ONE)
    assert hurt.coefficient_w_per_c == pytest.approx(base.coefficient_w_per_c, abs=2 * base.standard_error_w_per_c)


def test_a_wander_widens_the_interval() -> None:
    rng = np.random.default_rng(3)
    wander = np.convolve(rng.standard_normal(TIME.size + 39), np.ones(40) / np.sqrt(40), "valid")
    white = fit_coefficient(TIME, 300 + 0.5 * WARMING + NOISE, WARMING, ONE)
    slow = fit_coefficient(TIME, 300 + 0.5 * WARMING + wander, WARMING, ONE)
    assert slow.standard_error_w_per_c > 2.5 * white.standard_error_w_per_c


def test_an_unsure_offset_widens_the_interval() -> None:
    power = 300 + 0.5 * WARMING + 0.1 * NOISE
    sure, unsure = (fit_coefficient(TIME, power, WARMING, ONE, offset_error_s=e) for e in (0.0, 3.0))
    # A second of a warming with a constant of 30 s stretches the line by 1/30.
    added = unsure.standard_error_w_per_c**2 - sure.standard_error_w_per_c**2
    assert np.sqrt(added) == pytest.approx(0.5 * 3 / 30, rel=0.1)


def test_the_fan_wants_a_choice() -> None:
    fan = 0.2 * (WARMING - 40)
    power = 300 + 0.5 * WARMING + 0.1 * NOISE + fan
    with pytest.raises(ValueError, match="fan='removed' or fan='included'"):
        fit_coefficient(TIME, power, WARMING, ONE, fan_w=fan)
    with pytest.raises(ValueError, match="no form 'off'"):
        fit_coefficient(TIME, power, WARMING, ONE, fan="off")
    for choice, slope in (("removed", 0.5), ("included", 0.7)):
        found = fit_coefficient(TIME, power, WARMING, ONE, fan_w=fan, fan=choice)
        assert found.coefficient_w_per_c == pytest.approx(slope, rel=0.02)
        assert found.published_w_per_c == pytest.approx(slope, rel=0.02)


def test_a_fan_of_unknown_power_is_fitted_beside() -> None:
    speed = np.where((TIME > 60) & (TIME < 120), 0.8, 0.3)
    power = 300 + 0.5 * WARMING + 0.1 * NOISE + 9 * speed
    found = fit_coefficient(TIME, power, WARMING, ONE, fan_speed=speed, fan="removed")
    assert found.low_w_per_c < 0.5 < found.high_w_per_c
    assert found.standard_error_w_per_c < 0.02


def test_clock_and_throttle_leave_segments_out() -> None:
    power = 300 + 0.5 * WARMING + 0.1 * NOISE
    two = np.where(TIME < 120, 0, 1)
    clock = np.where(TIME > 200, 1900.0, 1980.0)
    found = fit_coefficient(TIME, power, WARMING, two, clock=clock)
    assert (found.segments, found.segments_left_out, found.refusal) == (1, 1, "")
    found = fit_coefficient(TIME, power, WARMING, two, throttled=TIME > 200)
    assert (found.segments, found.segments_left_out, found.refusal) == (1, 1, "")
    apart = fit_coefficient(TIME, power, WARMING, two, clock=np.where(two == 0, 1980.0, 1200.0))
    assert apart.refusal == "the segments ran at clocks from 1200 to 1980; a coefficient holds for one"


def test_the_refusals_say_their_figure() -> None:
    flat = fit_coefficient(TIME, 300 + NOISE, WARMING, ONE)
    assert flat.refusal.endswith("its sign is not known")
    assert flat.low_w_per_c < 0 < flat.high_w_per_c
    few = fit_coefficient(TIME[:25], 300 + WARMING[:25], WARMING[:25], ONE[:25])
    assert few.refusal == "the segments have 15 readings at most; a coefficient needs 20"
    none = fit_coefficient(TIME, 300 + WARMING, WARMING, ONE - 1)
    assert none.refusal == "no reading of a load has both a power and a temperature"
    brief = fit_coefficient(TIME[:5], 300 + WARMING[:5], WARMING[:5], ONE[:5])
    assert brief.refusal == "no segment lasts longer than the first 5 s, which are left out"
    assert fit_coefficient([], [], [], np.zeros(0, dtype=int)).refusal
    # Noise of the arithmetic is no slope: this was one of -5.6e-11 W/degC, with an interval below 0.
    whole_watts = fit_coefficient(TIME, np.full(TIME.size, 80.0), WARMING, ONE)
    assert whole_watts.refusal.startswith("no reading of a load differs in power (80 W)")
    assert np.isnan(whole_watts.coefficient_w_per_c)


def test_curved_leakage_is_found_where_the_range_is_wide() -> None:
    wide = 30 + 55 * (1 - np.exp(-TIME / 30))
    power = 250 * np.exp(0.006 * (wide - 30)) + 0.2 * NOISE
    found = fit_coefficient(TIME, power, wide, ONE)
    assert found.law == "exponential"
    assert found.aicc_gain > 10
    assert found.rate_per_c == pytest.approx(0.006, abs=3 * found.rate_standard_error_per_c)
    straight = fit_coefficient(TIME, 250 + 2 * wide + 0.2 * NOISE, wide, ONE)
    assert straight.law == "linear"
    assert straight.aicc_gain < -10
    assert fit_coefficient(TIME, power, wide, ONE, law="linear").law == "linear"


def test_rates_of_synthetic_boards_lie_in_their_interval() -> None:
    z = []
    for log in synthetic_logs.simulate(13, 16, law="exponential"):
        found = coefficient_of(log, log.truth.shift_s, law="exponential")
        if not found.refusal:
            z.append((found.rate_per_c - log.truth.rate_per_c) / found.rate_standard_error_per_c)
    assert 0.4 < np.sqrt(np.mean(np.square(z))) < 1.8


def test_loads_that_do_not_share_a_slope_are_reported() -> None:
    time, segment = np.concatenate([TIME, TIME + 300]), np.repeat([0, 1], TIME.size)
    T, noise = np.tile(WARMING, 2), np.random.default_rng(4).standard_normal(2 * TIME.size)
    same = fit_coefficient(time, 300 + 100 * segment + 0.5 * T + noise, T, segment)
    apart = fit_coefficient(time, 300 + (0.5 + 0.5 * segment) * T + noise, T, segment)
    assert same.loads_probability > 0.01
    assert apart.loads_probability < 1e-4
    assert np.isnan(fit_coefficient(TIME, 300 + 0.5 * WARMING + NOISE, WARMING, ONE).loads_probability)


def test_what_is_wrong_with_the_arguments_is_said() -> None:
    with pytest.raises(TypeError, match="segment has dtype float64"):
        fit_coefficient(TIME, TIME, TIME, TIME)
    with pytest.raises(TypeError, match="throttled has dtype int64"):
        fit_coefficient(TIME, TIME, TIME, ONE, throttled=ONE)
    with pytest.raises(ValueError, match=r"do not broadcast.*power_w \(3,\)"):
        fit_coefficient(TIME, TIME[:3], TIME, ONE)
    with pytest.raises(ValueError, match="no form 'square'"):
        fit_coefficient(TIME, TIME, TIME, ONE, law="square")


def _falls(heavy_s: float, light_s: float, count: int, seed: int) -> tuple[float, float, bool]:
    """Fit a light load after falls from a heavy one, on a die like that of an NVIDIA H200; true are 0.33 W/degC."""
    step, rng = 0.1, np.random.default_rng(seed)
    lengths = [round(s / step) for _ in range(count) for s in (heavy_s, light_s)]
    power = np.repeat(np.tile([690.0, 147.0], count), lengths)
    phase = np.repeat(np.arange(2 * count), lengths)
    temperature = 31.5 + np.zeros(power.size)
    for rise, tau in ((9.5, 0.2), (4.5, 1.0), (2.0, 5.0), (1.5, 60.0)):
        keep = np.exp(-step / tau)
        temperature += rise / 545 * lfilter([1 - keep], [1, -keep], power, zi=[keep * 147.0])[0]
    keep = np.exp(-step / 30)
    wander = lfilter([0.45 * np.sqrt(1 - keep**2)], [1, -keep], rng.standard_normal(power.size))
    power = power + 0.33 * (temperature - 37) + wander + 0.45 * rng.standard_normal(power.size)
    shown = np.round(temperature + 0.1 * rng.standard_normal(power.size))
    segment = np.where(phase % 2, phase // 2, -1)
    time, load = step * np.arange(power.size), np.zeros(power.size)
    found = fit_coefficient(time, power, shown, segment, load=load, settle_s=1.0, offset_error_s=0.05)
    half = (found.high_w_per_c - found.low_w_per_c) / 2
    return half, found.coefficient_w_per_c, found.low_w_per_c < 0.33 < found.high_w_per_c


def test_many_short_falls_tell_more_than_few_long_ones() -> None:
    """In the same time, on a die that cools within seconds and a power that wanders within minutes."""
    short, long = ([_falls(*times, seed) for seed in range(4)] for times in ((3.0, 12.0, 24), (60.0, 120.0, 2)))
    assert np.median([half for half, _, _ in short]) < 0.3 * 0.33
    assert np.median([half for half, _, _ in long]) > 1.5 * np.median([half for half, _, _ in short])
    assert all(holds for _, _, holds in short)
    assert abs(np.mean([value for _, value, _ in short]) - 0.33) < 0.04
