"""``/v1/reports/{report}`` and ``/v1/findings/{finding}``: nightly reports in their forms, states of findings set."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, UsageError
from profsvc.pipeline.night import report_of_night
from profsvc.reports import nightly as forms
from profsvc.views import findings as of_findings
from profsvc.views import nightly
from profsvc.web.answers import success
from profsvc.web.asked import Asked, object_of
from profsvc.web.routes import SUCCESS, add, in_path
from profsvc.web.site import Site, grant_of, site_of

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
    "properties": {"project": {"type": "string"}, "date": {"type": "string"}, "zone": {"type": "string"}},
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
    return await to_thread.run_sync(_report, request)


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


async def make(request: Request) -> Response:
    """Make the report of a night now, by default of today; the same night again replaces its report."""
    return await _acted(request, _make, ("project", "date", "zone"), 201)


def _make(site: Site, body: Mapping[str, Any]) -> Mapping[str, Any]:
    given = {name: body.get(name) or None for name in ("project", "date")}
    document = report_of_night(site.engine, given["project"], given["date"], body.get("zone") or "UTC")
    return {"report": document}


async def finding(request: Request) -> Response:
    """Set the state of a finding: accepted or fixed, or new to take that back; with the reason."""
    number = str(request.path_params["finding"])
    if not (number.isascii() and number.isdigit() and len(number) < 19):
        raise NotFoundError(f"no finding has the number {number[:40]!r}")
    return await _acted(request, partial(_set, int(number), who(grant_of(request))), ("state", "because"), 200)


def who(grant: store.Grant) -> str:
    """Return the name under which something is said by whoever asks."""
    return "the service" if grant.token_id is None else f"token {grant.token_id}"


def _set(number: int, by: str, site: Site, body: Mapping[str, Any]) -> Mapping[str, Any]:
    if missing := [name for name in ("state", "because") if name not in body]:
        raise UsageError(f"the body lacks {missing[0]!r}; it needs a state and a reason (because)")
    return {"finding": of_findings.set_state(site.engine, number, body["state"], body["because"], by)}


async def _acted(request: Request, act: Act, known: Collection[str], status: int) -> Response:
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
        if not isinstance(value, str) or "\0" in value:
            raise UsageError(f"{name} must be a text without NUL")
    return success(request, await to_thread.run_sync(act, site_of(request), body), status)


def register(app: FastAPI) -> None:
    """Add the routes."""
    which = in_path("report", "number of a report, or newest; .md, .html or .txt for that form", "newest")
    json_body = {"application/json": {"schema": NIGHT}}
    gives = {"application/json": {"schema": SUCCESS}, **{kind.partition(";")[0]: {} for kind in MEDIA.values()}}
    add(app, "/v1/reports/{report}", report, "read", name="show_report", takes=[which], gives=gives, tag="reports")
    add(app, "/v1/reports", make, "admin", name="make_report", methods=["POST"], body=json_body, tag="reports",
        statuses=(201,))  # fmt: skip
    number = in_path("finding", "number of the finding", "1")
    add(app, "/v1/findings/{finding}", finding, "admin", name="set_finding", methods=["POST"], takes=[number],
        body={"application/json": {"schema": STATE}}, tag="reports")  # fmt: skip
