"""One function a question: arguments in, plain dict out. The command line and the pages print the same dict."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from profsvc import analysis, formats, specs, store
from profsvc.analysis.advice import advice
from profsvc.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Engine

SUMMARY = (
    "launch", "kernel", "duration_us", "compute_pct", "memory_pct", "bound", "potential", "ceiling", "first",
)  # fmt: skip


def texts() -> dict[str, dict[str, Any]]:
    """Titles and hints of the nine criteria, of the units of the joint bound and of the causes of waste, by name."""
    domain = specs.criteria()
    named = {entry["name"]: entry for entry in [*domain["criterion"], *domain["unit"], *domain["cause"]]}
    return named | {"latency": named["exposed_latency"]}


def _grouped(rows: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["launch_id"], []).append(row)
    return groups


def _in_order(rows: list[dict[str, Any]], column: str) -> list[dict[str, Any]]:
    """Rows of criteria or units in the order of criteria.toml, with their titles."""
    words = texts()
    place = {name: number for number, name in enumerate(words)}
    ordered = sorted(rows, key=lambda row: place[row[column]])
    return [row | {"title": words[row[column]]["title"]} for row in ordered]


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 1)


def run(engine: "Engine", name: str) -> dict[str, Any]:
    """Everything about one run: itself, its uploads, a row a launch, the run's own criteria and potential."""
    run_id = store.find_run(engine, name)
    criteria = _in_order(store.select(engine, "v1_criteria", run_id=run_id), "criterion")
    potential = {p["launch_id"]: p for p in store.select(engine, "v1_potential", run_id=run_id)}
    compute, memory = (
        {c["launch_id"]: c["value"] for c in store.select(engine, "v1_counter_values", run_id=run_id, counter=counter)}
        for counter in ("sol_sm_fraction", "sol_memory_fraction")
    )
    by_launch = _grouped(criteria)
    uploads, words = store.select(engine, "v1_uploads", run_id=run_id), texts()
    tools = {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads}
    waste = _grouped(store.select(engine, "v1_models", run_id=run_id, model="waste"))
    rows = []
    for launch, _ in once(store.select(engine, "v1_launches", run_id=run_id), potential):
        key = launch["launch_id"]
        bound = potential.get(key, {})
        hints = advice(by_launch.get(key, []), waste.get(key, []), bound, words)
        rows.append(
            {
                "launch": launch["launch_index"],
                "kernel": launch["kernel_short"],
                "kernel_full": launch["kernel"],
                "launch_id": key,
                "upload_id": launch["upload_id"],
                "device": launch["device"],
                "duration_us": None if launch["duration_ns"] is None else launch["duration_ns"] / 1e3,
                "compute_pct": _percent(compute.get(key)),
                "memory_pct": _percent(memory.get(key)),
                "bound": words[bound["bound"]]["title"] if bound.get("bound") else None,
                "potential": bound.get("speedup"),
                "ceiling": bound.get("speedup_ceiling"),
                "reason": bound["reason"] if bound else why_no_result(tools[launch["upload_id"]], ()),
                "first": _first(hints),
                "criteria": {r["criterion"]: r["value"] for r in by_launch.get(key, [])},
            }
        )
    return {
        "run": store.select(engine, "v1_runs", run_id=run_id)[0],
        "uploads": uploads,
        "launches": rows,
        "criteria": by_launch.get(None, []),
        "potential": potential.get(None),
        "sensors": store.sensors(engine, run_id),
        "transfers": _transfers(store.select(engine, "v1_transfers", run_id=run_id)),
        "summaries": store.select(engine, "v1_kernel_summaries", run_id=run_id),
        "rejects": len(store.select(engine, "v1_rejects", run_id=run_id)),
    }


def _transfers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies and sets of a run by kind: how many, how long, how much."""
    kinds: dict[str, dict[str, Any]] = {}
    for row in rows:
        kind = kinds.setdefault(row["kind"], {"kind": row["kind"], "count": 0, "duration_ms": 0.0, "bytes": 0})
        kind["count"] += 1
        kind["duration_ms"] += (row["duration_ns"] or 0.0) / 1e6
        kind["bytes"] += row["bytes"] or 0
    return sorted(kinds.values(), key=lambda kind: -kind["duration_ms"])


def once(
    launches: list[dict[str, Any]], potential: dict[Any, dict[str, Any]]
) -> list[tuple[dict[str, Any], list[int]]]:
    """Launches that several pages of one report hold, once each, with the ids of all its pages.

    The page whose potential is known best stands for the launch.
    """
    groups: dict[int, list[dict[str, Any]]] = {}
    for one in launches:
        groups.setdefault(one["same_as"] or one["launch_id"], []).append(one)

    def doubt(one: dict[str, Any]) -> tuple[bool, str, int]:
        row = potential.get(one["launch_id"], {})
        return row.get("speedup") is None, row.get("flags") or "", one["launch_id"]

    return [(min(group, key=doubt), [one["launch_id"] for one in group]) for group in groups.values()]


def _first(hints: list[dict[str, Any]]) -> str:
    if not hints:
        return ""
    top = hints[0]
    if top["kind"] == "limit":
        return f"at its limit: {top['title']}"
    return f"{top['title']}: -{100 * top['saving_fraction']:.0f} % time"


def launch(engine: "Engine", run_name: str, kernel: str) -> dict[str, Any]:
    """Open the launches of one kernel: criteria, potential, the vendor's estimates beside ours, and what to do.

    ``kernel`` is a launch number, or a part of the kernel's name; several launches may answer.
    """
    run_id = store.find_run(engine, run_name)
    chosen = launches_of(engine, run_name, kernel)
    known = {p["launch_id"]: p for p in store.select(engine, "v1_potential", run_id=run_id)}
    words = texts()
    whole = store.select(engine, "v1_criteria", run_id=run_id, criterion="host_sync")
    of_run = _in_order([row for row in whole if row["launch_id"] is None], "criterion")
    opened = []
    for one, pages in once(chosen, known):
        key = one["launch_id"]
        criteria = _in_order(store.select(engine, "v1_criteria", launch_id=key), "criterion")
        bounds = store.select(engine, "v1_potential", launch_id=key)
        waste = store.select(engine, "v1_models", launch_id=key, model="waste")
        opened.append(
            {
                "launch": one,
                "criteria": criteria,
                "of_run": of_run,
                "potential": bounds[0] if bounds else None,
                "reason": None if criteria else _why(engine, one),
                "units": _in_order(store.select(engine, "v1_models", launch_id=key, model="useful_work"), "quantity"),
                "rules": [rule for page in pages for rule in store.select(engine, "v1_rules", launch_id=page)],
                "advice": advice(criteria, waste, bounds[0] if bounds else {}, words),
            }
        )
    return {"run": store.select(engine, "v1_runs", run_id=run_id)[0], "launches": opened}


def _why(engine: "Engine", launch: dict[str, Any]) -> str:
    tool = str(store.upload(engine, launch["upload_id"])["format"]).split("-")[0]
    return why_no_result(tool, store.metrics(engine, launch["upload_id"], [launch["launch_id"]]).index)


def why_no_result(tool: str, metrics: Collection[Any]) -> str:
    """Why a launch of a tool has no criteria and no potential at all, not even null ones; ``metrics`` are its own."""
    if analysis.feeds_criteria(tool) and len(metrics):
        return "the run was not analysed since the file came; run: profsvc analyze"
    return f"the export has no metrics of this launch that criteria are computed from; {specs.how_to_measure(tool)}"


def launches_of(engine: "Engine", run_name: str, kernel: str | None = None) -> list[dict[str, Any]]:
    """The launches of a run, or those of one kernel: by number, by exact name, or by a part of the name."""
    launches = store.select(engine, "v1_launches", run_id=store.find_run(engine, run_name))
    if kernel is None:
        return launches
    if re.fullmatch(r"#?\d+", kernel):
        index = int(kernel.lstrip("#"))
        chosen = [one for one in launches if one["launch_index"] == index]
    else:
        exact = [one for one in launches if kernel in (one["kernel"], one["kernel_short"])]
        chosen = exact or [one for one in launches if kernel in one["kernel"]]
    if not chosen and re.fullmatch(r"#?\d+", kernel):
        numbers = [one["launch_index"] for one in launches]
        held = f"its launches are #{min(numbers)} to #{max(numbers)}" if numbers else "the run has no launches"
        raise NotFoundError(f"no kernel named {kernel!r}, and no launch of that number in {run_name!r}; {held}")
    if not chosen:
        raise NotFoundError.near("kernel", kernel, {str(one["kernel_short"]) for one in launches})
    return chosen


def devices(engine: "Engine") -> list[dict[str, Any]]:
    """The devices that runs of the store were made on."""
    return store.select(engine, "v1_devices")


def catalogue() -> list[dict[str, Any]]:
    """The devices this program has figures for."""
    return [
        {
            "name": d.name,
            "compute_capability": d.compute_capability,
            "sms": d.sms,
            "boost_clock_ghz": None if d.boost_clock_hz is None else d.boost_clock_hz / 1e9,
            "dram_peak_gb_per_s": None if d.dram_peak_bytes_per_s is None else d.dram_peak_bytes_per_s / 1e9,
            "tdp_w": d.tdp_w,
        }
        for d in specs.devices().values()
    ]


def readers() -> list[dict[str, str]]:
    """The formats that can be read, with a line each."""
    return [{"format": r.NAME, "what": r.PAGE.strip().splitlines()[0]} for r in formats.READERS]


def reader(name: str) -> str:
    """The page of one format: which command makes it, what is taken, an example."""
    return str(formats.by_name(name).PAGE)
