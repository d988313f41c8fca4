"""``/explain/{name}``: what a number means and where it comes from; with ``part=1`` as a piece of another page."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError
from profsvc.views import explain as walk
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import Links, page, part, path_to
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

MOST_STEPS = 400


def explain(request: Request) -> Response:
    """Explain."""
    asked, name = Asked(request), request.path_params["name"]
    run, kernel = asked.text("run"), asked.text("kernel")
    launch = asked.number("launch", int, 0, "the number of a launch")
    is_part = asked.flag("part")
    asked.done()
    engine = site_of(request).engine
    number = store.find_run(engine, run, grant_of(request).project) if run else None
    view = _of_run(request, name, number, kernel, launch)
    view["cut"] = len(view["trace"]) > MOST_STEPS
    view["trace"] = view["trace"][:MOST_STEPS]
    whole = path_to(request, f"/explain/{name}", {"run": run, "kernel": kernel, "launch": launch or None})
    if is_part:
        return part(request, "explained.html", view=view, whole=whole)
    links = Links(
        json=path_to(request, f"/v1/explain/{name}", {"run": run, "kernel": f"id:{launch}" if launch else kernel})
    )
    return page(request, "explain.html", view["meaning"], links=links, view=view, whole="")


def _of_run(request: Request, name: str, run: int | None, kernel: str, launch: int) -> dict[str, Any]:
    engine = site_of(request).engine
    if run is not None and not kernel and not launch:
        # Of a whole run the meaning is told: its launches may be many, and each has an explanation of its own.
        return walk.explain(engine, name, None, None)
    try:
        return walk.explain(engine, name, run, f"id:{launch}" if launch else kernel or None)
    except NotFoundError as error:
        known = walk.explain(None, name, None, None)
        return known | {"unknown": str(error)}


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/explain/{name:path}", explain, "read", name="explain_page")
