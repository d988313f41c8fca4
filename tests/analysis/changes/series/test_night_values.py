"""Several runs of a night: one value where they share their night, and values of their own where they do not."""

import numpy as np
import pandas as pd
import pytest

from profsvc.analysis.changes.nightly import find_changes
from profsvc.analysis.changes.series.night_values import night_values, with_nights
from tests.benchmarks.detection import points_of, several_runs, walk
from tests.inputs.noise import white


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261124)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata"])
@pytest.mark.parametrize("hour", ["00:10", "01:30", "23:50"])
def test_a_night_is_a_date_in_the_zone_of_the_report_in_winter_and_in_summer(zone, hour):
    dates = pd.date_range("2026-03-01", periods=240).strftime("%Y-%m-%d")
    local = pd.to_datetime([f"{date} {hour}" for date in dates]).tz_localize(zone)
    at = local.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ")
    night = with_nights(pd.DataFrame({"at": at}), zone)["night"].to_numpy()
    assert (night == np.datetime64("2026-03-01").astype(int) + np.arange(240)).all()


def test_a_bare_date_is_the_same_night_in_every_zone():
    at = pd.DataFrame({"at": ["2026-03-01", "2026-03-01T23:30:00Z", "2026-03-02T01:30:00.123456789Z"]})
    nights = {zone: with_nights(at, zone)["night"].diff().tolist()[1:] for zone in ("UTC", "Europe/Berlin")}
    assert nights == {"UTC": [0.0, 1.0], "Europe/Berlin": [1.0, 0.0]}


def test_runs_about_midnight_in_utc_are_one_night_of_their_zone(rng):
    x = several_runs(rng, white(rng, 40, 40), 4, 0.2)
    points = points_of(x, np.arange(40))
    night, run = (points["run_id"] - 1) // 4, (points["run_id"] - 1) % 4
    begins = pd.Timestamp("2026-01-04T23:10Z")  # 00:10 in Berlin; the third run is of the next day in UTC
    at = (begins + pd.to_timedelta(night, "D") + pd.to_timedelta(30 * run, "min")).dt.strftime("%Y-%m-%dT%H:%M:%SZ")
    points = points.assign(at=at.astype(object))
    counts = {zone: len(night_values(with_nights(points, zone))) for zone in ("UTC", "Europe/Berlin")}
    assert counts["Europe/Berlin"] == 40 * 40 < counts["UTC"]


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


def test_the_first_nights_with_several_runs_make_no_findings_of_their_own(rng):
    x = white(rng, 40, 40)[:, :, np.newaxis] + rng.standard_normal((40, 40, 5))
    x[:, :25, 1:] = np.nan
    assert walk(x, 25).false <= 2  # 20 where nights of one run hid what runs of a night share


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
