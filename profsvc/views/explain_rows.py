"""One number of a row of a view: its value, what else of the row is in it, and the file and line that it came from."""

from typing import TYPE_CHECKING, Any

from profsvc import specs, store
from profsvc.errors import NotFoundError

if TYPE_CHECKING:
    from sqlalchemy import Engine

Step = dict[str, Any]
ITEM = "item"
"""Numbers the rows of a run where a view has no number of its own."""
RUN = "v1_runs"
# What of a row says which one it is.
NAMED = ("name", "file_name", "kernel_short", "window", "sensor", "model", "quantity", "kind", "law", "form")


def of_row(engine: "Engine", name: str, run_id: int, number: int) -> list[Step]:
    """Return the steps from ``view.column`` of a row of a run to its file; ``number`` is the row's own, or its item.

    ``view.anything`` of a number that only pages show leads to ``value``. A view whose rows have no number has none.
    """
    view, _, column = name.partition(".")
    kinds = store.kinds_of(view)
    key = store.key_of(view) or (ITEM if ITEM in kinds else None)
    if key is None or "run_id" not in kinds:
        raise NotFoundError(f"the rows of {view} have no number of their own, so none of them can be explained alone")
    only = [store.Condition("run_id", "", str(run_id)), store.Condition(key, "", str(number))]
    found = store.list_view(engine, view, only, limit=1).rows
    if not found:
        raise NotFoundError(
            f"run {run_id} has no row {number} in {view}; the analysis was made anew, or it was deleted"
        )
    row = found[0]
    one = specs.computed().get(name) or specs.computed().get(view)
    named = ", ".join(str(row[part]) for part in NAMED if row.get(part) not in (None, ""))
    own = [column] if column in row else []
    steps = [_step(view, part, row, named) for part in own]
    steps += [_step(view, part, row, "") for part in (one.of if one else ()) if row.get(part) is not None]
    return steps + _files(engine, row, view, run_id)


def _step(view: str, column: str, row: Step, named: str) -> Step:
    said = specs.computed().get(f"{view}.{column}")
    unit = row.get("unit") if column in ("value", "low", "high") else said.unit if said else ""
    return {"name": f"{view}.{column}", "value": row[column], "unit": unit or "",
            "from": row.get("reason") or named if row[column] is None else named}  # fmt: skip


def _files(engine: "Engine", row: Step, view: str, run_id: int) -> list[Step]:
    """The file that a row came in, and its line; of a run all of them."""
    upload = row.get("upload_id")
    if upload is None and view != RUN:
        return []
    only = {"run_id": run_id} if upload is None else {"upload_id": upload}
    return [
        {"name": "file", "file": one["file_name"], "format": one["format"], "line": row.get("line")}
        for one in store.select(engine, "v1_uploads", **only)
    ]
