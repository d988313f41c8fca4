"""Texts at points of plots lie over no other text and over no mark, however near the points are to each other."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from profsvc.reports.plots import launches as launch_points
from profsvc.reports.plots.figure import LIGHT
from profsvc.reports.plots.label_placement import REACHES, places
from profsvc.views.models import plots as model_plots

FRAME = np.array([0.0, 0.0, 600.0, 500.0])
NONE = np.zeros((0, 4))


def over(one, other, room=0.0):
    """How many pixels two boxes overlap by, in the direction in which it is less."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, min(width, height) - room)


@given(
    st.lists(st.tuples(st.floats(5, 595), st.floats(5, 495)), min_size=1, max_size=14),
    st.integers(8, 40),
)
def test_no_text_lies_over_another_or_outside(points, width):
    anchors = np.array(points)
    marks = np.hstack([anchors - 5, anchors + 5])
    sizes = np.tile([float(width), 12.0], (len(anchors), 1))
    found = places(anchors, sizes, marks, NONE, FRAME)
    assert np.allclose(found[:, 2:] - found[:, :2], sizes)
    for one, other in itertools.combinations(found, 2):
        assert over(one, other) == 0
    for box, anchor in itertools.product(found, marks):
        assert over(box, anchor) == 0
    assert (found[:, :2] >= 0).all()
    assert (found[:, 2:] <= FRAME[2:]).all()
    away = np.hypot(*(np.clip(anchors, found[:, :2], found[:, 2:]) - anchors).T)
    assert (away <= REACHES[-1] + 1e-9).all()


def test_a_text_that_fits_nowhere_costs_least():
    box = places(np.array([[50.0, 50.0]]), np.array([[90.0, 10.0]]), NONE, NONE, np.array([0.0, 0.0, 100.0, 100.0]))[0]
    assert (box[0], box[2]) == (5, 95)  # above or below: at the side it would leave the frame
    blocked = np.array([[0.0, 0.0, 100.0, 100.0]])
    assert places(np.array([[50.0, 50.0]]), np.array([[9.0, 9.0]]), blocked, NONE, FRAME).shape == (1, 4)
    assert places(np.zeros((0, 2)), np.zeros((0, 2)), NONE, NONE, FRAME).shape == (0, 4)


def test_lines_are_left_free_where_there_is_room():
    line = np.array([[x, 49.0, x + 2.0, 51.0] for x in range(50, 300, 4)])
    (box,) = places(np.array([[50.0, 50.0]]), np.array([[20.0, 10.0]]), NONE, line, FRAME)
    assert box[2] <= 50  # the line leaves to the right


def texts_of(data, maker):
    """The texts of a plot, each with its box; those that are turned are left out."""
    figure = Figure(figsize=(8.2, 5.2), layout="constrained")
    maker(figure, data, LIGHT)
    axes = figure.axes[0]
    known = [one for one in axes.texts if one.get_text() and not one.get_rotation()]
    marks = [line for line in axes.lines if line.get_marker() != "None"]
    spots = [axes.transData.transform((line.get_xdata()[0], line.get_ydata()[0])) for line in marks]
    return [(one.get_text(), one.get_window_extent().extents) for one in known], spots


@pytest.mark.parametrize(
    ("kind", "kernel"), [("roofline", None), ("roofline", "3"), ("benefit", None), ("benefit", "3")]
)
def test_plots_of_launches_have_no_text_over_another(demo, kind, kernel):
    texts, spots = texts_of(model_plots.plot(demo, "h200", kind, kernel), getattr(launch_points, kind))
    assert texts
    for (one, box), (other, its) in itertools.combinations(texts, 2):
        assert over(box, its, 0.5) == 0, (one, other)
    for (words, box), spot in itertools.product(texts, spots):
        assert over(box, [*(spot - 2), *(spot + 2)]) == 0, words


def test_launches_that_meet_share_a_number_and_near_ones_do_not_hide_each_other(demo):
    data = model_plots.plot(demo, "h200", "roofline")
    first = data["rows"][0]
    data["rows"] = [
        first
        | {"kernel": f"k{n}", "launch_id": n, "intensity_dram": 10 * 1.05 ** (n % 4)}
        | {"flop_per_s": 1e12 * 1.1 ** (n // 4)}
        for n in range(14)
    ]
    texts, _ = texts_of(data, launch_points.roofline)
    numbers = [words for words, _ in texts if words.replace(", ", "").isdigit()]
    assert sorted(int(part) for words in numbers for part in words.split(", ")) == list(range(1, 15))
    for (one, box), (other, its) in itertools.combinations(texts, 2):
        assert over(box, its, 0.5) == 0, (one, other)
