"""Temperature of the board of a run under planned loads, from the run's own thermal model and coefficient."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc.analysis.power.analyze import VERSION
from profsvc.analysis.power.thermal import plan as thermal_plan
from profsvc.analysis.power.thermal.models import THERMAL
from profsvc.analysis.power.thermal.plan import Plan
from profsvc.analysis.power.windows import IDLE, RUN
from profsvc.errors import InputError, UsageError, counted
from profsvc.formulas.numerics.flags import flag_names
from profsvc.reports.plots import thermal as thermal_plot
from profsvc.reports.rows import plain
from profsvc.views.power.run_power import power, upload_command

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
COLUMNS = ("quantity", "value", "low", "high", "unit", "flags", "reason")
COLDEST_C, HOTTEST_C = -60.0, 200.0
MAX_LOADS = 20


def thermal(
    engine: "Engine",
    run: str | int,
    load: Sequence[float] = (),
    duration: Sequence[float] = (),
    start: float | None = None,
    limit: float | None = None,
) -> dict[str, Any]:
    """Return the temperature of the board of a run over a plan of loads [W] and durations [s].

    Without loads the plan is the heaviest load of the run, for as long as its longest. ``answers`` has the peak, the
    time to the ``limit``, leakage and its energy; ``checks`` how the model predicts the loads of the run when each is
    left out; ``curve`` the temperature over time. Raise `InputError` with the reason and the log that would do, where
    the run's logs carry no model.
    """
    check_plan(load, duration, start, limit)
    view = power(engine, run)
    name = view["run"]["name"]
    sensors = {row["sensor_id"]: row for row in view["models"] if row["model"] == THERMAL}
    known: thermal_plan.ThermalModel | str = "no temperature was logged with the power"
    windows: list[Row] = []
    for sensor_id in sensors:
        own = [row for row in view["models"] if row["sensor_id"] == sensor_id]
        windows = [row for row in view["windows"] if row["sensor_id"] == sensor_id]
        known = thermal_plan.thermal_model(own, windows)
        if not isinstance(known, str):
            break
    if isinstance(known, str):
        if view["stored"] and any(row["analysis_version"] != VERSION for row in view["models"]):
            number = view["run"]["run_id"]
            raise InputError(f"run {name!r} was analysed by an older version; run: profsvc analyze id:{number}")
        raise InputError(
            f"run {name!r} predicts no temperature: {known}; to measure it, {thermal_plan.HOW_TO_LOG}, then: "
            f"{upload_command(view['run'])}"
        )
    plan = Plan(tuple(load), tuple(duration), start, limit) if load else thermal_plan.default_plan(known, start, limit)
    curve, notes = thermal_plan.planned(known, plan)
    coefficient = _coefficient(windows, max(plan.power_w))
    answers = [
        row | {"flags": " ".join(flag_names(row["flags"]))}
        for row in thermal_plan.plan_rows(known, plan, curve, coefficient)
    ]
    found: dict[str, Any] = plain(
        {
            "run": view["run"],
            "sensor": sensors[windows[0]["sensor_id"]]["sensor"],
            "plan": {
                "load_w": list(plan.power_w),
                "duration_s": list(plan.duration_s),
                "start_c": known.idle_c if plan.start_c is None else plan.start_c,
                "limit_c": plan.limit_c,
                "is_default": not load,
            },
            "model": _model(known, coefficient),
            "answers": answers,
            "checks": _checks(windows, known.error_c),
            "notes": notes,
            "curve": {key: values.tolist() for key, values in curve._asdict().items()},
        }
    )
    return found


def check_plan(load: Sequence[float], duration: Sequence[float], start: float | None, limit: float | None) -> None:
    """Raise `UsageError` for a plan that cannot be, before any work is done."""
    if len(load) != len(duration):
        raise UsageError(
            f"the plan has {counted(len(load), 'load')} and {counted(len(duration), 'duration')}; give each load its "
            "duration, such as 500,80 W for 60,30 s"
        )
    if len(load) > MAX_LOADS:
        raise UsageError(f"the plan has {len(load)} loads; at most {MAX_LOADS} are allowed")
    for option, values, lowest in (("--load", load, 0.0), ("--for", duration, math.ulp(0.0))):
        for value in values:
            if not (math.isfinite(value) and value >= lowest):
                allowed = "0 W or more" if option == "--load" else "a finite number of s above 0"
                raise UsageError(f"{option} {value:g} must be {allowed}")
    for option, one in (("--start", start), ("--limit", limit)):
        if one is not None and not COLDEST_C <= one <= HOTTEST_C:
            raise UsageError(f"{option} {one:g} must be from {COLDEST_C:g} to {HOTTEST_C:g} degrees C")


def drawn(view: Mapping[str, Any], form: str, *, dark: bool = False) -> bytes:
    """Return the figure of a plan."""
    return thermal_plot.plan(view["curve"], view["plan"]["limit_c"], title(view), form, dark=dark)


def title(view: Mapping[str, Any]) -> str:
    """Return the title of the figure of a plan."""
    return f"Planned temperature of run {view['run']['name']}"


def _coefficient(windows: Sequence[Row], load_w: float) -> dict[str, Any]:
    """Return the temperature coefficient of the load of the run that is nearest in power, or why there is none."""
    loads = [row for row in windows if row["kind"] not in (RUN, IDLE)]
    near = sorted(loads, key=lambda row: abs((row["settled_power_w"] or row["mean_power_w"]) - load_w))
    known = next((row for row in near if row["coefficient_w_per_c"] is not None), None)
    if known is None:
        reason = next((row["reason"] for row in near if row["reason"]), "the run has no temperature coefficient")
        return {"value": None, "low": None, "high": None, "reason": reason}
    ends = {"low": known["coefficient_low"], "high": known["coefficient_high"]}
    return {"value": known["coefficient_w_per_c"], **ends, "reason": None}


def _model(known: thermal_plan.ThermalModel, coefficient: Row) -> dict[str, Any]:
    parts = zip(known.likely.resistance_c_per_w, known.likely.rc_rise_s, known.likely.rc_decay_s, strict=True)
    return {
        "idle_c": known.idle_c,
        "idle_w": known.idle_w,
        "zero_power_c": known.likely.zero_c,
        "resistance_c_per_w": known.likely.total_c_per_w,
        "residual_c": known.residual_c,
        "parts": [{"resistance_c_per_w": r, "rc_rise_s": up, "rc_decay_s": down} for r, up, down in parts],
        "coefficient_w_per_c": coefficient["value"],
        "coefficient_low": coefficient["low"],
        "coefficient_high": coefficient["high"],
        "coefficient_reason": coefficient["reason"],
    }


def _checks(windows: Sequence[Row], errors: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return the loads of the run with their measured and predicted highest temperature."""
    found = []
    for row in windows:
        error = errors.get(str(row["window"]))
        if error is not None and row["highest_temperature_c"] is not None:
            found.append(
                {
                    "window": row["window"],
                    "power_w": row["settled_power_w"] or row["mean_power_w"],
                    "duration_s": row["duration_s"],
                    "highest_temperature_c": row["highest_temperature_c"],
                    "predicted_c": row["highest_temperature_c"] + error,
                    "error_c": error,
                }
            )
    return found
