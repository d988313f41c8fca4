"""The way of a number of a run: from its result to the counters, metrics, files and lines that it comes from."""

import re
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from profsvc import analysis, specs, store
from profsvc.analysis.kernel_means import MEANS_TOOL
from profsvc.pipeline.kernel_means import means_of_run
from profsvc.specs.advice.causes import causes
from profsvc.views.explain import models as explain_models
from profsvc.views.explain import runs as explain_runs
from profsvc.views.launches import kernel_means
from profsvc.views.launches.listing import LIMIT, launches_of, why_no_result

if TYPE_CHECKING:
    from sqlalchemy import Engine

Cell = tuple[Mapping[str, Any], str, Mapping[str, Any]]
"""A stored value, the name that is shown for its metric, and its file."""
METRIC = re.compile(r"(?:[a-z]+:)?(?:'[^']*'|[A-Za-z_][\w.]*)")


@store.snapshot
def traced(
    engine: "Engine", run: str | int, kernel: str | None, view: dict[str, Any]
) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows from the results of a run to the cells of its files, and whether there are more launches."""
    means = _of_means(engine, store.find_run(engine, run), kernel, view)
    chosen, truncated = launches_of(engine, run, kernel, LIMIT, may_lack=bool(means))
    if means:  # launches of a trace without counters add nothing to the average
        chosen = [one for one in chosen if store.select(engine, "v1_counter_values", launch_id=one["launch_id"])]
    run_id = store.find_run(engine, run)
    rows = [] if kernel else explain_runs.run_steps(engine, view["name"], run_id)
    said = cast("list[dict[str, Any]]", store.device_attributes(engine, run_id).to_dict("records"))
    return [*rows, *means, *(row for one in chosen for row in _of_launch(engine, one, view, said))], truncated


def _of_launch(
    engine: "Engine", launch: dict[str, Any], view: dict[str, Any], said: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the rows from the result of one launch to the cells of its file; ``said`` are attributes of devices."""
    cells, tool = _cells(engine, launch, said)
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
        cells: dict[str, Cell] = {}
        for cell in store.select(engine, "v1_metrics", statistic="avg", **only):
            cells.setdefault(cell["metric"], (cell, cell["metric"], store.upload(engine, cell["upload_id"])))
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
    cells: Mapping[str, Cell],
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
        rows += [{"launch": index, "name": "", **_shown(*cells[metric])} for metric in used]
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


def _cells(engine: "Engine", launch: dict[str, Any], said: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Cell], str]:
    """Return the first stored cell of each metric by name, then device attributes, and the tool.

    Of several files of a launch, the tool is that of the file with the metrics for criteria.
    """
    cells: dict[str, Cell] = {}
    found = store.select(engine, "v1_metrics", launch_id=launch["launch_id"])
    files = {number: store.upload(engine, number)
             for number in dict.fromkeys([*(cell["upload_id"] for cell in found), launch["upload_id"]])}  # fmt: skip
    tools = {number: str(file["format"]).split("-")[0] for number, file in files.items()}
    tool = next((tool for tool in tools.values() if specs.feeds_criteria(tool)), tools[launch["upload_id"]])
    for cell in found:
        name = specs.metric_of(cell["section"], cell["metric"], launch["compute_capability"])
        shown = name if name == cell["metric"] else f"{name} ({cell['metric']!r})"
        cells.setdefault(name, (cell, shown, files[cell["upload_id"]]))
    for attribute in said:
        if attribute["device_index"] == launch["device_index"]:
            cells.setdefault(attribute["metric"], ({"unit": None, **attribute}, attribute["metric"], attribute))
    return cells, tool


def _shown(cell: Mapping[str, Any], shown: str, upload: Mapping[str, Any]) -> dict[str, Any]:
    raw = f"{cell['raw_text']} {cell['unit'] or ''}".strip()
    return {"value": cell["value"], "unit": cell["si_unit"], "metric": shown, "raw_text": raw, "line": cell["line"],
            "file": upload["file_name"]}  # fmt: skip
