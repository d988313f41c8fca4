"""Every page in a real browser: light and dark, wide and narrow, without an error, a failed or a foreign request."""

import importlib.util
import re
from itertools import product
from pathlib import Path

import pytest

from tests.web.pages.browser.axe_rules import (
    BY_COLOUR_AND_WIDTH,
    CONTRAST,
    KEEP_TWO_OF_A_KIND,
    LINK_IN_TEXT,
    Seen,
    axe_violations,
)
from tests.web.pages.browser.walked import WALKED
from tests.web.pages.conftest import SHOTS, window

WIDTHS = (1280, 400)
COLOURS = ("light", "dark")
# What a page has of headings, labels and names that are wrong, as a list of sentences.
AUDIT = """() => {
  const wrong = [];
  const levels = [...document.querySelectorAll("main h1, main h2, main h3, main h4")].map((h) => +h.tagName[1]);
  if (levels.filter((l) => l === 1).length !== 1) wrong.push("h1: " + levels);
  levels.forEach((l, n) => { if (n && l > levels[n - 1] + 1) wrong.push("a heading skips a level: " + levels); });
  for (const one of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!one.labels.length && !one.getAttribute("aria-label")) wrong.push("no label: " + one.outerHTML);
  for (const one of document.querySelectorAll("a, button, summary"))
    if (!(one.textContent.trim() || one.getAttribute("aria-label"))) wrong.push("no name: " + one.outerHTML);
  for (const one of document.querySelectorAll("[role=img], img"))
    if (!one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby") && !one.alt)
      wrong.push("no text: " + one.outerHTML.slice(0, 200));
  for (const one of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    for (const kind of ["aria-labelledby", "aria-describedby"])
      for (const id of (one.getAttribute(kind) ?? "").split(" ").filter(Boolean))
        if (!document.getElementById(id)) wrong.push("nothing has the id " + id);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  ids.filter((id, n) => ids.indexOf(id) !== n).slice(0, 3).forEach((id) => wrong.push("twice: " + id));
  for (const one of document.querySelectorAll("table")) if (!one.caption) wrong.push("a table without a caption");
  for (const one of document.querySelectorAll("main svg text")) {
    const svg = one.ownerSVGElement, box = svg.viewBox.baseVal;
    const scale = box && box.width ? svg.getBoundingClientRect().width / box.width : 1;
    const size = parseFloat(getComputedStyle(one).fontSize) * scale;
    if (one.checkVisibility() && size < 10.95) wrong.push(`${size.toFixed(1)} px: ${one.textContent}`);
  }
  for (const one of document.querySelectorAll("main img"))
    if (one.naturalWidth && one.clientWidth < one.naturalWidth * 0.99) wrong.push("a picture is shrunk: " + one.src);
  if (!document.documentElement.lang) wrong.push("no language");
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const isOut = (one) => one.getBoundingClientRect().right > root.clientWidth + 1;
    const out = [...document.querySelectorAll("body *")].find((one) => isOut(one) && !one.closest(".wide, .top nav"));
    wrong.push("the page is wider than the window: " + (out?.outerHTML.slice(0, 200) ?? root.scrollWidth));
  }
  return wrong;
}"""


# How often one presses Tab until the first row of the first table; a page without rows has no such number.
TAB_STOPS = """() => {
  const row = document.querySelector("main tbody tr");
  const kinds = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const all = document.querySelectorAll(kinds);
  const isBefore = (one) => row && row.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_PRECEDING;
  return [...all].filter((one) => one.checkVisibility() && isBefore(one)).length;
}"""
MAX_TAB_STOPS = 60
# A chart is drawn when it first comes into view: each does, and then the page is at its top again.
DRAW_CHARTS = """async () => {
  for (const one of document.querySelectorAll("[data-chart]:not(.live)")) {
    one.scrollIntoView();
    for (let n = 0; n < 200 && !one.matches(".live") && !one.querySelector(".chart-wait")?.textContent; n++)
      await new Promise((done) => setTimeout(done, 25));
    if (!one.matches(".live")) throw new Error("not drawn: " + one.dataset.chart);
  }
  scrollTo(0, 0);
}"""


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, or nothing where its package is not installed."""
    package = importlib.util.find_spec("axe_playwright_python")
    return package and (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")


# What is wrong on a page depends on the width or on the colours, not on both.
AUDITED = list(product(WIDTHS, COLOURS)) if SHOTS else list(zip(WIDTHS, COLOURS, strict=True))
# Where the rules of colours and sizes are looked at, beside all rules at 1280 pixels in light colours.
LOOKED_AT = ((WIDTHS[-1], "dark"), *(((WIDTHS[0], "dark"), (WIDTHS[-1], "light")) if SHOTS else ()))


def shown_on(page):
    """Return what shows a page at a width in colours; where it is so already it is not laid out again."""
    now = None

    def show(width, colours):
        nonlocal now
        if (width, colours) != now:
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=colours)
            now = width, colours

    return show


def first_of_each_page(pages):
    """Return the first of the pages with one template, as "power" of "power" and "power-night"; all with pictures."""
    kinds = {one.name.partition("-")[0]: one for one in reversed(pages)}
    return list(pages) if SHOTS else [one for one in pages if one in kinds.values()]


def test_a_text_of_too_little_contrast_is_seen_among_many(chromium, axe):
    if not axe:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    for style in ("color: #777", "background: #666", "font-size: 30px; color: #aaa"):
        odd, nested = f"<p style='{style}'>odd</p>", f"<div style='{style}'><b>bold</b><i>slanted</i></div>"
        page = chromium.new_page()
        page.set_content(f"<html lang=en><title>t</title><body>{'<p>plain</p>' * 9}{odd}{'<p>plain</p>' * 9}{nested}")
        found = axe_violations(page, axe, BY_COLOUR_AND_WIDTH)
        page.close()
        assert [words.partition(":")[0] for words in found] == [f"{CONTRAST}, 3 times"], style


def test_a_link_that_only_its_colour_tells_from_its_text_is_seen_among_many(chromium, axe):
    if not axe:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    link, plain = "<p>some <a href=x>link</a> and text", "<p>some <a href=x class=plain>link</a> and text"
    alone = "<p><a href=x class=plain>link</a>"  # with no text beside it, it needs no mark
    style = "<style>body { color: #333 } .plain { color: #044; text-decoration: none }</style>"
    for which, others in {"the only one": "", "of links with a mark": link * 9, "of links alone": alone * 9}.items():
        page = chromium.new_page()
        page.set_content(f"<html lang=en><title>t</title>{style}<body>{others}{plain}{others}")
        found = axe_violations(page, axe, BY_COLOUR_AND_WIDTH)
        page.close()
        assert [words.partition(":")[0] for words in found] == [f"{LINK_IN_TEXT}, 1 times"], which


def test_what_earlier_pages_have_hides_nothing_new(chromium, axe):
    if not axe:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    begin, seen = "<html lang=en><title>t</title><body><main><h1>t</h1><p>plain</p>", Seen(set(), set())
    page = chromium.new_page()
    for text, broken in {
        "": [],
        "<p>plain</p>": [],
        "<p style='color: #aaa'>odd</p>": [CONTRAST],
        "<p role=odd>plain</p>": ["aria-roles"],
        "<div><a href=x></a></div>": ["link-name"],
    }.items():
        page.set_content(begin + text)
        found = axe_violations(page, axe, seen=seen, whole=not text)
        assert [words.partition(",")[0] for words in found] == broken, text
    page.close()


def test_every_page_is_whole(chromium, shown, shot, axe):
    """Each page is opened once and audited wide in light and narrow in dark colours; each table with rows can be saved.

    axe takes long for a page, so it runs where its answer can differ: all rules at 1280 pixels in light colours, and
    at 400 pixels in dark colours the rules that look at colours and sizes. It looks at the first page of each template,
    of the others at what no earlier page has in such a place, and at a text of each look. ``PROFSVC_SCREENSHOTS`` lets
    it look at all of every page, in both colours at each width.
    """
    first = first_of_each_page(WALKED)
    violations, seen = [], None if SHOTS else Seen(set(), set())
    with window(chromium, shown.service.url) as found:
        page, show = found.page, shown_on(found.page)
        for one in WALKED:
            show(WIDTHS[0], "light")
            answer = found.open(shown.path(one.path))
            assert answer.status == one.status, one.name
            assert one.see in page.inner_text("main"), one.name
            assert page.evaluate(TAB_STOPS) <= MAX_TAB_STOPS, one.name
            page.evaluate(DRAW_CHARTS)
            if one.name == "timeline":  # its table is made with the drawing
                page.wait_for_selector("main .wide > table")
            tables = page.locator("main .wide > table:has(tbody tr)").count()
            assert page.locator("main .wide + button.save").count() == tables, one.name
            for width, colours in AUDITED:
                show(width, colours)
                violations += [(one.name, width, colours, said) for said in page.evaluate(AUDIT)]
                shot(page, f"{one.name}-{colours}-{width}")
            if not axe:
                continue
            page.evaluate(KEEP_TWO_OF_A_KIND)
            for width, colours in LOOKED_AT if one in first else ():
                show(width, colours)
                found_there = axe_violations(page, axe, BY_COLOUR_AND_WIDTH, seen)
                violations += [(one.name, width, colours, said) for said in found_there]
            show(WIDTHS[0], "light")
            found_wide = axe_violations(page, axe, seen=seen, whole=one in first)
            violations += [(one.name, "wide, light", said) for said in found_wide]
    assert violations == []
    if not axe:
        pytest.skip("the pages are whole, but axe-core did not look at them: pip install axe-playwright-python")


def test_nothing_keeps_anyone_from_using_a_page_without_script(chromium, shown, axe):
    """axe is a script itself, so the page's scripts are taken out and what stands for them is put in.

    Only pages with a script beside the one of all pages differ, and pages of one template do so alike.
    """
    if not axe:
        pytest.skip("axe-core is not installed: pip install axe-playwright-python")
    violations, seen = [], None if SHOTS else Seen(set(), set())
    with window(chromium, shown.service.url) as found:
        page, show = found.page, shown_on(found.page)
        for one in first_of_each_page(WALKED):
            text = shown.html(one.path)
            if text.count("<script") < 2:
                continue
            plain = re.sub(r"<script.*?</script>|</?noscript>", "", text, flags=re.DOTALL)
            path = shown.service.url + shown.path(one.path)
            page.route(path, lambda route, _, plain=plain: route.fulfill(body=plain, content_type="text/html"), times=1)
            page.goto(path)
            assert page.locator("script").count() == 0
            assert page.evaluate(TAB_STOPS) <= MAX_TAB_STOPS, one.name
            for width, colours in AUDITED[::-1]:
                show(width, colours)
                violations += [(one.name, width, colours, said) for said in page.evaluate(AUDIT)]
            page.evaluate(KEEP_TWO_OF_A_KIND)
            violations += [(one.name, "wide, light", said) for said in axe_violations(page, axe, seen=seen)]
            for width, colours in LOOKED_AT:
                show(width, colours)
                found_there = axe_violations(page, axe, BY_COLOUR_AND_WIDTH, seen)
                violations += [(one.name, width, colours, said) for said in found_there]
    assert violations == []


def test_a_page_is_whole_where_it_is_opened_narrow(chromium, shown):
    size = {"width": WIDTHS[-1], "height": 900}
    with window(chromium, shown.service.url, viewport=size, color_scheme="dark") as found:
        for one in [one for one in WALKED if one.status == 200][:6]:
            found.open(shown.path(one.path))
            assert found.page.evaluate(AUDIT) == [], one.name


def test_a_bar_and_its_number_stay_in_their_cell(chromium, shown):
    with window(chromium, shown.service.url, viewport={"width": 390, "height": 900}) as found:
        for path in ("/runs/{sourced}/source", "/runs/{sourced}/launches/{sourced_launch}/source", "/runs/{run}"):
            found.open(shown.path(path))
            outside = found.page.evaluate(
                "[...document.querySelectorAll('td .barred')].map((one) => [one, one.closest('td')]"
                ".map((box) => box.getBoundingClientRect().right)).filter(([inner, outer]) => inner > outer + 1)"
            )
            assert outside == [], path


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_the_first_step_of_each_cause_is_in_view(chromium, shown, width):
    with window(chromium, shown.service.url, viewport={"width": width, "height": 900}) as found:
        found.open(shown.path("/runs/{run}"))
        ends = found.page.evaluate(
            "[...document.querySelectorAll('table.folded tr > :last-child')].map((one) => {"
            "const box = one.getBoundingClientRect(); return [box.left, box.right]; })"
        )
        assert len(ends) > 2
        assert [end for end in ends if not 0 <= end[0] < end[1] <= width] == []
