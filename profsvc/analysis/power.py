"""Power of a run: its logs joined on one clock, its windows summed up, corrected to one temperature, and modelled.

``power_logs``        which sensor goes with which
``power_sensor``      a power log made ready: cleaned, its own period and averaging found, its companions joined
``power_windows``     the windows: marks, kernels, levels
``power_rest``        which of them are idle time
``power_sums``        what was measured in each
``power_coefficient`` how much more a warmer board draws
``power_correction``  what it would be at one temperature, or why that cannot be said
``power_models``      idle power, rise and decay of the temperature
``power_sweeps``      power against the number of SMs
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from profsvc.analysis import power_windows
from profsvc.analysis.power_coefficient import NOTHING, Known
from profsvc.analysis.power_correction import corrected
from profsvc.analysis.power_logs import UTC, Log, named
from profsvc.analysis.power_models import idle, thermal
from profsvc.analysis.power_rest import resting
from profsvc.analysis.power_sensor import INSTANT, Measured, Options, measured
from profsvc.analysis.power_sums import sums
from profsvc.analysis.power_sweeps import sweeps
from profsvc.analysis.power_windows import IDLE
from profsvc.formulas.plateaus import change_points

__all__ = ["FRAMES", "NOTHING", "VERSION", "Known", "Options", "analyze_power"]

VERSION = "3"
"""Raised when any number changes for the same input."""

FRAMES = ("power_windows", "power_coefficients", "power_models", "power_quality")
# What was only needed on the way.
INTERNAL = ("slowed_share", "clock_hz")
# Shorter than so many readings of the sensor, and no mean of a window stands.
READINGS = 4
# Kernels further apart than this are two stretches, as the device idles meanwhile.
PAUSE_S = 0.05
AS_IT_IS = Options()
MOST_WINDOWS = 2000


def analyze_power(
    logs: Sequence[Log],
    marks: pd.DataFrame,
    launches: pd.DataFrame,
    options: Options = AS_IT_IS,
    known: Mapping[int, Known] = MappingProxyType({}),
) -> dict[str, pd.DataFrame]:
    """Return the frames of `FRAMES` for every power sensor of a run.

    ``marks``: name, domain, start_ns, duration_ns, active_sms, launches, clock; ``launches``: kernel, start_ns,
    duration_ns, clock. What stands on another clock than a power log says nothing of it, and that is said.
    ``known``: what earlier runs of its board told of each sensor, by its number. Raise `NotFoundError` where the
    options name a sensor that the run does not have.
    """
    powers = [log for log in logs if log.quantity == "power" and log.unit == "W"]
    if options.sensor is not None:
        powers = named(powers, options.sensor)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in FRAMES}
    followed: set[int] = set()
    # A sensor that does not average comes first: it shows best how the temperature follows.
    for log in sorted(powers, key=lambda log: not INSTANT.search(log.name)):
        own = measured(log, logs, options)
        if isinstance(own, Measured):
            for name, frame in _analyzed(
                own, marks, launches, options, known.get(log.sensor_id, NOTHING), followed
            ).items():
                parts[name].append(frame)
        else:
            parts["power_quality"].append(pd.DataFrame([own]))
    return {name: _stacked(frames) for name, frames in parts.items()}


def _stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put frames under each other as plain objects, null where a column is absent."""
    filled = [frame.astype(object) for frame in frames if len(frame)]
    if not filled:
        return pd.DataFrame()
    table = pd.concat(filled, ignore_index=True)
    return table.where(table.notna(), None)


def _analyzed(
    own: Measured, marks: pd.DataFrame, launches: pd.DataFrame, options: Options, known: Known, followed: set[int]
) -> Mapping[str, pd.DataFrame]:
    windows = _windows(own, marks, launches)
    table, found = sums(own, windows)
    idle_w = idle(own, table)
    table["idle_power_w"] = idle_w
    # Idle power is the mean over idle time: what is left of it above itself is rounding, and no load's.
    runs = table["kind"] != IDLE
    table["runtime_power_w"] = (table["mean_power_w"] - idle_w).where(runs)
    table["runtime_energy_j"] = (table["energy_j"] - idle_w * table["duration_s"]).where(runs)
    table, coefficients = corrected(own, table, found, options, known)
    warmth = own.companions.get("temperature")
    if warmth is None or warmth.sensor_id not in followed:
        thermal(own, table)
        followed |= set() if warmth is None else {warmth.sensor_id}
    sweeps(own, table, idle_w)
    quality = pd.DataFrame(own.quality)
    table["quality"] = _codes(table["window"], own.quality)
    return {
        "power_windows": table.drop(columns=[name for name in INTERNAL if name in table]),
        "power_coefficients": coefficients,
        "power_models": pd.DataFrame(own.models),
        "power_quality": quality,
    }


def _codes(windows: pd.Series, quality: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """What to beware of in each window, in short codes: its own, and those of the sensor."""
    of_all = [row["flag"] for row in quality if row.get("window") is None]
    said = []
    for label in windows:
        flags = dict.fromkeys([row["flag"] for row in quality if row.get("window") == label] + of_all)
        said.append("; ".join(flags) or None)
    return said


def _windows(own: Measured, marks: pd.DataFrame, launches: pd.DataFrame) -> pd.DataFrame:
    """The whole log, and what is in it: marks, else kernels, else the levels of the power."""
    last = own.origin_ns + round(float(own.time_s[-1]) * 1e9)
    least = READINGS * float(np.median(np.diff(own.time_s))) + own.averaging_s
    found = _marked(own, marks, last, least)
    if found.empty:
        found = _of_kernels(own, launches, last, least)
    if found.empty:
        levels = change_points(own.time_s[own.fresh], own.power_w[own.fresh])
        steady = levels.steady
        begin, end = (edge[steady] for edge in levels[:2])
        rests = resting(own, begin, end, levels.level_w[steady], levels.level_w)
        begin_ns, end_ns = (own.origin_ns + np.round(edge * 1e9).astype(np.int64) for edge in (begin, end))
        found = power_windows.of_levels(begin_ns, end_ns, rests)
    if len(found) > MOST_WINDOWS:
        words = f"{len(found)} windows were found; the longest {MOST_WINDOWS} are kept"
        own.beware("windows_cut", words, len(found), "1")
        longest = (found["end_ns"] - found["begin_ns"]).nlargest(MOST_WINDOWS).index
        found = found.loc[longest.sort_values()]
    return pd.concat([power_windows.whole(own.origin_ns, last), found], ignore_index=True)


def _on_clock(own: Measured, rows: pd.DataFrame, last_ns: int, what: str) -> pd.DataFrame:
    """Rows that stand on the clock of the power log and meet it; say of the others that they do not."""
    if rows.empty:
        return rows
    same = rows[(rows["clock"] == own.log.clock) & (own.log.clock != "elapsed")]
    if same.empty:
        clocks = ", ".join(sorted(set(rows["clock"])))
        zone = " (give --timezone)" if own.log.clock != UTC else ""
        words = f"{len(rows)} {what} stand on another clock ({clocks}) than {own.log.name} ({own.log.clock}){zone}"
        own.beware(f"{what}_on_another_clock", words, len(rows), "1")
        return same
    met = same[(same["start_ns"] + same["duration_ns"] > own.origin_ns) & (same["start_ns"] < last_ns)]
    if met.empty:
        own.beware(f"{what}_elsewhere", f"none of {len(same)} {what} meets the log of {own.log.name}", len(same), "1")
    return met


def _marked(own: Measured, marks: pd.DataFrame, last_ns: int, least_s: float) -> pd.DataFrame:
    met = _on_clock(own, marks, last_ns, "marks")
    long = met[met["duration_ns"] >= least_s * 1e9] if len(met) else met
    if len(long) < len(met):
        words = f"{len(met) - len(long)} marks are shorter than {least_s:.3g} s and are no windows"
        own.beware("short_marks", words, len(met) - len(long), "1")
    return power_windows.marked(long)


def _of_kernels(own: Measured, launches: pd.DataFrame, last_ns: int, least_s: float) -> pd.DataFrame:
    return power_windows.of_kernels(_on_clock(own, launches, last_ns, "launches"), least_s, PAUSE_S)
