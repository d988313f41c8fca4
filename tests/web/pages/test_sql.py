"""The page of SQL: its grid, its charts, saved queries, and what it says of a query that is cut or refused."""

import json
from urllib.parse import urlencode

import pytest

from profsvc import store
from profsvc.client import Client
from profsvc.web.http.state import Limits
from tests.web.conftest import error_of, running
from tests.web.pages.conftest import window

LONG = "select 'a' as first, '" + "long <b> " * 200 + "' as text, 2 as number"
BARS = "select kernel_short, run_id, launch_id, duration_ns from v1_launches order by duration_ns desc limit 5"


def sql(**args):
    return f"/sql?{urlencode(args)}"


def test_a_long_value_opens_where_it_is_cut(browser_page):
    page = browser_page.page
    browser_page.open(sql(q=LONG))
    cut = page.locator(".cut")
    assert "…" in cut.locator("summary").inner_text()
    assert len(cut.inner_text()) < 100
    cut.locator("summary").press("Enter")
    assert cut.inner_text().count("long <b>") > 200


def test_the_first_column_and_the_titles_stay_in_view(browser_page):
    page = browser_page.page
    browser_page.open(sql(q="select * from v1_counters"))
    grid = page.locator(".grid")
    grid.evaluate("one => one.scrollTo(5000, 300)")
    box = grid.bounding_box()
    row = page.locator(".grid tbody tr:nth-child(14) td:first-child").bounding_box()
    title = page.locator(".grid thead th:first-child").bounding_box()
    assert abs(row["x"] - box["x"]) < 2
    assert abs(title["y"] - box["y"]) < 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("kind", ["line", "points", "bars"])
def test_a_result_is_drawn_and_leads_to_its_launches(browser_page, kind):
    page = browser_page.page
    browser_page.open(sql(q=BARS))
    assert page.locator("[data-chart]").count() == 0
    page.click(".choose-chart summary")
    page.select_option("#c-chart", kind)
    page.select_option("#c-y", "duration_ns")
    page.click(".choose-chart button")
    chart = page.locator("[data-chart=query].live")
    chart.wait_for()
    assert f"chart={kind}" in page.url
    chart.focus()
    page.keyboard.press("Home")
    assert "gemm_naive" in chart.locator("[aria-live]").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/launches/*")


def test_times_and_series_of_a_result_are_drawn(browser_page):
    page = browser_page.page
    query = "select started_at, name, launches, project from v1_runs where started_at is not null"
    browser_page.open(sql(q=query, chart="line", x="started_at", y="launches", by="project"))
    chart = page.locator("[data-chart=query].live")
    chart.wait_for()
    assert "lab" in chart.locator(".legend").inner_text()
    chart.focus()
    page.keyboard.press("End")
    assert "started_at: 20" in chart.locator("[aria-live]").inner_text()


def test_a_column_that_is_gone_is_named_where_it_was_drawn(shown):
    html = shown.html(sql(q="select name, launches from v1_runs", chart="bars", x="name", y="lost"))
    assert "no column lost" in html
    assert 'data-y="launches"' in html
    assert "choose-chart" not in shown.html(sql(q="select name from v1_runs"))


def test_ctrl_enter_runs_the_query(browser_page):
    page = browser_page.page
    browser_page.open("/sql")
    page.fill("#q", "select 41 + 1 as answer")
    page.press("#q", "Control+Enter")
    page.wait_for_selector(".grid td:has-text('42')")


def test_a_query_is_saved_opened_and_deleted_with_undo_without_script(chromium, service, profile):
    service.upload(profile, run="one")
    query = "select kernel_short, duration_ns from v1_launches where duration_ns > cast(:least as real)"
    with window(chromium, service.url, java_script_enabled=False) as found:
        page = found.page
        found.open(sql(q=query, **{"p.least": "0"}, chart="bars", y="duration_ns"))
        page.fill("#save-name", 'slow "<i>"')
        page.click(".save button[value=save]")
        page.wait_for_url("**saved=*")
        assert page.input_value("#p-1") == "0"
        assert page.input_value("#c-chart") == "bars"
        assert page.locator(".grid tbody tr").count()
        page.fill("#q", f"{query} order by 1")
        page.click("button.main")
        assert "saved=" in page.url
        page.click(".save button[value=save]")
        assert service.ok("/v1/saved_queries")["rows"][0]["sql"].endswith("order by 1")
        page.click(".save button[value=delete]")
        assert "Deleted the saved query" in page.inner_text("main")
        assert service.ok("/v1/saved_queries")["rows"] == []
        assert page.input_value("#q").endswith("order by 1")
        page.click("button.main")
        page.fill("#save-name", "again")
        page.click(".save button[value=save]")
        assert [row["name"] for row in service.ok("/v1/saved_queries")["rows"]] == ["again"]
        found.open(sql(q="select 1 as a"))
        page.fill("#save-name", "again")
        page.click(".save button[value=save]")
        assert "already saved" in page.inner_text("main")
        found.wrong[:] = [one for one in found.wrong if "400" not in one]


def test_queries_are_saved_over_http_and_by_the_client(site, engine):
    with running(site()) as service, Client(service.url) as client:
        chart = {"kind": "line", "x": "a", "y": "b"}
        saved = client.save_query("lab/one, <two>", "select 1 as a, 2 as b", {"other": "1"}, chart)
        assert (saved["params"], saved["chart"], saved["author"]) == ({}, chart, None)
        rows = client.table("saved_queries")
        assert list(rows["name"]) == ["lab/one, <two>"]
        for body, words in (
            ({}, "needs a SELECT"),
            ({"sql": "select 1", "chart": {"kind": "pie"}}, "kind of chart"),
            ({"sql": "select 1", "chart": {"kind": "line", "z": "a"}}, "unknown key"),
            ({"sql": "select 1", "params": {"a": 1}}, "object of strings"),
            ({"sql": "select 1", "params": []}, "object of strings"),
        ):
            answer = service.http.put(f"{service.url}/v1/saved_queries/n", json=body)
            assert answer.status_code == 400, answer.text
            assert words in error_of(answer)["message"]
        assert client.delete_query("lab/one, <two>")["sql"] == "select 1 as a, 2 as b"
        assert service.http.delete(f"{service.url}/v1/saved_queries/n").status_code == 404
        token = store.create_token(engine, "me", ["sql", "read"])
        head = {"authorization": f"Bearer {token}"}
        answer = service.http.put(f"{service.url}/v1/saved_queries/n", json={"sql": "select 1"}, headers=head)
        assert answer.json()["query"]["author"] == "me"
        reader = {"authorization": f"Bearer {store.create_token(engine, 'reader', ['read'])}"}
        assert service.http.delete(f"{service.url}/v1/saved_queries/n", headers=reader).status_code == 403


def test_a_cut_result_says_why_and_where_all_rows_are(site, profile):
    with running(site(limits=Limits.from_settings()._replace(sql_rows=2))) as service:
        service.upload(profile, run="one")
        html = service.http.get(f"{service.url}{sql(q='select 1 union all select 2 union all select 3')}").text
    assert "has at most 2" in html
    assert "CSV and NDJSON have all rows" in html


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select nmae from v1_runs", "v1_runs has name"),
        ("select sector from v1_runs", "Columns of v1_runs"),
        ("select cause from v1_launches", "cause is a column of v1_causes"),
        ("select * from v1_runz", "did you mean v1_runs"),
    ],
)
def test_a_refused_query_is_explained(shown, query, words):
    assert words in shown.html(sql(q=query))


def test_a_query_over_its_time_says_what_may_take_longer(site, profile):
    slow = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000000) select max(i) from n"
    with running(site(limits=Limits.from_settings()._replace(sql_seconds=0.2))) as service:
        answer = service.get("/sql", q=slow)
    assert answer.status_code == 400
    assert "downloads may take" in answer.text


def test_saved_values_are_texts_of_the_view(shown):
    store.save_query(shown.service.site.engine, "sums", "select sum(launches) as n from v1_runs")
    try:
        (row,) = shown.service.ok("/v1/saved_queries")["rows"]
        assert (row["params"], row["chart"]) == ({}, {})
        line = json.loads(shown.service.get("/v1/saved_queries.ndjson").text)
        assert line["params"] == {}
        assert "sums" in shown.service.get("/sql", saved="sums").text
    finally:
        store.delete_query(shown.service.site.engine, "sums")
