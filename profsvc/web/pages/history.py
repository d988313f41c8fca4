"""``/history``: one kernel over runs, as a picture, its steps, and a row a run."""

from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.errors import NotFoundError, ProfsvcError, UsageError
from profsvc.reports import history_plot
from profsvc.reports.kernel_names import labelled
from profsvc.views import history as of_kernel
from profsvc.web import history as answers
from profsvc.web.asked import Asked
from profsvc.web.pages.figures import figure
from profsvc.web.pages.frame import Links, moved, page, path_to
from profsvc.web.pages.tables import Column, Row
from profsvc.web.routes import add_page
from profsvc.web.site import grant_of, site_of

KINDS = {"ns": "duration"}
UNITS = {"W": " (W)", "J": " (J)", "degC": " (\u00b0C)", "Hz": " (Hz)"}
LONGEST_PATH = 1000  # of a name in an address
SPREAD = ("low", "high", "raw")


def show(request: Request) -> Response:
    """Show the history of a kernel; without one, the kernels that there are to choose from."""
    asked = Asked(request)
    kernel, quantity = asked.text("kernel"), asked.text("quantity", "duration")
    runs, engine = answers.question(request, asked), site_of(request).engine
    asked.done()
    form = {"kernel": kernel, "quantity": quantity, "project": runs.project or "", "device": runs.device or ""}
    known: dict[str, Any] = {
        "form": form,
        "quantities": list(of_kernel.quantities().values()),
        "said": "",
        "choices": (),
        "view": None,
    }
    if not kernel:
        recent = labelled(store.recent_kernels(engine, runs.project), "label", "kernel")
        return page(request, "history.html", "History of a kernel", **known | {"recent": recent, "columns": RECENT})
    try:
        view = of_kernel.history(engine, kernel, quantity, runs)
    except (NotFoundError, UsageError) as error:
        choices = store.kernels_named(engine, kernel, grant_of(request).project)
        return _refused(request, error, known | {"choices": choices if len(choices) > 1 else ()})
    one = view["kernel"]
    if one["kernel_id"] is not None and kernel.removeprefix("#") == str(one["kernel_id"]):
        label = of_kernel.label(engine, one["kernel"], runs.project)
        known["form"] = form | {"kernel": label if len(label) <= LONGEST_PATH and label.isprintable() else kernel}
    return page(request, "history.html", history_plot.title_of(view), links=_links(request, view),
                **known | _shown(view))  # fmt: skip


def _refused(request: Request, error: ProfsvcError, known: dict[str, Any]) -> Response:
    """Answer with the form and what is wrong with what stands in it."""
    wrong = {"said": str(error), "recent": (), "status": error.status}
    return page(request, "history.html", "History of a kernel", **known | wrong)


def _shown(view: dict[str, Any]) -> dict[str, Any]:
    """What the page of a history needs beside the view."""
    drawn = figure(
        "history", history_plot.title_of(view), lambda: history_plot.draw(view),
        [view["quantity"], view["points"], view["steps"], [one["finding_id"] for one in view["findings"]]],
        description=_described(view),
    )  # fmt: skip
    return {"view": view, "drawn": drawn, "points": list(reversed(view["points"])), "columns": _columns(view),
            "step_columns": _step_columns(view), "names": _names(view), "recent": ()}  # fmt: skip


def _names(view: dict[str, Any]) -> list[str]:
    return [history_plot.name_of(one) for one in view["series"]]


def _described(view: dict[str, Any]) -> str:
    """The picture in words."""
    values = [point["value"] for point in view["points"] if point["value"] is not None]
    unit, size = history_plot.scale_of(view["quantity"]["unit"], values)
    spread = f"{min(values) / size:.4g} to {max(values) / size:.4g} {unit}".rstrip() if values else "without a value"
    steps = len(view["steps"])
    return (
        f"{history_plot.title_of(view)}: {len(view['points'])} points, {spread}, "
        f"{steps or 'no'} step{'s' * (steps != 1)} in the level. The table below has every point."
    )


def _where(row: Row) -> dict[str, Any]:
    return {"run": row["run_id"]}


def _columns(view: dict[str, Any]) -> list[Column]:
    about = view["quantity"]
    unit, kind = UNITS.get(about["unit"], ""), KINDS.get(about["unit"], "number")
    explain = about["name"] if about["source"] == "v1_criteria" else f"{about['source']}.{about['column']}"
    explain = "potential" if about["name"] == "potential" else explain
    made = [
        Column("run", "Run", "name", link=lambda row: f"/runs/{row['run_id']}", width=36),
        Column("commit_id", "Commit", "name", link=_commit, width=14),
        Column("at", "Began (UTC)", "when"),
        Column("value", about["title"] + unit, kind, explain=explain, where=_where),
    ]
    heads = {"low": "Low", "high": "High", "raw": "As measured"}
    made += [
        Column(name, heads[name] + (unit if name == "raw" else ""), kind, f"history.{name}")
        for name in SPREAD
        if any(point[name] is not None for point in view["points"])
    ]
    made += [Column("launches", "Launches", "number", "compare.launches")] if about["source"] != "v1_power" else []
    made += _series_column(view)
    made += [Column("reason", "Why not", "text")] if any(point["reason"] for point in view["points"]) else []
    for point in view["points"]:
        point["series_name"] = history_plot.name_of(view["series"][point["series"]])
        point["beside"] = "compare" if point["previous_run_id"] else None
    return [*made, Column("beside", "With the run before", "text", link=_beside)]


def _commit(row: Row) -> str | None:
    commit = row["commit_id"]
    return f"/commits/{commit}" if commit and len(commit) <= LONGEST_PATH else None


def history_of(kernel: str) -> str | None:
    """Return the path of a kernel's history; one with too long a name has none."""
    return f"/history/{kernel}" if len(kernel) <= LONGEST_PATH else None


def _beside(row: Row) -> str | None:
    before = row.get("previous_run_id")
    return None if not before else f"/compare/{before}...{row['run_id']}"


def _series_column(view: dict[str, Any]) -> list[Column]:
    return [Column("series_name", "Series", "name", width=40)] if len(view["series"]) > 1 else []


def _step_columns(view: dict[str, Any]) -> list[Column]:
    kind = KINDS.get(view["quantity"]["unit"], "number")
    unit = UNITS.get(view["quantity"]["unit"], "")
    for step in view["steps"]:
        step["beside"] = "compare" if step["previous_run_id"] else None
        step["by"] = "" if step["change"] is None else f"{100 * step['change']:+.1f} %"
        step["series_name"] = history_plot.name_of(view["series"][step["series"]])
    made = [
        Column("run", "First run after it", "name", link=lambda row: f"/runs/{row['run_id']}", width=36),
        Column("commit_id", "Commit", "name", link=_commit, width=14),
        Column("at", "Began (UTC)", "when"),
        Column("before", "Before" + unit, kind, "history.level"),
        Column("after", "After" + unit, kind, "history.level"),
        Column("by", "Change", "number", "history.change"),
        Column("direction", "", "flags"),
        Column("p", "p", "number", "history.p"),
    ]
    made += _series_column(view)
    return [*made, Column("beside", "With the run before", "text", link=_beside)]


RECENT = [
    Column("label", "Kernel", "name", link=lambda row: f"/history/{row['kernel_id']}", full="kernel", width=60),
    Column("runs", "Runs", "number", "history.runs"),
    Column("total_ns", "Time in them", "duration", "history.total_ns"),
]


def _links(request: Request, view: dict[str, Any]) -> Links:
    asked = dict(request.query_params)
    kernel_id = view["kernel"]["kernel_id"]
    sql = "" if kernel_id is None else (
        "select run, commit_id, started_at, p50_ns, min_ns, p95_ns, launches from v1_kernel_totals\n"
        f"where kernel_id = {kernel_id} order by upload_id desc"
    )  # fmt: skip
    return Links(json=path_to(request, "/v1/history", asked), sql=sql if view["quantity"]["name"] == "duration" else "")


def of_one(request: Request) -> Response:
    """Lead to the history of a kernel whose number or name is the path."""
    Asked(request).done()
    return moved(request, "/history", {"kernel": request.path_params["kernel"]})


def of_commit(request: Request) -> Response:
    """Lead to the runs of a commit."""
    Asked(request).done()
    return moved(request, "/", {"commit": request.path_params["commit"]})


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/history", show, "read", name="history_page")
    add_page(app, "/history/{kernel:path}", of_one, "read", name="history_of_kernel")
    add_page(app, "/commits/{commit:path}", of_commit, "read", name="runs_of_commit")
