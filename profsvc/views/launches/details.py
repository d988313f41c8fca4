"""The details of the launches of one kernel: criteria, models, causes, and the estimates of its profiler."""

import re
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.potential.advice import advice
from profsvc.views.catalog import in_order, titles_and_hints
from profsvc.views.launches import causes
from profsvc.views.launches.listing import LIMIT, grouped, launches_of, tools_of, why_no_result
from profsvc.views.models.launch_models import side_by_side
from profsvc.views.models.past_errors import Record

if TYPE_CHECKING:
    from sqlalchemy import Engine


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


def _opened(
    engine: "Engine", run_id: int, chosen: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the criteria of the whole run, and the details of these launches."""
    ids, words = [one["launch_id"] for one in chosen], titles_and_hints()
    known = {row["launch_id"]: row for row in store.launch_rows(engine, "v1_potential", run_id, ids)}
    criteria, rules = (grouped(store.launch_rows(engine, view, run_id, ids)) for view in ("v1_criteria", "v1_rules"))
    models = grouped(store.launch_rows(engine, "v1_models", run_id, ids))
    whole = [
        row
        for row in store.results_without_launch(engine, "v1_criteria", run_id)
        if row["kernel"] is None and row["criterion"] == "host_sync"
    ]
    of_run = in_order(whole, "criterion")
    tools, opened = tools_of(store.select(engine, "v1_uploads", run_id=run_id)), []
    record, caused = Record(engine), causes.causes_of_launches(engine, run_id, ids)
    counted = {row["launch_id"]: row for row in store.launch_rows(engine, "v1_counters", run_id, ids)} if rules else {}
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
                "reason": None if own else why_no_result(engine, run_id, tools[one["upload_id"]], one["device"]),
                "units": in_order(useful, "quantity"),
                "models": side_by_side(
                    said,
                    known.get(key, one)["duration_ns"],  # measured by the tool with the counters
                    known.get(key),
                    one["device"],
                    record.of(one["device"], one["kernel"], known.get(key, {}).get("bound")),
                ),
                "rules": causes.beside(rules.get(key, []), caused.get(key, []), counted.get(key)),
                "causes": caused.get(key, []),
                "first": causes.first(caused.get(key, []), known.get(key, one)["duration_ns"]),
                "advice": causes.hints(caused.get(key, [])) or advice(own, known.get(key, {}), words),
            }
        )
    return of_run, opened


def _means(engine: "Engine", run_id: int, kernel: str) -> list[dict[str, Any]]:
    """Return the details of kernels with averages, what these need is imported for them; none if it is a number."""
    if re.fullmatch(r"#?\d+", kernel) or not store.has_kernel_metrics(engine, run_id):
        return []
    from profsvc.views.launches import kernel_means

    opened = kernel_means.opened(engine, run_id, kernel, titles_and_hints())
    ordered = [("criteria", "criterion"), ("units", "quantity")]
    return [{**one, **{key: in_order(one[key], column) for key, column in ordered}} for one in opened]
