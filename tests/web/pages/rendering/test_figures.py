"""Figures in pages: colours as classes, ids of their own, words for who does not see them, and no text that acts."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from profsvc.errors import DomainError
from profsvc.reports.plots import power as power_plots
from profsvc.reports.plots.power import Band, Efficiency, Sweep, Track
from profsvc.web.pages.rendering import figures
from profsvc.web.pages.rendering.figures import figure, inline_svg

HOSTILE = "<script>alert(1)</script>&\u202e\"' onload=x"
TIME = np.linspace(0.0, 60.0, 200)
SMS = np.array([1.0, 66.0, 132.0])


def over_time(dark=False, title="a title"):
    power, heat = Track(HOSTILE, TIME, 300 + np.sin(TIME)), Track("GPU", TIME, 50 + TIME / 10)
    bands = [Band(HOSTILE, 0.0, 30.0), Band("idle", 30.0, 60.0, True)]
    return power_plots.over_time([power], [heat], bands, title, "the begin", dark=dark)


def against_sms():
    return power_plots.against_sms([Sweep("load", SMS, SMS, "log", SMS, SMS, SMS - 1, SMS + 1)], "t")


def performance_per_watt():
    return power_plots.performance_per_watt([Efficiency("load", SMS, SMS, 66.0, 60.0, 132.0)], "t")


@pytest.mark.parametrize("draw", [over_time, against_sms, performance_per_watt])
def test_a_figure_follows_the_page(draw):
    text = str(inline_svg(draw(), "one", "A title", "What it shows"))
    root = ElementTree.fromstring(text)
    assert "style" not in {key for part in root.iter() for key in part.attrib}
    assert not {part.tag for part in root.iter()} & {"style", "script", "metadata", "foreignObject"}
    colours = {part.attrib[key] for part in root.iter() for key in ("fill", "stroke") if key in part.attrib}
    assert colours <= {"none"}, "every colour of these figures is one of the page"
    assert {"f-back", "s-line"} <= {name for part in root.iter() for name in part.get("class", "").split()}
    ids = [part.attrib["id"] for part in root.iter() if "id" in part.attrib]
    assert len(ids) == len(set(ids))
    assert all(one.startswith("one-") for one in ids)
    used = [part.attrib["href"][1:] for part in root.iter() if "href" in part.attrib]
    used += [part.attrib["clip-path"][5:-1] for part in root.iter() if "clip-path" in part.attrib]
    assert used
    assert set(used) <= set(ids)
    assert [part.tag for part in root][:2] == ["title", "desc"]
    assert (root[0].text, root[1].text) == ("A title", "What it shows")
    assert root.attrib["aria-labelledby"] == "one-title one-text"


def test_a_dark_picture_gives_the_same_figure():
    light, dark = (str(inline_svg(over_time(dark), "a", "t", "d")) for dark in (False, True))
    # Ids of marks are hashes of how they were drawn.
    assert re.sub(r"a-m?p?[0-9a-f]{10}", "", light) == re.sub(r"a-m?p?[0-9a-f]{10}", "", dark)


def test_texts_in_a_figure_do_nothing():
    text = str(inline_svg(over_time(title=HOSTILE), "a", HOSTILE, HOSTILE))
    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;" in text
    ElementTree.fromstring(text)


def test_a_style_that_has_no_place_is_said():
    with pytest.raises(DomainError, match="'filter'"):
        inline_svg(b'<svg xmlns="http://www.w3.org/2000/svg"><g style="filter: blur(1px)"/></svg>', "a", "t", "d")


def test_the_same_data_are_drawn_once():
    asked = []

    def draw():
        asked.append(1)
        return over_time()

    first = figure("a", "t", draw, {"x": [1.0, float("nan")]}, rows=[{"x": 1.0, "name": "k"}])
    again = figure("a", "t", draw, {"x": [1.0, float("nan")]})
    other = figure("a", "t", draw, {"x": [2.0]})
    assert len(asked) == 2
    assert first.svg == again.svg == other.svg
    assert [(one.name, one.kind) for one in first.columns] == [("x", "number"), ("name", "text")]


def test_figures_that_are_kept_have_a_bound(monkeypatch):
    kept = figures._FigureCache(1000)
    for place in range(50):
        kept.get(bytes([place]), lambda: figures.Markup("x" * 300))
    assert len(kept._known) == 3
    assert kept._held == 900
