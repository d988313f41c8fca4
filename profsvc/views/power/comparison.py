"""The power of two runs side by side: common windows, corrected to the reference temperature of the earlier run."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from profsvc.errors import NotFoundError, first_of
from profsvc.formulas.thermal.coefficient.temperature_correction import MAX_EXTRAPOLATION
from profsvc.views.power.run_power import Row
from profsvc.views.power.run_power import power as power_of_run

if TYPE_CHECKING:
    from sqlalchemy import Engine

POWER = (
    "window", "sensor", "gpu_index", "matched_by", "corrected", "reference_temperature_c", "power_before_w",
    "power_before_low_w", "power_before_high_w", "power_after_w", "power_after_low_w", "power_after_high_w",
    "power_change", "power_change_low", "power_change_high", "power_beyond", "energy_before_j", "energy_before_low_j",
    "energy_before_high_j", "energy_after_j", "energy_after_low_j", "energy_after_high_j", "energy_change",
    "energy_change_low", "energy_change_high", "energy_beyond", "mean_power_before_w", "mean_power_after_w",
    "duration_before_s", "duration_after_s", "reason",
)  # fmt: skip
# How windows are matched, most reliable first: same label, or same load and SMs if unique in each run.
BY: dict[str, Callable[[Row], Hashable]] = {
    "window": lambda row: (*_where(row), row["window"]),
    "load": lambda row: (*_where(row), row["load"], row["active_sms"], row["kind"]),
}
LEVELS = "change_points"
MAX_SHOWN = 5


class Value(NamedTuple):
    """A value and the ends of its 95 % interval; None where they are not known."""

    value: float | None
    low: float | None = None
    high: float | None = None


def windows_of(engine: "Engine", name: str | int) -> list[Row]:
    """Return the power windows of a run; empty without a power log.

    ``range_c`` is the temperature range of the coefficient. ``levels`` is the number of levels of a sensor whose
    windows are detected levels; windows match only if it is the same.
    """
    try:
        view = power_of_run(engine, name)
    except NotFoundError:
        return []
    seen = {
        (row["sensor_id"], row["coefficient_w_per_c"]): row["range_c"] for row in view["coefficients"] if row["used"]
    }
    levels = Counter(row["sensor_id"] for row in view["windows"] if row["source"] == LEVELS)
    return [
        row
        | {"range_c": seen.get((row["sensor_id"], row["coefficient_w_per_c"]))}
        | {"levels": levels[row["sensor_id"]] if row["source"] == LEVELS else None}
        for row in view["windows"]
    ]


def compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[list[Row], list[str]]:
    """Return one row per common window, and warnings about extrapolation and unmatched windows."""
    olds, news = list(before), list(after)
    pairs = []
    for by, key in BY.items():
        own, other = (_once(rows, key) for rows in (olds, news))
        met = [name for name in own if name in other]
        pairs += [(own[name], other[name], by) for name in met]
        olds, news = ([row for row in rows if key(row) not in met] for rows in (olds, news))
    place = {id(row): number for number, row in enumerate(before)}
    pairs.sort(key=lambda pair: place[id(pair[0])])
    warnings = [_far(*pair[:2]) for pair in pairs]
    warnings += [_alone(rows, when) for rows, when in ((olds, "before"), (news, "after")) if rows and before and after]
    return [_pair(*pair) for pair in pairs], [warning for warning in warnings if warning]


def _where(row: Row) -> tuple[Hashable, ...]:
    return row["sensor"], row["gpu_index"], row["source"], row["levels"]


def _once(rows: Sequence[Row], key: Callable[[Row], Hashable]) -> dict[Hashable, Row]:
    """Return the rows with unique keys, by key."""
    counts = Counter(map(key, rows))
    return {key(row): row for row in rows if counts[key(row)] == 1}


def _alone(rows: Sequence[Row], when: str) -> str:
    names = dict.fromkeys(f"{row['window']} of {row['sensor']}" for row in rows)
    return f"power windows only {when}: {first_of(names, MAX_SHOWN)}"


def _far(old: Row, new: Row) -> str:
    """Return a warning if a window is corrected beyond the temperature range of its coefficient."""
    known = (new["mean_temperature_c"], new["range_c"])
    if uncorrected(old, new) or None in known or not _away_c(old, new):
        return ""
    away = new["mean_temperature_c"] - old["reference_temperature_c"]
    if abs(away) <= MAX_EXTRAPOLATION * new["range_c"]:
        return ""
    return (
        f"{new['window']} of {new['sensor']} after is {away:+.1f} \u00b0C from the temperature of the earlier run, but "
        f"its coefficient covers a range of only {new['range_c']:.1f} \u00b0C"
    )


def _pair(old: Row, new: Row, by: str) -> Row:
    reason = uncorrected(old, new)
    power = _raw(old, new, "mean_power_w") if reason else moved(old, new, "power", "w", 1.0)
    energy = _raw(old, new, "energy_j") if reason else moved(old, new, "energy", "j", new["duration_s"])
    return {
        **{name: old[name] for name in ("window", "sensor", "gpu_index", "load", "kind")},
        "window_after": new["window"],
        "matched_by": by,
        "corrected": not reason,
        "reference_temperature_c": None if reason else old["reference_temperature_c"],
        **_change("power", "w", *power),
        **_change("energy", "j", *energy),
        **{f"mean_power_{when}_w": row["mean_power_w"] for when, row in (("before", old), ("after", new))},
        **{f"duration_{when}_s": row["duration_s"] for when, row in (("before", old), ("after", new))},
        "reason": reason or None,
    }


def uncorrected(old: Row, new: Row) -> str:
    """Return why two windows are not compared at one temperature; empty if they are."""
    said = []
    for when, row in (("before", old), ("after", new)):
        if row["corrected_power_w"] is None or row["corrected_energy_j"] is None:
            said.append(f"{when}: {row['reason'] or 'no reason stored'}")
    if not said and new["coefficient_w_per_c"] is None and _away_c(old, new):
        said.append(f"after: no coefficient to correct it by {_away_c(old, new):+.1f} \u00b0C")
    return "; ".join(said)


def _away_c(old: Row, new: Row) -> float:
    return float(old["reference_temperature_c"] - new["reference_temperature_c"])


def _raw(old: Row, new: Row, name: str) -> tuple[Value, Value]:
    return Value(old[name]), Value(new[name])


def moved(old: Row, new: Row, what: str, unit: str, seconds: float) -> tuple[Value, Value]:
    """Return the corrected values of both windows at the reference temperature of the earlier run.

    The interval of the later one grows by that of its coefficient; their errors are added linearly.
    """
    names = f"corrected_{what}_{unit}", f"corrected_{what}_low_{unit}", f"corrected_{what}_high_{unit}"
    first, second = (Value(*(row[name] for name in names)) for row in (old, new))
    per_c = _away_c(old, new) * seconds
    if per_c == 0:
        return first, second
    moved = second.value + new["coefficient_w_per_c"] * per_c
    ends = [new[name] for name in ("coefficient_low", "coefficient_high")]
    if None in (*ends, second.low, second.high):
        return first, Value(moved)
    shifts = sorted(end * per_c for end in ends)
    return first, Value(moved, second.low + shifts[0], second.high + shifts[1])


def _change(what: str, unit: str, before: Value, after: Value) -> Row:
    """Return two values, the relative change with its interval, and whether their intervals do not overlap."""
    row: Row = {}
    for when, one in (("before", before), ("after", after)):
        for name, value in one._asdict().items():
            row[f"{what}_{when}_{unit}" if name == "value" else f"{what}_{when}_{name}_{unit}"] = value
    names = [f"{what}_{name}" for name in ("change", "change_low", "change_high", "beyond")]
    change: float | None = None
    ends: tuple[float | None, float | None, bool | None] = (None, None, None)
    if before.value is not None and after.value is not None and before.value > 0:
        change = after.value / before.value - 1
        if before.low is not None and before.high is not None and after.low is not None and after.high is not None:
            apart = after.low > before.high or after.high < before.low
            sure = before.low > 0 and after.low > 0
            ends = (after.low / before.high - 1, after.high / before.low - 1, apart) if sure else (None, None, apart)
    return row | dict(zip(names, (change, *ends), strict=True))
