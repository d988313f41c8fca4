"""``/findings``: changes found by nightly checks, their states, and a form to set a state."""

import math
from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.change.findings import STATES
from profsvc.reports.nightly import plots as nightly_plots
from profsvc.reports.nightly.content import DIRECTIONS, amount, first_run, named, percent
from profsvc.reports.nightly.differences import difference_text
from profsvc.views.history import quantities
from profsvc.views.nightly import findings as findings_view
from profsvc.web.api.reports import author_name
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of, project_of
from profsvc.web.pages.rendering.figures import figure, missing_figure
from profsvc.web.pages.rendering.page import Links, form_fields, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column, Row, nonempty_columns

DEFAULT_ROWS, MAX_ROWS = 200, 2000


def list_findings(request: Request) -> Response:
    """List the findings, newest change first."""
    args = RequestArgs(request)
    states = tuple(args.texts("state"))
    form = {name: args.text(name) for name in ("project", "quantity", "kernel", "device")}
    worse, limit = args.choice("worse", findings_view.WORSE, ""), args.count("limit", DEFAULT_ROWS, MAX_ROWS)
    args.reject_unknown()
    only = {name: value or None for name, value in form.items()} | {"project": project_of(request, form["project"])}
    found = findings_view.findings(
        app_state(request).engine, states=states, worse=findings_view.WORSE[worse], limit=limit, **only
    )
    links = Links(json=path_to(request, "/v1/findings"), csv=path_to(request, "/v1/findings.csv"),
                  sql="select finding_id, state, project, subject, quantity, value_before, value_after, change, run\n"
                      "from v1_findings order by changed_at desc")  # fmt: skip
    return page(
        request,
        "nightly/findings.html",
        "Findings",
        links=links,
        rows=[_finding_row(row) for row in found["findings"]],
        truncated=found["truncated"],
        limit=limit,
        max_rows=MAX_ROWS,
        states=STATES,
        chosen=states,
        form=form,
        worse=worse,
        columns=COLUMNS,
    )


def _finding_row(found: Row) -> dict[str, Any]:
    """Return a finding with its numbers as text."""
    row = dict(found) | {"before": found["value_before"], "after": found["value_after"]}
    raw = "" if row["raw_before"] is None else percent(row, "raw_before", "raw_after")
    return row | {
        "about": named({name: row[name] for name in row if name not in ("device", "sensor")}),
        "was": amount(row["before"], row["unit"]),
        "is": amount(row["after"], row["unit"]),
        "by": percent(row),
        "raw_by": raw,
        "scatter": amount(row["noise"], row["unit"]),
        "judged": DIRECTIONS[row["worse"]],
        "comparison": "compare" if _comparison_path(row) else None,
    }


def _comparison_path(row: Row) -> str | None:
    """Return the path of the comparison of the runs before and after, None if one was deleted."""
    return f"/compare/{row['run_before_id']}...{row['run_id']}" if row["run_before"] and row["run"] else None


def _run_path(row: Row) -> str | None:
    return f"/runs/{row['run_id']}" if row["run_id"] and row["run"] else None


def _finding_path(row: Row) -> str:
    return f"/findings/{row['finding_id']}"


COLUMNS = [
    Column("finding_id", "#", link=_finding_path),
    Column("state", "State", "flags"),
    Column("about", "Subject", "name", width=44, link=_finding_path),
    Column("was", "Before", "number", explain="v1_findings.value_before"),
    Column("is", "After", "number", explain="v1_findings.value_after"),
    Column("by", "Change", "number", explain="v1_findings.change"),
    Column("raw_by", "Uncorrected", "number", explain="v1_findings.raw_after"),
    Column("judged", "Verdict", "flags"),
    Column("device", "Device", "name", width=24),
    Column("project", "Project", "name", width=24),
    Column("run", "First run after", "name", width=28, link=_run_path),
    Column("changed_at", "Changed (UTC)", "when"),
    Column("comparison", "Comparison", link=_comparison_path),
]
POINT_COLUMNS = [
    Column("run", "Run", "name", width=36, link=lambda row: f"/runs/{row['run_id']}"),
    Column("at", "Time (UTC)", "when"),
    Column("value", "Value", "number", "finding.value"),
    Column("low", "Low", "number", "history.low"),
    Column("high", "High", "number", "history.high"),
    Column("raw", "Uncorrected", "number", "history.raw"),
    Column("reason", "Reason"),
]
DIFFERENCE_COLUMNS = [
    Column("part", "About", "flags"),
    Column("said", "Difference", "name", width=80),
    Column("kernel", "Kernel", "name", width=44),
]
STATE_COLUMNS = [
    Column("said_at", "When (UTC)", "when"),
    Column("state", "State", "flags"),
    Column("who", "Set by"),
    Column("because", "Reason"),
    Column("report_id", "Report", link=lambda row: f"/reports/{row['report_id']}" if row["report_id"] else None),
]


def _finding_id(request: Request) -> int:
    text = str(request.path_params["finding"])
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no finding has number {text[:40]!r}; /findings lists them")
    return int(text)


def show_finding(request: Request) -> Response:
    """Show one finding: its evidence, its series and its status history."""
    RequestArgs(request).reject_unknown()
    grant, number = grant_of(request), _finding_id(request)
    found = findings_view.finding(app_state(request).engine, number, grant.project)
    row = _finding_row(found["finding"])
    points = [_point_row(point, row["unit"]) for point in found["points"]]
    states = [dict(change) | {"who": change["said_by"] or "nightly check"} for change in found["states"]]
    links = Links(json=path_to(request, "/v1/findings", {"finding_id": number}),
                  csv=path_to(request, "/v1/findings.csv", {"finding_id": number}),
                  sql=f"select * from v1_findings where finding_id = {number}")  # fmt: skip
    return page(
        request,
        "nightly/finding.html",
        f"{row['about']}: {row['was']} \u2192 {row['is']}",
        links=links,
        row=row,
        threshold=found["smallest"],
        points=list(reversed(points)),
        point_columns=nonempty_columns(POINT_COLUMNS, points),
        differences=[dict(one) | {"said": difference_text(one)} for one in found["differences"]],
        difference_columns=DIFFERENCE_COLUMNS,
        states=states,
        state_columns=STATE_COLUMNS,
        plot=_series_figure(row, found["points"]),
        may_set=grant.allows("admin"),
        choices=store.MANUAL_STATES,
        others=[_finding_row(other) for other in found["others"]],
        columns=COLUMNS,
        history=_history_path(request, row),
    )


def _point_row(point: Row, unit: str) -> dict[str, Any]:
    """Return the value of a run and its bounds with their unit; what was not measured is None."""
    texts = {
        name: amount(point[name], unit) if point[name] is not None and math.isfinite(point[name]) else None
        for name in ("value", "low", "high", "raw")
    }
    return dict.fromkeys(column.name for column in POINT_COLUMNS) | dict(point) | texts


def _series_figure(row: Mapping[str, Any], points: list[Row]) -> Any:
    title = f"{row['about']} by run"
    if not points:
        return missing_figure(title, "The runs of this series were deleted.")
    finding = dict(row) | {"history": points}
    words = f"{title}: {row['was']} before, {row['is']} since {first_run(row)}, of {len(points)} runs."
    return figure(
        "finding",
        title,
        lambda: nightly_plots.history(finding, "svg"),
        [finding["finding_id"], points],
        description=words,
    )


def _history_path(request: Request, row: Row) -> str:
    """Return the path of the full history; empty for a criterion of a whole run."""
    quantity = {"energy_per_launch": "energy"}.get(row["quantity"], row["quantity"])
    if quantity not in quantities() or (row["kernel"] is None and row["sensor"] is None):
        return ""
    return path_to(request, "/history", {"kernel": row["kernel"] or row["subject"], "quantity": quantity,
                                         "project": row["project"]})  # fmt: skip


async def set_state(request: Request) -> Response:
    """Set the state of a finding from a form, and show it."""
    fields, grant, number = await form_fields(request), grant_of(request), _finding_id(request)
    if missing := [name for name in ("state", "because") if not fields.get(name, "").strip()]:
        raise UsageError(f"the form lacks {missing[0]!r}; choose a state and give a reason")
    given = fields["state"], fields["because"], author_name(grant), grant.project
    await to_thread.run_sync(findings_view.set_state, app_state(request).engine, number, *given)
    return redirect(request, f"/findings/{number}")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/findings", list_findings, "read", name="findings_page")
    add_page(app, "/findings/{finding}", show_finding, "read", name="finding_page")
    add_page(app, "/findings/{finding}", set_state, "admin", name="set_finding_state", methods=["POST"])
