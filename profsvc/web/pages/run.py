"""``/runs/{run}``: a run, what it spent its time on and what to do first, launch by launch; and its files."""

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store, views
from profsvc.reports.kernel_names import labelled
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import Links, moved, page, path_to, run_of
from profsvc.web.pages.tables import Column, Row, known, row_of
from profsvc.web.pages.traces import part_of
from profsvc.web.pages.words import count
from profsvc.web.routes import add_page
from profsvc.web.site import site_of

ROWS, MOST_ROWS = 50, 500
KERNELS = 40
REJECTS = 100


def number_of(request: Request, name: str = "run") -> int:
    """Return the number of the run in a path that this request may see; it can be named there too."""
    return run_of(request, request.path_params[name])


def _launch_path(row: Row) -> str:
    return f"/runs/{row['run_id']}/launches/{row['launch_id']}"


def where(row: Row) -> dict[str, Any]:
    """Return the run and launch of a row, for the explanation of its numbers."""
    return {"run": row["run_id"], "launch": row["launch_id"]}


def about(row: Row) -> dict[str, Any]:
    """Return the launch or the whole run that a result is about; nothing where it is about a kernel by its means."""
    if row["launch_id"] is not None:
        return where(row)
    return {} if row["kernel"] else {"run": row["run_id"]}


def _means_path(row: Row) -> str:
    return f"/runs/{row['run_id']}/means/{row['kernel_full']}"


def _file(name: str, title: str, kind: str = "number") -> Column:
    return Column(name, title, kind, f"v1_uploads.{name}", row_of("upload_id"))


def _sum(name: str, title: str, kind: str = "duration") -> Column:
    return Column(name, title, kind, f"v1_kernel_summaries.{name}", row_of("summary_id"))


LAUNCHES = (
    Column(
        "launch",
        "#",
        "number",
        "v1_launches.launch_index",
        lambda row: {"run": row["run_id"], "row": row["launch_id"]},
        sort="launch",
    ),
    Column("kernel", "kernel", "name", link=_launch_path, sort="kernel", width=44, full="kernel_full"),
    Column("duration_ns", "duration", "duration", "duration_ns", where, sort="duration"),
    Column("compute", "compute", "light", "sol_sm_fraction", where),
    Column("memory", "memory", "light", "sol_memory_fraction", where),
    Column("limit", "limited by"),
    Column("potential", "potential", "speedup", "potential", where, sort="potential", flags="flags"),
    Column("ceiling", "ceiling", "speedup", "v1_potential.speedup_ceiling", where, flags="ceiling_flags"),
    Column("first", "what to do first", explain="advice.saving", where=where),
)
MEANS = (
    Column("kernel", "kernel, by means", "name", link=_means_path, width=44, full="kernel_full"),
    Column("launches", "launches", "number", "run.mean_launches"),
    Column("duration_ns", "mean duration", "duration", "run.mean_duration"),
    Column("limit", "limited by"),
    Column("potential", "potential", "speedup", "v1_potential.speedup", flags="flags"),
    Column("ceiling", "ceiling", "speedup", "v1_potential.speedup_ceiling", flags="ceiling_flags"),
    Column("first", "what to do first", explain="advice.saving"),
)
CRITERIA = (
    Column("title", "criterion", "noted"),
    Column("value", "value", "bar", lambda row: row["criterion"], about),
    Column("share", "share of time", "percent", "v1_criteria.share", about),
    Column("speedup", "speedup", "speedup", "v1_criteria.speedup", about),
)
FILES = (
    Column("file_name", "file", "name", width=44),
    Column("format", "read as"),
    Column("verdict", "verdict"),
    _file("lines", "lines"),
    _file("lines_stored", "stored"),
    _file("lines_skipped", "skipped"),
    _file("lines_rejected", "rejected"),
    _file("launches", "launches"),
    _file("samples", "readings"),
    _file("size_bytes", "size", "size"),
    Column("received_at", "received (UTC)", "when"),
)
KERNEL = (
    Column("kernel", "kernel", "name", width=64,
           link=lambda row: f"/runs/{row['run_id']}/kernels/{row['kernel_id']}"),
    Column("launches", "launches", "number", "v1_kernel_totals.launches"),
    Column("total_ns", "total", "duration", "v1_kernel_totals.total_ns"),
    Column("share", "share of time", "part", "run.kernel_share"),
    Column("mean_ns", "mean", "duration", "v1_kernel_totals.mean_ns"),
    Column("p95_ns", "p95", "duration", "v1_kernel_totals.p95_ns"),
    Column("max_ns", "longest", "duration", "v1_kernel_totals.max_ns"),
)  # fmt: skip
SENSORS = (
    Column("quantity", "quantity"), Column("name", "sensor", "name"),
    Column("gpu_index", "GPU", "number", "v1_sensors.gpu_index", row_of("sensor_id")), Column("unit", "unit", "name"),
    Column("readings", "readings", "number", "run.sensor_readings"),
    *(Column(f"{name}_value", title, "number", f"run.sensor_{said}")
      for name, title, said in (("mean", "mean", "mean"), ("min", "least", "least"), ("max", "largest", "largest"))),
    Column("quality", "beware"),
)  # fmt: skip
TRANSFERS = (
    Column("kind", "copies and sets"), Column("count", "count", "number", "run.transfer_count"),
    Column("duration_ns", "time", "duration", "run.transfer_time"),
    Column("bytes", "bytes", "size", "run.transfer_bytes"),
)  # fmt: skip
SUMMARIES = (
    Column("category", "category"), Column("kernel", "name", "name", width=60), _sum("calls", "calls", "number"),
    _sum("total_ns", "total"), _sum("mean_ns", "mean"), _sum("min_ns", "least"), _sum("max_ns", "longest"),
)  # fmt: skip
LINES = (
    Column("line", "line", "number", "v1_rejects.line"), Column("lines", "lines", "number", "v1_rejects.lines"),
    Column("reason", "why"), Column("text", "what stood there", "name", width=300),
)  # fmt: skip


def criteria_rows(rows: list[dict[str, Any]], of_run: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Return rows of criteria as tables show them: without a value the reason, those of one reason together."""
    shown = [(row, "") for row in rows] + [(row, "of the whole run") for row in of_run]
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
        row | {"said": "; ".join(filter(None, (row["reason"], (row["flags"] or "").lower().replace("_", " "), note)))}
        for row, note in shown
    ]


def launch_rows(launches: list[dict[str, Any]], run_id: int) -> list[dict[str, Any]]:
    """Return a view's rows of launches as the table shows them."""
    return [
        row
        | {
            "run_id": run_id,
            "duration_ns": None if row["duration_us"] is None else 1e3 * row["duration_us"],
            "compute": None if row.get("compute_pct") is None else row["compute_pct"] / 100,
            "memory": None if row.get("memory_pct") is None else row["memory_pct"] / 100,
            "limit": row["bound"] or row["reason"],
        }
        for row in labelled(launches)
    ]


def _why_no_result(launches: list[dict[str, Any]]) -> list[str]:
    """The reasons why none of the launches shown has results; none where one has."""
    reasons = [str(row["reason"]) for row in launches if row["reason"]]
    return [] if any(row["bound"] for row in launches) else list(dict.fromkeys(reasons))


def _columns(launches: list[dict[str, Any]], no_result: list[str]) -> list[Column]:
    """The columns of launches that hold something; what limits them stands below where it is not known of any."""
    return known([one for one in LAUNCHES if one.name != "limit" or not no_result], launches, ("launch", "duration_ns"))


def kernel_rows(engine: Any, info: Row) -> tuple[list[dict[str, Any]], bool]:
    """Return the kernels of a run by their time."""
    found, more = store.kernels_by_time(engine, info["run_id"], KERNELS)
    whole = info["gpu_time_ns"]
    rows = []
    for row in found:
        total_ns = None if row["total_ms"] is None else 1e6 * row["total_ms"]
        times = {f"{name}_ns": None if row[f"{name}_us"] is None else 1e3 * row[f"{name}_us"]
                 for name in ("mean", "p95", "max")}  # fmt: skip
        share = total_ns / whole if whole and total_ns is not None else None
        rows.append(row | times | {"total_ns": total_ns, "share": share, "run_id": info["run_id"]})
    return rows, more


def _file_row(row: dict[str, Any]) -> dict[str, Any]:
    said = f"told by upload {row['same_as']}, counted there" if row["same_as"] else row["status"]
    return row | {"verdict": said}


def run(request: Request) -> Response:
    """Show a run."""
    asked, run_id = Asked(request), number_of(request)
    order, skip, limit = _paging(asked)
    asked.done()
    site = site_of(request)
    view = views.run(site.engine, run_id, 1)
    info = view["run"]
    found = views.launch_page(site.engine, run_id, order=order, skip=skip, limit=limit, seconds=site.limits.sql_seconds)
    kernels, more_kernels = kernel_rows(site.engine, info)
    whole = view["potential"] or {}
    launches = launch_rows(found["launches"], run_id)
    no_result = _why_no_result(launches)
    words = views.texts()
    return page(
        request, "run.html", info["name"],
        links=_links(request, run_id, f"select * from v1_launches where run_id = {run_id} order by duration_ns desc"),
        view=view, info=info, tags=info["tags"] or {}, whole=whole,
        bound=words[whole["bound"]]["title"] if whole.get("bound") else None,
        advice=views.advice_of_run(view), criteria=criteria_rows(view["criteria"]),
        files=[_file_row(row) for row in view["uploads"]], kernels=kernels, more_kernels=more_kernels,
        launches=launches, order=order, no_result=no_result,
        means=launch_rows(view["means"], run_id),
        has_power=any(row["quantity"] == "power" or row["x_mm"] is not None for row in view["sensors"]),
        transfers=[
            row | {"duration_ns": None if row["duration_ms"] is None else 1e6 * row["duration_ms"]}
            for row in view["transfers"]
        ],
        memory=part_of(site.engine, run_id, view["traces"]),
        tables=_TABLES | {"launches": _columns(launches, no_result)},
        **_pager(found, skip, limit, info["launches"], "launches"),
    )  # fmt: skip


_TABLES = {
    "launches": LAUNCHES, "criteria": CRITERIA, "files": FILES, "kernels": KERNEL, "sensors": SENSORS,
    "transfers": TRANSFERS, "summaries": SUMMARIES, "means": MEANS,
}  # fmt: skip


def _paging(asked: Asked) -> tuple[str, int, int]:
    order, limit = asked.text("order", "-duration"), asked.count("limit", ROWS, MOST_ROWS)
    return order, asked.number("after", int, 0, "how many launches to pass over"), limit


def _pager(found: Row, skip: int, limit: int, whole: int | None, what: str) -> dict[str, Any]:
    rows = found["launches"]
    total = f"{what} {count(skip + 1)} to {count(skip + len(rows))} of {count(whole)}" if rows else f"no {what}"
    return {
        "total": total,
        "following": str(skip + limit) if found["truncated"] else None,
        "before": None if skip == 0 else str(max(0, skip - limit)) if skip > limit else "",
    }


def _links(request: Request, run_id: int, sql: str) -> Links:
    return Links(
        path_to(request, f"/v1/runs/{run_id}"), path_to(request, "/v1/launches.csv", {"run_id": run_id}), sql
    )  # fmt: skip


def kernel(request: Request) -> Response:
    """Show the launches of one kernel of a run."""
    asked, run_id = Asked(request), number_of(request)
    order, skip, limit = _paging(asked)
    asked.done()
    site, text = site_of(request), request.path_params["kernel"]
    kernel_id = int(text) if text.isascii() and text.isdigit() and len(text) < 18 else -1
    info = store.select(site.engine, "v1_runs", run_id=run_id)[0]
    totals = store.select(site.engine, "v1_kernel_totals", run_id=run_id, kernel_id=kernel_id)
    if not totals:
        return moved(request, f"/runs/{run_id}")
    found = views.launch_page(
        site.engine, run_id, order=order, skip=skip, limit=limit, kernel_id=kernel_id, seconds=site.limits.sql_seconds
    )
    whole = sum(row["launches"] for row in totals)
    return page(
        request, "kernel.html", totals[0]["kernel_short"],
        links=_links(request, run_id, f"select * from v1_kernel_totals where kernel_id = {kernel_id}"),
        info=info, kernel=totals[0]["kernel"], launches=launch_rows(found["launches"], run_id), order=order,
        columns=LAUNCHES, totals=totals, **_pager(found, skip, limit, whole, "launches"),
    )  # fmt: skip


def rejects(request: Request) -> Response:
    """Show the lines of a run's files that were refused, and why."""
    asked, run_id = Asked(request), number_of(request)
    after = asked.text("after")
    asked.done()
    engine = site_of(request).engine
    info = store.select(engine, "v1_runs", run_id=run_id)[0]
    found = store.list_view(
        engine, "v1_rejects", [store.Condition("run_id", "", str(run_id))], limit=REJECTS, after=after
    )
    names = {row["upload_id"]: row["file_name"] for row in store.select(engine, "v1_uploads", run_id=run_id)}
    links = Links(
        path_to(request, "/v1/rejects", {"run_id": run_id}), path_to(request, "/v1/rejects.csv", {"run_id": run_id}),
        f"select * from v1_rejects where run_id = {run_id}",
    )  # fmt: skip
    rows = [row | {"file": names.get(row["upload_id"])} for row in found.rows]
    return page(
        request, "rejects.html", "Rejected lines", links=links, info=info, rows=rows,
        columns=(Column("file", "file", "name"), *LINES), following=found.after, total=f"{len(rows)} shown",
    )  # fmt: skip


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}", run, "read", name="run_page")
    add_page(app, "/runs/{run}/kernels/{kernel}", kernel, "read", name="run_kernel_page")
    add_page(app, "/runs/{run}/rejects", rejects, "read", name="rejects_page")
