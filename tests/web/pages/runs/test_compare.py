"""The comparison of two runs in words, signs and order, and how it is reached."""

import re

import pytest

from profsvc import store
from profsvc.client import Client
from profsvc.errors import NotFoundError
from profsvc.views.comparison.two_runs import compare
from tests.web.pages.conftest import window
from tests.web.pages.runs.test_run import rows_of


def test_kernels_come_by_their_effect_with_sign_and_word(shown):
    text = shown.html("/compare?before={night_before}&after={night}")
    engine = shown.service.site.engine
    view = compare(engine, shown.numbers["night_before"], shown.numbers["night"])
    effects = [abs(row["effect_us"]) for row in view["kernels"]]
    rows = rows_of(text, "Kernels of both runs")
    first = view["kernels"][effects.index(max(effects))]
    assert rows[0].startswith(first["kernel_before"])
    assert re.search(r"\+\d.* slower", rows[0])
    for row in view["kernels"]:
        assert row["effect_us"] == pytest.approx(row["total_after_us"] - row["total_before_us"])
        assert row["change"] == pytest.approx(row["mean_after_us"] / row["mean_before_us"] - 1)


def test_shapes_causes_new_and_gone_kernels_are_said(engine, shown):
    where = shown.service.site.engine
    run, other = shown.numbers["run"], shown.numbers["night"]
    text = shown.html("/compare?before={run}&after={night}")
    assert "Only before: gone kernels" in text
    view = compare(where, run, other, {"gemm_naive": "gemm"})
    assert all(row["total_us"] is not None for row in view["only_before"])
    one = store.select(where, "v1_launches", run_id=run)[0]
    shape = store.kernels_of_run(where, run)[one["kernel"]]["shape"]
    assert (shape["grid_x"], shape["block_x"]) == (one["grid_x"], one["block_x"])
    assert shape["registers"] > 0


def test_the_previous_run_of_the_branch_is_two_clicks_away(chromium, shown):
    engine, night = shown.service.site.engine, shown.numbers["night"]
    before = store.previous_run(engine, night)
    assert before["run_id"] < night
    name = store.select(engine, "v1_runs", run_id=night)[0]["name"]
    with window(chromium, shown.service.url, viewport={"width": 1280, "height": 900}) as found:
        found.open("/")
        found.page.click(f"main tbody a:text-is('{name}') >> nth=0")
        found.page.click("text=Compare with the previous run")
        found.page.wait_for_url(f"**/compare?before={before['run_id']}&after={night}")
    answer = shown.service.ok("/v1/compare", after=night)
    assert answer["before"]["run_id"] == before["run_id"]


@pytest.mark.parametrize("pair", ["before={night_before}&after={night}", "before={run}&after={run}"])
def test_nsight_estimates_are_explained_where_a_column_has_them(shown, pair):
    text = shown.html(f"/compare?{pair}")
    assert ("Nsight estimate: the largest" in text) == (re.search(r">\s*Nsight estimate\s*<", text) is not None)


def test_the_first_run_has_none_before(shown):
    assert store.previous_run(shown.service.site.engine, 1) is None
    assert "is the first of its project" in shown.service.refused("/v1/compare", NotFoundError.status, after=1)


def test_two_ticked_runs_are_compared_without_script(chromium, shown):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        found.open("/")
        boxes = found.page.locator("tbody input[type=checkbox]")
        ids = sorted(int(boxes.nth(place).get_attribute("value")) for place in (0, 1))
        for place in (0, 1):
            boxes.nth(place).check()
        found.page.click("text=Compare the ticked runs")
        found.page.wait_for_url(f"**/compare?before={ids[0]}&after={ids[1]}")
        found.open(f"/compare?run={ids[0]}")
        assert "tick two to 8 runs" in found.page.inner_text("main")


def test_several_ticked_runs_are_one_table_with_a_baseline_to_choose(chromium, shown):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        found.open("/?project=lab")
        boxes = found.page.locator("tbody input[type=checkbox]")
        ids = sorted(int(boxes.nth(place).get_attribute("value")) for place in range(4))
        for place in range(4):
            boxes.nth(place).check()
        found.page.click("text=Compare the ticked runs")
        found.page.wait_for_url("**/compare?run=*")
        view = shown.service.ok("/v1/compare/runs", run=ids)
        with Client(shown.service.url) as client:
            assert client.compare_several(ids)["kernels"] == view["kernels"]
        rows = found.page.locator("[aria-label='Mean time of each kernel in each run'] tbody tr")
        assert rows.count() == len(view["kernels"]) > 1
        assert view["baseline"] == ids[0]
        found.page.locator("text=Take as baseline").last.click()
        found.page.wait_for_url(f"**baseline={ids[-1]}")
        assert "baseline" in found.page.inner_text(f"tr:has(a[href='/runs/{ids[-1]}'])")
    assert "at most 8" in shown.service.refused("/v1/compare/runs", 400, run=list(range(1, 10)))
    assert "not one of the runs" in shown.service.refused("/v1/compare/runs", 400, run=ids[:2], baseline=ids[2])
