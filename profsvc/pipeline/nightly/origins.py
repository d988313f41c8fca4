"""What a change costs, and which commit and what else it came with."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profsvc import store
from profsvc.analysis.changes.kernels.renames import KernelNames
from profsvc.analysis.changes.open_findings import OPEN_STATES

if TYPE_CHECKING:
    from sqlalchemy import Engine

Row = dict[str, Any]


def with_costs(engine: "Engine", rows: Sequence[Row], names: KernelNames | None = None) -> list[Row]:
    """Return findings with ``cost_ns``: how much more time per run their kernel takes, by the total time of its
    launches in the first run of the change. None for other quantities, and where the run was deleted.
    """
    if not rows:
        return []
    timed = [row for row in rows if row["kind"] == "duration" and row["kernel"] and row["after"]]
    times = store.time_by_kernel(engine, sorted({int(row["run_id"]) for row in timed}))
    totals = {
        (int(run), str(kernel)): float(total)
        for run, kernel, total in times[["run_id", "kernel", "total_ns"]].itertuples(index=False)
        if total is not None
    }
    return [row | {"cost_ns": _cost(row, totals, names or KernelNames({}))} for row in rows]


def _cost(row: Mapping[str, Any], totals: Mapping[tuple[int, str], float], names: KernelNames) -> float | None:
    if row["kind"] != "duration" or not row["kernel"]:
        return None
    total = next((totals[key] for name in names.of(row).all if (key := (int(row["run_id"]), name)) in totals), None)
    return total * (row["after"] - row["before"]) / row["after"] if total and row["after"] else None


def with_origins(engine: "Engine", known: Sequence[Row], builds: Mapping[int, Any]) -> list[Row]:
    """Return findings; those that are open with their cost, the name ``run`` and the ``build`` of their first run, and
    what else changed with them.

    ``builds``: of the runs that are looked at; of older ones the commit counts.
    """
    alive = with_costs(engine, [row for row in known if row["state"] in OPEN_STATES])
    if not alive:
        return list(known)
    older = sorted({int(row["run_id"]) for row in alive} - set(builds))
    builds = {**builds, **store.commits_of_runs(engine, older)}
    names = store.names_of_runs(engine, sorted({int(row["run_id"]) for row in alive}))
    told = store.differences_of_findings(engine, [int(row["finding_id"]) for row in alive])
    more = {
        int(row["finding_id"]): row
        | {"run": names.get(int(row["run_id"])), "build": builds.get(int(row["run_id"]))}
        | {"differences": told.get(int(row["finding_id"]), [])}
        for row in alive
    }
    return [more.get(int(row["finding_id"]), row) for row in known]
