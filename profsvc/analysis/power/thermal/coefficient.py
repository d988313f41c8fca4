"""The temperature coefficient of a board at one clock: from its loads, their repeats and its earlier runs.

Three kinds of evidence, each with an interval: how the power follows the temperature within a load, how repeats of one
load differ between temperatures, and what earlier runs of the board told. Those that agree are pooled; where the loads
contradict their own repeats, the work changes and nothing is corrected. Loads that differ have a coefficient each.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from profsvc import specs
from profsvc.analysis.power.logs import Floats, Ints
from profsvc.analysis.power.sensor import PowerSensor, Series
from profsvc.analysis.power.thermal.earlier_runs import NO_EARLIER_RUNS, EarlierRuns, earlier_estimates
from profsvc.analysis.power.window_sums import readings_in_windows, window_seconds
from profsvc.analysis.power.workloads import repeats_slope, window_workloads
from profsvc.errors import NotFoundError, counted
from profsvc.formulas.numerics.distributions import NORMAL_975
from profsvc.formulas.sensors.resampling import interpolate_at
from profsvc.formulas.thermal.coefficient.coefficient_fit import fit_coefficient
from profsvc.formulas.thermal.coefficient.repeated_loads import Pooled, pool
from profsvc.formulas.thermal.coefficient.temperature_coefficient import (
    Coefficient,
    coefficient_refusal,
    with_systematic_error,
)

Rows = list[dict[str, Any]]
# A share of a window in which the clock was held down, from which it is no constant load.
MAX_THROTTLED_SHARE = 0.02
# Chance below which loads are taken to differ: each with its own coefficient is wider, and never wrong for it.
MAX_P_LOADS_DIFFER = 0.05
# Chance below which figures of one board are taken to contradict each other.
MAX_P_CONTRADICTION = 0.01
# Seconds that are left out of the begin of each load, from the most careful.
SETTLE_S = (5.0, 2.0, 1.0)
HOW_TO_MEASURE = (
    "to measure it, log power, temperature and clock while one constant load runs for 30 s or more at "
    "temperatures 5 \u00b0C apart or more (on a cold board and after a heavy load), three times in total, and mark it "
    "(profsvc formats marks)"
)
# Half an interval, as a share of its value, from which a coefficient is said to be known roughly only.
MAX_HALF_INTERVAL = 0.3


class Evidence(NamedTuple):
    """Readings of the windows of one clock, and the means of each window over the very same readings."""

    at: Ints
    window: Ints
    load: npt.NDArray[Any]
    means: pd.DataFrame


def fit_coefficients(
    own: PowerSensor,
    table: pd.DataFrame,
    temperature: Floats,
    places: Ints,
    clock: float,
    known: EarlierRuns,
    rows: Rows,
) -> list[tuple[Ints, Coefficient]]:
    """Return which windows of one clock are corrected with which coefficient, and keep the ``rows`` that tell of it."""
    evidence = _evidence(own, table, temperature, places)
    fit = _fit_within_loads(own, temperature, evidence)
    if fit.segments_left_out:
        own.warn("segments_left_out", left_out_message(fit.segments_left_out, clock), float(fit.segments_left_out), "1")
    if not fit.loads_probability < MAX_P_LOADS_DIFFER:
        return [(places, _pooled_coefficient(own, evidence, fit, clock, None, known, rows))]
    words = f"the loads differ significantly (p = {fit.loads_probability:.2g}): each has its own"
    _add_rows(own, rows, fit, clock, None, used=False, reason=words, sound=False, basis=_windows_text(fit))
    own.warn("loads_differ", f"{words} coefficient", fit.loads_probability, "1")
    found, loads = [], table["load"].to_numpy(object)[places]
    for load in dict.fromkeys(loads.tolist()):
        part = places[loads == load]
        evidence = _evidence(own, table, temperature, part)
        alone = _fit_within_loads(own, temperature, evidence)
        found.append((part, _pooled_coefficient(own, evidence, alone, clock, str(load), known, rows)))
    return found


def left_out_message(windows: int, clock_hz: float) -> str:
    """Say how many windows are not fit for a coefficient; the clock is NaN where the log has none.

    >>> left_out_message(1, 1.98e9), left_out_message(7, float("nan"))[:28]
    ('1 window at 1980 MHz too short or unsteady for a coefficient', '7 windows too short or unste')
    """
    where = f" at {clock_hz / 1e6:.0f} MHz" if np.isfinite(clock_hz) else ""
    return f"{counted(windows, 'window')}{where} too short or unsteady for a coefficient"


def _evidence(own: PowerSensor, table: pd.DataFrame, temperature: Floats, places: Ints) -> Evidence:
    """The readings of windows at one clock that was not held down, and what repeats what."""
    begin, end = window_seconds(own, table.iloc[places])
    begin, share = _after_slowed(own.companions.get("slowed"), begin, end)
    kept = share <= MAX_THROTTLED_SHARE
    begin, end, part = begin[kept], end[kept], table.iloc[places[kept]]
    fresh = np.flatnonzero(own.fresh & np.isfinite(temperature))
    which, window = readings_in_windows(own.time_s[fresh], begin + own.averaging_s + own.lag_s, end)
    at = fresh[which]
    count = np.bincount(window, minlength=len(part))
    with np.errstate(all="ignore"):
        power, warmth = (np.bincount(window, x[at], len(part)) / count for x in (own.power_w, temperature))
        error = part["power_sd_w"].to_numpy(np.float64) / np.sqrt(count)
    means = pd.DataFrame({"load": window_workloads(part), "power": power, "temperature": warmth, "error": error})
    return Evidence(at, window, pd.factorize(part["load"])[0][window], means)


def _after_slowed(slowed: Series | None, begin_s: Floats, end_s: Floats) -> tuple[Floats, Floats]:
    """Return when each window begins without the clock that a load before it held down, and the share held down after.

    A clock that is still held down when a load begins rises while the load settles.
    """
    if slowed is None:
        return begin_s, np.zeros(len(begin_s))
    places, window = readings_in_windows(slowed.time_s, begin_s, np.minimum(begin_s + SETTLE_S[0], end_s))
    held = slowed.value[places] > 0
    later = begin_s.copy()
    np.maximum.at(later, window[held], np.nextafter(slowed.time_s[places[held]], np.inf))
    places, window = readings_in_windows(slowed.time_s, later, end_s)
    count = np.maximum(np.bincount(window, minlength=len(later)), 1)
    return later, np.bincount(window, slowed.value[places], len(later)) / count


def _fit_within_loads(own: PowerSensor, temperature: Floats, evidence: Evidence) -> Coefficient:
    """How the power follows the temperature within the loads.

    A die settles within seconds, and tells most while it does. So less is left out of the begin of each load, as long
    as the figure stays within the interval of the later readings, with the most left out. What the figures differ
    beyond their errors is part of the interval: a temperature in whole degrees rests while the power still falls.
    """
    at = evidence.at
    fan = _fan_regressor(own, at)

    def fit(settle_s: float) -> Coefficient:
        return fit_coefficient(
            own.time_s[at], own.power_w[at], temperature[at], evidence.window, load=evidence.load,
            offset_error_s=own.offset_se_s, settle_s=settle_s, **fan,
        )  # fmt: skip

    careful = found = fit(SETTLE_S[0])
    tried = [found]
    for settle_s in SETTLE_S[1:]:
        if not np.isfinite(careful.coefficient_w_per_c):
            break
        sooner = fit(settle_s)
        agrees = careful.low_w_per_c <= sooner.coefficient_w_per_c <= careful.high_w_per_c
        if not agrees or sooner.loads_probability < min(MAX_P_LOADS_DIFFER, found.loads_probability):
            break
        tried.append(sooner)
        if sooner.standard_error_w_per_c < found.standard_error_w_per_c:
            found = sooner
    return with_systematic_error(found, _difference(found, tried))


def _difference(found: Coefficient, tried: list[Coefficient]) -> float:
    """How much figures of parts of the readings differ from the one found, beyond what their own errors allow.

    A figure of fewer readings differs by chance as much as its variance is larger (Hausman's test).
    """
    others = [one for one in tried if one is not found]
    beyond = [
        (one.coefficient_w_per_c - found.coefficient_w_per_c) ** 2
        - max(one.standard_error_w_per_c**2 - found.standard_error_w_per_c**2, 0.0)
        for one in others
    ]
    return float(np.sqrt(np.mean(np.maximum(beyond, 0.0)))) if others else 0.0


def _pooled_coefficient(
    own: PowerSensor,
    evidence: Evidence,
    fit: Coefficient,
    clock: float,
    load: str | None,
    known: EarlierRuns,
    rows: Rows,
) -> Coefficient:
    """Pool what is known of the coefficient, keep the rows of it, and return what the windows are corrected with."""
    means = evidence.means
    again = repeats_slope(means[["load", "power", "temperature", "error"]])
    pieces = [(fit.coefficient_w_per_c, fit.low_w_per_c, fit.high_w_per_c), again]
    alone = pool(*np.transpose(pieces))
    power_w = fit.power_w if np.isfinite(fit.power_w) else float(means["power"].mean())
    # Without repeats it was seen over what a load warms up by, however far apart the loads lie.
    mine = _with_pooled(fit, alone, power_w, means) if np.isfinite(again[1]) else fit
    basis = _windows_text(fit) + _repeats_text(means, again)
    sound = bool(np.isfinite(alone.value)) and not _impossible(alone, power_w)
    if alone.probability < MAX_P_CONTRADICTION:
        words = (
            f"within the loads it is between {fit.low_w_per_c:.3g} and {fit.high_w_per_c:.3g} W/\u00b0C, between "
            f"repeats of one load between {again[1]:.3g} and {again[2]:.3g}: the work seems to change with heat"
        )
        mine, sound = fit._replace(refusal=words), False
    runs, earlier = earlier_estimates(known, clock, load, means)
    more = pool(*np.transpose([(alone.value, alone.low, alone.high)] * sound + earlier)) if earlier else alone
    differs = bool(more.probability < MAX_P_CONTRADICTION)
    pooled = bool(runs) and not differs and bool(np.isfinite(more.value)) and mine.law != "exponential"
    _add_rows(own, rows, mine, clock, load, used=not mine.refusal and not pooled, sound=sound, basis=basis)
    if differs:
        words = f"{_runs_text(runs)} of this board give a different coefficient (p < {MAX_P_CONTRADICTION:g})"
        own.warn("board_differs", words, more.probability, "1")
    if not pooled:
        _warn_if_wide(own, mine, clock)
        return mine
    carried = _with_pooled(fit._replace(law="linear"), more, power_w, means, known=known)
    told = (
        f"{basis}; {_runs_text(runs)} of this board" if sound else f"{_runs_text(runs)} of this board, not on this one"
    )
    _add_rows(own, rows, carried, clock, load, used=not carried.refusal, form="pooled", basis=told)
    own.warn("coefficient_carried", f"the coefficient is based on {told}", more.value, "W/degC")
    _warn_if_wide(own, carried, clock)
    return carried


def _warn_if_wide(own: PowerSensor, fit: Coefficient, clock_hz: float) -> None:
    """Warn that a coefficient that is used is known roughly only, and say which log would do."""
    half = (fit.high_w_per_c - fit.low_w_per_c) / 2 / fit.coefficient_w_per_c
    if fit.refusal or not half > MAX_HALF_INTERVAL:
        return
    where = f" at {clock_hz / 1e6:.0f} MHz" if np.isfinite(clock_hz) else ""
    words = (
        f"the coefficient{where} is known to \u00b1{half:.0%} only; to narrow it, log one light load after each of 24 "
        "heavy ones or more, 12 s after 3 s, and mark it (profsvc characterize --power does)"
    )
    own.warn("coefficient_wide", words, half, "1")


def _with_pooled(
    fit: Coefficient, told: Pooled, power_w: float, means: pd.DataFrame, known: EarlierRuns = NO_EARLIER_RUNS
) -> Coefficient:
    """The fit with the pooled figure in place of its own; an exponential law keeps its own."""
    if not np.isfinite(told.value):
        return fit
    if fit.law == "exponential" and np.isfinite(fit.coefficient_w_per_c):
        return fit
    spans = [fit.temperature_low_c, fit.temperature_high_c, *means["temperature"], *known.windows["mean_temperature_c"],
             *known.coefficients["temperature_low_c"], *known.coefficients["temperature_high_c"]]  # fmt: skip
    values = np.array(spans, np.float64)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return fit._replace(
        coefficient_w_per_c=told.value, low_w_per_c=told.low, high_w_per_c=told.high, law="linear",
        standard_error_w_per_c=(told.high - told.low) / (2 * NORMAL_975), rate_per_c=np.nan,
        temperature_low_c=low, temperature_high_c=high, range_c=high - low,
        refusal=coefficient_refusal(told.low, told.high, power_w),
    )  # fmt: skip


def _impossible(told: Pooled, power_w: float) -> bool:
    """Tell whether an interval lies where no coefficient can; one that holds 0 may be pooled."""
    return bool(coefficient_refusal(told.low, told.high, power_w)) and not told.low <= 0 <= told.high


def _add_rows(
    own: PowerSensor, rows: Rows, fit: Coefficient, clock: float, load: str | None, *, used: bool, basis: str,
    form: str = "consistent", reason: str = "", sound: bool = False,
) -> None:  # fmt: skip
    """Keep the row of a coefficient, and beside that of a run the published one."""
    reason = reason or fit.refusal
    common: dict[str, Any] = {
        "sensor_id": own.log.sensor_id,
        "temperature_sensor_id": own.companions["temperature"].sensor_id,
        "clock_hz": clock,
        "temperature_low_c": fit.temperature_low_c,
        "temperature_high_c": fit.temperature_high_c,
        "range_c": fit.range_c,
        "segments": fit.segments,
        "readings": fit.readings,
        "load": load,
    }
    row: dict[str, Any] = {"law": fit.law, "form": form, "used": int(used)}
    row["reason"] = f"{reason}; {HOW_TO_MEASURE}" if reason else None
    row |= {"coefficient_w_per_c": fit.coefficient_w_per_c, "coefficient_per_c": fit.rate_per_c}
    row |= {"basis": basis, "sound": int(sound)}
    rows.append(common | row | {"coefficient_low": fit.low_w_per_c, "coefficient_high": fit.high_w_per_c})
    published = {
        "law": "endpoint",
        "form": "as_published",
        "used": 0,
        "reason": "two end points give no confidence interval",
    }
    if np.isfinite(fit.published_w_per_c) and form == "consistent":
        rows.append(common | published | {"coefficient_w_per_c": fit.published_w_per_c})


def _windows_text(fit: Coefficient) -> str:
    return f"{counted(fit.segments, 'window')} of this run"


def _repeats_text(means: pd.DataFrame, again: Iterable[float]) -> str:
    if not np.isfinite(list(again)).all():
        return "; no load was repeated at another temperature, so changing work cannot be excluded"
    counts = means["load"].dropna().value_counts()
    return f"; {counts[counts > 1].sum()} repeats of {counted(int((counts > 1).sum()), 'load')} agree"


def _runs_text(runs: list[int]) -> str:
    shown = ", ".join(map(str, runs[-5:]))
    return f"{'run' if len(runs) == 1 else 'runs'} {shown if len(runs) <= 5 else f'{shown} and {len(runs) - 5} more'}"


def _fan_regressor(own: PowerSensor, at: Ints) -> Mapping[str, Any]:
    """The speed of the fan as a regressor, where the board has one and it moved: its power goes with the cube."""
    series = own.companions.get("fan")
    if series is None:
        return {}
    speed = interpolate_at(own.time_s[at], series.time_s, series.value).value
    if not at.size or not np.isfinite(speed).all() or np.ptp(speed) == 0:
        return {}
    return {"fan_speed": speed**3, "fan": "removed"}


def warn_unlogged_fan(own: PowerSensor) -> None:
    """Warn that an unlogged fan is included in the coefficient, unless the board is known to have none."""
    if "fan" not in own.reasons:
        return
    try:
        if own.log.device is not None and specs.device(own.log.device).has_fan is False:
            return
    except NotFoundError:
        pass
    words = (
        "no fan speed was logged: the extra fan power of a warm board is included in the coefficient and may "
        "double it; log fan.speed, or fix the fan speed"
    )
    own.warn("fan_unknown", words)
