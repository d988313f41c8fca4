"""Temperature of a board under planned loads, from the thermal model and the coefficient that its own log gave."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from profsvc.analysis.power.logs import Floats
from profsvc.analysis.power.thermal.models import END_SLOPE, LEFT_OUT, THERMAL, UNSETTLED, likely_constants
from profsvc.analysis.power.windows import IDLE, RUN
from profsvc.errors import counted
from profsvc.formulas.numerics.flags import Flag
from profsvc.formulas.thermal.load_plan import (
    MIN_ERRORS,
    PlanCurve,
    RcNetwork,
    error_reach_c,
    heat_cost,
    plan_curve,
    time_to_limit_s,
    with_interval,
)

Row = Mapping[str, Any]
WHOLE_LOG = "whole log"
MIN_CONSTANT_S = 1e-3
HOW_TO_LOG = (
    "log power and temperature while the board is idle and under at least three loads of different power, "
    "one of them until the temperature stands still"
)


class ThermalModel(NamedTuple):
    """What a run's own log says of the temperature of its board, for one power sensor.

    ``fast`` and ``slow`` have the ends of the intervals of the time constants; ``error_c`` is by window, predicted
    minus measured where the window was left out. ``longest_s`` and ``highest_w`` are of the loads of the log.
    """

    likely: RcNetwork
    fast: RcNetwork
    slow: RcNetwork
    idle_c: float
    idle_w: float
    error_c: Mapping[str, float]
    longest_s: float
    highest_w: float
    residual_c: float
    unsettled: str


def thermal_model(models: Sequence[Row], windows: Sequence[Row]) -> ThermalModel | str:
    """Return the model of one power sensor from its rows, or the reason why its log does not carry one."""
    own = [row for row in models if row["model"] == THERMAL and str(row["form"]).startswith(WHOLE_LOG)]
    missing = [row["reason"] for row in models if row["model"] == THERMAL and row["window"] is None and row["reason"]]
    parts: dict[str, list[Row]] = {}
    for row in own:
        parts.setdefault(row["quantity"], []).append(row)
    if not {"rc_rise_s", "rc_decay_s", "resistance_c_per_w", "zero_power_c"} <= set(parts):
        return missing[0] if missing else "the run has no thermal model"
    rise, decay = (
        np.array([[_number(row[end]) for end in ("value", "low", "high")] for row in parts[name]])
        for name in ("rc_rise_s", "rc_decay_s")
    )
    unbounded = rise[~np.isfinite(rise[:, 2])]
    if len(unbounded):
        low = unbounded[0, 1]
        told = f"only known to be above {low:.3g} s" if np.isfinite(low) else "not known within a factor of 10"
        return f"a time constant is {told}"
    loads = [row for row in windows if row["kind"] not in (RUN, IDLE)]
    if not loads:
        return "no load is known in the log"
    R = np.array([row["value"] for row in parts["resistance_c_per_w"]], np.float64)
    zero = float(parts["zero_power_c"][0]["value"])
    constants = likely_constants(rise, decay)
    likely = RcNetwork(zero, R, *constants)
    fast, slow = (RcNetwork(zero, R, *_ends(rise, decay, constants, column)) for column in (1, 2))
    idle = {row["quantity"]: row["value"] for row in models if row["model"] == "idle" and row["value"] is not None}
    idle_w = float(idle.get("idle_power_w", np.nan))
    at_rest = zero + likely.total_c_per_w * idle_w if np.isfinite(idle_w) else zero
    errors = {str(row["window"]): float(row["value"]) for row in parts.get(LEFT_OUT, ())}
    if len(errors) < MIN_ERRORS:
        worst = f"; it is off by {max(map(abs, errors.values())):.1f} \u00b0C" if errors else ""
        return f"its model can be checked with {counted(len(errors), 'load')}, but {MIN_ERRORS} are needed{worst}"
    powers = [_power(row) for row in loads]
    return ThermalModel(
        likely, fast, slow, float(idle.get("idle_temperature_c", at_rest)), idle_w, errors,
        max(row["duration_s"] for row in loads), max(powers), _number(parts["residual_c"][0]["value"]),
        _unsettled(models, loads),
    )  # fmt: skip


def _unsettled(models: Sequence[Row], loads: Sequence[Row]) -> str:
    """Say by how much the longest load of the log still warmed at its end; empty if it had come to rest."""
    longest = max(loads, key=lambda row: row["duration_s"])["window"]
    for row in models:
        if (row["model"], row["quantity"], row["window"], row["form"]) == (THERMAL, END_SLOPE, longest, UNSETTLED):
            return f"{longest} still changed by {row['value']:+.2g} \u00b0C/min at its end"
    return ""


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def _power(row: Row) -> float:
    return float(row["mean_power_w"] if row["settled_power_w"] is None else row["settled_power_w"])


def _ends(rise: Floats, decay: Floats, likely: tuple[Floats, Floats], column: int) -> list[Floats]:
    """Return the lower or upper ends of the time constants; one that may be 0 acts at once."""
    known = (
        np.where(np.isfinite(own[:, column]), own[:, column], at) for own, at in zip((rise, decay), likely, strict=True)
    )
    return [np.maximum(one, MIN_CONSTANT_S) for one in known]


class Plan(NamedTuple):
    """Loads that follow each other [W], how long each runs [s], the start and the limit [degC] if one is given."""

    power_w: tuple[float, ...]
    duration_s: tuple[float, ...]
    start_c: float | None = None
    limit_c: float | None = None


def default_plan(known: ThermalModel, start_c: float | None, limit_c: float | None) -> Plan:
    """Return the heaviest load of the log, for as long as its longest load ran."""
    return Plan((known.highest_w,), (known.longest_s,), start_c, limit_c)


def planned(known: ThermalModel, plan: Plan) -> tuple[PlanCurve, list[str]]:
    """Return the temperature over a plan with its interval, and the ways in which it goes beyond the log."""
    start = known.idle_c if plan.start_c is None else plan.start_c
    asked = plan.power_w, plan.duration_s, start
    curve = plan_curve(known.likely, *asked)
    base = known.idle_w if np.isfinite(known.idle_w) else 0.0
    beyond = (max(plan.power_w) - base) / (known.highest_w - base) if known.highest_w > base else 1.0
    reach = error_reach_c(list(known.error_c.values()), max(beyond, 1.0))
    curve = with_interval(curve, plan_curve(known.fast, *asked), plan_curve(known.slow, *asked), reach)
    notes = []
    if max(plan.power_w) > known.highest_w * 1.02:
        notes.append(
            f"extrapolated: the heaviest load of the log consumes {known.highest_w:.4g} W, the plan "
            f"{max(plan.power_w):.4g} W"
        )
    if max(plan.duration_s) > known.longest_s * 1.02:
        notes.append(
            f"extrapolated: the longest load of the log runs {known.longest_s:.4g} s, one of the plan "
            f"{max(plan.duration_s):.4g} s; slower heating of the cooler or the room was not seen"
            + (f": {known.unsettled}" if known.unsettled else "")
        )
    return curve, notes


def plan_rows(known: ThermalModel, plan: Plan, curve: PlanCurve, coefficient: Row) -> list[dict[str, Any]]:
    """Return the answers to a plan: quantity, value, low, high, unit, flags and the reason for a missing value.

    ``coefficient`` has ``value``, ``low``, ``high`` in W/degC, and the ``reason`` where there is none.
    """
    flags = int(Flag.EXTRAPOLATED) if max(plan.power_w) > known.highest_w * 1.02 else 0
    peak = int(np.nanargmax(curve.temperature_c))
    ends = curve.low_c[peak], curve.high_c[peak]
    rows = [
        _row("peak_temperature_c", curve.temperature_c[peak], ends, "degC", flags=flags),
        _row("rise_c", curve.temperature_c[peak] - known.idle_c, np.subtract(ends, known.idle_c), "degC", flags=flags),
        _row("time_to_peak_s", curve.time_s[peak], None, "s"),
        _row("end_temperature_c", curve.temperature_c[-1], (curve.low_c[-1], curve.high_c[-1]), "degC", flags=flags),
    ]
    if plan.limit_c is not None:
        rows.append(_limit_row(curve, plan.limit_c, flags))
    costs = [heat_cost(curve, _number(coefficient[end]), known.idle_c) for end in ("value", "low", "high")]
    for name, unit in (("leakage_w", "W"), ("leakage_share", "1"), ("energy_j", "J")):
        value, low, high = (float(getattr(cost, name)) for cost in costs)
        quantity = {"energy_j": "heat_energy_j"}.get(name, name)
        reason = None if np.isfinite(value) else coefficient["reason"] or "the board is hottest under no load"
        rows.append(_row(quantity, value, (low, high), unit, flags=flags, reason=reason))
    return rows


def _limit_row(curve: PlanCurve, limit_c: float, flags: int) -> dict[str, Any]:
    value, early, late = (
        time_to_limit_s(curve.time_s, T, limit_c) for T in (curve.temperature_c, curve.high_c, curve.low_c)
    )
    reason = None
    if not np.isfinite(value):
        most = np.nanmax(curve.temperature_c)
        reason = f"the plan reaches {most:.1f} \u00b0C, below the limit of {limit_c:g} \u00b0C"
        if np.isfinite(early):
            reason += f"; within its interval the limit is reached after {early:.3g} s at the earliest"
    elif np.isfinite(early) and not np.isfinite(late):
        reason = f"after {early:.3g} s at the earliest; the lower end of the interval stays below the limit"
    return _row("time_to_limit_s", value, (early, late), "s", flags=flags, reason=reason)


def _row(
    quantity: str, value: float, ends: Any, unit: str, *, flags: int = 0, reason: str | None = None
) -> dict[str, Any]:
    low, high = (np.nan, np.nan) if ends is None else (float(one) for one in ends)
    kept = [float(one) if np.isfinite(one) else None for one in (value, low, high)]
    return {"quantity": quantity, "value": kept[0], "low": kept[1], "high": kept[2], "unit": unit, "flags": flags,
            "reason": reason}  # fmt: skip
