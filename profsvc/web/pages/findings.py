"""``/findings``: what nights found, in which state it is, and a form to set that."""

from collections.abc import Mapping
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.findings import STATES
from profsvc.reports import nightly_figures
from profsvc.reports.nightly_parts import JUDGED, amount, named, percent
from profsvc.views import findings as of_findings
from profsvc.views.history import quantities
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import figure, without
from profsvc.web.pages.frame import Links, fields, moved, page, path_to
from profsvc.web.pages.tables import Column, Row
from profsvc.web.reports import who
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, project_of, site_of

LIMIT, MOST = 200, 2000


def show(request: Request) -> Response:
    """List the findings, those of the newest changes first."""
    asked = Asked(request)
    states = tuple(asked.texts("state"))
    form = {name: asked.text(name) for name in ("project", "quantity", "kernel", "device")}
    worse, limit = asked.among("worse", of_findings.WORSE, ""), asked.count("limit", LIMIT, MOST)
    asked.done()
    only = {name: value or None for name, value in form.items()} | {"project": project_of(request, form["project"])}
    found = of_findings.findings(
        site_of(request).engine, states=states, worse=of_findings.WORSE[worse], limit=limit, **only
    )
    links = Links(json=path_to(request, "/v1/findings"), csv=path_to(request, "/v1/findings.csv"),
                  sql="select finding_id, state, project, subject, quantity, value_before, value_after, change, run\n"
                      "from v1_findings order by changed_at desc")  # fmt: skip
    return page(
        request, "findings.html", "Findings", links=links, rows=[_row(row) for row in found["findings"]],
        truncated=found["truncated"], limit=limit, most=MOST, states=STATES, chosen=states, form=form, worse=worse,
        columns=COLUMNS,
    )  # fmt: skip


def _row(found: Row) -> dict[str, Any]:
    """A finding with its numbers as they are read."""
    row = dict(found) | {"before": found["value_before"], "after": found["value_after"]}
    raw = "" if row["raw_before"] is None else percent(row, "raw_before", "raw_after")
    return row | {
        "about": named(row | {"device": None, "sensor": None}),
        "was": amount(row["before"], row["unit"]),
        "is": amount(row["after"], row["unit"]),
        "by": percent(row),
        "raw_by": raw,
        "judged": JUDGED[row["worse"]],
        "beside": "compare" if row["run_before_id"] and row["run_id"] else None,
    }


def _beside(row: Row) -> str | None:
    return f"/compare/{row['run_before_id']}...{row['run_id']}" if row["run_before_id"] and row["run_id"] else None


def _run(row: Row) -> str | None:
    return f"/runs/{row['run_id']}" if row["run_id"] and row["run"] else None


def _finding(row: Row) -> str:
    return f"/findings/{row['finding_id']}"


COLUMNS = [
    Column("finding_id", "#", link=_finding),
    Column("state", "State", "flags"),
    Column("about", "What", "name", width=44, link=_finding),
    Column("was", "Before", "number", explain="v1_findings.value_before"),
    Column("is", "After", "number", explain="v1_findings.value_after"),
    Column("by", "Change", "number", explain="v1_findings.change"),
    Column("raw_by", "As measured", "number", explain="v1_findings.raw_after"),
    Column("judged", "", "flags"),
    Column("device", "Device", "name", width=24),
    Column("project", "Project", "name", width=24),
    Column("run", "First run after", "name", width=28, link=_run),
    Column("changed_at", "Changed (UTC)", "when"),
    Column("beside", "", link=_beside),
]
POINTS = [
    Column("run", "Run", "name", width=36, link=lambda row: f"/runs/{row['run_id']}"),
    Column("at", "At (UTC)", "when"),
    Column("written", "Value", "number", "finding.value"),
    Column("low", "Low", "number", "history.low"),
    Column("high", "High", "number", "history.high"),
    Column("raw", "As measured", "number", "history.raw"),
    Column("reason", "Why not"),
]
SAID = [
    Column("said_at", "When (UTC)", "when"),
    Column("state", "State", "flags"),
    Column("who", "Who"),
    Column("because", "Why"),
    Column("report_id", "Report", link=lambda row: f"/reports/{row['report_id']}" if row["report_id"] else None),
]


def _number(request: Request) -> int:
    text = str(request.path_params["finding"])
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no finding has the number {text[:40]!r}")
    return int(text)


def one(request: Request) -> Response:
    """Show one finding: why it is believed, its whole series, and what was said of it."""
    Asked(request).done()
    grant, number = grant_of(request), _number(request)
    found = of_findings.finding(site_of(request).engine, number, grant.project)
    row = _row(found["finding"])
    points = [
        dict.fromkeys(one.name for one in POINTS) | dict(point) | {"written": amount(point["value"], row["unit"])}
        for point in found["points"]
    ]
    states = [dict(said) | {"who": said["said_by"] or "a night"} for said in found["states"]]
    links = Links(json=path_to(request, "/v1/findings", {"finding_id": number}),
                  csv=path_to(request, "/v1/findings.csv", {"finding_id": number}),
                  sql=f"select * from v1_findings where finding_id = {number}")  # fmt: skip
    return page(
        request, "finding.html", f"{row['about']}: {row['was']} \u2192 {row['is']}", links=links, row=row,
        least=found["smallest"], points=list(reversed(points)), point_columns=_known(points), said=states,
        said_columns=SAID, drawn=_drawn(row, found["points"]), may_set=grant.allows("admin"), choices=store.BY_PEOPLE,
        others=[_row(other) for other in found["others"]], columns=COLUMNS, history=_history(request, row),
    )  # fmt: skip


def _known(points: list[dict[str, Any]]) -> list[Column]:
    """The columns that hold something."""
    return [one for one in POINTS if any(point.get(one.name) is not None for point in points)]


def _drawn(row: Mapping[str, Any], points: list[Row]) -> Any:
    title = f"{row['about']}, run by run"
    if not points:
        return without(title, "The runs of this series are gone.")
    told = dict(row) | {"history": points}
    words = f"{title}: {row['was']} before, {row['is']} since run {row['run']}, of {len(points)} runs."
    return figure("finding", title, lambda: nightly_figures.history(told, "svg"), [told["finding_id"], points],
                  description=words)  # fmt: skip


def _history(request: Request, row: Row) -> str:
    """Where the whole history of what changed is; nowhere for a criterion of a whole run."""
    quantity = {"mean_duration": "duration", "energy_per_launch": "energy"}.get(row["quantity"], row["quantity"])
    if quantity not in quantities() or (row["kernel"] is None and row["sensor"] is None):
        return ""
    return path_to(request, "/history", {"kernel": row["kernel"] or row["subject"], "quantity": quantity,
                                         "project": row["project"]})  # fmt: skip


async def set_state(request: Request) -> Response:
    """Set the state of a finding, as a form says, and show it."""
    said, grant, number = await fields(request), grant_of(request), _number(request)
    if missing := [name for name in ("state", "because") if not said.get(name, "").strip()]:
        raise UsageError(f"the form lacks {missing[0]!r}; choose a state and say why")
    given = said["state"], said["because"], who(grant), grant.project
    await to_thread.run_sync(of_findings.set_state, site_of(request).engine, number, *given)
    return moved(request, f"/findings/{number}")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/findings", show, "read", name="findings_page")
    add_page(app, "/findings/{finding}", one, "read", name="finding_page")
    add_page(app, "/findings/{finding}", set_state, "admin", name="set_finding_state", methods=["POST"])
