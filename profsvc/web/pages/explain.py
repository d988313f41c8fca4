"""``/explain/{name}``: what a number means and where it comes from; with ``part=1`` as a piece of another page."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError
from profsvc.views import device as catalogue
from profsvc.views import explain as walk
from profsvc.views import explain_rows, explain_runs, quantities
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import Links, page, part, path_to, run_of
from profsvc.web.routes import add_page
from profsvc.web.site import site_of

MOST_STEPS = 400


def explain(request: Request) -> Response:
    """Explain."""
    asked, name = Asked(request), request.path_params["name"]
    run, kernel = asked.text("run"), asked.text("kernel")
    launch = asked.number("launch", int, 0, "the number of a launch")
    row, device = asked.number("row", int, -1, "the number of a row"), asked.text("device")
    is_part = asked.flag("part")
    asked.done()
    number = run_of(request, run) if run else None
    view = _of_run(request, name, number, kernel, launch)
    if row >= 0 and number is not None:
        view = _of_row(request, view, number, row)
    elif device:
        view["trace"] = _of_device(name, device)
    view["cut"] = len(view["trace"]) > MOST_STEPS
    view["trace"] = view["trace"][:MOST_STEPS]
    about = {"run": run, "kernel": kernel, "launch": launch or None, "row": row if row >= 0 else None, "device": device}
    whole = path_to(request, f"/explain/{name}", about)
    if is_part:
        return part(request, "explained.html", view=view, whole=whole)
    links = Links(
        json=path_to(request, f"/v1/explain/{name}", {"run": run, "kernel": f"id:{launch}" if launch else kernel})
    )
    return page(request, "explain.html", view["meaning"], links=links, view=view, whole="")


def _of_run(request: Request, name: str, run: int | None, kernel: str, launch: int) -> dict[str, Any]:
    engine = site_of(request).engine
    if run is not None and not kernel and not launch:
        # The launches of a whole run may be many, and each has an explanation of its own.
        view = walk.explain(engine, name, None, None)
        if steps := explain_runs.of_run(engine, name, run):
            launches, more = explain_runs.longest(engine, name, run)
            view |= {"trace": steps, "longest": launches, "more": more, "run": run}
        elif view["kind"] in quantities.KINDS:
            view["trace"] = explain_rows.of_launches(engine, name, run, [None])
        return view
    try:
        return walk.explain(engine, name, run, f"id:{launch}" if launch else kernel or None)
    except NotFoundError as error:
        known = walk.explain(None, name, None, None)
        return known | {"unknown": str(error)}


def _of_row(request: Request, view: dict[str, Any], run: int, row: int) -> dict[str, Any]:
    """Add what the row of a number has, down to its file."""
    try:
        return view | {"trace": explain_rows.of_row(site_of(request).engine, view["name"], run, row)}
    except NotFoundError as error:
        return view | {"unknown": str(error)}


def _of_device(name: str, device: str) -> list[dict[str, Any]]:
    """The figure of a device of the catalogue, with its source."""
    figure = name.partition(".")[2]
    return [
        {"name": name, "value": one["value"], "unit": one["unit"], "from": f"{device}: {one['source'] or ''}"}
        for one in catalogue.figures_of(device)
        if one["figure"] == figure
    ]


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/explain/{name:path}", explain, "read", name="explain_page")
