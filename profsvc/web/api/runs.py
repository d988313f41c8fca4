"""``/v1/runs/{run}``, ``/v1/compare``, ``/v1/accuracy`` and ``/v1/explain/{name}``: what the command line prints."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from sqlalchemy import Engine
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.errors import AccessError, NotFoundError, UsageError
from profsvc.views.comparison import several_runs, two_runs
from profsvc.views.explain import numbers as explain_view
from profsvc.views.launches import metrics as metrics_view
from profsvc.views.launches import source_lines as source_view
from profsvc.views.models import antipatterns as antipatterns_view
from profsvc.views.models import predictions, run_graph
from profsvc.views.models import versions as versions_view
from profsvc.views.models import what_if as what_if_view
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import success
from profsvc.web.http.routes import add_route, path_param, query_param
from profsvc.web.http.state import app_state, grant_of, in_worker_thread

WHAT_IF_OPTIONS = {
    "sms": "active SMs",
    "blocks": "blocks of the grid at constant total work",
    "block_size": "threads per block at constant total work",
    "registers": "registers per thread; +1 is added to the present value",
    "shared": "shared memory per block in bytes, or with unit, such as 8KiB; +1 is added to the present value",
    "warps": "resident warps per SM",
    "frequency": "SM clock, such as 1200MHz",
    "bandwidth": "DRAM bandwidth in GB/s, or with unit, such as 2TB/s",
}
Handler = Callable[[Request], Awaitable[Response]]
MAX_LAUNCHES = 10_000
RUN_DESCRIPTION = "run by name, project/name or number; id:7 is a number even if a run has the name 7"


def run_id_of(request: Request, run: str) -> int:
    """Return the number of a run that this request may see."""
    return store.find_run(app_state(request).engine, run, grant_of(request).project)


async def get_run(request: Request) -> Response:
    """One run, one row per launch; with ``kernel`` the details of its launches."""
    return await in_worker_thread(_answer_run, request)


def _answer_run(request: Request) -> Response:
    args = RequestArgs(request)
    kernel, limit = args.text("kernel"), args.count("limit", views.LIMIT, MAX_LAUNCHES)
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    engine = app_state(request).engine
    return success(request, views.launch(engine, number, kernel, limit) if kernel else views.run(engine, number, limit))


async def get_source(request: Request) -> Response:
    """The source lines of a launch, those where most can be saved first, with their instructions and stall reasons."""
    return await in_worker_thread(_answer_source, request)


def _answer_source(request: Request) -> Response:
    args = RequestArgs(request)
    kernel, limit = args.text("kernel"), args.count("limit", source_view.LINES, source_view.MAX_ROWS)
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    return success(request, source_view.source_lines(app_state(request).engine, number, kernel, limit))


async def get_launch_metrics(request: Request) -> Response:
    """All metrics of a launch, and the difference of each from those of a baseline launch."""
    return await in_worker_thread(_answer_launch_metrics, request)


def _answer_launch_metrics(request: Request) -> Response:
    args = RequestArgs(request)
    kernel, search = args.required("kernel", "the launch"), args.text("search")
    of_run, other = args.text("baseline_run"), args.text("baseline")
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    baseline = None
    if of_run or other:
        baseline = (run_id_of(request, of_run) if of_run else number, other or kernel)
    return success(request, metrics_view.launch_metrics(app_state(request).engine, number, kernel, baseline, search))


async def get_what_if(request: Request) -> Response:
    """The predicted time of a launch with other SMs, grid, warps, clock or bandwidth, or on another device."""
    return await in_worker_thread(_answer_what_if, request, app_state(request).long_limit)


def _answer_what_if(request: Request) -> Response:
    args = RequestArgs(request)
    kernel, device = args.text("kernel") or None, args.text("device") or None
    axes = {
        axis: [part for text in args.texts(option) for part in text.split(",") if part]
        for axis, option in what_if_view.OPTIONS.items()
    }
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    return success(request, what_if_view.what_if(app_state(request).engine, number, kernel, axes, device))


async def get_antipatterns(request: Request) -> Response:
    """The anti-parallel patterns of a launch, each with its measured ratio; without ``kernel`` means over the run."""
    return await in_worker_thread(_answer_antipatterns, request, app_state(request).long_limit)


def _answer_antipatterns(request: Request) -> Response:
    args = RequestArgs(request)
    kernel = args.text("kernel") or None
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    return success(request, antipatterns_view.antipatterns(app_state(request).engine, number, kernel))


async def get_versions(request: Request) -> Response:
    """Speedup of each version over the one before and the first: runs in order, or the launches of one run."""
    return await in_worker_thread(_answer_versions, request, app_state(request).long_limit)


def _answer_versions(request: Request) -> Response:
    args = RequestArgs(request)
    names, kernel = args.texts("run"), args.text("kernel") or None
    args.reject_unknown()
    ids = [run_id_of(request, name) for name in names]
    view = versions_view.versions(app_state(request).engine, ids, kernel)
    if len(names) > 1:
        for row, name in zip(view["rows"], names, strict=True):
            row["version"] = name
    return success(request, view)


async def get_several(request: Request) -> Response:
    """The mean time of each kernel in several runs, beside a baseline."""
    return await in_worker_thread(_answer_several, request, app_state(request).long_limit)


def _answer_several(request: Request) -> Response:
    args = RequestArgs(request)
    names, baseline = args.texts("run"), args.text("baseline")
    args.reject_unknown()
    ids = [run_id_of(request, name) for name in names]
    base = run_id_of(request, baseline) if baseline else None
    return success(request, several_runs.compare_several(app_state(request).engine, ids, base))


async def get_comparison(request: Request) -> Response:
    """Two runs side by side: change per kernel, and predicted against achieved speedup."""
    return await in_worker_thread(_answer_comparison, request, app_state(request).long_limit)


async def record_comparison(request: Request) -> Response:
    """Compare two runs, and save predicted and achieved speedups."""
    return await in_worker_thread(_answer_comparison, request, app_state(request).long_limit)


def _answer_comparison(request: Request) -> Response:
    args = RequestArgs(request)
    before, after = args.text("before"), args.required("after", RUN_DESCRIPTION)
    mapped, limits = args.pairs("map", "reduce_v1=reduce_v7"), args.texts("fail_on")
    args.reject_unknown()
    two_runs.check_limits(limits)
    new, engine = run_id_of(request, after), app_state(request).engine
    old = run_id_of(request, before) if before else _previous(engine, new)
    view = two_runs.compare(engine, old, new, mapped)
    if request.method == "POST":
        view["predictions"] = predictions.record(engine, view)
    found = {"failures": two_runs.failures(view, limits), "unjudged": two_runs.unjudged(view, limits)}
    return success(request, view | found)


def _previous(engine: Engine, run_id: int) -> int:
    found = store.previous_run(engine, run_id)
    if found is None:
        raise NotFoundError(
            f"run {run_id} is the first of its project, device and branch (tag branch); name the run before: before=RUN"
        )
    return int(found["run_id"])


async def get_graph(request: Request) -> Response:
    """The work-flow graph of a run: nodes, arcs, or the average warps of its longest launches."""
    return await in_worker_thread(_answer_graph, request, app_state(request).long_limit)


def _answer_graph(request: Request) -> Response:
    args = RequestArgs(request)
    show, limit = args.text("show") or run_graph.NODES, args.count("limit", run_graph.LIMIT, MAX_LAUNCHES)
    number = run_id_of(request, request.path_params["run"])
    args.reject_unknown()
    return success(request, run_graph.run_graph(app_state(request).engine, number, show, limit))


async def get_accuracy(request: Request) -> Response:
    """Prediction accuracy of profsvc and of Nsight: scores of all valid predictions."""
    return await in_worker_thread(_answer_accuracy, request, app_state(request).long_limit)


def _answer_accuracy(request: Request) -> Response:
    args = RequestArgs(request)
    project, source = args.text("project") or None, args.text("source") or None
    chosen = {name: args.flag(name) for name in ("acted", "best", "unchanged")}
    args.reject_unknown()
    own = grant_of(request).project
    if own is not None and project not in (None, own):
        raise AccessError(f"your token is limited to the project {own!r}")
    return success(request, predictions.accuracy(app_state(request).engine, own or project, source, **chosen))


async def get_explanation(request: Request) -> Response:
    """The meaning and derivation of a number: formula, source, counters, metrics; with a run also file and line."""
    return await in_worker_thread(_answer_explanation, request)


def _answer_explanation(request: Request) -> Response:
    args = RequestArgs(request)
    of_run, kernel = args.text("run"), args.text("kernel")
    args.reject_unknown()
    if kernel and not of_run:
        raise UsageError("kernel selects a launch of a run; also give run")
    number = run_id_of(request, of_run) if of_run else None
    engine = app_state(request).engine
    return success(request, explain_view.explain(engine, request.path_params["name"], number, kernel or None))


async def list_formats(request: Request) -> Response:
    """The supported formats, one line each."""
    RequestArgs(request).reject_unknown()
    return success(request, {"formats": views.readers()})


KERNEL = query_param("kernel", "string", "number of a launch, id:LAUNCH_ID, or (part of) a kernel name")
LIMIT = query_param("limit", "integer", "maximum number of launches, longest first", minimum=1, maximum=MAX_LAUNCHES)
RUN = path_param("run", RUN_DESCRIPTION, "h200")
LIST = {"type": "string"}
COMPARED = (
    query_param("before", "string", f"the {RUN_DESCRIPTION}; default: the run before of the same project, device and "
                "branch (tag branch)", "h200"),
    query_param("after", "string", f"the {RUN_DESCRIPTION}", "h200", required=True),
    query_param("map", "array", "OLD=NEW, a renamed kernel; repeatable", items=LIST),
    query_param("fail_on", "array", "duration=5%, divergence=0.05: what goes beyond is in `failures`, limits without "
                "data in `unjudged`; repeatable", items=LIST),
)  # fmt: skip
# Path, handler, name and parameters. That of a run comes last of those below it, because its name may contain anything.
ROUTES: tuple[tuple[str, Handler, str, Sequence[Mapping[str, Any]]], ...] = (
    ("/v1/runs/{run:path}/whatif", get_what_if, "what_if", (
        RUN, KERNEL, query_param("device", "string", "device of the catalogue"),
        *(query_param(option, "array", f"{what}; several separated by commas; x0.5 scales the present value",
                      items=LIST) for option, what in WHAT_IF_OPTIONS.items()),
    )),
    ("/v1/runs/{run:path}/antipatterns", get_antipatterns, "antipatterns", (RUN, KERNEL)),
    ("/v1/runs/{run:path}/source", get_source, "source_lines", (
        RUN, KERNEL, query_param("limit", "integer", "maximum number of lines, those where most can be saved first",
                                 minimum=1, maximum=source_view.MAX_ROWS),
    )),
    ("/v1/runs/{run:path}/metrics", get_launch_metrics, "launch_metrics", (
        RUN, KERNEL | {"required": True, "example": "0"},
        query_param("search", "string", "words in the section or name of the metrics"),
        query_param("baseline_run", "string", f"{RUN_DESCRIPTION} of the baseline; default: the same run"),
        query_param("baseline", "string", "launch of the baseline, like kernel; default: the same"),
    )),
    ("/v1/runs/{run:path}/graph", get_graph, "run_graph", (
        RUN, query_param("show", "string", "nodes, arcs or warps"), LIMIT,
    )),
    ("/v1/runs/{run:path}", get_run, "show_run", (RUN, KERNEL, LIMIT)),
    ("/v1/versions", get_versions, "versions", (
        query_param("run", "array", f"{RUN_DESCRIPTION}; repeatable, in order", "h200", required=True, items=LIST),
        query_param("kernel", "string", "kernels with this name, or with this part of it"),
    )),
    ("/v1/compare/runs", get_several, "compare_several", (
        query_param("run", "array", f"the {RUN_DESCRIPTION}; repeatable", "h200", required=True, items=LIST),
        query_param("baseline", "string", "the run that the others are compared with; default: the first"),
    )),
    ("/v1/compare", get_comparison, "compare_runs", COMPARED),
    ("/v1/accuracy", get_accuracy, "accuracy", (
        query_param("project", "string", "only predictions for runs of this project"),
        query_param("source", "string", "only those of profsvc or of a tool such as ncu"),
        query_param("acted", "string", "1: only criteria that the change improved", enum=["0", "1"]),
        query_param("best", "string", "1: of several later runs only the fastest", enum=["0", "1"]),
        query_param("unchanged", "string", "1: also pairs whose kernel is not known to have changed", enum=["0", "1"]),
    )),
    ("/v1/explain/{name:path}", get_explanation, "explain_name", (
        path_param("name", "criterion, counter, metric, or potential", "divergence"),
        query_param("run", "string", "run whose values are traced to lines of its files"), KERNEL,
    )),
    ("/v1/formats", list_formats, "list_formats", ()),
)  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    for path, handler, name, takes in ROUTES:
        add_route(app, path, handler, "read", name=name, takes=takes, tag="runs")
    add_route(app, "/v1/compare", record_comparison, "upload", name="record_comparison", methods=["POST"],
              takes=COMPARED, tag="runs")  # fmt: skip
