"""``/runs/{run}``: a run: where time can be saved, wall time, launches, kernels, sensors and files."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports.kernel_names import labelled
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state, grant_of
from profsvc.web.pages.launches.listing import (
    launch_of_row,
    launch_rows,
    launch_section,
    listing_of,
)
from profsvc.web.pages.launches.savings import MAX_PAIRS, savings
from profsvc.web.pages.rendering.figures import Figure
from profsvc.web.pages.rendering.kept_pages import kept
from profsvc.web.pages.rendering.page import Links, find_run_id, page, path_to, redirect
from profsvc.web.pages.rendering.tables import Column, Row, row_reference
from profsvc.web.pages.runs.memory_traces import trace_section
from profsvc.web.pages.runs.wall_time import MAX_DEVICES, WALL_TIME_COLUMNS, wall_time_sections, wall_time_summary

MAX_KERNELS = 40
REJECTS_PER_PAGE = 100
ROOFLINE_LAUNCHES = 500


def run_id_of(request: Request, name: str = "run") -> int:
    """Return the number of the run in the path, which has its number or name."""
    return find_run_id(request, request.path_params[name])


def launch_or_run_of_row(row: Row) -> dict[str, Any]:
    """Return the launch or run that a result belongs to; empty for the averages of a kernel."""
    if row["launch_id"] is not None:
        return launch_of_row(row)
    return {} if row["kernel"] else {"run": row["run_id"]}


def _means_path(row: Row) -> str:
    return f"/runs/{row['run_id']}/means/{row['kernel_full']}"


def _file_column(name: str, title: str, kind: str = "number") -> Column:
    return Column(name, title, kind, f"v1_uploads.{name}", row_reference("upload_id"))


def _summary_column(name: str, title: str, kind: str = "duration") -> Column:
    return Column(name, title, kind, f"v1_kernel_summaries.{name}", row_reference("summary_id"))


MEANS_COLUMNS = (
    Column("kernel", "kernel", "name", link=_means_path, width=44, full="kernel_full"),
    Column("launches", "launches", "number", "run.mean_launches"),
    Column("duration_ns", "mean duration", "duration", "run.mean_duration"),
    Column("limit", "limited by"),
    Column("potential", "potential", "speedup", "v1_potential.speedup", flags="flags"),
    Column("ceiling", "ceiling", "speedup", "v1_potential.speedup_ceiling", flags="ceiling_flags"),
    Column("answer", "what to do first", explain="advice.saving", full="first"),
)
CRITERIA_COLUMNS = (
    Column("title", "criterion", "noted"),
    Column("value", "value", "bar", lambda row: row["criterion"], launch_or_run_of_row),
    Column("share", "share of time", "percent", "v1_criteria.share", launch_or_run_of_row),
    Column("speedup", "speedup", "speedup", "v1_criteria.speedup", launch_or_run_of_row),
)
FILE_COLUMNS = (
    Column("file_name", "file", "name", width=44),
    Column("format", "format"),
    Column("verdict", "status"),
    _file_column("lines", "lines"),
    _file_column("lines_stored", "stored"),
    _file_column("lines_skipped", "skipped"),
    _file_column("lines_rejected", "rejected"),
    _file_column("launches", "launches"),
    _file_column("samples", "readings"),
    _file_column("size_bytes", "size", "size"),
    Column("received_at", "received (UTC)", "when"),
)
KERNEL_COLUMNS = (
    Column("kernel", "kernel", "name", width=64, full="kernel_full",
           link=lambda row: f"/runs/{row['run_id']}/kernels/{row['kernel_id']}"),
    Column("launches", "launches", "number", "v1_kernel_totals.launches"),
    Column("total_ns", "total", "duration", "v1_kernel_totals.total_ns"),
    Column("share", "share of time", "part", "run.kernel_share"),
    Column("mean_ns", "mean", "duration", "v1_kernel_totals.mean_ns"),
    Column("p95_ns", "p95", "duration", "v1_kernel_totals.p95_ns"),
    Column("max_ns", "longest", "duration", "v1_kernel_totals.max_ns"),
)  # fmt: skip
SENSOR_COLUMNS = (
    Column("quantity", "quantity"),
    Column("name", "sensor", "name"),
    Column("gpu_index", "GPU", "number", "v1_sensors.gpu_index", row_reference("sensor_id")),
    Column("unit", "unit", "unit"),
    Column("readings", "readings", "number", "run.sensor_readings"),
    *(
        Column(f"{name}_value", title, "quantity", f"run.sensor_{said}")
        for name, title, said in (("mean", "mean", "mean"), ("min", "minimum", "least"), ("max", "maximum", "largest"))
    ),
    Column("quality", "warnings"),
)
TRANSFER_COLUMNS = (
    Column("kind", "operation"), Column("count", "count", "number", "run.transfer_count"),
    Column("duration_ns", "time", "duration", "run.transfer_time"),
    Column("bytes", "bytes", "size", "run.transfer_bytes"),
)  # fmt: skip
SUMMARY_COLUMNS = (
    Column("category", "category"),
    Column("kernel", "name", "name", width=60),
    _summary_column("calls", "calls", "number"),
    _summary_column("total_ns", "total"),
    _summary_column("mean_ns", "mean"),
    _summary_column("min_ns", "minimum"),
    _summary_column("max_ns", "maximum"),
)
REJECT_COLUMNS = (
    Column("line", "line", "number", "v1_rejects.line"),
    Column("lines", "lines", "number", "v1_rejects.lines"),
    Column("reason", "reason"),
    Column("text", "text", "name", width=300),
)


def criteria_rows(rows: list[dict[str, Any]], of_run: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return rows of criteria for the table; rows without a value share a line per reason."""
    shown = [(row, "") for row in rows] + [(row, "whole run") for row in of_run]
    alike: dict[str, list[Row]] = {}
    for row, note in shown:
        if row["value"] is None and row["reason"] and not note:
            alike.setdefault(row["reason"], []).append(row)
    together = {id(row): same for same in alike.values() if len(same) > 1 for row in same}
    shown = [
        (row | {"title": ", ".join(str(one["title"]) for one in together.get(id(row), [row]))}, note)
        for row, note in shown
        if together.get(id(row), [row])[0] is row
    ]
    return [
        row | {"remark": "; ".join(filter(None, (row["reason"], (row["flags"] or "").lower().replace("_", " "), note)))}
        for row, note in shown
    ]


def kernel_rows(engine: Any, info: Row) -> tuple[list[dict[str, Any]], bool]:
    """Return the kernels of a run by their time."""
    found, more = store.kernels_by_time(engine, info["run_id"], MAX_KERNELS)
    whole = info["gpu_time_ns"]
    rows = []
    for row in found:
        total_ns = None if row["total_ms"] is None else 1e6 * row["total_ms"]
        times = {f"{name}_ns": None if row[f"{name}_us"] is None else 1e3 * row[f"{name}_us"]
                 for name in ("mean", "p95", "max")}  # fmt: skip
        share = total_ns / whole if whole and total_ns is not None else None
        own = {"total_ns": total_ns, "share": share, "run_id": info["run_id"], "kernel_full": row["kernel"]}
        rows.append(row | times | own)
    return labelled(rows), more


def _file_row(row: dict[str, Any]) -> dict[str, Any]:
    status = f"duplicate of upload {row['same_as']}" if row["same_as"] else row["status"]
    return row | {"verdict": status}


def show_run(request: Request) -> Response:
    """Show a run."""
    args, run_id = RequestArgs(request), run_id_of(request)
    listing = listing_of(args)
    state = app_state(request)
    view = views.run(state.engine, run_id, 1, max_causes=MAX_PAIRS)
    info = view["run"]
    saved = savings(state.engine, info, view["causes"], args, listing)
    args.reject_unknown()
    kernels, more_kernels = kernel_rows(state.engine, info)
    whole = view["potential"] or {}
    words = views.titles_and_hints()
    # What the table of causes says is not said twice.
    advice = [one for one in views.advice_of_run(view) if one["kind"] != "saving" or one["name"] not in saved["causes"]]
    return page(
        request, "runs/run.html", info["name"],
        links=_links(request, run_id, f"select * from v1_launches where run_id = {run_id} order by duration_ns desc"),
        view=view, info=info, tags=info["tags"] or {}, whole=whole, saved=saved,
        bound=words[whole["bound"]]["title"] if whole.get("bound") else None,
        advice=advice, criteria=criteria_rows(view["criteria"]),
        files=[_file_row(row) for row in view["uploads"]], kernels=kernels, more_kernels=more_kernels,
        means=launch_rows(view["means"], run_id),
        has_power=any(row["quantity"] == "power" or row["x_mm"] is not None for row in view["sensors"]),
        transfers=[
            row | {"duration_ns": None if row["duration_ms"] is None else 1e6 * row["duration_ms"]}
            for row in view["transfers"]
        ],
        may_change=grant_of(request).allows("admin"), previous=store.previous_run(state.engine, run_id),
        wall=wall_time_summary(view["wall_time"]),
        wall_time=wall_time_sections(view["wall_time"]), more_wall_time=max(0, len(view["wall_time"]) - MAX_DEVICES),
        roofline=_roofline(request, run_id) if whole.get("speedup") is not None else None,
        memory=trace_section(state.engine, run_id, view["traces"]),
        tables=_TABLES, **launch_section(request, run_id, listing, causes=view["causes"]),
    )  # fmt: skip


def _roofline(request: Request, run_id: int) -> Figure:
    """Return the roofline of the longest launches; its numbers are read when it comes into view."""
    path = f"/v1/runs/id:{run_id}/plots/roofline"
    source, image = path_to(request, path, {"limit": ROOFLINE_LAUNCHES}), path_to(request, f"{path}.svg")
    return Figure("The longest launches", None, chart="roofline", source=source, image=image)


_TABLES = {
    "criteria": CRITERIA_COLUMNS,
    "files": FILE_COLUMNS,
    "kernels": KERNEL_COLUMNS,
    "sensors": SENSOR_COLUMNS,
    "transfers": TRANSFER_COLUMNS,
    "summaries": SUMMARY_COLUMNS,
    "means": MEANS_COLUMNS,
    "wall_time": WALL_TIME_COLUMNS,
}


def _links(request: Request, run_id: int, sql: str) -> Links:
    return Links(
        path_to(request, f"/v1/runs/id:{run_id}"), path_to(request, "/v1/launches.csv", {"run_id": run_id}), sql
    )  # fmt: skip


def show_kernel(request: Request) -> Response:
    """Show the launches of one kernel of a run."""
    args, run_id = RequestArgs(request), run_id_of(request)
    listing = listing_of(args)
    args.reject_unknown()
    state, text = app_state(request), request.path_params["kernel"]
    kernel_id = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
    info = store.select(state.engine, "v1_runs", run_id=run_id)[0]
    totals = store.select(state.engine, "v1_kernel_totals", run_id=run_id, kernel_id=kernel_id)
    if not totals:
        return redirect(request, f"/runs/{run_id}")
    return page(
        request, "runs/kernel.html", totals[0]["kernel_short"],
        links=_links(request, run_id, f"select * from v1_kernel_totals where kernel_id = {kernel_id}"),
        info=info, kernel=totals[0]["kernel"], totals=totals,
        **launch_section(request, run_id, listing, kernel_id=kernel_id),
    )  # fmt: skip


def show_rejects(request: Request) -> Response:
    """Show the rejected lines of the files of a run, with reasons."""
    args, run_id = RequestArgs(request), run_id_of(request)
    after = args.text("after")
    args.reject_unknown()
    engine = app_state(request).engine
    info = store.select(engine, "v1_runs", run_id=run_id)[0]
    found = store.list_view(
        engine, "v1_rejects", [store.Condition("run_id", "", str(run_id))], limit=REJECTS_PER_PAGE, after=after
    )
    names = {row["upload_id"]: row["file_name"] for row in store.select(engine, "v1_uploads", run_id=run_id)}
    links = Links(
        path_to(request, "/v1/rejects", {"run_id": run_id}), path_to(request, "/v1/rejects.csv", {"run_id": run_id}),
        f"select * from v1_rejects where run_id = {run_id}",
    )  # fmt: skip
    rows = [row | {"file": names.get(row["upload_id"])} for row in found.rows]
    return page(
        request, "runs/rejects.html", "Rejected lines", links=links, info=info, rows=rows,
        columns=(Column("file", "file", "name"), *REJECT_COLUMNS), following=found.after, total=f"{len(rows)} shown",
    )  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}", kept(show_run), "read", name="run_page")
    add_page(app, "/runs/{run}/kernels/{kernel}", kept(show_kernel), "read", name="run_kernel_page", heavy=True)
    add_page(app, "/runs/{run}/rejects", show_rejects, "read", name="rejects_page")
