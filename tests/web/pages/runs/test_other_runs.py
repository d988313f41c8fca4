"""The tasks of a day on runs that lack most: a trace alone, a profile without stalls, one launch, hostile names, power
alone."""

import csv

import pytest

from profsvc.client import Client
from tests.store.queries.told import One, raw, trace
from tests.views import power_logs
from tests.web.conftest import running
from tests.web.pages.browser.test_tasks import Clicks
from tests.web.pages.conftest import window

NAME = "<b>&\"'" + "n" * 280 + "</b>"
KERNEL = "k_" + "<T*>&'" + "x" * 280
LAUNCHES = [One(KERNEL, ns=1_000 + n) for n in range(12)]
RUNS = {
    "trace": trace(LAUNCHES).encode(),
    "no stalls": raw(LAUNCHES).encode(),
    "one launch": raw(LAUNCHES[:1]).encode(),
    NAME: raw(LAUNCHES[:3]).encode(),
    "power": power_logs.log().encode(),
}


@pytest.fixture(scope="module")
def store_file(tmp_path_factory):
    return tmp_path_factory.mktemp("other") / "store.sqlite"


@pytest.fixture(scope="module")
def others(store_file):
    from profsvc import store
    from profsvc.web.http.state import AppState

    engine = store.open_store(str(store_file), pooled=True)
    with running(AppState(engine, store.blob_store_of(engine, free_bytes=1))) as service:
        for number, (name, content) in enumerate(RUNS.items()):
            for night in range(2):  # the second is compared with the first
                said = service.upload(content + b"\n" * (night + 1) if number < 4 else content,
                                      run=name if night else f"before {number}", project=f"p{number}")  # fmt: skip
                assert said.status_code in (200, 201), said.text
        yield service
    engine.dispose()


@pytest.fixture
def found(chromium, others):
    with window(chromium, others.url, viewport={"width": 1280, "height": 900}) as opened:
        yield opened


def start(found, number):
    """Start at the list of one project, at its newest run."""
    return Clicks(found, f"/?project=p{number}"), "main tbody tr:first-child td a >> nth=0"


@pytest.mark.parametrize("number", range(len(RUNS)), ids=[name[:10] for name in RUNS])
def test_a_run_says_what_it_knows_and_what_to_do(found, others, number):
    clicks, newest = start(found, number)
    clicks(newest)
    assert clicks.clicks == 1
    page, name = clicks.page, list(RUNS)[number]
    run = others.ok("/v1/runs", project=f"p{number}")["rows"][0]
    if len(name) < 100:
        assert page.inner_text("h1") == name
    text = page.inner_text("main")
    assert "\n\n\n\n" not in text
    if "power" in name:
        assert page.locator("a.button:has-text('Power and temperature')").count() == 1
        assert "What to do first" not in text or page.locator("#first ~ .wide, #first ~ ol, #first ~ p").count()
    else:
        first = page.evaluate("document.querySelector('#first').nextElementSibling.innerText")
        assert len(first) > 20, "the section is empty"
    view = others.ok(f"/v1/runs/{run['run_id']}")
    assert view["run"]["name"] == run["name"]
    with Client(others.url) as client:
        said = client.run(run["run_id"])
    assert (said["run"], said["causes"]) == (view["run"], view["causes"])


@pytest.mark.parametrize("number", range(4), ids=[name[:10] for name in list(RUNS)[:4]])
def test_the_run_before_is_two_clicks_away(found, others, number):
    clicks, newest = start(found, number)
    clicks(newest)
    clicks("a:has-text('Compare with the previous run')")
    assert clicks.clicks == 2
    page = clicks.page
    assert page.locator("[aria-label^='Common kernels'], main table").count()
    after = int(page.url.rpartition("after=")[2].partition("&")[0])
    view = others.ok("/v1/compare", after=after)
    with Client(others.url) as client:
        assert client.compare(None, after)["kernels"] == view["kernels"]
    (row,) = view["kernels"]
    assert (row["kernel_before_full"], row["outcome"]) == (KERNEL, "no change")


@pytest.mark.parametrize("number", range(4), ids=[name[:10] for name in list(RUNS)[:4]])
def test_a_launch_and_an_export_of_its_names(found, others, number):
    clicks, newest = start(found, number)
    clicks(newest)
    page = clicks.page
    with page.expect_download() as saved:
        page.click("[aria-label='Launches'] + button.save")
    with saved.value.path().open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["kernel"] for row in rows} == {KERNEL}
    run_id = others.ok("/v1/runs", project=f"p{number}", order="-run_id")["rows"][0]["run_id"]
    listed = others.get("/v1/launches.csv", run_id=run_id, order="-duration_ns", formula="raw").text
    durations = [float(row["duration_ns"]) for row in csv.DictReader(listed.splitlines())]
    assert [float(row["duration (ns)"]) for row in rows] == pytest.approx(durations, rel=1e-9)
    with Client(others.url) as client:
        assert [row["duration_ns"] for row in client.rows("launches", run_id=run_id, order="-duration_ns")] == durations
    assert all(float(row["duration (ns)"]) > 0 for row in rows)
    clicks("[aria-label='Launches'] tbody tr:first-child td:nth-child(2) a")
    assert clicks.clicks == 2
    assert KERNEL in page.inner_text("main")
