from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import polynomial

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.emf import TYPE_J_UV, emf_to_temperature, saturation, steady_mean

GOLDEN = Path(__file__).parents[4] / "shared" / "spec" / "golden.csv"
TABLES = GOLDEN.parent / "tables"
# NIST Monograph 175, table A6.1: approximate inverse functions of type J, uV to degC, within 0.05 degC.
INVERSE_BELOW_0 = [0, 1.9528268e-2, -1.2286185e-6, -1.0752178e-9, -5.9086933e-13, -1.7256713e-16, -2.8131513e-20,
                   -2.3963370e-24, -8.3823321e-29]  # fmt: skip
INVERSE_FROM_0 = [0, 1.978425e-2, -2.001204e-7, 1.036969e-11, -2.549687e-16, 3.585153e-21, -5.344285e-26, 5.099890e-31]


def test_type_j_is_that_of_the_other_table_of_its_source() -> None:
    uv = np.linspace(-8095, 42919, 2001)
    expected = np.where(uv < 0, polynomial.polyval(uv, INVERSE_BELOW_0), polynomial.polyval(uv, INVERSE_FROM_0))
    np.testing.assert_allclose(emf_to_temperature(uv * 1e-6, 0.0).value, expected, rtol=0, atol=0.05)


@given(st.floats(-210, 760), st.floats(-40, 100))
def test_emf_of_a_temperature_gives_it_back(t: float, reference: float) -> None:
    emf = (polynomial.polyval(t, TYPE_J_UV) - polynomial.polyval(reference, TYPE_J_UV)) * 1e-6
    assert float(emf_to_temperature(emf, reference).value) == pytest.approx(t, abs=1e-6)


def test_one_slope_is_off_by_two_degrees_on_a_chip() -> None:
    emf = (polynomial.polyval(80.0, TYPE_J_UV) - polynomial.polyval(25.0, TYPE_J_UV)) * 1e-6
    assert float(emf_to_temperature(emf, 25.0).value) == pytest.approx(80.0)
    assert 77.5 < float(emf_to_temperature(emf, 25.0, "as_published").value) < 78.1


@pytest.mark.parametrize("form", ["consistent", "as_published"])
def test_emf_that_is_not_a_number_leaves_its_next_one_unchanged(form: str) -> None:
    found = emf_to_temperature([np.nan, np.inf, 1e-3], [20.0, 20.0, 20.0], form)
    assert np.isnan(found.value[:2]).all()
    assert found.flags.tolist() == [Flag.INPUT_SUSPECT, Flag.INPUT_SUSPECT, 0]
    assert np.isfinite(found.value[2])
    assert emf_to_temperature(1e-3, np.nan, form).flags == Flag.INPUT_SUSPECT


def test_saturation_lies_between_none_and_all() -> None:
    share = saturation([0.0, 1e-9, 175.0, 1e6], 35.0)
    assert share[0] == 0
    assert share[1] > 0
    assert share[2] == pytest.approx(1 - np.exp(-5))
    assert share[3] == 1
    assert np.isnan(saturation([-1.0, np.nan, 1.0, 1.0], [35.0, 35.0, 0.0, -2.0])).all()


def noisy(seed: int, sensors: int, n: int, sd: float, correlation: float = 0.0) -> np.ndarray:
    white = np.random.default_rng(seed).normal(0, sd, (sensors, n))
    for k in range(1, n if correlation else 1):
        white[:, k] = correlation * white[:, k - 1] + np.sqrt(1 - correlation**2) * white[:, k]
    return white


@pytest.mark.parametrize(("sd", "correlation"), [(0.01, 0.0), (0.08, 0.0), (0.15, 0.0), (0.08, 0.5)])
def test_settled_sensors_pass_and_their_intervals_hold(sd: float, correlation: float) -> None:
    found = steady_mean(np.arange(600.0), 60 + noisy(1, 2000, 600, sd, correlation))
    assert found.settled.mean() > 0.99
    inside = np.abs(found.raw - 60) < 1.96 * found.standard_error
    assert (0.93 if not correlation else 0.88) < inside.mean() < 0.99
    assert not found.flags[found.settled].any()
    assert (found.flags[~found.settled] == Flag.INPUT_SUSPECT).all()


@pytest.mark.parametrize("sd", [0.0, 0.02, 0.08, 0.15])
@pytest.mark.parametrize("slope_c_per_min", [0.5, -0.5])
def test_drifting_sensors_do_not_pass(sd: float, slope_c_per_min: float) -> None:
    t = np.arange(600.0)
    found = steady_mean(t, 60 + slope_c_per_min / 60 * t + noisy(2, 1000, 600, sd))
    assert not found.settled.any()
    assert np.isnan(found.value).all()
    np.testing.assert_allclose(found.drift, slope_c_per_min, atol=6 * float(found.drift_error.max()) + 1e-9)


def test_what_passes_during_a_rise_is_near_its_end() -> None:
    t = np.arange(600.0)
    rise = 45 + 20 * (1 - np.exp(-t / 35)) + noisy(3, 1, 600, 0.03)
    lengths = np.arange(40, 600, 5)
    cut = np.where(t < lengths[:, np.newaxis], rise, np.nan)
    found = steady_mean(t, cut)
    assert not found.settled[lengths < 150].any()
    assert found.settled[lengths > 300].all()
    assert np.abs(found.value[found.settled] - 65).max() < 0.25


def test_a_time_constant_settles_what_noise_hides() -> None:
    t = np.arange(200.0)
    T = 60 + noisy(4, 3, 200, 2.0)
    assert not steady_mean(t, T).settled.any()
    assert steady_mean(t, T, rc_s=[35.0, 39.0, 41.0]).settled.tolist() == [True, True, False]
    assert not steady_mean(t, T, rc_s=[np.nan, -1.0, 0.0]).settled.any()


def test_coarse_steps_do_not_hide_a_drift() -> None:
    t = np.arange(60.0)
    creeping = np.round(59.6 + 0.5 / 60 * t)  # 60 all the time, for all that it drifts by 0.5 degC/min
    found = steady_mean(t, [creeping, np.round(creeping, 1) + 0.1, np.where(t == 3, 61, creeping)])
    assert found.drift.tolist() == [0, 0, 0]
    assert found.settled.tolist() == [False, True, False]  # 60.1 all the time is another matter
    np.testing.assert_allclose(found.standard_error, np.array([1, 0.1, 1]) / np.sqrt(12))
    assert steady_mean(np.arange(200.0), np.full(200, 60.0)).settled


@pytest.mark.parametrize("seconds", [0.1, 0.5, 1.0, 10.0, 60.0])
def test_any_pace_of_reading(seconds: float) -> None:
    t = np.arange(0, 4000.0, seconds)
    noise = noisy(7, 200, t.size, 0.05)
    found = steady_mean(t, 60 + noise)
    assert found.settled.mean() > 0.98
    assert (found.window_s >= max(30, 29 * seconds)).all()
    assert not steady_mean(t, 60 + 0.4 / 60 * t + noise).settled.any()


def test_order_gaps_and_shapes_of_readings() -> None:
    t, T = np.arange(300.0), 60 + noisy(5, 4, 300, 0.05)
    whole = steady_mean(t, T)
    shuffled = np.random.default_rng(6).permutation(300)
    again = steady_mean(t[shuffled], T[:, shuffled])
    np.testing.assert_allclose(again.raw, whole.raw, rtol=1e-12)
    np.testing.assert_allclose(again.drift, whole.drift, rtol=1e-6)
    one = steady_mean(t, T[2])
    assert one.raw.shape == ()
    assert one.raw == whole.raw[2]
    assert one.drift == pytest.approx(float(whole.drift[2]))
    padded = np.concatenate((T, np.full((4, 50), np.nan)), axis=1)
    np.testing.assert_array_equal(steady_mean(np.arange(350.0), padded).raw, whole.raw)
    holed = T.copy()
    holed[0, 100:130] = np.inf
    np.testing.assert_array_equal(steady_mean(t, holed).raw, whole.raw)


def test_too_few_readings() -> None:
    found = steady_mean(np.arange(29.0), np.full((2, 29), 60.0))
    assert np.isnan(found.raw).all()
    assert found.readings.tolist() == [29, 29]
    assert (found.flags == Flag.INPUT_SUSPECT).all()
    short = steady_mean(np.arange(30.0) / 4, np.full(30, 60.0))
    assert short.raw == 60
    assert np.isnan(short.drift)
    assert not short.settled
    for empty in (steady_mean([], []), steady_mean(np.arange(40.0), np.full(40, np.nan))):
        assert np.isnan(empty.raw)
        assert empty.readings == 0
        assert not empty.settled


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="readings=2"):
        steady_mean([1.0], [1.0], readings=2)
    with pytest.raises(ValueError, match="limit_c_per_min=-1"):
        steady_mean([1.0], [1.0], limit_c_per_min=-1)
    with pytest.raises(TypeError, match="temperature_c has dtype"):
        steady_mean([1.0], ["60"])
    with pytest.raises(ValueError, match="do not broadcast"):
        steady_mean([1.0, 2.0], [1.0, 2.0, 3.0])
