"""Idle power of a board, and how its temperature follows the power."""

import numpy as np
import pandas as pd

from profsvc.analysis.power_logs import Floats
from profsvc.analysis.power_sensor import Measured
from profsvc.analysis.power_sums import seconds
from profsvc.analysis.power_windows import IDLE, RUN
from profsvc.formulas.idle import fit_idle, idle_windows
from profsvc.formulas.thermal_fits import fit_decay, fit_rise
from profsvc.formulas.thermal_load import fit_load

THERMAL = "thermal"
# Shorter windows do not show a time constant; of longer lists the longest windows are fitted.
SHORTEST_S = 20.0
MOST_WINDOWS = 4


def idle(own: Measured, table: pd.DataFrame) -> float:
    """Return the idle power [W] from the time in which no load ran and the board was cold; NaN where it never was."""
    begin, end = seconds(own, table)
    load = ~table["kind"].isin([RUN, IDLE]).to_numpy()
    if not load.any():
        own.model("idle", "idle_power_w", None, "W", reason="no load is known, so no idle time either")
        return float("nan")
    series = own.companions.get("temperature")
    cold = idle_windows(begin[load], end[load], float(own.time_s[0]), float(own.time_s[-1]), guard_s=own.late_s)
    temperatures = (None, None) if series is None else (series.time_s, series.value)
    found = fit_idle(own.time_s[own.fresh], own.power_w[own.fresh], cold.begin_s, cold.end_s, *temperatures)
    more = {"flags": int(found.flags)}
    if not np.isfinite(found.power_w):
        own.model("idle", "idle_power_w", None, "W", reason="the log holds no time in which the board was cold", **more)
        return float("nan")
    own.model("idle", "idle_power_w", found.power_w, "W", low=found.low_w, high=found.high_w, **more)
    if np.isfinite(found.temperature_c):
        own.model("idle", "idle_temperature_c", found.temperature_c, "degC", **more)
    own.model("idle", "idle_time_s", found.duration_s, "s", **more)
    return found.power_w


def thermal(own: Measured, table: pd.DataFrame) -> None:
    """Fit how the temperature follows the power: over the whole log, and over each long window alone."""
    series = own.companions.get("temperature")
    if series is None:
        own.model(THERMAL, "rc_rise_s", None, "s", reason=own.reasons["temperature"])
        return
    _whole(own)
    parts = table[(table["kind"] != RUN) & (table["duration_s"] >= SHORTEST_S)].nlargest(MOST_WINDOWS, "duration_s")
    parts = parts.sort_index()
    for label, begin, end in zip(parts["window"], *seconds(own, parts), strict=True):
        which = slice(*np.searchsorted(series.time_s, np.array([begin, end])).tolist())
        _alone(own, str(label), series.time_s[which] - begin, series.value[which])


def _alone(own: Measured, label: str, time_s: Floats, temperature_c: Floats) -> None:
    """One exponential through the temperature of one window, whichever way it goes."""
    few = max(len(temperature_c) // 4, 1)
    falls = bool(np.median(temperature_c[-few:]) < np.median(temperature_c[:few])) if len(temperature_c) else False
    name, fit = ("rc_decay_s", fit_decay) if falls else ("rc_rise_s", fit_rise)
    found = fit(time_s, temperature_c)
    said = {"window": label, "flags": int(found.flags), "form": "one constant, one load"}
    if found.refusal:
        own.model(THERMAL, name, None, "s", reason=found.refusal, **said)
        return
    own.model(THERMAL, name, found.rc_s, "s", low=found.low_s, high=found.high_s, **said)
    own.model(THERMAL, "change_c", found.change_c, "degC", **said)
    own.model(THERMAL, "end_c", found.end_c, "degC", **said)


def _whole(own: Measured) -> None:
    """Constants and resistance from the whole log, whatever load it holds."""
    series = own.companions["temperature"]
    fresh = own.fresh
    found = fit_load(own.time_s[fresh] - own.late_s, own.power_w[fresh], series.time_s, series.value)
    said = {"flags": int(found.flags), "form": "two constants" if np.isfinite(found.second_rise_s) else "one constant"}
    if found.refusal:
        own.model(THERMAL, "rc_rise_s", None, "s", reason=found.refusal, **said)
        return
    for name in ("rc_rise", "rc_decay"):
        low, high = (getattr(found, f"{name}_{end}_s") for end in ("low", "high"))
        own.model(THERMAL, f"{name}_s", getattr(found, f"{name}_s"), "s", low=low, high=high, **said)
    own.model(THERMAL, "resistance_c_per_w", found.resistance_c_per_w, "degC/W", **said)
    for name, unit in (("rise_s", "s"), ("decay_s", "s"), ("resistance_c_per_w", "degC/W")):
        if np.isfinite(value := getattr(found, f"second_{name}")):
            own.model(THERMAL, f"second_{name}", value, unit, **said)
    own.model(THERMAL, "zero_power_c", found.zero_c, "degC", **said)
    own.model(THERMAL, "residual_c", found.residual_c, "degC", **said)
