"""The calibration of thermocouples from a run between plates of uniform temperature; or why there is none."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from profsvc.analysis.thermocouples.series import Array, Log, SensorSeries, TimeRange, sensor_series, sensors_named
from profsvc.errors import counted
from profsvc.formulas.thermocouples.calibration import MIN_RANGE_C, RESIDUAL_LIMIT_C, Calibration, calibrate
from profsvc.formulas.thermocouples.emf import READINGS


def plate_offsets(log: Log, names: Collection[str], gain: bool, reference_c: float | None) -> pd.DataFrame | str:
    """Return offset_c, gain and error_c by name of channel, of those channels; or the reason why there are none.

    Files that each hold all channels are plates of different temperature, one each; a channel in one file only is
    read on one plate.
    """
    sensors = sensors_named(log.sensors, names)
    if absent := sorted(set(names) - set(sensors["name"])):
        return f"it has no channel {', '.join(map(repr, absent))}; the channels of both runs must have the same names"
    if sensors["name"].nunique() < 2:
        return "it needs at least two channels to compare"
    plates = _plates(sensors)
    if isinstance(plates, str):
        return plates
    tables = []
    for of_plate in plates:
        series = sensor_series(of_plate, log.samples, TimeRange(), reference_c)
        if wrong := [f"{n}: {r}" for n, r in zip(of_plate["name"], series.reasons, strict=True) if r]:
            return "; ".join(wrong)
        if not series.common:
            return "its files share no clock; give their --timezone, or log all channels in one file"
        tables.append(_on_one_clock(series))
    order = list(plates[0]["name"])
    plate = np.repeat(np.arange(len(tables)), [t.size for t, _ in tables])
    time_s, T = np.concatenate([t for t, _ in tables]), np.concatenate([values for _, values in tables], axis=1)
    fit = calibrate(time_s, T, plate, gain=gain)
    columns = {"offset_c": fit.offset_c, "gain": fit.gain, "error_c": fit.standard_error_c}
    return _failure_reason(order, fit) or pd.DataFrame(columns, index=pd.Index(order))


def _plates(sensors: pd.DataFrame) -> list[pd.DataFrame] | str:
    """Sensors of each plate, in one order of names."""
    ordered = sensors.sort_values(["name", "sensor_id"], kind="stable")
    if not ordered["name"].duplicated().any():
        return [ordered.reset_index(drop=True)]
    files = [group.reset_index(drop=True) for _, group in ordered.groupby("upload_id")]
    first = list(files[0]["name"])
    if any(list(group["name"]) != first or group["name"].duplicated().any() for group in files):
        return "channel names repeat across files, but not every file has all channels exactly once"
    return files


def _on_one_clock(series: SensorSeries) -> tuple[Array, Array]:
    """Times of the sensor with the fewest readings, and all sensors there: loggers read channels one after another."""
    read = np.isfinite(series.temperature_c)
    if not read.any(axis=1).all():
        return np.empty(0), np.empty((len(read), 0))
    least = int(np.argmin(read.sum(axis=1)))
    at = np.sort(series.time_s[least][read[least]])
    T = np.empty((len(read), at.size))
    for k, known in enumerate(read):
        order = np.argsort(series.time_s[k][known], kind="stable")
        t, values = series.time_s[k][known][order], series.temperature_c[k][known][order]
        T[k] = np.interp(at, t, values, left=np.nan, right=np.nan)
    return at, T


def _failure_reason(names: list[str], fit: Calibration) -> str:
    """Why the fit is not used, with the figure; empty where it is."""
    if fit.passed:
        return ""
    if (few := fit.readings.min(initial=READINGS)) < READINGS:
        settled = counted(int(few), "settled reading")
        return f"one of its plates has {settled} shared by all channels; {READINGS} are needed"
    if not fit.settled.all():
        return "the differences between its channels never settle; wait until the plate temperature is steady"
    residual = np.nan_to_num(fit.residual_c)
    worst = int(residual.argmax())
    if residual[worst] >= RESIDUAL_LIMIT_C:
        return (
            f"{names[worst]} is off by {residual[worst]:.2f} \u00b0C from the steady mean of all; "
            f"less than {RESIDUAL_LIMIT_C:g} is allowed"
        )
    return f"a gain needs at least two plates with steady temperatures {MIN_RANGE_C:g} \u00b0C apart"
