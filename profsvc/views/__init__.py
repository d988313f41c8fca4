"""One function a question: arguments in, plain dict out. The command line and the pages print the same dict."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from profsvc import analysis, formats, specs, store
from profsvc.analysis.advice import advice
from profsvc.analysis.kernel_names import called
from profsvc.errors import NotFoundError
from profsvc.views import kernel_means, memory_traces
from profsvc.views.model_record import Record
from profsvc.views.models import side_by_side

if TYPE_CHECKING:
    from sqlalchemy import Engine

LIMIT = 40
"""How many launches of a run are shown where nobody says how many."""

SUMMARY = (
    "launch", "kernel", "duration_us", "compute_pct", "memory_pct", "bound", "potential", "ceiling", "first",
    "flags", "ceiling_flags",
)  # fmt: skip


LAST_HINT = {"limit": "at its limit", "uncounted": "useful work not counted"}
"""How the hint begins that no saving goes with, by its kind."""


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


@store.one_state
def run(engine: "Engine", name: str | int, limit: int | None = LIMIT) -> dict[str, Any]:
    """Everything about one run: itself, its uploads, a row a launch, the run's own criteria and potential.

    Of a run with more than ``limit`` launches (None: all are wanted) only the longest have a row: then ``truncated`` is
    true, and ``kernels`` sums up all launches by kernel.
    """
    run_id = store.find_run(engine, name)
    info, uploads = store.select(engine, "v1_runs", run_id=run_id)[0], store.select(engine, "v1_uploads", run_id=run_id)
    launches, truncated = store.longest_launches(engine, run_id, limit)
    kernels, more_kernels = store.kernels_by_time(engine, run_id, limit or LIMIT) if truncated else ([], False)
    for kernel in kernels:
        total, whole = kernel["total_ms"], info["gpu_time_ns"]
        kernel["share_pct"] = _percent(total * 1e6 / whole) if whole and total is not None else None
    whole_bound = store.select(engine, "v1_potential", run_id=run_id, launch_id=None, kernel=None)
    return {
        "run": store.with_objects("v1_runs", [info])[0],
        "uploads": store.with_objects("v1_uploads", uploads),
        "total_launches": info["launches"],
        "truncated": truncated,
        "kernels": kernels,
        "kernels_truncated": more_kernels,
        "launches": _summaries(engine, run_id, launches, uploads),
        "means": [{**row, "first": _first(row["advice"])} for row in kernel_means.summaries(engine, run_id, texts())],
        "criteria": _in_order(
            store.select(engine, "v1_criteria", run_id=run_id, launch_id=None, kernel=None), "criterion"
        ),
        "potential": whole_bound[0] if whole_bound else None,
        "sensors": store.sensors(engine, run_id),
        "transfers": store.transfers_by_kind(engine, run_id),
        "summaries": store.select(engine, "v1_kernel_summaries", run_id=run_id),
        "traces": memory_traces.of_run(engine, run_id),
        "rejects": store.count(engine, "v1_rejects", run_id),
    }


@store.one_state
def launch_page(
    engine: "Engine",
    run_id: int,
    *,
    order: str = "-duration",
    skip: int = 0,
    limit: int = LIMIT,
    kernel_id: int | None = None,
    seconds: float = 10.0,
) -> dict[str, Any]:
    """A row a launch of a run, as `run` has them: a page of them in an order, of all kernels or of one."""
    launches, truncated = store.list_launches(
        engine, run_id, order=order, skip=skip, limit=limit, kernel_id=kernel_id, seconds=seconds
    )
    uploads = store.select(engine, "v1_uploads", run_id=run_id)
    return {"launches": _summaries(engine, run_id, launches, uploads), "truncated": truncated}


def advice_of_run(view: dict[str, Any]) -> list[dict[str, Any]]:
    """What to do first in a whole run, from its own criteria and potential; ``view`` is what `run` gives."""
    known = [row for row in view["criteria"] if row["value"] is not None]
    return advice(known, [], view["potential"] or {}, texts())


def _summaries(
    engine: "Engine", run_id: int, launches: list[dict[str, Any]], uploads: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """A row a launch: what it is, what limits it, its potential and what to do first."""
    ids, words = [launch["launch_id"] for launch in launches], texts()
    potential = {row["launch_id"]: row for row in store.select_of(engine, "v1_potential", run_id, ids)}
    compute, memory = (
        {
            row["launch_id"]: row["value"]
            for row in store.select_of(engine, "v1_counter_values", run_id, ids, counter=counter)
        }
        for counter in ("sol_sm_fraction", "sol_memory_fraction")
    )
    by_launch = _grouped(_in_order(store.select_of(engine, "v1_criteria", run_id, ids), "criterion"))
    waste = _grouped(store.select_of(engine, "v1_models", run_id, ids, model="waste"))
    tools, rows = _tools(uploads), []
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
                "duration_us": None if launch["duration_ns"] is None else launch["duration_ns"] / 1e3,
                "compute_pct": _percent(compute.get(key)),
                "memory_pct": _percent(memory.get(key)),
                "bound": words[bound["bound"]]["title"] if bound.get("bound") else None,
                "potential": bound.get("speedup"),
                "ceiling": bound.get("speedup_ceiling"),
                "flags": bound.get("flags"),
                "ceiling_flags": bound.get("ceiling_flags"),
                "reason": bound["reason"] if bound else why_no_result(tools[launch["upload_id"]], (), launch["device"]),
                "first": _first(advice(by_launch.get(key, []), waste.get(key, []), bound, words)),
                "criteria": {row["criterion"]: row["value"] for row in by_launch.get(key, [])},
            }
        )
    return rows


def _tools(uploads: list[dict[str, Any]]) -> dict[int, str]:
    """The tool that each upload is of, as `profsvc.specs` names it."""
    return {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads}


def _first(hints: list[dict[str, Any]]) -> str:
    if not hints:
        return ""
    top = hints[0]
    if top["kind"] in LAST_HINT:
        return f"{LAST_HINT[top['kind']]}: {top['title']}"
    return f"{top['title']}: -{100 * top['saving_fraction']:.0f} % time"


@store.one_state
def launch(engine: "Engine", run_name: str | int, kernel: str, limit: int | None = LIMIT) -> dict[str, Any]:
    """Open the launches of one kernel: criteria, potential, models, the vendor's estimates beside ours, what to do.

    ``kernel`` is a launch number, ``id:`` and a launch_id, or a part of the kernel's name; several launches may answer,
    the longest of them if there are more than ``limit``, and then ``truncated`` is true.
    """
    run_id = store.find_run(engine, run_name)
    means = _means(engine, run_id, kernel)
    chosen, truncated = launches_of(engine, run_name, kernel, limit, may_lack=bool(means))
    of_run, opened = _opened(engine, run_id, chosen)
    if means:  # launches that only a trace tells of have nothing that the mean has not
        opened = [{**one, "of_run": of_run} for one in means] + [one for one in opened if one["criteria"]]
        truncated = truncated and any(one["criteria"] for one in opened[len(means) :])
    info = store.with_objects("v1_runs", store.select(engine, "v1_runs", run_id=run_id))[0]
    return {"run": info, "truncated": truncated, "launches": opened}


def _of_id(engine: "Engine", run_id: int, launch_id: int) -> list[dict[str, Any]]:
    """The launch with a number in the store, or the one that it is where another file stands for its own."""
    every = store.select_of(engine, "v1_launches_all", run_id, [launch_id]) if launch_id < 2**62 else []
    if not every:
        raise NotFoundError(f"run {run_id} has no launch with the launch_id {launch_id}; v1_launches lists them")
    return store.select_of(engine, "v1_launches", run_id, [every[0]["same_as"] or launch_id])


def _opened(
    engine: "Engine", run_id: int, chosen: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The criteria of the whole run, and these launches opened."""
    ids, words = [one["launch_id"] for one in chosen], texts()
    known = {row["launch_id"]: row for row in store.select_of(engine, "v1_potential", run_id, ids)}
    criteria, rules = (_grouped(store.select_of(engine, view, run_id, ids)) for view in ("v1_criteria", "v1_rules"))
    models = _grouped(store.select_of(engine, "v1_models", run_id, ids))
    whole = store.select(engine, "v1_criteria", run_id=run_id, criterion="host_sync", launch_id=None, kernel=None)
    of_run = _in_order(whole, "criterion")
    tools, opened = _tools(store.select(engine, "v1_uploads", run_id=run_id)), []
    record = Record(engine)
    for one in chosen:
        key = one["launch_id"]
        own, said = _in_order(criteria.get(key, []), "criterion"), models.get(key, [])
        waste, useful = ([row for row in said if row["model"] == name] for name in ("waste", "useful_work"))
        opened.append(
            {
                "launch": one,
                "criteria": own,
                "of_run": of_run,
                "potential": known.get(key),
                "reason": None if own else _why(engine, one, tools[one["upload_id"]]),
                "units": _in_order(useful, "quantity"),
                "models": side_by_side(
                    said,
                    known.get(key, one)["duration_ns"],  # by the tool that counted
                    known.get(key),
                    one["device"],
                    record.of(one["device"], one["kernel"], known.get(key, {}).get("bound")),
                ),
                "rules": rules.get(key, []),
                "advice": advice(own, waste, known.get(key, {}), words),
            }
        )
    return of_run, opened


def _means(engine: "Engine", run_id: int, kernel: str) -> list[dict[str, Any]]:
    """The kernels of a name that are known by means, opened; none where a number is meant."""
    if re.fullmatch(r"#?\d+", kernel):
        return []
    opened = kernel_means.opened(engine, run_id, kernel, texts())
    ordered = [("criteria", "criterion"), ("units", "quantity")]
    return [{**one, **{key: _in_order(one[key], column) for key, column in ordered}} for one in opened]


def _why(engine: "Engine", launch: dict[str, Any], tool: str) -> str:
    measured = analysis.feeds_criteria(tool)
    metrics = store.table(engine, "v1_metrics", launch_id=launch["launch_id"]) if measured else ()
    return why_no_result(tool, metrics, launch["device"])


def why_no_result(tool: str, metrics: Collection[Any], device: str | None = None) -> str:
    """Why a launch of a tool has no criteria and no potential at all, not even null ones; ``metrics`` are its own."""
    if analysis.feeds_criteria(tool) and len(metrics):
        return "the run was not analysed since the file came; run: profsvc analyze"
    how = specs.how_to_measure(tool, device)
    return f"the export has no metrics of this launch that criteria are computed from; {how}"


@store.one_state
def launches_of(
    engine: "Engine",
    run_name: str | int,
    kernel: str | None = None,
    limit: int | None = None,
    *,
    may_lack: bool = False,
) -> tuple[list[dict[str, Any]], bool]:
    """The launches of a run, or those of one kernel: by number, by ``id:`` launch_id, by name, or by a part of it.

    Of more than ``limit`` the longest, and whether there are more. No launch of a kernel is an error unless the run
    ``may_lack`` them.
    """
    run_id = store.find_run(engine, run_name)
    if kernel is None:
        return store.longest_launches(engine, run_id, limit)
    if re.fullmatch(r"#?\d+", kernel):
        index = int(kernel.lstrip("#"))
        chosen = store.longest_launches(engine, run_id, limit, index=index) if index < 2**62 else ([], False)
        if not chosen[0]:
            held = _numbers(engine, run_id)
            raise NotFoundError(f"no kernel named {kernel!r}, and no launch of that number in {run_name!r}; {held}")
        return chosen
    if numbered := re.fullmatch(r"id:(\d+)", kernel, re.ASCII):
        return _of_id(engine, run_id, int(numbered[1])), False
    kernels = store.select(engine, "v1_kernel_totals", run_id=run_id)
    meant = set(called(kernel, [one["kernel"] for one in kernels]))
    exact = {one["kernel_id"] for one in kernels if one["kernel"] in meant}
    if ids := exact or {one["kernel_id"] for one in kernels if kernel in one["kernel"]}:
        return store.longest_launches(engine, run_id, limit, kernel_ids=sorted(ids))
    if may_lack:
        return [], False
    raise NotFoundError.near("kernel", kernel, {str(one["kernel_short"]) for one in kernels})


def _numbers(engine: "Engine", run_id: int) -> str:
    """Say which numbers the launches of a run have."""
    first, last = store.launch_numbers(engine, run_id)
    return "the run has no launches" if first is None else f"its launches are #{first} to #{last}"


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
