"""The timeline in a browser: it is drawn, zooms, goes from event to event, and opens a launch."""

import pytest

from tests.web.conftest import ROOT, running
from tests.web.pages.conftest import window


@pytest.fixture
def drawn(browser_page, shown):
    browser_page.open(shown.path("/runs/{traced}/timeline"))
    browser_page.page.wait_for_selector("#timeline[data-shown] canvas")
    return browser_page.page


def said(page):
    return page.inner_text("#timeline [aria-live]")


def test_keys_go_through_events_and_open_a_launch(drawn):
    drawn.focus("#timeline")
    drawn.keyboard.press("ArrowRight")
    first = said(drawn)
    assert "stream" in first
    drawn.keyboard.press("ArrowRight")
    assert said(drawn) != first
    drawn.keyboard.press("ArrowDown")
    assert said(drawn) != first
    drawn.keyboard.press("ArrowUp")
    drawn.keyboard.press("Enter")
    drawn.wait_for_url("**/launches/*")


def test_a_zoom_reads_the_part_in_view_and_the_table_follows(drawn):
    whole = drawn.inner_text("#timeline-table caption")
    drawn.focus("#timeline")
    with drawn.expect_response("**/timeline?from=*") as read:
        drawn.keyboard.press("+")
    view = read.value.json()
    assert view["to_ns"] - view["from_ns"] < view["length_ns"]
    drawn.wait_for_function("text => document.querySelector('#timeline-table caption').innerText !== text", arg=whole)
    with drawn.expect_response("**/timeline?from=0&*"):
        drawn.keyboard.press("Escape")
    box = drawn.locator("#timeline canvas").bounding_box()
    with drawn.expect_response("**/timeline?from=*"):
        drawn.mouse.move(box["x"] + 500, box["y"] + 40)
        drawn.mouse.down()
        drawn.mouse.move(box["x"] + 700, box["y"] + 40, steps=3)
        drawn.mouse.up()


def test_a_pointer_sees_what_is_under_it(drawn):
    box = drawn.locator("#timeline canvas").bounding_box()
    for x in range(225, 260):
        drawn.mouse.move(box["x"] + x, box["y"] + 38)
        if drawn.locator("#timeline .chart-tip:visible").count():
            break
    assert "stream" in drawn.inner_text("#timeline .chart-tip")


def test_an_event_is_found_by_its_name_and_the_next_one(drawn, shown):
    run, output = shown.numbers["traced"], drawn.locator("#timeline-search output")
    first = shown.service.ok(f"/v1/runs/{run}/timeline", columns=1)["by_name"][0]
    found = shown.service.ok(f"/v1/runs/{run}/timeline/search", text=first["name"])
    assert (found["events"], found["match"]["ordinal"]) == (first["events"], 0)
    drawn.fill("#text", first["name"].upper())
    drawn.keyboard.press("Enter")
    drawn.wait_for_function("() => document.querySelector('#timeline [aria-live]').innerText")
    assert first["name"] in said(drawn)
    assert output.inner_text().startswith(f"1 of {found['events']},")
    drawn.click("#timeline-search button[value=previous]")
    drawn.wait_for_function("text => document.querySelector('#timeline-search output').innerText.startsWith(text)",
                            arg=f"{found['events']} of ")  # fmt: skip
    drawn.fill("#text", "no such thing")
    drawn.keyboard.press("Enter")
    drawn.wait_for_function("() => document.querySelector('#timeline-search output').innerText.startsWith('No event')")


def test_what_runs_in_view_is_summed_by_name(drawn):
    names = drawn.locator("#timeline-names")
    whole = names.locator("tbody tr").count()
    assert whole > 1
    drawn.focus("#timeline")
    for _ in range(6):
        drawn.keyboard.press("+")
    drawn.wait_for_function("count => document.querySelectorAll('#timeline-names tbody tr').length < count", arg=whole)
    assert "What ran from" in names.locator("caption").inner_text()


def test_without_script_it_is_a_picture(chromium, shown):
    with window(chromium, shown.service.url, java_script_enabled=False) as found:
        found.open(shown.path("/runs/{traced}/timeline"))
        assert found.page.evaluate("document.querySelector('#timeline img').naturalWidth") > 0


def test_a_run_without_times_says_so(browser_page, shown):
    browser_page.open(shown.path("/runs/{run}/timeline"))
    browser_page.page.wait_for_selector("#timeline-state:has-text('upload a trace')")


@pytest.mark.parametrize(("events", "said"), [(1, "1 event in"), (1200, "1\u202f200 events in")])
def test_events_are_counted_as_on_other_pages(chromium, site, events, said):
    header, *_ = (ROOT / "fixtures" / "nsys_stats" / "gpu_trace.csv").read_text().splitlines()
    rows = [f"{1000 * n},500,{n},1,1,1,32,1,1,16,0,0,,,,,NVIDIA H200 (0),1,,7,k" for n in range(events)]
    with running(site()) as service:
        assert service.upload("\n".join([header, *rows]).encode(), run="trace").status_code == 201
        with window(chromium, service.url) as found:
            found.open("/runs/1/timeline")
            found.page.wait_for_selector(f"#timeline-state:has-text('{said}')")
            assert said.partition(" ")[0] in found.page.inner_text("#timeline-table tbody tr")
