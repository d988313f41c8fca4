"""Rotation and repeatability of a thermocouple spacer from two runs: whether hot spots are the chip's."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.thermocouples.plate_calibration import plate_offsets
from profsvc.analysis.thermocouples.series import Log, TimeRange, sensors_on_die
from profsvc.analysis.thermocouples.steady_state import SteadyState, result_frame, result_row, steady_temperatures
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.rotation import MIN_CORRELATION, RotationTest, repeatability_test, rotation_test


class RotationResult(NamedTuple):
    """Result rows, whether the test was passed, and why not, or why the test is undecided (``passed`` is None)."""

    rows: pd.DataFrame
    passed: bool | None
    reason: str


def compare_spacer_runs(
    first: Log,
    second: Log,
    angle_deg: float = 90.0,
    *,
    calibration: Log | None = None,
    reference_c: float | None = None,
    rc_s: float | None = None,
) -> RotationResult:
    """Return whether two runs show the same chip: the second with the spacer turned, or put back where the angle is 0.

    Sensors are those of one name in both runs; their places count from the spacer, as in the first run.
    ``angle_deg`` is counter-clockwise.
    """
    model = "rotation_test" if angle_deg else "repeatability_test"
    names = set(sensors_on_die(first.sensors)["name"])
    off = None if calibration is None or not names else plate_offsets(calibration, names, False, reference_c)
    if isinstance(off, str):
        return _without_answer(model, [], f"the calibration run cannot be used: {off}")
    run = steady_temperatures(first, TimeRange(), reference_c, rc_s, off)
    if run.reason:
        return _without_answer(model, run.rows, run.reason)
    # The second run needs no places of its own: those of the spacer are known.
    known = run.sensors.drop_duplicates("name").set_index("name")[["x_mm", "y_mm"]]
    again = second.sensors[second.sensors["name"].isin(list(known.index))]
    again = again.assign(x_mm=again["name"].map(known["x_mm"]), y_mm=again["name"].map(known["y_mm"]))
    other = steady_temperatures(Log(again, second.samples), TimeRange(), reference_c, rc_s, off)
    if other.reason:
        return _without_answer(model, run.rows, f"the second run: {other.reason}")
    x, y = (run.sensors[axis].to_numpy(np.float64) for axis in ("x_mm", "y_mm"))
    T = np.array([run.value, _by_name(other, run)])
    found = rotation_test(x, y, T, (0.0, angle_deg)) if angle_deg else repeatability_test(x, y, *T)
    if not np.isfinite(found.correlation):
        return _without_answer(model, run.rows, _why_none(found, T, angle_deg))
    reason = _why_failed(found, run)
    rows = [*run.rows, *_rows(model, found, run, reason)]
    return RotationResult(result_frame(rows), bool(found.passed), reason)


def _by_name(other: SteadyState, run: SteadyState) -> Any:
    values = pd.Series(other.value, index=pd.Index(other.sensors["name"], dtype=object))
    return values[~values.index.duplicated()].reindex(run.sensors["name"]).to_numpy(np.float64)


def _without_answer(model: str, rows: list[dict[str, Any]], reason: str) -> RotationResult:
    unknown = result_row(model, "passed", np.nan, np.nan, "1", flags=int(Flag.INPUT_SUSPECT), reason=reason)
    return RotationResult(result_frame([*rows, unknown]), None, reason)


def _why_none(found: RotationTest, T: Any, angle_deg: float) -> str:
    both = int(np.isfinite(T).all(axis=0).sum())
    if both < 3:
        return f"{both} sensors have a steady value in both runs; three are needed"
    if np.ptp(T[0]) == 0 or np.ptp(T[1]) == 0:
        return "all sensors of a run read the same: there is no hot spot to compare"
    return (
        f"rotated by {angle_deg:g} degrees about their center, the sensors are not all at previous sensor positions; "
        f"a layout that maps onto itself is needed (pitch {found.pitch_mm:.3g} mm)"
    )


def _why_failed(found: RotationTest, run: SteadyState) -> str:
    """The limits that were not met, with the figures; empty where the test is passed."""
    bias = np.nan_to_num(np.abs(found.bias_c))
    worst = int(bias.argmax())
    wrong = []
    if not found.hot_move_mm < found.pitch_mm:
        wrong.append(f"the hot spot moves by {found.hot_move_mm:.3g} mm; the limit is {found.pitch_mm:.3g} mm")
    if not found.correlation > MIN_CORRELATION:
        wrong.append(f"the correlation of the maps is {found.correlation:.3f}; more than {MIN_CORRELATION:g} is needed")
    if not bias[worst] < found.contrast_c / 2:
        name = run.sensors["name"].iloc[worst]
        wrong.append(f"{name} is off by {bias[worst]:.2f} K, less than {found.contrast_c / 2:.2f} is allowed")
    return "; ".join(wrong)


def _rows(model: str, found: RotationTest, run: SteadyState, reason: str) -> list[dict[str, Any]]:
    flags = int(found.flags)
    of_all = [
        result_row(model, "hot_move", float(found.hot_move_mm), np.nan, "mm", flags=flags),
        result_row(model, "correlation", float(found.correlation), np.nan, "1", flags=flags),
        result_row(model, "contrast", float(found.contrast_c), np.nan, "K", flags=flags),
        result_row(model, "passed", float(found.passed), np.nan, "1", flags=flags, reason=reason or None),
    ]
    of_each = [
        result_row(model, "sensor_bias", bias, np.nan, "K", sensor_id=int(sensor), flags=flags)
        for sensor, bias in zip(run.sensors["sensor_id"], found.bias_c, strict=True)
        if np.isfinite(bias)
    ]
    return [*of_each, *of_all]
