"""The spacer turned and put back, on runs made up here."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.thermocouples.rotation import compare_spacer_runs
from profsvc.analysis.thermocouples.series import Log

AXIS = np.array([3.0, 9.0, 15.0, 21.0])
X, Y = (v.ravel() for v in np.meshgrid(AXIS, AXIS))
K = X.size
BIAS = np.random.default_rng(3).normal(0, 0.4, K)


def field(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return 57 + 8 * np.exp(-((x - 9) ** 2 + (y - 15) ** 2) / 40)


def run(T: np.ndarray, first_id: int = 0, **columns: object) -> Log:
    n = 120
    values = T[:, np.newaxis] + np.random.default_rng(first_id).normal(0, 0.03, (len(T), n))
    sensors = pd.DataFrame(
        {"sensor_id": np.arange(len(T)) + first_id, "upload_id": 1, "quantity": "temperature", "unit": "degC",
         "name": [f"T{k}" for k in range(len(T))], "x_mm": X[: len(T)], "y_mm": Y[: len(T)]}
    ).assign(**columns)  # fmt: skip
    samples = pd.DataFrame(
        {"sensor_id": np.repeat(sensors["sensor_id"].to_numpy(), n), "value": values.ravel(),
         "elapsed_ns": np.tile(np.arange(n) * 10**9, len(T))}
    )  # fmt: skip
    return Log(sensors, samples.assign(time_ns=None, local_ns=None))


FIRST, TURNED = run(field(X, Y) + BIAS), run(field(24 - Y, X) + BIAS, 100, x_mm=np.nan)


def value(rows: pd.DataFrame, name: str) -> object:
    (found,) = rows.loc[rows["quantity"] == name, "value"]
    return found


def test_a_hot_spot_of_the_chip_passes() -> None:
    found = compare_spacer_runs(FIRST, TURNED)
    assert found.passed is True
    assert found.reason == ""
    assert value(found.rows, "passed") == 1
    assert value(found.rows, "hot_move") == pytest.approx(0)
    bias = found.rows[found.rows["quantity"] == "sensor_bias"]
    assert bias["sensor_id"].tolist() == list(range(K))
    assert set(bias["model"]) == {"rotation_test"}
    orbit = [0, 3, 15, 12]
    expected = BIAS[orbit] - BIAS[orbit].mean()
    np.testing.assert_allclose(bias["value"].to_numpy(float)[orbit], expected, atol=0.03)


def test_a_calibration_takes_the_bias_off_first() -> None:
    plates = run(np.full(K, 25.0) + BIAS, 200)
    found = compare_spacer_runs(FIRST, TURNED, calibration=plates)
    left = found.rows.loc[found.rows["quantity"] == "sensor_bias", "value"].to_numpy(float)
    assert np.abs(left).max() < 0.05
    broken = compare_spacer_runs(FIRST, TURNED, calibration=run(np.full(3, 25.0), 200))
    assert broken.passed is None
    assert broken.reason.startswith("the calibration run cannot be used: it has no channel 'T10'")


def test_a_hot_spot_of_a_sensor_fails_with_the_figures() -> None:
    stays = 57 + 8.0 * (np.arange(K) == 9)
    found = compare_spacer_runs(run(stays), run(stays, 100))
    assert found.passed is False
    assert "the hot spot moves by 6 mm; the limit is 6 mm" in found.reason
    assert "more than 0.9 is needed" in found.reason
    assert "T9 is off by" in found.reason
    assert value(found.rows, "passed") == 0


def test_put_back() -> None:
    found = compare_spacer_runs(FIRST, run(field(X, Y) + BIAS, 100), 0.0)
    assert found.passed is True
    assert set(found.rows["model"]) == {"thermocouple", "repeatability_test"}
    other = compare_spacer_runs(FIRST, TURNED, 0.0)
    assert other.passed is False


@pytest.mark.parametrize(
    ("first", "second", "angle", "reason"),
    [
        (run(field(X, Y), x_mm=np.nan), TURNED, 90.0, "none of the 16 temperature channels has a position"),
        (FIRST, run(field(X, Y)[:2], 100), 90.0, "2 sensors have a steady value in both runs; three are needed"),
        (FIRST, TURNED, 45.0, "rotated by 45 degrees about their center, the sensors are not all at"),
        (run(field(X, Y)[:12]), TURNED, 90.0, "a layout that maps onto itself is needed (pitch 6 mm)"),
        (FIRST, Log(TURNED.sensors, TURNED.samples.iloc[:0]), 90.0, "0 sensors have a steady value in both runs"),
        (FIRST, Log(TURNED.sensors.assign(name="other"), TURNED.samples), 90.0, "the second run: none of the 0"),
    ],
)
def test_no_answer(first: Log, second: Log, angle: float, reason: str) -> None:
    found = compare_spacer_runs(first, second, angle)
    assert found.passed is None
    assert reason in found.reason
    assert value(found.rows, "passed") is None
