"""``/sql``: a SELECT over the views, its values as fields of a form, its rows, and what there is to ask."""

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
from profsvc.reports.text import middle
from profsvc.web import sql
from profsvc.web.asked import Asked
from profsvc.web.pages.frame import page, path_to
from profsvc.web.pages.words import NONE, count
from profsvc.web.routes import add_page
from profsvc.web.site import Site, site_of

ROWS = 200
MOST_PAGES = 1_000_000
LONGEST_CELL = 120
START = "select run_id, project, name, device, launches, gpu_time_ns\nfrom v1_runs order by run_id desc limit 20"
_WORD = re.compile(r"v1_\w+")
_PLACE = re.compile(r" \(line (?P<line>\d+), column (?P<column>\d+)\)$")


class Query(NamedTuple):
    """A query as the page has it: its text, the values of its names, and which of its pages is wanted."""

    text: str
    values: Mapping[str, str]
    place: int
    example: str

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The names of its values, each with what is known of it."""
        return [(name, self.values.get(name, "")) for name in store.names_in(self.text)]

    @property
    def missing(self) -> list[str]:
        """Return the names that nothing is given for."""
        return [name for name in store.names_in(self.text) if name not in self.values]


def _query(request: Request) -> Query:
    asked = Asked(request)
    text, example, values = asked.text("q"), asked.text("example"), asked.starting("p.")
    place = asked.count("page", 1, MOST_PAGES)
    asked.done()
    if example and not text:
        question = specs.question(example)
        text, values = question.sql, question.values(values)
    return Query(text, values, place, example)


async def show(request: Request) -> Response:
    """Show the page, with the answer to the query in its URL where there is one."""
    site = site_of(request)
    query = await to_thread.run_sync(_query, request)
    said, answer = "", None
    if query.text and query.missing:
        said = f"Give a value for {', '.join(f':{name}' for name in query.missing)}."
    elif query.text:
        try:
            answer = await sql.ask(site, _question(site, query))
        except (UsageError, OverloadedError) as error:
            return await to_thread.run_sync(_written, request, query, None, error)
    return await to_thread.run_sync(_written, request, query, answer, said)


def _question(site: Site, query: Query) -> sql.Question:
    known = {name: query.values[name] for name in store.names_in(query.text)}
    return sql.question_of(site, query.text, "", known, site.limits.sql_rows, site.limits.sql_seconds)


def _written(request: Request, query: Query, answer: store.Answer | None, said: str | ProfsvcError) -> Response:
    limits = site_of(request).limits
    asked = {"q": query.text} | {f"p.{name}": value for name, value in query.values.items()}
    downloads = {form: _path(request, f"/v1/sql.{form}", asked) for form in ("csv", "ndjson", "json")}
    return page(
        request, "sql.html", "SQL", status=said.status if isinstance(said, ProfsvcError) else 200, query=query,
        limits=limits, said=str(said), place=_place(said, query),
        downloads=downloads if query.text and not query.missing else {}, examples=list(specs.questions().values()),
        text=_editable(query.text or START), schema=_schema(), found=_found(request, query, answer) if answer else None,
    )  # fmt: skip


def _editable(text: str) -> str:
    """Return a query as a field shows it: its lines and tabs as they are, what else would act as escapes."""
    return "".join(one if one in "\n\t" else visible(one) for one in text.replace("\r\n", "\n"))


def _path(request: Request, path: str, asked: Mapping[str, str]) -> str:
    """A path with its questions; an empty value is a value here."""
    from urllib.parse import urlencode

    return f"{path_to(request, path)}?{urlencode(asked)}"


def _place(said: str | ProfsvcError, query: Query) -> dict[str, Any] | None:
    """The line that an error is about, and what stands before the place in it."""
    found = _PLACE.search(str(said))
    if found is None:
        return None
    lines = query.text.split("\n")
    line, column = int(found["line"]), int(found["column"])
    own = lines[line - 1] if line <= len(lines) else ""
    begin = max(0, column - 60)
    return {"line": line, "column": column, "before": visible(own[begin : column - 1]),
            "after": visible(own[column - 1 :][:60])}  # fmt: skip


def _found(request: Request, query: Query, answer: store.Answer) -> dict[str, Any]:
    """A page of the rows, and how many there are."""
    first = (query.place - 1) * ROWS
    part = answer.rows[first : first + ROWS]
    columns = distinct(answer.columns)
    views = [view for view in store.VIEWS if view in set(_WORD.findall(query.text))]
    asked = {"q": query.text} | {f"p.{name}": value for name, value in query.values.items()}

    def turned(place: int) -> str:
        return _path(request, "/sql", asked | {"page": str(place)})

    more = first + ROWS < len(answer.rows)
    total = f"more than {count(len(answer.rows))}" if answer.truncated else count(len(answer.rows))
    return {
        "columns": [
            (visible(name), _explained(name, views, _is_number(part, place)), _is_number(part, place))
            for place, name in enumerate(columns)
        ],
        "rows": [[_cell(value) for value in row] for row in part],
        "truncated": answer.truncated,
        "kept": len(answer.rows),
        "range": f"rows {count(first + 1)} to {count(first + len(part))} of {total}" if part else f"{total} rows",
        "before": turned(query.place - 1) if query.place > 1 else "",
        "after": turned(query.place + 1) if more else "",
    }


def _explained(column: str, views: Sequence[str], is_number: bool) -> str:
    """What explains a column: that of a view in the query, a counter, else of numbers the query itself."""
    own = [f"{view}.{column}" for view in views if column in store.VIEWS[view][1]]
    counter = column if "v1_counters" in views and column in specs.counters() else ""
    return next(iter(own), counter or ("sql.result" if is_number else ""))


def _is_number(rows: Sequence[Sequence[Any]], place: int) -> bool:
    known = [row[place] for row in rows if row[place] is not None]
    return bool(known) and all(isinstance(one, int | float) for one in known)


def _cell(value: Any) -> tuple[str, str]:
    """Return what a cell shows, and all of it where that is more."""
    value = plain(value)
    if value is None:
        return NONE, ""
    if isinstance(value, float):
        short, whole = f"{value:.6g}", repr(value)
    else:
        whole = visible(str(value))
        short = middle(whole, LONGEST_CELL)
    return short, "" if short == whole else whole[:2000]


def _schema() -> list[dict[str, Any]]:
    """The views: what each is, and its columns with their kinds and meanings."""
    counters = {name: one.meaning for name, one in specs.counters().items()}
    made = []
    for view, (sentence, columns) in store.VIEWS.items():
        named = dict(columns) | (counters if view.startswith("v1_counters") else {})
        kinds = store.kinds_of(view)
        made.append({"name": view, "sentence": sentence,
                     "columns": [(name, kinds[name], meaning) for name, meaning in named.items()]})  # fmt: skip
    return made


def register(app: FastAPI) -> None:
    """Add the route."""
    add_page(app, "/sql", show, "sql", name="sql_page")
