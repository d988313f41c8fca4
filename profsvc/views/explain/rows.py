"""One number of a row of a view: its value, what else of the row is in it, and the file and line that it came from."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Engine

Step = dict[str, Any]
ITEM = "item"
"""The row number within a run for views without a key."""
RUN = "v1_runs"
MAX_STEPS = 400
# Number on pages -> the view, rows and column it is computed from.
OF_PAGES: Mapping[str, tuple[str, Mapping[str, str], str]] = {
    "launch.useful_ns": ("v1_models", {"model": "useful_work"}, "value"),
    "launch.useful_share": ("v1_models", {"model": "useful_work"}, "value"),
    "launch.of_measured": ("v1_models", {"quantity": "time_ns"}, "value"),
    "advice.saving": ("v1_criteria", {}, "speedup"),
}
# Columns that identify a row.
NAMED = (
    "criterion",
    "rule",
    "bound",
    "name",
    "file_name",
    "kernel_short",
    "window",
    "sensor",
    "model",
    "quantity",
    "kind",
    "law",
    "form",
)


def row_steps(engine: "Engine", name: str, run_id: int, number: int) -> list[Step]:
    """Return the steps from ``view.column`` of a row of a run to its file; ``number`` is its key or its item.

    For a number on pages, ``view.anything`` leads to ``value``. Raise `NotFoundError` for views without row numbers.
    """
    view, _, column = name.partition(".")
    kinds = store.column_kinds_of(view)
    key = store.key_column(view) or (ITEM if ITEM in kinds else None)
    if key is None or "run_id" not in kinds:
        raise NotFoundError(f"rows of {view} have no number, so a single one cannot be explained")
    only = [store.Condition("run_id", "", str(run_id)), store.Condition(key, "", str(number))]
    found = store.list_view(engine, view, only, limit=1).rows
    if not found:
        raise NotFoundError(f"run {run_id} has no row {number} in {view}; it was recomputed or deleted")
    row = found[0]
    one = specs.computed().get(name) or specs.computed().get(view)
    named = ", ".join(str(row[part]) for part in NAMED if row.get(part) not in (None, ""))
    own = [column] if column in row else []
    steps = [_step(view, part, row, named) for part in own]
    steps += [_step(view, part, row, "") for part in (one.of if one else ()) if row.get(part) is not None]
    return steps + _files(engine, row, view, run_id)


def launch_steps(engine: "Engine", name: str, run_id: int, launches: Iterable[int | None]) -> list[Step]:
    """Return the values of ``view.column`` for launches of a run; None stands for the whole run.

    Empty for views about other things.
    """
    view, _, column = name.partition(".")
    view, only, column = OF_PAGES.get(name, (view, {}, column))
    if view not in store.VIEWS or not {"run_id", "launch_id", column} <= set(store.VIEWS[view][1]):
        return []
    steps: list[Step] = []
    for launch in launches:
        of_run = {"kernel": None} if launch is None else {}
        found = store.select(engine, view, run_id=run_id, launch_id=launch, **of_run, **only)
        one = specs.computed().get(name) or specs.computed().get(view)
        for row in found[: MAX_STEPS - len(steps)]:
            named = ", ".join(str(row[part]) for part in NAMED if row.get(part) not in (None, ""))
            parts = [part for part in (one.of if one else ()) if part != column and row.get(part) is not None]
            own = [_step(view, column, row, named), *(_step(view, part, row, "") for part in parts)]
            steps += [{"launch": row.get("kernel_short"), **step} for step in own]
    return steps


def _step(view: str, column: str, row: Step, named: str) -> Step:
    said = specs.computed().get(f"{view}.{column}")
    unit = row.get("unit") if column in ("value", "low", "high") else said.unit if said else ""
    return {"name": f"{view}.{column}", "value": row[column], "unit": unit or "",
            "from": row.get("reason") or named if row[column] is None else named}  # fmt: skip


def _files(engine: "Engine", row: Step, view: str, run_id: int) -> list[Step]:
    """Return the file and line of a row; for a run all its files."""
    upload = row.get("upload_id")
    if upload is None and view != RUN:
        return []
    only = {"run_id": run_id} if upload is None else {"upload_id": upload}
    return [
        {"name": "file", "file": one["file_name"], "format": one["format"], "line": row.get("line")}
        for one in store.select(engine, "v1_uploads", **only)
    ]
