"""Several runs of a night: one value where they share their night, and values of their own where they do not."""

import numpy as np
import pytest

from profsvc.analysis.changes.night_values import night_values
from profsvc.analysis.changes.nightly import find_changes
from tests.benchmarks.detection import points_of, several_runs, walk
from tests.inputs.noise import white


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261124)


def test_runs_that_repeat_their_night_are_one_value_of_it(rng):
    x = several_runs(rng, white(rng, 20, 30), 3, 0.3)
    points = points_of(x, np.arange(20))
    kept = night_values(points)
    assert len(kept) == 20 * 30
    first = points[(points["group"] == 0)].head(3)
    assert kept["value"].iloc[0] == pytest.approx(first["value"].mean())
    assert kept["run_id"].iloc[0] == first["run_id"].iloc[0]
    assert kept["until"].iloc[0] == first["at"].iloc[2]


def test_runs_that_do_not_share_their_night_all_count(rng):
    x = white(rng, 20, 90).reshape(20, 30, 3)
    assert len(night_values(points_of(x, np.arange(20)))) >= 0.95 * 20 * 90


def test_a_change_some_nights_ago_is_no_reason_to_merge_runs(rng):
    x = white(rng, 20, 90).reshape(20, 30, 3)
    x[:, -3:] += 8.0
    assert len(night_values(points_of(x, np.arange(20)))) >= 0.95 * 20 * 90


def test_builds_of_one_day_are_not_merged(rng):
    points = points_of(several_runs(rng, white(rng, 20, 30), 3, 0.01), np.arange(20))
    points["build"] = [f"c{number}" for number in range(len(points))]
    assert len(night_values(points)) == len(points)


def test_five_runs_that_repeat_their_night_make_no_findings_of_their_own(rng):
    x = several_runs(rng, white(rng, 40, 40), 5, 0.2)
    assert walk(x, 25).false <= 3  # 300 before the nights counted as one
    x[:, -5:] += 4.0
    assert walk(x, 35).found >= 38


def test_a_small_step_of_five_runs_a_night_is_found_within_five_nights(rng):
    x = white(rng, 60, 150).reshape(60, 30, 5)
    x[:, -5:] += 2.4 / np.sqrt(5)  # of a mean of five
    assert walk(x, 25).found >= 42  # 23 where windows counted runs


def test_reruns_are_asked_for_where_two_values_more_would_decide(rng):
    x = white(rng, 100, 40)
    x[0, -1] += 9.0
    asked = find_changes(points_of(x[:, :, np.newaxis], np.arange(100)), []).reruns
    assert asked[0]["series"] == "s000000"
    assert asked[0]["p_with_reruns"] <= 0.01
    short = find_changes(points_of(x[:, -6:, np.newaxis], np.arange(100)), []).reruns
    assert short == [] or all(one["p_with_reruns"] <= 0.01 for one in short)


def test_at_most_one_series_in_twenty_is_asked_for_again_and_the_surest_first(rng):
    x = white(rng, 100, 40)
    x[:20, -1] += np.linspace(6.0, 12.0, 20)
    asked = find_changes(points_of(x[:, :, np.newaxis], np.arange(100)), []).reruns
    assert len(asked) == 5
    assert [one["p_with_reruns"] for one in asked] == sorted(one["p_with_reruns"] for one in asked)
