"""``/v1/history``: one kernel over runs, as the command line prints it."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import UsageError
from profsvc.store.history import MOST_POINTS
from profsvc.store.history import Asked as Runs
from profsvc.views import history as of_kernel
from profsvc.web.answers import success
from profsvc.web.asked import Asked
from profsvc.web.routes import add, asks
from profsvc.web.site import answered, project_of, site_of

POINTS = 500
MOST_PLACE = 2**62
KERNEL = "a kernel by name, short name or number; of power also a load"


def question(request: Request, asked: Asked) -> Runs:
    """Read which runs a request asks for, within what it may see."""
    project = project_of(request, asked.text("project"))
    before = asked.number("before", int, 0, "a whole number")
    if not 0 <= before <= MOST_PLACE:
        raise UsageError(f"before={before} must be from 0 to {MOST_PLACE}")
    return Runs(
        project=project,
        device=asked.text("device") or None,
        points=asked.count("points", POINTS, MOST_POINTS),
        before=before or None,
        seconds=site_of(request).limits.sql_seconds,
    )


def _history(request: Request) -> Response:
    asked = Asked(request)
    kernel, quantity = asked.needed("kernel", KERNEL), asked.text("quantity", "duration")
    runs = question(request, asked)
    asked.done()
    return success(request, of_kernel.history(site_of(request).engine, kernel, quantity, runs))


async def history(request: Request) -> Response:
    """One kernel over runs: a value a run, the oldest first, and the steps in its level."""
    return await answered(_history, request)


def register(app: FastAPI) -> None:
    """Add the route."""
    takes: list[dict[str, Any]] = [
        asks("kernel", "string", KERNEL, "saxpy", required=True),
        asks("quantity", "string", "what to follow; duration where nothing else is said", "duration",
             enum=list(of_kernel.quantities())),
        asks("project", "string", "only runs of this project"),
        asks("device", "string", "only runs on this device"),
        asks("points", "integer", f"so many of the newest runs; {POINTS} where nothing else is said", minimum=1,
             maximum=MOST_POINTS),
        asks("before", "integer", "where older runs begin: `older` of the answer before", minimum=0),
    ]  # fmt: skip
    add(app, "/v1/history", history, "read", name="kernel_history", takes=takes, tag="runs")
