"""``/v1/runs/{run}/timeline``: events and sensors of a run on one time axis, as data or as SVG."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.reports.plots import timeline as timeline_plot
from profsvc.views.traces import timeline as timeline_view
from profsvc.web.api.runs import RUN_DESCRIPTION, run_id_of
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_forms, add_route, path_param, query_param
from profsvc.web.http.state import app_state, in_worker_thread

MAX_NS = 2**62
MEDIA_TYPES = {"json": "application/json", "svg": "image/svg+xml"}


def _nanoseconds(args: RequestArgs, name: str) -> int | None:
    found = args.number(name, int, None, "a whole number of nanoseconds")
    return None if found is None else max(-MAX_NS, min(MAX_NS, found))


def _answer_timeline(request: Request, form: str) -> Response:
    args = RequestArgs(request)
    begin, end = _nanoseconds(args, "from"), _nanoseconds(args, "to")
    columns = args.count("columns", timeline_view.COLUMNS, timeline_view.MAX_COLUMNS)
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    view = timeline_view.timeline(app_state(request).engine, number, begin, end, columns)
    return Response(timeline_plot.draw(view), media_type=MEDIA_TYPES[form]) if form == "svg" else success(request, view)


def _answer_search(request: Request) -> Response:
    args = RequestArgs(request)
    text, match = args.text("text"), args.number("match", int, None, "the number of a match, from 0")
    begin = _nanoseconds(args, "from") or 0
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    if match is not None:
        match = max(-MAX_NS, min(MAX_NS, match))
    return success(request, timeline_view.search(app_state(request).engine, number, text, match, begin))


async def search_timeline(request: Request) -> Response:
    """Find the events of a run with a text in their name: how many, their time, and one of them."""
    return await in_worker_thread(_answer_search, request, app_state(request).long_limit)


def _handler(form: str) -> Callable[..., Any]:
    async def timeline(request: Request) -> Response:
        return await in_worker_thread(partial(_answer_timeline, form=form), request, app_state(request).long_limit)

    timeline.__doc__ = "Kernels, copies, API calls, ranges, power and temperature of a run on one time axis."
    return timeline


def register(app: FastAPI) -> None:
    """Add the routes, before that of a run, whose name may contain anything."""
    takes = [
        path_param("run", RUN_DESCRIPTION, "h200"),
        query_param("from", "integer", "first nanosecond since the first event; default: 0"),
        query_param("to", "integer", "last nanosecond since the first event; default: the end of the last"),
        query_param("columns", "integer", "columns of time of a lane; with fewer events, each event is an item",
                    minimum=1, maximum=timeline_view.MAX_COLUMNS),
    ]  # fmt: skip
    searched = [
        takes[0],
        query_param("text", "string", "part of the name of an event, in any case", example="gemm"),
        query_param("match", "integer", "number of the match to return, from 0 by their starts; after the last, the "
                    "first"),
        query_param("from", "integer", "without match: the first match that starts then or later, in nanoseconds since "
                    "the first event"),
    ]  # fmt: skip
    add_route(app, "/v1/runs/{run:path}/timeline/search", search_timeline, "read", name="timeline_search",
             takes=searched, tag="runs")  # fmt: skip
    forms = {form: {media: {"schema": {"type": "string" if form == "svg" else "object"}}}
             for form, media in MEDIA_TYPES.items()}  # fmt: skip
    add_forms(app, "/v1/runs/{run:path}/timeline", forms, _handler, "read", name="timeline", takes=takes, tag="runs")
