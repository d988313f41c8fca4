"""``/renames``: kernels whose series goes on under another name, and forms to link, refuse and undo."""

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import UsageError
from profsvc.views.nightly import renames as renames_view
from profsvc.web.api.renames import NEEDED
from profsvc.web.api.reports import author_name
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of, project_of
from profsvc.web.pages.rendering.page import Links, form_fields, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column

COLUMNS = [
    Column("kernel_before", "Kernel before", "name", width=44),
    Column("kernel", "Kernel since", "name", width=44),
    Column("state", "State", "flags"),
    Column("said_by", "Decided by"),
    Column("said_at", "When (UTC)", "when"),
    Column("because", "Reason", "name", width=60),
    Column("project", "Project", "name", width=24),
    Column("not_applied", "Run with both", "name", width=28),
]


def list_renames(request: Request) -> Response:
    """List renamed kernels, the newest first."""
    args = RequestArgs(request)
    given = {name: args.text(name) for name in ("project", "before", "since")}
    args.reject_unknown()
    found = renames_view.renames(app_state(request).engine, project_of(request, given["project"]))
    return page(
        request,
        "nightly/renames.html",
        "Renamed kernels",
        links=Links(
            json=path_to(request, "/v1/renames"),
            csv=path_to(request, "/v1/kernel_renames.csv"),
            sql="select * from v1_kernel_renames order by rename_id desc",
        ),
        rows=found["renames"],
        columns=COLUMNS,
        form=given,
        may_set=grant_of(request).allows("admin"),
        acts=ACTS,
    )


ACTS = (("link", "one series"), ("refuse", "two series"), ("undo", "reports decide"))


async def decide(request: Request) -> Response:
    """Link, refuse or undo from a form, and show the list."""
    fields, grant = await form_fields(request), grant_of(request)
    if missing := [name for name in NEEDED if not fields.get(name, "").strip()]:
        raise UsageError(f"the form lacks {missing[0]!r}; give both names, a decision and a reason")
    act, before, since, because = (fields[name].strip() for name in NEEDED)
    project = project_of(request, fields.get("project", "").strip())
    given = act, before, since, because, author_name(grant), project
    await to_thread.run_sync(renames_view.decide, app_state(request).engine, *given)
    return redirect(request, "/renames")


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/renames", list_renames, "read", name="renames_page")
    add_page(app, "/renames", decide, "admin", name="decide_rename_page", methods=["POST"])
