"""Every ``v1_`` view under ``/v1/<name without v1_>`` with filters, order and pages.

``/v1/launches`` returns a page of rows as JSON. As CSV and NDJSON, by the header Accept or a suffix such as ``.csv``,
it streams all rows unless ``limit`` is set.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import store
from profsvc.store.queries.view_pages import files_of_conditions, may_be_long
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.responses import MEDIA_TYPES, rows_response, stream_query
from profsvc.web.http.routes import add_forms, query_param, rows_schema
from profsvc.web.http.state import app_state, grant_of

DEFAULT_ROWS = 100
JSON_TYPES = {"int": "integer", "float": "number", "text": "string"}
PAGING_PARAMETERS = (
    query_param(
        "limit",
        "integer",
        f"rows per page; default: {DEFAULT_ROWS}",
        minimum=1,
        maximum=store.MAX_ROWS,
    ),
    query_param("after", "string", "value of `after` in `next` of the previous page"),
    query_param("order", "array", "columns to order by, -column for descending; repeatable", items={"type": "string"}),
    query_param("columns", "array", "only these columns; repeatable", items={"type": "string"}),
    query_param("formula", "string", "csv: safe prefixes formulas with ' for spreadsheets", enum=["safe", "raw"]),
)


def view_names() -> dict[str, str]:
    """Return the views by their names in paths."""
    return {view.removeprefix("v1_"): view for view in store.VIEWS}


def _filter_conditions(args: RequestArgs) -> list[store.Condition]:
    """Return the remaining parameters as filters: ``column=value`` or ``column__how=value``."""
    found = []
    for key, value in args.remaining():
        column, _, how = key.partition("__")
        found.append(store.Condition(column, how, value))
    return found


def _comma_separated(args: RequestArgs, name: str) -> list[str]:
    return [part for text in args.texts(name) for part in text.split(",") if part]


async def _answer_view(request: Request, view: str, form: str) -> Response:
    state, grant, args = app_state(request), grant_of(request), RequestArgs(request)
    name = view.removeprefix("v1_")
    raw = args.choice("formula", ("safe", "raw"), "safe") == "raw"
    whole = form != "json" and not args.text("limit") and not args.text("after")
    limit, after = args.count("limit", DEFAULT_ROWS, store.MAX_ROWS), args.text("after")
    order, columns = _comma_separated(args, "order"), _comma_separated(args, "columns")
    only = _filter_conditions(args)
    args.reject_unknown()
    said: dict[str, Any] = {"columns": columns, "order": order, "project": grant.project}
    if whole:
        within = await state.page_limit.run(state.ask, files_of_conditions, view, only)
        query, values = store.select_statement(view, only, within=within, **said)
        objects = store.JSON_COLUMNS.get(view, ()) if form == "ndjson" else ()
        return await stream_query(request, form, query, values, name, raw=raw, objects=objects)
    seconds = state.limits.sql_seconds
    listed = partial(state.ask, store.list_view, view, only, limit=limit, after=after, seconds=seconds, **said)
    queue = state.query_limit if may_be_long(view, only, order, limit) else state.page_limit
    async with queue.slot(request):
        page = await queue.in_thread(listed)
    if form != "csv":
        page = page._replace(rows=store.parse_json_columns(view, page.rows))
    return await to_thread.run_sync(
        lambda: rows_response(request, form, page, name, _next_page_path(request, page), raw=raw)
    )


def _next_page_path(request: Request, page: store.Page) -> str | None:
    """Return the path of the next page: the same parameters with another start."""
    if page.after is None:
        return None
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "after"]
    return f"{request.scope['path']}?{urlencode([*kept, ('after', page.after)])}"


def _handler(view: str, says: str, form: str) -> Callable[..., Any]:
    async def listed(request: Request) -> Response:
        return await _answer_view(request, view, form)

    listed.__doc__ = says
    return listed


def _filter_parameters(view: str, meanings: dict[str, str]) -> Sequence[dict[str, Any]]:
    kinds = store.column_kinds_of(view)
    return [query_param(column, JSON_TYPES[kinds[column]], says) for column, says in meanings.items()]


def _column_schemas(view: str, meanings: dict[str, str]) -> dict[str, Any]:
    """Return the schemas of the columns of a row, which may be null."""
    kinds, objects = store.column_kinds_of(view), store.JSON_COLUMNS.get(view, ())
    types = {column: "object" if column in objects else JSON_TYPES[kinds[column]] for column in meanings}
    return {column: {"type": [types[column], "null"], "description": says} for column, says in meanings.items()}


def register(app: FastAPI) -> None:
    """Add the routes of all views."""
    hows = ", ".join(f"`column__{how}` ({says})" for how, says in store.FILTERS.items() if how)
    for name, view in view_names().items():
        sentence, meanings = store.VIEWS[view]
        columns = _column_schemas(view, meanings)
        takes = [*PAGING_PARAMETERS, *_filter_parameters(view, meanings)]
        says = f"{sentence} Filter by any column with `column=value`, or with {hows}."
        forms = {
            form: {kind.partition(";")[0]: {"schema": rows_schema(columns) if form == "json" else {"type": "string"}}}
            for form, kind in MEDIA_TYPES.items()
        }
        add_forms(app, f"/v1/{name}", forms, partial(_handler, view, says), "read", name=f"list_{name}", takes=takes,
                  tag="views")  # fmt: skip
