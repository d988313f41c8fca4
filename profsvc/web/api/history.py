"""``/v1/history``: one kernel over runs, as the command line prints it."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import UsageError
from profsvc.store.queries.kernels.history import MAX_POINTS
from profsvc.store.queries.kernels.history import HistoryFilter as Runs
from profsvc.views import history as history_view
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, query_param
from profsvc.web.http.state import app_state, in_worker_thread, project_of

DEFAULT_POINTS = 500
MAX_UPLOAD_ID = 2**62
KERNEL_DESCRIPTION = "kernel by name, short name or number; for power quantities also a load"


def history_filter(request: Request, args: RequestArgs) -> Runs:
    """Return the runs that a request selects, limited to its project."""
    project = project_of(request, args.text("project"))
    before = args.number("before", int, 0, "a whole number")
    if not 0 <= before <= MAX_UPLOAD_ID:
        raise UsageError(f"before={before} must be from 0 to {MAX_UPLOAD_ID}")
    return Runs(
        project=project,
        device=args.text("device") or None,
        points=args.count("points", DEFAULT_POINTS, MAX_POINTS),
        before=before or None,
        seconds=app_state(request).limits.sql_seconds,
    )


def _answer_history(request: Request) -> Response:
    args = RequestArgs(request)
    kernel, quantity = args.required("kernel", KERNEL_DESCRIPTION), args.text("quantity", "duration")
    runs = history_filter(request, args)
    args.reject_unknown()
    return success(request, history_view.history(app_state(request).engine, kernel, quantity, runs))


async def get_history(request: Request) -> Response:
    """One kernel over runs: one value per run, oldest first, and the detected changes."""
    return await in_worker_thread(_answer_history, request, app_state(request).long_limit)


def register(app: FastAPI) -> None:
    """Add the route."""
    takes: list[dict[str, Any]] = [
        query_param("kernel", "string", KERNEL_DESCRIPTION, "saxpy", required=True),
        query_param(
            "quantity",
            "string",
            "quantity to follow; default: duration",
            "duration",
            enum=list(history_view.quantities()),
        ),
        query_param("project", "string", "only runs of this project"),
        query_param("device", "string", "only runs on this device"),
        query_param(
            "points",
            "integer",
            f"number of newest runs; default: {DEFAULT_POINTS}",
            minimum=1,
            maximum=MAX_POINTS,
        ),
        query_param("before", "integer", "start of older runs: `older` of the previous response", minimum=0),
    ]
    add_route(app, "/v1/history", get_history, "read", name="kernel_history", takes=takes, tag="runs")
