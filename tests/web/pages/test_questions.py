"""SQL, comparisons and power as pages: what is asked, what is answered, and no name that acts."""

import re

import pytest

from profsvc import store
from profsvc.web.http.state import AppState, Limits
from tests.views import histories
from tests.web.conftest import running

HTML = {"accept": "text/html"}
SCRIPT = "<script>alert(1)</script>{{7*7}}%s"
ACTS = "=cmd|x\x1b[2J\u202e\x00&#106;".replace("\x00", "")
LONG = "k" * 1_000_000
HOSTILE = (SCRIPT, ACTS, LONG, "../../etc/passwd\r\nSet-Cookie: a=b", "' or 1=1 --")


def page(service, path, status=200, **params):
    answer = service.http.get(service.url + path, headers=HTML, params=params or None)
    assert answer.status_code == status, answer.text[:300]
    return answer.text


def asked(service, query, status=200, **values):
    return page(service, "/sql", status, q=query, **{f"p.{name}": value for name, value in values.items()})


def test_rows_of_a_query_are_paged_and_given_whole(looked_at):
    shown = asked(looked_at, "select * from v1_criteria")
    assert "rows 1 to 200 of 281" in shown
    following = re.search(r'rel="next" href="([^"]+)"', shown)[1].replace("&amp;", "&")
    assert "rows 201 to 281 of 281" in page(looked_at, following)
    csv = re.search(r'href="(/v1/sql.csv[^"]+)" download', shown)[1].replace("&amp;", "&")
    assert len(looked_at.get(csv).text.splitlines()) == 282
    assert "The query returned no rows" in asked(looked_at, "select * from v1_runs where run_id < 0")
    assert 'title="0.3333333333333333">0.333333<' in asked(looked_at, "select 1 / 3.0 as third")


def test_a_cut_result_says_so(demo):
    with running(AppState(demo, store.blob_store_of(demo), limits=Limits(sql_rows=7))) as service:
        shown = asked(service, "select launch_id from v1_launches")
    assert "Cut: the query has more rows than the 7 that are here" in shown
    assert "of more than 7" in shown


def test_names_of_values_are_fields(looked_at):
    query = "select name from v1_runs where name = :name and ':no' <> :other"
    shown = asked(looked_at, query)
    assert "Give a value for :name, :other." in shown
    assert 'name="p.name"' in shown
    assert 'name="p.no"' not in shown
    assert "rows 1 to 1 of 1" in asked(looked_at, query, name="h200", other="")
    example = page(looked_at, "/sql", example="top_kernels")
    assert "rows 1 to" in example
    assert 'name="p.run"' in example
    page(looked_at, "/sql", 404, example="nothing")


@pytest.mark.parametrize(
    ("query", "said", "before", "after"),
    [
        ("select nmae\nfrom v1_runs", "line 1, column 8", "select ", "nmae"),
        ("select name\nform v1_runs", "line 2, column 6", "form ", "v1_runs"),
        ("select * from runs", "did you mean v1_runs? (line 1, column 15)", "select * from ", "runs"),
    ],
)
def test_an_error_says_where(looked_at, query, said, before, after):
    shown = asked(looked_at, query, 400)
    assert said in shown
    assert f"{before}<mark>{after}</mark>" in shown


def test_every_view_is_described(looked_at):
    shown = page(looked_at, "/sql")
    for view in store.VIEWS:
        assert f"<code>{view}</code>" in shown


def test_ctrl_enter_asks(browser_page):
    browser_page.open("/sql")
    field = browser_page.page.locator("#q")
    field.fill("select 6 * 7 as answer")
    with browser_page.page.expect_navigation():
        field.press("Control+Enter")
    assert "q=select+6" in browser_page.page.url
    assert browser_page.page.inner_text("td") == "42"


@pytest.fixture(scope="module")
def attacked(tmp_path_factory):
    """A service on runs, kernels, devices, projects and windows of power with hostile names."""
    engine = store.open_store(str(tmp_path_factory.mktemp("attacked") / "store.sqlite"), pooled=True)
    for number, name in enumerate(HOSTILE):
        for time in range(2):
            run = histories.put(engine, f"{name}{time}", 100.0 + number, project=name, commit_id=name, device=name)
            histories.power(engine, run, 300.0, 50.0, name, quality=name, reason=name)
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        yield service
    engine.dispose()


def test_no_name_acts_on_any_page(attacked):
    paths = ["/compare", "/history", "/findings", "/reports", "/sql", "/history?kernel=saxpy"]
    for run in range(1, 2 * len(HOSTILE), 2):
        paths += [f"/compare?before={run}&after={run + 1}", f"/runs/{run}/power"]
    for path in paths:
        answer = attacked.http.get(attacked.url + path, headers=HTML)
        assert answer.status_code == 200, (path, answer.text[:300])
        assert "set-cookie" not in answer.headers
        assert len(answer.content) < 600_000, path
        for wrong in ("<script>alert", "\x1b", "\u202e", "49%s", LONG[:20_000]):
            assert wrong not in answer.text, (path, wrong[:20])


@pytest.mark.parametrize("name", [name for name in HOSTILE if len(name) < 1000])
def test_no_question_acts(attacked, name):
    for path, params, status in (
        ("/history", {"kernel": name}, 404), ("/history", {"kernel": name, "quantity": "power"}, 200),
        ("/history", {"kernel": "saxpy", "project": name}, 200),
        ("/history", {"kernel": "saxpy", "device": name}, None),
        ("/compare", {"before": name, "after": name}, 404), ("/sql", {"q": name}, 400),
        ("/findings", {"kernel": name}, 200), ("/sql", {"q": "select :a as b", "p.a": name}, 200),
    ):  # fmt: skip
        answer = attacked.http.get(attacked.url + path, headers=HTML, params=params)
        assert answer.status_code == status or status is None, (path, params, answer.text[:500])
        assert "<script>alert" not in answer.text
        assert "\x1b" not in answer.text


def test_figures_of_a_device_are_written_as_engineers_write_them(looked_at):
    shown = re.sub(r"<[^>]*>", "", page(looked_at, "/devices/NVIDIA%20H200"))
    assert "\\u" not in shown
    for text in ("1\u202f024", "256 KiB", "60 MiB", "4.814 TB/s", "6\u202f016 bit"):
        assert text in shown, text


def test_the_name_on_the_screen_is_taken_wherever_a_kernel_is_asked_for(looked_at, demo):
    (one,) = store.kernels_named(demo, "gemm_tiled<32>")
    assert "<32>" in one["kernel"]
    run = store.find_run(demo, "h200")
    for path, asked in (
        ("/v1/history", {"kernel": "gemm_tiled<32>"}),
        (f"/v1/runs/{run}", {"kernel": "gemm_tiled<32>"}),
        ("/v1/compare", {"before": run, "after": run, "map": "gemm_tiled<32>=gemm_tiled<16>"}),
    ):
        answer = looked_at.get(path, **asked)
        assert answer.status_code == 200, answer.text
        assert "gemm_tiled<32>" in answer.text
    refused = looked_at.get("/v1/history", kernel="gemm_tiled")
    assert refused.status_code == 400
    assert "gemm_tiled<16> (#" in refused.text
    for kernel in (f"#{one['kernel_id']}", "gemm_tiled<32>"):
        assert 'name="kernel" type="search" value="gemm_tiled&lt;32&gt;"' in page(looked_at, "/history", kernel=kernel)
    assert 'name="before" type="search" list="newest" value="h200"' in page(
        looked_at, "/compare", before=run, after=run
    )
