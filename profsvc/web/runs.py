"""``/v1/runs/{run}``, ``/v1/compare``, ``/v1/accuracy`` and ``/v1/explain/{name}``: what the command line prints."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.errors import AccessError, UsageError
from profsvc.views import compare as side_by_side
from profsvc.views import explain as walk
from profsvc.views import predictions
from profsvc.views import what_if as otherwise
from profsvc.web.answers import success
from profsvc.web.asked import Asked
from profsvc.web.routes import add, asks, in_path
from profsvc.web.site import answered, grant_of, site_of

WHAT_IF = {
    "sms": "SMs at work",
    "blocks": "blocks of the grid, the work of the launch held",
    "block_size": "threads of a block, the work of the launch held",
    "warps": "warps resident on an SM",
    "frequency": "clock of the SMs, such as 1200MHz",
    "bandwidth": "bandwidth of DRAM in GB/s, or such as 2TB/s",
}
MOST_LAUNCHES = 10_000
RUN = "run by number, name or project/name"


def number_of(request: Request, run: str) -> int:
    """Return the number of a run that this request may see."""
    return store.find_run(site_of(request).engine, run, grant_of(request).project)


async def run(request: Request) -> Response:
    """Everything about one run, a row a launch; with ``kernel`` the launches of it opened."""
    return await answered(_run, request)


def _run(request: Request) -> Response:
    asked = Asked(request)
    kernel, limit = asked.text("kernel"), asked.count("limit", views.LIMIT, MOST_LAUNCHES)
    number = number_of(request, request.path_params["run"])
    asked.done()
    engine = site_of(request).engine
    return success(request, views.launch(engine, number, kernel, limit) if kernel else views.run(engine, number, limit))


async def what_if(request: Request) -> Response:
    """What a launch would take with other SMs, grids, warps, clock or bandwidth, or on another device."""
    return await answered(_what_if, request)


def _what_if(request: Request) -> Response:
    asked = Asked(request)
    kernel, device = asked.text("kernel") or None, asked.text("device") or None
    axes = {
        axis: [part for text in asked.texts(option) for part in text.split(",") if part]
        for axis, option in otherwise.OPTIONS.items()
    }
    number = number_of(request, request.path_params["run"])
    asked.done()
    return success(request, otherwise.what_if(site_of(request).engine, number, kernel, axes, device))


async def compare(request: Request) -> Response:
    """Two runs beside each other: what became of each kernel, and whether what was foretold came true."""
    return await answered(_compare, request)


async def record(request: Request) -> Response:
    """Compare two runs, and keep what was foretold of the one before with what the one after achieved."""
    return await answered(_compare, request)


def _compare(request: Request) -> Response:
    asked = Asked(request)
    before, after = (asked.needed(name, RUN) for name in ("before", "after"))
    mapped, limits = asked.pairs("map", "reduce_v1=reduce_v7"), asked.texts("fail_on")
    asked.done()
    side_by_side.failures({"kernels": [], "criteria": []}, limits)  # a wrong limit is said before any work
    old, new = (number_of(request, name) for name in (before, after))
    engine = site_of(request).engine
    view = side_by_side.compare(engine, old, new, mapped)
    if request.method == "POST":
        view["predictions"] = predictions.record(engine, view)
    found = {"failures": side_by_side.failures(view, limits), "unjudged": side_by_side.unjudged(view, limits)}
    return success(request, view | found)


async def accuracy(request: Request) -> Response:
    """How well speedups were foretold, by this program and by the tool: scores of all predictions that count."""
    return await answered(_accuracy, request)


def _accuracy(request: Request) -> Response:
    asked = Asked(request)
    project, source = asked.text("project") or None, asked.text("source") or None
    chosen = {name: asked.flag(name) for name in ("acted", "best", "unchanged")}
    asked.done()
    own = grant_of(request).project
    if own is not None and project not in (None, own):
        raise AccessError(f"the token is for the project {own!r} alone")
    return success(request, predictions.accuracy(site_of(request).engine, own or project, source, **chosen))


async def explain(request: Request) -> Response:
    """What a number means and where it comes from: formula, source, counters, metrics; with a run, file and line."""
    return await answered(_explain, request)


def _explain(request: Request) -> Response:
    asked = Asked(request)
    of_run, kernel = asked.text("run"), asked.text("kernel")
    asked.done()
    if kernel and not of_run:
        raise UsageError("kernel names a launch of a run; give run too")
    number = number_of(request, of_run) if of_run else None
    engine = site_of(request).engine
    return success(request, walk.explain(engine, request.path_params["name"], number, kernel or None))


async def formats(request: Request) -> Response:
    """List the formats that are read, each with a line."""
    Asked(request).done()
    return success(request, {"formats": views.readers()})


def register(app: FastAPI) -> None:
    """Add the routes."""
    kernel = asks("kernel", "string", "number of a launch, id: and its launch_id, or (part of) the name of a kernel")
    launches: dict[str, Any] = {"minimum": 1, "maximum": MOST_LAUNCHES}
    limit = asks("limit", "integer", "launches at most, the longest", **launches)
    takes = [in_path("run", RUN, "h200"), kernel, asks("device", "string", "on this device of the catalogue")]
    takes += [
        asks(option, "array", f"{what}; several by commas; x0.5 is a share of now", items={"type": "string"})
        for option, what in WHAT_IF.items()
    ]
    add(app, "/v1/runs/{run:path}/whatif", what_if, "read", name="what_if", takes=takes, tag="runs")
    takes = [in_path("run", RUN, "h200"), kernel, limit]
    add(app, "/v1/runs/{run:path}", run, "read", name="show_run", takes=takes, tag="runs")
    takes = [
        asks("before", "string", f"the {RUN}", "h200", required=True),
        asks("after", "string", f"the {RUN}", "h200", required=True),
        asks("map", "array", "OLD=NEW, which kernel became which; repeatable", items={"type": "string"}),
        asks("fail_on", "array", "duration=5%, divergence=0.05: what goes beyond is in `failures`, "
             "what nothing could be judged by in `unjudged`; repeatable",
             items={"type": "string"}),
    ]  # fmt: skip
    add(app, "/v1/compare", compare, "read", name="compare_runs", takes=takes, tag="runs")
    add(app, "/v1/compare", record, "upload", name="record_comparison", methods=["POST"], takes=takes, tag="runs")
    takes = [
        asks("project", "string", "only predictions for runs of this project"),
        asks("source", "string", "only those of profsvc, or of a tool such as ncu"),
        asks("acted", "string", "1: of criteria, only those that the change improved", enum=["0", "1"]),
        asks("best", "string", "1: of several runs after one, only the one that achieved most", enum=["0", "1"]),
        asks("unchanged", "string", "1: pairs too of which nothing says that the kernel changed", enum=["0", "1"]),
    ]
    add(app, "/v1/accuracy", accuracy, "read", name="accuracy", takes=takes, tag="runs")
    name = in_path("name", "a criterion, a counter, a metric, or potential", "divergence")
    of_run = asks("run", "string", "run, to walk from its numbers to lines of its files")
    add(app, "/v1/explain/{name:path}", explain, "read", name="explain_name", takes=[name, of_run, kernel], tag="runs")
    add(app, "/v1/formats", formats, "read", name="list_formats", tag="runs")
