"""``/v1/runs/{run}/plots/{kind}``: the pictures of models, as SVG, PNG or the data that they are drawn from."""

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports import model_plots as drawing
from profsvc.views import model_plots
from profsvc.web.answers import success
from profsvc.web.asked import Asked
from profsvc.web.routes import add, asks, in_path
from profsvc.web.runs import MOST_LAUNCHES, RUN
from profsvc.web.site import answered, grant_of, site_of

# The form without an ending comes last, as its path is that of any other too.
FORMS = {".json": "application/json", ".svg": "image/svg+xml", ".png": "image/png", "": "application/json"}


def _answer(request: Request, form: str) -> Response:
    asked = Asked(request)
    kernel, limit = asked.text("kernel") or None, asked.count("limit", views.LIMIT, MOST_LAUNCHES)
    dark = asked.flag("dark")
    asked.done()
    engine = site_of(request).engine
    run = store.find_run(engine, request.path_params["run"], grant_of(request).project)
    data = model_plots.plot(engine, run, request.path_params["kind"], kernel, limit)
    if FORMS[form] == FORMS[""]:
        return success(request, data)
    return Response(drawing.draw(data, form.removeprefix("."), dark=dark), media_type=FORMS[form])


def _handler(form: str) -> Callable[..., Any]:
    async def plot(request: Request) -> Response:
        return await answered(partial(_answer, form=form), request)

    plot.__doc__ = f"A plot of models of a run: {', '.join(model_plots.KINDS)}."
    return plot


def register(app: FastAPI) -> None:
    """Add the routes."""
    takes = [
        in_path("run", RUN, "h200"),
        in_path("kind", ", ".join(f"{kind} ({what})" for kind, what in model_plots.KINDS.items()), "roofline"),
        asks("kernel", "string", "number of a launch, or (part of) the name of a kernel"),
        asks("limit", "integer", "launches at most, the longest", minimum=1, maximum=MOST_LAUNCHES),
        asks("dark", "string", "1: light on dark", enum=["0", "1"]),
    ]
    for form, media in FORMS.items():
        gives = {media: {"schema": {"type": "object" if media == FORMS[""] else "string"}}}
        path, label = f"/v1/runs/{{run:path}}/plots/{{kind}}{form}", f"plot{form.replace('.', '_')}"
        add(app, path, _handler(form), "read", name=label, takes=takes, gives=gives, tag="runs")
