"""The page of the metrics of a launch: searched, beside another launch, and the same over HTTP."""

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
