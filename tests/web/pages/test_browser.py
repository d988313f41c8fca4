"""Every page in a real browser: light and dark, wide and narrow, without an error, a failed or a foreign request."""

import pytest

from tests.web.pages.conftest import window
from tests.web.pages.walked import WALKED

WIDTHS = (1280, 400)
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
    if (!one.getAttribute("aria-label") && !one.getAttribute("aria-labelledby") && !one.alt) wrong.push("no text: " + one.outerHTML.slice(0, 200));
  for (const one of document.querySelectorAll("[aria-labelledby], [aria-describedby]"))
    for (const id of ((one.getAttribute("aria-labelledby") ?? "") + " " + (one.getAttribute("aria-describedby") ?? "")).trim().split(/\\s+/))
      if (!document.getElementById(id)) wrong.push("nothing has the id " + id);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  ids.filter((id, n) => ids.indexOf(id) !== n).slice(0, 3).forEach((id) => wrong.push("twice: " + id));
  for (const one of document.querySelectorAll("table")) if (!one.caption) wrong.push("a table without a caption");
  if (document.querySelector("[style], main style, main script")) wrong.push("inline style or script");
  if (!document.documentElement.lang) wrong.push("no language");
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const out = [...document.querySelectorAll("body *")].find((one) => one.getBoundingClientRect().right > root.clientWidth + 1 && !one.closest(".wide, .top nav, details, pre"));
    wrong.push("the page is wider than the window: " + (out?.outerHTML.slice(0, 200) ?? root.scrollWidth));
  }
  return wrong;
}"""


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_whole(chromium, shown, shot, colours, width):
    size = {"width": width, "height": 900}
    with window(chromium, shown.service.url, viewport=size, color_scheme=colours) as found:
        for one in WALKED:
            answer = found.open(shown.path(one.path))
            assert answer.status == one.status, one.name
            assert one.see in found.page.inner_text("main"), one.name
            assert found.page.evaluate(AUDIT) == [], one.name
            shot(found.page, f"{one.name}-{colours}-{width}")
