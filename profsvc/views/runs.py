"""A run: its launches, kernels, criteria, potential, sensors and files."""

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.potential.advice import KERNEL_TIME, MIN_SAVING, advice
from profsvc.views.catalog import in_order, titles_and_hints
from profsvc.views.launches import causes
from profsvc.views.launches.listing import LIMIT, grouped, tools_of, why_no_result
from profsvc.views.traces import memory as memory_traces_view
from profsvc.views.traces import wall_time as wall_time_view

if TYPE_CHECKING:
    from sqlalchemy import Engine

SUMMARY = (
    "launch", "kernel", "duration_us", "compute_pct", "memory_pct", "bound", "potential", "ceiling", "first",
    "flags", "ceiling_flags",
)  # fmt: skip


MAX_ADVICE = 8
HINT_PREFIXES = {"limit": "already at the limit of", "uncounted": "useful work not counted"}
"""Kind of a hint without saving -> how it starts."""


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 1)


@store.snapshot
def run(
    engine: "Engine", name: str | int, limit: int | None = LIMIT, *, max_causes: int | None = None
) -> dict[str, Any]:
    """Return a run: its uploads, one row per launch, its criteria and potential.

    With more than ``limit`` launches (None: no limit) only the longest are included; then ``truncated`` is true, and
    ``kernels`` has the totals by kernel. ``causes`` are ``limit`` pairs of kernel and cause, unless ``max_causes``.
    """
    run_id = store.find_run(engine, name)
    info, uploads = store.select(engine, "v1_runs", run_id=run_id)[0], store.select(engine, "v1_uploads", run_id=run_id)
    launches, truncated = store.longest_launches(engine, run_id, limit)
    truncated = truncated or (info["archived"] is not None and info["launches"] > 0)
    kernels, more_kernels = store.kernels_by_time(engine, run_id, limit or LIMIT) if truncated else ([], False)
    for kernel in kernels:
        total, whole = kernel["total_ms"], info["gpu_time_ns"]
        kernel["share_pct"] = _percent(total * 1e6 / whole) if whole and total is not None else None
    means = _means(engine, run_id)
    bounds, criteria = (_of_whole_run(engine, view, run_id) for view in ("v1_potential", "v1_criteria"))
    return {
        "run": store.parse_json_columns("v1_runs", [info])[0],
        "uploads": store.parse_json_columns("v1_uploads", uploads),
        "total_launches": info["launches"],
        "truncated": truncated,
        "kernels": kernels,
        "kernels_truncated": more_kernels,
        "launches": _summaries(engine, run_id, launches, uploads),
        "means": [{**row, "first": row["first"] or _first(row["advice"])} for row in means],
        "causes": causes.causes_of_run(engine, run_id, max_causes or limit or LIMIT, means),
        "criteria": in_order(criteria, "criterion"),
        "potential": bounds[0] if bounds else None,
        "sensors": store.sensors(engine, run_id),
        "transfers": store.transfers_by_kind(engine, run_id),
        "summaries": store.select(engine, "v1_kernel_summaries", run_id=run_id),
        "traces": memory_traces_view.traces_of_run(engine, run_id),
        "wall_time": wall_time_view.wall_time(engine, run_id, uploads),
        "rejects": store.count(engine, "v1_rejects", run_id),
    }


@store.snapshot
def _of_whole_run(engine: "Engine", view: str, run_id: int) -> list[dict[str, Any]]:
    return [row for row in store.results_without_launch(engine, view, run_id) if row["kernel"] is None]


def launch_page(
    engine: "Engine",
    run_id: int,
    only: store.LaunchFilter = store.ALL_LAUNCHES,
    *,
    order: str = "-duration",
    skip: int = 0,
    limit: int = LIMIT,
    seconds: float = 10.0,
) -> dict[str, Any]:
    """Return one page of the launches of a run that satisfy a filter, as in `run`, and their ``total``."""
    launches, truncated = store.list_launches(
        engine, run_id, only, order=order, skip=skip, limit=limit, seconds=seconds
    )
    uploads = store.select(engine, "v1_uploads", run_id=run_id)
    total = skip + len(launches)
    if truncated or not launches:
        total = store.count_launches(engine, run_id, only, seconds=seconds)
    return {
        "launches": _summaries(engine, run_id, launches, uploads),
        "truncated": truncated,
        "total": total,
    }


def advice_of_run(view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return advice for a whole run: kernels with causes, and idle gaps; ``view`` is the result of `run`.

    Without causes the criteria of the run stand for them.
    """
    known = [row for row in view["criteria"] if row["value"] is not None]
    words, whole = titles_and_hints(), view["potential"] or {}
    if not view["causes"] or not whole.get("duration_ns"):
        return advice(known, whole, words)
    general = advice([row for row in known if words[row["criterion"]]["level"] == "run"], whole, words)
    savings = [
        {"kind": "saving", "name": one["cause"], "title": f"{one['title']} in {one['kernel_short']}",
         "saving_fraction": one["saving_ns"] / whole["duration_ns"], "saving_ns": one["saving_ns"],
         "budget": KERNEL_TIME, "capped": False, "hint": one["first_step"], "evidence": []}
        for one in view["causes"][:MAX_ADVICE]
    ]  # fmt: skip
    savings = [one for one in savings if one["saving_fraction"] >= MIN_SAVING]
    wall = [one for one in general if one["kind"] == "saving"]
    ranked = sorted([*wall, *savings], key=lambda one: -(one["saving_ns"] or 0.0))
    return ranked + [one for one in general if one["kind"] != "saving"]


def _means(engine: "Engine", run_id: int) -> list[dict[str, Any]]:
    """Return the kernels of a run of which only averages are known; what these need is imported for them alone."""
    if not store.has_kernel_metrics(engine, run_id):
        return []
    from profsvc.views.launches import kernel_means

    return kernel_means.summaries(engine, run_id, titles_and_hints())


def _summaries(
    engine: "Engine", run_id: int, launches: list[dict[str, Any]], uploads: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return one row per launch with its bottleneck, potential speedup and first step."""
    ids, words = [launch["launch_id"] for launch in launches], titles_and_hints()
    potential = {row["launch_id"]: row for row in store.launch_rows(engine, "v1_potential", run_id, ids)}
    compute, memory = (
        {
            row["launch_id"]: row["value"]
            for row in store.launch_rows(engine, "v1_counter_values", run_id, ids, counter=counter)
        }
        for counter in ("sol_sm_fraction", "sol_memory_fraction")
    )
    by_launch = grouped(in_order(store.launch_rows(engine, "v1_criteria", run_id, ids), "criterion"))
    caused = causes.causes_of_launches(engine, run_id, ids)
    tools, why, rows = tools_of(uploads), cache(partial(why_no_result, engine, run_id)), []
    for launch in launches:
        key = launch["launch_id"]
        bound = potential.get(key, {})
        rows.append(
            {
                "launch": launch["launch_index"],
                "kernel": launch["kernel_short"],
                "kernel_full": launch["kernel"],
                "launch_id": key,
                "upload_id": launch["upload_id"],
                "device": launch["device"],
                "grid": [launch[f"grid_{axis}"] for axis in "xyz"],
                "duration_us": None if launch["duration_ns"] is None else launch["duration_ns"] / 1e3,
                "compute_pct": _percent(compute.get(key)),
                "memory_pct": _percent(memory.get(key)),
                "bound": words[bound["bound"]]["title"] if bound.get("bound") else None,
                "potential": bound.get("speedup"),
                "ceiling": bound.get("speedup_ceiling"),
                "flags": bound.get("flags"),
                "ceiling_flags": bound.get("ceiling_flags"),
                "reason": bound["reason"] if bound else why(tools[launch["upload_id"]], launch["device"]),
                "first": causes.first(caused.get(key, []), bound.get("duration_ns"))
                or _first(advice(by_launch.get(key, []), bound, words)),
                "causes": caused.get(key, []),
                "criteria": {row["criterion"]: row["value"] for row in by_launch.get(key, [])},
            }
        )
    return rows


def _first(hints: list[dict[str, Any]]) -> str:
    if not hints:
        return ""
    top = hints[0]
    if top["kind"] in HINT_PREFIXES:
        return f"{HINT_PREFIXES[top['kind']]}: {top['title']}"
    return f"{top['title']}: up to {100 * top['saving_fraction']:.0f} % less time"
