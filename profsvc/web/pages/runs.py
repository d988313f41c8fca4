"""``/``: the runs, searched, ordered and page by page."""

import json
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import Links, page, path_to
from profsvc.web.pages.tables import Column, known, row_of
from profsvc.web.pages.words import count
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

ROWS = 50
MOST_ROWS = 500
ASKED = ("search", "project", "device", "commit", "tag")


def _run(row: Any) -> dict[str, Any]:
    return {"run": row["run_id"]}


def _path(row: Any) -> str:
    return f"/runs/{row['run_id']}"


COLUMNS = (
    Column("name", "run", "name", link=_path, sort="name", width=40),
    Column("project", "project", "name", sort="project", width=24),
    Column("device", "device", "name", width=28),
    Column("commit_id", "commit", "name", width=12),
    Column("at", "when (UTC)", "when", sort="started"),
    Column("uploads", "files", "number", "v1_runs.uploads", row_of("run_id")),
    Column("launches", "launches", "number", "v1_runs.launches", row_of("run_id"), sort="launches"),
    Column("gpu_time_ns", "GPU time", "duration", "v1_runs.gpu_time_ns", row_of("run_id"), sort="time"),
    Column("potential", "potential", "speedup", "v1_potential.speedup", _run, sort="potential", flags="flags"),
    Column("limit", "limited by"),
    Column("worst", "worst criterion", explain=lambda row: row["worst_criterion"] or ""),
    Column("mean_power_w", "power (W)", "number", "v1_power.mean_power_w"),
    Column("corrected_power_w", "corrected (W)", "number", "v1_power.corrected_power_w"),
)


ALWAYS = ("name", "project", "device", "at", "uploads", "launches", "gpu_time_ns", "potential")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the table shows it."""
    words = views.texts()
    worst = words[row["worst_criterion"]]["title"] if row["worst_criterion"] else None
    value = "" if row["worst_value"] is None else f" {row['worst_value']:.2f}"
    return row | {
        "at": row["started_at"] or row["created_at"],
        "limit": words[row["bound"]]["title"] if row["bound"] else None,
        "worst": f"{worst}{value}" if worst else None,
        "tag_list": json.loads(row["tags"] or "{}"),
    }


def total_of(page_: store.RunPage, skip: int) -> str:
    """Say which of how many runs are shown.

    >>> total_of(store.RunPage([{}] * 50, True, store.COUNTED + 1), 100)
    'runs 101 to 150 of more than 10\\u202f000'
    """
    if not page_.rows:
        return "no runs" if skip == 0 else "no more runs"
    whole = f"more than {count(store.COUNTED)}" if page_.total > store.COUNTED else count(page_.total)
    return f"runs {count(skip + 1)} to {count(skip + len(page_.rows))} of {whole}"


def runs(request: Request) -> Response:
    """Show runs."""
    asked = Asked(request)
    given = {name: asked.text(name) for name in ASKED}
    order, limit = asked.text("order", "-run"), asked.count("limit", ROWS, MOST_ROWS)
    skip = asked.number("after", int, 0, "how many runs to pass over")
    asked.flag("focus")
    asked.done()
    found = store.list_runs(
        site_of(request).engine, store.RunFilter(**given), order=order, skip=skip, limit=limit,
        project=grant_of(request).project, seconds=site_of(request).limits.sql_seconds,
    )  # fmt: skip
    only = [(name, given[key]) for key, name in (("project", "project"), ("device", "device"), ("commit", "commit_id"))]
    links = Links(
        path_to(request, "/v1/runs", [*only, ("order", "-run_id")]),
        path_to(request, "/v1/runs.csv", [*only, ("order", "-run_id")]),
        "select * from v1_runs order by run_id desc limit 50",
    )
    rows = [_shown(row) for row in found.rows]
    return page(
        request, "runs.html", "Runs", links=links, columns=known(COLUMNS, rows, ALWAYS), rows=rows,
        order=order, asked=given, is_asked=any(given.values()), total=total_of(found, skip),
        following=str(skip + limit) if found.truncated else None,
        before=None if skip == 0 else str(max(0, skip - limit)) if skip > limit else "",
    )  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/", runs, "read", name="runs_page")
