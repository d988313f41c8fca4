"""``/v1/renames``: two names of a kernel as one series, found by reports or decided by people."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import UsageError
from profsvc.views.nightly import renames as renames_view
from profsvc.web.api.reports import apply_body, author_name
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, query_param
from profsvc.web.http.state import AppState, app_state, grant_of, in_worker_thread, project_of

NEEDED = ("act", "kernel_before", "kernel", "because")
DECISION_SCHEMA = {
    "type": "object",
    "required": list(NEEDED),
    "properties": {"act": {"enum": list(renames_view.DECISIONS)}}
    | {name: {"type": "string"} for name in (*NEEDED[1:], "project")},
    "additionalProperties": False,
    "example": {"act": "link", "kernel_before": "saxpy", "kernel": "axpy_fast", "because": "rewritten, ticket 17"},
}


async def list_renames(request: Request) -> Response:
    """Renamed kernels, the newest first: found by reports, linked or refused by people."""
    return await in_worker_thread(_answer_list, request)


def _answer_list(request: Request) -> Response:
    args = RequestArgs(request)
    project = project_of(request, args.text("project"))
    args.reject_unknown()
    return success(request, renames_view.renames(app_state(request).engine, project))


async def decide_rename(request: Request) -> Response:
    """Make two kernel names one series (link), separate them (refuse), or let nightly reports decide (undo)."""
    act = partial(_decide, request)
    return await apply_body(request, act, dict.fromkeys((*NEEDED, "project"), str), 201)


def _decide(request: Request, state: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
    if missing := [name for name in NEEDED if name not in body]:
        raise UsageError(f"the body lacks {missing[0]!r}; it needs {', '.join(NEEDED[:-1])} and {NEEDED[-1]}")
    act, before, since, because = (str(body[name]) for name in NEEDED)
    project, by = project_of(request, str(body.get("project", ""))), author_name(grant_of(request))
    return {"rename": renames_view.decide(state.engine, act, before, since, because, by, project)}


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_route(app, "/v1/renames", list_renames, "read", name="list_renames",
        takes=[query_param("project", "string", "only this project")], tag="reports")  # fmt: skip
    add_route(app, "/v1/renames", decide_rename, "admin", name="decide_rename", methods=["POST"],
        body={"application/json": {"schema": DECISION_SCHEMA}}, tag="reports", statuses=(201,))  # fmt: skip
