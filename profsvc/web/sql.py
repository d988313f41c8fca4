"""``/v1/sql``: read-only, bounded SQL over the views, as JSON, or whole as CSV and NDJSON."""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from anyio import to_thread
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from profsvc import specs, store
from profsvc.errors import UsageError
from profsvc.reports.rows import distinct
from profsvc.web.answers import FORMS, streamed, success
from profsvc.web.asked import Asked, object_of
from profsvc.web.routes import SUCCESS, add, asks, rows_schema
from profsvc.web.site import Site, site_of

KEYS = {"q", "params", "limit", "seconds", "example"}
EXAMPLE = "select kernel_short, criterion, value, speedup from v1_criteria order by value limit 5"
TAKES = (
    asks("q", "string", "one SELECT over the v1_ views", EXAMPLE),
    asks("example", "string", "instead: the name of an example, as /v1/sql/examples lists them"),
    asks("p.NAME", "string", "value of :NAME in the query, as text; any number of them"),
    asks("limit", "integer", "rows at most, no more than the service's own limit", minimum=1),
    asks("seconds", "number", "time at most, no more than the service's own limit"),
    asks("formula", "string", "csv: safe puts a ' before what a spreadsheet would run", enum=["safe", "raw"]),
)
BODY = {
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


class Question(NamedTuple):
    """A query as it was asked, its limits within those of the service."""

    sql: str
    params: Mapping[str, Any]
    limit: int
    seconds: float


def question_of(site: Site, sql: Any, example: Any, params: Mapping[str, Any], limit: Any, seconds: Any) -> Question:
    """Return a question within the limits of the service; refuse what is beyond them."""
    if bool(sql) == bool(example) or not isinstance(sql or example, str):
        raise UsageError("give one query as q, or the name of one example as example; /v1/sql/examples lists them")
    if example:
        question = specs.question(example)
        sql, params = question.sql, question.values({name: str(value) for name, value in params.items()})
    for name, value in params.items():
        if not isinstance(value, str | int | float | None) or isinstance(value, bool):
            raise UsageError(f"the value of :{name} must be a text, a number or null")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(f"the value of :{name} does not fit into 64 bits")
    names = store.names_in(sql)
    if unused := [name for name in params if name not in names]:
        there = ", ".join(f":{name}" for name in names) or "none"
        raise UsageError(f"a value of :{unused[0]} is given, but the query has no :{unused[0]}; it has {there}")
    most, longest = site.limits.sql_rows, site.limits.sql_seconds
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most:
        raise UsageError(f"limit={limit!r} must be a whole number from 1 to {most}; .csv and .ndjson give all rows")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= longest:
        raise UsageError(f"seconds={seconds!r} must be more than 0 and no more than {longest:g}")
    return Question(sql, params, limit, float(seconds))


def _asked_in_url(site: Site, request: Request) -> tuple[Question, str]:
    asked = Asked(request)
    limit = asked.number("limit", int, site.limits.sql_rows, "a whole number")
    seconds = asked.number("seconds", float, site.limits.sql_seconds, "a number")
    formula = asked.among("formula", ("safe", "raw"), "safe")
    found = question_of(site, asked.text("q"), asked.text("example"), asked.starting("p."), limit, seconds)
    asked.done()
    return found, formula


async def _asked_in_body(site: Site, request: Request) -> Question:
    await request.body()
    Asked(request).done()
    try:
        body = object_of(await request.json(), "the body")
    except (ValueError, RecursionError):
        raise UsageError('the body must be JSON, such as {"q": "select 1", "params": {}}') from None
    if unknown := sorted(body.keys() - KEYS):
        raise UsageError(f"the body has {unknown[0]!r}, which is not known; it can have {', '.join(sorted(KEYS))}")
    limit, seconds = body.get("limit", site.limits.sql_rows), body.get("seconds", site.limits.sql_seconds)
    params = object_of(body.get("params", {}), "params")
    return question_of(site, body.get("q"), body.get("example"), params, limit, seconds)


async def ask(site: Site, question: Question) -> store.Answer:
    """Ask when there is a turn."""
    began = time.monotonic()
    asked = partial(
        store.query, site.engine, question.sql, question.params, max_rows=question.limit, seconds=question.seconds
    )
    async with site.asking.turn():
        try:
            return await to_thread.run_sync(asked)
        except UsageError:
            site.meters.sql_refused.inc()
            raise
        finally:
            site.meters.sql_seconds.observe(time.monotonic() - began)


async def _answer(request: Request, site: Site, question: Question) -> Response:
    found = await ask(site, question)
    return await to_thread.run_sync(_told, request, found, question)


def _told(request: Request, found: store.Answer, question: Question) -> Response:
    columns = distinct(found.columns)
    body = {
        "columns": columns,
        "rows": [dict(zip(columns, row, strict=True)) for row in found.rows],
        "truncated": found.truncated,
        "next": None,
        "limits": {"rows": question.limit, "seconds": question.seconds},
    }
    return success(request, body)


async def get(request: Request) -> Response:
    """Answer one SELECT over the views; the query is in the URL."""
    site = site_of(request)
    question, _ = await to_thread.run_sync(_asked_in_url, site, request)
    return await _answer(request, site, question)


async def post(request: Request) -> Response:
    """Answer one SELECT over the views; the query is in the body."""
    site = site_of(request)
    return await _answer(request, site, await _asked_in_body(site, request))


async def _whole(request: Request, form: str) -> Response:
    site = site_of(request)
    question, formula = await to_thread.run_sync(_asked_in_url, site, request)
    return await streamed(request, form, question.sql, question.params, "sql", raw=formula == "raw")


async def as_csv(request: Request) -> Response:
    """Answer one SELECT with all its rows, as CSV."""
    return await _whole(request, "csv")


async def as_ndjson(request: Request) -> Response:
    """Answer one SELECT with all its rows, a JSON object a line."""
    return await _whole(request, "ndjson")


async def examples(request: Request) -> Response:
    """List the example queries."""
    Asked(request).done()
    listed = [
        {"name": one.name, "title": one.title, "sql": one.sql, "params": dict(one.params)}
        for one in specs.questions().values()
    ]
    return success(request, {"examples": listed})


def register(app: FastAPI) -> None:
    """Add the routes."""
    gives = {"application/json": {"schema": rows_schema()}}
    add(app, "/v1/sql", get, "sql", name="ask_sql", takes=TAKES, gives=gives, tag="sql")
    add(app, "/v1/sql.json", get, "sql", name="ask_sql_json", takes=TAKES, gives=gives, tag="sql")
    body = {"application/json": {"schema": BODY}}
    add(app, "/v1/sql", post, "sql", name="ask_sql_in_body", methods=["POST"], gives=gives, body=body, tag="sql")
    for form, handler in (("csv", as_csv), ("ndjson", as_ndjson)):
        text = {FORMS[form].partition(";")[0]: {"schema": {"type": "string"}}}
        add(app, f"/v1/sql.{form}", handler, "sql", name=f"ask_sql_{form}", takes=TAKES, gives=text, tag="sql")
    add(app, "/v1/sql/examples", examples, "read", name="list_sql_examples",
        gives={"application/json": {"schema": SUCCESS}}, tag="sql")  # fmt: skip
