"""``/v1/reports`` and ``/v1/findings``: nightly reports in their forms, what they found, states of findings set."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.findings import STATES
from profsvc.pipeline.night import report_of_night
from profsvc.reports import nightly as forms
from profsvc.views import findings as of_findings
from profsvc.views import nightly
from profsvc.web.answers import success
from profsvc.web.asked import Asked, object_of
from profsvc.web.routes import SUCCESS, add, asks, in_path, rows_schema
from profsvc.web.site import Site, answered, grant_of, project_of, site_of

MEDIA = {"md": "text/markdown; charset=utf-8", "html": "text/html; charset=utf-8", "txt": "text/plain; charset=utf-8"}
FORMS = {"md": "md", "html": "html", "txt": "text"}
# A report in a browser runs nothing and asks for nothing; its pictures and styles are in it.
LOCKED = {
    "content-security-policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
Act = Callable[[Site, Mapping[str, Any]], Mapping[str, Any]]
NIGHT = {
    "type": "object",
    "properties": {
        "project": {"type": "string"},
        "date": {"type": "string"},
        "zone": {"type": "string"},
        "dry_run": {"type": "boolean"},
    },
    "additionalProperties": False,
    "example": {"zone": "Europe/Berlin"},
}
STATE = {
    "type": "object",
    "required": ["state", "because"],
    "properties": {"state": {"enum": list(store.BY_PEOPLE)}, "because": {"type": "string"}},
    "additionalProperties": False,
    "example": {"state": "accepted", "because": "wider tiles, ticket 17"},
}


async def report(request: Request) -> Response:
    """One nightly report by number, or the newest: as JSON, or with .md, .html or .txt as that."""
    return await answered(_report, request)


def _report(request: Request) -> Response:
    Asked(request).done()
    name, _, form = str(request.path_params["report"]).partition(".")
    if form not in ("", "json", *FORMS):
        raise NotFoundError(f"no form of a report is called {form[:20]!r}; there is json, {', '.join(FORMS)}")
    document = nightly.report(site_of(request).engine, name, grant_of(request).project)
    if form in FORMS:
        written = forms.in_form(document, FORMS[form]).encode("utf-8", "backslashreplace")
        return Response(written, 200, LOCKED, MEDIA[form])
    number = document["report_id"]
    sent = nightly.deliveries(site_of(request).engine, [number], grant_of(request).project)[number]
    return success(request, {"report": document, "deliveries": sent})


async def listed(request: Request) -> Response:
    """The newest nightly reports, and what became of each that was sent; their documents are at a path each."""
    return await answered(_listed, request)


def _listed(request: Request) -> Response:
    asked = Asked(request)
    project = project_of(request, asked.text("project"))
    asked.done()
    return success(request, nightly.told(site_of(request).engine, project))


async def make(request: Request) -> Response:
    """Make the report of a night now, by default of today; the same night again replaces its report."""
    return await _acted(request, _make, {"project": str, "date": str, "zone": str, "dry_run": bool}, 201)


def _make(site: Site, body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {name: body.get(name) or None for name in ("project", "date")}
    dry_run = body.get("dry_run", False)
    document = report_of_night(site.engine, given["project"], given["date"], body.get("zone") or "UTC", dry_run=dry_run)
    return {"report": document}


async def findings(request: Request) -> Response:
    """The findings, those of the newest changes first, each with a label that tells its kernel from others."""
    return await answered(_findings, request)


def _findings(request: Request) -> Response:
    asked = Asked(request)
    only = {name: asked.text(name) or None for name in ("quantity", "kernel", "device")}
    found = of_findings.findings(
        site_of(request).engine, project=project_of(request, asked.text("project")), states=asked.texts("state"),
        worse=of_findings.WORSE[asked.among("worse", of_findings.WORSE, "")],
        limit=asked.count("limit", of_findings.LIMIT, of_findings.MOST), **only,
    )  # fmt: skip
    asked.done()
    columns = [*store.VIEWS["v1_findings"][1], "label"]
    shape = {"columns": columns, "rows": found["findings"], "next": None}
    # ``findings`` are the rows under the name that they had before ``/v1/findings`` and this path had one shape.
    return success(request, shape | found)


async def finding(request: Request) -> Response:
    """One finding: what was said of it, and its series run by run."""
    return await answered(_finding, request)


def _finding(request: Request) -> Response:
    Asked(request).done()
    return success(request, of_findings.finding(site_of(request).engine, _number(request), grant_of(request).project))


def _number(request: Request) -> int:
    text = str(request.path_params["finding"])
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no finding has the number {text[:40]!r}")
    return int(text)


async def set_finding(request: Request) -> Response:
    """Set the state of a finding: accepted or fixed, or new to take that back; with the reason."""
    act = partial(_set, _number(request), who(grant_of(request)))
    return await _acted(request, act, {"state": str, "because": str}, 200)


def who(grant: store.Grant) -> str:
    """Return the name under which something is said by whoever asks."""
    return "the service" if grant.token_id is None else f"token {grant.token_id}"


def _set(number: int, by: str, site: Site, body: Mapping[str, Any]) -> Mapping[str, Any]:
    if missing := [name for name in ("state", "because") if name not in body]:
        raise UsageError(f"the body lacks {missing[0]!r}; it needs a state and a reason (because)")
    return {"finding": of_findings.set_state(site.engine, number, body["state"], body["because"], by)}


async def _acted(request: Request, act: Act, known: Mapping[str, type], status: int) -> Response:
    """Do what a body of JSON asks for."""
    await request.body()
    Asked(request).done()
    try:
        body = object_of(await request.json() if await request.body() else {}, "the body")
    except (ValueError, RecursionError):
        raise UsageError("the body must be a JSON object") from None
    for name, value in body.items():
        if name not in known:
            raise UsageError(str(NotFoundError.near("key of the body", name, known)))
        if known[name] is bool and not isinstance(value, bool):
            raise UsageError(f"{name} must be true or false")
        if known[name] is str and (not isinstance(value, str) or "\0" in value):
            raise UsageError(f"{name} must be a text without NUL")
    status = 200 if body.get("dry_run") else status
    return success(request, await to_thread.run_sync(act, site_of(request), body), status)


def register(app: FastAPI) -> None:
    """Add the routes."""
    which = in_path("report", "number of a report, or newest; .md, .html or .txt for that form", "newest")
    json_body = {"application/json": {"schema": NIGHT}}
    gives = {"application/json": {"schema": SUCCESS}, **{kind.partition(";")[0]: {} for kind in MEDIA.values()}}
    project = asks("project", "string", "only this project")
    add(app, "/v1/reports/list", listed, "read", name="list_reports_sent", takes=[project], tag="reports")
    add(app, "/v1/reports/{report}", report, "read", name="show_report", takes=[which], gives=gives, tag="reports")
    add(app, "/v1/reports", make, "admin", name="make_report", methods=["POST"], body=json_body, tag="reports",
        statuses=(201,))  # fmt: skip
    asked_for = [
        project,
        asks("state", "array", "only in this state; repeatable", items={"type": "string", "enum": list(STATES)}),
        asks("quantity", "string", "only this quantity, such as duration"),
        asks("kernel", "string", "only what has this in its name"),
        asks("device", "string", "only on this device"),
        asks("worse", "string", "1: only regressions; 0: only improvements", enum=["0", "1"]),
        asks("limit", "integer", "so many at most", minimum=1, maximum=of_findings.MOST),
    ]
    add(app, "/v1/findings/list", findings, "read", name="list_findings_named", takes=asked_for,
        gives={"application/json": {"schema": rows_schema()}}, tag="reports")  # fmt: skip
    number = in_path("finding", "number of the finding", "1")
    add(app, "/v1/findings/{finding}", finding, "read", name="show_finding", takes=[number], tag="reports")
    add(app, "/v1/findings/{finding}", set_finding, "admin", name="set_finding", methods=["POST"], takes=[number],
        body={"application/json": {"schema": STATE}}, tag="reports")  # fmt: skip
