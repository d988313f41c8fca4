"""Settled temperatures of the thermocouples of a run, with their rows; or why one has none."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from profsvc.analysis.thermocouples.series import Array, Log, SensorSeries, TimeRange, sensor_series, sensors_on_die
from profsvc.errors import counted
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermocouples.calibration import calibrated
from profsvc.formulas.thermocouples.emf import DRIFT_LIMIT_C_PER_MIN, READINGS, WINDOW_S, SteadyMean, steady_mean

COLUMNS = ("model", "quantity", "value", "low", "high", "unit", "sensor_id", "form", "flags", "reason")
NORMAL_95 = 1.96  # standard errors of a 95 % interval


class SteadyState(NamedTuple):
    """Placed sensors of a run, what they read once settled [degC] and its standard error, and the result rows.

    ``reason`` says why no map can be made of them; ``notes`` what is left out of it.
    """

    sensors: pd.DataFrame
    value: Array
    error: Array
    rows: list[dict[str, Any]]
    reason: str = ""
    notes: tuple[str, ...] = ()


def result_row(model: str, quantity: str, value: float, error: float, unit: str, **more: Any) -> dict[str, Any]:
    """Return a result row; its interval holds 95 %, where the standard error is known."""
    wide = NORMAL_95 * error
    low, high = (bound if np.isfinite(bound) else None for bound in (value - wide, value + wide))
    found = {"value": float(value) if np.isfinite(value) else None, "low": low, "high": high}
    return {"model": model, "quantity": quantity, **found, "unit": unit, "flags": 0, **more}


def result_frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return result rows as a table of plain objects, null where a row lacks the value."""
    return pd.DataFrame({name: pd.Series([one.get(name) for one in rows], dtype=object) for name in COLUMNS})


def steady_temperatures(
    log: Log, cut: TimeRange, reference_c: float | None, rc_s: float | None, offsets: pd.DataFrame | None
) -> SteadyState:
    """Return the settled temperatures of a run, calibrated where ``offsets`` are given."""
    sensors = sensors_on_die(log.sensors)
    if not len(sensors):
        return SteadyState(sensors, np.empty(0), np.empty(0), [], _no_position_reason(log.sensors))
    series = sensor_series(sensors, log.samples, cut, reference_c)
    steady = steady_mean(series.time_s, series.temperature_c, rc_s=rc_s)
    behind = _early_end_s(series)
    reasons = [_reason(series, steady, behind, k) for k in range(len(sensors))]
    silent = (steady.readings < READINGS) | (behind > WINDOW_S)
    value, error = np.where(silent, np.nan, steady.value), np.where(silent, np.nan, steady.standard_error)
    rows = _rows(sensors, steady, value, error, reasons) if offsets is None else []
    if offsets is not None:
        a, g, a_error = (offsets[name].reindex(sensors["name"]).to_numpy(np.float64) for name in offsets)
        value, error = calibrated(value, a, g).value, np.hypot(error, a_error) / g
        rows = _rows(sensors, steady, value, error, reasons, "calibrated") + [
            result_row(
                "thermocouple", "calibration_offset", a[k], a_error[k], "degC", sensor_id=int(sensor), form="consistent"
            )
            for k, sensor in enumerate(sensors["sensor_id"])
        ]
    told = [f"{name}: {reason}" for name, reason in zip(sensors["name"], reasons, strict=True)]
    notes = [f"excluded: {told[k]}" for k in np.flatnonzero(silent)]
    if not series.common:
        notes.append("the files of the sensors share no clock: simultaneous readings cannot be verified")
    # A sensor that still drifts spoils the map; one that reads nothing only leaves a hole in it.
    drifting = [k for k, reason in enumerate(reasons) if reason and not silent[k]]
    return SteadyState(sensors, value, error, rows, _worst_drift(drifting, told, steady), tuple(notes))


def _worst_drift(drifting: list[int], told: list[str], steady: SteadyMean) -> str:
    if not drifting:
        return ""
    worst = max(drifting, key=lambda k: np.nan_to_num(abs(steady.drift[k])))
    several = f"{len(drifting)} of {len(told)} sensors are not steady; the worst is " if len(drifting) > 1 else ""
    return several + told[worst]


def _no_position_reason(sensors: pd.DataFrame) -> str:
    other = sensors[sensors["x_mm"].notna() & sensors["y_mm"].notna()]
    if len(other):
        name, read = other.iloc[0][["name", "quantity"]]
        return (
            f"{len(other)} channels have a position on the die, but none measures temperature: {name} measures "
            f"{read}; if the log does not name the quantity, upload it with --column CHANNEL=temperature:degC"
        )
    several = int((sensors["quantity"] == "temperature").sum())
    return (
        f"none of the {several} temperature channels has a position on the die; upload the log with "
        "--position CHANNEL=X,Y in mm for each thermocouple"
    )


def _early_end_s(series: SensorSeries) -> Array:
    """By how much the readings of each sensor end before the last of all [s]; 0 where that is not known."""
    ends = np.max(np.where(np.isfinite(series.temperature_c), series.time_s, -np.inf), axis=1, initial=-np.inf)
    last = ends.max(initial=-np.inf)
    return np.where(np.isfinite(ends) & series.common, last - ends if np.isfinite(last) else 0.0, 0.0)


def _reason(series: SensorSeries, steady: SteadyMean, behind: Array, k: int) -> str | None:
    """Why a sensor has no settled value, with the figure."""
    drift, error, window = steady.drift[k], steady.drift_error[k], steady.window_s[k]
    if series.reasons[k]:
        return series.reasons[k]
    if steady.readings[k] < READINGS:
        return f"it has {counted(int(steady.readings[k]), 'reading')}; {READINGS} are needed"
    if behind[k] > WINDOW_S:
        return f"its readings end {behind[k]:.0f} s before those of the others"
    if steady.settled[k]:
        return None
    if np.isnan(drift):
        return f"its readings span less than {WINDOW_S:g} s, too short to detect drift"
    over = f"{drift:+.2f} degC/min (standard error {error:.2f}) over its last {window:g} s"
    if error <= DRIFT_LIMIT_C_PER_MIN / 3 or abs(drift) - NORMAL_95 * error >= DRIFT_LIMIT_C_PER_MIN:
        return f"it still drifts by {over}; the limit is {DRIFT_LIMIT_C_PER_MIN:g}"
    return (
        f"its noise is too high to detect drift: {over}; a standard error of {DRIFT_LIMIT_C_PER_MIN / 3:.2f} is "
        "needed, so log for longer"
    )


def _rows(
    sensors: pd.DataFrame, steady: SteadyMean, value: Array, error: Array, reasons: list[str | None], form: str = "raw"
) -> list[dict[str, Any]]:
    rows = []
    for k, (sensor, reason) in enumerate(zip(sensors["sensor_id"], reasons, strict=True)):
        flags = int(Flag.INPUT_SUSPECT) if reason else 0
        more = {"sensor_id": int(sensor), "form": form, "flags": flags, "reason": reason}
        rows.append(result_row("thermocouple", "steady_temperature", value[k], error[k], "degC", **more))
        drift, drift_error = steady.drift[k], steady.drift_error[k]
        if np.isfinite(drift):
            rows.append(
                result_row("thermocouple", "drift", drift, drift_error, "degC/min", sensor_id=int(sensor), form="raw")
            )
    return rows
