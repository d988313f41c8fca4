"""Power of windows at one temperature: the coefficient of the board from its own loads, or why there is none."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc.analysis.power.logs import Floats
from profsvc.analysis.power.options import Options
from profsvc.analysis.power.sensor import PowerSensor
from profsvc.analysis.power.thermal.coefficient import (
    HOW_TO_MEASURE,
    fit_coefficients,
    warn_unlogged_fan,
)
from profsvc.analysis.power.thermal.earlier_runs import CLOCK_TOLERANCE, NO_EARLIER_RUNS, EarlierRuns
from profsvc.analysis.power.window_sums import window_slopes
from profsvc.analysis.power.windows import IDLE, RUN
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.sensors.energy_windows import WindowEnergy
from profsvc.formulas.sensors.resampling import interpolate_at
from profsvc.formulas.thermal.coefficient.temperature_coefficient import UNKNOWN_SIGN, Coefficient
from profsvc.formulas.thermal.coefficient.temperature_correction import correct_to_reference, corrected_mean

# A share of the power that no sensor of a board is right within: what moves less needs no sign.
NEGLIGIBLE_POWER_SHARE = 0.005
CORRECTED_COLUMNS = (
    "reference_temperature_c", "coefficient_w_per_c", "coefficient_low", "coefficient_high", "corrected_power_w",
    "corrected_power_low_w", "corrected_power_high_w", "corrected_energy_j", "corrected_energy_low_j",
    "corrected_energy_high_j", "corrected_slope_w_per_s", "corrected_slope_se_w_per_s",
)  # fmt: skip


def correct_windows(
    own: PowerSensor, table: pd.DataFrame, found: WindowEnergy, options: Options, known: EarlierRuns = NO_EARLIER_RUNS
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the windows with their power at one temperature, and the coefficients that were fitted or refused.

    A coefficient holds at one clock: windows of each clock have their own. Where there is none, the windows say why.
    """
    for name in CORRECTED_COLUMNS:
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
        for part, fit in fit_coefficients(own, table, temperature, places, clock, known, rows):
            _correct(own, table, temperature, found, part, fit, reference)
            if fit.refusal and (table["kind"].iloc[part] != IDLE).any():
                own.warn("no_coefficient", f"{fit.refusal}; {HOW_TO_MEASURE}")
    if table["corrected_power_w"].notna().any():
        warn_unlogged_fan(own)
    whole = table["kind"] == RUN
    table.loc[whole, "reason"] = "a whole run contains several loads; see its windows"
    table.loc[whole, "reference_temperature_c"] = np.nan
    return table, pd.DataFrame(rows)


def _at_power(own: PowerSensor) -> Floats:
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
        fresh = (
            np.r_[True, ~(np.abs(known[1:] / known[:-1] - 1) < CLOCK_TOLERANCE)] if len(known) else np.zeros(0, bool)
        )
    fresh[1:] &= ~(np.isnan(known[1:]) & np.isnan(known[:-1])) if len(known) else True
    groups = np.split(windows[order], np.flatnonzero(fresh)[1:])
    every = table["clock_hz"].to_numpy(np.float64)
    return [(float(np.mean(every[group])), group) for group in groups if len(group)]


def _correct(
    own: PowerSensor,
    table: pd.DataFrame,
    temperature: Floats,
    found: WindowEnergy,
    places: npt.NDArray[np.intp],
    fit: Coefficient,
    reference: float,
) -> None:
    """Put windows at the reference temperature.

    Where the sign of the coefficient is not known, those are whose power moves by next to nothing either way.
    """
    if fit.refusal:
        reach = max(abs(fit.low_w_per_c), abs(fit.high_w_per_c)) if fit.refusal.endswith(UNKNOWN_SIGN) else np.nan
        power, mean = (table[name].to_numpy(np.float64)[places] for name in ("mean_power_w", "mean_temperature_c"))
        most = reach * np.abs(mean - reference)
        told = np.isfinite(most)
        reasons = [
            f"{fit.refusal}; the correction of this window would be up to {watts:.2g} W" for watts in most.tolist()
        ]
        table.loc[table.index[places], "reason"] = np.where(told, np.array(reasons, object), fit.refusal)
        places, fit = places[told & (most <= NEGLIGIBLE_POWER_SHARE * power)], fit._replace(refusal="")
        table.loc[table.index[places], "reason"] = None
    if not len(places):
        return
    rows = table.index[places]
    error = table["power_sd_w"].to_numpy(np.float64)[places] / np.sqrt(np.maximum(found.readings[places], 1))
    mean = table["mean_temperature_c"].to_numpy(np.float64)[places]
    settled = table["settled_power_w"].notna().to_numpy()[places]
    power = np.where(settled, table["mean_power_w"].to_numpy(np.float64)[places], np.nan)
    at = correct_to_reference(power, mean, fit, reference, power_error_w=np.nan_to_num(error))
    duration = table["duration_s"].to_numpy(np.float64)[places]
    one = corrected_mean(at, duration, np.arange(len(places)))
    table.loc[rows, list(CORRECTED_COLUMNS[1:4])] = [fit.coefficient_w_per_c, fit.low_w_per_c, fit.high_w_per_c]
    for name, values in zip(CORRECTED_COLUMNS[4:7], (at.power_w, at.low_w, at.high_w), strict=True):
        table.loc[rows, name] = values
    # What the correction takes off the mean it takes off the energy, which also holds the edges of the window.
    energy = table["energy_j"].to_numpy(np.float64)[places]
    for name, values in zip(CORRECTED_COLUMNS[7:10], (one.energy_j, one.energy_low_j, one.energy_high_j), strict=True):
        table.loc[rows, name] = energy + values - power * duration
    readings = correct_to_reference(own.power_w, temperature, fit, reference).power_w
    edges = found.mean_begin_s[places], found.mean_end_s[places]
    slope, se = window_slopes(own.time_s[own.fresh], readings[own.fresh], *edges)
    table.loc[rows, CORRECTED_COLUMNS[10]], table.loc[rows, CORRECTED_COLUMNS[11]] = slope, se
    table.loc[rows[~np.isfinite(at.power_w)], "reason"] = (
        "the power did not settle in this window, or no temperature was logged"
    )
    far = (at.flags & np.uint32(Flag.EXTRAPOLATED)) > 0
    for label, away in zip(table["window"].iloc[places[far]], (mean - reference)[far].tolist(), strict=True):
        words = f"{away:+.1f} \u00b0C from the reference, but the coefficient covers only {fit.range_c:.1f} \u00b0C"
        own.warn("extrapolated", words, away, "degC", window=label)
