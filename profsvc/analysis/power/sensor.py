"""One power sensor made ready: its readings cleaned, its own period and window found, its companions on its clock."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from profsvc.analysis.power.logs import (
    UTC,
    Floats,
    Log,
    logs_named,
    matching_sensor,
    shares_clock,
    shift_time,
    throttle_log,
)
from profsvc.analysis.power.options import Options
from profsvc.errors import counted
from profsvc.formulas.sensors.averaging import averaging_window
from profsvc.formulas.sensors.log_quality import clean, gaps, stuck, update_period
from profsvc.formulas.thermal.clock_offset.two_logs import MAX_HALF_INTERVAL_S, Offset, estimate_offset

# NVIDIA documents a mean of one second for these since Ampere; what the log itself shows comes first.
AVERAGING_NAME = re.compile(r"power\.draw(\.average)?$|^power_mw$|^pwr$")
INSTANT_NAME = re.compile(r"instant")
DEFAULT_AVERAGING_S = 1.0
# Stretches of a log that are reported one by one.
MAX_REPORTED_STRETCHES = 5
# A clock that is off by less shows in no window.
MIN_OFFSET_S = 0.5
MIN_READINGS = 4
# Why two logs do not tell the offset of their clocks.
OFFSET_REFUSALS = {
    "too_few": "the logs overlap in fewer than 30 readings",
    "no_step": "the power has no step",
    "flat_temperature": "the temperature changes by less than 5 \u00b0C",
    "no_response": "the power does not explain the temperature",
    "ambiguous": "more than one offset is possible",
    "outside_search": "the offset would be 60 s or more",
    "gaps": "more than 30 power steps are in gaps of the log",
}
# What may be named as a temperature: what is one, and what a file says nothing of.
TEMPERATURE_QUANTITIES = ("temperature", "unknown")


class Series(NamedTuple):
    """Readings of a companion: which sensor, when [s since the power log began] and what."""

    sensor_id: int
    name: str
    time_s: Floats
    value: Floats


@dataclass(eq=False)
class PowerSensor:
    """A power log ready for its windows, with the companions that could be found; ``reasons`` says why one was not."""

    log: Log
    origin_ns: int
    time_s: Floats
    power_w: Floats
    fresh: npt.NDArray[np.bool_]
    period_s: float
    averaging_s: float
    lag_s: float
    offset_se_s: float = 0.0
    companions: dict[str, Series] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    quality: list[dict[str, Any]] = field(default_factory=list)
    models: list[dict[str, Any]] = field(default_factory=list)

    @property
    def late_s(self) -> float:
        """By how much a step is seen late."""
        return self.averaging_s / 2 + self.lag_s

    def warn(self, flag: str, message: str, value: float | None = None, unit: str | None = None, **more: Any) -> None:
        """Add a data-quality warning of this sensor with its value."""
        row = {"sensor_id": self.log.sensor_id, "upload_id": self.log.upload_id, "flag": flag, "message": message}
        self.quality.append(row | {"value": value, "unit": unit} | more)

    def model(self, model: str, quantity: str, value: float | None, unit: str, **more: Any) -> None:
        """Keep a figure of a model of this sensor; NaN is unknown."""
        number = None if value is None or not np.isfinite(value) else float(value)
        row = {"sensor_id": self.log.sensor_id, "model": model, "quantity": quantity, "value": number, "unit": unit}
        self.models.append(row | more)


def prepare_sensor(power: Log, logs: Sequence[Log], options: Options) -> "PowerSensor | dict[str, Any]":
    """Make a power log ready, with the logs of its run beside it; or say that too few of its readings stand."""
    origin = int(power.time_ns[0]) if len(power.time_ns) else 0
    told = clean(power.seconds(origin), power.value)
    if told.time_s.size < MIN_READINGS:
        words = f"{counted(told.time_s.size, 'reading')} of {power.name}; at least {MIN_READINGS} are needed"
        if not len(power.time_ns):
            words = f"no reading of {power.name} has a time; record the log with a time, for energies and means"
        row = {"sensor_id": power.sensor_id, "upload_id": power.upload_id, "flag": "too_few_readings"}
        return row | {"message": words, "value": float(told.time_s.size), "unit": "1"}
    period = update_period(told.time_s, told.value)
    watts = told.value - (options.host_power_w or 0.0)
    own = PowerSensor(power, origin, told.time_s, watts, period.first_reading, period.period_s, 0.0, 0.0)
    if power.together > 1:
        words = f"{power.together} consecutive readings were averaged because the log is long"
        own.warn("thinned", words, float(power.together), "1")
    for what in ("missing", "duplicate", "disordered"):
        if count := getattr(told, what):
            own.warn(what, f"{count} of {len(power.value)} readings are {what} and were ignored", count, "1")
    if period.resolved:
        words = f"updates every {1e3 * period.period_s:.4g} ms but was polled every {1e3 * period.poll_s:.4g} ms"
        own.warn("slow_sensor", f"{power.name} {words}; duplicate readings count once", period.period_s, "s")
        own.model("sensor", "update_period_s", period.period_s, "s")
    _report_gaps(own)
    _find_averaging(own, logs)
    for quantity in ("temperature", "clock", "energy", "fan", "utilization"):
        _join_companion(own, logs, quantity, options)
    if (slow := throttle_log(power, logs)) is not None:
        own.companions["slowed"] = _series(own, slow)
    return own


def _report_gaps(own: PowerSensor) -> None:
    """Say where the log has gaps, and where the sensor stood still."""
    found = gaps(own.time_s)
    lost = float(np.sum(found.end_s - found.begin_s))
    if found.begin_s.size:
        longest = float(np.max(found.end_s - found.begin_s))
        words = f"{found.begin_s.size} gaps of more than {found.limit_s:.3g} s, {lost:.4g} s in all"
        own.warn("gap", f"{words}, the longest {longest:.4g} s: they are not interpolated", lost, "s")
    still = stuck(own.time_s, own.power_w)
    for begin, end in list(zip(still.begin_s, still.end_s, strict=True))[:MAX_REPORTED_STRETCHES]:
        where = f"from {begin:.4g} to {end:.4g} s of the log"
        own.warn("stuck", f"{own.log.name} repeated one value {where}", float(end - begin), "s")


def _find_averaging(own: PowerSensor, logs: Sequence[Log]) -> None:
    """Find over how long the sensor averages: from an instant sensor beside it, else by what its maker says."""
    if INSTANT_NAME.search(own.log.name):
        return
    beside = [log for log in logs if log.upload_id == own.log.upload_id and log.gpu_index == own.log.gpu_index]
    for log in beside:
        if log.quantity == "power" and INSTANT_NAME.search(log.name):
            told = clean(log.seconds(own.origin_ns), log.value)
            found = averaging_window(told.time_s, told.value, own.time_s, own.power_w)
            if np.isfinite(found.window_s) and found.window_s > 2 * np.median(np.diff(own.time_s)):
                own.averaging_s, own.lag_s = found.window_s, max(found.lag_s, 0.0)
                words = f"averages over {found.window_s:.3g} s, measured against {log.name}; its readings are"
                own.warn("averaged", f"{own.log.name} {words} delayed by {found.late_s:.2g} s", found.window_s, "s")
                low, high = (found.window_s + sign * 2 * found.window_se_s for sign in (-1, 1))
                own.model("sensor", "averaging_window_s", found.window_s, "s", low=low, high=high)
                own.model("sensor", "late_s", found.late_s, "s")
            if np.isfinite(found.window_s):
                return
    if AVERAGING_NAME.search(own.log.name):
        own.averaging_s = DEFAULT_AVERAGING_S
        words = f"may be averaged over {DEFAULT_AVERAGING_S:g} s, as NVIDIA documents since Ampere"
        own.warn("averaged", f"{own.log.name} {words}; the log cannot confirm it", DEFAULT_AVERAGING_S, "s")


def _series(own: PowerSensor, log: Log) -> Series:
    told = clean(log.seconds(own.origin_ns), log.value)
    return Series(log.sensor_id, log.name, told.time_s, told.value)


def _join_companion(own: PowerSensor, logs: Sequence[Log], quantity: str, options: Options) -> None:
    """Find the log of a quantity that goes with the power, and bring it onto the clock of the power."""
    wanted = [log for log in logs if log.quantity == quantity]
    if quantity == "temperature" and options.temperature is not None:
        able = [log for log in logs if log.quantity in TEMPERATURE_QUANTITIES]
        wanted = [_as_temperature(own, log) for log in logs_named(able, options.temperature)]
    choice = matching_sensor(own.log, wanted, quantity)
    if choice.log is None:
        own.reasons[quantity] = choice.reason
        return
    log = choice.log
    if quantity == "temperature" and log.upload_id != own.log.upload_id:
        placed = _align_temperature(own, log, options)
        if placed is None:
            return
        log = placed
    elif not shares_clock(own.log, log):
        own.reasons[quantity] = f"{log.name} uses a different clock than {own.log.name}"
        return
    own.companions[quantity] = _series(own, log)


def _as_temperature(own: PowerSensor, log: Log) -> Log:
    """A log that the user calls a temperature; degrees C are taken for it where its file does not say."""
    if log.quantity == "temperature":
        return log
    own.warn("unit_assumed", f"{log.name} is interpreted as degrees C because you named it; its file has no unit")
    return replace(log, quantity="temperature", unit="degC")


def _align_temperature(own: PowerSensor, log: Log, options: Options) -> Log | None:
    """Bring a temperature log of another logger onto the clock of the power log, or say why that cannot be."""
    if options.offset_s is not None:
        own.model("join", "offset_s", options.offset_s, "s", form="given")
        return shift_time(log, options.offset_s)
    known = shares_clock(own.log, log)
    # Unknown clocks are first aligned by their first readings; the search starts there.
    shift = 0 if known else int(log.time_ns[0]) - own.origin_ns
    told = clean(log.seconds(own.origin_ns + shift), log.value)
    found = estimate_offset(own.time_s, own.power_w, told.time_s, told.value, power_late_s=own.late_s)
    refused = bool(found.refused)
    interval = {"low": found.low_s, "high": found.high_s} if np.isfinite(found.low_s) else {}
    estimate = None if refused else found.offset_s
    reason = _offset_refusal(found) if refused else None
    own.model("join", "offset_s", estimate, "s", form="estimated", reason=reason, flags=int(found.flags), **interval)
    if known:
        least = min(abs(found.low_s), abs(found.high_s)) if found.low_s * found.high_s > 0 else 0.0
        if least > MIN_OFFSET_S:
            off = f"between {found.low_s:+.2f} and {found.high_s:+.2f} s relative to the clock of {own.log.name}"
            words = f"{log.name} seems shifted {off} (or delayed by that much)"
            own.warn("clock_offset", f"{words}; if so, upload it with --clock-offset", estimate, "s")
        return log
    clocks = f"{own.log.name} has {_clock_text(own.log)} and {log.name} has {_clock_text(log)}"
    if refused:
        own.reasons["temperature"] = f"{clocks}, and the offset cannot be determined: {reason}"
        return None
    own.offset_se_s = found.se_s
    own.warn("offset_estimated", f"{clocks}: aligned by their load steps", found.offset_s, "s")
    return shift_time(log, shift / 1e9 + found.offset_s)


def _offset_refusal(found: Offset) -> str:
    """Why there is no offset, and what would give one."""
    if found.refused != "uncertain":
        return OFFSET_REFUSALS[found.refused]
    more = f"; {counted(found.more_steps, 'more power step')} would suffice" if found.more_steps else ""
    between = f"it is between {found.low_s:+.2f} and {found.high_s:+.2f} s"
    needed = f"but must be known within {MAX_HALF_INTERVAL_S:g} s"
    return f"{between}, {needed}: give it with --offset, or record more loads{more}"


def _clock_text(log: Log) -> str:
    words: Mapping[str, str] = {"local": "a clock without a zone (give --timezone)", "elapsed": "seconds only"}
    return "UTC" if log.clock == UTC else words[log.clock]
