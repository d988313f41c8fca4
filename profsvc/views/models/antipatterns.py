"""The anti-parallel patterns of a launch or of a run: the measured ratio of each, and the share that it loses."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from profsvc import specs, store
from profsvc.analysis.counters.arrays import Counts
from profsvc.analysis.launches.trip_counts import trip_count_balance
from profsvc.analysis.models import antipatterns as analysis
from profsvc.analysis.models.inputs import MissingCounters
from profsvc.errors import NotFoundError
from profsvc.formulas.performance.time_bound import lost_share
from profsvc.views.launches import causes
from profsvc.views.launches.listing import launches_of, tools_of
from profsvc.views.models.launch_models import known_of

if TYPE_CHECKING:
    import pandas as pd
    from sqlalchemy import Engine

    from profsvc.analysis.models.inputs import Inputs
    from profsvc.specs.advice.antipatterns import Pattern

Row = dict[str, Any]
COLUMNS = ("pattern", "title", "ratio", "metric", "lost_share", "saving_fraction", "kernel", "reason", "remedy")
NO_LOOPS = "no loop of the kernel branches back to an address, or none was executed"
NO_SOURCE = ("no source page of the launch; export one with: ncu -i REPORT.ncu-rep --csv --page source"
             " --print-source cuda,sass")  # fmt: skip
PER_LAUNCH = "known per launch with a source page: give --kernel"
NOTE = "shares of different patterns overlap and do not add up; each is of its own resource, not of the time"
TIME_NOTE = "time saved: what the causes of lost time behind the pattern cost, by their own estimate"


@store.snapshot
def antipatterns(engine: "Engine", run: str | int, kernel: str | None = None) -> Row:
    """Return one row per anti-parallel pattern: of one launch, or of a run without ``kernel``.

    ``ratio`` is the measured metric, ``lost_share`` what it means for the resource, ``saving_fraction`` the share of
    the time that the causes behind the pattern cost. Of a run, lost shares are means over its launches weighted by
    their time, and ``kernel`` is the one that loses most.
    """
    run_id = store.find_run(engine, run)
    rows, launch = _of_run(engine, run_id, run), None
    if kernel is not None:
        launch = launches_of(engine, run, kernel, 1)[0][0]
        rows = patterns_of_launch(engine, launch)
    info = store.parse_json_columns("v1_runs", store.select(engine, "v1_runs", run_id=run_id))[0]
    return {
        "run": {name: info[name] for name in ("run_id", "project", "name")},
        "launch": launch
        and {name: launch[name] for name in ("launch_id", "launch_index", "kernel", "kernel_short", "device")},
        "rows": rows,
        "notes": [NOTE, TIME_NOTE],
    }


def patterns_of_launch(engine: "Engine", launch: Mapping[str, Any]) -> list[Row]:
    """Return the patterns of one launch, a row of ``v1_launches``."""
    known = known_of(engine, launch)
    return with_inputs(engine, launch, known.counters, known.inputs())


def with_inputs(engine: "Engine", launch: Mapping[str, Any], counters: "pd.DataFrame", inputs: "Inputs") -> list[Row]:
    """Return the patterns of one launch, of which the model inputs are known."""
    counts = Counts(counters)
    ratios = {key: value[0] for key, value in analysis.measured_ratios(counts, inputs.values).items()}
    missing = MissingCounters(inputs, np.ones(1, dtype=np.bool_), counts)
    reasons: dict[str, str] = {}
    tool = tools_of(store.select(engine, "v1_uploads", upload_id=launch["upload_id"]))[launch["upload_id"]]
    for key, value in ratios.items():
        if np.isnan(value):
            reasons[key] = analysis.missing_reason(key, missing, tool, launch["compute_capability"])
    instructions = store.executed_instructions(engine, launch["run_id"], launch["launch_id"])
    trips = trip_count_balance(instructions)
    ratios["trip_counts"] = np.nan if trips is None else trips
    reasons["trip_counts"] = NO_LOOPS if instructions else NO_SOURCE
    ratios["kernel_boundary"], reasons["kernel_boundary"] = _idle_share(engine, launch["run_id"])
    lost = analysis.lost_shares(ratios)
    found = causes.causes_of_launches(engine, launch["run_id"], [launch["launch_id"]]).get(launch["launch_id"], [])
    saved = {cause["cause"]: cause["saving_fraction"] or 0.0 for cause in found if cause["kind"] == "flaw"}
    return [
        _row(pattern, ratios[key], float(lost[key].value), reasons.get(key), saved if found else None)
        for key, pattern in specs.patterns().items()
    ]


def _of_run(engine: "Engine", run_id: int, run: str | int) -> list[Row]:
    of_kernel: dict[str, list[Row]] = {}
    for row in store.lost_of_kernels(engine, run_id):
        of_kernel.setdefault(row["pattern"], []).append(row)
    if not of_kernel:
        raise NotFoundError(f"run {run!r} has no launches with counters; the patterns are read from counters")
    total_ns = sum(row["total_ns"] or 0.0 for row in next(iter(of_kernel.values())))
    costs = store.saved_by_cause(engine, run_id)
    saved = {name: ns / total_ns for name, ns in costs.items()} if total_ns and costs else None
    idle, why = _idle_share(engine, run_id)
    rows = []
    for key, pattern in specs.patterns().items():
        own = [row for row in of_kernel.get(key, []) if row["lost_ns"] is not None]
        known_ns = sum(row["known_ns"] or 0.0 for row in own)
        share = sum(row["lost_ns"] for row in own) / known_ns if known_ns else np.nan
        reason = next((row["reason"] for row in of_kernel.get(key, []) if row["reason"]), PER_LAUNCH)
        if key == "kernel_boundary":
            share, reason = float(lost_share(idle, pattern.reading).value), why
        row = _row(pattern, _ratio(share, pattern.reading), share, reason, saved)
        worst = max(own, key=lambda one: one["lost_ns"], default=None)
        rows.append(row | {"kernel": worst["kernel_short"] if worst and worst["lost_ns"] > 0 else None})
    return rows


def _ratio(lost: float, reading: str) -> float:
    """Return the ratio that loses a share: of several launches, the mean that their lost shares have."""
    with np.errstate(all="ignore"):
        return {"lost": lost, "kept": 1 - lost, "factor": float(1 / np.float64(1 - lost))}[reading]


def _idle_share(engine: "Engine", run_id: int) -> tuple[float, str]:
    """Return the share of the time of a run between its kernels, or why it is not known."""
    rows = [
        row
        for row in store.results_without_launch(engine, "v1_criteria", run_id)
        if row["kernel"] is None and row["criterion"] == "host_sync"
    ]
    value = rows[0]["value"] if rows else None
    return np.nan if value is None else 1 - value, rows[0]["reason"] if rows else "the run has no criteria"


def _row(pattern: "Pattern", ratio: float, lost: float, reason: str | None, saved: Mapping[str, float] | None) -> Row:
    known = not np.isnan(lost)
    saving = None if saved is None or not pattern.causes else sum(saved.get(name, 0.0) for name in pattern.causes)
    return {
        "pattern": pattern.key, "title": pattern.title, "metric": pattern.metric, "reading": pattern.reading,
        "ratio": ratio if known else None, "lost_share": lost if known else None, "saving_fraction": saving,
        "lost": pattern.lost, "remedy": pattern.remedy, "reason": None if known else reason, "kernel": None,
    }  # fmt: skip


def largest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return rows whose causes cost most time first, then those that lose most; what is not known comes last."""
    return sorted(rows, key=lambda row: (-(row["saving_fraction"] or 0.0), -(row["lost_share"] or 0.0)))
