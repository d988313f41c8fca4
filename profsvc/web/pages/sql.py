"""``/sql``: a query field with parameters, the result and its chart, saved and example queries, and the schema."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import FastAPI
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.errors import OverloadedError, ProfsvcError, TimeLimitError, UsageError, nearest_names
from profsvc.reports.rows import distinct, plain, visible
from profsvc.reports.text.cells import middle
from profsvc.web.api import sql
from profsvc.web.http.request_args import RequestArgs
from profsvc.web.http.routes import add_page
from profsvc.web.http.state import AppState, app_state
from profsvc.web.pages.rendering.filters import MISSING, count
from profsvc.web.pages.rendering.page import fixed_part, form_fields, page, path_to, redirect

ROWS_PER_PAGE = 200
MAX_PAGES = 1_000_000
MAX_CELL_CHARS = 60
MAX_FULL_CHARS = 20_000
MAX_PAGE_CHARS = 800_000
"""Characters of all shortened values of a page together, each of which opens to its full text."""
MAX_URL_CHARS = 8000
DEFAULT_SQL = "select run_id, project, name, device, launches, gpu_time_ns\nfrom v1_runs order by run_id desc limit 20"
_VIEW_NAME = re.compile(r"v1_\w+")
_NO_COLUMN = re.compile(r"no such column: (?:\w+\.)?(\w+)|column \"?(?:\w+\.)?(\w+)\"? does not exist")
_ERROR_POSITION = re.compile(r" \(line (?P<line>\d+), column (?P<column>\d+)\)$")


class Query(NamedTuple):
    """A query: its text, the values of its parameters, and the page of the result."""

    text: str
    values: Mapping[str, str]
    page: int
    example: str
    saved: str = ""
    """The name of the saved query that it is."""
    chart: Mapping[str, str] = {}
    """The kind of its chart, and the columns x, y and by; empty without one."""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the parameters, each with its value."""
        return [(name, self.values.get(name, "")) for name in store.parameter_names(self.text)]

    @property
    def missing(self) -> list[str]:
        """Return the parameters without a value."""
        return [name for name in store.parameter_names(self.text) if name not in self.values]

    @property
    def in_url(self) -> dict[str, str]:
        """The text and its values, as parameters of a URL."""
        return {"q": self.text} | {f"p.{name}": value for name, value in self.values.items()}


def _query(request: Request) -> tuple[Query, str]:
    """Return the query of the URL, and what was deleted before."""
    args = RequestArgs(request)
    text, example, values = args.text("q"), args.text("example"), args.with_prefix("p.")
    saved, deleted = args.text("saved"), args.text("deleted")
    page_number = args.count("page", 1, MAX_PAGES)
    kind = args.choice("chart", ("", *sql.CHART_KINDS), "")
    chart = {name: args.text(name) for name in ("x", "y", "by")}
    args.reject_unknown()
    chart = {"kind": kind} | {name: column for name, column in chart.items() if column} if kind else {}
    if saved:
        known = store.find_query(app_state(request).engine, saved)
        # A text in the URL was changed since, and goes on under the name.
        text, values = text or known["sql"], known["params"] | values
        chart = chart or (known["chart"] if "chart" not in request.query_params else {})
    elif example and not text:
        question = specs.question(example)
        text, values = question.sql, question.values(values)
    return Query(text, values, page_number, example, saved, chart), deleted


async def show_sql(request: Request) -> Response:
    """Show the query of the URL and its result."""
    state = app_state(request)
    query, deleted = await to_thread.run_sync(_query, request)
    message: str | ProfsvcError = ""
    if query.text and query.missing:
        message = f"Give a value for {', '.join(f':{name}' for name in query.missing)}."
    elif query.text and not deleted:
        try:
            return await sql.run_query(
                request, state, _sql_query(state, query), lambda found: _sql_page(request, query, found, "", deleted)
            )
        except (UsageError, OverloadedError) as error:
            message = error
    return await state.page_limit.run(_sql_page, request, query, None, message, deleted)


async def change_queries(request: Request) -> Response:
    """Save or delete a query, as a form asks for."""
    return await to_thread.run_sync(_change, request, await form_fields(request))


def _change(request: Request, fields: Mapping[str, str]) -> Response:
    act, name = fields.get("act", ""), fields.get("name", "").strip()
    if act == "save":
        values = {key.removeprefix("p."): value for key, value in fields.items() if key.startswith("p.")}
        chart = {key: fields[key] for key in ("x", "y", "by") if fields.get(key)}
        chart = {"kind": fields["chart"], **chart} if fields.get("chart") else {}
        text = fields.get("q", "").replace("\r\n", "\n")
        saved = sql.save_query(request, name, text, values, chart, replace=name == fields.get("was"))
        return redirect(request, "/sql", {"saved": saved["name"]})
    if act != "delete":
        raise UsageError("act must be save or delete")
    gone = store.delete_query(app_state(request).engine, name)
    back = {"deleted": gone["name"], "q": gone["sql"], **{f"p.{key}": value for key, value in gone["params"].items()}}
    back |= {"chart" if key == "kind" else key: value for key, value in gone["chart"].items()}
    too_long = sum(map(len, back.values())) > MAX_URL_CHARS
    return redirect(request, "/sql", {"deleted": gone["name"]} if too_long else back)


def _sql_query(state: AppState, query: Query) -> sql.SqlQuery:
    known = {name: query.values[name] for name in store.parameter_names(query.text)}
    return sql.validated_query(state, query.text, "", known, state.limits.sql_rows, state.limits.sql_seconds)


def _sql_page(
    request: Request, query: Query, answer: store.Answer | None, message: str | ProfsvcError, deleted: str
) -> Response:
    state = app_state(request)
    downloads = {form: _path_with(request, f"/v1/sql.{form}", query.in_url) for form in ("csv", "ndjson", "json")}
    found = _result_page(request, query, answer) if answer else None
    return page(
        request,
        "sql.html",
        query.saved or "SQL",
        status=message.status if isinstance(message, ProfsvcError) else 200,
        query=query,
        limits=state.limits,
        message=str(message),
        hints=_hints(message, query, state),
        excerpt=_error_excerpt(message, query),
        downloads=downloads if query.text and not query.missing else {},
        examples=list(specs.questions().values()),
        saved_queries=store.list_queries(state.engine),
        deleted=deleted,
        text=_editable(query.text or DEFAULT_SQL),
        schema=_schema(request.scope.get("root_path", "")),
        found=found,
        chart=_chart(request, query, answer) if answer and found and found["rows"] else None,
    )


def _chart(request: Request, query: Query, answer: store.Answer) -> dict[str, Any] | None:
    """Return what a result can be drawn by, and the chart that is asked for; None without a number to draw."""
    columns = distinct(answer.columns)
    numbers = [name for place, name in enumerate(columns) if _is_number(answer.rows[:ROWS_PER_PAGE], place)]
    if not numbers:
        return None
    wanted = query.chart
    x = wanted.get("x") if wanted.get("x") in columns else columns[0]
    y = wanted.get("y") if wanted.get("y") in numbers else next((one for one in numbers if one != x), numbers[0])
    by = wanted.get("by") if wanted.get("by") in columns else ""
    lost = [name for key in ("x", "y", "by") if (name := wanted.get(key)) and name not in (x, y, by)]
    return {
        "kinds": sql.CHART_KINDS, "kind": wanted.get("kind", ""), "x": x, "y": y, "by": by, "columns": columns,
        "numbers": numbers, "others": [name for name in columns if name not in (x, y)],
        "lost": [visible(name) for name in lost],
        "source": _path_with(request, "/v1/sql", query.in_url),
    }  # fmt: skip


def _hints(message: str | ProfsvcError, query: Query, state: AppState) -> list[str]:
    """Return what to do about a query that was refused, beyond its message."""
    limits = state.limits
    if isinstance(message, TimeLimitError):
        return [
            f"A page and /v1/sql wait {limits.sql_seconds:g} s (PROFSVC_SQL_SECONDS). The CSV and NDJSON downloads may "
            f"take {limits.sql_export_seconds:g} s, and have all rows.",
            "Fast: a condition on run_id or launch_id. Slow: joins of views without one, and v1_metrics or v1_samples "
            "of every run. Totals of kernels stand ready in v1_kernel_totals.",
        ]
    if (missing := _NO_COLUMN.search(str(message))) is None:
        return []
    name = next(filter(None, missing.groups()))
    views = [view for view in store.VIEWS if view in set(_VIEW_NAME.findall(query.text))]
    columns = {view: list(store.column_kinds_of(view)) for view in views}
    near = {view: nearest_names(name, known) for view, known in columns.items()}
    found = [f"{view} has {', '.join(names)}." for view, names in near.items() if names]
    elsewhere = [view for view in store.VIEWS if view not in views and name in store.column_kinds_of(view)]
    if elsewhere:
        found.append(f"{visible(name)} is a column of {', '.join(elsewhere[:4])}.")
    return found or [f"Columns of {view}: {', '.join(known[:40])}." for view, known in columns.items()]


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
    begun = own[column - 1 :]
    word = re.match(r"\w+|.?", begun)
    end = word.end() if word else 0
    return {"line": line, "column": column, "before": visible(own[begin : column - 1]),
            "wrong": visible(begun[:end][:60]), "after": visible(begun[end:][:60])}  # fmt: skip


def _result_page(request: Request, query: Query, answer: store.Answer) -> dict[str, Any]:
    """Return one page of the rows, and their number."""
    first = (query.page - 1) * ROWS_PER_PAGE
    part = answer.rows[first : first + ROWS_PER_PAGE]
    columns = distinct(answer.columns)
    views = [view for view in store.VIEWS if view in set(_VIEW_NAME.findall(query.text))]
    most = min(MAX_FULL_CHARS, max(500, MAX_PAGE_CHARS // max(1, len(part) * len(columns))))
    kept = {"saved": query.saved} if query.saved else {}
    kept |= {"chart" if key == "kind" else key: value for key, value in query.chart.items()}

    def turned(place: int) -> str:
        return _path_with(request, "/sql", query.in_url | kept | {"page": str(place)})

    more = first + ROWS_PER_PAGE < len(answer.rows)
    total = f"more than {count(len(answer.rows))}" if answer.truncated else count(len(answer.rows))
    return {
        "columns": [
            (visible(name), _column_explanation(name, views, _is_number(part, place)), _is_number(part, place))
            for place, name in enumerate(columns)
        ],
        "rows": [[_short_and_full(value, most) for value in row] for row in part],
        "truncated": answer.truncated,
        "by_size": answer.truncated and len(answer.rows) < app_state(request).limits.sql_rows,
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


def _short_and_full(value: Any, most: int) -> tuple[str, str]:
    """Return the text of a cell, and the full text where it was shortened, of at most ``most`` characters."""
    value = plain(value)
    if value is None:
        return MISSING, ""
    if isinstance(value, float):
        whole = repr(value)
        short = f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"
    else:
        whole = visible(str(value))
        short = middle(whole, MAX_CELL_CHARS)
    if short == whole:
        return short, ""
    return short, whole if len(whole) <= most else f"{whole[:most]}… ({count(len(whole))} characters in all)"


@lru_cache(maxsize=4)
def _schema(root_path: str) -> Markup:
    """Return the views with their columns and meanings, which take longer than the rest of the page."""
    return fixed_part("sql_schema.html", root_path, schema=_view_descriptions())


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
    """Add the routes."""
    add_page(app, "/sql", show_sql, "sql", name="sql_page")
    add_page(app, "/sql", change_queries, "sql", name="change_queries", methods=["POST"])
