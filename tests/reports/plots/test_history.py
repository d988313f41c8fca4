"""The picture of a history: nothing of the data is lost on the way, and no name in it acts."""

from xml.etree import ElementTree

import pytest

from profsvc.reports import history_labels
from profsvc.reports.plots import history as history_plot
from profsvc.reports.text import history as history_text
from tests.reports.plots.test_power import HOSTILE, words


def point(number, value, series=0, **more):
    empty = dict.fromkeys(("low", "high", "raw", "commit_id", "device", "sensor", "window", "reason"))
    at = f"2026-11-{number:02}T00:00:00Z"
    return (
        empty
        | {"series": series, "run_id": number, "run": f"r{number}", "value": value, "at": at, "project": "p"}
        | more
    )


def view(points, steps=(), findings=(), **kernel):
    series = [
        {"series": n, "project": "p", "device": None, "sensor": None, "window": None, "needed": 0}
        for n in sorted({one["series"] for one in points})
    ]
    about = {"name": "duration", "title": "Duration", "unit": "ns", "meaning": "median", "band": "least to p95"}
    names = {"kernel_id": 1, "kernel": "k(int)", "kernel_short": "k"} | kernel
    least = {"relative": 0.01, "absolute": 64.0, "unit": "ns"}
    return {"kernel": names, "quantity": about, "series": series, "points": points, "steps": list(steps),
            "findings": list(findings), "smallest_change": least, "notes": []}  # fmt: skip


def step(run, **more):
    return {"series": 0, "run_id": run, "run": f"r{run}", "commit_id": None, "before": 1e6, "after": 2e6, "change": 1.0,
            "p": 1e-9, "material": True, "direction": "worse"} | more  # fmt: skip


POINTS = [point(n, 1e6 if n < 5 else 2e6, low=0.9e6, high=3e6) for n in range(1, 9)]


def test_runs_and_what_became_of_them_are_named():
    data = view([*POINTS, point(9, None)], [step(5)], [{"run_id": 5}, {"run_id": 99}])
    svg = history_plot.draw(data)
    told = words(svg)
    assert {"Duration (ms)", "Duration of k over runs", "p, unknown device", "regression",
            "nightly finding", "r1", "r9"} <= set(told)  # fmt: skip
    assert svg == history_plot.draw(data)
    assert history_plot.draw(data, dark=True) != svg
    assert history_plot.draw(data, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("points", [POINTS[:1], [point(1, None)], [point(1, float("nan"))], [point(1, 0.0)]])
def test_little_is_drawn_too(points):
    assert "Duration of k over runs" in words(history_plot.draw(view(points)))


def test_power_has_what_was_measured_beside_it_and_many_series_are_cut():
    points = [point(n, 300.0, series, raw=310.0) for n in (1, 2) for series in range(9)]
    told = words(history_plot.draw(view(points)))
    assert told.count("uncorrected") == told.count("p, unknown device") == history_plot.MAX_SERIES


def test_no_name_acts():
    points = [point(1, 1.0, project=HOSTILE, commit_id=HOSTILE, run=HOSTILE)]
    data = view(points, kernel_short=HOSTILE, kernel=HOSTILE)
    data["series"][0] |= {"project": HOSTILE, "device": HOSTILE, "sensor": HOSTILE, "window": HOSTILE}
    ElementTree.fromstring(history_plot.draw(data))
    assert words(history_plot.draw(data))
    page = history_text.page(data)
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    ("unit", "values", "name"),
    [("ns", [5e9], "s"), ("ns", [0.5], "ns"), ("ns", [None, 2e3], "\u00b5s"), ("Hz", [1.98e9], "GHz"),
     ("W", [3.0], "W"),
     ("J", [], "mJ"), ("1", [0.5], ""), ("degC", [0.0], "\u00b0C")],
)  # fmt: skip
def test_values_are_read_in_the_unit_that_suits_them(unit, values, name):
    assert history_labels.scale_of(unit, values)[0] == name


def test_a_step_too_small_to_matter_says_so():
    page = history_text.page(view(POINTS, [step(5, material=False, change=None, p=0.004), step(7, direction="better")]))
    assert "at run r5: 1 -> 2 ms, below threshold, p = 0.004" in page
    assert "at run r7: 1 -> 2 ms, +100.0 % better, p < 0.0001" in page
    assert "threshold: changes below 1 % of the level or 64 ns are ignored" in page


@pytest.mark.parametrize(
    ("needed", "told"),
    [([0], "no change detected"), ([0, 2], "no change detected"),
     ([3, 2], "not enough runs to detect a change (needs 5 before, 3 after)")],
)  # fmt: skip
def test_a_page_without_a_change_says_whether_it_could_have_one(needed, told):
    data = view([point(1, 1.0, series) for series in range(len(needed))])
    for one, lacking in zip(data["series"], needed, strict=True):
        one["needed"] = lacking
    data["notes"] = [told, "2 runs have no value"]
    assert history_text.page(data).endswith(f"\n\n{told}\nnote: 2 runs have no value\n")
