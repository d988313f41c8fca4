"""Power, energy, temperature and clock of each window of a power log: what was measured, before any correction."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.power.logs import Floats
from profsvc.analysis.power.sensor import PowerSensor, Series
from profsvc.analysis.power.windows import RUN
from profsvc.formulas.power.energy import energy_delay
from profsvc.formulas.sensors.energy_windows import WindowEnergy, counter_energy, counter_ratio, window_energy
from profsvc.formulas.sensors.plateaus import plateau_slope

Places = npt.NDArray[np.intp]
# Below this share of a window covered by readings its energy is that of a part.
MIN_COVERED_SHARE = 0.999


def window_seconds(own: PowerSensor, windows: pd.DataFrame) -> tuple[Floats, Floats]:
    """Return begin and end of windows in seconds since the power log began."""
    begin, end = (windows[name].to_numpy(np.int64) - np.int64(own.origin_ns) for name in ("begin_ns", "end_ns"))
    return begin / 1e9, end / 1e9


def readings_in_windows(time_s: Floats, begin_s: Floats, end_s: Floats) -> tuple[Places, Places]:
    """Return the readings of each window, one window after the other, and which window each is of.

    >>> readings_in_windows(np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0]), np.array([2.0, 1.0]))
    (array([1, 2, 0, 1]), array([0, 0, 1, 1]))
    """
    first = np.searchsorted(time_s, begin_s)
    count = np.maximum(np.searchsorted(time_s, end_s, side="right") - first, 0)
    count[~(end_s >= begin_s)] = 0
    window = np.repeat(np.arange(len(first)), count)
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count), window


def sum_windows(own: PowerSensor, windows: pd.DataFrame) -> tuple[pd.DataFrame, WindowEnergy]:
    """Return one row per window with what was measured in it, and the sums that the correction goes on from."""
    begin, end = window_seconds(own, windows)
    found = window_energy(own.time_s, own.power_w, begin, end, averaging_s=own.averaging_s, lag_s=own.lag_s)
    table = windows.assign(
        sensor_id=own.log.sensor_id,
        duration_s=end - begin,
        mean_power_w=_over_time(found),
        settled_power_w=found.mean_w,
        power_sd_w=found.sd_w,
        energy_j=np.where(found.covered_s >= MIN_COVERED_SHARE * (end - begin), found.energy_j, np.nan),
    )
    places, window = readings_in_windows(own.time_s, begin, end)
    table["readings"] = np.bincount(window[own.fresh[places]], minlength=len(table)).astype(np.int64)
    edges = (np.where(table["kind"] == RUN, np.nan, edge) for edge in (found.mean_begin_s, found.mean_end_s))
    slope, se = window_slopes(own.time_s[own.fresh], own.power_w[own.fresh], *edges)
    table["slope_w_per_s"], table["slope_se_w_per_s"] = slope, se
    _temperatures(own, table, begin, end)
    _clocks(own, table, begin, end)
    _counter(own, table, begin, end)
    launches = table["launches"].astype("float64").where(lambda n: n > 0)
    table["energy_per_launch_j"] = table["energy_j"] / launches
    for column, exponent in (("energy_delay_js", 1), ("energy_delay2_js2", 2)):
        table[column] = energy_delay(table["energy_j"].to_numpy(), table["duration_s"].to_numpy(), exponent).value
    _warn_partial_windows(own, table, found, end - begin)
    return table, found


def window_slopes(time_s: Floats, power_w: Floats, begin_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """Return the drift of the power in each window [W/s] and its standard error; NaN for edges that are NaN."""
    slope, se = np.full((2, len(begin_s)), np.nan)
    places, window = readings_in_windows(time_s, begin_s, end_s)
    if places.size:
        fitted = plateau_slope(time_s[places], power_w[places], window)
        filled = np.unique(window)
        slope[filled], se[filled] = fitted.slope_w_per_s, fitted.se_w_per_s
    return slope, se


def _over_time(found: WindowEnergy) -> Floats:
    """Mean of what was read: its integral over the time that the readings cover, and so the energy over the time."""
    with np.errstate(all="ignore"):
        return np.asarray(np.where(found.covered_s > 0, found.energy_j / found.covered_s, np.nan))


def _mean(series: Series, begin: Floats, end: Floats) -> Floats:
    """Mean of a companion over each window, weighted by time."""
    return _over_time(window_energy(series.time_s, series.value, begin, end))


def window_statistic(series: Series, begin: Floats, end: Floats, over: Callable[[Floats], Any]) -> Floats:
    """Return a figure over the readings of each window; NaN where there is none."""
    places, window = readings_in_windows(series.time_s, begin, end)
    parts = np.split(series.value[places], np.searchsorted(window, np.arange(1, len(begin))))
    return np.array([over(part) if part.size else np.nan for part in parts])


def _temperatures(own: PowerSensor, table: pd.DataFrame, begin: Floats, end: Floats) -> None:
    series = own.companions.get("temperature")
    names = ("mean_temperature_c", "lowest_temperature_c", "highest_temperature_c")
    if series is None:
        table[list(names)] = np.nan
        return
    table["temperature_sensor_id"] = series.sensor_id
    table[names[0]] = _mean(series, begin, end)
    places, window = readings_in_windows(series.time_s, begin, end)
    for name, ufunc in zip(names[1:], (np.fmin, np.fmax), strict=True):
        extreme = np.full(len(table), np.nan)
        ufunc.at(extreme, window, series.value[places])
        table[name] = extreme


def _clocks(own: PowerSensor, table: pd.DataFrame, begin: Floats, end: Floats) -> None:
    """Mean clock of each window; flag the loads in which it moved, or was held down."""
    table["mean_clock_hz"], table["slowed_share"] = np.nan, 0.0
    table["clock_hz"] = np.nan
    series = own.companions.get("clock")
    if series is not None:
        table["mean_clock_hz"] = _mean(series, begin, end)
        table["clock_hz"] = window_statistic(series, begin, end, np.median)
    slow = own.companions.get("slowed")
    if slow is None:
        return
    places, window = readings_in_windows(slow.time_s, begin, end)
    held = np.bincount(window, weights=slow.value[places], minlength=len(table)).astype(np.float64)
    share = held / np.maximum(np.bincount(window, minlength=len(table)), 1)
    table["slowed_share"] = share
    for row in np.flatnonzero((share > 0) & (table["kind"] != RUN)):
        words = f"the board lowered its clock in {100 * share[row]:.3g} % of the readings"
        own.warn("throttled", words, float(share[row]), "1", window=table["window"].iloc[row])


def _counter(own: PowerSensor, table: pd.DataFrame, begin: Floats, end: Floats) -> None:
    """Energy by the board's own counter, and the ratio of ours to it."""
    table["counter_energy_j"], table["counter_ratio"] = np.nan, np.nan
    series = own.companions.get("energy")
    if series is None:
        return
    counted = counter_energy(series.time_s, series.value, begin, end)
    ratio = counter_ratio(table["energy_j"].to_numpy(), counted.energy_j, counted.error_j)
    table["counter_energy_j"], table["counter_ratio"] = counted.energy_j, ratio.ratio
    if counted.resets:
        own.warn("counter_reset", f"{series.name} was reset {counted.resets} times", counted.resets, "1")
    apart = ~ratio.agrees & ((ratio.high < 1) | (ratio.low > 1)) & (table["kind"] != RUN).to_numpy()
    for row in np.flatnonzero(apart):
        away = 100 * (ratio.ratio[row] - 1)
        words = f"integrated power is {abs(away):.1f} % {'more' if away > 0 else 'less'} energy than {series.name}"
        late = f"; {own.log.name} is delayed by {own.late_s:.2f} s" if own.late_s else ""
        label = table["window"].iloc[row]
        own.warn("counter_disagrees", words + late, float(ratio.ratio[row]), "1", window=label)


def _warn_partial_windows(own: PowerSensor, table: pd.DataFrame, found: WindowEnergy, duration: Floats) -> None:
    """Flag windows that the log does not cover, or that are too short for a mean."""
    for row in np.flatnonzero(found.covered_s < MIN_COVERED_SHARE * duration):
        words = f"the log covers {found.covered_s[row]:.4g} of {duration[row]:.4g} s"
        own.warn("part_of_window", words, float(found.covered_s[row]), "s", window=table["window"].iloc[row])
    for row in np.flatnonzero(~np.isfinite(found.mean_w) & (found.covered_s >= MIN_COVERED_SHARE * duration)):
        before = own.averaging_s + own.lag_s
        words = (
            f"{duration[row]:.3g} s is too short to settle: {before:.3g} s of the readings still include earlier power"
        )
        own.warn("too_short", words, float(duration[row]), "s", window=table["window"].iloc[row])
