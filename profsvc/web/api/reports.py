"""``/v1/reports`` and ``/v1/findings``: nightly reports in several formats, their findings and states."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.formulas.change.findings import STATES
from profsvc.pipeline.nightly import report_of_night
from profsvc.reports.nightly import formats as nightly_formats
from profsvc.views.nightly import findings as findings_view
from profsvc.views.nightly import report as report_view
from profsvc.web.http.request_args import RequestArgs, require_object
from profsvc.web.http.responses import success
from profsvc.web.http.routes import SUCCESS_SCHEMA, add_route, path_param, query_param, rows_schema
from profsvc.web.http.state import AppState, app_state, grant_of, in_worker_thread, project_of

MEDIA_TYPES = {
    "md": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "txt": "text/plain; charset=utf-8",
}
REPORT_FORMATS = {"md": "md", "html": "html", "txt": "text"}
# A report in a browser runs no script and sends no requests; its images and styles are embedded.
REPORT_HEADERS = {
    "content-security-policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox",
    "x-content-type-options": "nosniff",
}
BodyHandler = Callable[[AppState, Mapping[str, Any]], Mapping[str, Any]]
REPORT_SCHEMA = {
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
FINDING_STATE_SCHEMA = {
    "type": "object",
    "required": ["state", "because"],
    "properties": {"state": {"enum": list(store.MANUAL_STATES)}, "because": {"type": "string"}},
    "additionalProperties": False,
    "example": {"state": "accepted", "because": "wider tiles, ticket 17"},
}


async def get_report(request: Request) -> Response:
    """One nightly report by number, or the newest: as JSON, .md, .html or .txt."""
    return await in_worker_thread(_answer_report, request)


def _answer_report(request: Request) -> Response:
    RequestArgs(request).reject_unknown()
    name, _, form = str(request.path_params["report"]).partition(".")
    if form not in ("", "json", *REPORT_FORMATS):
        raise NotFoundError(f"no report format named {form[:20]!r}; choose json, {', '.join(REPORT_FORMATS)}")
    document = report_view.report(app_state(request).engine, name, grant_of(request).project)
    if form in REPORT_FORMATS:
        written = nightly_formats.in_form(document, REPORT_FORMATS[form]).encode("utf-8", "backslashreplace")
        return Response(written, 200, REPORT_HEADERS, MEDIA_TYPES[form])
    number = document["report_id"]
    sent = report_view.deliveries(app_state(request).engine, [number], grant_of(request).project)[number]
    return success(request, {"report": document, "deliveries": sent})


async def list_reports(request: Request) -> Response:
    """The newest nightly reports with their deliveries, without their documents."""
    return await in_worker_thread(_answer_list, request)


def _answer_list(request: Request) -> Response:
    args = RequestArgs(request)
    project = project_of(request, args.text("project"))
    args.reject_unknown()
    return success(request, report_view.reports_with_deliveries(app_state(request).engine, project))


async def create_report(request: Request) -> Response:
    """Create a report now, by default for today; a report of the same date is replaced."""
    return await apply_body(request, _create_report, {"project": str, "date": str, "zone": str, "dry_run": bool}, 201)


def _create_report(state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {name: body.get(name) or None for name in ("project", "date")}
    dry_run = body.get("dry_run", False)
    document = report_of_night(
        state.engine, given["project"], given["date"], body.get("zone") or "UTC", dry_run=dry_run
    )
    return {"report": document}


async def list_findings(request: Request) -> Response:
    """The findings, newest change first, each with a unique label of its kernel."""
    return await in_worker_thread(_answer_findings, request)


def _answer_findings(request: Request) -> Response:
    args = RequestArgs(request)
    only = {name: args.text(name) or None for name in ("quantity", "kernel", "device")}
    found = findings_view.findings(
        app_state(request).engine, project=project_of(request, args.text("project")), states=args.texts("state"),
        worse=findings_view.WORSE[args.choice("worse", findings_view.WORSE, "")],
        limit=args.count("limit", findings_view.LIMIT, findings_view.MAX_FINDINGS), **only,
    )  # fmt: skip
    args.reject_unknown()
    columns = [*store.VIEWS["v1_findings"][1], "label"]
    shape = {"columns": columns, "rows": found["findings"], "next": None}
    # ``list_findings`` are the rows under the name that they had before ``/v1/findings`` and this path had one shape.
    return success(request, shape | found)


async def get_finding(request: Request) -> Response:
    """One finding: its status history, and its values by run."""
    return await in_worker_thread(_answer_finding, request)


def _answer_finding(request: Request) -> Response:
    RequestArgs(request).reject_unknown()
    return success(
        request, findings_view.finding(app_state(request).engine, _finding_id(request), grant_of(request).project)
    )


def _finding_id(request: Request) -> int:
    text = str(request.path_params["finding"])
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"no finding has number {text[:40]!r}; numbers: /v1/findings/list")
    return int(text)


async def set_finding(request: Request) -> Response:
    """Set the state of a finding, with a reason: accepted (new baseline), fixed (back to normal) or new (reopen)."""
    act = partial(_set_state, _finding_id(request), author_name(grant_of(request)))
    return await apply_body(request, act, {"state": str, "because": str}, 200)


def author_name(grant: store.Grant) -> str:
    """Return the name of the author of a change: the token, or the service."""
    return "the service" if grant.token_id is None else f"token {grant.token_id}"


def _set_state(number: int, by: str, state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
    if missing := [name for name in ("state", "because") if name not in body]:
        raise UsageError(f"the body lacks {missing[0]!r}; it needs state and because (the reason)")
    return {"finding": findings_view.set_state(state.engine, number, body["state"], body["because"], by)}


async def apply_body(request: Request, act: BodyHandler, known: Mapping[str, type], status: int) -> Response:
    """Call a handler with the JSON body of a request."""
    await request.body()
    RequestArgs(request).reject_unknown()
    try:
        body = require_object(await request.json() if await request.body() else {}, "the body")
    except (ValueError, RecursionError):
        raise UsageError("the body must be a JSON object") from None
    for name, value in body.items():
        if name not in known:
            raise UsageError(str(NotFoundError.near("key of the body", name, known)))
        if known[name] is bool and not isinstance(value, bool):
            raise UsageError(f"{name} must be true or false")
        if known[name] is str and (not isinstance(value, str) or "\0" in value):
            raise UsageError(f"{name} must be a string without NUL")
    status = 200 if body.get("dry_run") else status
    return success(request, await app_state(request).long_limit.run(act, app_state(request), body), status)


def register(app: FastAPI) -> None:
    """Add the routes."""
    which = path_param("report", "number of a report, or newest; append .md, .html or .txt for that format", "newest")
    json_body = {"application/json": {"schema": REPORT_SCHEMA}}
    gives = {
        "application/json": {"schema": SUCCESS_SCHEMA},
        **{kind.partition(";")[0]: {} for kind in MEDIA_TYPES.values()},
    }
    project = query_param("project", "string", "only this project")
    add_route(app, "/v1/reports/list", list_reports, "read", name="list_reports_sent", takes=[project], tag="reports")
    add_route(
        app, "/v1/reports/{report}", get_report, "read", name="show_report", takes=[which], gives=gives, tag="reports"
    )
    add_route(
        app,
        "/v1/reports",
        create_report,
        "admin",
        name="make_report",
        methods=["POST"],
        body=json_body,
        tag="reports",
        statuses=(201,),
    )
    asked_for = [
        project,
        query_param("state", "array", "only in this state; repeatable", items={"type": "string", "enum": list(STATES)}),
        query_param("quantity", "string", "only this quantity, such as duration"),
        query_param("kernel", "string", "only names that contain this text"),
        query_param("device", "string", "only on this device"),
        query_param("worse", "string", "1: only regressions; 0: only improvements", enum=["0", "1"]),
        query_param("limit", "integer", "maximum number of rows", minimum=1, maximum=findings_view.MAX_FINDINGS),
    ]
    add_route(app, "/v1/findings/list", list_findings, "read", name="list_findings_named", takes=asked_for,
        gives={"application/json": {"schema": rows_schema()}}, tag="reports")  # fmt: skip
    number = path_param("finding", "number of the finding", "1")
    add_route(app, "/v1/findings/{finding}", get_finding, "read", name="show_finding", takes=[number], tag="reports")
    add_route(app, "/v1/findings/{finding}", set_finding, "admin", name="set_finding", methods=["POST"], takes=[number],
        body={"application/json": {"schema": FINDING_STATE_SCHEMA}}, tag="reports")  # fmt: skip
