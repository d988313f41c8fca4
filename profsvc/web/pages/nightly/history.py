"""``/history``: one kernel over runs: plot, detected changes and a table with one row per run."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, ProfsvcError, UsageError, counted
from profsvc.reports import history_labels
from profsvc.reports.kernel_names import labelled
from profsvc.reports.plots import history as history_plot
from profsvc.reports.text.history import no_change
from profsvc.views import history as history_view
from profsvc.web.api import history as answers
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.rendering.figures import SVG_MEDIA_TYPE, live_figure
from profsvc.web.pages.rendering.page import Links, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column, Row

CELL_KINDS = {"ns": "duration"}
UNITS = {"W": " (W)", "J": " (J)", "degC": " (\u00b0C)", "Hz": " (Hz)"}
MAX_PATH_NAME = 1000  # characters of a name in a URL
SPREAD_COLUMNS = ("low", "high", "raw")


def show_history(request: Request) -> Response:
    """Show the history of a kernel; without a kernel, list the recent ones."""
    args = RequestArgs(request)
    kernel, quantity = args.text("kernel"), args.text("quantity", "duration")
    is_figure = args.flag("figure")
    runs, engine = answers.history_filter(request, args), app_state(request).engine
    args.reject_unknown()
    form = {"kernel": kernel, "quantity": quantity, "project": runs.project or "", "device": runs.device or ""}
    known: dict[str, Any] = {
        "form": form,
        "quantities": list(history_view.quantities().values()),
        "message": "",
        "choices": (),
        "view": None,
    }
    if not kernel:
        recent = labelled(store.recent_kernels(engine, runs.project), "label", "kernel")
        return page(
            request,
            "nightly/history.html",
            "History of a kernel",
            **known | {"recent": recent, "columns": RECENT_COLUMNS},
        )
    try:
        view = history_view.history(engine, kernel, quantity, runs)
    except (NotFoundError, UsageError) as error:
        choices = store.kernels_named(engine, kernel, grant_of(request).project)
        return _error_form(request, error, known | {"choices": choices if len(choices) > 1 else ()})
    one = view["kernel"]
    if one["kernel_id"] is not None and kernel.removeprefix("#") == str(one["kernel_id"]):
        label = history_view.label(engine, one["kernel"], runs.project)
        known["form"] = form | {"kernel": label if len(label) <= MAX_PATH_NAME and label.isprintable() else kernel}
    if is_figure:
        return Response(history_plot.draw(view), media_type=SVG_MEDIA_TYPE)
    links = _links(request, view)
    image = path_to(request, "/history", [*request.query_params.multi_items(), ("figure", "1")])
    return page(request, "nightly/history.html", history_plot.title_of(view), links=links,
                **known | _history_values(view, links.json, image))  # fmt: skip


def _error_form(request: Request, error: ProfsvcError, known: dict[str, Any]) -> Response:
    """Return the form with the error message."""
    wrong = {"message": str(error), "recent": (), "status": error.status}
    return page(request, "nightly/history.html", "History of a kernel", **known | wrong)


def _history_values(view: dict[str, Any], source: str, image: str) -> dict[str, Any]:
    """Return the template variables that are derived from the view."""
    plot = live_figure(history_plot.title_of(view), "history", source, image, description=_alt_text(view))
    return {"view": view, "plot": plot, "points": list(reversed(view["points"])), "columns": _columns(view),
            "step_columns": _step_columns(view), "names": _series_names(view), "recent": (),
            "no_change": no_change(view)}  # fmt: skip


def _series_names(view: dict[str, Any]) -> list[str]:
    return [history_labels.name_of(one) for one in view["series"]]


def _alt_text(view: dict[str, Any]) -> str:
    """Return the text alternative of the plot."""
    values = [point["value"] for point in view["points"] if point["value"] is not None]
    unit, size = history_labels.scale_of(view["quantity"]["unit"], values)
    spread = f"{min(values) / size:.4g} to {max(values) / size:.4g} {unit}".rstrip() if values else "without a value"
    steps = len(view["steps"])
    return (
        f"{history_plot.title_of(view)}: {counted(len(view['points']), 'point')}, {spread}, "
        f"{steps or 'no'} detected change{'s' * (steps != 1)}. The table below lists all points."
    )


def _run_of_row(row: Row) -> dict[str, Any]:
    return {"run": row["run_id"]}


def _columns(view: dict[str, Any]) -> list[Column]:
    about = view["quantity"]
    unit, kind = UNITS.get(about["unit"], ""), CELL_KINDS.get(about["unit"], "number")
    explain = about["name"] if about["source"] == "v1_criteria" else f"{about['source']}.{about['column']}"
    explain = "potential" if about["name"] == "potential" else explain
    made = [
        Column("run", "Run", "name", link=lambda row: f"/runs/{row['run_id']}", width=36),
        Column("commit_id", "Commit", "name", link=_commit_path, width=14),
        Column("at", "Started (UTC)", "when"),
        Column("value", about["title"] + unit, kind, explain=explain, where=_run_of_row),
    ]
    heads = {"low": "Low", "high": "High", "raw": "Uncorrected"}
    made += [
        Column(name, heads[name] + (unit if name == "raw" else ""), kind, f"history.{name}")
        for name in SPREAD_COLUMNS
        if any(point[name] is not None for point in view["points"])
    ]
    made += [Column("launches", "Launches", "number", "compare.launches")] if about["source"] != "v1_power" else []
    made += _series_column(view)
    made += [Column("reason", "Reason", "text")] if any(point["reason"] for point in view["points"]) else []
    for point in view["points"]:
        point["series_name"] = history_labels.name_of(view["series"][point["series"]])
        point["comparison"] = "compare" if point["previous_run_id"] else None
    return [*made, Column("comparison", "Previous run", "text", link=_comparison_path)]


def _commit_path(row: Row) -> str | None:
    commit = row["commit_id"]
    return f"/commits/{commit}" if commit and len(commit) <= MAX_PATH_NAME else None


def history_path(kernel: str) -> str | None:
    """Return the path of a kernel's history; None if its name is too long for a URL."""
    return f"/history/{kernel}" if len(kernel) <= MAX_PATH_NAME else None


def _comparison_path(row: Row) -> str | None:
    before = row.get("previous_run_id")
    return None if not before else f"/compare/{before}...{row['run_id']}"


def _series_column(view: dict[str, Any]) -> list[Column]:
    return [Column("series_name", "Series", "name", width=40)] if len(view["series"]) > 1 else []


def _step_columns(view: dict[str, Any]) -> list[Column]:
    kind = CELL_KINDS.get(view["quantity"]["unit"], "number")
    unit = UNITS.get(view["quantity"]["unit"], "")
    for step in view["steps"]:
        step["comparison"] = "compare" if step["previous_run_id"] else None
        step["by"] = "" if step["change"] is None else f"{100 * step['change']:+.1f} %"
        step["series_name"] = history_labels.name_of(view["series"][step["series"]])
    made = [
        Column("run", "First run after", "name", link=lambda row: f"/runs/{row['run_id']}", width=36),
        Column("commit_id", "Commit", "name", link=_commit_path, width=14),
        Column("at", "Started (UTC)", "when"),
        Column("before", "Before" + unit, kind, "history.level"),
        Column("after", "After" + unit, kind, "history.level"),
        Column("by", "Change", "number", "history.change"),
        Column("direction", "Verdict", "flags"),
        Column("p", "p", "number", "history.p"),
    ]
    made += _series_column(view)
    return [*made, Column("comparison", "Previous run", "text", link=_comparison_path)]


RECENT_COLUMNS = [
    Column("label", "Kernel", "name", link=lambda row: f"/history/{row['kernel_id']}", full="kernel", width=60),
    Column("runs", "Runs", "number", "history.runs"),
    Column("total_ns", "Total time", "duration", "history.total_ns"),
]


def _links(request: Request, view: dict[str, Any]) -> Links:
    query_args = dict(request.query_params)
    kernel_id = view["kernel"]["kernel_id"]
    sql = "" if kernel_id is None else (
        "select run, commit_id, started_at, p50_ns, min_ns, p95_ns, launches from v1_kernel_totals\n"
        f"where kernel_id = {kernel_id} order by upload_id desc"
    )  # fmt: skip
    return Links(
        json=path_to(request, "/v1/history", query_args), sql=sql if view["quantity"]["name"] == "duration" else ""
    )


def redirect_kernel(request: Request) -> Response:
    """Redirect to the history of the kernel named or numbered in the path."""
    RequestArgs(request).reject_unknown()
    return redirect(request, "/history", {"kernel": request.path_params["kernel"]})


def redirect_commit(request: Request) -> Response:
    """Redirect to the runs of a commit."""
    RequestArgs(request).reject_unknown()
    return redirect(request, "/", {"commit": request.path_params["commit"]})


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/history", show_history, "read", name="history_page", heavy=True)
    add_page(app, "/history/{kernel:path}", redirect_kernel, "read", name="history_of_kernel")
    add_page(app, "/commits/{commit:path}", redirect_commit, "read", name="runs_of_commit")
