"""``/runs/{run}/timeline``: what a run did over time, which the script draws and zooms."""

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import Links, find_run_id, page, path_to


def show_timeline(request: Request) -> Response:
    """Show the timeline of a run."""
    args, run_id = RequestArgs(request), find_run_id(request, request.path_params["run"])
    args.reject_unknown()
    info = store.select(app_state(request).engine, "v1_runs", run_id=run_id)[0]
    path = f"/v1/runs/id:{run_id}/timeline"
    sql = f"select * from v1_launches where run_id = {run_id} and start_ns is not null order by start_ns"
    links = Links(json=path_to(request, path), sql=sql)
    return page(request, "launches/timeline.html", f"Timeline of {info['name']}", links=links, info=info,
                source=links.json, image=path_to(request, f"{path}.svg"))  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/runs/{run}/timeline", show_timeline, "read", name="timeline_page")
