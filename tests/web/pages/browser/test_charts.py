"""Charts that live: they replace the static figures, say their numbers, zoom, and lead to what they show."""

import gzip
import re

import pytest

from profsvc.web.pages.rendering.assets import assets
from tests.web.pages.conftest import window

CHARTS = {
    "/history?kernel=gemm&project=lab": ["history"],
    "/runs/{run}": ["roofline"],
    "/runs/{run}/launches/{launch}": ["roofline", "benefit", "warps", "sms"],
    "/runs/{board}/power": ["power-time"],
}
MAX_COMPRESSED_BYTES = 200_000


def live(page, kind):
    """Wait for a chart; the first time it comes into view it is drawn."""
    page.wait_for_selector(f"[data-chart={kind}]", state="attached")
    page.eval_on_selector(f"[data-chart={kind}]", "one => one.scrollIntoView()")
    page.wait_for_selector(f"[data-chart={kind}].live canvas")
    return page.locator(f"[data-chart={kind}]")


@pytest.mark.parametrize("path", CHARTS)
def test_figures_become_charts(browser_page, shown, path):
    browser_page.open(shown.path(path))
    for kind in CHARTS[path]:
        chart = live(browser_page.page, kind)
        assert chart.locator("svg text").count() == 0  # the static figure is gone
        assert chart.locator(".legend li").count()


@pytest.mark.parametrize("path", CHARTS)
def test_without_script_the_figures_are_static(chromium, shown, path):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        found.open(shown.path(path))
        assert found.page.locator("[data-chart] > svg, [data-chart] img").count() >= len(CHARTS[path])


def test_keys_go_from_point_to_point_and_open_one(browser_page, shown):
    page = browser_page.page
    browser_page.open("/history?kernel=gemm&project=lab")
    chart = live(page, "history")
    chart.focus()
    page.keyboard.press("End")
    said = chart.locator("[aria-live]")
    assert re.search(r"night 14 .*µs", said.inner_text())
    page.keyboard.press("ArrowLeft")
    assert "night 13" in said.inner_text()
    assert "night 13" in chart.locator(".chart-tip").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs/*")
    assert "night 13" in page.inner_text("h1")


def test_a_drag_zooms_and_a_point_is_clicked(browser_page, shown):
    page = browser_page.page
    browser_page.open("/history?kernel=gemm&project=lab")
    chart = live(page, "history")
    over = chart.locator(".u-over")
    box = over.bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.60 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.90 * box["width"], middle, steps=4)
    page.mouse.up()
    page.wait_for_selector(".chart-reset:visible")
    chart.focus()
    page.keyboard.press("Home")
    first = chart.locator("[aria-live]").inner_text()
    assert re.match(r"night (9|10) ", first), first
    tip = chart.locator(".chart-tip").bounding_box()
    page.keyboard.press("Escape")
    page.wait_for_selector(".chart-reset", state="hidden")
    page.keyboard.press("Home")
    assert chart.locator("[aria-live]").inner_text().startswith("night 0")
    tip = chart.locator(".chart-tip").bounding_box()
    page.mouse.move(tip["x"] - 12, tip["y"] - 12)
    page.mouse.click(tip["x"] - 12, tip["y"] - 12)
    page.wait_for_url("**/runs/*")
    assert "night 0" in page.inner_text("h1")


def test_a_launch_is_opened_from_the_roofline(browser_page, shown):
    page = browser_page.page
    browser_page.open(shown.path("/runs/{run}"))
    live(page, "roofline").focus()
    page.keyboard.press("ArrowRight")
    said = page.inner_text("[data-chart=roofline] [aria-live]")
    assert "flop/s" in said
    page.keyboard.press("Enter")
    page.wait_for_url("**/launches/*")
    assert page.inner_text("h1").split()[0] == said.split()[0]


def test_power_is_read_again_where_one_zooms(browser_page, shown):
    page = browser_page.page
    browser_page.open(shown.path("/runs/{board}/power"))
    chart = live(page, "power-time")
    assert chart.locator("canvas").count() == 2  # power and temperature share the axis of time
    chart.focus()
    with page.expect_response("**/power-series?from=*") as read:
        page.keyboard.press("+")
    view = read.value.json()
    whole = shown.service.ok(shown.path("/v1/runs/{board}/power-series"))
    assert whole["begin_s"] <= view["begin_s"] < view["end_s"] <= whole["end_s"]
    page.wait_for_selector(".chart-reset:visible")


def test_charts_follow_the_colours_of_the_page(browser_page, shown):
    page = browser_page.page
    browser_page.open("/history?kernel=gemm&project=lab")
    chart = live(page, "history")
    before = chart.screenshot()
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("getComputedStyle(document.body).backgroundColor === 'rgb(13, 17, 23)'")
    assert chart.screenshot() != before


def test_a_chart_that_cannot_be_read_says_why(chromium, shown):
    with window(chromium, shown.service.url) as found:
        refusal = {"ok": False, "error": {"message": "no such thing"}}
        found.page.route("**/plots/roofline*", lambda route: route.fulfill(status=404, json=refusal))
        found.open(shown.path("/runs/{run}"))
        found.page.eval_on_selector("[data-chart]", "one => one.scrollIntoView()")
        found.page.wait_for_selector(".chart-wait:has-text('no such thing')")


def test_scripts_and_styles_are_small_and_have_their_licence():
    sizes = {name: len(gzip.compress(one.content, 9)) for name, one in assets().items()}
    assert sum(sizes.values()) < MAX_COMPRESSED_BYTES, sizes
    assert b"leeoniya/uPlot" in assets()["uplot.js"].content[:100]


def test_a_narrow_roofline_has_room_for_some_of_its_decades(chromium, shown):
    with window(chromium, shown.service.url, viewport={"width": 400, "height": 900}) as found:
        found.open(shown.path("/runs/{run}"))
        live(found.page, "roofline")
