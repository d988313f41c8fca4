"""The pages of a run: text for a terminal, HTML for a browser."""

import re
from html.parser import HTMLParser

import pytest
from sqlalchemy import Engine

from profsvc import views
from profsvc.reports import run_page
from profsvc.reports.ratios import times
from profsvc.reports.text import cells
from profsvc.reports.text.launches import details as launch_text
from profsvc.reports.text.runs import run as run_text
from profsvc.views.models.launch_models import side_by_side

VOID = {"meta", "br", "hr", "img", "link", "input"}


@pytest.fixture(scope="module")
def view(demo: Engine) -> dict:
    return views.run(demo, "h200")


@pytest.fixture(scope="module")
def opened(demo: Engine) -> list[dict]:
    return [views.launch(demo, "h200", str(n))["launches"][0] for n in (0, 14, 28)]


@pytest.fixture(scope="module")
def html(view: dict, opened: list[dict]) -> str:
    return run_page.run(view, opened)


class Balance(HTMLParser):
    """Holds the stack of open elements, and what the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def test_html_is_balanced(html):
    parser = Balance()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert html.startswith("<!doctype html>")


def test_html_asks_for_nothing_and_runs_nothing(html):
    parser = Balance()
    parser.feed(html)
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(parser.seen)
    for forbidden in ("http:", "https:", "src=", "@import", "url(", "//"):
        assert forbidden not in html.replace("<!doctype html>", "")
    for name, value in parser.attributes:
        assert not name.startswith("on")
        assert name != "href" or re.fullmatch(r"#launch-\d+", value or "")


def test_html_is_light_and_dark_and_fits_a_phone(html):
    assert "color-scheme: light dark" in html
    assert "@media (prefers-color-scheme: dark)" in html
    assert 'name="viewport"' in html
    assert 'lang="en"' in html


def test_html_links_lead_to_their_launches(html, opened):
    ids = re.findall(r'id="(launch-\d+)"', html)
    assert len(ids) == len(set(ids)) == len(opened)
    assert set(ids) <= {link[1:] for link in re.findall(r'href="(#launch-\d+)"', html)}


def test_html_shows_every_launch_and_every_criterion(html, view, opened):
    assert html.count("<tr>") == 1 + len(view["launches"]) + sum(1 + len(one["criteria"]) for one in opened)
    for row in opened[0]["criteria"]:
        assert row["title"] in html


def test_html_bars_say_their_value_to_those_who_do_not_see(html):
    assert html.count('class="bar"') == len(re.findall(r'class="bar" role="img" aria-label="[^"]+"', html)) > 0


def test_text_has_a_line_a_launch(view):
    lines = run_text.run(view, 160).splitlines()
    assert len([line for line in lines if re.match(r"\s*\d+  \w", line)]) == len(view["launches"]) == 34
    assert all(len(line) <= 160 for line in lines)
    narrow = run_text.run(view, 60)
    assert "potential" in narrow


def test_text_of_a_launch_has_every_criterion_unit_and_hint(opened):
    page_ = launch_text.launches({"truncated": False, "launches": opened})
    blocks = re.split(r"\n(?=#)", page_)
    assert len(blocks) == len(opened)
    for block, one in zip(blocks, opened, strict=True):
        assert block.startswith(f"#{one['launch']['launch_index']} {one['launch']['kernel']}\n")
        for row in [*one["criteria"], *one["units"]]:
            assert row["title"] in block
        for hint in one["advice"]:
            assert hint["hint"] in block
        assert one["first"] in block.splitlines()[3]
        assert len(one["first"]) > 20
        titles = {unit["quantity"]: unit["title"] for unit in one["units"]}
        assert f"limited by {titles[one['potential']['ideal_bound']]}), ceiling" in block
        low, high = (times(one["potential"][name]) for name in ("speedup_low", "speedup_high"))
        assert (f" (eight of ten mended kernels: {low} to {high}; ideal " in block) == (low != high)
        assert "None" not in block


def test_what_is_unknown_is_said(view, opened):
    nothing = {"value": None, "speedup": None, "share": None, "reason": "no such counter", "title": "Divergence"}
    launch = opened[0]["launch"] | {"duration_ns": None, "grid_x": None, "device": None}
    bound = dict.fromkeys(opened[0]["potential"], None) | {"reason": "no duration"}
    one = {"launch": launch, "criteria": [nothing | {"value_as_published": None, "flags": None}], "potential": bound,
           "units": [{"title": "DRAM", "value": None}], "rules": [], "advice": [], "of_run": [],
           "models": side_by_side([], None, None), "reason": None}  # fmt: skip
    block = launch_text.launches({"truncated": False, "launches": [one]})
    for words in ("grid (?, 1, 1)", "on ?; no duration", "no potential: no duration", "no such counter", "unknown"):
        assert words in block
    row = dict.fromkeys(view["launches"][0], None) | {"launch": 0, "launch_id": 1, "kernel": "k", "first": ""}
    row |= {"kernel_full": "k", "reason": "no duration"}
    bare = view | {"launches": [row], "potential": None, "criteria": []}
    bare["run"] = view["run"] | {"device": None}
    assert "1 launch without potential: no duration" in run_text.run(bare)
    html = run_page.run(bare, [one])
    for words in ("on an unknown device", "unknown ns, potential unknown", "no such counter", "0 ms"):
        assert words in html


def test_estimates_of_the_tool_stand_beside_ours(opened):
    rules = [
        {"rule": "Small", "kind": "local", "estimated_saving_fraction": 0.1, "estimated_speedup": None},
        {"rule": "Large", "kind": "global", "estimated_saving_fraction": 0.5, "estimated_speedup": 2.0},
        {"rule": "Silent", "kind": None, "estimated_saving_fraction": None, "estimated_speedup": None},
    ]
    beside = [rule | {"cause": "", "cause_saving_fraction": None, "difference": ""} for rule in rules]
    beside[1] |= {"cause": "Barriers", "cause_saving_fraction": 0.2, "difference": "it covers more"}
    block = launch_text.launches({"truncated": False, "launches": [opened[0] | {"rules": beside}]})
    assert "here: Barriers, 20.0 % of the time" in block
    assert "they differ: it covers more" in block
    large, small = (next(i for i, line in enumerate(block.splitlines()) if word in line) for word in ("Large", "Small"))
    assert large < small
    assert "2.00x" in block.splitlines()[large]
    assert "Silent" not in block


@pytest.mark.parametrize(("value", "full"), [(None, 0), (0.0, 0), (1.0, 10), (7.0, 10), (-1.0, 0), (0.5, 5)])
def test_bars_stay_in_their_place(value, full):
    assert len(cells.bar(value)) == cells.BAR_WIDTH == 10
    assert cells.bar(value).count("█") == full


@pytest.mark.parametrize("width", [5, 6, 11, 28])
def test_long_names_are_cut_in_the_middle(width):
    name = "abcdefghijklmnopqrstuvwxyz0123456789"
    assert len(cells.middle(name, width)) == width
    assert cells.middle(name, len(name)) == name
