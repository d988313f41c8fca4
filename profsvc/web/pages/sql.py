"""``/sql``: a query field with parameters, the result, example queries and the schema."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.errors import OverloadedError, ProfsvcError, UsageError
from profsvc.reports.rows import distinct, plain, visible
from profsvc.reports.text.cells import middle
from profsvc.web.api import sql
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import AppState, app_state
from profsvc.web.pages.rendering.filters import MISSING, count
from profsvc.web.pages.rendering.page import page, path_to

ROWS_PER_PAGE = 200
MAX_PAGES = 1_000_000
MAX_CELL_CHARS = 120
DEFAULT_SQL = "select run_id, project, name, device, launches, gpu_time_ns\nfrom v1_runs order by run_id desc limit 20"
_VIEW_NAME = re.compile(r"v1_\w+")
_ERROR_POSITION = re.compile(r" \(line (?P<line>\d+), column (?P<column>\d+)\)$")


class Query(NamedTuple):
    """A query: its text, the values of its parameters, and the page of the result."""

    text: str
    values: Mapping[str, str]
    page: int
    example: str

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the parameters, each with its value."""
        return [(name, self.values.get(name, "")) for name in store.parameter_names(self.text)]

    @property
    def missing(self) -> list[str]:
        """Return the parameters without a value."""
        return [name for name in store.parameter_names(self.text) if name not in self.values]


def _query(request: Request) -> Query:
    args = RequestArgs(request)
    text, example, values = args.text("q"), args.text("example"), args.with_prefix("p.")
    page_number = args.count("page", 1, MAX_PAGES)
    args.reject_unknown()
    if example and not text:
        question = specs.question(example)
        text, values = question.sql, question.values(values)
    return Query(text, values, page_number, example)


async def show_sql(request: Request) -> Response:
    """Show the query of the URL and its result."""
    state = app_state(request)
    query = await to_thread.run_sync(_query, request)
    message, answer = "", None
    if query.text and query.missing:
        message = f"Give a value for {', '.join(f':{name}' for name in query.missing)}."
    elif query.text:
        try:
            answer = await sql.run_query(state, _sql_query(state, query))
        except (UsageError, OverloadedError) as error:
            return await state.page_limit.run(_sql_page, request, query, None, error)
    return await state.page_limit.run(_sql_page, request, query, answer, message)


def _sql_query(state: AppState, query: Query) -> sql.SqlQuery:
    known = {name: query.values[name] for name in store.parameter_names(query.text)}
    return sql.validated_query(state, query.text, "", known, state.limits.sql_rows, state.limits.sql_seconds)


def _sql_page(request: Request, query: Query, answer: store.Answer | None, message: str | ProfsvcError) -> Response:
    limits = app_state(request).limits
    query_args = {"q": query.text} | {f"p.{name}": value for name, value in query.values.items()}
    downloads = {form: _path_with(request, f"/v1/sql.{form}", query_args) for form in ("csv", "ndjson", "json")}
    return page(
        request,
        "sql.html",
        "SQL",
        status=message.status if isinstance(message, ProfsvcError) else 200,
        query=query,
        limits=limits,
        message=str(message),
        excerpt=_error_excerpt(message, query),
        downloads=downloads if query.text and not query.missing else {},
        examples=list(specs.questions().values()),
        text=_editable(query.text or DEFAULT_SQL),
        schema=_view_descriptions(),
        found=_result_page(request, query, answer) if answer else None,
    )


def _editable(text: str) -> str:
    """Return a query for the text field: lines and tabs kept, other control characters escaped."""
    return "".join(one if one in "\n\t" else visible(one) for one in text.replace("\r\n", "\n"))


def _path_with(request: Request, path: str, query_args: Mapping[str, str]) -> str:
    """Return a path with its query string; empty values are kept."""
    from urllib.parse import urlencode

    return f"{path_to(request, path)}?{urlencode(query_args)}"


def _error_excerpt(message: str | ProfsvcError, query: Query) -> dict[str, Any] | None:
    """Return the line of an error, split at its column."""
    found = _ERROR_POSITION.search(str(message))
    if found is None:
        return None
    lines = query.text.split("\n")
    line, column = int(found["line"]), int(found["column"])
    own = lines[line - 1] if line <= len(lines) else ""
    begin = max(0, column - 60)
    return {"line": line, "column": column, "before": visible(own[begin : column - 1]),
            "after": visible(own[column - 1 :][:60])}  # fmt: skip


def _result_page(request: Request, query: Query, answer: store.Answer) -> dict[str, Any]:
    """Return one page of the rows, and their number."""
    first = (query.page - 1) * ROWS_PER_PAGE
    part = answer.rows[first : first + ROWS_PER_PAGE]
    columns = distinct(answer.columns)
    views = [view for view in store.VIEWS if view in set(_VIEW_NAME.findall(query.text))]
    query_args = {"q": query.text} | {f"p.{name}": value for name, value in query.values.items()}

    def turned(place: int) -> str:
        return _path_with(request, "/sql", query_args | {"page": str(place)})

    more = first + ROWS_PER_PAGE < len(answer.rows)
    total = f"more than {count(len(answer.rows))}" if answer.truncated else count(len(answer.rows))
    return {
        "columns": [
            (visible(name), _column_explanation(name, views, _is_number(part, place)), _is_number(part, place))
            for place, name in enumerate(columns)
        ],
        "rows": [[_short_and_full(value) for value in row] for row in part],
        "truncated": answer.truncated,
        "kept": len(answer.rows),
        "range": f"rows {count(first + 1)} to {count(first + len(part))} of {total}" if part else f"{total} rows",
        "before": turned(query.page - 1) if query.page > 1 else "",
        "after": turned(query.page + 1) if more else "",
    }


def _column_explanation(column: str, views: Sequence[str], is_number: bool) -> str:
    """Return what explains a column: a column of a view, a counter, or the query itself for other numbers."""
    own = [f"{view}.{column}" for view in views if column in store.VIEWS[view][1]]
    counter = column if "v1_counters" in views and column in specs.counters() else ""
    return next(iter(own), counter or ("sql.result" if is_number else ""))


def _is_number(rows: Sequence[Sequence[Any]], place: int) -> bool:
    known = [row[place] for row in rows if row[place] is not None]
    return bool(known) and all(isinstance(one, int | float) for one in known)


def _short_and_full(value: Any) -> tuple[str, str]:
    """Return the text of a cell, and the full text where it was shortened."""
    value = plain(value)
    if value is None:
        return MISSING, ""
    if isinstance(value, float):
        short, whole = f"{value:.6g}", repr(value)
    else:
        whole = visible(str(value))
        short = middle(whole, MAX_CELL_CHARS)
    return short, "" if short == whole else whole[:2000]


def _view_descriptions() -> list[dict[str, Any]]:
    """Return the views with their columns, types and meanings."""
    counters = {name: one.meaning for name, one in specs.counters().items()}
    made = []
    for view, (sentence, columns) in store.VIEWS.items():
        named = dict(columns) | (counters if view.startswith("v1_counters") else {})
        kinds = store.column_kinds_of(view)
        made.append({"name": view, "sentence": sentence,
                     "columns": [(name, kinds[name], meaning) for name, meaning in named.items()]})  # fmt: skip
    return made


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/sql", show_sql, "sql", name="sql_page")
