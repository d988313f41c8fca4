"""The explanation of a number: formula, source, counters, metrics, upload and line."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.analysis.launches import memory_traces
from profsvc.errors import NotFoundError, UsageError, counted
from profsvc.specs.advice.causes import Cause, causes
from profsvc.views.catalog import titles_and_hints
from profsvc.views.explain import models as explain_models
from profsvc.views.explain import quantities
from profsvc.views.explain import rows as explain_rows
from profsvc.views.explain import terms as explain_terms
from profsvc.views.explain.names import canonical
from profsvc.views.launches.listing import LIMIT, launches_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

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
        from profsvc.views.explain.traces import traced  # which needs frames

        view["trace"], view["truncated"] = traced(engine, run, kernel, view)
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
        return {"name": name, "kind": "metric", "meaning": f"vendor metric, used by {counted(len(used), 'counter')}",
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
