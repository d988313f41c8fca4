"""``/explain/{name}``: the meaning and derivation of a number; with ``part=1`` as a fragment for another page."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError
from profsvc.views import device as device_view
from profsvc.views.explain import numbers as explain_view
from profsvc.views.explain import quantities
from profsvc.views.explain import rows as explain_rows
from profsvc.views.explain import runs as explain_runs
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import Links, find_run_id, page, page_fragment, path_to

MAX_STEPS = 400
SPEEDUPS = {"potential", "v1_potential.speedup", "v1_potential.speedup_ceiling"}


def show_explanation(request: Request) -> Response:
    """Show the explanation of a number."""
    args, name = RequestArgs(request), request.path_params["name"]
    run, kernel = args.text("run"), args.text("kernel")
    launch = args.number("launch", int, 0, "the number of a launch")
    row, device = args.number("row", int, -1, "the number of a row"), args.text("device")
    is_part = args.flag("part")
    args.reject_unknown()
    number = find_run_id(request, run) if run else None
    view = _explain_in_run(request, name, number, kernel, launch)
    if row >= 0 and number is not None:
        view = _explain_row(request, view, number, row)
    elif device:
        view["trace"] = _explain_device(name, device)
    view["cut"] = len(view["trace"]) > MAX_STEPS
    view["trace"] = view["trace"][:MAX_STEPS]
    about = {"run": run, "kernel": kernel, "launch": launch or None, "row": row if row >= 0 else None, "device": device}
    whole = path_to(request, f"/explain/{name}", about)
    if is_part:
        return page_fragment(request, "explained.html", view=view, whole=whole)
    links = Links(
        json=path_to(request, f"/v1/explain/{name}", {"run": run, "kernel": f"id:{launch}" if launch else kernel})
    )
    return page(request, "explain.html", view["meaning"], links=links, view=view, whole="")


def _explain_in_run(request: Request, name: str, run: int | None, kernel: str, launch: int) -> dict[str, Any]:
    engine = app_state(request).engine
    if run is not None and not kernel and not launch:
        # A run may have many launches, and each has its own explanation.
        view = explain_view.explain(engine, name, None, None)
        if steps := explain_runs.run_steps(engine, name, run):
            launches, more = explain_runs.longest(engine, name, run)
            is_speedup = name in SPEEDUPS
            launches = [one | {"is_speedup": is_speedup} for one in launches]
            view |= {"trace": steps, "longest": launches, "more": more, "run": run}
        elif view["kind"] in quantities.KINDS:
            view["trace"] = explain_rows.launch_steps(engine, name, run, [None])
        return view
    try:
        return explain_view.explain(engine, name, run, f"id:{launch}" if launch else kernel or None)
    except NotFoundError as error:
        known = explain_view.explain(None, name, None, None)
        return known | {"unknown": str(error)}


def _explain_row(request: Request, view: dict[str, Any], run: int, row: int) -> dict[str, Any]:
    """Add the derivation of the number of one row, down to its file."""
    try:
        return view | {"trace": explain_rows.row_steps(app_state(request).engine, view["name"], run, row)}
    except NotFoundError as error:
        return view | {"unknown": str(error)}


def _explain_device(name: str, device: str) -> list[dict[str, Any]]:
    """Return a specification of a device of the catalogue, with its source."""
    figure = name.partition(".")[2]
    return [
        {"name": name, "value": one["value"], "unit": one["unit"], "from": f"{device}: {one['source'] or ''}"}
        for one in device_view.figures_of(device)
        if one["figure"] == figure
    ]


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/explain/{name:path}", show_explanation, "read", name="explain_page")
