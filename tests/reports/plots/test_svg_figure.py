"""Figures without matplotlib say and show what those of matplotlib do, and pages need it no more."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from profsvc import store
from profsvc.reports.plots import figure as figures
from profsvc.reports.plots import history as history_plot
from profsvc.reports.plots import models as model_plots
from profsvc.reports.plots import svg_figure, svg_scales
from profsvc.views.models import plots
from tests.reports.plots.test_history import POINTS, point, step, view

ROOT = Path(__file__).parents[3]
SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"[-\u2212]?[\d.]+(?: ?[TGMk])?")
PAGES = """
import sys
from starlette.testclient import TestClient
from profsvc import store
from profsvc.web.app import create_app
from profsvc.web.http.state import AppState
engine = store.open_store(sys.argv[1])
client = TestClient(create_app(AppState(engine, store.blob_store_of(engine))), base_url="http://localhost")
for path in sys.argv[2:]:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    assert "<svg" in answer.text
assert not [name for name in sys.modules if name.startswith("matplotlib")]
"""


def words(svg: bytes) -> set[str]:
    """Return the texts of a figure that are no numbers of an axis."""
    found = ("".join(one.itertext()).strip() for one in ElementTree.fromstring(svg).iter(f"{SVG}text"))
    return {said for said in found if not NUMBER.fullmatch(said)}


def marks(svg: bytes) -> set[str | None]:
    """Return the names of the points of launches."""
    found = {one.get("id") for one in ElementTree.fromstring(svg).iter(f"{SVG}g")}
    return {one for one in found if one and one.startswith("point-")}


def with_matplotlib(monkeypatch, draw):
    picture = figures.picture
    with monkeypatch.context() as patched:
        patched.setattr(figures, "picture", lambda *given, is_plain=False: picture(*given))
        return draw()


@pytest.mark.parametrize("kind", ["roofline", "benefit", "warps", "sms"])
@pytest.mark.parametrize("launch", ["0", "14", "28", ""])
def test_a_figure_says_what_that_of_matplotlib_says(demo, monkeypatch, kind, launch):
    if not launch and kind in ("warps", "sms"):
        pytest.skip("it is of one launch")
    data = plots.plot(demo, 1, kind, *([launch] if launch else []))
    own = model_plots.draw(data)
    theirs = with_matplotlib(monkeypatch, lambda: model_plots.draw(data))
    assert own == model_plots.draw(data) != model_plots.draw(data, dark=True)
    assert b"<path" in own
    said = words(theirs)
    assert {one.replace(" ", "") for one in words(own)} >= {one.replace(" ", "") for one in said}
    assert marks(own) == marks(theirs)
    inside = [one for one in ElementTree.fromstring(own).iter(f"{SVG}path") if "nan" in one.get("d", "").lower()]
    assert inside == []


def test_a_history_says_what_that_of_matplotlib_says(monkeypatch):
    points = [point(n, 300.0, series, raw=310.0) for n in (1, 2) for series in range(9)]
    for data in (view([*POINTS, point(9, None)], [step(5)], [{"run_id": 5}]), view(points)):
        theirs = with_matplotlib(monkeypatch, lambda data=data: history_plot.draw(data))
        assert words(history_plot.draw(data)) == words(theirs)


def test_a_point_is_where_its_value_is():
    figure = svg_figure.Figure((4.0, 3.0), "#ffffff")
    axes = figure.add_subplot()
    axes.set_logarithmic("x", (1,), lambda value, _: f"{value:g}")
    axes.plot([1, 100], [0, 10], "o", color="#000000")
    axes.set_xlim(1, 100)
    axes.set_ylim(0, 10)
    left, bottom, right, top = axes.box
    at = axes.transData.transform([[1, 0], [10, 5], [100, 10]])
    assert at == pytest.approx(np.array([[left, bottom], [(left + right) / 2, (bottom + top) / 2], [right, top]]))
    assert axes.transData.inverted().transform(at) == pytest.approx(np.array([[1, 0], [10, 5], [100, 10]]))
    circles = list(ElementTree.fromstring(figure.svg("t")).iter(f"{SVG}circle"))
    assert [(float(one.get("cx")), float(one.get("cy"))) for one in circles] == [
        (pytest.approx(left, abs=0.01), pytest.approx(figure.height - bottom, abs=0.01)),
        (pytest.approx(right, abs=0.01), pytest.approx(figure.height - top, abs=0.01)),
    ]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7e9), (1e-12, 2e-12), (0.5, 0.50001), (1e15, 1e15 + 64)])
def test_ticks_are_few_round_and_inside(low, high):
    found = svg_scales.ticks(svg_scales.Scale(low, high, 0, 1))
    assert 1 <= len(found) <= svg_scales.MAX_TICKS + 1
    assert all(low - 1e-9 * (high - low) <= value <= high + 1e-9 * (high - low) for value in found)
    assert all(before < after for before, after in pairwise(found))


@pytest.mark.parametrize("values", [[], [np.nan], [0.0], [-1.0, 1e-300], [5.0]])
@pytest.mark.parametrize("is_log", [False, True])
def test_any_values_have_limits(values, is_log):
    low, high = svg_scales.limits((None, None), [np.array(values)], is_log)
    assert np.isfinite([low, high]).all()
    assert low < high
    assert low > 0 or not is_log


def test_pages_of_launches_and_histories_need_no_matplotlib(demo):
    (row, *_) = store.select(demo, "v1_launches", run_id=1)
    paths = [f"/runs/1/launches/{row['launch_id']}", f"/history?kernel={row['kernel_id']}"]
    command = [sys.executable, "-c", PAGES, str(demo.url.database), *paths]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
