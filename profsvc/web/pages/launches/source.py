"""``/runs/{run}/source`` and ``/runs/{run}/launches/{launch}/source``: source beside SASS, with samples."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc.errors import NotFoundError
from profsvc.reports.text.launches.source_lines import counts_twice, file_names, summary
from profsvc.views.launches import source_lines as source_view
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import app_state
from profsvc.web.pages.rendering.page import Links, page, path_to
from profsvc.web.pages.rendering.tables import Column, Row, nonempty_columns
from profsvc.web.pages.runs.run import run_id_of

SHOWN_LINES = 20
SHOWN_INSTRUCTIONS = 5
MAX_LINES = 500
MAX_INSTRUCTIONS = 100
"""Instructions of a line on a page with all lines."""
TOP_LINES = 3


def _where(row: Row) -> dict[str, Any]:
    return {} if row["line_id"] is None else {"run": row["run_id"], "row": row["line_id"]}


def _number(name: str, title: str, kind: str = "number") -> Column:
    return Column(name, title, kind, f"v1_source_lines.{name}", _where)


COLUMNS = (
    _number("samples_fraction", "samples", "part"),
    Column("time_fraction", "time caused", "part", "figure.time_caused"),
    Column("main_cause_title", "cause"),
    Column("main_stall", "stall reason"),
    Column("place", "line"),
    Column("text", "source and SASS", "name", width=160),
    _number("instructions", "instructions"),
    _number("threads_per_instruction", "threads per instruction"),
    _number("l2_sectors", "L2 sectors"),
    _number("ideal_l2_sectors", "ideal"),
    _number("shared_wavefronts", "shared wavefronts"),
    _number("ideal_shared_wavefronts", "ideal"),
)


def show_launch_source(request: Request) -> Response:
    """Show the source of a launch."""
    run_id, text = run_id_of(request), request.path_params["launch"]
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise NotFoundError(f"{text[:60]!r} is not a launch number; see the launches of run {run_id}")
    return _source_page(request, run_id, f"id:{text}")


def show_run_source(request: Request) -> Response:
    """Show the source of the launch of a run with most samples, or of a kernel."""
    return _source_page(request, run_id_of(request), None)


def _source_page(request: Request, run_id: int, kernel: str | None) -> Response:
    args = RequestArgs(request)
    kernel = args.text("kernel") if kernel is None else kernel
    every = args.flag("all")
    args.reject_unknown()
    limit = MAX_LINES if every else SHOWN_LINES
    view = source_view.source_lines(app_state(request).engine, run_id, kernel, limit)
    launch, lines = view["launch"], view["lines"]
    names = file_names(line["file"] for line in lines)
    rows, left_out = _table_rows(lines, names, run_id, MAX_INSTRUCTIONS if every else SHOWN_INSTRUCTIONS)
    number = "launch_id" if launch["launch_id"] is not None else "source_id"
    query = {"run_id": run_id, number: launch[number]}
    links = Links(
        path_to(request, f"/v1/runs/id:{run_id}/source", {"kernel": kernel}),
        path_to(request, "/v1/source_lines.csv", query),
        f"select * from v1_source_lines where run_id = {run_id} and {number} = {launch[number]} order by samples desc",
    )
    return page(
        request, "launches/source.html", f"Source: {launch['kernel_short']}", links=links, run=view["run"],
        launch=launch,
        top=[summary(line, names) for line in lines[:TOP_LINES] if line["samples"] or line["time_fraction"]],
        rows=rows, every=every, counts_twice=counts_twice(view),
        columns=nonempty_columns(COLUMNS, rows, ("samples_fraction", "text")),
        hidden_lines=view["lines_in_all"] - len(lines), hidden_instructions=left_out,
        others=[one | {"run_id": run_id} for one in view["others"]], other_columns=OTHER_COLUMNS,
    )  # fmt: skip


def _launch_link(row: Row) -> str | None:
    return None if row["launch_id"] is None else f"/runs/{row['run_id']}/launches/{row['launch_id']}/source"


OTHER_COLUMNS = (
    Column("launch_index", "#", link=_launch_link),
    Column("kernel_short", "kernel", "name", link=_launch_link, full="kernel"),
    Column(
        "samples", "samples", "number", "v1_source_kernels.samples",
        lambda row: {"run": row["run_id"], "row": row["source_id"]},
    ),
)  # fmt: skip


def _table_rows(
    lines: list[dict[str, Any]], names: Mapping[str | None, str], run_id: int, most: int
) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of the table, each line followed by its instructions, and how many of these are left out."""
    rows, left_out = [], 0
    for line in lines:
        place = "" if line["source_line"] is None else f"{names[line['file']]}:{line['source_line']}"
        text = line["source_text"] or line["sass_text"] or "(no source text)"
        rows.append(line | {"run_id": run_id, "place": place or line["address"], "text": text})
        shown = line["sass"][:most]
        left_out += len(line["sass"]) - len(shown)
        own = {"run_id": run_id, "time_fraction": None, "main_cause_title": None}
        rows += [row | own | {"place": row["address"], "text": row["sass"]} for row in shown]
    return rows, left_out


def register(app: FastAPI) -> None:
    """Add the routes."""
    add_page(app, "/runs/{run}/launches/{launch}/source", show_launch_source, "read", name="launch_source_page")
    add_page(app, "/runs/{run}/source", show_run_source, "read", name="source_page")
