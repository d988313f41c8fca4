"""The launches of a run, and the details of those of one kernel."""

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from profsvc import analysis, specs, store
from profsvc.analysis.potential.advice import advice
from profsvc.errors import NotFoundError
from profsvc.kernel_names import matching_kernels
from profsvc.views import causes, kernel_means
from profsvc.views.catalog import in_order, titles_and_hints
from profsvc.views.models.launch_models import side_by_side
from profsvc.views.models.past_errors import Record

if TYPE_CHECKING:
    from sqlalchemy import Engine

LIMIT = 40
"""Default number of launches shown."""


def grouped(rows: list[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return rows by their launch_id."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["launch_id"], []).append(row)
    return groups


def tools_of(uploads: list[dict[str, Any]]) -> dict[int, str]:
    """Return the tool of each upload by its name in `profsvc.specs`."""
    return {upload["upload_id"]: str(upload["format"]).split("-")[0] for upload in uploads}


@store.snapshot
def launch(engine: "Engine", run_name: str | int, kernel: str, limit: int | None = LIMIT) -> dict[str, Any]:
    """Return the details of the launches of one kernel: criteria, potential, models, causes, Nsight estimates.

    ``kernel`` is a launch number, ``id:`` and a launch_id, or a part of the kernel name. If more than ``limit``
    launches match, only the longest are returned and ``truncated`` is true.
    """
    run_id = store.find_run(engine, run_name)
    means = _means(engine, run_id, kernel)
    chosen, truncated = launches_of(engine, run_name, kernel, limit, may_lack=bool(means))
    of_run, opened = _opened(engine, run_id, chosen)
    if means:  # launches of a trace without counters add nothing to the average
        opened = [{**one, "of_run": of_run} for one in means] + [one for one in opened if one["criteria"]]
        truncated = truncated and any(one["criteria"] for one in opened[len(means) :])
    info = store.parse_json_columns("v1_runs", store.select(engine, "v1_runs", run_id=run_id))[0]
    return {"run": info, "truncated": truncated, "launches": opened}


def _of_id(engine: "Engine", run_id: int, launch_id: int) -> list[dict[str, Any]]:
    """Return the launch with a number in the store, or the launch that it duplicates."""
    every = store.launch_rows(engine, "v1_launches_all", run_id, [launch_id]) if launch_id < 2**62 else []
    if not every:
        raise NotFoundError(f"run {run_id} has no launch with the launch_id {launch_id}; see v1_launches")
    return store.launch_rows(engine, "v1_launches", run_id, [every[0]["same_as"] or launch_id])


def _opened(
    engine: "Engine", run_id: int, chosen: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the criteria of the whole run, and the details of these launches."""
    ids, words = [one["launch_id"] for one in chosen], titles_and_hints()
    known = {row["launch_id"]: row for row in store.launch_rows(engine, "v1_potential", run_id, ids)}
    criteria, rules = (grouped(store.launch_rows(engine, view, run_id, ids)) for view in ("v1_criteria", "v1_rules"))
    models = grouped(store.launch_rows(engine, "v1_models", run_id, ids))
    whole = store.select(engine, "v1_criteria", run_id=run_id, criterion="host_sync", launch_id=None, kernel=None)
    of_run = in_order(whole, "criterion")
    tools, opened = tools_of(store.select(engine, "v1_uploads", run_id=run_id)), []
    record, caused = Record(engine), causes.of_launches(engine, run_id, ids)
    for one in chosen:
        key = one["launch_id"]
        own, said = in_order(criteria.get(key, []), "criterion"), models.get(key, [])
        useful = [row for row in said if row["model"] == "useful_work"]
        opened.append(
            {
                "launch": one,
                "criteria": own,
                "of_run": of_run,
                "potential": known.get(key),
                "reason": None if own else _why(engine, one, tools[one["upload_id"]]),
                "units": in_order(useful, "quantity"),
                "models": side_by_side(
                    said,
                    known.get(key, one)["duration_ns"],  # measured by the tool with the counters
                    known.get(key),
                    one["device"],
                    record.of(one["device"], one["kernel"], known.get(key, {}).get("bound")),
                ),
                "rules": causes.beside(rules.get(key, []), caused.get(key, [])),
                "causes": caused.get(key, []),
                "advice": causes.hints(caused.get(key, [])) or advice(own, known.get(key, {}), words),
            }
        )
    return of_run, opened


def _means(engine: "Engine", run_id: int, kernel: str) -> list[dict[str, Any]]:
    """Return the details of kernels with averages; none if ``kernel`` is a number."""
    if re.fullmatch(r"#?\d+", kernel):
        return []
    opened = kernel_means.opened(engine, run_id, kernel, titles_and_hints())
    ordered = [("criteria", "criterion"), ("units", "quantity")]
    return [{**one, **{key: in_order(one[key], column) for key, column in ordered}} for one in opened]


def _why(engine: "Engine", launch: dict[str, Any], tool: str) -> str:
    measured = analysis.feeds_criteria(tool)
    metrics = store.table(engine, "v1_metrics", launch_id=launch["launch_id"]) if measured else ()
    return why_no_result(tool, metrics, launch["device"])


def why_no_result(tool: str, metrics: Collection[Any], device: str | None = None) -> str:
    """Return why a launch has no rows of criteria and potential; ``metrics`` are its own."""
    if analysis.feeds_criteria(tool) and len(metrics):
        return "the run was not analysed after the upload; run: profsvc analyze"
    how = specs.how_to_measure(tool, device)
    return f"the export lacks the metrics for the criteria of this launch; {how}"


@store.snapshot
def launches_of(
    engine: "Engine",
    run_name: str | int,
    kernel: str | None = None,
    limit: int | None = None,
    *,
    may_lack: bool = False,
) -> tuple[list[dict[str, Any]], bool]:
    """Return launches of a run or of one kernel: by number, ``id:`` launch_id, name or part of it.

    At most ``limit`` launches, the longest, and whether there are more. A kernel without launches is an error unless
    the run ``may_lack`` them.
    """
    run_id = store.find_run(engine, run_name)
    store.require_rows_of(engine, run_id, "its launches are among")
    if kernel is None:
        return store.longest_launches(engine, run_id, limit)
    if re.fullmatch(r"#?\d+", kernel):
        index = int(kernel.lstrip("#"))
        chosen = store.longest_launches(engine, run_id, limit, index=index) if index < 2**62 else ([], False)
        if not chosen[0]:
            numbers = _numbers(engine, run_id)
            raise NotFoundError(f"no kernel named {kernel!r}, and no launch of that number in {run_name!r}; {numbers}")
        return chosen
    if numbered := re.fullmatch(r"id:(\d+)", kernel, re.ASCII):
        return _of_id(engine, run_id, int(numbered[1])), False
    kernels = store.select(engine, "v1_kernel_totals", run_id=run_id)
    meant = set(matching_kernels(kernel, [one["kernel"] for one in kernels]))
    exact = {one["kernel_id"] for one in kernels if one["kernel"] in meant}
    if ids := exact or {one["kernel_id"] for one in kernels if kernel in one["kernel"]}:
        return store.longest_launches(engine, run_id, limit, kernel_ids=sorted(ids))
    if may_lack:
        return [], False
    raise NotFoundError.near("kernel", kernel, {str(one["kernel_short"]) for one in kernels})


def _numbers(engine: "Engine", run_id: int) -> str:
    """Return the range of launch numbers of a run as text."""
    first, last = store.launch_numbers(engine, run_id)
    return "the run has no launches" if first is None else f"it has launches #{first} to #{last}"
