"""The page of the metrics of a launch: searched, beside another launch, and the same over HTTP."""

import re

import pytest

from tests.web.conftest import PLAIN, running
from tests.web.pages.conftest import window
from tests.web.pages.runs.test_run import rows_of


def test_metrics_beside_another_launch(chromium, shown):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        page = found.page
        found.open(shown.path("/runs/{run}/launches/{launch}"))
        page.click("text=All metrics")
        page.fill("#search", "dram bytes")
        page.fill("#baseline", "0")
        page.click("button.main")
        page.wait_for_url("**baseline=0**")
        assert "Baseline: #0" in page.inner_text("main")
        rows = page.locator("main tbody tr").all_inner_texts()
    assert rows
    assert all("dram" in row.lower() and "bytes" in row.lower() for row in rows)
    own = f"id:{shown.numbers['launch']}"
    said = shown.service.ok(f"/v1/runs/{shown.numbers['run']}/metrics", kernel=own, baseline="0", search="dram bytes")
    assert len(said["metrics"]) == len(rows)


def test_a_baseline_of_another_run_is_the_same_kernel(shown):
    text = shown.html("/runs/{run}/launches/{launch}/metrics?baseline_run={run}")
    assert "Baseline: " in text
    assert rows_of(text, "Metrics")
    answer = shown.service.get(shown.path("/runs/{run}/launches/{launch}/metrics?baseline=nothing"))
    assert answer.status_code == 404


@pytest.mark.parametrize(("kernel", "is_offered"), [("saxpy", True), ("daxpy", False)])
def test_the_previous_run_is_offered_only_with_the_same_kernel(site, kernel, is_offered):
    export = PLAIN.read_text()
    assert "saxpy(" in export
    with running(site()) as service:
        service.upload(export.encode(), run="before")
        assert service.upload(export.replace("saxpy(", f"{kernel}(").encode(), run="after").status_code == 201
        launch = service.ok("/v1/launches.json", run_id=2)["rows"][0]["launch_id"]
        text = service.http.get(f"{service.url}/runs/2/launches/{launch}/metrics", headers={"accept": "text/html"}).text
        paths = re.findall(r'href="([^"]*[?]baseline_run=[^"&]*)"', text)
        assert bool(paths) == is_offered
        assert all(service.get(path).status_code == 200 for path in paths)
