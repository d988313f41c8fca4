"""``/v1/sql``: read-only SQL over the views within limits, as JSON, or all rows as CSV and NDJSON; saved queries.

``/v1/saved_queries`` lists these, as it does every view.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.errors import UsageError
from profsvc.reports.rows import distinct
from profsvc.web.api.reports import apply_body
from profsvc.web.http.request_args import RequestArgs, require_object
from profsvc.web.http.responses import MEDIA_TYPES, stream_query, success
from profsvc.web.http.routes import SUCCESS_SCHEMA, add_forms, add_route, path_param, query_param, rows_schema
from profsvc.web.http.state import AppState, app_state, grant_of, in_worker_thread

BODY_KEYS = {"q", "params", "limit", "seconds", "example"}
EXAMPLE_SQL = "select kernel_short, criterion, value, speedup from v1_criteria order by value limit 5"
PARAMETERS = (
    query_param("q", "string", "one SELECT over the v1_ views", EXAMPLE_SQL),
    query_param("example", "string", "instead of q: the name of an example of /v1/sql/examples"),
    query_param("p.NAME", "string", "value of :NAME in the query, as text; repeatable"),
    query_param("limit", "integer", "maximum number of rows, up to the limit of the service", minimum=1),
    query_param("seconds", "number", "maximum time in s, up to the limit of the service"),
    query_param("formula", "string", "csv: safe prefixes formulas with ' for spreadsheets", enum=["safe", "raw"]),
)
BODY_SCHEMA = {
    "type": "object",
    "properties": {
        "q": {"type": "string"},
        "params": {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
        "limit": {"type": "integer", "minimum": 1},
        "seconds": {"type": "number", "exclusiveMinimum": 0},
        "example": {"type": "string"},
    },
    "additionalProperties": False,
    "example": {"q": "select * from v1_launches where duration_ns > :least", "params": {"least": 1000}},
}

CHART_KINDS = ("line", "points", "bars")
SAVED_BODY = {"sql": str, "params": dict, "chart": dict}
SAVED_SCHEMA = {
    "type": "object",
    "required": ["sql"],
    "properties": {
        "sql": {"type": "string"},
        "params": {"type": "object", "additionalProperties": {"type": "string"}},
        "chart": {
            "type": "object",
            "properties": {
                "kind": {"enum": list(CHART_KINDS)},
                **{name: {"type": "string"} for name in ("x", "y", "by")},
            },
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
    "example": {
        "sql": "select run, total_ns from v1_kernel_totals where kernel_short = :kernel",
        "params": {"kernel": "saxpy"},
        "chart": {"kind": "line", "x": "run", "y": "total_ns"},
    },
}


class SqlQuery(NamedTuple):
    """A query with limits no larger than those of the service."""

    sql: str
    params: Mapping[str, Any]
    limit: int
    seconds: float


def validated_query(
    state: AppState, sql: Any, example: Any, params: Mapping[str, Any], limit: Any, seconds: Any
) -> SqlQuery:
    """Return a query within the limits of the service; raise `UsageError` otherwise."""
    if bool(sql) == bool(example) or not isinstance(sql or example, str):
        raise UsageError("give either q (a query) or example (a name of /v1/sql/examples)")
    if example:
        question = specs.question(example)
        sql, params = question.sql, question.values({name: str(value) for name, value in params.items()})
    for name, value in params.items():
        if not isinstance(value, str | int | float | None) or isinstance(value, bool):
            raise UsageError(f"the value of :{name} must be a string, a number or null")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(f"the value of :{name} does not fit into 64 bits")
    names = store.parameter_names(sql)
    if unused := [name for name in params if name not in names]:
        there = ", ".join(f":{name}" for name in names) or "none"
        raise UsageError(f"the query has no parameter :{unused[0]}; it has {there}")
    most, longest = state.limits.sql_rows, state.limits.sql_seconds
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise UsageError(f"limit={limit!r} must be a whole number from 1 to {most}; .csv and .ndjson give all rows")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= longest:
        raise UsageError(f"seconds={seconds!r} must be more than 0 and no more than {longest:g}")
    return SqlQuery(sql, params, limit, float(seconds))


def _query_in_url(state: AppState, request: Request) -> tuple[SqlQuery, str]:
    args = RequestArgs(request)
    limit = args.number("limit", int, state.limits.sql_rows, "a whole number")
    seconds = args.number("seconds", float, state.limits.sql_seconds, "a number")
    formula = args.choice("formula", ("safe", "raw"), "safe")
    found = validated_query(state, args.text("q"), args.text("example"), args.with_prefix("p."), limit, seconds)
    args.reject_unknown()
    return found, formula


async def _query_in_body(state: AppState, request: Request) -> SqlQuery:
    await request.body()
    RequestArgs(request).reject_unknown()
    try:
        body = require_object(await request.json(), "the body")
    except (ValueError, RecursionError):
        raise UsageError('the body must be JSON, such as {"q": "select 1", "params": {}}') from None
    if unknown := sorted(body.keys() - BODY_KEYS):
        raise UsageError(f"unknown key {unknown[0]!r} in the body; allowed: {', '.join(sorted(BODY_KEYS))}")
    limit, seconds = body.get("limit", state.limits.sql_rows), body.get("seconds", state.limits.sql_seconds)
    params = require_object(body.get("params", {}), "params")
    return validated_query(state, body.get("q"), body.get("example"), params, limit, seconds)


async def run_query(
    request: Request, state: AppState, question: SqlQuery, answer: Callable[[store.Answer], Response]
) -> Response:
    """Run a query when a slot is free, and make the answer of its rows in the same slot.

    So no more results are in memory than slots, however many readers wait.
    """
    began = time.monotonic()
    work = partial(
        state.ask, store.query, question.sql, question.params, max_rows=question.limit, seconds=question.seconds
    )
    async with state.query_limit.slot(request):
        try:
            found = await state.query_limit.in_thread(work)
        except UsageError:
            state.metrics.sql_refused.inc()
            raise
        finally:
            state.metrics.sql_seconds.observe(time.monotonic() - began)
        return await state.query_limit.in_thread(answer, found)


async def _run_and_answer(request: Request, state: AppState, question: SqlQuery) -> Response:
    return await run_query(request, state, question, lambda found: _rows_answer(request, found, question))


def _rows_answer(request: Request, found: store.Answer, question: SqlQuery) -> Response:
    columns = distinct(found.columns)
    body = {
        "columns": columns,
        "rows": [dict(zip(columns, row, strict=True)) for row in found.rows],
        "truncated": found.truncated,
        "next": None,
        "limits": {"rows": question.limit, "seconds": question.seconds},
    }
    return success(request, body)


async def query_by_get(request: Request) -> Response:
    """Run one SELECT over the views; the query is in the URL."""
    state = app_state(request)
    question, _ = await to_thread.run_sync(_query_in_url, state, request)
    return await _run_and_answer(request, state, question)


async def query_by_post(request: Request) -> Response:
    """Run one SELECT over the views; the query is in the body."""
    state = app_state(request)
    return await _run_and_answer(request, state, await _query_in_body(state, request))


async def _stream_all(request: Request, form: str) -> Response:
    state = app_state(request)
    question, formula = await to_thread.run_sync(_query_in_url, state, request)
    return await stream_query(request, form, question.sql, question.params, "sql", raw=formula == "raw")


async def query_as_csv(request: Request) -> Response:
    """Return all rows of one SELECT as CSV."""
    return await _stream_all(request, "csv")


async def query_as_ndjson(request: Request) -> Response:
    """Return all rows of one SELECT as NDJSON, one object per line."""
    return await _stream_all(request, "ndjson")


async def list_examples(request: Request) -> Response:
    """The example queries."""
    RequestArgs(request).reject_unknown()
    listed = [
        {"name": one.name, "title": one.title, "sql": one.sql, "params": dict(one.params)}
        for one in specs.questions().values()
    ]
    return success(request, {"examples": listed})


def save_query(
    request: Request,
    name: str,
    sql: str,
    params: Mapping[str, Any],
    chart: Mapping[str, Any],
    *,
    replace: bool = True,
) -> dict[str, Any]:
    """Save a query under a name, with the name of the token as its author."""
    for what, values in (("params", params), ("chart", chart)):
        if not isinstance(values, Mapping) or not all(isinstance(value, str) for value in values.values()):
            raise UsageError(f"{what} must be an object of strings")
    if unknown := sorted(chart.keys() - {"kind", "x", "y", "by"}):
        raise UsageError(f"unknown key {unknown[0]!r} in chart; allowed: kind, x, y, by")
    if chart and chart.get("kind") not in CHART_KINDS:
        raise UsageError(f"kind of chart {chart.get('kind')!r} is not valid; choose {' or '.join(CHART_KINDS)}")
    engine, names = app_state(request).engine, store.parameter_names(sql)
    known = {key: value for key, value in params.items() if key in names}
    return store.save_query(
        engine, name, sql, known, chart, author=store.token_name(engine, grant_of(request)), replace=replace
    )


async def put_query(request: Request) -> Response:
    """Save a query under a name; it takes the place of one with this name."""
    name = request.path_params["name"]

    def act(_: AppState, body: Mapping[str, Any]) -> Mapping[str, Any]:
        saved = save_query(request, name, body.get("sql") or "", body.get("params", {}), body.get("chart", {}))
        return {"query": saved}

    return await apply_body(request, act, SAVED_BODY, 200)


async def remove_query(request: Request) -> Response:
    """Delete a saved query; the answer has what saves it again."""

    def answer(request: Request) -> Response:
        RequestArgs(request).reject_unknown()
        return success(request, {"query": store.delete_query(app_state(request).engine, request.path_params["name"])})

    return await in_worker_thread(answer, request)


def register(app: FastAPI) -> None:
    """Add the routes."""
    gives = {"application/json": {"schema": rows_schema()}}
    text = {form: {MEDIA_TYPES[form].partition(";")[0]: {"schema": {"type": "string"}}} for form in ("csv", "ndjson")}
    handlers = {"json": query_by_get, "csv": query_as_csv, "ndjson": query_as_ndjson}
    add_forms(app, "/v1/sql", {"json": gives, **text}, handlers.__getitem__, "sql", name="ask_sql", takes=PARAMETERS,
              tag="sql")  # fmt: skip
    body = {"application/json": {"schema": BODY_SCHEMA}}
    add_route(
        app,
        "/v1/sql",
        query_by_post,
        "sql",
        name="ask_sql_in_body",
        methods=["POST"],
        gives=gives,
        body=body,
        tag="sql",
    )
    add_route(app, "/v1/sql/examples", list_examples, "read", name="list_sql_examples",
        gives={"application/json": {"schema": SUCCESS_SCHEMA}}, tag="sql")  # fmt: skip
    name = path_param("name", "name of the query", "slowest kernels")
    add_route(app, "/v1/saved_queries/{name:path}", put_query, "sql", name="save_query", methods=["PUT"], takes=[name],
        body={"application/json": {"schema": SAVED_SCHEMA}}, tag="sql")  # fmt: skip
    add_route(app, "/v1/saved_queries/{name:path}", remove_query, "sql", name="delete_query", methods=["DELETE"],
        takes=[name], tag="sql")  # fmt: skip
