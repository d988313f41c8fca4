"""Idle power of a board, and how its temperature follows the power."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis.power_logs import Floats
from profsvc.analysis.power_rest import meeting, quiet
from profsvc.analysis.power_sensor import Measured, Series
from profsvc.analysis.power_sums import seconds
from profsvc.analysis.power_windows import IDLE, LEVELS, RUN
from profsvc.formulas.idle import fit_idle, idle_windows
from profsvc.formulas.thermal_fits import PROMISED, fit_decay, fit_rise, known_within
from profsvc.formulas.thermal_load import fit_load

THERMAL = "thermal"
# Shorter windows do not show a time constant; of longer lists the longest windows are fitted.
SHORTEST_S = 20.0
MOST_WINDOWS = 4
NO_REST = (
    "nothing says that the board rested at any level of the log: log utilization.gpu beside the power, or mark the "
    "idle time"
)


def idle(own: Measured, table: pd.DataFrame) -> float:
    """Return the idle power [W] from the time in which no load ran and the board was cold; NaN where it never was."""
    begin, end = seconds(own, table)
    rest = (table["kind"] == IDLE).to_numpy()
    load = ~table["kind"].isin([RUN, IDLE]).to_numpy()
    begin_s, end_s, reason = _cold(own, table, (begin[load], end[load]), (begin[rest], end[rest]))
    if reason:
        own.model("idle", "idle_power_w", None, "W", reason=reason)
        return float("nan")
    series = own.companions.get("temperature")
    temperatures = (None, None) if series is None else (series.time_s, series.value)
    found = fit_idle(own.time_s[own.fresh], own.power_w[own.fresh], begin_s, end_s, *temperatures)
    more = {"flags": int(found.flags)}
    if not np.isfinite(found.power_w):
        own.model("idle", "idle_power_w", None, "W", reason="the log holds no time in which the board was cold", **more)
        return float("nan")
    lighter = table.loc[load & (table["settled_power_w"] < found.power_w).to_numpy()]
    if len(lighter):
        first = lighter.iloc[0]
        reason = (
            f"the time without a load draws {found.power_w:.4g} W, but {first['window']} draws "
            f"{first['settled_power_w']:.4g} W: a load ran in it that nothing marks"
        )
        own.model("idle", "idle_power_w", None, "W", reason=reason, **more)
        return float("nan")
    own.model("idle", "idle_power_w", found.power_w, "W", low=found.low_w, high=found.high_w, **more)
    if np.isfinite(found.temperature_c):
        own.model("idle", "idle_temperature_c", found.temperature_c, "degC", **more)
    own.model("idle", "idle_time_s", found.duration_s, "s", **more)
    return found.power_w


def _cold(
    own: Measured, table: pd.DataFrame, loads: tuple[Floats, Floats], rests: tuple[Floats, Floats]
) -> tuple[Floats, Floats, str]:
    """Stretches in which nothing ran and the board had cooled down, and why there are none, if none are known.

    What lies between marked loads is idle time, unless the board says that it was busy. What lies between the levels
    of a log is not: the power may just not have stayed anywhere.
    """
    nothing = np.empty(0)
    by_level = (table["source"] == LEVELS).any()
    if by_level or not loads[0].size:
        if not rests[0].size:
            return nothing, nothing, NO_REST if by_level else "no load is known, so no idle time either"
        edges = float(own.time_s[0]), float(own.time_s[-1])
        loads = np.append(edges[0], rests[1]), np.append(rests[0], edges[1])
        some = loads[1] > loads[0]
        loads = loads[0][some], loads[1][some]
    cold = idle_windows(*loads, float(own.time_s[0]), float(own.time_s[-1]), guard_s=own.late_s)
    if rests[0].size:
        return *meeting(cold, rests), ""
    silent = quiet(own)
    return (*cold, "") if silent is None else (*meeting(cold, silent), "")


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
    """Exponentials through the temperature of one window, whichever way it goes."""
    few = max(len(temperature_c) // 4, 1)
    falls = bool(np.median(temperature_c[-few:]) < np.median(temperature_c[:few])) if len(temperature_c) else False
    name, fit = ("rc_decay_s", fit_decay) if falls else ("rc_rise_s", fit_rise)
    found = fit(time_s, temperature_c)
    said = {"window": label, "flags": int(found.flags), "form": "one load"}
    if found.refusal:
        own.model(THERMAL, name, None, "s", reason=found.refusal, **said)
        return
    for k, which in enumerate(_names(len(found.rc_s))):
        each = said | {"form": f"one load, {which}"}
        _constant(own, name, found.rc_s[k], found.low_s[k], found.high_s[k], each)
        own.model(THERMAL, "change_c", found.change_c[k], "degC", **each)
    _beware_of_wide(own, label, {name: (found.rc_s, found.low_s, found.high_s)})
    own.model(THERMAL, "end_c", found.end_c, "degC", **said)


def _whole(own: Measured) -> None:
    """Constants and resistances from the whole log, whatever load it holds."""
    series = own.companions["temperature"]
    fresh = own.fresh
    time_s = own.time_s[fresh] - own.late_s
    found = fit_load(
        time_s, own.power_w[fresh], series.time_s, series.value,
        offset_error_s=_unsure(own.offset_se_s, time_s, series), offset_estimated=own.offset_se_s > 0,
    )  # fmt: skip
    said = {"flags": int(found.flags), "form": "whole log"}
    if found.refusal:
        own.model(THERMAL, "rc_rise_s", None, "s", reason=found.refusal, **said)
        return
    for k, which in enumerate(_names(len(found.rc_rise_s))):
        each = said | {"form": f"whole log, {which}"}
        for name in ("rc_rise", "rc_decay"):
            value, low, high = (float(getattr(found, f"{name}_{end}")[k]) for end in ("s", "low_s", "high_s"))
            _constant(own, f"{name}_s", value, low, high, each)
        own.model(THERMAL, "resistance_c_per_w", found.resistance_c_per_w[k], "degC/W", **each)
    _beware_of_wide(own, None, {"rc_rise_s": found[:3], "rc_decay_s": found[3:6]})
    own.model(THERMAL, "zero_power_c", found.zero_c, "degC", **said)
    own.model(THERMAL, "residual_c", found.residual_c, "degC", **said)


def _beware_of_wide(own: Measured, label: str | None, constants: Mapping[str, Sequence[Floats]]) -> None:
    """Say which constants are not known as well as is promised."""
    wide = [
        f"{name} {value:.3g} s ({low:.3g} to {high:.3g})"
        for name, ends in constants.items()
        for value, low, high in np.transpose(ends)[~known_within(ends[0], ends[1], ends[2])].tolist()
        if np.isfinite(value)
    ]
    if wide:
        where = f"in {label}" if label else "over the whole log"
        words = f"{where}, known to worse than {PROMISED:.0%}: {', '.join(wide)}; more steps of the power tell more"
        own.beware("wide_constant", words, len(wide), window=label)


def _names(count: int) -> list[str]:
    """What the constants are called, the fastest first."""
    if count == 1:
        return ["one constant"]
    ends = {1: ", the fastest", count: ", the slowest"}
    return [f"constant {k} of {count}{ends.get(k, '')}" for k in range(1, count + 1)]


def _constant(own: Measured, name: str, value: float, low: float, high: float, said: dict[str, Any]) -> None:
    """Keep one constant, or between what it lies."""
    known = {end: float(x) for end, x in (("low", low), ("high", high)) if np.isfinite(x)}
    if np.isfinite(value):
        own.model(THERMAL, name, value, "s", **known, **said)
        return
    words = {
        (): "the log does not tell it",
        ("low",): f"above {low:.3g} s",
        ("high",): f"below {high:.3g} s",
        ("low", "high"): f"below {high:.3g} s" if low == 0 else f"between {low:.3g} and {high:.3g} s",
    }
    own.model(THERMAL, name, None, "s", reason=words[tuple(known)], **known, **said)


def _unsure(offset_se_s: float, time_s: Floats, series: Series) -> float:
    """Standard error of the offset between the logs: a reading is up to a poll old, of both."""
    polls = [float(np.median(np.diff(t))) if len(t) > 1 else 0.0 for t in (time_s, series.time_s)]
    return float(np.sqrt(offset_se_s**2 + sum(p**2 for p in polls) / 12))
