"""Idle power of a board, and how its temperature rises and decays."""

import numpy as np
import pandas as pd

from profsvc.analysis.power_sensor import Measured
from profsvc.analysis.power_sums import seconds
from profsvc.analysis.power_windows import IDLE, RUN
from profsvc.formulas.idle import fit_idle, idle_windows


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
    return None
