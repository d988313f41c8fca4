"""``/``: the list of runs with search, order and pages."""

import json
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering.filters import count
from profsvc.web.pages.rendering.page import Links, page, path_to
from profsvc.web.pages.rendering.tables import Column, nonempty_columns, row_reference

ROWS = 50
MAX_ROWS = 500
FILTERS = ("search", "project", "device", "commit", "tag")


def _run_of_row(row: Any) -> dict[str, Any]:
    return {"run": row["run_id"]}


def _run_path(row: Any) -> str:
    return f"/runs/{row['run_id']}"


COLUMNS = (
    Column("run_id", "", "tick", width=40),
    Column("name", "run", "name", link=_run_path, sort="name", width=40),
    Column("project", "project", "name", sort="project", width=24),
    Column("device", "device", "name", width=28),
    Column("commit_id", "commit", "name", width=12),
    Column("at", "started (UTC)", "when", sort="started"),
    Column("uploads", "files", "number", "v1_runs.uploads", row_reference("run_id")),
    Column("launches", "launches", "number", "v1_runs.launches", row_reference("run_id"), sort="launches"),
    Column("gpu_time_ns", "GPU time", "duration", "v1_runs.gpu_time_ns", row_reference("run_id"), sort="time"),
    Column("potential", "potential", "speedup", "v1_potential.speedup", _run_of_row, sort="potential", flags="flags"),
    Column("limit", "limited by"),
    Column("worst", "worst criterion", explain=lambda row: row["worst_criterion"] or ""),
    Column("mean_power_w", "power (W)", "number", "v1_power.mean_power_w"),
    Column("corrected_power_w", "corrected power (W)", "number", "v1_power.corrected_power_w"),
)


ALWAYS_SHOWN = ("run_id", "name", "project", "device", "at", "uploads", "launches", "gpu_time_ns", "potential")


def _run_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a run as a row of the table."""
    words = views.titles_and_hints()
    worst = words[row["worst_criterion"]]["title"] if row["worst_criterion"] else None
    value = "" if row["worst_value"] is None else f" {row['worst_value']:.2f}"
    return row | {
        "at": row["started_at"] or row["created_at"],
        "limit": words[row["bound"]]["title"] if row["bound"] else None,
        "worst": f"{worst}{value}" if worst else None,
        "tag_list": json.loads(row["tags"] or "{}"),
    }


def range_text(page_: store.RunPage, skip: int) -> str:
    """Return which runs are shown, out of how many.

    >>> range_text(store.RunPage([{}] * 50, True, store.MAX_COUNTED_RUNS + 1), 100)
    'runs 101 to 150 of more than 10\\u202f000'
    """
    if not page_.rows:
        return "no runs" if skip == 0 else "no more runs"
    whole = f"more than {count(store.MAX_COUNTED_RUNS)}" if page_.total > store.MAX_COUNTED_RUNS else count(page_.total)
    return f"runs {count(skip + 1)} to {count(skip + len(page_.rows))} of {whole}"


def show_runs(request: Request) -> Response:
    """Show runs."""
    args = RequestArgs(request)
    given = {name: args.text(name) for name in FILTERS}
    order, limit = args.text("order", "-run"), args.count("limit", ROWS, MAX_ROWS)
    skip = args.number("after", int, 0, "the number of runs to skip")
    args.flag("focus")
    deleted, uploads = args.text("deleted"), args.text("uploads")
    groups = _groups(request) if args.choice("by", ("", "branch"), "") else None
    args.reject_unknown()
    found = store.list_runs(
        app_state(request).engine, store.RunFilter(**given), order=order, skip=skip, limit=limit,
        project=grant_of(request).project, seconds=app_state(request).limits.sql_seconds,
    )  # fmt: skip
    only = [(name, given[key]) for key, name in (("project", "project"), ("device", "device"), ("commit", "commit_id"))]
    links = Links(
        path_to(request, "/v1/runs", [*only, ("order", "-run_id")]),
        path_to(request, "/v1/runs.csv", [*only, ("order", "-run_id")]),
        "select * from v1_runs order by run_id desc limit 50",
    )
    rows = [_run_row(row) for row in found.rows]
    return page(
        request, "runs/runs.html", "Runs", links=links, columns=nonempty_columns(COLUMNS, rows, ALWAYS_SHOWN),
        rows=rows,
        deleted=deleted, uploads=uploads, groups=groups,
        order=order, filters=given, is_filtered=any(given.values()), total=range_text(found, skip),
        following=str(skip + limit) if found.truncated else None,
        before=None if skip == 0 else str(max(0, skip - limit)) if skip > limit else "",
    )  # fmt: skip


def _groups(request: Request) -> list[dict[str, Any]]:
    """Return the newest runs by project and branch, with the points of a curve of their GPU times."""
    state = app_state(request)
    found = store.run_groups(state.engine, grant_of(request).project, seconds=state.limits.sql_seconds)
    return [group | {"curve": curve_points(group["times"]), "last": group["times"][-1],
                     "before": group["times"][-2] if len(group["times"]) > 1 else None} for group in found]  # fmt: skip


def curve_points(times: Sequence[float | None]) -> str:
    """Return the points of a curve in a box of 100 by 20, the lowest value at its bottom.

    >>> curve_points([1.0, None, 3.0]), curve_points([2.0, 2.0]), curve_points([1.0])
    ('0.0,18.0 100.0,2.0', '0.0,10.0 100.0,10.0', '')
    """
    known = [(place, value) for place, value in enumerate(times) if value is not None]
    if len(known) < 2:
        return ""
    least, most = min(value for _, value in known), max(value for _, value in known)
    height = most - least
    return " ".join(
        f"{100 * place / (len(times) - 1):.1f},{18 - 16 * (value - least) / height if height else 10:.1f}"
        for place, value in known
    )


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/", show_runs, "read", name="runs_page")
