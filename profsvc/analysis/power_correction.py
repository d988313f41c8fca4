"""Power of windows at one temperature: the coefficient of the board from its own loads, or why there is none."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.power_logs import Floats
from profsvc.analysis.power_sensor import Measured, Options
from profsvc.analysis.power_sums import inside, slopes
from profsvc.analysis.power_windows import IDLE, RUN
from profsvc.errors import counted
from profsvc.formulas.coefficient import Coefficient, fit_coefficient
from profsvc.formulas.correction import correct_to_reference, corrected_mean
from profsvc.formulas.flags import Flag
from profsvc.formulas.join import interpolate_at
from profsvc.formulas.windows import WindowEnergy

# Clocks that differ by less are one clock.
SAME_CLOCK = 0.01
# A share of a window in which the clock was held down, from which it is no constant load.
SLOWED = 0.02
WINDOW = (
    "reference_temperature_c", "coefficient_w_per_c", "coefficient_low", "coefficient_high", "corrected_power_w",
    "corrected_power_low_w", "corrected_power_high_w", "corrected_energy_j", "corrected_energy_low_j",
    "corrected_energy_high_j", "corrected_slope_w_per_s", "corrected_slope_se_w_per_s",
)  # fmt: skip


def corrected(
    own: Measured, table: pd.DataFrame, found: WindowEnergy, options: Options
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the windows with their power at one temperature, and the coefficients that were fitted or refused.

    A coefficient holds at one clock: windows of each clock have their own. Where there is none, the windows say why.
    """
    for name in WINDOW:
        table[name] = np.nan
    table["reason"] = None
    if (why := own.reasons.get("temperature")) is not None:
        table["reason"] = why
        return table, pd.DataFrame()
    temperature = _at_power(own)
    reference = _reference(table, options)
    table["reference_temperature_c"] = reference
    rows: list[dict[str, Any]] = []
    for clock, places in _clocks(table):
        fit = _fitted(own, table, temperature, places, rows, clock)
        _apply(own, table, temperature, found, places, fit, reference)
    whole = table["kind"] == RUN
    table.loc[whole, "reason"] = "a run holds several loads: see its windows"
    table.loc[whole, "reference_temperature_c"] = np.nan
    return table, pd.DataFrame(rows)


def _at_power(own: Measured) -> Floats:
    """Temperature at the time that each reading of the power is about."""
    series = own.companions["temperature"]
    return interpolate_at(own.time_s - own.late_s, series.time_s, series.value).value


def _reference(table: pd.DataFrame, options: Options) -> float:
    """The temperature to correct to: as the user says, else the median of the loads, else of all windows."""
    if options.reference_temperature_c is not None:
        return options.reference_temperature_c
    means = table.loc[~table["kind"].isin([RUN, IDLE]), "mean_temperature_c"].dropna()
    known = means if len(means) else table["mean_temperature_c"].dropna()
    return float(known.median()) if len(known) else float("nan")


def _clocks(table: pd.DataFrame) -> list[tuple[float, npt.NDArray[np.intp]]]:
    """Windows of each clock [Hz]; those with no known clock are one group."""
    windows = np.flatnonzero(table["kind"] != RUN)
    clock = table["clock_hz"].to_numpy(np.float64)[windows]
    order = np.argsort(clock, kind="stable")
    known = clock[order]
    with np.errstate(all="ignore"):
        fresh = np.r_[True, ~(np.abs(known[1:] / known[:-1] - 1) < SAME_CLOCK)] if len(known) else np.zeros(0, bool)
    fresh[1:] &= ~(np.isnan(known[1:]) & np.isnan(known[:-1])) if len(known) else True
    groups = np.split(windows[order], np.flatnonzero(fresh)[1:])
    every = table["clock_hz"].to_numpy(np.float64)
    return [(float(np.mean(every[group])), group) for group in groups if len(group)]


def _fitted(
    own: Measured,
    table: pd.DataFrame,
    temperature: Floats,
    places: npt.NDArray[np.intp],
    rows: list[dict[str, Any]],
    clock: float,
) -> Coefficient:
    """Fit the coefficient of one clock, and keep the rows that tell of it."""
    chosen = places[table["slowed_share"].to_numpy(np.float64)[places] <= SLOWED]
    begin, end = ((table[name].to_numpy(np.int64)[chosen] - own.origin_ns) / 1e9 for name in ("begin_ns", "end_ns"))
    fresh = np.flatnonzero(own.fresh)
    which, window = inside(own.time_s[fresh], begin + own.averaging_s + own.lag_s, end)
    at = fresh[which]
    loads = pd.factorize(table["load"].iloc[chosen])[0]
    fan = _fan(own, at)
    fit = fit_coefficient(
        own.time_s[at], own.power_w[at], temperature[at], window, load=loads[window], offset_error_s=own.offset_se_s,
        **fan,
    )  # fmt: skip
    common: dict[str, Any] = {
        "sensor_id": own.log.sensor_id,
        "temperature_sensor_id": own.companions["temperature"].sensor_id,
        "clock_hz": clock,
        "temperature_low_c": fit.temperature_low_c,
        "temperature_high_c": fit.temperature_high_c,
        "range_c": fit.range_c,
        "segments": fit.segments,
        "readings": fit.readings,
    }
    consistent = {"law": fit.law, "form": "consistent", "used": int(not fit.refusal), "reason": fit.refusal or None}
    consistent |= {"coefficient_w_per_c": fit.coefficient_w_per_c, "coefficient_per_c": fit.rate_per_c}
    rows.append(common | consistent | {"coefficient_low": fit.low_w_per_c, "coefficient_high": fit.high_w_per_c})
    published = {"law": "endpoint", "form": "as_published", "used": 0, "reason": "the ends alone have no interval"}
    if np.isfinite(fit.published_w_per_c):
        rows.append(common | published | {"coefficient_w_per_c": fit.published_w_per_c})
    if fit.segments_left_out:
        words = left_out(fit.segments_left_out, clock)
        own.beware("segments_left_out", words, float(fit.segments_left_out), "1")
    return fit


def left_out(windows: int, clock_hz: float) -> str:
    """Say how many windows are not fit for a coefficient; the clock is NaN where the log has none.

    >>> left_out(1, 1.98e9), left_out(7, float("nan"))[:28]
    ('1 window at 1980 MHz too short or unsteady for a coefficient', '7 windows too short or unste')
    """
    where = f" at {clock_hz / 1e6:.0f} MHz" if np.isfinite(clock_hz) else ""
    return f"{counted(windows, 'window')}{where} too short or unsteady for a coefficient"


def _fan(own: Measured, at: npt.NDArray[np.intp]) -> dict[str, Any]:
    """The speed of the fan as a regressor, where the board has one and it moved."""
    series = own.companions.get("fan")
    if series is None:
        return {}
    speed = interpolate_at(own.time_s[at], series.time_s, series.value).value
    if not at.size or not np.isfinite(speed).all() or np.ptp(speed) == 0:
        return {}
    return {"fan_speed": speed, "fan": "removed"}


def _apply(
    own: Measured,
    table: pd.DataFrame,
    temperature: Floats,
    found: WindowEnergy,
    places: npt.NDArray[np.intp],
    fit: Coefficient,
    reference: float,
) -> None:
    """Put the windows of one clock at the reference temperature."""
    rows = table.index[places]
    if fit.refusal:
        table.loc[rows, "reason"] = fit.refusal
        return
    error = table["power_sd_w"].to_numpy(np.float64)[places] / np.sqrt(np.maximum(found.readings[places], 1))
    mean = table["mean_temperature_c"].to_numpy(np.float64)[places]
    settled = table["settled_power_w"].notna().to_numpy()[places]
    power = np.where(settled, table["mean_power_w"].to_numpy(np.float64)[places], np.nan)
    at = correct_to_reference(power, mean, fit, reference, power_error_w=np.nan_to_num(error))
    duration = table["duration_s"].to_numpy(np.float64)[places]
    one = corrected_mean(at, duration, np.arange(len(places)))
    table.loc[rows, list(WINDOW[1:4])] = [fit.coefficient_w_per_c, fit.low_w_per_c, fit.high_w_per_c]
    for name, values in zip(WINDOW[4:7], (at.power_w, at.low_w, at.high_w), strict=True):
        table.loc[rows, name] = values
    # What the correction takes off the mean it takes off the energy, which also holds the edges of the window.
    energy = table["energy_j"].to_numpy(np.float64)[places]
    for name, values in zip(WINDOW[7:10], (one.energy_j, one.energy_low_j, one.energy_high_j), strict=True):
        table.loc[rows, name] = energy + values - power * duration
    readings = correct_to_reference(own.power_w, temperature, fit, reference).power_w
    edges = found.mean_begin_s[places], found.mean_end_s[places]
    slope, se = slopes(own.time_s[own.fresh], readings[own.fresh], *edges)
    table.loc[rows, WINDOW[10]], table.loc[rows, WINDOW[11]] = slope, se
    table.loc[rows[~np.isfinite(at.power_w)], "reason"] = (
        "the power did not settle in this window, or it has no temperature"
    )
    far = (at.flags & np.uint32(Flag.EXTRAPOLATED)) > 0
    for label, away in zip(table["window"].iloc[places[far]], (mean - reference)[far].tolist(), strict=True):
        words = (
            f"{away:+.1f} \u00b0C from the reference, but the coefficient was seen over {fit.range_c:.1f} \u00b0C only"
        )
        own.beware("extrapolated", words, away, "degC", window=label)
