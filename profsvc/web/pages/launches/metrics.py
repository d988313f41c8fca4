"""``/runs/{run}/launches/{launch}/metrics``: every metric of a launch, searched, and beside another launch."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views.launches.metrics import differing, launch_metrics
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.filters import count, duration, percent, si, value
from profsvc.web.pages.rendering.page import Links, find_run_id, page, path_to
from profsvc.web.pages.rendering.tables import Column, Row, nonempty_columns

MAX_CHOICES = 30
ROWS_PER_PAGE = 400
SCALED_UNITS = {"byte", "byte/s", "Hz", "sector/s"}
"""Units that get a prefix, such as those of 1.68 TB/s."""


def _launch_of_row(row: Row) -> dict[str, Any]:
    return {"run": row["run_id"], "launch": row["launch_id"]}


def _baseline_of_row(row: Row) -> dict[str, Any]:
    return {"run": row["baseline_run_id"], "launch": row["baseline_id"]}


COLUMNS = (
    Column("metric", "metric", "name", width=80),
    Column("baseline_shown", "baseline", "number", "v1_metrics.value", _baseline_of_row),
    Column("shown", "value", "number", "v1_metrics.value", _launch_of_row),
    Column("change_fraction", "change", "change", "metrics.change", flags="word"),
    Column("section", "section", "name"),
)


def show_metrics(request: Request) -> Response:
    """Show the metrics of a launch."""
    args, run_id = RequestArgs(request), find_run_id(request, request.path_params["run"])
    search, of_run, other = args.text("search"), args.text("baseline_run"), args.text("baseline")
    first = args.number("after", int, 0, "a whole number")
    args.reject_unknown()
    engine, text = app_state(request).engine, request.path_params["launch"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"{text[:60]!r} is not a launch number; see the launches of run {run_id}")
    baseline = None
    if of_run or other:
        number = find_run_id(request, of_run) if of_run else run_id
        baseline = (number, other or _kernel(engine, run_id, int(text)))
    view = launch_metrics(engine, run_id, f"id:{text}", baseline, search)
    own, beside = view["launch"], view["baseline"]
    found = view["metrics"]
    rows = [_page_row(row, own, beside) for row in found[max(0, first) :][:ROWS_PER_PAGE]]
    more = max(0, first) + ROWS_PER_PAGE < len(found)
    query = {"kernel": f"id:{text}", "search": search}
    query |= {} if baseline is None else {"baseline_run": str(baseline[0]), "baseline": baseline[1]}
    links = Links(
        path_to(request, f"/v1/runs/id:{run_id}/metrics", query),
        path_to(request, "/v1/metrics.csv", {"run_id": run_id, "launch_id": own["launch_id"]}),
        f"select * from v1_metrics where launch_id = {own['launch_id']}",
    )
    return page(
        request, "launches/metrics.html", f"Metrics: #{own['launch_index']} {own['kernel_short']}", links=links,
        launch=own,
        run=store.select(engine, "v1_runs", run_id=run_id)[0], baseline=beside, search=search, rows=rows,
        given={"run": of_run, "launch": other}, total=view["total"], changed=differing(view["metrics"]),
        columns=nonempty_columns(COLUMNS, rows, ("metric", "shown")) if beside else
        [one for one in nonempty_columns(COLUMNS, rows, ("metric", "shown")) if "baseline" not in one.name],
        choices=_choices(engine, run_id, own), found=len(found),
        following=str(first + ROWS_PER_PAGE) if more else "",
        before=None if first <= 0 else str(max(0, first - ROWS_PER_PAGE) or ""),
        shown=f"metrics {count(max(0, first) + 1)} to {count(max(0, first) + len(rows))} of {count(len(found))}",
    )  # fmt: skip


def _kernel(engine: Any, run_id: int, launch_id: int) -> str:
    found = store.launch_rows(engine, "v1_launches", run_id, [launch_id])
    return str(found[0]["kernel"]) if found else f"id:{launch_id}"


def _choices(engine: Any, run_id: int, own: Row) -> list[dict[str, Any]]:
    """Return launches to compare with: others of the run, and of the kernel in the previous run, if it has any."""
    kernel = store.select(engine, "v1_launches", launch_id=own["launch_id"])[0]["kernel_id"]
    found, _ = store.list_launches(engine, run_id, store.LaunchFilter(kernel_id=kernel), limit=MAX_CHOICES)
    others = [
        {"run": run_id, "launch": f"id:{row['launch_id']}", "title": f"#{row['launch_index']} of this run"}
        for row in found
        if row["launch_id"] != own["launch_id"]
    ]
    before = store.previous_run(engine, run_id)
    if before is not None and store.longest_launches(engine, before["run_id"], 1, kernel_ids=[kernel])[0]:
        title = f"longest launch of the kernel in the previous run, {before['name'][:60]}"
        others.insert(0, {"run": before["run_id"], "launch": "", "title": title})
    return others[:MAX_CHOICES]


def _page_row(row: Row, own: Row, beside: Row | None) -> dict[str, Any]:
    change = row["change"]
    word = ""
    if beside is not None and change is None and row["raw_text"] != row["baseline_text"]:
        word = "differs"
    elif change is not None:
        word = "more" if change > 0 else "less" if change < 0 else "same"
    return {
        **row,
        "run_id": own["run_id"],
        "launch_id": own["launch_id"],
        "baseline_run_id": beside and beside["run_id"],
        "baseline_id": beside and beside["launch_id"],
        "shown": _with_unit(row, "value", "raw_text"),
        "baseline_shown": _with_unit(row, "baseline", "baseline_text"),
        "word": word,
    }


def _with_unit(row: Row, number: str, text: str) -> str | None:
    """Return a value with its unit, as people write it: shares in percent, times and bytes in a unit that fits."""
    given, unit = row[number], row["unit"]
    if given is None:
        said: str | None = row[text]
        return said
    if unit == "1":
        return percent(given, 2) if "pct" in row["metric"] else value(given)
    if unit == "s":
        return duration(1e9 * given)
    return si(given, unit) if unit in SCALED_UNITS else f"{value(given)} {unit or ''}".rstrip()


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/runs/{run}/launches/{launch}/metrics", show_metrics, "read", name="launch_metrics_page")
