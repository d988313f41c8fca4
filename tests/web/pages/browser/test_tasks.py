"""What people do all day, in clicks from the list of runs; each also by one request and one call of a client."""

import csv
import gzip
import html
import re

import pytest

from profsvc import store
from profsvc.client import Client
from tests.conftest import ROOT
from tests.store.ingest.test_source_launches import both
from tests.web.conftest import running
from tests.web.pages.conftest import window


class Clicks:
    """A page that counts its clicks, from the list of runs."""

    def __init__(self, found, start="/"):
        self.page, self.clicks = found.page, 0
        found.open(start)

    def __call__(self, selector):
        self.clicks += 1
        self.page.locator(selector).first.click()
        self.page.wait_for_load_state("load")


@pytest.fixture
def clicks(browser_page):
    return Clicks(browser_page)


@pytest.fixture
def client(shown):
    with Client(shown.service.url) as found:
        yield found


def test_the_worst_kernel_and_cause(clicks, shown, client):
    clicks("main td a:text-is('h200')")
    first = clicks.page.inner_text("#first ~ .wide tbody tr:first-child")
    assert clicks.clicks == 1
    worst = max(shown.service.ok(shown.path("/v1/runs/{run}"))["causes"], key=lambda one: one["saving_ns"])
    assert worst["title"] in first
    assert worst["kernel"].partition("(")[0].split()[-1].split("<")[0] in first
    assert max(client.run(shown.numbers["run"])["causes"], key=lambda one: one["saving_ns"]) == worst


def test_the_evidence_of_the_worst(clicks, shown, client):
    clicks("main td a:text-is('h200')")
    clicks("#first ~ .wide tbody tr:first-child td a")
    assert clicks.clicks == 2
    assert clicks.page.locator(".advice li a[data-explain]").count() >= 2
    number = clicks.page.url.rpartition("/")[2]
    causes = client.rows("causes", launch_id=number)
    assert causes
    assert shown.service.ok("/v1/causes", launch_id=number)["rows"] == causes


def test_the_page_of_a_launch_begins_with_its_cause_as_one_sentence(shown, client):
    run, launch = shown.numbers["run"], shown.numbers["launch"]
    (one,) = client.launch(run, f"id:{launch}")["launches"]
    assert len(one["first"]) > 20
    text = html.unescape(shown.html("/runs/{run}/launches/{launch}"))
    (name, sentence, _) = re.findall(r"<p>(.*?)</p>", text.partition("<h1")[2], re.DOTALL)[:3]
    assert name.startswith("<code>")
    assert sentence == one["first"]
    assert shown.service.ok(f"/v1/runs/{run}", kernel=f"id:{launch}")["launches"][0]["first"] == sentence


def test_the_source_line_of_the_worst(chromium, site):
    """The pages of one launch: its counters, and its source with all samples on line 7."""
    kernel = "segments_a(const float *, const int *, float *, int)"
    lines = gzip.decompress((ROOT / "fixtures" / "flaws" / "ncu_raw_base.csv.gz").read_bytes()).splitlines(True)
    counters = b"".join([*lines[:2], *(line for line in lines[2:] if kernel.encode() in line)])
    with running(site()) as service, window(chromium, service.url) as found:
        for page in (counters, both(kernel, source="atomicAdd(sums + seg[i], v[i]);").encode()):
            assert service.upload(page, run="atomics").status_code == 201
        clicks = Clicks(found)
        clicks("main td a:text-is('atomics')")
        clicks("#first ~ .wide tbody tr:first-child td a")
        assert clicks.clicks == 2
        line = clicks.page.inner_text("main p:has(a[href$='/source'])")
        assert "a.cu line 7: 100.0 % of the samples, Long Scoreboard: atomicAdd(sums + seg[i], v[i]);" in line
        with Client(service.url) as client:
            view = client.source("atomics")
        assert (view["lines"][0]["file"], view["lines"][0]["source_line"]) == ("/src/a.cu", 7)
        assert service.ok("/v1/runs/atomics/source")["lines"] == view["lines"]


def test_the_comparison_with_the_run_before(clicks, shown, client):
    name = store.select(shown.service.site.engine, "v1_runs", run_id=shown.numbers["night"])[0]["name"]
    clicks(f"main td a:text-is('{name}')")
    clicks("a:has-text('Compare with the previous run')")
    assert clicks.clicks == 2
    assert f"after={shown.numbers['night']}" in clicks.page.url
    view = shown.service.ok("/v1/compare", after=shown.numbers["night"])
    assert clicks.page.locator("main table").count()
    assert client.compare(None, shown.numbers["night"])["kernels"] == view["kernels"]


def test_the_night_of_a_regression(clicks, shown, client):
    clicks("nav a:text-is('Findings')")
    clicks("main td a:has-text('gemm')")
    assert clicks.clicks == 2
    assert "2026-01-11" in clicks.page.inner_text("main")
    number = int(clicks.page.url.rpartition("/")[2])
    finding = client.finding(number)["finding"]
    assert finding["changed_at"].startswith("2026-01-11")
    assert shown.service.ok(f"/v1/findings/{number}")["finding"] == finding


def test_the_night_of_a_regression_by_the_name_on_the_screen(browser_page, shown, client):
    page = browser_page.page
    browser_page.open("/history")
    name = page.locator("main td a:has-text('gemm')").first.inner_text()
    page.fill("#kernel", name)
    page.fill("#project", "lab")
    page.keyboard.press("Enter")
    page.wait_for_selector("h2:text-is('Detected changes')")
    assert "night 10" in page.inner_text("h2:text-is('Detected changes') ~ .wide tbody")
    view = shown.service.ok("/v1/history", kernel=name, project="lab")
    assert client.history(name, project="lab")["steps"] == view["steps"]


def test_an_export_of_the_list(clicks, shown, client):
    with clicks.page.expect_download() as started:
        clicks(".data-links a:text-is('CSV')")
    assert clicks.clicks == 1
    lines = started.value.path().read_text().splitlines()
    assert len(lines) > len(client.rows("runs")) > 1
    assert shown.service.get("/v1/runs.csv").text.splitlines()[0] == lines[0]


def test_an_export_of_a_table(browser_page, shown, client):
    """Every table has its button: `test_every_page_is_whole` counts them."""
    page = browser_page.page
    browser_page.open(shown.path("/runs/{run}"))
    with page.expect_download() as started:
        page.click("[aria-label='Kernels by time'] + button.save")
    assert started.value.suggested_filename == "h200, Kernels by time.csv"
    with started.value.path().open(newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    totals = client.rows("kernel_totals", run_id=shown.numbers["run"])
    assert {row["kernel"]: float(row["total (ns)"]) for row in saved} == {
        row["kernel"]: pytest.approx(row["total_ns"], rel=1e-9) for row in totals
    }


def test_a_token_is_revoked(chromium, site, engine):
    for name in ("first", "second", "third"):
        store.create_token(engine, name, ["read"])
    admin = store.create_token(engine, "admin", list(store.SCOPES))
    with running(site(is_public=True)) as service, window(chromium, service.url) as found:
        found.open("/login")
        found.page.fill("#token", admin)
        found.page.click("button.main")
        found.page.wait_for_selector("nav a:text-is('Settings')")
        clicks = Clicks(found)
        clicks("nav a:text-is('Settings')")
        clicks("tr:has-text('first') button:has-text('Revoke')")
        assert clicks.clicks == 2
        found.page.wait_for_selector("tr:has-text('first'):has-text('revoked')")
        with Client(service.url, admin) as client:
            client.revoke_token("second")
            asked = {"json": {"act": "revoke"}, "headers": {"authorization": f"Bearer {admin}"}}
            assert service.http.post(f"{service.url}/v1/tokens/third", **asked).status_code == 200
            assert [one["name"] for one in client.tokens() if not one["revoked_at"]] == ["admin"]
