"""Power, work per joule and energy saved on several numbers of SMs: of the loads of a run, or of a launch by models."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc.analysis.power.options import Options
from profsvc.analysis.power.sweeps.sms import CORES, SAVINGS
from profsvc.analysis.power.sweeps.sms import MODEL as LAWS
from profsvc.errors import NotFoundError, counted
from profsvc.formulas.power.core_count import energy_savings, optimal_cores_scan
from profsvc.views.models.plots import plot
from profsvc.views.power.run_power import power

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = Mapping[str, Any]
ROWS = ("load", "sensor", "sms", "power_w", "per_joule", "of_best", "energy_saved", "runtime_energy_saved",
        "gated_energy_saved")  # fmt: skip
BEST = ("load", "sensor", "best_sms", "low", "high", "law", "left_out_rms_w", "left_out_worst_w", "reason")
OF_LAUNCH = ("model", "sms", "relative_speed", "power_w", "of_best", "energy_saved", "runtime_energy_saved",
             "gated_energy_saved")  # fmt: skip
MODELS = ("mwp_cwp", "throughput")
NO_SWEEP = (
    "run {!r} has no load on several numbers of SMs; mark the same load with 4 or more numbers in the column sms "
    "(profsvc formats marks)"
)
GATED = "gated: if idle SMs were switched off and drew nothing; a projection, not a measurement"


def sm_counts(engine: "Engine", run: str | int, sensor: str | None = None) -> dict[str, Any]:
    """Return the loads of a run on each number of SMs, the best number of each, and what fewer SMs save.

    Savings are relative to all SMs, for the same work. Where the best number lies outside of what was measured it is
    null, with the reason.
    """
    return sm_counts_of_view(power(engine, run, Options(sensor=sensor)))


def sm_counts_of_view(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return `sm_counts` of a power view that is known."""
    models = [row for row in view["models"] if row["model"] in (LAWS, CORES)]
    loads = list(dict.fromkeys((row["window"], row["sensor_id"]) for row in models))
    if not loads:
        raise NotFoundError(NO_SWEEP.format(view["run"]["name"]))
    rows: list[Row] = []
    best: list[Row] = []
    for load, sensor_id in loads:
        own = {row["quantity"]: row for row in models if (row["window"], row["sensor_id"]) == (load, sensor_id)}
        windows = [
            row for row in view["windows"]
            if row["load"] == load and row["sensor_id"] == sensor_id and row["active_sms"]
        ]  # fmt: skip
        rows += _levels(str(load), windows, own)
        best.append(_best(str(load), own))
    return {"run": view["run"], "rows": rows, "best": best, "columns": ROWS, "notes": [GATED]}


def _levels(load: str, windows: Sequence[Row], own: Mapping[str, Row]) -> list[Row]:
    per_joule = {row["active_sms"]: _value(own, f"per_joule_on_{row['active_sms']}_sms") for row in windows}
    most = max((value for value in per_joule.values() if value is not None), default=None)
    found: list[Row] = []
    for row in sorted(windows, key=lambda row: float(row["active_sms"])):
        n, work = row["active_sms"], per_joule[row["active_sms"]]
        each = {"load": load, "sensor": row["sensor"], "sms": n, "power_w": row["settled_power_w"], "per_joule": work,
                "of_best": None if work is None or not most else work / most}  # fmt: skip
        saved = {pattern.removesuffix("_on_{}_sms"): pattern.format(n) for pattern in SAVINGS.values()}
        found.append(each | {name: _value(own, quantity) for name, quantity in saved.items()})
    return found


def _best(load: str, own: Mapping[str, Row]) -> Row:
    first = next(iter(own.values()))
    found: dict[str, Any] = dict.fromkeys(BEST) | {"load": load, "sensor": first["sensor"]}
    law = str((own["base_w"]["form"] or "").split("; ")[1].removesuffix(" law")) if "base_w" in own else None
    errors = {name: _value(own, f"{name}_{law}") for name in ("left_out_rms_w", "left_out_worst_w")}
    top: Row = own.get("best_sms") or own.get("law") or {}
    ends = {name: top.get(name) for name in ("low", "high")}
    reasons = dict.fromkeys(
        own[name]["reason"] for name in ("law", "best_sms", "energy_saved") if name in own and own[name]["reason"]
    )
    return found | errors | ends | {
        "law": law, "best_sms": _value(own, "best_sms"), "reason": "; ".join(reasons) or None
    }  # fmt: skip


def _value(own: Mapping[str, Row], quantity: str) -> Any:
    return own[quantity]["value"] if quantity in own else None


def launch_sm_counts(engine: "Engine", run: str | int, kernel: str) -> dict[str, Any]:
    """Return what a launch gains on fewer SMs: its time by two models, its power by the law of a measured sweep.

    The best number is null, with the reason, where the power was not measured, or not on so few or so many SMs.
    """
    found = plot(engine, run, "sms", kernel)
    rows: list[Row] = []
    best: list[Row] = []
    sms = np.array([row["sms"] for row in found["rows"]], np.float64)
    watts = np.array([row["power_w"] for row in found["rows"]], np.float64)
    for model in MODELS:
        speed = np.array([row[model] for row in found["rows"]], np.float64)
        if not np.isfinite(speed).any():
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            time = 1 / speed
        scan = optimal_cores_scan(sms, time, watts, num_sms=sms[-1])
        reason = _launch_reason(found, float(scan.best))
        number = None if reason else float(scan.best)
        best.append(dict.fromkeys(BEST) | {"load": model, "best_sms": number, "reason": reason})
        idle = found["idle_w"]
        powers = () if idle is None else (watts - idle, watts[-1] - idle, idle)
        saved = energy_savings(sms, sms[-1], time, time[-1], *powers) if powers else None
        rows += [
            {"model": model, "sms": float(n), "relative_speed": float(speed[k]), "power_w": _known(watts[k]),
             "of_best": _known(scan.per_watt[k] / scan.per_watt_best),
             **{pattern.removesuffix("_on_{}_sms"): None if saved is None else _known(getattr(saved, account)[k])
                for account, pattern in SAVINGS.items()}}
            for k, n in enumerate(sms)
        ]  # fmt: skip
    return {"run": found["run"], "rows": rows, "best": best, "columns": OF_LAUNCH, "notes": [*found["notes"], GATED]}


def _launch_reason(found: Row, best: float) -> str | None:
    if found["measured_sms"] is None:
        return str(found["notes"][-1])
    low, high = found["measured_sms"]
    if low <= best <= high:
        return None
    sms = counted(f"{best:.0f}", "SM")
    return f"it would be {sms}, but the power was measured on {low:.0f} to {high:.0f} SMs; measure it there"


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
