"""``/v1/runs/{run}/plots/{kind}``: model plots as SVG, PNG or data."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports.plots import models as drawing
from profsvc.views.models import plots as model_plots
from profsvc.web.api.runs import MAX_LAUNCHES, RUN_DESCRIPTION
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_forms, path_param, query_param
from profsvc.web.http.state import app_state, grant_of, in_worker_thread

MEDIA_TYPES = {"json": "application/json", "svg": "image/svg+xml", "png": "image/png"}


def _answer_plot(request: Request, form: str) -> Response:
    args = RequestArgs(request)
    kernel, limit = args.text("kernel") or None, args.count("limit", views.LIMIT, MAX_LAUNCHES)
    dark = args.flag("dark")
    args.reject_unknown()
    engine = app_state(request).engine
    run = store.find_run(engine, request.path_params["run"], grant_of(request).project)
    data = model_plots.plot(engine, run, request.path_params["kind"], kernel, limit)
    if form == "json":
        return success(request, data)
    return Response(drawing.draw(data, form, dark=dark), media_type=MEDIA_TYPES[form])


def _handler(form: str) -> Callable[..., Any]:
    async def plot(request: Request) -> Response:
        return await in_worker_thread(partial(_answer_plot, form=form), request)

    plot.__doc__ = f"A model plot of a run: {', '.join(model_plots.KINDS)}."
    return plot


def register(app: FastAPI) -> None:
    """Add the routes."""
    takes = [
        path_param("run", RUN_DESCRIPTION, "h200"),
        path_param("kind", ", ".join(f"{kind} ({what})" for kind, what in model_plots.KINDS.items()), "roofline"),
        query_param("kernel", "string", "number of a launch, or (part of) a kernel name"),
        query_param("limit", "integer", "maximum number of launches, longest first", minimum=1, maximum=MAX_LAUNCHES),
        query_param("dark", "string", "1: dark theme", enum=["0", "1"]),
    ]
    forms = {form: {media: {"schema": {"type": "object" if form == "json" else "string"}}}
             for form, media in MEDIA_TYPES.items()}  # fmt: skip
    add_forms(app, "/v1/runs/{run:path}/plots/{kind}", forms, _handler, "read", name="plot", takes=takes, tag="runs")
