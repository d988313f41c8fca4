"""Every ``v1_`` view of the store under ``/v1/<its name without v1_>``: filtered, ordered, page by page, or whole.

``/v1/launches`` and ``/v1/launches.json`` give pages; ``.csv`` and ``.ndjson`` give all rows as they come, unless a
``limit`` is set.
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
from profsvc.store.lists import files_of_conditions
from profsvc.web.answers import FORMS, rows, streamed
from profsvc.web.asked import Asked
from profsvc.web.routes import add, asks, rows_schema
from profsvc.web.site import grant_of, site_of

ROWS = 100
TYPES = {"int": "integer", "float": "number", "text": "string"}
CONTROLS = (
    asks("limit", "integer", f"rows of a page; {ROWS} where nothing else is said", minimum=1, maximum=store.MOST_ROWS),
    asks("after", "string", "what `next` of the page before says"),
    asks("order", "array", "columns to order by, -column downwards; repeatable", items={"type": "string"}),
    asks("columns", "array", "only these columns; repeatable", items={"type": "string"}),
    asks("formula", "string", "csv: safe puts a ' before what a spreadsheet would run", enum=["safe", "raw"]),
)


def names() -> dict[str, str]:
    """Return the views by their names in paths."""
    return {view.removeprefix("v1_"): view for view in store.VIEWS}


def _conditions(asked: Asked) -> list[store.Condition]:
    """Read what is left of the questions as filters: ``column=value`` or ``column__how=value``."""
    found = []
    for key, value in asked.others():
        column, _, how = key.partition("__")
        found.append(store.Condition(column, how, value))
    return found


def _lists(asked: Asked, name: str) -> list[str]:
    return [part for text in asked.texts(name) for part in text.split(",") if part]


async def _answer(request: Request, view: str, form: str) -> Response:
    site, grant, asked = site_of(request), grant_of(request), Asked(request)
    name = view.removeprefix("v1_")
    raw = asked.among("formula", ("safe", "raw"), "safe") == "raw"
    whole = form != "json" and not asked.text("limit") and not asked.text("after")
    limit, after = asked.count("limit", ROWS, store.MOST_ROWS), asked.text("after")
    order, columns = _lists(asked, "order"), _lists(asked, "columns")
    only = _conditions(asked)
    asked.done()
    said: dict[str, Any] = {"columns": columns, "order": order, "project": grant.project}
    if whole:
        within = await to_thread.run_sync(files_of_conditions, site.engine, view, only)
        query, values = store.statement_of(view, only, within=within, **said)
        objects = store.JSON_COLUMNS.get(view, ()) if form == "ndjson" else ()
        return await streamed(request, form, query, values, name, raw=raw, objects=objects)
    seconds = site.limits.sql_seconds
    listed = partial(store.list_view, site.engine, view, only, limit=limit, after=after, seconds=seconds, **said)
    page = await to_thread.run_sync(listed)
    if form != "csv":
        page = page._replace(rows=store.with_objects(view, page.rows))
    return await to_thread.run_sync(lambda: rows(request, form, page, name, _next(request, page), raw=raw))


def _next(request: Request, page: store.Page) -> str | None:
    """Return the path of the next page: this one's questions, from another place on."""
    if page.after is None:
        return None
    kept = [(key, value) for key, value in request.query_params.multi_items() if key != "after"]
    return f"{request.scope['path']}?{urlencode([*kept, ('after', page.after)])}"


def _handler(view: str, form: str) -> Callable[..., Any]:
    async def listed(request: Request) -> Response:
        return await _answer(request, view, form)

    listed.__doc__ = store.VIEWS[view][0]
    return listed


def _filters(view: str, meanings: dict[str, str]) -> Sequence[dict[str, Any]]:
    kinds = store.kinds_of(view)
    return [asks(column, TYPES[kinds[column]], says) for column, says in meanings.items()]


def _columns(view: str, meanings: dict[str, str]) -> dict[str, Any]:
    """Schema of a row: what a column holds, or null."""
    kinds, objects = store.kinds_of(view), store.JSON_COLUMNS.get(view, ())
    types = {column: "object" if column in objects else TYPES[kinds[column]] for column in meanings}
    return {column: {"type": [types[column], "null"], "description": says} for column, says in meanings.items()}


def register(app: FastAPI) -> None:
    """Add the routes of all views."""
    hows = ", ".join(f"`column__{how}` ({says})" for how, says in store.FILTERS.items() if how)
    for name, view in names().items():
        sentence, meanings = store.VIEWS[view]
        columns = _columns(view, meanings)
        takes = [*CONTROLS, *_filters(view, meanings)]
        for suffix, form in (("", "json"), *((f".{form}", form) for form in FORMS)):
            schema = rows_schema(columns) if form == "json" else {"type": "string"}
            handler = _handler(view, form)
            handler.__doc__ = f"{sentence} Filter by any column; besides `column=value` there is {hows}."
            gives = {FORMS[form].partition(";")[0]: {"schema": schema}}
            label = f"list_{name}" + suffix.replace(".", "_")
            add(app, f"/v1/{name}{suffix}", handler, "read", name=label, takes=takes, gives=gives, tag="views")
