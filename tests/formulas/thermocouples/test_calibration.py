import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.calibration import calibrate, calibrated

t = np.arange(400.0)


def plates(seed: int, offset: np.ndarray, gain: np.ndarray, at: list[float], pressed: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(seed)
    parts = []
    for plate in at:
        true = plate + 0.3 * np.exp(-t / 100)  # the plate itself still cools
        parts.append(offset[:, np.newaxis] + gain[:, np.newaxis] * true + random.normal(0, 0.05, (offset.size, t.size)))
        parts[-1][0] += pressed * np.exp(-t / 20)
    return np.concatenate(parts, axis=1)


def test_offsets_come_back_within_their_errors() -> None:
    truth = np.array([0.4, -0.3, 0.1, -0.2])
    deviations = []
    for seed in range(200):
        fit = calibrate(t, plates(seed, truth, np.ones(4), [25.0], pressed=4.0))
        assert fit.passed
        assert fit.begin_s[0] >= 45  # 4 degC are 0.4 then
        deviations.append((fit.offset_c - truth) / fit.standard_error_c)
    # The rest of the pressed sensor's transient is in the window: a little more than noise.
    assert 0.85 < np.mean(np.abs(deviations) < 1.96) < 0.99


def test_offsets_of_several_plates_carry_what_the_plates_differ_by() -> None:
    gain = np.array([1.02, 0.98, 1.0, 1.0])
    T = plates(1, np.zeros(4), gain, [30.0, 60.0])
    time, plate = np.tile(t, 2), np.repeat([5, 9], t.size)
    fit = calibrate(time, T, plate)
    assert fit.passed
    np.testing.assert_allclose(fit.offset_c, (gain - 1) * 45, atol=0.05)
    assert fit.standard_error_c[0] > 0.2  # 0.6 at one plate, 1.2 at the other
    with_gain = calibrate(time, T, plate, gain=True)
    np.testing.assert_allclose(with_gain.gain, gain, atol=1e-3)
    np.testing.assert_allclose(with_gain.offset_c, 0, atol=0.05)
    assert with_gain.residual_c.max() < 0.4
    assert with_gain.gain.mean() == pytest.approx(1)
    found = calibrated(T[:, -1], with_gain.offset_c, with_gain.gain).value
    np.testing.assert_allclose(found, 60, atol=0.3)


@given(arrays(np.float64, (5,), elements=st.floats(-3, 3)))
def test_offsets_sum_to_zero_and_what_is_calibrated_agrees(offset: np.ndarray) -> None:
    T = 25 + offset[:, np.newaxis] + 0.01 * np.sin(t + offset[:, np.newaxis])
    fit = calibrate(t, T)
    assert abs(fit.offset_c.sum()) < 1e-9
    flat = calibrated(T, fit.offset_c[:, np.newaxis]).value
    assert np.ptp(flat[:, -1]) < 0.1


def test_one_sensor_off_at_random_fails() -> None:
    T = 25 + np.random.default_rng(3).normal(0, [[0.05], [0.05], [0.9]], (3, t.size))
    fit = calibrate(t, T)
    assert not fit.passed
    assert fit.residual_c.argmax() == 2
    assert fit.residual_c[2] > 1
    assert not fit.flags.any()
    assert calibrate(t, T, limit_c=10.0).passed


def test_what_never_settles_fails() -> None:
    drifting = 25 + np.outer([0, 1, -1], t / 100)
    fit = calibrate(t, drifting)
    assert not fit.passed
    assert (fit.flags == Flag.INPUT_SUSPECT).all()
    assert calibrate(t[:40], drifting[:, :40] * 0 + 25).passed
    assert not calibrate(t[:25], drifting[:, :25] * 0 + 25).passed


def test_a_dead_sensor_is_left_out() -> None:
    T = 25 + np.random.default_rng(4).normal(0, 0.05, (4, t.size))
    dead = np.concatenate((T, np.full((1, t.size), np.nan)))
    T[0, 30] = dead[0, 30] = np.inf
    fit, without = calibrate(t, dead), calibrate(t, T)
    np.testing.assert_array_equal(fit.offset_c[:4], without.offset_c)
    assert np.isnan(fit.offset_c[4])
    assert fit.flags.tolist() == [0, 0, 0, 0, Flag.INPUT_SUSPECT]
    assert fit.passed
    assert fit.readings[0] <= t.size - 1


def test_too_little_to_compare() -> None:
    for T in (np.full((1, 400), 25.0), np.full((3, 400), np.nan), np.empty((0, 400))):
        fit = calibrate(t, T)
        assert not fit.passed
        assert (fit.flags == Flag.INPUT_SUSPECT).all()
    assert not calibrate([], np.empty((3, 0))).passed
    close = calibrate(
        np.tile(t, 2), plates(1, np.zeros(3), np.ones(3), [30.0, 33.0]), np.repeat([0, 1], 400), gain=True
    )
    assert not close.passed
    alone = calibrate(t, plates(1, np.zeros(3), np.ones(3), [30.0]), gain=True)
    assert not alone.passed


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"allowed: \(N,\), \(K, N\), \(N,\)"):
        calibrate(t, np.zeros((2, 3)))
    with pytest.raises(TypeError, match="plate has dtype float64"):
        calibrate(t, np.zeros((2, 400)), np.zeros(400))
    found = calibrated([60.0, np.nan, 60.0, 60.0], [0.0, 0.0, np.nan, 0.0], [1.0, 1.0, 1.0, 0.0])
    assert found.flags.tolist() == [0, 4 << 3, 4 << 3, 4 << 3]
