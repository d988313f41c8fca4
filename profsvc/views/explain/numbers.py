"""The explanation of a number: formula, source, counters, metrics, upload and line."""

import re
from collections import Counter
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import analysis, specs, store
from profsvc.analysis.kernel_means import MEANS_TOOL
from profsvc.analysis.launches import memory_traces
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.kernel_means import means_of_run
from profsvc.specs.advice.causes import Cause, causes
from profsvc.views.catalog import titles_and_hints
from profsvc.views.explain import models as explain_models
from profsvc.views.explain import quantities
from profsvc.views.explain import rows as explain_rows
from profsvc.views.explain import runs as explain_runs
from profsvc.views.explain import terms as explain_terms
from profsvc.views.explain.names import canonical
from profsvc.views.launches import kernel_means
from profsvc.views.launches.listing import LIMIT, launches_of, why_no_result

if TYPE_CHECKING:
    from sqlalchemy import Engine

METRIC = re.compile(r"(?:[a-z]+:)?(?:'[^']*'|[A-Za-z_][\w.]*)")
POTENTIAL = {
    "name": "potential",
    "title": "Overall potential speedup",
    "formula": "T / min(T, ramp + fill + max(useful time of a unit / attainable share, chained loads))",
    "reference": "FineGrained2016",
    "section": "V, repaired and extended; profsvc.formulas.performance.useful_work",
    "hint": "See the useful time of each unit in the details of a launch: profsvc show RUN --kernel NAME.",
    "counters": [
        "duration_ns", "dram_read_bytes", "dram_write_bytes", "dram_peak_bytes_per_s", "global_load_bytes_requested",
        "global_store_bytes_requested", "l2_utilization_fraction", "global_theoretical_sectors",
        "global_theoretical_sectors_ideal", "shared_load_inst_warp", "shared_store_inst_warp",
        "shared_wavefronts_ideal",
        "global_load_inst_warp", "global_store_inst_warp", "flop_count_sp_add", "flop_count_sp_mul",
        "flop_count_sp_fma", "flop_count_dp_add", "flop_count_dp_mul", "flop_count_dp_fma", "inst_tensor_warp",
        "inst_executed_warp", "warp_nonpred_execution_efficiency_fraction", "fu_special_utilization_fraction",
        "sm_active_cycles_max", "sm_elapsed_cycles_avg", "sm_clock_hz", "sm_count",
    ],
}  # fmt: skip


REPRODUCED = "reproduced"
LOST_TIME = "share of the time: issue slots, stalls by reason and idle SMs, divided among causes by their counters"
HIERARCHY = {
    "name": memory_traces.MODEL,
    "title": "L1 and L2 hit ratios over random orders of the concurrent warps of a memory trace",
    "formula": "hits of LRU caches; L1 misses go to L2; see profsvc.formulas.memory_hierarchy.hierarchy_mc",
    "reference": "Baghsorkhi2012",
    "section": "after Kim2012, 4.2.3; profsvc.formulas.memory_hierarchy",
    "hint": "Upload a trace: profsvc formats memory-trace. A wide spread means that no single order is typical.",
    "counters": [],
}


def explain(engine: "Engine | None", name: str, run: str | int | None, kernel: str | None) -> dict[str, Any]:
    """Explain a criterion, model, model input, counter, vendor metric, column or term of a view.

    With a run, down to the lines of its files. ``reproduced`` lists the published figures used to check the formulas.
    """
    if name.strip().casefold() == REPRODUCED:
        return _of_figures()
    name = canonical(name)
    view = _meaning(name)
    view["definitions"] = [_of_counter(counter) for counter in view["counters"]]
    view["trace"] = []
    if view["kind"] == explain_models.KIND:
        return view
    if run is not None and engine is not None and view["kind"] in quantities.KINDS:
        run_id = store.find_run(engine, run)
        chosen = launches_of(engine, run, kernel, LIMIT)[0] if kernel else ()
        ids = [one["launch_id"] for one in chosen] if kernel else [None]
        view["trace"] = explain_rows.launch_steps(engine, name, run_id, ids)
    if run is not None and view["kind"] not in quantities.KINDS:
        if engine is None:
            raise UsageError("a run can only be explained with a store")
        if view["kind"] == explain_terms.KIND:
            view["trace"] = explain_terms.rows_of(engine, name, store.find_run(engine, run))
            return view
        if name == memory_traces.MODEL:
            view["trace"] = _of_traces(engine, store.find_run(engine, run))
            return view
        view["trace"], view["truncated"] = _traces(engine, run, kernel, view)
    return view


def _meaning(name: str) -> dict[str, Any]:
    """Return the meaning of a name of any kind."""
    entries = {**titles_and_hints(), "potential": POTENTIAL, **explain_models.entries(), memory_traces.MODEL: HIERARCHY}
    entries |= {name: _of_cause(cause) for name, cause in causes().items()}
    known, inputs = specs.counters(), specs.model_inputs()
    if name in entries and "counters" in entries[name]:
        return _of_result(entries[name])
    if name in known:
        return _of_counter(name)
    if used := _counters_using(name):
        return {"name": name, "kind": "metric", "meaning": f"vendor metric, used by {len(used)} counters",
                "counters": used}  # fmt: skip
    if name in inputs:
        return explain_models.explain_input(name)
    if name in entries:
        unit = entries[name]
        own = quantities.quantity("launch.useful_ns") or {}
        return own | {"name": name, "kind": "unit", "meaning": unit["title"], "hint": unit["hint"], "counters": []}
    found = quantities.quantity(name) or explain_terms.term(name) or explain_models.explain_model(name)
    if found is not None:
        return found
    raise NotFoundError.near(
        "criterion, model, counter, metric, term or column",
        name,
        [*entries, *inputs, *known, *specs.terms(), REPRODUCED],
    )


@store.snapshot
def _traces(
    engine: "Engine", run: str | int, kernel: str | None, view: dict[str, Any]
) -> tuple[list[dict[str, Any]], bool]:
    means = _of_means(engine, store.find_run(engine, run), kernel, view)
    chosen, truncated = launches_of(engine, run, kernel, LIMIT, may_lack=bool(means))
    if means:  # launches of a trace without counters add nothing to the average
        chosen = [one for one in chosen if store.select(engine, "v1_counter_values", launch_id=one["launch_id"])]
    run_id = store.find_run(engine, run)
    rows = [] if kernel else explain_runs.run_steps(engine, view["name"], run_id)
    return [*rows, *means, *(row for one in chosen for row in _of_launch(engine, one, view))], truncated


def _of_traces(engine: "Engine", run_id: int) -> list[dict[str, Any]]:
    """Return the results of the memory hierarchy of a run with their files."""
    uploads = store.select(engine, "v1_uploads", run_id=run_id)
    files = {f"upload {row['upload_id']}": row["file_name"] for row in uploads}
    return [
        {"launch": row["kernel_short"] or "trace", "name": row["quantity"], "value": row["value"], "unit": row["unit"],
         "from": row["reason"] or f"{files[row['form']]}, {row['form']}"}
        for row in store.select(engine, "v1_models", run_id=run_id, model=memory_traces.MODEL)
    ]  # fmt: skip


def _of_figures() -> dict[str, Any]:
    """Return the published figures used to check the formulas."""
    figures = [
        {"figure": one.name, "source": one.source, "place": one.place, "formula": one.formula, "printed": one.printed,
         "computed": one.computed, "unit": one.unit, "reproduced": one.reproduced, "why": one.why}
        for one in specs.reproduced()
    ]  # fmt: skip
    count = Counter(one["reproduced"] for one in figures)
    meaning = (
        f"the formulas reproduce {count['yes']} of {len(figures)} published figures; {count['no']} contradict "
        "their source "
        f"or were rounded; the inputs of {count['cannot']} were not published"
    )
    return {
        "name": REPRODUCED,
        "kind": "figures",
        "meaning": meaning,
        "counters": [],
        "definitions": [],
        "trace": [],
        "figures": figures,
    }


def _of_cause(cause: Cause) -> dict[str, Any]:
    return {
        "name": cause.name,
        "title": f"{cause.title}. {cause.remedy}",
        "formula": LOST_TIME,
        "reference": cause.reference,
        "section": "profsvc.analysis.causes",
        "hint": cause.first_step,
        "counters": list(cause.evidence),
    }


def _of_result(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": entry["name"],
        "kind": "result",
        "meaning": entry["title"],
        "formula": entry["formula"],
        "source": quantities.cited(entry["reference"], entry["section"]),
        "hint": entry["hint"],
        "counters": list(entry["counters"]),
    }


def _of_counter(name: str) -> dict[str, Any]:
    counter = specs.counters()[name]
    expressions = {
        tool: expression.text
        for tool in ("ncu", "nvprof", "nsys")
        if (expression := specs.metrics(tool, "9.0" if tool == "ncu" else None).get(name)) is not None
    }
    return {
        "name": name,
        "kind": "counter",
        "meaning": counter.meaning,
        "unit": counter.unit,
        "expressions": expressions,
        "counters": [name],
    }


def _counters_using(metric: str) -> list[str]:
    return [
        counter
        for counter, expression in specs.metrics("ncu", "9.0").items()
        if any(metric == used for used in expression.names)
    ]


def _of_launch(engine: "Engine", launch: dict[str, Any], view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows from the result of one launch to the cells of its file."""
    cells, tool = _cells(engine, launch)
    stored = store.select(engine, "v1_counter_values", launch_id=launch["launch_id"])
    counters = {c["counter"]: c for c in stored} or _counters(engine, launch, tool)
    rows = _results(engine, view, launch["launch_index"], launch_id=launch["launch_id"])
    why = "" if rows else why_no_result(engine, launch["run_id"], tool, launch["device"])
    if view["name"] in causes() and not rows:
        absent = "no time of this launch is attributed to it" if stored else why
        rows = [{"launch": launch["launch_index"], "name": view["name"], "from": absent}]
    elif view["kind"] == "result" and not rows:
        rows = [{"launch": launch["launch_index"], "name": view["name"], "from": why}]
    rows += explain_models.walked(engine, launch, view, counters)
    return rows + _trace(view, launch, tool, counters, cells)


def _of_means(engine: "Engine", run_id: int, kernel: str | None, view: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows from the results of kernel averages to the cells of their files."""
    means = None if kernel and kernel.lstrip("#").isdigit() else means_of_run(engine, run_id)
    if means is None:
        return []
    counters, rows = kernel_means.counters(means), []
    for one in kernel_means.chosen(means, kernel):
        only = {"run_id": run_id, "launch_id": None, "kernel": one["kernel"]}
        cells: dict[str, dict[str, Any]] = {}
        for cell in store.select(engine, "v1_metrics", statistic="avg", **only):
            cells.setdefault(cell["metric"], _cell(cell, cell["metric"], store.upload(engine, cell["upload_id"])))
        known = counters.get(one["kernel"], {})
        rows += _results(engine, view, one["kernel_short"], **only)
        rows += explain_models.walked(engine, one | {"launch_index": one["kernel_short"]}, view, known)
        rows += _trace(view, {**one, "launch_index": one["kernel_short"]}, MEANS_TOOL, known, cells)
    return rows


def _trace(
    view: dict[str, Any],
    launch: dict[str, Any],
    tool: str,
    counters: dict[str, dict[str, Any]],
    cells: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the rows from the counters of a launch to the cells of their files."""
    index, rows = launch["launch_index"], []
    waiting, done = list(view["counters"]), set()
    while waiting:
        name = waiting.pop(0)
        if name in done:
            continue
        done.add(name)
        if name not in counters:
            option = _collecting(tool, name, launch["compute_capability"], cells)
            rows.append({"launch": index, "name": name, "from": f"not in this export{option}"})
            continue
        expression = counters[name]["expression"] or ""
        unit = specs.counters()[name].unit
        rows.append({"launch": index, "name": name, "value": counters[name]["value"], "unit": unit, "from": expression})
        waiting += [reference[1:] for reference in re.findall(r"@[a-z0-9_]+", expression)]
        used = [metric for metric in METRIC.findall(expression) if metric in cells]
        rows += [{"launch": index, "name": "", **cells[metric]} for metric in used]
    return rows


def _counters(engine: "Engine", launch: dict[str, Any], tool: str) -> dict[str, dict[str, Any]]:
    """Return the counters of a launch without stored ones, from its columns and the metrics of its trace."""
    capability, key = launch["compute_capability"], launch["launch_id"]
    one = store.table(engine, "v1_launches", launch_id=key)
    table, sources = analysis.launch_counters(one, store.table(engine, "v1_metrics", launch_id=key), tool, capability)
    known = table.iloc[0].dropna()
    return {str(name): {"value": value, "expression": sources[str(name)][0]} for name, value in known.items()}


def _collecting(tool: str, counter: str, capability: str | None, cells: Container[str]) -> str:
    """Return how to collect a missing counter; empty if the tool has no option for it."""
    option = specs.how_to_collect(tool, counter, capability, cells) if tool in ("ncu", "nvprof", "nsys") else None
    return f"; collect it with: {option}" if option else ""


def _results(engine: "Engine", view: dict[str, Any], index: Any, **only: Any) -> list[dict[str, Any]]:
    """Return the rows of the result; empty for a counter or a metric."""
    if view["kind"] != "result":
        return []
    if view["name"] in specs.models():
        return explain_models.answers(engine, index, view["name"], **only)
    if view["name"] in causes():
        found, column = store.select(engine, "v1_causes", cause=view["name"], **only), "saving_fraction"
    elif view["name"] == "potential":
        found, column = store.select(engine, "v1_potential", **only), "speedup"
    else:
        found, column = store.select(engine, "v1_criteria", criterion=view["name"], **only), "value"
    return [
        {"launch": index, "name": view["name"], "value": row[column], "unit": "1",
         "from": row["reason"] or view["formula"]}
        for row in found
    ]  # fmt: skip


def _cells(engine: "Engine", launch: dict[str, Any]) -> tuple[dict[str, dict[str, Any]], str]:
    """Return the first stored cell of each metric by name, then device attributes, and the tool.

    Of several files of a launch, the tool is that of the file with the metrics for criteria.
    """
    cells: dict[str, dict[str, Any]] = {}
    found = store.select(engine, "v1_metrics", launch_id=launch["launch_id"])
    files = {number: store.upload(engine, number)
             for number in dict.fromkeys([*(cell["upload_id"] for cell in found), launch["upload_id"]])}  # fmt: skip
    tools = {number: str(file["format"]).split("-")[0] for number, file in files.items()}
    tool = next((tool for tool in tools.values() if specs.feeds_criteria(tool)), tools[launch["upload_id"]])
    for cell in found:
        name = specs.metric_of(cell["section"], cell["metric"], launch["compute_capability"])
        shown = name if name == cell["metric"] else f"{name} ({cell['metric']!r})"
        cells.setdefault(name, _cell(cell, shown, files[cell["upload_id"]]))
    said = store.device_attributes(engine, launch["run_id"])
    for cell in said[said["device_index"] == launch["device_index"]].to_dict("records"):
        cells.setdefault(cell["metric"], _cell({"unit": None, **cell}, cell["metric"], cell))
    return cells, tool


def _cell(cell: Mapping[str, Any], shown: str, upload: Mapping[str, Any]) -> dict[str, Any]:
    raw = f"{cell['raw_text']} {cell['unit'] or ''}".strip()
    return {"value": cell["value"], "unit": cell["si_unit"], "metric": shown, "raw_text": raw, "line": cell["line"],
            "file": upload["file_name"]}  # fmt: skip
