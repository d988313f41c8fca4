"""Idle power of a board, and how its temperature follows the power."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.power.idle_periods import idle_stretches, intersect_stretches
from profsvc.analysis.power.logs import Floats
from profsvc.analysis.power.sensor import PowerSensor, Series
from profsvc.analysis.power.window_sums import window_seconds
from profsvc.analysis.power.windows import IDLE, LEVELS, RUN
from profsvc.formulas.numerics.distributions import NORMAL_975
from profsvc.formulas.sensors.idle_power import fit_idle, idle_windows
from profsvc.formulas.thermal.time_constants.left_out_windows import left_out_errors
from profsvc.formulas.thermal.time_constants.rc_fit_under_load import LoadFit, fit_load
from profsvc.formulas.thermal.time_constants.rc_fits import (
    MAX_KNOWN_ERROR,
    at_rest,
    fit_decay,
    fit_rise,
    is_known_within,
)

THERMAL = "thermal"
LEFT_OUT, END_SLOPE = "left_out_error_c", "end_slope_c_per_min"
SETTLED, UNSETTLED = "settled", "still changing"
# Shorter windows do not show a time constant; of longer lists the longest windows are fitted.
MIN_WINDOW_S = 20.0
MAX_FITTED_WINDOWS = 4
MAX_LEFT_OUT_WINDOWS = 20
NO_IDLE_TIME = "the log has no idle indicator: log utilization.gpu together with the power, or mark the idle time"


def fit_idle_power(own: PowerSensor, table: pd.DataFrame) -> float:
    """Return the idle power [W] from the time in which no load ran and the board was cold; NaN where it never was."""
    begin, end = window_seconds(own, table)
    rest = (table["kind"] == IDLE).to_numpy()
    load = ~table["kind"].isin([RUN, IDLE]).to_numpy()
    begin_s, end_s, reason = _idle_stretches(own, table, (begin[load], end[load]), (begin[rest], end[rest]))
    if reason:
        own.model("idle", "idle_power_w", None, "W", reason=reason)
        return float("nan")
    series = own.companions.get("temperature")
    temperatures = (None, None) if series is None else (series.time_s, series.value)
    found = fit_idle(own.time_s[own.fresh], own.power_w[own.fresh], begin_s, end_s, *temperatures)
    more = {"flags": int(found.flags)}
    if not np.isfinite(found.power_w):
        own.model("idle", "idle_power_w", None, "W", reason="the log contains no time with a cold board", **more)
        return float("nan")
    lighter = table.loc[load & (table["settled_power_w"] < found.power_w).to_numpy()]
    if len(lighter):
        first = lighter.iloc[0]
        reason = (
            f"unloaded time consumes {found.power_w:.4g} W, but {first['window']} consumes "
            f"{first['settled_power_w']:.4g} W: it contains an unmarked load"
        )
        own.model("idle", "idle_power_w", None, "W", reason=reason, **more)
        return float("nan")
    own.model("idle", "idle_power_w", found.power_w, "W", low=found.low_w, high=found.high_w, **more)
    if np.isfinite(found.temperature_c):
        own.model("idle", "idle_temperature_c", found.temperature_c, "degC", **more)
    own.model("idle", "idle_time_s", found.duration_s, "s", **more)
    return found.power_w


def _idle_stretches(
    own: PowerSensor, table: pd.DataFrame, loads: tuple[Floats, Floats], rests: tuple[Floats, Floats]
) -> tuple[Floats, Floats, str]:
    """Stretches in which nothing ran and the board had cooled down, or the reason why they are unknown.

    What lies between marked loads is idle time, unless the board says that it was busy. What lies between the levels
    of a log is not: the power may just not have stayed anywhere.
    """
    nothing = np.empty(0)
    by_level = (table["source"] == LEVELS).any()
    if by_level or not loads[0].size:
        if not rests[0].size:
            return nothing, nothing, NO_IDLE_TIME if by_level else "no load is known, so idle time is unknown"
        edges = float(own.time_s[0]), float(own.time_s[-1])
        loads = np.append(edges[0], rests[1]), np.append(rests[0], edges[1])
        some = loads[1] > loads[0]
        loads = loads[0][some], loads[1][some]
    cold = idle_windows(*loads, float(own.time_s[0]), float(own.time_s[-1]), guard_s=own.late_s)
    if rests[0].size:
        return *intersect_stretches(cold, rests), ""
    silent = idle_stretches(own)
    return (*cold, "") if silent is None else (*intersect_stretches(cold, silent), "")


def fit_thermal(own: PowerSensor, table: pd.DataFrame) -> None:
    """Fit how the temperature follows the power: over the whole log, and over each long window alone."""
    series = own.companions.get("temperature")
    if series is None:
        own.model(THERMAL, "rc_rise_s", None, "s", reason=own.reasons["temperature"])
        return
    fit = _fit_whole_log(own)
    if not fit.refusal:
        _add_left_out_errors(own, table, fit)
    parts = table[(table["kind"] != RUN) & (table["duration_s"] >= MIN_WINDOW_S)].nlargest(
        MAX_FITTED_WINDOWS, "duration_s"
    )
    parts = parts.sort_index()
    for label, begin, end in zip(parts["window"], *window_seconds(own, parts), strict=True):
        which = slice(*np.searchsorted(series.time_s, np.array([begin, end])).tolist())
        _fit_window(own, str(label), series.time_s[which] - begin, series.value[which])


def _fit_window(own: PowerSensor, label: str, time_s: Floats, temperature_c: Floats) -> None:
    """Exponentials through the temperature of one window, whichever way it goes."""
    few = max(len(temperature_c) // 4, 1)
    falls = bool(np.median(temperature_c[-few:]) < np.median(temperature_c[:few])) if len(temperature_c) else False
    name, fit = ("rc_decay_s", fit_decay) if falls else ("rc_rise_s", fit_rise)
    found = fit(time_s, temperature_c)
    said = {"window": label, "flags": int(found.flags), "form": "one load"}
    end = at_rest(time_s, temperature_c)
    if np.isfinite(end.slope_c_per_min):
        reach = NORMAL_975 * end.standard_error_c_per_min
        ends = {"low": end.slope_c_per_min - reach, "high": end.slope_c_per_min + reach}
        about = {"window": label, "flags": int(end.flags), "form": SETTLED if end.saturated else UNSETTLED}
        own.model(THERMAL, END_SLOPE, end.slope_c_per_min, "degC/min", **ends, **about)
    if found.refusal:
        own.model(THERMAL, name, None, "s", reason=found.refusal, **said)
        return
    for k, which in enumerate(_constant_names(len(found.rc_s))):
        each = said | {"form": f"one load, {which}"}
        _add_constant(own, name, found.rc_s[k], found.low_s[k], found.high_s[k], each)
        own.model(THERMAL, "change_c", found.change_c[k], "degC", **each)
    _warn_wide_interval(own, label, {name: (found.rc_s, found.low_s, found.high_s)})
    own.model(THERMAL, "end_c", found.end_c, "degC", **said)


def _fit_whole_log(own: PowerSensor) -> LoadFit:
    """Constants and resistances from the whole log, whatever load it holds."""
    series = own.companions["temperature"]
    fresh = own.fresh
    time_s = own.time_s[fresh] - own.late_s
    found = fit_load(
        time_s, own.power_w[fresh], series.time_s, series.value,
        offset_error_s=_offset_error_s(own.offset_se_s, time_s, series), offset_estimated=own.offset_se_s > 0,
    )  # fmt: skip
    said = {"flags": int(found.flags), "form": "whole log"}
    if found.refusal:
        own.model(THERMAL, "rc_rise_s", None, "s", reason=found.refusal, **said)
        return found
    for k, which in enumerate(_constant_names(len(found.rc_rise_s))):
        each = said | {"form": f"whole log, {which}"}
        for name in ("rc_rise", "rc_decay"):
            value, low, high = (float(getattr(found, f"{name}_{end}")[k]) for end in ("s", "low_s", "high_s"))
            _add_constant(own, f"{name}_s", value, low, high, each)
        own.model(THERMAL, "resistance_c_per_w", found.resistance_c_per_w[k], "degC/W", **each)
    _warn_wide_interval(own, None, {"rc_rise_s": found[:3], "rc_decay_s": found[3:6]})
    own.model(THERMAL, "zero_power_c", found.zero_c, "degC", **said)
    own.model(THERMAL, "residual_c", found.residual_c, "degC", **said)
    return found


def _add_left_out_errors(own: PowerSensor, table: pd.DataFrame, fit: LoadFit) -> None:
    """How far the highest temperature of each load is predicted off by a model that was not fitted to it."""
    loads = table[~table["kind"].isin([RUN, IDLE])].nlargest(MAX_LEFT_OUT_WINDOWS, "duration_s").sort_index()
    series, fresh = own.companions["temperature"], own.fresh
    rise, decay = likely_constants(np.transpose(fit[:3]), np.transpose(fit[3:6]))
    errors = left_out_errors(
        own.time_s[fresh] - own.late_s, own.power_w[fresh], series.time_s, series.value, rise, decay,
        *window_seconds(own, loads),
    )  # fmt: skip
    for label, error in zip(loads["window"], errors.tolist(), strict=True):
        if np.isfinite(error):
            own.model(THERMAL, LEFT_OUT, error, "degC", window=str(label), form="whole log")


def likely_constants(rise: Floats, decay: Floats) -> tuple[Floats, Floats]:
    """Return time constants to compute with: the value, else what its bounds allow, else that of the other way.

    Each row has a value and the ends of its interval.

    >>> rise = [[35.0, 30.0, 40.0], [np.nan, 0.0, 0.2], [np.nan, 4.0, 9.0]]
    >>> likely_constants(np.array(rise), np.full((3, 3), np.nan))[1].tolist()
    [35.0, 0.1, 6.0]
    """
    found = []
    for value, low, high in (rise.T, decay.T):
        between = np.where(low > 0, np.sqrt(low * high), high / 2)
        found.append(np.where(np.isfinite(value), value, np.where(np.isfinite(high), between, low)))
    return found[0], np.where(np.isfinite(found[1]), found[1], found[0])


def _warn_wide_interval(own: PowerSensor, label: str | None, constants: Mapping[str, Sequence[Floats]]) -> None:
    """Say which constants are not known as well as is promised."""
    wide = [
        f"{name} {value:.3g} s ({low:.3g} to {high:.3g})"
        for name, ends in constants.items()
        for value, low, high in np.transpose(ends)[~is_known_within(ends[0], ends[1], ends[2])].tolist()
        if np.isfinite(value)
    ]
    if wide:
        where = f"in {label}" if label else "over the whole log"
        words = f"{where}, uncertain by more than {MAX_KNOWN_ERROR:.0%}: {', '.join(wide)}; more power steps would help"
        own.warn("wide_constant", words, len(wide), window=label)


def _constant_names(count: int) -> list[str]:
    """What the constants are called, the fastest first."""
    if count == 1:
        return ["one constant"]
    ends = {1: ", the fastest", count: ", the slowest"}
    return [f"constant {k} of {count}{ends.get(k, '')}" for k in range(1, count + 1)]


def _add_constant(own: PowerSensor, name: str, value: float, low: float, high: float, said: dict[str, Any]) -> None:
    """Keep one constant, or between what it lies."""
    known = {end: float(x) for end, x in (("low", low), ("high", high)) if np.isfinite(x)}
    if np.isfinite(value):
        own.model(THERMAL, name, value, "s", **known, **said)
        return
    words = {
        (): "the log does not determine it",
        ("low",): f"above {low:.3g} s",
        ("high",): f"below {high:.3g} s",
        ("low", "high"): f"below {high:.3g} s" if low == 0 else f"between {low:.3g} and {high:.3g} s",
    }
    own.model(THERMAL, name, None, "s", reason=words[tuple(known)], **known, **said)


def _offset_error_s(offset_se_s: float, time_s: Floats, series: Series) -> float:
    """Standard error of the offset between the logs: a reading is up to a poll old, of both."""
    polls = [float(np.median(np.diff(t))) if len(t) > 1 else 0.0 for t in (time_s, series.time_s)]
    return float(np.sqrt(offset_se_s**2 + sum(p**2 for p in polls) / 12))
