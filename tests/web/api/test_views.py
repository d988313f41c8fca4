"""The views, SQL, runs and comparisons over HTTP say what the store says."""

import csv
import io
import json
import re

import httpx
import pytest

from profsvc import specs, store, views
from profsvc.errors import ServiceError
from profsvc.reports.rows import plain
from profsvc.views.comparison import two_runs as compare
from profsvc.views.explain import numbers as explain_numbers
from profsvc.web.api.views import PAGING_PARAMETERS, view_names
from profsvc.web.http.state import Limits
from tests.web.conftest import error_of, running


@pytest.mark.parametrize("view", store.VIEWS)
def test_every_view_is_there_page_by_page_and_whole(looked_at, view):
    name, engine = view.removeprefix("v1_"), looked_at.site.engine
    whole = store.select(engine, view)
    page = looked_at.ok(f"/v1/{name}", limit=3)
    assert page["columns"] == list(store.column_kinds_of(view))
    assert page["truncated"] == (len(whole) > 3) == (page["next"] is not None)
    if view in {"v1_metrics", "v1_columns", "v1_counter_values"}:
        return  # long, and like the others
    rows, path = page["rows"], page["next"]
    while path and len(rows) < 40:
        more = looked_at.get(path).json()
        rows, path = rows + more["rows"], more["next"]
    assert rows == json.loads(json.dumps(plain(store.parse_json_columns(view, whole[: len(rows)]))))


def test_no_column_is_called_as_what_steers_a_list():
    steering = {control["name"] for control in PAGING_PARAMETERS}
    for view in store.VIEWS:
        assert not steering & set(store.column_kinds_of(view))
        assert not [column for column in store.column_kinds_of(view) if "__" in column]
    assert not {"sql", "compare", "explain", "formats"} & set(view_names())


@pytest.mark.parametrize("form", ["csv", "ndjson", "json"])
def test_every_form_holds_the_same(looked_at, form):
    want = [(r["launch_id"], r["kernel_short"], r["duration_ns"]) for r in looked_at.ok("/v1/launches")["rows"]]
    answer = looked_at.get(f"/v1/launches.{form}", columns="launch_id,kernel_short,duration_ns", limit=100)
    whole = looked_at.get(f"/v1/launches.{form}", columns=["launch_id", "kernel_short", "duration_ns"])
    assert whole.content == answer.content
    if form == "csv":
        head, *rows = csv.reader(io.StringIO(answer.text))
        assert head == ["launch_id", "kernel_short", "duration_ns"]
        got = [(int(a), b, float(c)) for a, b, c in rows]
    else:
        lines = answer.json()["rows"] if form == "json" else [json.loads(line) for line in answer.text.splitlines()]
        got = [tuple(row.values()) for row in lines]
    assert got == want
    assert answer.headers["content-type"].startswith({"csv": "text/csv", "json": "application/json"}.get(form, "appl"))
    if form != "json":
        assert answer.headers["content-disposition"] == f'attachment; filename="launches.{form}"'


@pytest.mark.parametrize("form", ["", ".json", ".ndjson"])
def test_what_the_store_keeps_as_json_is_an_object(looked_at, form):
    answer = looked_at.get(f"/v1/uploads{form}")
    row = json.loads(answer.text.splitlines()[0]) if form == ".ndjson" else answer.json()["rows"][0]
    assert isinstance(row["facts"], dict)


def test_columns_of_json_are_those_whose_meaning_says_so():
    said = {
        view: tuple(name for name, meaning in meanings.items() if re.search("JSON (object|list)|as JSON", meaning))
        for view, (_, meanings) in store.VIEWS.items()
    }
    assert {view: columns for view, columns in said.items() if columns} == store.JSON_COLUMNS


def test_filters_and_orders(looked_at):
    every = looked_at.ok("/v1/launches")["rows"]

    def ids(**params):
        return [row["launch_id"] for row in looked_at.ok("/v1/launches", **params)["rows"]]

    middle = sorted(row["duration_ns"] for row in every)[len(every) // 2]
    kernel = every[0]["kernel_short"]
    assert ids(kernel_short=kernel) == [r["launch_id"] for r in every if r["kernel_short"] == kernel] != []
    assert ids(kernel_short__ne=kernel) == [r["launch_id"] for r in every if r["kernel_short"] != kernel]
    for how, holds in (("gt", float.__gt__), ("gte", float.__ge__), ("lt", float.__lt__), ("lte", float.__le__)):
        found = ids(**{f"duration_ns__{how}": middle})
        assert found == [r["launch_id"] for r in every if holds(r["duration_ns"], middle)] != []
    assert ids(kernel__contains="REDUCE_V1") == [r["launch_id"] for r in every if "reduce_v1" in r["kernel"]] != []
    assert ids(kernel__contains="%") == ids(kernel__contains="_x_") == []
    assert ids(start_ns__null=1, duration_ns__null=0) == [r["launch_id"] for r in every if r["start_ns"] is None]
    assert ids(order="-launch_id") == [r["launch_id"] for r in every][::-1]
    slow = sorted(every, key=lambda r: (-r["duration_ns"], r["launch_id"]))
    assert ids(order="-duration_ns") == [r["launch_id"] for r in slow]
    assert ids(order=["kernel_short", "-duration_ns"], limit=1) == [
        min(every, key=lambda r: (r["kernel_short"], -r["duration_ns"]))["launch_id"]]  # fmt: skip


@pytest.mark.parametrize("order", ["launch_id", "-launch_id", "-duration_ns"])
def test_pages_follow_each_other(looked_at, order):
    whole = looked_at.ok("/v1/launches", order=order, columns="kernel_short")["rows"]
    found, path = [], f"/v1/launches?order={order}&limit=7&columns=kernel_short"
    while path:
        page = looked_at.get(path).json()
        found, path = found + page["rows"], page["next"]
    assert found == whole
    cut = looked_at.get("/v1/launches.csv", limit=7)
    assert cut.headers["x-truncated"] == "true"
    assert cut.headers["link"].endswith('rel="next"')
    assert len(list(csv.reader(io.StringIO(cut.text)))) == 8


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/launches?kernle=a", "did you mean 'kernel'"),
        ("/v1/launches?duration_ns__above=1", "no filter on duration_ns named 'above'"),
        ("/v1/launches?duration_ns=fast", "must be a number"),
        ("/v1/launches?duration_ns__gt=nan", "must be a number"),
        ("/v1/launches?launch_id=1.5", "a whole number"),
        ("/v1/launches?launch_id=99999999999999999999", "a whole number"),
        ("/v1/launches?launch_id=%D9%A1", "a whole number"),
        ("/v1/launches?duration_ns__contains=1", "contains nothing"),
        ("/v1/launches?start_ns__null=yes", "must be 1"),
        ("/v1/launches?limit=0", "from 1 to 10000"),
        ("/v1/launches?limit=10001", "from 1 to 10000"),
        ("/v1/launches?limit=1&limit=2", "given 2 times"),
        ("/v1/launches?order=fast", "no column of v1_launches named 'fast'"),
        ("/v1/launches?columns=fast", "no column of v1_launches named 'fast'"),
        ("/v1/launches?after=x1", "is not what the page before gave"),
        ("/v1/launches?after=o5", "is not what the page before gave"),
        ("/v1/launches.csv?formula=none", "safe or raw"),
        ("/v1/launches?kernel=a%00b", "NUL"),
        ("/v1/sql", "give either q"),
        ("/v1/sql?q=select+1&example=top_kernels", "give either q"),
        ("/v1/sql?q=select+*+from+runs", "cannot be read"),
        ("/v1/sql?q=select+*+from+tokens", "cannot be read"),
        ("/v1/sql?q=drop+table+runs", "only a SELECT"),
        ("/v1/sql?q=select+1&limit=0", "from 1 to"),
        ("/v1/sql?q=select+1&seconds=11", "no more than 10"),
        ("/v1/sql?q=select+1&seconds=nan", "no more than 10"),
        ("/v1/sql?q=select+1&x=1", "no parameter named 'x'"),
        ("/v1/sql?q=select+1&p.a=1", "the query has no parameter :a; it has none"),
        ("/v1/sql.csv?q=select+:a&p.a=1&p.b=2", "the query has no parameter :b; it has :a"),
        ("/v1/sql.csv?q=selec+1", "invalid query"),
        ("/v1/compare?before=h200", "after is missing"),
        ("/v1/compare?before=h200&after=h200&fail_on=x", "'x' is not a limit"),
        ("/v1/compare?before=h200&after=h200&map=x", "must have the form"),
        ("/v1/explain/divergence?kernel=1", "also give run"),
        ("/v1/runs/h200?limit=0", "from 1 to"),
        ("/v1/formats?x=1", "takes no parameters; remove 'x'"),
    ],
)  # fmt: skip
def test_a_wrong_question_says_what_is_wrong(looked_at, path, words):
    assert words in looked_at.refused(path, 400)


MISSING = (
    *("/v1/runs/h20", "/v1/runs/99", "/v1/nothing", "/v1/runs/h200?kernel=nope", "/v1/LAUNCHES", "/v1/runs/"),
    *("/v1/launches/", "//v1/runs", "/v1/explain/nope", "/v1/sql?example=nope", "/v1/runs/..%2F..%2Fetc%2Fpasswd"),
)


@pytest.mark.parametrize("path", MISSING)
def test_what_is_not_there_is_not_found(looked_at, path):
    looked_at.refused(path, 404)


def test_sql_is_answered_from_url_and_body(looked_at):
    query = "select kernel_short, duration_ns from v1_launches where duration_ns > cast(:least as real) order by 2 desc"
    want = store.query(looked_at.site.engine, query, {"least": "5000"}, max_rows=3)
    by_url = looked_at.ok("/v1/sql", q=query, limit=3, **{"p.least": "5000"})
    assert [tuple(row.values()) for row in by_url["rows"]] == want.rows
    assert (by_url["truncated"], by_url["limits"]) == (True, {"rows": 3, "seconds": 10.0})
    body = {"q": query, "params": {"least": 5000}, "limit": 3}
    by_body = looked_at.http.post(f"{looked_at.url}/v1/sql", json=body).json()
    assert {**by_url, "ok": True} == by_body
    whole = looked_at.get("/v1/sql.csv", q=query, **{"p.least": "5000"}).text
    assert len(whole.splitlines()) == 1 + len(store.query(looked_at.site.engine, query, {"least": "5000"}).rows)
    assert looked_at.get("/v1/sql.ndjson", q="select 1 as a where 0 = 1").text == ""
    assert looked_at.get("/v1/sql.csv", q="select 1 as a where 0 = 1").text == "a\n"
    twice = looked_at.ok("/v1/sql", q="select 1 as a, 2 as a")
    assert twice["rows"] == [{"a": 1, "a_2": 2}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "must be JSON"), (b"[1]", "must be a JSON object"), (b"{", "must be JSON"), (b"\xff", "must be JSON"),
        (b'{"q": 1}', "give either q"), (b'{"q": "select 1", "x": 1}', "unknown key 'x' in the body"),
        (b'{"q": "select :a", "params": []}', "params must be a JSON object"),
        (b'{"q": "select :a", "params": {"a": 1, "b": 2}}', "the query has no parameter :b; it has :a"),
        (b'{"q": "select :a", "params": {"a": [1]}}', "must be a string, a number or null"),
        (b'{"q": "select :a", "params": {"a": 1e400}}', "invalid query|finite|Infinity|must be"),
        (b'{"q": "select :a", "params": {"a": 99999999999999999999}}', "64 bits"),
        (b'{"q": "select 1", "limit": true}', "whole number"), (b'{"q": "select 1", "limit": 1e9}', "whole number"),
        (b'{"q": "select 1", "seconds": "1"}', "more than 0"), (b"[" * 100_000, "must be JSON"),
    ],
)  # fmt: skip
def test_a_wrong_body_says_what_is_wrong(looked_at, body, words):
    answer = looked_at.http.post(f"{looked_at.url}/v1/sql", content=body)
    if b"1e400" in body and answer.status_code == 200:
        return  # a number too large is infinite, and a database may take it
    assert answer.status_code == 400, answer.text
    assert any(word in error_of(answer)["message"] for word in words.split("|"))


def test_examples_are_listed_and_run(looked_at):
    listed = looked_at.ok("/v1/sql/examples")["examples"]
    assert [one["name"] for one in listed] == list(specs.questions())
    assert looked_at.ok("/v1/sql", example=listed[0]["name"])["columns"]


def test_a_query_that_takes_too_long_is_stopped(site, profile):
    with running(site(limits=Limits(sql_seconds=0.3, sql_export_seconds=0.3))) as service:
        endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
        assert "took longer than 0.3 s" in service.refused("/v1/sql", 400, q=endless)
        assert "profsvc_sql_refused_total 1.0" in service.get("/metrics").text
        rows = "with recursive n(i) as (select 1 union all select i + 1 from n) select i from n"
        for form, begins in (("csv", '"error: '), ("ndjson", '{"ok":false')):
            text, whole = "", True
            with service.http.stream("GET", f"{service.url}/v1/sql.{form}", params={"q": rows}) as answer:
                try:
                    for piece in answer.iter_text():
                        text += piece
                except httpx.RemoteProtocolError:
                    whole = False
            assert not whole
            assert text.splitlines()[-1].startswith(begins)
        assert service.site.query_limit.in_use == 0


def test_runs_launches_comparisons_and_explanations_are_those_of_the_command_line(looked_at):
    engine = looked_at.site.engine

    def same(found, want):
        assert found == json.loads(json.dumps(plain(want)))

    same(looked_at.ok("/v1/runs/h200"), views.run(engine, "h200"))
    same(looked_at.ok("/v1/runs/demo%2Fh200", limit=2), views.run(engine, 1, 2))
    same(looked_at.ok("/v1/runs/1", kernel="gemm", limit=5), views.launch(engine, "h200", "gemm", 5))
    found = looked_at.ok("/v1/compare", before="h200", after=1, fail_on="duration=5%")
    assert found.pop("failures") == found.pop("unjudged") == []
    same(found, compare.compare(engine, "h200", "h200"))
    same(looked_at.ok("/v1/explain/divergence"), explain_numbers.explain(None, "divergence", None, None))
    same(
        looked_at.ok("/v1/explain/divergence", run="h200", kernel="0"),
        explain_numbers.explain(engine, "divergence", "h200", "0"),
    )
    assert looked_at.ok("/v1/formats")["formats"] == views.readers()


@pytest.mark.parametrize("name", ["run_id__gte", "columns", "order"])
def test_more_filters_and_columns_than_a_database_takes_are_refused(looked_at, name):
    many = [(name, "1" if name.startswith("run") else "run_id")] * 3000
    for form in ("", ".csv"):
        answer = looked_at.http.get(f"{looked_at.url}/v1/runs{form}", params=many)
        assert answer.status_code == 400
        assert "3000" in error_of(answer)["message"]


def test_a_failure_of_the_store_tells_nobody_where_it_lies(looked_at, monkeypatch):
    engine = looked_at.site.engine

    def fails(*_, **__):
        raise ServiceError(f"{store.address(engine)}: {engine.url.database} in {looked_at.site.files.folder}: away")

    monkeypatch.setattr(store, "list_view", fails)
    assert looked_at.refused("/v1/runs", 503) == "the store: the store in the store: away"
