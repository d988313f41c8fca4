"""Samples of the temperature channels of a run as arrays: one row per channel, padded with NaN."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from profsvc.formulas.thermocouples.emf import emf_to_temperature

CLOCKS = ("time_ns", "local_ns", "elapsed_ns")
QUANTITIES = ("temperature", "voltage")
Array = NDArray[np.float64]


class Log(NamedTuple):
    """Sensors and samples of a run, with the columns of ``v1_sensors`` and ``v1_samples``."""

    sensors: pd.DataFrame
    samples: pd.DataFrame


class TimeRange(NamedTuple):
    """What of a log is taken: from and until when, on its own clock, in nanoseconds; None means unbounded."""

    begin_ns: int | None = None
    end_ns: int | None = None


class SensorSeries(NamedTuple):
    """Readings of the sensors: times from the first one on [s], values [degC], padded with NaN at the end.

    ``reasons`` say of a sensor why it has no value; ``common`` is whether the sensors share a clock.
    """

    sensors: pd.DataFrame
    time_s: Array
    temperature_c: Array
    reasons: tuple[str | None, ...]
    common: bool


def sensors_on_die(sensors: pd.DataFrame) -> pd.DataFrame:
    """Return the channels of thermocouples that have a place on the die."""
    wanted = sensors["quantity"].isin(QUANTITIES) & sensors["x_mm"].notna() & sensors["y_mm"].notna()
    return sensors[wanted].reset_index(drop=True)


def sensors_named(sensors: pd.DataFrame, names: Collection[str]) -> pd.DataFrame:
    """Return the channels of thermocouples that have these names."""
    wanted = sensors["quantity"].isin(QUANTITIES) & sensors["name"].isin(list(names))
    return sensors[wanted].reset_index(drop=True)


def sensor_series(
    sensors: pd.DataFrame, samples: pd.DataFrame, cut: TimeRange, reference_c: float | None
) -> SensorSeries:
    """Return the readings of the sensors as temperatures; ``reference_c`` makes them of type J from those in V."""
    row_of = pd.Series(np.arange(len(sensors)), index=sensors["sensor_id"].astype("int64"))
    rows = samples.loc[samples["value"].notna() & samples["sensor_id"].isin(row_of.index)]
    clock = next((name for name in CLOCKS if rows[name].notna().all()), None)
    rows = rows[rows["elapsed_ns"].notna()] if clock is None else rows
    clock = clock or "elapsed_ns"
    if cut.begin_ns is not None:
        rows = rows[rows[clock] >= cut.begin_ns]
    if cut.end_ns is not None:
        rows = rows[rows[clock] <= cut.end_ns]
    row = row_of.loc[rows["sensor_id"].astype("int64")].to_numpy(np.int64)
    place = pd.Series(row).groupby(row).cumcount().to_numpy(np.int64)
    time_ns = rows[clock].to_numpy(np.int64)
    t, T = (np.full((len(sensors), int(place.max(initial=-1)) + 1), np.nan) for _ in range(2))
    if len(rows):
        t[row, place] = (time_ns - time_ns.min()) / 1e9
        T[row, place] = rows["value"].to_numpy(np.float64)
    reasons = [_to_celsius(T, k, unit, reference_c) for k, unit in enumerate(sensors["unit"])]
    common = clock != "elapsed_ns" or sensors["upload_id"].nunique() < 2
    return SensorSeries(sensors, t, T, tuple(reasons), common)


def _to_celsius(T: Array, k: int, unit: str | None, reference_c: float | None) -> str | None:
    """Turn a row into degC; return why it cannot be."""
    if unit == "degC":
        return None
    if unit == "V" and reference_c is not None:
        T[k] = emf_to_temperature(T[k], reference_c).value
        return None
    T[k] = np.nan
    return f"its unit is {unit}, not \u00b0C; log temperatures, or give the temperature of the reference junction"
